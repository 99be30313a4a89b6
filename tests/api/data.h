/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: test data by (seed, rank, index) and what collectives must make of it, in plain double
 * arithmetic.
 * Never knows: how the library computes. */
#ifndef TESTS_API_DATA_H
#define TESTS_API_DATA_H

#include <cstdint>
#include <cstring>
#include <vector>

#include "twill.h"

namespace data
{

inline size_t type_bytes(twill_type_t type)
{
    switch (type) {
    case TWILL_INT8:
    case TWILL_UINT8:
    case TWILL_FLOAT8E4M3:
    case TWILL_FLOAT8E5M2:
        return 1;
    case TWILL_FLOAT16:
    case TWILL_BFLOAT16:
        return 2;
    case TWILL_INT32:
    case TWILL_UINT32:
    case TWILL_FLOAT32:
        return 4;
    default:
        return 8;
    }
}

inline uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

/* Small whole numbers: sums over 16 ranks are exact in every type that reduces. */
inline double value(uint64_t seed, int rank, size_t i, twill_type_t type)
{
    const int v = (int)(mix(seed * 1000003 + (uint64_t)rank * 10007 + i) % 15);
    return type == TWILL_UINT8 ? v : v - 7;
}

inline void store(void *at, double v, twill_type_t type)
{
    switch (type) {
    case TWILL_FLOAT32: {
        const float f = (float)v;
        memcpy(at, &f, 4);
        break;
    }
    case TWILL_FLOAT64:
        memcpy(at, &v, 8);
        break;
    case TWILL_INT32: {
        const int32_t n = (int32_t)v;
        memcpy(at, &n, 4);
        break;
    }
    case TWILL_BFLOAT16: { /* to nearest even */
        const float f = (float)v;
        uint32_t bits;
        memcpy(&bits, &f, 4);
        bits += 0x7fff + (bits >> 16 & 1);
        const uint16_t half = (uint16_t)(bits >> 16);
        memcpy(at, &half, 2);
        break;
    }
    default: { /* types that are only moved: any bytes */
        const uint64_t n = (uint64_t)(int64_t)v * 0x0101010101010101ull;
        memcpy(at, &n, type_bytes(type));
    }
    }
}

using Bytes = std::vector<unsigned char>;

inline void fill(unsigned char *at, size_t count, twill_type_t type, uint64_t seed, int rank,
                 size_t first = 0)
{
    for (size_t i = 0; i < count; i++)
        store(at + i * type_bytes(type), value(seed, rank, first + i, type), type);
}

inline double reduce(uint64_t seed, int size, size_t i, twill_type_t type, twill_redop_t op)
{
    double result = value(seed, 0, i, type);
    for (int rank = 1; rank < size; rank++) {
        const double v = value(seed, rank, i, type);
        if (op == TWILL_MAX)
            result = v > result ? v : result;
        else if (op == TWILL_MIN)
            result = v < result ? v : result;
        else if (op == TWILL_PROD)
            result *= v;
        else
            result += v;
    }
    if (op != TWILL_AVG)
        return result;
    if (type == TWILL_INT32 || type == TWILL_UINT8)
        return (double)((int)result / size);
    return result / size;
}

inline void fill_reduced(unsigned char *at, size_t count, twill_type_t type, twill_redop_t op,
                         uint64_t seed, int size, size_t first = 0)
{
    for (size_t i = 0; i < count; i++)
        store(at + i * type_bytes(type), reduce(seed, size, first + i, type, op), type);
}

} // namespace data

#endif
