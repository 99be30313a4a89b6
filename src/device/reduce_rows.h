/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the table of kernels that each instruction set fills. Never knows: who looks them up. */
#ifndef TW_DEVICE_REDUCE_ROWS_H
#define TW_DEVICE_REDUCE_ROWS_H

#include "device/reduce.h"

#define TW_TYPE_COUNT (TWILL_FLOAT8E5M2 + 1)

/* Kernels of one type; NULL: not served. avg has no column: it reduces as sum. */
struct tw_reduce_row {
    tw_reduce_fn op[TWILL_MIN + 1]; /* by twill_redop_t */
    tw_divide_fn divide;
};

extern const struct tw_reduce_row tw_reduce_rows_portable[TW_TYPE_COUNT];
#if defined(__x86_64__)
extern const struct tw_reduce_row tw_reduce_rows_avx2[TW_TYPE_COUNT];
extern const struct tw_reduce_row tw_reduce_rows_avx512[TW_TYPE_COUNT];
#endif

/* Integer division has no vector form: shared by all rows (reduce.c). */
void tw_divide_int8(void *data, size_t count, int nranks);
void tw_divide_uint8(void *data, size_t count, int nranks);
void tw_divide_int32(void *data, size_t count, int nranks);
void tw_divide_uint32(void *data, size_t count, int nranks);
void tw_divide_int64(void *data, size_t count, int nranks);
void tw_divide_uint64(void *data, size_t count, int nranks);

#endif
