/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the bits of narrow floats. Never knows: reductions, instruction sets. */
#include "device/convert.h"

#include <stdint.h>
#include <string.h>

#define F32_INF 0x7f800000u
#define F32_MAGNITUDE 0x7fffffffu
#define BF16_NAN 0x7fc0u

twill_type_t tw_wide_type(twill_type_t type)
{
    switch (type) {
    case TWILL_FLOAT16:
    case TWILL_BFLOAT16:
    case TWILL_FLOAT8E4M3:
    case TWILL_FLOAT8E5M2:
        return TWILL_FLOAT32;
    default:
        return type;
    }
}

static void widen_bfloat16(void *dst, const void *src, size_t count)
{
    const char *from = src;
    char *to = dst;

    for (size_t i = 0; i < count; i++) {
        uint16_t narrow;
        uint32_t wide;

        memcpy(&narrow, from + i * sizeof(narrow), sizeof(narrow));
        wide = (uint32_t)narrow << 16;
        memcpy(to + i * sizeof(wide), &wide, sizeof(wide));
    }
}

static void round_bfloat16(void *dst, const void *src, size_t count)
{
    const char *from = src;
    char *to = dst;

    for (size_t i = 0; i < count; i++) {
        uint32_t wide;
        uint16_t narrow;

        memcpy(&wide, from + i * sizeof(wide), sizeof(wide));
        narrow = (uint16_t)((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
        narrow = (wide & F32_MAGNITUDE) > F32_INF ? BF16_NAN : narrow;
        memcpy(to + i * sizeof(narrow), &narrow, sizeof(narrow));
    }
}

tw_convert_fn tw_widen_find(twill_type_t type)
{
    return type == TWILL_BFLOAT16 ? widen_bfloat16 : NULL;
}

tw_convert_fn tw_round_find(twill_type_t type)
{
    return type == TWILL_BFLOAT16 ? round_bfloat16 : NULL;
}
