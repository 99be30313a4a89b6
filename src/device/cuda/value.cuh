/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: elements in units of a thread, and the tree that sums what the ranks give of them.
 * Never knows: where they come from.
 *
 * Every sum is the balanced tree over neighbouring ranks of docs/numbers.md, partial results in the
 * wide type: results are those of the deterministic mode whether it was asked for or not.
 */
#ifndef TW_DEVICE_CUDA_VALUE_CUH
#define TW_DEVICE_CUDA_VALUE_CUH

#include <cstdint>

#include "device/cuda/ptx.cuh"
#include "device/cuda/wire.h"
#include "twill.h"

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

/* Several units of a thread, which are loaded together: what comes from a peer takes long. */
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

/* The whole tree: parts of a few ranks, joined like the digits of a counter. The code of a part is
 * there once: it is most of a kernel. */
template <class N, class V, class Get>
static __device__ inline V tw_tree(uint32_t op, int size, const Get &get)
{
    tw_values<N, V> total;
    tw_values<N, V> held[5]; /* of parts 1, 2, 4, 8, 16 parts wide; in local memory */
    uint32_t parts = 0;

#pragma unroll 1
    for (int first = 0;; first += TW_TREE_NEAR) {
        tw_subtree<N, V, TW_TREE_NEAR, Get>::sum(op, first, size, get, &total);
        if (size <= TW_TREE_NEAR)
            break;
        const bool last = first + TW_TREE_NEAR >= size;
        uint32_t level = 0;

        /* total = held (+) total, up to the first level that is free; at the end, all that is held
         */
#pragma unroll 1
        for (; last ? parts >> level != 0 : parts >> level & 1; level++) {
            if (!(parts >> level & 1))
                continue;
            tw_values<N, V> left = held[level];

            left.add(op, total);
            total = left;
        }
        if (last)
            break;
        held[level] = total;
        parts++;
    }
    if (op == TWILL_AVG)
        total.divide(size);
    return total.store();
}

#endif
