/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: shortest ways through a machine and a fabric, and what they load.
 * Never knows: who sends, how much. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "topo/graph.h"

#define WEIGH_BYTES 65536ull
#define PS_PER_S 1000000000000ull
#define FAR UINT64_MAX

/* One end of a link, as seen from a node. */
struct edge {
    uint32_t link;
    uint8_t direction; /* out of the node */
};

/* A NIC's way out. */
struct port {
    uint32_t nic, link;
    uint32_t number; /* of the NIC among the machine's */
};

/* Of one machine. */
struct map {
    const struct tw_topo_machine *machine;
    uint32_t *first;    /* [nnodes + 1]: edges of a node */
    struct edge *edges; /* in order of links */
    uint32_t *memory;   /* [nnodes]: the memory close to a node; NONE */
    struct port *ports; /* [nports]: NICs with a link to the world outside, in order */
    uint32_t nports;
    uint32_t *door[2]; /* [nnodes]: the port for leaving, arriving; NONE until asked for */
    uint32_t **into;   /* [nnodes]: per source, NULL until asked for, [nnodes]: the edge (2 * link
                          + direction) by which the shortest way comes into a node; NONE */
};

struct tw_topo_routes {
    const struct tw_topo_graph *graph; /* borrowed */
    struct map *maps;                  /* one a machine */
    uint32_t rails;                    /* switches of tier 0 for the same hosts */
};

/* ---- maps ----------------------------------------------------------------------------------- */

static void map_fini(struct map *map)
{
    for (uint32_t i = 0; map->into && i < map->machine->nnodes; i++)
        free(map->into[i]);
    free(map->into);
    free(map->first);
    free(map->edges);
    free(map->memory);
    free(map->ports);
    free(map->door[0]);
    free(map->door[1]);
}

static void map_edges(struct map *map)
{
    const struct tw_topo_machine *machine = map->machine;
    for (uint32_t i = 0; i < machine->nlinks; i++) {
        map->first[machine->links[i].from + 1]++;
        map->first[machine->links[i].to + 1]++;
    }
    for (uint32_t i = 0; i < machine->nnodes; i++)
        map->first[i + 1] += map->first[i];
    for (uint32_t i = 0; i < machine->nlinks; i++)
        for (uint8_t d = 0; d < 2; d++) {
            uint32_t node = d ? machine->links[i].to : machine->links[i].from;
            map->edges[map->first[node]++] = (struct edge){i, d};
        }
    for (uint32_t i = machine->nnodes; i > 0; i--)
        map->first[i] = map->first[i - 1];
    map->first[0] = 0;
}

static void map_nodes(struct map *map)
{
    const struct tw_topo_machine *machine = map->machine;
    for (uint32_t i = 0; i < machine->nnodes; i++)
        map->memory[i] = map->door[0][i] = map->door[1][i] = TW_TOPO_NONE;
    for (uint32_t i = 0; i < machine->nnodes; i++) {
        const struct tw_topo_node *node = &machine->nodes[i];
        if (node->kind == TW_NODE_MEMORY && map->memory[node->parent] == TW_TOPO_NONE)
            map->memory[node->parent] = i;
    }
    for (uint32_t i = 1; i < machine->nnodes; i++)
        if (map->memory[i] == TW_TOPO_NONE)
            map->memory[i] = map->memory[machine->nodes[i].parent];
}

static void map_ports(struct map *map)
{
    const struct tw_topo_machine *machine = map->machine;
    uint32_t number = 0;
    for (uint32_t i = 0; i < machine->nnodes; i++) {
        if (machine->nodes[i].kind != TW_NODE_NIC)
            continue;
        for (uint32_t e = map->first[i]; e < map->first[i + 1]; e++) {
            uint32_t link = map->edges[e].link;
            if (machine->nodes[machine->links[link].to].kind != TW_NODE_NET)
                continue;
            map->ports[map->nports++] = (struct port){i, link, number};
            break;
        }
        number++;
    }
}

