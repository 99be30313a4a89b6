/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how an operation between two ranks is cut, and how its pieces go by the pair's slots.
 * Never knows: when an operation begins and ends.
 *
 * An operation is cut into pieces. Piece k of number n goes by way k + n, modulo the ways: of these
 * each is four of the pair's slots, one for each of a group's warps, or, right to the buffer, one
 * of the sender's groups. A group sees to every groups-th way, and to its pieces in their order. So
 * the first piece that has not been taken is always the next one of the groups that send and take
 * it, however many either rank has.
 */
#ifndef TW_DEVICE_CUDA_P2P_CUH
#define TW_DEVICE_CUDA_P2P_CUH

#include "device/cuda/slot.cuh"

#define PIECE_BYTES 8192u /* where it goes right to the buffer */
#define WARPS ((uint32_t)(TW_GK_GROUP / TW_GK_WARP))
#define SLOTS_BYTES (WARPS * TW_GK_SLOT_DATA) /* where it goes by slots */

/* In shared memory, of a group. */
struct share {
    uint32_t uses[TW_GK_SLOTS_MAX];     /* of slots: sent or taken */
    uint32_t words[WARPS][TW_GK_WORDS]; /* of the operation that goes on, for each warp */
    uint32_t list;
    char *to; /* NULL: by slots */
};

/* A group's view of its list. */
struct list {
    struct tw_block me;
    struct share *share;
    const struct tw_gk_op *ops;
    int peer;
    uint32_t number;        /* of the operation before the first */
    uint32_t group, groups; /* of the list */
    uint32_t ways;
    uint32_t piece_bytes;
    bool direct;
};

/* What `from` tells `at`, in at's memory. */
static __device__ inline struct tw_gk_door *door_of(const struct tw_gk_call *call, int at, int from)
{
    return (struct tw_gk_door *)(tw_mem(call, at) + TW_GK_DOORS_AT) + from;
}

static __device__ inline bool is_first(const struct list *list) { return list->me.thread == 0; }

/* Of its warp. */
static __device__ inline int lane_of(const struct list *list)
{
    return list->me.thread % TW_GK_WARP;
}
static __device__ inline uint32_t warp_of(const struct list *list)
{
    return (uint32_t)list->me.thread / TW_GK_WARP;
}

/* ---- pieces ------------------------------------------------------------------------------------
 */

struct piece {
    uint64_t begin, end; /* places on the ways: those of the operation */
    uint64_t lap;        /* place of way 0 in this lap */
    uint32_t way;
};

static __device__ inline bool piece_is(const struct piece *piece)
{
    return piece->lap + piece->way < piece->end;
}

static __device__ inline void piece_next(const struct list *list, struct piece *piece)
{
    piece->way += list->groups;
    if (piece->way >= list->ways) {
        piece->way = list->group;
        piece->lap += list->ways;
    }
}

/* An operation of no bytes has one piece. */
static __device__ inline uint64_t pieces_of(const struct list *list, uint64_t bytes)
{
    return bytes == 0 ? 1 : (bytes + list->piece_bytes - 1) / list->piece_bytes;
}

static __device__ inline struct piece piece_first(const struct list *list, uint64_t bytes,
                                                  uint32_t number)
{
    struct piece piece;

    piece.begin = number % list->ways;
    piece.end = piece.begin + pieces_of(list, bytes);
    piece.lap = 0;
    piece.way = list->group;
    if (piece.begin > piece.way) /* the group's first way behind it, in this lap or the next one */
        piece.way +=
            ((uint32_t)piece.begin - piece.way + list->groups - 1) / list->groups * list->groups;
    if (piece.way >= list->ways) {
        piece.way = list->group;
        piece.lap = list->ways;
    }
    return piece;
}

/* Bytes from the buffer's start, and how many. */
static __device__ inline uint64_t piece_at(const struct list *list, const struct piece *piece)
{
    return (piece->lap + piece->way - piece->begin) * list->piece_bytes;
}
static __device__ inline uint64_t piece_bytes(const struct list *list, const struct piece *piece,
                                              uint64_t bytes)
{
    const uint64_t left = bytes - piece_at(list, piece);

    return left < list->piece_bytes ? left : list->piece_bytes;
}

/* ---- slots -------------------------------------------------------------------------------------
 */

/* All of the group, which waits for itself. False, to all: one of them has given up a wait. */
static __device__ inline bool group_goes_on(const struct list *list)
{
    return tw_group_any((uint32_t)list->me.dead) == 0;
}

/* The group's slots of a list, each by a thread: f(slot). */
template <class F> static __device__ inline void slots_each(const struct list *list, const F &f)
{
    if (list->direct)
        return;
    for (uint32_t slot = (uint32_t)list->me.thread; slot < list->ways * WARPS; slot += TW_GK_GROUP)
        if (slot / WARPS % list->groups == list->group)
            f(slot);
}

/* A warp's part of a piece, which goes by a slot of its own; of a short piece some have none. */
struct part {
    uint32_t slot, at, bytes;
};

static __device__ inline struct part part_of(const struct list *list, const struct piece *piece,
                                             uint64_t bytes)
{
    const uint32_t at = warp_of(list) * TW_GK_SLOT_DATA;
    const uint32_t left = bytes > at ? (uint32_t)bytes - at : 0;

    return {piece->way * WARPS + warp_of(list), at,
            left < TW_GK_SLOT_DATA ? left : TW_GK_SLOT_DATA};
}

/* All of the warp. One that has given up a wait sends nothing more. */
static __device__ inline void part_push(struct list *list, const struct part *part,
                                        const char *from, uint32_t elem)
{
    struct tw_block *me = &list->me;
    uint32_t *sent = &list->share->uses[part->slot];
    const uint32_t *drained = tw_drained(me, me->call->rank, list->peer, part->slot);
    uint4 unit[TW_SLOT_UNITS];

    if (part->bytes == 0)
        return;
    tw_piece_get(from + part->at, part->bytes, elem, lane_of(list), unit);
    tw_warp_sync();
    const uint32_t uses = *sent;
    (void)tw_wait_until(me, list->peer, [&] { return (int32_t)(tw_load(drained) - uses) >= 0; });
    if (!me->dead)
        tw_slot_store(tw_slot_of(me->call, list->peer, me->call->rank, part->slot), unit, uses + 1,
                      lane_of(list));
    tw_warp_sync();
    if (lane_of(list) == 0)
        *sent = uses + 1;
}

static __device__ inline void part_pull(struct list *list, const struct part *part, char *to,
                                        uint32_t elem)
{
    struct tw_block *me = &list->me;
    uint32_t *taken = &list->share->uses[part->slot];
    uint4 unit[TW_SLOT_UNITS] = {};

    if (part->bytes == 0)
        return;
    tw_warp_sync();
    const uint32_t use = *taken + 1;
    tw_slot_load(me, list->peer, tw_slot_of(me->call, me->call->rank, list->peer, part->slot), use,
                 lane_of(list), unit);
    tw_warp_sync();
    if (lane_of(list) == 0) { /* without a fence, as tw_slot_release */
        tw_store(tw_drained(me, list->peer, me->call->rank, part->slot), use);
        *taken = use;
    }
    tw_piece_put(to + part->at, unit, part->bytes, elem, lane_of(list));
}

#endif
