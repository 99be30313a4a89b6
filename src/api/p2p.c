/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments of send and receive. Never knows: how they run. */
#include "config.h"

#include "api/api.h"
#include "comm/gpu.h"

static enum twill_status check(const struct tw_call *call, const char *name, const void *buffer)
{
    const struct tw_call_info *info = &call->info;
    if (!tw_type_bytes(info->type))
        return tw_fail(TWILL_ERR_INVALID, "%s: %d is no type", name, (int)info->type);
    if (info->peer < 0 || info->peer >= call->comm->size)
        return tw_fail(TWILL_ERR_INVALID, "%s: peer %d is out of range: ranks are 0 to %d", name,
                       info->peer, call->comm->size - 1);
    size_t bytes;
    if (__builtin_mul_overflow(info->count, tw_type_bytes(info->type), &bytes) ||
        bytes > PTRDIFF_MAX || (uintptr_t)buffer + bytes < (uintptr_t)buffer)
        return tw_fail(TWILL_ERR_INVALID, "%s: count %zu of %s is more than memory", name,
                       info->count, tw_type_name(info->type));
    if (bytes && !buffer)
        return tw_fail(TWILL_ERR_INVALID, "%s: the buffer is NULL with count %zu", name,
                       info->count);
    return call->comm->gpu ? tw_gpu_call_check(name, call) : tw_api_stream(call->stream, name);
}

static enum twill_status check_and_call(const struct tw_call *call, const char *name,
                                        const void *buffer)
{
    enum twill_status status = tw_api_enter(call->comm, name);
    if (tw_failed(status))
        return status;
    status = check(call, name, buffer);
    if (tw_failed(status))
        tw_last_error_keep(tw_comm_key(call->comm));
    else
        status = tw_ops_call(call);
    tw_api_leave(call->comm);
    return status;
}

enum twill_status twill_send(const void *sendbuf, size_t count, twill_type_t type, int peer,
                             twill_comm_t comm, twill_stream_t stream)
{
    const struct tw_call call = {
        .info = {.coll = TW_COLL_P2P, .is_send = true, .peer = peer, .count = count, .type = type},
        .in = sendbuf,
        .comm = comm,
        .stream = stream};
    return check_and_call(&call, "send", sendbuf);
}

enum twill_status twill_recv(void *recvbuf, size_t count, twill_type_t type, int peer,
                             twill_comm_t comm, twill_stream_t stream)
{
    const struct tw_call call = {
        .info = {.coll = TW_COLL_P2P, .peer = peer, .count = count, .type = type},
        .out = recvbuf,
        .comm = comm,
        .stream = stream};
    return check_and_call(&call, "recv", recvbuf);
}
