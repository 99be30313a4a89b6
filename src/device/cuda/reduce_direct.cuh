/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sums where everybody's input and output can be reached: a rank reads its share of every
 * input.
 * Never knows: which types there are, how blocks find each other. */
#ifndef TW_DEVICE_CUDA_REDUCE_DIRECT_CUH
#define TW_DEVICE_CUDA_REDUCE_DIRECT_CUH

#include "device/cuda/adder.cuh"

/* In shared memory: where every rank's input and output lie. */
struct tw_reach {
    const char *in[TW_GK_RANKS_MAX];
    char *out[TW_GK_RANKS_MAX];
};

/* All threads. Peers that take part have begun: what they read is there, what is written to them is
 * free. */
static __device__ inline void tw_reach_begin(struct tw_block *me, struct tw_reach *reach)
{
    const struct tw_gk_call *call = me->call;
    const int peer = (int)threadIdx.x;
    uint32_t words[TW_GK_WORDS] = {};

    if (peer < call->size) {
        reach->in[peer] = peer == call->rank ? call->in : nullptr;
        reach->out[peer] = peer == call->rank ? call->out : nullptr;
    }
    if (peer < call->size && peer != call->rank && tw_has(call->takes, peer) &&
        tw_record_match(me, peer, words)) {
        reach->in[peer] = tw_reached(call, peer, words, TW_GK_WORD_IN);
        reach->out[peer] = tw_reached(call, peer, words, TW_GK_WORD_OUT);
        tw_fence();
    }
    __syncthreads();
}

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

    __device__ inline void sum_unit(uint64_t at)
    {
        const struct tw_gk_call *call = adder.me.call;
        const uint32_t bytes = tw_unit_bytes<uint4>(share.bytes, at / sizeof(uint4));
        const uint32_t elem = sizeof(typename N::bits);
        const auto get = [&](int rank) {
            return tw_unit_load<uint4>(reach->in[rank] + share.at + at, bytes, elem);
        };
        const uint4 sum = adder.template sum<uint4>(get);

        for (int k = 0; k < (ALL ? call->size : 1); k++)
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

        for (int k = 0; k < (ALL ? call->size : 1); k++) {
            char *to = reach->out[tw_around(call, k)] + out_at + at;

#pragma unroll
            for (int i = 0; i < units; i++)
                *(uint4 *)(to + i * step) = sum.unit[i];
        }
    }

    __device__ inline bool aligned() const
    {
        uint64_t all = share.at | out_at;

        for (int rank = 0; rank < adder.me.call->size; rank++)
            all |= (uint64_t)reach->in[rank] | (uint64_t)reach->out[rank];
        return all % sizeof(uint4) == 0;
    }

    __device__ inline void run()
    {
        const struct tw_block *me = &adder.me;
        const uint64_t step = (uint64_t)me->blocks * blockDim.x * sizeof(uint4);
        const uint64_t whole = share.bytes / sizeof(uint4) * sizeof(uint4);
        uint64_t at = ((uint64_t)me->block * blockDim.x + threadIdx.x) * sizeof(uint4);

        if (aligned())
            for (; at + (units - 1) * step < whole; at += units * step)
                sum_pack(at, step);
        for (; at < share.bytes; at += step)
            sum_unit(at);
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

    tw_reach_begin(me, &reach);
    reader.reach = &reach;
    reader.share = ALL ? tw_share_of(call, call->rank)
                       : tw_share{(uint64_t)call->rank * call->in_stride, call->bytes};
    reader.out_at = ALL ? reader.share.at : 0;
    if (call->takes != 0 && !me->dead && !tw_failed(me))
        reader.run();
    tw_part(me, call->takes, call->sends);
    tw_compare(me);
    tw_end(me);
}

#endif
