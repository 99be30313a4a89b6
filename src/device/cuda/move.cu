/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: collectives that put blocks of bytes in their places: by lines, by rings or right into the
 * peers' outputs.
 * Never knows: element types.
 *
 * Source: everybody sends to everybody, as the plans direct (all_gather, all_to_all) and linear
 * (broadcast, gather, scatter) in src/algo; lines after the flag-in-data protocol of NCCL, as its
 * authors describe it (Hu et al., "Demystifying NCCL", arXiv:2507.04786, 2025).
 */
#include "device/cuda/call.cuh"
#include "device/cuda/data.cuh"
#include "device/cuda/kernels.cuh"
#include "device/cuda/move_line.cuh"
#include "device/cuda/ring.cuh"

/* ---- lines -------------------------------------------------------------------------------------
 */

__global__ void __launch_bounds__(TW_GK_LINE_THREADS, 1)
    tw_gk_line_move(const __grid_constant__ struct tw_gk_launch launch)
{
    const struct tw_gk_call *call = &launch.call[blockIdx.y];
    const uint4 state = tw_line_state(&launch);
    const struct tw_line_units units = tw_line_units_of(call);
    const bool moves = !tw_is_clerk() && call->sends != 0 && units.first < units.all;
    const int next = tw_around(call, call->size > 1 ? 1 : 0);
    uint2 ahead = make_uint2(0, 0), unit;
    struct tw_block me;

    if (moves) /* asked for before anything is waited for */
        ahead = line_unit(call, next, units.first);
    tw_line_begin(&launch, state, &me);
    unit = ahead;
#pragma unroll 1
    for (uint64_t i = units.first; moves && i < units.all; i += units.step) {
        if (i != units.first)
            unit = line_unit(call, next, i);
        line_send(&me, i, unit);
    }
    tw_line_sent(&me);
    unit = ahead;
#pragma unroll 1
    for (uint64_t i = units.first; moves && own_moves(&me) && i < units.all; i += units.step) {
        if (i != units.first && call->in_stride == 0)
            unit = line_unit(call, next, i);
        line_own(&me, i, unit);
    }
    if (!tw_is_clerk())
        lines_take(&me, tw_line_thread(&me), tw_line_threads(&me));
    tw_line_end(&me);
}

/* ---- rings -------------------------------------------------------------------------------------
 */

/* Bytes of a block that go by rings or directly. */
static __device__ inline uint64_t in_pieces(const struct tw_block *me, uint64_t bytes)
{
    return me->pairs != nullptr && by_lines(me, bytes) ? 0 : bytes;
}

/* Bytes of a block's piece at `at`, a slot's worth; 0: behind its end, or it goes by lines. */
static __device__ inline uint32_t piece(const struct tw_block *me, uint64_t bytes, uint64_t at)
{
    const uint64_t all = in_pieces(me, bytes), left = at < all ? all - at : 0;

    return left < TW_GK_SLOT_DATA ? (uint32_t)left : TW_GK_SLOT_DATA;
}

/* The same of the own block. */
static __device__ inline uint32_t own_piece(const struct tw_block *me, uint64_t at)
{
    const uint64_t all = tw_in_bytes(me, me->call->rank), left = at < all ? all - at : 0;

    return left < TW_GK_SLOT_DATA ? (uint32_t)left : TW_GK_SLOT_DATA;
}

/* All of the warp. Not inline: next to what is read ahead it would take too many registers. */
static __device__ __noinline__ void piece_copy(char *to, const char *from, uint32_t bytes,
                                               uint32_t elem, int thread)
{
    uint4 unit[TW_SLOT_UNITS];

    tw_piece_get(from, bytes, elem, thread, unit);
    tw_piece_put(to, unit, bytes, elem, thread);
}

/* There is a piece at `at` that goes to the peer by ring. */
static __device__ inline bool by_ring(const struct tw_block *me, const struct tw_ring *ring,
                                      int peer, uint64_t at)
{
    return ring->out[peer] == nullptr && piece(me, tw_in_bytes(me, peer), at) != 0;
}

/* The first peer's piece, ahead of its turn. */
static __device__ inline void piece_fetch(const struct tw_block *me, const struct tw_ring *ring,
                                          uint64_t at, uint4 unit[TW_SLOT_UNITS])
{
    const int peer = tw_around(me->call, 1);

    if (peer != me->call->rank && ring->out[peer] == nullptr)
        tw_piece_get(tw_in(me, peer) + at, piece(me, tw_in_bytes(me, peer), at),
                     me->call->elem_bytes, me->thread, unit);
}

/* directs: to those too who take data in their outputs. unit: as piece_fetch leaves it; then of the
 * piece at `then`, whose loads are under way until its slot is free */
