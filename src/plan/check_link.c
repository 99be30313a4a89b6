/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how plans become flat tables of steps, FIFOs, signals and cell references.
 * Never knows: values, time. */
#include <string.h>

#include "plan/check.h"
#include "plan/validate.h"

/* Numbers for FIFOs, signal words and (lane, peer) pairs, by first use. */
struct names {
    uint64_t *keys; /* 0: free */
    uint32_t *ids;
    uint64_t mask;
};

enum name_kind { NAME_FIFO = 1, NAME_WORD, NAME_PUT };

static uint64_t name_key(enum name_kind kind, uint64_t a, uint64_t b, uint64_t c)
{
    return (uint64_t)kind << 60 | a << 40 | b << 8 | c;
}

static bool names_init(struct tw_check *ck, struct names *names, const struct tw_check_survey *all)
{
    uint64_t room = 64;
    while (room < 2 * ((uint64_t)all->ends + 2ull * all->sigs + all->puts))
        room *= 2;
    names->keys = tw_check_alloc(&ck->arena, room, sizeof(*names->keys));
    names->ids = tw_check_alloc(&ck->arena, room, sizeof(*names->ids));
    names->mask = room - 1;
    return names->keys && names->ids ? true : tw_check_nomem(ck);
}

/* The number of a name; *count grows when it is new. */
static uint32_t name_find(struct names *names, uint64_t key, uint32_t *count)
{
    uint64_t at = key * 0x9e3779b97f4a7c15u;
    for (at = (at ^ at >> 32) & names->mask; names->keys[at]; at = (at + 1) & names->mask)
        if (names->keys[at] == key)
            return names->ids[at];
    names->keys[at] = key;
    names->ids[at] = count ? (*count)++ : TW_CHECK_NONE;
    return names->ids[at];
}

struct linker {
    struct tw_check *ck;
    struct tw_check_prog *prog;
    struct names names;
    struct tw_check_lane *lane;
    const struct tw_plan_step *step;
    struct tw_check_op *op;
    uint32_t step_index;
};

/* ---- steps ------------------------------------------------------------------------------------
 */

static uint32_t refs_add(struct linker *ln, int rank, const struct tw_plan_span *span)
{
    struct tw_check *ck = ln->ck;
    uint32_t first = ck->nrefs, cells = tw_span_cells(span);
    for (uint32_t i = 0; i < cells; i++) {
        uint32_t cell = tw_span_cell(span, i);
        ck->refs[ck->nrefs++] =
            (struct tw_check_ref){cell, tw_check_cell_key(ln->prog, rank, span->part, cell)};
    }
    return first;
}

/* A cell must not be read as one cell of src and be written as another of dst. */
static bool op_overlap(struct linker *ln)
{
    struct tw_check_op *op = ln->op;
    if (op->ncells < 2 || op->src == TW_CHECK_NONE || op->dst == TW_CHECK_NONE ||
        op->src_rank != op->dst_rank)
        return true;
    bool user = op->src_buf <= TW_BUF_OUT && op->dst_buf <= TW_BUF_OUT &&
                tw_check_may_alias(ln->prog->plan, op->src_rank);
    if (op->src_buf != op->dst_buf && !user)
        return true;
    const struct tw_check_ref *src = ln->ck->refs + op->src, *dst = ln->ck->refs + op->dst;
    for (uint32_t i = 0, j = 0; i < op->ncells && j < op->ncells;) {
        uint32_t a = tw_check_alias(ln->prog, op->src_rank, op->src_buf, src[i].cell);
        uint32_t b = tw_check_alias(ln->prog, op->dst_rank, op->dst_buf, dst[j].cell);
        if (a == b && i != j) {
            ln->lane->step = ln->step_index;
            return tw_check_fault(ln->ck, ln->lane,
                                  "reads %s cell %u and writes it as another of %s",
                                  tw_buf_name((enum tw_plan_buf)op->src_buf), src[i].cell,
                                  tw_buf_name((enum tw_plan_buf)op->dst_buf));
        }
        i += a <= b;
        j += b <= a;
    }
    return true;
}

static uint8_t width_of(const struct tw_plan_span *span)
{
    return span->buf == TW_BUF_WIDE ? TW_WIDTH_WIDE : TW_WIDTH_NARROW;
}

