/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the slots between two ranks, the packets of which they are, and how a warp's pieces of the
 * user's memory get there and back.
 * Never knows: whose turn a slot is. */
#ifndef TW_DEVICE_CUDA_SLOT_CUH
#define TW_DEVICE_CUDA_SLOT_CUH

#include "device/cuda/data.cuh"
#include "device/cuda/sync.cuh"

/* ---- slots of packets --------------------------------------------------------------------------
 *
 * Of each thread of the warp eight packets: the first seven have a unit of data each, 16 bytes, but
 * for the upper half of its last word, where the tag is; the last one has those halves, and the
 * tag.
 */

#define TW_SLOT_UNITS 7u /* of a thread */
#define TW_SLOT_PACKETS 8u
static_assert(TW_SLOT_PACKETS * TW_GK_WARP * 16 == TW_GK_SLOT_BYTES &&
                  TW_SLOT_UNITS * TW_GK_WARP * 16 == TW_GK_SLOT_DATA,
              "a slot is what a warp sends at once");

/* Of a pair. */
static __device__ inline uint32_t tw_slots(const struct tw_gk_call *call)
{
    const uint32_t all = call->layout.ring_each / TW_GK_SLOT_BYTES;

    return all < TW_GK_SLOTS_MAX ? all : TW_GK_SLOTS_MAX;
}

/* A slot of the pair in at's memory that `from` writes. */
static __device__ inline char *tw_slot_of(const struct tw_gk_call *call, int at, int from,
                                          uint32_t number)
{
    return tw_mem(call, at) + call->layout.ring +
           (uint64_t)tw_peer_index(at, from) * call->layout.ring_each +
           (uint64_t)number * TW_GK_SLOT_BYTES;
}

/* Bytes from a piece's start to a thread's unit i, and from a slot's to its packet: the warp's
 * stand next to each other. */
static __device__ inline uint32_t tw_unit_at(int thread, uint32_t i)
{
    return ((uint32_t)thread + i * TW_GK_WARP) * 16;
}

/* The upper half of unit i's last word, in the last packet: from there, and into it. */
static __device__ inline uint32_t tw_upper(uint4 halves, uint32_t i)
{
    const uint32_t both = i < 2 ? halves.x : i < 4 ? halves.y : i < 6 ? halves.z : halves.w;

    return i % 2 == 0 ? both << 16 : both & 0xffff0000u;
}

static __device__ inline void tw_upper_put(uint4 *halves, uint32_t i, uint32_t word)
{
    const uint32_t half = i % 2 == 0 ? word >> 16 : word & 0xffff0000u;

    halves->x |= i / 2 == 0 ? half : 0;
    halves->y |= i / 2 == 1 ? half : 0;
    halves->z |= i / 2 == 2 ? half : 0;
    halves->w |= i == 6 ? half : 0;
}

/* A thread's packets. use: of the slot, from 1 on; its tag has 16 bits, and what lies there is of
 * the use before. */
static __device__ inline void tw_unit_pack(char *slot, uint32_t i, uint4 unit, uint32_t use,
                                           int thread)
{
    tw_store_packet(slot + tw_unit_at(thread, i),
                    make_uint4(unit.x, unit.y, unit.z, (unit.w & 0xffffu) | use << 16));
}

static __device__ inline void tw_halves_pack(char *slot, uint4 halves, uint32_t use, int thread)
{
    tw_store_packet(slot + tw_unit_at(thread, TW_SLOT_UNITS),
                    make_uint4(halves.x, halves.y, halves.z, halves.w | use << 16));
}

/* All of them. */
static __device__ inline void tw_slot_store(char *slot, const uint4 unit[TW_SLOT_UNITS],
                                            uint32_t use, int thread)
{
    uint4 halves = make_uint4(0, 0, 0, 0);

#pragma unroll
    for (uint32_t i = 0; i < TW_SLOT_UNITS; i++) {
        tw_unit_pack(slot, i, unit[i], use, thread);
        tw_upper_put(&halves, i, unit[i].w);
    }
    tw_halves_pack(slot, halves, use, thread);
}

