/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how one item of a communicator starts, moves on and ends.
 * Never knows: who drives it, queues, streams. */
#include "config.h"

#include "comm/ops.h"

#include <stdio.h>
#include <string.h>

/* A wait longer than this compares records, and again each time so much has passed. */
#define LOOK_NS TW_NS_MS

/* ---- one call ---------------------------------------------------------------------------------
 */

/* The ranks cannot go on together: fail the communicator and give its status. */
static enum twill_status op_fail(const struct tw_ops *ops, struct tw_op *op,
                                 enum twill_status status)
{
    struct twill_comm *comm = ops->comm;
    if (status == TWILL_ERR_MISMATCH) {
        struct tw_exec_wait where;
        tw_exec_where(op->exec, &where);
        tw_record_mismatch(comm, &op->info, op->number, where.peer, tw_exec_mismatch(op->exec));
    } else {
        tw_comm_fail(comm, status, "%s: %s", tw_coll_name(op->info.coll), tw_fail_text());
    }
    tw_exec_cancel(op->exec);
    enum twill_status failure = tw_comm_status(comm);
    return tw_failed(failure) ? failure : status;
}

static enum twill_status op_start(struct tw_ops *ops, struct tw_op *op, struct tw_exec *exec,
                                  const struct tw_plan *plan, uint64_t plan_hash)
{
    op->exec = exec;
    op->info.algo_hash = plan_hash;
    struct tw_exec_call call = {
        .plan = plan,
        .rank = ops->comm->rank,
        .in = op->in,
        .out = op->out,
        .count = op->info.count,
        .in_counts = {op->info.counts.in, op->info.counts.in_displs},
        .out_counts = {op->info.counts.out, op->info.counts.out_displs},
        .type = op->info.type,
        .op = op->info.op,
        .scalar = op->scalar.at ? op->scalar.at : &op->scalar.value,
        .header = tw_record_begin(ops->comm, &op->info),
    };
    call.headers = tw_record_headers(ops->comm, &op->info);
    op->number = tw_record_number(ops->comm, &op->info);
    op->headless = plan->caps & TW_CAP_PUT_SCRATCH;
    if (op->headless)
        call.call_index = ops->scratch_calls++;
    enum twill_status status = tw_exec_start(exec, &call);
    return tw_failed(status) ? op_fail(ops, op, status) : TWILL_OK;
}

/* now_ns 0: the wait is young. */
static enum twill_status op_look(const struct tw_ops *ops, struct tw_op *op, uint64_t now_ns)
{
    if (!now_ns)
        return TWILL_INPROGRESS;
    if (!op->wait.since_ns) {
        op->wait.since_ns = now_ns;
        op->wait.next_ns = now_ns + LOOK_NS;
        op->wait.warned = false;
    }
    if (now_ns < op->wait.next_ns)
        return TWILL_INPROGRESS;
    struct tw_exec_wait where;
    tw_exec_where(op->exec, &where);
    enum twill_status status = tw_record_look(ops->comm, &op->info, op->number, &where, &op->wait);
    if (op->wait.next_ns <= now_ns)
        op->wait.next_ns = now_ns + LOOK_NS;
    if (!tw_failed(status))
        return TWILL_INPROGRESS;
    tw_exec_cancel(op->exec);
    return status;
}

static enum twill_status op_step(const struct tw_ops *ops, struct tw_op *op, uint64_t now_ns,
                                 bool *advanced)
{
    bool moved = false;
    enum twill_status status = tw_exec_progress(op->exec, &moved);
    *advanced |= moved;
    if (status == TWILL_OK) {
        *advanced = true;
        if (op->headless)
            status = tw_record_compare(ops->comm, &op->info, op->number);
        if (!tw_failed(status))
            tw_record_end(ops->comm, &op->info);
        return status;
    }
    if (tw_failed(status))
        return op_fail(ops, op, status);
    status = tw_comm_status(ops->comm);
    if (tw_failed(status)) {
        tw_exec_cancel(op->exec);
        return status;
    }
    if (!moved)
        return op_look(ops, op, now_ns);
    op->wait.since_ns = 0;
    return TWILL_INPROGRESS;
}

