/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how small numbers look in each type. Never knows: rounding: what it encodes is exact. */
#ifndef TESTS_COMPAT_DATA_H
#define TESTS_COMPAT_DATA_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <nccl.h>

namespace data
{

inline size_t bytes_of(int type)
{
    static const size_t bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return bytes[type];
}

inline bool is_float(int type) { return type >= ncclFloat16; }

/* A positive number that has so few digits, as sign, exponent and fraction. */
inline uint64_t packed(double value, int fraction_bits, int bias)
{
    int exponent = 0;
    if (value == 0)
        return 0;
    const double fraction = frexp(value, &exponent) * 2 - 1;
    return ((uint64_t)(exponent - 1 + bias) << fraction_bits) |
           (uint64_t)ldexp(fraction, fraction_bits);
}

/* value, which is an integer where the type has no others, in the first bytes. */
inline uint64_t encode(int type, double value)
{
    uint64_t word = 0;
    const float single = (float)value;
    switch (type) {
    case ncclFloat16:
        return packed(value, 10, 15);
    case ncclBfloat16:
        return packed(value, 7, 127);
    case ncclFloat8e4m3:
        return packed(value, 3, 7);
    case ncclFloat8e5m2:
        return packed(value, 2, 15);
    case ncclFloat32:
        memcpy(&word, &single, sizeof single);
        return word;
    case ncclFloat64:
        memcpy(&word, &value, sizeof value);
        return word;
    default:
        return (uint64_t)(int64_t)value;
    }
}

/* Elements of a type. */
class Buffer
{
  public:
    Buffer(int type, size_t count) : type_(type), bytes_(bytes_of(type) * count, 0xa5) {}
    void *at(size_t i = 0) { return bytes_.data() + i * bytes_of(type_); }
    void put(size_t i, double value)
    {
        const uint64_t word = encode(type_, value);
        memcpy(at(i), &word, bytes_of(type_));
    }
    bool holds(size_t i, double value)
    {
        const uint64_t word = encode(type_, value);
        return memcmp(at(i), &word, bytes_of(type_)) == 0;
    }

  private:
    int type_;
    std::vector<uint8_t> bytes_;
};

} // namespace data

#endif
