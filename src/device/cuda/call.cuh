/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a collective call begins and ends: epochs, records.
 * Never knows: element types, what is moved. */
#ifndef TW_DEVICE_CUDA_CALL_CUH
#define TW_DEVICE_CUDA_CALL_CUH

#include "device/cuda/sync.cuh"

/* What this call is, to a peer. */
static __device__ inline void tw_record_write(const struct tw_block *me, int peer)
{
    const struct tw_gk_call *call = me->call;
    struct tw_gk_record *record = tw_inbox(call, peer, call->rank, me->epoch);
    const uint64_t bytes = me->pairs != nullptr ? me->pairs[peer].in_bytes : call->bytes;
    const uint64_t out =
        call->direct ? call->out_word + (uint64_t)(tw_out(me, peer) - call->out) : call->out_word;
    const uint64_t in = me->pairs != nullptr ? tw_expected(me, peer)
                        : call->direct       ? call->in_word
                                             : 0;

    tw_store_pairs(record->pair[TW_GK_WORD_CALL], call->words[TW_GK_WORD_CALL],
                   call->words[TW_GK_WORD_PATH], me->epoch);
    tw_store_pairs(record->pair[TW_GK_WORD_COUNT], (uint32_t)bytes, (uint32_t)(bytes >> 32),
                   me->epoch);
    tw_store_pairs(record->pair[TW_GK_WORD_OUT], (uint32_t)out, (uint32_t)(out >> 32), me->epoch);
    tw_store_pairs(record->pair[TW_GK_WORD_IN], (uint32_t)in, (uint32_t)(in >> 32), me->epoch);
}

/* Until peer has ended the call before the last one: its last record is there, or the one of this
 * rank's next call: the first block has told peer of this call, and a block that comes late may
 * find that peer has gone on. What peer's last call was is for the first block, which comes before.
 */
static __device__ inline void tw_guard(struct tw_block *me, int peer)
{
    const uint32_t last = me->epoch - 1;
    const struct tw_gk_record *record = tw_inbox(me->call, me->call->rank, peer, last);
    uint32_t first = 0, first_epoch, second = 0, second_epoch;

    (void)tw_wait_until(me, peer, [&] {
        tw_look_pairs(record->pair[TW_GK_WORD_CALL], &first, &first_epoch, &second, &second_epoch);
        return (int32_t)(first_epoch - last) >= 0 && (int32_t)(second_epoch - last) >= 0;
    });
    me->before[0] = first;
    me->before[1] = second;
}

/* The first words of a rank's state: have the peers' records of its last call been seen? */
static __device__ inline bool tw_is_met(uint4 state)
{
    return (state.x % 2 == 0 ? state.z : state.w) == state.x;
}

/* All threads. Finds the block's rank and epoch, in a call that has begun or is about to. */
static __device__ inline void tw_resume(const struct tw_gk_launch *launch,
                                        const struct tw_gk_pair *pairs, struct tw_block *me)
{
    const uint32_t place = blockIdx.y;
    const struct tw_gk_call *call = &launch->call[place];

    me->call = call;
    me->pairs = pairs != nullptr ? pairs + place * (uint32_t)call->size : nullptr;
    me->block = blockIdx.x;
    me->blocks = gridDim.x;
    me->thread = (int)(threadIdx.x % TW_GK_GROUP);
    const uint4 state = tw_load_four(&call->state->epoch);
    me->epoch = state.x + 1;
    me->met = tw_is_met(state);
    me->dead = false;
    me->words = nullptr;
    me->keeps = threadIdx.x == 0 && me->blocks == 1;
}

/*
 * All threads. Finds the block's rank and epoch; the first block tells the peers. On return peers
 * may be written to. A rank that has failed goes on without waiting for anybody.
 */
static __device__ inline void tw_begin(const struct tw_gk_launch *launch,
                                       const struct tw_gk_pair *pairs, struct tw_block *me)
{
    const int peer = (int)threadIdx.x;

    tw_resume(launch, pairs, me);
    const struct tw_gk_call *call = me->call;
    if (peer < call->size && peer != call->rank) {
        if (!me->met)
            tw_guard(me, peer);
        if (me->block == 0)
            tw_record_write(me, peer);
    }
    __syncthreads();
    /* all threads have read the epoch */
    if (peer == 0 && me->blocks > 1)
        me->keeps = atomicAdd(&call->state->arrived, 1) == me->blocks - 1;
}

