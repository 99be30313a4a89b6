/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: element types on the device: how they widen, combine and round. docs/numbers.md says what
 * must come out; the host's kernels agree bit for bit.
 * Never knows: ranks, memory. */
#ifndef TW_DEVICE_CUDA_NUMBER_CUH
#define TW_DEVICE_CUDA_NUMBER_CUH

#include <cstdint>

#include "device/cuda/ptx.cuh"
#include "twill.h"

/*
 * A type N has
 *   bits            how an element lies in memory
 *   acc             what partial results are
 *   widen, narrow   between them; narrow rounds to nearest even, NaN comes out canonical
 *   combine         left (+) right by an operation: sum, prod, min, max, of integers band, bor,
 * bxor divide          by the number of ranks: the end of avg scale           element times scalar
 * as premul_sum's input, of the type
 */

/* ---- integers ----------------------------------------------------------------------------------
 */

/* Acc: at least 32 bits, signed as Int is. Sums and products are right in their lowest bits. */
template <class Int, class Acc> struct tw_int {
    using bits = Int;
    using acc = Acc;
    static constexpr bool integer = true;

    static __device__ acc widen(bits value) { return (acc)value; }
    static __device__ bits narrow(acc value) { return (bits)value; }

    template <int OP> static __device__ acc combine(acc left, acc right)
    {
        if constexpr (OP == TWILL_PROD)
            return (acc)((uint64_t)left * (uint64_t)right);
        else if constexpr (OP == TWILL_MIN)
            return left < right ? left : right;
        else if constexpr (OP == TWILL_MAX)
            return left > right ? left : right;
        else if constexpr (OP == TWILL_BAND)
            return left & right;
        else if constexpr (OP == TWILL_BOR)
            return left | right;
        else if constexpr (OP == TWILL_BXOR)
            return left ^ right;
        else
            return (acc)((uint64_t)left + (uint64_t)right);
    }

    /* The sum wraps in the type before it is divided. */
    static __device__ acc divide(acc value, int ranks)
    {
        if constexpr ((Int)-1 < (Int)0)
            return (acc)((int64_t)(Int)value / ranks);
        else
            return (acc)((uint64_t)(Int)value / (uint64_t)ranks);
    }

    static __device__ bits scale(bits value, bits scalar)
    {
        return narrow(combine<TWILL_PROD>(widen(value), widen(scalar)));
    }
};

using tw_int8 = tw_int<int8_t, int32_t>;
using tw_uint8 = tw_int<uint8_t, uint32_t>;
using tw_int32 = tw_int<int32_t, int32_t>;
using tw_uint32 = tw_int<uint32_t, uint32_t>;
using tw_int64 = tw_int<int64_t, int64_t>;
using tw_uint64 = tw_int<uint64_t, uint64_t>;

/* ---- floats of 32 and 64 bits ------------------------------------------------------------------
 */

template <int OP> static __device__ inline float tw_combine_float(float left, float right)
{
    float value = 0;

    if constexpr (OP == TWILL_PROD)
        value = __fmul_rn(left, right);
    else if constexpr (OP == TWILL_MIN)
        value = tw_min_nan(left, right);
    else if constexpr (OP == TWILL_MAX)
        value = tw_max_nan(left, right);
    else
        value = __fadd_rn(left, right);
    return value;
}

struct tw_float32 {
    using bits = uint32_t;
    using acc = float;
    static constexpr bool integer = false;

    static __device__ acc widen(bits value) { return __uint_as_float(value); }
    static __device__ bits narrow(acc value)
    {
        return value != value ? 0x7fc00000u : __float_as_uint(value);
    }
    template <int OP> static __device__ acc combine(acc left, acc right)
    {
        return tw_combine_float<OP>(left, right);
    }
    static __device__ acc divide(acc value, int ranks) { return __fdiv_rn(value, (float)ranks); }
    static __device__ bits scale(bits value, bits scalar)
    {
        return narrow(__fmul_rn(widen(value), widen(scalar)));
    }
};

struct tw_float64 {
    using bits = uint64_t;
    using acc = double;
    static constexpr bool integer = false;

