/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the order of cases, which rows there are. Never knows: how one is measured. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

#define PROGRESS_AFTER_S 1.0

struct sweep {
    struct perf_rank *rank;
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

bool perf_choice(const struct perf_rank *rank, const struct perf_case *c,
                 struct twill_choice *choice)
{
    *choice = (struct twill_choice)TWILL_CHOICE_INIT;
    if (c->op == PERF_SEND_RECV)
        return true;
    return perf_ok(rank,
                   twill_comm_choice(rank->comm, perf_op_info(c->op)->name, c->count, c->type,
                                     perf_op_info(c->op)->rooted ? c->root : 0, choice),
                   "twill_comm_choice");
}

/* --list: nothing is run. */
static enum perf_result list_size(struct sweep *sweep, struct perf_case c, size_t bytes)
{
    struct perf_row row = {0};
    perf_case_shape(sweep->rank, &c, bytes);
    row.c = c;
    if (!perf_choice(sweep->rank, &c, &row.choice))
        return PERF_FAILED;
    if (sweep->rank->rank == 0)
        perf_report_choice(&row);
    return PERF_DONE;
}

/* Out of place, then in place. */
static enum perf_result sweep_size(struct sweep *sweep, struct perf_case c, size_t bytes)
{
    struct perf_row out, in;
    struct twill_choice choice;
    if (sweep->rank->options->list)
        return list_size(sweep, c, bytes);
    perf_case_shape(sweep->rank, &c, bytes);
    progress_show(sweep, &c);
    enum perf_result result = perf_measure(sweep->rank, &c, &out);
    bool has_in_place = perf_op_info(c.op)->in_place;
    if (result == PERF_DONE && has_in_place) {
        c.in_place = true;
        result = perf_measure(sweep->rank, &c, &in);
    }
    progress_clear(sweep);
    if (result != PERF_DONE)
        return result;
    if (!perf_choice(sweep->rank, &c, &choice))
        return PERF_FAILED;
    out.choice = in.choice = choice;
    if (sweep->rank->rank == 0) {
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
    const struct perf_options *options = sweep->rank->options;
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
    int asked = sweep->rank->options->root, last = asked;
    enum perf_result result = PERF_DONE;
    if (!perf_op_info(c->op)->rooted)
        return sweep_sizes(sweep, c);
    if (asked == PERF_ROOT_ALL) {
        asked = 0;
        last = sweep->rank->size - 1;
    }
    for (c->root = asked; c->root <= last && result == PERF_DONE; c->root++)
        result = sweep_sizes(sweep, c);
    return result;
}

/* One type and reduction. */
static bool sweep_kind(struct sweep *sweep, struct perf_case *c)
{
    bool speaks = sweep->rank->rank == 0;
    if (!sweep->rank->options->list &&
        !perf_ok(sweep->rank, perf_mulsum_begin(sweep->rank, c), "twill_op_create_premul_sum"))
        return false;
    if (speaks && !sweep->rank->options->list)
        perf_report_tolerance(c, sweep->rank->size);
    if (sweep_roots(sweep, c) == PERF_FAILED)
        return false;
    return sweep->rank->options->list ||
           perf_ok(sweep->rank, perf_mulsum_end(sweep->rank, c), "twill_op_destroy");
}

static bool sweep_op(struct sweep *sweep, enum perf_op op)
{
    const struct perf_options *options = sweep->rank->options;
    const struct perf_op_info *info = perf_op_info(op);
    struct perf_case c = {.op = op, .type = options->types[0], .redop = options->redops[0]};
    if (sweep->rank->rank == 0)
        perf_report_columns(sweep->rank, &c);
    int types = info->moves ? options->type_count : 1;
    int redops = info->reduces ? options->redop_count : 1;
    for (int t = 0; t < types; t++) {
        for (int o = 0; o < redops; o++) {
            c.type = options->types[t];
            c.redop = options->redops[o];
            if (info->reduces && !perf_redop_fits(c.redop, c.type))
                continue; /* one of both was "all" */
            if (!sweep_kind(sweep, &c))
                return false;
        }
    }
    return true;
}

bool perf_sweep(struct perf_rank *rank, struct perf_rows *rows)
{
    struct sweep sweep = {
        .rank = rank, .rows = rows, .progress = rank->rank == 0 && isatty(STDERR_FILENO)};
    clock_gettime(CLOCK_MONOTONIC, &sweep.begin);
    if (rank->rank == 0)
        perf_report_head(rank);
    for (int i = 0; i < rank->options->op_count; i++)
        if (!sweep_op(&sweep, rank->options->ops[i]))
            return false;
    if (rank->rank == 0 && !rank->options->list)
        perf_report_tail(rows, rank->options->checks > 0);
    return true;
}
