/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what src/device/cuda/ptx.cuh has, for a processor: stands in its place in the path of
 * included files. Each access to memory that others write is a place where another thread may go
 * on. Two halves that CUDA's instruction lets arrive as one arrive one after the other here, so
 * that whoever looks at both never takes them for whole too early.
 * Never knows: what they are for. */
#ifndef TW_DEVICE_CUDA_PTX_CUH
#define TW_DEVICE_CUDA_PTX_CUH

#include "device/cuda/wire.h"
#include "emu/device.h"
#include "emu/peers.h"

#define TW_SPINS_LOOK 32u /* a poll takes as long as all threads of the block take for one */
#define TW_LOOKS_STOP 2u

/* ---- memory that several devices write ---------------------------------------------------------
 */

static inline uint32_t tw_load(const uint32_t *at)
{
    emu::chance(2);
    const uint32_t value = __atomic_load_n(at, __ATOMIC_RELAXED);
    return emu::lies ? emu::lie_load(at, value) : value;
}

static inline uint32_t tw_load_acquire(const uint32_t *at)
{
    emu::chance(2);
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static inline uint4 tw_load_four(const uint32_t *at)
{
    return make_uint4(tw_load(at), tw_load(at + 1), tw_load(at + 2), tw_load(at + 3));
}

static inline void tw_store(uint32_t *at, uint32_t value)
{
    emu::moved = true;
    emu::chance(8);
    if (!emu::lies || !emu::lie_store(at))
        __atomic_store_n(at, value, __ATOMIC_RELAXED);
    emu::chance(8);
}

static inline void tw_store_release(uint32_t *at, uint32_t value)
{
    emu::moved = true;
    emu::chance(8);
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
    emu::chance(8);
}

static inline uint64_t tw_load_acquire(const uint64_t *at)
{
    emu::chance(2);
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static inline void tw_store_release(uint64_t *at, uint64_t value)
{
    emu::moved = true;
    emu::chance(8);
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
    emu::chance(8);
}

static inline void tw_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static inline uint64_t *emu_half(const void *at, int half) { return (uint64_t *)at + half; }

static inline void tw_store_pairs(void *at, uint32_t first, uint32_t second, uint32_t epoch)
{
    emu::moved = true;
    emu::chance(16);
    __atomic_store_n(emu_half(at, 0), (uint64_t)epoch << 32 | first, __ATOMIC_RELAXED);
    emu::chance(16);
    __atomic_store_n(emu_half(at, 1), (uint64_t)epoch << 32 | second, __ATOMIC_RELAXED);
}

static inline void tw_look_pairs(const void *at, uint32_t *first, uint32_t *first_epoch,
                                 uint32_t *second, uint32_t *second_epoch)
{
    emu::chance(2);
    const uint64_t low = __atomic_load_n(emu_half(at, 0), __ATOMIC_RELAXED);
    const uint64_t high = __atomic_load_n(emu_half(at, 1), __ATOMIC_RELAXED);

    *first = (uint32_t)low;
    *first_epoch = (uint32_t)(low >> 32);
    *second = (uint32_t)high;
    *second_epoch = (uint32_t)(high >> 32);
}

/* What is told by the second half comes behind the first one. */
static inline void tw_store_packet(void *at, uint4 packet)
{
    while (emu::held.load(std::memory_order_relaxed) == at)
        emu::turn();
    emu::moved = true;
    emu::chance(16);
    __atomic_store_n(emu_half(at, 0), (uint64_t)packet.y << 32 | packet.x, __ATOMIC_RELAXED);
    emu::chance(32);
    __atomic_store_n(emu_half(at, 1), (uint64_t)packet.w << 32 | packet.z, __ATOMIC_RELEASE);
}

static inline uint4 tw_load_packet(const void *at)
{
    emu::chance(16);
    const uint64_t high = __atomic_load_n(emu_half(at, 1), __ATOMIC_ACQUIRE);
    const uint64_t low = __atomic_load_n(emu_half(at, 0), __ATOMIC_RELAXED);

    return make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32));
}

/* ---- threads, time -----------------------------------------------------------------------------
 */

static inline uint32_t tw_group_any(uint32_t mine)
{
    return emu::meet(1 + threadIdx.x / TW_GK_GROUP, TW_GK_GROUP, mine != 0);
}

static inline void tw_group_sync() { (void)tw_group_any(0); }

static inline void tw_pair_sync()
{
    (void)emu::meet(8 + threadIdx.x / TW_GK_WARP / 2, 2 * TW_GK_WARP, false);
}

static inline void tw_warp_sync()
{
    (void)emu::meet(16 + threadIdx.x / TW_GK_WARP, TW_GK_WARP, false);
}

static inline bool tw_warp_all(bool mine) { return !emu::meet(16 + threadIdx.x / 32, 32, !mine); }

static inline void tw_grid_await() { emu::grid_await(); }
static inline void tw_grid_next() { emu::grid_next(); }

static inline uint64_t tw_now_ns() { return emu::now_ns(); }

/* ---- numbers -----------------------------------------------------------------------------------
 */

static inline float tw_min_nan(float left, float right)
{
    if (left != left || right != right)
        return __uint_as_float(0x7fffffffu);
    if (left == right)
        return std::signbit(left) ? left : right;
    return left < right ? left : right;
}

static inline float tw_max_nan(float left, float right) { return -tw_min_nan(-left, -right); }

static inline float tw_half_widen(uint16_t value)
{
    const int exponent = value >> 10 & 31, fraction = value & 1023;
    const float magnitude = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                            : exponent == 0 ? std::ldexp((float)fraction, -24)
                                            : std::ldexp((float)(fraction + 1024), exponent - 25);

    return value >> 15 != 0 ? -magnitude : magnitude;
}

/* In units of the last place that a half of this size has. */
static inline uint16_t tw_half_round(float value)
{
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const float magnitude = std::fabs(value);
    int exponent = 0;

    if (value != value)
        return 0x7fff;
    if (magnitude >= 65520.0f)
        return sign | 0x7c00;
    (void)std::frexp(magnitude, &exponent); /* magnitude < 2^exponent; of 0: 0 */
    const int last = exponent < -13 || magnitude == 0 ? -24 : exponent - 11;
    const float units = std::nearbyint(std::ldexp(magnitude, -last));
    const int lead = last == -24 ? 0 : (last + 24) << 10; /* with the leading one's 1024 in units */

    return sign | (uint16_t)(lead + (int)units);
}

static inline uint32_t emu_mask(int count) { return count < 32 ? (1u << count) - 1 : ~0u; }

static inline uint32_t tw_bits_get(uint32_t word, int at, int count)
{
    return word >> at & emu_mask(count);
}

static inline void tw_bits_put(uint32_t *word, uint32_t bits, int at, int count)
{
    *word = (*word & ~(emu_mask(count) << at)) | (bits & emu_mask(count)) << at;
}

#endif
