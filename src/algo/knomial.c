/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the k-nomial tree. Never knows: bytes, transports.
 *
 * Source: Thakur, Rabenseifner and Gropp (Int. J. High Perform. Comput. Appl. 19, 2005), sections
 * 4.2 (broadcast), 4.4 (gather and scatter, in long broadcasts) and 4.5 (reduce), for radix 2, the
 * binomial tree; the general radix as in Bar-Noy and Kipnis, "Designing broadcasting algorithms in
 * the postal model for message-passing systems", Math. Syst. Theory 27 (1994), with messages that
 * take several steps to arrive.
 *
 * Ranks count from the root on, in digits of the radix. A rank's parent is its number with the
 * lowest digit that is not zero set to zero; its children are the numbers with one more digit below
 * that. A message's way is as long as the rank has such digits, ceil(log_k n) at most; a rank sends
 * k-1 messages a digit. n-1 whole buffers move in a broadcast or reduce; in a gather or scatter
 * each group moves once for each digit of its rank, in messages of whole subtrees.
 *
 * The largest subtree is served first and heard last, so that sums run over neighbours in rank
 * order from the root on. Deadlock: edges of a tree, and nobody's sends wait for what comes later
 * in another rank's order.
 */
#include "algo/form.h"
#include "base/status.h"

#define RADIX_DEFAULT 4

/* A rank's place in the tree. Subtrees are ranges of numbers. */
struct place {
    uint32_t number; /* from the root on */
    int parent;      /* TW_NO_RANK at the root */
    uint32_t room;   /* of the subtree: numbers below number + room, where those are ranks */
    uint32_t nchildren;
};

struct child {
    int rank;
    uint32_t offset, count; /* its subtree, from the parent's number on */
};

/* Children are numbered by rising distance: j * radix^i for j < radix. 64 bit: past the ranks. */
static uint64_t child_distance(const struct tw_algo_job *job, uint32_t nth, uint64_t *weight)
{
    *weight = 1;
    for (uint32_t i = nth / (job->param - 1); i > 0; i--)
        *weight *= job->param;
    return *weight * (nth % (job->param - 1) + 1);
}

static struct place place_of(const struct tw_algo_job *job, int rank)
{
    struct place place = {.parent = TW_NO_RANK, .room = (uint32_t)job->nranks};
    place.number = (uint32_t)tw_algo_around(job, rank, -job->root);
    uint32_t weight = 1, digit = place.number;
    while (digit != 0 && digit % job->param == 0) {
        digit /= job->param;
        weight *= job->param;
    }
    if (digit != 0) {
        uint32_t parent = place.number - digit % job->param * weight;
        place.parent = tw_algo_around(job, job->root, (int)parent);
        place.room = weight;
    }
    if (place.room > (uint32_t)job->nranks - place.number)
        place.room = (uint32_t)job->nranks - place.number;
    uint64_t unused;
    while (child_distance(job, place.nchildren, &unused) < place.room)
        place.nchildren++;
    return place;
}

static struct child child_of(const struct tw_algo_job *job, const struct place *place, uint32_t nth)
{
    uint64_t weight;
    struct child child = {.offset = (uint32_t)child_distance(job, nth, &weight)};
    child.rank = tw_algo_around(job, job->root, (int)(place->number + child.offset));
    child.count = place->room - child.offset;
    if (child.count > weight)
        child.count = (uint32_t)weight;
    return child;
}

/* ---- whole buffers --------------------------------------------------------------------------- */

static void knomial_broadcast(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct place place = place_of(job, rank);
    struct tw_plan_span out = tw_algo_chunk(&lane, TW_BUF_OUT, 0), have = out;
    uint32_t left = place.nchildren;
    if (place.parent == TW_NO_RANK) {
        have = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    } else if (left == 0) {
        tw_algo_recv(&lane, place.parent, out);
    } else {
        left--; /* the first child's copy goes on while it arrives */
        tw_algo_recv_send(&lane, place.parent, child_of(job, &place, left).rank, out);
    }
    while (left-- > 0)
        tw_algo_send(&lane, child_of(job, &place, left).rank, have);
    if (place.parent == TW_NO_RANK)
        tw_algo_copy(&lane, have, out);
}

/* Only the root has OUT: the others gather in scratch, and pass the last addition on as it is made.
 */
static void knomial_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct place place = place_of(job, rank);
    bool root = place.parent == TW_NO_RANK;
    struct tw_plan_span sum = tw_algo_chunk(&lane, root ? TW_BUF_OUT : TW_BUF_SCRATCH, 0);
    struct tw_plan_span have = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    if (place.nchildren == 0)
        tw_algo_send(&lane, place.parent, have);
    for (uint32_t nth = 0; nth < place.nchildren; nth++) {
        int child = child_of(job, &place, nth).rank;
        bool last = nth + 1 == place.nchildren;
        if (last && !root)
            tw_algo_recv_reduce_send(&lane, (int[2]){child, place.parent}, have, tw_span_none(), 0);
        else
            tw_algo_recv_reduce(&lane, child, have, sum, last ? TW_STEP_FINAL : 0);
        have = sum;
    }
}

/* ---- subtrees -------------------------------------------------------------------------------- */

/* Groups of a subtree, `offset` behind the rank's number, where the rank keeps them: the root in IN
 * or OUT, by rank, so that they may wrap around the last; the others in scratch. */
