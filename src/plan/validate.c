/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what makes a plan well formed as a whole. Never knows: whether it is right. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plan/validate.h"

static enum twill_status header_validate(const struct tw_plan *plan)
{
    enum twill_status status =
        tw_plan_shape_check(memchr(plan->name, '\0', sizeof(plan->name)) ? plan->name : NULL,
                            (enum tw_coll)plan->coll, plan->nranks, plan->root, plan->only_rank);
    if (tw_failed(status))
        return status;
    if (!tw_coll_rule((enum tw_coll)plan->coll)->rooted && plan->root != 0)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: root %d, but %s has none", plan->name,
                       plan->root, tw_coll_name((enum tw_coll)plan->coll));
    if (plan->slices < 1 || plan->slices > TW_PLAN_SLICES_MAX)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: %u slices, not 1 to %d", plan->name,
                       plan->slices, TW_PLAN_SLICES_MAX);
    if (plan->parity < 1 || plan->parity > TW_PLAN_PARITY_MAX)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: parity %u, not 1 to %d", plan->name,
                       plan->parity, TW_PLAN_PARITY_MAX);
    if (plan->depth > TW_PLAN_DEPTH_MAX)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: fifos of depth %u, at most %d", plan->name,
                       plan->depth, TW_PLAN_DEPTH_MAX);
    if (plan->nfifos > TW_PLAN_FIFOS_MAX)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: %u fifos of a pair, at most %d", plan->name,
                       plan->nfifos, TW_PLAN_FIFOS_MAX);
    if (plan->caps & ~(uint32_t)(TW_CAP_PUT_SCRATCH | TW_CAP_PEER_BUFFERS))
        return tw_fail(TWILL_ERR_INVALID, "plan %s: capabilities 0x%x are unknown", plan->name,
                       plan->caps);
    if (plan->scratch_cells > TW_PLAN_CELLS_MAX || plan->wide_cells > TW_PLAN_CELLS_MAX)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: %u scratch and %u wide cells, at most %u each",
                       plan->name, plan->scratch_cells, plan->wide_cells, TW_PLAN_CELLS_MAX);
    return TWILL_OK;
}

static enum twill_status parts_validate(const struct tw_plan *plan)
{
    if (plan->nparts > TW_PLAN_PARTS_MAX)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: %u partitions, at most %d", plan->name,
                       plan->nparts, TW_PLAN_PARTS_MAX);
    for (uint32_t i = 0; i < plan->nparts; i++) {
        const struct tw_plan_part *part = &plan->parts[i];
        if (part->kind > TW_PART_RUNTIME)
            return tw_fail(TWILL_ERR_INVALID, "plan %s: partition %u has unknown kind %u",
                           plan->name, i, part->kind);
        if (part->kind == TW_PART_RUNTIME)
            return tw_fail(TWILL_ERR_INVALID,
                           "plan %s: partition %u is filled at run time, which no executor serves",
                           plan->name, i);
        if (part->groups == 0 || part->per == 0 ||
            (uint64_t)part->groups * part->per > TW_PLAN_CELLS_MAX)
            return tw_fail(TWILL_ERR_INVALID,
                           "plan %s: partition %u of %u groups by %u cells, not 1 to %u cells",
                           plan->name, i, part->groups, part->per, TW_PLAN_CELLS_MAX);
        bool pairs = part->kind == TW_PART_PAIR_SEND || part->kind == TW_PART_PAIR_RECV;
        if (pairs && part->groups != (uint32_t)plan->nranks)
            return tw_fail(TWILL_ERR_INVALID,
                           "plan %s: partition %u of pairs has %u groups for %d ranks", plan->name,
                           i, part->groups, plan->nranks);
        bool own = part->kind == TW_PART_OWN || part->kind == TW_PART_SHARD;
        if (own && part->groups != 1)
            return tw_fail(TWILL_ERR_INVALID,
                           "plan %s: partition %u of the rank's own has %u groups, not one",
                           plan->name, i, part->groups);
        if (own && (uint64_t)plan->nranks * part->per > TW_PLAN_CELLS_MAX)
            return tw_fail(
                TWILL_ERR_INVALID,
                "plan %s: partition %u of %u cells for each of %d ranks, at most %u in all",
                plan->name, i, part->per, plan->nranks, TW_PLAN_CELLS_MAX);
    }
    return TWILL_OK;
}

