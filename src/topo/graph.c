/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a graph grows, is numbered and ends. Never knows: which graphs make sense. */
#include "config.h"

#include "topo/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "topo/check.h"

static const char *const kind_names[TW_NODE_KIND_COUNT] = {
    [TW_NODE_HOST] = "host",
    [TW_NODE_PACKAGE] = "package",
    [TW_NODE_NUMA] = "numa",
    [TW_NODE_MEMORY] = "memory",
    [TW_NODE_CACHE] = "cache",
    [TW_NODE_CORE] = "core",
    [TW_NODE_PU] = "pu",
    [TW_NODE_PCIROOT] = "pciroot",
    [TW_NODE_PCISWITCH] = "pciswitch",
    [TW_NODE_NIC] = "nic",
    [TW_NODE_NET] = "net",
    [TW_NODE_GPU] = "gpu",
    [TW_NODE_NVSWITCH] = "nvswitch",
};
static const char *const origin_names[TW_TOPO_ORIGIN_COUNT] = {"estimate", "system", "measured",
                                                               "synthetic"};
static const char *const near_names[TW_TOPO_NEAR_COUNT] = {"core", "l2",      "l3",
                                                           "numa", "package", "host"};

const char *tw_topo_kind_name(unsigned kind)
{
    return kind < TW_NODE_KIND_COUNT ? kind_names[kind] : NULL;
}

const char *tw_topo_origin_name(unsigned origin)
{
    return origin < TW_TOPO_ORIGIN_COUNT ? origin_names[origin] : NULL;
}

const char *tw_topo_near_name(unsigned near)
{
    return near < TW_TOPO_NEAR_COUNT ? near_names[near] : NULL;
}

/* ---- growing -------------------------------------------------------------------------------- */

/* Room for one more behind `count` items; lists double, and their room is known from the count. */
static void *grown(void *list, uint32_t count, size_t item_bytes)
{
    if (count != 0 && (count & (count - 1)) != 0)
        return list;
    void *larger =
        count < UINT32_MAX / 2 ? realloc(list, (count ? (size_t)count * 2 : 1) * item_bytes) : NULL;
    if (!larger)
        (void)tw_fail(TWILL_ERR_NOMEM, "no memory for %u parts of a topology", count + 1);
    return larger;
}

struct tw_topo_graph *tw_topo_graph_create(const char *name)
{
    struct tw_topo_graph *graph = calloc(1, sizeof(*graph));
    if (!graph) {
        (void)tw_fail(TWILL_ERR_NOMEM, "no memory for a topology");
        return NULL;
    }
    (void)snprintf(graph->name, sizeof(graph->name), "%s", name);
    return graph;
}

uint32_t tw_topo_machine_add(struct tw_topo_graph *graph)
{
    struct tw_topo_machine *machines =
        grown(graph->machines, graph->nmachines, sizeof(*graph->machines));
    if (!machines)
        return TW_TOPO_NONE;
    graph->machines = machines;
    memset(&machines[graph->nmachines], 0, sizeof(*machines));
    return graph->nmachines++;
}

bool tw_topo_hosts_add(struct tw_topo_graph *graph, uint32_t machine, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *hosts = grown(graph->host_machine, graph->nhosts, sizeof(*hosts));
        if (!hosts)
            return false;
        graph->host_machine = hosts;
        hosts[graph->nhosts++] = machine;
    }
    return true;
}

