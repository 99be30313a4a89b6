/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: reductions whose order of adding is defined: the balanced tree over neighbouring ranks
 * that splits at the largest power of two below their count. Never knows: bytes, transports.
 *
 * Source: the order is that of pairwise summation (Higham, "The accuracy of floating point
 * summation", SIAM J. Sci. Comput. 14, 1993); the schedules are the direct ones of direct.c (Shah
 * et al., arXiv:2504.09014, 2025), which bring all contributions to one place, and the binomial
 * tree of Thakur, Rabenseifner and Gropp (2005), whose subtrees over ranks in order are those of
 * the sum.
 *
 * ordered          the owner of a chunk gathers what all ranks have of it, unreduced, and adds it
 * up in order. As much moves as in direct and two_shot: n-1 groups per rank in a reduce_scatter,
 * 2(n-1) of n chunks in an all_reduce; a reduce sends the n-1 finished chunks to the root.
 * ordered_direct   everybody (reduce: the root) gathers everything: one round, n-1 whole buffers to
 *                  each.
 * ordered_tree     partial sums climb the tree of the sum, unrounded: ceil(log2 n) rounds. The
 * holder of an interval of ranks that the root is in is the root, of others their first, so that
 * n-1 whole buffers move whatever the root. all_reduce of a power of two swaps partials between the
 * halves of each interval: log2 n rounds, log2 n buffers per rank; of other counts the result comes
 * down the same tree again.
 *
 * Partials are WIDE; what no rank has added to yet goes as it is. Deadlock: as in direct.c, a FIFO
 * holds a step's slices; in the tree partners send before they receive.
 */
#include "algo/form.h"

/* ---- adding up in one place ------------------------------------------------------------------ */

/* Sums on the stack of partials, the widest interval of ranks at the bottom. */
struct stack {
    const struct tw_algo_lane *lane;
    uint32_t height;
};

static struct tw_plan_span level(const struct stack *stack, uint32_t from_top)
{
    return tw_algo_chunk(stack->lane, TW_BUF_WIDE, stack->height - 1 - from_top);
}

static void stack_join(struct stack *stack)
{
    tw_algo_reduce(stack->lane, level(stack, 0), level(stack, 1), 0);
    stack->height--;
}

/* The next rank's contribution: its message, or the own input. It joins its neighbour at once where
 * that has waited alone, and then equal intervals join as in a binary counter. */
static void stack_take(struct stack *stack, int rank, struct tw_plan_span own)
{
    bool mine = rank == stack->lane->rank, joins = rank % 2;
    stack->height += !joins;
    if (mine && joins)
        tw_algo_reduce(stack->lane, own, level(stack, 0), 0);
    else if (mine)
        tw_algo_copy(stack->lane, own, level(stack, 0));
    else if (joins)
        tw_algo_recv_reduce(stack->lane, rank, level(stack, 0), level(stack, 0), 0);
    else
        tw_algo_recv(stack->lane, rank, level(stack, 0));
    for (uint32_t pairs = ((uint32_t)rank + 1) / 2; joins && pairs % 2 == 0; pairs /= 2)
        stack_join(stack);
}

/* All ranks' messages, and the own input, in order into out. */
static void add_all(const struct tw_algo_lane *lane, struct tw_plan_span own,
                    struct tw_plan_span out)
{
    struct stack stack = {.lane = lane};
    for (int rank = 0; rank < lane->job->nranks; rank++)
        stack_take(&stack, rank, own);
    while (stack.height > 1)
        stack_join(&stack);
    tw_algo_finish(lane, level(&stack, 0), out);
}

/* Most partials that wait at once. */
static uint32_t stack_room(int nranks)
{
    return nranks > 1 ? tw_algo_log2_ceil((uint32_t)nranks) : 1;
}

static void send_chunks(const struct tw_algo_lane *lane)
{
    struct tw_algo_job *job = lane->job;
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, lane->rank, k);
        tw_algo_send(lane, peer, tw_algo_chunk(lane, TW_BUF_IN, (uint32_t)peer));
    }
}

static void ordered_all_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct tw_plan_span sum = tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank);
    send_chunks(&lane);
    add_all(&lane, tw_algo_chunk(&lane, TW_BUF_IN, (uint32_t)rank), sum);
    for (int k = 1; k < job->nranks; k++)
        tw_algo_send(&lane, tw_algo_around(job, rank, k), sum);
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, rank, -k);
        tw_algo_recv(&lane, peer, tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)peer));
    }
}

static void ordered_reduce_scatter(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    send_chunks(&lane);
    add_all(&lane, tw_algo_chunk(&lane, TW_BUF_IN, (uint32_t)rank),
            tw_algo_chunk(&lane, TW_BUF_OUT, 0));
}

static void ordered_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    bool root = rank == job->root;
    struct tw_plan_span sum = root ? tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank)
                                   : tw_algo_chunk(&lane, TW_BUF_SCRATCH, 0);
    send_chunks(&lane);
    add_all(&lane, tw_algo_chunk(&lane, TW_BUF_IN, (uint32_t)rank), sum);
    if (!root)
        tw_algo_send(&lane, job->root, sum);
    for (int k = 1; root && k < job->nranks; k++) {
        int peer = tw_algo_around(job, rank, -k);
        tw_algo_recv(&lane, peer, tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)peer));
    }
}

