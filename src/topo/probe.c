/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which pairs of CPUs to measure, and cache lines handed to and fro between them.
 * Never knows: copies, the cache of results. */
#include "config.h"

#include "topo/probe.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/time.h"
#include "topo/probe_copy.h"
#include "topo/self.h"

#define SAMPLES 4 /* pairs of each nearness */
#define RUNS 6    /* of a pair; the best counts */
#define ROUND_TRIPS 32
#define LOOKS 256 /* at a line between looks at the clock */
#define PAIRS_MOST (SAMPLES * TW_TOPO_NEAR_COUNT)

struct pair {
    int cpu[2];
    unsigned near;
    uint64_t line_ps; /* out; 0: not measured */
};

/* Shared by the two threads; a line each for what one writes and the other reads. */
struct court {
    struct {
        _Alignas(2 *
                 TW_LINE_BYTES) _Atomic uint64_t ball; /* pairs of lines may be fetched at once */
    } side[2];
    _Alignas(2 * TW_LINE_BYTES) _Atomic int late; /* a wait has seen the deadline pass */
};

struct probe {
    struct court *court; /* owned */
    const struct tw_topo_machine *machine;
    struct tw_topo_measured *measured;
    struct pair pair[PAIRS_MOST];
    unsigned npairs;
    int first_cpu; /* copies are measured here; -1: anywhere */
    uint64_t lines_deadline_ns, deadline_ns;
    bool copies_complete;
};

/* ---- pairs ---------------------------------------------------------------------------------- */

/* From a base, the first CPU after it of each nearness. */
static void pairs_from(struct probe *probe, const uint32_t *pus, uint32_t count, uint32_t base)
{
    bool seen[TW_TOPO_NEAR_COUNT] = {false};
    for (uint32_t step = 1; step < count && probe->npairs < PAIRS_MOST; step++) {
        uint32_t a = pus[base], b = pus[(base + step) % count];
        enum tw_topo_near near = tw_topo_near_of(probe->machine, a, b);
        if (seen[near])
            continue;
        seen[near] = true;
        probe->pair[probe->npairs++] = (struct pair){
            .cpu = {(int)probe->machine->nodes[a].os_index, (int)probe->machine->nodes[b].os_index},
            .near = near,
        };
    }
}

static enum twill_status pairs_choose(struct probe *probe)
{
    uint32_t *pus = malloc(probe->machine->nnodes * sizeof(*pus));
    if (!pus)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for %u nodes", probe->machine->nnodes);
    uint32_t count = tw_topo_cpus_allowed(probe->machine, pus);
    uint32_t samples = count / 2 < SAMPLES ? count / 2 : SAMPLES;
    for (uint32_t s = 0; s < samples; s++)
        pairs_from(probe, pus, count, (uint32_t)((uint64_t)s * count / samples));
    probe->first_cpu = count ? (int)probe->machine->nodes[pus[0]].os_index : -1;
    free(pus);
    return TWILL_OK;
}

/* ---- to and fro ----------------------------------------------------------------------------- */

/* @return false: this thread cannot run there */
static bool pin(int cpu)
{
    size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
    cpu_set_t *set = CPU_ALLOC(cpu + 1);
    if (!set)
        return false;
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(cpu, bytes, set);
    bool pinned = sched_setaffinity(0, bytes, set) == 0;
    CPU_FREE(set);
    return pinned;
}

/* @return false: too late */
static bool await(struct court *court, _Atomic uint64_t *ball, uint64_t value, uint64_t deadline_ns)
{
    for (;;) {
        for (int i = 0; i < LOOKS; i++)
            if (atomic_load_explicit(ball, memory_order_acquire) >= value)
                return true;
        if (tw_now_ns() > deadline_ns)
            atomic_store_explicit(&court->late, 1, memory_order_relaxed);
        if (atomic_load_explicit(&court->late, memory_order_relaxed))
            return false;
    }
}

