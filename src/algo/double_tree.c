/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: two binary trees at once. Never knows: bytes, transports.
 *
 * Source: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction
 * and scan", Parallel Computing 35 (2009), sections 2 and 4: a tree in which the ranks stand in
 * order and every second one is a leaf, and a second one, mirrored (even counts) or shifted by one
 * (odd counts), in which the others are. Each tree carries half of the data.
 *
 * all_reduce: up to a tree's root and down again, 2(n-1) whole buffers in all, 2 for most ranks: a
 * leaf of one tree sends half a buffer up, as an inner rank of the other half up and a whole down.
 * A message passes about 2 log2 n ranks.
 *
 * Up and down are lanes of their own, so that the downward half of a slice meets the upward half of
 * the next; at the root the one depends on the other slice by slice. What comes down overwrites
 * OUT, where the upward sums of the same slice were; they have gone up before it could come.
 * Deadlock: each lane follows the edges of one tree one way.
 */
#include "algo/form.h"

/* A rank's place in one of the trees: ranks, TW_NO_RANK where there is none. */
struct place {
    int parent, children[2];
    int nchildren;
};

static uint32_t low_bit(uint32_t v) { return v & -v; }

/* Ranks by their number in a tree, from 1 on. */
static uint32_t number_of(int nranks, int rank, int tree)
{
    if (tree == 0)
        return (uint32_t)rank + 1;
    return (uint32_t)(nranks % 2 ? (rank + 1) % nranks + 1 : nranks - rank);
}

static int rank_of(int nranks, uint32_t number, int tree)
{
    if (tree == 0)
        return (int)number - 1;
    return nranks % 2 ? ((int)number - 2 + nranks) % nranks : nranks - (int)number;
}

/* In order: a number with b as its lowest bit stands above the b-1 numbers on either side, and
 * where its parent would be past the last rank, below the next ancestor that is one. */
static struct place place_of(int nranks, int rank, int tree)
{
    struct place place = {.parent = TW_NO_RANK};
    uint32_t n = (uint32_t)nranks, v = number_of(nranks, rank, tree), bit = low_bit(v);
    if (v != tw_algo_power_below(n)) {
        uint32_t parent = v;
        do
            parent = (parent ^ low_bit(parent)) | low_bit(parent) << 1;
        while (parent > n);
        place.parent = rank_of(nranks, parent, tree);
    }
    if (bit == 1)
        return place;
    place.children[place.nchildren++] = rank_of(nranks, v - bit / 2, tree);
    for (bit /= 2; bit > 0 && v + bit > n;)
        bit /= 2;
    if (bit > 0)
        place.children[place.nchildren++] = rank_of(nranks, v + bit, tree);
    return place;
}

/* Returns the lane's last step. */
static uint32_t tree_up(const struct tw_algo_lane *lane, const struct place *place, uint32_t half)
{
    struct tw_plan_span have = tw_algo_chunk(lane, TW_BUF_IN, half);
    struct tw_plan_span out = tw_algo_chunk(lane, TW_BUF_OUT, half);
    uint32_t last = 0;
    if (place->nchildren == 0)
        return tw_algo_send(lane, place->parent, have);
    for (int i = 0; i < place->nchildren; i++) {
        bool ends = i == place->nchildren - 1;
        if (ends && place->parent != TW_NO_RANK)
            last = tw_algo_recv_reduce_send(lane, (int[2]){place->children[i], place->parent}, have,
                                            tw_span_none(), 0);
        else
            last =
                tw_algo_recv_reduce(lane, place->children[i], have, out, ends ? TW_STEP_FINAL : 0);
        have = out;
    }
    return last;
}

static void tree_down(const struct tw_algo_lane *lane, const struct place *place, uint32_t half,
                      uint16_t up_lane, uint32_t up_step)
{
    struct tw_plan_span out = tw_algo_chunk(lane, TW_BUF_OUT, half);
    int done = 1;
    if (place->parent == TW_NO_RANK)
        tw_algo_send_after(lane, place->children[0], out, up_lane, up_step);
    else if (place->nchildren == 0)
        tw_algo_recv(lane, place->parent, out);
    else
        tw_algo_recv_send(lane, place->parent, place->children[0], out);
    for (; done < place->nchildren; done++)
        tw_algo_send(lane, place->children[done], out);
}

static void double_tree(struct tw_algo_job *job, int rank, uint16_t channel)
{
    for (int tree = 0; tree < 2; tree++) {
        struct place place = place_of(job->nranks, rank, tree);
        struct tw_algo_lane up = tw_algo_lane_add(job, rank, channel);
        struct tw_algo_lane down = tw_algo_lane_add(job, rank, channel);
        up.fifo = down.fifo = (uint16_t)tree;
        uint32_t last = tree_up(&up, &place, (uint32_t)tree);
        tree_down(&down, &place, (uint32_t)tree, up.lane, last);
    }
}

enum twill_status tw_algo_double_tree(const struct tw_algo_args *args, struct tw_plan **plan)
{
    struct tw_algo_form form = {
        .name = "double_tree", .chunks = 2, .depth = 2, .slices = 2, .widest = 1, .fifos = 2};
    if (args->coll == TW_COLL_ALL_REDUCE)
        form.program = double_tree;
    return tw_algo_form_plan(&form, args, plan);
}
