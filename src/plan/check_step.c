/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what one slice of a step does to symbolic memory and messages. Never knows: when it runs.
 */
#include "plan/check.h"
#include "plan/validate.h"

/* One slice of a step in motion. */
struct move {
    struct tw_check *ck;
    struct tw_check_lane *lane;
    const struct tw_check_op *op;
    const struct tw_check_slot *in; /* NULL: no message comes */
    struct tw_check_slot *out;      /* NULL: none goes */
    size_t src_at, dst_at;          /* cell 0 of the slice in values */
};

static size_t slice_at(const struct move *m, int32_t rank, uint8_t buf)
{
    const struct tw_check_call *call = &m->ck->calls[m->lane->call];
    const struct tw_check_prog *prog = &m->ck->progs[call->prog];
    size_t base = call->bases[rank][buf];
    if (buf == TW_BUF_IN || buf == TW_BUF_OUT)
        return base + ((size_t)m->lane->loop * call->slices + m->lane->slice) * prog->user_stride;
    return base + (size_t)m->lane->slice * prog->scratch_stride;
}

/* The cell does not hold data of this slice in this cell's size. */
static bool fault_stale(const struct move *m, bool src, const struct tw_check_ref *ref,
                        uint32_t meta)
{
    const struct tw_check_op *op = m->op;
    int32_t rank = src ? op->src_rank : op->dst_rank;
    const char *buf = tw_buf_name((enum tw_plan_buf)(src ? op->src_buf : op->dst_buf));
    char unit[64];
    if (meta == 0)
        return tw_check_fault(m->ck, m->lane,
                              "reads %s cell %u of rank %d, which is not written yet", buf,
                              ref->cell, rank);
    tw_check_unit_text(m->ck, TW_CHECK_UNIT(meta), unit, sizeof(unit));
    if (TW_CHECK_UNIT(meta) != m->lane->unit)
        return tw_check_fault(m->ck, m->lane, "reads %s cell %u of rank %d, which holds data of %s",
                              buf, ref->cell, rank, unit);
    return tw_check_fault(m->ck, m->lane,
                          "reads %s cell %u of rank %d, which holds a cell of another size", buf,
                          ref->cell, rank);
}

static bool fault_message(const struct move *m, uint32_t i)
{
    const struct tw_check_slot *in = m->in;
    const struct tw_check_lane *from = &m->ck->lanes[in->lane];
    char unit[64];
    tw_check_unit_text(m->ck, in->unit, unit, sizeof(unit));
    if (in->unit != m->lane->unit)
        return tw_check_fault(m->ck, m->lane, "message from rank %d lane %u step %u is of %s",
                              from->rank, from->index, in->step, unit);
    if (m->op->ncells != TW_CHECK_NONE && in->ncells != m->op->ncells)
        return tw_check_fault(
            m->ck, m->lane, "message from rank %d lane %u step %u has %u cells where %u are wanted",
            from->rank, from->index, in->step, in->ncells, m->op->ncells);
    if (m->op->in_width != TW_WIDTH_ANY && in->wide != (m->op->in_width == TW_WIDTH_WIDE))
        return tw_check_fault(m->ck, m->lane, "message from rank %d lane %u step %u is %s",
                              from->rank, from->index, in->step, in->wide ? "wide" : "not wide");
    return tw_check_fault(m->ck, m->lane,
                          "cell %u of the message from rank %d lane %u step %u is of another size",
                          i, from->rank, from->index, in->step);
}

static bool touch(const struct move *m, bool src, uint32_t cell, bool write)
{
    const struct tw_check_op *op = m->op;
    struct tw_check_touch touch = {.lane = m->lane,
                                   .op = op,
                                   .rank = src ? op->src_rank : op->dst_rank,
                                   .buf = src ? op->src_buf : op->dst_buf,
                                   .write = write,
                                   .cell = cell,
                                   .loc = (src ? m->src_at : m->dst_at) + cell};
    return tw_check_touch(m->ck, &touch);
}

static bool cell_read(const struct move *m, bool src, uint32_t i, struct tw_check_value *value)
{
    const struct tw_check_ref *ref = &m->ck->refs[(src ? m->op->src : m->op->dst) + i];
    if (m->ck->clocks && !touch(m, src, ref->cell, false))
        return false;
    *value = m->ck->values[(src ? m->src_at : m->dst_at) + ref->cell];
    return value->meta == (m->lane->unit | ref->key) ? true : fault_stale(m, src, ref, value->meta);
}

static bool cell_message(const struct move *m, uint32_t i, struct tw_check_value *value)
{
    *value = m->in->values[i];
    uint32_t ref = m->op->dst != TW_CHECK_NONE ? m->op->dst : m->op->src;
    if (ref == TW_CHECK_NONE)
        return true;
    return value->meta == (m->lane->unit | m->ck->refs[ref + i].key) ? true : fault_message(m, i);
}

