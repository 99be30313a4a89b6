/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a transfer crosses inside hosts and between them, and what it loads.
 * Never knows: who sends, how much. */
#include "config.h"

#include <stdlib.h>

#include "base/status.h"
#include "topo/graph.h"
#include "topo/map.h"

struct tw_topo_routes {
    const struct tw_topo_graph *graph; /* borrowed */
    struct tw_topo_map *maps;          /* one a machine */
    uint32_t rails;                    /* switches of tier 0 for the same hosts */
};

/* ---- paths ---------------------------------------------------------------------------------- */

static bool path_load(struct tw_topo_path *path, uint32_t resource)
{
    if (path->nresources == TW_TOPO_PATH_MOST)
        return false;
    path->resource[path->nresources++] = resource;
    return true;
}

static enum twill_status too_long(const struct tw_topo_graph *graph)
{
    return tw_fail(TWILL_ERR_INVALID, "topology %s: a path of more than %d links", graph->name,
                   TW_TOPO_PATH_MOST);
}

/* Appends a link of a host. @return false: the path is full */
static bool path_link(const struct tw_topo_graph *graph, uint32_t host, uint32_t edge,
                      struct tw_topo_path *path)
{
    uint32_t direction = edge % 2;
    const struct tw_topo_link *link = &tw_topo_machine_of(graph, host)->links[edge / 2];
    path->latency_ps += link->latency_ps[direction];
    if (link->bytes_per_s[direction] < path->bytes_per_s)
        path->bytes_per_s = link->bytes_per_s[direction];
    return path_load(path, graph->host_resource[host] + link->resource[direction]);
}

/* Appends the way inside a host. */
static enum twill_status path_inside(struct tw_topo_routes *routes, struct tw_topo_place from,
                                     uint32_t to, struct tw_topo_path *path)
{
    struct tw_topo_map *map = &routes->maps[routes->graph->host_machine[from.host]];
    const uint32_t *into = tw_topo_map_ways(map, from.node);
    if (!into)
        return TWILL_ERR_NOMEM;
    uint32_t edges[TW_TOPO_PATH_MOST], count = 0;
    for (uint32_t at = to; at != from.node; at = tw_topo_edge_source(map->machine, into[at])) {
        if (into[at] == TW_TOPO_NONE)
            return tw_fail(TWILL_ERR_INVALID, "machine %s: no way from node %u to node %u",
                           map->machine->name, from.node, to);
        if (count == TW_TOPO_PATH_MOST)
            return too_long(routes->graph);
        edges[count++] = into[at];
    }
    while (count > 0)
        if (!path_link(routes->graph, from.host, edges[--count], path))
            return too_long(routes->graph);
    return TWILL_OK;
}

/* ---- from host to host ---------------------------------------------------------------------- */

/* Appends the way through switches, between two different hosts. */
static bool path_between(const struct tw_topo_routes *routes, uint32_t from, uint32_t to,
                         const uint32_t rail[2], struct tw_topo_path *path)
{
    const struct tw_topo_fabric *fabric = &routes->graph->fabric;
    uint32_t down[TW_TOPO_TIERS_MOST];
    uint32_t a = from, b = to, tier = 0;
    for (;; tier++) {
        bool rails = tier == 0 && fabric->rails;
        a /= fabric->tier[tier].down;
        b /= fabric->tier[tier].down;
        path->latency_ps += fabric->tier[tier].latency_ps;
        if (a == b && !(rails && rail[0] != rail[1]))
            break;
        uint32_t first = routes->graph->tier_resource[tier];
        uint64_t rate = fabric->tier[tier].up_bytes_per_s;
        path->latency_ps += fabric->tier[tier].latency_ps;
        path->bytes_per_s = rate < path->bytes_per_s ? rate : path->bytes_per_s;
        down[tier] = first + 2 * (rails ? b * routes->rails + rail[1] : b) + 1;
        if (!path_load(path, first + 2 * (rails ? a * routes->rails + rail[0] : a)))
            return false;
    }
    while (tier-- > 0)
        if (!path_load(path, down[tier]))
            return false;
    return true;
}

static enum twill_status path_across(struct tw_topo_routes *routes, struct tw_topo_place from,
                                     struct tw_topo_place to, struct tw_topo_path *path)
{
    const struct tw_topo_graph *graph = routes->graph;
    if (graph->fabric.ntiers == 0)
        return tw_fail(TWILL_ERR_INVALID, "topology %s: no fabric between its hosts", graph->name);
    const struct tw_topo_port *out =
        tw_topo_map_door(&routes->maps[graph->host_machine[from.host]], from.node, false);
    const struct tw_topo_port *in =
        tw_topo_map_door(&routes->maps[graph->host_machine[to.host]], to.node, true);
    if (!out || !in)
        return tw_fail(TWILL_ERR_INVALID, "topology %s: no way from host %u to host %u by a NIC",
                       graph->name, from.host, to.host);
    enum twill_status status = path_inside(routes, from, out->nic, path);
    if (tw_failed(status))
        return status;
    uint32_t rail[2] = {out->number, in->number};
    if (!path_link(graph, from.host, 2 * out->link, path) ||
        !path_between(routes, from.host, to.host, rail, path) ||
        !path_link(graph, to.host, 2 * in->link + 1, path))
        return too_long(graph);
    return path_inside(routes, (struct tw_topo_place){to.host, in->nic}, to.node, path);
}

