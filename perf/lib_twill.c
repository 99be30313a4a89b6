/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: twill as what is measured: communicators, registration, each operation's call.
 * Never knows: values, clocks, where buffers are. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "team.h"

/* ---- communicators ---------------------------------------------------------------------------
 */

/* On GPUs: as many ranks as the team has, of a communicator of their own. Alone in its process a
 * rank takes the launcher's way; the ranks of one thread that are all there are, that of one
 * process; others share an id. */
static enum twill_status connect_gpus(struct perf_team *team)
{
    struct perf_rank *ranks = team->ranks;
    struct twill_config config = TWILL_CONFIG_INIT;
    twill_unique_id id = {{0}};
    config.max_sms = team->options->max_sms;
    if (team->count == 1 && team->processes == team->members) {
        config.device = ranks[0].device;
        return twill_comm_init_env(&ranks[0].comm, &config);
    }
    enum twill_status status = team->member == 0 ? twill_get_unique_id(&id) : TWILL_OK;
    if (status == TWILL_OK)
        status = twill_broadcast(&id, &id, sizeof(id), TWILL_UINT8, 0, team->talk, NULL);
    if (status == TWILL_OK)
        status = twill_group_start();
    if (status != TWILL_OK)
        return status;
    for (int i = 0; i < team->count && status == TWILL_OK; i++) {
        config.device = ranks[i].device;
        status = twill_comm_init(&ranks[i].comm, team->size, &id, ranks[i].rank, &config);
    }
    enum twill_status end = twill_group_end();
    return status == TWILL_OK ? end : status;
}

static enum twill_status connect_alone(struct perf_team *team)
{
    int devices[PERF_MAX_GPUS];
    twill_comm_t comms[PERF_MAX_GPUS];
    struct twill_config config = TWILL_CONFIG_INIT;
    config.max_sms = team->options->max_sms;
    for (int i = 0; i < team->count; i++)
        devices[i] = team->ranks[i].device;
    enum twill_status status = twill_comm_init_all(comms, team->count, devices, &config);
    for (int i = 0; i < team->count; i++)
        team->ranks[i].comm = status == TWILL_OK ? comms[i] : NULL;
    return status;
}

static bool comms_open(struct perf_team *team)
{
    enum twill_status status = TWILL_OK;
    if (!team->options->cuda)
        team->ranks[0].comm = team->talk;
    else if (team->members == 1)
        status = connect_alone(team);
    else
        status = connect_gpus(team);
    if (status == TWILL_OK)
        return true;
    fprintf(stderr, "twill-perf: rank %d: cannot connect: %s: %s\n", team->ranks[0].rank,
            twill_status_string(status), twill_last_error(NULL));
    return false;
}

static bool comms_close(struct perf_team *team)
{
    bool good = true;
    for (int i = 0; i < team->count && team->options->cuda; i++) {
        enum twill_status status = twill_comm_destroy(team->ranks[i].comm);
        if (status != TWILL_OK)
            fprintf(stderr, "twill-perf: rank %d: cannot end the communicator: %s: %s\n",
                    team->ranks[i].rank, twill_status_string(status), twill_last_error(NULL));
        good &= status == TWILL_OK;
        team->ranks[i].comm = NULL;
    }
    return good;
}

static void comms_abort(struct perf_team *team)
{
    for (int i = 0; i < team->count && team->options->cuda; i++)
        if (team->ranks[i].comm)
            twill_comm_abort(team->ranks[i].comm);
}

static bool comms_healthy(const struct perf_team *team)
{
    for (int i = 0; i < team->count; i++) {
        const struct perf_rank *rank = &team->ranks[i];
        enum twill_status status = TWILL_OK;
        if (twill_comm_async_error(rank->comm, &status) != TWILL_OK || status != TWILL_OK)
            return perf_ok(rank, status, "the communicator");
    }
    return true;
}

