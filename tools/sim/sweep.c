/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the order of a run: plan, proof, sizes, rows. Never knows: how rows look. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "base/time.h"
#include "sim.h"

#define PROVEN_RANKS 64 /* times channels: larger plans are proven when asked for */
#define ALGOS_MOST 64
#define PLAN_BYTES_MOST ((size_t)1 << 30)

struct entry {
    const char *name;
    struct sim_job job;
};
struct run {
    const struct sim_options *options;
    struct sim_head head;
    struct sim_machine machine;
    struct tw_cost_table table;
    struct tw_plan *plan; /* owned; of a file; NULL */
    struct entry entries[ALGOS_MOST];
    size_t count;
    char proof[256];
};

/* ---- plans ---------------------------------------------------------------------------------- */

static enum twill_status plan_read(const char *path, struct tw_plan **plan)
{
    char *text = NULL;
    size_t bytes = 0;
    enum twill_status status = TWILL_OK;
    int error = tw_file_read(path, PLAN_BYTES_MOST, &text, &bytes);
    if (error == EFBIG)
        return tw_fail(TWILL_ERR_INVALID, "%s is longer than %zu bytes", path, PLAN_BYTES_MOST);
    if (error)
        return tw_fail_errno(TWILL_ERR_INVALID, error, "cannot read %s", path);
    if (tw_failed(tw_plan_parse(text, bytes, plan)))
        status = tw_fail(TWILL_ERR_INVALID, "%s: %s", path, tw_fail_text());
    free(text);
    return status;
}

static enum twill_status plan_load(struct run *run)
{
    const char *path = run->options->plan;
    enum twill_status status = plan_read(path, &run->plan);
    if (tw_failed(status))
        return status;
    run->head.coll = (enum tw_coll)run->plan->coll;
    run->head.nranks = run->plan->nranks;
    if (run->plan->only_rank >= 0 || run->plan->coll == TW_COLL_P2P)
        return tw_fail(TWILL_ERR_INVALID, "%s: plan %s is not the whole plan of a collective", path,
                       run->plan->name);
    if (run->options->nranks && run->options->nranks != run->plan->nranks)
        return tw_fail(TWILL_ERR_INVALID, "%s: plan %s is for %d ranks, not %d", path,
                       run->plan->name, run->plan->nranks, run->options->nranks);
    return TWILL_OK;
}

static enum twill_status prove(struct run *run, const struct tw_plan *plan, uint64_t *ns)
{
    const struct tw_check_options options = {.max_inplace_ranks = 4, .seed = 1};
    struct tw_check_report report;
    uint64_t start = tw_now_ns();
    enum twill_status status = tw_plan_check(plan, &options, &report);
    *ns += tw_now_ns() - start;
    if (status == TWILL_ERR_INVALID)
        return tw_fail(TWILL_ERR_INVALID, "plan %s is not a correct %s: %s", plan->name,
                       tw_coll_name(run->head.coll), report.text);
    if (tw_failed(status))
        return tw_fail(status, "plan %s cannot be proven here (--no-check prices it all the same)",
                       plan->name);
    return status;
}

static enum twill_status prove_algo(struct run *run, const struct tw_algo *algo, uint64_t *ns)
{
    const struct tw_algo_args args = {.coll = run->head.coll,
                                      .nranks = run->head.nranks,
                                      .root = run->options->root,
                                      .only_rank = -1,
                                      .channels = run->options->channels,
                                      .param = run->options->param};
    struct tw_plan *plan = NULL;
    enum twill_status status = algo->generate(&args, &plan);
    if (!tw_failed(status))
        status = prove(run, plan, ns);
    tw_plan_destroy(plan);
    return status;
}

static enum twill_status entry_add(struct run *run, const char *name, const struct tw_algo *algo)
{
    const struct sim_job_options options = {
        .algo = algo,
        .plan = run->plan,
        .coll = run->head.coll,
        .nranks = run->head.nranks,
        .root = run->options->root,
        .channels = run->options->channels,
        .param = run->options->param,
        .fifo_bytes = run->options->fifo_bytes,
    };
    struct entry *entry = &run->entries[run->count];
    entry->name = name;
    enum twill_status status = sim_job_open(&options, &run->machine, &entry->job);
    run->count += !tw_failed(status);
    return status;
}

/* ---- setting up ----------------------------------------------------------------------------- */

static bool wants_proof(const struct run *run)
{
    if (run->options->check >= 0)
        return run->options->check;
    return run->plan || (uint64_t)run->head.nranks * run->options->channels <= PROVEN_RANKS;
}

