/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: happens-before as vector clocks, and what signals make visible. Never knows: cells,
 * values.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/check.h"

/*
 * Dimensions: one a rank (calls it began), one a lane (steps it began). Order comes from a lane's
 * program, messages, dependencies, and signals; a returned credit orders nothing, since FIFOs may
 * be deeper than a plan asks for. Puts stand apart: see struct tw_check_pair.
 */

/* Whole blocks, signed: what compilers turn into vector code without a check per element. */
static void join(const struct tw_check *ck, uint32_t *clock, const uint32_t *other)
{
    int32_t *restrict to = (int32_t *)clock;
    const int32_t *restrict from = (const int32_t *)other;
    for (uint32_t d = 0; d < ck->dims; d += TW_CHECK_DIMS_BLOCK)
        for (uint32_t i = d; i < d + TW_CHECK_DIMS_BLOCK; i++)
            to[i] = from[i] > to[i] ? from[i] : to[i];
}

uint32_t tw_check_clock_ahead(const struct tw_check *ck, const uint32_t *clock,
                              const uint32_t *other, uint32_t from)
{
    const int32_t *a = (const int32_t *)clock, *b = (const int32_t *)other;
    for (uint32_t d = from / TW_CHECK_DIMS_BLOCK * TW_CHECK_DIMS_BLOCK; d < ck->dims;
         d += TW_CHECK_DIMS_BLOCK) {
        int32_t any = 0;
        for (uint32_t i = d; i < d + TW_CHECK_DIMS_BLOCK; i++)
            any |= a[i] > b[i];
        for (uint32_t i = d; any && i < d + TW_CHECK_DIMS_BLOCK; i++)
            if (i >= from && clock[i] > other[i])
                return i;
    }
    return ck->dims;
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
    for (uint32_t l = 0; l < ck->nlanes; l++)
        zero(ck, ck->lanes[l].clock);
    for (int r = 0; r < ck->nranks; r++)
        zero(ck, ck->ranks[r].clock);
    for (uint32_t p = 0; p < ck->npairs; p++) {
        ck->pairs[p].last = ck->pairs[p].user_call = 0;
        ck->pairs[p].seen = TW_CHECK_NONE;
    }
    ck->nseen = 0;
    for (uint32_t w = 0; w < ck->nwords * ck->slices; w++) {
        struct tw_check_word *word = &ck->words[w];
        word->value = word->consumed = 0;
        word->count = word->prog = 0;
        word->waits = TW_CHECK_NONE;
    }
    tw_check_access_reset(ck);
}

/* ---- signals and what they show ----------------------------------------------------------------
 */

bool tw_check_put_seen(const struct tw_check *ck, uint32_t pair, uint32_t time,
                       const uint32_t *clock)
{
    for (uint32_t s = ck->pairs[pair].seen; s != TW_CHECK_NONE; s = ck->seen[s].next)
        if (ck->seen[s].bound >= time && clock[ck->seen[s].dim] >= ck->seen[s].time)
            return true;
    return false;
}

static bool seen_add(struct tw_check *ck, uint32_t pair, const struct tw_check_lane *lane,
                     uint32_t bound)
{
    if (ck->nseen == ck->seen_room) {
        uint32_t room = ck->seen_room ? 2 * ck->seen_room : 256;
        struct tw_check_seen *seen = realloc(ck->seen, room * sizeof(*seen));
        if (!seen)
            return tw_check_nomem(ck);
        ck->seen = seen;
        ck->seen_room = room;
    }
    ck->seen[ck->nseen] =
        (struct tw_check_seen){lane->dim, lane->time, bound, ck->pairs[pair].seen};
    ck->pairs[pair].seen = ck->nseen++;
    return true;
}

/* The only lane that waits has no use for the raises up to the one that it saw. */
static void word_consume(struct tw_check_word *word, uint32_t seen)
{
    uint32_t left = word->count - seen - 1;
    word->consumed = word->raises[seen].value;
    for (uint32_t i = 0; i < left; i++) { /* swapped, as entries own their clocks */
        struct tw_check_raise spare = word->raises[i];
        word->raises[i] = word->raises[seen + 1 + i];
        word->raises[seen + 1 + i] = spare;
    }
    word->count = left;
}

static bool same_raiser(const struct tw_check *ck, uint32_t a, uint32_t b)
{
    return ck->lanes[a].rank == ck->lanes[b].rank && ck->lanes[a].index == ck->lanes[b].index;
}

/* A raise for a later plan by another lane came before this wait, which might have seen it alone.
 */
static bool word_alone(struct tw_check *ck, const struct tw_check_lane *lane,
                       const struct tw_check_word *word, uint32_t seen)
{
    for (uint32_t i = seen + 1; i < word->count; i++) {
        const struct tw_check_lane *other = &ck->lanes[word->raises[i].lane];
        if (!same_raiser(ck, word->raises[seen].lane, word->raises[i].lane))
            return tw_check_fault(ck, lane,
                                  "waits for signal %u, not ordered with rank %d lane %u, which "
                                  "raises it in a later call",
                                  word->sig, other->rank, other->index);
    }
    return true;
}

/* A wait learns what the first raise that satisfies it knew: a later one knows more. That raise
 * must be of the wait's own loop: a later loop may not come. */