static void op_widths(struct linker *ln, uint32_t rule)
{
    const struct tw_plan_step *step = ln->step;
    struct tw_check_op *op = ln->op;
    bool det = ln->prog->goal != NULL;
    bool stores = op->traits & TW_DO_DST_WRITE;
    uint8_t src = step->src.block ? width_of(&step->src) : TW_WIDTH_ANY;
    uint8_t dst = step->dst.block ? width_of(&step->dst) : TW_WIDTH_ANY;
    /* what a message meets: WIDE cells take both widths */
    uint8_t sum = rule & TW_TRAIT_DST_READ ? dst : src;
    if (stores && dst == TW_WIDTH_WIDE)
        sum = TW_WIDTH_WIDE;
    op->in_width = rule & TW_TRAIT_REDUCES ? sum : dst;
    if (op->in_width == TW_WIDTH_WIDE && !(rule & TW_TRAIT_SENDS && !(rule & TW_TRAIT_REDUCES)))
        op->in_width = TW_WIDTH_ANY;
    op->out_width = (rule & (TW_TRAIT_SRC | TW_TRAIT_SRC_MAYBE)) ? src : TW_WIDTH_ANY;
    if (step->flags & TW_STEP_ROUND)
        op->out_width = TW_WIDTH_NARROW;
    if (!det || !(rule & (TW_TRAIT_SRC | TW_TRAIT_SRC_MAYBE)))
        return;
    if ((rule & TW_TRAIT_REDUCES) && sum == TW_WIDTH_NARROW)
        op->traits |= TW_DO_ROUND_OP;
    if ((stores ? dst : op->out_width) == TW_WIDTH_NARROW)
        op->traits |= TW_DO_ROUND_END;
}

static void op_traits(struct linker *ln, uint32_t rule)
{
    const struct tw_plan_step *step = ln->step;
    uint32_t traits = 0;
    if ((rule & (TW_TRAIT_SRC | TW_TRAIT_SRC_MAYBE)) && step->src.block)
        traits |= TW_DO_SRC;
    if (rule & TW_TRAIT_DST_READ)
        traits |= TW_DO_DST_READ;
    if (tw_step_stores(step))
        traits |= TW_DO_DST_WRITE;
    if (rule & TW_TRAIT_REDUCES)
        traits |= TW_DO_OP;
    if (step->flags & TW_STEP_ACC_RIGHT)
        traits |= TW_DO_RIGHT;
    if (step->flags & TW_STEP_FINAL)
        traits |= TW_DO_FINAL;
    if (rule & TW_TRAIT_DST_PEER)
        traits |= TW_DO_PUT;
    ln->op->traits = (uint16_t)traits;
}

static void op_spans(struct linker *ln, uint32_t rule)
{
    const struct tw_plan_step *step = ln->step;
    struct tw_check_op *op = ln->op;
    op->src_rank = rule & TW_TRAIT_SRC_PEER ? step->from : ln->lane->rank;
    op->dst_rank = rule & TW_TRAIT_DST_PEER ? step->to : ln->lane->rank;
    op->src_buf = step->src.buf;
    op->dst_buf = step->dst.buf;
    op->src = op->dst = TW_CHECK_NONE;
    op->ncells = step->op == TW_OP_RECV_SEND && step->dst.block == 0 ? TW_CHECK_NONE : 0;
    if (op->traits & TW_DO_SRC) {
        op->ncells = tw_span_cells(&step->src);
        op->src = refs_add(ln, op->src_rank, &step->src);
    }
    if ((op->traits & TW_DO_DST_WRITE) || (step->op == TW_OP_RECV_SEND && step->dst.block)) {
        op->ncells = tw_span_cells(&step->dst);
        op->dst = refs_add(ln, op->dst_rank, &step->dst);
    }
    struct tw_check_prog *prog = ln->prog;
    bool peer = rule & (TW_TRAIT_SRC_PEER | TW_TRAIT_DST_PEER);
    bool user = (rule & TW_TRAIT_SRC_PEER ? op->src_buf : op->dst_buf) <= TW_BUF_OUT;
    prog->peer_user = prog->peer_user || (peer && user);
}

static uint32_t fifo_find(struct linker *ln, int from, int to, uint32_t id)
{
    struct tw_check *ck = ln->ck;
    uint32_t before = ck->nfifos;
    uint32_t fifo =
        name_find(&ln->names, name_key(NAME_FIFO, (uint64_t)from, (uint64_t)to, id), &ck->nfifos);
    if (fifo == before)
        ck->fifos[fifo] = (struct tw_check_fifo){.from = from, .to = to, .id = id};
    return fifo;
}

static uint32_t word_find(struct linker *ln, int rank, uint32_t sig)
{
    struct tw_check *ck = ln->ck;
    uint32_t before = ck->nwords;
    uint32_t word = name_find(&ln->names, name_key(NAME_WORD, (uint64_t)rank, sig, 0), &ck->nwords);
    if (word == before) {
        for (uint32_t s = 0; s < ck->slices; s++)
            ck->words[word * ck->slices + s] =
                (struct tw_check_word){.rank = rank,
                                       .sig = sig,
                                       .raiser = {TW_CHECK_NONE, TW_CHECK_NONE},
                                       .waiter = TW_CHECK_NONE};
    }
    return word;
}

