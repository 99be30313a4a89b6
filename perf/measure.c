/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the order of a row's parts, how figures of ranks become one. Never knows: clocks (the
 * place has them), what is moved. Every figure is first taken as the maximum over the ranks, call
 * by call. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "team.h"

#define GATHER_DOUBLES 512

/* What the members exchange, through twill itself; the sum shows that it came whole. */
struct record {
    double value[GATHER_DOUBLES];
    uint64_t sum;
};

size_t perf_gather_bytes(int members) { return ((size_t)members + 1) * sizeof(struct record); }

static bool ok(int rank, twill_comm_t comm, enum twill_status status, const char *call)
{
    if (status == TWILL_OK)
        return true;
    const char *text = twill_last_error(comm);
    fprintf(stderr, "twill-perf: rank %d: %s: %s: %s\n", rank, call, twill_status_string(status),
            *text ? text : twill_last_error(NULL));
    return false;
}

bool perf_ok(const struct perf_rank *rank, enum twill_status status, const char *call)
{
    return ok(rank->rank, rank->comm, status, call);
}

bool perf_team_ok(const struct perf_team *team, enum twill_status status, const char *call)
{
    return ok(team->ranks[0].rank, team->talk, status, call);
}

static uint64_t record_sum(const struct record *record)
{
    uint64_t sum = 0x7477696c6cu, word;
    for (size_t i = 0; i < GATHER_DOUBLES; i++) {
        memcpy(&word, &record->value[i], sizeof(word));
        sum = (sum ^ word) * 0x100000001b3u;
    }
    return sum;
}

enum combine { COMBINE_MAX, COMBINE_SUM };

/* values[n] of each member become one on every member; n at most GATHER_DOUBLES. */
static bool exchange(const struct perf_team *team, double *values, size_t n, enum combine combine)
{
    struct record *all = (struct record *)(void *)team->gather;
    struct record *mine = all + team->members;
    memset(mine, 0, sizeof(*mine));
    memcpy(mine->value, values, n * sizeof(*values));
    mine->sum = record_sum(mine);
    if (!perf_team_ok(team,
                      twill_all_gather(mine, all, sizeof(*mine), TWILL_UINT8, team->talk, NULL),
                      "all_gather of the figures"))
        return false;
    memset(values, 0, n * sizeof(*values));
    for (int m = 0; m < team->members; m++) {
        if (all[m].sum != record_sum(&all[m])) {
            fprintf(stderr, "twill-perf: rank %d: the figures of rank %d came damaged\n",
                    team->ranks[0].rank, m * team->count);
            return false;
        }
        for (size_t i = 0; i < n; i++)
            values[i] = combine == COMBINE_SUM ? values[i] + all[m].value[i]
                                               : fmax(values[i], all[m].value[i]);
    }
    return true;
}

bool perf_team_most(const struct perf_team *team, double *values, size_t n)
{
    return exchange(team, values, n, COMBINE_MAX);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool take_times(struct perf_team *team, const struct perf_case *c, struct perf_row *row)
{
    size_t n = 0;
    double *times = team->times;
    if (!team->place->time(team, c, &row->time_us, &n) ||
        !exchange(team, &row->time_us, 1, COMBINE_MAX))
        return false;
    for (size_t done = 0; done < n; done += GATHER_DOUBLES) {
        size_t some = n - done < GATHER_DOUBLES ? n - done : GATHER_DOUBLES;
        if (!exchange(team, times + done, some, COMBINE_MAX))
            return false;
    }
    qsort(times, n, sizeof(*times), ascending);
    row->min_us = times[0];
    row->median_us = n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
    row->p99_us = times[(size_t)ceil(0.99 * (double)n) - 1];
    row->max_us = times[n - 1];
    row->algbw_gbs = row->time_us > 0 ? (double)c->size_bytes / row->time_us * 1e-3 : 0;
    row->busbw_gbs = row->algbw_gbs * perf_op_info(c->op)->bus_factor(team->size);
    return true;
}

static bool take_checks(struct perf_team *team, const struct perf_case *c, struct perf_row *row)
{
    double sum = 0;
    for (int i = 0; i < team->options->checks; i++) {
        uint64_t wrong = 0;
        if (!perf_check_call(team, c, i == 0 ? team->options->inject : 0, &wrong))
            return false;
        sum += (double)wrong;
    }
    if (!exchange(team, &sum, 1, COMBINE_SUM))
        return false;
    row->wrong = (uint64_t)sum;
    row->checked = team->options->checks > 0;
    return true;
}

static bool warm_up(struct perf_team *team, const struct perf_case *c)
{
    for (int i = 0; i < team->count; i++) {
        struct perf_case own = perf_case_for(&team->ranks[i], c);
        perf_case_counts(&team->ranks[i], &own);
        if (!team->place->fill(&team->ranks[i], &own))
            return false;
    }
    bool good = team->library->call(team, c);
    for (int i = 1; i < team->options->warmup && good; i++)
        good = team->library->call(team, c);
    return good && team->place->settle(team);
}

enum perf_result perf_measure(struct perf_team *team, const struct perf_case *c,
                              struct perf_row *row)
{
    *row = (struct perf_row){.c = *c};
    return warm_up(team, c) && take_times(team, c, row) && take_checks(team, c, row) ? PERF_DONE
                                                                                     : PERF_FAILED;
}
