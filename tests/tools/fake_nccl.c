/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: as much of NCCL's interface as twill-perf asks for, on host memory: float32 sums, the
 * ranks of one thread. Never knows: NCCL.
 *
 * The ranks' calls meet at their group's end, where one function on the first rank's stream does
 * them all. An error in twill-perf's use of the interface is a result other than 0. FAKE_NCCL=wrong
 * makes sums wrong by one. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda.h"

#define MAX_RANKS 8
#define MAX_CALLS (2 * MAX_RANKS * MAX_RANKS) /* each to each, both sides */
#define INVALID 4
#define SHOWN __attribute__((visibility("default")))

enum kind { ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER, SEND, RECV };

struct comm {
    int rank, size, device;
    int *left; /* of one clique: ranks that are not destroyed */
};

struct call {
    enum kind kind;
    const float *send;
    float *recv;
    size_t count;
    int root; /* or peer */
    struct comm *comm;
    void *stream;
};

struct batch {
    struct call calls[MAX_CALLS];
    int count;
};

struct id {
    char bytes[128];
};

static struct batch open_batch;
static int depth, windows, memories;

SHOWN int ncclGetVersion(int *version);
SHOWN const char *ncclGetErrorString(int result);
SHOWN int ncclGetUniqueId(struct id *id);
SHOWN int ncclCommInitRank(void **comm, int size, struct id id, int rank);
SHOWN int ncclCommInitAll(void **comms, int count, const int *devices);
SHOWN int ncclCommDestroy(void *comm);
SHOWN int ncclCommAbort(void *comm);
SHOWN int ncclCommGetAsyncError(void *comm, int *result);
SHOWN int ncclGroupStart(void);
SHOWN int ncclGroupEnd(void);
SHOWN int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm,
                        void *stream);
SHOWN int ncclReduce(const void *send, void *recv, size_t count, int type, int op, int root,
                     void *comm, void *stream);
SHOWN int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, void *comm,
                        void *stream);
SHOWN int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op,
                            void *comm, void *stream);
SHOWN int ncclAllGather(const void *send, void *recv, size_t count, int type, void *comm,
                        void *stream);
SHOWN int ncclSend(const void *send, size_t count, int type, int peer, void *comm, void *stream);
SHOWN int ncclRecv(void *recv, size_t count, int type, int peer, void *comm, void *stream);
SHOWN int ncclMemAlloc(void **ptr, size_t bytes);
SHOWN int ncclMemFree(void *ptr);
SHOWN int ncclCommWindowRegister(void *comm, void *ptr, size_t bytes, void **window, int flags);
SHOWN int ncclCommWindowDeregister(void *comm, void *window);

int ncclGetVersion(int *version)
{
    *version = 29904;
    return 0;
}

const char *ncclGetErrorString(int result) { return result ? "fake error" : "no error"; }

/* ---- life ------------------------------------------------------------------------------------ */

int ncclGetUniqueId(struct id *id)
{
    memset(id, 7, sizeof(*id));
    return 0;
}

int ncclCommInitRank(void **comm, int size, struct id id, int rank)
{
    (void)comm;
    (void)size;
    (void)rank;
    return id.bytes[127] == 7 ? 3 : INVALID; /* one thread has ncclCommInitAll */
}

int ncclCommInitAll(void **comms, int count, const int *devices)
{
    int *left = malloc(sizeof(*left));
    if (count > MAX_RANKS || !left)
        return INVALID;
    *left = count;
    for (int i = 0; i < count; i++) {
        struct comm *comm = calloc(1, sizeof(*comm));
        if (!comm)
            return INVALID;
        *comm = (struct comm){i, count, devices[i], left};
        comms[i] = comm;
    }
    return 0;
}

int ncclCommDestroy(void *comm)
{
    struct comm *ended = comm;
    if (--*ended->left == 0)
        free(ended->left);
    free(ended);
    return windows ? INVALID : 0;
}

int ncclCommAbort(void *comm) { return ncclCommDestroy(comm); }

