/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how bytes of any alignment get into registers and back.
 * Never knows: element types' meaning, ranks. */
#ifndef TW_DEVICE_CUDA_DATA_CUH
#define TW_DEVICE_CUDA_DATA_CUH

#include <cstddef>
#include <cstdint>

/* The largest power of two, at most 16, by which all of them are aligned. */
static __device__ inline uint32_t tw_align(uint64_t addresses)
{
    const uint64_t lowest = (addresses | 16) & (~(addresses | 16) + 1);

    return (uint32_t)lowest;
}

/* ---- units of a thread: V is uint2 (8 bytes) or uint4 (16) -------------------------------------
 */

/* One element of 1, 2, 4 or 8 bytes, in the lowest bits; and back. */
static __device__ inline uint64_t tw_element_load(const char *at, uint32_t elem)
{
    switch (elem) {
    case 8:
        return *(const uint64_t *)at;
    case 4:
        return *(const uint32_t *)at;
    case 2:
        return *(const uint16_t *)at;
    default:
        return *(const uint8_t *)at;
    }
}

static __device__ inline void tw_element_store(char *at, uint64_t value, uint32_t elem)
{
    switch (elem) {
    case 8:
        *(uint64_t *)at = value;
        break;
    case 4:
        *(uint32_t *)at = (uint32_t)value;
        break;
    case 2:
        *(uint16_t *)at = (uint16_t)value;
        break;
    default:
        *(uint8_t *)at = (uint8_t)value;
        break;
    }
}

static __device__ inline void tw_unit_from(uint64_t low, uint64_t, uint2 *unit)
{
    *unit = make_uint2((uint32_t)low, (uint32_t)(low >> 32));
}
static __device__ inline void tw_unit_from(uint64_t low, uint64_t high, uint4 *unit)
{
    *unit =
        make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32));
}
static __device__ inline uint64_t tw_unit_half(uint2 unit, bool)
{
    return (uint64_t)unit.y << 32 | unit.x;
}
static __device__ inline uint64_t tw_unit_half(uint4 unit, bool high)
{
    return high ? (uint64_t)unit.w << 32 | unit.z : (uint64_t)unit.y << 32 | unit.x;
}

/* The bytes of a V at `at`, of which `bytes` are there, whole elements of `elem` bytes by which it
 * is aligned; the others come out zero. */
template <class V>
static __device__ inline V tw_unit_load(const char *at, uint32_t bytes, uint32_t elem)
{
    uint64_t low = 0, high = 0;
    V unit;

    if (__builtin_expect(bytes == sizeof(V) && (size_t)at % sizeof(V) == 0, 1))
        return *(const V *)at;
    if (bytes == 4 && (size_t)at % 4 == 0) { /* one float: less to fetch than the loop */
        tw_unit_from(*(const uint32_t *)at, 0, &unit);
        return unit;
    }
#pragma unroll 1
    for (uint32_t i = 0; i < bytes; i += elem) {
        const uint64_t value = tw_element_load(at + i, elem);

        if (i < 8)
            low |= value << 8 * i;
        else
            high |= value << 8 * (i - 8);
    }
    tw_unit_from(low, high, &unit);
    return unit;
}

template <class V>
static __device__ inline void tw_unit_store(char *at, V unit, uint32_t bytes, uint32_t elem)
{
    if (__builtin_expect(bytes == sizeof(V) && (size_t)at % sizeof(V) == 0, 1)) {
        *(V *)at = unit;
        return;
    }
    if (bytes == 4 && (size_t)at % 4 == 0) {
        *(uint32_t *)at = unit.x;
        return;
    }
#pragma unroll 1
    for (uint32_t i = 0; i < bytes; i += elem)
        tw_element_store(at + i, tw_unit_half(unit, i >= 8) >> 8 * (i % 8), elem);
}

/* Bytes of unit i of a block of `total` bytes. */
template <class V> static __device__ inline uint32_t tw_unit_bytes(uint64_t total, uint64_t i)
{
    const uint64_t left = total - i * sizeof(V);

    return left < sizeof(V) ? (uint32_t)left : (uint32_t)sizeof(V);
}

/* ---- a block's threads together ----------------------------------------------------------------
 */

/* dst and src are aligned by T, bytes is a multiple of it. */
template <class T>
static __device__ inline void tw_copy_as(char *dst, const char *src, uint64_t bytes,
                                         uint32_t thread, uint32_t threads)
{
    const T *from = (const T *)src;
    T *to = (T *)dst;
    const uint64_t count = bytes / sizeof(T);
    uint64_t i = thread;

    for (; i + 3 * (uint64_t)threads < count; i += 4 * (uint64_t)threads) {
        T unit[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            unit[k] = __ldcg(from + i + k * (uint64_t)threads);
#pragma unroll
        for (int k = 0; k < 4; k++)
            to[i + k * (uint64_t)threads] = unit[k];
    }
    /* at most three are left, whose loads are under way at once too */
    T rest[3] = {}; /* else it would be kept from call to call */
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (i + k * (uint64_t)threads < count)
            rest[k] = __ldcg(from + i + k * (uint64_t)threads);
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (i + k * (uint64_t)threads < count)
            to[i + k * (uint64_t)threads] = rest[k];
}

/* Any alignment, any length; the ranges do not overlap. Loads go past the first-level cache, so
 * that what a peer has written is seen. */
static __device__ inline void tw_copy(char *dst, const char *src, uint64_t bytes, uint32_t thread,
                                      uint32_t threads)
{
    const uint32_t align = tw_align((uint64_t)dst | (uint64_t)src);
    const uint64_t whole = bytes / align * align;

    switch (align) {
    case 16:
        tw_copy_as<uint4>(dst, src, whole, thread, threads);
        break;
    case 8:
        tw_copy_as<uint2>(dst, src, whole, thread, threads);
        break;
    case 4:
        tw_copy_as<uint32_t>(dst, src, whole, thread, threads);
        break;
    case 2:
        tw_copy_as<uint16_t>(dst, src, whole, thread, threads);
        break;
    default:
        break;
    }
    for (uint64_t i = (align > 1 ? whole : 0) + thread; i < bytes; i += threads)
        dst[i] = (char)__ldcg((const unsigned char *)src + i);
}

#endif
