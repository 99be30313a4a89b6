/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: halving exchange in the defined order of adding. Never knows: bytes, transports.
 *
 * Source: Rabenseifner, "Optimization of collective reduction operations" (ICCS 2004), with the
 * distances doubled while the data is halved, as in Thakur, Rabenseifner and Gropp (2005), section
 * 4.4 turned round: neighbours meet first, so that partials are sums over neighbours, as the
 * defined order has them (ordered.c).
 *
 * Powers of two: in round k a rank and the one 2^k away swap the partials of the chunks that the
 * other will end with: those whose number has the other's lowest k+1 bits, one every 2^(k+1), one
 * span. n-1 of n chunks per rank in log2 n rounds; all_reduce gathers by the same rounds backwards.
 * From the second round on partials travel unrounded, so that 16-bit floats take up to 3/2 times
 * the bytes of `ordered` there. Other rank counts take the schedule of `ordered`.
 */
#include "algo/form.h"

/* Chunks of a rank after the rounds below `stride`. */
static struct tw_plan_span chunks_of(const struct tw_algo_lane *lane, enum tw_plan_buf buf,
                                     int rank, uint32_t stride)
{
    return tw_algo_strided(lane, buf, (uint32_t)rank & (stride - 1), stride,
                           (uint32_t)lane->job->nranks / stride);
}

static void halve(const struct tw_algo_lane *lane)
{
    struct tw_algo_job *job = lane->job;
    uint32_t nranks = (uint32_t)job->nranks;
    enum tw_plan_buf have = TW_BUF_IN;
    for (uint32_t distance = 1; distance < nranks; distance *= 2) {
        int peer = lane->rank ^ (int)distance;
        bool last = 2 * distance == nranks;
        uint32_t stride = 2 * distance;
        struct tw_plan_span wide = chunks_of(lane, TW_BUF_WIDE, lane->rank, stride);
        struct tw_plan_span mine = chunks_of(lane, have, lane->rank, stride), out = wide;
        if (last)
            out = tw_algo_chunk(lane, TW_BUF_OUT,
                                job->coll == TW_COLL_ALL_REDUCE ? (uint32_t)lane->rank : 0);
        tw_algo_send(lane, peer, chunks_of(lane, have, peer, stride));
        if (last &&
            have == TW_BUF_IN) { /* two ranks: the sum is rounded only after it is finished */
            tw_algo_copy(lane, mine, wide);
            mine = wide;
        }
        tw_algo_recv_reduce(lane, peer, mine, out,
                            (uint8_t)((last ? TW_STEP_FINAL | TW_STEP_ROUND : 0) |
                                      (peer < lane->rank ? TW_STEP_ACC_RIGHT : 0)));
        have = TW_BUF_WIDE;
    }
}

static void double_back(const struct tw_algo_lane *lane)
{
    for (uint32_t distance = (uint32_t)lane->job->nranks / 2; distance > 0; distance /= 2) {
        int peer = lane->rank ^ (int)distance;
        tw_algo_send(lane, peer, chunks_of(lane, TW_BUF_OUT, lane->rank, 2 * distance));
        tw_algo_recv(lane, peer, chunks_of(lane, TW_BUF_OUT, peer, 2 * distance));
    }
}

static void halving_program(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    halve(&lane);
    if (job->coll == TW_COLL_ALL_REDUCE)
        double_back(&lane);
}

enum twill_status tw_algo_ordered_halving(const struct tw_algo_args *args, struct tw_plan **plan)
{
    uint32_t nranks = (uint32_t)args->nranks;
    struct tw_algo_form form = {.name = "ordered_halving",
                                .chunks = 1,
                                .depth = 2,
                                .slices = 2,
                                .widest = nranks / 2,
                                .wide_chunks = nranks,
                                .deterministic = true};
    switch (args->coll) {
    case TW_COLL_ALL_REDUCE:
        form.chunks = nranks;
        form.program = halving_program;
        break;
    case TW_COLL_REDUCE_SCATTER:
    case TW_COLL_REDUCE_SCATTER_V:
        form.program = halving_program;
        break;
    default:
        break;
    }
    if (form.program && !tw_algo_is_power(nranks))
        return tw_algo_ordered_as(form.name, args, plan);
    return tw_algo_form_plan(&form, args, plan);
}
