/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what makes a graph whole. Never knows: where it came from. */
#include "config.h"

#include "topo/check.h"

#include <string.h>

#include "base/status.h"

#define DEPTH_MOST 16

/* Faults of a machine. */
static enum twill_status bad_node(const struct tw_topo_machine *machine, uint32_t node,
                                  const char *what)
{
    return tw_fail(TWILL_ERR_INVALID, "machine %s: node %u: %s", machine->name, node, what);
}

static enum twill_status bad_link(const struct tw_topo_machine *machine, uint32_t link,
                                  const char *what)
{
    return tw_fail(TWILL_ERR_INVALID, "machine %s: link %u: %s", machine->name, link, what);
}

/* A text that ends and has no control characters in it: XML could not hold them. */
static bool readable(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\0')
            return true;
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    }
    return false;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

/* Which kinds may lie in which. */
static bool fits(unsigned kind, unsigned parent)
{
    switch (kind) {
    case TW_NODE_HOST:
        return false;
    case TW_NODE_MEMORY:
        return parent == TW_NODE_NUMA;
    case TW_NODE_PU:
        return parent == TW_NODE_CORE;
    case TW_NODE_NET:
    case TW_NODE_NVSWITCH:
        return parent == TW_NODE_HOST;
    case TW_NODE_PACKAGE:
    case TW_NODE_NUMA:
    case TW_NODE_CACHE:
    case TW_NODE_CORE:
        return parent == TW_NODE_HOST || parent == TW_NODE_PACKAGE || parent == TW_NODE_NUMA ||
               parent == TW_NODE_CACHE;
    default: /* PCI devices: below each other, or below a part of the tree of CPUs */
        return parent == TW_NODE_HOST || parent == TW_NODE_PACKAGE || parent == TW_NODE_NUMA ||
               parent == TW_NODE_PCIROOT || parent == TW_NODE_PCISWITCH;
    }
}

static bool linked_to_parent(unsigned kind)
{
    return kind != TW_NODE_HOST && kind != TW_NODE_NET && kind != TW_NODE_NVSWITCH;
}

static enum twill_status check_uplink(const struct tw_topo_machine *machine, uint32_t index)
{
    const struct tw_topo_node *node = &machine->nodes[index];
    if (!linked_to_parent(node->kind))
        return node->uplink == TW_TOPO_NONE ? TWILL_OK
                                            : bad_node(machine, index, "a link to its parent");
    if (node->uplink >= machine->nlinks)
        return bad_node(machine, index, "no link to its parent");
    const struct tw_topo_link *link = &machine->links[node->uplink];
    if (link->from != index || link->to != node->parent)
        return bad_node(machine, index, "its uplink is not the link to its parent");
    return TWILL_OK;
}

static enum twill_status check_node(const struct tw_topo_machine *machine, uint32_t index)
{
    const struct tw_topo_node *node = &machine->nodes[index];
    if (!readable(node->name, sizeof(node->name)) || !readable(node->model, sizeof(node->model)))
        return bad_node(machine, index, "a name with control characters or without end");
    if (node->kind >= TW_NODE_KIND_COUNT)
        return bad_node(machine, index, "no such kind");
    if ((node->kind == TW_NODE_CACHE) != (node->level != 0) || node->level > 5)
        return bad_node(machine, index, "a level from 1 to 5 is for caches, and caches have one");
    if (node->memory_bytes_per_s > TW_TOPO_RATE_MOST)
        return bad_node(machine, index, "a rate beyond all bounds");
    if (index == 0) {
        if (node->kind != TW_NODE_HOST || node->parent != TW_TOPO_NONE)
            return bad_node(machine, index, "the first node must be the host");
        return TWILL_OK;
    }
    if (node->parent >= index)
        return bad_node(machine, index, "its parent does not stand before it");
    if (!fits(node->kind, machine->nodes[node->parent].kind))
        return tw_fail(TWILL_ERR_INVALID, "machine %s: node %u: a %s cannot lie in a %s",
                       machine->name, index, tw_topo_kind_name(node->kind),
                       tw_topo_kind_name(machine->nodes[node->parent].kind));
    unsigned depth = 0;
    for (uint32_t at = index; at != 0 && depth <= DEPTH_MOST; at = machine->nodes[at].parent)
        depth++;
    if (depth > DEPTH_MOST)
        return bad_node(machine, index, "nested too deep");
    return check_uplink(machine, index);
}

