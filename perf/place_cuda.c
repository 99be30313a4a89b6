/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls on GPUs: a stream for each rank, its events as the clock, graphs. Never knows: what
 * is moved, whose calls they are.
 *
 * A timed loop begins with a barrier of the members and one block that is not timed, so that ranks
 * whose hosts are microseconds apart start the timed ones together. A block is a call, or with -G
 * one replay of a graph of -n calls. The mean is what passes between an event before the first
 * block and one behind the last, divided by the number of calls. Single times are what passes
 * between events around each block, divided by its calls: of calls below STAMPED_BYTES, which an
 * event would slow, in a second loop. Of every figure that of the slowest rank counts.
 *
 * Ranks of a thread that share a device are captured into one graph, which the first of them, their
 * leader, launches; so a kernel may serve them together. */
#include "config.h"

#include <stdlib.h>

#include "gpu.h"
#include "perf_cuda.h"
#include "team.h"

#define STAMPED_BYTES (32u << 20)
#define MAX_STAMPS 1024

struct perf_gpu {
    void *stream;                 /* owned, as all below */
    void *fork;                   /* event */
    void *graph;                  /* of a leader, while its case is measured */
    void *stamps[MAX_STAMPS + 1]; /* events */
    int stamp_count;
    int leader; /* rank of the team */
};

static size_t stamps_of(const struct perf_options *options)
{
    int blocks = options->graph > 0 ? options->graph : options->iterations;
    return blocks < MAX_STAMPS ? (size_t)blocks : MAX_STAMPS;
}

/* ---- streams --------------------------------------------------------------------------------- */

static bool gpu_create(struct perf_team *team, struct perf_rank *rank)
{
    struct perf_gpu *gpu = calloc(1, sizeof(*gpu));
    if (!gpu) {
        fprintf(stderr, "twill-perf: rank %d: out of memory\n", rank->rank);
        return false;
    }
    rank->gpu = gpu;
    while (team->ranks[gpu->leader].device != rank->device)
        gpu->leader++;
    bool first = team->options->overlap == PERF_OVERLAP_FIRST;
    if (!perf_cuda_stream_create(rank->device, first, &gpu->stream) ||
        !perf_cuda_event_create(rank->device, &gpu->fork))
        return false;
    rank->stream = gpu->stream;
    for (size_t i = 0; i <= stamps_of(team->options); i++) {
        if (!perf_cuda_event_create(rank->device, &gpu->stamps[i]))
            return false;
        gpu->stamp_count++;
    }
    return true;
}

static bool gpu_destroy(struct perf_rank *rank)
{
    struct perf_gpu *gpu = rank->gpu;
    bool good = true;
    if (!gpu)
        return true;
    for (int i = 0; i < gpu->stamp_count; i++)
        good &= perf_cuda_event_destroy(gpu->stamps[i]);
    if (gpu->fork)
        good &= perf_cuda_event_destroy(gpu->fork);
    if (gpu->stream)
        good &= perf_cuda_stream_destroy(gpu->stream);
    free(gpu);
    rank->gpu = NULL;
    return good;
}

static bool cuda_begin(struct perf_team *team)
{
    for (int i = 0; i < team->count; i++) {
        struct perf_rank *rank = &team->ranks[i];
        if (!gpu_create(team, rank) || !perf_gpu_buffers_create(team, rank))
            return false;
    }
    return true;
}

