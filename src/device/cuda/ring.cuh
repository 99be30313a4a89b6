/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the rings between a warp and its peers' same warp, and outputs that peers write.
 * Never knows: what goes through them. */
#ifndef TW_DEVICE_CUDA_RING_CUH
#define TW_DEVICE_CUDA_RING_CUH

#include "device/cuda/call.cuh"
#include "device/cuda/kernels.cuh"
#include "device/cuda/slot.cuh"

/* What a warp of a block does: sending does not wait for what comes, nor the other way round. */
enum tw_role {
    TW_PUSHES,  /* the input's pieces into the peers' slots */
    TW_TAKES,   /* or sums, what comes in slots */
    TW_GATHERS, /* what comes in slots of the second lane */
};

/* In shared memory. */
struct tw_rings {
    /* for each warp: of the slots that it writes at the peers, or reads */
    uint32_t uses[TW_GK_THREADS / TW_GK_WARP][TW_GK_SLOTS][TW_GK_RANKS_MAX];
    char *out[TW_GK_RANKS_MAX]; /* where peers take this rank's data; NULL: by ring */
};

/* A warp's ring. */
struct tw_ring {
    uint32_t (*uses)[TW_GK_RANKS_MAX];
    char *const *out;
    uint32_t lanes, slots; /* of each lane */
    uint32_t number, count;
    enum tw_role role;
    uint32_t first, step; /* the pieces of the ring that the warp sees to, and slots */
};

static __device__ inline bool tw_is_peer(const struct tw_block *me, int peer)
{
    return peer < me->call->size && peer != me->call->rank;
}

/* Each peer by a thread of the warp: f(peer). */
template <class F>
static __device__ inline void tw_peers_each(const struct tw_block *me, const F &f)
{
    for (int peer = me->thread; peer < me->call->size; peer += TW_GK_WARP)
        if (peer != me->call->rank)
            f(peer);
}

/* With one lane two warps are a ring: one pushes and one takes. With two lanes four are: one
 * pushes, two sum, a slot each, and one gathers. Rings are few where slots are: blocks share them.
 */
static __device__ inline void tw_role_give(const struct tw_block *me, uint32_t lanes,
                                           struct tw_ring *ring)
{
    const uint32_t warps = 2 * lanes, warp = threadIdx.x / TW_GK_WARP, which = warp % warps;
    const uint32_t wanted = me->blocks * (blockDim.x / TW_GK_WARP / warps);
    const uint32_t slots = tw_slots(me->call);

    ring->lanes = lanes;
    ring->slots = lanes == 2 || slots >= wanted * TW_GK_SLOTS ? TW_GK_SLOTS : 1;
    ring->number = warp / warps * me->blocks + me->block;
    ring->count = slots / (lanes * ring->slots);
    if (ring->count > wanted)
        ring->count = wanted;
    ring->role = which == 0 ? TW_PUSHES : which == 3 ? TW_GATHERS : TW_TAKES;
    ring->first = which == 2 ? 1 : 0;
    ring->step = lanes == 2 && ring->role == TW_TAKES ? 2 : 1;
}

static __device__ inline bool tw_ring_runs(const struct tw_ring *ring)
{
    return ring->number < ring->count;
}

/* A slot's number among all of a pair. */
static __device__ inline uint32_t tw_slot_number(const struct tw_ring *ring, uint32_t lane,
                                                 uint32_t slot)
{
    return (lane * ring->count + ring->number) * ring->slots + slot;
}

/* The lane that a warp writes to, and the one that it reads. */
static __device__ inline uint32_t tw_lane_sent(const struct tw_ring *ring)
{
    return ring->role == TW_PUSHES ? 0 : 1;
}
static __device__ inline uint32_t tw_lane_taken(const struct tw_ring *ring)
{
    return ring->role == TW_GATHERS ? 1 : 0;
}

/* Uses of a slot of either. A warp that sums and sends on has but one slot of each kind. */
static __device__ inline uint32_t *tw_sent(const struct tw_ring *ring, uint32_t slot, int peer)
{
    return &ring->uses[ring->role == TW_TAKES ? 1 : slot][peer];
}
static __device__ inline uint32_t *tw_taken(const struct tw_ring *ring, uint32_t slot, int peer)
{
    return &ring->uses[ring->role == TW_TAKES && ring->lanes == 2 ? 0 : slot][peer];
}

/* A thread's peers' counts, in the rank's state, of slots that the warp writes and reads: f(the
 * count, the use). */
template <class F>
static __device__ inline void tw_uses_each(const struct tw_block *me, const struct tw_ring *ring,
                                           const F &f)
{
    const bool sends = ring->role == TW_PUSHES || (ring->role == TW_TAKES && ring->lanes == 2);
    const bool takes = ring->role != TW_PUSHES;

    if (!tw_ring_runs(ring))
        return;
    tw_peers_each(me, [&](int peer) {
        struct tw_gk_counts *counts = me->call->state->counts[peer];

        for (uint32_t slot = ring->first; slot < ring->slots; slot += ring->step) {
            if (sends)
                f(&counts[tw_slot_number(ring, tw_lane_sent(ring), slot)].sent,
                  tw_sent(ring, slot, peer));
            if (takes)
                f(&counts[tw_slot_number(ring, tw_lane_taken(ring), slot)].taken,
                  tw_taken(ring, slot, peer));
        }
    });
}

