/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what makes one step well formed. Never knows: what other steps do. */
#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"
#include "plan/validate.h"

enum {
    LOCAL = TW_TRAIT_SRC | TW_TRAIT_DST | TW_TRAIT_WIDENS,
    STEP_DEP = TW_STEP_WHOLE, /* legal with every operation that has a dependency */
};

const struct tw_op_rule tw_op_rules[TW_OP_COUNT] = {
    [TW_OP_COPY] = {"copy", LOCAL | TW_TRAIT_NARROWS, TW_STEP_FINAL | TW_STEP_ROUND | STEP_DEP},
    [TW_OP_REDUCE] = {"reduce", LOCAL | TW_TRAIT_DST_READ | TW_TRAIT_REDUCES,
                      TW_STEP_ACC_RIGHT | TW_STEP_FINAL | STEP_DEP},
    [TW_OP_SEND] = {"send", TW_TRAIT_SRC_MAYBE | TW_TRAIT_SENDS | TW_TRAIT_NARROWS,
                    TW_STEP_ROUND | STEP_DEP},
    [TW_OP_RECV] = {"recv", TW_TRAIT_DST_MAYBE | TW_TRAIT_RECEIVES, STEP_DEP},
    [TW_OP_RECV_REDUCE] = {"recv_reduce",
                           TW_TRAIT_SRC | TW_TRAIT_DST | TW_TRAIT_RECEIVES | TW_TRAIT_REDUCES |
                               TW_TRAIT_WIDENS | TW_TRAIT_NARROWS,
                           TW_STEP_ACC_RIGHT | TW_STEP_FINAL | TW_STEP_ROUND | STEP_DEP},
    [TW_OP_RECV_SEND] = {"recv_send",
                         TW_TRAIT_DST_MAYBE | TW_TRAIT_DST_STORE | TW_TRAIT_RECEIVES |
                             TW_TRAIT_SENDS,
                         TW_STEP_STORE | STEP_DEP},
    [TW_OP_RECV_REDUCE_SEND] = {"recv_reduce_send",
                                TW_TRAIT_SRC | TW_TRAIT_DST | TW_TRAIT_DST_STORE |
                                    TW_TRAIT_RECEIVES | TW_TRAIT_SENDS | TW_TRAIT_REDUCES |
                                    TW_TRAIT_NARROWS,
                                TW_STEP_STORE | TW_STEP_ACC_RIGHT | TW_STEP_FINAL | TW_STEP_ROUND |
                                    STEP_DEP},
    [TW_OP_PUT] = {"put", LOCAL | TW_TRAIT_DST_PEER | TW_TRAIT_TO | TW_TRAIT_NARROWS,
                   TW_STEP_ROUND | STEP_DEP},
    [TW_OP_GET] = {"get", LOCAL | TW_TRAIT_SRC_PEER | TW_TRAIT_NARROWS, TW_STEP_ROUND | STEP_DEP},
    [TW_OP_GET_REDUCE] = {"get_reduce",
                          LOCAL | TW_TRAIT_SRC_PEER | TW_TRAIT_DST_READ | TW_TRAIT_REDUCES,
                          TW_STEP_ACC_RIGHT | TW_STEP_FINAL | STEP_DEP},
    [TW_OP_SIGNAL] = {"signal", TW_TRAIT_TO | TW_TRAIT_SIG, STEP_DEP},
    [TW_OP_WAIT] = {"wait", TW_TRAIT_SIG, STEP_DEP},
};

const char *tw_buf_name(enum tw_plan_buf buf)
{
    static const char *const names[TW_BUF_COUNT] = {"in", "out", "scratch", "wide"};
    return (unsigned)buf < TW_BUF_COUNT ? names[buf] : "unknown";
}

/* A step under the glass. */
struct place {
    const struct tw_plan *plan;
    const struct tw_plan_step *step;
    int rank;
    uint32_t lane, index;
};

