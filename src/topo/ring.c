/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how orders of places are searched. Never knows: what paths are made of. */
#include "config.h"

#include "topo/ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define PS 1000000000000ull /* in a second */
#define PASSES_MOST 16      /* of improvements; a few suffice */

struct search {
    const struct tw_topo_graph *graph; /* borrowed */
    uint32_t count;
    struct tw_topo_path *paths; /* owned, as is the next: [count * count], from * count + to */
    uint32_t *load;             /* [graph->nresources]: how often the links made so far pass it */
    struct tw_topo_ring best;   /* count 0: none yet */
};

/* Part of a ring: what its links reach together. */
struct reach {
    uint64_t bytes_per_s, around_ps;
};
static const struct reach nothing = {TW_TOPO_RATE_MOST, 0};

static const struct tw_topo_path *path_of(const struct search *search, uint32_t from, uint32_t to)
{
    return &search->paths[from * search->count + to];
}

/* Adds a link: what all reach then. */
static struct reach link_make(struct search *search, uint32_t from, uint32_t to, struct reach reach)
{
    const struct tw_topo_path *path = path_of(search, from, to);
    reach.around_ps += path->latency_ps;
    if (path->bytes_per_s > 0) /* as of all paths */
        reach.around_ps += TW_TOPO_RING_BYTES * PS / path->bytes_per_s;
    if (path->bytes_per_s < reach.bytes_per_s)
        reach.bytes_per_s = path->bytes_per_s;
    for (uint32_t i = 0; i < path->nresources; i++) {
        uint32_t resource = path->resource[i];
        uint64_t share = tw_topo_resource_rate(search->graph, resource) / ++search->load[resource];
        if (share < reach.bytes_per_s)
            reach.bytes_per_s = share;
    }
    return reach;
}

static void link_unmake(struct search *search, uint32_t from, uint32_t to)
{
    const struct tw_topo_path *path = path_of(search, from, to);
    for (uint32_t i = 0; i < path->nresources; i++)
        search->load[path->resource[i]]--;
}

static bool better(struct reach a, struct reach b)
{
    return a.bytes_per_s != b.bytes_per_s ? a.bytes_per_s > b.bytes_per_s
                                          : a.around_ps < b.around_ps;
}

static struct reach best_of(const struct search *search)
{
    return (struct reach){search->best.bytes_per_s, search->best.around_ps};
}

/* What the whole ring reaches. */
static struct reach ring_reach(struct search *search, const uint32_t *order)
{
    struct reach reach = nothing;
    uint32_t n = search->count;
    for (uint32_t i = 0; i < n; i++)
        reach = link_make(search, order[i], order[(i + 1) % n], reach);
    for (uint32_t i = 0; i < n; i++)
        link_unmake(search, order[i], order[(i + 1) % n]);
    return reach;
}

static void keep(struct search *search, const uint32_t *order, struct reach reach)
{
    search->best.count = search->count;
    search->best.bytes_per_s = reach.bytes_per_s;
    search->best.around_ps = reach.around_ps;
    memcpy(search->best.order, order, search->count * sizeof(*order));
}

/* ---- all orders -------------------------------------------------------------------------------
 */

/* Tries every way to go on from order[0 .. made-1], smallest numbers first. More links only slow a
 * ring down: what is no better than the best already is left. */
static void extend(struct search *search, uint32_t *order, uint32_t made,
                   struct reach reach) /* NOLINT(misc-no-recursion) */
{
    uint32_t last = order[made - 1];
    if (search->best.count && !better(reach, best_of(search)))
        return;
    if (made == search->count) {
        struct reach whole = link_make(search, last, order[0], reach);
        if (!search->best.count || better(whole, best_of(search)))
            keep(search, order, whole);
        link_unmake(search, last, order[0]);
        return;
    }
    for (uint32_t next = 1; next < search->count; next++) {
        bool used = false;
        for (uint32_t i = 1; i < made; i++)
            used |= order[i] == next;
        if (used)
            continue;
        order[made] = next;
        extend(search, order, made + 1, link_make(search, last, next, reach));
        link_unmake(search, last, next);
    }
}