static bool cuda_end(struct perf_team *team)
{
    bool good = true;
    for (int i = 0; i < team->count; i++) {
        struct perf_rank *rank = &team->ranks[i];
        good &= perf_gpu_buffers_destroy(team, rank);
        good &= gpu_destroy(rank);
    }
    return good;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool cuda_settle(const struct perf_team *team)
{
    bool good = true;
    for (int i = 0; i < team->count; i++)
        good &= perf_cuda_stream_wait(team->ranks[i].stream);
    return team->library->healthy(team) && good;
}

static bool leads(const struct perf_team *team, int i) { return team->ranks[i].gpu->leader == i; }

/* Streams that are not their device's leader's begin behind its (fork), or it goes on behind
 * theirs. */
static bool tie(const struct perf_team *team, bool fork)
{
    bool good = true;
    for (int i = 0; i < team->count && good; i++) {
        struct perf_gpu *gpu = team->ranks[i].gpu, *leader = team->ranks[gpu->leader].gpu;
        if (leads(team, i))
            continue;
        void *from = fork ? leader->stream : gpu->stream, *to = fork ? gpu->stream : leader->stream;
        good = perf_cuda_event_record(gpu->fork, from) && perf_cuda_event_await(gpu->fork, to);
    }
    return good;
}

static bool calls_make(const struct perf_team *team, const struct perf_case *c, int n)
{
    bool good = true;
    for (int i = 0; i < n && good; i++)
        good = team->library->call(team, c);
    return good;
}

static bool graphs_destroy(const struct perf_team *team)
{
    bool good = true;
    for (int i = 0; i < team->count; i++) {
        struct perf_gpu *gpu = team->ranks[i].gpu;
        if (gpu->graph)
            good &= perf_cuda_graph_destroy(gpu->graph);
        gpu->graph = NULL;
    }
    return good;
}

static bool graphs_capture(const struct perf_team *team, const struct perf_case *c, int n)
{
    int begun = 0;
    bool good = true;
    for (; begun < team->count && good; begun++)
        good = !leads(team, begun) || perf_cuda_capture_begin(team->ranks[begun].stream);
    begun -= !good;
    good = good && tie(team, true) && calls_make(team, c, n) && tie(team, false);
    for (int i = 0; i < begun; i++)
        if (leads(team, i))
            good &= perf_cuda_capture_end(team->ranks[i].stream, &team->ranks[i].gpu->graph);
    if (!good)
        graphs_destroy(team);
    return good;
}

/* One replay, or one call of each rank. */
static bool block(const struct perf_team *team, const struct perf_case *c, bool replay)
{
    bool good = true;
    if (!replay)
        return team->library->call(team, c);
    for (int i = 0; i < team->count && good; i++)
        if (leads(team, i))
            good = perf_cuda_graph_launch(team->ranks[i].gpu->graph, team->ranks[i].stream);
    return good;
}

static bool cuda_once(const struct perf_team *team, const struct perf_case *c)
{
    bool replay = team->options->graph > 0;
    if (replay && !graphs_capture(team, c, 1))
        return false;
    bool good = block(team, c, replay);
    good = good && cuda_settle(team);
    return graphs_destroy(team) && good;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Of one case: which blocks there are. */
struct blocks {
    int count, calls; /* calls: of one block */
    bool replay;
};

static bool stamp(const struct perf_team *team, const struct blocks *blocks, int k)
{
    bool good = true;
    for (int i = 0; i < team->count && good; i++)
        if (!blocks->replay || leads(team, i))
            good = perf_cuda_event_record(team->ranks[i].gpu->stamps[k], team->ranks[i].stream);
    return good;
}

/* The slowest rank's time from stamp a to stamp b. */
static bool stamps_us(const struct perf_team *team, const struct blocks *blocks, int a, int b,
                      double *most_us)
{
    *most_us = 0;
    for (int i = 0; i < team->count; i++) {
        struct perf_gpu *gpu = team->ranks[i].gpu;
        double us = 0;
        if (blocks->replay && !leads(team, i))
            continue;
        if (!perf_cuda_event_us(gpu->stamps[a], gpu->stamps[b], &us))
            return false;
        *most_us = us > *most_us ? us : *most_us;
    }
    return true;
}

/* The blocks; each: with a stamp behind every one, else behind the last. mean_us: of a call */
static bool loop(const struct perf_team *team, const struct perf_case *c,
                 const struct blocks *blocks, bool each, double *mean_us)
{
    int last = each ? blocks->count : 1;
    *mean_us = 0;
    bool good = cuda_settle(team) &&
                perf_team_ok(team, twill_barrier(team->talk, NULL), "barrier") &&
                block(team, c, blocks->replay) && stamp(team, blocks, 0);
    for (int k = 1; k <= blocks->count && good; k++) {
        good = block(team, c, blocks->replay);
        if (each || k == blocks->count)
            good = good && stamp(team, blocks, each ? k : 1);
    }
    good = good && cuda_settle(team) && stamps_us(team, blocks, 0, last, mean_us);
    *mean_us /= (double)blocks->count * blocks->calls;
    return good;
}

static bool single_times(struct perf_team *team, const struct blocks *blocks)
{
    for (int k = 0; k < blocks->count; k++) {
        if (!stamps_us(team, blocks, k, k + 1, &team->times[k]))
            return false;
        team->times[k] /= blocks->calls;
    }
    return true;
}

static bool cuda_time(struct perf_team *team, const struct perf_case *c, double *mean_us, size_t *n)
{
    const struct perf_options *options = team->options;
    int calls = perf_options_calls(options, c->size_bytes);
    bool replay = options->graph > 0;
    struct blocks blocks = {
        .count = replay ? options->graph : calls, .calls = replay ? calls : 1, .replay = replay};
    bool once = blocks.count <= MAX_STAMPS && (replay || c->size_bytes >= STAMPED_BYTES);
    double second_us;
    if (replay && !graphs_capture(team, c, calls))
        return false;
    bool good = loop(team, c, &blocks, once, mean_us);
    if (!once && good) {
        blocks.count = blocks.count < MAX_STAMPS ? blocks.count : MAX_STAMPS;
        good = loop(team, c, &blocks, true, &second_us);
    }
    *n = (size_t)blocks.count;
    good = good && single_times(team, &blocks);
    return graphs_destroy(team) && good;
}

static const char *cuda_time_is(const struct perf_options *options)
{
    return options->graph > 0
               ? "mean of the calls in replayed graphs, by events around all replays, maximum over "
                 "the ranks; min, median, p99 and max are of single replays, divided by their calls"
               : "mean of back-to-back calls on a stream, by events around them, maximum over the "
                 "ranks; min, median, p99 and max are of single calls, by events between them";
}

static void cuda_describe(const struct perf_team *team, char *text, size_t bytes)
{
    static const char *const memory[] = {"", ", registered", ", registered memory of the library"};
    const struct perf_options *options = team->options;
    char name[256], mode[64] = "stream";
    const char *why;
    perf_cuda_name(team->ranks[0].device, name, sizeof(name));
    if (options->graph > 0)
        snprintf(mode, sizeof(mode), "graph replayed %d times", options->graph);
    snprintf(text, bytes, "cuda (%s, %d visible), %s%s", name, perf_cuda_count(&why), mode,
             memory[options->registered]);
}

const struct perf_place perf_place_cuda = {
    .name = "cuda",
    .time_is = cuda_time_is,
    .describe = cuda_describe,
    .time_room = stamps_of,
    .begin = cuda_begin,
    .end = cuda_end,
    .fill = perf_gpu_fill,
    .put = perf_gpu_put,
    .get = perf_gpu_get,
    .settle = cuda_settle,
    .once = cuda_once,
    .time = cuda_time,
};
