/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments of the collectives. Never knows: how they run. */
#include "config.h"

#include "api/api.h"

enum in_place { NOWHERE, SAME, IN_IS_MY_BLOCK, OUT_IS_MY_BLOCK };

/* What a collective takes: buffers of one block of `count` elements, or of one for each rank. */
struct shape {
    bool reduces, rooted;
    bool in_at_root, out_at_root; /* elsewhere the buffer is ignored */
    bool in_all, out_all;         /* one block for each rank */
    enum in_place in_place;
    bool no_data;
};

static const struct shape shapes[TW_COLL_COUNT] = {
    [TW_COLL_ALL_REDUCE] = {.reduces = true, .in_place = SAME},
    [TW_COLL_REDUCE] = {.reduces = true, .rooted = true, .out_at_root = true, .in_place = SAME},
    [TW_COLL_BROADCAST] = {.rooted = true, .in_at_root = true, .in_place = SAME},
    [TW_COLL_REDUCE_SCATTER] = {.reduces = true, .in_all = true, .in_place = OUT_IS_MY_BLOCK},
    [TW_COLL_ALL_GATHER] = {.out_all = true, .in_place = IN_IS_MY_BLOCK},
    [TW_COLL_ALL_TO_ALL] = {.in_all = true, .out_all = true, .in_place = NOWHERE},
    [TW_COLL_BARRIER] = {.no_data = true},
};

static enum twill_status check_range(const char *name, const struct shape *shape,
                                     const struct tw_call *call)
{
    const struct tw_call_info *info = &call->info;
    int size = call->comm->size;
    if (!tw_type_bytes(info->type))
        return tw_fail(TWILL_ERR_INVALID, "%s: %d is no type", name, (int)info->type);
    if (shape->rooted && (info->root < 0 || info->root >= size))
        return tw_fail(TWILL_ERR_INVALID, "%s: root %d is out of range: ranks are 0 to %d", name,
                       info->root, size - 1);
    size_t bytes;
    if (__builtin_mul_overflow(info->count, tw_type_bytes(info->type), &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)size, &bytes) || bytes > PTRDIFF_MAX)
        return tw_fail(TWILL_ERR_INVALID, "%s: count %zu of %s over %d ranks is more than memory",
                       name, info->count, tw_type_name(info->type), size);
    return TWILL_OK;
}

struct extent {
    uintptr_t at;
    size_t bytes; /* 0: no buffer on this rank */
};

static bool overlap(struct extent a, struct extent b)
{
    return a.bytes && b.bytes && a.at < b.at + b.bytes && b.at < a.at + a.bytes;
}

static bool is_in_place(const struct shape *shape, struct extent in, struct extent out,
                        size_t my_block)
{
    switch (shape->in_place) {
    case SAME:
        return in.at == out.at;
    case IN_IS_MY_BLOCK:
        return in.at == out.at + my_block;
    case OUT_IS_MY_BLOCK:
        return out.at == in.at + my_block;
    case NOWHERE:
        break;
    }
    return false;
}

static enum twill_status check_extent(const char *name, const char *which, struct extent extent,
                                      size_t count)
{
    if (extent.bytes && !extent.at)
        return tw_fail(TWILL_ERR_INVALID, "%s: %s is NULL with count %zu", name, which, count);
    if (extent.at + extent.bytes < extent.at)
        return tw_fail(TWILL_ERR_INVALID, "%s: %s of %zu bytes runs past the end of memory", name,
                       which, extent.bytes);
    return TWILL_OK;
}

static enum twill_status check_buffers(const char *name, const struct shape *shape,
                                       const struct tw_call *call)
{
    size_t block = call->info.count * tw_type_bytes(call->info.type);
    size_t all = block * (size_t)call->comm->size;
    struct extent in = {(uintptr_t)call->in, shape->in_all ? all : block};
    struct extent out = {(uintptr_t)call->out, shape->out_all ? all : block};
    bool elsewhere = call->comm->rank != call->info.root;
    if (shape->no_data || (shape->in_at_root && elsewhere))
        in = (struct extent){0, 0};
    if (shape->no_data || (shape->out_at_root && elsewhere))
        out = (struct extent){0, 0};
    enum twill_status status = check_extent(name, "sendbuf", in, call->info.count);
    if (!tw_failed(status))
        status = check_extent(name, "recvbuf", out, call->info.count);
    if (tw_failed(status) || !overlap(in, out) ||
        is_in_place(shape, in, out, block * (size_t)call->comm->rank))
        return status;
    return tw_fail(
        TWILL_ERR_INVALID, "%s: sendbuf %p of %zu bytes and recvbuf %p of %zu bytes overlap%s",
        name, call->in, in.bytes, call->out, out.bytes,
        shape->in_place == NOWHERE ? "; there is no in-place form" : " and are not in place");
}

