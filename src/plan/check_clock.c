/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: happens-before as vector clocks, and accesses that it does not order. Never knows: values.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/check.h"
#include "plan/validate.h"

/*
 * Dimensions: one a rank (calls it began), one a lane (steps it began), one a lane and peer that it
 * puts to: a put is an event of its own that only a later signal of that lane to that peer orders
 * before anything. Returned credits order nothing, since FIFOs may be deeper than a plan asks for.
 */

static void join(const struct tw_check *ck, uint32_t *clock, const uint32_t *other)
{
    for (uint32_t d = 0; d < ck->dims; d++)
        clock[d] = other[d] > clock[d] ? other[d] : clock[d];
}

static void assign(const struct tw_check *ck, uint32_t *clock, const uint32_t *other)
{
    memcpy(clock, other, ck->dims * sizeof(*clock));
}

static void zero(const struct tw_check *ck, uint32_t *clock)
{
    memset(clock, 0, ck->dims * sizeof(*clock));
}

void tw_check_clock_reset(struct tw_check *ck)
{
    memset(ck->accesses, 0, ck->nmemory * sizeof(*ck->accesses));
    ck->nreads = 0;
    ck->reads_free = TW_CHECK_NONE;
    zero(ck, ck->put_at);
    for (uint32_t l = 0; l < ck->nlanes; l++)
        zero(ck, ck->lanes[l].clock);
    for (int r = 0; r < ck->nranks; r++)
        zero(ck, ck->ranks[r].clock);
    for (uint32_t i = 0; ck->regions && i < (uint32_t)ck->nranks * TW_CHECK_CALLS_MAX; i++) {
        struct tw_check_region *region = &ck->regions[i];
        if (region->any) {
            zero(ck, region->reads);
            zero(ck, region->writes);
        }
        region->any = false;
    }
}

/* ---- order ------------------------------------------------------------------------------------
 */

static uint32_t *mark_at(const struct tw_check *ck, const struct tw_check_lane *lane, uint32_t mark,
                         uint32_t slice)
{
    size_t at = ((size_t)mark * TW_CHECK_LOOPS + lane->loop) * ck->slices + slice;
    return ck->marks + at * ck->dims;
}

/* The first raise that satisfies a wait: with a later one the wait knows more, never less. */
static const struct tw_check_raise *word_find(const struct tw_check_word *word, uint64_t value)
{
    uint32_t low = 0, high = word->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (word->raises[mid].value >= value)
            high = mid;
        else
            low = mid + 1;
    }
    return &word->raises[low];
}

void tw_check_clock_enter(struct tw_check *ck, struct tw_check_lane *lane,
                          const struct tw_check_op *op, const struct tw_check_slot *in)
{
    uint32_t last = ck->calls[lane->call].slices - 1;
    if (op->dep_mark != TW_CHECK_NONE)
        join(ck, lane->clock, mark_at(ck, lane, op->dep_mark, op->whole ? last : lane->slice));
    if (in)
        join(ck, lane->clock, in->clock);
    if (op->op == TW_OP_WAIT)
        join(ck, lane->clock,
             word_find(&ck->words[op->word * ck->slices + lane->slice],
                       tw_check_sig_value(ck, lane, op))
                 ->clock);
    lane->clock[lane->dim] = ++lane->time;
}

static struct tw_check_raise *word_add(struct tw_check *ck, struct tw_check_word *word)
{
    if (word->count == word->room) {
        uint32_t room = word->room ? 2 * word->room : 4;
        struct tw_check_raise *raises = tw_check_alloc(&ck->arena, room, sizeof(*raises));
        if (!raises)
            return NULL;
        if (word->count)
            memcpy(raises, word->raises, word->count * sizeof(*raises));
        word->raises = raises;
        word->room = room;
    }
    struct tw_check_raise *raise = &word->raises[word->count];
    if (!raise->clock)
        raise->clock = tw_check_alloc(&ck->arena, ck->dims, sizeof(*raise->clock));
    return raise->clock ? raise : NULL;
}

/* Raises of a word are in one order in every schedule, or the plan is refused: else a wait would
 * not know which of them it saw. */