/* A lone flow that crosses a resource k times gets a k-th of it. */
static void path_share(const struct tw_topo_graph *graph, struct tw_topo_path *path)
{
    for (uint32_t i = 0; i < path->nresources; i++) {
        uint32_t times = 1;
        for (uint32_t k = 0; k < path->nresources; k++)
            times += k != i && path->resource[k] == path->resource[i];
        uint64_t rate = tw_topo_resource_rate(graph, path->resource[i]) / times;
        rate = rate ? rate : 1;
        path->bytes_per_s = rate < path->bytes_per_s ? rate : path->bytes_per_s;
    }
}

static uint64_t own_rate(const struct tw_topo_machine *machine, uint32_t node)
{
    const struct tw_topo_node *at = &machine->nodes[node];
    if (at->kind == TW_NODE_GPU)
        return at->memory_bytes_per_s ? at->memory_bytes_per_s : TW_TOPO_RATE_MOST;
    return machine->links[at->uplink].bytes_per_s[0];
}

static enum twill_status place_check(const struct tw_topo_graph *graph, struct tw_topo_place place)
{
    if (place.host >= graph->nhosts)
        return tw_fail(TWILL_ERR_INVALID, "topology %s: no host %u: it has %u", graph->name,
                       place.host, graph->nhosts);
    const struct tw_topo_machine *machine = tw_topo_machine_of(graph, place.host);
    unsigned kind = place.node < machine->nnodes ? machine->nodes[place.node].kind : UINT8_MAX;
    if (kind != TW_NODE_PU && kind != TW_NODE_GPU && kind != TW_NODE_MEMORY)
        return tw_fail(TWILL_ERR_INVALID, "machine %s: node %u is no PU, GPU or memory",
                       machine->name, place.node);
    return TWILL_OK;
}

static enum twill_status path_on_host(struct tw_topo_routes *routes, struct tw_topo_place from,
                                      struct tw_topo_place to, enum tw_topo_via via,
                                      struct tw_topo_path *path)
{
    const struct tw_topo_map *map = &routes->maps[routes->graph->host_machine[from.host]];
    uint32_t memory = map->memory[to.node];
    bool stops = via == TW_TOPO_VIA_MEMORY && map->machine->nodes[to.node].kind == TW_NODE_PU &&
                 memory != TW_TOPO_NONE && memory != from.node;
    if (!stops && from.node == to.node) {
        path->bytes_per_s = own_rate(map->machine, from.node);
        return TWILL_OK;
    }
    if (!stops)
        return path_inside(routes, from, to.node, path);
    enum twill_status status = path_inside(routes, from, memory, path);
    if (!tw_failed(status))
        status = path_inside(routes, (struct tw_topo_place){from.host, memory}, to.node, path);
    return status;
}

enum twill_status tw_topo_path_find(struct tw_topo_routes *routes, struct tw_topo_place from,
                                    struct tw_topo_place to, enum tw_topo_via via,
                                    struct tw_topo_path *path)
{
    enum twill_status status = place_check(routes->graph, from);
    if (!tw_failed(status))
        status = place_check(routes->graph, to);
    if (tw_failed(status))
        return status;
    path->latency_ps = 0;
    path->bytes_per_s = TW_TOPO_RATE_MOST;
    path->nresources = 0;
    if (from.host == to.host)
        status = path_on_host(routes, from, to, via, path);
    else
        status = path_across(routes, from, to, path);
    if (!tw_failed(status))
        path_share(routes->graph, path);
    return status;
}

/* ---- life ----------------------------------------------------------------------------------- */

enum twill_status tw_topo_routes_create(struct tw_topo_routes **routes,
                                        const struct tw_topo_graph *graph)
{
    struct tw_topo_routes *made = calloc(1, sizeof(*made));
    if (!made || !(made->maps = calloc(graph->nmachines, sizeof(*made->maps)))) {
        free(made);
        return tw_fail(TWILL_ERR_NOMEM, "no memory for the ways through %s", graph->name);
    }
    made->graph = graph;
    made->rails = 1;
    enum twill_status status = TWILL_OK;
    for (uint32_t m = 0; m < graph->nmachines; m++) {
        made->maps[m].machine = &graph->machines[m];
        if (!tw_failed(status))
            status = tw_topo_map_init(&made->maps[m], &graph->machines[m]);
        uint32_t nics = tw_topo_node_count(&graph->machines[m], TW_NODE_NIC);
        if (graph->fabric.rails && nics > made->rails)
            made->rails = nics;
    }
    if (tw_failed(status)) {
        tw_topo_routes_destroy(made);
        return status;
    }
    *routes = made;
    return TWILL_OK;
}

void tw_topo_routes_destroy(struct tw_topo_routes *routes)
{
    if (!routes)
        return;
    for (uint32_t m = 0; m < routes->graph->nmachines; m++)
        tw_topo_map_fini(&routes->maps[m]);
    free(routes->maps);
    free(routes);
}
