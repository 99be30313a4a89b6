/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a host of which no more is known than its CPUs. Never knows: where they sit. */
#include "config.h"

#include "topo/plain.h"

#include <stdio.h>
#include <unistd.h>

#include "base/status.h"
#include "topo/build.h"

static uint64_t cache_bytes(int name)
{
    long bytes = sysconf(name);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static bool tree_add(struct tw_topo_machine *machine, const uint32_t *cpus, uint32_t count)
{
    uint32_t host = tw_topo_part_add(machine, TW_NODE_HOST, TW_TOPO_NONE, TW_TOPO_NONE);
    if (host == TW_TOPO_NONE)
        return false;
    uint32_t package = tw_topo_part_add(machine, TW_NODE_PACKAGE, host, 0);
    if (package == TW_TOPO_NONE)
        return false;
    uint32_t numa = tw_topo_part_add(machine, TW_NODE_NUMA, package, 0);
    if (numa == TW_TOPO_NONE || tw_topo_part_add(machine, TW_NODE_MEMORY, numa, 0) == TW_TOPO_NONE)
        return false;
    uint32_t cache = tw_topo_part_add(machine, TW_NODE_CACHE, numa, 0);
    if (cache == TW_TOPO_NONE)
        return false;
    machine->nodes[cache].level = 3;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t core = tw_topo_part_add(machine, TW_NODE_CORE, cache, i);
        if (core == TW_TOPO_NONE ||
            tw_topo_part_add(machine, TW_NODE_PU, core, cpus ? cpus[i] : i) == TW_TOPO_NONE)
            return false;
    }
    return true;
}

enum twill_status tw_topo_plain(struct tw_topo_graph **graph, const uint32_t *cpus, uint32_t count)
{
    struct tw_topo_graph *made = tw_topo_graph_create("plain");
    if (!made)
        return TWILL_ERR_NOMEM;
    enum twill_status status = TWILL_ERR_NOMEM;
    if (tw_topo_machine_add(made) == TW_TOPO_NONE || !tw_topo_hosts_add(made, 0, 1))
        goto err_graph;
    struct tw_topo_machine *machine = &made->machines[0];
    snprintf(machine->name, sizeof(machine->name), "plain");
    machine->origin = TW_TOPO_ESTIMATE;
    if (cpus) {
        machine->l1d_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
        machine->l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
        machine->l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE);
    }
    if (!tree_add(machine, cpus, count) ||
        !tw_topo_tree_link(machine, tw_topo_typical(NULL), TW_TOPO_ESTIMATE))
        goto err_graph;
    status = tw_topo_graph_seal(made);
    if (tw_failed(status))
        goto err_graph;
    *graph = made;
    return TWILL_OK;

err_graph:
    tw_topo_graph_free(made);
    return status;
}
