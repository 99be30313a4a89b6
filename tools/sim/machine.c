/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: this host and described machines, where ranks go, which cost table counts.
 * Never knows: plans. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "base/status.h"
#include "sim.h"
#include "topo/ring.h"
#include "topo/xml.h"

/* A name of a synthetic machine, or else a file. */
static enum twill_status graph_open(const char *name, struct tw_topo_graph **graph)
{
    if (!name)
        return tw_topo_discover(graph, TW_TOPO_SCOPE_PROCESS);
    if (access(name, F_OK) == 0 || strchr(name, '/'))
        return tw_topo_xml_load(graph, name);
    return tw_topo_synthetic(graph, name);
}

static bool has_gpus(const struct tw_topo_graph *graph)
{
    return tw_topo_node_count(tw_topo_machine_of(graph, 0), TW_NODE_GPU) > 0;
}

/* One host takes any number of ranks, its CPUs in turn; several take what they have. */
static uint32_t per_host_of(const struct sim_machine_options *options,
                            const struct tw_topo_graph *graph, int nranks)
{
    if (options->per_host == 0 && graph->nhosts == 1)
        return (uint32_t)nranks;
    return options->per_host;
}

/* "0 2 1 3, 25 GB/s" */
static char *ring_text(const struct tw_topo_ring *ring)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return NULL;
    for (uint32_t i = 0; i < ring->count; i++)
        fprintf(out, "%s%" PRIu32, i ? " " : "", ring->order[i]);
    fprintf(out, ", %.4g GB/s", (double)ring->bytes_per_s / 1e9);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* Rank r goes where the ring's r-th place is. */
static enum twill_status ring_take(struct sim_machine *machine, struct tw_topo_place *places)
{
    struct tw_topo_ring ring;
    struct tw_topo_place before[TW_TOPO_RING_MOST];
    enum twill_status status =
        tw_topo_ring_find(machine->graph, places, (uint32_t)machine->nranks, &ring);
    if (tw_failed(status))
        return status;
    memcpy(before, places, ring.count * sizeof(*places));
    for (uint32_t i = 0; i < ring.count; i++)
        places[i] = before[ring.order[i]];
    machine->order = ring_text(&ring);
    return machine->order ? TWILL_OK : tw_fail(TWILL_ERR_NOMEM, "no memory for a ring's text");
}

enum twill_status sim_machine_open(const struct sim_machine_options *options, int nranks,
                                   struct sim_machine *machine)
{
    struct sim_machine made = {.nranks = nranks};
    enum twill_status status = graph_open(options->machine, &made.graph);
    if (tw_failed(status))
        return status;
    struct tw_topo_place *places = calloc((size_t)nranks, sizeof(*places));
    if (!places)
        status = tw_fail(TWILL_ERR_NOMEM, "no memory for %d ranks", nranks);
    if (!tw_failed(status)) {
        made.gpus = options->gpus < 0 ? has_gpus(made.graph) : options->gpus;
        status =
            tw_topo_place_ranks(made.graph, made.gpus ? TW_NODE_GPU : TW_NODE_PU,
                                options->cyclic ? TW_TOPO_CYCLIC : TW_TOPO_PACKED,
                                per_host_of(options, made.graph, nranks), (uint32_t)nranks, places);
    }
    if (!tw_failed(status) && options->ring)
        status = ring_take(&made, places);
    if (!tw_failed(status)) {
        const struct tw_cost_graph from = {
            .graph = made.graph,
            .places = places,
            .nranks = nranks,
            .inside = made.gpus ? TW_COST_LINK_PEER : TW_COST_LINK_SHM,
            .between_hosts = options->between_hosts,
        };
        status = tw_cost_graph_open(&from, &made.net);
    }
    free(places);
    if (!tw_failed(status)) {
        *machine = made;
        return TWILL_OK;
    }
    free(made.order);
    tw_topo_graph_free(made.graph);
    return status;
}

void sim_machine_close(struct sim_machine *machine)
{
    tw_cost_net_close(&machine->net);
    tw_topo_graph_free(machine->graph);
    free(machine->order);
    *machine = (struct sim_machine){.nranks = 0};
}

enum twill_status sim_table_open(const char *path, struct tw_cost_table *table)
{
    const struct tw_params *params;
    enum twill_status status = tw_params_get(&params);
    if (tw_failed(status))
        return status;
    if (strcmp(params->log, "warn") == 0) /* what fails is said once, at the end */
        tw_log_configure("error", params->log_file);
    tw_cost_table_default(table);
    if (!path && params->cost_file[0])
        path = params->cost_file;
    return path ? tw_cost_table_load(path, table) : TWILL_OK;
}
