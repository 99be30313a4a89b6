/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments and states of the calls that make, end and ask communicators.
 * Never knows: how ranks meet. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "comm/gpu.h"

enum twill_status twill_get_unique_id(twill_unique_id *id)
{
    if (!id)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID, "get_unique_id: the output is NULL"));
    enum twill_status status = tw_id_create(id);
    return tw_failed(status) ? tw_api_error(status) : status;
}

/* ---- making -----------------------------------------------------------------------------------
 */

/* A name for messages, the same on all ranks. */
static void name_by_id(struct tw_comm_args *args)
{
    if (!args->name[0])
        snprintf(args->name, sizeof args->name, "%06llx",
                 (unsigned long long)tw_hash64(&args->id, sizeof args->id) & 0xffffff);
}

/* The newest failure says why, to those too who come to the id's meeting point in this process. */
static void give_up(struct twill_comm *const *comms, int count, const struct tw_comm_args *args,
                    enum twill_status status)
{
    char text[TW_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text, "%s", tw_fail_text());
    if (args->own_id)
        tw_id_give_up(&args->id, status, text);
    for (int i = 0; i < count; i++)
        tw_comm_give_up(comms[i]);
    tw_fail_again(status, text);
}

/* Prepare count communicators that differ in rank and device only, and connect or note them.
 * devices: NULL: as args say. outs are NULL. */
static enum twill_status make(struct tw_comm_args *args, int count, const int *devices,
                              twill_comm_t *outs)
{
    enum twill_status status = TWILL_OK;
    int made = 0;
    struct twill_comm **comms = calloc((size_t)count, sizeof(void *));
    if (!comms)
        return tw_fail(TWILL_ERR_NOMEM, "comm_init: no memory for %d handles", count);
    name_by_id(args);
    for (; made < count && !tw_failed(status); made += !tw_failed(status)) {
        if (count > 1)
            args->rank = made;
        if (devices)
            args->device = devices[made];
        status = tw_comm_prepare(args, &comms[made]);
    }
    if (!tw_failed(status) && tw_group_active()) {
        status = tw_group_add_inits(comms, count, outs);
    } else if (!tw_failed(status)) {
        status = tw_comm_connect(comms, count, args->blocking != 0);
        for (int i = 0; i < count; i++) {
            if (!tw_failed(status))
                outs[i] = comms[i];
            else if (tw_comm_status(comms[i]) == status)
                tw_fail_again(status, comms[i]->failure);
        }
    }
    if (tw_failed(status))
        give_up(comms, made, args, status);
    free(comms);
    return status;
}

/* More would be refused at the meeting point, which the attempt would have used up. */
static enum twill_status check_size(const char *call, const char *what, int size)
{
    if (size >= 1 && size <= TW_PLAN_RANKS_MAX)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_INVALID, "%s: %s is %d, must be 1 to %d", call, what, size,
                   TW_PLAN_RANKS_MAX);
}

static enum twill_status init_args(const char *call, int size, const twill_unique_id *id, int rank,
                                   struct tw_comm_args *args)
{
    if (!id)
        return tw_fail(TWILL_ERR_INVALID, "%s: the id is NULL", call);
    enum twill_status status = check_size(call, "size", size);
    if (tw_failed(status))
        return status;
    if (rank < 0 || rank >= size)
        return tw_fail(TWILL_ERR_INVALID, "%s: rank %d is out of range: ranks are 0 to %d", call,
                       rank, size - 1);
    args->size = size;
    args->rank = rank;
    args->id = *id;
    return tw_id_check(id);
}

static enum twill_status no_output(const char *call)
{
    return tw_api_error(tw_fail(TWILL_ERR_INVALID, "%s: the output is NULL", call));
}

enum twill_status twill_comm_init(twill_comm_t *comm, int size, const twill_unique_id *id, int rank,
                                  const struct twill_config *config)
{
    if (!comm)
        return no_output("comm_init");
    *comm = NULL;
    struct tw_comm_args args = {0};
    enum twill_status status = init_args("comm_init", size, id, rank, &args);
    if (!tw_failed(status))
        status = tw_api_config(config, &args);
    if (!tw_failed(status))
        status = make(&args, 1, NULL, comm);
    return tw_failed(status) ? tw_api_error(status) : status;
}

enum twill_status twill_comm_init_env(twill_comm_t *comm, const struct twill_config *config)
{
    if (!comm)
        return no_output("comm_init_env");
    *comm = NULL;
    struct tw_comm_args args = {0};
    enum twill_status status = tw_api_config(config, &args);
    if (!tw_failed(status))
        status = tw_env_args(&args);
    if (!tw_failed(status))
        status = make(&args, 1, NULL, comm);
    return tw_failed(status) ? tw_api_error(status) : status;
}

