/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how to say where a plan is wrong. Never knows: what is right. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/check.h"
#include "plan/validate.h"

bool tw_check_nomem(struct tw_check *ck)
{
    if (!tw_failed(ck->status))
        ck->status = tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory to check it",
                             ck->progs[0].plan ? ck->progs[0].plan->name : "unknown");
    return false;
}

static bool keep(struct tw_check *ck, const struct tw_plan *plan, const char *place,
                 const char *text)
{
    if (tw_failed(ck->status))
        return false;
    char whole[TW_PLAN_NAME_BYTES + 1024];
    int length = snprintf(whole, sizeof(whole), "plan %s: %s%s", plan->name, place, text);
    size_t keeps =
        (size_t)length < sizeof(ck->report->text) ? (size_t)length : sizeof(ck->report->text) - 1;
    memcpy(ck->report->text, whole, keeps);
    ck->report->text[keeps] = '\0';
    ck->status = tw_fail(TWILL_ERR_INVALID, "%s", whole);
    return false;
}

void tw_check_unit_text(const struct tw_check *ck, uint32_t unit, char *text, size_t bytes)
{
    uint32_t c = ck->ncalls;
    while (c > 1 && ck->calls[c - 1].first_unit > unit)
        c--;
    const struct tw_check_call *call = &ck->calls[c ? c - 1 : 0];
    uint32_t plane = unit - call->first_unit, slices = call->slices ? call->slices : 1;
    snprintf(text, bytes, "call %u loop %u slice %u", c ? c - 1 : 0, plane / slices,
             plane % slices);
}

/* "rank R channel C lane L step S (op)" */
static void place_text(const struct tw_check *ck, const struct tw_check_lane *lane, uint32_t step,
                       char *text, size_t bytes)
{
    const struct tw_plan *plan = ck->progs[lane->prog].plan;
    snprintf(text, bytes, "rank %d channel %u lane %u step %u (%s)", lane->rank,
             plan->ranks[lane->rank].lanes[lane->index].channel, lane->index, step,
             tw_op_rules[tw_check_step_at(ck, lane, step)->op].name);
}

bool tw_check_fault(struct tw_check *ck, const struct tw_check_lane *lane, const char *format, ...)
{
    char text[256], place[128], unit[64], both[208];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    place_text(ck, lane, lane->step, place, sizeof(place));
    tw_check_unit_text(ck, lane->unit, unit, sizeof(unit));
    if (lane->unit)
        snprintf(both, sizeof(both), "%s, %s: ", place, unit);
    else /* before any execution */
        snprintf(both, sizeof(both), "%s: ", place);
    return keep(ck, ck->progs[lane->prog].plan, both, text);
}

bool tw_check_fault_plan(struct tw_check *ck, const struct tw_plan *plan, const char *format, ...)
{
    char text[384];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return keep(ck, plan, "", text);
}

void tw_check_when(const struct tw_check *ck, uint32_t dim, uint32_t time, char *text, size_t bytes)
{
    uint32_t ranks = (uint32_t)ck->nranks, l = dim - ranks;
    if (dim < ranks) {
        snprintf(text, bytes, "the start of call %u of rank %u", time - 1, dim);
        return;
    }
    const struct tw_check_lane *lane = &ck->lanes[l];
    uint32_t call = lane->call;
    while (call > 0 && (ck->progs[ck->calls[call].prog].plan != ck->progs[lane->prog].plan ||
                        lane->call_time[call] >= time))
        call--;
    uint32_t slices = ck->calls[call].slices, since = time - lane->call_time[call] - 1;
    place_text(ck, lane, lane->nsteps ? since / slices % lane->nsteps : 0, text, bytes);
}

static void waits_for(const struct tw_check *ck, const struct tw_check_lane *lane,
                      const struct tw_check_op *op, char *text, size_t bytes)
{
    const struct tw_check_lane *on =
        op->dep_lane == TW_CHECK_NONE ? NULL : &ck->lanes[op->dep_lane];
    if (lane->waits_dep && on) {
        snprintf(text, bytes, "lane %u step %u", on->index, op->dep_step);
        return;
    }
    if (lane->waits_word) {
        const struct tw_check_word *word = &ck->words[op->word * ck->slices + lane->slice];
        snprintf(text, bytes, "signal %u to reach %u", word->sig, op->sig_value);
        return;
    }
    if (op->fifo_in != TW_CHECK_NONE) {
        const struct tw_check_fifo *in = &ck->fifos[op->fifo_in];
        if (in->pushed == in->popped) {
            snprintf(text, bytes, "a message from rank %d on fifo %u", in->from, in->id);
            return;
        }
    }
    const struct tw_check_fifo *out = &ck->fifos[op->fifo_out];
    snprintf(text, bytes, "room for a message to rank %d on fifo %u", out->to, out->id);
}

bool tw_check_deadlock(struct tw_check *ck)
{
    for (int r = 0; r < ck->nranks; r++) {
        const struct tw_check_rank *state = &ck->ranks[r];
        if (state->call >= ck->ncalls)
            continue;
        const struct tw_check_prog *prog = &ck->progs[ck->calls[state->call].prog];
        for (uint32_t l = prog->rank_lane[r]; l < prog->rank_lane[r + 1]; l++) {
            struct tw_check_lane *lane = &ck->lanes[l];
            char what[96];
            if (lane->loop >= ck->calls[state->call].loops)
                continue;
            waits_for(ck, lane, &ck->ops[lane->first_op + lane->step], what, sizeof(what));
            return tw_check_fault(ck, lane, "waits forever for %s (deadlock)", what);
        }
    }
    return tw_check_fault_plan(ck, ck->progs[0].plan, "no rank can go on");
}