int ncclCommGetAsyncError(void *comm, int *result)
{
    *result = 0;
    return comm ? 0 : INVALID;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const struct call *call_of(const struct batch *batch, int rank)
{
    for (int i = 0; i < batch->count; i++)
        if (batch->calls[i].comm->rank == rank)
            return &batch->calls[i];
    return NULL;
}

static float sum_at(const struct batch *batch, int size, size_t i)
{
    const char *mode = getenv("FAKE_NCCL");
    float sum = mode && strcmp(mode, "wrong") == 0 ? 1 : 0;
    for (int r = 0; r < size; r++)
        sum += call_of(batch, r)->send[i];
    return sum;
}

/* Sums of all places first: outputs may be inputs. */
static void reduce_run(const struct batch *batch, int size)
{
    const struct call *first = &batch->calls[0];
    bool scatters = first->kind == REDUCE_SCATTER;
    size_t all = first->count * (size_t)(scatters ? size : 1);
    float *sums = malloc((all + 1) * sizeof(*sums));
    for (size_t i = 0; i < all; i++)
        sums[i] = sum_at(batch, size, i);
    for (int r = 0; r < size; r++) {
        const struct call *call = call_of(batch, r);
        if (call->kind != REDUCE || call->root == r)
            memcpy(call->recv, sums + (scatters ? (size_t)r * call->count : 0),
                   call->count * sizeof(*sums));
    }
    free(sums);
}

static void gather_run(const struct batch *batch, int size)
{
    size_t bytes = batch->calls[0].count * sizeof(float);
    for (int to = 0; to < size; to++)
        for (int from = 0; from < size; from++)
            memmove((char *)call_of(batch, to)->recv + (size_t)from * bytes,
                    call_of(batch, from)->send, bytes);
}

static void broadcast_run(const struct batch *batch, int size)
{
    int root = batch->calls[0].root;
    for (int r = 0; r < size; r++)
        memmove(call_of(batch, r)->recv, call_of(batch, root)->send,
                batch->calls[0].count * sizeof(float));
}

/* The n-th receive of a pair gets its n-th send; twill-perf has one each. */
static void exchange_run(const struct batch *batch)
{
    for (int i = 0; i < batch->count * batch->count; i++) {
        const struct call *recv = &batch->calls[i / batch->count];
        const struct call *send = &batch->calls[i % batch->count];
        if (recv->kind == RECV && send->kind == SEND && recv->root == send->comm->rank &&
            send->root == recv->comm->rank)
            memcpy(recv->recv, send->send, recv->count * sizeof(float));
    }
}

static void batch_run(void *argument)
{
    const struct batch *batch = argument;
    int size = batch->calls[0].comm->size;
    switch (batch->calls[0].kind) {
    case ALL_GATHER:
        gather_run(batch, size);
        break;
    case BROADCAST:
        broadcast_run(batch, size);
        break;
    case SEND:
    case RECV:
        exchange_run(batch);
        break;
    default:
        reduce_run(batch, size);
    }
}

static bool batch_whole(const struct batch *batch)
{
    for (int r = 0; r < batch->calls[0].comm->size; r++)
        if (!call_of(batch, r))
            return false;
    return true;
}

int ncclGroupStart(void)
{
    depth++;
    return 0;
}

int ncclGroupEnd(void)
{
    if (depth == 0 || --depth > 0 || open_batch.count == 0)
        return depth < 0 ? INVALID : 0;
    struct batch batch = open_batch;
    open_batch.count = 0;
    return batch_whole(&batch) &&
                   fake_enqueue(batch.calls[0].stream, batch_run, &batch, sizeof(batch))
               ? 0
               : INVALID;
}

static int add(struct call call, int type, int op)
{
    if (type != 7 || op != 0 || open_batch.count == MAX_CALLS || !call.comm || !call.stream)
        return INVALID;
    ncclGroupStart();
    open_batch.calls[open_batch.count++] = call;
    return ncclGroupEnd();
}

int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm,
                  void *stream)
{
    return add((struct call){ALL_REDUCE, send, recv, count, 0, comm, stream}, type, op);
}

int ncclReduce(const void *send, void *recv, size_t count, int type, int op, int root, void *comm,
               void *stream)
{
    return add((struct call){REDUCE, send, recv, count, root, comm, stream}, type, op);
}

int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, void *comm,
                  void *stream)
{
    return add((struct call){BROADCAST, send, recv, count, root, comm, stream}, type, 0);
}

int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op, void *comm,
                      void *stream)
{
    return add((struct call){REDUCE_SCATTER, send, recv, count, 0, comm, stream}, type, op);
}

int ncclAllGather(const void *send, void *recv, size_t count, int type, void *comm, void *stream)
{
    return add((struct call){ALL_GATHER, send, recv, count, 0, comm, stream}, type, 0);
}

int ncclSend(const void *send, size_t count, int type, int peer, void *comm, void *stream)
{
    return add((struct call){SEND, send, NULL, count, peer, comm, stream}, type, 0);
}

int ncclRecv(void *recv, size_t count, int type, int peer, void *comm, void *stream)
{
    return add((struct call){RECV, NULL, recv, count, peer, comm, stream}, type, 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

int ncclMemAlloc(void **ptr, size_t bytes)
{
    *ptr = malloc(bytes);
    memories++;
    return *ptr ? 0 : INVALID;
}

int ncclMemFree(void *ptr)
{
    free(ptr);
    if (--memories == 0)
        fprintf(stderr, "fake nccl: %d windows are left\n", windows);
    return 0;
}

int ncclCommWindowRegister(void *comm, void *ptr, size_t bytes, void **window, int flags)
{
    windows++;
    *window = ptr;
    return comm && ptr && bytes && flags == 1 && depth > 0 ? 0 : INVALID;
}

int ncclCommWindowDeregister(void *comm, void *window)
{
    windows--;
    return comm && window ? 0 : INVALID;
}
