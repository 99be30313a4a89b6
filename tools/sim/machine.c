/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: this host and described machines, where ranks go, which cost table counts.
 * Never knows: plans. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "base/status.h"
#include "sim.h"
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
    if (tw_failed(status))
        tw_topo_graph_free(made.graph);
    else
        *machine = made;
    return status;
}

void sim_machine_close(struct sim_machine *machine)
{
    tw_cost_net_close(&machine->net);
    tw_topo_graph_free(machine->graph);
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
