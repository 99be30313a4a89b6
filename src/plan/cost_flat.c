/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a machine on which all paths are alike. Never knows: plans. */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "plan/cost.h"

struct flat {
    struct tw_cost_flat facts;
    uint64_t rates[]; /* [2 * nranks] of ports, out and in, if there are; then the shared one */
};

static uint32_t port_count(const struct tw_cost_flat *facts)
{
    return facts->port_bytes_per_s ? 2 * (uint32_t)facts->nranks : 0;
}

static void flat_place(const struct tw_cost_net *net, int rank, struct tw_cost_place *place)
{
    const struct flat *flat = net->ctx;
    place->exec = flat->facts.exec;
    place->own_lanes = flat->facts.own_lanes;
    place->engine = (uint32_t)rank % net->nengines;
}

static enum twill_status flat_path(const struct tw_cost_net *net, int from, int to,
                                   struct tw_cost_path *path)
{
    const struct flat *flat = net->ctx;
    const struct tw_cost_flat *facts = &flat->facts;
    if (from == to)
        return TWILL_OK;
    path->link = facts->link;
    path->latency_ps = facts->latency_ps;
    path->bytes_per_s = facts->bytes_per_s;
    if (facts->port_bytes_per_s) {
        path->resources[path->nresources++] = 2 * (uint32_t)from;
        path->resources[path->nresources++] = 2 * (uint32_t)to + 1;
    }
    if (facts->shared_bytes_per_s)
        path->resources[path->nresources++] = port_count(facts);
    return TWILL_OK;
}

static void flat_name(const struct tw_cost_net *net, bool engine, uint32_t index, char *text,
                      size_t bytes)
{
    const struct flat *flat = net->ctx;
    if (engine)
        snprintf(text, bytes, "engine %u", index);
    else if (index == port_count(&flat->facts))
        snprintf(text, bytes, "shared path");
    else
        snprintf(text, bytes, "port %s of rank %u", index % 2 ? "into" : "out", index / 2);
}

static void flat_close(struct tw_cost_net *net)
{
    free(net->ctx);
    *net = (struct tw_cost_net){.nranks = 0};
}

enum twill_status tw_cost_flat_open(const struct tw_cost_flat *facts, struct tw_cost_net *net)
{
    if (facts->nranks < 1 || facts->nranks > TW_PLAN_RANKS_MAX)
        return tw_fail(TWILL_ERR_INVALID, "a machine cannot have %d ranks: 1 to %d", facts->nranks,
                       TW_PLAN_RANKS_MAX);
    if (facts->exec >= TW_COST_EXEC_COUNT || facts->link >= TW_COST_LINK_COUNT)
        return tw_fail(TWILL_ERR_INVALID, "a machine of executor %u and link %u", facts->exec,
                       facts->link);
    uint32_t ports = port_count(facts), count = ports + (facts->shared_bytes_per_s != 0);
    struct flat *flat = calloc(1, sizeof(*flat) + (count + 1) * sizeof(flat->rates[0]));
    if (!flat)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for a machine of %d ranks", facts->nranks);
    flat->facts = *facts;
    for (uint32_t i = 0; i < count; i++)
        flat->rates[i] = i < ports ? facts->port_bytes_per_s : facts->shared_bytes_per_s;
    *net = (struct tw_cost_net){
        .nranks = facts->nranks,
        .nengines = facts->engines ? facts->engines : (uint32_t)facts->nranks,
        .nresources = count,
        .resources = flat->rates,
        .ctx = flat,
        .place = flat_place,
        .path = flat_path,
        .name = flat_name,
        .close = flat_close,
    };
    return TWILL_OK;
}