/* Was each peer's last call what this rank's was? A call that needs nothing of the others may have
 * ended before that could be seen. */
static __device__ inline void tw_compare_before(const struct tw_block *me, int peer)
{
    const uint32_t *mine = me->call->state->words[(me->epoch - 1) & 1];
    uint32_t theirs[TW_GK_WORDS];

    if (me->met || me->dead ||
        (mine[TW_GK_WORD_CALL] == me->before[0] && mine[TW_GK_WORD_PATH] == me->before[1]))
        return;
    if (tw_record_read(me, peer, me->epoch - 1, theirs))
        tw_fail_here(me, peer, TW_GK_MISMATCH_BEFORE, theirs);
}

/* All threads of the block. The peers' same block has done its part of the call when it ends.
 * tells: peers that wait for this one; waits: those that are waited for. */
static __device__ inline void tw_part(struct tw_block *me, uint64_t tells, uint64_t waits)
{
    const int peer = (int)threadIdx.x;

    __syncthreads();
    if (peer >= me->call->size || peer == me->call->rank)
        return;
    if (tw_has(tells, peer))
        tw_store_release(&tw_marks(me, peer, me->call->rank)->ended, me->epoch);
    if (tw_has(waits, peer))
        tw_wait_ended(me, peer);
}

/* All threads: is every peer that this rank takes from in the same call, and have all said so? */
static __device__ inline void tw_compare(struct tw_block *me)
{
    const struct tw_gk_call *call = me->call;
    const int peer = (int)threadIdx.x;
    uint32_t words[TW_GK_WORDS];
    bool missed = false;

    if (me->block != 0)
        return;
    if (peer < call->size && peer != call->rank) {
        tw_compare_before(me, peer);
        missed = !tw_has(call->takes, peer) || !tw_record_match(me, peer, words);
    }
    if (__syncthreads_or(missed) == 0 && peer == 0)
        tw_store(&call->state->met[me->epoch & 1], me->epoch);
}

#define TW_EPOCH_SWEEP 0x3fffffffu

/* All threads: what lies in the lines from 2^30 calls ago must not look like today's. This call's
 * epoch is the one that it takes longest to come back to: 0 is an epoch like others. */
static __device__ __noinline__ void tw_sweep(const struct tw_block *me)
{
    const int first = me->call->rank == 0 ? 1 : 0;
    uint4 *lines = (uint4 *)tw_lines(me->call, me->call->rank, first, me->epoch);
    const uint64_t count =
        (uint64_t)(me->call->size - 1) * me->call->layout.line_each / sizeof(uint4);
    const uint64_t threads = (uint64_t)me->blocks * blockDim.x;
    struct tw_gk_state *state = me->call->state;

    __syncthreads();
    if (threadIdx.x == 0) { /* all blocks have read what they take */
        atomicAdd(&state->ended[me->epoch & 1], 1);
        while (tw_load(&state->ended[me->epoch & 1]) < me->blocks) {
        }
    }
    __syncthreads();
    for (uint64_t i = (uint64_t)me->block * blockDim.x + threadIdx.x; i < count; i += threads)
        lines[i] = make_uint4(me->epoch, me->epoch, me->epoch, me->epoch);
    if (me->keeps) /* nor may what was met 2^32 calls ago */
        state->met[(me->epoch + 1) & 1] = me->epoch;
}

/* All threads: the block is done. That which was the last to learn the epoch moves it on: it is
 * seen by the next kernel, which starts when all blocks have ended. */
static __device__ inline void tw_end(const struct tw_block *me)
{
    struct tw_gk_state *state = me->call->state;
    const bool sweeps = ((me->epoch + 1) & TW_EPOCH_SWEEP) < 2;

    if (sweeps)
        tw_sweep(me);
    if (!me->keeps)
        return;
    for (int i = 0; i < TW_GK_WORD_OUT; i++)
        state->words[me->epoch & 1][i] = me->call->words[i];
    state->ended[(me->epoch + 1) & 1] = 0;
    state->arrived = 0;
    state->epoch = me->epoch;
}

#endif
