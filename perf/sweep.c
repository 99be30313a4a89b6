/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the order of cases, which rows there are. Never knows: how one is measured. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "team.h"

#define PROGRESS_AFTER_S 1.0

struct sweep {
    struct perf_team *team;
    struct perf_rows *rows;
    struct timespec begin;
    bool progress;    /* rank 0 at a terminal */
    bool progress_on; /* a progress line stands on it */
};

static double elapsed_s(const struct sweep *sweep)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - sweep->begin.tv_sec) +
           (double)(now.tv_nsec - sweep->begin.tv_nsec) * 1e-9;
}

static void progress_show(struct sweep *sweep, const struct perf_case *c)
{
    if (!sweep->progress || elapsed_s(sweep) < PROGRESS_AFTER_S)
        return;
    fprintf(stderr, "\r%s %s %zu bytes, %.0f s so far\033[K", perf_op_info(c->op)->name,
            perf_type_name(c->type), c->size_bytes, elapsed_s(sweep));
    sweep->progress_on = true;
}

static void progress_clear(struct sweep *sweep)
{
    if (sweep->progress_on)
        fputs("\r\033[K", stderr);
    sweep->progress_on = false;
}

static bool rows_add(struct perf_rows *rows, const struct perf_row *row)
{
    if (rows->count == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 64;
        struct perf_row *grown = realloc(rows->rows, room * sizeof(*grown));
        if (!grown) {
            fputs("twill-perf: out of memory for rows\n", stderr);
            return false;
        }
        rows->rows = grown;
        rows->room = room;
    }
    rows->rows[rows->count++] = *row;
    rows->wrong += row->wrong;
    if (perf_op_info(row->c.op)->moves) {
        rows->busbw_sum += row->busbw_gbs;
        rows->busbw_rows++;
    }
    return true;
}

/* --list: nothing is run. */
static enum perf_result list_size(struct sweep *sweep, struct perf_case c, size_t bytes)
{
    struct perf_row row = {0};
    perf_case_shape(&sweep->team->ranks[0], &c, bytes);
    row.c = c;
    if (!sweep->team->library->choice(sweep->team, &c, &row.choice))
        return PERF_FAILED;
    if (sweep->team->member == 0)
        perf_report_choice(&row);
    return PERF_DONE;
}

/* Out of place, alone and beside products. */
static enum perf_result sweep_overlap(struct sweep *sweep, struct perf_case c, size_t bytes)
{
    struct perf_team *team = sweep->team;
    struct perf_row row;
    perf_case_shape(&team->ranks[0], &c, bytes);
    progress_show(sweep, &c);
    enum perf_result result = perf_measure(team, &c, &row);
    bool good = result == PERF_DONE && perf_overlap_measure(team, &c, &row) &&
                team->library->choice(team, &c, &row.choice);
    progress_clear(sweep);
    if (!good)
        return PERF_FAILED;
    if (team->member == 0) {
        perf_report_overlap(&row);
        return rows_add(sweep->rows, &row) ? PERF_DONE : PERF_FAILED;
    }
    sweep->rows->wrong += row.wrong;
    return PERF_DONE;
}

/* Out of place, then in place. */
static enum perf_result sweep_size(struct sweep *sweep, struct perf_case c, size_t bytes)
{
    struct perf_row out, in;
    struct twill_choice choice;
    if (sweep->team->options->list)
        return list_size(sweep, c, bytes);
    if (sweep->team->options->overlap)
        return sweep_overlap(sweep, c, bytes);
    perf_case_shape(&sweep->team->ranks[0], &c, bytes);
    progress_show(sweep, &c);
    enum perf_result result = perf_measure(sweep->team, &c, &out);
    bool has_in_place = sweep->team->library->in_place(c.op);
    if (result == PERF_DONE && has_in_place) {
        c.in_place = true;
        result = perf_measure(sweep->team, &c, &in);
    }
    progress_clear(sweep);
    if (result != PERF_DONE)
        return result;
    if (!sweep->team->library->choice(sweep->team, &c, &choice))
        return PERF_FAILED;
    out.choice = in.choice = choice;
    if (sweep->team->member == 0) {
        perf_report_row(&out, has_in_place ? &in : NULL);
        if (!rows_add(sweep->rows, &out) || (has_in_place && !rows_add(sweep->rows, &in)))
            return PERF_FAILED;
        return PERF_DONE;
    }
    sweep->rows->wrong += out.wrong + (has_in_place ? in.wrong : 0);
    return PERF_DONE;
}

static enum perf_result sweep_sizes(struct sweep *sweep, const struct perf_case *c)
{
    const struct perf_options *options = sweep->team->options;
    enum perf_result result = PERF_DONE;
    if (c->op == PERF_BARRIER)
        return sweep_size(sweep, *c, 0);
    for (size_t size = options->min_bytes; size && result == PERF_DONE;
         size = perf_options_next_size(options, size))
        result = sweep_size(sweep, *c, size);
    return result;
}

static enum perf_result sweep_roots(struct sweep *sweep, struct perf_case *c)
{
    int asked = sweep->team->options->root, last = asked;
    enum perf_result result = PERF_DONE;
    if (!perf_op_info(c->op)->rooted)
        return sweep_sizes(sweep, c);
    if (asked == PERF_ROOT_ALL) {
        asked = 0;
        last = sweep->team->size - 1;
    }
    for (c->root = asked; c->root <= last && result == PERF_DONE; c->root++)
        result = sweep_sizes(sweep, c);
    return result;
}

/* One type and reduction. */
static bool sweep_kind(struct sweep *sweep, struct perf_case *c)
{
    bool speaks = sweep->team->member == 0;
    if (!sweep->team->options->list && !sweep->team->library->redop_begin(sweep->team, c))
        return false;
    if (speaks && !sweep->team->options->list)
        perf_report_tolerance(c, sweep->team->size);
    if (sweep_roots(sweep, c) == PERF_FAILED)
        return false;
    return sweep->team->options->list || sweep->team->library->redop_end(sweep->team, c);
}

static bool sweep_op(struct sweep *sweep, enum perf_op op)
{
    const struct perf_options *options = sweep->team->options;
    const struct perf_op_info *info = perf_op_info(op);
    struct perf_case c = {.op = op, .type = options->types[0], .redop = options->redops[0]};
    if (sweep->team->member == 0)
        perf_report_columns(sweep->team, &c);
    int types = info->moves ? options->type_count : 1;
    int redops = info->reduces ? options->redop_count : 1;
    for (int t = 0; t < types; t++) {
        for (int o = 0; o < redops; o++) {
            c.type = options->types[t];
            c.redop = options->redops[o];
            if (info->reduces &&
                (!perf_redop_fits(c.redop, c.type) || !sweep->team->library->serves(op, c.redop)))
                continue; /* one of both was "all" */
            if (!sweep_kind(sweep, &c))
                return false;
        }
    }
    return true;
}

bool perf_sweep(struct perf_team *team, struct perf_rows *rows)
{
    struct sweep sweep = {
        .team = team, .rows = rows, .progress = team->member == 0 && isatty(STDERR_FILENO)};
    clock_gettime(CLOCK_MONOTONIC, &sweep.begin);
    if (team->member == 0)
        perf_report_head(team);
    for (int i = 0; i < team->options->op_count; i++) {
        enum perf_op op = team->options->ops[i];
        /* asked for by "all" */
        if (team->library->serves(op, team->options->redops[0]) && !sweep_op(&sweep, op))
            return false;
    }
    if (team->member == 0 && !team->options->list)
        perf_report_tail(rows, team->options->checks > 0);
    return true;
}
