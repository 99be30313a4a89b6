/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the root deals with every rank itself. Never knows: bytes, transports.
 *
 * Source: the linear (flat tree) schedules that Thakur, Rabenseifner and Gropp (Int. J. High
 * Perform. Comput. Appl. 19, 2005) and Pjesivac-Grbovic et al., "Performance analysis of MPI
 * collective operations", Cluster Comput. 10 (2007), section 3, compare trees with.
 *
 * One round: n-1 messages, all at the root. Broadcast and reduce move n-1 whole buffers, gather and
 * scatter n-1 groups, which is the least that there is for the latter two. gather_v and scatter_v
 * have this form only: nobody but the root and the rank itself knows a rank's count.
 *
 * The root serves root+1, root+2, ...; sums are added in that order. Deadlock: a rank other than
 * the root has one step, and the root's never waits for a third rank.
 */
#include "algo/form.h"

/* The root's group of a buffer that has one for each rank, else all there is. */
static struct tw_plan_span own_of(const struct tw_algo_lane *lane, enum tw_plan_buf buf, int rank)
{
    const struct tw_coll_rule *rule = lane->job->rule;
    bool many = buf == TW_BUF_IN ? rule->in.many : rule->out.many;
    return tw_algo_chunk(lane, buf, many ? (uint32_t)rank : 0);
}

/* broadcast, scatter */
static void linear_down(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    if (rank != job->root) {
        tw_algo_recv(&lane, job->root, tw_algo_chunk(&lane, TW_BUF_OUT, 0));
        return;
    }
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, rank, k);
        tw_algo_send(&lane, peer, own_of(&lane, TW_BUF_IN, peer));
    }
    tw_algo_copy(&lane, own_of(&lane, TW_BUF_IN, rank), tw_algo_chunk(&lane, TW_BUF_OUT, 0));
}

/* gather */
static void linear_up(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct tw_plan_span in = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    if (rank != job->root) {
        tw_algo_send(&lane, job->root, in);
        return;
    }
    tw_algo_copy(&lane, in, own_of(&lane, TW_BUF_OUT, rank));
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, rank, k);
        tw_algo_recv(&lane, peer, own_of(&lane, TW_BUF_OUT, peer));
    }
}

static void linear_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct tw_plan_span have = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    if (rank != job->root) {
        tw_algo_send(&lane, job->root, have);
        return;
    }
    struct tw_plan_span out = tw_algo_chunk(&lane, TW_BUF_OUT, 0);
    for (int k = 1; k < job->nranks; k++) {
        tw_algo_recv_reduce(&lane, tw_algo_around(job, rank, k), have, out,
                            k == job->nranks - 1 ? TW_STEP_FINAL : 0);
        have = out;
    }
}

enum twill_status tw_algo_linear(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {
        .name = "linear", .chunks = 1, .depth = 1, .slices = 2, .widest = 1};
    switch (args->coll) {
    case TW_COLL_BROADCAST:
    case TW_COLL_SCATTER:
    case TW_COLL_SCATTER_V:
        form.program = linear_down;
        break;
    case TW_COLL_GATHER:
    case TW_COLL_GATHER_V:
        form.program = linear_up;
        break;
    case TW_COLL_REDUCE:
        form.program = linear_reduce;
        break;
    default:
        break;
    }
    return tw_algo_form_plan(&form, args, plan);
}
