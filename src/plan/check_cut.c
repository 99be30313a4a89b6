/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a plan's partitions say of sizes, and how much of everything it has. Never knows:
 * what steps do. */
#include "plan/check.h"
#include "plan/validate.h"

/* Sizes that cells of a partition can have: those of other partitions of its kind and per too. */
struct classes {
    uint32_t kind, per;
    uint64_t count;
};

static struct classes classes_of(const struct tw_plan *plan, const struct tw_plan_part *part)
{
    uint64_t ranks = (uint64_t)plan->nranks;
    switch ((enum tw_part_kind)part->kind) {
    case TW_PART_EQUAL:
        return (struct classes){TW_PART_EQUAL, part->per, part->per};
    case TW_PART_SHARD:
        return (struct classes){TW_PART_EQUAL, (uint32_t)ranks * part->per, ranks * part->per};
    case TW_PART_PER_RANK:
        return (struct classes){TW_PART_PER_RANK, part->per, (uint64_t)part->groups * part->per};
    case TW_PART_OWN:
        return (struct classes){TW_PART_PER_RANK, part->per, ranks * part->per};
    default:
        return (struct classes){TW_PART_PAIR_SEND, part->per, ranks * ranks * part->per};
    }
}

/* Number the sizes that cells can have: partitions of one kind and `per` share theirs. p2p plans
 * have no counts that all ranks know: one size for all. */
static bool sizes_number(struct tw_check *ck, struct tw_check_prog *prog)
{
    const struct tw_plan *plan = prog->plan;
    uint64_t next = 0;
    for (uint32_t p = 0; p < plan->nparts; p++) {
        struct classes own = classes_of(plan, &plan->parts[p]);
        uint64_t most = 0;
        uint32_t same = p;
        for (uint32_t q = plan->nparts; q-- > 0;) {
            struct classes other = classes_of(plan, &plan->parts[q]);
            if (other.kind != own.kind || other.per != own.per)
                continue;
            same = q;
            most = other.count > most ? other.count : most;
        }
        prog->key_base[p] = (uint32_t)next;
        if (same < p)
            prog->key_base[p] = prog->key_base[same];
        else
            next += most;
        if (next > 0xffff)
            return tw_check_fault_plan(ck, plan, "has cells of more than %d sizes", 0xffff);
    }
    return true;
}

uint32_t tw_check_cell_key(const struct tw_check_prog *prog, int rank, uint8_t part, uint32_t cell)
{
    if (prog->plan->coll == TW_COLL_P2P)
        return 0;
    struct tw_cell_fit fit = tw_cell_fit(prog->plan, rank, part, cell);
    return (prog->key_base[part] + (uint32_t)fit.id) << 16;
}

static void see_span(struct tw_check_prog *prog, const struct tw_plan_span *span)
{
    if (span->block == 0 || span->buf > TW_BUF_OUT)
        return;
    const struct tw_plan_part *part = &prog->plan->parts[span->part];
    prog->per = part->per;
    if (span->buf == TW_BUF_IN)
        prog->in_part = span->part;
    if (prog->plan->coll != TW_COLL_P2P)
        return;
    uint32_t *cells = span->buf == TW_BUF_IN ? &prog->in_cells : &prog->out_cells;
    uint32_t has = part->groups * part->per;
    *cells = has > *cells ? has : *cells;
}

static void step_survey(struct tw_check_prog *prog, const struct tw_plan_step *step,
                        struct tw_check_survey *all)
{
    uint32_t traits = tw_op_rules[step->op].traits;
    all->steps++;
    all->sigs += (traits & TW_TRAIT_SIG) != 0;
    all->puts += (traits & TW_TRAIT_DST_PEER) != 0;
    all->ends += ((traits & TW_TRAIT_RECEIVES) != 0) + ((traits & TW_TRAIT_SENDS) != 0);
    if ((traits & (TW_TRAIT_SRC | TW_TRAIT_SRC_MAYBE)) && step->src.block) {
        see_span(prog, &step->src);
        all->refs += tw_span_cells(&step->src);
    }
    if (tw_step_stores(step) || (step->op == TW_OP_RECV_SEND && step->dst.block)) {
        see_span(prog, &step->dst);
        all->refs += tw_span_cells(&step->dst);
    }
}

static void prog_cells(struct tw_check_prog *prog)
{
    bool any;
    uint32_t in = tw_buf_groups(prog->plan, prog->plan->root, TW_BUF_IN, &any);
    uint32_t out = tw_buf_groups(prog->plan, prog->plan->root, TW_BUF_OUT, &any);
    if (any)
        return;
    prog->in_cells = in * prog->per;
    prog->out_cells = out * prog->per;
}

/* How IN and OUT are cut, and how much there is. */
void tw_check_survey_prog(struct tw_check_prog *prog, struct tw_check_survey *all)
{
    const struct tw_plan *plan = prog->plan;
    prog->per = 1;
    prog->in_part = TW_CHECK_NONE;
    for (int r = 0; r < plan->nranks; r++) {
        prog->nlanes += plan->ranks[r].nlanes;
        for (uint32_t l = 0; l < plan->ranks[r].nlanes; l++) {
            const struct tw_plan_lane *lane = &plan->ranks[r].lanes[l];
            for (uint32_t i = 0; i < lane->nsteps; i++)
                step_survey(prog, &lane->steps[i], all);
        }
    }
    prog_cells(prog);
}

/* Sizes of the cells of every rank's IN. */
static bool in_keys_init(struct tw_check *ck, struct tw_check_prog *prog)
{
    size_t cells = (size_t)ck->nranks * prog->in_cells;
    prog->in_keys = tw_check_alloc(&ck->arena, cells, sizeof(*prog->in_keys));
    if (!prog->in_keys)
        return tw_check_nomem(ck);
    for (size_t i = 0; i < cells && prog->in_part != TW_CHECK_NONE; i++)
        prog->in_keys[i] =
            tw_check_cell_key(prog, (int)(i / prog->in_cells), (uint8_t)prog->in_part,
                              (uint32_t)(i % prog->in_cells));
    return true;
}

bool tw_check_keys(struct tw_check *ck, struct tw_check_prog *prog)
{
    return sizes_number(ck, prog) && in_keys_init(ck, prog);
}