static enum twill_status collective_start(struct tw_ops *ops, const struct tw_item *item,
                                          struct tw_op *op)
{
    const struct tw_plan *plan;
    uint64_t plan_hash;
    enum twill_status status = tw_plans_get(ops->plans, &op->info, &plan, &plan_hash);
    if (tw_failed(status))
        return status;
    if (item->joint)
        tw_fuse_pack(item);
    return op_start(ops, op, ops->exec, plan, plan_hash);
}

/* ---- batches of sends and receives ------------------------------------------------------------
 */

static bool is_self(const struct tw_item *item, const struct tw_op *op)
{
    return op->info.peer == item->comm->rank;
}

static struct tw_op *next_self(const struct tw_item *item, uint32_t *i, bool is_send)
{
    for (; *i < item->nops; (*i)++) {
        struct tw_op *op = &item->ops[*i];
        if (is_self(item, op) && op->info.is_send == is_send)
            return &item->ops[(*i)++];
    }
    return NULL;
}

enum twill_status tw_batch_check(const struct tw_item *item)
{
    uint32_t at_send = 0, at_recv = 0;
    if (tw_failed(tw_comm_status(item->comm)))
        return TWILL_OK;
    for (size_t pair = 0;; pair++) {
        const struct tw_op *send = next_self(item, &at_send, true);
        const struct tw_op *recv = next_self(item, &at_recv, false);
        if (!send && !recv)
            return TWILL_OK;
        if (!send || !recv)
            return tw_fail(TWILL_ERR_USAGE,
                           "group: %s number %zu of rank %d with itself has no %s in the group",
                           send ? "send" : "recv", pair, item->comm->rank, send ? "recv" : "send");
        if (send->info.count != recv->info.count || send->info.type != recv->info.type)
            return tw_fail(TWILL_ERR_USAGE,
                           "group: send number %zu of rank %d to itself has %zu elements of %s, "
                           "its recv %zu of %s",
                           pair, item->comm->rank, send->info.count, tw_type_name(send->info.type),
                           recv->info.count, tw_type_name(recv->info.type));
    }
}

static void batch_self(const struct tw_item *item)
{
    uint32_t at_send = 0, at_recv = 0;
    const struct tw_op *send, *recv;
    while ((send = next_self(item, &at_send, true)) && (recv = next_self(item, &at_recv, false))) {
        size_t bytes = send->info.count * tw_type_bytes(send->info.type);
        if (bytes)
            memmove(recv->out, send->in, bytes);
    }
}

static struct tw_p2p_lane *lane_of(const struct tw_ops *ops, const struct tw_op *op)
{
    return &ops->lanes[2 * op->info.peer + (op->info.is_send ? 0 : 1)];
}

static enum twill_status lane_prepare(const struct tw_ops *ops, struct tw_p2p_lane *lane,
                                      const struct tw_op *op)
{
    if (lane->exec)
        return TWILL_OK;
    if (!lane->plan) {
        enum twill_status status =
            tw_plans_p2p(ops->comm, op->info.peer, op->info.is_send, &lane->plan);
        if (tw_failed(status))
            return status;
    }
    return tw_exec_create(ops->comm->chan, ops->comm->proc->isa, 0, NULL, &lane->exec);
}

/* All execs are made before anything starts, so that a short memory leaves nothing half done. */
static enum twill_status batch_start(struct tw_item *item)
{
    struct tw_ops *ops = item->comm->ops;
    for (uint32_t i = 0; i < item->nops; i++) {
        struct tw_op *op = &item->ops[i];
        if (is_self(item, op))
            continue;
        enum twill_status status = lane_prepare(ops, lane_of(ops, op), op);
        if (tw_failed(status))
            return status;
    }
    struct tw_p2p_lane **last = &ops->on;
    *last = NULL;
    for (uint32_t i = 0; i < item->nops; i++) {
        struct tw_op *op = &item->ops[i];
        if (is_self(item, op))
            continue;
        struct tw_p2p_lane *lane = lane_of(ops, op);
        op->lane_next = NULL;
        if (lane->head) {
            lane->tail->lane_next = op;
        } else {
            lane->head = op;
            lane->next_on = NULL;
            *last = lane;
            last = &lane->next_on;
        }
        lane->tail = op;
    }
    batch_self(item);
    return TWILL_OK;
}

