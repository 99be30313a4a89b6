/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sums of small blocks by lines: one-shot.
 * Never knows: which types there are, how blocks find each other.
 *
 * Source: one-shot and two-shot all_reduce by stores into the peers' memory: Shah et al.,
 * "MSCCL++: Rethinking GPU Communication Abstractions for Cutting-Edge AI Applications",
 * arXiv:2504.09014 (2025); the plan one_shot_put in src/algo is the same schedule.
 */
#ifndef TW_DEVICE_CUDA_REDUCE_LINE_CUH
#define TW_DEVICE_CUDA_REDUCE_LINE_CUH

#include "device/cuda/adder.cuh"
#include "device/cuda/line.cuh"

template <class N>
static __device__ inline void tw_line_send(const tw_adder<N> *adder, uint64_t i, uint2 own)
{
    const struct tw_block *me = &adder->me;
    const struct tw_gk_call *call = me->call;
    const char *in = call->in + i * sizeof(uint2);

    if (adder->scales)
        own = tw_given<N, uint2>(own, adder->scalar);
    for (int k = 1; k < call->size; k++) {
        const int peer = tw_around(call, k);

        if (!tw_has(call->sends, peer))
            continue;
        const uint2 unit = call->in_stride == 0
                               ? own
                               : adder->template given<uint2>(in + (uint64_t)peer * call->in_stride,
                                                              tw_unit_bytes<uint2>(call->bytes, i));
        tw_store_pairs(tw_lines(call, peer, call->rank, me->epoch) + i * 16, unit.x, unit.y,
                       me->epoch);
    }
}

template <class N>
static __device__ inline void tw_line_sum(tw_adder<N> *adder, uint64_t i, uint2 own)
{
    struct tw_block *me = &adder->me;
    const struct tw_gk_call *call = me->call;
    const uint2 given = adder->scales ? tw_given<N, uint2>(own, adder->scalar) : own;
    const auto get = [&](int rank) {
        uint2 unit = given;

        if (rank != call->rank)
            tw_line_wait(me, rank, i, &unit);
        return unit;
    };

    tw_unit_store<uint2>(call->out + i * sizeof(uint2), adder->template sum<uint2>(get),
                         tw_unit_bytes<uint2>(call->bytes, i), sizeof(typename N::bits));
}

/* Unit i of what the rank sums itself. */
template <class N>
static __device__ inline uint2 tw_line_own(const struct tw_gk_call *call, uint64_t i)
{
    return tw_unit_load<uint2>(call->in + (uint64_t)call->rank * call->in_stride +
                                   i * sizeof(uint2),
                               tw_unit_bytes<uint2>(call->bytes, i), sizeof(typename N::bits));
}

template <class N>
__global__ void __launch_bounds__(TW_GK_LINE_THREADS, 1)
    tw_line_reduce(const __grid_constant__ struct tw_gk_launch launch)
{
    const struct tw_gk_call *call = &launch.call[blockIdx.y];
    const uint4 state = tw_line_state(&launch);
    const struct tw_line_units units = tw_line_units_of(call);
    const bool moves = !tw_is_clerk() && units.first < units.all;
    tw_adder<N> adder;
    uint2 own = make_uint2(0, 0);

    if (moves) /* asked for before anything is waited for */
        own = tw_line_own<N>(call, units.first);
    tw_line_begin(&launch, state, &adder.me);
    adder.learn();
    uint2 unit = own;
#pragma unroll 1
    for (uint64_t i = units.first; moves && i < units.all; i += units.step) {
        if (i != units.first)
            unit = tw_line_own<N>(call, i);
        tw_line_send(&adder, i, unit);
    }
    tw_line_sent(&adder.me);
    unit = own;
#pragma unroll 1
    for (uint64_t i = units.first; moves && call->takes != 0 && i < units.all; i += units.step) {
        if (i != units.first)
            unit = tw_line_own<N>(call, i);
        tw_line_sum(&adder, i, unit);
    }
    tw_line_end(&adder.me);
}

#endif
