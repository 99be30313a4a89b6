/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: collectives that sum, of any element type: by lines, or by rings.
 * Never knows: which types there are, how blocks find each other.
 *
 * Every sum is the balanced tree over neighbouring ranks of docs/numbers.md, partial results in the
 * wide type: results are those of the deterministic mode whether it was asked for or not.
 *
 * Source: one-shot and two-shot all_reduce by stores into the peers' memory: Shah et al.,
 * "MSCCL++: Rethinking GPU Communication Abstractions for Cutting-Edge AI Applications",
 * arXiv:2504.09014 (2025); the plans one_shot_put and two_shot_put in src/algo are the same
 * schedules.
 */
#ifndef TW_DEVICE_CUDA_REDUCE_CUH
#define TW_DEVICE_CUDA_REDUCE_CUH

#include <cstring>

#include "device/cuda/data.cuh"
#include "device/cuda/kernels.cuh"
#include "device/cuda/line.cuh"
#include "device/cuda/number.cuh"
#include "device/cuda/ring.cuh"

/* ---- values ------------------------------------------------------------------------------------
 */

/* Element i of a unit that lies in words; and the other way round. */
template <class Bits> static __device__ inline Bits tw_pick(const uint32_t *words, int i)
{
    if constexpr (sizeof(Bits) == 8) {
        return (Bits)((uint64_t)words[2 * i + 1] << 32 | words[2 * i]);
    } else if constexpr (sizeof(Bits) == 4) {
        return (Bits)words[i];
    } else {
        const int at = i * (int)sizeof(Bits);

        return (Bits)tw_bits_get(words[at / 4], at % 4 * 8, (int)sizeof(Bits) * 8);
    }
}

template <class Bits> static __device__ inline void tw_plant(uint32_t *words, int i, Bits bits)
{
    if constexpr (sizeof(Bits) == 8) {
        words[2 * i] = (uint32_t)bits;
        words[2 * i + 1] = (uint32_t)((uint64_t)bits >> 32);
    } else if constexpr (sizeof(Bits) == 4) {
        words[i] = (uint32_t)bits;
    } else {
        const int at = i * (int)sizeof(Bits);

        tw_bits_put(&words[at / 4], (uint32_t)bits, at % 4 * 8, (int)sizeof(Bits) * 8);
    }
}

static __device__ inline void tw_words(uint2 unit, uint32_t *words)
{
    words[0] = unit.x;
    words[1] = unit.y;
}
static __device__ inline void tw_words(uint4 unit, uint32_t *words)
{
    words[0] = unit.x;
    words[1] = unit.y;
    words[2] = unit.z;
    words[3] = unit.w;
}
static __device__ inline void tw_unit(const uint32_t *words, uint2 *unit)
{
    *unit = make_uint2(words[0], words[1]);
}
static __device__ inline void tw_unit(const uint32_t *words, uint4 *unit)
{
    *unit = make_uint4(words[0], words[1], words[2], words[3]);
}

/* The elements of a unit V, as partial results. */
template <class N, class V> struct tw_values {
    using bits = typename N::bits;
    static constexpr int count = sizeof(V) / sizeof(bits);
    typename N::acc value[count];

    __device__ inline void load(V unit)
    {
        uint32_t words[sizeof(V) / 4];

        tw_words(unit, words);
#pragma unroll
        for (int i = 0; i < count; i++)
            value[i] = N::widen(tw_pick<bits>(words, i));
    }

    __device__ inline V store() const
    {
        uint32_t words[sizeof(V) / 4] = {};
        V unit;

#pragma unroll
        for (int i = 0; i < count; i++)
            tw_plant<bits>(words, i, N::narrow(value[i]));
        tw_unit(words, &unit);
        return unit;
    }

    template <int OP> __device__ inline void add_by(const tw_values &right)
    {
#pragma unroll
        for (int i = 0; i < count; i++)
            value[i] = N::template combine<OP>(value[i], right.value[i]);
    }

    /* value (+)= right */
    __device__ inline void add(uint32_t op, const tw_values &right)
    {
        if (op == TWILL_PROD)
            add_by<TWILL_PROD>(right);
        else if (op == TWILL_MIN)
            add_by<TWILL_MIN>(right);
        else if (op == TWILL_MAX)
            add_by<TWILL_MAX>(right);
        else if (op == TWILL_BAND || op == TWILL_BOR || op == TWILL_BXOR)
            add_bits(op, right);
        else
            add_by<TWILL_SUM>(right);
    }

    __device__ inline void add_bits(uint32_t op, const tw_values &right)
    {
        if constexpr (N::integer) {
            if (op == TWILL_BAND)
                add_by<TWILL_BAND>(right);
            else if (op == TWILL_BOR)
                add_by<TWILL_BOR>(right);
            else
                add_by<TWILL_BXOR>(right);
        }
    }

    __device__ inline void divide(int ranks)
    {
#pragma unroll
        for (int i = 0; i < count; i++)
            value[i] = N::divide(value[i], ranks);
    }
};