/* TWILL_OK: the lane has no more to do. */
static enum twill_status lane_step(struct tw_ops *ops, struct tw_p2p_lane *lane, uint64_t now_ns,
                                   bool *advanced)
{
    while (lane->head) {
        struct tw_op *op = lane->head;
        enum twill_status status = TWILL_OK;
        if (!op->exec)
            status = op_start(ops, op, lane->exec, lane->plan, TW_P2P_PLAN_HASH);
        if (!tw_failed(status))
            status = op_step(ops, op, now_ns, advanced);
        if (status != TWILL_OK)
            return status;
        lane->head = op->lane_next;
    }
    return TWILL_OK;
}

/* The communicator has failed: let go of all that still runs. */
static void batch_cancel(struct tw_ops *ops)
{
    for (struct tw_p2p_lane *lane = ops->on; lane; lane = lane->next_on) {
        if (lane->head && lane->head->exec)
            tw_exec_cancel(lane->exec);
        lane->head = NULL;
    }
    ops->on = NULL;
}

static enum twill_status batch_step(struct tw_ops *ops, uint64_t now_ns, bool *advanced)
{
    struct tw_p2p_lane **at = &ops->on;
    while (*at) {
        struct tw_p2p_lane *lane = *at;
        enum twill_status status = lane_step(ops, lane, now_ns, advanced);
        if (tw_failed(status)) {
            batch_cancel(ops);
            return status;
        }
        if (status == TWILL_OK)
            *at = lane->next_on;
        else
            at = &lane->next_on;
    }
    return ops->on ? TWILL_INPROGRESS : TWILL_OK;
}

/* ---- items ------------------------------------------------------------------------------------
 */

static enum twill_status item_end(struct tw_item *item, enum twill_status status)
{
    item->status = status;
    if (!tw_failed(status))
        return status;
    if (tw_comm_status(item->comm) == status)
        tw_fail_again(status, item->comm->failure);
    snprintf(item->text, sizeof item->text, "%s", tw_fail_text());
    return status;
}

static struct tw_op *collective_of(const struct tw_item *item)
{
    return item->joint ? item->joint : &item->ops[0];
}

static enum twill_status item_start(struct tw_item *item)
{
    enum twill_status status = tw_comm_status(item->comm);
    if (tw_failed(status))
        return status;
    if (tw_failed(item->status))
        return tw_fail_again(item->status, item->text);
    return item->batch ? batch_start(item)
                       : collective_start(item->comm->ops, item, collective_of(item));
}

enum twill_status tw_item_step(struct tw_item *item, uint64_t now_ns, bool *advanced)
{
    struct tw_ops *ops = item->comm->ops;
    enum twill_status status = TWILL_OK;
    if (!item->started) {
        item->started = true;
        *advanced = true;
        status = item_start(item);
    }
    if (!tw_failed(status))
        status = item->batch ? batch_step(ops, now_ns, advanced)
                             : op_step(ops, collective_of(item), now_ns, advanced);
    if (status == TWILL_OK && item->joint)
        tw_fuse_unpack(item);
    return status == TWILL_INPROGRESS ? status : item_end(item, status);
}

enum twill_status tw_item_run(struct tw_item *item)
{
    struct tw_backoff backoff;
    tw_backoff_init(&backoff, item->comm->patience);
    bool slow = false;
    for (;;) {
        bool advanced = false;
        enum twill_status status = tw_item_step(item, slow ? tw_now_ns() : 0, &advanced);
        if (status != TWILL_INPROGRESS)
            return status;
        if (advanced) {
            tw_backoff_reset(&backoff);
            slow = false;
        } else {
            slow = tw_backoff_wait(&backoff);
        }
    }
}
