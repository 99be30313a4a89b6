/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: exchange over doubling distances. Never knows: bytes, transports.
 *
 * Source: Bruck et al., "Efficient algorithms for all-to-all communications in multiport
 * message-passing systems", IEEE Trans. Parallel Distrib. Syst. 8 (1997): concatenation
 * (all_gather) and index (all_to_all), for one port.
 *
 * ceil(log2 n) rounds for any n, at distances 1, 2, 4, ...
 * all_gather: a rank passes all it has, and at last what is missing, to the rank `distance` before
 * it: n-1 groups per rank. Groups lie in OUT at once; a range that wraps around takes two messages.
 * all_to_all: the group for the rank i ahead goes along in the rounds of the bits that are set in
 * i: the sum of the bits of 1..n-1 groups per rank, about n/2 log2 n. Scratch holds the groups by
 * i, so that those of a round are a span of blocks, and what comes takes the places of what went;
 * only the way in and the way out are copies. As all of IN is taken in first, OUT may be IN.
 *
 * Deadlock: a rank sends before it receives, one message or two. all_gather: not all ranks of a
 * circle of ranks `distance` apart have a range that wraps (see circulant.c), so that two slots are
 * enough. all_to_all: slots for two messages.
 */
#include "algo/form.h"

/* ---- all_gather ------------------------------------------------------------------------------ */

static void bruck_all_gather(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    uint32_t nranks = (uint32_t)job->nranks, self = (uint32_t)rank;
    tw_algo_copy(&lane, tw_algo_chunk(&lane, TW_BUF_IN, 0), tw_algo_chunk(&lane, TW_BUF_OUT, self));
    for (uint32_t distance = 1; distance < nranks; distance *= 2) {
        uint32_t count = distance < nranks - distance ? distance : nranks - distance;
        struct tw_algo_piece pieces[2];
        int npieces = tw_algo_cut(nranks, self, 1, count, pieces);
        for (int i = 0; i < npieces; i++)
            tw_algo_send(&lane, tw_algo_around(job, rank, -(int)distance),
                         tw_algo_range(&lane, TW_BUF_OUT, pieces[i].first, pieces[i].count));
        npieces = tw_algo_cut(nranks, (self + distance) % nranks, 1, count, pieces);
        for (int i = 0; i < npieces; i++)
            tw_algo_recv(&lane, tw_algo_around(job, rank, (int)distance),
                         tw_algo_range(&lane, TW_BUF_OUT, pieces[i].first, pieces[i].count));
    }
}

/* ---- all_to_all ------------------------------------------------------------------------------ */

/* Numbers below n with the bit `distance` set: whole blocks, and the rest of one. */
struct round {
    uint32_t blocks, rest;
};

static struct round round_of(uint32_t nranks, uint32_t distance)
{
    struct round round = {.blocks = nranks / (2 * distance)};
    uint32_t over = nranks % (2 * distance);
    round.rest = over > distance ? over - distance : 0;
    return round;
}

static int round_spans(const struct tw_algo_lane *lane, uint32_t distance,
                       struct tw_plan_span spans[2])
{
    struct round round = round_of((uint32_t)lane->job->nranks, distance);
    int nspans = 0;
    if (round.blocks > 0) {
        spans[0] = tw_algo_range(lane, TW_BUF_SCRATCH, distance, distance);
        if (round.blocks > 1) {
            spans[0].nblocks = round.blocks;
            spans[0].stride = 2 * distance;
        }
        nspans++;
    }
    if (round.rest > 0)
        spans[nspans++] =
            tw_algo_range(lane, TW_BUF_SCRATCH, round.blocks * 2 * distance + distance, round.rest);
    return nspans;
}

static void bruck_all_to_all(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    uint32_t nranks = (uint32_t)job->nranks;
    struct tw_algo_piece pieces[2];
    int npieces = tw_algo_cut(nranks, (uint32_t)rank, 1, nranks, pieces);
    for (int i = 0; i < npieces; i++)
        tw_algo_copy(&lane, tw_algo_range(&lane, TW_BUF_IN, pieces[i].first, pieces[i].count),
                     tw_algo_range(&lane, TW_BUF_SCRATCH, pieces[i].at, pieces[i].count));
    for (uint32_t distance = 1; distance < nranks; distance *= 2) {
        struct tw_plan_span spans[2];
        int nspans = round_spans(&lane, distance, spans);
        for (int i = 0; i < nspans; i++)
            tw_algo_send(&lane, tw_algo_around(job, rank, (int)distance), spans[i]);
        for (int i = 0; i < nspans; i++)
            tw_algo_recv(&lane, tw_algo_around(job, rank, -(int)distance), spans[i]);
    }
    for (int i = 0; i < job->nranks; i++)
        tw_algo_copy(&lane, tw_algo_chunk(&lane, TW_BUF_SCRATCH, (uint32_t)i),
                     tw_algo_chunk(&lane, TW_BUF_OUT, (uint32_t)tw_algo_around(job, rank, -i)));
}

/* ---- plans ----------------------------------------------------------------------------------- */

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

enum twill_status tw_algo_bruck(const struct tw_algo_args *args, struct tw_plan **plan)
{
    uint32_t nranks = (uint32_t)args->nranks;
    struct tw_algo_form form = {.name = "bruck", .chunks = 1, .depth = 2, .slices = 2, .widest = 1};
    switch (args->coll) {
    case TW_COLL_ALL_GATHER:
    case TW_COLL_ALL_GATHER_V:
        for (uint32_t distance = 1; args->nranks > 1 && distance < nranks; distance *= 2)
            form.widest =
                larger(form.widest, distance < nranks - distance ? distance : nranks - distance);
        form.program = bruck_all_gather;
        break;
    case TW_COLL_ALL_TO_ALL:
        for (uint32_t distance = 1; args->nranks > 1 && distance < nranks; distance *= 2) {
            struct round round = round_of(nranks, distance);
            form.widest = larger(form.widest, larger(round.blocks * distance, round.rest));
        }
        form.one_channel = true; /* blocks of one channel's cells would come apart */
        form.depth = 4;
        form.scratch_chunks = nranks;
        form.program = bruck_all_to_all;
        break;
    default:
        break;
    }
    return tw_algo_form_plan(&form, args, plan);
}
