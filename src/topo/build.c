/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which links and resources the parts of a host have. Never knows: which host it is. */
#include "config.h"

#include "topo/build.h"

#include <stdlib.h>

#include "base/status.h"

uint32_t tw_topo_part_add(struct tw_topo_machine *machine, unsigned kind, uint32_t parent,
                          uint32_t os_index)
{
    struct tw_topo_node node = {
        .kind = (uint8_t)kind,
        .parent = parent,
        .os_index = os_index,
    };
    return tw_topo_node_add(machine, &node);
}

/* A link with one resource each way, or one for both. */
static bool link_add(struct tw_topo_machine *machine, struct tw_topo_link *link, bool half_duplex)
{
    for (int d = 0; d < 2; d++) {
        link->resource[d] = d && half_duplex
                                ? link->resource[0]
                                : tw_topo_resource_add(machine, link->from, link->bytes_per_s[d]);
        if (link->resource[d] == TW_TOPO_NONE)
            return false;
    }
    return tw_topo_link_add(machine, link) != TW_TOPO_NONE;
}

bool tw_topo_wire_add(struct tw_topo_machine *machine, uint32_t from, uint32_t to,
                      uint64_t latency_ps, uint64_t bytes_per_s, unsigned origin)
{
    struct tw_topo_link link = {
        .from = from,
        .to = to,
        .origin = (uint8_t)origin,
        .latency_ps = {latency_ps, latency_ps},
        .bytes_per_s = {bytes_per_s, bytes_per_s},
    };
    return link_add(machine, &link, false);
}

int tw_topo_part_near(const struct tw_topo_node *node)
{
    switch (node->kind) {
    case TW_NODE_CORE:
        return TW_TOPO_NEAR_CORE;
    case TW_NODE_CACHE:
        return node->level > 2 ? TW_TOPO_NEAR_L3 : TW_TOPO_NEAR_L2;
    case TW_NODE_NUMA:
        return TW_TOPO_NEAR_NUMA;
    case TW_NODE_PACKAGE:
        return TW_TOPO_NEAR_PACKAGE;
    case TW_NODE_HOST:
        return TW_TOPO_NEAR_HOST;
    default:
        return -1;
    }
}

void tw_topo_tree_around(const struct tw_topo_machine *machine,
                         const uint64_t line_ps[TW_TOPO_NEAR_COUNT], uint64_t *around_ps)
{
    for (uint32_t i = 0; i < machine->nnodes; i++) {
        int near = tw_topo_part_near(&machine->nodes[i]);
        around_ps[i] = near < 0 ? 0 : line_ps[near];
    }
    /* a part is not crossed sooner than one inside it, whatever the order of kinds */
    for (uint32_t i = machine->nnodes; i-- > 1;) {
        uint32_t parent = machine->nodes[i].parent;
        if (around_ps[parent] < around_ps[i])
            around_ps[parent] = around_ps[i];
    }
}

static uint64_t part_rate(const struct tw_topo_node *node, const struct tw_topo_rates *rates)
{
    switch (node->kind) {
    case TW_NODE_PU:
    case TW_NODE_CORE:
        return rates->core_bytes_per_s;
    case TW_NODE_CACHE:
        return rates->cache_bytes_per_s;
    case TW_NODE_NUMA:
        return rates->numa_bytes_per_s;
    case TW_NODE_PACKAGE:
        return rates->socket_bytes_per_s;
    case TW_NODE_MEMORY:
        return rates->memory_bytes_per_s;
    default:
        return 0;
    }
}

bool tw_topo_tree_link(struct tw_topo_machine *machine, const struct tw_topo_rates *rates,
                       unsigned origin)
{
    uint64_t *around_ps = calloc((size_t)machine->nnodes + 1, sizeof(*around_ps));
    if (!around_ps) {
        (void)tw_fail(TWILL_ERR_NOMEM, "no memory for %u nodes", machine->nnodes);
        return false;
    }
    tw_topo_tree_around(machine, rates->line_ps, around_ps);
    bool fits = true;
    for (uint32_t i = 1; i < machine->nnodes && fits; i++) {
        const struct tw_topo_node *node = &machine->nodes[i];
        uint64_t rate = part_rate(node, rates);
        if (rate == 0 || node->uplink != TW_TOPO_NONE)
            continue;
        bool memory = node->kind == TW_NODE_MEMORY;
        uint64_t both_ps = memory ? 2 * rates->memory_ps : around_ps[node->parent] - around_ps[i];
        struct tw_topo_link link = {
            .from = i,
            .to = node->parent,
            .origin = (uint8_t)origin,
            .latency_ps = {both_ps / 2, both_ps - both_ps / 2},
            .bytes_per_s = {rate, rate},
        };
        fits = link_add(machine, &link, memory);
    }
    free(around_ps);
    return fits;
}
