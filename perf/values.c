/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what inputs hold, and the formats of numbers. Never knows: twill's own arithmetic.
 *
 * An input element is a hash of (seed, rank, index, iteration), so any rank can say what any other
 * one's input is without keeping or sending it. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "perf.h"

/* A float format by its widths: sign, exponent, fraction. */
struct format {
    int exponent_bits, fraction_bits; /* 0, 0: an integer */
    bool is_signed;                   /* integers */
};
static const struct format formats[PERF_TYPE_COUNT] = {
    [TWILL_INT8] = {0, 0, true},       [TWILL_UINT8] = {0, 0, false},
    [TWILL_INT32] = {0, 0, true},      [TWILL_UINT32] = {0, 0, false},
    [TWILL_INT64] = {0, 0, true},      [TWILL_UINT64] = {0, 0, false},
    [TWILL_FLOAT16] = {5, 10, true},   [TWILL_FLOAT32] = {8, 23, true},
    [TWILL_FLOAT64] = {11, 52, true},  [TWILL_BFLOAT16] = {8, 7, true},
    [TWILL_FLOAT8E4M3] = {4, 3, true}, [TWILL_FLOAT8E5M2] = {5, 2, true},
};

int perf_type_digits(twill_type_t type)
{
    return formats[type].exponent_bits ? formats[type].fraction_bits + 1 : 0;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

static uint64_t width_mask(twill_type_t type)
{
    return UINT64_MAX >> (64 - 8 * perf_type_bytes(type));
}

/* Bits of the largest number. */
static uint64_t largest(twill_type_t type)
{
    const struct format *format = &formats[type];
    uint64_t inf = ((1ull << format->exponent_bits) - 1) << format->fraction_bits;
    return type == TWILL_FLOAT8E4M3 ? 0x7e : inf - 1; /* e4m3 has one NaN up there, and no inf */
}

/* Of a type narrower than a double: the magnitude is counted in units of its last place, which the
 * C library rounds to a whole number, to nearest even. A carry into the next exponent is right by
 * itself. */
static uint64_t encode(twill_type_t type, double value)
{
    const struct format *format = &formats[type];
    uint64_t sign = signbit(value) ? 1ull << (format->exponent_bits + format->fraction_bits) : 0;
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    bool is_8_bit = type == TWILL_FLOAT8E4M3 || type == TWILL_FLOAT8E5M2;
    uint64_t over = is_8_bit ? largest(type) : largest(type) + 1;
    if (value == 0)
        return sign;
    if (isinf(value))
        return sign | over;
    int exponent = ilogb(value) < 1 - bias ? 1 - bias : ilogb(value);
    double units = rint(ldexp(fabs(value), format->fraction_bits - exponent));
    uint64_t bits = ((uint64_t)(exponent + bias - 1) << format->fraction_bits) + (uint64_t)units;
    return sign | (bits > largest(type) ? over : bits);
}

/* Of a value that the type holds exactly, or of any for float32. */
static uint64_t encode_fast(twill_type_t type, double value)
{
    float single = (float)value;
    uint32_t word;
    uint64_t bits;
    switch (type) {
    case TWILL_FLOAT32:
        memcpy(&word, &single, sizeof(word));
        return word;
    case TWILL_BFLOAT16: /* exact values have no bits below */
        memcpy(&word, &single, sizeof(word));
        return word >> 16;
    case TWILL_FLOAT64:
        memcpy(&bits, &value, sizeof(bits));
        return bits;
    default:
        return encode(type, value);
    }
}

uint64_t perf_bits_round(twill_type_t type, double value)
{
    return type == TWILL_FLOAT32 || type == TWILL_FLOAT64 ? encode_fast(type, value)
                                                          : encode(type, value);
}

double perf_bits_decode(twill_type_t type, uint64_t bits)
{
    const struct format *format = &formats[type];
    if (type == TWILL_FLOAT64) {
        double value;
        memcpy(&value, &bits, sizeof(value));
        return value;
    }
    if (type == TWILL_FLOAT32 || type == TWILL_BFLOAT16) {
        uint32_t word = (uint32_t)(type == TWILL_BFLOAT16 ? bits << 16 : bits);
        float single;
        memcpy(&single, &word, sizeof(single));
        return single;
    }
    uint64_t fraction = bits & ((1u << format->fraction_bits) - 1);
    int top = (1 << format->exponent_bits) - 1;
    int exponent = (int)(bits >> format->fraction_bits) & top;
    double sign = bits >> (format->exponent_bits + format->fraction_bits) & 1 ? -1 : 1;
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    if (type == TWILL_FLOAT8E4M3 ? (bits & 0x7f) == 0x7f : exponent == top && fraction)
        return NAN;
    if (type != TWILL_FLOAT8E4M3 && exponent == top)
        return sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp((double)fraction, 1 - bias - format->fraction_bits);
    return sign * ldexp((double)(fraction | 1u << format->fraction_bits),
                        exponent - bias - format->fraction_bits);
}

uint64_t perf_bits_extend(twill_type_t type, uint64_t bits)
{
    unsigned width = 8 * (unsigned)perf_type_bytes(type);
    bits &= width_mask(type);
    if (formats[type].is_signed && width < 64 && bits >> (width - 1))
        bits |= ~width_mask(type);
    return bits;
}

static uint64_t below(uint64_t hash, uint64_t limit) { return (hash >> 32) * limit >> 32; }

static int64_t small_value(const struct perf_values *values, uint64_t hash)
{
    return (int64_t)below(hash, 2 * (uint64_t)values->limit + 1) - values->limit;
}

static double power_value(const struct perf_values *values, uint64_t hash)
{
    return ldexp(hash & 1 ? -1 : 1, (int)small_value(values, hash));
}

/* Clears one bit of an exponent of ones, which would make infinities and NaNs. */
static uint64_t make_finite(twill_type_t type, uint64_t hash)
{
    const struct format *format = &formats[type];
    uint64_t top = ((1ull << format->exponent_bits) - 1) << format->fraction_bits;
    hash &= width_mask(type);
    return (hash & top) == top ? hash ^ 1ull << format->fraction_bits : hash;
}

static void hashes(const struct perf_values *values, int rank, size_t first, size_t n,
                   uint64_t *hash)
{
    uint64_t base = mix(mix(mix(values->seed) + (uint64_t)rank) + values->iteration);
    for (size_t i = 0; i < n; i++)
        hash[i] = mix(base + (first + i) * 0x9e3779b97f4a7c15u);
}

void perf_values_bits(const struct perf_values *values, int rank, size_t first, size_t n,
                      uint64_t *bits)
{
    twill_type_t type = values->type;
    uint64_t mask = width_mask(type);
    hashes(values, rank, first, n, bits);
    switch (values->kind) {
    case PERF_SMALL:
        for (size_t i = 0; i < n; i++)
            bits[i] = encode_fast(type, (double)small_value(values, bits[i]));
        break;
    case PERF_POWER:
        for (size_t i = 0; i < n; i++)
            bits[i] = encode_fast(type, power_value(values, bits[i]));
        break;
    case PERF_FINITE:
        for (size_t i = 0; i < n; i++)
            bits[i] = make_finite(type, bits[i]);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            bits[i] &= mask;
        break;
    }
}

void perf_values_numbers(const struct perf_values *values, int rank, size_t first, size_t n,
                         uint64_t *scratch, double *number)
{
    const uint64_t *hash = scratch;
    hashes(values, rank, first, n, scratch);
    switch (values->kind) {
    case PERF_SMALL:
        for (size_t i = 0; i < n; i++)
            number[i] = (double)small_value(values, hash[i]);
        break;
    case PERF_POWER:
        for (size_t i = 0; i < n; i++)
            number[i] = power_value(values, hash[i]);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            number[i] = perf_bits_decode(values->type, make_finite(values->type, hash[i]));
        break;
    }
}

static void store_bits(char *data, size_t i, size_t width, uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    uint16_t half = (uint16_t)bits;
    char *to = data + i * width;
    if (width == 8)
        memcpy(to, &bits, 8);
    else if (width == 4)
        memcpy(to, &word, 4);
    else if (width == 2)
        memcpy(to, &half, 2);
    else
        *to = (char)bits;
}

void perf_values_store(const struct perf_values *values, int rank, size_t first, size_t n,
                       void *data)
{
    uint64_t bits[256];
    size_t width = perf_type_bytes(values->type);
    char *to = data;
    for (size_t done = 0; done < n;) {
        size_t some = n - done < 256 ? n - done : 256;
        perf_values_bits(values, rank, first + done, some, bits);
        for (size_t i = 0; i < some; i++)
            store_bits(to, done + i, width, bits[i]);
        done += some;
    }
}

void perf_bits_store(twill_type_t type, void *data, size_t i, uint64_t bits)
{
    store_bits(data, i, perf_type_bytes(type), bits);
}

uint64_t perf_bits_load(twill_type_t type, const void *data, size_t i)
{
    uint64_t bits;
    uint32_t word;
    uint16_t half;
    const char *from = (const char *)data + i * perf_type_bytes(type);
    switch (perf_type_bytes(type)) {
    case 8:
        memcpy(&bits, from, 8);
        return bits;
    case 4:
        memcpy(&word, from, 4);
        return word;
    case 2:
        memcpy(&half, from, 2);
        return half;
    default:
        return (unsigned char)*from;
    }
}
