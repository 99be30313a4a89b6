/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: element types, reductions, instruction sets of the host. Never knows: plans, ranks,
 * transports. */
#ifndef TW_DEVICE_REDUCE_H
#define TW_DEVICE_REDUCE_H

#include <stddef.h>

#include "twill.h"

/* dst[i] = left[i] (+) right[i] for count elements. dst may equal left or right, not overlap
 * otherwise. Any alignment. 16- and 8-bit floats: widened to fp32, one rounding (to nearest even)
 * at the end. NaN comes out canonical; max and min yield NaN if either is NaN; -0 < +0 for them.
 * Integers wrap. */
typedef void (*tw_reduce_fn)(void *dst, const void *left, const void *right, size_t count);
/* data[i] = data[i] / nranks in place; integers truncate toward zero, floats divide (in fp32 for 16
 * bit). */
typedef void (*tw_divide_fn)(void *data, size_t count, int nranks);

enum tw_isa { TW_ISA_PORTABLE, TW_ISA_AVX2, TW_ISA_AVX512, TW_ISA_COUNT };

/** The best set this CPU has, or the one named (TWILL_ISA); ERR_INVALID for an unknown or missing
 * one. */
enum twill_status tw_isa_select(const char *name, enum tw_isa *isa);
const char *tw_isa_name(enum tw_isa isa);

/** NULL when the pair is not served. avg reduces as sum. */
tw_reduce_fn tw_reduce_find(twill_type_t type, twill_redop_t op, enum tw_isa isa);
tw_divide_fn tw_divide_find(twill_type_t type, enum tw_isa isa);

#endif
