/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the calls that make communicators. Never knows: how ranks meet. */
#include "config.h"

#include <string.h>

#include "compat/compat.h"

_Static_assert(sizeof(ncclUniqueId) == sizeof(twill_unique_id), "an id is passed on as it is");

ncclResult_t ncclGetUniqueId(ncclUniqueId *id_out)
{
    twill_unique_id id;
    if (!id_out)
        return tw_compat_fail(ncclInvalidArgument, "ncclGetUniqueId: the output is NULL");
    tw_compat_start();
    enum twill_status status = twill_get_unique_id(&id);
    if (status == TWILL_OK)
        memcpy(id_out, &id, sizeof id);
    return tw_compat_say(status, NULL);
}
TW_COMPAT_TWIN(GetUniqueId);

/* One rank to be made, or several in a group. */
struct making {
    const char *call;
    int size, rank;
    twill_unique_id id;
    struct twill_config config; /* with its device */
    ncclComm_t *out;
};

/* made: a handle whose communicator was made or, in a group, noted. Filled, or dropped on errors.
 */
static ncclResult_t made_hand_over(enum twill_status status, ncclComm_t made, ncclComm_t parent,
                                   ncclComm_t *out)
{
    const struct tw_compat_item item = {
        .kind = TW_COMPAT_NEW, .comm = made, .parent = parent, .out = out};
    bool noted = status >= 0 && tw_compat_group_open();
    if (noted && tw_compat_group_note(&item))
        return ncclSuccess;
    ncclResult_t result = noted ? ncclSystemError : tw_compat_say(status, NULL);
    if (!noted && status >= 0 && made->comm) {
        *out = made;
        if (parent && status == TWILL_INPROGRESS)
            tw_compat_adopt(parent, made);
    } else if (!noted) {
        tw_compat_comm_drop(made); /* noted: twill still fills it, and it is lost */
    }
    return result;
}

static ncclResult_t make(const struct making *making)
{
    ncclComm_t made = tw_compat_comm_new(making->call);
    if (!made)
        return ncclSystemError;
    made->device = making->config.device;
    enum twill_status status =
        twill_comm_init(&made->comm, making->size, &making->id, making->rank, &making->config);
    return made_hand_over(status, made, NULL, making->out);
}

/* The parts of every init. */
static ncclResult_t making_fill(struct making *making, const ncclUniqueId *id,
                                const ncclConfig_t *config)
{
    int device = TWILL_DEVICE_HOST;
    if (!making->out)
        return tw_compat_fail(ncclInvalidArgument, "%s: the output is NULL", making->call);
    *making->out = NULL;
    tw_compat_start();
    making->config = (struct twill_config)TWILL_CONFIG_INIT;
    ncclResult_t result = tw_compat_config(making->call, config, &making->config);
    if (result != ncclSuccess)
        return result;
    if (id)
        memcpy(&making->id, id, sizeof making->id);
    enum twill_status status = twill_current_device(&device);
    making->config.device = device;
    return tw_compat_say(status, NULL);
}

/* What an init's error does to a group. */
static ncclResult_t spoil(ncclResult_t result)
{
    if (result != ncclSuccess && result != ncclInProgress)
        tw_compat_group_spoil(result);
    return result;
}

static ncclResult_t init_rank(struct making *making, const ncclUniqueId *id,
                              const ncclConfig_t *config)
{
    ncclResult_t result = making_fill(making, id, config);
    return spoil(result == ncclSuccess ? make(making) : result);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId comm_id, int rank)
{
    struct making making = {.call = "ncclCommInitRank", .size = nranks, .rank = rank, .out = comm};
    return init_rank(&making, &comm_id, NULL);
}
TW_COMPAT_TWIN(CommInitRank);

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId comm_id, int rank,
                                    ncclConfig_t *config)
{
    struct making making = {
        .call = "ncclCommInitRankConfig", .size = nranks, .rank = rank, .out = comm};
    return init_rank(&making, &comm_id, config);
}
TW_COMPAT_TWIN(CommInitRankConfig);

ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nids,
                                      ncclUniqueId *comm_ids, ncclConfig_t *config)
{
    struct making making = {
        .call = "ncclCommInitRankScalable", .size = nranks, .rank = myrank, .out = newcomm};
    if (!comm_ids || nids < 1 || nids > nranks)
        return tw_compat_fail(ncclInvalidArgument, "%s: %d ids of %d ranks", making.call,
                              comm_ids ? nids : 0, nranks);
    return init_rank(&making, &comm_ids[0], config); /* all ranks have the same; one is enough */
}
TW_COMPAT_TWIN(CommInitRankScalable);

