/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the rings between a group of threads and its peers' same group, and outputs that peers
 * write.
 * Never knows: what goes through them. */
#ifndef TW_DEVICE_CUDA_RING_CUH
#define TW_DEVICE_CUDA_RING_CUH

#include "device/cuda/data.cuh"
#include "device/cuda/sync.cuh"

/* ---- slots of data -----------------------------------------------------------------------------
 */

#define TW_SLOT_UNITS 4u /* of 16 bytes, of each thread of the group, at most */
#define TW_SLOT_MOST (TW_SLOT_UNITS * TW_GK_GROUP * 16u)

/* Bytes of data that a slot holds: a piece. */
static __device__ inline uint32_t tw_slot_bytes(const struct tw_gk_call *call)
{
    const uint32_t most = call->layout.ring_each / TW_GK_SLOTS_MAX / 16 * 16;

    return most < TW_SLOT_MOST ? most : TW_SLOT_MOST;
}

/* Bytes from a piece's start to a thread's unit i: the group's units stand next to each other. */
static __device__ inline uint32_t tw_unit_at(int thread, uint32_t i)
{
    return ((uint32_t)thread + i * TW_GK_GROUP) * 16;
}

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

/* Whole units, of which bytes may cut the last one off. What a peer has written is in no cache of
 * the first level. */
static __device__ inline void tw_slot_load(const char *slot, uint32_t bytes, int thread,
                                           uint4 unit[TW_SLOT_UNITS])
{
#pragma unroll
    for (uint32_t i = 0; i < TW_SLOT_UNITS; i++) {
        const uint32_t at = tw_unit_at(thread, i);

        unit[i] = at < bytes ? __ldcg((const uint4 *)(slot + at)) : make_uint4(0, 0, 0, 0);
    }
}

static __device__ inline void tw_slot_store(char *slot, const uint4 unit[TW_SLOT_UNITS],
                                            uint32_t bytes, int thread)
{
#pragma unroll
    for (uint32_t i = 0; i < TW_SLOT_UNITS; i++) {
        const uint32_t at = tw_unit_at(thread, i);

        if (at < bytes)
            *(uint4 *)(slot + at) = unit[i];
    }
}

/* The same of the user's memory, which may be aligned to its elements only: each thread its units.
 */
static __device__ inline void tw_piece_get(const char *from, uint32_t bytes, uint32_t elem,
                                           int thread, uint4 unit[TW_SLOT_UNITS])
{
    if (tw_is_whole(from, bytes)) {
        tw_slot_load(from, bytes, thread, unit);
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < TW_SLOT_UNITS; i++) {
        const uint32_t at = tw_unit_at(thread, i);

        unit[i] = tw_unit_load<uint4>(from + at, tw_part_bytes(bytes, at), elem);
    }
}

static __device__ inline void tw_piece_put(char *to, const uint4 unit[TW_SLOT_UNITS],
                                           uint32_t bytes, uint32_t elem, int thread)
{
    if (tw_is_whole(to, bytes)) {
        tw_slot_store(to, unit, bytes, thread);
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < TW_SLOT_UNITS; i++) {
        const uint32_t at = tw_unit_at(thread, i);

        tw_unit_store<uint4>(to + at, unit[i], tw_part_bytes(bytes, at), elem);
    }
}

/* The group waits for itself, and each thread for what it has loaded: that goes into what is asked.
 */
static __device__ inline void tw_group_seen(const uint4 unit[TW_SLOT_UNITS])
{
    uint32_t all = 0;

#pragma unroll
    for (uint32_t i = 0; i < TW_SLOT_UNITS; i++)
        all |= unit[i].x | unit[i].y | unit[i].z | unit[i].w;
    (void)tw_group_any(all);
}

/* A slot of the pair in at's memory that `from` writes. */
static __device__ inline char *tw_slot_of(const struct tw_gk_call *call, int at, int from,
                                          uint32_t number)
{
    return tw_mem(call, at) + call->layout.ring +
           (uint64_t)tw_peer_index(at, from) * call->layout.ring_each +
           (uint64_t)number * tw_slot_bytes(call);
}

/* ---- rings -------------------------------------------------------------------------------------
 */

/* What a group of a block does: sending does not wait for what comes, nor the other way round. */
enum tw_role {
    TW_PUSHES,  /* the input's pieces into the peers' slots */
    TW_TAKES,   /* or sums, what comes in slots */
    TW_GATHERS, /* what comes in slots of the second lane */
};

/* In shared memory: a group's ring, and uses of its slots, by lane, slot and peer. */
struct tw_rings {
    uint32_t sent[2][TW_GK_SLOTS][TW_GK_RANKS_MAX], taken[2][TW_GK_SLOTS][TW_GK_RANKS_MAX];
    char *out[TW_GK_RANKS_MAX]; /* where peers take this rank's data; NULL: by ring */
    uint32_t lanes, bytes;      /* of a slot */
    uint32_t count;             /* rings */
    uint32_t ring;              /* the group's */
    enum tw_role role;
    uint32_t first, step; /* the pieces of the ring that the group sees to, and slots */
};

/* The thread that deals with a peer; the others do nothing here. */
static __device__ inline bool tw_is_peer(const struct tw_block *me, int peer)
{
    return peer < me->call->size && peer != me->call->rank;
}

