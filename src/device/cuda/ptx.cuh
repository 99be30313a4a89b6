/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the instructions that C++ has no word for, and how fast the machine polls: all that
 * kernels have of PTX. tests/emu has a header of the same functions for the CPU.
 * Never knows: what they are for. */
#ifndef TW_DEVICE_CUDA_PTX_CUH
#define TW_DEVICE_CUDA_PTX_CUH

#include <cstdint>

#include "device/cuda/wire.h"

#define TW_SPINS_LOOK 1024u /* polls between looks at what could be wrong */
#define TW_LOOKS_STOP 8u    /* looks between looks into the host's memory, which are slow */

/* ---- memory that several devices write ---------------------------------------------------------
 */

static __device__ inline uint32_t tw_load(const uint32_t *at)
{
    uint32_t value;

    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

static __device__ inline uint32_t tw_load_acquire(const uint32_t *at)
{
    uint32_t value;

    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

/* Four words that lie together, each by itself. */
static __device__ inline uint4 tw_load_four(const uint32_t *at)
{
    uint4 all;

    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(all.x), "=r"(all.y), "=r"(all.z), "=r"(all.w)
                 : "l"(at)
                 : "memory");
    return all;
}

static __device__ inline void tw_store(uint32_t *at, uint32_t value)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}

static __device__ inline void tw_store_release(uint32_t *at, uint32_t value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}

static __device__ inline uint64_t tw_load_acquire(const uint64_t *at)
{
    uint64_t value;

    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

static __device__ inline void tw_store_release(uint64_t *at, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

/* Before it, and behind it, for all devices. */
static __device__ inline void tw_fence() { asm volatile("fence.acq_rel.sys;" : : : "memory"); }

/* Two pairs of a word and an epoch. Each pair is 8 aligned bytes, which arrive as one. */
static __device__ inline void tw_store_pairs(void *at, uint32_t first, uint32_t second,
                                             uint32_t epoch)
{
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};"
                 :
                 : "l"(at), "r"(first), "r"(epoch), "r"(second)
                 : "memory");
}

/* Both, whatever their epochs are. */
static __device__ inline void tw_look_pairs(const void *at, uint32_t *first, uint32_t *first_epoch,
                                            uint32_t *second, uint32_t *second_epoch)
{
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(*first), "=r"(*first_epoch), "=r"(*second), "=r"(*second_epoch)
                 : "l"(at)
                 : "memory");
}

/* A packet: 16 aligned bytes, which arrive as one. */
static __device__ inline void tw_store_packet(void *at, uint4 packet)
{
    asm volatile("{\n"
                 "    .reg .b64 low, high;\n"
                 "    .reg .b128 all;\n"
                 "    mov.b64 low, {%1, %2};\n"
                 "    mov.b64 high, {%3, %4};\n"
                 "    mov.b128 all, {low, high};\n"
                 "    st.relaxed.sys.global.b128 [%0], all;\n"
                 "}"
                 :
                 : "l"(at), "r"(packet.x), "r"(packet.y), "r"(packet.z), "r"(packet.w)
                 : "memory");
}

static __device__ inline uint4 tw_load_packet(const void *at)
{
    uint4 packet;

    asm volatile("{\n"
                 "    .reg .b64 low, high;\n"
                 "    .reg .b128 all;\n"
                 "    ld.relaxed.sys.global.b128 all, [%4];\n"
                 "    mov.b128 {low, high}, all;\n"
                 "    mov.b64 {%0, %1}, low;\n"
                 "    mov.b64 {%2, %3}, high;\n"
                 "}"
                 : "=r"(packet.x), "=r"(packet.y), "=r"(packet.z), "=r"(packet.w)
                 : "l"(at)
                 : "memory");
    return packet;
}

/* ---- threads, time -----------------------------------------------------------------------------
 */

/* A group waits for itself. */
static __device__ inline void tw_group_sync()
{
    asm volatile("bar.sync %0, %1;"
                 :
                 : "r"(1 + (int)(threadIdx.x / TW_GK_GROUP)), "n"(TW_GK_GROUP)
                 : "memory");
}

/* A warp waits for itself. */
static __device__ inline void tw_warp_sync() { __syncwarp(); }

/* A warp and its neighbour wait for each other: warps 0 and 1 of a block, 2 and 3, and so on. */
static __device__ inline void tw_pair_sync()
{
    asm volatile("bar.sync %0, %1;"
                 :
                 : "r"(8 + (int)(threadIdx.x / TW_GK_WARP / 2)), "n"(2 * TW_GK_WARP)
                 : "memory");
}

/* As tw_group_sync, and to all: not 0 where it was for one of them. */
static __device__ inline uint32_t tw_group_any(uint32_t mine)
{
    uint32_t any;

    asm volatile("{\n"
                 "    .reg .pred mine, any;\n"
                 "    setp.ne.u32 mine, %1, 0;\n"
                 "    bar.red.or.pred any, %2, %3, mine;\n"
                 "    selp.u32 %0, 1, 0, any;\n"
                 "}"
                 : "=r"(any)
                 : "r"(mine), "r"(1 + (int)(threadIdx.x / TW_GK_GROUP)), "n"(TW_GK_GROUP)
                 : "memory");
    return any;
}

/* Of a warp, all of whose threads ask: is it so for all of them? */
static __device__ inline bool tw_warp_all(bool mine) { return __all_sync(0xffffffffu, mine) != 0; }

/* Until the kernels in front of this one have ended and what they stored is there. */
static __device__ inline void tw_grid_await()
{
#if __CUDA_ARCH__ >= 10 * TW_GK_EARLY_PTX
    asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}

/* The next kernel may begin once all blocks have come here or ended. */
static __device__ inline void tw_grid_next()
{
#if __CUDA_ARCH__ >= 10 * TW_GK_EARLY_PTX
    asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#endif
}

static __device__ inline uint64_t tw_now_ns()
{
    uint64_t now;

    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

/* ---- numbers -----------------------------------------------------------------------------------
 */

/* NaN, the canonical one, if either is; -0 is smaller than +0. */
static __device__ inline float tw_min_nan(float left, float right)
{
    float value;

    asm("min.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(left), "f"(right));
    return value;
}

static __device__ inline float tw_max_nan(float left, float right)
{
    float value;

    asm("max.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(left), "f"(right));
    return value;
}

static __device__ inline float tw_half_widen(uint16_t value)
{
    float wide;

    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value));
    return wide;
}

/* To nearest, even. Of NaN: some NaN. */
static __device__ inline uint16_t tw_half_round(float value)
{
    uint16_t narrow;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow) : "f"(value));
    return narrow;
}

/* `count` bits of a word, from `at` on: read, and written. The compiler does not look into them:
 * some versions of it fall over unions and shifts of bytes. */
static __device__ inline uint32_t tw_bits_get(uint32_t word, int at, int count)
{
    uint32_t bits;

    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(bits) : "r"(word), "r"(at), "r"(count));
    return bits;
}

static __device__ inline void tw_bits_put(uint32_t *word, uint32_t bits, int at, int count)
{
    asm("bfi.b32 %0, %1, %0, %2, %3;" : "+r"(*word) : "r"(bits), "r"(at), "r"(count));
}

#endif
