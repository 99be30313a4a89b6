/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a plan's ranks change places. Never knows: why they do. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plan/plan.h"

/* Where everything goes. */
struct move {
    const struct tw_plan *plan;
    const int *rank_of; /* [plan->nranks] */
    uint32_t *cells;    /* owned, [room]: of the span at hand */
    size_t room;
};

static enum twill_status unable(const struct tw_plan *plan, const char *why)
{
    return tw_fail(TWILL_ERR_UNSUPPORTED, "plan %s: its ranks cannot change places: %s", plan->name,
                   why);
}

/* A group of it is a rank's. Where scratch is cut into groups of equal counts any cell will do. */
static bool goes_by_ranks(const struct move *move, const struct tw_plan_span *span)
{
    const struct tw_plan_part *part = &move->plan->parts[span->part];
    bool own = span->buf == TW_BUF_SCRATCH || span->buf == TW_BUF_WIDE;
    return part->groups > 1 && !(own && part->kind == TW_PART_EQUAL);
}

static uint32_t cell_move(const struct move *move, const struct tw_plan_part *part, uint32_t cell)
{
    uint32_t group = cell / part->per;
    if (group >= part->groups) /* behind the groups, of scratch */
        return cell;
    return (uint32_t)move->rank_of[group] * part->per + cell % part->per;
}

/* Neighbours are a block, and blocks follow each other equally far apart; else there is no span. */
static bool span_fit(const uint32_t *cells, uint32_t count, struct tw_plan_span *span)
{
    uint32_t block = 1;
    while (block < count && cells[block] == cells[0] + block)
        block++;
    if (count % block != 0)
        return false;
    uint32_t blocks = count / block, stride = blocks > 1 ? cells[block] - cells[0] : block;
    if (blocks > 1 && cells[block] <= cells[0])
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (cells[i] != cells[0] + (uint64_t)(i / block) * stride + i % block)
            return false;
    span->first = cells[0];
    span->block = block;
    span->nblocks = blocks;
    span->stride = stride;
    return true;
}

static enum twill_status span_move(struct move *move, struct tw_plan_span *span)
{
    if (span->block == 0 || !goes_by_ranks(move, span))
        return TWILL_OK;
    uint32_t count = tw_span_cells(span);
    if (count == 0)
        return TWILL_OK;
    if (count > move->room) {
        uint32_t *more = realloc(move->cells, count * sizeof(*more));
        if (!more)
            return tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for %u cells", move->plan->name,
                           count);
        move->cells = more;
        move->room = count;
    }
    for (uint32_t i = 0; i < count; i++)
        move->cells[i] = cell_move(move, &move->plan->parts[span->part], tw_span_cell(span, i));
    return span_fit(move->cells, count, span)
               ? TWILL_OK
               : unable(move->plan, "a step takes blocks of several, which would not be a span");
}

static int32_t peer_move(const struct move *move, int32_t peer)
{
    return peer == TW_NO_RANK ? peer : move->rank_of[peer];
}

static enum twill_status lane_move(struct move *move, struct tw_plan_lane *lane)
{
    enum twill_status status = TWILL_OK;
    for (uint32_t i = 0; i < lane->nsteps && !tw_failed(status); i++) {
        struct tw_plan_step *step = &lane->steps[i];
        step->from = peer_move(move, step->from);
        step->to = peer_move(move, step->to);
        status = span_move(move, &step->src);
        if (!tw_failed(status))
            status = span_move(move, &step->dst);
    }
    return status;
}

static enum twill_status able(const struct tw_plan *plan, const int *rank_of)
{
    uint8_t seen[TW_PLAN_RANKS_MAX / 8] = {0};
    if (plan->only_rank >= 0)
        return unable(plan, "one rank's program alone is there");
    if (plan->deterministic)
        return unable(plan, "it adds in the order of ranks");
    for (uint32_t i = 0; i < plan->nparts; i++)
        if (plan->parts[i].kind == TW_PART_SHARD || plan->parts[i].kind == TW_PART_RUNTIME)
            return unable(plan, "cells are as large as a rank's share");
    for (int r = 0; r < plan->nranks; r++) {
        int to = rank_of[r];
        if (to < 0 || to >= plan->nranks || seen[to / 8] >> to % 8 & 1)
            return tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d becomes %d, not a rank of its own",
                           plan->name, r, to);
        seen[to / 8] |= (uint8_t)(1u << to % 8);
    }
    return TWILL_OK;
}

/* All of a copy, which is the caller's to drop on error. */
static enum twill_status all_move(struct move *move, struct tw_plan *plan)
{
    enum twill_status status = TWILL_OK;
    struct tw_plan_rank *ranks = calloc((size_t)plan->nranks, sizeof(*ranks));
    if (!ranks)
        return tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for %d ranks", plan->name,
                       plan->nranks);
    for (int r = 0; r < plan->nranks && !tw_failed(status); r++)
        for (uint32_t l = 0; l < plan->ranks[r].nlanes && !tw_failed(status); l++)
            status = lane_move(move, &plan->ranks[r].lanes[l]);
    for (int r = 0; r < plan->nranks; r++)
        ranks[move->rank_of[r]] = plan->ranks[r];
    memcpy(plan->ranks, ranks, (size_t)plan->nranks * sizeof(*ranks));
    free(ranks);
    if (tw_coll_rule((enum tw_coll)plan->coll)->rooted)
        plan->root = move->rank_of[plan->root];
    return tw_failed(status) ? status : tw_plan_validate(plan);
}

enum twill_status tw_plan_relabel(struct tw_plan **plan, const int *rank_of)
{
    enum twill_status status = able(*plan, rank_of);
    if (tw_failed(status))
        return status;
    struct tw_plan *moved = tw_plan_copy(*plan);
    if (!moved)
        return TWILL_ERR_NOMEM;
    struct move move = {.plan = moved, .rank_of = rank_of};
    status = all_move(&move, moved);
    free(move.cells);
    if (tw_failed(status)) {
        tw_plan_destroy(moved);
        return status;
    }
    tw_plan_destroy(*plan);
    *plan = moved;
    return TWILL_OK;
}
