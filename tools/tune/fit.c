/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a cost table comes nearer to measured times. Never knows: how they were measured. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tune.h"

#define ROUNDS 40
#define NUDGE 1.05      /* factor by which a row is moved for its gradient */
#define NUDGE_LEAST 100 /* and the least that a value has then, so that the move is seen */
#define STEP_MOST 0.7   /* of a logarithm, in one round */
#define HUBER 0.3       /* from here on an error counts by its absolute value */
#define PRIOR 0.05      /* a row is held where it was as by so much of a sample */
#define GAIN_LEAST 1e-4 /* of the objective: less is the end */
#define DAMPING_MOST 1e6

static const char *const fitted[] = {
    "host.call",       "host.step",       "host.send",     "host.recv",     "host.signal",
    "host.switch",     "host.copy.near",  "host.copy.mid", "host.copy.far", "host.reduce.near",
    "host.reduce.mid", "host.reduce.far", "shm.latency",
};
#define ROWS (sizeof(fitted) / sizeof(fitted[0]))

struct fit {
    struct sim_pool *pool;
    const struct sim_samples *samples;
    struct tw_cost_table start;
    uint32_t rows[ROWS];
    double *residual; /* owned, [samples]: log(predicted / measured) */
    double *gradient; /* owned, [ROWS][samples] */
    double *moved;    /* owned, [samples] */
};

static enum twill_status residuals(const struct fit *fit, const struct tw_cost_table *table,
                                   double *residual)
{
    enum twill_status status = TWILL_OK;
    for (size_t i = 0; i < fit->samples->count && !tw_failed(status); i++) {
        uint64_t ps = 0;
        status = sim_pool_price(fit->pool, table, &fit->samples->at[i], &ps);
        residual[i] = log(((double)ps + 1) / 1e6 / fit->samples->at[i].time_us);
    }
    return status;
}

static double weight_of(double residual)
{
    return fabs(residual) <= HUBER ? 1 : HUBER / fabs(residual);
}

static double objective(const struct fit *fit, const struct tw_cost_table *table,
                        const double *residual)
{
    double sum = 0;
    for (size_t i = 0; i < fit->samples->count; i++) {
        double r = fabs(residual[i]);
        sum += r <= HUBER ? r * r : 2 * HUBER * r - HUBER * HUBER;
    }
    for (size_t k = 0; k < ROWS; k++) {
        double off =
            log((double)table->value[fit->rows[k]] / (double)fit->start.value[fit->rows[k]]);
        sum += PRIOR * off * off;
    }
    return sum;
}

/* A row times a factor, inside its bounds. */
static void row_scale(struct tw_cost_table *table, uint32_t index, double factor)
{
    struct tw_cost_row row;
    tw_cost_row_get(index, &row);
    double least = row.least > NUDGE_LEAST ? (double)row.least : NUDGE_LEAST;
    double value = (double)table->value[index] * factor;
    value = value < least ? least : value > (double)row.most ? (double)row.most : value;
    table->value[index] = (uint64_t)llround(value);
}

static enum twill_status gradients(const struct fit *fit, const struct tw_cost_table *table)
{
    enum twill_status status = TWILL_OK;
    for (size_t k = 0; k < ROWS && !tw_failed(status); k++) {
        struct tw_cost_table moved = *table;
        row_scale(&moved, fit->rows[k], NUDGE);
        double by = log((double)moved.value[fit->rows[k]] / (double)table->value[fit->rows[k]]);
        status = residuals(fit, &moved, fit->moved);
        for (size_t i = 0; i < fit->samples->count; i++)
            fit->gradient[k * fit->samples->count + i] =
                by > 0 ? (fit->moved[i] - fit->residual[i]) / by : 0;
    }
    return status;
}

/* The step that the linearised problem asks for. */
static bool step_find(const struct fit *fit, const struct tw_cost_table *table, double damping,
                      double step[ROWS])
{
    double normal[ROWS * ROWS];
    size_t n = fit->samples->count;
    memset(normal, 0, sizeof(normal));
    for (size_t k = 0; k < ROWS; k++) {
        const double *gk = &fit->gradient[k * n];
        step[k] = -PRIOR *
                  log((double)table->value[fit->rows[k]] / (double)fit->start.value[fit->rows[k]]);
        for (size_t i = 0; i < n; i++)
            step[k] -= weight_of(fit->residual[i]) * gk[i] * fit->residual[i];
        for (size_t j = 0; j <= k; j++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += weight_of(fit->residual[i]) * gk[i] * fit->gradient[j * n + i];
            normal[k * ROWS + j] = normal[j * ROWS + k] = sum;
        }
    }
    for (size_t k = 0; k < ROWS; k++)
        normal[k * ROWS + k] += PRIOR + damping * (normal[k * ROWS + k] + PRIOR);
    return tune_solve(ROWS, normal, step);
}