static bool word_wait(struct tw_check *ck, struct tw_check_lane *lane, const struct tw_check_op *op)
{
    struct tw_check_word *word = &ck->words[op->word * ck->slices + lane->slice];
    uint64_t value = tw_check_sig_value(ck, lane, op);
    uint64_t last = value - op->sig_value + ck->progs[lane->prog].plan->sig_max;
    uint32_t first = 0;
    if (value <= word->consumed)
        return tw_check_read_add(ck, &word->waits, lane);
    while (word->raises[first].value < value)
        first++;
    const struct tw_check_raise *raise = &word->raises[first];
    if (raise->value > last)
        return tw_check_fault(ck, lane, "waits for signal %u to reach %u, which no one raises",
                              word->sig, op->sig_value);
    if (!word_alone(ck, lane, word, first))
        return false;
    join(ck, lane->clock, raise->clock);
    if (raise->bound && !seen_add(ck, raise->pair, lane, raise->bound))
        return false;
    if (word->waiter != TW_CHECK_NONE)
        word_consume(word, first);
    return tw_check_read_add(ck, &word->waits, lane);
}

static struct tw_check_raise *raise_add(struct tw_check *ck, struct tw_check_word *word)
{
    if (word->count == word->room) {
        uint32_t room = word->room ? 2 * word->room : 1;
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

/* Another plan's raiser takes the word over: waits of the calls before must not see its values. */
static bool word_handover(struct tw_check *ck, struct tw_check_lane *lane,
                          struct tw_check_word *word)
{
    if (same_raiser(ck, word->raiser[word->prog], (uint32_t)(lane - ck->lanes)))
        return true;
    uint32_t wait = tw_check_read_open(ck, word->waits, lane->clock);
    if (wait == TW_CHECK_NONE)
        return true;
    char when[96];
    tw_check_when(ck, ck->reads[wait].dim, ck->reads[wait].time, when, sizeof(when));
    return tw_check_fault(ck, lane, "raises signal %u of rank %d, not ordered with a wait by %s",
                          word->sig, word->rank, when);
}

static bool word_raise(struct tw_check *ck, struct tw_check_lane *lane,
                       const struct tw_check_op *op)
{
    struct tw_check_word *word = &ck->words[op->word * ck->slices + lane->slice];
    uint64_t value = tw_check_sig_value(ck, lane, op);
    if (word->value && word->prog != lane->prog && !word_handover(ck, lane, word))
        return false;
    word->prog = lane->prog;
    if (value <= word->value)
        return true;
    word->value = value;
    struct tw_check_raise *raise = raise_add(ck, word);
    if (!raise)
        return tw_check_nomem(ck);
    word->count++;
    raise->value = value;
    raise->lane = (uint32_t)(lane - ck->lanes);
    raise->pair = op->pair;
    raise->bound = op->pair == TW_CHECK_NONE ? 0 : ck->pairs[op->pair].last;
    assign(ck, raise->clock, lane->clock);
    if (ck->ranks[word->rank].words_waiting)
        tw_check_wake_rank(ck, word->rank, true);
    return true;
}

/* ---- steps and calls ---------------------------------------------------------------------------
 */

static uint32_t *mark_at(const struct tw_check *ck, const struct tw_check_lane *lane, uint32_t mark,
                         uint32_t slice)
{
    size_t at = ((size_t)mark * TW_CHECK_LOOPS + lane->loop) * ck->slices + slice;
    return ck->marks + at * ck->dims;
}

bool tw_check_clock_enter(struct tw_check *ck, struct tw_check_lane *lane,
                          const struct tw_check_op *op, const struct tw_check_slot *in)
{
    uint32_t last = ck->calls[lane->call].slices - 1;
    lane->clock[lane->dim] = ++lane->time;
    if (op->dep_mark != TW_CHECK_NONE)
        join(ck, lane->clock, mark_at(ck, lane, op->dep_mark, op->whole ? last : lane->slice));
    if (in)
        join(ck, lane->clock, in->clock);
    return op->op != TW_OP_WAIT || word_wait(ck, lane, op);
}

bool tw_check_clock_leave(struct tw_check *ck, struct tw_check_lane *lane,
                          const struct tw_check_op *op, struct tw_check_slot *out)
{
    if (op->op == TW_OP_PUT)
        ck->pairs[op->pair].last = lane->time;
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

static bool fault_return(struct tw_check *ck, int rank, uint32_t dim, uint32_t time)
{
    char when[96];
    tw_check_when(ck, dim, time, when, sizeof(when));
    return tw_check_fault_plan(
        ck, ck->progs[ck->calls[ck->ranks[rank].call].prog].plan,
        "rank %d: its call ends not ordered with an access to its buffers by %s", rank, when);
}

bool tw_check_clock_return(struct tw_check *ck, int rank)
{
    struct tw_check_rank *state = &ck->ranks[rank];
    const struct tw_check_prog *prog = &ck->progs[ck->calls[state->call].prog];
    for (uint32_t l = prog->rank_lane[rank]; l < prog->rank_lane[rank + 1]; l++)
        join(ck, state->clock, ck->lanes[l].clock);
    if (!prog->peer_user)
        return true;
    uint32_t dim = tw_check_clock_ahead(ck, state->touched, state->clock, 0);
    if (dim != ck->dims)
        return fault_return(ck, rank, dim, state->touched[dim]);
    for (uint32_t i = 0; i < state->npairs; i++) {
        const struct tw_check_pair *pair = &ck->pairs[state->pairs[i]];
        if (pair->user_call == state->call + 1 &&
            !tw_check_put_seen(ck, state->pairs[i], pair->user_at, state->clock))
            return fault_return(ck, rank, ck->lanes[pair->lane].dim, pair->user_at);
    }
    return true;
}
