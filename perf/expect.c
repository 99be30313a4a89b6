/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the output of a call must be, computed here from the inputs' hashes.
 * Never knows: how twill reduces: floats are added in fp64, integers in 64 bits.
 *
 * Inputs are chosen so that a right result is exact in any order of operations (values.c): averages
 * are an exact sum, divided in fp32 (fp64 for float64) and rounded to the type. The exception has a
 * stated tolerance: sums of narrow floats over more ranks than exact sums allow. */
#include "config.h"

#include <math.h>

#include "perf.h"

/* Most that an input is multiplied by before it is added. */
static int weight(const struct perf_case *c)
{
    return c->redop == PERF_MULSUM ? PERF_MULSUM_MOST : 1;
}

static int float_limit(const struct perf_case *c, int ranks, enum perf_kind kind)
{
    int digits = perf_type_digits(c->type);
    if (kind == PERF_SMALL) {
        double limit = floor(ldexp(1, digits) / ranks / weight(c));
        return limit < 1 ? 1 : limit > 1 << 20 ? 1 << 20 : (int)limit;
    }
    /* the product's exponent stays within the type's range: 6 is the narrowest (f8e4m3) */
    int range = c->type == TWILL_FLOAT64      ? 1000
                : digits == 24 || digits == 8 ? 120
                : c->type == TWILL_FLOAT8E4M3 ? 6
                                              : 14;
    return ranks <= range ? 1 : 0;
}

struct perf_values perf_values_of(const struct perf_rank *rank, const struct perf_case *c)
{
    struct perf_values values = {.type = c->type,
                                 .kind = PERF_RAW,
                                 .seed = rank->options->seed,
                                 .iteration = rank->iteration};
    if (!perf_op_info(c->op)->reduces || !perf_type_digits(c->type))
        return values;
    values.kind = c->redop == TWILL_MAX || c->redop == TWILL_MIN ? PERF_FINITE
                  : c->redop == TWILL_PROD                       ? PERF_POWER
                                                                 : PERF_SMALL;
    values.limit = float_limit(c, rank->size, values.kind);
    return values;
}

static bool adds(const struct perf_case *c)
{
    return c->redop == TWILL_SUM || c->redop == TWILL_AVG || c->redop == PERF_MULSUM;
}

/* Bound on the rounding of a sum that is not exact: n roundings of at most n * limit. */
static double sum_slack(const struct perf_case *c, int ranks)
{
    double unit = ldexp(1, -perf_type_digits(c->type));
    int limit = float_limit(c, ranks, PERF_SMALL);
    double largest = (double)ranks * limit * weight(c);
    return largest * unit <= 1 ? 0 : ranks * unit * largest;
}

void perf_check_tolerance_text(const struct perf_case *c, int ranks, char *text, size_t bytes)
{
    bool floats = perf_op_info(c->op)->reduces && perf_type_digits(c->type);
    if (floats && adds(c) && sum_slack(c, ranks) > 0)
        snprintf(text, bytes, "%g absolute, for the roundings of %d additions",
                 sum_slack(c, ranks) / (c->redop == TWILL_AVG ? ranks : 1), ranks);
    else
        snprintf(text, bytes, "exact");
}

/* ---- the reference
 * ------------------------------------------------------------------------------- */

static uint64_t combine_integers(twill_type_t type, twill_redop_t op, uint64_t a, uint64_t b)
{
    bool is_signed = perf_bits_extend(type, UINT64_MAX) == UINT64_MAX && type != TWILL_UINT64;
    bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;
    switch (op) {
    case TWILL_PROD:
        return a * b;
    case TWILL_MAX:
        return less ? b : a;
    case TWILL_MIN:
        return less ? a : b;
    case TWILL_BAND:
        return a & b;
    case TWILL_BOR:
        return a | b;
    case TWILL_BXOR:
        return a ^ b;
    default:
        return a + b;
    }
}

static uint64_t divide_integer(twill_type_t type, uint64_t sum, int ranks)
{
    sum = perf_bits_extend(type, sum); /* wrapped as the type does, then divided */
    if (perf_bits_extend(type, UINT64_MAX) != UINT64_MAX || type == TWILL_UINT64)
        return sum / (uint64_t)ranks;
    return (uint64_t)((int64_t)sum / ranks);
}

