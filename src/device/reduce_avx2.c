/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: AVX2 with F16C. Never knows: whether this CPU has it. */
#include "twill.h"

#if defined(__x86_64__)
#define VEC_BYTES 32
#define VEC_TARGET __attribute__((target("avx2,f16c")))
#define VEC_F16C 1
#define VEC_ROWS tw_reduce_rows_avx2
#include "device/reduce_vec.h"
#endif
