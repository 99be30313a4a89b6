/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: logarithmic all_gather and reduce_scatter in messages of bounded size.
 * Never knows: bytes, transports.
 *
 * Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
 * arXiv:2506.20252 (2025): parallel aggregated trees.
 *
 * Each group has a binomial tree over the ranks, counted from the group's own rank on: a rank at
 * offset o passes on to offsets o + 2^k below o's lowest bit. All trees run at once, shifted
 * against each other; in one step a rank does the same edge, from some offset to 2^k further, in up
 * to `aggregation` trees, and these groups are one message. Far edges come first, so that the large
 * messages, at the end, go to near ranks. With aggregation A, D = 2^ceil(log2 n) / A:
 *   first the edges of length D and more, in log2 A steps of 1, 2, 4, ... A/2 groups;
 *   then each of the A subtrees of D offsets, edge after edge, depth first, all A at once.
 * log2 A + D - 1 rounds (D no larger than n) and n-1 groups per rank. reduce_scatter is the same
 * backwards: what a subtree has added up waits in scratch until its edge's turn, for which depth
 * first needs A groups of scratch for each of log2 D levels only.
 *
 * Offsets of one step are equally far apart, so a message is one span of single groups, or two
 * where it wraps around the last rank. Deadlock: as in circulant.c; a step's offsets span less than
 * n - 2^k, so in each circle of ranks 2^k apart some rank has no wrap.
 */
#include "algo/form.h"

#define AGGREGATION_DEFAULT 8

/* An edge in several trees: from offsets first + i * stride, i < count, to 2^k further. */
struct edge {
    uint32_t first, stride, count;
    uint32_t length;
};

/* How the trees are cut. */
struct shape {
    uint32_t nranks;
    uint32_t aggregation; /* A: a power of two below nranks (or 1) */
    uint32_t subtree;     /* D: a power of two */
    uint32_t levels;      /* its logarithm */
};

static struct shape shape_of(int nranks, uint32_t aggregation)
{
    struct shape shape = {.nranks = (uint32_t)nranks};
    uint32_t all = 1u << tw_algo_log2_ceil(shape.nranks);
    uint32_t most = all > 1 ? all / 2 : 1;
    uint32_t levels = 0;
    while (2u << levels <= aggregation && 2u << levels <= most)
        levels++;
    shape.aggregation = 1u << levels;
    shape.subtree = all >> levels;
    shape.levels = tw_algo_log2_ceil(shape.subtree);
    return shape;
}

/* The trees in which both ends of the edge are ranks: the first count of at most `most`. */
static struct edge edge_of(const struct shape *shape, uint32_t first, uint32_t stride,
                           uint32_t most, uint32_t length)
{
    struct edge edge = {first, stride, 0, length};
    uint32_t far = first + length;
    if (far < shape->nranks && stride > 0)
        edge.count = (shape->nranks - far + stride - 1) / stride;
    if (edge.count > most)
        edge.count = most;
    return edge;
}

/* The nth edge inside a subtree, depth first, far edges first. */
static struct edge inner_edge(const struct shape *shape, uint32_t nth)
{
    uint32_t from = 0, length = shape->subtree / 2;
    for (; nth > 0; length /= 2) {
        if (nth < length) { /* below the rank at the edge's end */
            from += length;
            nth--;
        } else {
            nth -= length;
        }
    }
    return edge_of(shape, from, shape->subtree, shape->aggregation, length);
}

/* The nth step of all; false past the last. */
static bool edge_at(const struct shape *shape, uint32_t nth, struct edge *edge)
{
    *edge = (struct edge){.stride = 1};
    uint32_t levels = tw_algo_log2_ceil(shape->aggregation);
    if (nth >= levels + shape->subtree - 1)
        return false;
    if (nth >= levels) {
        *edge = inner_edge(shape, nth - levels);
        return true;
    }
    uint32_t length = shape->subtree * shape->aggregation / 2 >> nth;
    *edge = edge_of(shape, 0, 2 * length, 1u << nth, length);
    return true;
}

/* Groups of the trees in which the rank is at the edge's near or far end, by rising number, as they
 * lie in IN or OUT; at: where in the order of the edge's trees, the last one first. */
static int edge_pieces(const struct tw_algo_lane *lane, const struct edge *edge, bool far,
                       struct tw_algo_piece pieces[2])
{
    uint32_t nranks = (uint32_t)lane->job->nranks;
    uint32_t offset = edge->first + (edge->count - 1) * edge->stride + (far ? edge->length : 0);
    return tw_algo_cut(nranks, (uint32_t)tw_algo_around(lane->job, lane->rank, -(int)offset),
                       edge->stride, edge->count, pieces);
}

static struct tw_plan_span user_span(const struct tw_algo_lane *lane, enum tw_plan_buf buf,
                                     const struct edge *edge, const struct tw_algo_piece *piece)
{
    return tw_algo_strided(lane, buf, piece->first, edge->stride, piece->count);
}

/* ---- all_gather ------------------------------------------------------------------------------ */