static void version_text(char *text, size_t bytes)
{
    int version = 0;
    twill_version(&version);
    snprintf(text, bytes, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static bool choose(const struct perf_team *team, const struct perf_case *c,
                   struct twill_choice *choice)
{
    *choice = (struct twill_choice)TWILL_CHOICE_INIT;
    if (c->op == PERF_SEND_RECV)
        return true;
    return perf_ok(&team->ranks[0],
                   twill_comm_choice(team->ranks[0].comm, perf_op_info(c->op)->name, c->count,
                                     c->type, perf_op_info(c->op)->rooted ? c->root : 0, choice),
                   "twill_comm_choice");
}

/* ---- memory ----------------------------------------------------------------------------------
 */

static bool memory_alloc(const struct perf_rank *rank, size_t bytes, void **ptr)
{
    return perf_ok(rank, twill_mem_alloc(ptr, bytes, rank->device), "twill_mem_alloc");
}

static bool memory_free(const struct perf_rank *rank, void *ptr)
{
    return perf_ok(rank, twill_mem_free(ptr), "twill_mem_free");
}

static bool attach_one(struct perf_rank *rank)
{
    struct perf_buffer *const buffers[] = {&rank->send, &rank->recv};
    for (int i = 0; i < 2; i++) {
        twill_reg_t reg = NULL;
        const bool good =
            rank->options->registered == 2
                ? perf_ok(rank,
                          twill_register_symmetric(rank->comm, buffers[i]->base, rank->buffer_bytes,
                                                   &reg),
                          "twill_register_symmetric")
                : perf_ok(rank,
                          twill_register(rank->comm, buffers[i]->base, rank->buffer_bytes, &reg),
                          "twill_register");
        if (!good)
            return false;
        buffers[i]->reg = reg;
    }
    return true;
}

static bool detach_one(struct perf_rank *rank)
{
    struct perf_buffer *const buffers[] = {&rank->send, &rank->recv};
    bool good = true;
    for (int i = 0; i < 2; i++) {
        if (buffers[i]->reg)
            good &=
                perf_ok(rank, twill_deregister(rank->comm, buffers[i]->reg), "twill_deregister");
        buffers[i]->reg = NULL;
    }
    return good;
}

struct each {
    struct perf_rank *rank;
    bool (*what)(struct perf_rank *rank);
    bool good;
    pthread_t handle;
};

static void *each_run(void *argument)
{
    struct each *each = argument;
    each->good = each->what(each->rank);
    return NULL;
}

/* Registration blocks for the other ranks and is not for groups: each of the team's gets a thread
 * for as long as that takes. */
static bool each_rank(struct perf_team *team, bool (*what)(struct perf_rank *rank))
{
    struct each each[PERF_MAX_GPUS] = {{.rank = &team->ranks[0], .what = what}};
    bool good = true;
    int started = 1;
    for (int i = 1; i < team->count; i++)
        each[i] = (struct each){.rank = &team->ranks[i], .what = what};
    for (; started < team->count; started++)
        if (pthread_create(&each[started].handle, NULL, each_run, &each[started]) != 0) {
            fputs("twill-perf: cannot start a thread\n", stderr);
            comms_abort(team); /* those that run wait for it */
            break;
        }
    each_run(&each[0]);
    for (int i = 1; i < team->count; i++) {
        if (i < started)
            pthread_join(each[i].handle, NULL);
        good &= each[i].good;
    }
    return good && each[0].good;
}

static bool attach(struct perf_team *team) { return each_rank(team, attach_one); }
static bool detach(struct perf_team *team) { return each_rank(team, detach_one); }

/* ---- calls -----------------------------------------------------------------------------------
 */

static bool serves(enum perf_op op, twill_redop_t redop)
{
    (void)op;
    (void)redop;
    return true;
}

static bool in_place(enum perf_op op) { return perf_op_info(op)->in_place; }

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
                                      rank->stream);
    case PERF_ALL_GATHER_V:
        return twill_all_gather_v(send, recv, recvs, NULL, c->type, comm, rank->stream);
    case PERF_ALL_TO_ALL_V:
        return twill_all_to_all_v(send, sends, NULL, recv, recvs, NULL, c->type, comm,
                                  rank->stream);
    case PERF_GATHER_V:
        return twill_gather_v(send, sends[rank->rank], recv, recvs, NULL, c->type, c->root, comm,
                              rank->stream);
    default:
        return twill_scatter_v(send, sends, NULL, recv, recvs[rank->rank], c->type, c->root, comm,
                               rank->stream);
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
        twill_send(perf_case_send(rank, c), c->count, c->type, right, rank->comm, rank->stream);
    enum twill_status received =
        twill_recv(perf_case_recv(rank, c), c->count, c->type, left, rank->comm, rank->stream);
    status = twill_group_end();
    return sent < 0 ? sent : received < 0 ? received : status;
}

