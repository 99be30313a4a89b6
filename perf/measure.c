/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: clocks, loops, how figures of ranks become one. Never knows: what is moved.
 *
 * time is that of n back-to-back calls between barriers, divided by n; the others come from the
 * time of each single call. A clock reading costs some 25 ns, so calls below STAMPED_BYTES get
 * their single times from a second loop. Every figure is first taken as the maximum over the
 * ranks, call by call. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf.h"

#define STAMPED_BYTES 65536
#define GATHER_DOUBLES 512

/* What the ranks exchange, through twill itself; the sum shows that it came whole. */
struct record {
    double value[GATHER_DOUBLES];
    uint64_t sum;
};

size_t perf_gather_bytes(int ranks) { return ((size_t)ranks + 1) * sizeof(struct record); }

bool perf_ok(const struct perf_rank *rank, enum twill_status status, const char *call)
{
    if (status == TWILL_OK)
        return true;
    const char *text = twill_last_error(rank->comm);
    fprintf(stderr, "twill-perf: rank %d: %s: %s: %s\n", rank->rank, call,
            twill_status_string(status), *text ? text : twill_last_error(NULL));
    return false;
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

/* values[n] of each rank become one on every rank; n at most GATHER_DOUBLES. */
static bool exchange(struct perf_rank *rank, double *values, size_t n, enum combine combine)
{
    struct record *all = (struct record *)(void *)rank->gather;
    struct record *mine = all + rank->size;
    memset(mine, 0, sizeof(*mine));
    memcpy(mine->value, values, n * sizeof(*values));
    mine->sum = record_sum(mine);
    if (!perf_ok(rank, twill_all_gather(mine, all, sizeof(*mine), TWILL_UINT8, rank->comm, NULL),
                 "all_gather of the figures"))
        return false;
    memset(values, 0, n * sizeof(*values));
    for (int r = 0; r < rank->size; r++) {
        if (all[r].sum != record_sum(&all[r])) {
            fprintf(stderr, "twill-perf: rank %d: the figures of rank %d came damaged\n",
                    rank->rank, r);
            return false;
        }
        for (size_t i = 0; i < n; i++)
            values[i] = combine == COMBINE_SUM ? values[i] + all[r].value[i]
                                               : fmax(values[i], all[r].value[i]);
    }
    return true;
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* n calls between barriers. times: each call's, or NULL. mean_us: of this rank. */
static bool loop(struct perf_rank *rank, const struct perf_case *c, double *times, double *mean_us)
{
    const char *name = perf_op_info(c->op)->name;
    int n = rank->options->iterations;
    enum twill_status status = TWILL_OK;
    if (!perf_ok(rank, twill_barrier(rank->comm, NULL), "barrier"))
        return false;
    double begin_us = now_us(), before_us = begin_us;
    for (int i = 0; i < n && status == TWILL_OK; i++) {
        status = perf_case_call(rank, c);
        if (!times)
            continue;
        double after_us = now_us();
        times[i] = after_us - before_us;
        before_us = after_us;
    }
    *mean_us = (now_us() - begin_us) / n;
    return perf_ok(rank, status, name) && perf_ok(rank, twill_barrier(rank->comm, NULL), "barrier");
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool take_times(struct perf_rank *rank, const struct perf_case *c, struct perf_row *row)
{
    int n = rank->options->iterations;
    bool stamped = c->size_bytes >= STAMPED_BYTES;
    double second_us;
    if (!loop(rank, c, stamped ? rank->times : NULL, &row->time_us) ||
        (!stamped && !loop(rank, c, rank->times, &second_us)) ||
        !exchange(rank, &row->time_us, 1, COMBINE_MAX))
        return false;
    for (int done = 0; done < n; done += GATHER_DOUBLES) {
        size_t some = n - done < GATHER_DOUBLES ? (size_t)(n - done) : GATHER_DOUBLES;
        if (!exchange(rank, rank->times + done, some, COMBINE_MAX))
            return false;
    }
    qsort(rank->times, (size_t)n, sizeof(*rank->times), ascending);
    row->min_us = rank->times[0];
    row->median_us = n % 2 ? rank->times[n / 2] : (rank->times[n / 2 - 1] + rank->times[n / 2]) / 2;
    row->p99_us = rank->times[(int)ceil(0.99 * n) - 1];
    row->max_us = rank->times[n - 1];
    row->algbw_gbs = row->time_us > 0 ? (double)c->size_bytes / row->time_us * 1e-3 : 0;
    row->busbw_gbs = row->algbw_gbs * perf_op_info(c->op)->bus_factor(rank->size);
    return true;
}

static bool take_checks(struct perf_rank *rank, const struct perf_case *c, struct perf_row *row)
{
    double sum = 0;
    for (int i = 0; i < rank->options->checks; i++) {
        uint64_t wrong = 0;
        if (!perf_check_call(rank, c, i == 0 ? rank->options->inject : 0, &wrong))
            return false;
        sum += (double)wrong;
    }
    if (!exchange(rank, &sum, 1, COMBINE_SUM))
        return false;
    row->wrong = (uint64_t)sum;
    row->checked = rank->options->checks > 0;
    return true;
}

enum perf_result perf_measure(struct perf_rank *rank, const struct perf_case *c,
                              struct perf_row *row)
{
    *row = (struct perf_row){.c = *c};
    perf_case_counts(rank, c);
    perf_check_prepare(rank, c);
    enum twill_status status = perf_case_call(rank, c);
    for (int i = 1; i < rank->options->warmup && status == TWILL_OK; i++)
        status = perf_case_call(rank, c);
    if (!perf_ok(rank, status, perf_op_info(c->op)->name) || !take_times(rank, c, row) ||
        !take_checks(rank, c, row))
        return PERF_FAILED;
    return PERF_DONE;
}
