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

/* A slot's worth of a share: piece `number` of the warp's ring. */
static __device__ inline struct tw_share tw_piece(const struct tw_ring *ring, struct tw_share share,
                                                  uint64_t number)
{
    const uint64_t at = (number * ring->count + ring->number) * TW_GK_SLOT_DATA;
    const uint64_t left = at < share.bytes ? share.bytes - at : 0;

    return {share.at + at, left < TW_GK_SLOT_DATA ? left : TW_GK_SLOT_DATA};
}

/* How the input is shared out: all_reduce; blocks alike; blocks that differ. */
enum tw_sharing { TW_SHARE_ALL, TW_SHARE_BLOCKS, TW_SHARE_PAIRS };

template <class N, tw_sharing SHARING> struct tw_summer {
    static constexpr bool ALL = SHARING == TW_SHARE_ALL;

    tw_adder<N> adder;
    struct tw_ring ring;

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
        return tw_piece(&ring, share(rank), number);
    }

    __device__ inline bool sends(int peer, uint64_t number) const
    {
        return tw_has(adder.me.call->sends, peer) && piece(peer, number).bytes != 0;
    }

    __device__ inline void given_piece(struct tw_share from, uint4 unit[TW_SLOT_UNITS]) const
    {
        tw_piece_get(adder.me.call->in + from.at, (uint32_t)from.bytes, sizeof(typename N::bits),
                     adder.me.thread, unit);
        if (!adder.scales)
            return;
#pragma unroll
        for (uint32_t i = 0; i < TW_SLOT_UNITS; i++)
            unit[i] = scaled(unit[i], adder.scalar);
    }

    /* Not inline: its code is there once, and none of its registers where nothing is scaled. */
    static __device__ __noinline__ uint4 scaled(uint4 unit, typename N::bits scalar)
    {
        return tw_given<N, uint4>(unit, scalar);
    }

    /* The first peer's share, ahead of its turn. */
    __device__ inline void push_fetch(uint64_t number, uint4 unit[TW_SLOT_UNITS]) const
    {
        if (adder.me.call->size > 1)
            given_piece(piece(tw_around(adder.me.call, 1), number), unit);
    }

    /* A slot of the ring, piece by piece. */
    __device__ inline uint32_t slot_of(uint64_t number) const
    {
        return ring.slots == 1 ? 0 : (uint32_t)number % TW_GK_SLOTS;
    }

    /* Every peer's share of the input goes to its ring. unit: as push_fetch leaves it; then of the
     * next piece, whose loads are under way until its slot is free */
    __device__ inline void push(uint64_t number, uint4 unit[TW_SLOT_UNITS])
    {
        struct tw_block *me = &adder.me;
        const struct tw_gk_call *call = me->call;
        const uint32_t slot = slot_of(number);

        tw_peers_each(me, [&](int peer) {
            if (sends(peer, number))
                tw_slot_reserve(me, &ring, slot, peer);
        });
        tw_warp_sync();
        for (int k = 1; k < call->size; k++) {
            const int peer = tw_around(call, k);

            if (!sends(peer, number))
                continue;
            if (k > 1)
                given_piece(piece(peer, number), unit);
            tw_slot_send(me, &ring, slot, peer, unit);
        }
        push_fetch(number + 1, unit);
        tw_warp_sync();
        tw_peers_each(me, [&](int peer) {
            if (sends(peer, number))
                ++*tw_sent(&ring, slot, peer);
        });
    }

    /* With one lane a peer that is in another call has neither an output nor slots for sums. */
    __device__ inline bool sum_by_ring(int peer) const
    {
        return ALL && ring.lanes == 2 && ring.out[peer] == nullptr;
    }

    /* The own share's piece is summed; of an all_reduce, everybody gets it. */
    __device__ inline void reduce(uint64_t number)
    {
        struct tw_block *me = &adder.me;
        const struct tw_share own = piece(me->call->rank, number);
        const uint32_t slot = slot_of(number);

        if (own.bytes == 0)
            return;
        tw_peers_each(me, [&](int peer) {
            if (sum_by_ring(peer))
                tw_slot_reserve(me, &ring, slot, peer);
        });
        tw_warp_sync();
        sum_piece(own, slot);
        tw_warp_sync();
        tw_peers_each(me, [&](int peer) {
            tw_slot_release(me, &ring, slot, peer);
            if (sum_by_ring(peer))
                ++*tw_sent(&ring, slot, peer);
        });
    }

    /* Units that are summed together: so many that the partial results fit in registers. */
    static constexpr uint32_t units = sizeof(typename N::bits) == 1   ? 1
                                      : sizeof(typename N::bits) == 2 ? 2
                                                                      : 4;

    __device__ inline void sum_piece(struct tw_share own, uint32_t slot)
    {
        const struct tw_block *me = &adder.me;
        uint4 halves = make_uint4(0, 0, 0, 0);

#pragma unroll 1
        for (uint32_t first = 0; first < TW_SLOT_UNITS; first += units) {
            const tw_pack<units> sum = sum_some(own, slot, first);

#pragma unroll
            for (uint32_t i = 0; i < units; i++)
                tw_upper_put(&halves, first + i, sum.unit[i].w);
            put_some(own, slot, first, sum);
        }
        for (int k = 1; ALL && k < me->call->size; k++) {
            const int peer = tw_around(me->call, k);

            if (sum_by_ring(peer))
                tw_halves_send(me, &ring, slot, peer, halves);
        }
    }

    /* What peers have sent is added as it lies there. Has some of it not come, that is waited for,
     * and all is added anew: so the loads from all peers are under way at once. */
    __device__ inline tw_pack<units> sum_some(struct tw_share own, uint32_t slot, uint32_t first)
    {
        struct tw_block *me = &adder.me;
        tw_pack<units> given, sum;
        int late;

#pragma unroll
        for (uint32_t i = 0; i < units; i++) {
            const uint32_t at = tw_unit_at(me->thread, first + i);

            given.unit[i] = adder.template given<uint4>(me->call->in + own.at + at,
                                                        tw_part_bytes((uint32_t)own.bytes, at));
        }
        do {
            const auto get = [&](int rank) {
                tw_pack<units> pack = given;

                if (rank != me->call->rank && !look(rank, slot, first, &pack))
                    late = rank;
                return pack;
            };
            late = -1;
            sum = adder.template sum<tw_pack<units>>(get);
        } while (late >= 0 && some_wait(late, slot, first));
        return sum;
    }

    __device__ inline bool look(int peer, uint32_t slot, uint32_t first, tw_pack<units> *pack) const
    {
        const struct tw_block *me = &adder.me;

        return tw_slot_look<units>(tw_slot(me, &ring, me->call->rank, peer, 0, slot), first,
                                   *tw_taken(&ring, slot, peer) + 1, me->thread, pack->unit);
    }

    /* False: it was given up. */
    __device__ inline bool some_wait(int peer, uint32_t slot, uint32_t first)
    {
        tw_pack<units> pack;

        return tw_wait_until(&adder.me, peer, [&] { return look(peer, slot, first, &pack); });
    }

    /* Sums go to the own output, and right to others' or into their slots. */
    __device__ inline void put_some(struct tw_share own, uint32_t slot, uint32_t first,
                                    const tw_pack<units> &sum) const
    {
        const struct tw_block *me = &adder.me;
        const struct tw_gk_call *call = me->call;
        const uint64_t out_at = own.at - (ALL ? 0 : share(call->rank).at);

        for (int k = 0; k < (ALL ? call->size : 1); k++) {
            const int peer = tw_around(call, k);
            char *out = k == 0 ? call->out : ring.out[peer];
            const bool by_ring = k != 0 && sum_by_ring(peer);

#pragma unroll
            for (uint32_t i = 0; i < units; i++) {
                const uint32_t at = tw_unit_at(me->thread, first + i);

                if (by_ring && first + i < TW_SLOT_UNITS)
                    tw_unit_send(me, &ring, slot, peer, first + i, sum.unit[i]);
                else if (out != nullptr)
                    tw_unit_store<uint4>(out + out_at + at, sum.unit[i],
                                         tw_part_bytes((uint32_t)own.bytes, at),
                                         sizeof(typename N::bits));
            }
        }
    }

    /* All_reduce by ring: the peers' sums come in. */
    __device__ inline void gather(uint64_t number)
    {
        struct tw_block *me = &adder.me;
        const struct tw_gk_call *call = me->call;

        tw_warp_sync();
        for (int k = 1; k < call->size; k++) {
            const int peer = tw_around(call, call->size - k);
            const struct tw_share from = piece(peer, number);
            uint4 unit[TW_SLOT_UNITS];

            if (from.bytes == 0)
                continue;
            tw_slot_take(me, &ring, slot_of(number), peer, unit);
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

    /* Most pieces that any share has in the warp's ring. */
    __device__ inline uint64_t pieces() const
    {
        const uint64_t all = (largest_share() + TW_GK_SLOT_DATA - 1) / TW_GK_SLOT_DATA;

        return all > ring.number ? (all - ring.number + ring.count - 1) / ring.count : 0;
    }

    __device__ inline void run()
    {
        const struct tw_gk_call *call = adder.me.call;
        const uint64_t count = pieces();

        if (ring.role == TW_PUSHES) {
            push_all(count);
        } else if (ring.role == TW_GATHERS) {
            for (uint64_t number = 0; number < count && !call->direct; number++)
                gather(number);
        } else {
            for (uint64_t number = ring.first; number < count && call->takes != 0;
                 number += ring.step)
                reduce(number);
        }
    }

    __device__ inline void push_all(uint64_t count)
    {
        uint4 ahead[TW_SLOT_UNITS] = {};

        if (count > 0)
            push_fetch(0, ahead);
        for (uint64_t number = 0; number < count; number++)
            push(number, ahead);
    }
};

template <class N, tw_sharing SHARING>
static __device__ inline void tw_ring_run(const struct tw_gk_launch *launch,
                                          const struct tw_gk_pair *pairs)
{
    __shared__ struct tw_rings rings;
    tw_summer<N, SHARING> summer;

    summer.adder.begin(launch, pairs);
    struct tw_block *me = &summer.adder.me;
    const uint64_t writes = SHARING == TW_SHARE_ALL ? me->call->sends : 0;

    tw_rings_begin(me, &rings, SHARING == TW_SHARE_ALL ? me->call->lanes : 1, writes, &summer.ring);
    if (tw_ring_runs(&summer.ring))
        summer.run();
    tw_compare(me);
    tw_rings_end(me, &summer.ring, writes, writes);
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
