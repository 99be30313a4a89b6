/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how two ranks give each other what they sum by stores alone.
 * Never knows: which types there are, how sums are made.
 *
 * Apart. What comes lies where its sum is to lie, so there is no staging to be had, and none to be
 * waited for: all that a block waits for is what its peer's same block gives.
 *
 * In place (all_reduce). What comes lies where the peer's sum is to lie, AHEAD chunks before: the
 * input that was there has been given. Of the first chunks nothing has been, so a rank reads these
 * at the peer; of each that it has summed it knows that the peer's input there is of no more use,
 * and gives its own chunk AHEAD further on to that place. A sum goes to the peer once the peer has
 * summed what lies in its place, of which the chunk that it gives then tells.
 */
#ifndef TW_DEVICE_CUDA_PUSH_CUH
#define TW_DEVICE_CUDA_PUSH_CUH

#include "device/cuda/data.cuh"
#include "device/cuda/sync.cuh"

#define TW_PUSH_AHEAD 2u /* chunks that a block gives before it takes the first one */

enum tw_way { TW_WAY_READ, TW_WAY_PUSH, TW_WAY_SWAP /* pushes in place */ };

/* Both ranks' records are there: which way does the call go? The peer comes to the same. */
static __device__ inline enum tw_way tw_way_of(const struct tw_gk_call *call,
                                               const uint32_t *theirs)
{
    const uint64_t both = call->in_word & (uint64_t)theirs[TW_GK_WORD_IN + 1] << 32;

    if (call->chunk == 0)
        return TW_WAY_READ;
    return (both & TW_GK_APART) != 0  ? TW_WAY_PUSH
           : (both & TW_GK_SAME) != 0 ? TW_WAY_SWAP
                                      : TW_WAY_READ;
}

/* In shared memory: what a block gives to the peer and takes from it. It has chunks of its own
 * number, and of those that are multiples of all blocks behind it. */
struct tw_pusher {
    const char *from; /* in the input */
    char *to;         /* at the peer */
    uint64_t bytes;   /* that go there */
    uint32_t chunks;  /* of the block: as many as the larger share has, either way */
    uint32_t before;  /* chunks of calls before */
    /* in place: the own share of the buffer, at the peer too */
    const char *own;
    char *own_to;
    uint64_t own_bytes;
};

/* One thread. largest: bytes of the larger share */
static __device__ inline void tw_pusher_count(const struct tw_block *me, uint64_t largest,
                                              struct tw_pusher *pusher)
{
    const uint64_t chunk = me->call->chunk, all = (largest + chunk - 1) / chunk;

    pusher->chunks =
        all > me->block ? (uint32_t)((all - me->block + me->blocks - 1) / me->blocks) : 0;
    pusher->before = me->call->state->pushed[me->block];
}

/* Bytes from the start of a share to a chunk of the block. */
static __device__ inline uint64_t tw_push_at(const struct tw_block *me, uint32_t number)
{
    return ((uint64_t)number * me->blocks + me->block) * me->call->chunk;
}

#define TW_PUSH_UNITS 4u /* that a thread loads before it stores them */

/* All threads. tw_copy has more ways and holds more in registers, of which sums need many. */
static __device__ inline void tw_push_copy(char *to, const char *from, uint32_t bytes,
                                           uint32_t elem)
{
    const uint32_t step = blockDim.x * (uint32_t)sizeof(uint4);
    uint32_t at = threadIdx.x * (uint32_t)sizeof(uint4);

    if (((size_t)to | (size_t)from) % sizeof(uint4) == 0)
        for (; at + (TW_PUSH_UNITS - 1) * step + sizeof(uint4) <= bytes;
             at += TW_PUSH_UNITS * step) {
            uint4 unit[TW_PUSH_UNITS];

#pragma unroll
            for (uint32_t k = 0; k < TW_PUSH_UNITS; k++)
                unit[k] = __ldcg((const uint4 *)(from + at + k * step));
#pragma unroll
            for (uint32_t k = 0; k < TW_PUSH_UNITS; k++)
                *(uint4 *)(to + at + k * step) = unit[k];
        }
#pragma unroll 1
    for (; at < bytes; at += step) {
        const uint32_t some = tw_unit_bytes<uint4>(bytes, at / sizeof(uint4));

        tw_unit_store<uint4>(to + at, tw_unit_load<uint4>(from + at, some, elem), some, elem);
    }
}

