/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a plan is made ready for pricing, sizes as twill-perf counts them.
 * Never knows: files, options, how prices are shown. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/exec.h"
#include "sim.h"

#define WHOLE_RANKS 64                  /* up to here a plan is generated whole */
#define FIFO_MOST ((uint64_t)256 << 10) /* as a communicator takes them from TWILL_STAGING=32M */
#define FIFO_LEAST 1024u
#define FIFO_ALL ((uint64_t)2 << 20)
#define SCRATCH_BYTES ((size_t)256 << 10)
#define GPU_FIFO_BYTES ((uint64_t)4 << 20) /* a device's staging is not scarce */
#define GPU_SCRATCH_BYTES ((size_t)64 << 20)

static uint64_t fifo_bytes_of(int nranks, bool gpus)
{
    uint64_t bytes = gpus ? GPU_FIFO_BYTES : FIFO_MOST;
    if (gpus)
        return bytes;
    while (bytes > FIFO_LEAST && bytes * (uint64_t)(nranks - 1) > FIFO_ALL)
        bytes /= 2;
    return bytes;
}

static enum twill_status rank_add(const struct sim_job_options *options,
                                  const struct sim_machine *machine, int rank, struct sim_job *job)
{
    const struct tw_algo_args args = {.coll = options->coll,
                                      .nranks = options->nranks,
                                      .root = options->root,
                                      .only_rank = rank,
                                      .channels = options->channels,
                                      .param = options->param};
    struct tw_plan *plan = NULL;
    enum twill_status status = options->algo->generate(&args, &plan);
    if (!tw_failed(status) && !job->prog)
        status = tw_cost_prog_create(plan, &machine->net, &job->prog);
    if (!tw_failed(status))
        status = tw_cost_prog_add(job->prog, plan);
    if (!job->facts && !tw_failed(status))
        job->facts = plan;
    else
        tw_plan_destroy(plan);
    return status;
}

static enum twill_status plan_add(const struct sim_job_options *options,
                                  const struct sim_machine *machine, struct sim_job *job)
{
    job->facts = tw_plan_copy(options->plan);
    if (!job->facts)
        return TWILL_ERR_NOMEM;
    enum twill_status status = tw_cost_prog_create(options->plan, &machine->net, &job->prog);
    return tw_failed(status) ? status : tw_cost_prog_add(job->prog, options->plan);
}

enum twill_status sim_job_open(const struct sim_job_options *options,
                               const struct sim_machine *machine, struct sim_job *job)
{
    struct sim_job made = {.fifo_bytes = options->fifo_bytes
                                             ? options->fifo_bytes
                                             : fifo_bytes_of(options->nranks, machine->gpus),
                           .scratch_bytes = machine->gpus ? GPU_SCRATCH_BYTES : SCRATCH_BYTES};
    enum twill_status status = TWILL_OK;
    if (options->plan)
        status = plan_add(options, machine, &made);
    else if (options->nranks <= WHOLE_RANKS)
        status = rank_add(options, machine, -1, &made);
    else
        for (int r = 0; r < options->nranks && !tw_failed(status); r++)
            status = rank_add(options, machine, r, &made);
    if (tw_failed(status))
        sim_job_close(&made);
    else
        *job = made;
    return status;
}

void sim_job_close(struct sim_job *job)
{
    tw_cost_prog_destroy(job->prog);
    tw_plan_destroy(job->facts);
    *job = (struct sim_job){.prog = NULL};
}

enum twill_status sim_job_price(const struct sim_job *job, const struct tw_cost_table *table,
                                uint64_t count, uint32_t type_bytes, bool in_place,
                                struct tw_cost_price *price)
{
    struct tw_cost_call call = {.count = count, .type_bytes = type_bytes, .in_place = in_place};
    struct tw_exec_shape shape;
    enum twill_status status =
        tw_exec_shape(job->facts, count, type_bytes, job->fifo_bytes, job->scratch_bytes, &shape);
    if (tw_failed(status))
        return status;
    call.shape = (struct tw_cost_shape){shape.slice_elems, shape.slices, shape.loops};
    return tw_cost_prog_price(job->prog, table, &call, price);
}

/* ---- sizes and names ------------------------------------------------------------------------ */

static bool has_groups(enum tw_coll coll)
{
    return tw_coll_rule(coll)->in.many || tw_coll_rule(coll)->out.many;
}

struct sim_size sim_size_of(enum tw_coll coll, int nranks, uint64_t bytes, uint32_t type_bytes)
{
    uint64_t groups = has_groups(coll) ? (uint64_t)nranks : 1;
    uint64_t count = coll == TW_COLL_BARRIER ? 0 : bytes / type_bytes / groups;
    return (struct sim_size){count, count * type_bytes * groups};
}

double sim_bus_factor(enum tw_coll coll, int nranks)
{
    double rest = (double)(nranks - 1) / nranks;
    if (coll == TW_COLL_ALL_REDUCE)
        return 2 * rest;
    return has_groups(coll) ? rest : 1;
}

enum tw_coll sim_coll_find(const char *name)
{
    for (int c = 0; c < TW_COLL_COUNT; c++)
        if (c != TW_COLL_P2P && strcmp(name, tw_coll_name((enum tw_coll)c)) == 0)
            return (enum tw_coll)c;
    return TW_COLL_COUNT;
}

uint32_t sim_type_bytes(const char *name)
{
    static const struct {
        const char *other, *name;
    } others[] = {{"float", "float32"},
                  {"double", "float64"},
                  {"half", "float16"},
                  {"f8e4m3", "float8e4m3"},
                  {"f8e5m2", "float8e5m2"}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(name, others[i].other) == 0)
            name = others[i].name;
    for (int type = 0; tw_type_name((twill_type_t)type); type++)
        if (strcmp(name, tw_type_name((twill_type_t)type)) == 0)
            return (uint32_t)tw_type_bytes((twill_type_t)type);
    return 0;
}
