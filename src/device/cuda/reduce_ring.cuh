/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sums by rings: two-shot, and its first half alone.
 * Never knows: which types there are, how blocks find each other.
 *
 * Source: one-shot and two-shot all_reduce by stores into the peers' memory: Shah et al.,
 * "MSCCL++: Rethinking GPU Communication Abstractions for Cutting-Edge AI Applications",
 * arXiv:2504.09014 (2025); the plan two_shot_put in src/algo is the same schedule.
 */
#ifndef TW_DEVICE_CUDA_REDUCE_RING_CUH
#define TW_DEVICE_CUDA_REDUCE_RING_CUH

#include "device/cuda/adder.cuh"
#include "device/cuda/ring.cuh"

/* A slot's worth of a share: piece `number` of the group's ring. */
static __device__ inline struct tw_share tw_piece(const struct tw_rings *rings,
                                                  struct tw_share share, uint64_t number)
{
    const uint64_t most = rings->bytes, at = (number * rings->count + rings->ring) * most;
    const uint64_t left = at < share.bytes ? share.bytes - at : 0;

    return {share.at + at, left < most ? left : most};
}

/* How the input is shared out: all_reduce; blocks alike; blocks that differ. */
enum tw_sharing { TW_SHARE_ALL, TW_SHARE_BLOCKS, TW_SHARE_PAIRS };

