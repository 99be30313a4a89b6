/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a plan's cells and buffers become this call's. Never knows: steps. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "device/exec_state.h"

/* ---- kernels -------------------------------------------------------------------------------- */

/* The scalar is what its memory holds now that the call runs. */
static enum twill_status bind_scalar(struct tw_exec *exec)
{
    const struct tw_exec_call *call = &exec->call;

    if (call->scalar == NULL) {
        return tw_fail(TWILL_ERR_INVALID, "%s of %s has no scalar", tw_redop_name(call->op),
                       tw_type_name(call->type));
    }
    memcpy(&exec->math.scalar, call->scalar, exec->math.bytes);
    exec->math.scale = tw_scale_find(call->type, exec->isa);
    return TWILL_OK;
}

/* Served or not is decided by collective, type and op alone: all ranks decide alike. */
static enum twill_status bind_math(struct tw_exec *exec)
{
    const struct tw_exec_call *call = &exec->call;
    const twill_type_t wide = tw_wide_type(call->type);
    struct tw_exec_math *math = &exec->math;

    *math = (struct tw_exec_math){.bytes = (uint32_t)tw_type_bytes(call->type),
                                  .wide_bytes = (uint32_t)tw_type_bytes(wide),
                                  .widen = tw_widen_find(call->type, exec->isa),
                                  .round = tw_round_find(call->type, exec->isa),
                                  .nranks = call->plan->nranks};
    if (math->bytes == 0) {
        return tw_fail(TWILL_ERR_UNSUPPORTED, "type %d is not known", (int)call->type);
    }
    if (!tw_coll_rule((enum tw_coll)call->plan->coll)->reduces) {
        return TWILL_OK;
    }
    for (int form = 0; form < TW_FORM_COUNT; form++) {
        math->reduce[form] =
            tw_reduce_form_find(call->type, call->op, (enum tw_reduce_form)form, exec->isa);
    }
    if (math->reduce[TW_FORM_PLAIN] == NULL) {
        const char *op = tw_redop_name(call->op);

        return tw_fail(TWILL_ERR_UNSUPPORTED, "%s of %s is not served",
                       op != NULL ? op : "an unknown operation", tw_type_name(call->type));
    }
    if (call->op == TWILL_AVG) {
        math->divide = tw_divide_find(call->type, exec->isa);
        math->wide_divide = tw_divide_find(wide, exec->isa);
    }
    return call->op == TW_REDOP_PREMUL_SUM ? bind_scalar(exec) : TWILL_OK;
}

/* ---- partitions ----------------------------------------------------------------------------- */

/* Where groups begin when they are packed. */
static void pack_displs(struct tw_exec *exec, struct tw_exec_part *part, size_t *used)
{
    size_t *displs = exec->displs + *used;
    size_t at = 0;

    for (uint32_t g = 0; g < part->groups; g++) {
        displs[g] = at;
        at += part->counts[g];
    }
    part->displs = displs;
    *used += part->groups;
}

static bool has_counts(uint8_t kind)
{
    return kind == TW_PART_PER_RANK || kind == TW_PART_PAIR_SEND || kind == TW_PART_PAIR_RECV;
}

static enum twill_status displs_fit(struct tw_exec *exec)
{
    const struct tw_plan *plan = exec->call.plan;
    size_t need = 0;

    for (uint32_t p = 0; p < plan->nparts; p++) {
        need += has_counts(plan->parts[p].kind) ? plan->parts[p].groups : 0;
    }
    if (need > exec->displs_cap) {
        size_t *grown = realloc(exec->displs, need * sizeof(*grown));

        if (grown == NULL) {
            return tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for %zu displacements", plan->name,
                           need);
        }
        exec->displs = grown;
        exec->displs_cap = need;
    }
    return TWILL_OK;
}

/* The call's counts for a partition: those of the buffer that the collective cuts so. */
static const struct tw_exec_counts *counts_of(const struct tw_exec_call *call, uint8_t kind)
{
    const struct tw_coll_rule *rule = tw_coll_rule((enum tw_coll)call->plan->coll);

    return rule->in.kind == kind ? &call->in_counts : &call->out_counts;
}

/* A partition of counts of their own; *most: of any group. */
static enum twill_status bind_counts(struct tw_exec *exec, uint32_t p, size_t *used, size_t *most)
{
    const struct tw_exec_call *call = &exec->call;
    const struct tw_plan *plan = call->plan;
    const struct tw_coll_rule *rule = tw_coll_rule((enum tw_coll)plan->coll);
    const struct tw_exec_counts *from = counts_of(call, plan->parts[p].kind);
    struct tw_exec_part *part = &exec->parts[p];

    if (from->counts == NULL) {
        part->unknown = true;
        return rule->some && rule->rooted && call->rank != plan->root
                   ? TWILL_OK
                   : tw_fail(TWILL_ERR_INVALID, "plan %s: partition %u has no counts", plan->name,
                             p);
    }
    if (part->groups > (uint32_t)plan->nranks) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s: partition %u has %u groups for %d ranks",
                       plan->name, p, part->groups, plan->nranks);
    }
    part->counts = from->counts;
    part->displs = from->displs;
    if (part->displs == NULL) {
        pack_displs(exec, part, used);
    }
    for (uint32_t g = 0; g < part->groups; g++) {
        *most = part->counts[g] > *most ? part->counts[g] : *most;
    }
    if (plan->parts[p].kind == TW_PART_PER_RANK && part->groups > (uint32_t)call->rank &&
        part->counts[call->rank] != call->count) {
        return tw_fail(TWILL_ERR_INVALID,
                       "plan %s: rank %d has %zu elements, where the counts say %zu", plan->name,
                       call->rank, call->count, part->counts[call->rank]);
    }
    return TWILL_OK;
}

