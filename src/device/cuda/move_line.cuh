/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how small blocks get to their places: by lines, and the own one.
 * Never knows: element types' meaning, what goes otherwise. */
#ifndef TW_DEVICE_CUDA_MOVE_LINE_CUH
#define TW_DEVICE_CUDA_MOVE_LINE_CUH

#include "device/cuda/data.cuh"
#include "device/cuda/line.cuh"

/* The own block is not in its place already. */
static __device__ inline bool own_moves(const struct tw_block *me)
{
    const int rank = me->call->rank;

    return tw_has(me->call->takes, rank) && tw_in(me, rank) != tw_out(me, rank);
}

static __device__ inline void own_move(const struct tw_block *me, uint64_t at, uint64_t most,
                                       uint32_t thread, uint32_t threads)
{
    const int rank = me->call->rank;
    const uint64_t all = tw_in_bytes(me, rank);

    if (at >= all || !own_moves(me))
        return;
    tw_copy(tw_out(me, rank) + at, tw_in(me, rank) + at, all - at < most ? all - at : most, thread,
            threads);
}

/* ---- lines -------------------------------------------------------------------------------------
 */

/* Blocks that are short enough. */
static __device__ inline bool by_lines(const struct tw_block *me, uint64_t bytes)
{
    return bytes <= me->call->layout.line_each / 2;
}

static __device__ inline void lines_send(const struct tw_block *me, uint32_t thread,
                                         uint32_t threads)
{
    const struct tw_gk_call *call = me->call;

    for (int k = 1; k < call->size; k++) {
        const int peer = tw_around(call, k);
        const uint64_t bytes = tw_in_bytes(me, peer);
        char *lines = tw_lines(call, peer, call->rank, me->epoch);

        if (!by_lines(me, bytes))
            continue;
        for (uint64_t i = thread; i * sizeof(uint2) < bytes; i += threads) {
            const uint2 unit =
                tw_unit_load<uint2>(tw_in(me, peer) + i * sizeof(uint2),
                                    tw_unit_bytes<uint2>(bytes, i), call->elem_bytes);

            tw_store_pairs(lines + i * 16, unit.x, unit.y, me->epoch);
        }
    }
}

static __device__ inline void lines_take(struct tw_block *me, uint32_t thread, uint32_t threads)
{
    const struct tw_gk_call *call = me->call;

    for (int k = 1; k < call->size; k++) {
        const int peer = tw_around(call, call->size - k);
        const uint64_t bytes = tw_out_bytes(me, peer);

        if (!by_lines(me, bytes))
            continue;
        for (uint64_t i = thread; i * sizeof(uint2) < bytes; i += threads) {
            uint2 unit;

            tw_line_wait(me, peer, i, &unit);
            tw_unit_store<uint2>(tw_out(me, peer) + i * sizeof(uint2), unit,
                                 tw_unit_bytes<uint2>(bytes, i), call->elem_bytes);
        }
    }
}

/* Where all blocks are alike: unit i of that for a peer, or of the own one. */
static __device__ inline uint2 line_unit(const struct tw_gk_call *call, int peer, uint64_t i)
{
    return tw_unit_load<uint2>(call->in + (uint64_t)peer * call->in_stride + i * sizeof(uint2),
                               tw_unit_bytes<uint2>(call->bytes, i), call->elem_bytes);
}

/* ahead: unit i of what goes to the next rank. */
static __device__ inline void line_send(const struct tw_block *me, uint64_t i, uint2 ahead)
{
    const struct tw_gk_call *call = me->call;

#pragma unroll 1
    for (int k = 1; k < call->size; k++) {
        const int peer = tw_around(call, k);

        if (!tw_has(call->sends, peer))
            continue;
        const uint2 unit = k == 1 || call->in_stride == 0 ? ahead : line_unit(call, peer, i);
        tw_store_pairs(tw_lines(call, peer, call->rank, me->epoch) + i * 16, unit.x, unit.y,
                       me->epoch);
    }
}

/* The own block, where it is not in its place already: by the thread's units, which it has loaded
 * in part. */
static __device__ inline void line_own(const struct tw_block *me, uint64_t i, uint2 ahead)
{
    const struct tw_gk_call *call = me->call;
    const uint2 unit = call->in_stride == 0 ? ahead : line_unit(call, call->rank, i);

    tw_unit_store<uint2>(tw_out(me, call->rank) + i * sizeof(uint2), unit,
                         tw_unit_bytes<uint2>(call->bytes, i), call->elem_bytes);
}

#endif
