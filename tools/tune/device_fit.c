/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the rows of protocols on devices come nearer to measured times. Never knows: how they
 * were measured. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tune.h"

#define HUBER 0.3      /* from here on an error counts by its absolute value */
#define PRIOR 0.002    /* a row is held where it was as by so much of a sample */
#define STEP_FIRST 0.5 /* of a logarithm */
#define STEPS 10       /* each half of the one before */
#define MOVES_MOST 400 /* of one step */
#define LEAST_CASES 3  /* that say something of a start and a rate */

static const enum tw_cost_proto_field fitted[] = {TW_COST_PROTO_START, TW_COST_PROTO_RATE,
                                                  TW_COST_PROTO_BLOCK};

struct fit {
    const struct tune_calls *calls;
    const struct tw_cost_table *start;
    enum tw_cost_proto proto;
    int fields;
};

static uint64_t price(const struct tw_cost_table *table, const struct tune_call *call)
{
    return tw_cost_proto_price(table, call->proto, call->coll, call->nranks, call->bytes,
                               call->blocks);
}

static double objective(const struct fit *fit, const struct tw_cost_table *table)
{
    double sum = 0;

    for (size_t i = 0; i < fit->calls->count; i++) {
        const struct tune_call *call = &fit->calls->at[i];

        if (call->proto != fit->proto)
            continue;
        const double off = fabs(log(((double)price(table, call) + 1) / 1e6 / call->time_us));
        sum += off <= HUBER ? off * off : 2 * HUBER * off - HUBER * HUBER;
    }
    for (int f = 0; f < fit->fields; f++) {
        const uint32_t index = tw_cost_proto_index(fit->proto, fitted[f]);
        const double off =
            log(((double)table->value[index] + 1) / ((double)fit->start->value[index] + 1));
        sum += PRIOR * off * off;
    }
    return sum;
}

/* Inside the row's bounds. */
static void row_set(struct tw_cost_table *table, uint32_t index, double value)
{
    struct tw_cost_row row;

    if (!tw_cost_row_get(index, &row))
        return;
    value = value < (double)row.least  ? (double)row.least
            : value > (double)row.most ? (double)row.most
                                       : value;
    table->value[index] = (uint64_t)llround(value);
}

/* One row a step up or down, whichever is better. @return false: neither is */
static bool row_move(const struct fit *fit, uint32_t index, double step,
                     struct tw_cost_table *table, double *best)
{
    bool moved = false;

    for (int way = 0; way < 2; way++) {
        struct tw_cost_table tried = *table;

        row_set(&tried, index, (double)table->value[index] * exp(way ? -step : step));
        const double now = objective(fit, &tried);
        if (now < *best) {
            *best = now;
            *table = tried;
            moved = true;
        }
    }
    return moved;
}

/* Until no row is better for a step, and then smaller ones. */
static double descend(const struct fit *fit, struct tw_cost_table *table)
{
    double best = objective(fit, table);

    for (int s = 0; s < STEPS; s++) {
        const double step = ldexp(STEP_FIRST, -s);
        bool moved = true;

        for (int moves = 0; moved && moves < MOVES_MOST; moves++) {
            moved = false;
            for (int f = 0; f < fit->fields; f++)
                moved |=
                    row_move(fit, tw_cost_proto_index(fit->proto, fitted[f]), step, table, &best);
        }
    }
    return best;
}

/* The shortest call is all start; rates are the best that a whole call had. */
static bool guess(const struct fit *fit, struct tw_cost_table *table)
{
    double least_us = INFINITY, rate = 0, block = 0;
    size_t cases = 0;

    for (size_t i = 0; i < fit->calls->count; i++) {
        const struct tune_call *call = &fit->calls->at[i];

        if (call->proto != fit->proto)
            continue;
        const double each = (double)call->bytes / call->time_us;
        cases++;
        least_us = fmin(least_us, call->time_us);
        rate = fmax(rate, each * (call->nranks - 1));
        block = fmax(block, each / call->blocks);
    }
    const double values[] = {least_us * 1e6, rate, block};
    for (int f = 0; f < fit->fields && cases > 0; f++)
        row_set(table, tw_cost_proto_index(fit->proto, fitted[f]), values[f]);
    return cases >= LEAST_CASES;
}

void tune_calls_fit(const struct tune_calls *calls, struct tw_cost_table *table)
{
    const struct tw_cost_table start = *table;

    for (int p = 0; p < TW_COST_PROTO_COUNT; p++) {
        struct fit fit = {.calls = calls, .start = &start, .proto = (enum tw_cost_proto)p};
        struct tw_cost_table from_here = *table, from_guess = *table;

        fit.fields = p < TW_COST_PROTO_KERNELS ? 3 : 2;
        if (!guess(&fit, &from_guess))
            continue;
        *table = descend(&fit, &from_guess) < descend(&fit, &from_here) ? from_guess : from_here;
    }
}

size_t tune_calls_quality(const struct tune_calls *calls, const struct tw_cost_table *table,
                          enum tw_cost_proto proto, struct tune_quality *quality)
{
    double *errors = calloc(calls->count + 1, sizeof(*errors));
    size_t count = 0;

    *quality = (struct tune_quality){0, 0};
    for (size_t i = 0; errors && i < calls->count; i++)
        if (calls->at[i].proto == proto)
            errors[count++] =
                fabs((double)price(table, &calls->at[i]) / 1e6 / calls->at[i].time_us - 1);
    if (count > 0) {
        quality->median = sim_median(errors, count); /* sorts */
        quality->nine_tenths = errors[count * 9 / 10];
    }
    free(errors);
    return count;
}