enum twill_status tw_step_fail(const struct tw_plan *plan, int rank, uint32_t lane, uint32_t step,
                               const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const struct tw_plan_lane *list = &plan->ranks[rank].lanes[lane];
    uint8_t op = list->steps[step].op;
    return tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d channel %u lane %u step %u (%s): %s",
                   plan->name, rank, list->channel, lane, step,
                   op < TW_OP_COUNT ? tw_op_rules[op].name : "unknown", text);
}

#define PLACE_FAIL(p, ...) tw_step_fail((p)->plan, (p)->rank, (p)->lane, (p)->index, __VA_ARGS__)

struct tw_cell_fit tw_cell_fit(const struct tw_plan *plan, int rank, uint8_t part, uint32_t cell)
{
    const struct tw_plan_part *cut = &plan->parts[part];
    uint64_t group = cell / cut->per, sub = cell % cut->per, ranks = (uint64_t)plan->nranks;
    struct tw_cell_fit fit = {cut->kind, cut->per, sub};
    if (cut->kind == TW_PART_PER_RANK)
        fit.id = cell;
    if (cut->kind == TW_PART_OWN) {
        fit.kind = TW_PART_PER_RANK;
        fit.id = (uint64_t)rank * cut->per + sub;
    }
    if (cut->kind == TW_PART_SHARD) {
        fit.kind = TW_PART_EQUAL;
        fit.per = (uint32_t)ranks * cut->per;
        fit.id = (uint64_t)rank * cut->per + sub;
    }
    if (cut->kind == TW_PART_PAIR_SEND)
        fit.id = ((uint64_t)rank * ranks + group) * cut->per + sub;
    if (cut->kind == TW_PART_PAIR_RECV) { /* the same cells, seen from the other end */
        fit.kind = TW_PART_PAIR_SEND;
        fit.id = (group * ranks + (uint64_t)rank) * cut->per + sub;
    }
    return fit;
}

uint32_t tw_buf_groups(const struct tw_plan *plan, int rank, enum tw_plan_buf buf, bool *any)
{
    const struct tw_coll_rule *rule = tw_coll_rule((enum tw_coll)plan->coll);
    const struct tw_coll_buf *side = buf == TW_BUF_IN ? &rule->in : &rule->out;
    *any = plan->coll == TW_COLL_P2P;
    if (side->where == TW_NOWHERE || (side->where == TW_AT_ROOT && rank != plan->root))
        return 0;
    return side->many ? (uint32_t)plan->nranks : 1;
}

static bool part_kind_fits(const struct tw_plan *plan, enum tw_plan_buf buf, uint8_t kind)
{
    const struct tw_coll_rule *rule = tw_coll_rule((enum tw_coll)plan->coll);
    return kind == (buf == TW_BUF_IN ? rule->in.kind : rule->out.kind);
}

/* IN and OUT of `owner` are cut as the collective's contract says. */
static enum twill_status user_span_validate(const struct place *p, const struct tw_plan_span *span,
                                            int owner, struct tw_user_cut *cut)
{
    const struct tw_plan_part *part = &p->plan->parts[span->part];
    const char *buf = tw_buf_name((enum tw_plan_buf)span->buf);
    bool any;
    uint32_t groups = tw_buf_groups(p->plan, owner, (enum tw_plan_buf)span->buf, &any);
    if (part->kind == TW_PART_SHARD)
        return PLACE_FAIL(p, "partition %u, of shards, cuts %s", span->part, buf);
    if (any)
        return TWILL_OK;
    if (groups == 0)
        return PLACE_FAIL(p, "rank %d has no %s buffer in %s", owner, buf,
                          tw_coll_name((enum tw_coll)p->plan->coll));
    if (part->groups != groups || !part_kind_fits(p->plan, (enum tw_plan_buf)span->buf, part->kind))
        return PLACE_FAIL(p,
                          "partition %u (kind %u, %u groups) does not cut %s, which has %u groups",
                          span->part, part->kind, part->groups, buf, groups);
    if (cut->per == 0)
        cut->per = part->per;
    if (cut->per != part->per)
        return PLACE_FAIL(p,
                          "partition %u cuts groups of %s into %u cells, an earlier step into %u",
                          span->part, buf, part->per, cut->per);
    return TWILL_OK;
}

