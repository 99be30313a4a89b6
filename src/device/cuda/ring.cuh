/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the rings between a group of threads and its peers' same group, and outputs that peers
 * write.
 * Never knows: what goes through them. */
#ifndef TW_DEVICE_CUDA_RING_CUH
#define TW_DEVICE_CUDA_RING_CUH

#include "device/cuda/data.cuh"
#include "device/cuda/sync.cuh"

/* ---- packets -----------------------------------------------------------------------------------
 */

#define TW_PACKET_BYTES 64u /* on the way */
#define TW_PACKET_DATA 48u  /* three units of 16 bytes */
#define TW_PACKET_UNITS 3u

/* A quarter of a packet: three words, and the use of the slot. 16 bytes that arrive as one. */
static __device__ inline void tw_quarter_store(char *at, uint32_t a, uint32_t b, uint32_t c,
                                               uint32_t use)
{
    tw_store_whole(at, (uint64_t)b << 32 | a, (uint64_t)use << 32 | c);
}

static __device__ inline bool tw_quarter_load(const char *at, uint32_t use, uint32_t words[3])
{
    uint64_t low, high;

    tw_load_whole(at, &low, &high);
    words[0] = (uint32_t)low;
    words[1] = (uint32_t)(low >> 32);
    words[2] = (uint32_t)high;
    return (uint32_t)(high >> 32) == use;
}

static __device__ inline void tw_packet_store(char *at, const uint4 unit[TW_PACKET_UNITS],
                                              uint32_t use)
{
    tw_quarter_store(at, unit[0].x, unit[0].y, unit[0].z, use);
    tw_quarter_store(at + 16, unit[0].w, unit[1].x, unit[1].y, use);
    tw_quarter_store(at + 32, unit[1].z, unit[1].w, unit[2].x, use);
    tw_quarter_store(at + 48, unit[2].y, unit[2].z, unit[2].w, use);
}

/* Waits for a packet of peer's. */
static __device__ inline void tw_packet_wait(struct tw_block *me, int peer, const char *at,
                                             uint32_t use, uint4 unit[TW_PACKET_UNITS])
{
    uint32_t words[12] = {};

    (void)tw_wait_until(me, peer, [&] {
        bool whole = true;

#pragma unroll
        for (int i = 0; i < 4; i++)
            whole &= tw_quarter_load(at + 16 * i, use, words + 3 * i);
        return whole;
    });
#pragma unroll
    for (int i = 0; i < (int)TW_PACKET_UNITS; i++)
        unit[i] = make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
}

/* ---- rings -------------------------------------------------------------------------------------
 */

/* In shared memory: uses of the group's slots, by lane, slot and peer. */
struct tw_rings {
    uint32_t sent[2][TW_GK_SLOTS][TW_GK_RANKS_MAX], taken[2][TW_GK_SLOTS][TW_GK_RANKS_MAX];
    char *out[TW_GK_RANKS_MAX]; /* where peers take this rank's data; NULL: by ring */
    uint32_t lanes, packets;    /* of a slot */
    uint32_t count;             /* groups that have rings: the first ones */
};

/* Bytes of data that a slot holds: a piece. */
static __device__ inline uint32_t tw_piece_bytes(const struct tw_rings *rings)
{
    return rings->packets * TW_PACKET_DATA;
}

/* The thread that deals with a peer; the others do nothing here. */
static __device__ inline bool tw_is_peer(const struct tw_block *me, int peer)
{
    return peer < me->call->size && peer != me->call->rank;
}

/* A slot's number among all of a pair. */
static __device__ inline uint32_t tw_slot_number(const struct tw_block *me,
                                                 const struct tw_rings *rings, uint32_t lane,
                                                 uint32_t slot)
{
    return (lane * (TW_GK_SLOTS_MAX / TW_GK_SLOTS / rings->lanes) + me->ring) * TW_GK_SLOTS + slot;
}

/* All of the group. writes: the peers whose outputs may be written: their records are awaited. */
static __device__ inline void tw_rings_begin(struct tw_block *me, struct tw_rings *rings,
                                             uint32_t lanes, uint64_t writes)
{
    const int peer = me->thread;

    if (peer == 0) {
        const uint32_t most = me->call->layout.ring_each / TW_GK_SLOTS_MAX / TW_PACKET_BYTES;

        rings->lanes = lanes;
        rings->packets = most < TW_GK_GROUP ? most : TW_GK_GROUP;
        rings->count = TW_GK_SLOTS_MAX / TW_GK_SLOTS / lanes;
        if (rings->count > me->rings)
            rings->count = me->rings;
    }
    tw_group_sync();
    if (tw_is_peer(me, peer)) {
        const struct tw_gk_counts *counts = me->call->state->counts[peer];
        uint32_t words[TW_GK_WORDS] = {};

        for (uint32_t i = 0; i < lanes * TW_GK_SLOTS && me->ring < rings->count; i++) {
            const uint32_t lane = i / TW_GK_SLOTS, slot = i % TW_GK_SLOTS;
            const uint32_t number = tw_slot_number(me, rings, lane, slot);

            rings->sent[lane][slot][peer] = counts[number].sent;
            rings->taken[lane][slot][peer] = counts[number].taken;
        }
        rings->out[peer] = nullptr;
        if (tw_has(writes, peer) && tw_record_match(me, peer, words))
            rings->out[peer] = tw_reached(me->call, peer, words, TW_GK_WORD_OUT);
    }
    tw_group_sync();
}