template <class N, tw_sharing SHARING> struct tw_summer {
    static constexpr bool ALL = SHARING == TW_SHARE_ALL;

    tw_adder<N> adder;
    struct tw_rings *rings;

    __device__ inline struct tw_share share(int rank) const
    {
        const struct tw_gk_call *call = adder.me.call;

        if constexpr (ALL)
            return tw_share_of(call, rank);
        else if constexpr (SHARING == TW_SHARE_PAIRS)
            return {adder.me.pairs[rank].in_at, adder.me.pairs[rank].in_bytes};
        else
            return {(uint64_t)rank * call->in_stride, call->bytes};
    }

    __device__ inline struct tw_share piece(int rank, uint64_t number) const
    {
        return tw_piece(rings, share(rank), number);
    }

    __device__ inline bool sends(int peer, uint64_t number) const
    {
        return tw_has(adder.me.call->sends, peer) && piece(peer, number).bytes != 0;
    }

    __device__ inline void given_piece(struct tw_share from, uint4 unit[TW_SLOT_UNITS]) const
    {
        const char *in = adder.me.call->in + from.at;
        const uint32_t bytes = (uint32_t)from.bytes;

        if (adder.scales) {
#pragma unroll
            for (uint32_t i = 0; i < TW_SLOT_UNITS; i++) {
                const uint32_t at = tw_unit_at(adder.me.thread, i);

                unit[i] = adder.template given<uint4>(in + at, tw_part_bytes(bytes, at));
            }
        } else {
            tw_piece_get(in, bytes, sizeof(typename N::bits), adder.me.thread, unit);
        }
    }

    /* The first peer's share, ahead of its turn. */
    __device__ inline void push_fetch(uint64_t number, uint4 unit[TW_SLOT_UNITS]) const
    {
        if (adder.me.call->size > 1)
            given_piece(piece(tw_around(adder.me.call, 1), number), unit);
    }

    /* Every peer's share of the input goes to its ring. unit: as push_fetch leaves it; then of the
     * next piece, which is under way while this one's stores are waited for */
    __device__ inline void push(uint64_t number, uint4 unit[TW_SLOT_UNITS])
    {
        struct tw_block *me = &adder.me;
        const struct tw_gk_call *call = me->call;
        const uint32_t slot = number % TW_GK_SLOTS;
        const bool mine = tw_is_peer(me, me->thread) && sends(me->thread, number);

        if (mine)
            tw_slot_reserve(me, rings, 0, slot, me->thread);
        tw_group_sync();
        for (int k = 1; k < call->size; k++) {
            const int peer = tw_around(call, k);
            const struct tw_share from = piece(peer, number);

            if (!tw_has(call->sends, peer))
                continue;
            if (k > 1)
                given_piece(from, unit);
            tw_slot_store(tw_slot(me, rings, peer, call->rank, 0, slot), unit, (uint32_t)from.bytes,
                          me->thread);
        }
        tw_group_sync();
        push_fetch(number + 1, unit);
        if (mine)
            tw_slot_sent(me, rings, 0, slot, me->thread);
    }

    /* With one lane a peer that is in another call has neither an output nor slots for sums. */
    __device__ inline bool sum_by_ring(int peer) const
    {
        return ALL && rings->lanes == 2 && rings->out[peer] == nullptr;
    }

    /* The own share's piece is summed; of an all_reduce, everybody gets it. A slot is given back
     * before the sums are stored, which then need not be waited for. */
    __device__ inline void reduce(uint64_t number)
    {
        struct tw_block *me = &adder.me;
        const struct tw_share own = piece(me->call->rank, number);
        const uint32_t slot = number % TW_GK_SLOTS;
        const bool peer = tw_is_peer(me, me->thread);
        const bool by_ring = peer && sum_by_ring(me->thread);
        uint4 unit[TW_SLOT_UNITS];

        if (own.bytes == 0)
            return;
        given_piece(own, unit);
        if (peer)
            tw_slot_await(me, rings, 0, slot, me->thread);
        tw_group_sync();
        sum_piece((uint32_t)own.bytes, slot, unit);
        if (by_ring)
            tw_slot_reserve(me, rings, 1, slot, me->thread);
        tw_group_seen(unit);
        if (peer)
            tw_slot_release(me, rings, 0, slot, me->thread);
        put_piece(own, slot, unit);
        if (!ALL || rings->lanes == 1)
            return;
        tw_group_sync();
        if (by_ring)
            tw_slot_sent(me, rings, 1, slot, me->thread);
    }

    /* Units that are summed together: so many that the partial results fit in registers. */
    static constexpr uint32_t units = sizeof(typename N::bits) == 1   ? 1
                                      : sizeof(typename N::bits) == 2 ? 2
                                                                      : TW_SLOT_UNITS;

    /* Those from `first` on. No index that the compiler does not know: they stay in registers. */
    static __device__ inline tw_pack<units> some(const uint4 unit[TW_SLOT_UNITS], uint32_t first)
    {
        tw_pack<units> pack;

#pragma unroll
        for (uint32_t i = 0; i < TW_SLOT_UNITS; i++)
            if (i / units == first / units)
                pack.unit[i % units] = unit[i];
        return pack;
    }

    /* unit: the own ones, then the sums */
    __device__ inline void sum_piece(uint32_t bytes, uint32_t slot, uint4 unit[TW_SLOT_UNITS])
    {
        const struct tw_block *me = &adder.me;
        const struct tw_gk_call *call = me->call;
        const int next = tw_around(call, 1);
        uint4 of_next[TW_SLOT_UNITS];

        if (next != call->rank)
            tw_slot_load(tw_slot(me, rings, call->rank, next, 0, slot), bytes, me->thread, of_next);
#pragma unroll 1
        for (uint32_t first = 0; first < TW_SLOT_UNITS; first += units) {
            const auto get = [&](int rank) {
                if (rank == call->rank)
                    return some(unit, first);
                if (rank == next)
                    return some(of_next, first);
                uint4 others[TW_SLOT_UNITS];
                tw_slot_load(tw_slot(me, rings, call->rank, rank, 0, slot), bytes, me->thread,
                             others);
                return some(others, first);
            };
            const tw_pack<units> sum = adder.template sum<tw_pack<units>>(get);

#pragma unroll
            for (uint32_t i = 0; i < TW_SLOT_UNITS; i++)
                if (i / units == first / units)
                    unit[i] = sum.unit[i % units];
        }
    }

    __device__ inline void put_piece(struct tw_share own, uint32_t slot,
                                     const uint4 unit[TW_SLOT_UNITS])
    {
        const struct tw_block *me = &adder.me;
        const struct tw_gk_call *call = me->call;
        const uint64_t out_at = own.at - (ALL ? 0 : share(call->rank).at);
        const uint32_t bytes = (uint32_t)own.bytes, elem = sizeof(typename N::bits);

        for (int k = 1; ALL && k < call->size; k++) {
            const int peer = tw_around(call, k);

            if (rings->out[peer] != nullptr)
                tw_piece_put(rings->out[peer] + out_at, unit, bytes, elem, me->thread);
            else if (sum_by_ring(peer))
                tw_slot_store(tw_slot(me, rings, peer, call->rank, 1, slot), unit, bytes,
                              me->thread);
        }
        tw_piece_put(call->out + out_at, unit, bytes, elem, me->thread);
    }

    /* All_reduce by ring: the peers' sums come in. */
    __device__ inline void gather(uint64_t number)
    {
        struct tw_block *me = &adder.me;
        const struct tw_gk_call *call = me->call;
        const uint32_t slot = number % TW_GK_SLOTS;
        const bool mine = tw_is_peer(me, me->thread) && piece(me->thread, number).bytes != 0;

        if (mine)
            tw_slot_await(me, rings, 1, slot, me->thread);
        tw_group_sync();
        for (int k = 1; k < call->size; k++) {
            const int peer = tw_around(call, call->size - k);
            const struct tw_share from = piece(peer, number);
            uint4 unit[TW_SLOT_UNITS];

            tw_slot_load(tw_slot(me, rings, call->rank, peer, 1, slot), (uint32_t)from.bytes,
                         me->thread, unit);
            tw_group_seen(unit);
            if (mine && me->thread == peer)
                tw_slot_release(me, rings, 1, slot, peer);
            tw_piece_put(call->out + from.at, unit, (uint32_t)from.bytes, sizeof(typename N::bits),
                         me->thread);
        }
    }

    /* The first one, except where they differ. */
    __device__ inline uint64_t largest_share() const
    {
        uint64_t most = share(0).bytes;

        for (int rank = 1; SHARING == TW_SHARE_PAIRS && rank < adder.me.call->size; rank++)
            most = share(rank).bytes > most ? share(rank).bytes : most;
        return most;
    }

    /* Most pieces that any share has in the group's ring. */
    __device__ inline uint64_t pieces() const
    {
        const uint64_t all = (largest_share() + rings->bytes - 1) / rings->bytes;

        return all > rings->ring ? (all - rings->ring + rings->count - 1) / rings->count : 0;
    }

    __device__ inline void run()
    {
        const struct tw_gk_call *call = adder.me.call;
        const uint64_t count = pieces();

        if (rings->role == TW_TAKES && call->takes == 0)
            return;
        if (rings->role == TW_GATHERS && call->direct)
            return;
        uint4 ahead[TW_SLOT_UNITS];

        if (rings->role == TW_PUSHES && count > 0)
            push_fetch(0, ahead);
        for (uint64_t number = rings->first; number < count; number += rings->step) {
            if (rings->role == TW_PUSHES)
                push(number, ahead);
            else if (rings->role == TW_TAKES)
                reduce(number);
            else
                gather(number);
        }
    }
};