/* What a rank gives: its input, multiplied where the operation says so. */
template <class N, class V> static __device__ inline V tw_given(V unit, typename N::bits scalar)
{
    using bits = typename N::bits;
    uint32_t words[sizeof(V) / 4], scaled[sizeof(V) / 4] = {};

    tw_words(unit, words);
#pragma unroll
    for (int i = 0; i < (int)(sizeof(V) / sizeof(bits)); i++)
        tw_plant<bits>(scaled, i, N::scale(tw_pick<bits>(words, i), scalar));
    tw_unit(scaled, &unit);
    return unit;
}

/* ---- the tree ----------------------------------------------------------------------------------
 */

/* Sums of `get(rank)` over the ranks from first on, of 2, 4 or 8 at most, below `size`. */
template <class N, class V, int MOST, class Get> struct tw_subtree {
    static __device__ inline void sum(uint32_t op, int first, int size, const Get &get,
                                      tw_values<N, V> *total)
    {
        tw_subtree<N, V, MOST / 2, Get>::sum(op, first, size, get, total);
        if (first + MOST / 2 < size) {
            tw_values<N, V> right;

            tw_subtree<N, V, MOST / 2, Get>::sum(op, first + MOST / 2, size, get, &right);
            total->add(op, right);
        }
    }
};
template <class N, class V, class Get> struct tw_subtree<N, V, 1, Get> {
    static __device__ inline void sum(uint32_t, int first, int, const Get &get,
                                      tw_values<N, V> *total)
    {
        total->load(get(first));
    }
};

#define TW_TREE_NEAR 4                                 /* ranks of a part that stays in registers */
#define TW_TREE_PARTS (TW_GK_RANKS_MAX / TW_TREE_NEAR) /* at most */

/* The whole tree: parts of a few ranks, joined like the digits of a counter. */
template <class N, class V, class Get>
static __device__ inline V tw_tree(uint32_t op, int size, const Get &get)
{
    tw_values<N, V> total;

    tw_subtree<N, V, TW_TREE_NEAR, Get>::sum(op, 0, size, get, &total);
    if (size > TW_TREE_NEAR) {
        tw_values<N, V> held[5]; /* of parts 1, 2, 4, 8, 16 parts wide; in local memory */
        uint32_t parts = 0;

        for (int first = TW_TREE_NEAR;; first += TW_TREE_NEAR) {
            uint32_t level = 0;

            for (; parts >> level & 1; level++) { /* total = held (+) total */
                tw_values<N, V> left = held[level];

                left.add(op, total);
                total = left;
            }
            held[level] = total;
            parts++;
            if (first >= size)
                break;
            tw_subtree<N, V, TW_TREE_NEAR, Get>::sum(op, first, size, get, &total);
        }
        bool some = false; /* what is left, from the narrow parts on */
        for (uint32_t level = 0; parts >> level != 0; level++) {
            if (!(parts >> level & 1))
                continue;
            tw_values<N, V> left = held[level];

            if (some)
                left.add(op, total);
            total = left;
            some = true;
        }
    }
    if (op == TWILL_AVG)
        total.divide(size);
    return total.store();
}

/* ---- one block's part --------------------------------------------------------------------------
 */

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