static __device__ inline void piece_send(struct tw_block *me, const struct tw_ring *ring,
                                         uint64_t at, uint32_t slot, bool directs, uint64_t then,
                                         uint4 unit[TW_SLOT_UNITS])
{
    const struct tw_gk_call *call = me->call;

    tw_peers_each(me, [&](int peer) {
        if (by_ring(me, ring, peer, at))
            tw_slot_reserve(me, ring, slot, peer);
    });
    tw_warp_sync();
    for (int k = 1; k < call->size; k++) {
        const int peer = tw_around(call, k);
        const uint32_t bytes = piece(me, tw_in_bytes(me, peer), at);
        const char *from = tw_in(me, peer) + at;

        if (bytes == 0)
            continue;
        if (ring->out[peer] != nullptr) {
            if (directs)
                piece_copy(ring->out[peer] + at, from, bytes, call->elem_bytes, me->thread);
            continue;
        }
        if (k > 1)
            tw_piece_get(from, bytes, call->elem_bytes, me->thread, unit);
        tw_slot_send(me, ring, slot, peer, unit);
    }
    piece_fetch(me, ring, then, unit);
    tw_warp_sync();
    tw_peers_each(me, [&](int peer) {
        if (by_ring(me, ring, peer, at))
            ++*tw_sent(ring, slot, peer);
    });
}

/* And the own block's piece, before what comes is waited for. A slot is given back before its data
 * is stored, which then need not be waited for. */
static __device__ inline void piece_take(struct tw_block *me, const struct tw_ring *ring,
                                         uint64_t at, uint32_t slot)
{
    const struct tw_gk_call *call = me->call;

    if (own_moves(me))
        piece_copy(tw_out(me, call->rank) + at, tw_in(me, call->rank) + at, own_piece(me, at),
                   call->elem_bytes, me->thread);
    tw_warp_sync();
    for (int k = 1; k < call->size; k++) {
        const int peer = tw_around(call, call->size - k);
        const uint32_t bytes = piece(me, tw_out_bytes(me, peer), at);
        uint4 unit[TW_SLOT_UNITS];

        if (bytes == 0)
            continue;
        tw_slot_take(me, ring, slot, peer, unit);
        tw_piece_put(tw_out(me, peer) + at, unit, bytes, call->elem_bytes, me->thread);
    }
}

/* Nobody gets anything by ring. */
static __device__ inline bool all_direct(const struct tw_block *me, const struct tw_ring *ring)
{
    for (int peer = 0; peer < me->call->size; peer++)
        if (peer != me->call->rank && in_pieces(me, tw_in_bytes(me, peer)) != 0 &&
            ring->out[peer] == nullptr)
            return false;
    return true;
}

static __device__ inline uint64_t largest(const struct tw_block *me)
{
    uint64_t most = 0;

    if (me->pairs == nullptr)
        return me->call->bytes;
    for (int peer = 0; peer < me->call->size; peer++) {
        const uint64_t in = tw_in_bytes(me, peer), out = tw_out_bytes(me, peer);

        most = in > most ? in : most;
        most = out > most ? out : most;
    }
    return most;
}

/* Bytes that go right into the outputs of peers. */
static __device__ inline uint64_t direct_bytes(const struct tw_block *me,
                                               const struct tw_ring *ring)
{
    uint64_t all = 0;

    for (int peer = 0; peer < me->call->size; peer++)
        if (peer != me->call->rank && ring->out[peer] != nullptr)
            all += in_pieces(me, tw_in_bytes(me, peer));
    return all;
}

/* Blocks that move the own block while the others keep the links busy. Eight copy as fast as the
 * links of an H200 take what is stored, and a block stores half as fast as it copies. */
#define OWN_BLOCKS 8u
static __device__ inline uint32_t own_blocks(const struct tw_block *me, uint64_t own, uint64_t sent)
{
    const uint64_t third = (me->blocks + 2) / 3, most = third < OWN_BLOCKS ? third : OWN_BLOCKS;

    if (own >= sent)
        return (uint32_t)most;
    return own == 0 ? 0 : (uint32_t)(most * own / sent) + 1;
}

/* All threads of the rank: what goes right into the peers' outputs, and the own block. What comes
 * does not overwrite what is still to go. */
