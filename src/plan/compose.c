/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a plan becomes part of a larger one. Never knows: what either is for. */
#include <stdlib.h>

#include "base/status.h"
#include "plan/plan.h"

/* What moves where. */
struct embedding {
    struct tw_build *build;
    const struct tw_plan *sub;
    const int *rank_map;
    const struct tw_cell_map *cell_map;
    uint32_t fifo_base, sig_base;
};

static enum twill_status span_fail(const struct embedding *e, const struct tw_plan_span *span)
{
    return tw_fail(TWILL_ERR_INVALID,
                   "plan %s inside %s: %u blocks of %u cells, one every %u, from cell %u of buffer "
                   "%u have no span under a map from %u on with stride %u",
                   e->sub->name, e->build->plan->name, span->nblocks, span->block, span->stride,
                   span->first, span->buf, e->cell_map[span->buf].first,
                   e->cell_map[span->buf].stride);
}

/* The cells of a span without runs: cell c becomes first + c * stride. Blocks of neighbours come
 * apart unless the stride is 1. */
static enum twill_status cells_move(const struct embedding *e, struct tw_plan_span *span,
                                    uint32_t stride)
{
    bool one_run = span->nblocks == 1 || span->stride == span->block;
    uint64_t cells = (uint64_t)span->block * span->nblocks, moved = span->stride;
    if (stride == 1)
        return TWILL_OK;
    if (span->block != 1 && !one_run)
        return span_fail(e, span);
    if (span->block != 1)
        moved = 1;
    moved *= stride;
    if (moved > UINT32_MAX || cells > UINT32_MAX)
        return span_fail(e, span);
    span->block = 1;
    span->nblocks = (uint32_t)cells;
    span->stride = cells == 1 ? 1 : (uint32_t)moved;
    return TWILL_OK;
}

/* Each cell becomes a run: of one cell any, of several neighbours that follow each other. */
static enum twill_status runs_move(const struct embedding *e, struct tw_plan_span *span,
                                   const struct tw_cell_map *map)
{
    uint64_t block = (uint64_t)span->block * map->run, stride = (uint64_t)span->stride * map->run;
    bool one = span->block == 1 && span->nblocks == 1, joined = map->run_stride == 1;
    if ((!one && (!joined || map->stride != map->run)) || block > UINT32_MAX || stride > UINT32_MAX)
        return span_fail(e, span);
    span->block = joined ? (uint32_t)block : 1;
    span->nblocks = joined ? span->nblocks : map->run;
    span->stride = joined ? (uint32_t)stride : map->run_stride;
    return TWILL_OK;
}

/* rank: of sub, whose buffer it is */
static enum twill_status span_move(const struct embedding *e, struct tw_plan_span *span, int rank)
{
    if (span->block == 0)
        return TWILL_OK;
    if (span->buf >= TW_BUF_COUNT)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: buffer %u does not exist", e->sub->name,
                       span->buf);
    const struct tw_cell_map *map = &e->cell_map[span->buf];
    uint64_t first =
        map->first + (uint64_t)rank * map->by_rank + (uint64_t)span->first * map->stride;
    if (first > UINT32_MAX)
        return span_fail(e, span);
    struct tw_plan_span moved = *span;
    enum twill_status status =
        map->run > 1 ? runs_move(e, &moved, map) : cells_move(e, &moved, map->stride);
    moved.buf = map->buf;
    moved.part = map->part;
    moved.first = (uint32_t)first;
    if (!tw_failed(status))
        *span = moved;
    return status;
}

static int32_t peer_move(const struct embedding *e, int32_t peer)
{
    return peer >= 0 && peer < e->sub->nranks ? e->rank_map[peer] : peer;
}

/* What a rank's steps become: lane 0 of sub is lane `first` from step `shift` on. */
struct target {
    int rank;
    uint16_t first;
    uint32_t shift;
};

