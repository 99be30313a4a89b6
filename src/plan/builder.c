/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a plan grows step by step. Never knows: which steps make sense. */
#include <stdlib.h>

#include "base/status.h"
#include "plan/plan.h"

void tw_build_init(struct tw_build *build, const char *name, enum tw_coll coll, int nranks,
                   int root, int only_rank)
{
    build->plan = NULL;
    build->status = tw_plan_shape_check(name, coll, nranks, root, only_rank);
    if (tw_failed(build->status))
        return;
    build->plan = tw_plan_create(name, coll, nranks, root, only_rank);
    if (build->plan)
        build->plan->depth = 1;
    else
        build->status = TWILL_ERR_NOMEM;
}

/* Keep the first error only. */
static void build_fail(struct tw_build *build, enum twill_status status)
{
    if (!tw_failed(build->status))
        build->status = status;
}

uint8_t tw_build_part(struct tw_build *build, enum tw_part_kind kind, uint32_t groups, uint32_t per)
{
    if (tw_failed(build->status))
        return 0;
    struct tw_plan *plan = build->plan;
    if (plan->nparts == TW_PLAN_PARTS_MAX) {
        build_fail(build, tw_fail(TWILL_ERR_INVALID, "plan %s: more than %d partitions", plan->name,
                                  TW_PLAN_PARTS_MAX));
        return 0;
    }
    plan->parts[plan->nparts] =
        (struct tw_plan_part){.kind = (uint8_t)kind, .groups = groups, .per = per};
    return (uint8_t)plan->nparts++;
}

bool tw_build_wants(const struct tw_build *build, int rank)
{
    return !tw_failed(build->status) && rank >= 0 && rank < build->plan->nranks &&
           (build->plan->only_rank < 0 || build->plan->only_rank == rank);
}

/* The rank's program, or NULL with the error kept. */
static struct tw_plan_rank *build_rank(struct tw_build *build, int rank)
{
    if (tw_failed(build->status))
        return NULL;
    if (tw_build_wants(build, rank))
        return &build->plan->ranks[rank];
    build_fail(build,
               tw_fail(TWILL_ERR_INTERNAL, "plan %s: a step for rank %d, which it leaves out",
                       build->plan->name, rank));
    return NULL;
}

uint16_t tw_build_lane(struct tw_build *build, int rank, uint16_t channel)
{
    struct tw_plan_rank *program = build_rank(build, rank);
    if (!program)
        return 0;
    if (program->nlanes == TW_NO_LANE) {
        build_fail(build, tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d has more than %u lanes",
                                  build->plan->name, rank, TW_NO_LANE));
        return 0;
    }
    if (program->nlanes >= program->capacity) {
        uint32_t capacity = 2 * program->nlanes + 1;
        struct tw_plan_lane *lanes = realloc(program->lanes, capacity * sizeof(*lanes));
        if (!lanes) {
            build_fail(build, tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for lane %u of rank %d",
                                      build->plan->name, program->nlanes, rank));
            return 0;
        }
        program->lanes = lanes;
        program->capacity = capacity;
    }
    program->lanes[program->nlanes] = (struct tw_plan_lane){.channel = channel};
    return (uint16_t)program->nlanes++;
}

static void grow(uint32_t *most, uint64_t value)
{
    if (value > *most)
        *most = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Widen what the plan says of itself so that the step fits. */
static void plan_cover(struct tw_plan *plan, const struct tw_plan_step *step)
{
    bool receives = step->op == TW_OP_RECV || step->op == TW_OP_RECV_REDUCE ||
                    step->op == TW_OP_RECV_SEND || step->op == TW_OP_RECV_REDUCE_SEND;
    bool sends =
        step->op == TW_OP_SEND || step->op == TW_OP_RECV_SEND || step->op == TW_OP_RECV_REDUCE_SEND;
    if (receives)
        grow(&plan->nfifos, (uint64_t)step->fifo_in + 1);
    if (sends)
        grow(&plan->nfifos, (uint64_t)step->fifo_out + 1);
    if (receives || sends) {
        grow(&plan->widest, (uint64_t)step->src.block * step->src.nblocks);
        grow(&plan->widest, (uint64_t)step->dst.block * step->dst.nblocks);
    }
    if (step->op == TW_OP_SIGNAL || step->op == TW_OP_WAIT) {
        grow(&plan->nsigs, (uint64_t)step->sig + 1);
        grow(&plan->sig_max, step->sig_value);
    }
}

uint32_t tw_build_step(struct tw_build *build, int rank, uint16_t lane,
                       const struct tw_plan_step *step)
{
    struct tw_plan_rank *program = build_rank(build, rank);
    if (!program)
        return 0;
    if (lane >= program->nlanes) {
        build_fail(build, tw_fail(TWILL_ERR_INTERNAL, "plan %s: rank %d has no lane %u",
                                  build->plan->name, rank, lane));
        return 0;
    }
    struct tw_plan_lane *list = &program->lanes[lane];
    if (list->nsteps == list->capacity) {
        uint32_t capacity = list->capacity ? 2 * list->capacity : 8;
        struct tw_plan_step *steps = realloc(list->steps, capacity * sizeof(*steps));
        if (!steps) {
            build_fail(build, tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for %u steps of rank %d",
                                      build->plan->name, capacity, rank));
            return 0;
        }
        list->steps = steps;
        list->capacity = capacity;
    }
    list->steps[list->nsteps] = *step;
    plan_cover(build->plan, step);
    return list->nsteps++;
}

enum twill_status tw_build_finish(struct tw_build *build, struct tw_plan **plan)
{
    if (!tw_failed(build->status)) {
        if (build->plan->nfifos == 0)
            build->plan->depth = 0;
        build_fail(build, tw_plan_validate(build->plan));
    }
    if (tw_failed(build->status)) {
        tw_plan_destroy(build->plan);
        build->plan = NULL;
        return build->status;
    }
    *plan = build->plan;
    build->plan = NULL;
    return TWILL_OK;
}