/* A slot's number among all of a pair. */
static __device__ inline uint32_t tw_slot_number(const struct tw_rings *rings, uint32_t lane,
                                                 uint32_t slot)
{
    return (lane * (TW_GK_SLOTS_MAX / TW_GK_SLOTS / rings->lanes) + rings->ring) * TW_GK_SLOTS +
           slot;
}

/* Four groups of a block: with one lane two rings, of each a group that pushes and one that takes;
 * with two lanes a ring, of which a group pushes, two sum, a slot each, and one gathers. */
static __device__ inline void tw_roles_give(const struct tw_block *me, struct tw_rings *rings)
{
    const uint32_t group = threadIdx.x / TW_GK_GROUP;
    const uint32_t each = rings->lanes == 1 ? 2 : 1;

    rings->ring = me->block * each + (each == 2 ? group / 2 : 0);
    rings->role = each == 2    ? (group % 2 == 0 ? TW_PUSHES : TW_TAKES)
                  : group == 0 ? TW_PUSHES
                  : group == 3 ? TW_GATHERS
                               : TW_TAKES;
    rings->first = each == 1 && group == 2 ? 1 : 0;
    rings->step = each == 1 && rings->role == TW_TAKES ? 2 : 1;
    rings->count = me->blocks * each;
    if (rings->count > TW_GK_SLOTS_MAX / TW_GK_SLOTS / rings->lanes)
        rings->count = TW_GK_SLOTS_MAX / TW_GK_SLOTS / rings->lanes;
}

/* The slots whose uses the group counts: f(lane, slot, it sends there). */
template <class F>
static __device__ inline void tw_slots_each(const struct tw_rings *rings, const F &f)
{
    for (uint32_t slot = rings->first; slot < TW_GK_SLOTS && rings->ring < rings->count;
         slot += rings->step) {
        f(rings->role == TW_GATHERS ? 1 : 0, slot, rings->role == TW_PUSHES);
        if (rings->role == TW_TAKES && rings->lanes == 2)
            f(1, slot, true);
    }
}

/* All of the group. writes: the peers whose outputs may be written: their records are awaited. */
static __device__ inline void tw_rings_begin(struct tw_block *me, struct tw_rings *rings,
                                             uint32_t lanes, uint64_t writes)
{
    const int peer = me->thread;

    if (peer == 0) {
        rings->lanes = lanes;
        rings->bytes = tw_slot_bytes(me->call);
        tw_roles_give(me, rings);
    }
    tw_group_sync();
    if (tw_is_peer(me, peer)) {
        const struct tw_gk_counts *counts = me->call->state->counts[peer];
        uint32_t words[TW_GK_WORDS] = {};

        tw_slots_each(rings, [&](uint32_t lane, uint32_t slot, bool sends) {
            const struct tw_gk_counts *count = &counts[tw_slot_number(rings, lane, slot)];

            if (sends)
                rings->sent[lane][slot][peer] = count->sent;
            else
                rings->taken[lane][slot][peer] = count->taken;
        });
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
    tw_slots_each(rings, [&](uint32_t lane, uint32_t slot, bool sends) {
        struct tw_gk_counts *count =
            &me->call->state->counts[peer][tw_slot_number(rings, lane, slot)];

        if (sends)
            count->sent = rings->sent[lane][slot][peer];
        else
            count->taken = rings->taken[lane][slot][peer];
    });
    if (me->call->direct && tw_has(written, peer))
        tw_wait_ended(me, peer);
}

static __device__ inline char *tw_slot(const struct tw_block *me, const struct tw_rings *rings,
                                       int at, int from, uint32_t lane, uint32_t slot)
{
    return tw_slot_of(me->call, at, from, tw_slot_number(rings, lane, slot));
}

/* The peer's thread, before the group writes a slot: its last use has been read. */
static __device__ inline void tw_slot_reserve(struct tw_block *me, const struct tw_rings *rings,
                                              uint32_t lane, uint32_t slot, int peer)
{
    const uint32_t number = tw_slot_number(rings, lane, slot);

    tw_wait_count(me, peer, &tw_flags_of(me, me->call->rank, peer, number)->drained,
                  rings->sent[lane][slot][peer]);
}

/* The peer's thread, before the group reads one. */
static __device__ inline void tw_slot_await(struct tw_block *me, const struct tw_rings *rings,
                                            uint32_t lane, uint32_t slot, int peer)
{
    const uint32_t number = tw_slot_number(rings, lane, slot);

    tw_wait_count(me, peer, &tw_flags_of(me, me->call->rank, peer, number)->filled,
                  rings->taken[lane][slot][peer] + 1);
}

/* The peer's thread, after the whole group has written it. */
static __device__ inline void tw_slot_sent(const struct tw_block *me, struct tw_rings *rings,
                                           uint32_t lane, uint32_t slot, int peer)
{
    const uint32_t number = tw_slot_number(rings, lane, slot);

    tw_store_release(&tw_flags_of(me, peer, me->call->rank, number)->filled,
                     ++rings->sent[lane][slot][peer]);
}

/* The peer's thread, after tw_group_seen. No fence, which would wait for all stores that are under
 * way on the multiprocessor: no load is left that this could overtake. */
static __device__ inline void tw_slot_release(const struct tw_block *me, struct tw_rings *rings,
                                              uint32_t lane, uint32_t slot, int peer)
{
    const uint32_t number = tw_slot_number(rings, lane, slot);

    tw_store(&tw_flags_of(me, peer, me->call->rank, number)->drained,
             ++rings->taken[lane][slot][peer]);
}

#endif
