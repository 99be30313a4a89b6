/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: twill-perf's CSV, which plan each of its rows ran. Never knows: how it was measured. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/value.h"
#include "sim.h"

#define RATIO_MOST 1e12 /* us that a call may take: more is no time */

/* ---- CSV ------------------------------------------------------------------------------------ */

struct columns {
    int op, size_bytes, count, type, root, inplace, algo, channels, time;
};

int sim_csv_cut(char *line, char *fields[SIM_CSV_FIELDS_MOST])
{
    int count = 0;
    line[strcspn(line, "\r\n")] = '\0';
    while (count < SIM_CSV_FIELDS_MOST) {
        fields[count++] = line;
        char *comma = strchr(line, ',');
        if (!comma)
            break;
        *comma = '\0';
        line = comma + 1;
    }
    return count;
}

int sim_csv_find(char *const fields[], int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(fields[i], name) == 0)
            return i;
    return -1;
}

static enum twill_status head_read(const char *path, char *line, const char *time,
                                   struct columns *columns)
{
    char *fields[SIM_CSV_FIELDS_MOST];
    int count = sim_csv_cut(line, fields);
    const struct {
        const char *name;
        int *place;
    } wanted[] = {{"op", &columns->op},       {"size_bytes", &columns->size_bytes},
                  {"count", &columns->count}, {"type", &columns->type},
                  {"root", &columns->root},   {"inplace", &columns->inplace},
                  {"algo", &columns->algo},   {"channels", &columns->channels},
                  {time, &columns->time}};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        *wanted[i].place = sim_csv_find(fields, count, wanted[i].name);
        if (*wanted[i].place < 0)
            return tw_fail(TWILL_ERR_INVALID, "%s:1: no column %s: not a CSV file of twill-perf",
                           path, wanted[i].name);
    }
    return TWILL_OK;
}

bool sim_csv_number(const char *text, double *value)
{
    double sum = 0, unit = 1;
    bool point = false, digits = false;
    for (; *text; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (*text < '0' || *text > '9')
            return false;
        digits = true;
        unit = point ? unit / 10 : 1;
        sum = point ? sum + unit * (*text - '0') : sum * 10 + (*text - '0');
    }
    *value = sum;
    return digits;
}

static bool whole_read(const char *text, int64_t least, int64_t most, int64_t *value)
{
    return tw_value_int(text, value) && *value >= least && *value <= most;
}

/* @return 1 a sample; 0 a row to pass over; -1 nonsense, *what says of what */
static int row_read(char *const fields[], const struct columns *columns, struct sim_sample *sample,
                    const char **what)
{
    int64_t count, size, root, channels = 1;
    sample->coll = sim_coll_find(fields[columns->op]);
    if (sample->coll == TW_COLL_COUNT || !*fields[columns->algo])
        return 0;
    sample->algo = tw_algo_find(fields[columns->algo], sample->coll);
    *what = "count";
    if (!whole_read(fields[columns->count], 0, INT64_MAX, &count))
        return -1;
    *what = "size_bytes";
    if (!whole_read(fields[columns->size_bytes], 0, INT64_MAX, &size))
        return -1;
    *what = "root";
    if (!whole_read(fields[columns->root], -1, sample->nranks - 1, &root))
        return -1;
    *what = "channels";
    if (!whole_read(fields[columns->channels], 1, TW_PLAN_FIFOS_MAX, &channels))
        return -1;
    *what = "type";
    bool none = strcmp(fields[columns->type], "none") == 0;
    sample->type_bytes = none ? 1 : sim_type_bytes(fields[columns->type]);
    if (sample->type_bytes == 0)
        return -1;
    *what = "time";
    if (!sim_csv_number(fields[columns->time], &sample->time_us) || sample->time_us <= 0 ||
        sample->time_us > RATIO_MOST)
        return -1;
    sample->in_place =
        strcmp(fields[columns->inplace], "1") == 0 || strcmp(fields[columns->inplace], "true") == 0;
    sample->count = (uint64_t)count;
    sample->size_bytes = (uint64_t)size;
    sample->root = root < 0 ? 0 : (int)root;
    sample->channels = (uint32_t)channels;
    return sample->algo ? 1 : 0;
}

