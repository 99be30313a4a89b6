/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the ranks of a communicator tell each other of their host, and what they make of it.
 * Never knows: how it travels, what is chosen by it. */
#include "config.h"

#include "comm/facts.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comm/control.h"
#include "topo/plain.h"
#include "topo/probe.h"

/* What this process knows of its host: it holds as long as the process, so that communicators that
 * come later need not measure again. */
static struct {
    pthread_mutex_t lock;
    bool tried; /* measured here, or an attempt failed */
    struct tw_topo_measured measured;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- measuring ------------------------------------------------------------------------------ */

/* CPUs of the set so that neighbours in the list are far from each other, as numbers go: pairs of
 * neighbours are measured, and those with near numbers may be threads of one core. */
static uint32_t cpus_list(const struct tw_cpus *cpus, uint32_t list[TW_CPUS_MOST])
{
    uint32_t all[TW_CPUS_MOST] = {0};
    uint32_t count = 0, used = 0;
    for (uint32_t c = 0; c < TW_CPUS_MOST; c++)
        if (cpus->words[c / 64] >> c % 64 & 1)
            all[count++] = c;
    uint32_t step = count / 4 ? count / 4 : 1;
    for (uint32_t first = 0; first < step; first++)
        for (uint32_t i = first; i < count; i += step)
            list[used++] = all[i];
    return used;
}

/* In a thread of its own, which may use what the others of this host are bound to: they wait. */
static void *measure_main(void *arg)
{
    struct tw_topo_measured *measured = arg;
    struct tw_topo_graph *graph = NULL;
    struct tw_cpus cpus;
    uint32_t list[TW_CPUS_MOST];
    cpu_set_t every;
    memset(&every, 0xff, sizeof(every));
    (void)sched_setaffinity(0, sizeof(every), &every); /* the kernel keeps to the control group */
    tw_cpus_get(&cpus);
    enum twill_status status = tw_topo_plain(&graph, list, cpus_list(&cpus, list));
    if (!tw_failed(status))
        status = tw_topo_measure(&graph->machines[0], TW_TOPO_PROBE_NS, measured);
    if (tw_failed(status))
        tw_info(TW_SUB_COMM, "this host is not measured: %s", tw_fail_text());
    tw_topo_graph_free(graph);
    return NULL;
}

/* Under the lock. */
static void measure(void)
{
    struct tw_topo_measured found = {0};
    pthread_t thread;
    uint64_t start_ns = tw_now_ns();
    host.tried = true;
    if (tw_thread_start(&thread, "twill-probe", measure_main, &found) != TWILL_OK) {
        tw_info(TW_SUB_COMM, "this host is not measured: %s", tw_fail_text());
        return;
    }
    (void)pthread_join(thread, NULL);
    tw_topo_measured_merge(&host.measured, &found);
    tw_debug(TW_SUB_COMM, "measuring this host took %llu us",
             (unsigned long long)((tw_now_ns() - start_ns) / 1000));
}

/* ---- telling -------------------------------------------------------------------------------- */

void tw_facts_say(const struct twill_comm *comm, struct tw_facts_entry *entry)
{
    struct tw_topo_measured measured = {0};
    if (comm->size > 1 && comm->proc->params->probe) {
        (void)pthread_mutex_lock(&host.lock);
        if (comm->rank == 0 && !host.tried)
            measure();
        measured = host.measured;
        (void)pthread_mutex_unlock(&host.lock);
    }
    tw_topo_measured_pack(&measured, entry->measured);
    tw_cpus_get(&entry->cpus);
    entry->quota = comm->proc->cpu_quota;
    entry->unused = 0;
}

/* Later communicators of this process need not measure what others have measured. */
static void keep(const struct tw_topo_measured *measured)
{
    static const struct tw_topo_measured nothing;
    if (memcmp(measured, &nothing, sizeof(nothing)) == 0)
        return;
    (void)pthread_mutex_lock(&host.lock);
    host.tried = true;
    tw_topo_measured_merge(&host.measured, measured);
    (void)pthread_mutex_unlock(&host.lock);
}

enum twill_status tw_facts_merge(const struct twill_comm *comm,
                                 const struct tw_facts_entry *const *entries,
                                 struct tw_facts *facts)
{
    struct tw_facts made;
    struct tw_cpus cpus = {{0}};
    int quota = 0;
    memset(&made, 0, sizeof(made)); /* compared as bytes */
    for (int r = 0; r < comm->size; r++) {
        struct tw_topo_measured one;
        enum twill_status status = tw_topo_measured_unpack(&one, entries[r]->measured);
        if (tw_failed(status))
            return tw_fail(status, "init: rank %d: %s", r, tw_fail_text());
        tw_topo_measured_merge(&made.measured, &one);
        tw_cpus_add(&cpus, &entries[r]->cpus);
        if (entries[r]->quota > 0 && (quota == 0 || entries[r]->quota < quota))
            quota = entries[r]->quota;
    }
    int count = tw_cpus_count(&cpus);
    count = quota > 0 && quota < count ? quota : count;
    made.cpus = count > 0 ? (uint32_t)count : 1;
    made.one_process = comm->ranks_here == comm->size;
    keep(&made.measured);
    *facts = made;
    return TWILL_OK;
}

enum twill_status tw_facts_compare(const struct tw_facts_stamp *stamps, int size)
{
    for (int r = 1; r < size; r++) {
        const char *what = NULL;
        if (stamps[r].measured != stamps[0].measured)
            what = "measurements of the host";
        else if (stamps[r].table != stamps[0].table)
            what = "costs (TWILL_COST_FILE)";
        else if (stamps[r].plans != stamps[0].plans)
            what = "plans (TWILL_PLAN_FILE)";
        if (what)
            return tw_fail(
                TWILL_ERR_MISMATCH,
                "init: rank 0 and rank %d have different %s: they would not choose alike", r, what);
    }
    return TWILL_OK;
}