    static __device__ acc widen(bits value) { return __longlong_as_double((long long)value); }
    static __device__ bits narrow(acc value)
    {
        return value != value ? 0x7ff8000000000000ull : (bits)__double_as_longlong(value);
    }
    /* NaN if either is; the smaller, -0 being smaller than +0 */
    static __device__ acc least(acc left, acc right)
    {
        if (left != left || right != right)
            return left + right;
        if (left == right) /* or-ed: -0 if either is */
            return __longlong_as_double(__double_as_longlong(left) | __double_as_longlong(right));
        return left < right ? left : right;
    }
    template <int OP> static __device__ acc combine(acc left, acc right)
    {
        if constexpr (OP == TWILL_PROD)
            return __dmul_rn(left, right);
        else if constexpr (OP == TWILL_MIN)
            return least(left, right);
        else if constexpr (OP == TWILL_MAX)
            return -least(-left, -right);
        else
            return __dadd_rn(left, right);
    }
    static __device__ acc divide(acc value, int ranks) { return __ddiv_rn(value, (double)ranks); }
    static __device__ bits scale(bits value, bits scalar)
    {
        return narrow(__dmul_rn(widen(value), widen(scalar)));
    }
};

/* ---- floats of 16 and 8 bits: partial results are fp32 -----------------------------------------
 */

template <class Format> struct tw_narrow_float {
    using bits = typename Format::bits;
    using acc = float;
    static constexpr bool integer = false;

    static __device__ acc widen(bits value) { return Format::widen(value); }
    static __device__ bits narrow(acc value) { return Format::narrow(value); }
    template <int OP> static __device__ acc combine(acc left, acc right)
    {
        return tw_combine_float<OP>(left, right);
    }
    static __device__ acc divide(acc value, int ranks) { return __fdiv_rn(value, (float)ranks); }
    static __device__ bits scale(bits value, bits scalar)
    {
        return narrow(__fmul_rn(widen(value), widen(scalar)));
    }
};

struct tw_bfloat16_format {
    using bits = uint16_t;

    static __device__ float widen(bits value) { return __uint_as_float((uint32_t)value << 16); }
    static __device__ bits narrow(float value)
    {
        const uint32_t all = value != value ? 0x7fc00000u : __float_as_uint(value);

        return (bits)((all + 0x7fffu + ((all >> 16) & 1u)) >> 16);
    }
};

struct tw_float16_format {
    using bits = uint16_t;

    static __device__ float widen(bits value) { return tw_half_widen(value); }
    static __device__ bits narrow(float value)
    {
        const bits narrow = tw_half_round(value);

        return value != value ? (bits)0x7e00 : narrow;
    }
};

/*
 * The formats of 8 bits, by how they lie in fp32: FRACTION bits of fraction, exponent bias BIAS;
 * the magnitude SPECIAL and above is no number; MOST is the largest number, as fp32.
 */
template <int FRACTION, int BIAS, uint32_t SPECIAL, uint32_t MOST, uint8_t NAN_BITS>
struct tw_float8_format {
    using bits = uint8_t;
    static constexpr int shift = 23 - FRACTION;
    static constexpr uint32_t rebias = (uint32_t)(127 - BIAS) << 23;
    /* the fp32 number whose last place is the least subnormal */
    static constexpr uint32_t magic = (uint32_t)(127 - BIAS + 1 + 23 - FRACTION) << 23;

    static __device__ float widen(bits value)
    {
        const uint32_t mag = value & 0x7fu;
        const uint32_t sign = (uint32_t)(value & 0x80u) << 24;
        const uint32_t moved = mag << shift;
        const uint32_t one = rebias + (1u << 23);
        uint32_t wide = moved + rebias;

        if (mag < (1u << FRACTION)) /* subnormal: behind a one that is taken off again */
            wide = __float_as_uint(__fsub_rn(__uint_as_float(moved + one), __uint_as_float(one)));
        if (mag >= SPECIAL)
            wide = moved | 0x7f800000u;
        return __uint_as_float(wide | sign);
    }

    static __device__ bits narrow(float value)
    {
        const uint32_t all = __float_as_uint(value) & 0x7fffffffu;
        const uint32_t mag = all > MOST ? MOST : all;
        uint32_t rounded =
            (mag + ((1u << (shift - 1)) - 1) - rebias + ((mag >> shift) & 1u)) >> shift;

        if (value != value)
            return NAN_BITS;
        if (mag < rebias + (1u << 23))
            rounded =
                __float_as_uint(__fadd_rn(__uint_as_float(mag), __uint_as_float(magic))) - magic;
        return (bits)(rounded | (__float_as_uint(value) >> 31 << 7));
    }
};

using tw_bfloat16 = tw_narrow_float<tw_bfloat16_format>;
using tw_float16 = tw_narrow_float<tw_float16_format>;
using tw_float8e4m3 = tw_narrow_float<tw_float8_format<3, 7, 0x7f, 0x43e00000u, 0x7f>>;
using tw_float8e5m2 = tw_narrow_float<tw_float8_format<2, 15, 0x7c, 0x47600000u, 0x7e>>;

#endif
