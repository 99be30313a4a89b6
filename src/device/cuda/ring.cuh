/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the rings between a group of threads and its peers' same group, and outputs that peers
 * write.
 * Never knows: what goes through them. */
#ifndef TW_DEVICE_CUDA_RING_CUH
#define TW_DEVICE_CUDA_RING_CUH

#include "device/cuda/sync.cuh"

/* A group waits for itself. */
static __device__ inline void tw_group_sync()
{
    asm volatile("bar.sync %0, %1;"
                 :
                 : "r"(1 + (int)(threadIdx.x / TW_GK_GROUP)), "n"(TW_GK_GROUP)
                 : "memory");
}

/* In shared memory: where the group's rings stand, by lane and peer. */
struct tw_rings {
    uint32_t sent[2][TW_GK_RANKS_MAX], taken[2][TW_GK_RANKS_MAX];
    char *out[TW_GK_RANKS_MAX]; /* where peers take this rank's data; NULL: by ring */
    uint32_t lanes, slot_bytes;
};

/* The thread that deals with a peer; the others do nothing here. */
static __device__ inline bool tw_is_peer(const struct tw_block *me, int peer)
{
    return peer < me->call->size && peer != me->call->rank;
}

/* All of the group. writes: the peers whose outputs may be written: their records are awaited. */
static __device__ inline void tw_rings_begin(struct tw_block *me, struct tw_rings *rings,
                                             uint32_t lanes, uint64_t writes)
{
    const int peer = me->thread;

    if (peer == 0) {
        rings->lanes = lanes;
        rings->slot_bytes = me->call->layout.ring_each / (lanes * me->rings * TW_GK_SLOTS) / 128 * 128;
    }
    if (tw_is_peer(me, peer)) {
        const struct tw_gk_counts *counts = &me->call->state->counts[peer][me->ring];
        uint32_t words[TW_GK_WORDS] = {};

        for (int lane = 0; lane < 2; lane++) {
            rings->sent[lane][peer] = counts->sent[lane];
            rings->taken[lane][peer] = counts->taken[lane];
        }
        rings->out[peer] = nullptr;
        if (tw_has(writes, peer) && tw_record_match(me, peer, words))
            rings->out[peer] = tw_reached(me->call, peer, words, TW_GK_WORD_OUT);
    }
    tw_group_sync();
}

/* All of the group. Peers' outputs are written, and this rank's is when it ends. What was sent has been
 * read by then: between calls rings are empty, so that the next call may cut them otherwise. */
static __device__ inline void tw_rings_end(struct tw_block *me, const struct tw_rings *rings,
                                           uint64_t writes, uint64_t written)
{
    const int peer = me->thread;

    tw_group_sync();
    if (!tw_is_peer(me, peer))
        return;
    struct tw_gk_counts *counts = &me->call->state->counts[peer][me->ring];

    if (rings->out[peer] != nullptr && tw_has(writes, peer))
        tw_store_release(&tw_flags(me, peer, me->call->rank)->ended, me->epoch);
    for (uint32_t lane = 0; lane < rings->lanes; lane++) {
        counts->sent[lane] = rings->sent[lane][peer];
        counts->taken[lane] = rings->taken[lane][peer];
        tw_wait_count(me, peer, &tw_flags(me, me->call->rank, peer)->drained[lane],
                      rings->sent[lane][peer]);
    }
    if (me->call->direct && tw_has(written, peer))
        tw_wait_count(me, peer, &tw_flags(me, me->call->rank, peer)->ended, me->epoch);
}

static __device__ inline char *tw_slot(const struct tw_block *me, const struct tw_rings *rings,
                                       int at, int from, uint32_t lane, uint32_t number)
{
    const uint32_t slot = (lane * me->rings + me->ring) * TW_GK_SLOTS + number % TW_GK_SLOTS;

    return tw_mem(me->call, at) + me->call->layout.ring +
           (uint64_t)tw_peer_index(at, from) * me->call->layout.ring_each + (uint64_t)slot * rings->slot_bytes;
}

/* The peer's thread, before the group writes the next slot. */
static __device__ inline void tw_slot_reserve(struct tw_block *me, const struct tw_rings *rings,
                                              uint32_t lane, int peer)
{
    tw_wait_count(me, peer, &tw_flags(me, me->call->rank, peer)->drained[lane],
                  rings->sent[lane][peer] + 1 - TW_GK_SLOTS);
}

/* The peer's thread, after the whole group has written it. */
static __device__ inline void tw_slot_commit(const struct tw_block *me, struct tw_rings *rings,
                                             uint32_t lane, int peer)
{
    tw_store_release(&tw_flags(me, peer, me->call->rank)->filled[lane], ++rings->sent[lane][peer]);
}

/* The peer's thread, before the group reads the next slot. */
static __device__ inline void tw_slot_await(struct tw_block *me, const struct tw_rings *rings,
                                            uint32_t lane, int peer)
{
    tw_wait_count(me, peer, &tw_flags(me, me->call->rank, peer)->filled[lane],
                  rings->taken[lane][peer] + 1);
}

/* The peer's thread, after the whole group has read it. */
static __device__ inline void tw_slot_release(const struct tw_block *me, struct tw_rings *rings,
                                              uint32_t lane, int peer)
{
    tw_store_release(&tw_flags(me, peer, me->call->rank)->drained[lane],
                     ++rings->taken[lane][peer]);
}

#endif