template <class N, tw_sharing SHARING>
static __device__ inline void tw_ring_run(const struct tw_gk_launch *launch,
                                          const struct tw_gk_pair *pairs)
{
    __shared__ struct tw_rings all_rings[TW_GK_THREADS / TW_GK_GROUP];
    struct tw_rings *rings = &all_rings[threadIdx.x / TW_GK_GROUP];
    tw_summer<N, SHARING> summer;

    summer.adder.begin(launch, pairs);
    summer.rings = rings;
    struct tw_block *me = &summer.adder.me;
    const uint64_t writes = SHARING == TW_SHARE_ALL ? me->call->sends : 0;

    tw_rings_begin(me, rings, SHARING == TW_SHARE_ALL ? me->call->lanes : 1, writes);
    if (rings->ring < rings->count)
        summer.run();
    tw_compare(me);
    tw_rings_end(me, rings, writes, writes);
    tw_end(me);
}

template <class N, tw_sharing SHARING>
__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_ring_reduce(const __grid_constant__ struct tw_gk_launch launch)
{
    tw_ring_run<N, SHARING>(&launch, nullptr);
}

template <class N>
__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_ring_reduce_v(const __grid_constant__ struct tw_gk_launch_v launch)
{
    tw_ring_run<N, TW_SHARE_PAIRS>(&launch.launch, launch.pairs);
}

#endif