static enum twill_status map_init(struct map *map, const struct tw_topo_machine *machine)
{
    size_t n = machine->nnodes;
    map->machine = machine;
    map->first = calloc(n + 1, sizeof(*map->first));
    map->edges = calloc(2 * (size_t)machine->nlinks + 1, sizeof(*map->edges));
    map->memory = calloc(n, sizeof(*map->memory));
    map->ports = calloc(n, sizeof(*map->ports));
    map->door[0] = calloc(n, sizeof(*map->door[0]));
    map->door[1] = calloc(n, sizeof(*map->door[1]));
    map->into = calloc(n, sizeof(*map->into));
    if (!map->first || !map->edges || !map->memory || !map->ports || !map->door[0] ||
        !map->door[1] || !map->into)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for the ways through machine %s", machine->name);
    map_edges(map);
    map_nodes(map);
    map_ports(map);
    return TWILL_OK;
}

/* ---- shortest ways -------------------------------------------------------------------------- */

/* Dijkstra's algorithm (Numerische Mathematik 1, 1959) with a binary heap that may hold a node
 * several times. */
struct entry {
    uint64_t distance_ps;
    uint32_t node;
};
struct search {
    struct entry *heap;    /* owned; room for each edge once and the source */
    uint64_t *distance_ps; /* owned, [nnodes] */
    uint32_t count;
};

static bool before(const struct entry *a, const struct entry *b)
{
    return a->distance_ps != b->distance_ps ? a->distance_ps < b->distance_ps : a->node < b->node;
}

static void heap_put(struct search *search, struct entry entry)
{
    uint32_t at = search->count++;
    while (at > 0 && before(&entry, &search->heap[(at - 1) / 2])) {
        search->heap[at] = search->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    search->heap[at] = entry;
}

static struct entry heap_get(struct search *search)
{
    struct entry least = search->heap[0], last = search->heap[--search->count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= search->count)
            break;
        if (child + 1 < search->count && before(&search->heap[child + 1], &search->heap[child]))
            child++;
        if (!before(&search->heap[child], &last))
            break;
        search->heap[at] = search->heap[child];
        at = child;
    }
    search->heap[at] = last;
    return least;
}

static bool passes(unsigned kind)
{
    return kind != TW_NODE_PU && kind != TW_NODE_GPU && kind != TW_NODE_MEMORY &&
           kind != TW_NODE_NET;
}

static uint64_t longer(uint64_t distance_ps, const struct tw_topo_link *link, unsigned direction)
{
    uint64_t more =
        link->latency_ps[direction] + WEIGH_BYTES * PS_PER_S / link->bytes_per_s[direction];
    return distance_ps > FAR - 1 - more ? FAR - 1 : distance_ps + more;
}

static void search_run(const struct map *map, struct search *search, uint32_t source,
                       uint32_t *into)
{
    const struct tw_topo_machine *machine = map->machine;
    for (uint32_t i = 0; i < machine->nnodes; i++) {
        into[i] = TW_TOPO_NONE;
        search->distance_ps[i] = FAR;
    }
    search->distance_ps[source] = 0;
    heap_put(search, (struct entry){0, source});
    while (search->count > 0) {
        struct entry here = heap_get(search);
        if (here.distance_ps > search->distance_ps[here.node])
            continue;
        if (here.node != source && !passes(machine->nodes[here.node].kind))
            continue;
        for (uint32_t e = map->first[here.node]; e < map->first[here.node + 1]; e++) {
            const struct tw_topo_link *link = &machine->links[map->edges[e].link];
            unsigned direction = map->edges[e].direction;
            uint32_t next = direction ? link->from : link->to;
            uint64_t distance_ps = longer(here.distance_ps, link, direction);
            if (distance_ps >= search->distance_ps[next])
                continue;
            search->distance_ps[next] = distance_ps;
            into[next] = 2 * map->edges[e].link + direction;
            heap_put(search, (struct entry){distance_ps, next});
        }
    }
}

