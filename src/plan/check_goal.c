/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what each collective promises of OUT. Never knows: how a plan gets there. */
#include "plan/check.h"
#include "plan/validate.h"

bool tw_check_has_in(const struct tw_plan *plan, int rank)
{
    bool any;
    return tw_buf_groups(plan, rank, TW_BUF_IN, &any) != 0 || any;
}

static bool has_out(const struct tw_plan *plan, int rank)
{
    bool any;
    return tw_buf_groups(plan, rank, TW_BUF_OUT, &any) != 0;
}

bool tw_check_may_alias(const struct tw_plan *plan, int rank)
{
    bool any;
    return tw_buf_groups(plan, rank, TW_BUF_IN, &any) && has_out(plan, rank);
}

/* Input cell whose leaves OUT's cell is made of; for those that do not reduce, of *rank alone. */
static uint32_t source_cell(const struct tw_check_prog *prog, int rank, uint32_t cell,
                            uint32_t *source)
{
    const struct tw_coll_rule *rule = tw_coll_rule((enum tw_coll)prog->plan->coll);
    uint32_t sub = rule->out.many ? cell % prog->per : cell;
    *source = rule->out.many ? cell / prog->per : (uint32_t)prog->plan->root;
    return rule->in.many ? (uint32_t)rank * prog->per + sub : sub;
}

/* Ranks first .. first + count - 1 as a balanced tree that splits at the largest power of two below
 * the count. 0 without memory. */
static uint32_t balanced(struct tw_exprs *exprs, uint32_t first_leaf, uint32_t stride,
                         uint32_t count)
{
    if (count == 1)
        return first_leaf;
    uint32_t half = 1;
    while (2 * half < count)
        half *= 2;
    uint32_t left = balanced(exprs, first_leaf, stride, half);
    uint32_t right = balanced(exprs, first_leaf + half * stride, stride, count - half);
    return left && right ? tw_expr_make(exprs, TW_EXPR_OP, left, right) : 0;
}

bool tw_check_goal_init(struct tw_check *ck, struct tw_check_prog *prog)
{
    const struct tw_plan *plan = prog->plan;
    prog->first_leaf = tw_exprs_leaves(&ck->exprs, ck->nranks, prog->in_cells);
    if (prog->first_leaf == 0)
        return tw_check_nomem(ck);
    if (!plan->deterministic || !tw_coll_rule((enum tw_coll)plan->coll)->reduces)
        return true;
    prog->goal = tw_check_alloc(&ck->arena, prog->in_cells, sizeof(*prog->goal));
    if (!prog->goal)
        return tw_check_nomem(ck);
    for (uint32_t cell = 0; cell < prog->in_cells; cell++) {
        uint32_t id =
            balanced(&ck->exprs, prog->first_leaf + cell, prog->in_cells, (uint32_t)ck->nranks);
        id = id ? tw_expr_make(&ck->exprs, TW_EXPR_FINAL, id, 0) : 0;
        id = id ? tw_expr_round(&ck->exprs, id) : 0;
        if (id == 0)
            return tw_check_nomem(ck);
        prog->goal[cell] = id;
    }
    return true;
}

/* ---- one cell ----------------------------------------------------------------------------------
 */

/* Below roundings. */
static const struct tw_expr *bare(const struct tw_exprs *exprs, uint32_t id)
{
    while (exprs->nodes[id].kind == TW_EXPR_ROUND)
        id = exprs->nodes[id].left;
    return &exprs->nodes[id];
}

/* NULL: all ranks' inputs of that cell are in it once each, finished once and last. */
static const char *sum_fault(const struct tw_check *ck, uint32_t id, uint32_t cell)
{
    const struct tw_expr *root = bare(&ck->exprs, id);
    if (root->kind != TW_EXPR_FINAL)
        return root->finals ? "adds to a finished sum" : "is not finished";
    const struct tw_expr *sum = bare(&ck->exprs, root->left);
    if (sum->finals)
        return "is finished twice";
    if (sum->cell != cell)
        return "is not the sum of that cell";
    if (sum->twice)
        return "has a rank's input more than once";
    return sum->ranks == (uint32_t)ck->nranks ? NULL : "lacks a rank's input";
}

static const char *cell_fault(const struct tw_check *ck, const struct tw_check_prog *prog, int rank,
                              uint32_t cell, uint32_t id)
{
    uint32_t source, from = source_cell(prog, rank, cell, &source);
    if (!tw_coll_rule((enum tw_coll)prog->plan->coll)->reduces) {
        uint32_t leaf = prog->first_leaf + source * prog->in_cells + from;
        return id == leaf ? NULL : "is not the input it should be";
    }
    if (!prog->goal)
        return sum_fault(ck, id, from);
    if (id == prog->goal[from])
        return NULL;
    const char *fault = sum_fault(ck, id, from);
    return fault ? fault : "is not added in the order that a deterministic plan has";
}

static bool fault_out(struct tw_check *ck, int rank, uint32_t cell, uint32_t unit,
                      const struct tw_check_value *value, const char *fault)
{
    const struct tw_check_rank *state = &ck->ranks[rank];
    const struct tw_check_prog *prog = &ck->progs[ck->calls[state->call].prog];
    char where[64], expr[160];
    tw_check_unit_text(ck, unit, where, sizeof(where));
    if (value->meta == 0)
        return tw_check_fault_plan(ck, prog->plan, "rank %d, %s: out cell %u is never written",
                                   rank, where, cell);
    tw_expr_print(&ck->exprs, value->expr, expr, sizeof(expr));
    return tw_check_fault_plan(ck, prog->plan, "rank %d, %s: out cell %u %s: %s", rank, where, cell,
                               fault ? fault : "holds another slice", expr);
}

/* Every rank has begun a barrier before any rank ends it. */
static bool barrier_goal(struct tw_check *ck, int rank)
{
    const struct tw_check_rank *state = &ck->ranks[rank];
    for (int other = 0; other < ck->nranks; other++)
        if (state->clock[other] < state->call + 1)
            return tw_check_fault_plan(ck, ck->progs[ck->calls[state->call].prog].plan,
                                       "rank %d may leave the barrier before rank %d has come",
                                       rank, other);
    return true;
}

bool tw_check_goal(struct tw_check *ck, int rank)
{
    const struct tw_check_rank *state = &ck->ranks[rank];
    const struct tw_check_call *call = &ck->calls[state->call];
    const struct tw_check_prog *prog = &ck->progs[call->prog];
    if (prog->plan->coll == TW_COLL_BARRIER)
        return barrier_goal(ck, rank);
    if (!has_out(prog->plan, rank))
        return true;
    for (uint32_t plane = 0; plane < call->loops * call->slices; plane++) {
        const struct tw_check_value *out =
            ck->values + call->bases[rank][TW_BUF_OUT] + (size_t)plane * prog->user_stride;
        uint32_t unit = call->first_unit + plane;
        for (uint32_t cell = 0; cell < prog->out_cells; cell++) {
            const char *fault = cell_fault(ck, prog, rank, cell, out[cell].expr);
            if (fault || TW_CHECK_UNIT(out[cell].meta) != unit)
                return fault_out(ck, rank, cell, unit, &out[cell], fault);
        }
    }
    return true;
}
