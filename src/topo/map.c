/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: shortest ways through one machine, and which NIC is near. Never knows: hosts, fabrics. */
#include "config.h"

#include "topo/map.h"

#include <stdlib.h>

#include "base/status.h"

#define WEIGH_BYTES 65536ull
#define PS_PER_S 1000000000000ull
#define FAR UINT64_MAX

/* ---- maps ----------------------------------------------------------------------------------- */

void tw_topo_map_fini(struct tw_topo_map *map)
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

static void map_edges(struct tw_topo_map *map)
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
            map->edges[map->first[node]++] = (struct tw_topo_edge){i, d};
        }
    for (uint32_t i = machine->nnodes; i > 0; i--)
        map->first[i] = map->first[i - 1];
    map->first[0] = 0;
}

static void map_nodes(struct tw_topo_map *map)
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

static void map_ports(struct tw_topo_map *map)
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
            map->ports[map->nports++] = (struct tw_topo_port){i, link, number};
            break;
        }
        number++;
    }
}

enum twill_status tw_topo_map_init(struct tw_topo_map *map, const struct tw_topo_machine *machine)
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

static void search_run(const struct tw_topo_map *map, struct search *search, uint32_t source,
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

const uint32_t *tw_topo_map_ways(struct tw_topo_map *map, uint32_t source)
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

/* ---- NICs ----------------------------------------------------------------------------------- */

uint32_t tw_topo_edge_source(const struct tw_topo_machine *machine, uint32_t edge)
{
    return edge % 2 ? machine->links[edge / 2].to : machine->links[edge / 2].from;
}

/* Which of its kind a node is. */
static uint32_t ordinal(const struct tw_topo_machine *machine, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < node; i++)
        count += machine->nodes[i].kind == machine->nodes[node].kind;
    return count;
}

/* From a node out by a port, or in by it; FAR: no way, or no memory for finding it. */
static uint64_t port_distance(struct tw_topo_map *map, uint32_t node,
                              const struct tw_topo_port *port, bool arrive)
{
    const struct tw_topo_machine *machine = map->machine;
    uint32_t source = arrive ? port->nic : node, to = arrive ? node : port->nic;
    const uint32_t *into = tw_topo_map_ways(map, source);
    uint64_t distance_ps = longer(0, &machine->links[port->link], arrive);
    for (uint32_t at = to; into && at != source; at = tw_topo_edge_source(machine, into[at])) {
        if (into[at] == TW_TOPO_NONE)
            return FAR;
        distance_ps = longer(distance_ps, &machine->links[into[at] / 2], into[at] % 2);
    }
    return into ? distance_ps : FAR;
}

const struct tw_topo_port *tw_topo_map_door(struct tw_topo_map *map, uint32_t node, bool arrive)
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
