/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sums where everybody's input and output can be reached: a rank reads its share of every
 * input, or two ranks push each other's.
 * Never knows: which types there are, how blocks find each other. */
#ifndef TW_DEVICE_CUDA_REDUCE_DIRECT_CUH
#define TW_DEVICE_CUDA_REDUCE_DIRECT_CUH

#include "device/cuda/adder.cuh"
#include "device/cuda/push.cuh"

/* In shared memory: where every rank's input and output lie. Of a peer that pushes, in the place of
 * its input: where of this rank's output what it pushes would lie in an input. */
struct tw_reach {
    const char *in[TW_GK_RANKS_MAX];
    char *out[TW_GK_RANKS_MAX];
    enum tw_way way; /* of two ranks alike; of more: reads */
    struct tw_pusher pusher;
};

/* What a rank sums: of every input. */
template <bool ALL>
static __device__ inline struct tw_share tw_own_share(const struct tw_gk_call *call, int rank)
{
    return ALL ? tw_share_of(call, rank) : tw_share{(uint64_t)rank * call->in_stride, call->bytes};
}

/* One thread. The peer pushes, and is pushed to. In place its input is where it is until the first
 * chunks have been read. */
template <bool ALL>
static __device__ inline void tw_reach_push(const struct tw_block *me, int peer,
                                            struct tw_reach *reach)
{
    const struct tw_gk_call *call = me->call;
    const struct tw_share theirs = tw_own_share<ALL>(call, peer);
    const struct tw_share own = tw_own_share<ALL>(call, call->rank);
    struct tw_pusher *pusher = &reach->pusher;

    if (reach->way == TW_WAY_PUSH)
        reach->in[peer] = call->out - (ALL ? 0 : own.at);
    pusher->from = call->in + theirs.at;
    pusher->to = reach->out[peer] + (ALL ? theirs.at : 0);
    pusher->bytes = theirs.bytes;
    pusher->own = call->out + own.at;
    pusher->own_to = reach->out[peer] + own.at;
    pusher->own_bytes = own.bytes;
    tw_pusher_count(me, tw_own_share<ALL>(call, 0).bytes, pusher);
}

/* All threads, in place: from now on what the peer gives lies in this rank's buffer, in the peer's
 * share, so many chunks before its place in an input. */
static __device__ inline void tw_reach_swap(const struct tw_block *me, struct tw_reach *reach)
{
    const struct tw_pusher *pusher = &reach->pusher;

    __syncthreads();
    if (threadIdx.x == 0)
        reach->in[1 - me->call->rank] = me->call->out + (pusher->from - pusher->own) -
                                        (uint64_t)TW_PUSH_AHEAD * me->blocks * me->call->chunk;
    __syncthreads();
}

/* All threads. Peers that take part have begun: what they read is there, what is written to them is
 * free. */
template <bool ALL>
static __device__ inline void tw_reach_begin(struct tw_block *me, struct tw_reach *reach)
{
    const struct tw_gk_call *call = me->call;
    const int peer = (int)threadIdx.x;
    uint32_t words[TW_GK_WORDS] = {};

    if (peer < call->size) {
        reach->in[peer] = peer == call->rank ? call->in : nullptr;
        reach->out[peer] = peer == call->rank ? call->out : nullptr;
    }
    if (peer < call->size && peer != call->rank) {
        const bool there = tw_has(call->takes, peer) && tw_record_match(me, peer, words);
        const enum tw_way way = there ? tw_way_of(call, words) : TW_WAY_READ;

        if (there) {
            words[TW_GK_WORD_IN + 1] &= ~(uint32_t)((TW_GK_APART | TW_GK_SAME) >> 32);
            reach->in[peer] = tw_reached(call, peer, words, TW_GK_WORD_IN);
            reach->out[peer] = tw_reached(call, peer, words, TW_GK_WORD_OUT);
            tw_fence();
        }
        if (call->chunk != 0)
            reach->way = way;
        if (way != TW_WAY_READ)
            tw_reach_push<ALL>(me, peer, reach);
    }
    __syncthreads();
}

/* A thread's units: from `at` on, `step` bytes from one to the next, those before `end`. */
struct tw_span {
    uint64_t at, end, step;
};

