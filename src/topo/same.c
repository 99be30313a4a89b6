/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: when two graphs say the same. Never knows: what they say. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "topo/graph.h"

static bool nodes_equal(const struct tw_topo_machine *a, const struct tw_topo_machine *b)
{
    for (uint32_t i = 0; i < a->nnodes; i++) {
        const struct tw_topo_node *x = &a->nodes[i], *y = &b->nodes[i];
        if (x->kind != y->kind || x->level != y->level || x->parent != y->parent ||
            x->uplink != y->uplink || x->os_index != y->os_index ||
            x->memory_bytes != y->memory_bytes || x->memory_bytes_per_s != y->memory_bytes_per_s ||
            strcmp(x->name, y->name) != 0 || strcmp(x->model, y->model) != 0)
            return false;
    }
    return true;
}

static bool links_equal(const struct tw_topo_machine *a, const struct tw_topo_machine *b)
{
    for (uint32_t i = 0; i < a->nlinks; i++) {
        const struct tw_topo_link *x = &a->links[i], *y = &b->links[i];
        if (x->from != y->from || x->to != y->to || x->origin != y->origin || x->count != y->count)
            return false;
        for (int d = 0; d < 2; d++)
            if (x->latency_ps[d] != y->latency_ps[d] || x->bytes_per_s[d] != y->bytes_per_s[d] ||
                x->resource[d] != y->resource[d])
                return false;
    }
    return true;
}

static bool machines_equal(const struct tw_topo_machine *a, const struct tw_topo_machine *b)
{
    if (strcmp(a->name, b->name) != 0 || strcmp(a->cpu_model, b->cpu_model) != 0 ||
        a->origin != b->origin || a->l1d_bytes != b->l1d_bytes || a->l2_bytes != b->l2_bytes ||
        a->l3_bytes != b->l3_bytes || a->nnodes != b->nnodes || a->nlinks != b->nlinks ||
        a->nresources != b->nresources || a->nnotes != b->nnotes)
        return false;
    for (uint32_t i = 0; i < a->nresources; i++)
        if (a->resources[i].node != b->resources[i].node ||
            a->resources[i].bytes_per_s != b->resources[i].bytes_per_s)
            return false;
    for (uint32_t i = 0; i < a->nnotes; i++)
        if (strcmp(a->notes[i], b->notes[i]) != 0)
            return false;
    return nodes_equal(a, b) && links_equal(a, b);
}

static bool fabrics_equal(const struct tw_topo_fabric *a, const struct tw_topo_fabric *b)
{
    if (a->ntiers != b->ntiers || a->rails != b->rails)
        return false;
    for (uint32_t t = 0; t < a->ntiers; t++)
        if (a->tier[t].down != b->tier[t].down || a->tier[t].latency_ps != b->tier[t].latency_ps ||
            a->tier[t].up_bytes_per_s != b->tier[t].up_bytes_per_s)
            return false;
    return true;
}

bool tw_topo_graph_equal(const struct tw_topo_graph *a, const struct tw_topo_graph *b)
{
    if (strcmp(a->name, b->name) != 0 || a->nmachines != b->nmachines || a->nhosts != b->nhosts)
        return false;
    for (uint32_t m = 0; m < a->nmachines; m++)
        if (!machines_equal(&a->machines[m], &b->machines[m]))
            return false;
    return memcmp(a->host_machine, b->host_machine, a->nhosts * sizeof(*a->host_machine)) == 0 &&
           fabrics_equal(&a->fabric, &b->fabric);
}