/* ---- lines: one-shot ---------------------------------------------------------------------------
 */

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
__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_line_reduce(const __grid_constant__ struct tw_gk_launch launch)
{
    const struct tw_gk_call *call = &launch.call[blockIdx.x / launch.blocks];
    const uint64_t units = (call->bytes + sizeof(uint2) - 1) / sizeof(uint2);
    const uint32_t each = blockDim.x - TW_CLERKS;
    uint64_t i = (uint64_t)(blockIdx.x % launch.blocks) * each + threadIdx.x;
    tw_adder<N> adder;
    uint2 own = make_uint2(0, 0);

    if (!tw_is_clerk() && i < units) /* asked for before anything is waited for */
        own = tw_line_own<N>(call, i);
    tw_line_begin(&launch, &adder.me);
    adder.learn();
    if (!tw_is_clerk()) {
        const uint64_t step = tw_line_threads(&adder.me), first = i;

        if (i < units)
            tw_line_send(&adder, i, own);
        for (i += step; i < units; i += step)
            tw_line_send(&adder, i, tw_line_own<N>(call, i));
        if (first < units && call->takes != 0)
            tw_line_sum(&adder, first, own);
        for (i = first + step; i < units && call->takes != 0; i += step)
            tw_line_sum(&adder, i, tw_line_own<N>(call, i));
    }
    tw_line_end(&adder.me);
}

/* ---- rings: two-shot, and its first half alone -------------------------------------------------
 */

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

    __device__ inline void sum_packet(struct tw_share own, uint32_t slot, uint32_t bytes,
                                      uint4 sum[TW_PACKET_UNITS])
    {
        const struct tw_gk_call *call = adder.me.call;
        const char *in = call->in + own.at + adder.me.thread * TW_PACKET_DATA;

#pragma unroll
        for (uint32_t i = 0; i < TW_PACKET_UNITS; i++) {
            const uint32_t part = tw_part_bytes(bytes, i);
            const auto get = [&](int rank) {
                uint4 unit[TW_PACKET_UNITS];

                if (rank == call->rank)
                    return adder.template given<uint4>(in + 16 * i, part);
                tw_slot_read(&adder.me, rings, 0, slot, rank, unit);
                return unit[i];
            };

            sum[i] = adder.template sum<uint4>(get);
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

/* ---- direct: everybody's input and output can be reached ---------------------------------------
 */

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

/* All threads. Nobody reads or writes here any more when it ends. reads: from these peers; read: by
 * these. */
static __device__ inline void tw_reach_end(struct tw_block *me, uint64_t reads, uint64_t read)
{
    const int peer = (int)threadIdx.x;

    me->ring = me->block;
    __syncthreads();
    if (peer >= me->call->size || peer == me->call->rank)
        return;
    if (tw_has(reads, peer))
        tw_store_release(&tw_flags(me, peer, me->call->rank)->ended, me->epoch);
    if (tw_has(read, peer))
        tw_wait_count(me, peer, &tw_flags(me, me->call->rank, peer)->ended, me->epoch);
}

/* Several units of a thread, a stride apart, which are loaded together: what comes from a peer
 * takes long. */
template <int UNITS> struct tw_pack {
    uint4 unit[UNITS];
};

template <int UNITS>
static __device__ inline void tw_words(const tw_pack<UNITS> &pack, uint32_t *words)
{
#pragma unroll
    for (int k = 0; k < UNITS; k++)
        tw_words(pack.unit[k], words + 4 * k);
}
template <int UNITS>
static __device__ inline void tw_unit(const uint32_t *words, tw_pack<UNITS> *pack)
{
#pragma unroll
    for (int k = 0; k < UNITS; k++)
        tw_unit(words + 4 * k, &pack->unit[k]);
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
    tw_reach_end(me, call->takes, call->sends);
    tw_compare(me);
    tw_end(me);
}

/* The kernels of one type, for the table. */
#define TW_GK_REDUCE_KERNELS(name, N)                                                              \
    const struct tw_gk_reduce_kernels tw_gk_reduce_##name = {tw_line_reduce<N>,                    \
                                                             tw_ring_reduce<N, TW_SHARE_BLOCKS>,   \
                                                             tw_ring_reduce<N, TW_SHARE_ALL>,      \
                                                             tw_direct_reduce<N, false>,           \
                                                             tw_direct_reduce<N, true>,            \
                                                             tw_ring_reduce_v<N>};

#endif