bool tw_topo_note_add(struct tw_topo_machine *machine, const char *format, ...)
{
    char text[TW_TOPO_NOTE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    char **notes = grown(machine->notes, machine->nnotes, sizeof(*notes));
    if (!notes)
        return false;
    machine->notes = notes;
    notes[machine->nnotes] = strdup(text);
    if (!notes[machine->nnotes]) {
        (void)tw_fail(TWILL_ERR_NOMEM, "no memory for a note");
        return false;
    }
    machine->nnotes++;
    return true;
}

uint32_t tw_topo_node_add(struct tw_topo_machine *machine, const struct tw_topo_node *node)
{
    struct tw_topo_node *nodes = grown(machine->nodes, machine->nnodes, sizeof(*nodes));
    if (!nodes)
        return TW_TOPO_NONE;
    machine->nodes = nodes;
    nodes[machine->nnodes] = *node;
    nodes[machine->nnodes].uplink = TW_TOPO_NONE;
    return machine->nnodes++;
}

uint32_t tw_topo_link_add(struct tw_topo_machine *machine, const struct tw_topo_link *link)
{
    struct tw_topo_link *links = grown(machine->links, machine->nlinks, sizeof(*links));
    if (!links)
        return TW_TOPO_NONE;
    machine->links = links;
    links[machine->nlinks] = *link;
    if (link->from < machine->nnodes && machine->nodes[link->from].parent == link->to &&
        machine->nodes[link->from].uplink == TW_TOPO_NONE)
        machine->nodes[link->from].uplink = machine->nlinks;
    return machine->nlinks++;
}

uint32_t tw_topo_resource_add(struct tw_topo_machine *machine, uint32_t node, uint64_t bytes_per_s)
{
    struct tw_topo_resource *resources =
        grown(machine->resources, machine->nresources, sizeof(*resources));
    if (!resources)
        return TW_TOPO_NONE;
    machine->resources = resources;
    resources[machine->nresources] =
        (struct tw_topo_resource){.node = node, .bytes_per_s = bytes_per_s};
    return machine->nresources++;
}

static void machine_fini(struct tw_topo_machine *machine)
{
    for (uint32_t i = 0; i < machine->nnotes; i++)
        free(machine->notes[i]);
    free(machine->notes);
    free(machine->nodes);
    free(machine->links);
    free(machine->resources);
}

void tw_topo_graph_free(struct tw_topo_graph *graph)
{
    if (!graph)
        return;
    for (uint32_t i = 0; i < graph->nmachines; i++)
        machine_fini(&graph->machines[i]);
    free(graph->machines);
    free(graph->host_machine);
    free(graph->host_resource);
    free(graph);
}

/* ---- numbering ------------------------------------------------------------------------------ */

uint32_t tw_topo_tier_switches(const struct tw_topo_graph *graph, uint32_t tier)
{
    uint64_t count = graph->nhosts;
    for (uint32_t t = 0; t <= tier; t++)
        count = (count + graph->fabric.tier[t].down - 1) / graph->fabric.tier[t].down;
    uint32_t rails = 1;
    for (uint32_t m = 0; tier == 0 && graph->fabric.rails && m < graph->nmachines; m++) {
        uint32_t nics = tw_topo_node_count(&graph->machines[m], TW_NODE_NIC);
        rails = nics > rails ? nics : rails;
    }
    return (uint32_t)count * rails;
}

enum twill_status tw_topo_graph_seal(struct tw_topo_graph *graph)
{
    enum twill_status status = tw_topo_graph_check(graph);
    if (tw_failed(status))
        return status;
    uint32_t *first = realloc(graph->host_resource, ((size_t)graph->nhosts + 1) * sizeof(*first));
    if (!first)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for %u hosts", graph->nhosts);
    graph->host_resource = first;
    uint32_t next = 0;
    for (uint32_t h = 0; h < graph->nhosts; h++) {
        first[h] = next;
        next += tw_topo_machine_of(graph, h)->nresources;
    }
    first[graph->nhosts] = next;
    for (uint32_t t = 0; t + 1 < graph->fabric.ntiers; t++) {
        graph->tier_resource[t] = next;
        next += 2 * tw_topo_tier_switches(graph, t);
    }
    graph->nresources = next;
    return TWILL_OK;
}

/* The host that a resource belongs to; nhosts: the fabric. */
static uint32_t host_of(const struct tw_topo_graph *graph, uint32_t resource)
{
    uint32_t low = 0, high = graph->nhosts;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (graph->host_resource[middle + 1] > resource)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint32_t tier_of(const struct tw_topo_graph *graph, uint32_t resource)
{
    uint32_t tier = 0;
    while (tier + 2 < graph->fabric.ntiers && graph->tier_resource[tier + 1] <= resource)
        tier++;
    return tier;
}

uint64_t tw_topo_resource_rate(const struct tw_topo_graph *graph, uint32_t resource)
{
    uint32_t host = host_of(graph, resource);
    if (host == graph->nhosts)
        return graph->fabric.tier[tier_of(graph, resource)].up_bytes_per_s;
    return tw_topo_machine_of(graph, host)
        ->resources[resource - graph->host_resource[host]]
        .bytes_per_s;
}

void tw_topo_node_text(const struct tw_topo_machine *machine, uint32_t node, char *text,
                       size_t text_bytes)
{
    const struct tw_topo_node *at = &machine->nodes[node];
    const char *kind = kind_names[at->kind];
    if (at->name[0])
        (void)snprintf(text, text_bytes, "%s %s", kind, at->name);
    else if (at->os_index != TW_TOPO_NONE)
        (void)snprintf(text, text_bytes, "%s %u", kind, at->os_index);
    else if (at->kind == TW_NODE_HOST || at->kind == TW_NODE_NET || at->kind == TW_NODE_NVSWITCH)
        (void)snprintf(text, text_bytes, "%s", kind); /* there is one */
    else
        (void)snprintf(text, text_bytes, "%s (node %u)", kind, node);
}

/* The first link and direction that load a resource of a machine; false: none does. */
static bool loader_of(const struct tw_topo_machine *machine, uint32_t resource, uint32_t *from,
                      uint32_t *to)
{
    for (uint32_t i = 0; i < machine->nlinks; i++) {
        const struct tw_topo_link *link = &machine->links[i];
        if (link->resource[0] != resource && link->resource[1] != resource)
            continue;
        *from = link->resource[0] == resource ? link->from : link->to;
        *to = link->resource[0] == resource ? link->to : link->from;
        return true;
    }
    return false;
}

void tw_topo_resource_text(const struct tw_topo_graph *graph, uint32_t resource, char *text,
                           size_t text_bytes)
{
    char ends[2][TW_TOPO_NAME_BYTES + 16];
    uint32_t from = 0, to = 0, host = host_of(graph, resource);
    if (host == graph->nhosts) {
        uint32_t tier = tier_of(graph, resource);
        uint32_t place = resource - graph->tier_resource[tier];
        (void)snprintf(text, text_bytes, "tier %u switch %u %s", tier, place / 2,
                       place % 2 ? "down" : "up");
        return;
    }
    const struct tw_topo_machine *machine = tw_topo_machine_of(graph, host);
    uint32_t own = resource - graph->host_resource[host];
    if (!loader_of(machine, own, &from, &to))
        from = to = machine->resources[own].node;
    tw_topo_node_text(machine, from, ends[0], sizeof(ends[0]));
    tw_topo_node_text(machine, to, ends[1], sizeof(ends[1]));
    (void)snprintf(text, text_bytes, "host %u: %s > %s", host, ends[0], ends[1]);
}
