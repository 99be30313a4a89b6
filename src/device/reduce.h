/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: element types, reductions, instruction sets of the host. Never knows: plans, ranks,
 * transports. */
#ifndef TW_DEVICE_REDUCE_H
#define TW_DEVICE_REDUCE_H

#include <stddef.h>

#include "base/status.h"
#include "twill.h"

/*
 * The kernels: type x operation x form x instruction set. docs/numbers.md says what they compute;
 * all sets agree bit for bit. In short: 16- and 8-bit floats are widened to fp32, combined there
 * and rounded once, to nearest even; NaN comes out canonical; max and min yield NaN if either is
 * NaN, and -0 < +0 for them; float8 saturates; integers wrap. The caller's floating-point mode does
 * not matter and is left as it was. Operands may be exchanged without changing a bit.
 *
 * The wide type of 16- and 8-bit floats is fp32, of all others the type itself (device/convert.h).
 * Any alignment. Pointers overlap only where they are said to be allowed equal.
 */
typedef void (*tw_reduce_fn)(void *dst, const void *left, const void *right, size_t count);

enum tw_reduce_form {
    TW_FORM_PLAIN, /* type (+) type -> type; dst may equal left or right */
    TW_FORM_WIDEN, /* type (+) type -> wide */
    TW_FORM_ADD,   /* wide (+) type -> wide; dst may equal left */
    TW_FORM_WIDE,  /* wide (+) wide -> wide; dst may equal left or right */
    TW_FORM_COUNT
};

/* dst[i] = src[i] / nranks; src of the wide type, dst of the type: the end of avg. Integers
 * truncate toward zero, floats divide in the wide type and are then rounded. dst may equal src
 * where both are one type. */
typedef void (*tw_divide_fn)(void *dst, const void *src, size_t count, int nranks);
/* dst[i] = src[i] * *scalar, all of the type: the beginning of premul_sum. scalar: any alignment.
 * dst may equal src. */
typedef void (*tw_scale_fn)(void *dst, const void *src, size_t count, const void *scalar);
/* dst[i] = src[i] in the other type. */
typedef void (*tw_convert_fn)(void *dst, const void *src, size_t count);

enum tw_isa { TW_ISA_PORTABLE, TW_ISA_AVX2, TW_ISA_AVX512, TW_ISA_COUNT };

/** The best set this CPU has, or the one named (TWILL_ISA); ERR_INVALID for an unknown or missing
 * one. */
enum twill_status tw_isa_select(const char *name, enum tw_isa *isa);
const char *tw_isa_name(enum tw_isa isa);

/** NULL: type or op is none, or the type does not have it (band, bor, bxor of floats). avg and
 * premul_sum reduce as sum. */
tw_reduce_fn tw_reduce_form_find(twill_type_t type, twill_redop_t op, enum tw_reduce_form form,
                                 enum tw_isa isa);
/** The PLAIN form. */
tw_reduce_fn tw_reduce_find(twill_type_t type, twill_redop_t op, enum tw_isa isa);
/** NULL: type is none. */
tw_divide_fn tw_divide_find(twill_type_t type, enum tw_isa isa);
tw_scale_fn tw_scale_find(twill_type_t type, enum tw_isa isa);

#endif