static enum twill_status algos_add(struct run *run, uint64_t *ns)
{
    const char *name = run->options->algo;
    const struct tw_algo *algo;
    enum twill_status status = TWILL_OK;
    if (name && !tw_algo_find(name, run->head.coll))
        return tw_fail(TWILL_ERR_INVALID, "no algorithm %s serves %s (twill-sim --list)", name,
                       tw_coll_name(run->head.coll));
    for (size_t i = 0; !tw_failed(status) && (algo = tw_algo_at(i)) != NULL; i++) {
        if (!(algo->colls >> run->head.coll & 1) || run->count == ALGOS_MOST ||
            (name && strcmp(name, algo->name) != 0))
            continue;
        if (wants_proof(run))
            status = prove_algo(run, algo, ns);
        if (!tw_failed(status))
            status = entry_add(run, algo->name, algo);
    }
    return status;
}

static enum twill_status plans_add(struct run *run)
{
    uint64_t ns = 0;
    enum twill_status status = TWILL_OK;
    if (run->plan && wants_proof(run))
        status = prove(run, run->plan, &ns);
    if (!tw_failed(status))
        status = run->plan ? entry_add(run, run->plan->name, NULL) : algos_add(run, &ns);
    if (wants_proof(run))
        snprintf(run->proof, sizeof(run->proof), "proven for %d ranks in %.3g ms", run->head.nranks,
                 (double)ns / 1e6);
    else if (run->plan)
        snprintf(run->proof, sizeof(run->proof), "not proven");
    else
        snprintf(run->proof, sizeof(run->proof),
                 "not proven now: %d ranks with %u channels (--check does it, whatever it takes)",
                 run->head.nranks, run->options->channels);
    run->head.proof = run->proof;
    return status;
}

static enum twill_status run_open(struct run *run)
{
    run->head.options = run->options;
    run->head.coll = run->options->coll;
    run->head.nranks = run->options->nranks;
    run->head.type_bytes = sim_type_bytes(run->options->type);
    enum twill_status status = sim_table_open(run->options->cost, &run->table);
    if (!tw_failed(status) && run->options->plan)
        status = plan_load(run);
    if (!tw_failed(status))
        status = sim_machine_open(&run->options->machine, run->head.nranks, &run->machine);
    if (tw_failed(status))
        return status;
    run->head.machine = run->machine.graph->name;
    run->head.order = run->machine.order;
    run->head.table_hash = tw_cost_table_hash(&run->table);
    return plans_add(run);
}

static void run_close(struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        sim_job_close(&run->entries[i].job);
    tw_plan_destroy(run->plan);
    if (run->machine.graph)
        sim_machine_close(&run->machine);
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* The cheapest of all at one size; of several those count for which there is room. */
static enum twill_status row_price(struct run *run, uint64_t bytes, struct sim_row *row)
{
    enum twill_status status = TWILL_OK;
    *row = (struct sim_row){
        .size = sim_size_of(run->head.coll, run->head.nranks, bytes, run->head.type_bytes)};
    for (size_t i = 0; i < run->count; i++) {
        struct tw_cost_price price;
        status = sim_job_price(&run->entries[i].job, &run->table, row->size.count,
                               run->head.type_bytes, run->options->in_place, &price);
        if (tw_failed(status) && status != TWILL_ERR_NOMEM)
            return status;
        if (tw_failed(status) || (row->algo && price.time_ps >= row->price.time_ps))
            continue;
        row->algo = run->entries[i].name;
        row->price = price;
    }
    if (!row->algo)
        return status;
    tw_cost_limit_name(&run->machine.net, &row->price, row->limit, sizeof(row->limit));
    return TWILL_OK;
}

static enum twill_status rows_show(struct run *run)
{
    const struct sim_options *options = run->options;
    enum twill_status status = TWILL_OK;
    uint64_t bytes = run->head.coll == TW_COLL_BARRIER ? 0 : options->min_bytes;
    bool first = true;
    sim_report_head(&run->head);
    do {
        struct sim_row row;
        status = row_price(run, bytes, &row);
        if (!tw_failed(status))
            sim_report_row(&run->head, &row, first);
        fflush(stdout); /* sizes of large jobs take a while each */
        first = false;
        bytes = bytes ? bytes * options->factor : options->factor;
    } while (!tw_failed(status) && run->head.coll != TW_COLL_BARRIER &&
             bytes <= options->max_bytes);
    sim_report_tail(&run->head);
    return status;
}

int sim_sweep(const struct sim_options *options)
{
    struct run *run = calloc(1, sizeof(*run));
    if (!run) {
        fputs("twill-sim: no memory\n", stderr);
        return SIM_EXIT_FAILED;
    }
    run->options = options;
    enum twill_status status = run_open(run);
    if (!tw_failed(status))
        status = rows_show(run);
    run_close(run);
    free(run);
    if (!tw_failed(status))
        return 0;
    fprintf(stderr, "twill-sim: %s\n", tw_fail_text());
    return SIM_EXIT_FAILED;
}
