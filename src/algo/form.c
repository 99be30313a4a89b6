/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: partitions of each collective, how steps are spelt. Never knows: any one schedule. */
#include "algo/form.h"

#include "base/status.h"

/* ---- the plan around a program -------------------------------------------------------------- */

static void job_parts(struct tw_algo_job *job, uint32_t per, bool own_scratch)
{
    const struct tw_coll_buf *in = &job->rule->in, *out = &job->rule->out;
    uint32_t nranks = (uint32_t)job->nranks;
    if (in->where == TW_NOWHERE)
        return;
    job->in_part =
        tw_build_part(&job->build, (enum tw_part_kind)in->kind, in->many ? nranks : 1, per);
    job->out_part = job->in_part;
    if (in->many != out->many || in->kind != out->kind)
        job->out_part =
            tw_build_part(&job->build, (enum tw_part_kind)out->kind, out->many ? nranks : 1, per);
    job->scratch_part = out->many ? job->out_part : job->in_part;
    if (!own_scratch)
        return;
    if (in->many || out->many)
        job->scratch_part = out->many ? job->in_part : job->out_part;
    else
        job->scratch_part = tw_build_part(&job->build, TW_PART_SHARD, 1, job->channels);
}

/* The job of a single rank: IN is OUT. */
static void program_alone(struct tw_algo_job *job, uint32_t per)
{
    if (job->rule->in.where == TW_NOWHERE)
        return;
    struct tw_plan_step copy = {
        .op = TW_OP_COPY,
        .flags = job->rule->reduces ? TW_STEP_FINAL : 0,
        .dep_lane = TW_NO_LANE,
        .from = TW_NO_RANK,
        .to = TW_NO_RANK,
        .src = tw_span_range(TW_BUF_IN, job->in_part, 0, per),
        .dst = tw_span_range(TW_BUF_OUT, job->out_part, 0, per),
    };
    tw_build_step(&job->build, 0, tw_build_lane(&job->build, 0, 0), &copy);
}

static void job_facts(struct tw_algo_job *job, const struct tw_algo_form *form)
{
    struct tw_plan *plan = job->build.plan;
    plan->depth = form->depth;
    plan->slices = form->slices;
    plan->nfifos = form->widest ? job->fifos * job->channels : 0;
    plan->widest = form->widest;
    plan->nsigs = form->nsigs * job->channels;
    plan->sig_max = form->sig_max;
    plan->caps = form->caps;
    plan->scratch_cells = form->scratch_chunks * job->channels;
    plan->wide_cells = form->wide_chunks * job->channels;
    plan->deterministic = form->deterministic;
}

enum twill_status tw_algo_form_plan(const struct tw_algo_form *form,
                                    const struct tw_algo_args *args, struct tw_plan **plan)
{
    if (!form->program)
        return tw_fail(TWILL_ERR_INVALID, "algorithm %s does not serve collective %d", form->name,
                       (int)args->coll);
    struct tw_algo_job job = {.coll = args->coll,
                              .rule = tw_coll_rule(args->coll),
                              .nranks = args->nranks,
                              .root = args->root,
                              .param = form->param,
                              .fifos = form->fifos ? form->fifos : 1,
                              .nsigs = form->nsigs};
    job.channels = args->channels < 1 ? 1 : args->channels;
    if (job.channels > TW_PLAN_FIFOS_MAX / job.fifos)
        job.channels = TW_PLAN_FIFOS_MAX / job.fifos;
    if (args->coll == TW_COLL_BARRIER || args->nranks == 1 || form->one_channel)
        job.channels = 1;
    tw_build_init(&job.build, form->name, args->coll, args->nranks, args->root, args->only_rank);
    if (tw_failed(job.build.status))
        return job.build.status;
    uint32_t per = args->nranks == 1 ? 1 : form->chunks * job.channels;
    job_parts(&job, per, form->own_scratch && args->nranks > 1);
    if (args->nranks == 1) {
        job.build.plan->deterministic = form->deterministic;
        program_alone(&job, per);
        return tw_build_finish(&job.build, plan);
    }
    job_facts(&job, form);
    int first = args->only_rank < 0 ? 0 : args->only_rank;
    int last = args->only_rank < 0 ? args->nranks - 1 : args->only_rank;
    for (int r = first; r <= last; r++)
        for (uint32_t c = 0; c < job.channels; c++)
            form->program(&job, r, (uint16_t)c);
    return tw_build_finish(&job.build, plan);
}

