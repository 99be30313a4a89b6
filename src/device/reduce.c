/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which instruction sets this CPU has, the tables of kernels.
 * Never knows: how a kernel computes. */
#include "device/reduce.h"

#include <string.h>

#include "base/status.h"
#include "device/convert.h"
#include "device/reduce_rows.h"

static const char *const isa_names[TW_ISA_COUNT] = {"portable", "avx2", "avx512"};

#if defined(__x86_64__)
#include <cpuid.h>

static const struct tw_reduce_row *const isa_rows[TW_ISA_COUNT] = {
    tw_reduce_rows_portable, tw_reduce_rows_avx2, tw_reduce_rows_avx512};

/* not every compiler's __builtin_cpu_supports knows it */
static bool f16c_here(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

static bool isa_here(enum tw_isa isa)
{
    switch (isa) {
    case TW_ISA_AVX2:
        return __builtin_cpu_supports("avx2") && f16c_here();
    case TW_ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    default:
        return isa == TW_ISA_PORTABLE;
    }
}
#else
static const struct tw_reduce_row *const isa_rows[TW_ISA_COUNT] = {tw_reduce_rows_portable};

static bool isa_here(enum tw_isa isa) { return isa == TW_ISA_PORTABLE; }
#endif

const char *tw_isa_name(enum tw_isa isa)
{
    return (unsigned)isa < TW_ISA_COUNT ? isa_names[isa] : NULL;
}

enum twill_status tw_isa_select(const char *name, enum tw_isa *isa)
{
    if (name == NULL || name[0] == '\0') {
        int best = TW_ISA_COUNT - 1;

        while (!isa_here((enum tw_isa)best)) {
            best--;
        }
        *isa = (enum tw_isa)best;
        return TWILL_OK;
    }
    for (int i = 0; i < TW_ISA_COUNT; i++) {
        if (strcmp(name, isa_names[i]) != 0) {
            continue;
        }
        if (!isa_here((enum tw_isa)i)) {
            return tw_fail(TWILL_ERR_INVALID, "instruction set '%s' (TWILL_ISA) is not on this cpu",
                           name);
        }
        *isa = (enum tw_isa)i;
        return TWILL_OK;
    }
    return tw_fail(TWILL_ERR_INVALID,
                   "unknown instruction set '%s' (TWILL_ISA): portable, avx2 or avx512", name);
}

const struct tw_reduce_row *tw_reduce_row_of(twill_type_t type, enum tw_isa isa)
{
    if ((unsigned)type >= TW_TYPE_COUNT || (unsigned)isa >= TW_ISA_COUNT || isa_rows[isa] == NULL) {
        return NULL;
    }
    return &isa_rows[isa][type];
}

/* The operation between two elements; -1: op is none. */
static int column_of(twill_redop_t op)
{
    if ((unsigned)op >= TW_REDOP_COUNT) {
        return -1;
    }
    return op == TWILL_AVG || op == TW_REDOP_PREMUL_SUM ? TWILL_SUM : (int)op;
}

tw_reduce_fn tw_reduce_form_find(twill_type_t type, twill_redop_t op, enum tw_reduce_form form,
                                 enum tw_isa isa)
{
    const bool mixed = form == TW_FORM_WIDEN || form == TW_FORM_ADD;
    const twill_type_t wide = tw_wide_type(type);
    const struct tw_reduce_row *row = tw_reduce_row_of(form == TW_FORM_WIDE ? wide : type, isa);
    const int column = column_of(op);

    if (row == NULL || column < 0) {
        return NULL;
    }
    if (!mixed || wide == type) {
        return row->plain[column];
    }
    if (column > TWILL_MIN) {
        return NULL;
    }
    return form == TW_FORM_WIDEN ? row->widen[column] : row->add[column];
}

tw_reduce_fn tw_reduce_find(twill_type_t type, twill_redop_t op, enum tw_isa isa)
{
    return tw_reduce_form_find(type, op, TW_FORM_PLAIN, isa);
}

tw_divide_fn tw_divide_find(twill_type_t type, enum tw_isa isa)
{
    const struct tw_reduce_row *row = tw_reduce_row_of(type, isa);

    return row == NULL ? NULL : row->divide;
}

tw_scale_fn tw_scale_find(twill_type_t type, enum tw_isa isa)
{
    const struct tw_reduce_row *row = tw_reduce_row_of(type, isa);

    return row == NULL ? NULL : row->scale;
}

/* nranks is a positive int: division by it neither traps nor overflows. Narrow types divide as int,
 * so that a count above their range is right too. */
#define DIVIDE_INT(name, type, wide)                                                               \
    void tw_divide_##name(void *dst, const void *src, size_t count, int nranks)                    \
    {                                                                                              \
        const char *from = src;                                                                    \
        char *to = dst;                                                                            \
                                                                                                   \
        for (size_t i = 0; i < count; i++) {                                                       \
            type value;                                                                            \
                                                                                                   \
            memcpy(&value, from + i * sizeof(value), sizeof(value));                               \
            value = (type)((wide)value / (wide)nranks);                                            \
            memcpy(to + i * sizeof(value), &value, sizeof(value));                                 \
        }                                                                                          \
    }

DIVIDE_INT(int8, int8_t, int)
DIVIDE_INT(uint8, uint8_t, int)
DIVIDE_INT(int32, int32_t, int)
DIVIDE_INT(uint32, uint32_t, uint32_t)
DIVIDE_INT(int64, int64_t, int64_t)
DIVIDE_INT(uint64, uint64_t, uint64_t)
