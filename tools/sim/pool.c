/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which plans measured rows ran: each is linked once, on a machine of its number of ranks.
 * Never knows: files. */
#include "config.h"

#include <stdlib.h>

#include "base/status.h"
#include "sim.h"

struct pooled {
    struct sim_sample key;
    struct sim_job job;
};
struct placed {
    int nranks;
    struct sim_machine machine;
};
struct sim_pool {
    struct sim_machine_options options;
    struct placed *machines; /* owned, each machine too */
    struct pooled *jobs;     /* owned */
    size_t nmachines, njobs;
};

enum twill_status sim_pool_create(const struct sim_machine_options *machine, struct sim_pool **pool)
{
    struct sim_pool *made = calloc(1, sizeof(*made));
    if (!made)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for prices");
    made->options = *machine;
    /* jobs point at their machine's net: the list never moves */
    made->machines = calloc(SIM_FILES_MOST, sizeof(*made->machines));
    if (!made->machines) {
        free(made);
        return tw_fail(TWILL_ERR_NOMEM, "no memory for prices");
    }
    *pool = made;
    return TWILL_OK;
}

void sim_pool_destroy(struct sim_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < pool->njobs; i++)
        sim_job_close(&pool->jobs[i].job);
    for (size_t i = 0; i < pool->nmachines; i++)
        sim_machine_close(&pool->machines[i].machine);
    free(pool->jobs);
    free(pool->machines);
    free(pool);
}

static enum twill_status machine_get(struct sim_pool *pool, int nranks,
                                     const struct sim_machine **machine)
{
    size_t i = 0;
    while (i < pool->nmachines && pool->machines[i].nranks != nranks)
        i++;
    if (i == pool->nmachines) {
        if (i == SIM_FILES_MOST)
            return tw_fail(TWILL_ERR_INVALID, "more than %d numbers of ranks", SIM_FILES_MOST);
        enum twill_status status =
            sim_machine_open(&pool->options, nranks, &pool->machines[i].machine);
        if (tw_failed(status))
            return status;
        pool->machines[i].nranks = nranks;
        pool->nmachines++;
    }
    *machine = &pool->machines[i].machine;
    return TWILL_OK;
}

static bool same_plan(const struct sim_sample *a, const struct sim_sample *b)
{
    return a->coll == b->coll && a->algo == b->algo && a->nranks == b->nranks &&
           a->channels == b->channels && a->root == b->root;
}

static enum twill_status job_get(struct sim_pool *pool, const struct sim_sample *sample,
                                 const struct sim_job **job)
{
    for (size_t i = 0; i < pool->njobs; i++)
        if (same_plan(&pool->jobs[i].key, sample)) {
            *job = &pool->jobs[i].job;
            return TWILL_OK;
        }
    const struct sim_job_options options = {
        .algo = sample->algo,
        .coll = sample->coll,
        .nranks = sample->nranks,
        .root = sample->root,
        .channels = sample->channels,
    };
    const struct sim_machine *machine = NULL;
    enum twill_status status = machine_get(pool, sample->nranks, &machine);
    if (tw_failed(status))
        return status;
    struct pooled *grown = realloc(pool->jobs, (pool->njobs + 1) * sizeof(*grown));
    if (!grown)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for prices");
    pool->jobs = grown;
    grown[pool->njobs] = (struct pooled){.key = *sample};
    status = sim_job_open(&options, machine, &grown[pool->njobs].job);
    if (tw_failed(status))
        return status;
    *job = &grown[pool->njobs++].job;
    return TWILL_OK;
}

enum twill_status sim_pool_price(struct sim_pool *pool, const struct tw_cost_table *table,
                                 const struct sim_sample *sample, uint64_t *time_ps)
{
    const struct sim_job *job = NULL;
    struct tw_cost_price price = {.time_ps = 0};
    enum twill_status status = job_get(pool, sample, &job);
    if (!tw_failed(status))
        status =
            sim_job_price(job, table, sample->count, sample->type_bytes, sample->in_place, &price);
    if (!tw_failed(status))
        *time_ps = price.time_ps;
    return status;
}

static int double_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double sim_median(double *values, size_t count)
{
    qsort(values, count, sizeof(values[0]), double_order);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}
