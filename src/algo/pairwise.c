/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the pairwise exchange. Never knows: bytes, transports.
 *
 * Source: Thakur, Rabenseifner and Gropp (Int. J. High Perform. Comput. Appl. 19, 2005), section
 * 4.3, long messages; who meets whom when is the circle method of tournaments (Mendelsohn and Rosa,
 * "One-factorizations of the complete graph: a survey", J. Graph Theory 9, 1985), so that any rank
 * count pairs up, where the paper has powers of two.
 *
 * In each round the ranks are matched, and the two of a pair swap their groups: n-1 rounds when n
 * is even; n when it is odd, one rank resting in each. n-1 groups out and n-1 in for every rank. As
 * a group is sent to the rank whose own then takes its place, OUT may be IN.
 *
 * Deadlock: a rank sends, into slots of which the FIFO has as many as a step has slices, and then
 * receives from the same rank.
 */
#include "algo/form.h"

/* Whom the rank meets in a round; TW_NO_RANK: nobody. An odd number of ranks sits on a circle and
 * those meet whose numbers add up to the round; of an even number the last stands in the middle and
 * meets who would meet itself. */
static int partner(int nranks, int rank, int round)
{
    int circle = nranks % 2 ? nranks : nranks - 1;
    if (rank == circle)
        return (int)((uint64_t)round * (uint64_t)(circle + 1) / 2 % (uint64_t)circle);
    int peer = (round - rank + circle) % circle;
    if (peer != rank)
        return peer;
    return circle < nranks ? circle : TW_NO_RANK;
}

static void pairwise_all_to_all(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    tw_algo_copy(&lane, tw_algo_chunk(&lane, TW_BUF_IN, (uint32_t)rank),
                 tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank));
    int rounds = job->nranks % 2 ? job->nranks : job->nranks - 1;
    for (int k = 0; k < rounds; k++) {
        int peer = partner(job->nranks, rank, k);
        if (peer == TW_NO_RANK)
            continue;
        tw_algo_send(&lane, peer, tw_algo_chunk(&lane, TW_BUF_IN, (uint32_t)peer));
        tw_algo_recv(&lane, peer, tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)peer));
    }
}

enum twill_status tw_algo_pairwise(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {
        .name = "pairwise", .chunks = 1, .depth = 2, .slices = 2, .widest = 1};
    if (args->coll == TW_COLL_ALL_TO_ALL || args->coll == TW_COLL_ALL_TO_ALL_V)
        form.program = pairwise_all_to_all;
    return tw_algo_form_plan(&form, args, plan);
}
