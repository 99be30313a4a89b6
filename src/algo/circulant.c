/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: exchange over the skips of a circulant graph. Never knows: bytes, transports.
 *
 * Source: Traeff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms",
 * arXiv:2410.14234 (2024), algorithms for both; the all_gather half is that of Bruck et al.,
 * "Efficient algorithms for all-to-all communications in multiport message-passing systems", IEEE
 * Trans. Parallel Distrib. Syst. 8 (1997), concatenation.
 *
 * Skips halve, rounding up: n, ceil(n/2), ..., 1. Number chunks from the rank's own on: chunk i is
 * chunk (rank + i) mod n. In the round from skip t to skip s a rank sends chunks s..t-1 to rank + s
 * and adds what comes from rank - s to chunks 0..t-s-1; the gather runs the same rounds backwards.
 * Any rank count, n-1 of n chunks per rank each way, ceil(log2 n) rounds each way. A range that
 * wraps around the last chunk takes two messages (sender and receiver cut at the same chunk).
 *
 * Deadlock: a rank sends before it receives, one or two messages. Along the circle of ranks that
 * are s apart the sent ranges do not overlap, so that the wrap falls into at most one range of each
 * turn around the n chunks, and a turn has two ranks at least: some rank of each circle sends one
 * message only, goes on to receive, and frees the rank before it. Depth = slices is enough.
 */
#include "algo/form.h"

/* Neighbouring chunks that do not wrap. */
struct piece {
    uint32_t offset; /* of the first, from the rank's own on */
    uint32_t first;  /* its absolute number */
    uint32_t count;
};

/* Cut chunks offset..offset+count-1 at the wrap; returns how many pieces. */
static int pieces_of(const struct tw_algo_lane *lane, uint32_t offset, uint32_t count,
                     struct piece pieces[2])
{
    uint32_t nranks = (uint32_t)lane->job->nranks;
    struct tw_algo_piece cut[2];
    int npieces = tw_algo_cut(nranks, ((uint32_t)lane->rank + offset) % nranks, 1, count, cut);
    for (int i = 0; i < npieces; i++)
        pieces[i] = (struct piece){offset + cut[i].at, cut[i].first, cut[i].count};
    return npieces;
}

static bool is_gather(const struct tw_algo_job *job)
{
    return job->coll == TW_COLL_ALL_GATHER || job->coll == TW_COLL_ALL_GATHER_V;
}

/* Partial sums wait in OUT where it has room for all chunks, else in scratch: by offset, or by
 * their absolute number where chunks have sizes of their own. */
static struct tw_plan_span partial(const struct tw_algo_lane *lane, const struct piece *piece)
{
    if (lane->job->coll == TW_COLL_ALL_REDUCE)
        return tw_algo_range(lane, TW_BUF_OUT, piece->first, piece->count);
    bool sized = lane->job->coll == TW_COLL_REDUCE_SCATTER_V;
    return tw_algo_range(lane, TW_BUF_SCRATCH, sized ? piece->first : piece->offset, piece->count);
}

static struct tw_plan_span input(const struct tw_algo_lane *lane, const struct piece *piece)
{
    return tw_algo_range(lane, TW_BUF_IN, piece->first, piece->count);
}

/* One round of the reduction, from skip `last` to skip `skip`. */
static void scatter_round(const struct tw_algo_lane *lane, uint32_t last, uint32_t skip)
{
    struct tw_algo_job *job = lane->job;
    bool untouched = last == (uint32_t)job->nranks;
    struct piece pieces[2];
    int npieces = pieces_of(lane, skip, last - skip, pieces);
    for (int i = 0; i < npieces; i++)
        tw_algo_send(lane, tw_algo_around(job, lane->rank, (int)skip),
                     untouched ? input(lane, &pieces[i]) : partial(lane, &pieces[i]));
    npieces = pieces_of(lane, 0, last - skip, pieces);
    for (int i = 0; i < npieces; i++) {
        struct tw_plan_span dst = partial(lane, &pieces[i]);
        if (skip == 1 && job->coll != TW_COLL_ALL_REDUCE)
            dst = tw_algo_chunk(lane, TW_BUF_OUT, 0);
        tw_algo_recv_reduce(lane, tw_algo_around(job, lane->rank, -(int)skip),
                            untouched ? input(lane, &pieces[i]) : partial(lane, &pieces[i]), dst,
                            skip == 1 ? TW_STEP_FINAL : 0);
    }
}

static void circulant_scatter(const struct tw_algo_lane *lane)
{
    uint32_t nranks = (uint32_t)lane->job->nranks;
    if (nranks % 2 == 1) { /* the first round neither sends nor adds to the middle chunk */
        struct piece middle = {nranks / 2, ((uint32_t)lane->rank + nranks / 2) % nranks, 1};
        tw_algo_copy(lane, input(lane, &middle), partial(lane, &middle));
    }
    uint32_t last = nranks;
    while (last > 1) {
        uint32_t skip = (last + 1) / 2;
        scatter_round(lane, last, skip);
        last = skip;
    }
}

/* The rounds of the scatter backwards: skip s to skip t, from inside out. */
static void circulant_gather(const struct tw_algo_lane *lane)
{
    struct tw_algo_job *job = lane->job;
    for (uint32_t k = tw_algo_log2_ceil((uint32_t)job->nranks); k-- > 0;) {
        uint32_t last = ((uint32_t)job->nranks + (1u << k) - 1) >> k; /* ceil(n / 2^k) */
        uint32_t skip = (last + 1) / 2;
        struct piece pieces[2];
        int npieces = pieces_of(lane, 0, last - skip, pieces);
        for (int i = 0; i < npieces; i++)
            tw_algo_send(lane, tw_algo_around(job, lane->rank, -(int)skip),
                         tw_algo_range(lane, TW_BUF_OUT, pieces[i].first, pieces[i].count));
        npieces = pieces_of(lane, skip, last - skip, pieces);
        for (int i = 0; i < npieces; i++)
            tw_algo_recv(lane, tw_algo_around(job, lane->rank, (int)skip),
                         tw_algo_range(lane, TW_BUF_OUT, pieces[i].first, pieces[i].count));
    }
}

static void circulant_program(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    if (is_gather(job))
        tw_algo_copy(&lane, tw_algo_chunk(&lane, TW_BUF_IN, 0),
                     tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank));
    else
        circulant_scatter(&lane);
    if (job->coll == TW_COLL_ALL_REDUCE || is_gather(job))
        circulant_gather(&lane);
}

enum twill_status tw_algo_circulant_as(const char *name, const struct tw_algo_args *args,
                                       struct tw_plan **plan)
{
    uint32_t nranks = (uint32_t)args->nranks;
    struct tw_algo_form form = {
        .name = name, .chunks = 1, .depth = 2, .slices = 2, .widest = nranks / 2};
    switch (args->coll) {
    case TW_COLL_ALL_REDUCE:
        form.chunks = nranks;
        form.program = circulant_program;
        break;
    case TW_COLL_REDUCE_SCATTER:
        form.scratch_chunks = (nranks + 1) / 2;
        form.program = circulant_program;
        break;
    case TW_COLL_REDUCE_SCATTER_V:
        form.scratch_chunks = nranks;
        form.program = circulant_program;
        break;
    case TW_COLL_ALL_GATHER:
    case TW_COLL_ALL_GATHER_V:
        form.program = circulant_program;
        break;
    default:
        break;
    }
    return tw_algo_form_plan(&form, args, plan);
}

enum twill_status tw_algo_circulant(const struct tw_algo_args *args, struct tw_plan **plan)
{
    return tw_algo_circulant_as("circulant", args, plan);
}
