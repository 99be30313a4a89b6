/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how places and paths of a topology look to the cost model. Never knows: plans, prices. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plan/cost.h"
#include "topo/graph.h"

/* A CPU or GPU that ranks run on. */
struct unit {
    struct tw_topo_place place;
    uint32_t memory; /* GPU: the resource of its own memory; TW_COST_NONE */
};
struct state {
    const struct tw_topo_graph *graph; /* borrowed */
    struct tw_topo_routes *routes;     /* owned, as are the others */
    struct tw_topo_place *places;      /* [nranks] */
    uint32_t *unit_of;                 /* [nranks] */
    struct unit *units;                /* [nunits], by host and node */
    uint64_t *rates;                   /* of the graph's resources, then of GPUs' memories */
    uint32_t nunits;
    uint8_t inside, between_hosts;
};

static const struct tw_topo_node *node_at(const struct tw_topo_graph *graph,
                                          struct tw_topo_place place)
{
    return &tw_topo_machine_of(graph, place.host)->nodes[place.node];
}

static bool is_gpu(const struct tw_topo_graph *graph, struct tw_topo_place place)
{
    return node_at(graph, place)->kind == TW_NODE_GPU;
}

/* ---- what the model asks -------------------------------------------------------------------- */

static void graph_place(const struct tw_cost_net *net, int rank, struct tw_cost_place *place)
{
    const struct state *state = net->ctx;
    bool gpu = is_gpu(state->graph, state->places[rank]);
    place->exec = gpu ? TW_COST_GPU : TW_COST_HOST;
    place->own_lanes = gpu; /* a block of threads each */
    place->engine = state->unit_of[rank];
}

/* To its memory and back. */
static enum twill_status local_path(const struct state *state, int rank, struct tw_cost_path *path)
{
    const struct unit *unit = &state->units[state->unit_of[rank]];
    struct tw_topo_path found;
    if (unit->memory != TW_COST_NONE)
        path->resources[path->nresources++] = unit->memory;
    if (is_gpu(state->graph, unit->place))
        return TWILL_OK;
    enum twill_status status =
        tw_topo_path_find(state->routes, unit->place, unit->place, TW_TOPO_VIA_MEMORY, &found);
    if (tw_failed(status))
        return status;
    path->nresources = found.nresources;
    memcpy(path->resources, found.resource, found.nresources * sizeof(found.resource[0]));
    return TWILL_OK;
}

static enum twill_status graph_path(const struct tw_cost_net *net, int from, int to,
                                    struct tw_cost_path *path)
{
    const struct state *state = net->ctx;
    struct tw_topo_place a = state->places[from], b = state->places[to];
    struct tw_topo_path found;
    if (from == to)
        return local_path(state, from, path);
    enum twill_status status = tw_topo_path_find(state->routes, a, b, TW_TOPO_VIA_CACHE, &found);
    if (tw_failed(status))
        return status;
    path->link = a.host == b.host ? state->inside : state->between_hosts;
    path->latency_ps = found.latency_ps;
    path->bytes_per_s = found.bytes_per_s;
    path->nresources = found.nresources;
    memcpy(path->resources, found.resource, found.nresources * sizeof(found.resource[0]));
    return TWILL_OK;
}

static void graph_name(const struct tw_cost_net *net, bool engine, uint32_t index, char *text,
                       size_t bytes)
{
    const struct state *state = net->ctx;
    bool memory = !engine && index >= state->graph->nresources;
    if (!engine && !memory) {
        tw_topo_resource_text(state->graph, index, text, bytes);
        return;
    }
    uint32_t u = index;
    for (uint32_t i = 0; memory && i < state->nunits; i++)
        if (state->units[i].memory == index)
            u = i;
    const struct tw_topo_node *node = node_at(state->graph, state->units[u].place);
    snprintf(text, bytes, "host %u: %s %u%s", state->units[u].place.host,
             tw_topo_kind_name(node->kind),
             node->os_index == TW_TOPO_NONE ? state->units[u].place.node : node->os_index,
             memory ? " memory" : "");
}

/* ---- life ----------------------------------------------------------------------------------- */

static void state_free(struct state *state)
{
    if (!state)
        return;
    tw_topo_routes_destroy(state->routes);
    free(state->places);
    free(state->unit_of);
    free(state->units);
    free(state->rates);
    free(state);
}

static void graph_close(struct tw_cost_net *net)
{
    state_free(net->ctx);
    *net = (struct tw_cost_net){.nranks = 0};
}

