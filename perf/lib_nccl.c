/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: NCCL as what is measured, by its own shared library and its documented interface.
 * Never knows: values, clocks, where buffers are. */
#include "config.h"

#include "nccl_api.h"
#include "perf_cuda.h"
#include "team.h"

#define NCCL_WINDOW_SYMMETRIC 1

static bool ok(const struct perf_rank *rank, int result, const char *call)
{
    if (result == 0)
        return true;
    fprintf(stderr, "twill-perf: rank %d: NCCL: %s: %s: %s\n", rank->rank, call,
            perf_nccl_api.error_string(result),
            perf_nccl_api.last_error ? perf_nccl_api.last_error(NULL) : "");
    return false;
}

static void version_text(char *text, size_t bytes)
{
    int version = 0;
    perf_nccl_api.get_version(&version);
    int major = version < 10000 ? 1000 : 10000; /* up to 2.8, and since */
    snprintf(text, bytes, "%d.%d.%d", version / major, version % major / 100, version % 100);
}

/* ---- communicators --------------------------------------------------------------------------- */

static bool connect_alone(struct perf_team *team)
{
    int devices[PERF_MAX_GPUS];
    void *comms[PERF_MAX_GPUS] = {NULL};
    for (int i = 0; i < team->count; i++)
        devices[i] = team->ranks[i].device;
    bool good =
        ok(&team->ranks[0], perf_nccl_api.init_all(comms, team->count, devices), "ncclCommInitAll");
    for (int i = 0; i < team->count; i++)
        team->ranks[i].peer = comms[i];
    return good;
}

static bool comms_open(struct perf_team *team)
{
    struct nccl_id id = {{0}};
    struct perf_rank *ranks = team->ranks;
    if (team->members == 1)
        return connect_alone(team);
    if (team->member == 0 && !ok(&ranks[0], perf_nccl_api.get_id(&id), "ncclGetUniqueId"))
        return false;
    if (!perf_team_ok(team, twill_broadcast(&id, &id, sizeof(id), TWILL_UINT8, 0, team->talk, NULL),
                      "broadcast of NCCL's id") ||
        !ok(&ranks[0], perf_nccl_api.group_start(), "ncclGroupStart"))
        return false;
    bool good = true;
    for (int i = 0; i < team->count; i++)
        good = good && perf_cuda_use(ranks[i].device) &&
               ok(&ranks[i], perf_nccl_api.init_rank(&ranks[i].peer, team->size, id, ranks[i].rank),
                  "ncclCommInitRank");
    return ok(&ranks[0], perf_nccl_api.group_end(), "ncclGroupEnd") && good;
}

static bool comms_close(struct perf_team *team)
{
    bool good = true;
    for (int i = 0; i < team->count; i++) {
        if (team->ranks[i].peer)
            good &=
                ok(&team->ranks[i], perf_nccl_api.destroy(team->ranks[i].peer), "ncclCommDestroy");
        team->ranks[i].peer = NULL;
    }
    return good;
}

static void comms_abort(struct perf_team *team)
{
    for (int i = 0; i < team->count; i++) {
        if (team->ranks[i].peer)
            perf_nccl_api.abort(team->ranks[i].peer);
        team->ranks[i].peer = NULL;
    }
}

