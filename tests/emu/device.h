/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what kernels use of CUDA C++ itself: its words, a thread's place, vectors, atomics,
 * arithmetic that is rounded as asked. Included in front of a kernel's source.
 * Never knows: how threads come to run (block.h). */
#ifndef TESTS_EMU_DEVICE_H
#define TESTS_EMU_DEVICE_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emu/block.h"

#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static thread_local /* a block is one thread of the system */
#define __noinline__ __attribute__((noinline))

static inline void __syncthreads() { (void)emu::meet(0, blockDim.x, false); }
static inline int __syncthreads_or(int mine) { return emu::meet(0, blockDim.x, mine != 0); }

/* ---- memory ---- */

struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
static inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return {x, y, z, w};
}

template <class T> static inline T __ldcg(const T *at)
{
    emu::chance(64);
    return *at;
}
static inline uint32_t atomicAdd(uint32_t *at, uint32_t value)
{
    emu::chance(4);
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
static inline uint32_t atomicSub(uint32_t *at, uint32_t value)
{
    emu::chance(4);
    return __atomic_fetch_sub(at, value, __ATOMIC_RELAXED);
}
static inline uint32_t atomicExch(uint32_t *at, uint32_t value)
{
    emu::chance(4);
    return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/* ---- numbers: the processor rounds to nearest, even, and nothing is contracted ---- */

template <class To, class From> static inline To emu_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline float __uint_as_float(uint32_t bits) { return emu_bits<float>(bits); }
static inline uint32_t __float_as_uint(float value) { return emu_bits<uint32_t>(value); }
static inline double __longlong_as_double(long long bits) { return emu_bits<double>(bits); }
static inline long long __double_as_longlong(double value) { return emu_bits<long long>(value); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }

#endif
