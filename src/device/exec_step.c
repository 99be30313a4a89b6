/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what one slice of each operation does. Never knows: the order of steps.
 *
 * A step first asks for all it needs (a message, a slot, a signal); only when everything is there
 * does it move a byte. So a step that returns AGAIN has changed nothing and is tried again as a
 * whole.
 */
#include <string.h>

#include "base/status.h"
#include "device/exec_state.h"

const struct tw_exec_form tw_exec_forms[TW_OP_COUNT] = {
    [TW_OP_COPY] = {TW_AT_SRC, TW_AT_NONE, TW_AT_DST, TW_BY_SRC | TW_BY_DST},
    [TW_OP_REDUCE] = {TW_AT_DST, TW_AT_SRC, TW_AT_DST, TW_BY_SRC | TW_BY_DST},
    [TW_OP_SEND] = {TW_AT_SRC, TW_AT_NONE, TW_AT_SLOT, TW_BY_SRC},
    [TW_OP_RECV] = {TW_AT_MESSAGE, TW_AT_NONE, TW_AT_DST, TW_BY_DST},
    [TW_OP_RECV_REDUCE] = {TW_AT_SRC, TW_AT_MESSAGE, TW_AT_DST, TW_BY_SRC | TW_BY_DST},
    [TW_OP_RECV_SEND] = {TW_AT_MESSAGE, TW_AT_NONE, TW_AT_SLOT, TW_BY_DST | TW_MAY_STORE},
    [TW_OP_RECV_REDUCE_SEND] = {TW_AT_SRC, TW_AT_MESSAGE, TW_AT_SLOT, TW_BY_SRC | TW_MAY_STORE},
    [TW_OP_PUT] = {TW_AT_SRC, TW_AT_NONE, TW_AT_PEER_DST, TW_BY_SRC | TW_BY_DST},
    [TW_OP_GET] = {TW_AT_PEER_SRC, TW_AT_NONE, TW_AT_DST, TW_BY_SRC | TW_BY_DST},
    [TW_OP_GET_REDUCE] = {TW_AT_DST, TW_AT_PEER_SRC, TW_AT_DST, TW_BY_SRC | TW_BY_DST},
};

/* One slice on its way: where it comes from and goes to. */
struct flow {
    const struct tw_exec *exec;
    const struct tw_plan_step *step;
    const struct tw_exec_form *form;
    size_t first;       /* element of each cell with which the slice begins */
    size_t local_first; /* the same inside SCRATCH and WIDE, which hold one loop */
    struct tw_msg msg;
    size_t taken; /* bytes of msg so far */
    bool msg_wide;
    char *slot;
    size_t filled; /* bytes of slot so far */
    bool slot_wide;
    char *peer_scratch;
    /* spans that the step goes by; NULL: none */
    const struct tw_plan_span *src, *dst;
};

/* ---- places --------------------------------------------------------------------------------- */

static size_t slice_elems(const struct flow *flow, const struct tw_plan_span *span, uint32_t cell)
{
    const size_t all = tw_exec_cell_elems(&flow->exec->parts[span->part], cell);
    const size_t left = all > flow->first ? all - flow->first : 0;

    return left < flow->exec->shape.slice_elems ? left : flow->exec->shape.slice_elems;
}

static struct tw_exec_place cell_place(const struct flow *flow, const struct tw_plan_span *span,
                                       uint32_t cell, char *scratch)
{
    const struct tw_exec *exec = flow->exec;
    const struct tw_exec_math *math = &exec->math;

    switch (span->buf) {
    case TW_BUF_SCRATCH:
        return (struct tw_exec_place){
            scratch + cell * exec->room_bytes + flow->local_first * math->bytes, false, false};
    case TW_BUF_WIDE:
        return (struct tw_exec_place){scratch + exec->wide_at + cell * exec->wide_room_bytes +
                                          flow->local_first * math->wide_bytes,
                                      true, false};
    default:
        /* in integers: an empty cell may lie anywhere, at NULL for instance */
        return (struct tw_exec_place){
            (char *)((uintptr_t)exec->base[span->buf] +
                     (tw_exec_cell_first(&exec->parts[span->part], cell) + flow->first) *
                         math->bytes),
            false, span->buf == TW_BUF_IN};
    }
}

static struct tw_exec_place place_of(const struct flow *flow, enum tw_exec_at at, uint32_t i)
{
    const bool peers = at == TW_AT_PEER_SRC || at == TW_AT_PEER_DST;
    const struct tw_plan_span *span =
        at == TW_AT_SRC || at == TW_AT_PEER_SRC ? flow->src : flow->dst;

