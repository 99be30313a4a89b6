/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a plan and a call of it are told to the kernels that run any plan.
 * Never knows: CUDA, whose memory it is. */
#include "device/exec_gpu.h"

#include <string.h>

#include "base/status.h"
#include "device/exec_state.h"

_Static_assert((int)TW_GK_AT_SRC == TW_AT_SRC && (int)TW_GK_AT_DST == TW_AT_DST &&
                   (int)TW_GK_AT_PEER_SRC == TW_AT_PEER_SRC &&
                   (int)TW_GK_AT_PEER_DST == TW_AT_PEER_DST &&
                   (int)TW_GK_AT_MESSAGE == TW_AT_MESSAGE && (int)TW_GK_AT_SLOT == TW_AT_SLOT,
               "kernels know places by these numbers");
_Static_assert((int)TW_GK_STEP_STORE == TW_STEP_STORE &&
                   (int)TW_GK_STEP_ACC_RIGHT == TW_STEP_ACC_RIGHT &&
                   (int)TW_GK_STEP_FINAL == TW_STEP_FINAL &&
                   (int)TW_GK_STEP_ROUND == TW_STEP_ROUND &&
                   (int)TW_GK_STEP_WHOLE == TW_STEP_WHOLE && TW_GK_NO_LANE == TW_NO_LANE,
               "kernels know flags by these numbers");
_Static_assert((int)TW_GK_BUF_IN == TW_BUF_IN && (int)TW_GK_BUF_OUT == TW_BUF_OUT &&
                   (int)TW_GK_BUF_SCRATCH == TW_BUF_SCRATCH && (int)TW_GK_BUF_WIDE == TW_BUF_WIDE,
               "kernels know buffers by these numbers");
_Static_assert(TW_GK_PLAN_FIFOS >= TW_PLAN_FIFOS_MAX && TW_GK_PLAN_PARTS >= TW_PLAN_PARTS_MAX,
               "kernels have room for what any plan has");

/* ---- the program -------------------------------------------------------------------------------
 */

/* Bytes from the start of the image to its parts. */
struct cut {
    size_t lane, step, done, loops, sent, taken, all;
};

static size_t up(size_t bytes) { return (bytes + 15) / 16 * 16; }

static struct cut cut_of(const struct tw_plan *plan, int rank)
{
    const struct tw_plan_rank *mine = &plan->ranks[rank];
    const size_t words = (size_t)plan->nranks * TW_GK_PLAN_FIFOS * sizeof(uint64_t);
    size_t steps = 0;
    struct cut cut;

    for (uint32_t l = 0; l < mine->nlanes; l++) {
        steps += mine->lanes[l].nsteps;
    }
    cut.lane = up(sizeof(struct tw_gk_program));
    cut.step = cut.lane + up(mine->nlanes * sizeof(struct tw_gk_lane));
    cut.done = cut.step + up(steps * sizeof(struct tw_gk_step));
    cut.loops = cut.done + up(mine->nlanes * sizeof(uint64_t));
    cut.sent = cut.loops + up(mine->nlanes * sizeof(uint32_t));
    cut.taken = cut.sent + up(words);
    cut.all = cut.taken + up(words);
    return cut;
}

size_t tw_exec_gpu_bytes(const struct tw_plan *plan, int rank) { return cut_of(plan, rank).all; }

static struct tw_gk_span span_of(const struct tw_plan_span *span)
{
    if (span == NULL || tw_span_cells(span) == 0) {
        return (struct tw_gk_span){.cells = 0};
    }
    return (struct tw_gk_span){.buf = span->buf,
                               .part = span->part,
                               .first = span->first,
                               .block = span->block,
                               .stride = span->stride,
                               .cells = tw_span_cells(span)};
}

static struct tw_gk_step step_of(const struct tw_plan_step *step)
{
    const struct tw_exec_form *form = &tw_exec_forms[step->op];

    return (struct tw_gk_step){
        .kind = step->op == TW_OP_SIGNAL ? TW_GK_STEP_SIGNAL
                : step->op == TW_OP_WAIT ? TW_GK_STEP_WAIT
                                         : TW_GK_STEP_DATA,
        .local = form->local,
        .other = form->other,
        .to = form->to,
        .flags = step->flags,
        .relays = step->op == TW_OP_RECV_SEND,
        .dep_lane = step->dep_lane,
        .dep_step = step->dep_step,
        .from = step->from,
        .to_rank = step->to,
        .fifo_in = step->fifo_in,
        .fifo_out = step->fifo_out,
        .src = span_of(tw_exec_src(step)),
        .dst = span_of(tw_exec_dst(step)),
        .sig = step->sig,
        .sig_value = step->sig_value,
    };
}