/* The shortest ways from a node; NULL: no memory (tw_fail was called). */
static const uint32_t *ways_from(struct map *map, uint32_t source)
{
    if (map->into[source])
        return map->into[source];
    size_t n = map->machine->nnodes;
    struct search search = {0};
    search.heap = malloc((2 * (size_t)map->machine->nlinks + 1) * sizeof(*search.heap));
    search.distance_ps = malloc(n * sizeof(*search.distance_ps));
    uint32_t *into = malloc(n * sizeof(*into));
    if (search.heap && search.distance_ps && into) {
        search_run(map, &search, source, into);
        map->into[source] = into;
    } else {
        free(into);
        (void)tw_fail(TWILL_ERR_NOMEM, "no memory for the ways through machine %s",
                      map->machine->name);
    }
    free(search.heap);
    free(search.distance_ps);
    return map->into[source];
}

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

/* Where an edge comes from. */
static uint32_t edge_source(const struct tw_topo_machine *machine, uint32_t edge)
{
    return edge % 2 ? machine->links[edge / 2].to : machine->links[edge / 2].from;
}

/* Appends the way inside a host. */
static enum twill_status path_inside(struct tw_topo_routes *routes, struct tw_topo_place from,
                                     uint32_t to, struct tw_topo_path *path)
{
    struct map *map = &routes->maps[routes->graph->host_machine[from.host]];
    const uint32_t *into = ways_from(map, from.node);
    if (!into)
        return TWILL_ERR_NOMEM;
    uint32_t edges[TW_TOPO_PATH_MOST], count = 0;
    for (uint32_t at = to; at != from.node; at = edge_source(map->machine, into[at])) {
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

/* Which of its kind a node is. */
static uint32_t ordinal(const struct tw_topo_machine *machine, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < node; i++)
        count += machine->nodes[i].kind == machine->nodes[node].kind;
    return count;
}

/* From a node out by a port, or in by it; FAR: no way, or no memory for finding it. */
static uint64_t port_distance(struct map *map, uint32_t node, const struct port *port, bool arrive)
{
    const struct tw_topo_machine *machine = map->machine;
    uint32_t source = arrive ? port->nic : node, to = arrive ? node : port->nic;
    const uint32_t *into = ways_from(map, source);
    uint64_t distance_ps = longer(0, &machine->links[port->link], arrive);
    for (uint32_t at = to; into && at != source; at = edge_source(machine, into[at])) {
        if (into[at] == TW_TOPO_NONE)
            return FAR;
        distance_ps = longer(distance_ps, &machine->links[into[at] / 2], into[at] % 2);
    }
    return into ? distance_ps : FAR;
}

/* The port nearest to a node; among equals, nodes of a kind take turns. NULL: none */
static const struct port *door_of(struct map *map, uint32_t node, bool arrive)
{
    uint32_t *door = &map->door[arrive][node];
    if (*door != TW_TOPO_NONE)
        return &map->ports[*door];
    uint64_t least_ps = FAR;
    uint32_t equals = 0;
    for (uint32_t p = 0; p < map->nports; p++) {
        uint64_t distance_ps = port_distance(map, node, &map->ports[p], arrive);
        equals = distance_ps < least_ps ? 1 : equals + (distance_ps == least_ps);
        least_ps = distance_ps < least_ps ? distance_ps : least_ps;
    }
    if (least_ps == FAR)
        return NULL;
    uint32_t turn = ordinal(map->machine, node) % equals;
    for (uint32_t p = 0; p < map->nports && *door == TW_TOPO_NONE; p++)
        if (port_distance(map, node, &map->ports[p], arrive) == least_ps && turn-- == 0)
            *door = p;
    return &map->ports[*door];
}

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
    const struct port *out =
        door_of(&routes->maps[graph->host_machine[from.host]], from.node, false);
    const struct port *in = door_of(&routes->maps[graph->host_machine[to.host]], to.node, true);
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
    const struct map *map = &routes->maps[routes->graph->host_machine[from.host]];
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
            status = map_init(&made->maps[m], &graph->machines[m]);
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
        map_fini(&routes->maps[m]);
    free(routes->maps);
    free(routes);
}