    switch (at) {
    case TW_AT_MESSAGE:
        return (struct tw_exec_place){(char *)(uintptr_t)flow->msg.data + flow->taken,
                                      flow->msg_wide, false};
    case TW_AT_SLOT:
        return (struct tw_exec_place){flow->slot + flow->filled, flow->slot_wide, false};
    default:
        if (at == TW_AT_NONE || span == NULL) {
            return (struct tw_exec_place){NULL, false, false};
        }
        return cell_place(flow, span, tw_span_cell(span, i),
                          peers ? flow->peer_scratch : flow->exec->base[TW_BUF_SCRATCH]);
    }
}

/* ---- a slice -------------------------------------------------------------------------------- */

static enum twill_status bad_message(const struct flow *flow, size_t expected)
{
    return tw_fail(TWILL_ERR_PEER, "rank %d sent %u bytes where plan %s has %zu", flow->step->from,
                   flow->msg.bytes, flow->exec->call.plan->name, expected);
}

/* Whether a message or a slot holds unrounded partials, in plans that have any. */
static void find_widths(struct flow *flow, const struct tw_plan_span *span)
{
    const struct tw_exec_math *math = &flow->exec->math;
    const bool from_wide = flow->src != NULL && flow->src->buf == TW_BUF_WIDE;
    size_t elems = 0;

    for (uint32_t i = 0; i < tw_span_cells(span); i++) {
        elems += slice_elems(flow, span, tw_span_cell(span, i));
    }
    flow->msg_wide = tw_exec_takes(flow->form) && math->wide_bytes != math->bytes &&
                     flow->msg.bytes == elems * math->wide_bytes;
    flow->slot_wide = !(flow->step->flags & TW_STEP_ROUND) && (flow->msg_wide || from_wide);
}

static enum twill_status move_cell(struct flow *flow, uint32_t i, size_t n)
{
    const struct tw_exec_math *math = &flow->exec->math;
    const struct tw_exec_form *form = flow->form;
    const size_t msg_bytes = n * (flow->msg_wide ? math->wide_bytes : math->bytes);
    const bool swap = flow->step->flags & TW_STEP_ACC_RIGHT && form->other != TW_AT_NONE;
    const bool stores =
        form->to == TW_AT_SLOT && flow->dst != NULL && flow->step->flags & TW_STEP_STORE;
    struct tw_exec_value value;

    if (tw_exec_takes(form) && msg_bytes > flow->msg.bytes - flow->taken) {
        return bad_message(flow, flow->taken + msg_bytes);
    }
    if (n == 0) {
        return TWILL_OK;
    }
    value.left = place_of(flow, swap ? form->other : form->local, i);
    value.right = place_of(flow, swap ? form->local : form->other, i);
    value.to[0] = place_of(flow, form->to, i);
    value.to[1] = place_of(flow, stores ? TW_AT_DST : TW_AT_NONE, i);
    value.count = n;
    value.final = flow->step->flags & TW_STEP_FINAL;
    tw_exec_value_put(math, &value);
    flow->taken += tw_exec_takes(form) ? msg_bytes : 0;
    flow->filled +=
        form->to == TW_AT_SLOT ? n * (flow->slot_wide ? math->wide_bytes : math->bytes) : 0;
    return TWILL_OK;
}

/* A message that is passed on without a span that says what it is. */
static enum twill_status pass_on(struct flow *flow)
{
    if (flow->msg.bytes > 0) {
        memcpy(flow->slot, flow->msg.data, flow->msg.bytes);
    }
    flow->filled = flow->taken = flow->msg.bytes;
    return TWILL_OK;
}

static enum twill_status move(struct flow *flow)
{
    const struct tw_plan_span *span = flow->src != NULL ? flow->src : flow->dst;
    const struct tw_plan_span *other = flow->src != NULL ? flow->dst : NULL;
    const uint32_t cells = span != NULL ? tw_span_cells(span) : 0;

    if (cells == 0 && flow->step->op == TW_OP_RECV_SEND) {
        return pass_on(flow);
    }
    if (other != NULL && tw_span_cells(other) != cells) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s: a step has spans of %u and %u cells",
                       flow->exec->call.plan->name, cells, tw_span_cells(other));
    }
    if (flow->exec->call.plan->wide_cells > 0 && span != NULL) {
        find_widths(flow, span);
    }
    for (uint32_t i = 0; i < cells; i++) {
        const uint32_t cell = tw_span_cell(span, i);
        const size_t n = slice_elems(flow, span, cell);
        enum twill_status status = TWILL_OK;

        if (other != NULL && slice_elems(flow, other, tw_span_cell(other, i)) != n) {
            return tw_fail(TWILL_ERR_INVALID, "plan %s: cells %u and %u of a step do not fit",
                           flow->exec->call.plan->name, cell, tw_span_cell(other, i));
        }
        status = move_cell(flow, i, n);
        if (status != TWILL_OK) {
            return status;
        }
    }
    if (tw_exec_takes(flow->form) && flow->taken != flow->msg.bytes) {
        return bad_message(flow, flow->taken);
    }
    return TWILL_OK;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static enum twill_status stop(struct tw_exec_lane *lane, enum tw_exec_phase phase, int peer)
{
    lane->phase = phase;
    lane->peer = peer;
    return TWILL_ERR_AGAIN;
}

