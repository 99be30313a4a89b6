/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which instruction sets this CPU has, the tables of kernels.
 * Never knows: how a kernel computes. */
#include "device/reduce.h"

#include <string.h>

#include "base/status.h"
#include "device/reduce_rows.h"

static const char *const isa_names[TW_ISA_COUNT] = {"portable", "avx2", "avx512"};

#if defined(__x86_64__)
static const struct tw_reduce_row *const isa_rows[TW_ISA_COUNT] = {
    tw_reduce_rows_portable, tw_reduce_rows_avx2, tw_reduce_rows_avx512};

static bool isa_here(enum tw_isa isa)
{
    switch (isa) {
    case TW_ISA_AVX2:
        return __builtin_cpu_supports("avx2");
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

static const struct tw_reduce_row *row_of(twill_type_t type, enum tw_isa isa)
{
    if ((unsigned)type >= TW_TYPE_COUNT || (unsigned)isa >= TW_ISA_COUNT || isa_rows[isa] == NULL) {
        return NULL;
    }
    return &isa_rows[isa][type];
}

tw_reduce_fn tw_reduce_find(twill_type_t type, twill_redop_t op, enum tw_isa isa)
{
    const struct tw_reduce_row *row = row_of(type, isa);

    if (row == NULL || (unsigned)op > TWILL_AVG) {
        return NULL;
    }
    return row->op[op == TWILL_AVG ? TWILL_SUM : op];
}

tw_divide_fn tw_divide_find(twill_type_t type, enum tw_isa isa)
{
    const struct tw_reduce_row *row = row_of(type, isa);

    return row == NULL ? NULL : row->divide;
}

/* nranks is a positive int: division by it neither traps nor overflows. Narrow types divide as int,
 * so that a count above their range is right too. */
#define DIVIDE_INT(name, type, wide)                                                               \
    void tw_divide_##name(void *data, size_t count, int nranks)                                    \
    {                                                                                              \
        char *at = data;                                                                           \
                                                                                                   \
        for (size_t i = 0; i < count; i++, at += sizeof(type)) {                                   \
            type value;                                                                            \
                                                                                                   \
            memcpy(&value, at, sizeof(value));                                                     \
            value = (type)((wide)value / (wide)nranks);                                            \
            memcpy(at, &value, sizeof(value));                                                     \
        }                                                                                          \
    }

DIVIDE_INT(int8, int8_t, int)
DIVIDE_INT(uint8, uint8_t, int)
DIVIDE_INT(int32, int32_t, int)
DIVIDE_INT(uint32, uint32_t, uint32_t)
DIVIDE_INT(int64, int64_t, int64_t)
DIVIDE_INT(uint64, uint64_t, uint64_t)
