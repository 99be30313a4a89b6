/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: recursive halving, then doubling. Never knows: bytes, transports.
 *
 * Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004;
 * Thakur, Rabenseifner and Gropp (Int. J. High Perform. Comput. Appl. 19, 2005), sections
 * 4.4 and 4.5.
 *
 * In round k ranks 2^k apart exchange the half of their range that the other one keeps, and reduce:
 * n-1 of n chunks per rank in log2 n rounds. all_reduce then runs the rounds backwards with whole
 * values: 2(n-1) of n chunks, 2 log2 n rounds. Neighbours meet first and the lower rank's operand
 * is the left one, so the sum is the balanced tree over adjacent ranks.
 *
 * Counts that are no power of two run the circulant schedule, which has the same volume exactly
 * and 2 ceil(log2 n) rounds, so nobody folds.
 */
#include "algo/form.h"

/* all_reduce keeps neighbouring chunks: lower half below, upper half above. */
static void halving_all_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    uint32_t first = 0;
    enum tw_plan_buf have = TW_BUF_IN;
    for (int bit = 1; bit < job->nranks; bit *= 2) {
        uint32_t half = (uint32_t)(job->nranks / (2 * bit));
        bool upper = rank & bit;
        uint32_t keep = upper ? first + half : first, give = upper ? first : first + half;
        uint8_t flags = (upper ? TW_STEP_ACC_RIGHT : 0) | (half == 1 ? TW_STEP_FINAL : 0);
        tw_algo_send(&lane, rank ^ bit, tw_algo_range(&lane, have, give, half));
        tw_algo_recv_reduce(&lane, rank ^ bit, tw_algo_range(&lane, have, keep, half),
                            tw_algo_range(&lane, TW_BUF_OUT, keep, half), flags);
        have = TW_BUF_OUT;
        first = keep;
    }
    for (int bit = job->nranks / 2; bit >= 1; bit /= 2) {
        uint32_t count = (uint32_t)(job->nranks / (2 * bit));
        uint32_t get = (rank & bit) ? first - count : first + count;
        tw_algo_send(&lane, rank ^ bit, tw_algo_range(&lane, TW_BUF_OUT, first, count));
        tw_algo_recv(&lane, rank ^ bit, tw_algo_range(&lane, TW_BUF_OUT, get, count));
        first = first < get ? first : get;
    }
}

/* reduce_scatter must end with the rank's own group: after the round of `bit` it keeps the groups
 * that agree with the rank in all bits up to that one. Partial sums of group g wait in scratch g/2,
 * as kept groups are all even or all odd. */
static void halving_reduce_scatter(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    for (uint32_t bit = 1; bit < (uint32_t)job->nranks; bit *= 2) {
        int peer = rank ^ (int)bit;
        uint32_t count = (uint32_t)job->nranks / (2 * bit);
        uint32_t keep = (uint32_t)rank % (2 * bit), give = keep ^ bit;
        struct tw_plan_span src = tw_algo_strided(&lane, TW_BUF_IN, keep, 2 * bit, count);
        struct tw_plan_span sent = tw_algo_strided(&lane, TW_BUF_IN, give, 2 * bit, count);
        struct tw_plan_span dst = tw_algo_strided(&lane, TW_BUF_SCRATCH, keep / 2, bit, count);
        if (bit > 1) {
            src = dst;
            sent = tw_algo_strided(&lane, TW_BUF_SCRATCH, give / 2, bit, count);
        }
        if (count == 1)
            dst = tw_algo_chunk(&lane, TW_BUF_OUT, 0);
        uint8_t flags =
            (((uint32_t)rank & bit) ? TW_STEP_ACC_RIGHT : 0) | (count == 1 ? TW_STEP_FINAL : 0);
        tw_algo_send(&lane, peer, sent);
        tw_algo_recv_reduce(&lane, peer, src, dst, flags);
    }
}

enum twill_status tw_algo_halving_doubling(const struct tw_algo_args *args, struct tw_plan **plan)
{
    uint32_t nranks = (uint32_t)args->nranks;
    struct tw_algo_form form = {
        .name = "halving_doubling", .chunks = 1, .depth = 2, .slices = 2, .widest = nranks / 2};
    if (args->coll == TW_COLL_ALL_REDUCE) {
        form.chunks = nranks;
        form.program = halving_all_reduce;
    } else if (args->coll == TW_COLL_REDUCE_SCATTER) {
        form.scratch_chunks = nranks / 2;
        form.program = halving_reduce_scatter;
    }
    if (form.program && !tw_algo_is_power(nranks))
        return tw_algo_circulant_as(form.name, args, plan);
    return tw_algo_form_plan(&form, args, plan);
}
