/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which handles live and in which state calls are legal. Never knows: the calls. */
#include "config.h"

#include "api/api.h"

enum twill_status tw_api_own(const char *call)
{
    if (!tw_proc_forked())
        return TWILL_OK;
    return tw_fail(TWILL_ERR_USAGE,
                   "%s: this process is a fork of the one that made this; start it afresh instead",
                   call);
}

enum twill_status tw_api_alive(twill_comm_t comm, const char *call)
{
    if (!comm)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID, "%s: communicator is NULL", call));
    if (__atomic_load_n(&comm->magic, __ATOMIC_ACQUIRE) != TW_COMM_MAGIC)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID,
                                    "%s: %p is no communicator, or one that was destroyed", call,
                                    (void *)comm));
    enum twill_status status = tw_api_own(call);
    return tw_failed(status) ? tw_api_comm_error(comm, status) : status;
}

enum twill_status tw_api_failure(twill_comm_t comm)
{
    enum twill_status status = tw_comm_status(comm);
    if (tw_failed(status))
        tw_last_error_set(tw_comm_key(comm), comm->failure);
    return status;
}

enum twill_status tw_api_ready(twill_comm_t comm, const char *call)
{
    static const char *const names[] = {
        [TW_COMM_INIT] = "still connecting (twill_comm_async_error says when it is ready)",
        [TW_COMM_READY] = "ready",
        [TW_COMM_FINALIZING] = "being finalized",
        [TW_COMM_FINALIZED] = "finalized",
    };
    int state = __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE);
    if (state == TW_COMM_READY)
        return TWILL_OK;
    return tw_api_comm_error(comm, tw_fail(TWILL_ERR_USAGE, "%s: communicator %s is %s", call,
                                           comm->args.name, names[state]));
}

enum twill_status tw_api_enter(twill_comm_t comm, const char *call)
{
    enum twill_status status = tw_api_alive(comm, call);
    if (tw_failed(status))
        return status;
    status = tw_ops_claim(comm, call);
    if (tw_failed(status))
        return tw_api_comm_error(comm, status);
    status = tw_api_failure(comm);
    if (!tw_failed(status))
        status = tw_api_ready(comm, call);
    if (tw_failed(status))
        tw_ops_unclaim(comm);
    return status;
}

enum twill_status tw_api_stream(twill_stream_t stream, const char *call)
{
    if (!stream)
        return TWILL_OK;
    if (tw_stream_alive(stream))
        return tw_api_own(call);
    return tw_fail(TWILL_ERR_INVALID, "%s: %p is no stream, or one that was destroyed", call,
                   (void *)stream);
}