static enum twill_status bind_part(struct tw_exec *exec, uint32_t p, size_t *used, size_t *most)
{
    const struct tw_exec_call *call = &exec->call;
    const struct tw_plan_part *from = &call->plan->parts[p];
    struct tw_exec_part *part = &exec->parts[p];
    enum twill_status status = TWILL_OK;
    uint32_t cells = from->per;
    size_t count = 0;

    *part = (struct tw_exec_part){.groups = from->groups, .per = from->per};
    if (from->kind == TW_PART_RUNTIME) {
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "plan %s: partitions filled at run time are not served", call->plan->name);
    }
    if (has_counts(from->kind)) {
        status = bind_counts(exec, p, used, &count);
    } else {
        if (from->kind == TW_PART_SHARD) {
            cells *= (uint32_t)call->plan->nranks;
            part->shift = (uint32_t)call->rank * from->per;
        }
        count = call->count;
        part->count = count;
        part->each = cells == 1 ? count : count / cells;
        part->rest = cells == 1 ? 0 : count % cells;
    }
    count = count / cells + (count % cells != 0);
    *most = count > *most ? count : *most;
    return status;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* SCRATCH and behind it WIDE, in memory that peers address where the plan puts or gets. */
static enum twill_status bind_memory(struct tw_exec *exec)
{
    const struct tw_exec_call *call = &exec->call;
    const struct tw_plan *plan = call->plan;
    const bool remote = plan->caps & TW_CAP_PUT_SCRATCH;
    const size_t bytes = tw_exec_scratch_for(exec, plan);
    const size_t half = bytes / plan->parity / TW_LINE_BYTES * TW_LINE_BYTES;
    char *scratch = remote ? tw_chan_scratch(exec->chan) : exec->scratch;

    exec->room_bytes = tw_exec_room_bytes(&exec->shape, exec->math.bytes);
    exec->wide_room_bytes = tw_exec_room_bytes(&exec->shape, exec->math.wide_bytes);
    exec->wide_at = plan->scratch_cells * exec->room_bytes;
    exec->scratch_half = remote ? call->call_index % plan->parity * half : 0;
    if (scratch == NULL && (plan->scratch_cells > 0 || plan->wide_cells > 0)) {
        return tw_fail(TWILL_ERR_UNSUPPORTED, "plan %s needs scratch%s", plan->name,
                       remote ? " that peers address" : "");
    }
    exec->base[TW_BUF_IN] = (char *)(uintptr_t)call->in; /* never written: plans do not */
    exec->base[TW_BUF_OUT] = call->out;
    exec->base[TW_BUF_SCRATCH] = scratch == NULL ? NULL : scratch + exec->scratch_half;
    exec->base[TW_BUF_WIDE] = exec->base[TW_BUF_SCRATCH];
    return TWILL_OK;
}

static enum twill_status check_caps(const struct tw_exec *exec)
{
    const struct tw_plan *plan = exec->call.plan;

    if (plan->only_rank >= 0 && plan->only_rank != exec->call.rank) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s has no program of rank %d", plan->name,
                       exec->call.rank);
    }
    if (plan->caps & TW_CAP_PEER_BUFFERS) {
        return tw_fail(TWILL_ERR_UNSUPPORTED, "plan %s needs ranks to address others' buffers",
                       plan->name);
    }
    if (plan->nsigs > 0 &&
        (exec->signal_base == NULL || tw_exec_has_pairs(plan) ||
         (uint64_t)plan->nsigs * plan->slices > tw_chan_signal_count(exec->chan))) {
        return tw_fail(TWILL_ERR_UNSUPPORTED, "plan %s needs %u signals of %u words, there are %u",
                       plan->name, plan->nsigs, plan->slices,
                       exec->signal_base == NULL ? 0 : tw_chan_signal_count(exec->chan));
    }
    return TWILL_OK;
}

enum twill_status tw_exec_bind(struct tw_exec *exec)
{
    const struct tw_plan *plan = exec->call.plan;
    enum twill_status status = check_caps(exec);
    size_t most = 0, used = 0;

    if (status == TWILL_OK) {
        status = bind_math(exec);
    }
    if (status == TWILL_OK) {
        status = displs_fit(exec);
    }
    for (uint32_t p = 0; p < plan->nparts && status == TWILL_OK; p++) {
        status = bind_part(exec, p, &used, &most);
    }
    if (status == TWILL_OK) {
        tw_exec_limits_find(plan, exec->math.bytes, tw_chan_fifo_size(exec->chan),
                            tw_exec_scratch_for(exec, plan), &exec->limits);
        status = tw_exec_cut(plan, &exec->limits, most, &exec->shape);
    }
    if (status == TWILL_OK) {
        status = bind_memory(exec);
    }
    exec->pairs = tw_exec_has_pairs(plan);
    exec->npeers = 0;
    exec->peers_laid = 0;
    for (int r = 0; r < plan->nranks; r++) {
        exec->peer_of[r] = -1;
    }
    return status == TWILL_OK ? tw_exec_bind_program(exec, most) : status;
}

enum twill_status tw_exec_lay(struct tw_exec *exec)
{
    const struct tw_plan *plan = exec->call.plan;
    const uint32_t depth = tw_exec_depth(plan);

    for (; exec->peers_laid < exec->npeers; exec->peers_laid++) {
        const struct tw_exec_peer *peer = &exec->peers[exec->peers_laid];

        if (peer->send) {
            const enum twill_status status =
                tw_chan_layout_send(exec->chan, peer->rank, plan->nfifos, depth);

            if (status != TWILL_OK) {
                return status;
            }
        }
    }
    return TWILL_OK;
}
