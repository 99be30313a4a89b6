/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: test data by (seed, rank, index) and what collectives must make of it, in plain double
 * arithmetic; every type and every reduction.
 * Never knows: how the library computes. */
#ifndef TESTS_API_DATA_H
#define TESTS_API_DATA_H

#include <cstdint>
#include <cstring>
#include <vector>

#include "device/reference.h"
#include "twill.h"

namespace data
{

inline size_t type_bytes(twill_type_t type) { return reference::bytes(type); }

inline uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

inline bool is_float8(twill_type_t type)
{
    return type == TWILL_FLOAT8E4M3 || type == TWILL_FLOAT8E5M2;
}

/* Every order of operations over 16 ranks gives the same (products: over 9): whole numbers that are
 * small enough for the type, or, for a product of floats, powers of two that grow and shrink in
 * turn. */
inline double value(uint64_t seed, int rank, size_t i, twill_type_t type,
                    twill_redop_t op = TWILL_SUM)
{
    const uint64_t bits = mix(seed * 1000003 + (uint64_t)rank * 10007 + i);
    if (op == TWILL_PROD && reference::is_float(type))
        return (bits & 1 ? -1.0 : 1.0) * (bits & 2 ? 1.0 : rank % 2 ? 2.0 : 0.5);
    if (is_float8(type)) /* counts to 8: every other rank adds nothing */
        return (mix(seed + i) + (uint64_t)rank) % 2 ? 0 : (int)(bits % 3) - 1;
    const int v = (int)(bits % 15);
    return reference::is_float(type) || reference::is_signed_int(type) ? v - 7 : v;
}

/* Whole numbers wrap. */
inline uint64_t bits_of(double v, twill_type_t type)
{
    if (!reference::is_float(type))
        return (uint64_t)(int64_t)v;
    if (reference::is_narrow(type)) /* computed in float32, then rounded once more */
        return reference::encode(type, (double)(float)v);
    return reference::encode(type, v);
}

inline void store(void *at, double v, twill_type_t type)
{
    const uint64_t bits = bits_of(v, type);
    memcpy(at, &bits, type_bytes(type));
}

using Bytes = std::vector<unsigned char>;

inline void fill(unsigned char *at, size_t count, twill_type_t type, uint64_t seed, int rank,
                 size_t first = 0, twill_redop_t op = TWILL_SUM)
{
    for (size_t i = 0; i < count; i++)
        store(at + i * type_bytes(type), value(seed, rank, first + i, type, op), type);
}

/* Of whole numbers. */
inline double bitwise(double a, double b, twill_redop_t op)
{
    const int64_t x = (int64_t)a, y = (int64_t)b;
    return (double)(op == TWILL_BAND ? (x & y) : op == TWILL_BOR ? (x | y) : (x ^ y));
}

inline double reduce(uint64_t seed, int size, size_t i, twill_type_t type, twill_redop_t op)
{
    double result = value(seed, 0, i, type, op);
    for (int rank = 1; rank < size; rank++) {
        const double v = value(seed, rank, i, type, op);
        if (op == TWILL_MAX)
            result = v > result ? v : result;
        else if (op == TWILL_MIN)
            result = v < result ? v : result;
        else if (op == TWILL_PROD)
            result *= v;
        else if (op == TWILL_BAND || op == TWILL_BOR || op == TWILL_BXOR)
            result = bitwise(result, v, op);
        else
            result += v;
    }
    if (op != TWILL_AVG)
        return result;
    return reference::is_float(type) ? result / size : (double)((int)result / size);
}

inline void fill_reduced(unsigned char *at, size_t count, twill_type_t type, twill_redop_t op,
                         uint64_t seed, int size, size_t first = 0)
{
    for (size_t i = 0; i < count; i++)
        store(at + i * type_bytes(type), reduce(seed, size, first + i, type, op), type);
}

} // namespace data

#endif
