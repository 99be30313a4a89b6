/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls, loops and slices of all ranks, and which lane can go on. Never knows: what a step
 * computes. */
#include <string.h>

#include "plan/check.h"

void tw_check_wake(struct tw_check *ck, uint32_t lane)
{
    if (ck->lanes[lane].queued)
        return;
    ck->lanes[lane].queued = true;
    ck->queue[(ck->queue_head + ck->nqueue++) % ck->nlanes] = lane;
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

static bool dep_done(const struct tw_check *ck, const struct tw_check_lane *lane,
                     const struct tw_check_op *op)
{
    const struct tw_check_lane *on = &ck->lanes[op->dep_lane];
    if (on->loop != lane->loop)
        return on->loop > lane->loop;
    if (on->step != op->dep_step)
        return on->step > op->dep_step;
    return !op->whole && on->slice > lane->slice;
}

/* Two plans of one layout share the slots; else the sender waits until the FIFO is drained. */
static bool fifo_full(const struct tw_check *ck, const struct tw_check_fifo *fifo,
                      const struct tw_check_lane *lane)
{
    const struct tw_plan *plan = ck->progs[lane->prog].plan, *last = ck->progs[fifo->prog].plan;
    uint32_t used = fifo->pushed - fifo->popped;
    bool same = plan == last || (plan->depth == last->depth && plan->nfifos == last->nfifos);
    return same ? used >= plan->depth : used > 0;
}

static bool word_reached(const struct tw_check *ck, const struct tw_check_lane *lane,
                         const struct tw_check_op *op)
{
    const struct tw_check_word *word = &ck->words[op->word * ck->slices + lane->slice];
    return word->value >= tw_check_sig_value(ck, lane, op);
}

/* Whether the slice can start; else the lane is noted where it will be woken. */
static bool op_ready(struct tw_check *ck, struct tw_check_lane *lane, const struct tw_check_op *op)
{
    uint32_t self = (uint32_t)(lane - ck->lanes);
    if (op->dep_lane != TW_CHECK_NONE && !dep_done(ck, lane, op)) {
        ck->ranks[lane->rank].deps_waiting += !lane->waits_dep;
        lane->waits_dep = true;
        return false;
    }
    if (op->fifo_in != TW_CHECK_NONE) {
        struct tw_check_fifo *fifo = &ck->fifos[op->fifo_in];
        if (fifo->pushed == fifo->popped) {
            fifo->reader = self;
            return false;
        }
    }
    if (op->fifo_out != TW_CHECK_NONE && fifo_full(ck, &ck->fifos[op->fifo_out], lane)) {
        ck->fifos[op->fifo_out].writer = self;
        return false;
    }
    if (op->op == TW_OP_WAIT && !word_reached(ck, lane, op)) {
        ck->ranks[lane->rank].words_waiting += !lane->waits_word;
        lane->waits_word = true;
        return false;
    }
    return true;
}

void tw_check_wake_rank(struct tw_check *ck, int rank, bool words)
{
    struct tw_check_rank *state = &ck->ranks[rank];
    const struct tw_check_prog *prog = &ck->progs[ck->calls[state->call].prog];
    for (uint32_t l = prog->rank_lane[rank]; l < prog->rank_lane[rank + 1]; l++) {
        struct tw_check_lane *lane = &ck->lanes[l];
        bool *waits = words ? &lane->waits_word : &lane->waits_dep;
        if (*waits)
            tw_check_wake(ck, l);
        *waits = false;
    }
    *(words ? &state->words_waiting : &state->deps_waiting) = 0;
}

/* ---- calls ------------------------------------------------------------------------------------
 */

/* The user's memory as a call finds it: IN holds the rank's input, OUT nothing. */
static void user_fill(struct tw_check *ck, int rank, const struct tw_check_call *call)
{
    const struct tw_check_prog *prog = &ck->progs[call->prog];
    const size_t *bases = call->bases[rank];
    bool has_in = tw_check_has_in(prog->plan, rank);
    uint32_t first = (uint32_t)rank * prog->in_cells;
    for (uint32_t plane = 0; plane < call->loops * call->slices; plane++) {
        struct tw_check_value *out =
            ck->values + bases[TW_BUF_OUT] + (size_t)plane * prog->user_stride;
        struct tw_check_value *in =
            ck->values + bases[TW_BUF_IN] + (size_t)plane * prog->user_stride;
        memset(out, 0, prog->out_cells * sizeof(*out));
        if (!has_in)
            continue;
        for (uint32_t cell = 0; cell < prog->in_cells; cell++)
            in[cell] =
                (struct tw_check_value){prog->first_leaf + first + cell,
                                        (call->first_unit + plane) | prog->in_keys[first + cell]};
    }
}

static void call_begin(struct tw_check *ck, int rank)
{
    struct tw_check_rank *state = &ck->ranks[rank];
    const struct tw_check_call *call = &ck->calls[state->call];
    const struct tw_check_prog *prog = &ck->progs[call->prog];
    user_fill(ck, rank, call);
    if (ck->clocks)
        tw_check_clock_call(ck, rank);
    state->lanes_left = 0;
    for (uint32_t l = prog->rank_lane[rank]; l < prog->rank_lane[rank + 1]; l++) {
        struct tw_check_lane *lane = &ck->lanes[l];
        lane->call = state->call;
        lane->loop = lane->nsteps ? 0 : call->loops;
        lane->step = lane->slice = 0;
        lane->unit = call->first_unit;
        lane->call_time[lane->call] = lane->time;
        if (lane->nsteps) {
            state->lanes_left++;
            tw_check_wake(ck, l);
        }
    }
}

static bool call_end(struct tw_check *ck, int rank)
{
    if (ck->clocks && !tw_check_clock_return(ck, rank))
        return false;
    return tw_check_goal(ck, rank);
}

/* Start the rank's calls from the present one on until one has work to do. */
static bool rank_next(struct tw_check *ck, int rank)
{
    struct tw_check_rank *state = &ck->ranks[rank];
    for (;;) {
        if (state->call == ck->ncalls) {
            ck->ranks_left--;
            return true;
        }
        call_begin(ck, rank);
        if (state->lanes_left)
            return true;
        if (!call_end(ck, rank))
            return false;
        state->call++;
    }
}

/* ---- lanes ------------------------------------------------------------------------------------
 */

/* Step on: slices, then steps, then loops. */
static void lane_advance(struct tw_check_lane *lane, const struct tw_check_call *call)
{
    lane->unit++;
    if (++lane->slice < call->slices)
        return;
    lane->slice = 0;
    lane->unit -= call->slices;
    if (++lane->step < lane->nsteps)
        return;
    lane->step = 0;
    lane->loop++;
    lane->unit += call->slices;
}

/* Run a lane until it waits or its call ends. */
static bool lane_run(struct tw_check *ck, struct tw_check_lane *lane)
{
    const struct tw_check_call *call = &ck->calls[lane->call];
    while (lane->loop < call->loops) {
        const struct tw_check_op *op = &ck->ops[lane->first_op + lane->step];
        if (!op_ready(ck, lane, op))
            return true;
        if (!tw_check_step(ck, lane, op))
            return false;
        ck->steps_run++;
        lane_advance(lane, call);
        if (op->mark != TW_CHECK_NONE && ck->ranks[lane->rank].deps_waiting)
            tw_check_wake_rank(ck, lane->rank, false);
    }
    struct tw_check_rank *state = &ck->ranks[lane->rank];
    if (--state->lanes_left)
        return true;
    if (!call_end(ck, lane->rank))
        return false;
    state->call++;
    return rank_next(ck, lane->rank);
}

/* ---- a run ------------------------------------------------------------------------------------
 */

static void call_layout(struct tw_check *ck, uint32_t index)
{
    struct tw_check_call *call = &ck->calls[index];
    const struct tw_check_prog *prog = &ck->progs[call->prog];
    const struct tw_plan *plan = prog->plan;
    uint32_t copy = prog->peer_scratch ? call->scratch_number % plan->parity : 0;
    for (int rank = 0; rank < ck->nranks; rank++) {
        size_t *bases = call->bases[rank];
        size_t planes = (size_t)rank * TW_CHECK_LOOPS * plan->slices;
        bases[TW_BUF_IN] = prog->user_base + planes * prog->user_stride;
        bases[TW_BUF_OUT] = bases[TW_BUF_IN] + prog->in_cells;
        size_t scratch = ((size_t)rank * plan->parity + copy) * plan->slices;
        bases[TW_BUF_SCRATCH] = prog->scratch_base + scratch * prog->scratch_stride;
        bases[TW_BUF_WIDE] = bases[TW_BUF_SCRATCH] + plan->scratch_cells;
        if (!call->inplace[rank])
            continue;
        if (prog->in_cells > prog->out_cells)
            bases[TW_BUF_OUT] = bases[TW_BUF_IN] + tw_check_alias(prog, rank, TW_BUF_OUT, 0);
        else
            bases[TW_BUF_IN] = bases[TW_BUF_OUT] + tw_check_alias(prog, rank, TW_BUF_IN, 0);
    }
}

static void run_reset(struct tw_check *ck)
{
    memset(ck->values, 0, ck->nmemory * sizeof(*ck->values));
    for (uint32_t f = 0; f < ck->nfifos; f++) {
        struct tw_check_fifo *fifo = &ck->fifos[f];
        fifo->pushed = fifo->popped = fifo->prog = 0;
        fifo->reader = fifo->writer = TW_CHECK_NONE;
    }
    for (uint32_t l = 0; l < ck->nlanes; l++) {
        struct tw_check_lane *lane = &ck->lanes[l];
        lane->queued = lane->waits_dep = lane->waits_word = false;
        lane->time = 0;
    }
    for (int r = 0; r < ck->nranks; r++) {
        ck->ranks[r].call = 0;
        ck->ranks[r].deps_waiting = ck->ranks[r].words_waiting = 0;
    }
    ck->queue_head = ck->nqueue = 0;
    ck->ranks_left = (uint32_t)ck->nranks;
    if (ck->clocks)
        tw_check_clock_reset(ck);
}

static void calls_number(struct tw_check *ck)
{
    uint32_t unit = 1, scratch = 0;
    uint64_t base = 0;
    for (uint32_t c = 0; c < ck->ncalls; c++) {
        struct tw_check_call *call = &ck->calls[c];
        const struct tw_check_prog *prog = &ck->progs[call->prog];
        call->first_unit = unit;
        call->scratch_number = scratch;
        call->signal_base = base;
        unit += call->loops * call->slices;
        scratch += prog->peer_scratch;
        base += (uint64_t)call->loops * prog->plan->sig_max;
        call_layout(ck, c);
    }
}

static bool fifos_empty(struct tw_check *ck)
{
    for (uint32_t f = 0; f < ck->nfifos; f++) {
        const struct tw_check_fifo *fifo = &ck->fifos[f];
        if (fifo->pushed == fifo->popped)
            continue;
        uint32_t depth = ck->progs[fifo->prog].plan->depth;
        const struct tw_check_slot *slot = &fifo->slots[fifo->popped % depth];
        struct tw_check_lane *lane = &ck->lanes[slot->lane];
        lane->step = slot->step;
        lane->unit = slot->unit;
        return tw_check_fault(ck, lane, "its message to rank %d on fifo %u is never received",
                              fifo->to, fifo->id);
    }
    return true;
}

bool tw_check_run(struct tw_check *ck)
{
    calls_number(ck);
    run_reset(ck);
    for (int rank = 0; rank < ck->nranks; rank++)
        if (!rank_next(ck, rank))
            return false;
    while (ck->nqueue) {
        struct tw_check_lane *lane = &ck->lanes[ck->queue[ck->queue_head]];
        ck->queue_head = (ck->queue_head + 1) % ck->nlanes;
        ck->nqueue--;
        lane->queued = false;
        if (!lane_run(ck, lane))
            return false;
    }
    return ck->ranks_left ? tw_check_deadlock(ck) : fifos_empty(ck);
}
