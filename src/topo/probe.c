/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which pairs of CPUs to measure, and which one by itself, and threads that do.
 * Never knows: copies, the cache of results. */
#include "config.h"

#include "topo/probe.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/time.h"
#include "topo/line.h"
#include "topo/probe_copy.h"
#include "topo/self.h"

#define SAMPLES 4 /* pairs of each nearness */
#define PAIRS_MOST (SAMPLES * TW_TOPO_NEAR_COUNT)

struct pair {
    int cpu[2];
    unsigned near;
    uint64_t line_ps; /* out; 0: not measured */
};

struct probe {
    struct tw_topo_court *court; /* owned */
    const struct tw_topo_machine *machine;
    struct tw_topo_measured *measured;
    struct pair pair[PAIRS_MOST];
    unsigned npairs;
    int first_cpu;      /* switches and copies are measured here; -1: none is known */
    uint64_t switch_ps; /* out; 0: not measured */
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

/* Each side pins itself, and side 0 keeps the result. @return false: too late, or not there */
static bool pair_play(struct probe *probe, struct pair *pair, int side, uint64_t *turn)
{
    uint64_t line_ps = 0;
    bool pinned = pin(pair->cpu[side]);
    if (!pinned)
        tw_topo_line_give_up(probe->court);
    bool played = tw_topo_line_play(probe->court, side, turn, probe->lines_deadline_ns, &line_ps);
    if (played && side == 0)
        pair->line_ps = line_ps;
    return played;
}

/* Both sides on one CPU. */
static void switch_play(struct probe *probe, int side, uint64_t *turn)
{
    uint64_t switch_ps = 0;
    if (!pin(probe->first_cpu))
        tw_topo_line_give_up(probe->court);
    bool played =
        tw_topo_switch_play(probe->court, side, turn, probe->lines_deadline_ns, &switch_ps);
    if (played && side == 0)
        probe->switch_ps = switch_ps;
}

/* Each of two threads runs it. */
static void games_play(struct probe *probe, int side)
{
    uint64_t turn = 0;
    for (unsigned p = 0; p < probe->npairs; p++)
        if (!pair_play(probe, &probe->pair[p], side, &turn))
            return;
    switch_play(probe, side, &turn);
}

static void *thread_one(void *arg)
{
    games_play(arg, 1);
    return NULL;
}

static void *thread_zero(void *arg)
{
    struct probe *probe = arg;
    if (probe->first_cpu >= 0) {
        games_play(probe, 0);
        (void)pin(probe->first_cpu);
    }
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
    bool two = probe->first_cpu >= 0;
    if (pthread_create(&thread[0], NULL, thread_zero, probe))
        return tw_fail(TWILL_ERR_SYSTEM, "no thread for measuring this host");
    bool second = two && pthread_create(&thread[1], NULL, thread_one, probe) == 0;
    if (two && !second)
        tw_topo_line_give_up(probe->court);
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
    probe.court = aligned_alloc(TW_TOPO_COURT_ALIGN, sizeof(*probe.court));
    if (!probe.court)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for measuring this host");
    memset(probe.court, 0, sizeof(*probe.court));
    status = probe_run(&probe);
    free(probe.court);
    if (tw_failed(status))
        return status;
    bool lines = lines_take(&probe, &found);
    found.switch_ps = probe.switch_ps;
    *measured = found;
    if (complete)
        *complete = lines && (found.switch_ps || probe.first_cpu < 0) && probe.copies_complete;
    return TWILL_OK;
}
