/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: everybody to everybody at once. Never knows: bytes, transports.
 *
 * Source: the all-pairs schedules, one-phase and two-phase, of Shah et al., "MSCCL++: Rethinking
 * GPU Communication Abstractions for Cutting-Edge AI Applications", arXiv:2504.09014 (2025);
 * all_to_all is the linear one that posts everything at once.
 *
 * direct all_reduce is one-shot: n-1 whole buffers per rank in one round; all ranks add in rank
 * order, so that they hold the same bits. direct reduce_scatter and all_gather move n-1 groups per
 * rank in one round, all_to_all n-1 groups per rank with a lane for each peer, so that no peer
 * waits for another; a lane sends what stands where it then receives, so that OUT may be IN.
 * two_shot all_reduce is the direct reduce_scatter of n chunks and then the direct all_gather:
 * 2(n-1) of n chunks per rank in two rounds.
 *
 * Rank r sends to r+1, r+2, ... and receives from r-1, r-2, ...: no rank is everybody's first.
 *
 * Deadlock: a FIFO holds one step's slices, so all sends of a round finish without a receiver.
 */
#include "algo/form.h"

/* ---- one-shot all_reduce --------------------------------------------------------------------- */

/* OUT gathers in rank order. Where own data is neither first nor second it must wait for its turn
 * in scratch, as OUT may be IN. */
static void one_shot_all_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct tw_plan_span in = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    struct tw_plan_span out = tw_algo_chunk(&lane, TW_BUF_OUT, 0);
    struct tw_plan_span own = tw_algo_chunk(&lane, TW_BUF_SCRATCH, 0);
    int last = job->nranks - 1;
    for (int k = 1; k < job->nranks; k++)
        tw_algo_send(&lane, tw_algo_around(job, rank, k), in);
    if (rank > 1) {
        tw_algo_copy(&lane, in, own);
        tw_algo_recv(&lane, 0, out);
    } else {
        tw_algo_recv_reduce(&lane, 1 - rank, in, out,
                            (rank == 1 ? TW_STEP_ACC_RIGHT : 0) | (last == 1 ? TW_STEP_FINAL : 0));
    }
    for (int peer = rank > 1 ? 1 : 2; peer <= last; peer++) {
        uint8_t flags = peer == last ? TW_STEP_FINAL : 0;
        if (peer == rank)
            tw_algo_reduce(&lane, own, out, flags);
        else
            tw_algo_recv_reduce(&lane, peer, out, out, flags);
    }
}

/* ---- reduce_scatter, all_gather, and both in a row ------------------------------------------- */

/* Give every peer its chunk; add up the own one into `out`. */
static void direct_scatter(const struct tw_algo_lane *lane, struct tw_plan_span out)
{
    struct tw_algo_job *job = lane->job;
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, lane->rank, k);
        tw_algo_send(lane, peer, tw_algo_chunk(lane, TW_BUF_IN, (uint32_t)peer));
    }
    struct tw_plan_span have = tw_algo_chunk(lane, TW_BUF_IN, (uint32_t)lane->rank);
    for (int k = 1; k < job->nranks; k++) {
        tw_algo_recv_reduce(lane, tw_algo_around(job, lane->rank, -k), have, out,
                            k == job->nranks - 1 ? TW_STEP_FINAL : 0);
        have = out;
    }
}

/* Give every peer the own chunk; take theirs. */
static void direct_gather(const struct tw_algo_lane *lane, struct tw_plan_span own)
{
    struct tw_algo_job *job = lane->job;
    for (int k = 1; k < job->nranks; k++)
        tw_algo_send(lane, tw_algo_around(job, lane->rank, k), own);
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, lane->rank, -k);
        tw_algo_recv(lane, peer, tw_algo_chunk(lane, TW_BUF_OUT, (uint32_t)peer));
    }
}

static void direct_reduce_scatter(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    direct_scatter(&lane, tw_algo_chunk(&lane, TW_BUF_OUT, 0));
}

static void direct_all_gather(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct tw_plan_span in = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    tw_algo_copy(&lane, in, tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank));
    direct_gather(&lane, in);
}

static void two_shot_all_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct tw_plan_span own = tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank);
    direct_scatter(&lane, own);
    direct_gather(&lane, own);
}

/* ---- all_to_all ------------------------------------------------------------------------------ */

static void direct_all_to_all(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    tw_algo_copy(&lane, tw_algo_chunk(&lane, TW_BUF_IN, (uint32_t)rank),
                 tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank));
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, rank, k);
        lane = tw_algo_lane_add(job, rank, channel);
        tw_algo_send(&lane, peer, tw_algo_chunk(&lane, TW_BUF_IN, (uint32_t)peer));
        tw_algo_recv(&lane, peer, tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)peer));
    }
}

enum twill_status tw_algo_direct(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {
        .name = "direct", .chunks = 1, .depth = 2, .slices = 2, .widest = 1};
    switch (args->coll) {
    case TW_COLL_ALL_REDUCE:
        form.scratch_chunks = 1;
        form.program = one_shot_all_reduce;
        break;
    case TW_COLL_REDUCE_SCATTER:
    case TW_COLL_REDUCE_SCATTER_V:
        form.program = direct_reduce_scatter;
        break;
    case TW_COLL_ALL_GATHER:
    case TW_COLL_ALL_GATHER_V:
        form.program = direct_all_gather;
        break;
    case TW_COLL_ALL_TO_ALL:
    case TW_COLL_ALL_TO_ALL_V:
        form.program = direct_all_to_all;
        break;
    default:
        break;
    }
    return tw_algo_form_plan(&form, args, plan);
}

enum twill_status tw_algo_two_shot(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {
        .name = "two_shot", .chunks = (uint32_t)args->nranks, .depth = 2, .slices = 2, .widest = 1};
    if (args->coll == TW_COLL_ALL_REDUCE)
        form.program = two_shot_all_reduce;
    return tw_algo_form_plan(&form, args, plan);
}