static bool word_raise(struct tw_check *ck, struct tw_check_lane *lane,
                       const struct tw_check_op *op)
{
    struct tw_check_word *word = &ck->words[op->word * ck->slices + lane->slice];
    uint64_t value = tw_check_sig_value(ck, lane, op);
    if (word->count) {
        const struct tw_check_raise *last = &word->raises[word->count - 1];
        uint32_t dim = ck->lanes[last->lane].dim;
        char when[96];
        if (lane->clock[dim] < last->time) {
            tw_check_when(ck, dim, last->time, when, sizeof(when));
            return tw_check_fault(ck, lane, "raises signal %u of rank %d, not ordered with %s",
                                  word->sig, word->rank, when);
        }
        if (value <= last->value)
            return true;
    }
    struct tw_check_raise *raise = word_add(ck, word);
    if (!raise)
        return tw_check_nomem(ck);
    word->count++;
    raise->value = value;
    raise->lane = (uint32_t)(lane - ck->lanes);
    raise->time = lane->time;
    assign(ck, raise->clock, lane->clock);
    if (op->put_dim != TW_CHECK_NONE)
        raise->clock[op->put_dim] = ck->put_at[op->put_dim];
    if (ck->ranks[word->rank].words_waiting)
        tw_check_wake_rank(ck, word->rank, true);
    return true;
}

bool tw_check_clock_leave(struct tw_check *ck, struct tw_check_lane *lane,
                          const struct tw_check_op *op, struct tw_check_slot *out)
{
    if (op->op == TW_OP_PUT)
        ck->put_at[op->put_dim] = lane->time;
    if (out)
        assign(ck, out->clock, lane->clock);
    if (op->mark != TW_CHECK_NONE)
        assign(ck, mark_at(ck, lane, op->mark, lane->slice), lane->clock);
    return op->op != TW_OP_SIGNAL || word_raise(ck, lane, op);
}

void tw_check_clock_call(struct tw_check *ck, int rank)
{
    struct tw_check_rank *state = &ck->ranks[rank];
    const struct tw_check_prog *prog = &ck->progs[ck->calls[state->call].prog];
    state->clock[rank] = state->call + 1;
    zero(ck, state->touched);
    for (uint32_t l = prog->rank_lane[rank]; l < prog->rank_lane[rank + 1]; l++)
        assign(ck, ck->lanes[l].clock, state->clock);
}

bool tw_check_clock_return(struct tw_check *ck, int rank)
{
    struct tw_check_rank *state = &ck->ranks[rank];
    const struct tw_check_prog *prog = &ck->progs[ck->calls[state->call].prog];
    for (uint32_t l = prog->rank_lane[rank]; l < prog->rank_lane[rank + 1]; l++)
        join(ck, state->clock, ck->lanes[l].clock);
    if (!prog->peer_user)
        return true;
    for (uint32_t d = 0; d < ck->dims; d++) {
        char when[96];
        if (state->touched[d] <= state->clock[d])
            continue;
        tw_check_when(ck, d, state->touched[d], when, sizeof(when));
        return tw_check_fault_plan(
            ck, prog->plan,
            "rank %d: its call ends not ordered with an access to its buffers by %s", rank, when);
    }
    return true;
}

/* ---- accesses ---------------------------------------------------------------------------------
 */

static uint32_t acting_dim(const struct tw_check_touch *touch)
{
    return touch->write && (touch->op->traits & TW_DO_PUT) ? touch->op->put_dim : touch->lane->dim;
}

static bool hazard(struct tw_check *ck, const struct tw_check_touch *touch, const char *other,
                   uint32_t dim, uint32_t time)
{
    char when[96];
    tw_check_when(ck, dim, time, when, sizeof(when));
    return tw_check_fault(ck, touch->lane, "%s %s cell %u of rank %d, not ordered with %s by %s",
                          touch->write ? "writes" : "reads",
                          tw_buf_name((enum tw_plan_buf)touch->buf), touch->cell, touch->rank,
                          other, when);
}

/* A peer's IN or OUT is there only while its call runs. */
static bool user_touch(struct tw_check *ck, const struct tw_check_touch *touch)
{
    struct tw_check_rank *state = &ck->ranks[touch->rank];
    uint32_t call = touch->lane->call;
    if (state->call != call || touch->lane->clock[touch->rank] < call + 1)
        return tw_check_fault(ck, touch->lane, "%s %s cell %u of rank %d, whose call %s",
                              touch->write ? "writes" : "reads",
                              tw_buf_name((enum tw_plan_buf)touch->buf), touch->cell, touch->rank,
                              state->call > call ? "may have ended" : "may not have begun");
    state->touched[acting_dim(touch)] = touch->lane->time;
    return true;
}

/* Calls whose copies of peers' scratch are the same memory: copy k of p is that part of the whole.
 */
