/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where the checker keeps each cell slice, slot and clock. Never knows: what they hold. */
#include "plan/check.h"

uint32_t tw_check_alias(const struct tw_check_prog *prog, int rank, uint8_t buf, uint32_t cell)
{
    const struct tw_coll_rule *rule = tw_coll_rule((enum tw_coll)prog->plan->coll);
    uint32_t own = (uint32_t)rank * prog->per;
    if (buf == TW_BUF_IN)
        return rule->out.many && !rule->in.many ? own + cell : cell;
    return rule->in.many && !rule->out.many ? own + cell : cell;
}

/* ---- cells that lanes of one rank share -------------------------------------------------------
 */

struct sharing {
    struct tw_check *ck;
    const struct tw_check_prog *prog;
    uint32_t *users; /* [cells of a rank] a lane + 1; lanes of a rank are neighbours */
    uint8_t *states; /* [cells of a rank] */
    bool shares;
};
enum { SEVERAL = 1, WRITTEN = 2 };

static uint32_t cell_index(const struct tw_check_prog *prog, int rank, uint8_t buf, uint32_t cell)
{
    uint32_t user = prog->in_cells + prog->out_cells;
    if (buf == TW_BUF_SCRATCH)
        return user + cell;
    if (buf == TW_BUF_WIDE)
        return user + prog->plan->scratch_cells + cell;
    if (tw_check_may_alias(prog->plan, rank))
        return tw_check_alias(prog, rank, buf, cell);
    return buf == TW_BUF_IN ? cell : prog->in_cells + cell;
}

static void cell_use(struct sharing *sh, const struct tw_check_lane *lane, uint32_t cell,
                     bool write)
{
    uint32_t user = (uint32_t)(lane - sh->ck->lanes) + 1;
    if (sh->users[cell] <= sh->prog->rank_lane[lane->rank])
        sh->states[cell] = 0; /* of an earlier rank */
    else if (sh->users[cell] != user)
        sh->states[cell] |= SEVERAL;
    sh->users[cell] = user;
    sh->states[cell] |= write ? WRITTEN : 0;
    sh->shares = sh->shares || sh->states[cell] == (SEVERAL | WRITTEN);
}

static void lane_use(struct sharing *sh, const struct tw_check_lane *lane)
{
    const struct tw_check *ck = sh->ck;
    for (uint32_t i = 0; i < lane->nsteps; i++) {
        const struct tw_check_op *op = &ck->ops[lane->first_op + i];
        for (uint32_t c = 0; c < op->ncells && op->ncells != TW_CHECK_NONE; c++) {
            if (op->traits & TW_DO_SRC)
                cell_use(sh, lane,
                         cell_index(sh->prog, lane->rank, op->src_buf, ck->refs[op->src + c].cell),
                         false);
            if (op->traits & TW_DO_DST_WRITE)
                cell_use(sh, lane,
                         cell_index(sh->prog, lane->rank, op->dst_buf, ck->refs[op->dst + c].cell),
                         true);
        }
    }
}