static __device__ inline void move_direct(const struct tw_block *me, const struct tw_ring *ring)
{
    const struct tw_gk_call *call = me->call;
    const uint64_t own = own_moves(me) ? tw_in_bytes(me, call->rank) : 0;
    const uint64_t sent = direct_bytes(me, ring);
    const uint32_t some = sent == 0 ? me->blocks : own_blocks(me, own, sent);
    const bool all_do_both = some == me->blocks; /* it is one block, or nothing is sent */

    if (me->block < some)
        own_move(me, 0, own, me->block * blockDim.x + threadIdx.x, some * blockDim.x);
    if (me->block < some && !all_do_both)
        return;
    const uint32_t first = all_do_both ? 0 : some;
    const uint32_t thread = (me->block - first) * blockDim.x + threadIdx.x;
    const uint32_t threads = (me->blocks - first) * blockDim.x;
    for (int k = 1; k < call->size; k++) {
        const int peer = tw_around(call, k);
        const uint64_t bytes = in_pieces(me, tw_in_bytes(me, peer));

        if (ring->out[peer] != nullptr && bytes != 0)
            tw_copy(ring->out[peer], tw_in(me, peer), bytes, thread, threads);
    }
}

/* The mask, of which only the bit of the thread's own number counts, without it where nothing goes
 * by rings: such a pair does not wait for each other. Both ranks see this alike. */
static __device__ inline uint64_t by_rings(const struct tw_block *me, uint64_t mask, bool to)
{
    const int peer = (int)threadIdx.x;

    if (me->pairs == nullptr || !tw_is_peer(me, peer) ||
        in_pieces(me, to ? tw_in_bytes(me, peer) : tw_out_bytes(me, peer)) != 0)
        return mask;
    return mask & ~((uint64_t)1 << peer);
}

/* Pieces of the warp's ring: f(where they are, slot). */
template <class F>
static __device__ inline void pieces_each(const struct tw_block *me, const struct tw_ring *ring,
                                          const F &f)
{
    const uint64_t bytes = largest(me), step = (uint64_t)ring->count * TW_GK_SLOT_DATA;
    uint32_t slot = 0;

    for (uint64_t at = (uint64_t)ring->number * TW_GK_SLOT_DATA; at < bytes; at += step) {
        f(at, slot);
        slot = slot + 1 < ring->slots ? slot + 1 : 0;
    }
}

/* In place, what is taken overwrites what is sent: a piece is taken after the ring's other warp has
 * sent it, and what goes directly goes by pieces too. */
static __device__ inline void pieces_run(struct tw_block *me, const struct tw_ring *ring,
                                         bool takes, bool directs)
{
    const bool in_turn = takes && me->call->in == me->call->out;

    if (ring->role == TW_PUSHES) {
        uint4 ahead[TW_SLOT_UNITS] = {};

        piece_fetch(me, ring, (uint64_t)ring->number * TW_GK_SLOT_DATA, ahead);
        pieces_each(me, ring, [&](uint64_t at, uint32_t slot) {
            const uint64_t then = at + (uint64_t)ring->count * TW_GK_SLOT_DATA;

            piece_send(me, ring, at, slot, directs, then, ahead);
            if (in_turn)
                tw_pair_sync();
        });
    } else if (takes) {
        pieces_each(me, ring, [&](uint64_t at, uint32_t slot) {
            if (in_turn)
                tw_pair_sync();
            piece_take(me, ring, at, slot);
        });
    }
}

static __device__ inline void rings_run(struct tw_block *me, struct tw_rings *rings)
{
    const uint64_t writes = by_rings(me, me->call->sends, true);
    struct tw_ring ring;

    tw_rings_begin(me, rings, 1, writes, &ring);
    const bool direct = me->call->direct || me->call->takes == 0;
    const bool takes = !me->call->direct && me->call->takes != 0;

    if (direct)
        move_direct(me, &ring);
    if (tw_ring_runs(&ring) && (takes || !all_direct(me, &ring)))
        pieces_run(me, &ring, takes, !direct);
    tw_compare(me);
    tw_rings_end(me, &ring, writes, by_rings(me, me->call->takes, false));
}

__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_gk_ring_move(const __grid_constant__ struct tw_gk_launch launch)
{
    __shared__ struct tw_rings rings;
    struct tw_block me;

    tw_begin(&launch, nullptr, &me);
    rings_run(&me, &rings);
    tw_end(&me);
}

/* Each pair of ranks goes by the bytes between them, which only these two may know. */
__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_gk_move_v(const __grid_constant__ struct tw_gk_launch_v launch)
{
    __shared__ struct tw_rings rings;
    struct tw_block me;

    tw_begin(&launch.launch, launch.pairs, &me);
    const uint32_t threads = me.blocks * blockDim.x;
    const uint32_t thread = me.block * blockDim.x + threadIdx.x;

    lines_send(&me, thread, threads);
    lines_take(&me, thread, threads);
    rings_run(&me, &rings);
    tw_end(&me);
}