static int unit_order(const void *a, const void *b)
{
    const struct tw_topo_place *x = &((const struct unit *)a)->place;
    const struct tw_topo_place *y = &((const struct unit *)b)->place;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Each CPU or GPU once, and which of them each rank has. */
static void units_fill(struct state *state, uint32_t nranks)
{
    for (uint32_t r = 0; r < nranks; r++)
        state->units[r] = (struct unit){state->places[r], TW_COST_NONE};
    qsort(state->units, nranks, sizeof(state->units[0]), unit_order);
    for (uint32_t r = 0; r < nranks; r++)
        if (r == 0 || unit_order(&state->units[r], &state->units[state->nunits - 1]) != 0)
            state->units[state->nunits++] = state->units[r];
    for (uint32_t r = 0; r < nranks; r++) {
        struct unit key = {.place = state->places[r]};
        const struct unit *found =
            bsearch(&key, state->units, state->nunits, sizeof(key), unit_order);
        state->unit_of[r] = (uint32_t)(found - state->units);
    }
}

/* @return how many there are */
static uint32_t rates_fill(struct state *state)
{
    uint32_t count = state->graph->nresources;
    for (uint32_t i = 0; i < count; i++)
        state->rates[i] = tw_topo_resource_rate(state->graph, i);
    for (uint32_t u = 0; u < state->nunits; u++) {
        struct unit *unit = &state->units[u];
        uint64_t rate = node_at(state->graph, unit->place)->memory_bytes_per_s;
        if (!is_gpu(state->graph, unit->place) || rate == 0)
            continue;
        unit->memory = count;
        state->rates[count++] = rate / 2; /* what is copied is read and written */
    }
    return count;
}

static enum twill_status places_check(const struct tw_cost_graph *from)
{
    if (from->nranks < 1 || from->nranks > TW_PLAN_RANKS_MAX)
        return tw_fail(TWILL_ERR_INVALID, "a machine cannot have %d ranks: 1 to %d", from->nranks,
                       TW_PLAN_RANKS_MAX);
    if (from->inside >= TW_COST_LINK_COUNT || from->between_hosts >= TW_COST_LINK_COUNT)
        return tw_fail(TWILL_ERR_INVALID, "a machine with links %u and %u", from->inside,
                       from->between_hosts);
    for (int r = 0; r < from->nranks; r++) {
        struct tw_topo_place place = from->places[r];
        bool there = place.host < from->graph->nhosts &&
                     place.node < tw_topo_machine_of(from->graph, place.host)->nnodes;
        uint8_t kind = there ? node_at(from->graph, place)->kind : TW_NODE_HOST;
        if (kind != TW_NODE_PU && kind != TW_NODE_GPU)
            return tw_fail(TWILL_ERR_INVALID,
                           "rank %d is placed on host %u node %u, which is no CPU or GPU", r,
                           place.host, place.node);
    }
    return TWILL_OK;
}

enum twill_status tw_cost_graph_open(const struct tw_cost_graph *from, struct tw_cost_net *net)
{
    enum twill_status status = places_check(from);
    if (tw_failed(status))
        return status;
    uint32_t nranks = (uint32_t)from->nranks;
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for a machine of %u ranks", nranks);
    state->graph = from->graph;
    state->inside = from->inside;
    state->between_hosts = from->between_hosts;
    state->places = calloc(nranks, sizeof(state->places[0]));
    state->unit_of = calloc(nranks, sizeof(state->unit_of[0]));
    state->units = calloc(nranks, sizeof(state->units[0]));
    state->rates = calloc((size_t)from->graph->nresources + nranks, sizeof(state->rates[0]));
    if (!state->places || !state->unit_of || !state->units || !state->rates)
        status = tw_fail(TWILL_ERR_NOMEM, "no memory for a machine of %u ranks", nranks);
    if (!tw_failed(status))
        status = tw_topo_routes_create(&state->routes, from->graph);
    if (tw_failed(status)) {
        state_free(state);
        return status;
    }
    memcpy(state->places, from->places, nranks * sizeof(state->places[0]));
    units_fill(state, nranks);
    *net = (struct tw_cost_net){
        .nranks = from->nranks,
        .nresources = rates_fill(state),
        .nengines = state->nunits,
        .resources = state->rates,
        .ctx = state,
        .place = graph_place,
        .path = graph_path,
        .name = graph_name,
        .close = graph_close,
    };
    return TWILL_OK;
}
