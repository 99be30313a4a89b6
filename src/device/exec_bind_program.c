/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which peers and buffers the steps of this rank name, and whether they may.
 * Never knows: the order of steps. */
#include "base/status.h"
#include "device/exec_state.h"

static enum twill_status add_peer(struct tw_exec *exec, int rank, bool send)
{
    struct tw_exec_peer *peer;

    if (rank < 0 || rank >= exec->call.plan->nranks || rank == exec->call.rank) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d exchanges messages with rank %d",
                       exec->call.plan->name, exec->call.rank, rank);
    }
    if (exec->peer_of[rank] < 0) {
        exec->peer_of[rank] = (int)exec->npeers;
        exec->peers[exec->npeers++] = (struct tw_exec_peer){.rank = rank};
    }
    peer = &exec->peers[exec->peer_of[rank]];
    peer->send |= send;
    peer->recv |= !send;
    return TWILL_OK;
}

static enum twill_status check_span(struct tw_exec *exec, const struct tw_plan_span *span,
                                    size_t most)
{
    const struct tw_plan *plan = exec->call.plan;
    const uint32_t cells = tw_span_cells(span);

    if (cells == 0) {
        return TWILL_OK;
    }
    if (span->buf >= TW_BUF_COUNT || span->part >= plan->nparts) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s: a span names buffer %u, partition %u",
                       plan->name, span->buf, span->part);
    }
    if (exec->parts[span->part].unknown) {
        return tw_fail(TWILL_ERR_INVALID,
                       "plan %s: rank %d does not know the counts of partition %u", plan->name,
                       exec->call.rank, span->part);
    }
    if (exec->parts[span->part].counts != NULL &&
        tw_span_cell(span, cells - 1) / exec->parts[span->part].per >=
            exec->parts[span->part].groups) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s: cell %u is outside partition %u", plan->name,
                       tw_span_cell(span, cells - 1), span->part);
    }
    if (most > 0 && exec->base[span->buf] == NULL && tw_exec_span_most(exec, span) > 0) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d gives no %s buffer", plan->name,
                       exec->call.rank,
                       span->buf == TW_BUF_IN    ? "input"
                       : span->buf == TW_BUF_OUT ? "output"
                                                 : "scratch");
    }
    return TWILL_OK;
}

/* put, get and signal reach scratch and signal words of the peer. */
static enum twill_status check_remote(struct tw_exec *exec, const struct tw_plan_step *step)
{
    const struct tw_plan *plan = exec->call.plan;
    const uint8_t buf = step->op == TW_OP_PUT ? step->dst.buf : step->src.buf;
    const int peer = step->op == TW_OP_PUT || step->op == TW_OP_SIGNAL ? step->to : step->from;
    bool mapped;

    if (peer < 0 || peer >= plan->nranks || peer == exec->call.rank) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d reaches into rank %d", plan->name,
                       exec->call.rank, peer);
    }
    if (step->op != TW_OP_SIGNAL && buf != TW_BUF_SCRATCH && buf != TW_BUF_WIDE) {
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "plan %s: rank %d reaches into buffers of rank %d other than scratch",
                       plan->name, exec->call.rank, peer);
    }
    mapped = step->op == TW_OP_SIGNAL ? tw_chan_peer_signals(exec->chan, peer) != NULL
                                      : tw_chan_peer_scratch(exec->chan, peer) != NULL;
    return mapped ? TWILL_OK
                  : tw_fail(TWILL_ERR_UNSUPPORTED, "plan %s: rank %d cannot address rank %d",
                            plan->name, exec->call.rank, peer);
}

/* What would lead outside memory; tw_plan_validate has seen all of it in a plan that came through a
 * builder or a loader. */
static enum twill_status check_step(const struct tw_exec *exec, const struct tw_plan_step *step)
{
    const struct tw_plan *plan = exec->call.plan;
    const struct tw_exec_form *form = &tw_exec_forms[step->op];
    const uint32_t cells = tw_span_cells(form->spans & TW_BY_SRC ? &step->src : &step->dst);
    const uint32_t lanes = plan->ranks[exec->call.rank].nlanes;
    const bool takes = tw_exec_takes(form);
    const bool gives = form->to == TW_AT_SLOT;

    if ((takes && step->fifo_in >= plan->nfifos) || (gives && step->fifo_out >= plan->nfifos) ||
        ((takes || gives) && cells > tw_plan_widest(plan))) {
        return tw_fail(
            TWILL_ERR_INVALID, "plan %s: fifos %u and %u of %u, message of %u cells of at most %u",
            plan->name, step->fifo_in, step->fifo_out, plan->nfifos, cells, tw_plan_widest(plan));
    }
    if (step->dep_lane != TW_NO_LANE && step->dep_lane >= lanes) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s: a step depends on lane %u of %u", plan->name,
                       step->dep_lane, lanes);
    }
    return TWILL_OK;
}

static enum twill_status bind_step(struct tw_exec *exec, const struct tw_plan_step *step,
                                   size_t most)
{
    enum twill_status status;

    if (step->op >= TW_OP_COUNT) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s: operation %u", exec->call.plan->name, step->op);
    }
    status = check_step(exec, step);
    if (status == TWILL_OK && tw_exec_takes(&tw_exec_forms[step->op])) {
        status = add_peer(exec, step->from, false);
    }
    if (status == TWILL_OK && tw_exec_forms[step->op].to == TW_AT_SLOT) {
        status = add_peer(exec, step->to, true);
    }
    if (status == TWILL_OK && (tw_exec_reaches(step->op) || step->op == TW_OP_SIGNAL)) {
        status = check_remote(exec, step);
    }
    if (status == TWILL_OK && tw_exec_src(step) != NULL) {
        status = check_span(exec, &step->src, most);
    }
    return status == TWILL_OK && tw_exec_dst(step) != NULL ? check_span(exec, &step->dst, most)
                                                           : status;
}

enum twill_status tw_exec_bind_program(struct tw_exec *exec, size_t most)
{
    const struct tw_plan_rank *mine = &exec->call.plan->ranks[exec->call.rank];
    enum twill_status status = TWILL_OK;

    for (uint32_t l = 0; l < mine->nlanes; l++) {
        const struct tw_plan_lane *lane = &mine->lanes[l];

        for (uint32_t s = 0; s < lane->nsteps && status == TWILL_OK; s++) {
            status = bind_step(exec, &lane->steps[s], most);
        }
    }
    return status;
}
