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

/* A slot's worth of a share: piece `number` of this group. */
static __device__ inline struct tw_share tw_piece(const struct tw_block *me,
                                                  const struct tw_rings *rings,
                                                  struct tw_share share, uint64_t number)
{
    const uint64_t most = tw_piece_bytes(rings), at = (number * rings->count + me->ring) * most;
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
        return tw_piece(&adder.me, rings, share(rank), number);
    }

    __device__ inline bool sends(int peer, uint64_t number) const
    {
        return tw_has(adder.me.call->sends, peer) && piece(peer, number).bytes != 0;
    }

    /* Every peer's share of the input goes to its ring. */
    __device__ inline void push(uint64_t number)
    {
        struct tw_block *me = &adder.me;
        const struct tw_gk_call *call = me->call;
        const int thread = me->thread;
        const uint32_t slot = number % TW_GK_SLOTS;
        const bool mine = tw_is_peer(me, thread) && sends(thread, number);

        if (mine)
            tw_slot_reserve(me, rings, 0, slot, thread);
        tw_group_sync();
        for (int k = 1; k < call->size; k++) {
            const int peer = tw_around(call, k);

            if (sends(peer, number))
                push_piece(peer, slot, piece(peer, number));
        }
        tw_group_sync();
        if (mine)
            tw_slot_sent(rings, 0, slot, thread);
    }

    __device__ inline void push_piece(int peer, uint32_t slot, struct tw_share from)
    {
        const struct tw_block *me = &adder.me;
        const char *in = me->call->in + from.at + me->thread * TW_PACKET_DATA;
        const uint32_t bytes = tw_packet_bytes(me, from.bytes);
        uint4 unit[TW_PACKET_UNITS];

        if (bytes == 0)
            return;
#pragma unroll
        for (uint32_t i = 0; i < TW_PACKET_UNITS; i++)
            unit[i] = adder.template given<uint4>(in + 16 * i, tw_part_bytes(bytes, i));
        tw_slot_write(me, rings, 0, slot, peer, unit);
    }

    /* The own share's piece is summed; of an all_reduce, everybody gets it. */
    __device__ inline void reduce(uint64_t number)
    {
        struct tw_block *me = &adder.me;
        const struct tw_share own = piece(me->call->rank, number);
        const int thread = me->thread;
        const uint32_t slot = number % TW_GK_SLOTS, bytes = tw_packet_bytes(me, own.bytes);
        const bool peer = tw_is_peer(me, thread);
        const bool by_ring = ALL && peer && rings->out[thread] == nullptr;
        uint4 sum[TW_PACKET_UNITS];

        if (own.bytes == 0)
            return;
        if (bytes != 0)
            sum_packet(own, slot, bytes, sum);
        if (by_ring)
            tw_slot_reserve(me, rings, 1, slot, thread);
        tw_group_sync();
        if (peer) /* before the sums are stored: the fewer stores it has to wait for */
            tw_slot_release(me, rings, 0, slot, thread);
        if (bytes != 0)
            put_packet(own.at - (ALL ? 0 : share(me->call->rank).at), slot, bytes, sum);
        tw_group_sync();
        if (by_ring)
            tw_slot_sent(rings, 1, slot, thread);
    }

    /* Units that are summed together: so many that the partial results fit in registers. */
    static constexpr uint32_t units = sizeof(typename N::bits) == 1 ? 1 : TW_PACKET_UNITS;

    /* Those of a packet from `first` on. No index that the compiler does not know: the packet stays
     * in registers. */
    static __device__ inline tw_pack<units> some(const uint4 unit[TW_PACKET_UNITS], uint32_t first)
    {
        tw_pack<units> pack;

#pragma unroll
        for (uint32_t i = 0; i < units; i++)
            pack.unit[i] = first + i == 0 ? unit[0] : first + i == 1 ? unit[1] : unit[2];
        return pack;
    }

    __device__ inline tw_pack<units> own_units(const char *in, uint32_t bytes, uint32_t first) const
    {
        tw_pack<units> pack;

#pragma unroll
        for (uint32_t i = 0; i < units; i++)
            pack.unit[i] =
                adder.template given<uint4>(in + 16 * (first + i), tw_part_bytes(bytes, first + i));
        return pack;
    }

    __device__ inline void sum_packet(struct tw_share own, uint32_t slot, uint32_t bytes,
                                      uint4 sum[TW_PACKET_UNITS])
    {
        const struct tw_gk_call *call = adder.me.call;
        const char *in = call->in + own.at + adder.me.thread * TW_PACKET_DATA;

#pragma unroll 1
        for (uint32_t first = 0; first < TW_PACKET_UNITS; first += units) {
            const auto get = [&](int rank) {
                uint4 unit[TW_PACKET_UNITS];

                if (rank == call->rank)
                    return own_units(in, bytes, first);
                tw_slot_read(&adder.me, rings, 0, slot, rank, unit);
                return some(unit, first);
            };
            const tw_pack<units> part = adder.template sum<tw_pack<units>>(get);

#pragma unroll
            for (uint32_t i = 0; i < TW_PACKET_UNITS; i++)
                if (i - first < units)
                    sum[i] = part.unit[units == 1 ? 0 : i];
        }
    }

    __device__ inline void put_packet(uint64_t out_at, uint32_t slot, uint32_t bytes,
                                      const uint4 sum[TW_PACKET_UNITS])
    {
        const struct tw_block *me = &adder.me;
        const struct tw_gk_call *call = me->call;
        const uint64_t at = out_at + me->thread * TW_PACKET_DATA;
        const uint32_t elem = sizeof(typename N::bits);

        tw_packet_put(call->out + at, sum, bytes, elem);
        for (int k = 1; ALL && k < call->size; k++) {
            const int peer = tw_around(call, k);

            if (rings->out[peer] != nullptr)
                tw_packet_put(rings->out[peer] + at, sum, bytes, elem);
            else
                tw_slot_write(me, rings, 1, slot, peer, sum);
        }
    }

    /* All_reduce by ring: the peers' sums come in. */
    __device__ inline void gather(uint64_t number)
    {
        struct tw_block *me = &adder.me;
        const struct tw_gk_call *call = me->call;
        const int thread = me->thread;
        const uint32_t slot = number % TW_GK_SLOTS;

        for (int k = 1; k < call->size; k++) {
            const int peer = tw_around(call, call->size - k);
            const struct tw_share from = piece(peer, number);
            const uint32_t bytes = tw_packet_bytes(me, from.bytes);
            uint4 unit[TW_PACKET_UNITS];

            if (bytes == 0)
                continue;
            tw_slot_read(me, rings, 1, slot, peer, unit);
            tw_packet_put(call->out + from.at + thread * TW_PACKET_DATA, unit, bytes,
                          sizeof(typename N::bits));
        }
        tw_group_sync();
        if (tw_is_peer(me, thread) && piece(thread, number).bytes != 0)
            tw_slot_release(me, rings, 1, slot, thread);
    }

    /* The first one, except where they differ. */
    __device__ inline uint64_t largest_share() const
    {
        uint64_t most = share(0).bytes;

        for (int rank = 1; SHARING == TW_SHARE_PAIRS && rank < adder.me.call->size; rank++)
            most = share(rank).bytes > most ? share(rank).bytes : most;
        return most;
    }

    /* Most pieces that any share has here. */
    __device__ inline uint64_t pieces() const
    {
        const uint64_t all = (largest_share() + tw_piece_bytes(rings) - 1) / tw_piece_bytes(rings);
        const struct tw_block *me = &adder.me;

        return all > me->ring ? (all - me->ring + rings->count - 1) / rings->count : 0;
    }

    /* A ring holds two pieces: a rank sends one ahead of what it sums. */
    __device__ inline void run()
    {
        const struct tw_gk_call *call = adder.me.call;
        const uint64_t count = pieces();
        const bool by_ring = ALL && !call->direct;

        for (uint64_t number = 0; number < count + 2; number++) {
            if (number < count)
                push(number);
            if (number >= 1 && number - 1 < count && call->takes != 0)
                reduce(number - 1);
            if (by_ring && number >= 2)
                gather(number - 2);
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

    tw_rings_begin(me, rings, SHARING == TW_SHARE_ALL ? 2 : 1, writes);
    if (me->ring < rings->count)
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