static enum twill_status mulsum_begin(struct perf_rank *rank, const struct perf_case *c)
{
    int value = perf_mulsum_scalar(rank->rank);
    char scalar[8];
    if (!perf_op_info(c->op)->reduces || c->redop != PERF_MULSUM)
        return TWILL_OK;
    perf_bits_store(c->type, scalar, 0,
                    perf_type_digits(c->type) ? perf_bits_round(c->type, value) : (uint64_t)value);
    return twill_op_create_premul_sum(&rank->mulsum, scalar, c->type, TWILL_SCALAR_VALUE,
                                      rank->comm);
}

static enum twill_status mulsum_end(const struct perf_rank *rank, const struct perf_case *c)
{
    if (!perf_op_info(c->op)->reduces || c->redop != PERF_MULSUM)
        return TWILL_OK;
    return twill_op_destroy(rank->mulsum, rank->comm);
}

static enum twill_status call_one(const struct perf_rank *rank, const struct perf_case *c)
{
    const void *send = perf_case_send(rank, c);
    void *recv = perf_case_recv(rank, c);
    twill_comm_t comm = rank->comm;
    twill_redop_t redop = redop_of(rank, c);
    switch (c->op) {
    case PERF_ALL_REDUCE:
        return twill_all_reduce(send, recv, c->count, c->type, redop, comm, rank->stream);
    case PERF_REDUCE:
        return twill_reduce(send, recv, c->count, c->type, redop, c->root, comm, rank->stream);
    case PERF_BROADCAST:
        return twill_broadcast(send, recv, c->count, c->type, c->root, comm, rank->stream);
    case PERF_REDUCE_SCATTER:
        return twill_reduce_scatter(send, recv, c->count, c->type, redop, comm, rank->stream);
    case PERF_ALL_GATHER:
        return twill_all_gather(send, recv, c->count, c->type, comm, rank->stream);
    case PERF_ALL_TO_ALL:
        return twill_all_to_all(send, recv, c->count, c->type, comm, rank->stream);
    case PERF_GATHER:
        return twill_gather(send, recv, c->count, c->type, c->root, comm, rank->stream);
    case PERF_SCATTER:
        return twill_scatter(send, recv, c->count, c->type, c->root, comm, rank->stream);
    case PERF_SEND_RECV:
        return call_send_recv(rank, c);
    case PERF_BARRIER:
        return twill_barrier(comm, rank->stream);
    default:
        return call_v(rank, c, send, recv);
    }
}

static bool redop_begin(struct perf_team *team, const struct perf_case *c)
{
    for (int i = 0; i < team->count; i++)
        if (!perf_ok(&team->ranks[i], mulsum_begin(&team->ranks[i], c),
                     "twill_op_create_premul_sum"))
            return false;
    return true;
}

static bool redop_end(struct perf_team *team, const struct perf_case *c)
{
    for (int i = 0; i < team->count; i++)
        if (!perf_ok(&team->ranks[i], mulsum_end(&team->ranks[i], c), "twill_op_destroy"))
            return false;
    return true;
}

static bool call_all(const struct perf_team *team, const struct perf_case *c)
{
    const char *name = perf_op_info(c->op)->name;
    const struct perf_rank *ranks = team->ranks;
    if (team->count == 1)
        return perf_ok(&ranks[0], call_one(&ranks[0], c), name);
    bool good = perf_ok(&ranks[0], twill_group_start(), "twill_group_start");
    if (!good)
        return false;
    for (int i = 0; i < team->count; i++)
        good &= perf_ok(&ranks[i], call_one(&ranks[i], c), name);
    return perf_ok(&ranks[0], twill_group_end(), name) && good;
}

const struct perf_library perf_twill = {
    .name = "twill",
    .own_memory_from = 2,
    .serves = serves,
    .in_place = in_place,
    .version = version_text,
    .connect = comms_open,
    .disconnect = comms_close,
    .abort = comms_abort,
    .alloc = memory_alloc,
    .free = memory_free,
    .attach = attach,
    .detach = detach,
    .redop_begin = redop_begin,
    .redop_end = redop_end,
    .call = call_all,
    .healthy = comms_healthy,
    .choice = choose,
};
