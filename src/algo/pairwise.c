/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the pairwise exchange. Never knows: bytes, transports.
 *
 * Source: Thakur, Rabenseifner and Gropp (Int. J. High Perform. Comput. Appl. 19, 2005), section
 * 4.3, long messages.
 *
 * In round k, from 1 to n-1, a rank sends to rank + k and receives from rank - k: one group out and
 * one in, n-1 groups per rank in all.
 *
 * Sends and receives are lanes of their own. A send of round k+1 waits, slice by slice, for the
 * receive of round k, which keeps the ranks in step; a receive waits for nobody but its sender.
 * Deadlock: the receive of round k needs the peer's send of round k, that its receive of round k-1,
 * and so down to round 1, which needs none: free of it for any number of slices and any depth.
 */
#include "algo/form.h"

static void pairwise_all_to_all(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane sends = tw_algo_lane_add(job, rank, channel);
    struct tw_algo_lane recvs = tw_algo_lane_add(job, rank, channel);
    for (int k = 1; k < job->nranks; k++) {
        int to = tw_algo_around(job, rank, k), from = tw_algo_around(job, rank, -k);
        uint32_t last =
            tw_algo_recv(&recvs, from, tw_algo_chunk(&recvs, TW_BUF_OUT, (uint32_t)from));
        struct tw_plan_span src = tw_algo_chunk(&sends, TW_BUF_IN, (uint32_t)to);
        if (k == 1)
            tw_algo_send(&sends, to, src);
        else
            tw_algo_send_after(&sends, to, src, recvs.lane, last - 1);
    }
    tw_algo_copy(&sends, tw_algo_chunk(&sends, TW_BUF_IN, (uint32_t)rank),
                 tw_algo_chunk(&sends, TW_BUF_OUT, (uint32_t)rank));
}

enum twill_status tw_algo_pairwise(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {
        .name = "pairwise", .chunks = 1, .depth = 2, .slices = 2, .widest = 1};
    if (args->coll == TW_COLL_ALL_TO_ALL)
        form.program = pairwise_all_to_all;
    return tw_algo_form_plan(&form, args, plan);
}
