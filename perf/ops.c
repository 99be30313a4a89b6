/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: each operation's call, sizes, in-place form and bus factor. Never knows: time, values. */
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

/* ---- buffers and calls -----------------------------------------------------------------------
 * In place, the receive buffer holds both: the larger side fills it, the smaller is this rank's
 * part. */

const void *perf_case_send(const struct perf_rank *rank, const struct perf_case *c)
{
    const struct perf_op_info *info = &infos[c->op];
    if (!c->in_place)
        return rank->send;
    if (!info->many_out || info->many_in)
        return rank->recv;
    return rank->recv +
           perf_case_out_first(c, rank->size, rank->rank, rank->rank) * perf_type_bytes(c->type);
}

void *perf_case_recv(const struct perf_rank *rank, const struct perf_case *c)
{
    const struct perf_op_info *info = &infos[c->op];
    if (!c->in_place || !info->many_in || info->many_out)
        return rank->recv;
    return rank->recv +
           perf_case_in_first(c, rank->size, rank->rank, rank->rank) * perf_type_bytes(c->type);
}

static twill_redop_t redop_of(const struct perf_rank *rank, const struct perf_case *c)
{
    return c->redop == PERF_MULSUM ? rank->mulsum : c->redop;
}

static enum twill_status call_v(const struct perf_rank *rank, const struct perf_case *c,
                                const void *send, void *recv)
{
    const size_t *sends = rank->counts, *recvs = rank->counts + rank->size;
    twill_comm_t comm = rank->comm;
    switch (c->op) {
    case PERF_REDUCE_SCATTER_V:
        return twill_reduce_scatter_v(send, recv, sends, NULL, c->type, redop_of(rank, c), comm,
                                      NULL);
    case PERF_ALL_GATHER_V:
        return twill_all_gather_v(send, recv, recvs, NULL, c->type, comm, NULL);
    case PERF_ALL_TO_ALL_V:
        return twill_all_to_all_v(send, sends, NULL, recv, recvs, NULL, c->type, comm, NULL);
    case PERF_GATHER_V:
        return twill_gather_v(send, c->send_count, recv, recvs, NULL, c->type, c->root, comm, NULL);
    default:
        return twill_scatter_v(send, sends, NULL, recv, c->recv_count, c->type, c->root, comm,
                               NULL);
    }
}

/* A ring: to the right, from the left; one rank sends to itself. */
static enum twill_status call_send_recv(const struct perf_rank *rank, const struct perf_case *c)
{
    int right = (rank->rank + 1) % rank->size;
    int left = (rank->rank + rank->size - 1) % rank->size;
    enum twill_status status = twill_group_start();
    if (status < 0)
        return status;
    enum twill_status sent =
        twill_send(perf_case_send(rank, c), c->count, c->type, right, rank->comm, NULL);
    enum twill_status received =
        twill_recv(perf_case_recv(rank, c), c->count, c->type, left, rank->comm, NULL);
    status = twill_group_end();
    return sent < 0 ? sent : received < 0 ? received : status;
}

enum twill_status perf_mulsum_begin(struct perf_rank *rank, const struct perf_case *c)
{
    int value = perf_mulsum_scalar(rank->rank);
    char scalar[8];
    if (!infos[c->op].reduces || c->redop != PERF_MULSUM)
        return TWILL_OK;
    perf_bits_store(c->type, scalar, 0,
                    perf_type_digits(c->type) ? perf_bits_round(c->type, value) : (uint64_t)value);
    return twill_op_create_premul_sum(&rank->mulsum, scalar, c->type, TWILL_SCALAR_VALUE,
                                      rank->comm);
}

enum twill_status perf_mulsum_end(const struct perf_rank *rank, const struct perf_case *c)
{
    if (!infos[c->op].reduces || c->redop != PERF_MULSUM)
        return TWILL_OK;
    return twill_op_destroy(rank->mulsum, rank->comm);
}

enum twill_status perf_case_call(const struct perf_rank *rank, const struct perf_case *c)
{
    const void *send = perf_case_send(rank, c);
    void *recv = perf_case_recv(rank, c);
    twill_comm_t comm = rank->comm;
    twill_redop_t redop = redop_of(rank, c);
    switch (c->op) {
    case PERF_ALL_REDUCE:
        return twill_all_reduce(send, recv, c->count, c->type, redop, comm, NULL);
    case PERF_REDUCE:
        return twill_reduce(send, recv, c->count, c->type, redop, c->root, comm, NULL);
    case PERF_BROADCAST:
        return twill_broadcast(send, recv, c->count, c->type, c->root, comm, NULL);
    case PERF_REDUCE_SCATTER:
        return twill_reduce_scatter(send, recv, c->count, c->type, redop, comm, NULL);
    case PERF_ALL_GATHER:
        return twill_all_gather(send, recv, c->count, c->type, comm, NULL);
    case PERF_ALL_TO_ALL:
        return twill_all_to_all(send, recv, c->count, c->type, comm, NULL);
    case PERF_GATHER:
        return twill_gather(send, recv, c->count, c->type, c->root, comm, NULL);
    case PERF_SCATTER:
        return twill_scatter(send, recv, c->count, c->type, c->root, comm, NULL);
    case PERF_SEND_RECV:
        return call_send_recv(rank, c);
    case PERF_BARRIER:
        return twill_barrier(comm, NULL);
    default:
        return call_v(rank, c, send, recv);
    }
}