static uint64_t span_limit(const struct tw_plan *plan, const struct tw_plan_span *span)
{
    const struct tw_plan_part *part = &plan->parts[span->part];
    uint64_t cells = (uint64_t)part->groups * part->per;
    if (span->buf == TW_BUF_IN || span->buf == TW_BUF_OUT)
        return cells;
    uint64_t room = span->buf == TW_BUF_SCRATCH ? plan->scratch_cells : plan->wide_cells;
    bool repeats =
        part->kind == TW_PART_EQUAL || part->kind == TW_PART_OWN || part->kind == TW_PART_SHARD;
    return repeats || room < cells ? room : cells;
}

/* name: "src" or "dst"; owner: the rank whose memory it is. */
static enum twill_status span_validate(const struct place *p, const char *name, int owner,
                                       struct tw_user_cut *cut)
{
    const struct tw_plan_span *span = name[0] == 's' ? &p->step->src : &p->step->dst;
    if (span->buf >= TW_BUF_COUNT || span->part >= p->plan->nparts || span->index != 0)
        return PLACE_FAIL(p, "%s: buffer %u, partition %u, index %u do not exist (%u partitions)",
                          name, span->buf, span->part, span->index, p->plan->nparts);
    if (span->nblocks == 0 || (span->nblocks > 1 && span->stride < span->block))
        return PLACE_FAIL(p, "%s: %u blocks of %u cells, one every %u, are not a span", name,
                          span->nblocks, span->block, span->stride);
    uint64_t limit = span_limit(p->plan, span);
    uint64_t stride = span->nblocks > 1 ? span->stride : 0;
    uint64_t blocks = (uint64_t)(span->nblocks - 1) * stride; /* below 2^64: both are 32 bit */
    if (blocks > limit || (uint64_t)span->first + blocks + span->block > limit)
        return PLACE_FAIL(p,
                          "%s: first %u, %u blocks of %u cells, one every %u, pass the end of %s"
                          " at %llu cells",
                          name, span->first, span->nblocks, span->block, span->stride,
                          tw_buf_name((enum tw_plan_buf)span->buf), (unsigned long long)limit);
    if (span->buf == TW_BUF_IN || span->buf == TW_BUF_OUT)
        return user_span_validate(p, span, owner, cut);
    return TWILL_OK;
}

/* src and dst of one step hold cells of equal size, in the same number. */
static enum twill_status spans_match(const struct place *p, int src_rank, int dst_rank)
{
    const struct tw_plan_span *src = &p->step->src, *dst = &p->step->dst;
    uint32_t cells = tw_span_cells(src);
    if (cells != tw_span_cells(dst))
        return PLACE_FAIL(p, "src has %u cells, dst has %u", cells, tw_span_cells(dst));
    for (uint32_t i = 0; i < cells; i++) {
        uint32_t from = tw_span_cell(src, i), to = tw_span_cell(dst, i);
        if (!tw_cells_fit(tw_cell_fit(p->plan, src_rank, src->part, from),
                          tw_cell_fit(p->plan, dst_rank, dst->part, to)))
            return PLACE_FAIL(p, "%s cell %u (partition %u) does not fit %s cell %u (partition %u)",
                              tw_buf_name((enum tw_plan_buf)src->buf), from, src->part,
                              tw_buf_name((enum tw_plan_buf)dst->buf), to, dst->part);
    }
    return TWILL_OK;
}