static enum twill_status step_move(const struct embedding *e, struct tw_plan_step *step,
                                   const struct target *at)
{
    bool gets = step->op == TW_OP_GET || step->op == TW_OP_GET_REDUCE;
    bool src_known = !gets || (step->from >= 0 && step->from < e->sub->nranks);
    bool dst_known = step->op != TW_OP_PUT || (step->to >= 0 && step->to < e->sub->nranks);
    enum twill_status status = span_move(e, &step->src, gets && src_known ? step->from : at->rank);
    if (!tw_failed(status))
        status = span_move(e, &step->dst, step->op == TW_OP_PUT && dst_known ? step->to : at->rank);
    if (step->dep_lane != TW_NO_LANE) {
        step->dep_lane = (uint16_t)(step->dep_lane + at->first);
        step->dep_step += at->shift;
    }
    bool by_fifo = step->op >= TW_OP_SEND && step->op <= TW_OP_RECV_REDUCE_SEND;
    if (by_fifo && step->from != TW_NO_RANK)
        step->fifo_in = (uint16_t)(step->fifo_in + e->fifo_base);
    if (by_fifo && step->to != TW_NO_RANK)
        step->fifo_out = (uint16_t)(step->fifo_out + e->fifo_base);
    step->from = peer_move(e, step->from);
    step->to = peer_move(e, step->to);
    if (step->op == TW_OP_SIGNAL || step->op == TW_OP_WAIT)
        step->sig += e->sig_base;
    return status;
}

/* A first step that waits inside the sub-plan is ordered behind `after` through that one. */
static void step_hold(struct tw_plan_step *step, const struct tw_step_ref *after)
{
    if (after->lane == TW_NO_LANE || step->dep_lane != TW_NO_LANE)
        return;
    step->dep_lane = after->lane;
    step->dep_step = after->step;
    step->flags |= TW_STEP_WHOLE;
}

/* Where the rank's steps go: new lanes, or behind those of one that it has. */
static enum twill_status target_find(const struct embedding *e, const struct tw_step_ref *after,
                                     struct target *at)
{
    const struct tw_plan_rank *outer = &e->build->plan->ranks[e->rank_map[at->rank]];
    uint32_t nlanes = e->sub->ranks[at->rank].nlanes;
    at->first = (uint16_t)outer->nlanes;
    if (!after || after->step != TW_STEP_BEHIND) {
        if (nlanes + outer->nlanes <= TW_NO_LANE)
            return TWILL_OK;
        return tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d would have more than %u lanes",
                       e->build->plan->name, e->rank_map[at->rank], TW_NO_LANE);
    }
    if (nlanes != 1 || after->lane >= outer->nlanes)
        return tw_fail(TWILL_ERR_INVALID,
                       "plan %s inside %s: its %u lanes cannot follow in lane %u of rank %d",
                       e->sub->name, e->build->plan->name, nlanes, after->lane,
                       e->rank_map[at->rank]);
    at->first = after->lane;
    at->shift = outer->lanes[after->lane].nsteps;
    return TWILL_OK;
}

static enum twill_status rank_embed(const struct embedding *e, int rank,
                                    const struct tw_step_ref *after, uint16_t *first_lane)
{
    const struct tw_plan_rank *program = &e->sub->ranks[rank];
    int outer = e->rank_map[rank];
    struct target at = {.rank = rank};
    enum twill_status status = target_find(e, after ? &after[outer] : NULL, &at);
    if (tw_failed(status))
        return status;
    *first_lane = at.first;
    bool behind = after && after[outer].step == TW_STEP_BEHIND;
    for (uint32_t l = 0; l < program->nlanes; l++) {
        const struct tw_plan_lane *lane = &program->lanes[l];
        uint16_t target = behind ? at.first : tw_build_lane(e->build, outer, lane->channel);
        for (uint32_t i = 0; i < lane->nsteps; i++) {
            struct tw_plan_step step = lane->steps[i];
            status = step_move(e, &step, &at);
            if (tw_failed(status))
                return status;
            if (i == 0 && after && !behind)
                step_hold(&step, &after[outer]);
            tw_build_step(e->build, outer, target, &step);
        }
    }
    return e->build->status;
}

static enum twill_status ranks_check(const struct embedding *e)
{
    const struct tw_plan *plan = e->build->plan, *sub = e->sub;
    for (int r = 0; sub->only_rank >= 0 && r < sub->nranks; r++)
        if (r != sub->only_rank && tw_build_wants(e->build, e->rank_map[r]))
            return tw_fail(TWILL_ERR_INVALID,
                           "plan %s inside %s: it has the program of rank %d only", sub->name,
                           plan->name, sub->only_rank);
    bool *taken = calloc((size_t)plan->nranks, sizeof(*taken));
    if (!taken)
        return tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for %d ranks", plan->name,
                       plan->nranks);
    enum twill_status status = TWILL_OK;
    for (int r = 0; r < sub->nranks && !tw_failed(status); r++) {
        int outer = e->rank_map[r];
        if (outer < 0 || outer >= plan->nranks || taken[outer])
            status =
                tw_fail(TWILL_ERR_INVALID,
                        "plan %s inside %s: rank %d becomes %d, not a rank of its own below %d",
                        sub->name, plan->name, r, outer, plan->nranks);
        else
            taken[outer] = true;
    }
    free(taken);
    return status;
}