/* ---- the list ------------------------------------------------------------------------------- */

static bool same_case(const struct sim_sample *a, const struct sim_sample *b)
{
    return a->coll == b->coll && a->algo == b->algo && a->nranks == b->nranks &&
           a->channels == b->channels && a->type_bytes == b->type_bytes && a->root == b->root &&
           a->in_place == b->in_place && a->count == b->count;
}

static enum twill_status sample_add(struct sim_samples *samples, const struct sim_sample *sample)
{
    for (size_t i = 0; i < samples->count; i++)
        if (same_case(&samples->at[i], sample)) {
            if (sample->time_us < samples->at[i].time_us)
                samples->at[i].time_us = sample->time_us;
            return TWILL_OK;
        }
    if (samples->count == samples->room) {
        size_t room = samples->room ? 2 * samples->room : 64;
        struct sim_sample *grown = realloc(samples->at, room * sizeof(*grown));
        if (!grown)
            return tw_fail(TWILL_ERR_NOMEM, "no memory for %zu rows", room);
        samples->at = grown;
        samples->room = room;
    }
    samples->at[samples->count++] = *sample;
    return TWILL_OK;
}

void sim_samples_free(struct sim_samples *samples)
{
    free(samples->at);
    *samples = (struct sim_samples){.at = NULL};
}

/* The columns that a row is looked at for. */
static int columns_most(const struct columns *columns)
{
    const int all[] = {columns->op,   columns->size_bytes, columns->count,
                       columns->type, columns->root,       columns->inplace,
                       columns->algo, columns->channels,   columns->time};
    int most = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        most = all[i] > most ? all[i] : most;
    return most;
}

static enum twill_status rows_read(struct sim_samples *samples, FILE *file, const char *path,
                                   const struct sim_sample *common, const struct columns *columns,
                                   size_t *skipped)
{
    char line[SIM_CSV_LINE_BYTES], *fields[SIM_CSV_FIELDS_MOST];
    enum twill_status status = TWILL_OK;
    for (int number = 2; !tw_failed(status) && fgets(line, sizeof(line), file); number++) {
        struct sim_sample sample = *common;
        const char *what = "number of fields";
        int good = sim_csv_cut(line, fields) > columns_most(columns)
                       ? row_read(fields, columns, &sample, &what)
                       : -1;
        if (good < 0)
            return tw_fail(TWILL_ERR_INVALID, "%s:%d: the %s makes no sense for %d ranks", path,
                           number, what, common->nranks);
        if (good)
            status = sample_add(samples, &sample);
        else
            ++*skipped;
    }
    if (!tw_failed(status) && ferror(file))
        return tw_fail_errno(TWILL_ERR_INVALID, errno, "cannot read %s", path);
    return status;
}

enum twill_status sim_samples_read(struct sim_samples *samples, const char *path, int nranks,
                                   const char *column, size_t *skipped)
{
    char line[SIM_CSV_LINE_BYTES];
    struct columns columns;
    const struct sim_sample common = {.nranks = nranks};
    FILE *file = fopen(path, "re");
    if (!file)
        return tw_fail_errno(TWILL_ERR_INVALID, errno, "cannot open %s", path);
    enum twill_status status = TWILL_OK;
    if (!fgets(line, sizeof(line), file))
        status = ferror(file) ? tw_fail_errno(TWILL_ERR_INVALID, errno, "cannot read %s", path)
                              : tw_fail(TWILL_ERR_INVALID, "%s is empty", path);
    if (!tw_failed(status))
        status = head_read(path, line, column, &columns);
    if (!tw_failed(status))
        status = rows_read(samples, file, path, &common, &columns, skipped);
    fclose(file);
    return status;
}