static enum twill_status check_devices(int count, const int *devices)
{
    enum twill_status status = TWILL_OK;
    for (int i = 0; devices && i < count && !tw_failed(status); i++) {
        if (devices[i] < TWILL_DEVICE_HOST)
            return tw_fail(TWILL_ERR_INVALID, "comm_init_all: device %d of rank %d is none",
                           devices[i], i);
        if ((devices[i] == TWILL_DEVICE_HOST) != (devices[0] == TWILL_DEVICE_HOST))
            return tw_fail(TWILL_ERR_INVALID,
                           "comm_init_all: rank 0 is on %s, rank %d on %s: all are on devices, or "
                           "none is",
                           devices[0] == TWILL_DEVICE_HOST ? "the host" : "a device", i,
                           devices[i] == TWILL_DEVICE_HOST ? "the host" : "a device");
        if (devices[i] != TWILL_DEVICE_HOST)
            status = tw_gpu_check(devices[i]);
    }
    return status;
}

enum twill_status twill_comm_init_all(twill_comm_t *comms, int count, const int *devices,
                                      const struct twill_config *config)
{
    if (!comms)
        return no_output("comm_init_all");
    enum twill_status status = check_size("comm_init_all", "count", count);
    if (tw_failed(status))
        return tw_api_error(status);
    for (int i = 0; i < count; i++)
        comms[i] = NULL;
    struct tw_comm_args args = {.size = count};
    status = check_devices(count, devices);
    if (!tw_failed(status))
        status = tw_api_config(config, &args);
    if (!tw_failed(status))
        status = tw_id_create(&args.id);
    args.own_id = true;
    if (!tw_failed(status))
        status = make(&args, count, devices, comms);
    return tw_failed(status) ? tw_api_error(status) : status;
}

/* ---- ending -----------------------------------------------------------------------------------
 */

enum twill_status twill_comm_finalize(twill_comm_t comm)
{
    enum twill_status status = tw_api_enter(comm, "comm_finalize");
    if (tw_failed(status))
        return status;
    if (tw_group_active())
        status = tw_group_add_finalize(comm);
    else
        status = tw_comm_finalize(comm);
    if (tw_failed(status) && tw_failed(tw_api_failure(comm)))
        status = tw_comm_status(comm);
    else if (tw_failed(status))
        tw_last_error_keep(tw_comm_key(comm));
    tw_api_leave(comm);
    return status;
}

enum twill_status twill_comm_destroy(twill_comm_t comm)
{
    if (!comm)
        return TWILL_OK;
    enum twill_status status = tw_api_alive(comm, "comm_destroy");
    if (tw_failed(status))
        return status;
    if (tw_group_active())
        return tw_api_comm_error(
            comm, tw_fail(TWILL_ERR_USAGE, "comm_destroy: a group is open in this thread"));
    status = tw_ops_claim(comm, "comm_destroy");
    if (tw_failed(status))
        return tw_api_comm_error(comm, status);
    tw_api_reg_drop(comm);
    tw_api_redop_drop(comm);
    return tw_comm_retire(comm);
}

enum twill_status twill_comm_abort(twill_comm_t comm)
{
    enum twill_status status = tw_api_alive(comm, "comm_abort");
    if (!tw_failed(status))
        tw_comm_abort(comm);
    return status;
}

/* ---- asking -----------------------------------------------------------------------------------
 */

enum twill_status twill_comm_async_error(twill_comm_t comm, enum twill_status *status)
{
    enum twill_status alive = tw_api_alive(comm, "comm_async_error");
    if (tw_failed(alive))
        return alive;
    if (!status)
        return tw_api_comm_error(
            comm, tw_fail(TWILL_ERR_INVALID, "comm_async_error: the output is NULL"));
    int state = __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE);
    *status = tw_comm_status(comm);
    if (*status == TWILL_OK && (state == TW_COMM_INIT || state == TW_COMM_FINALIZING))
        *status = TWILL_INPROGRESS;
    return TWILL_OK;
}

static enum twill_status ask(twill_comm_t comm, const char *call, const int *out)
{
    enum twill_status status = tw_api_alive(comm, call);
    if (!tw_failed(status) && !out)
        status =
            tw_api_comm_error(comm, tw_fail(TWILL_ERR_INVALID, "%s: the output is NULL", call));
    return status;
}

/* Of a communicator that comes out of another they are known once it is ready. */
static enum twill_status ask_place(twill_comm_t comm, const char *call, const int *out)
{
    enum twill_status status = ask(comm, call, out);
    if (tw_failed(status) || !comm->args.derived ||
        __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) != TW_COMM_INIT)
        return status;
    return tw_api_comm_error(
        comm,
        tw_fail(TWILL_ERR_USAGE, "%s: communicator %s comes out of another and is not ready yet",
                call, comm->args.name));
}

enum twill_status twill_comm_rank(twill_comm_t comm, int *rank)
{
    enum twill_status status = ask_place(comm, "comm_rank", rank);
    if (!tw_failed(status))
        *rank = comm->args.rank;
    return status;
}

enum twill_status twill_comm_size(twill_comm_t comm, int *size)
{
    enum twill_status status = ask_place(comm, "comm_size", size);
    if (!tw_failed(status))
        *size = comm->args.size;
    return status;
}

enum twill_status twill_comm_device(twill_comm_t comm, int *device)
{
    enum twill_status status = ask(comm, "comm_device", device);
    if (!tw_failed(status))
        *device = comm->args.device;
    return status;
}