/* Bytes of the chunk that begins at `first`, of so many in all. */
static __device__ inline uint32_t tw_push_bytes(const struct tw_block *me, uint64_t first,
                                                uint64_t all)
{
    const uint64_t left = first < all ? all - first : 0;

    return left < me->call->chunk ? (uint32_t)left : me->call->chunk;
}

/* All threads, that have stored a chunk to the peer: `number` of this call's have been given. */
static __device__ inline void tw_push_tell(const struct tw_block *me,
                                           const struct tw_pusher *pusher, uint32_t number)
{
    const int rank = me->call->rank;

    __syncthreads();
    if (threadIdx.x == 0)
        tw_store_release(&tw_marks(me, 1 - rank, rank)->pushed, pusher->before + number);
}

/* All threads. A chunk, if there is one, goes to the peer; one of nothing is counted too. */
static __device__ inline void tw_push_give(const struct tw_block *me,
                                           const struct tw_pusher *pusher, uint32_t number)
{
    const uint64_t first = tw_push_at(me, number);

    if (number >= pusher->chunks)
        return;
    tw_push_copy(pusher->to + first, pusher->from + first, tw_push_bytes(me, first, pusher->bytes),
                 me->call->elem_bytes);
    tw_push_tell(me, pusher, number + 1);
}

/* All threads, in place, once they have summed chunk `number`. Each of the block's chunks tells of
 * one: those that are none too. */
static __device__ inline void tw_swap_give(const struct tw_block *me,
                                           const struct tw_pusher *pusher, uint32_t number)
{
    const uint64_t to = tw_push_at(me, number), from = tw_push_at(me, number + TW_PUSH_AHEAD);

    if (number >= pusher->chunks)
        return;
    __syncthreads(); /* the peer's input has been read, or what it gave taken */
    tw_push_copy(pusher->own_to + to, pusher->from + from, tw_push_bytes(me, from, pusher->bytes),
                 me->call->elem_bytes);
    tw_push_tell(me, pusher, number + 1);
}

/* All threads, in place: the sum of a chunk goes to the peer. */
static __device__ inline void tw_swap_end(const struct tw_block *me, const struct tw_pusher *pusher,
                                          uint32_t number)
{
    const uint64_t first = tw_push_at(me, number);

    tw_push_copy(pusher->own_to + first, pusher->own + first,
                 tw_push_bytes(me, first, pusher->own_bytes), me->call->elem_bytes);
}

/* All threads, in place, once chunk `number` has been summed and the next given: sums whose places
 * at the peer are free. Of the last ones nothing was given to these. */
static __device__ inline void tw_swap_ends(const struct tw_block *me,
                                           const struct tw_pusher *pusher, uint32_t number)
{
    const uint32_t last = pusher->chunks > TW_PUSH_AHEAD ? pusher->chunks - TW_PUSH_AHEAD : 0;

    if (number >= 2 * TW_PUSH_AHEAD && number - 2 * TW_PUSH_AHEAD < last)
        tw_swap_end(me, pusher, number - 2 * TW_PUSH_AHEAD);
    if (number >= last && number < pusher->chunks)
        tw_swap_end(me, pusher, number);
}

/* All threads. The peer's chunk is there; false: it never was. */
static __device__ inline bool tw_push_take(struct tw_block *me, const struct tw_pusher *pusher,
                                           uint32_t number)
{
    const int rank = me->call->rank;

    if (threadIdx.x == 0)
        tw_wait_count(me, 1 - rank, &tw_marks(me, rank, 1 - rank)->pushed,
                      pusher->before + number + 1);
    return __syncthreads_or(me->dead) == 0;
}

static __device__ inline void tw_push_end(const struct tw_block *me, const struct tw_pusher *pusher)
{
    if (threadIdx.x == 0)
        me->call->state->pushed[me->block] = pusher->before + pusher->chunks;
}

#endif