int tw_algo_cut(uint32_t n, uint32_t first, uint32_t stride, uint32_t count,
                struct tw_algo_piece pieces[2])
{
    uint32_t whole = (n - first + stride - 1) / stride;
    if (count <= whole) {
        pieces[0] = (struct tw_algo_piece){0, first, count};
        return 1;
    }
    pieces[0] = (struct tw_algo_piece){0, first, whole};
    pieces[1] = (struct tw_algo_piece){whole, first + whole * stride - n, count - whole};
    return 2;
}

/* ---- a lane being written ------------------------------------------------------------------- */

struct tw_algo_lane tw_algo_lane_add(struct tw_algo_job *job, int rank, uint16_t channel)
{
    return (struct tw_algo_lane){job, rank, tw_build_lane(&job->build, rank, channel), channel, 0};
}

struct tw_plan_span tw_algo_strided(const struct tw_algo_lane *lane, enum tw_plan_buf buf,
                                    uint32_t first, uint32_t stride, uint32_t count)
{
    uint32_t channels = lane->job->channels;
    uint8_t part = buf == TW_BUF_IN    ? lane->job->in_part
                   : buf == TW_BUF_OUT ? lane->job->out_part
                                       : lane->job->scratch_part;
    struct tw_plan_span span = tw_span_one(buf, part, first * channels + lane->channel);
    if (count > 1 && stride * channels == 1)
        return tw_span_range(buf, part, span.first, count);
    if (count > 1) {
        span.stride = stride * channels;
        span.nblocks = count;
    }
    return span;
}

struct tw_plan_span tw_algo_range(const struct tw_algo_lane *lane, enum tw_plan_buf buf,
                                  uint32_t first, uint32_t count)
{
    return tw_algo_strided(lane, buf, first, 1, count);
}

struct tw_plan_span tw_algo_chunk(const struct tw_algo_lane *lane, enum tw_plan_buf buf,
                                  uint32_t chunk)
{
    return tw_algo_strided(lane, buf, chunk, 1, 1);
}

static struct tw_plan_step step_of(enum tw_plan_op op, uint8_t flags, int from, int to)
{
    return (struct tw_plan_step){
        .op = (uint8_t)op, .flags = flags, .dep_lane = TW_NO_LANE, .from = from, .to = to};
}

/* Append on the lane; messages run in the lane's FIFOs. */
static uint32_t lane_step(const struct tw_algo_lane *lane, struct tw_plan_step step)
{
    bool by_fifo = step.op >= TW_OP_SEND && step.op <= TW_OP_RECV_REDUCE_SEND;
    uint16_t fifo = (uint16_t)(lane->channel * lane->job->fifos + lane->fifo);
    if (by_fifo && step.from != TW_NO_RANK)
        step.fifo_in = fifo;
    if (by_fifo && step.to != TW_NO_RANK)
        step.fifo_out = fifo;
    return tw_build_step(&lane->job->build, lane->rank, lane->lane, &step);
}

uint32_t tw_algo_copy(const struct tw_algo_lane *lane, struct tw_plan_span src,
                      struct tw_plan_span dst)
{
    struct tw_plan_step step = step_of(TW_OP_COPY, 0, TW_NO_RANK, TW_NO_RANK);
    step.src = src;
    step.dst = dst;
    return lane_step(lane, step);
}