/* ---- links ---------------------------------------------------------------------------------- */

/* Which kinds a link beside the tree may join. */
static bool joins(unsigned a, unsigned b)
{
    return (a == TW_NODE_NIC && b == TW_NODE_NET) || (a == TW_NODE_GPU && b == TW_NODE_NVSWITCH) ||
           (a == TW_NODE_GPU && b == TW_NODE_GPU) || (a == TW_NODE_PACKAGE && b == TW_NODE_PACKAGE);
}

static enum twill_status check_link(const struct tw_topo_machine *machine, uint32_t index)
{
    const struct tw_topo_link *link = &machine->links[index];
    if (link->from >= machine->nnodes || link->to >= machine->nnodes || link->from == link->to)
        return bad_link(machine, index, "does not join two nodes");
    unsigned from = machine->nodes[link->from].kind, to = machine->nodes[link->to].kind;
    if (machine->nodes[link->from].uplink != index && !joins(from, to))
        return tw_fail(TWILL_ERR_INVALID,
                       "machine %s: link %u: none may lead from a %s to a %s beside the tree",
                       machine->name, index, tw_topo_kind_name(from), tw_topo_kind_name(to));
    if (link->origin >= TW_TOPO_ORIGIN_COUNT)
        return bad_link(machine, index, "no such origin");
    if (link->count > TW_TOPO_CABLES_MOST)
        return bad_link(machine, index, "absurdly many cables");
    for (int d = 0; d < 2; d++) {
        if (link->latency_ps[d] > TW_TOPO_LATENCY_PS_MOST)
            return bad_link(machine, index, "a latency of more than a second");
        if (link->resource[d] >= machine->nresources)
            return bad_link(machine, index, "no such resource");
        if (link->bytes_per_s[d] == 0 ||
            link->bytes_per_s[d] > machine->resources[link->resource[d]].bytes_per_s)
            return bad_link(machine, index, "a rate of 0, or above that of its resource");
    }
    return TWILL_OK;
}

static enum twill_status check_machine(const struct tw_topo_machine *machine)
{
    if (!readable(machine->name, sizeof(machine->name)) ||
        !readable(machine->cpu_model, sizeof(machine->cpu_model)))
        return tw_fail(TWILL_ERR_INVALID, "a machine's name has control characters or no end");
    for (uint32_t i = 0; i < machine->nnotes; i++)
        if (!readable(machine->notes[i], TW_TOPO_NOTE_BYTES))
            return tw_fail(TWILL_ERR_INVALID, "machine %s: note %u has control characters",
                           machine->name, i);
    if (machine->nnodes == 0 || machine->nnodes > TW_TOPO_NODES_MOST)
        return tw_fail(TWILL_ERR_INVALID, "machine %s: %u nodes, not 1 to %u", machine->name,
                       machine->nnodes, TW_TOPO_NODES_MOST);
    if (machine->origin >= TW_TOPO_ORIGIN_COUNT)
        return tw_fail(TWILL_ERR_INVALID, "machine %s: no such origin", machine->name);
    enum twill_status status = TWILL_OK;
    for (uint32_t i = 0; i < machine->nnodes && !tw_failed(status); i++)
        status = check_node(machine, i);
    for (uint32_t i = 0; i < machine->nresources && !tw_failed(status); i++) {
        const struct tw_topo_resource *resource = &machine->resources[i];
        if (resource->node >= machine->nnodes || resource->bytes_per_s == 0 ||
            resource->bytes_per_s > TW_TOPO_RATE_MOST)
            status = tw_fail(TWILL_ERR_INVALID, "machine %s: resource %u: no node or no rate",
                             machine->name, i);
    }
    for (uint32_t i = 0; i < machine->nlinks && !tw_failed(status); i++)
        status = check_link(machine, i);
    if (!tw_failed(status) && tw_topo_node_count(machine, TW_NODE_NET) > 1)
        status = tw_fail(TWILL_ERR_INVALID, "machine %s: more than one net node", machine->name);
    return status;
}

