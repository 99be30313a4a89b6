/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments of the collectives with equal counts. Never knows: how they run. */
#include "config.h"

#include "api/coll.h"
#include "base/mem.h"
#include "comm/gpu.h"

static enum twill_status check_count(const char *name, const struct tw_call *call)
{
    const struct tw_call_info *info = &call->info;
    int size = call->comm->size;
    size_t bytes;
    if (__builtin_mul_overflow(info->count, tw_type_bytes(info->type), &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)size, &bytes) || bytes > PTRDIFF_MAX)
        return tw_fail(TWILL_ERR_INVALID, "%s: count %zu of %s over %d ranks is more than memory",
                       name, info->count, tw_type_name(info->type), size);
    return TWILL_OK;
}

static bool is_in_place(const struct tw_coll_rule *rule, uintptr_t in, uintptr_t out,
                        size_t my_block)
{
    if (rule->in.many == rule->out.many)
        return in == out;
    return rule->in.many ? out == in + my_block : in == out + my_block;
}

static enum twill_status check_buffer(const char *name, const char *which, uintptr_t at,
                                      size_t bytes, size_t count)
{
    if (bytes && !at)
        return tw_fail(TWILL_ERR_INVALID, "%s: %s is NULL with count %zu", name, which, count);
    if (at + bytes < at)
        return tw_fail(TWILL_ERR_INVALID, "%s: %s of %zu bytes runs past the end of memory", name,
                       which, bytes);
    return TWILL_OK;
}

static enum twill_status check_equal(const char *name, const struct tw_coll_rule *rule,
                                     struct tw_call *call)
{
    enum twill_status status = check_count(name, call);
    if (tw_failed(status))
        return status;
    size_t block = call->info.count * tw_type_bytes(call->info.type);
    size_t all = block * (size_t)call->comm->size;
    size_t in_bytes = !tw_coll_has(&rule->in, call) ? 0 : rule->in.many ? all : block;
    size_t out_bytes = !tw_coll_has(&rule->out, call) ? 0 : rule->out.many ? all : block;
    uintptr_t in = (uintptr_t)call->in, out = (uintptr_t)call->out;
    status = check_buffer(name, "sendbuf", in, in_bytes, call->info.count);
    if (!tw_failed(status))
        status = check_buffer(name, "recvbuf", out, out_bytes, call->info.count);
    if (tw_failed(status) || !tw_overlap(in, in_bytes, out, out_bytes) ||
        is_in_place(rule, in, out, block * (size_t)call->comm->rank))
        return status;
    return tw_fail(TWILL_ERR_INVALID,
                   "%s: sendbuf %p of %zu bytes and recvbuf %p of %zu bytes overlap and are not in "
                   "place",
                   name, call->in, in_bytes, call->out, out_bytes);
}

static enum twill_status check_common(const char *name, const struct tw_coll_rule *rule,
                                      const struct tw_call *call)
{
    const struct tw_call_info *info = &call->info;
    int size = call->comm->size;
    if (!tw_type_bytes(info->type))
        return tw_fail(TWILL_ERR_INVALID, "%s: %d is no type", name, (int)info->type);
    if (rule->rooted && (info->root < 0 || info->root >= size))
        return tw_fail(TWILL_ERR_INVALID, "%s: root %d is out of range: ranks are 0 to %d", name,
                       info->root, size - 1);
    return TWILL_OK;
}

enum twill_status tw_api_coll(struct tw_call *call, tw_coll_check_fn check)
{
    const struct tw_coll_rule *rule = tw_coll_rule(call->info.coll);
    const char *name = rule->name;
    enum twill_status status = tw_api_enter(call->comm, name);
    if (tw_failed(status))
        return status;
    status = check_common(name, rule, call);
    if (!tw_failed(status) && rule->reduces)
        status = tw_api_redop(call, name);
    if (!tw_failed(status))
        status = check(name, rule, call);
    if (!tw_coll_has(&rule->in, call))
        call->in = NULL;
    if (!tw_coll_has(&rule->out, call))
        call->out = NULL;
    if (!tw_failed(status))
        status = call->comm->gpu != NULL ? tw_gpu_call_check(name, call)
                                         : tw_api_stream(call->stream, name);
    if (tw_failed(status))
        tw_last_error_keep(tw_comm_key(call->comm));
    else
        status = tw_ops_call(call);
    tw_api_leave(call->comm);
    return status;
}

static enum twill_status collective(const struct tw_call_info *info, const void *sendbuf,
                                    void *recvbuf, twill_comm_t comm, twill_stream_t stream)
{
    struct tw_call call = {
        .info = *info, .in = sendbuf, .out = recvbuf, .comm = comm, .stream = stream};
    return tw_api_coll(&call, check_equal);
}

enum twill_status twill_all_reduce(const void *sendbuf, void *recvbuf, size_t count,
                                   twill_type_t type, twill_redop_t op, twill_comm_t comm,
                                   twill_stream_t stream)
{
    const struct tw_call_info info = {
        .coll = TW_COLL_ALL_REDUCE, .count = count, .type = type, .op = op};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

enum twill_status twill_reduce(const void *sendbuf, void *recvbuf, size_t count, twill_type_t type,
                               twill_redop_t op, int root, twill_comm_t comm, twill_stream_t stream)
{
    const struct tw_call_info info = {
        .coll = TW_COLL_REDUCE, .root = root, .count = count, .type = type, .op = op};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

enum twill_status twill_broadcast(const void *sendbuf, void *recvbuf, size_t count,
                                  twill_type_t type, int root, twill_comm_t comm,
                                  twill_stream_t stream)
{
    const struct tw_call_info info = {
        .coll = TW_COLL_BROADCAST, .root = root, .count = count, .type = type};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

enum twill_status twill_reduce_scatter(const void *sendbuf, void *recvbuf, size_t recvcount,
                                       twill_type_t type, twill_redop_t op, twill_comm_t comm,
                                       twill_stream_t stream)
{
    const struct tw_call_info info = {
        .coll = TW_COLL_REDUCE_SCATTER, .count = recvcount, .type = type, .op = op};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

enum twill_status twill_all_gather(const void *sendbuf, void *recvbuf, size_t sendcount,
                                   twill_type_t type, twill_comm_t comm, twill_stream_t stream)
{
    const struct tw_call_info info = {.coll = TW_COLL_ALL_GATHER, .count = sendcount, .type = type};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

enum twill_status twill_all_to_all(const void *sendbuf, void *recvbuf, size_t count,
                                   twill_type_t type, twill_comm_t comm, twill_stream_t stream)
{
    const struct tw_call_info info = {.coll = TW_COLL_ALL_TO_ALL, .count = count, .type = type};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

enum twill_status twill_gather(const void *sendbuf, void *recvbuf, size_t sendcount,
                               twill_type_t type, int root, twill_comm_t comm,
                               twill_stream_t stream)
{
    const struct tw_call_info info = {
        .coll = TW_COLL_GATHER, .root = root, .count = sendcount, .type = type};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

enum twill_status twill_scatter(const void *sendbuf, void *recvbuf, size_t recvcount,
                                twill_type_t type, int root, twill_comm_t comm,
                                twill_stream_t stream)
{
    const struct tw_call_info info = {
        .coll = TW_COLL_SCATTER, .root = root, .count = recvcount, .type = type};
    return collective(&info, sendbuf, recvbuf, comm, stream);
}

enum twill_status twill_barrier(twill_comm_t comm, twill_stream_t stream)
{
    const struct tw_call_info info = {.coll = TW_COLL_BARRIER, .type = TWILL_UINT8};
    return collective(&info, NULL, NULL, comm, stream);
}
