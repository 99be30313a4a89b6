/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: each operation's sizes, blocks, in-place form and bus factor. Never knows: time, values,
 * how a library is called. */
#include "config.h"

#include "perf.h"

static double factor_one(int ranks)
{
    (void)ranks;
    return 1;
}
static double factor_rest(int ranks) { return (double)(ranks - 1) / ranks; }
static double factor_twice_rest(int ranks) { return 2.0 * (ranks - 1) / ranks; }

static const struct perf_op_info infos[PERF_OP_COUNT] = {
    [PERF_ALL_REDUCE] = {.name = "all_reduce",
                         .reduces = true,
                         .moves = true,
                         .in_place = true,
                         .bus_factor = factor_twice_rest},
    [PERF_REDUCE] = {.name = "reduce",
                     .reduces = true,
                     .rooted = true,
                     .moves = true,
                     .in_place = true,
                     .bus_factor = factor_one},
    [PERF_BROADCAST] = {.name = "broadcast",
                        .rooted = true,
                        .moves = true,
                        .in_place = true,
                        .bus_factor = factor_one},
    [PERF_REDUCE_SCATTER] = {.name = "reduce_scatter",
                             .reduces = true,
                             .moves = true,
                             .in_place = true,
                             .many_in = true,
                             .bus_factor = factor_rest},
    [PERF_ALL_GATHER] = {.name = "all_gather",
                         .moves = true,
                         .in_place = true,
                         .many_out = true,
                         .bus_factor = factor_rest},
    [PERF_ALL_TO_ALL] = {.name = "all_to_all",
                         .moves = true,
                         .in_place = true,
                         .many_in = true,
                         .many_out = true,
                         .bus_factor = factor_rest},
    [PERF_GATHER] = {.name = "gather",
                     .rooted = true,
                     .moves = true,
                     .in_place = true,
                     .many_out = true,
                     .bus_factor = factor_rest},
    [PERF_SCATTER] = {.name = "scatter",
                      .rooted = true,
                      .moves = true,
                      .in_place = true,
                      .many_in = true,
                      .bus_factor = factor_rest},
    [PERF_REDUCE_SCATTER_V] = {.name = "reduce_scatter_v",
                               .reduces = true,
                               .moves = true,
                               .in_place = true,
                               .many_in = true,
                               .varies = true,
                               .bus_factor = factor_rest},
    [PERF_ALL_GATHER_V] = {.name = "all_gather_v",
                           .moves = true,
                           .in_place = true,
                           .many_out = true,
                           .varies = true,
                           .bus_factor = factor_rest},
    [PERF_ALL_TO_ALL_V] = {.name = "all_to_all_v",
                           .moves = true,
                           .in_place = true,
                           .many_in = true,
                           .many_out = true,
                           .varies = true,
                           .bus_factor = factor_rest},
    [PERF_GATHER_V] = {.name = "gather_v",
                       .rooted = true,
                       .moves = true,
                       .in_place = true,
                       .many_out = true,
                       .varies = true,
                       .bus_factor = factor_rest},
    [PERF_SCATTER_V] = {.name = "scatter_v",
                        .rooted = true,
                        .moves = true,
                        .in_place = true,
                        .many_in = true,
                        .varies = true,
                        .bus_factor = factor_rest},
    [PERF_BARRIER] = {.name = "barrier", .bus_factor = factor_one},
    [PERF_SEND_RECV] = {.name = "send_recv", .moves = true, .bus_factor = factor_one},
};

const struct perf_op_info *perf_op_info(enum perf_op op) { return &infos[op]; }

/* ---- blocks ----------------------------------------------------------------------------------
 */

/* Block k of n: all alike, or falling from twice the mean (rank 0) to none. */
static size_t block_count(const struct perf_case *c, int n, int k)
{
    if (!c->uneven || n == 1)
        return c->count;
    return c->count / (size_t)(n - 1) * 2 * (size_t)(n - 1 - k);
}

size_t perf_case_block(const struct perf_case *c, int ranks, int from, int to)
{
    const struct perf_op_info *info = &infos[c->op];
    if (info->many_in && info->many_out) /* rows and columns have equal sums, and in place fits */
        return block_count(c, ranks, (from + to) % ranks);
    return block_count(c, ranks, info->many_in ? to : from);
}