static uint32_t larger(uint32_t a, uint64_t b) { return b > a ? (uint32_t)b : a; }

/* Room for the sub-plan's cells in whichever scratch they go to. */
static enum twill_status scratch_cover(const struct embedding *e, enum tw_plan_buf buf,
                                       uint32_t cells)
{
    const struct tw_cell_map *map = &e->cell_map[buf];
    if (cells == 0)
        return TWILL_OK;
    uint64_t run = map->run > 1 ? (uint64_t)(map->run - 1) * map->run_stride : 0;
    uint64_t last = (uint64_t)(e->sub->nranks - 1) * map->by_rank;
    uint64_t end = map->first + last + (uint64_t)(cells - 1) * map->stride + run + 1;
    if (end > UINT32_MAX)
        return tw_fail(TWILL_ERR_INVALID, "plan %s inside %s: scratch ends at cell %llu",
                       e->sub->name, e->build->plan->name, (unsigned long long)end);
    struct tw_plan *plan = e->build->plan;
    if (map->buf == TW_BUF_SCRATCH)
        plan->scratch_cells = larger(plan->scratch_cells, end);
    if (map->buf == TW_BUF_WIDE)
        plan->wide_cells = larger(plan->wide_cells, end);
    return TWILL_OK;
}

static uint32_t longest_run(const struct embedding *e)
{
    uint32_t longest = 1;
    for (int buf = 0; buf < TW_BUF_COUNT; buf++)
        longest = larger(longest, e->cell_map[buf].run);
    return longest;
}

/* What all ranks know: the same whichever ranks are wanted. */
static enum twill_status facts_cover(const struct embedding *e)
{
    struct tw_plan *plan = e->build->plan;
    const struct tw_plan *sub = e->sub;
    uint64_t nfifos = (uint64_t)e->fifo_base + sub->nfifos,
             nsigs = (uint64_t)e->sig_base + sub->nsigs;
    if (nfifos > TW_PLAN_FIFOS_MAX || nsigs > UINT32_MAX)
        return tw_fail(TWILL_ERR_INVALID,
                       "plan %s inside %s: %llu fifos (at most %d), %llu signals", sub->name,
                       plan->name, (unsigned long long)nfifos, TW_PLAN_FIFOS_MAX,
                       (unsigned long long)nsigs);
    plan->nfifos = (uint32_t)nfifos;
    plan->nsigs = (uint32_t)nsigs;
    plan->sig_max = larger(plan->sig_max, sub->sig_max);
    plan->widest = larger(plan->widest, (uint64_t)sub->widest * longest_run(e));
    plan->depth = larger(plan->depth, sub->depth);
    plan->parity = larger(plan->parity, sub->parity);
    plan->caps |= sub->caps;
    enum twill_status status = scratch_cover(e, TW_BUF_SCRATCH, sub->scratch_cells);
    return tw_failed(status) ? status : scratch_cover(e, TW_BUF_WIDE, sub->wide_cells);
}

enum twill_status tw_build_embed(struct tw_build *build, const struct tw_plan *sub,
                                 const int *rank_map,
                                 const struct tw_cell_map cell_map[TW_BUF_COUNT],
                                 const struct tw_step_ref *after, uint16_t *lanes)
{
    if (tw_failed(build->status))
        return build->status;
    struct embedding e = {build, sub, rank_map, cell_map, build->plan->nfifos, build->plan->nsigs};
    enum twill_status status = ranks_check(&e);
    if (!tw_failed(status))
        status = facts_cover(&e);
    for (int r = 0; r < sub->nranks && !tw_failed(status); r++) {
        lanes[r] = TW_NO_LANE;
        if (tw_build_wants(build, rank_map[r]))
            status = rank_embed(&e, r, after, &lanes[r]);
    }
    if (tw_failed(status) && !tw_failed(build->status))
        build->status = status;
    return status;
}
