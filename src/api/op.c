/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which reductions a call may ask for, those that were created on a communicator.
 * Never knows: how they are computed. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/mem.h"

struct tw_redop {
    struct tw_redop *next; /* of the communicator */
    twill_redop_t handle;
    twill_type_t type;
    struct tw_scalar scalar;
};

/* ---- created ones ---------------------------------------------------------------------------- */

/* Handles of a process are never used twice, so that one that was destroyed, or is another
 * communicator's, is known for what it is. */
static enum twill_status handle_new(twill_comm_t comm, twill_redop_t *handle)
{
    const uint64_t most = TWILL_OP_LAST - TWILL_OP_CREATED;
    uint64_t number = __atomic_fetch_add(&comm->proc->redops, 1, __ATOMIC_RELAXED);

    if (number > most)
        return tw_fail(TWILL_ERR_NOMEM,
                       "op_create_premul_sum: all %llu handles of this process were used",
                       (unsigned long long)most + 1);
    *handle = (twill_redop_t)(TWILL_OP_CREATED + number);
    return TWILL_OK;
}

/* comm is claimed. */
static enum twill_status create(twill_redop_t *op, const void *scalar, twill_type_t type,
                                twill_scalar_t residence, twill_comm_t comm)
{
    if (!op || !scalar)
        return tw_fail(TWILL_ERR_INVALID, "op_create_premul_sum: the %s is NULL",
                       op ? "scalar" : "output");
    if (!tw_type_bytes(type))
        return tw_fail(TWILL_ERR_INVALID, "op_create_premul_sum: %d is no type", (int)type);
    if (residence != TWILL_SCALAR_POINTER && residence != TWILL_SCALAR_VALUE)
        return tw_fail(TWILL_ERR_INVALID, "op_create_premul_sum: %d is no residence",
                       (int)residence);
    struct tw_redop *made = tw_alloc(sizeof *made);
    if (!made)
        return TWILL_ERR_NOMEM;
    enum twill_status status = handle_new(comm, &made->handle);
    if (tw_failed(status)) {
        free(made);
        return status;
    }
    made->type = type;
    if (residence == TWILL_SCALAR_POINTER)
        made->scalar.at = scalar;
    else
        memcpy(&made->scalar.value, scalar, tw_type_bytes(type));
    made->next = comm->redops;
    comm->redops = made;
    *op = made->handle;
    return TWILL_OK;
}

enum twill_status twill_op_create_premul_sum(twill_redop_t *op, const void *scalar,
                                             twill_type_t type, twill_scalar_t residence,
                                             twill_comm_t comm)
{
    enum twill_status status = tw_api_enter(comm, "op_create_premul_sum");
    if (tw_failed(status))
        return status;
    status = create(op, scalar, type, residence, comm);
    if (tw_failed(status))
        tw_last_error_keep(tw_comm_key(comm));
    tw_api_leave(comm);
    return status;
}

static struct tw_redop **find(twill_comm_t comm, twill_redop_t handle)
{
    struct tw_redop **at = &comm->redops;
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

static enum twill_status none(twill_comm_t comm, twill_redop_t op, const char *call)
{
    if (op < TWILL_OP_CREATED)
        return tw_fail(TWILL_ERR_INVALID, "%s: %d is no %sreduction", call, (int)op,
                       op <= TWILL_BXOR ? "created " : "");
    return tw_fail(TWILL_ERR_INVALID,
                   "%s: %d is no reduction of communicator %s, or one that was destroyed", call,
                   (int)op, comm->args.name);
}

enum twill_status twill_op_destroy(twill_redop_t op, twill_comm_t comm)
{
    enum twill_status status = tw_api_alive(comm, "op_destroy");
    if (tw_failed(status))
        return status;
    status = tw_ops_claim(comm, "op_destroy");
    if (tw_failed(status))
        return tw_api_comm_error(comm, status);
    struct tw_redop **at = find(comm, op);
    if (*at) {
        struct tw_redop *gone = *at;
        *at = gone->next;
        free(gone);
    } else {
        status = tw_api_comm_error(comm, none(comm, op, "op_destroy"));
    }
    tw_api_leave(comm);
    return status;
}

void tw_api_redop_drop(twill_comm_t comm)
{
    while (comm->redops) {
        struct tw_redop *gone = comm->redops;
        comm->redops = gone->next;
        free(gone);
    }
}

/* ---- what a call asks for -------------------------------------------------------------------- */

static enum twill_status created(struct tw_call *call, const char *name)
{
    const struct tw_redop *redop = *find(call->comm, call->info.op);
    if (!redop)
        return none(call->comm, call->info.op, name);
    if (redop->type != call->info.type)
        return tw_fail(TWILL_ERR_INVALID, "%s: the created reduction %d is of %s, not of %s", name,
                       (int)call->info.op, tw_type_name(redop->type),
                       tw_type_name(call->info.type));
    call->info.op = TW_REDOP_PREMUL_SUM;
    call->scalar = redop->scalar;
    return TWILL_OK;
}

enum twill_status tw_api_redop(struct tw_call *call, const char *name)
{
    const struct tw_call_info *info = &call->info;
    if (info->op > TWILL_BXOR)
        return info->op < TWILL_OP_CREATED ? none(call->comm, info->op, name) : created(call, name);
    if (!tw_reduce_find(info->type, info->op, call->comm->proc->isa))
        return tw_fail(TWILL_ERR_INVALID, "%s: %s is of integers, not of %s", name,
                       tw_redop_name(info->op), tw_type_name(info->type));
    return TWILL_OK;
}
