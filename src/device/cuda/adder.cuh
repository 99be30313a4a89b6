/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a block has to know of a collective that sums; which rank sums what.
 * Never knows: how data travels. */
#ifndef TW_DEVICE_CUDA_ADDER_CUH
#define TW_DEVICE_CUDA_ADDER_CUH

#include <cstring>

#include "device/cuda/call.cuh"
#include "device/cuda/data.cuh"
#include "device/cuda/kernels.cuh"
#include "device/cuda/value.cuh"

template <class N> struct tw_adder {
    struct tw_block me;
    typename N::bits scalar;
    uint32_t op;
    bool scales;

    __device__ inline void begin(const struct tw_gk_launch *launch, const struct tw_gk_pair *pairs)
    {
        tw_begin(launch, pairs, &me);
        learn();
    }

    /* What there is to know of the operation. */
    __device__ inline void learn()
    {
        op = me.call->op;
        scales = op == TW_GK_PREMUL;
        const void *at = me.call->scalar_at != nullptr ? me.call->scalar_at : &me.call->scalar;
        if (scales)
            memcpy(&scalar, at, sizeof scalar);
    }

    /* A unit of this rank's input, at `at`. */
    template <class V> __device__ inline V given(const char *at, uint32_t bytes) const
    {
        const V unit = tw_unit_load<V>(at, bytes, sizeof(typename N::bits));

        return scales ? tw_given<N, V>(unit, scalar) : unit;
    }

    /* One rank's sum keeps the bits that come in. */
    template <class V, class Get> __device__ inline V sum(const Get &get) const
    {
        return me.call->size == 1 && op != TWILL_AVG ? get(0)
                                                     : tw_tree<N, V, Get>(op, me.call->size, get);
    }
};

/* Bytes of what one rank sums: a share of the vector, or a block of its own. */
struct tw_share {
    uint64_t at, bytes;
};

/* Shares are whole units; the first ones have one more. */
static __device__ inline struct tw_share tw_share_of(const struct tw_gk_call *call, int rank)
{
    const uint64_t units = (call->bytes + sizeof(uint4) - 1) / sizeof(uint4);
    const uint64_t each = units / (uint32_t)call->size, more = units % (uint32_t)call->size;
    const uint64_t first = each * (uint32_t)rank + ((uint64_t)rank < more ? (uint64_t)rank : more);
    const uint64_t at = first * sizeof(uint4);
    const uint64_t end = at + (each + ((uint64_t)rank < more)) * sizeof(uint4);

    return {at, (end < call->bytes ? end : call->bytes) - (at < call->bytes ? at : call->bytes)};
}

#endif