enum twill_status tw_algo_ordered_as(const char *name, const struct tw_algo_args *args,
                                     struct tw_plan **plan)
{
    struct tw_algo_form form = {.name = name,
                                .chunks = (uint32_t)args->nranks,
                                .depth = 2,
                                .slices = 2,
                                .widest = 1,
                                .wide_chunks = stack_room(args->nranks),
                                .own_scratch = true,
                                .deterministic = true};
    switch (args->coll) {
    case TW_COLL_ALL_REDUCE:
        form.program = ordered_all_reduce;
        break;
    case TW_COLL_REDUCE:
        form.scratch_chunks = 1;
        form.program = ordered_reduce;
        break;
    case TW_COLL_REDUCE_SCATTER:
    case TW_COLL_REDUCE_SCATTER_V:
        form.chunks = 1;
        form.program = ordered_reduce_scatter;
        break;
    default:
        break;
    }
    return tw_algo_form_plan(&form, args, plan);
}

enum twill_status tw_algo_ordered(const struct tw_algo_args *args, struct tw_plan **plan)
{
    return tw_algo_ordered_as("ordered", args, plan);
}

/* ---- everything to everybody, or to the root ------------------------------------------------- */

static void direct_program(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    bool rooted = job->coll == TW_COLL_REDUCE;
    struct tw_plan_span in = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, rank, k);
        if (!rooted || peer == job->root)
            tw_algo_send(&lane, peer, in);
    }
    if (!rooted || rank == job->root)
        add_all(&lane, in, tw_algo_chunk(&lane, TW_BUF_OUT, 0));
}

enum twill_status tw_algo_ordered_direct(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {.name = "ordered_direct",
                                .chunks = 1,
                                .depth = 2,
                                .slices = 2,
                                .widest = 1,
                                .wide_chunks = stack_room(args->nranks),
                                .deterministic = true};
    if (args->coll == TW_COLL_ALL_REDUCE || args->coll == TW_COLL_REDUCE)
        form.program = direct_program;
    return tw_algo_form_plan(&form, args, plan);
}

/* ---- up the tree of the sum ------------------------------------------------------------------ */

/* An aligned interval of ranks meets its neighbour. */
struct meeting {
    int left;    /* first rank of both */
    int half;    /* ranks of the left one, a power of two */
    int sibling; /* the other one's first rank; not below nranks: there is none */
};

static struct meeting meeting_at(int rank, int half)
{
    int begin = rank & ~(half - 1);
    return (struct meeting){begin & ~half, half, begin ^ half};
}

static bool is_last(const struct tw_algo_job *job, const struct meeting *at)
{
    return at->left == 0 && 2 * at->half >= job->nranks;
}

static int holder(int root, int begin, int count)
{
    return root >= begin && root < begin + count ? root : begin;
}

/* Adds a message to what there is, in rank order. The own input first becomes a partial where there
 * is no other step in which it could. */
static struct tw_plan_span meet(const struct tw_algo_lane *lane, const struct meeting *at, int from,
                                struct tw_plan_span have)
{
    bool last = is_last(lane->job, at), right = lane->rank & at->half;
    struct tw_plan_span wide = tw_algo_chunk(lane, TW_BUF_WIDE, 0);
    struct tw_plan_span out = tw_algo_chunk(lane, TW_BUF_OUT, 0);
    if (last && have.buf == TW_BUF_IN) {
        tw_algo_copy(lane, have, wide);
        have = wide;
    }
    tw_algo_recv_reduce(
        lane, from, have, last ? out : wide,
        (uint8_t)((last ? TW_STEP_FINAL | TW_STEP_ROUND : 0) | (right ? TW_STEP_ACC_RIGHT : 0)));
    return last ? out : wide;
}

static void climb(const struct tw_algo_lane *lane, int root)
{
    struct tw_algo_job *job = lane->job;
    struct tw_plan_span have = tw_algo_chunk(lane, TW_BUF_IN, 0);
    for (int half = 1; half < job->nranks; half *= 2) {
        struct meeting at = meeting_at(lane->rank, half);
        if (at.sibling >= job->nranks)
            continue;
        int winner = holder(root, at.left, 2 * half);
        if (winner != lane->rank) {
            tw_algo_send(lane, winner, have);
            return;
        }
        have = meet(lane, &at, holder(root, at.sibling, half), have);
    }
}

static void tree_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    climb(&lane, job->root);
}

/* Both halves of each interval end with the sum of both. */
static void tree_swap(const struct tw_algo_lane *lane)
{
    struct tw_plan_span have = tw_algo_chunk(lane, TW_BUF_IN, 0);
    for (int half = 1; half < lane->job->nranks; half *= 2) {
        struct meeting at = meeting_at(lane->rank, half);
        tw_algo_send(lane, lane->rank ^ half, have);
        have = meet(lane, &at, lane->rank ^ half, have);
    }
}

/* From rank 0 down the edges by which the partials came up. */
static void come_down(const struct tw_algo_lane *lane)
{
    struct tw_algo_job *job = lane->job;
    struct tw_plan_span out = tw_algo_chunk(lane, TW_BUF_OUT, 0);
    int half = 1;
    while (half < job->nranks && (lane->rank & half) == 0)
        half *= 2;
    if (lane->rank != 0)
        tw_algo_recv(lane, lane->rank - half, out);
    for (half /= 2; half > 0; half /= 2)
        if (lane->rank + half < job->nranks)
            tw_algo_send(lane, lane->rank + half, out);
}

static void tree_all_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    if (tw_algo_is_power((uint32_t)job->nranks)) {
        tree_swap(&lane);
        return;
    }
    climb(&lane, 0);
    come_down(&lane);
}

enum twill_status tw_algo_ordered_tree(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {.name = "ordered_tree",
                                .chunks = 1,
                                .depth = 2,
                                .slices = 2,
                                .widest = 1,
                                .wide_chunks = 1,
                                .deterministic = true};
    if (args->coll == TW_COLL_ALL_REDUCE)
        form.program = tree_all_reduce;
    else if (args->coll == TW_COLL_REDUCE)
        form.program = tree_reduce;
    return tw_algo_form_plan(&form, args, plan);
}