bool tw_check_shares(struct tw_check *ck)
{
    for (uint32_t p = 0; p < ck->nprogs && !ck->clocks; p++) {
        const struct tw_check_prog *prog = &ck->progs[p];
        const struct tw_plan *plan = prog->plan;
        struct sharing sh = {.ck = ck, .prog = prog};
        size_t cells =
            (size_t)prog->in_cells + prog->out_cells + plan->scratch_cells + plan->wide_cells;
        bool several = false;
        for (int r = 0; r < plan->nranks; r++)
            several = several || plan->ranks[r].nlanes > 1;
        if (!several)
            continue;
        sh.users = tw_check_alloc(&ck->arena, cells, sizeof(*sh.users));
        sh.states = tw_check_alloc(&ck->arena, cells, 1);
        if (!sh.users || !sh.states)
            return tw_check_nomem(ck);
        for (uint32_t l = 0; l < prog->nlanes && !sh.shares; l++)
            lane_use(&sh, &ck->lanes[prog->first_lane + l]);
        ck->clocks = sh.shares;
    }
    return true;
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static uint32_t *clock_alloc(struct tw_check *ck)
{
    return tw_check_alloc(&ck->arena, ck->dims, sizeof(uint32_t));
}

/* The pairs that put to each rank. */
static bool pairs_alloc(struct tw_check *ck)
{
    for (uint32_t p = 0; p < ck->npairs; p++)
        ck->pairs[p].nth = ck->ranks[ck->pairs[p].to].npairs++;
    for (int r = 0; r < ck->nranks; r++) {
        struct tw_check_rank *rank = &ck->ranks[r];
        rank->pairs = tw_check_alloc(&ck->arena, rank->npairs, sizeof(*rank->pairs));
        if (!rank->pairs)
            return tw_check_nomem(ck);
    }
    for (uint32_t p = 0; p < ck->npairs; p++)
        ck->ranks[ck->pairs[p].to].pairs[ck->pairs[p].nth] = p;
    return true;
}

static bool regions_alloc(struct tw_check *ck)
{
    if (!ck->progs[0].peer_scratch && !ck->progs[1].peer_scratch)
        return true;
    size_t ranks = (size_t)ck->nranks;
    ck->regions = tw_check_alloc(&ck->arena, ranks * TW_CHECK_CALLS_MAX, sizeof(*ck->regions));
    ck->passed = tw_check_alloc(&ck->arena, ck->nlanes * ranks * 2, sizeof(*ck->passed));
    if (!ck->regions || !ck->passed)
        return tw_check_nomem(ck);
    for (size_t i = 0; i < ranks * TW_CHECK_CALLS_MAX; i++) {
        struct tw_check_region *region = &ck->regions[i];
        if (i % TW_CHECK_CALLS_MAX >= ck->ncalls)
            continue;
        uint32_t npairs = ck->ranks[i / TW_CHECK_CALLS_MAX].npairs;
        region->reads = clock_alloc(ck);
        region->writes = clock_alloc(ck);
        region->puts = tw_check_alloc(&ck->arena, npairs, sizeof(*region->puts));
        if (!region->reads || !region->writes || !region->puts)
            return tw_check_nomem(ck);
    }
    return true;
}

static bool clocks_alloc(struct tw_check *ck)
{
    struct tw_check_arena *arena = &ck->arena;
    size_t marks = (size_t)ck->nmarks * TW_CHECK_LOOPS * ck->slices * ck->dims;
    ck->marks = tw_check_alloc(arena, marks, sizeof(*ck->marks));
    ck->accesses = tw_check_alloc(arena, ck->nmemory, sizeof(*ck->accesses));
    bool ok = ck->marks && ck->accesses;
    for (uint32_t l = 0; ok && l < ck->nlanes; l++)
        ok = (ck->lanes[l].clock = clock_alloc(ck)) != NULL;
    for (int r = 0; ok && r < ck->nranks; r++) {
        ck->ranks[r].clock = clock_alloc(ck);
        ck->ranks[r].touched = clock_alloc(ck);
        ok = ck->ranks[r].clock && ck->ranks[r].touched;
    }
    if (!ok)
        return tw_check_nomem(ck);
    return pairs_alloc(ck) && regions_alloc(ck);
}

static bool slots_alloc(struct tw_check *ck, uint32_t depth)
{
    size_t at = ck->nmemory;
    struct tw_check_slot *slots =
        tw_check_alloc(&ck->arena, (size_t)ck->nfifos * depth, sizeof(*slots));
    if (!slots)
        return tw_check_nomem(ck);
    for (uint32_t f = 0; f < ck->nfifos; f++) {
        ck->fifos[f].slots = slots + (size_t)f * depth;
        for (uint32_t d = 0; d < depth; d++, at += ck->widest) {
            ck->fifos[f].slots[d].values = ck->values + at;
            if (ck->clocks && (ck->fifos[f].slots[d].clock = clock_alloc(ck)) == NULL)
                return tw_check_nomem(ck);
        }
    }
    return true;
}

static void prog_layout(struct tw_check *ck, struct tw_check_prog *prog)
{
    const struct tw_plan *plan = prog->plan;
    size_t ranks = (size_t)ck->nranks;
    prog->user_stride = prog->in_cells + prog->out_cells;
    prog->scratch_stride = plan->scratch_cells + plan->wide_cells;
    prog->user_base = ck->nmemory;
    ck->nmemory += ranks * TW_CHECK_LOOPS * plan->slices * prog->user_stride;
    prog->scratch_base = ck->nmemory;
    ck->nmemory += ranks * plan->parity * plan->slices * prog->scratch_stride;
}

bool tw_check_layout(struct tw_check *ck)
{
    struct tw_check_arena *arena = &ck->arena;
    uint32_t depth = 0;
    ck->dims = (ck->dims + TW_CHECK_DIMS_BLOCK - 1) / TW_CHECK_DIMS_BLOCK * TW_CHECK_DIMS_BLOCK;
    for (uint32_t p = 0; p < ck->nprogs; p++) {
        prog_layout(ck, &ck->progs[p]);
        uint32_t needs = ck->progs[p].plan->depth;
        depth = needs > depth ? needs : depth;
    }
    ck->nvalues = ck->nmemory + (size_t)ck->nfifos * depth * ck->widest;
    ck->values = tw_check_alloc(arena, ck->nvalues, sizeof(*ck->values));
    ck->ranks = tw_check_alloc(arena, (size_t)ck->nranks, sizeof(*ck->ranks));
    ck->queue = tw_check_alloc(arena, ck->nlanes, sizeof(*ck->queue));
    if (!ck->values || !ck->ranks || !ck->queue)
        return tw_check_nomem(ck);
    for (uint32_t c = 0; c < ck->ncalls; c++) {
        ck->calls[c].bases = tw_check_alloc(arena, (size_t)ck->nranks, sizeof(*ck->calls[c].bases));
        if (!ck->calls[c].bases)
            return tw_check_nomem(ck);
    }
    if (!slots_alloc(ck, depth))
        return false;
    return ck->clocks ? clocks_alloc(ck) : true;
}