/* Not of created sums: a rank's scalar is known to it alone. */
template <class N, bool ALL> struct tw_reader {
    /* so many that the partial results fit in registers */
    static constexpr int units = sizeof(typename N::bits) == 1   ? 1
                                 : sizeof(typename N::bits) == 2 ? 2
                                                                 : 4;
    tw_adder<N> adder;
    const struct tw_reach *reach;
    struct tw_share share; /* of the inputs */
    uint64_t out_at;
    int outs;     /* that the sum is stored to, from the own one on */
    bool aligned; /* all addresses, by units */

    __device__ inline void sum_unit(uint64_t at)
    {
        const struct tw_gk_call *call = adder.me.call;
        const uint32_t bytes = tw_unit_bytes<uint4>(share.bytes, at / sizeof(uint4));
        const uint32_t elem = sizeof(typename N::bits);
        const auto get = [&](int rank) {
            return tw_unit_load<uint4>(reach->in[rank] + share.at + at, bytes, elem);
        };
        const uint4 sum = adder.template sum<uint4>(get);

        for (int k = 0; k < outs; k++)
            tw_unit_store<uint4>(reach->out[tw_around(call, k)] + out_at + at, sum, bytes, elem);
    }

    /* Whole units, and all addresses are aligned by them. */
    __device__ inline void sum_pack(uint64_t at, uint64_t step)
    {
        const struct tw_gk_call *call = adder.me.call;
        const auto get = [&](int rank) {
            const char *from = reach->in[rank] + share.at + at;
            tw_pack<units> pack;

#pragma unroll
            for (int k = 0; k < units; k++)
                pack.unit[k] = __ldcg((const uint4 *)(from + k * step));
            return pack;
        };
        const tw_pack<units> sum = adder.template sum<tw_pack<units>>(get);

        for (int k = 0; k < outs; k++) {
            char *to = reach->out[tw_around(call, k)] + out_at + at;

#pragma unroll
            for (int i = 0; i < units; i++)
                *(uint4 *)(to + i * step) = sum.unit[i];
        }
    }

    __device__ inline bool all_aligned() const
    {
        uint64_t all = share.at | out_at;

        for (int rank = 0; rank < adder.me.call->size; rank++)
            all |= (uint64_t)reach->in[rank] | (uint64_t)reach->out[rank];
        return all % sizeof(uint4) == 0;
    }

    __device__ inline void sum_span(struct tw_span span)
    {
        const uint64_t all = share.bytes / sizeof(uint4) * sizeof(uint4);
        const uint64_t whole = all < span.end ? all : span.end;

        if (aligned)
            for (; span.at + (units - 1) * span.step < whole; span.at += units * span.step)
                sum_pack(span.at, span.step);
        for (; span.at < span.end; span.at += span.step)
            sum_unit(span.at);
    }

    __device__ inline void begin(const struct tw_reach *all)
    {
        reach = all;
        share = tw_own_share<ALL>(adder.me.call, adder.me.call->rank);
        out_at = ALL ? share.at : 0;
        outs = ALL && (adder.me.call->chunk == 0 || reach->way != TW_WAY_SWAP) ? adder.me.call->size
                                                                               : 1;
        aligned = all_aligned();
    }

    /* What this rank sums, at once. */
    __device__ inline struct tw_span span_all() const
    {
        const struct tw_block *me = &adder.me;
        const uint64_t first = (uint64_t)me->block * blockDim.x + threadIdx.x;

        return {first * sizeof(uint4), share.bytes,
                (uint64_t)me->blocks * blockDim.x * sizeof(uint4)};
    }

    __device__ inline struct tw_span span_chunk(uint64_t at) const
    {
        const uint64_t end = at + adder.me.call->chunk;

        return {at + threadIdx.x * sizeof(uint4), end < share.bytes ? end : share.bytes,
                blockDim.x * sizeof(uint4)};
    }

    /* All at once, or chunk by chunk: the code that sums is most of the kernel, and there once. The
     * first turns of pushes only give, and of those in place only read. */
    __device__ inline void run(struct tw_reach *all)
    {
        struct tw_block *me = &adder.me;
        const struct tw_pusher *pusher = &reach->pusher;
        const enum tw_way way = me->call->chunk != 0 ? reach->way : TW_WAY_READ;
        const uint32_t turns = way != TW_WAY_READ          ? pusher->chunks + TW_PUSH_AHEAD
                               : me->dead || tw_failed(me) ? 0
                                                           : 1;

#pragma unroll 1
        for (uint32_t turn = 0; turn < turns; turn++) {
            const bool first = turn < TW_PUSH_AHEAD;

            if (way == TW_WAY_PUSH) {
                tw_push_give(me, pusher, turn);
                if (first)
                    continue;
            }
            if (way == TW_WAY_SWAP && turn == TW_PUSH_AHEAD)
                tw_reach_swap(me, all);
            if (way != TW_WAY_READ && !first && !tw_push_take(me, pusher, turn - TW_PUSH_AHEAD))
                break;
            const uint32_t number = way == TW_WAY_SWAP ? turn : turn - TW_PUSH_AHEAD;
            sum_span(way != TW_WAY_READ ? span_chunk(tw_push_at(me, number)) : span_all());
            if (way == TW_WAY_SWAP) {
                tw_swap_give(me, pusher, turn);
                tw_swap_ends(me, pusher, turn);
            }
        }
        if (way != TW_WAY_READ)
            tw_push_end(me, pusher);
    }
};

template <class N, bool ALL>
__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_direct_reduce(const __grid_constant__ struct tw_gk_launch launch)
{
    __shared__ struct tw_reach reach;
    tw_reader<N, ALL> reader;

    reader.adder.begin(&launch, nullptr);
    struct tw_block *me = &reader.adder.me;
    const struct tw_gk_call *call = me->call;

    tw_reach_begin<ALL>(me, &reach);
    reader.begin(&reach);
    if (call->takes != 0)
        reader.run(&reach);
    tw_part(me, call->takes, call->sends);
    tw_compare(me);
    tw_end(me);
}

#endif