/* All of the block. writes: the peers whose outputs may be written: their records are awaited. Of
 * the mask a thread looks at the bit of its own number only. */
static __device__ inline void tw_rings_begin(struct tw_block *me, struct tw_rings *rings,
                                             uint32_t lanes, uint64_t writes, struct tw_ring *ring)
{
    const int peer = (int)threadIdx.x;

    me->thread = (int)(threadIdx.x % TW_GK_WARP);
    ring->uses = rings->uses[threadIdx.x / TW_GK_WARP];
    ring->out = rings->out;
    tw_role_give(me, lanes, ring);
    tw_uses_each(me, ring, [](const uint32_t *count, uint32_t *use) { *use = *count; });
    if (tw_is_peer(me, peer)) {
        uint32_t words[TW_GK_WORDS] = {};

        rings->out[peer] = nullptr;
        if (tw_has(writes, peer) && tw_record_match(me, peer, words))
            rings->out[peer] = tw_reached(me->call, peer, words, TW_GK_WORD_OUT);
    }
    __syncthreads();
}

/* All of the block. Peers' outputs are written, and this rank's is when it ends. Masks as above. */
static __device__ inline void tw_rings_end(struct tw_block *me, const struct tw_ring *ring,
                                           uint64_t writes, uint64_t written)
{
    const int peer = (int)threadIdx.x;

    tw_warp_sync();
    tw_uses_each(me, ring, [](uint32_t *count, const uint32_t *use) { *count = *use; });
    const bool tells = tw_is_peer(me, peer) && ring->out[peer] != nullptr;
    tw_part(me, tells ? writes : 0, me->call->direct ? written : 0);
}

static __device__ inline char *tw_slot(const struct tw_block *me, const struct tw_ring *ring,
                                       int at, int from, uint32_t lane, uint32_t slot)
{
    return tw_slot_of(me->call, at, from, tw_slot_number(ring, lane, slot));
}

/* A thread, before the warp writes a slot: its last use has been read. Nothing that the peer has
 * written before is read behind it. */
static __device__ inline void tw_slot_reserve(struct tw_block *me, const struct tw_ring *ring,
                                              uint32_t slot, int peer)
{
    const uint32_t number = tw_slot_number(ring, tw_lane_sent(ring), slot);
    const uint32_t *at = tw_drained(me, me->call->rank, peer, number);
    const uint32_t uses = *tw_sent(ring, slot, peer);

    (void)tw_wait_until(me, peer, [&] { return (int32_t)(tw_load(at) - uses) >= 0; });
}

/* All of the warp, after the threads that have reserved it: a slot is written, or a unit of it. */
static __device__ inline char *tw_slot_there(const struct tw_block *me, const struct tw_ring *ring,
                                             uint32_t slot, int peer)
{
    return tw_slot(me, ring, peer, me->call->rank, tw_lane_sent(ring), slot);
}

static __device__ inline void tw_slot_send(const struct tw_block *me, const struct tw_ring *ring,
                                           uint32_t slot, int peer, const uint4 unit[TW_SLOT_UNITS])
{
    tw_slot_store(tw_slot_there(me, ring, slot, peer), unit, *tw_sent(ring, slot, peer) + 1,
                  me->thread);
}

static __device__ inline void tw_unit_send(const struct tw_block *me, const struct tw_ring *ring,
                                           uint32_t slot, int peer, uint32_t i, uint4 unit)
{
    tw_unit_pack(tw_slot_there(me, ring, slot, peer), i, unit, *tw_sent(ring, slot, peer) + 1,
                 me->thread);
}

static __device__ inline void tw_halves_send(const struct tw_block *me, const struct tw_ring *ring,
                                             uint32_t slot, int peer, uint4 halves)
{
    tw_halves_pack(tw_slot_there(me, ring, slot, peer), halves, *tw_sent(ring, slot, peer) + 1,
                   me->thread);
}

/* A thread, after the warp has read a slot and has waited for itself: no load is left that this
 * could overtake, so it needs no fence. */
static __device__ inline void tw_slot_release(const struct tw_block *me, const struct tw_ring *ring,
                                              uint32_t slot, int peer)
{
    const uint32_t number = tw_slot_number(ring, tw_lane_taken(ring), slot);

    tw_store(tw_drained(me, peer, me->call->rank, number), ++*tw_taken(ring, slot, peer));
}

/* All of the warp: what comes in a slot, which is given back. */
static __device__ inline void tw_slot_take(struct tw_block *me, const struct tw_ring *ring,
                                           uint32_t slot, int peer, uint4 unit[TW_SLOT_UNITS])
{
    tw_slot_load(me, peer, tw_slot(me, ring, me->call->rank, peer, tw_lane_taken(ring), slot),
                 *tw_taken(ring, slot, peer) + 1, me->thread, unit);
    tw_warp_sync();
    if (me->thread == 0)
        tw_slot_release(me, ring, slot, peer);
}

#endif