/* All of the group. Peers' outputs are written, and this rank's is when it ends. */
static __device__ inline void tw_rings_end(struct tw_block *me, const struct tw_rings *rings,
                                           uint64_t writes, uint64_t written)
{
    const int peer = me->thread;

    tw_group_sync();
    if (!tw_is_peer(me, peer))
        return;
    if (rings->out[peer] != nullptr && tw_has(writes, peer))
        tw_store_release(&tw_flags(me, peer, me->call->rank)->ended, me->epoch);
    for (uint32_t i = 0; i < rings->lanes * TW_GK_SLOTS && me->ring < rings->count; i++) {
        const uint32_t lane = i / TW_GK_SLOTS, slot = i % TW_GK_SLOTS;
        struct tw_gk_counts *counts =
            &me->call->state->counts[peer][tw_slot_number(me, rings, lane, slot)];

        counts->sent = rings->sent[lane][slot][peer];
        counts->taken = rings->taken[lane][slot][peer];
    }
    if (me->call->direct && tw_has(written, peer))
        tw_wait_ended(me, peer);
}

static __device__ inline char *tw_packet(const struct tw_block *me, const struct tw_rings *rings,
                                         int at, int from, uint32_t lane, uint32_t slot)
{
    const uint32_t number = tw_slot_number(me, rings, lane, slot);

    return tw_mem(me->call, at) + me->call->layout.ring +
           (uint64_t)tw_peer_index(at, from) * me->call->layout.ring_each +
           (number * rings->packets + (uint32_t)me->thread) * TW_PACKET_BYTES;
}

/* The peer's thread, before the group writes a slot. */
static __device__ inline void tw_slot_reserve(struct tw_block *me, const struct tw_rings *rings,
                                              uint32_t lane, uint32_t slot, int peer)
{
    const uint32_t number = tw_slot_number(me, rings, lane, slot);

    tw_wait_count(me, peer, &tw_flags_of(me, me->call->rank, peer, number)->drained,
                  rings->sent[lane][slot][peer]);
}

/* Each thread: its packet of the next use of a slot. */
static __device__ inline void tw_slot_write(const struct tw_block *me, const struct tw_rings *rings,
                                            uint32_t lane, uint32_t slot, int peer,
                                            const uint4 unit[TW_PACKET_UNITS])
{
    tw_packet_store(tw_packet(me, rings, peer, me->call->rank, lane, slot), unit,
                    rings->sent[lane][slot][peer] + 1);
}

/* The peer's thread, after the whole group has written it. */
static __device__ inline void tw_slot_sent(struct tw_rings *rings, uint32_t lane, uint32_t slot,
                                           int peer)
{
    rings->sent[lane][slot][peer]++;
}

/* Each thread: its packet of what comes next in a slot. */
static __device__ inline void tw_slot_read(struct tw_block *me, const struct tw_rings *rings,
                                           uint32_t lane, uint32_t slot, int peer,
                                           uint4 unit[TW_PACKET_UNITS])
{
    tw_packet_wait(me, peer, tw_packet(me, rings, me->call->rank, peer, lane, slot),
                   rings->taken[lane][slot][peer] + 1, unit);
}

/* The peer's thread, after the whole group has read it. No fence: every thread has looked at what
 * it read, at the numbers in it, before the group met, so no read is left that this could overtake.
 */
static __device__ inline void tw_slot_release(const struct tw_block *me, struct tw_rings *rings,
                                              uint32_t lane, uint32_t slot, int peer)
{
    const uint32_t number = tw_slot_number(me, rings, lane, slot);

    tw_store(&tw_flags_of(me, peer, me->call->rank, number)->drained,
             ++rings->taken[lane][slot][peer]);
}

/* ---- a thread's packet and memory --------------------------------------------------------------
 */

/* Bytes of the thread's packet of a piece. */
static __device__ inline uint32_t tw_packet_bytes(const struct tw_block *me, uint64_t piece_bytes)
{
    const uint64_t at = (uint64_t)me->thread * TW_PACKET_DATA;

    if (at >= piece_bytes)
        return 0;
    return piece_bytes - at < TW_PACKET_DATA ? (uint32_t)(piece_bytes - at) : TW_PACKET_DATA;
}

/* Bytes of unit i of a packet of so many. */
static __device__ inline uint32_t tw_part_bytes(uint32_t bytes, uint32_t i)
{
    if (bytes <= 16 * i)
        return 0;
    return bytes - 16 * i < 16 ? bytes - 16 * i : 16;
}

static __device__ inline void tw_packet_get(const char *from, uint32_t bytes, uint32_t elem,
                                            uint4 unit[TW_PACKET_UNITS])
{
#pragma unroll
    for (uint32_t i = 0; i < TW_PACKET_UNITS; i++)
        unit[i] = tw_unit_load<uint4>(from + 16 * i, tw_part_bytes(bytes, i), elem);
}

static __device__ inline void tw_packet_put(char *to, const uint4 unit[TW_PACKET_UNITS],
                                            uint32_t bytes, uint32_t elem)
{
#pragma unroll
    for (uint32_t i = 0; i < TW_PACKET_UNITS; i++)
        tw_unit_store<uint4>(to + 16 * i, unit[i], tw_part_bytes(bytes, i), elem);
}

#endif
