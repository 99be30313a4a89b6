/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where a call goes: into the open group, the caller's hands or the progress thread's queue.
 * Never knows: how it runs there. */
#include "config.h"

#include "comm/ops.h"

#include <stdlib.h>
#include <string.h>

#include "comm/gpu.h"

enum twill_status tw_ops_create(struct twill_comm *comm)
{
    struct tw_ops *ops = tw_alloc(sizeof *ops);
    if (!ops)
        return TWILL_ERR_NOMEM;
    enum twill_status status = TWILL_ERR_NOMEM;
    ops->comm = comm;
    ops->lanes = tw_alloc(2 * (size_t)comm->size * sizeof *ops->lanes);
    if (!ops->lanes)
        goto err_ops;
    status = tw_plans_create(comm, &ops->plans);
    if (tw_failed(status))
        goto err_lanes;
    status = tw_exec_create(comm->chan, comm->proc->isa, TW_OPS_SCRATCH_BYTES, &ops->signal_base,
                            &ops->exec);
    if (tw_failed(status))
        goto err_plans;
    comm->ops = ops;
    return TWILL_OK;

err_plans:
    tw_plans_destroy(ops->plans);
err_lanes:
    free(ops->lanes);
err_ops:
    free(ops);
    return status;
}

void tw_ops_destroy(struct twill_comm *comm)
{
    struct tw_ops *ops = comm->ops;
    if (!ops)
        return;
    tw_progress_wake(comm->proc->progress); /* a failure's own wake may be lost by now */
    tw_progress_drain(comm->proc->progress, ops, false);
    for (int i = 0; i < 2 * comm->size; i++) {
        tw_exec_destroy(ops->lanes[i].exec);
        tw_plan_destroy(ops->lanes[i].plan);
    }
    tw_exec_destroy(ops->exec);
    tw_plans_destroy(ops->plans);
    free(ops->lanes);
    free(ops->fused);
    free(ops);
    comm->ops = NULL;
}

enum twill_status tw_ops_drain(struct twill_comm *comm)
{
    tw_progress_drain(comm->proc->progress, comm->ops, true);
    return tw_comm_status(comm);
}

void tw_ops_wake(struct twill_comm *comm)
{
    /* Runners look at the communicator's status in every round and end what is queued. */
    tw_progress_wake(comm->proc->progress);
}

/* ---- one thread at a time ---------------------------------------------------------------------
 */