static enum twill_status widths_match(const struct place *p, uint32_t traits)
{
    const struct tw_plan_step *step = p->step;
    bool has_src = traits & (TW_TRAIT_SRC | TW_TRAIT_SRC_MAYBE);
    bool src_wide = has_src && step->src.block && step->src.buf == TW_BUF_WIDE;
    bool dst_wide = tw_step_stores(step) && step->dst.buf == TW_BUF_WIDE;
    if (step->flags & TW_STEP_ROUND) {
        if (!src_wide)
            return PLACE_FAIL(p, "rounds, but src is not wide");
        if (dst_wide)
            return PLACE_FAIL(p, "rounds, but dst is wide");
        return TWILL_OK;
    }
    if (!has_src || !tw_step_stores(step) || src_wide == dst_wide)
        return TWILL_OK;
    if (src_wide)
        return PLACE_FAIL(p, "wide src goes to narrow %s without rounding",
                          tw_buf_name((enum tw_plan_buf)step->dst.buf));
    return traits & TW_TRAIT_WIDENS ? TWILL_OK : PLACE_FAIL(p, "narrow src goes to a wide dst");
}

static enum twill_status message_validate(const struct place *p, uint32_t traits)
{
    const struct tw_plan_step *step = p->step;
    if (!(traits & (TW_TRAIT_RECEIVES | TW_TRAIT_SENDS)))
        return TWILL_OK;
    bool from_src = traits & (TW_TRAIT_SRC | TW_TRAIT_SRC_MAYBE);
    uint32_t cells = tw_span_cells(from_src ? &step->src : &step->dst);
    if (cells <= tw_plan_widest(p->plan))
        return TWILL_OK;
    return PLACE_FAIL(p, "message of %u cells in a plan whose widest has %u", cells,
                      tw_plan_widest(p->plan));
}

static enum twill_status spans_validate(const struct place *p, uint32_t traits,
                                        struct tw_user_cut *cut)
{
    const struct tw_plan_step *step = p->step;
    int src_rank = traits & TW_TRAIT_SRC_PEER ? step->from : p->rank;
    int dst_rank = traits & TW_TRAIT_DST_PEER ? step->to : p->rank;
    bool dst_needed =
        traits & TW_TRAIT_DST_STORE ? step->flags & TW_STEP_STORE : (traits & TW_TRAIT_DST) != 0;
    enum twill_status status = TWILL_OK;
    if ((traits & TW_TRAIT_SRC) && step->src.block == 0)
        return PLACE_FAIL(p, "src is empty");
    if (dst_needed && step->dst.block == 0)
        return PLACE_FAIL(p, "dst is empty");
    if ((traits & (TW_TRAIT_SRC | TW_TRAIT_SRC_MAYBE)) && step->src.block)
        status = span_validate(p, "src", src_rank, cut);
    if (!tw_failed(status) && step->dst.block && (dst_needed || (traits & TW_TRAIT_DST_MAYBE)))
        status = span_validate(p, "dst", dst_rank, cut);
    if (!tw_failed(status) && tw_step_stores(step) && step->dst.buf == TW_BUF_IN)
        status = PLACE_FAIL(p, "writes to in");
    if (!tw_failed(status) && (traits & TW_TRAIT_SRC) && tw_step_stores(step))
        status = spans_match(p, src_rank, dst_rank);
    if (!tw_failed(status))
        status = widths_match(p, traits);
    return tw_failed(status) ? status : message_validate(p, traits);
}

static enum twill_status peer_validate(const struct place *p, const char *name, int32_t peer)
{
    if (peer < 0 || peer >= p->plan->nranks)
        return PLACE_FAIL(p, "%s: %d is not a rank below %d", name, peer, p->plan->nranks);
    return peer == p->rank ? PLACE_FAIL(p, "%s: is the rank itself", name) : TWILL_OK;
}

static enum twill_status fifo_validate(const struct place *p, const char *name, uint16_t fifo)
{
    if (fifo >= p->plan->nfifos)
        return PLACE_FAIL(p, "%s: %u is not below %u", name, fifo, p->plan->nfifos);
    if (p->plan->depth == 0)
        return PLACE_FAIL(p, "%s: used, but the plan's depth is 0", name);
    return TWILL_OK;
}