/* value (+) local, finished and rounded as the step says. */
static bool cell_compute(const struct move *m, struct tw_check_value local,
                         struct tw_check_value *value)
{
    struct tw_exprs *exprs = &m->ck->exprs;
    uint32_t traits = m->op->traits, id = value->expr;
    if (traits & TW_DO_OP) {
        bool right = traits & TW_DO_RIGHT;
        id = tw_expr_make(exprs, TW_EXPR_OP, right ? id : local.expr, right ? local.expr : id);
        if (id && (traits & TW_DO_ROUND_OP))
            id = tw_expr_round(exprs, id);
    }
    if (id && (traits & TW_DO_FINAL))
        id = tw_expr_make(exprs, TW_EXPR_FINAL, id, 0);
    if (id && (traits & TW_DO_ROUND_END))
        id = tw_expr_round(exprs, id);
    value->expr = id;
    return id ? true : tw_check_nomem(m->ck);
}

static bool cell_move(const struct move *m, uint32_t i)
{
    uint32_t traits = m->op->traits;
    struct tw_check_value value = {0}, local = {0};
    if ((traits & TW_DO_SRC) && !cell_read(m, true, i, &value))
        return false;
    if (m->in) {
        local = value;
        if (!cell_message(m, i, &value))
            return false;
    }
    if ((traits & TW_DO_DST_READ) && !cell_read(m, false, i, &local))
        return false;
    if ((traits & (TW_DO_OP | TW_DO_FINAL | TW_DO_ROUND_END)) && !cell_compute(m, local, &value))
        return false;
    if (m->out)
        m->out->values[i] = value;
    if (!(traits & TW_DO_DST_WRITE))
        return true;
    uint32_t cell = m->ck->refs[m->op->dst + i].cell;
    m->ck->values[m->dst_at + cell] = value;
    return !m->ck->clocks || touch(m, false, cell, true);
}

static bool move(struct move *m)
{
    const struct tw_check_op *op = m->op;
    uint32_t cells = op->ncells == TW_CHECK_NONE && m->in ? m->in->ncells : op->ncells;
    if (m->in && (m->in->unit != m->lane->unit || m->in->ncells != cells ||
                  (op->in_width != TW_WIDTH_ANY && m->in->wide != (op->in_width == TW_WIDTH_WIDE))))
        return fault_message(m, 0);
    if (op->src != TW_CHECK_NONE)
        m->src_at = slice_at(m, op->src_rank, op->src_buf);
    if (op->dst != TW_CHECK_NONE)
        m->dst_at = slice_at(m, op->dst_rank, op->dst_buf);
    if (m->out) {
        m->out->ncells = cells;
        m->out->wide =
            op->out_width == TW_WIDTH_ANY ? m->in && m->in->wide : op->out_width == TW_WIDTH_WIDE;
    }
    for (uint32_t i = 0; i < cells; i++)
        if (!cell_move(m, i))
            return false;
    return true;
}

static struct tw_check_slot *slot_at(const struct tw_check *ck, const struct tw_check_fifo *fifo,
                                     uint32_t message)
{
    return &fifo->slots[message % ck->progs[fifo->prog].plan->depth];
}

bool tw_check_step(struct tw_check *ck, struct tw_check_lane *lane, const struct tw_check_op *op)
{
    struct move m = {.ck = ck, .lane = lane, .op = op};
    struct tw_check_fifo *in = op->fifo_in == TW_CHECK_NONE ? NULL : &ck->fifos[op->fifo_in];
    struct tw_check_fifo *out = op->fifo_out == TW_CHECK_NONE ? NULL : &ck->fifos[op->fifo_out];
    if (in)
        m.in = slot_at(ck, in, in->popped);
    if (out) {
        out->prog = lane->prog;
        m.out = slot_at(ck, out, out->pushed);
        m.out->lane = (uint32_t)(lane - ck->lanes);
        m.out->step = lane->step;
        m.out->unit = lane->unit;
    }
    if (ck->clocks && !tw_check_clock_enter(ck, lane, op, m.in))
        return false;
    if (!move(&m))
        return false;
    if (ck->clocks && !tw_check_clock_leave(ck, lane, op, m.out))
        return false;
    if (in) {
        in->popped++;
        if (in->writer != TW_CHECK_NONE)
            tw_check_wake(ck, in->writer);
        in->writer = TW_CHECK_NONE;
    }
    if (out) {
        out->pushed++;
        if (out->reader != TW_CHECK_NONE)
            tw_check_wake(ck, out->reader);
        out->reader = TW_CHECK_NONE;
    }
    return true;
}