static ncclResult_t make_all(struct making *making, const int *devlist)
{
    ncclComm_t *comms = making->out;
    bool host = making->config.device == TWILL_DEVICE_HOST;
    ncclResult_t result = ncclGroupStart();
    for (int i = 0; i < making->size && result == ncclSuccess; i++) {
        making->rank = i;
        making->out = &comms[i];
        if (!host)
            making->config.device = devlist ? devlist[i] : i;
        result = make(making);
    }
    /* the others would wait for the one that is missing */
    tw_compat_group_spoil(result == ncclInvalidArgument ? ncclInvalidUsage : result);
    ncclResult_t end = ncclGroupEnd();
    return result == ncclSuccess ? end : result;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
    struct making making = {.call = "ncclCommInitAll", .size = ndev, .out = comm};
    if (ndev < 1)
        return tw_compat_fail(ncclInvalidArgument, "ncclCommInitAll: %d devices", ndev);
    ncclResult_t result = making_fill(&making, NULL, NULL);
    for (int i = 0; comm && i < ndev; i++)
        comm[i] = NULL;
    for (int i = 0; result == ncclSuccess && devlist && i < ndev; i++)
        if (devlist[i] < 0)
            result = tw_compat_fail(ncclInvalidArgument, "ncclCommInitAll: device %d of rank %d",
                                    devlist[i], i);
    if (result == ncclSuccess)
        result = tw_compat_say(twill_get_unique_id(&making.id), NULL);
    return spoil(result == ncclSuccess ? make_all(&making, devlist) : result);
}
TW_COMPAT_TWIN(CommInitAll);

/* ---- out of another -----------------------------------------------------------------------------
 */

/* comm is entered, and leaves here or, in a group, at its end. */
static ncclResult_t derived(enum twill_status status, ncclComm_t made, ncclComm_t comm,
                            ncclComm_t *out)
{
    if (status < 0) {
        tw_compat_comm_drop(made);
        return tw_compat_end(comm, status);
    }
    ncclResult_t result = made_hand_over(status, made, comm, out);
    if (!tw_compat_group_open() || result != ncclSuccess)
        tw_compat_leave(comm);
    return spoil(result);
}

/* comm is entered, and has a handle for what comes out of it. */
static ncclResult_t child_begin(const char *call, ncclComm_t comm, const ncclConfig_t *config,
                                struct twill_config *wanted, ncclComm_t *made)
{
    ncclResult_t result = tw_compat_config(call, config, wanted);
    if (result == ncclSuccess)
        result = tw_compat_enter(comm, call);
    if (result != ncclSuccess)
        return result;
    *made = tw_compat_comm_new(call);
    if (*made) {
        (*made)->device = comm->device;
        return ncclSuccess;
    }
    tw_compat_leave(comm);
    return spoil(ncclSystemError);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                           ncclConfig_t *config)
{
    static const char call[] = "ncclCommSplit";
    struct twill_config wanted = TWILL_CONFIG_INIT;
    ncclComm_t made = NULL;
    if (!newcomm)
        return tw_compat_fail(ncclInvalidArgument, "%s: the output is NULL", call);
    *newcomm = NULL;
    ncclResult_t result = child_begin(call, comm, config, &wanted, &made);
    if (result != ncclSuccess)
        return result;
    enum twill_status status = twill_comm_split(comm->comm, color, key, &made->comm, &wanted);
    return derived(status, made, comm, newcomm);
}
TW_COMPAT_TWIN(CommSplit);

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *newcomm,
                            ncclConfig_t *config, int flags)
{
    static const char call[] = "ncclCommShrink";
    struct twill_config wanted = TWILL_CONFIG_INIT;
    ncclComm_t made = NULL;
    if (!newcomm || !excluded || count < 1 || flags & ~NCCL_SHRINK_ABORT)
        return tw_compat_fail(ncclInvalidArgument, "%s: %s", call,
                              !newcomm                     ? "the output is NULL"
                              : flags & ~NCCL_SHRINK_ABORT ? "the flags are none"
                                                           : "there are no ranks to leave out");
    *newcomm = NULL;
    ncclResult_t result = child_begin(call, comm, config, &wanted, &made);
    if (result != ncclSuccess)
        return result;
    if (flags & NCCL_SHRINK_ABORT)
        (void)twill_comm_abort(comm->comm);
    enum twill_status status =
        twill_comm_shrink_without(comm->comm, excluded, count, &made->comm, &wanted);
    return derived(status, made, comm, newcomm);
}
TW_COMPAT_TWIN(CommShrink);