/* Those of COUNT units from `first` on. False: some are not of this use. */
template <uint32_t COUNT>
static __device__ inline bool tw_slot_look(const char *slot, uint32_t first, uint32_t use,
                                           int thread, uint4 unit[COUNT])
{
    uint32_t others = 0;

#pragma unroll
    for (uint32_t i = 0; i < COUNT; i++) /* behind the last unit its halves are looked at again */
        unit[i] = tw_load_packet(slot + tw_unit_at(thread, first + i));
    const uint4 halves = tw_load_packet(slot + tw_unit_at(thread, TW_SLOT_UNITS));
#pragma unroll
    for (uint32_t i = 0; i < COUNT; i++) {
        others |= unit[i].w ^ use << 16;
        unit[i].w = (unit[i].w & 0xffffu) | tw_upper(halves, first + i);
    }
    return ((others | (halves.w ^ use << 16)) >> 16) == 0;
}

/* All of a thread's; zeros, if they never come: so what was looked at is not kept while it waits.
 */
static __device__ inline void tw_slot_load(struct tw_block *me, int peer, const char *slot,
                                           uint32_t use, int thread, uint4 unit[TW_SLOT_UNITS])
{
    const auto look = [&] { return tw_slot_look<TW_SLOT_UNITS>(slot, 0, use, thread, unit); };

    if (look() || tw_wait_until(me, peer, look))
        return;
#pragma unroll
    for (uint32_t i = 0; i < TW_SLOT_UNITS; i++)
        unit[i] = make_uint4(0, 0, 0, 0);
}

/* ---- pieces of the user's memory ---------------------------------------------------------------
 */

/* Bytes of a unit at `at` of so many. */
static __device__ inline uint32_t tw_part_bytes(uint32_t bytes, uint32_t at)
{
    if (bytes <= at)
        return 0;
    return bytes - at < 16 ? bytes - at : 16;
}

/* Whole units: their loads are all under way at once. */
static __device__ inline bool tw_is_whole(const void *at, uint32_t bytes)
{
    return ((size_t)at | bytes) % 16 == 0;
}

/* Of one that is not. Not inline: where a piece's are whole their registers are needed. */
static __device__ __noinline__ uint4 tw_odd_get(const char *from, uint32_t bytes, uint32_t elem)
{
    return tw_unit_load<uint4>(from, bytes, elem);
}
static __device__ __noinline__ void tw_odd_put(char *to, uint4 unit, uint32_t bytes, uint32_t elem)
{
    tw_unit_store<uint4>(to, unit, bytes, elem);
}

/* Each thread its units, of memory that may be aligned to its elements only; what is behind the end
 * comes out zero. */
static __device__ inline void tw_piece_get(const char *from, uint32_t bytes, uint32_t elem,
                                           int thread, uint4 unit[TW_SLOT_UNITS])
{
    const bool whole = tw_is_whole(from, bytes);

#pragma unroll
    for (uint32_t i = 0; whole && i < TW_SLOT_UNITS; i++) {
        const uint32_t at = tw_unit_at(thread, i);

        unit[i] = at < bytes ? __ldcg((const uint4 *)(from + at)) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (uint32_t i = 0; !whole && i < TW_SLOT_UNITS; i++) {
        const uint32_t at = tw_unit_at(thread, i);

        unit[i] = tw_odd_get(from + at, tw_part_bytes(bytes, at), elem);
    }
}

static __device__ inline void tw_piece_put(char *to, const uint4 unit[TW_SLOT_UNITS],
                                           uint32_t bytes, uint32_t elem, int thread)
{
    const bool whole = tw_is_whole(to, bytes);

#pragma unroll
    for (uint32_t i = 0; i < TW_SLOT_UNITS; i++) {
        const uint32_t at = tw_unit_at(thread, i);

        if (whole && at < bytes)
            *(uint4 *)(to + at) = unit[i];
    }
#pragma unroll
    for (uint32_t i = 0; !whole && i < TW_SLOT_UNITS; i++) {
        const uint32_t at = tw_unit_at(thread, i);

        tw_odd_put(to + at, unit[i], tw_part_bytes(bytes, at), elem);
    }
}

#endif
