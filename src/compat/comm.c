/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the calls that end communicators and ask them. Never knows: how they end. */
#include "config.h"

#include "compat/compat.h"

/* ---- ending -------------------------------------------------------------------------------------
 */

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    ncclResult_t result = tw_compat_enter(comm, "ncclCommFinalize");
    return result == ncclSuccess ? tw_compat_end(comm, twill_comm_finalize(comm->comm)) : result;
}
TW_COMPAT_TWIN(CommFinalize);

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    const struct tw_compat_item item = {.kind = TW_COMPAT_DESTROY, .comm = comm};
    if (!comm)
        return ncclSuccess;
    ncclResult_t result = tw_compat_enter(comm, "ncclCommDestroy");
    if (result != ncclSuccess)
        return result;
    if (!tw_compat_group_open())
        return tw_compat_destroy(comm);
    if (tw_compat_group_note(&item))
        return ncclSuccess;
    tw_compat_leave(comm);
    return ncclSystemError;
}
TW_COMPAT_TWIN(CommDestroy);

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (!comm)
        return ncclSuccess;
    ncclResult_t result = tw_compat_enter(comm, "ncclCommAbort");
    if (result != ncclSuccess)
        return result;
    tw_compat_doom(comm);
    enum twill_status status = twill_comm_abort(comm->comm);
    result = tw_compat_say(status, comm->comm);
    tw_compat_leave(comm);
    return result;
}
TW_COMPAT_TWIN(CommAbort);

/* ---- asking -------------------------------------------------------------------------------------
 */

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *async_error)
{
    static const char call[] = "ncclCommGetAsyncError";
    enum twill_status state = TWILL_OK;
    if (!async_error)
        return tw_compat_fail(ncclInvalidArgument, "%s: the output is NULL", call);
    ncclResult_t result = tw_compat_ask(comm, call);
    if (result != ncclSuccess)
        return result;
    enum twill_status status = twill_comm_async_error(comm->comm, &state);
    result = tw_compat_say(status, comm->comm);
    if (status == TWILL_OK) {
        *async_error = tw_compat_say(state, comm->comm); /* the sentence is there to be read */
        if (*async_error == ncclSuccess && tw_compat_expecting(comm))
            *async_error = ncclInProgress;
    }
    tw_compat_asked(comm);
    return result;
}
TW_COMPAT_TWIN(CommGetAsyncError);

static ncclResult_t ask(ncclComm_t comm, const char *call,
                        enum twill_status (*question)(twill_comm_t, int *), int *answer)
{
    ncclResult_t result = tw_compat_ask(comm, call);
    if (result != ncclSuccess)
        return result;
    result = tw_compat_say(question(comm->comm, answer), comm->comm);
    tw_compat_asked(comm);
    return result;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    return ask(comm, "ncclCommCount", twill_comm_size, count);
}
TW_COMPAT_TWIN(CommCount);

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    return ask(comm, "ncclCommCuDevice", twill_comm_device, device);
}
TW_COMPAT_TWIN(CommCuDevice);

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return ask(comm, "ncclCommUserRank", twill_comm_rank, rank);
}
TW_COMPAT_TWIN(CommUserRank);