size_t perf_case_in_first(const struct perf_case *c, int ranks, int from, int to)
{
    size_t first = 0;
    if (!c->uneven)
        return infos[c->op].many_in ? (size_t)to * c->count : 0;
    for (int r = 0; infos[c->op].many_in && r < to; r++)
        first += perf_case_block(c, ranks, from, r);
    return first;
}

size_t perf_case_out_first(const struct perf_case *c, int ranks, int from, int to)
{
    size_t first = 0;
    if (!c->uneven)
        return infos[c->op].many_out ? (size_t)from * c->count : 0;
    for (int r = 0; infos[c->op].many_out && r < from; r++)
        first += perf_case_block(c, ranks, r, to);
    return first;
}

void perf_case_shape(const struct perf_rank *rank, struct perf_case *c, size_t bytes)
{
    const struct perf_op_info *info = &infos[c->op];
    size_t width = perf_type_bytes(c->type), n = (size_t)rank->size;
    size_t all = info->moves ? bytes / width : 0;
    int me = rank->rank;
    c->uneven = info->varies && rank->options->uneven;
    c->count = c->send_count = c->recv_count = all;
    if (info->many_in || info->many_out) {
        c->count = all / n;
        all = perf_case_in_first(c, rank->size, 0, rank->size);
        if (!info->many_in)
            all = perf_case_out_first(c, rank->size, rank->size, 0);
        c->send_count = info->many_in ? all : perf_case_block(c, rank->size, me, 0);
        c->recv_count = info->many_out ? all : perf_case_block(c, rank->size, 0, me);
    }
    c->size_bytes = all * width;
}

struct perf_case perf_case_for(const struct perf_rank *rank, const struct perf_case *c)
{
    const struct perf_op_info *info = &infos[c->op];
    struct perf_case own = *c;
    if (!c->uneven)
        return own;
    if (!info->many_in)
        own.send_count = perf_case_block(c, rank->size, rank->rank, 0);
    if (!info->many_out)
        own.recv_count = perf_case_block(c, rank->size, 0, rank->rank);
    return own;
}

void perf_case_counts(const struct perf_rank *rank, const struct perf_case *c)
{
    const struct perf_op_info *info = &infos[c->op];
    int n = rank->size, me = rank->rank;
    for (int r = 0; info->varies && r < n; r++) {
        rank->counts[r] = perf_case_block(c, n, info->many_in ? me : r, info->many_in ? r : me);
        rank->counts[n + r] = perf_case_block(c, n, info->many_out ? r : me, me);
    }
}

bool perf_case_has_output(const struct perf_rank *rank, const struct perf_case *c)
{
    const struct perf_op_info *info = &infos[c->op];
    bool at_root = c->op == PERF_REDUCE || (info->rooted && info->many_out);
    return !at_root || rank->rank == c->root;
}

/* ---- buffers ---------------------------------------------------------------------------------
 * In place, the receive buffer holds both: the larger side fills it, the smaller is this rank's
 * part. */

static size_t send_at(const struct perf_rank *rank, const struct perf_case *c)
{
    const struct perf_op_info *info = &infos[c->op];
    if (!c->in_place || !info->many_out || info->many_in)
        return 0;
    return perf_case_out_first(c, rank->size, rank->rank, rank->rank) * perf_type_bytes(c->type);
}

static size_t recv_at(const struct perf_rank *rank, const struct perf_case *c)
{
    const struct perf_op_info *info = &infos[c->op];
    if (!c->in_place || !info->many_in || info->many_out)
        return 0;
    return perf_case_in_first(c, rank->size, rank->rank, rank->rank) * perf_type_bytes(c->type);
}

const void *perf_case_send(const struct perf_rank *rank, const struct perf_case *c)
{
    return (c->in_place ? rank->recv.data : rank->send.data) + send_at(rank, c);
}

void *perf_case_recv(const struct perf_rank *rank, const struct perf_case *c)
{
    return rank->recv.data + recv_at(rank, c);
}

char *perf_case_send_view(const struct perf_rank *rank, const struct perf_case *c)
{
    return (c->in_place ? rank->recv.view : rank->send.view) + send_at(rank, c);
}

char *perf_case_recv_view(const struct perf_rank *rank, const struct perf_case *c)
{
    return rank->recv.view + recv_at(rank, c);
}