static int groups_of(const struct tw_algo_lane *lane, const struct place *place, uint32_t offset,
                     uint32_t count, struct tw_plan_span spans[2])
{
    const struct tw_algo_job *job = lane->job;
    if (place->parent != TW_NO_RANK) {
        spans[0] = tw_algo_range(lane, TW_BUF_SCRATCH, offset, count);
        return 1;
    }
    enum tw_plan_buf buf = job->rule->in.many ? TW_BUF_IN : TW_BUF_OUT;
    struct tw_algo_piece pieces[2];
    uint32_t first = (uint32_t)tw_algo_around(job, job->root, (int)offset);
    int npieces = tw_algo_cut((uint32_t)job->nranks, first, 1, count, pieces);
    for (int i = 0; i < npieces; i++)
        spans[i] = tw_algo_range(lane, buf, pieces[i].first, pieces[i].count);
    return npieces;
}

/* The same groups at the other end of the message to or from the parent, cut where that cuts. */
static int own_groups(const struct tw_algo_lane *lane, const struct place *place,
                      struct tw_plan_span spans[2])
{
    const struct tw_algo_job *job = lane->job;
    struct tw_algo_piece pieces[2] = {{0, 0, place->room}, {0}};
    int npieces = 1;
    if (place->parent == job->root)
        npieces = tw_algo_cut((uint32_t)job->nranks, (uint32_t)lane->rank, 1, place->room, pieces);
    for (int i = 0; i < npieces; i++)
        spans[i] = tw_algo_range(lane, TW_BUF_SCRATCH, pieces[i].at, pieces[i].count);
    return npieces;
}

static void knomial_gather(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct place place = place_of(job, rank);
    struct tw_plan_span in = tw_algo_chunk(&lane, TW_BUF_IN, 0), spans[2] = {{0}};
    if (place.nchildren == 0) {
        tw_algo_send(&lane, place.parent, in);
        return;
    }
    groups_of(&lane, &place, 0, 1, spans);
    tw_algo_copy(&lane, in, spans[0]);
    for (uint32_t nth = 0; nth < place.nchildren; nth++) {
        struct child child = child_of(job, &place, nth);
        int nspans = groups_of(&lane, &place, child.offset, child.count, spans);
        for (int i = 0; i < nspans; i++)
            tw_algo_recv(&lane, child.rank, spans[i]);
    }
    int nspans = place.parent == TW_NO_RANK ? 0 : own_groups(&lane, &place, spans);
    for (int i = 0; i < nspans; i++)
        tw_algo_send(&lane, place.parent, spans[i]);
}

static void knomial_scatter(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct place place = place_of(job, rank);
    struct tw_plan_span out = tw_algo_chunk(&lane, TW_BUF_OUT, 0), spans[2] = {{0}};
    if (place.nchildren == 0) {
        tw_algo_recv(&lane, place.parent, out);
        return;
    }
    int nspans = place.parent == TW_NO_RANK ? 0 : own_groups(&lane, &place, spans);
    for (int i = 0; i < nspans; i++)
        tw_algo_recv(&lane, place.parent, spans[i]);
    for (uint32_t left = place.nchildren; left-- > 0;) {
        struct child child = child_of(job, &place, left);
        nspans = groups_of(&lane, &place, child.offset, child.count, spans);
        for (int i = 0; i < nspans; i++)
            tw_algo_send(&lane, child.rank, spans[i]);
    }
    groups_of(&lane, &place, 0, 1, spans);
    tw_algo_copy(&lane, spans[0], out);
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* The largest subtree below the root. */
static uint32_t largest_subtree(const struct tw_algo_form *form, int nranks)
{
    uint64_t weight = 1, n = (uint64_t)nranks;
    while (weight * form->param < n)
        weight *= form->param;
    uint64_t last = n > weight && n - weight < weight ? n - weight : weight;
    uint64_t before = weight / form->param;
    return (uint32_t)(last > before ? last : before);
}

static enum twill_status knomial_plan(const char *name, uint32_t radix,
                                      const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {
        .name = name, .chunks = 1, .depth = 2, .slices = 2, .widest = 1, .param = radix};
    if (args->nranks > 1 && radix > (uint32_t)args->nranks)
        form.param = (uint32_t)args->nranks; /* the root is everybody's parent */
    if (radix < 2)
        return tw_fail(TWILL_ERR_INVALID, "algorithm %s: radix %u is not at least 2", name, radix);
    switch (args->coll) {
    case TW_COLL_BROADCAST:
        form.program = knomial_broadcast;
        break;
    case TW_COLL_REDUCE:
        form.scratch_chunks = 1;
        form.program = knomial_reduce;
        break;
    case TW_COLL_GATHER:
    case TW_COLL_SCATTER:
        form.widest = args->nranks > 1 ? largest_subtree(&form, args->nranks) : 1;
        form.scratch_chunks = form.widest > 1 ? form.widest : 0;
        form.program = args->coll == TW_COLL_GATHER ? knomial_gather : knomial_scatter;
        break;
    default:
        break;
    }
    return tw_algo_form_plan(&form, args, plan);
}

enum twill_status tw_algo_knomial(const struct tw_algo_args *args, struct tw_plan **plan)
{
    return knomial_plan("knomial", args->param ? args->param : RADIX_DEFAULT, args, plan);
}

enum twill_status tw_algo_binomial(const struct tw_algo_args *args, struct tw_plan **plan)
{
    return knomial_plan("binomial", 2, args, plan);
}
