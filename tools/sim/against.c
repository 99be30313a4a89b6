/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what it means that a prediction is off. Never knows: how either time came about. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "sim.h"

struct comparison {
    const struct sim_options *options;
    struct sim_pool *pool;
    struct tw_cost_table table;
    struct sim_samples samples;
    double *errors; /* owned, [samples.count] */
    size_t skipped;
};

static void row_show(const struct comparison *c, size_t i, double predicted_us)
{
    const struct sim_sample *s = &c->samples.at[i];
    double off = 100 * (predicted_us / s->time_us - 1);
    if (c->options->form == SIM_JSON) {
        printf("%s\n    {\"op\": \"%s\", \"algo\": \"%s\", \"channels\": %u, \"size_bytes\": %llu, "
               "\"inplace\": %s, \"measured_us\": %.4f, \"predicted_us\": %.4f, \"off\": %.4f}",
               i ? "," : "", tw_coll_name(s->coll), s->algo->name, s->channels,
               (unsigned long long)s->size_bytes, s->in_place ? "true" : "false", s->time_us,
               predicted_us, off / 100);
    } else {
        printf("%-15s %-20s %2u %13llu %-4s %14.3f %14.3f %+9.1f\n", tw_coll_name(s->coll),
               s->algo->name, s->channels, (unsigned long long)s->size_bytes,
               s->in_place ? "in" : "out", s->time_us, predicted_us, off);
    }
}

/* Median over the rows of one collective, or of all (TW_COLL_COUNT). */
static void median_show(const struct comparison *c, enum tw_coll coll)
{
    double *errors = calloc(c->samples.count, sizeof(*errors));
    size_t count = 0;
    for (size_t i = 0; errors && i < c->samples.count; i++)
        if (coll == TW_COLL_COUNT || c->samples.at[i].coll == coll)
            errors[count++] = c->errors[i];
    if (count) {
        double median = sim_median(errors, count); /* sorts */
        double most = errors[count * 9 / 10 < count ? count * 9 / 10 : count - 1];
        const char *name = coll == TW_COLL_COUNT ? "all" : tw_coll_name(coll);
        if (c->options->form != SIM_JSON)
            printf("# %-15s median error %6.1f %%, nine tenths within %6.1f %%, %zu rows\n", name,
                   100 * median, 100 * most, count);
        else if (coll == TW_COLL_COUNT)
            printf("\n  ],\n  \"median_error\": %.4f, \"nine_tenths_within\": %.4f, \"rows\": %zu, "
                   "\"skipped\": %zu\n}\n",
                   median, most, count, c->skipped);
    }
    free(errors);
}

static enum twill_status compare(struct comparison *c)
{
    enum twill_status status = TWILL_OK;
    if (c->options->form == SIM_JSON)
        printf("{\n  \"program\": \"twill-sim\", \"ranks\": %d, \"results\": [",
               c->options->nranks);
    else
        printf("# %d ranks, column %s\n#%14s %-20s %2s %13s %-4s %14s %14s %9s\n",
               c->options->nranks, c->options->column, "op", "algo", "ch", "bytes", "plac",
               "measured us", "predicted us", "off %");
    for (size_t i = 0; i < c->samples.count && !tw_failed(status); i++) {
        uint64_t ps = 0;
        status = sim_pool_price(c->pool, &c->table, &c->samples.at[i], &ps);
        if (tw_failed(status))
            break;
        double us = (double)ps / 1e6;
        c->errors[i] = fabs(us / c->samples.at[i].time_us - 1);
        row_show(c, i, us);
    }
    for (int coll = 0; coll <= TW_COLL_COUNT && !tw_failed(status); coll++)
        median_show(c, (enum tw_coll)coll);
    if (!tw_failed(status) && c->skipped && c->options->form != SIM_JSON)
        printf("# %zu rows passed over: no plan of twill ran them\n", c->skipped);
    return status;
}

static enum twill_status samples_read(struct comparison *c)
{
    enum twill_status status = TWILL_OK;
    for (int i = 0; i < c->options->nagainst && !tw_failed(status); i++)
        status = sim_samples_read(&c->samples, c->options->against[i], c->options->nranks,
                                  c->options->column, &c->skipped);
    if (!tw_failed(status) && c->samples.count == 0)
        return tw_fail(TWILL_ERR_INVALID, "%s has no row that a plan of twill ran",
                       c->options->against[0]);
    return status;
}

int sim_against(const struct sim_options *options)
{
    struct comparison c = {.options = options};
    enum twill_status status = sim_table_open(options->cost, &c.table);
    if (!tw_failed(status))
        status = sim_pool_create(&options->machine, &c.pool);
    if (!tw_failed(status))
        status = samples_read(&c);
    if (!tw_failed(status)) {
        c.errors = calloc(c.samples.count, sizeof(*c.errors));
        status = c.errors ? compare(&c) : tw_fail(TWILL_ERR_NOMEM, "no memory for errors");
    }
    free(c.errors);
    sim_samples_free(&c.samples);
    sim_pool_destroy(c.pool);
    if (!tw_failed(status))
        return 0;
    fprintf(stderr, "twill-sim: %s\n", tw_fail_text());
    return SIM_EXIT_FAILED;
}
