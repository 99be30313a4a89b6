/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which parts of a machine ranks can sit on, and in which order. Never knows: links. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "topo/graph.h"

uint32_t tw_topo_node_find(const struct tw_topo_machine *machine, enum tw_topo_kind kind,
                           uint32_t os_index)
{
    for (uint32_t i = 0; i < machine->nnodes; i++)
        if (machine->nodes[i].kind == kind && machine->nodes[i].os_index == os_index)
            return i;
    return TW_TOPO_NONE;
}

uint32_t tw_topo_node_count(const struct tw_topo_machine *machine, enum tw_topo_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < machine->nnodes; i++)
        count += machine->nodes[i].kind == kind;
    return count;
}

uint32_t tw_topo_node_nth(const struct tw_topo_machine *machine, enum tw_topo_kind kind,
                          uint32_t index)
{
    for (uint32_t i = 0; i < machine->nnodes; i++)
        if (machine->nodes[i].kind == kind && index-- == 0)
            return i;
    return TW_TOPO_NONE;
}

enum tw_topo_near tw_topo_near_of(const struct tw_topo_machine *machine, uint32_t pu_a,
                                  uint32_t pu_b)
{
    /* a parent stands before its children */
    while (pu_a != pu_b) {
        if (pu_a > pu_b)
            pu_a = machine->nodes[pu_a].parent;
        else
            pu_b = machine->nodes[pu_b].parent;
    }
    switch (machine->nodes[pu_a].kind) {
    case TW_NODE_PU:
    case TW_NODE_CORE:
        return TW_TOPO_NEAR_CORE;
    case TW_NODE_CACHE:
        return machine->nodes[pu_a].level > 2 ? TW_TOPO_NEAR_L3 : TW_TOPO_NEAR_L2;
    case TW_NODE_NUMA:
        return TW_TOPO_NEAR_NUMA;
    case TW_NODE_PACKAGE:
        return TW_TOPO_NEAR_PACKAGE;
    default:
        return TW_TOPO_NEAR_HOST;
    }
}

/* ---- placement ------------------------------------------------------------------------------ */

/* What a machine offers: its units in the order in which ranks take them. */
struct units {
    uint32_t *node; /* owned */
    uint32_t count;
};

/* turn[i]: which of its core's hardware threads node i is; 0 for other kinds. first[t]: nodes of
 * the kind with a turn below t (a counting sort). Both zeroed, with room for all nodes and two
 * more. */
static void turns_count(const struct tw_topo_machine *machine, enum tw_topo_kind kind,
                        uint32_t *turn, uint32_t *first)
{
    uint32_t n = machine->nnodes;
    for (uint32_t i = 0; i < n && kind == TW_NODE_PU; i++) /* first: threads seen of core i */
        if (machine->nodes[i].kind == kind)
            turn[i] = first[machine->nodes[i].parent]++;
    memset(first, 0, (n + 2) * sizeof(*first));
    for (uint32_t i = 0; i < n; i++)
        if (machine->nodes[i].kind == kind)
            first[turn[i] + 1]++;
    for (uint32_t t = 0; t <= n; t++)
        first[t + 1] += first[t];
}

static enum twill_status units_list(const struct tw_topo_machine *machine, enum tw_topo_kind kind,
                                    struct units *units)
{
    uint32_t n = machine->nnodes;
    uint32_t *turn = calloc(n, sizeof(*turn));
    uint32_t *first = calloc((size_t)n + 2, sizeof(*first));
    units->node = malloc(n * sizeof(*units->node));
    enum twill_status status = TWILL_OK;
    if (turn && first && units->node) {
        turns_count(machine, kind, turn, first);
        units->count = first[n + 1];
        for (uint32_t i = 0; i < n; i++)
            if (machine->nodes[i].kind == kind)
                units->node[first[turn[i]]++] = i;
    } else {
        status = tw_fail(TWILL_ERR_NOMEM, "no memory for %u nodes", n);
    }
    free(turn);
    free(first);
    return status;
}

static enum twill_status place_with(const struct tw_topo_graph *graph, const struct units *units,
                                    enum tw_topo_order order, uint32_t per_host, uint32_t ranks,
                                    struct tw_topo_place *places)
{
    uint32_t rank = 0;
    uint32_t host = 0, turn = 0; /* the next place is the host's turn-th */
    uint32_t idle = 0;           /* hosts in a row that had no room */
    while (rank < ranks) {
        const struct units *here = &units[graph->host_machine[host]];
        if (here->count > 0 && turn < (per_host ? per_host : here->count)) {
            places[rank++] = (struct tw_topo_place){host, here->node[turn % here->count]};
            idle = 0;
            if (order == TW_TOPO_PACKED) {
                turn++;
                continue;
            }
        } else {
            idle++;
        }
        bool last = host + 1 == graph->nhosts;
        if (idle == graph->nhosts || (last && order == TW_TOPO_PACKED))
            break;
        host = last ? 0 : host + 1;
        turn = order == TW_TOPO_PACKED ? 0 : turn + last;
    }
    if (rank < ranks)
        return tw_fail(TWILL_ERR_INVALID, "topology %s has room for %u ranks, not %u", graph->name,
                       rank, ranks);
    return TWILL_OK;
}

enum twill_status tw_topo_place_ranks(const struct tw_topo_graph *graph, enum tw_topo_kind kind,
                                      enum tw_topo_order order, uint32_t per_host, uint32_t ranks,
                                      struct tw_topo_place *places)
{
    struct units *units = calloc(graph->nmachines, sizeof(*units));
    if (!units)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for %u machines", graph->nmachines);
    enum twill_status status = TWILL_OK;
    for (uint32_t m = 0; m < graph->nmachines && !tw_failed(status); m++)
        status = units_list(&graph->machines[m], kind, &units[m]);
    for (uint32_t h = 0; h < graph->nhosts && !tw_failed(status); h++)
        if (units[graph->host_machine[h]].count == 0)
            status = tw_fail(TWILL_ERR_INVALID, "host %u: machine %s has no %s", h,
                             tw_topo_machine_of(graph, h)->name, tw_topo_kind_name(kind));
    if (!tw_failed(status))
        status = place_with(graph, units, order, per_host, ranks, places);
    for (uint32_t m = 0; m < graph->nmachines; m++)
        free(units[m].node);
    free(units);
    return status;
}
