/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how sends and receives become lists, and how threads are shared out among them.
 * Never knows: streams, launches. */
#include "config.h"

#include <string.h>

#include "comm/gpu_p2p.h"

_Static_assert(TW_GK_COLL_P2P == TW_COLL_P2P, "kernels know sends and receives by this number");
_Static_assert(sizeof(struct tw_gk_launch_p2p) <= 32764, "what a kernel's parameters can be");

#define GROUP_BYTES ((uint64_t)8 << 10)                /* worth a group of threads */
#define WARPS_EACH (TW_GK_GROUP / TW_GK_WARP)          /* of a group */
#define GROUPS_EACH (TW_GK_THREADS_MOST / TW_GK_GROUP) /* of a block */

/* A list: what goes to a peer, what comes from it, or what the rank sends to itself. */
struct list {
    uint32_t ops, first,
        next;           /* how many; where they stand; where the next one goes, of sends... */
    uint32_t next_recv; /* ...to itself, and of their receives */
    uint32_t groups;
    uint64_t most_bytes; /* of an operation */
};

struct cut {
    const struct tw_gpu *gpu;
    uint32_t lists_used;
    struct list lists[TW_GK_RANKS_MAX][2]; /* by peer: sends, receives */
};

uint32_t tw_gpu_p2p_groups(const struct tw_gpu *gpu)
{
    return (uint32_t)gpu->most_blocks * GROUPS_EACH;
}

static struct list *list_of(struct cut *cut, const struct tw_op *op)
{
    const bool self = op->info.peer == cut->gpu->comm->rank;

    return &cut->lists[op->info.peer][!self && !op->info.is_send];
}

static uint64_t bytes_of(const struct tw_op *op)
{
    return op->info.count * tw_type_bytes(op->info.type);
}

/* The lists' operations are counted. */
static void lists_count(const struct tw_gpu *gpu, const struct tw_item *item, struct cut *cut)
{
    memset(cut, 0, sizeof(*cut));
    cut->gpu = gpu;
    for (uint32_t i = 0; i < item->nops; i++) {
        struct list *list = list_of(cut, &item->ops[i]);
        const uint64_t bytes = bytes_of(&item->ops[i]);

        cut->lists_used += list->ops == 0;
        list->ops++;
        list->most_bytes = bytes > list->most_bytes ? bytes : list->most_bytes;
    }
}

static enum twill_status no_room(const struct tw_gpu *gpu, uint32_t found, const char *of,
                                 uint32_t most)
{
    return tw_fail(TWILL_ERR_UNSUPPORTED,
                   "group: rank %d has %u %s in one group: on CUDA device %d at most %u can be",
                   gpu->comm->rank, found, of, gpu->device, most);
}

enum twill_status tw_gpu_p2p_check(const struct tw_gpu *gpu, const struct tw_item *item)
{
    struct cut cut;

    if (item->nops > TW_GK_OPS_MAX)
        return no_room(gpu, item->nops, "sends and receives", TW_GK_OPS_MAX);
    lists_count(gpu, item, &cut);
    if (cut.lists_used > tw_gpu_p2p_groups(gpu))
        return no_room(gpu, cut.lists_used, "pairs of a peer and a direction",
                       tw_gpu_p2p_groups(gpu));
    return TWILL_OK;
}

/* ---- threads -----------------------------------------------------------------------------------
 */

/* Groups of a list that goes by slots: each warp has a slot. */
static uint32_t by_slots_most(const struct tw_gpu *gpu)
{
    const uint32_t slots = gpu->base.layout.ring_each / TW_GK_SLOT_BYTES;

    return (slots < TW_GK_SLOTS_MAX ? slots : TW_GK_SLOTS_MAX) / WARPS_EACH;
}

/* Groups of threads that a list would have if it were alone. */
static uint32_t groups_wanted(const struct cut *cut, int peer, bool is_recv)
{
    const struct list *list = &cut->lists[peer][is_recv];
    const bool here = cut->gpu->here[peer];
    const uint64_t groups = (list->most_bytes + GROUP_BYTES - 1) / GROUP_BYTES;
    uint32_t most = here ? tw_gpu_p2p_groups(cut->gpu) : by_slots_most(cut->gpu);

    if (here && is_recv)
        most = 1; /* the sender does it all */
    return groups < 1 ? 1 : groups < most ? (uint32_t)groups : most;
}