/* Which lane of the rank under the glass holds an end of a FIFO: one entry a (peer, fifo). */
struct fifo_end {
    int32_t rank;
    uint32_t lane;
};

struct fifo_ends {
    struct fifo_end *in, *out; /* owned: one allocation, [nranks * nfifos] each */
};

static enum twill_status end_claim(const struct tw_plan *plan, int rank, uint32_t lane,
                                   uint32_t step, struct fifo_end *end)
{
    if (end->rank == rank + 1 && end->lane != lane)
        return tw_step_fail(plan, rank, lane, step, "its fifo is already used by lane %u",
                            end->lane);
    *end = (struct fifo_end){rank + 1, lane};
    return TWILL_OK;
}

static enum twill_status lane_claim(const struct tw_plan *plan, int rank, uint32_t lane,
                                    struct fifo_ends *ends)
{
    const struct tw_plan_lane *list = &plan->ranks[rank].lanes[lane];
    for (uint32_t i = 0; i < list->nsteps; i++) {
        const struct tw_plan_step *step = &list->steps[i];
        uint32_t traits = tw_op_rules[step->op].traits;
        enum twill_status status = TWILL_OK;
        if (traits & TW_TRAIT_RECEIVES)
            status = end_claim(plan, rank, lane, i,
                               &ends->in[(size_t)step->from * plan->nfifos + step->fifo_in]);
        if (!tw_failed(status) && (traits & TW_TRAIT_SENDS))
            status = end_claim(plan, rank, lane, i,
                               &ends->out[(size_t)step->to * plan->nfifos + step->fifo_out]);
        if (tw_failed(status))
            return status;
    }
    return TWILL_OK;
}

/* A FIFO end belongs to one lane. Ranks of one lane have nothing to confuse. */
static enum twill_status fifos_validate(const struct tw_plan *plan)
{
    bool several = false;
    for (int r = 0; r < plan->nranks; r++)
        several = several || plan->ranks[r].nlanes > 1;
    if (!several || plan->nfifos == 0)
        return TWILL_OK;
    size_t keys = (size_t)plan->nranks * plan->nfifos;
    struct fifo_end *all = calloc(2 * keys, sizeof(*all));
    if (!all)
        return tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory to validate %d ranks", plan->name,
                       plan->nranks);
    struct fifo_ends ends = {all, all + keys};
    enum twill_status status = TWILL_OK;
    for (int r = 0; r < plan->nranks && !tw_failed(status); r++)
        for (uint32_t l = 0; l < plan->ranks[r].nlanes && !tw_failed(status); l++)
            status = lane_claim(plan, r, l, &ends);
    free(all);
    return status;
}

static enum twill_status rank_validate(const struct tw_plan *plan, int rank,
                                       struct tw_user_cut *cut)
{
    const struct tw_plan_rank *program = &plan->ranks[rank];
    if (plan->only_rank >= 0 && rank != plan->only_rank && program->nlanes > 0)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: has lanes of rank %d, but is of rank %d only",
                       plan->name, rank, plan->only_rank);
    if (program->nlanes > TW_NO_LANE)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d has %u lanes, at most %u", plan->name,
                       rank, program->nlanes, TW_NO_LANE);
    for (uint32_t l = 0; l < program->nlanes; l++) {
        if (program->lanes[l].nsteps > TW_PLAN_STEPS_MAX)
            return tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d lane %u has %u steps, at most %u",
                           plan->name, rank, l, program->lanes[l].nsteps, TW_PLAN_STEPS_MAX);
        for (uint32_t i = 0; i < program->lanes[l].nsteps; i++) {
            enum twill_status status = tw_step_validate(plan, rank, l, i, cut);
            if (tw_failed(status))
                return status;
        }
    }
    return TWILL_OK;
}

enum twill_status tw_plan_validate(const struct tw_plan *plan)
{
    enum twill_status status = header_validate(plan);
    if (!tw_failed(status))
        status = parts_validate(plan);
    struct tw_user_cut cut = {0};
    for (int r = 0; !tw_failed(status) && r < plan->nranks; r++)
        status = rank_validate(plan, r, &cut);
    return tw_failed(status) ? status : fifos_validate(plan);
}