/* Farther memory is never the faster one: where samples say so they are disturbed, or few. */
static void order_keep(struct tw_cost_table *table)
{
    for (int kind = 0; kind < 2; kind++) {
        uint64_t *near = &table->value[tw_cost_exec_index(TW_COST_HOST, kind ? TW_COST_REDUCE_NEAR
                                                                             : TW_COST_COPY_NEAR)];
        for (int i = 1; i < 3; i++)
            near[i] = near[i] > near[i - 1] ? near[i - 1] : near[i];
    }
}

static void step_take(const struct fit *fit, const double step[ROWS], struct tw_cost_table *table)
{
    for (size_t k = 0; k < ROWS; k++) {
        double by = step[k] > STEP_MOST ? STEP_MOST : step[k] < -STEP_MOST ? -STEP_MOST : step[k];
        row_scale(table, fit->rows[k], exp(by));
    }
    order_keep(table);
}

/* Rounds of linearise, solve, try; until nothing is gained. */
static enum twill_status rounds(struct fit *fit, struct tw_cost_table *table)
{
    double damping = 0.01;
    enum twill_status status = residuals(fit, table, fit->residual);
    double best = objective(fit, table, fit->residual);
    for (int round = 0; round < ROUNDS && !tw_failed(status); round++) {
        double step[ROWS], now = best;
        status = gradients(fit, table);
        while (!tw_failed(status) && damping < DAMPING_MOST) {
            struct tw_cost_table tried = *table;
            if (!step_find(fit, table, damping, step))
                break;
            step_take(fit, step, &tried);
            status = residuals(fit, &tried, fit->moved);
            now = objective(fit, &tried, fit->moved);
            if (now < best) {
                *table = tried;
                memcpy(fit->residual, fit->moved, fit->samples->count * sizeof(double));
                damping /= 3;
                break;
            }
            damping *= 4;
        }
        if (best - now < GAIN_LEAST * best)
            break;
        best = now;
    }
    return status;
}

enum twill_status tune_fit(struct sim_pool *pool, const struct sim_samples *samples,
                           struct tw_cost_table *table)
{
    struct fit fit = {.pool = pool, .samples = samples};
    size_t n = samples->count;
    enum twill_status status = TWILL_OK;
    for (size_t k = 0; k < ROWS; k++) {
        fit.rows[k] = tw_cost_row_find(fitted[k]);
        row_scale(table, fit.rows[k], 1); /* logarithms need values above zero */
    }
    fit.start = *table;
    fit.residual = calloc(n, sizeof(double));
    fit.moved = calloc(n, sizeof(double));
    fit.gradient = calloc(n * ROWS, sizeof(double));
    if (!fit.residual || !fit.moved || !fit.gradient)
        status = tw_fail(TWILL_ERR_NOMEM, "no memory to fit %zu rows", n);
    if (!tw_failed(status))
        status = rounds(&fit, table);
    free(fit.residual);
    free(fit.moved);
    free(fit.gradient);
    return status;
}

enum twill_status tune_quality_of(struct sim_pool *pool, const struct tw_cost_table *table,
                                  const struct sim_samples *samples, int nranks,
                                  struct tune_quality *quality)
{
    double *errors = calloc(samples->count + 1, sizeof(*errors));
    size_t count = 0;
    enum twill_status status = TWILL_OK;
    if (!errors)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for %zu errors", samples->count);
    for (size_t i = 0; i < samples->count && !tw_failed(status); i++) {
        uint64_t ps = 0;
        if (nranks && samples->at[i].nranks != nranks)
            continue;
        status = sim_pool_price(pool, table, &samples->at[i], &ps);
        errors[count++] = fabs((double)ps / 1e6 / samples->at[i].time_us - 1);
    }
    *quality = (struct tune_quality){0, 0};
    if (count && !tw_failed(status)) {
        quality->median = sim_median(errors, count); /* sorts */
        quality->nine_tenths = errors[count * 9 / 10];
    }
    free(errors);
    return status;
}