/* ---- fabric --------------------------------------------------------------------------------- */

static enum twill_status check_tier(const struct tw_topo_fabric *fabric, uint32_t t)
{
    const struct tw_topo_tier *tier = &fabric->tier[t];
    if (tier->down == 0)
        return tw_fail(TWILL_ERR_INVALID, "fabric: a switch of tier %u joins nothing", t);
    if (tier->latency_ps > TW_TOPO_LATENCY_PS_MOST)
        return tw_fail(TWILL_ERR_INVALID, "fabric: tier %u: a latency of more than a second", t);
    if (t + 1 < fabric->ntiers &&
        (tier->up_bytes_per_s == 0 || tier->up_bytes_per_s > TW_TOPO_RATE_MOST))
        return tw_fail(TWILL_ERR_INVALID, "fabric: tier %u: a rate of 0 or beyond all bounds", t);
    return TWILL_OK;
}

static enum twill_status check_fabric(const struct tw_topo_graph *graph)
{
    const struct tw_topo_fabric *fabric = &graph->fabric;
    if (fabric->ntiers > TW_TOPO_TIERS_MOST)
        return tw_fail(TWILL_ERR_INVALID, "fabric: %u tiers, more than %d", fabric->ntiers,
                       TW_TOPO_TIERS_MOST);
    uint64_t reach = 1;
    for (uint32_t t = 0; t < fabric->ntiers; t++) {
        enum twill_status status = check_tier(fabric, t);
        if (tw_failed(status))
            return status;
        reach = reach * fabric->tier[t].down;
        reach = reach < TW_TOPO_HOSTS_MOST ? reach : TW_TOPO_HOSTS_MOST;
    }
    if (reach < graph->nhosts)
        return tw_fail(TWILL_ERR_INVALID, "fabric: its tiers join %llu hosts, not %u",
                       (unsigned long long)reach, graph->nhosts);
    if (fabric->rails && fabric->ntiers < 2)
        return tw_fail(TWILL_ERR_INVALID, "fabric: rails need a second tier that joins them");
    for (uint32_t m = 0; fabric->ntiers > 0 && m < graph->nmachines; m++)
        if (tw_topo_node_count(&graph->machines[m], TW_NODE_NET) == 0)
            return tw_fail(TWILL_ERR_INVALID, "machine %s has no net node for the fabric",
                           graph->machines[m].name);
    return TWILL_OK;
}

enum twill_status tw_topo_graph_check(const struct tw_topo_graph *graph)
{
    if (!readable(graph->name, sizeof(graph->name)))
        return tw_fail(TWILL_ERR_INVALID, "a topology's name has control characters or no end");
    if (graph->nmachines == 0)
        return tw_fail(TWILL_ERR_INVALID, "topology %s: no machine", graph->name);
    if (graph->nhosts == 0 || graph->nhosts > TW_TOPO_HOSTS_MOST)
        return tw_fail(TWILL_ERR_INVALID, "topology %s: %u hosts, not 1 to %u", graph->name,
                       graph->nhosts, TW_TOPO_HOSTS_MOST);
    enum twill_status status = TWILL_OK;
    for (uint32_t m = 0; m < graph->nmachines && !tw_failed(status); m++)
        status = check_machine(&graph->machines[m]);
    if (tw_failed(status))
        return status;
    uint64_t resources = 0;
    for (uint32_t h = 0; h < graph->nhosts; h++) {
        if (graph->host_machine[h] >= graph->nmachines)
            return tw_fail(TWILL_ERR_INVALID, "topology %s: host %u: no machine %u", graph->name, h,
                           graph->host_machine[h]);
        resources += tw_topo_machine_of(graph, h)->nresources;
    }
    status = check_fabric(graph);
    for (uint32_t t = 0; !tw_failed(status) && t + 1 < graph->fabric.ntiers; t++)
        resources += 2ull * tw_topo_tier_switches(graph, t);
    if (!tw_failed(status) && resources > TW_TOPO_RESOURCES_MOST)
        status = tw_fail(TWILL_ERR_INVALID, "topology %s: too many resources", graph->name);
    return status;
}
