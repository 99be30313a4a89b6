/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: one- and two-shot all_reduce by writing into the peers' scratch and raising signals.
 * Never knows: bytes, transports.
 *
 * Source: as direct.c, written as puts into staging and flags (Shah et al., MSCCL++,
 * arXiv:2504.09014, 2025).
 *
 * Volume and rounds are those of direct and two_shot; signals carry no bytes. Signal word q of a
 * rank is raised by rank q alone: 1 "my data is there", ..., and at last "I have read all that was
 * put to me". A loop ends when all peers have said the last, so scratch is free for whatever loop,
 * call or plan comes next, and one copy of it (parity 1) is enough.
 */
#include "algo/form.h"

static void signal_all(const struct tw_algo_lane *lane, uint32_t value)
{
    for (int k = 1; k < lane->job->nranks; k++)
        tw_algo_signal(lane, tw_algo_around(lane->job, lane->rank, k), value);
}

static void wait_all(const struct tw_algo_lane *lane, uint32_t value)
{
    for (int k = 1; k < lane->job->nranks; k++)
        tw_algo_wait(lane, tw_algo_around(lane->job, lane->rank, -k), value);
}

/* Put to a peer and say so at once. */
static void put_and_tell(const struct tw_algo_lane *lane, int peer, struct tw_plan_span src,
                         uint32_t scratch_chunk, uint32_t value)
{
    tw_algo_put(lane, peer, src, tw_algo_chunk(lane, TW_BUF_SCRATCH, scratch_chunk));
    tw_algo_signal(lane, peer, value);
}

/* ---- one-shot -------------------------------------------------------------------------------- */

/* Scratch chunk q holds what rank q put. Own data waits there too: OUT, which may be IN, gathers in
 * rank order so that all ranks hold the same bits. */
static void one_shot_put(struct tw_algo_job *job, int rank, uint16_t channel)
{
    enum { ARRIVED = 1, READ = 2 };
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct tw_plan_span in = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    struct tw_plan_span out = tw_algo_chunk(&lane, TW_BUF_OUT, 0);
    for (int k = 1; k < job->nranks; k++)
        put_and_tell(&lane, tw_algo_around(job, rank, k), in, (uint32_t)rank, ARRIVED);
    tw_algo_copy(&lane, in, tw_algo_chunk(&lane, TW_BUF_SCRATCH, (uint32_t)rank));
    for (int q = 0; q < job->nranks; q++) {
        struct tw_plan_span from = tw_algo_chunk(&lane, TW_BUF_SCRATCH, (uint32_t)q);
        if (q != rank)
            tw_algo_wait(&lane, q, ARRIVED);
        if (q == 0)
            tw_algo_copy(&lane, from, out);
        else
            tw_algo_reduce(&lane, from, out, q == job->nranks - 1 ? TW_STEP_FINAL : 0);
    }
    signal_all(&lane, READ);
    wait_all(&lane, READ);
}

enum twill_status tw_algo_direct_put(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {.name = "direct_put",
                                .chunks = 1,
                                .slices = 1,
                                .scratch_chunks = (uint32_t)args->nranks,
                                .nsigs = (uint32_t)args->nranks,
                                .sig_max = 2,
                                .caps = TW_CAP_PUT_SCRATCH};
    if (args->coll == TW_COLL_ALL_REDUCE)
        form.program = one_shot_put;
    return tw_algo_form_plan(&form, args, plan);
}

/* ---- two-shot -------------------------------------------------------------------------------- */

/*
 * A scratch cell has the size of the chunk whose number it has modulo n. So scratch is a square of
 * n rows of n chunks: column `rank` holds what each rank (row) has of the own chunk, and row 0 in
 * the other columns the sums that their ranks made.
 */
static void two_shot_put(struct tw_algo_job *job, int rank, uint16_t channel)
{
    enum { ARRIVED = 1, SUMMED = 2, READ = 3 };
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    uint32_t nranks = (uint32_t)job->nranks, self = (uint32_t)rank;
    struct tw_plan_span own = tw_algo_chunk(&lane, TW_BUF_OUT, self);
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, rank, k);
        put_and_tell(&lane, peer, tw_algo_chunk(&lane, TW_BUF_IN, (uint32_t)peer),
                     self * nranks + (uint32_t)peer, ARRIVED);
    }
    tw_algo_copy(&lane, tw_algo_chunk(&lane, TW_BUF_IN, self), own);
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, rank, -k);
        tw_algo_wait(&lane, peer, ARRIVED);
        tw_algo_reduce(&lane, tw_algo_chunk(&lane, TW_BUF_SCRATCH, (uint32_t)peer * nranks + self),
                       own, k == job->nranks - 1 ? TW_STEP_FINAL : 0);
    }
    for (int k = 1; k < job->nranks; k++)
        put_and_tell(&lane, tw_algo_around(job, rank, k), own, self, SUMMED);
    for (int k = 1; k < job->nranks; k++) {
        int peer = tw_algo_around(job, rank, -k);
        tw_algo_wait(&lane, peer, SUMMED);
        tw_algo_copy(&lane, tw_algo_chunk(&lane, TW_BUF_SCRATCH, (uint32_t)peer),
                     tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)peer));
    }
    signal_all(&lane, READ);
    wait_all(&lane, READ);
}

enum twill_status tw_algo_two_shot_put(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {.name = "two_shot_put",
                                .chunks = (uint32_t)args->nranks,
                                .slices = 1,
                                .scratch_chunks = (uint32_t)args->nranks * (uint32_t)args->nranks,
                                .nsigs = (uint32_t)args->nranks,
                                .sig_max = 3,
                                .caps = TW_CAP_PUT_SCRATCH};
    if (args->coll == TW_COLL_ALL_REDUCE)
        form.program = two_shot_put;
    return tw_algo_form_plan(&form, args, plan);
}
