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
                             .bus_factor = factor_rest},
    [PERF_ALL_GATHER] = {.name = "all_gather",
                         .moves = true,
                         .in_place = true,
                         .bus_factor = factor_rest},
    [PERF_ALL_TO_ALL] = {.name = "all_to_all", .moves = true, .bus_factor = factor_rest},
    [PERF_BARRIER] = {.name = "barrier", .bus_factor = factor_one},
    [PERF_SEND_RECV] = {.name = "send_recv", .moves = true, .bus_factor = factor_one},
};

const struct perf_op_info *perf_op_info(enum perf_op op) { return &infos[op]; }

void perf_case_shape(struct perf_case *c, size_t bytes, int ranks)
{
    size_t width = perf_type_bytes(c->type), n = (size_t)ranks;
    size_t all = infos[c->op].moves ? bytes / width : 0;
    size_t part = all / n;
    c->count = c->send_count = c->recv_count = all;
    switch (c->op) {
    case PERF_REDUCE_SCATTER:
        c->count = c->recv_count = part;
        c->send_count = part * n;
        break;
    case PERF_ALL_GATHER:
        c->count = c->send_count = part;
        c->recv_count = part * n;
        break;
    case PERF_ALL_TO_ALL:
        c->count = part;
        c->send_count = c->recv_count = part * n;
        break;
    default:
        break;
    }
    size_t larger = c->send_count > c->recv_count ? c->send_count : c->recv_count;
    c->size_bytes = larger * width;
}

/* In place, the receive buffer holds both: the larger side fills it, the smaller is this rank's
 * part. */
static size_t own_part(const struct perf_rank *rank, const struct perf_case *c)
{
    return (size_t)rank->rank * c->count * perf_type_bytes(c->type);
}

const void *perf_case_send(const struct perf_rank *rank, const struct perf_case *c)
{
    if (!c->in_place)
        return rank->send;
    return rank->recv + (c->op == PERF_ALL_GATHER ? own_part(rank, c) : 0);
}

void *perf_case_recv(const struct perf_rank *rank, const struct perf_case *c)
{
    if (c->in_place && c->op == PERF_REDUCE_SCATTER)
        return rank->recv + own_part(rank, c);
    return rank->recv;
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
    twill_redop_t redop = c->redop == PERF_MULSUM ? rank->mulsum : c->redop;
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
    case PERF_SEND_RECV:
        return call_send_recv(rank, c);
    default:
        return twill_barrier(comm, NULL);
    }
}