static uint64_t put_key(const struct linker *ln)
{
    uint64_t lane = (uint64_t)(ln->lane - ln->ck->lanes);
    return name_key(NAME_PUT, (uint64_t)ln->step->to, lane, 0);
}

static uint32_t pair_find(struct linker *ln)
{
    struct tw_check *ck = ln->ck;
    uint32_t before = ck->npairs;
    uint32_t pair = name_find(&ln->names, put_key(ln), &ck->npairs);
    if (pair == before)
        ck->pairs[pair] =
            (struct tw_check_pair){.lane = (uint32_t)(ln->lane - ck->lanes), .to = ln->step->to};
    return pair;
}

static void op_peers(struct linker *ln, uint32_t rule)
{
    const struct tw_plan_step *step = ln->step;
    struct tw_check *ck = ln->ck;
    struct tw_check_op *op = ln->op;
    int rank = ln->lane->rank;
    op->fifo_in = op->fifo_out = op->word = op->pair = TW_CHECK_NONE;
    if (rule & TW_TRAIT_RECEIVES)
        op->fifo_in = fifo_find(ln, step->from, rank, step->fifo_in);
    if (rule & TW_TRAIT_SENDS)
        op->fifo_out = fifo_find(ln, rank, step->to, step->fifo_out);
    if (rule & TW_TRAIT_SIG) {
        op->word = word_find(ln, rule & TW_TRAIT_TO ? step->to : rank, step->sig);
        op->sig_value = step->sig_value;
    }
    if (rule & TW_TRAIT_DST_PEER)
        op->pair = pair_find(ln);
    ck->clocks = ck->clocks || (rule & (TW_TRAIT_SIG | TW_TRAIT_SRC_PEER | TW_TRAIT_DST_PEER)) != 0;
}

static bool op_link(struct linker *ln)
{
    const struct tw_plan_step *step = ln->step;
    uint32_t rule = tw_op_rules[step->op].traits;
    struct tw_check_op *op = ln->op;
    op->op = step->op;
    op->whole = step->flags & TW_STEP_WHOLE;
    op->mark = TW_CHECK_NONE;
    op_traits(ln, rule);
    op_spans(ln, rule);
    op_widths(ln, rule);
    op_peers(ln, rule);
    uint32_t cells = op->ncells == TW_CHECK_NONE ? 0 : op->ncells;
    if (op->fifo_in != TW_CHECK_NONE || op->fifo_out != TW_CHECK_NONE)
        ln->ck->widest = cells > ln->ck->widest ? cells : ln->ck->widest;
    return op_overlap(ln);
}

/* Who raises a word, and who waits for it. */
static bool word_link(struct linker *ln)
{
    struct tw_check *ck = ln->ck;
    struct tw_check_op *op = ln->op;
    uint32_t self = (uint32_t)(ln->lane - ck->lanes), prog = ln->lane->prog;
    struct tw_check_word *first = &ck->words[(size_t)op->word * ck->slices];
    if (op->op == TW_OP_SIGNAL && first->raiser[prog] != TW_CHECK_NONE &&
        first->raiser[prog] != self) {
        const struct tw_check_lane *other = &ck->lanes[first->raiser[prog]];
        ln->lane->step = ln->step_index;
        return tw_check_fault(ck, ln->lane, "signal %u of rank %d is raised by rank %d lane %u too",
                              first->sig, first->rank, other->rank, other->index);
    }
    if (op->op == TW_OP_SIGNAL)
        op->pair = name_find(&ln->names, put_key(ln), NULL);
    for (struct tw_check_word *word = first; word < first + ck->slices; word++) {
        if (op->op == TW_OP_SIGNAL) {
            word->raiser[prog] = self;
            continue;
        }
        bool other = word->waited && word->waiter != ln->lane->index;
        word->waiter = other ? TW_CHECK_NONE : ln->lane->index;
        word->waited = true;
    }
    return true;
}

/* What needs all steps in place: dependencies, and the puts that a signal makes visible. */
static bool refer_link(struct linker *ln)
{
    struct tw_check *ck = ln->ck;
    struct tw_check_op *op = ln->op;
    if (op->word != TW_CHECK_NONE && !word_link(ln))
        return false;
    op->dep_lane = op->dep_mark = TW_CHECK_NONE;
    if (ln->step->dep_lane == TW_NO_LANE)
        return true;
    op->dep_lane = ln->prog->rank_lane[ln->lane->rank] + ln->step->dep_lane;
    op->dep_step = ln->step->dep_step;
    struct tw_check_op *on = &ck->ops[ck->lanes[op->dep_lane].first_op + op->dep_step];
    if (on->mark == TW_CHECK_NONE)
        on->mark = ck->nmarks++;
    op->dep_mark = on->mark;
    return true;
}

