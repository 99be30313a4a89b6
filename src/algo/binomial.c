/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the binomial tree. Never knows: bytes, transports.
 *
 * Source: Thakur, Rabenseifner and Gropp (Int. J. High Perform. Comput. Appl. 19, 2005), sections
 * 4.2 (broadcast) and 4.5 (reduce), short messages.
 *
 * Ranks count from the root on. A rank's parent is its number without the lowest bit set; its
 * children are the numbers with one bit more, below that bit. ceil(log2 n) rounds; n-1 whole
 * buffers move in all: a rank other than the root receives (reduce: sends) one, and sends
 * (receives) one for each child. Broadcast serves the largest subtree first; reduce hears the
 * smallest first, so that sums run over neighbours in rank order from the root on.
 */
#include "algo/form.h"

/* A rank's place in the tree. */
struct place {
    int parent;      /* TW_NO_RANK at the root */
    uint32_t bits;   /* children are at distance 2^k for k < bits where that is a rank */
    uint32_t number; /* from the root on */
};

static struct place place_of(const struct tw_algo_job *job, int rank)
{
    struct place place = {.parent = TW_NO_RANK};
    place.number = (uint32_t)tw_algo_around(job, rank, -job->root);
    place.bits = tw_algo_log2_ceil((uint32_t)job->nranks);
    if (place.number != 0) {
        place.bits = (uint32_t)__builtin_ctz(place.number);
        place.parent = tw_algo_around(job, rank, -(1 << place.bits));
    }
    while (place.bits > 0 && place.number + (1u << (place.bits - 1)) >= (uint32_t)job->nranks)
        place.bits--;
    return place;
}

static void binomial_broadcast(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct place place = place_of(job, rank);
    struct tw_plan_span out = tw_algo_chunk(&lane, TW_BUF_OUT, 0), have = out;
    uint32_t children = place.bits;
    if (place.parent == TW_NO_RANK) {
        have = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    } else if (children == 0) {
        tw_algo_recv(&lane, place.parent, out);
    } else {
        children--; /* the first child's copy goes on while it arrives */
        tw_algo_recv_send(&lane, place.parent, tw_algo_around(job, rank, 1 << children), out);
    }
    while (children-- > 0)
        tw_algo_send(&lane, tw_algo_around(job, rank, 1 << children), have);
    if (place.parent == TW_NO_RANK)
        tw_algo_copy(&lane, have, out);
}

/* Only the root has OUT: the others gather in scratch, and pass the last addition on as it is made.
 */
static void binomial_reduce(struct tw_algo_job *job, int rank, uint16_t channel)
{
    struct tw_algo_lane lane = tw_algo_lane_add(job, rank, channel);
    struct place place = place_of(job, rank);
    bool root = place.parent == TW_NO_RANK;
    struct tw_plan_span sum = tw_algo_chunk(&lane, root ? TW_BUF_OUT : TW_BUF_SCRATCH, 0);
    struct tw_plan_span have = tw_algo_chunk(&lane, TW_BUF_IN, 0);
    if (place.bits == 0)
        tw_algo_send(&lane, place.parent, have);
    for (uint32_t k = 0; k < place.bits; k++) {
        int child = tw_algo_around(job, rank, 1 << k);
        bool last = k + 1 == place.bits;
        if (last && !root)
            tw_algo_recv_reduce_send(&lane, (int[2]){child, place.parent}, have, tw_span_none(), 0);
        else
            tw_algo_recv_reduce(&lane, child, have, sum, last ? TW_STEP_FINAL : 0);
        have = sum;
    }
}

enum twill_status tw_algo_binomial(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {
        .name = "binomial", .chunks = 1, .depth = 2, .slices = 2, .widest = 1};
    if (args->coll == TW_COLL_BROADCAST) {
        form.program = binomial_broadcast;
    } else if (args->coll == TW_COLL_REDUCE) {
        form.scratch_chunks = 1;
        form.program = binomial_reduce;
    }
    return tw_algo_form_plan(&form, args, plan);
}