/* Checks, then runs or notes or queues. */
static enum twill_status collective(struct tw_call call)
{
    const char *name = tw_coll_name(call.info.coll);
    const struct shape *shape = &shapes[call.info.coll];
    enum twill_status status = tw_api_enter(call.comm, name);
    if (tw_failed(status))
        return status;
    status = check_range(name, shape, &call);
    if (!tw_failed(status) && shape->reduces)
        status = tw_api_redop(&call, name);
    if (!tw_failed(status))
        status = check_buffers(name, shape, &call);
    if (!tw_failed(status))
        status = tw_api_stream(call.stream, name);
    if (tw_failed(status)) {
        tw_last_error_keep(tw_comm_key(call.comm));
    } else {
        bool elsewhere = call.comm->rank != call.info.root;
        if (shape->in_at_root && elsewhere)
            call.in = NULL;
        if (shape->out_at_root && elsewhere)
            call.out = NULL;
        status = tw_ops_call(&call);
    }
    tw_api_leave(call.comm);
    return status;
}

enum twill_status twill_all_reduce(const void *sendbuf, void *recvbuf, size_t count,
                                   twill_type_t type, twill_redop_t op, twill_comm_t comm,
                                   twill_stream_t stream)
{
    return collective((struct tw_call){
        .info = {.coll = TW_COLL_ALL_REDUCE, .count = count, .type = type, .op = op},
        .in = sendbuf,
        .out = recvbuf,
        .comm = comm,
        .stream = stream,
    });
}

enum twill_status twill_reduce(const void *sendbuf, void *recvbuf, size_t count, twill_type_t type,
                               twill_redop_t op, int root, twill_comm_t comm, twill_stream_t stream)
{
    return collective((struct tw_call){
        .info = {.coll = TW_COLL_REDUCE, .root = root, .count = count, .type = type, .op = op},
        .in = sendbuf,
        .out = recvbuf,
        .comm = comm,
        .stream = stream,
    });
}

enum twill_status twill_broadcast(const void *sendbuf, void *recvbuf, size_t count,
                                  twill_type_t type, int root, twill_comm_t comm,
                                  twill_stream_t stream)
{
    return collective((struct tw_call){
        .info = {.coll = TW_COLL_BROADCAST, .root = root, .count = count, .type = type},
        .in = sendbuf,
        .out = recvbuf,
        .comm = comm,
        .stream = stream,
    });
}

enum twill_status twill_reduce_scatter(const void *sendbuf, void *recvbuf, size_t recvcount,
                                       twill_type_t type, twill_redop_t op, twill_comm_t comm,
                                       twill_stream_t stream)
{
    return collective((struct tw_call){
        .info = {.coll = TW_COLL_REDUCE_SCATTER, .count = recvcount, .type = type, .op = op},
        .in = sendbuf,
        .out = recvbuf,
        .comm = comm,
        .stream = stream,
    });
}

enum twill_status twill_all_gather(const void *sendbuf, void *recvbuf, size_t sendcount,
                                   twill_type_t type, twill_comm_t comm, twill_stream_t stream)
{
    return collective((struct tw_call){
        .info = {.coll = TW_COLL_ALL_GATHER, .count = sendcount, .type = type},
        .in = sendbuf,
        .out = recvbuf,
        .comm = comm,
        .stream = stream,
    });
}

enum twill_status twill_all_to_all(const void *sendbuf, void *recvbuf, size_t count,
                                   twill_type_t type, twill_comm_t comm, twill_stream_t stream)
{
    return collective((struct tw_call){
        .info = {.coll = TW_COLL_ALL_TO_ALL, .count = count, .type = type},
        .in = sendbuf,
        .out = recvbuf,
        .comm = comm,
        .stream = stream,
    });
}

enum twill_status twill_barrier(twill_comm_t comm, twill_stream_t stream)
{
    return collective((struct tw_call){
        .info = {.coll = TW_COLL_BARRIER, .type = TWILL_UINT8},
        .comm = comm,
        .stream = stream,
    });
}