/* One pair: each side pins itself, and thread 0 measures. Balls only ever grow. */
static bool pair_play(struct probe *probe, struct pair *pair, int side, uint64_t *turn)
{
    struct court *court = probe->court;
    _Atomic uint64_t *mine = &court->side[side].ball, *theirs = &court->side[1 - side].ball;
    uint64_t best_ns = UINT64_MAX;
    if (!pin(pair->cpu[side]))
        atomic_store_explicit(&court->late, 1, memory_order_relaxed);
    for (int run = 0; run <= RUNS; run++) { /* the first is for meeting */
        uint64_t start_ns = tw_now_ns();
        for (int i = 0; i < ROUND_TRIPS; i++) {
            uint64_t next = ++*turn;
            if (side == 0)
                atomic_store_explicit(mine, next, memory_order_release);
            if (!await(court, theirs, next, probe->lines_deadline_ns))
                return false;
            if (side == 1)
                atomic_store_explicit(mine, next, memory_order_release);
        }
        uint64_t took_ns = tw_now_ns() - start_ns;
        if (run > 0 && took_ns < best_ns)
            best_ns = took_ns;
    }
    if (side == 0)
        pair->line_ps = best_ns * 1000 / ROUND_TRIPS / 2;
    return true;
}

static void lines_measure(struct probe *probe, int side)
{
    uint64_t turn = 0;
    for (unsigned p = 0; p < probe->npairs; p++)
        if (!pair_play(probe, &probe->pair[p], side, &turn))
            return;
}

static void *thread_one(void *arg)
{
    lines_measure(arg, 1);
    return NULL;
}

static void *thread_zero(void *arg)
{
    struct probe *probe = arg;
    lines_measure(probe, 0);
    if (probe->first_cpu >= 0)
        (void)pin(probe->first_cpu);
    probe->copies_complete =
        tw_topo_copies_measure(probe->machine, probe->deadline_ns, probe->measured);
    return NULL;
}

/* ---- all ------------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The median of each nearness. @return false: a pair was not measured */
static bool lines_take(const struct probe *probe, struct tw_topo_measured *measured)
{
    bool all = true;
    for (unsigned near = 0; near < TW_TOPO_NEAR_COUNT; near++) {
        uint64_t line_ps[PAIRS_MOST];
        size_t count = 0;
        for (unsigned p = 0; p < probe->npairs; p++) {
            if (probe->pair[p].near != near)
                continue;
            if (probe->pair[p].line_ps != 0)
                line_ps[count++] = probe->pair[p].line_ps;
            else
                all = false;
        }
        if (count == 0)
            continue;
        qsort(line_ps, count, sizeof(*line_ps), by_time);
        measured->line_ps[near] = line_ps[(count - 1) / 2];
    }
    return all;
}

static enum twill_status probe_run(struct probe *probe)
{
    pthread_t thread[2];
    bool two = probe->npairs > 0;
    if (pthread_create(&thread[0], NULL, thread_zero, probe))
        return tw_fail(TWILL_ERR_SYSTEM, "no thread for measuring this host");
    bool second = two && pthread_create(&thread[1], NULL, thread_one, probe) == 0;
    if (two && !second)
        atomic_store_explicit(&probe->court->late, 1, memory_order_relaxed);
    (void)pthread_join(thread[0], NULL);
    if (second)
        (void)pthread_join(thread[1], NULL);
    return TWILL_OK;
}

enum twill_status tw_topo_probe(const struct tw_topo_machine *machine, uint64_t budget_ns,
                                struct tw_topo_measured *measured, bool *complete)
{
    uint64_t now_ns = tw_now_ns();
    struct tw_topo_measured found = {0};
    struct probe probe = {
        .machine = machine,
        .measured = &found,
        .lines_deadline_ns = now_ns + budget_ns / 2,
        .deadline_ns = now_ns + budget_ns - budget_ns / 8,
    };
    enum twill_status status = pairs_choose(&probe);
    if (tw_failed(status))
        return status;
    probe.court = aligned_alloc(_Alignof(struct court), sizeof(*probe.court));
    if (!probe.court)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for measuring this host");
    memset(probe.court, 0, sizeof(*probe.court));
    status = probe_run(&probe);
    free(probe.court);
    if (tw_failed(status))
        return status;
    bool lines = lines_take(&probe, &found);
    *measured = found;
    if (complete)
        *complete = lines && probe.copies_complete;
    return TWILL_OK;
}
