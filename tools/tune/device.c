/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the order of a run for calls on devices: samples, fit, how good it is, file.
 * Never knows: how each is done. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda.h"
#include "base/status.h"
#include "tune.h"

#define NOTE_BYTES 2048

/* With -n it is twill-perf that finds out what there is. */
static enum twill_status devices_count(const struct tune_options *options, int *nranks)
{
    if (options->nnranks > 0) {
        *nranks = options->nranks[0];
        return TWILL_OK;
    }
    const enum twill_status status = tw_cuda_ready();
    if (tw_failed(status))
        return status;
    *nranks = tw_cuda_device_count();
    return *nranks >= 2
               ? TWILL_OK
               : tw_fail(TWILL_ERR_UNSUPPORTED,
                         "--device cuda measures what lies between CUDA devices, and there "
                         "is one only");
}

static enum twill_status calls_get(const struct tune_options *options,
                                   const struct tw_cost_table *table, struct tune_calls *calls)
{
    enum twill_status status = TWILL_OK;
    int nranks = 0;

    for (int i = 0; i < options->nsweeps && !tw_failed(status); i++)
        status = tune_calls_read(calls, options->sweeps[i].path, options->sweeps[i].nranks,
                                 options->column, false);
    if (options->nsweeps == 0) {
        status = devices_count(options, &nranks);
        if (!tw_failed(status))
            status = tune_calls_measure(options, nranks, table, calls);
    }
    if (!tw_failed(status) && calls->count == 0)
        return tw_fail(TWILL_ERR_INVALID, "no row was measured of a call on devices");
    return status;
}

/* "cuda.lines" */
static void proto_name(enum tw_cost_proto proto, char name[32])
{
    struct tw_cost_row row;

    snprintf(name, 32, "nothing");
    if (!tw_cost_row_get(tw_cost_proto_index(proto, TW_COST_PROTO_START), &row))
        return;
    snprintf(name, 32, "%.*s", (int)(strrchr(row.name, '.') - row.name), row.name);
}

static void quality_note(const struct tune_calls *calls, const struct tw_cost_table *before,
                         const struct tw_cost_table *after, char note[NOTE_BYTES])
{
    size_t used = 0;

    note[0] = '\0';
    for (int p = 0; p < TW_COST_PROTO_COUNT && used < NOTE_BYTES - 160; p++) {
        const enum tw_cost_proto proto = (enum tw_cost_proto)p;
        struct tune_quality old, now;
        char name[32];
        const size_t cases = tune_calls_quality(calls, before, proto, &old);

        proto_name(proto, name);
        if (cases == 0) {
            used += (size_t)snprintf(note + used, NOTE_BYTES - used,
                                     "%s: not measured, rows as they were\n", name);
            continue;
        }
        (void)tune_calls_quality(calls, after, proto, &now);
        used += (size_t)snprintf(
            note + used, NOTE_BYTES - used,
            "%s: %zu cases, median error %.1f %% (before %.1f %%), nine tenths "
            "within %.1f %%\n",
            name, cases, 100 * now.median, 100 * old.median, 100 * now.nine_tenths);
    }
}

/* Not what is of the host and as built in: from a file it would count before what is measured at
 * init. */
static bool is_told(const char *line, const struct tw_cost_table *table)
{
    char name[64];
    struct tw_cost_row row;

    if (sscanf(line, "%63s", name) != 1)
        return true;
    const uint32_t index = tw_cost_row_find(name);
    return index == TW_COST_NONE || index >= TW_COST_PLAN_VALUES ||
           (tw_cost_row_get(index, &row) && table->value[index] != row.dflt);
}

static enum twill_status rows_write(const char *path, const struct tw_cost_table *table,
                                    const char *note)
{
    char *text = NULL, *rest = NULL;
    enum twill_status status = tw_cost_table_print(table, note, &text);
    FILE *out = tw_failed(status) || !path ? stdout : fopen(path, "we");

    if (!tw_failed(status) && !out)
        status = tw_fail_errno(TWILL_ERR_SYSTEM, errno, "cannot write cost table %s", path);
    char *line = tw_failed(status) ? NULL : strtok_r(text, "\n", &rest);
    for (; line; line = strtok_r(NULL, "\n", &rest))
        if (is_told(line, table))
            fprintf(out, "%s\n", line);
    free(text);
    if (tw_failed(status) || !path)
        return status;
    const bool good = !ferror(out);
    return fclose(out) == 0 && good
               ? TWILL_OK
               : tw_fail_errno(TWILL_ERR_SYSTEM, errno, "cannot write cost table %s", path);
}

static enum twill_status tune(const struct tune_options *options, struct tune_calls *calls)
{
    struct tw_cost_table before, after;
    char note[NOTE_BYTES], full[NOTE_BYTES + 128];
    enum twill_status status = sim_table_open(options->cost, &before);

    if (!tw_failed(status))
        status = calls_get(options, &before, calls);
    if (tw_failed(status))
        return status;
    after = before;
    tune_calls_fit(calls, &after);
    quality_note(calls, &before, &after, note);
    snprintf(full, sizeof(full), "fitted by twill-tune to %zu measured cases on devices\n%s",
             calls->count, note);
    fputs(note, stderr);
    return rows_write(options->out, &after, full);
}

enum twill_status tune_device(const struct tune_options *options)
{
    struct tune_calls calls = {.at = NULL};
    const enum twill_status status = tune(options, &calls);

    free(calls.at);
    return status;
}
