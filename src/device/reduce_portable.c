/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that every compiler has 16-byte vectors, in hardware or not.
 * Never knows: the instruction set. */
#define VEC_BYTES 16
#define VEC_TARGET
#define VEC_ROWS tw_reduce_rows_portable
#include "device/reduce_vec.h"