/* Each list has one, and the others are shared out by what is wanted. */
static void groups_share(struct cut *cut, int size)
{
    const uint32_t all = tw_gpu_p2p_groups(cut->gpu);
    uint64_t wanted = 0;

    for (int list = 0; list < 2 * size; list++)
        if (cut->lists[list / 2][list % 2].ops > 0)
            wanted += groups_wanted(cut, list / 2, list % 2);
    const uint64_t more = wanted - cut->lists_used, left = all - cut->lists_used;
    for (int i = 0; i < 2 * size; i++) {
        struct list *list = &cut->lists[i / 2][i % 2];

        if (list->ops == 0)
            continue;
        list->groups = groups_wanted(cut, i / 2, i % 2);
        if (more > left)
            list->groups = 1 + (uint32_t)((list->groups - 1) * left / more);
    }
}

/* ---- operations --------------------------------------------------------------------------------
 */

/* Lists get their places, and their first operations say what they are. @return groups */
static uint32_t lists_place(struct cut *cut, int size, struct tw_gk_launch_p2p *launch)
{
    const int rank = cut->gpu->comm->rank;
    uint32_t group = 0, at = launch->ops;

    for (int i = 0; i < 2 * size; i++) {
        const int peer = (rank + i / 2) % size;
        struct list *list = &cut->lists[peer][i % 2];

        if (list->ops == 0)
            continue;
        list->next = at;
        list->next_recv = at + 1;
        launch->op[at].ops = (uint16_t)list->ops;
        launch->op[at].direct = cut->gpu->here[peer];
        launch->op[at].group = (uint16_t)group;
        launch->op[at].groups = (uint16_t)list->groups;
        group += list->groups;
        at += list->ops;
    }
    return group;
}

/* What a receive's post says of its buffer. */
static uint64_t word_of(const struct tw_gpu *gpu, const struct tw_op *op)
{
    if (op->info.is_send || bytes_of(op) == 0)
        return 0;
    return gpu->here[op->info.peer] ? (uint64_t)(uintptr_t)op->out
                                    : tw_gpu_reg_word(gpu, op->out, bytes_of(op));
}

static void op_place(struct cut *cut, const struct tw_op *op, uint32_t place,
                     struct tw_gk_launch_p2p *launch)
{
    const bool self = op->info.peer == cut->gpu->comm->rank;
    struct list *list = list_of(cut, op);
    uint32_t *next = self && !op->info.is_send ? &list->next_recv : &list->next;
    struct tw_gk_op *to = &launch->op[*next];

    *next += self ? 2 : 1;
    to->at = op->info.is_send ? (char *)(uintptr_t)op->in : op->out;
    to->bytes = bytes_of(op);
    to->word = word_of(cut->gpu, op);
    to->elem = (uint8_t)tw_type_bytes(op->info.type);
    to->kind = self ? TW_GK_SELF : op->info.is_send ? TW_GK_SEND : TW_GK_RECV;
    to->place = (uint16_t)place;
    to->peer = (uint16_t)op->info.peer;
    to->type = (uint16_t)op->info.type;
}

uint32_t tw_gpu_p2p_cut(const struct tw_gpu *gpu, const struct tw_item *item, uint32_t place,
                        struct tw_gk_launch_p2p *launch)
{
    const int size = gpu->comm->size;
    struct cut cut;

    if (launch->ops + item->nops > TW_GK_OPS_MAX) {
        (void)no_room(gpu, launch->ops + item->nops,
                      "sends and receives with those of ranks on the same device", TW_GK_OPS_MAX);
        return 0;
    }
    lists_count(gpu, item, &cut);
    groups_share(&cut, size);
    memset(&launch->op[launch->ops], 0, item->nops * sizeof(launch->op[0]));
    const uint32_t groups = lists_place(&cut, size, launch);
    for (uint32_t i = 0; i < item->nops; i++)
        op_place(&cut, &item->ops[i], place, launch);
    launch->ops += item->nops;
    return groups;
}