static enum twill_status signal_step(struct tw_exec *exec, struct tw_exec_lane *lane)
{
    const struct tw_plan_step *step = &lane->steps[lane->step];
    const struct tw_plan *plan = exec->call.plan;
    const size_t word = (size_t)step->sig * plan->slices + lane->slice;
    const uint64_t value = exec->signal_now + lane->loop * plan->sig_max + step->sig_value;
    uint64_t *at, old;

    if (step->op == TW_OP_WAIT) {
        at = &tw_chan_signals(exec->chan)[word];
        /* pairs with the release below: what the peer put before it is seen after it */
        return __atomic_load_n(at, __ATOMIC_ACQUIRE) >= value
                   ? TWILL_OK
                   : stop(lane, TW_PHASE_SIGNAL, step->from);
    }
    at = &tw_chan_peer_signals(exec->chan, step->to)[word];
    old = __atomic_load_n(at, __ATOMIC_RELAXED);
    /* several ranks may raise one word: the greatest value stays */
    while (old < value && !__atomic_compare_exchange_n(at, &old, value, true, __ATOMIC_RELEASE,
                                                       __ATOMIC_RELAXED)) {
    }
    return TWILL_OK;
}

static uint64_t header_of(const struct tw_exec *exec, int peer, bool comes)
{
    const uint64_t *headers = exec->call.headers;

    return headers != NULL ? headers[2 * (size_t)peer + comes] : exec->call.header;
}

/* The message that the step consumes. */
static enum twill_status take(struct tw_exec *exec, struct tw_exec_lane *lane, struct flow *flow)
{
    const struct tw_plan_step *step = flow->step;
    enum twill_status status = tw_chan_peek(exec->chan, step->from, step->fifo_in, &flow->msg);

    if (status == TWILL_ERR_AGAIN) {
        return stop(lane, TW_PHASE_RECV, step->from);
    }
    if (status == TWILL_OK && flow->msg.header != header_of(exec, step->from, true)) {
        exec->found_header = flow->msg.header;
        status = tw_fail(TWILL_ERR_MISMATCH,
                         "plan %s: rank %d received a message of another call from rank %d",
                         exec->call.plan->name, exec->call.rank, step->from);
    }
    if (status != TWILL_OK) {
        lane->phase = TW_PHASE_RECV;
        lane->peer = step->from;
    }
    return status;
}

static enum twill_status data_step(struct tw_exec *exec, struct tw_exec_lane *lane)
{
    const struct tw_plan_step *step = &lane->steps[lane->step];
    const struct tw_exec_form *form = &tw_exec_forms[step->op];
    enum twill_status status = TWILL_OK;
    struct flow flow; /* field by field: zeroing it whole would cost as much as a small step */
    void *slot = NULL;

    flow.exec = exec;
    flow.step = step;
    flow.form = form;
    flow.src = tw_exec_src(step);
    flow.dst = tw_exec_dst(step);
    flow.local_first = lane->slice * exec->shape.slice_elems;
    flow.first = lane->loop * exec->shape.slices * exec->shape.slice_elems + flow.local_first;
    flow.msg.data = NULL;
    flow.msg.bytes = 0;
    flow.taken = flow.filled = 0;
    flow.msg_wide = flow.slot_wide = false;
    flow.slot = flow.peer_scratch = NULL;
    if (tw_exec_takes(form)) {
        status = take(exec, lane, &flow);
    }
    if (status == TWILL_OK && form->to == TW_AT_SLOT) {
        status = tw_chan_reserve(exec->chan, step->to, step->fifo_out, &slot);
        flow.slot = slot;
        if (status != TWILL_OK) {
            stop(lane, TW_PHASE_SEND, step->to);
        }
    }
    if (status != TWILL_OK) {
        return status;
    }
    if (tw_exec_reaches(step->op)) {
        const int peer = step->op == TW_OP_PUT ? step->to : step->from;

        flow.peer_scratch = (char *)tw_chan_peer_scratch(exec->chan, peer) + exec->scratch_half;
    }
    status = move(&flow);
    if (status == TWILL_OK && form->to == TW_AT_SLOT) {
        tw_chan_commit(exec->chan, step->to, step->fifo_out, (uint32_t)flow.filled,
                       header_of(exec, step->to, false));
    }
    if (status == TWILL_OK && tw_exec_takes(form)) {
        tw_chan_release(exec->chan, step->from, step->fifo_in);
    }
    return status;
}

enum twill_status tw_exec_step(struct tw_exec *exec, struct tw_exec_lane *lane)
{
    const uint8_t op = lane->steps[lane->step].op;

    if (op == TW_OP_SIGNAL || op == TW_OP_WAIT) {
        return signal_step(exec, lane);
    }
    return data_step(exec, lane);
}
