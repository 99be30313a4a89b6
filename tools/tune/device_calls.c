/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which protocol the rows of twill-perf's CSV on devices tell of. Never knows: how they were
 * measured, what is done with them. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/value.h"
#include "tune.h"

#define TIME_US_MOST 1e12

enum { OP, COUNT, TYPE, REDOP, IN_PLACE, PROTO, CHANNELS, TIME, COLUMNS };

struct sweep {
    const char *path;
    int nranks;
    bool cut;
    int columns[COLUMNS];
};

static enum twill_status head_read(struct sweep *sweep, char *line, const char *time)
{
    const char *const names[COLUMNS] = {"op",      "count", "type",     "redop",
                                        "inplace", "proto", "channels", time};
    char *fields[SIM_CSV_FIELDS_MOST];
    const int count = sim_csv_cut(line, fields);

    for (int i = 0; i < COLUMNS; i++) {
        sweep->columns[i] = sim_csv_find(fields, count, names[i]);
        if (sweep->columns[i] < 0)
            return tw_fail(TWILL_ERR_INVALID, "%s:1: no column %s: not a CSV file of twill-perf",
                           sweep->path, names[i]);
    }
    return TWILL_OK;
}

/* Of one process: sums by rings, and moves right into the outputs, have one name there. An
 * all_reduce by rings is half of each. */
static bool proto_read(const char *name, enum tw_coll coll, bool cut, enum tw_cost_proto *proto)
{
    const bool sums = coll == TW_COLL_REDUCE || coll == TW_COLL_REDUCE_SCATTER;

    if (strcmp(name, "lines") == 0)
        *proto = cut ? TW_COST_PROTO_PINNED_LINES : TW_COST_PROTO_LINES;
    else if (strcmp(name, "rings") == 0 && cut)
        *proto = TW_COST_PROTO_PINNED_RINGS;
    else if (strcmp(name, "rings") == 0 && coll != TW_COLL_ALL_REDUCE)
        *proto = sums ? TW_COST_PROTO_RINGS : TW_COST_PROTO_WRITES;
    else if (strcmp(name, "direct") == 0 && !cut)
        *proto = TW_COST_PROTO_READS;
    else if (strcmp(name, "copy") == 0 && !cut)
        *proto = TW_COST_PROTO_COPIES;
    else
        return false;
    return true;
}

static bool is_served(enum tw_coll coll)
{
    return coll == TW_COLL_ALL_REDUCE || coll == TW_COLL_REDUCE || coll == TW_COLL_BROADCAST ||
           coll == TW_COLL_REDUCE_SCATTER || coll == TW_COLL_ALL_GATHER ||
           coll == TW_COLL_ALL_TO_ALL || coll == TW_COLL_GATHER || coll == TW_COLL_SCATTER;
}

/* @return 1 a call; 0 a row to pass over; -1 nonsense, *what says of what */
static int row_read(const struct sweep *sweep, char *const fields[], struct tune_call *call,
                    const char **what)
{
    const int *at = sweep->columns;
    int64_t count, blocks;
    const uint32_t type_bytes = sim_type_bytes(fields[at[TYPE]]);

    call->nranks = sweep->nranks;
    call->coll = sim_coll_find(fields[at[OP]]);
    if (!is_served(call->coll) || strcmp(fields[at[IN_PLACE]], "0") != 0 ||
        strcmp(fields[at[REDOP]], "mulsum") == 0 ||
        !proto_read(fields[at[PROTO]], call->coll, sweep->cut, &call->proto))
        return 0;
    *what = "count";
    if (!tw_value_int(fields[at[COUNT]], &count) || count < 0 || count > INT64_MAX >> 16)
        return -1;
    *what = "type";
    if (type_bytes == 0)
        return -1;
    *what = "channels";
    if (!tw_value_int(fields[at[CHANNELS]], &blocks) || blocks < 1 || blocks > 65536)
        return -1;
    *what = "time";
    if (!sim_csv_number(fields[at[TIME]], &call->time_us) || call->time_us <= 0 ||
        call->time_us > TIME_US_MOST)
        return -1;
    call->bytes = (uint64_t)count * type_bytes;
    call->blocks = (uint32_t)blocks;
    return call->bytes > 0;
}

static bool same_case(const struct tune_call *a, const struct tune_call *b)
{
    return a->proto == b->proto && a->coll == b->coll && a->nranks == b->nranks &&
           a->bytes == b->bytes && a->blocks == b->blocks;
}

static enum twill_status call_add(struct tune_calls *calls, const struct tune_call *call)
{
    for (size_t i = 0; i < calls->count; i++)
        if (same_case(&calls->at[i], call)) {
            if (call->time_us < calls->at[i].time_us)
                calls->at[i].time_us = call->time_us;
            return TWILL_OK;
        }
    if (calls->count == calls->room) {
        const size_t room = calls->room ? 2 * calls->room : 64;
        struct tune_call *grown = realloc(calls->at, room * sizeof(*grown));
        if (!grown)
            return tw_fail(TWILL_ERR_NOMEM, "no memory for %zu rows", room);
        calls->at = grown;
        calls->room = room;
    }
    calls->at[calls->count++] = *call;
    return TWILL_OK;
}

static int last_column(const struct sweep *sweep)
{
    int last = 0;

    for (int i = 0; i < COLUMNS; i++)
        last = sweep->columns[i] > last ? sweep->columns[i] : last;
    return last;
}

static enum twill_status rows_read(struct tune_calls *calls, FILE *file, const struct sweep *sweep)
{
    char line[SIM_CSV_LINE_BYTES], *fields[SIM_CSV_FIELDS_MOST];
    const int last = last_column(sweep);
    enum twill_status status = TWILL_OK;

    for (int number = 2; !tw_failed(status) && fgets(line, sizeof(line), file); number++) {
        struct tune_call call;
        const char *what = "number of fields";
        const int good =
            sim_csv_cut(line, fields) > last ? row_read(sweep, fields, &call, &what) : -1;

        if (good < 0)
            return tw_fail(TWILL_ERR_INVALID, "%s:%d: the %s makes no sense", sweep->path, number,
                           what);
        if (good)
            status = call_add(calls, &call);
    }
    if (!tw_failed(status) && ferror(file))
        return tw_fail_errno(TWILL_ERR_INVALID, errno, "cannot read %s", sweep->path);
    return status;
}

enum twill_status tune_calls_read(struct tune_calls *calls, const char *path, int nranks,
                                  const char *column, bool cut)
{
    struct sweep sweep = {.path = path, .nranks = nranks, .cut = cut};
    char line[SIM_CSV_LINE_BYTES];
    FILE *file = fopen(path, "re");

    if (!file)
        return tw_fail_errno(TWILL_ERR_INVALID, errno, "cannot open %s", path);
    enum twill_status status = TWILL_OK;
    if (!fgets(line, sizeof(line), file))
        status = ferror(file) ? tw_fail_errno(TWILL_ERR_INVALID, errno, "cannot read %s", path)
                              : tw_fail(TWILL_ERR_INVALID, "%s is empty", path);
    if (!tw_failed(status))
        status = head_read(&sweep, line, column);
    if (!tw_failed(status))
        status = rows_read(calls, file, &sweep);
    fclose(file);
    return status;
}