static void pat_all_gather(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct shape shape = shape_of(job->nranks, job->param);
    tw_algo_copy(&lane, tw_algo_chunk(&lane, TW_BUF_IN, 0),
                 tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank));
    struct edge edge;
    for (uint32_t nth = 0; edge_at(&shape, nth, &edge); nth++) {
        struct tw_algo_piece pieces[2];
        int npieces = edge.count > 0 ? edge_pieces(&lane, &edge, false, pieces) : 0;
        for (int i = 0; i < npieces; i++)
            tw_algo_send(&lane, tw_algo_around(job, rank, (int)edge.length),
                         user_span(&lane, TW_BUF_OUT, &edge, &pieces[i]));
        npieces = edge.count > 0 ? edge_pieces(&lane, &edge, true, pieces) : 0;
        for (int i = 0; i < npieces; i++)
            tw_algo_recv(&lane, tw_algo_around(job, rank, -(int)edge.length),
                         user_span(&lane, TW_BUF_OUT, &edge, &pieces[i]));
    }
}

/* ---- reduce_scatter -------------------------------------------------------------------------- */

/* Scratch has a row of A partials for each level of a subtree, the last tree first, so that rising
 * groups are rising cells. No two offsets of one level are at work at once: depth first. */
static uint32_t partial_cell(const struct shape *shape, uint32_t offset)
{
    uint32_t node = offset & (shape->subtree - 1);
    uint32_t level = node ? (uint32_t)__builtin_ctz(node) - 1 : shape->levels - 1;
    return level * shape->aggregation + shape->aggregation - 1 - (offset >> shape->levels);
}

static struct tw_plan_span partial_span(const struct tw_algo_lane *lane, const struct shape *shape,
                                        const struct edge *edge, bool far,
                                        const struct tw_algo_piece *piece)
{
    uint32_t last = edge->first + (edge->count - 1) * edge->stride + (far ? edge->length : 0);
    uint32_t step = edge->stride >> shape->levels;
    return tw_algo_strided(lane, TW_BUF_SCRATCH, partial_cell(shape, last) + piece->at * step, step,
                           piece->count);
}

/* The far ends of the edge give what they have: a leaf its input, the others their partials. */
static void edge_send(const struct tw_algo_lane *lane, const struct shape *shape,
                      const struct edge *edge)
{
    struct tw_algo_piece pieces[2];
    int npieces = edge_pieces(lane, edge, true, pieces);
    for (int i = 0; i < npieces; i++)
        tw_algo_send(lane, tw_algo_around(lane->job, lane->rank, -(int)edge->length),
                     edge->length == 1 ? user_span(lane, TW_BUF_IN, edge, &pieces[i])
                                       : partial_span(lane, shape, edge, true, &pieces[i]));
}

/* The near ends add it; the shortest edge of a node comes first and meets its input. */
static void edge_add(const struct tw_algo_lane *lane, const struct shape *shape,
                     const struct edge *edge, bool final)
{
    struct tw_algo_piece pieces[2];
    int npieces = edge_pieces(lane, edge, false, pieces);
    for (int i = 0; i < npieces; i++) {
        struct tw_plan_span sum = partial_span(lane, shape, edge, false, &pieces[i]);
        struct tw_plan_span have =
            edge->length == 1 ? user_span(lane, TW_BUF_IN, edge, &pieces[i]) : sum;
        tw_algo_recv_reduce(lane, tw_algo_around(lane->job, lane->rank, (int)edge->length), have,
                            final ? tw_algo_chunk(lane, TW_BUF_OUT, 0) : sum,
                            final ? TW_STEP_FINAL : 0);
    }
}

/* Where the shortest edge ends past the last rank its near end has no children, but later steps
 * look for its partial. */
static void childless_copy(const struct tw_algo_lane *lane, const struct shape *shape,
                           const struct edge *edge)
{
    uint32_t offset = edge->first + edge->count * edge->stride, nranks = shape->nranks;
    if (edge->length != 1 || edge->count == shape->aggregation || offset >= nranks)
        return;
    tw_algo_copy(lane,
                 tw_algo_chunk(lane, TW_BUF_IN,
                               (uint32_t)tw_algo_around(lane->job, lane->rank, -(int)offset)),
                 tw_algo_chunk(lane, TW_BUF_SCRATCH, partial_cell(shape, offset)));
}

static void pat_reduce_scatter(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct shape shape = shape_of(job->nranks, job->param);
    uint32_t nsteps = tw_algo_log2_ceil(shape.aggregation) + shape.subtree - 1;
    while (nsteps-- > 0) {
        struct edge edge;
        edge_at(&shape, nsteps, &edge);
        childless_copy(&lane, &shape, &edge);
        if (edge.count == 0)
            continue;
        edge_send(&lane, &shape, &edge);
        edge_add(&lane, &shape, &edge, nsteps == 0);
    }
}

enum twill_status tw_algo_pat(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {.name = "pat", .chunks = 1, .depth = 2, .slices = 2, .widest = 1};
    form.param = args->param ? args->param : AGGREGATION_DEFAULT;
    struct shape shape = shape_of(args->nranks > 1 ? args->nranks : 2, form.param);
    form.widest = (shape.nranks - 2 + shape.subtree) / shape.subtree;
    if (form.widest > shape.aggregation)
        form.widest = shape.aggregation;
    switch (args->coll) {
    case TW_COLL_ALL_GATHER:
    case TW_COLL_ALL_GATHER_V:
        form.program = pat_all_gather;
        break;
    case TW_COLL_REDUCE_SCATTER:
        form.scratch_chunks = shape.levels * shape.aggregation;
        form.program = pat_reduce_scatter;
        break;
    default:
        break;
    }
    return tw_algo_form_plan(&form, args, plan);
}