static enum twill_status peers_validate(const struct place *p, uint32_t traits)
{
    const struct tw_plan_step *step = p->step;
    enum twill_status status = TWILL_OK;
    if (traits & (TW_TRAIT_RECEIVES | TW_TRAIT_SRC_PEER))
        status = peer_validate(p, "from", step->from);
    if (!tw_failed(status) && (traits & (TW_TRAIT_SENDS | TW_TRAIT_TO)))
        status = peer_validate(p, "to", step->to);
    if (!tw_failed(status) && (traits & TW_TRAIT_RECEIVES))
        status = fifo_validate(p, "fifo_in", step->fifo_in);
    if (!tw_failed(status) && (traits & TW_TRAIT_SENDS))
        status = fifo_validate(p, "fifo_out", step->fifo_out);
    if (!tw_failed(status) && (traits & TW_TRAIT_SIG) &&
        (step->sig >= p->plan->nsigs || step->sig_value == 0 || step->sig_value > p->plan->sig_max))
        status = PLACE_FAIL(p, "signal %u value %u; the plan has %u signals of values 1 to %u",
                            step->sig, step->sig_value, p->plan->nsigs, p->plan->sig_max);
    return status;
}

static enum twill_status caps_validate(const struct place *p, uint32_t traits)
{
    if (!(traits & (TW_TRAIT_SRC_PEER | TW_TRAIT_DST_PEER)))
        return TWILL_OK;
    uint8_t buf = traits & TW_TRAIT_SRC_PEER ? p->step->src.buf : p->step->dst.buf;
    bool user = buf == TW_BUF_IN || buf == TW_BUF_OUT;
    uint32_t cap = user ? TW_CAP_PEER_BUFFERS : TW_CAP_PUT_SCRATCH;
    if (p->plan->caps & cap)
        return TWILL_OK;
    return PLACE_FAIL(p, "touches %s of a peer without the capability for it",
                      tw_buf_name((enum tw_plan_buf)buf));
}

static enum twill_status dep_validate(const struct place *p)
{
    const struct tw_plan_step *step = p->step;
    const struct tw_plan_rank *rank = &p->plan->ranks[p->rank];
    if (step->dep_lane == TW_NO_LANE)
        return TWILL_OK;
    if (step->dep_lane >= rank->nlanes || step->dep_step >= rank->lanes[step->dep_lane].nsteps)
        return PLACE_FAIL(p, "depends on lane %u step %u, which does not exist", step->dep_lane,
                          step->dep_step);
    if (step->dep_lane == p->lane && step->dep_step >= p->index)
        return PLACE_FAIL(p, "depends on step %u of its own lane, which comes later",
                          step->dep_step);
    return TWILL_OK;
}

enum twill_status tw_step_validate(const struct tw_plan *plan, int rank, uint32_t lane,
                                   uint32_t step, struct tw_user_cut *cut)
{
    struct place p = {plan, &plan->ranks[rank].lanes[lane].steps[step], rank, lane, step};
    if (p.step->op >= TW_OP_COUNT)
        return PLACE_FAIL(&p, "operation %u does not exist", p.step->op);
    const struct tw_op_rule *rule = &tw_op_rules[p.step->op];
    if (p.step->flags & ~rule->flags)
        return PLACE_FAIL(&p, "flags 0x%x are not for this operation",
                          p.step->flags & ~rule->flags);
    if ((p.step->flags & TW_STEP_WHOLE) && p.step->dep_lane == TW_NO_LANE)
        return PLACE_FAIL(&p, "waits for a whole step without a dependency");
    enum twill_status status = dep_validate(&p);
    if (!tw_failed(status))
        status = peers_validate(&p, rule->traits);
    if (!tw_failed(status))
        status = spans_validate(&p, rule->traits, cut);
    return tw_failed(status) ? status : caps_validate(&p, rule->traits);
}