static bool copies_overlap(const struct tw_check *ck, uint32_t a, uint32_t b)
{
    uint64_t p = ck->progs[ck->calls[a].prog].plan->parity;
    uint64_t q = ck->progs[ck->calls[b].prog].plan->parity;
    uint64_t i = ck->calls[a].scratch_number % p, j = ck->calls[b].scratch_number % q;
    return i * q < (j + 1) * p && j * p < (i + 1) * q;
}

static bool clock_covers(struct tw_check *ck, const struct tw_check_touch *touch,
                         const uint32_t *clock, const char *other)
{
    uint32_t own = acting_dim(touch);
    for (uint32_t d = 0; d < ck->dims; d++)
        if (clock[d] > touch->lane->clock[d] && d != own)
            return hazard(ck, touch, other, d, clock[d]);
    return true;
}

/* Scratch cells of two calls may be the same memory whatever their numbers, as the calls' counts
 * differ: all of a call's accesses conflict with all of another's. */
static bool scratch_touch(struct tw_check *ck, const struct tw_check_touch *touch)
{
    struct tw_check_region *regions = ck->regions + (size_t)touch->rank * TW_CHECK_CALLS_MAX;
    uint32_t call = touch->lane->call;
    for (uint32_t c = 0; c < ck->ncalls; c++) {
        if (c == call || !regions[c].any || !copies_overlap(ck, c, call))
            continue;
        if (!clock_covers(ck, touch, regions[c].writes, "a write to it in another call"))
            return false;
        if (touch->write &&
            !clock_covers(ck, touch, regions[c].reads, "a read of it in another call"))
            return false;
    }
    struct tw_check_region *own = &regions[call];
    own->any = true;
    (touch->write ? own->writes : own->reads)[acting_dim(touch)] = touch->lane->time;
    return true;
}

static bool read_add(struct tw_check *ck, struct tw_check_access *access, uint32_t dim,
                     uint32_t time)
{
    uint32_t at = ck->reads_free;
    if (at != TW_CHECK_NONE) {
        ck->reads_free = ck->reads[at].next;
    } else {
        if (ck->nreads == ck->reads_room) {
            uint32_t room = ck->reads_room ? 2 * ck->reads_room : 1024;
            struct tw_check_read *reads = realloc(ck->reads, room * sizeof(*reads));
            if (!reads)
                return tw_check_nomem(ck);
            ck->reads = reads;
            ck->reads_room = room;
        }
        at = ck->nreads++;
    }
    ck->reads[at] = (struct tw_check_read){dim, time, access->reads};
    access->reads = at;
    return true;
}

static bool is_before(const struct tw_check_touch *touch, uint32_t own, uint32_t dim, uint32_t time)
{
    return dim == own || touch->lane->clock[dim] >= time;
}

/* Keep the reads that do not come before this access; a write must come after all. */
static bool reads_cover(struct tw_check *ck, const struct tw_check_touch *touch,
                        struct tw_check_access *access, uint32_t own)
{
    for (uint32_t *link = &access->reads; *link != TW_CHECK_NONE;) {
        uint32_t at = *link;
        struct tw_check_read *read = &ck->reads[at];
        if (is_before(touch, own, read->dim, read->time)) {
            *link = read->next;
            read->next = ck->reads_free;
            ck->reads_free = at;
            continue;
        }
        if (touch->write)
            return hazard(ck, touch, "a read", read->dim, read->time);
        link = &read->next;
    }
    return true;
}

bool tw_check_touch(struct tw_check *ck, const struct tw_check_touch *touch)
{
    bool user = touch->buf == TW_BUF_IN || touch->buf == TW_BUF_OUT;
    if (user && touch->rank != touch->lane->rank && !user_touch(ck, touch))
        return false;
    if (!user && ck->progs[touch->lane->prog].peer_scratch && !scratch_touch(ck, touch))
        return false;
    struct tw_check_access *access = &ck->accesses[touch->loc];
    uint32_t own = acting_dim(touch), call = touch->lane->call + 1;
    if (access->call != call) /* between calls: by region or by the rank's own order */
        *access = (struct tw_check_access){.call = call, .reads = TW_CHECK_NONE};
    if (access->write_time && !is_before(touch, own, access->write_dim, access->write_time))
        return hazard(ck, touch, "a write", access->write_dim, access->write_time);
    if (!reads_cover(ck, touch, access, own))
        return false;
    if (!touch->write)
        return read_add(ck, access, own, touch->lane->time);
    access->write_dim = own;
    access->write_time = touch->lane->time;
    return true;
}
