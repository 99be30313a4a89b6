/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: AVX-512 (F, BW, DQ, VL). Never knows: whether this CPU has it. */
#include "twill.h"

#if defined(__x86_64__)
#define VEC_BYTES 64
#define VEC_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define VEC_F16C 1
#define VEC_ROWS tw_reduce_rows_avx512
#include "device/reduce_vec.h"
#endif
