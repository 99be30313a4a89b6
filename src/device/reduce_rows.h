/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the table of kernels that each instruction set fills. Never knows: who looks them up. */
#ifndef TW_DEVICE_REDUCE_ROWS_H
#define TW_DEVICE_REDUCE_ROWS_H

#include "device/reduce.h"

#define TW_TYPE_COUNT (TWILL_FLOAT8E5M2 + 1)

/* Kernels of one type; NULL: there is none. avg and premul_sum have no columns: they reduce as sum.
 * What goes by the wide type stands in the narrow floats' rows only. */
struct tw_reduce_row {
    tw_reduce_fn plain[TW_REDOP_COUNT];
    tw_reduce_fn widen[TWILL_MIN + 1], add[TWILL_MIN + 1];
    tw_divide_fn divide;
    tw_scale_fn scale;
    tw_convert_fn to_wide, from_wide;
};

extern const struct tw_reduce_row tw_reduce_rows_portable[TW_TYPE_COUNT];
#if defined(__x86_64__)
extern const struct tw_reduce_row tw_reduce_rows_avx2[TW_TYPE_COUNT];
extern const struct tw_reduce_row tw_reduce_rows_avx512[TW_TYPE_COUNT];
#endif

/** NULL: there is no such type or set. */
const struct tw_reduce_row *tw_reduce_row_of(twill_type_t type, enum tw_isa isa);

/* Integer division has no vector form: shared by all rows (reduce.c). */
void tw_divide_int8(void *dst, const void *src, size_t count, int nranks);
void tw_divide_uint8(void *dst, const void *src, size_t count, int nranks);
void tw_divide_int32(void *dst, const void *src, size_t count, int nranks);
void tw_divide_uint32(void *dst, const void *src, size_t count, int nranks);
void tw_divide_int64(void *dst, const void *src, size_t count, int nranks);
void tw_divide_uint64(void *dst, const void *src, size_t count, int nranks);

#endif
