/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a block's view of its rank's call, and where what ranks write to each other lies.
 * Never knows: when it may be read. */
#ifndef TW_DEVICE_CUDA_PLACE_CUH
#define TW_DEVICE_CUDA_PLACE_CUH

#include <cstdint>

#include "device/cuda/wire.h"

/* One block's view of its rank's call. */
struct tw_block {
    const struct tw_gk_call *call;
    const struct tw_gk_pair *pairs; /* [size]; NULL: all blocks are alike */
    const uint32_t *words; /* of sends and receives: what is waited for; NULL: a collective */
    uint32_t epoch;
    uint32_t block, blocks;
    int thread; /* of the group; of the warp, where calls go by rings */
    bool dead;  /* this thread has given up a wait and makes no other */
    bool keeps; /* this thread is to end the call: its block was the last to learn the epoch */
    bool met;   /* the peers' records of the last call have been seen */
    uint32_t before[2]; /* of a peer's thread: the first words of the peer's last record */
};

static __device__ inline bool tw_has(uint64_t mask, int peer) { return mask >> peer & 1; }

/* What goes to a peer and what comes from it. */
static __device__ inline const char *tw_in(const struct tw_block *me, int peer)
{
    return me->call->in +
           (me->pairs != nullptr ? me->pairs[peer].in_at : (uint64_t)peer * me->call->in_stride);
}
static __device__ inline char *tw_out(const struct tw_block *me, int peer)
{
    return me->call->out +
           (me->pairs != nullptr ? me->pairs[peer].out_at : (uint64_t)peer * me->call->out_stride);
}
static __device__ inline uint64_t tw_in_bytes(const struct tw_block *me, int peer)
{
    if (!tw_has(me->call->sends, peer))
        return 0;
    return me->pairs != nullptr ? me->pairs[peer].in_bytes : me->call->bytes;
}
static __device__ inline uint64_t tw_out_bytes(const struct tw_block *me, int peer)
{
    if (!tw_has(me->call->takes, peer))
        return 0;
    return me->pairs != nullptr ? me->pairs[peer].out_bytes : me->call->bytes;
}

/* Ranks behind the own one, in turn. */
static __device__ inline int tw_around(const struct tw_gk_call *call, int k)
{
    const int peer = call->rank + k;

    return peer < call->size ? peer : peer - call->size;
}

static __device__ inline char *tw_mem(const struct tw_gk_call *call, int rank)
{
    return call->far != nullptr ? call->far[rank] : call->near[rank];
}

/* What rank `from` has written for rank `at`, in at's memory. */
static __device__ inline struct tw_gk_record *tw_inbox(const struct tw_gk_call *call, int at,
                                                       int from, uint32_t epoch)
{
    return (struct tw_gk_record *)tw_mem(call, at) + 2 * from + (epoch & 1);
}

static __device__ inline struct tw_gk_flags *tw_flags_of(const struct tw_block *me, int at,
                                                         int from)
{
    return (struct tw_gk_flags *)(tw_mem(me->call, at) + TW_GK_FLAGS_AT) + from;
}

/* Of a slot, and of the block. */
static __device__ inline uint32_t *tw_drained(const struct tw_block *me, int at, int from,
                                              uint32_t slot)
{
    return &tw_flags_of(me, at, from)->drained[slot];
}
static __device__ inline struct tw_gk_marks *tw_marks(const struct tw_block *me, int at, int from)
{
    return &tw_flags_of(me, at, from)->blocks[me->block];
}

/* Where `from` stands among the peers of `at`. */
static __device__ inline uint32_t tw_peer_index(int at, int from)
{
    return (uint32_t)(from - (from > at));
}

static __device__ inline char *tw_lines(const struct tw_gk_call *call, int at, int from,
                                        uint32_t epoch)
{
    const uint32_t peers = (uint32_t)call->size - 1;
    const uint32_t which = (epoch & 1) * peers + tw_peer_index(at, from);

    return tw_mem(call, at) + call->layout.lines + (uint64_t)which * call->layout.line_each;
}

#endif