void tw_exec_gpu_program(const struct tw_plan *plan, int rank, uint64_t at, void *image)
{
    const struct tw_plan_rank *mine = &plan->ranks[rank];
    const struct cut cut = cut_of(plan, rank);
    struct tw_gk_program *program = image;
    struct tw_gk_lane *lanes = (struct tw_gk_lane *)((char *)image + cut.lane);
    struct tw_gk_step *steps = (struct tw_gk_step *)((char *)image + cut.step);
    uint32_t first = 0;

    memset(image, 0, cut.all);
    program->lanes = mine->nlanes;
    program->lane = (const struct tw_gk_lane *)(uintptr_t)(at + cut.lane);
    program->step = (const struct tw_gk_step *)(uintptr_t)(at + cut.step);
    program->done = (uint64_t *)(uintptr_t)(at + cut.done);
    program->loops = (uint32_t *)(uintptr_t)(at + cut.loops);
    program->sent = (uint64_t *)(uintptr_t)(at + cut.sent);
    program->taken = (uint64_t *)(uintptr_t)(at + cut.taken);
    for (uint32_t l = 0; l < mine->nlanes; l++) {
        lanes[l] = (struct tw_gk_lane){first, mine->lanes[l].nsteps};
        for (uint32_t s = 0; s < mine->lanes[l].nsteps; s++) {
            steps[first++] = step_of(&mine->lanes[l].steps[s]);
        }
    }
}

/* ---- a call ------------------------------------------------------------------------------------
 */

static struct tw_gk_part part_of(const struct tw_exec *exec, uint32_t p)
{
    const struct tw_exec_part *part = &exec->parts[p];
    const struct tw_coll_rule *rule = tw_coll_rule((enum tw_coll)exec->call.plan->coll);
    const bool in = rule->in.kind == exec->call.plan->parts[p].kind;

    return (struct tw_gk_part){.per = part->per,
                               .count = part->count,
                               .each = part->each,
                               .rest = part->rest,
                               .shift = part->shift,
                               .counted = part->counts == NULL ? 0
                                          : in                 ? 1
                                                               : 2};
}

/* Slices of a lane, and what signals come to, are counted in 32 bits. */
static enum twill_status counts_check(const struct tw_exec *exec)
{
    const struct tw_plan *plan = exec->call.plan;
    const struct tw_plan_rank *mine = &plan->ranks[exec->call.rank];
    uint64_t most = plan->sig_max;

    for (uint32_t l = 0; l < mine->nlanes; l++) {
        const uint64_t slices = (uint64_t)mine->lanes[l].nsteps * exec->shape.slices;

        most = slices > most ? slices : most;
    }
    if (most == 0 || exec->shape.loops < UINT32_MAX / most) {
        return TWILL_OK;
    }
    return tw_fail(TWILL_ERR_UNSUPPORTED,
                   "plan %s: %llu loops of %llu slices are more than a kernel counts", plan->name,
                   (unsigned long long)exec->shape.loops, (unsigned long long)most);
}

/* What FIFOs and scratch of the chan gave room for has room in the rank's memory too. */
static enum twill_status memory_check(const struct tw_exec *exec, const struct tw_gk_layout *layout,
                                      uint32_t stride)
{
    const struct tw_plan *plan = exec->call.plan;
    const size_t message_bytes = plan->wide_cells > 0 ? exec->math.wide_bytes : exec->math.bytes;
    const uint64_t slot = exec->shape.slice_elems * message_bytes * tw_plan_widest(plan);
    const uint64_t scratch = exec->wide_at + plan->wide_cells * exec->wide_room_bytes;

    if (plan->nfifos > 0 && stride < TW_GK_PLAN_HEAD + slot) {
        return tw_fail(TWILL_ERR_NOMEM, "plan %s: slots of %u bytes for messages of %llu",
                       plan->name, stride, (unsigned long long)slot);
    }
    if (scratch > layout->plan_scratch ||
        (uint64_t)plan->nsigs * plan->slices >
            (uint64_t)TW_GK_PLAN_SIGNALS * (uint32_t)plan->nranks) {
        return tw_fail(TWILL_ERR_NOMEM, "plan %s: %llu bytes of scratch, %u signals of %u words",
                       plan->name, (unsigned long long)scratch, plan->nsigs, plan->slices);
    }
    return TWILL_OK;
}

enum twill_status tw_exec_gpu_bind(struct tw_exec *exec, const struct tw_exec_call *call,
                                   const struct tw_gk_layout *layout, struct tw_gk_plan *out)
{
    const struct tw_plan *plan = call->plan;
    enum twill_status status = tw_exec_grow(exec, plan, plan->ranks[call->rank].nlanes);
    uint32_t stride = 0;

    exec->call = *call;
    if (!tw_failed(status)) {
        status = tw_exec_bind(exec);
    }
    if (!tw_failed(status)) {
        status = counts_check(exec);
    }
    if (!tw_failed(status) && plan->nfifos > 0) {
        stride = layout->plan_fifo_each / (plan->nfifos * tw_exec_depth(plan)) / 16 * 16;
    }
    if (!tw_failed(status)) {
        status = memory_check(exec, layout, stride);
    }
    if (tw_failed(status)) {
        return status;
    }
    *out = (struct tw_gk_plan){.slice_elems = exec->shape.slice_elems,
                               .loops = exec->shape.loops,
                               .slices = exec->shape.slices,
                               .depth = tw_exec_depth(plan),
                               .stride = stride,
                               .room_bytes = exec->room_bytes,
                               .wide_room_bytes = exec->wide_room_bytes,
                               .wide_at = exec->wide_at,
                               .sig_max = plan->sig_max,
                               .sits_out = exec->pairs,
                               .widens = plan->wide_cells > 0};
    for (uint32_t p = 0; p < plan->nparts; p++) {
        out->parts[p] = part_of(exec, p);
    }
    return TWILL_OK;
}
