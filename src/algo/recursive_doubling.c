/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: pairwise exchange over doubling distances. Never knows: bytes, transports.
 *
 * Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
 * MPICH", Int. J. High Perform. Comput. Appl. 19 (2005), sections 4.1 (all_gather) and 4.5
 * (all_reduce).
 *
 * all_reduce with p, the greatest power of two not above n, and r = n - p: the first 2r ranks fold
 * in pairs, the even one giving its data to the odd one and getting the result back at the end; the
 * p that stay exchange all they have in log2 p rounds. In all p log2 p + 2r whole buffers move:
 * log2 p per rank when n is a power of two. Neighbours fold, and the lower rank's operand is always
 * the left one, so the sum runs in rank order and all ranks hold the same bits.
 *
 * all_gather doubles a range of groups in log2 n rounds, n-1 groups per rank, when n is a power of
 * two; other counts take the circulant schedule of the same volume and ceil(log2 n) rounds.
 */
#include "algo/form.h"

static int rank_of(int virtual_rank, int folded)
{
    return virtual_rank < folded ? 2 * virtual_rank + 1 : virtual_rank + folded;
}

static void doubling_all_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    int power = (int)tw_algo_power_below((uint32_t)job->nranks), folded = job->nranks - power;
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct tw_plan_span have = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    struct tw_plan_span out = tw_algo_chunk(&lane, TW_BUF_OUT, 0);
    bool in_pair = rank < 2 * folded;
    if (in_pair && rank % 2 == 0) {
        tw_algo_send(&lane, rank + 1, have);
        tw_algo_recv(&lane, rank + 1, out);
        return;
    }
    if (in_pair) {
        tw_algo_recv_reduce(&lane, rank - 1, have, out, TW_STEP_ACC_RIGHT);
        have = out;
    }
    int virtual_rank = in_pair ? rank / 2 : rank - folded;
    for (int distance = 1; distance < power; distance *= 2) {
        int peer = rank_of(virtual_rank ^ distance, folded);
        uint8_t flags = (virtual_rank & distance) ? TW_STEP_ACC_RIGHT : 0;
        if (2 * distance == power)
            flags |= TW_STEP_FINAL;
        tw_algo_send(&lane, peer, have);
        tw_algo_recv_reduce(&lane, peer, have, out, flags);
        have = out;
    }
    if (in_pair)
        tw_algo_send(&lane, rank - 1, out);
}

static void doubling_all_gather(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    tw_algo_copy(&lane, tw_algo_chunk(&lane, TW_BUF_IN, 0),
                 tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)rank));
    for (int distance = 1; distance < job->nranks; distance *= 2) {
        uint32_t have = (uint32_t)(rank & ~(distance - 1)), get = have ^ (uint32_t)distance;
        int peer = rank ^ distance;
        tw_algo_send(&lane, peer, tw_algo_range(&lane, TW_BUF_OUT, have, (uint32_t)distance));
        tw_algo_recv(&lane, peer, tw_algo_range(&lane, TW_BUF_OUT, get, (uint32_t)distance));
    }
}

enum twill_status tw_algo_recursive_doubling(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {
        .name = "recursive_doubling", .chunks = 1, .depth = 2, .slices = 2, .widest = 1};
    if (args->coll == TW_COLL_ALL_REDUCE) {
        form.program = doubling_all_reduce;
    } else if (args->coll == TW_COLL_ALL_GATHER) {
        if (!tw_algo_is_power((uint32_t)args->nranks))
            return tw_algo_circulant_as(form.name, args, plan);
        form.widest = (uint32_t)args->nranks / 2;
        form.program = doubling_all_gather;
    }
    return tw_algo_form_plan(&form, args, plan);
}
