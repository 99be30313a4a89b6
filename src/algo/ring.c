/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the ring. Never knows: bytes, transports, other schedules.
 *
 * Source: Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", J. Parallel Distrib. Comput. 69 (2009), for the logical ring; broadcast and reduce
 * are the pipelined chain along it; the v-variants go round it in equal slices, as in Traeff et
 * al., "A simple, pipelined algorithm for large, irregular all-gather problems", EuroPVM/MPI 2008.
 *
 * Each rank sends to the next and receives from the one before. In shares of the data (chunks),
 * all_reduce moves 2(n-1) of n chunks per rank in 2(n-1) rounds, reduce_scatter and all_gather n-1
 * groups in n-1 rounds, broadcast and reduce the whole once through a chain of n ranks.
 *
 * Deadlock: every rank first fills its own FIFO with the slices of one chunk, and from then on
 * takes a slot for each that it frees. One slot more than slices keeps the circle moving.
 */
#include "algo/form.h"

/* Chunk that is `behind` places behind the rank's own. */
static uint32_t chunk_behind(const struct tw_algo_job *job, int rank, int behind)
{
    return (uint32_t)tw_algo_around(job, rank, -behind);
}

/* Chunk c's sum starts at rank c+1 and ends at rank c: all steps up to the last addition. */
static void ring_scatter(const struct tw_algo_lane *lane)
{
    struct tw_algo_job *job = lane->job;
    int rank = lane->rank, next = tw_algo_around(job, rank, 1),
        prev = tw_algo_around(job, rank, -1);
    tw_algo_send(lane, next, tw_algo_chunk(lane, TW_BUF_IN, chunk_behind(job, rank, 1)));
    for (int k = 2; k < job->nranks; k++)
        tw_algo_recv_reduce_send(lane, (int[2]){prev, next},
                                 tw_algo_chunk(lane, TW_BUF_IN, chunk_behind(job, rank, k)),
                                 tw_span_none(), 0);
}

/* The rank's own chunk is on its way to the next: pass on what comes, keep a copy. */
static void ring_gather(const struct tw_algo_lane *lane)
{
    struct tw_algo_job *job = lane->job;
    int rank = lane->rank, next = tw_algo_around(job, rank, 1),
        prev = tw_algo_around(job, rank, -1);
    for (int k = 1; k < job->nranks - 1; k++)
        tw_algo_recv_send(lane, prev, next,
                          tw_algo_chunk(lane, TW_BUF_OUT, chunk_behind(job, rank, k)));
    tw_algo_recv(lane, prev,
                 tw_algo_chunk(lane, TW_BUF_OUT, chunk_behind(job, rank, job->nranks - 1)));
}

static void ring_all_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    int next = tw_algo_around(job, rank, 1), prev = tw_algo_around(job, rank, -1);
    ring_scatter(&lane);
    tw_algo_recv_reduce_send(
        &lane, (int[2]){prev, next}, tw_algo_chunk(&lane, TW_BUF_IN, (uint32_t)rank),
        tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank), TW_STEP_STORE | TW_STEP_FINAL);
    ring_gather(&lane);
}

static void ring_reduce_scatter(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    ring_scatter(&lane);
    tw_algo_recv_reduce(&lane, tw_algo_around(job, rank, -1),
                        tw_algo_chunk(&lane, TW_BUF_IN, (uint32_t)rank),
                        tw_algo_chunk(&lane, TW_BUF_OUT, 0), TW_STEP_FINAL);
}

static void ring_all_gather(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct tw_plan_span own = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    tw_algo_send(&lane, tw_algo_around(job, rank, 1), own);
    tw_algo_copy(&lane, own, tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank));
    ring_gather(&lane);
}

static void ring_broadcast(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    int next = tw_algo_around(job, rank, 1), prev = tw_algo_around(job, rank, -1);
    struct tw_plan_span out = tw_algo_chunk(&lane, TW_BUF_OUT, 0);
    if (rank == job->root) {
        struct tw_plan_span in = tw_algo_chunk(&lane, TW_BUF_IN, 0);
        tw_algo_send(&lane, next, in);
        tw_algo_copy(&lane, in, out);
    } else if (next == job->root) {
        tw_algo_recv(&lane, prev, out);
    } else {
        tw_algo_recv_send(&lane, prev, next, out);
    }
}

/* The chain ends at the root and starts behind it. */
static void ring_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    int next = tw_algo_around(job, rank, 1), prev = tw_algo_around(job, rank, -1);
    struct tw_plan_span in = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    if (rank == job->root)
        tw_algo_recv_reduce(&lane, prev, in, tw_algo_chunk(&lane, TW_BUF_OUT, 0), TW_STEP_FINAL);
    else if (prev == job->root)
        tw_algo_send(&lane, next, in);
    else
        tw_algo_recv_reduce_send(&lane, (int[2]){prev, next}, in, tw_span_none(), 0);
}

enum twill_status tw_algo_ring(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {.name = "ring", .chunks = 1, .depth = 3, .slices = 2, .widest = 1};
    switch (args->coll) {
    case TW_COLL_ALL_REDUCE:
        form.chunks = (uint32_t)args->nranks;
        form.program = ring_all_reduce;
        break;
    case TW_COLL_REDUCE_SCATTER:
    case TW_COLL_REDUCE_SCATTER_V:
        form.program = ring_reduce_scatter;
        break;
    case TW_COLL_ALL_GATHER:
    case TW_COLL_ALL_GATHER_V:
        form.program = ring_all_gather;
        break;
    case TW_COLL_BROADCAST:
        form.program = ring_broadcast;
        form.depth = 2; /* a chain has no circle */
        break;
    case TW_COLL_REDUCE:
        form.program = ring_reduce;
        form.depth = 2;
        break;
    default:
        break;
    }
    return tw_algo_form_plan(&form, args, plan);
}
