// SPDX-License-Identifier: Apache-2.0
// Knows: what each reduction means, in fp64 and wide integers, one element at a time.
// Never knows: twill's reductions.
#ifndef TW_TESTS_DEVICE_REFERENCE_H
#define TW_TESTS_DEVICE_REFERENCE_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "twill.h"

namespace reference
{

struct bf16 {
    uint16_t bits;
};

inline double widen(bf16 value)
{
    const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
    float out;

    std::memcpy(&out, &bits, sizeof(out));
    return out;
}
template <class T> double widen(T value) { return static_cast<double>(value); }

// fp64 to the type, one rounding to nearest even. The fp64 sum, product or quotient of two floats
// of 24 bits rounds to fp32 as the exact one would (53 >= 2 * 24 + 2).
inline void narrow(double value, double *out)
{
    *out = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}
inline void narrow(double value, float *out)
{
    *out = std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(value);
}
inline void narrow(double value, bf16 *out)
{
    const double single = static_cast<float>(value); // the stated intermediate: fp32

    if (std::isnan(value)) {
        out->bits = 0x7fc0;
        return;
    }
    double magnitude = std::fabs(single);
    if (std::isfinite(magnitude) && magnitude != 0) {
        int exponent = std::ilogb(magnitude);
        const double ulp = std::ldexp(1.0, (exponent < -126 ? -126 : exponent) - 7);
        magnitude = std::nearbyint(magnitude / ulp) * ulp;
    }
    if (magnitude >= std::ldexp(1.0, 128)) {
        magnitude = std::numeric_limits<double>::infinity();
    }
    const float rounded = static_cast<float>(magnitude); // exact
    uint32_t bits;
    std::memcpy(&bits, &rounded, sizeof(bits));
    out->bits = static_cast<uint16_t>(bits >> 16 | (std::signbit(single) ? 0x8000 : 0));
}

template <class T> T reduce_float(T a, T b, twill_redop_t op)
{
    const double x = widen(a);
    const double y = widen(b);
    T out;

    if (op == TWILL_SUM || op == TWILL_AVG) {
        narrow(x + y, &out);
    } else if (op == TWILL_PROD) {
        narrow(x * y, &out);
    } else if (std::isnan(x) || std::isnan(y)) {
        narrow(std::numeric_limits<double>::quiet_NaN(), &out);
    } else {
        const bool a_below = x < y || (x == y && std::signbit(x) && !std::signbit(y));
        out = a_below == (op == TWILL_MIN) ? a : b;
    }
    return out;
}

template <class T> T reduce_int(T a, T b, twill_redop_t op)
{
    switch (op) {
    case TWILL_SUM:
    case TWILL_AVG:
        return static_cast<T>(static_cast<unsigned __int128>(a) +
                              static_cast<unsigned __int128>(b));
    case TWILL_PROD:
        return static_cast<T>(static_cast<unsigned __int128>(a) *
                              static_cast<unsigned __int128>(b));
    case TWILL_MAX:
        return a < b ? b : a;
    default:
        return b < a ? b : a;
    }
}

inline float reduce(float a, float b, twill_redop_t op) { return reduce_float(a, b, op); }
inline double reduce(double a, double b, twill_redop_t op) { return reduce_float(a, b, op); }
inline bf16 reduce(bf16 a, bf16 b, twill_redop_t op) { return reduce_float(a, b, op); }
template <class T> T reduce(T a, T b, twill_redop_t op) { return reduce_int(a, b, op); }

inline float divide(float a, int n)
{
    float out;
    narrow(static_cast<double>(a) / n, &out);
    return out;
}
inline double divide(double a, int n)
{
    double out;
    narrow(a / n, &out);
    return out;
}
inline bf16 divide(bf16 a, int n)
{
    bf16 out;
    narrow(widen(a) / n, &out);
    return out;
}
template <class T> T divide(T a, int n)
{
    return static_cast<T>(static_cast<__int128>(a) / n); // C++ truncates toward zero
}

// A small whole number, exact in every type (unsigned types wrap).
template <class T> void assign(int value, T *out) { *out = static_cast<T>(value); }
inline void assign(int value, bf16 *out) { narrow(static_cast<double>(value), out); }

// Calls fn(T{}) with the C++ type of a twill type; false for one that has none here.
template <class F> bool with_type(twill_type_t type, F fn)
{
    switch (type) {
    case TWILL_INT8:
        return fn(int8_t{}), true;
    case TWILL_UINT8:
        return fn(uint8_t{}), true;
    case TWILL_INT32:
        return fn(int32_t{}), true;
    case TWILL_UINT32:
        return fn(uint32_t{}), true;
    case TWILL_INT64:
        return fn(int64_t{}), true;
    case TWILL_UINT64:
        return fn(uint64_t{}), true;
    case TWILL_FLOAT32:
        return fn(float{}), true;
    case TWILL_FLOAT64:
        return fn(double{}), true;
    case TWILL_BFLOAT16:
        return fn(bf16{}), true;
    default:
        return false;
    }
}

} // namespace reference

#endif
