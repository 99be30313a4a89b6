/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the names of NCCL that are there so that programs load, and what serves instead.
 * Never knows: their arguments. */
#include "config.h"

#include "compat/compat.h"

/* nccl.h, which says so of its own, has none of them. */
#pragma GCC visibility push(default)

/* A caller's arguments lie in registers and on its own stack: who reads none needs no types. */
#define REFUSED(type, name, value, instead)                                                        \
    type nccl##name(void);                                                                         \
    type nccl##name(void)                                                                          \
    {                                                                                              \
        (void)tw_compat_fail(ncclInvalidUsage, "nccl" #name " is not served by twill: " instead);  \
        return value;                                                                              \
    }                                                                                              \
    TW_COMPAT_TWIN(name)
#define REFUSE(name, instead) REFUSED(ncclResult_t, name, ncclInvalidUsage, instead)

/* communicators */
REFUSE(CommGrow, "make a new communicator by ncclCommInitRank");
REFUSE(CommGetUniqueId, "ids for new communicators are made by ncclGetUniqueId");
REFUSE(CommSuspend, "destroy the communicator, and make it again when it is needed");
REFUSE(CommResume, "destroy the communicator, and make it again when it is needed");
REFUSE(CommMemStats, "twill's own twill_comm_memory says what a communicator holds");
REFUSE(CommQueryProperties, "ncclCommCount, ncclCommUserRank and ncclCommCuDevice answer");

/* one-sided calls */
#define MESSAGES "use ncclSend and ncclRecv in a group"
REFUSE(PutSignal, MESSAGES);
REFUSE(Signal, MESSAGES);
REFUSE(WaitSignal, MESSAGES);
REFUSE(WinGetUserPtr, "it is the pointer that was given to ncclCommWindowRegister");

/* the interface for kernels */
#define COLLECTIVES "kernels of the caller's cannot communicate by themselves: use the collectives"
REFUSE(DevCommCreate, COLLECTIVES);
REFUSE(DevCommDestroy, COLLECTIVES);
REFUSE(GetLsaDevicePointer, COLLECTIVES);
REFUSE(GetPeerDevicePointer, COLLECTIVES);
REFUSE(GetLsaMultimemDevicePointer, COLLECTIVES);
REFUSE(GetMultimemDevicePointer, COLLECTIVES);
REFUSE(LsaBarrierCreateRequirement, COLLECTIVES);
REFUSE(GinBarrierCreateRequirement, COLLECTIVES);
REFUSE(GinInboxA2ACreateRequirement, COLLECTIVES);
REFUSE(GinOutboxCreateRequirement, COLLECTIVES);
REFUSE(LLA2ACreateRequirement, COLLECTIVES);
REFUSED(int, LLA2ACalcSlots, 0, COLLECTIVES);

/* Passed in registers, as a struct of three numbers: how many ranks, which one, how far apart. */
struct team {
    int size, rank, stride;
};
#define NO_TEAM ((struct team){0, 0, 0})
REFUSED(struct team, TeamWorld, NO_TEAM, "ncclCommCount and ncclCommUserRank answer");
REFUSED(struct team, TeamLsa, NO_TEAM, COLLECTIVES);
REFUSED(struct team, TeamRail, NO_TEAM, COLLECTIVES);
REFUSED(int, TeamRankToWorld, -1, COLLECTIVES);
REFUSED(int, TeamRankToLsa, -1, COLLECTIVES);

/* parameters */
#define PARAMETERS "twill-info lists twill's parameters, which the environment sets"
REFUSE(ParamBind, PARAMETERS);
REFUSE(ParamGet, PARAMETERS);
REFUSE(ParamGetI8, PARAMETERS);
REFUSE(ParamGetI16, PARAMETERS);
REFUSE(ParamGetI32, PARAMETERS);
REFUSE(ParamGetI64, PARAMETERS);
REFUSE(ParamGetU8, PARAMETERS);
REFUSE(ParamGetU16, PARAMETERS);
REFUSE(ParamGetU32, PARAMETERS);
REFUSE(ParamGetU64, PARAMETERS);
REFUSE(ParamGetStr, PARAMETERS);
REFUSE(ParamGetParameter, PARAMETERS);
REFUSE(ParamGetAllParameterKeys, PARAMETERS);
REFUSE(ParamDumpAll, PARAMETERS);

/* what NCCL's own tests call; it has no second name */
/* NOLINTNEXTLINE(readability-identifier-naming) */
void ncclResetDebugInitInternal(void);
void ncclResetDebugInitInternal(void) {}

/* ---- one that has no header, but is served
 * -------------------------------------------------------
 */

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags);
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
    static const char call[] = "ncclCommRevoke";
    if (flags)
        return tw_compat_fail(ncclInvalidArgument, "%s: flags are %#x, must be 0", call, flags);
    ncclResult_t result = tw_compat_enter(comm, call);
    if (result != ncclSuccess)
        return result;
    atomic_store(&comm->revoked, true);
    result = tw_compat_say(twill_comm_abort(comm->comm), comm->comm);
    tw_compat_leave(comm);
    return result;
}
TW_COMPAT_TWIN(CommRevoke);

#pragma GCC visibility pop
