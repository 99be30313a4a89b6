/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the order of a run: samples, fit, how good it is, file. Never knows: how each is done. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "cli.h"
#include "tune.h"

#define NOTE_BYTES 1024

static enum twill_status samples_get(const struct tune_options *options,
                                     struct sim_samples *samples)
{
    enum twill_status status = TWILL_OK;
    size_t skipped = 0;
    if (options->nsweeps == 0)
        status = tune_measure(options, samples);
    for (int i = 0; i < options->nsweeps && !tw_failed(status); i++)
        status = sim_samples_read(samples, options->sweeps[i].path, options->sweeps[i].nranks,
                                  options->column, &skipped);
    if (!tw_failed(status) && samples->count == 0)
        return tw_fail(TWILL_ERR_INVALID, "no row was measured that a plan of twill ran");
    return status;
}

/* Say how well both tables do, for all numbers of ranks and for each. */
static enum twill_status quality_note(struct sim_pool *pool, const struct sim_samples *samples,
                                      const struct tw_cost_table *before,
                                      const struct tw_cost_table *after, char note[NOTE_BYTES])
{
    bool seen[1025] = {false};
    size_t used = 0;
    for (size_t i = 0; i <= samples->count; i++) {
        int nranks = i < samples->count ? samples->at[i].nranks : 0;
        struct tune_quality old, now;
        if (seen[nranks] || used >= NOTE_BYTES - 128)
            continue;
        seen[nranks] = true;
        enum twill_status status = tune_quality_of(pool, before, samples, nranks, &old);
        if (!tw_failed(status))
            status = tune_quality_of(pool, after, samples, nranks, &now);
        if (tw_failed(status))
            return status;
        char ranks[32] = "all";
        if (nranks)
            snprintf(ranks, sizeof(ranks), "%d ranks", nranks);
        used += (size_t)snprintf(note + used, NOTE_BYTES - used,
                                 "%s: median error %.1f %% (before %.1f %%), nine tenths within "
                                 "%.1f %%\n",
                                 ranks, 100 * now.median, 100 * old.median, 100 * now.nine_tenths);
    }
    return TWILL_OK;
}

static enum twill_status table_write(const char *path, const struct tw_cost_table *table,
                                     const char *note)
{
    char *text = NULL;
    if (path)
        return tw_cost_table_save(path, table, note);
    enum twill_status status = tw_cost_table_print(table, note, &text);
    if (!tw_failed(status))
        fputs(text, stdout);
    free(text);
    return status;
}

static enum twill_status tune(const struct tune_options *options, struct sim_samples *samples,
                              struct sim_pool *pool)
{
    struct tw_cost_table before, after;
    char note[NOTE_BYTES], full[NOTE_BYTES + 128];
    enum twill_status status = sim_table_open(options->cost, &before);
    if (!tw_failed(status))
        status = samples_get(options, samples);
    after = before;
    if (!tw_failed(status))
        status = tune_fit(pool, samples, &after);
    if (!tw_failed(status))
        status = quality_note(pool, samples, &before, &after, note);
    if (tw_failed(status))
        return status;
    snprintf(full, sizeof(full), "fitted by twill-tune to %zu measured cases\n%s", samples->count,
             note);
    fputs(note, stderr);
    return table_write(options->out, &after, full);
}

static int run(int argc, char **argv)
{
    struct tune_options options;
    struct sim_samples samples = {.at = NULL};
    struct sim_pool *pool = NULL;
    tw_log_configure("error", NULL); /* what fails is said once, at the end */
    int exit = tune_options_parse(&options, argc, argv);
    if (exit != CLI_GO_ON)
        return exit;
    const struct sim_machine_options machine = {.machine = options.machine};
    enum twill_status status =
        options.cuda ? tune_device(&options) : sim_pool_create(&machine, &pool);
    if (!tw_failed(status) && !options.cuda)
        status = tune(&options, &samples, pool);
    sim_samples_free(&samples);
    sim_pool_destroy(pool);
    if (!tw_failed(status))
        return 0;
    fprintf(stderr, "twill-tune: %s\n", tw_fail_text());
    return TUNE_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    cli_streams_hold();
    return cli_output_close(run(argc, argv), TUNE_EXIT_FAILED);
}
