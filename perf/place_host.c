/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: host memory, the host's clock. Never knows: what is moved.
 *
 * The mean is that of n back-to-back calls between barriers, divided by n; single times are of each
 * call. A clock reading costs some 25 ns, so calls below STAMPED_BYTES get their single times from
 * a second loop. */
#include "config.h"

#include <sys/mman.h>
#include <time.h>

#include "team.h"

#define STAMPED_BYTES 65536

/* ---- buffers --------------------------------------------------------------------------------- */

static bool buffer_create(const struct perf_team *team, struct perf_buffer *buffer)
{
    const struct perf_rank *rank = &team->ranks[0];
    size_t bytes = rank->buffer_bytes;
    if (team->options->registered) {
        if (!team->library->alloc(rank, bytes, &buffer->base))
            return false;
    } else {
        void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED) {
            fprintf(stderr, "twill-perf: rank %d: no memory for a buffer of %zu bytes\n",
                    rank->rank, bytes);
            return false;
        }
        buffer->base = base;
    }
    buffer->data = buffer->view = (char *)buffer->base + PERF_GUARD_BYTES;
    return true;
}

static bool buffer_destroy(const struct perf_team *team, const struct perf_buffer *buffer)
{
    if (!buffer->base)
        return true;
    if (team->options->registered)
        return team->library->free(&team->ranks[0], buffer->base);
    return munmap(buffer->base, team->ranks[0].buffer_bytes) == 0;
}

static bool host_begin(struct perf_team *team)
{
    return buffer_create(team, &team->ranks[0].send) && buffer_create(team, &team->ranks[0].recv);
}

static bool host_end(struct perf_team *team)
{
    bool good = buffer_destroy(team, &team->ranks[0].send);
    return buffer_destroy(team, &team->ranks[0].recv) && good;
}

static bool host_fill(const struct perf_rank *rank, const struct perf_case *c)
{
    perf_check_prepare(rank, c);
    return true;
}

/* The views are the buffers. */
static bool host_same(const struct perf_rank *rank, const struct perf_case *c)
{
    (void)rank;
    (void)c;
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call is done when it returns. */
static bool host_settle(const struct perf_team *team)
{
    (void)team;
    return true;
}

static bool host_once(const struct perf_team *team, const struct perf_case *c)
{
    return team->library->call(team, c);
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* n calls between barriers. times: each call's, or NULL. mean_us: of this rank. */
static bool loop(const struct perf_team *team, const struct perf_case *c, int n, double *times,
                 double *mean_us)
{
    bool good = true;
    if (!perf_team_ok(team, twill_barrier(team->talk, NULL), "barrier"))
        return false;
    double begin_us = now_us(), before_us = begin_us;
    for (int i = 0; i < n && good; i++) {
        good = team->library->call(team, c);
        if (!times)
            continue;
        double after_us = now_us();
        times[i] = after_us - before_us;
        before_us = after_us;
    }
    *mean_us = (now_us() - begin_us) / n;
    return good && perf_team_ok(team, twill_barrier(team->talk, NULL), "barrier");
}

static bool host_time(struct perf_team *team, const struct perf_case *c, double *mean_us, size_t *n)
{
    int calls = perf_options_calls(team->options, c->size_bytes);
    bool stamped = c->size_bytes >= STAMPED_BYTES;
    double second_us;
    *n = (size_t)calls;
    return loop(team, c, calls, stamped ? team->times : NULL, mean_us) &&
           (stamped || loop(team, c, calls, team->times, &second_us));
}

static size_t host_time_room(const struct perf_options *options)
{
    return (size_t)options->iterations;
}

static const char *host_time_is(const struct perf_options *options)
{
    (void)options;
    return "mean of back-to-back calls between barriers, maximum over the ranks; min, median, p99 "
           "and max are of single calls, each the maximum over the ranks";
}

static void host_describe(const struct perf_team *team, char *text, size_t bytes)
{
    snprintf(text, bytes, "host memory%s", team->options->registered ? ", registered" : "");
}

const struct perf_place perf_place_host = {
    .name = "host",
    .time_is = host_time_is,
    .describe = host_describe,
    .time_room = host_time_room,
    .begin = host_begin,
    .end = host_end,
    .fill = host_fill,
    .put = host_same,
    .get = host_same,
    .settle = host_settle,
    .once = host_once,
    .time = host_time,
};
