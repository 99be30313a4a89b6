/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a call by lines begins and ends: as fast as it can be done.
 * Never knows: what the lines carry.
 *
 * Everything that a call has to read before it can send is asked for at once. The last warp of each
 * block is the clerk: it sees to records, so that the others go on with data meanwhile.
 */
#ifndef TW_DEVICE_CUDA_LINE_CUH
#define TW_DEVICE_CUDA_LINE_CUH

#include "device/cuda/call.cuh"

#define TW_CLERKS 32u

/* The units of a block of the call that a thread moves, where all blocks are alike: from the first
 * on, each so many behind the last one. */
struct tw_line_units {
    uint64_t first, step, all;
};
static __device__ inline struct tw_line_units tw_line_units_of(const struct tw_gk_call *call)
{
    const uint32_t each = blockDim.x - TW_CLERKS;

    return {(uint64_t)blockIdx.x * each + threadIdx.x, (uint64_t)gridDim.x * each,
            (call->bytes + sizeof(uint2) - 1) / sizeof(uint2)};
}

/* Threads of a block, and of a rank, that move data. */
static __device__ inline uint32_t tw_line_threads(const struct tw_block *me)
{
    return me->blocks * (blockDim.x - TW_CLERKS);
}
static __device__ inline uint32_t tw_line_thread(const struct tw_block *me)
{
    return me->block * (blockDim.x - TW_CLERKS) + threadIdx.x;
}
static __device__ inline bool tw_is_clerk() { return threadIdx.x >= blockDim.x - TW_CLERKS; }

/* What a clerk has read of a peer before it knew the epoch: of both halves. */
struct tw_glance {
    uint32_t first[2], second[2], epoch[2];
};

static __device__ inline void tw_glance_at(const struct tw_block *me, int peer,
                                           struct tw_glance *glance)
{
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t other;

        tw_look_pairs(tw_inbox(me->call, me->call->rank, peer, half)->pair[TW_GK_WORD_CALL],
                      &glance->first[half], &glance->epoch[half], &glance->second[half], &other);
        if (other != glance->epoch[half])
            glance->epoch[half] = me->epoch; /* half of it: not that of the last call */
    }
}

/* A peer's last record is there, as tw_guard has it. */
static __device__ inline void tw_clerk_peer(struct tw_block *me, int peer)
{
    const uint32_t last = me->epoch - 1;
    struct tw_glance glance;

    tw_glance_at(me, peer, &glance);
    me->before[0] = glance.first[last & 1];
    me->before[1] = glance.second[last & 1];
    if (glance.epoch[last & 1] != last)
        tw_guard(me, peer);
}

/* The clerks', each its peers: f(peer). */
template <class F>
static __device__ inline void tw_clerk_peers(const struct tw_gk_call *call, const F &f)
{
    for (int peer = (int)(threadIdx.x % TW_CLERKS); peer < call->size; peer += TW_CLERKS)
        if (peer != call->rank)
            f(peer);
}

/* The clerks wait for their peers' last records, which no call has seen. That is rare, and not in
 * the way of the others: what it finds comes back by value. */
struct tw_guarded {
    uint32_t before[2];
    bool dead;
};
static __device__ __noinline__ struct tw_guarded tw_line_guard(const struct tw_gk_call *call,
                                                               uint32_t epoch)
{
    struct tw_block me = {.call = call, .epoch = epoch};

    tw_clerk_peers(call, [&](int peer) { tw_clerk_peer(&me, peer); });
    return {{me.before[0], me.before[1]}, me.dead};
}

/* What tw_line_begin has to know of the rank's state: it is asked for before anything else, once
 * the kernel in front has ended. */
static __device__ inline uint4 tw_line_state(const struct tw_gk_launch *launch)
{
    tw_grid_await();
    if ((launch->early & TW_GK_LEADS) != 0)
        tw_grid_next();
    return tw_load_four(&launch->call[blockIdx.y].state->epoch);
}

/* All threads. On return peers may be written to: their records of the last call have been seen,
 * by that call itself or here. The first block's clerks tell them of this call. */
static __device__ inline void tw_line_begin(const struct tw_gk_launch *launch, uint4 state,
                                            struct tw_block *me)
{
    const struct tw_gk_call *call = &launch->call[blockIdx.y];

    me->call = call;
    me->pairs = nullptr;
    me->block = blockIdx.x;
    me->blocks = gridDim.x;
    me->dead = false;
    me->words = nullptr;
    me->epoch = state.x + 1;
    me->met = tw_is_met(state);
    if (__builtin_expect(!me->met, 0)) {
        if (tw_is_clerk()) {
            const struct tw_guarded guarded = tw_line_guard(call, me->epoch);

            me->before[0] = guarded.before[0];
            me->before[1] = guarded.before[1];
            me->dead = guarded.dead;
        }
        __syncthreads();
    }
    if (me->block == 0 && tw_is_clerk())
        tw_clerk_peers(call, [&](int peer) { tw_record_write(me, peer); });
}

/* All threads, once what they send is on its way: all of them have read the epoch. */
static __device__ inline void tw_line_sent(struct tw_block *me)
{
    __syncthreads();
    me->keeps = threadIdx.x == 0 &&
                (me->blocks == 1 || atomicAdd(&me->call->state->arrived, 1) == me->blocks - 1);
}

/* The clerks of the first block: is every peer in the same call, and have all said so? */
static __device__ inline void tw_line_compare(struct tw_block *me)
{
    const struct tw_gk_call *call = me->call;
    bool met = true;

    tw_clerk_peers(call, [&](int peer) {
        uint32_t words[TW_GK_WORDS];

        if (!me->met &&
            call->size <= (int)TW_CLERKS) /* of more, `before` is of the last one only */
            tw_compare_before(me, peer);
        met &= tw_has(call->takes, peer) && tw_record_match(me, peer, words);
    });
    if (tw_warp_all(met) && threadIdx.x % TW_CLERKS == 0)
        tw_store(&call->state->met[me->epoch & 1], me->epoch);
}

/* All threads. */
static __device__ inline void tw_line_end(struct tw_block *me)
{
    if (me->block == 0 && tw_is_clerk())
        tw_line_compare(me);
    tw_end(me);
}

#endif