/* ---- a good order -----------------------------------------------------------------------------
 */

/* From each place to the one, of those that are left, that is reached best. */
static void nearest_first(struct search *search, uint32_t *order)
{
    bool used[TW_TOPO_RING_MOST] = {true};
    struct reach reach = nothing;
    order[0] = 0;
    for (uint32_t made = 1; made < search->count; made++) {
        uint32_t last = order[made - 1], chosen = 0;
        struct reach best = {0, 0};
        for (uint32_t next = 1; next < search->count; next++) {
            if (used[next])
                continue;
            /* of this link alone, beside those that are there */
            struct reach one = link_make(search, last, next, nothing);
            link_unmake(search, last, next);
            if (chosen && !better(one, best))
                continue;
            chosen = next;
            best = one;
        }
        order[made] = chosen;
        used[chosen] = true;
        reach = link_make(search, last, chosen, reach);
    }
    for (uint32_t i = 1; i < search->count; i++)
        link_unmake(search, order[i - 1], order[i]);
    keep(search, order, ring_reach(search, order));
}

static void turn(uint32_t *order, uint32_t from, uint32_t to)
{
    for (; from < to; from++, to--) {
        uint32_t held = order[from];
        order[from] = order[to];
        order[to] = held;
    }
}

/* Turns each stretch around that makes the ring better. @return whether any did */
static bool stretches_turn(struct search *search, uint32_t *order)
{
    bool any = false;
    for (uint32_t from = 1; from + 1 < search->count; from++) {
        for (uint32_t to = from + 1; to < search->count; to++) {
            turn(order, from, to);
            struct reach reach = ring_reach(search, order);
            if (better(reach, best_of(search))) {
                keep(search, order, reach);
                any = true;
            } else {
                turn(order, from, to);
            }
        }
    }
    return any;
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static enum twill_status paths_find(struct search *search, const struct tw_topo_place *places)
{
    struct tw_topo_routes *routes;
    enum twill_status status = tw_topo_routes_create(&routes, search->graph);
    if (tw_failed(status))
        return status;
    uint32_t n = search->count;
    for (uint32_t i = 0; i < n * n && !tw_failed(status); i++)
        status = tw_topo_path_find(routes, places[i / n], places[i % n], TW_TOPO_VIA_CACHE,
                                   &search->paths[i]);
    tw_topo_routes_destroy(routes);
    return status;
}

enum twill_status tw_topo_ring_find(const struct tw_topo_graph *graph,
                                    const struct tw_topo_place *places, uint32_t count,
                                    struct tw_topo_ring *ring)
{
    uint32_t order[TW_TOPO_RING_MOST] = {0};
    if (count < 1 || count > TW_TOPO_RING_MOST)
        return tw_fail(TWILL_ERR_INVALID, "a ring of %u places: 1 to %d can be put in order", count,
                       TW_TOPO_RING_MOST);
    struct search search = {.graph = graph, .count = count};
    search.paths = calloc((size_t)count * count, sizeof(*search.paths));
    search.load = calloc((size_t)graph->nresources + 1, sizeof(*search.load));
    enum twill_status status =
        search.paths && search.load
            ? paths_find(&search, places)
            : tw_fail(TWILL_ERR_NOMEM, "no memory for the paths of %u places", count);
    if (!tw_failed(status) && count <= TW_TOPO_RING_EXACT) {
        extend(&search, order, 1, nothing);
    } else if (!tw_failed(status)) {
        nearest_first(&search, order);
        for (int pass = 0; pass < PASSES_MOST && stretches_turn(&search, order); pass++)
            ;
    }
    free(search.paths);
    free(search.load);
    if (!tw_failed(status))
        *ring = search.best;
    return status;
}