static bool comms_healthy(const struct perf_team *team)
{
    for (int i = 0; i < team->count; i++) {
        int result = 0;
        if (!ok(&team->ranks[i], perf_nccl_api.async_error(team->ranks[i].peer, &result),
                "ncclCommGetAsyncError") ||
            !ok(&team->ranks[i], result, "the communicator"))
            return false;
    }
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool memory_alloc(const struct perf_rank *rank, size_t bytes, void **ptr)
{
    return perf_cuda_use(rank->device) &&
           ok(rank, perf_nccl_api.mem_alloc(ptr, bytes), "ncclMemAlloc");
}

static bool memory_free(const struct perf_rank *rank, void *ptr)
{
    return perf_cuda_use(rank->device) && ok(rank, perf_nccl_api.mem_free(ptr), "ncclMemFree");
}

static bool attach_buffer(const struct perf_rank *rank, struct perf_buffer *buffer)
{
    size_t bytes = rank->buffer_bytes;
    if (rank->options->registered == 1)
        return ok(rank, perf_nccl_api.reg(rank->peer, buffer->base, bytes, &buffer->reg),
                  "ncclCommRegister");
    return ok(
        rank,
        perf_nccl_api.window(rank->peer, buffer->base, bytes, &buffer->reg, NCCL_WINDOW_SYMMETRIC),
        "ncclCommWindowRegister");
}

/* Windows are filled in at the group's end. */
static bool attach(struct perf_team *team)
{
    bool good = ok(&team->ranks[0], perf_nccl_api.group_start(), "ncclGroupStart");
    for (int i = 0; i < team->count && good; i++)
        good = perf_cuda_use(team->ranks[i].device) &&
               attach_buffer(&team->ranks[i], &team->ranks[i].send) &&
               attach_buffer(&team->ranks[i], &team->ranks[i].recv);
    return ok(&team->ranks[0], perf_nccl_api.group_end(), "ncclGroupEnd") && good;
}

static bool detach_buffer(const struct perf_rank *rank, struct perf_buffer *buffer)
{
    void *reg = buffer->reg;
    buffer->reg = NULL;
    if (!reg || !rank->peer)
        return true;
    return rank->options->registered == 1
               ? ok(rank, perf_nccl_api.dereg(rank->peer, reg), "ncclCommDeregister")
               : ok(rank, perf_nccl_api.window_end(rank->peer, reg), "ncclCommWindowDeregister");
}

static bool detach(struct perf_team *team)
{
    bool good = true;
    for (int i = 0; i < team->count; i++) {
        good &= detach_buffer(&team->ranks[i], &team->ranks[i].send);
        good &= detach_buffer(&team->ranks[i], &team->ranks[i].recv);
    }
    return good;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool in_place(enum perf_op op)
{
    return perf_op_info(op)->in_place && op != PERF_ALL_TO_ALL;
}

static bool redop_same(struct perf_team *team, const struct perf_case *c)
{
    (void)team;
    (void)c;
    return true;
}

static int call_exchange(const struct perf_rank *rank, const struct perf_case *c)
{
    const char *send = perf_case_send(rank, c);
    char *recv = perf_case_recv(rank, c);
    size_t block = c->count * perf_type_bytes(c->type);
    int type = (int)c->type, result = perf_nccl_api.group_start();
    for (int r = 0; r < rank->size && result == 0; r++) {
        result = perf_nccl_api.send(send + (size_t)r * block, c->count, type, r, rank->peer,
                                    rank->stream);
        if (result == 0)
            result = perf_nccl_api.recv(recv + (size_t)r * block, c->count, type, r, rank->peer,
                                        rank->stream);
    }
    int end = perf_nccl_api.group_end();
    return result ? result : end;
}

/* A ring: to the right, from the left. */
static int call_send_recv(const struct perf_rank *rank, const struct perf_case *c)
{
    int right = (rank->rank + 1) % rank->size;
    int left = (rank->rank + rank->size - 1) % rank->size;
    int type = (int)c->type, result = perf_nccl_api.group_start();
    if (result == 0)
        result = perf_nccl_api.send(perf_case_send(rank, c), c->count, type, right, rank->peer,
                                    rank->stream);
    if (result == 0)
        result = perf_nccl_api.recv(perf_case_recv(rank, c), c->count, type, left, rank->peer,
                                    rank->stream);
    int end = perf_nccl_api.group_end();
    return result ? result : end;
}

static int call_one(const struct perf_rank *rank, const struct perf_case *c)
{
    const void *send = perf_case_send(rank, c);
    void *recv = perf_case_recv(rank, c), *comm = rank->peer, *stream = rank->stream;
    int type = (int)c->type, op = (int)c->redop;
    switch (c->op) {
    case PERF_ALL_REDUCE:
        return perf_nccl_api.all_reduce(send, recv, c->count, type, op, comm, stream);
    case PERF_REDUCE:
        return perf_nccl_api.reduce(send, recv, c->count, type, op, c->root, comm, stream);
    case PERF_BROADCAST:
        return perf_nccl_api.broadcast(send, recv, c->count, type, c->root, comm, stream);
    case PERF_REDUCE_SCATTER:
        return perf_nccl_api.reduce_scatter(send, recv, c->count, type, op, comm, stream);
    case PERF_ALL_GATHER:
        return perf_nccl_api.all_gather(send, recv, c->count, type, comm, stream);
    case PERF_ALL_TO_ALL:
        return perf_nccl_api.all_to_all
                   ? perf_nccl_api.all_to_all(send, recv, c->count, type, comm, stream)
                   : call_exchange(rank, c);
    default:
        return call_send_recv(rank, c);
    }
}

static bool call_all(const struct perf_team *team, const struct perf_case *c)
{
    const char *name = perf_op_info(c->op)->name;
    const struct perf_rank *ranks = team->ranks;
    if (team->count == 1)
        return ok(&ranks[0], call_one(&ranks[0], c), name);
    if (!ok(&ranks[0], perf_nccl_api.group_start(), "ncclGroupStart"))
        return false;
    bool good = true;
    for (int i = 0; i < team->count; i++)
        good &= ok(&ranks[i], call_one(&ranks[i], c), name);
    return ok(&ranks[0], perf_nccl_api.group_end(), name) && good;
}

static bool choose(const struct perf_team *team, const struct perf_case *c,
                   struct twill_choice *choice)
{
    (void)team;
    (void)c;
    *choice = (struct twill_choice)TWILL_CHOICE_INIT;
    return true;
}

const struct perf_library perf_nccl = {
    .name = "nccl",
    .own_memory_from = 1,
    .serves = perf_nccl_serves,
    .in_place = in_place,
    .version = version_text,
    .connect = comms_open,
    .disconnect = comms_close,
    .abort = comms_abort,
    .alloc = memory_alloc,
    .free = memory_free,
    .attach = attach,
    .detach = detach,
    .redop_begin = redop_same,
    .redop_end = redop_same,
    .call = call_all,
    .healthy = comms_healthy,
    .choice = choose,
};
