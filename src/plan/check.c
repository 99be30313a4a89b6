/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which runs prove a plan: slices, calls, ranks in place. Never knows: how a run goes. */
#include "plan/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plan/validate.h"

#define INPLACE_RANKS_DEFAULT 4
#define INPLACE_RANKS_MOST 12
#define MIXES_SAMPLED 4

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* All mixes of ranks in place for few ranks; for many none, all, and some drawn. */
static bool mixes_init(struct tw_check *ck, struct tw_check_prog *prog, uint32_t most,
                       uint64_t *seed)
{
    uint32_t able = 0;
    for (int r = 0; r < ck->nranks; r++)
        able += tw_check_may_alias(prog->plan, r);
    bool all = able <= most;
    prog->nmixes = all ? 1u << able : MIXES_SAMPLED;
    prog->mixes = tw_check_alloc(&ck->arena, prog->nmixes, (size_t)ck->nranks);
    if (!prog->mixes)
        return tw_check_nomem(ck);
    for (uint32_t m = 0; m < prog->nmixes; m++) {
        uint8_t *mix = prog->mixes + (size_t)m * (size_t)ck->nranks;
        uint32_t nth = 0;
        for (int r = 0; r < ck->nranks; r++) {
            if (!tw_check_may_alias(prog->plan, r))
                continue;
            uint64_t bits = all ? m >> nth++ : m == 0 ? 0 : m == 1 ? 1 : random_next(seed);
            mix[r] = bits & 1;
        }
    }
    return true;
}

/* How the calls of a run cut their data: loops, and 1 slice or the most; in turn: calls of 1 loop
 * of 1 alternate with those of 2 loops of the most, starting with the former (most: the latter). */
struct cut {
    uint32_t loops;
    bool most, in_turn;
};

static bool run_cut(struct tw_check *ck, uint32_t group, struct cut cut)
{
    uint32_t each = ck->ncalls / ck->nprogs;
    for (uint32_t c = 0; c < ck->ncalls; c++) {
        struct tw_check_call *call = &ck->calls[c];
        call->prog = c % ck->nprogs;
        const struct tw_check_prog *prog = &ck->progs[call->prog];
        bool turn = (c / ck->nprogs + group + cut.most) % 2 == 1;
        call->loops = cut.in_turn && !turn ? 1 : cut.loops;
        call->slices = (cut.in_turn ? turn : cut.most) ? prog->plan->slices : 1;
        uint32_t mix = (group * each + c / ck->nprogs) % prog->nmixes;
        call->inplace = prog->mixes + (size_t)mix * (size_t)ck->nranks;
    }
    return tw_check_run(ck);
}

/* Without clocks, loops and slices decide only who waits, never what is computed, and ranks in
 * place only what is computed: one run may vary all of them. */
static bool runs(struct tw_check *ck)
{
    static const struct cut cuts[] = {{2, false, true},  {2, true, true},  {1, false, false},
                                      {2, false, false}, {1, true, false}, {2, true, false}};
    uint32_t ncuts = !ck->clocks ? 1 : ck->slices > 1 ? 6 : 4;
    uint32_t mixes = ck->progs[0].nmixes, each = ck->ncalls / ck->nprogs;
    if (ck->nprogs > 1 && ck->progs[1].nmixes > mixes)
        mixes = ck->progs[1].nmixes;
    for (uint32_t group = 0; group * each < mixes; group++)
        for (uint32_t c = 0; c < ncuts; c++)
            if ((!cuts[c].in_turn || group == 0 || ncuts == 1) && !run_cut(ck, group, cuts[c]))
                return false;
    return true;
}

static uint32_t calls_wanted(const struct tw_check *ck)
{
    uint32_t parity = 1;
    for (uint32_t p = 0; p < ck->nprogs; p++)
        if (ck->progs[p].peer_scratch && ck->progs[p].plan->parity > parity)
            parity = ck->progs[p].plan->parity;
    if (ck->nprogs == 1)
        return parity + 1;
    return parity + 2 > 4 ? (parity + 3) / 2 * 2 : 4;
}

static bool check(struct tw_check *ck, const struct tw_plan *plan,
                  const struct tw_check_options *options)
{
    const struct tw_plan *next = options ? options->next : NULL;
    uint32_t most =
        options && options->max_inplace_ranks ? options->max_inplace_ranks : INPLACE_RANKS_DEFAULT;
    uint64_t seed = options ? options->seed : 0;
    most = most < INPLACE_RANKS_MOST ? most : INPLACE_RANKS_MOST;
    bool sums = tw_coll_rule((enum tw_coll)plan->coll)->reduces;
    sums = sums || (next && tw_coll_rule((enum tw_coll)next->coll)->reduces);
    if (!tw_exprs_init(&ck->exprs, plan->nranks, sums))
        return tw_check_nomem(ck);
    if (!tw_check_link(ck, plan, next))
        return false;
    ck->ncalls = calls_wanted(ck);
    for (uint32_t p = 0; p < ck->nprogs; p++)
        if (!mixes_init(ck, &ck->progs[p], most, &seed))
            return false;
    return tw_check_layout(ck) && runs(ck);
}

/* Whole and well formed, or the reason in the report. */
static enum twill_status whole_validate(const struct tw_plan *plan, struct tw_check_report *report)
{
    enum twill_status status = tw_plan_validate(plan);
    if (!tw_failed(status) && plan->only_rank >= 0)
        status = tw_fail(TWILL_ERR_INVALID, "plan %s: has only rank %d's program; all are wanted",
                         plan->name, plan->only_rank);
    if (tw_failed(status))
        snprintf(report->text, sizeof(report->text), "%s", tw_fail_text());
    return status;
}

enum twill_status tw_plan_check(const struct tw_plan *plan, const struct tw_check_options *options,
                                struct tw_check_report *report)
{
    struct tw_check_report own;
    struct tw_check ck = {.report = report ? report : &own};
    *ck.report = (struct tw_check_report){0};
    enum twill_status status = whole_validate(plan, ck.report);
    const struct tw_plan *next = options ? options->next : NULL;
    if (!tw_failed(status) && next)
        status = whole_validate(next, ck.report);
    if (!tw_failed(status) && next && next->nranks != plan->nranks) {
        status = tw_fail(TWILL_ERR_INVALID, "plan %s: has %d ranks, the plan after it has %d",
                         plan->name, plan->nranks, next->nranks);
        snprintf(ck.report->text, sizeof(ck.report->text), "%s", tw_fail_text());
    }
    if (tw_failed(status))
        return status;
    check(&ck, plan, options);
    ck.report->steps_run = ck.steps_run;
    tw_exprs_fini(&ck.exprs);
    free(ck.reads);
    free(ck.seen);
    tw_check_arena_fini(&ck.arena);
    return ck.status;
}