enum twill_status tw_ops_claim(struct twill_comm *comm, const char *call)
{
    uintptr_t nobody = 0;
    if (__atomic_compare_exchange_n(&comm->user, &nobody, tw_ops_self(), false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
        return TWILL_OK;
    return tw_fail(TWILL_ERR_BUSY, "%s: communicator %s is in use by another thread", call,
                   comm->args.name);
}

void tw_ops_unclaim(struct twill_comm *comm) { __atomic_store_n(&comm->user, 0, __ATOMIC_RELEASE); }

uintptr_t tw_ops_self(void)
{
    static _Thread_local char self;
    return (uintptr_t)&self;
}

/* ---- calls ------------------------------------------------------------------------------------
 */

void tw_op_init(struct tw_op *op, const struct tw_call *call)
{
    op->info = call->info;
    op->in = call->in;
    op->out = call->out;
    op->scalar = call->scalar;
    op->stream = call->stream;
    op->stream_next = NULL;
    op->lane_next = NULL;
    op->mark = NULL;
    op->is_wait = false;
    op->exec = NULL;
    op->number = 0;
    op->wait = (struct tw_record_wait){0};
}

void tw_item_init(struct tw_item *item, struct twill_comm *comm, bool batch, struct tw_op *ops,
                  uint32_t nops)
{
    item->comm = comm;
    item->next = NULL;
    item->next_round = NULL;
    item->ops = ops;
    item->nops = nops;
    item->joint = NULL;
    item->batch = batch;
    item->waited = true;
    item->started = false;
    item->done = false;
    item->status = TWILL_OK;
}

static struct tw_item *item_create(struct twill_comm *comm, bool batch, uint32_t nops, size_t words)
{
    size_t head = (sizeof(struct tw_item) + sizeof(max_align_t) - 1) / sizeof(max_align_t) *
                  sizeof(max_align_t);
    struct tw_item *item = tw_alloc(head + nops * sizeof(struct tw_op) + words * sizeof(size_t));
    if (item)
        tw_item_init(item, comm, batch, (struct tw_op *)(void *)((char *)item + head), nops);
    return item;
}

struct tw_item *tw_item_create(struct twill_comm *comm, bool batch, uint32_t nops)
{
    return item_create(comm, batch, nops, 0);
}

struct tw_item *tw_item_create_call(const struct tw_call *call, bool batch)
{
    struct tw_item *item = item_create(call->comm, batch, 1, tw_call_words(call));
    if (!item)
        return NULL;
    tw_op_init(&item->ops[0], call);
    tw_counts_copy(&item->ops[0].info.counts, call->comm->size, (size_t *)(void *)&item->ops[1]);
    return item;
}

size_t tw_call_words(const struct tw_call *call)
{
    const struct tw_call_counts *counts = &call->info.counts;
    size_t arrays = (size_t)(counts->in != NULL) + (counts->in_displs != NULL) +
                    (counts->out != NULL) + (counts->out_displs != NULL);
    return arrays * (size_t)call->comm->size;
}

void tw_counts_copy(struct tw_call_counts *counts, int size, size_t *words)
{
    const size_t **arrays[] = {&counts->in, &counts->in_displs, &counts->out, &counts->out_displs};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (!*arrays[i])
            continue;
        memcpy(words, *arrays[i], (size_t)size * sizeof *words);
        *arrays[i] = words;
        words += size;
    }
}

/* A blocking call behind queued ones. */
static enum twill_status call_queued(struct tw_item *item)
{
    struct tw_progress *progress = item->comm->proc->progress;
    enum twill_status status = tw_progress_submit(progress, &item, 1);
    if (tw_failed(status))
        return status;
    tw_progress_wait(progress, item);
    return tw_failed(item->status) ? tw_fail_again(item->status, item->text) : item->status;
}

static enum twill_status call_on_stream(const struct tw_call *call, bool batch)
{
    enum twill_status status = tw_stream_attach(call->stream);
    if (tw_failed(status))
        return status;
    struct tw_item *item = tw_item_create_call(call, batch);
    if (!item)
        return TWILL_ERR_NOMEM;
    item->waited = false;
    status = tw_progress_submit(call->comm->proc->progress, &item, 1);
    if (tw_failed(status))
        free(item);
    return status;
}

static enum twill_status call_blocking(const struct tw_call *call, bool batch)
{
    struct tw_op op;
    struct tw_item item;
    tw_op_init(&op, call);
    tw_item_init(&item, call->comm, batch, &op, 1);
    if (__atomic_load_n(&call->comm->ops->pending, __ATOMIC_ACQUIRE))
        return call_queued(&item);
    return tw_item_run(&item);
}

enum twill_status tw_ops_call(const struct tw_call *call)
{
    bool batch = call->info.coll == TW_COLL_P2P;
    enum twill_status status;
    if (tw_group_active())
        status = tw_group_add_call(call);
    else if (batch && call->info.peer == call->comm->rank)
        status = tw_fail(TWILL_ERR_USAGE,
                         "%s: peer %d is this rank itself: it can only be matched inside a group",
                         call->info.is_send ? "send" : "recv", call->info.peer);
    else if (tw_gpu_serves(call))
        status = tw_gpu_run(call);
    else if (call->stream)
        status = call_on_stream(call, batch);
    else
        status = call_blocking(call, batch);
    if (tw_failed(status))
        tw_last_error_keep(tw_comm_key(call->comm));
    return status;
}