/* Apply a function to each step of the program. */
static bool prog_each(struct linker *ln, bool refer)
{
    struct tw_check *ck = ln->ck;
    for (uint32_t l = 0; l < ln->prog->nlanes; l++) {
        ln->lane = &ck->lanes[ln->prog->first_lane + l];
        for (uint32_t i = 0; i < ln->lane->nsteps; i++) {
            ln->step_index = i;
            ln->step = tw_check_step_at(ck, ln->lane, i);
            ln->op = &ck->ops[ln->lane->first_op + i];
            if (!(refer ? refer_link(ln) : op_link(ln)))
                return false;
        }
    }
    return true;
}

static bool prog_link(struct linker *ln)
{
    struct tw_check *ck = ln->ck;
    struct tw_check_prog *prog = ln->prog;
    const struct tw_plan *plan = prog->plan;
    uint32_t nlanes = 0;
    for (int r = 0; r < plan->nranks; r++) {
        prog->rank_lane[r] = prog->first_lane + nlanes;
        for (uint32_t l = 0; l < plan->ranks[r].nlanes; l++, nlanes++) {
            struct tw_check_lane *lane = &ck->lanes[prog->first_lane + nlanes];
            *lane = (struct tw_check_lane){.rank = r,
                                           .index = l,
                                           .prog = (uint32_t)(prog - ck->progs),
                                           .first_op = ck->nops,
                                           .nsteps = plan->ranks[r].lanes[l].nsteps};
            lane->dim = (uint32_t)ck->nranks + prog->first_lane + nlanes;
            ck->nops += lane->nsteps;
        }
    }
    prog->rank_lane[plan->nranks] = prog->first_lane + nlanes;
    return prog_each(ln, false) && prog_each(ln, true);
}

static bool tables_alloc(struct tw_check *ck, const struct tw_check_survey *all)
{
    struct tw_check_arena *arena = &ck->arena;
    ck->lanes = tw_check_alloc(arena, ck->nlanes, sizeof(*ck->lanes));
    ck->ops = tw_check_alloc(arena, all->steps, sizeof(*ck->ops));
    ck->refs = tw_check_alloc(arena, all->refs, sizeof(*ck->refs));
    ck->fifos = tw_check_alloc(arena, all->ends, sizeof(*ck->fifos));
    ck->words = tw_check_alloc(arena, (size_t)all->sigs * ck->slices, sizeof(*ck->words));
    ck->pairs = tw_check_alloc(arena, all->puts, sizeof(*ck->pairs));
    for (uint32_t p = 0; p < ck->nprogs; p++) {
        ck->progs[p].rank_lane =
            tw_check_alloc(arena, (size_t)ck->nranks + 1, sizeof(*ck->progs[p].rank_lane));
        if (!ck->progs[p].rank_lane)
            return tw_check_nomem(ck);
    }
    return ck->lanes && ck->ops && ck->refs && ck->fifos && ck->words && ck->pairs
               ? true
               : tw_check_nomem(ck);
}

bool tw_check_link(struct tw_check *ck, const struct tw_plan *plan, const struct tw_plan *next)
{
    struct linker ln = {.ck = ck};
    struct tw_check_survey all = {0};
    ck->nranks = plan->nranks;
    const uint32_t nprogs = next ? 2 : 1;
    ck->nprogs = nprogs;
    for (uint32_t p = 0; p < nprogs; p++) {
        struct tw_check_prog *prog = &ck->progs[p];
        prog->plan = p == 0 ? plan : next;
        prog->first_lane = ck->nlanes;
        prog->peer_scratch = prog->plan->caps & TW_CAP_PUT_SCRATCH;
        tw_check_survey_prog(prog, &all);
        ck->nlanes += prog->nlanes;
        ck->slices = prog->plan->slices > ck->slices ? prog->plan->slices : ck->slices;
        ck->clocks = ck->clocks || prog->plan->coll == TW_COLL_BARRIER;
        if (!tw_check_keys(ck, prog) || !tw_check_goal_init(ck, prog))
            return false;
    }
    ck->dims = (uint32_t)ck->nranks + ck->nlanes;
    ck->widest = 1;
    if (!tables_alloc(ck, &all) || !names_init(ck, &ln.names, &all))
        return false;
    for (uint32_t p = 0; p < ck->nprogs; p++) {
        ln.prog = &ck->progs[p];
        if (!prog_link(&ln))
            return false;
    }
    return tw_check_shares(ck);
}