static void reduce_integers(const struct perf_values *values, const struct perf_case *c, int ranks,
                            size_t first, size_t n, struct perf_expected *expected)
{
    uint64_t bits[PERF_BLOCK];
    for (int r = 0; r < ranks; r++) {
        perf_values_bits(values, r, first, n, bits);
        for (size_t i = 0; i < n; i++) {
            uint64_t value = perf_bits_extend(c->type, bits[i]);
            if (c->redop == PERF_MULSUM)
                value *= (uint64_t)perf_mulsum_scalar(r);
            expected->bits[i] =
                r ? combine_integers(c->type, c->redop, expected->bits[i], value) : value;
        }
    }
    uint64_t mask = UINT64_MAX >> (64 - 8 * perf_type_bytes(c->type));
    for (size_t i = 0; i < n; i++) {
        if (c->redop == TWILL_AVG)
            expected->bits[i] = divide_integer(c->type, expected->bits[i], ranks);
        expected->bits[i] &= mask;
    }
}

static double combine_floats(twill_redop_t op, double a, double b)
{
    switch (op) {
    case TWILL_PROD:
        return a * b;
    case TWILL_MAX:
        return a < b || (a == b && signbit(a)) ? b : a; /* -0 is below +0 */
    case TWILL_MIN:
        return b < a || (a == b && signbit(b)) ? b : a;
    default:
        return a + b;
    }
}

/* An exact result: fp64 holds it, and the quotient is rounded as stated above. */
static uint64_t finish_float(const struct perf_case *c, int ranks, double number)
{
    if (c->redop == TWILL_AVG)
        number = c->type == TWILL_FLOAT64 ? number / ranks : (float)(number / ranks);
    return perf_bits_round(c->type, number);
}

static void reduce_floats(const struct perf_values *values, const struct perf_case *c, int ranks,
                          size_t first, size_t n, struct perf_expected *expected)
{
    uint64_t scratch[PERF_BLOCK];
    double value[PERF_BLOCK], *number = expected->number;
    for (int r = 0; r < ranks; r++) {
        int factor = c->redop == PERF_MULSUM ? perf_mulsum_scalar(r) : 1;
        perf_values_numbers(values, r, first, n, scratch, value);
        for (size_t i = 0; i < n; i++)
            number[i] =
                r ? combine_floats(c->redop, number[i], factor * value[i]) : factor * value[i];
    }
    double slack = adds(c) ? sum_slack(c, ranks) : 0;
    double unit = ldexp(1, 1 - perf_type_digits(c->type));
    expected->is_number = slack > 0;
    for (size_t i = 0; i < n; i++) {
        if (!expected->is_number) {
            expected->bits[i] = finish_float(c, ranks, number[i]);
            continue;
        }
        expected->tolerance[i] = slack;
        if (c->redop != TWILL_AVG)
            continue;
        number[i] /= ranks;
        expected->tolerance[i] = slack / ranks + fabs(number[i]) * unit;
    }
}

/* Elements that are one rank's input, block of it by block. */
static void expect_moved(const struct perf_rank *rank, const struct perf_case *c,
                         const struct perf_values *values, size_t first, size_t n,
                         struct perf_expected *expected)
{
    if (c->op == PERF_BROADCAST) {
        perf_values_bits(values, c->root, first, n, expected->bits);
        return;
    }
    if (c->op == PERF_SEND_RECV) {
        perf_values_bits(values, (rank->rank + rank->size - 1) % rank->size, first, n,
                         expected->bits);
        return;
    }
    if (!perf_op_info(c->op)->many_out) { /* a scatter */
        size_t skip = perf_case_in_first(c, rank->size, c->root, rank->rank);
        perf_values_bits(values, c->root, skip + first, n, expected->bits);
        return;
    }
    size_t done = 0, at = 0; /* of the block of `from` in the output */
    for (int from = 0; done < n && from < rank->size; from++) {
        size_t block = perf_case_block(c, rank->size, from, rank->rank);
        size_t skip = first + done - at; /* of the block */
        if (skip < block) {
            size_t some = block - skip < n - done ? block - skip : n - done;
            skip += perf_case_in_first(c, rank->size, from, rank->rank);
            perf_values_bits(values, from, skip, some, expected->bits + done);
            done += some;
        }
        at += block;
    }
}

void perf_expect(const struct perf_rank *rank, const struct perf_case *c,
                 const struct perf_values *values, size_t first, size_t n,
                 struct perf_expected *expected)
{
    expected->is_number = false;
    if (!perf_op_info(c->op)->reduces) {
        expect_moved(rank, c, values, first, n, expected);
        return;
    }
    if (perf_op_info(c->op)->many_in)
        first += perf_case_in_first(c, rank->size, rank->rank, rank->rank);
    if (perf_type_digits(c->type))
        reduce_floats(values, c, rank->size, first, n, expected);
    else
        reduce_integers(values, c, rank->size, first, n, expected);
}