uint32_t tw_algo_finish(const struct tw_algo_lane *lane, struct tw_plan_span src,
                        struct tw_plan_span dst)
{
    struct tw_plan_step step =
        step_of(TW_OP_COPY, TW_STEP_FINAL | TW_STEP_ROUND, TW_NO_RANK, TW_NO_RANK);
    step.src = src;
    step.dst = dst;
    return lane_step(lane, step);
}

uint32_t tw_algo_reduce(const struct tw_algo_lane *lane, struct tw_plan_span src,
                        struct tw_plan_span dst, uint8_t flags)
{
    struct tw_plan_step step = step_of(TW_OP_REDUCE, flags, TW_NO_RANK, TW_NO_RANK);
    step.src = src;
    step.dst = dst;
    return lane_step(lane, step);
}

uint32_t tw_algo_send(const struct tw_algo_lane *lane, int to, struct tw_plan_span src)
{
    return tw_algo_send_after(lane, to, src, TW_NO_LANE, 0);
}

uint32_t tw_algo_send_after(const struct tw_algo_lane *lane, int to, struct tw_plan_span src,
                            uint16_t dep_lane, uint32_t dep_step)
{
    struct tw_plan_step step = step_of(TW_OP_SEND, 0, TW_NO_RANK, to);
    step.src = src;
    step.dep_lane = dep_lane;
    step.dep_step = dep_step;
    return lane_step(lane, step);
}

uint32_t tw_algo_recv(const struct tw_algo_lane *lane, int from, struct tw_plan_span dst)
{
    struct tw_plan_step step = step_of(TW_OP_RECV, 0, from, TW_NO_RANK);
    step.dst = dst;
    return lane_step(lane, step);
}

uint32_t tw_algo_recv_reduce(const struct tw_algo_lane *lane, int from, struct tw_plan_span src,
                             struct tw_plan_span dst, uint8_t flags)
{
    struct tw_plan_step step = step_of(TW_OP_RECV_REDUCE, flags, from, TW_NO_RANK);
    step.src = src;
    step.dst = dst;
    return lane_step(lane, step);
}

uint32_t tw_algo_recv_send(const struct tw_algo_lane *lane, int from, int to,
                           struct tw_plan_span dst)
{
    struct tw_plan_step step = step_of(TW_OP_RECV_SEND, TW_STEP_STORE, from, to);
    step.dst = dst;
    return lane_step(lane, step);
}

uint32_t tw_algo_recv_reduce_send(const struct tw_algo_lane *lane, const int from_to[2],
                                  struct tw_plan_span src, struct tw_plan_span dst, uint8_t flags)
{
    struct tw_plan_step step = step_of(TW_OP_RECV_REDUCE_SEND, flags, from_to[0], from_to[1]);
    step.src = src;
    step.dst = dst;
    return lane_step(lane, step);
}

uint32_t tw_algo_put(const struct tw_algo_lane *lane, int to, struct tw_plan_span src,
                     struct tw_plan_span dst)
{
    struct tw_plan_step step = step_of(TW_OP_PUT, 0, TW_NO_RANK, to);
    step.src = src;
    step.dst = dst;
    return lane_step(lane, step);
}

uint32_t tw_algo_signal(const struct tw_algo_lane *lane, int to, uint32_t value)
{
    struct tw_plan_step step = step_of(TW_OP_SIGNAL, 0, TW_NO_RANK, to);
    step.sig = lane->channel * lane->job->nsigs + (uint32_t)lane->rank;
    step.sig_value = value;
    return lane_step(lane, step);
}

uint32_t tw_algo_wait(const struct tw_algo_lane *lane, int from, uint32_t value)
{
    struct tw_plan_step step = step_of(TW_OP_WAIT, 0, from, TW_NO_RANK);
    step.sig = lane->channel * lane->job->nsigs + (uint32_t)from;
    step.sig_value = value;
    return lane_step(lane, step);
}
