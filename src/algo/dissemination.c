/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the dissemination barrier. Never knows: transports.
 *
 * Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", Int. J.
 * Parallel Program. 17 (1988), the dissemination barrier.
 *
 * In round k a rank tells rank + 2^k and hears rank - 2^k, empty messages; after ceil(log2 n)
 * rounds it has heard of everybody.
 */
#include "algo/form.h"

static void dissemination_barrier(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    for (int distance = 1; distance < job->nranks; distance *= 2) {
        tw_algo_send(&lane, tw_algo_around(job, rank, distance), tw_span_none());
        tw_algo_recv(&lane, tw_algo_around(job, rank, -distance), tw_span_none());
    }
}

enum twill_status tw_algo_dissemination(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {.name = "dissemination", .depth = 1, .slices = 1, .widest = 1};
    if (args->coll == TW_COLL_BARRIER)
        form.program = dissemination_barrier;
    return tw_algo_form_plan(&form, args, plan);
}
