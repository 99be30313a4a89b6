/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how what lies between GPUs is shown. Never knows: CUDA, how the graph was found. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "info.h"
#include "topo/map.h"
#include "topo/ring.h"

/* A host's GPUs and what is asked of them. */
struct gpus {
    const struct tw_topo_machine *machine; /* borrowed */
    struct tw_topo_map map;
    uint32_t count;
    struct tw_topo_place places[TW_TOPO_RING_MOST]; /* the first so many, for the ring */
    struct tw_topo_ring ring;                       /* count 0: none */
};

static enum twill_status gpus_open(struct gpus *gpus, const struct tw_topo_graph *graph)
{
    *gpus = (struct gpus){.machine = tw_topo_machine_of(graph, 0)};
    gpus->count = tw_topo_node_count(gpus->machine, TW_NODE_GPU);
    enum twill_status status = tw_topo_map_init(&gpus->map, gpus->machine);
    if (gpus->count < 2 || gpus->count > TW_TOPO_RING_MOST || tw_failed(status))
        return status;
    for (uint32_t i = 0; i < gpus->count; i++)
        gpus->places[i] =
            (struct tw_topo_place){0, tw_topo_node_nth(gpus->machine, TW_NODE_GPU, i)};
    return tw_topo_ring_find(graph, gpus->places, gpus->count, &gpus->ring);
}

static const char *name_of(const struct gpus *gpus, uint32_t node)
{
    const struct tw_topo_node *nodes = gpus->machine->nodes;
    return nodes[node].kind == TW_NODE_NVSWITCH ? "NVSwitch" : nodes[node].name;
}

/* The kernel's number of the NUMA node that a node hangs on; TW_TOPO_NONE: the system does not say
 */
static uint32_t numa_of(const struct gpus *gpus, uint32_t node)
{
    while (node != 0 && gpus->machine->nodes[node].kind != TW_NODE_NUMA)
        node = gpus->machine->nodes[node].parent;
    return node ? gpus->machine->nodes[node].os_index : TW_TOPO_NONE;
}

/* "": there is none */
static const char *nic_of(struct gpus *gpus, uint32_t node)
{
    const struct tw_topo_port *port = tw_topo_map_door(&gpus->map, node, false);
    return port ? gpus->machine->nodes[port->nic].name : "";
}

/* The next NVLink of a GPU from link *at on; its other end. TW_TOPO_NONE: no more */
static uint32_t nvlink_next(const struct gpus *gpus, uint32_t node, uint32_t *at)
{
    const struct tw_topo_machine *machine = gpus->machine;
    for (; *at < machine->nlinks; ++*at) {
        const struct tw_topo_link *link = &machine->links[*at];
        if (machine->nodes[link->from].uplink == *at || (link->from != node && link->to != node))
            continue;
        return link->from == node ? link->to : link->from;
    }
    return TW_TOPO_NONE;
}

/* Out of a node. */
static uint64_t rate_from(const struct tw_topo_link *link, uint32_t node)
{
    return link->bytes_per_s[link->from != node];
}

static bool is_about_nvlink(const char *note) { return strncmp(note, "NVLink", 6) == 0; }

/* ---- for people -------------------------------------------------------------------------------
 */

static void print_nvlinks(FILE *out, const struct gpus *gpus, uint32_t node)
{
    uint32_t at = 0, to;
    const char *comma = "";
    for (; (to = nvlink_next(gpus, node, &at)) != TW_TOPO_NONE; at++, comma = ",") {
        const struct tw_topo_link *link = &gpus->machine->links[at];
        fprintf(out, "%s", *comma ? comma : "        NVLink:");
        if (link->count)
            fprintf(out, " %" PRIu32 " link%s", link->count, link->count == 1 ? "" : "s");
        fprintf(out, " to %s, %.4g GB/s", name_of(gpus, to), (double)rate_from(link, node) / 1e9);
    }
    fputs(*comma ? "\n" : "", out);
}

static void print_gpu(FILE *out, struct gpus *gpus, uint32_t node)
{
    const struct tw_topo_node *gpu = &gpus->machine->nodes[node];
    const char *nic = nic_of(gpus, node);
    uint32_t numa = numa_of(gpus, node);
    fprintf(out, "  %s  %s, ", gpu->name, *gpu->model ? gpu->model : "unknown GPU");
    if (numa == TW_TOPO_NONE)
        fputs("NUMA node unknown", out);
    else
        fprintf(out, "NUMA node %" PRIu32, numa);
    fprintf(out, ", %s%s\n", *nic ? "nearest NIC " : "no NIC", nic);
    print_nvlinks(out, gpus, node);
}

static void print_all(FILE *out, struct gpus *gpus)
{
    for (uint32_t i = 0; i < gpus->count; i++)
        print_gpu(out, gpus, tw_topo_node_nth(gpus->machine, TW_NODE_GPU, i));
    if (gpus->ring.count) {
        fputs("  ring", out);
        for (uint32_t i = 0; i < gpus->ring.count; i++)
            fprintf(out, " %s", name_of(gpus, gpus->places[gpus->ring.order[i]].node));
        fprintf(out, ", %.4g GB/s\n", (double)gpus->ring.bytes_per_s / 1e9);
    }
    for (uint32_t i = 0; i < gpus->machine->nnotes; i++)
        if (is_about_nvlink(gpus->machine->notes[i]))
            fprintf(out, "  note: %s\n", gpus->machine->notes[i]);
}

enum twill_status info_gpus_print(FILE *out, const struct tw_topo_graph *graph)
{
    struct gpus gpus;
    enum twill_status status = gpus_open(&gpus, graph);
    if (!tw_failed(status) && gpus.count > 0) {
        fputs("\nbetween GPUs\n", out);
        print_all(out, &gpus);
    }
    tw_topo_map_fini(&gpus.map);
    return status;
}

/* ---- for programs -----------------------------------------------------------------------------
 */

static void json_gpu(FILE *out, struct gpus *gpus, uint32_t node)
{
    const struct tw_topo_node *gpu = &gpus->machine->nodes[node];
    const char *nic = nic_of(gpus, node), *comma = "";
    uint32_t numa = numa_of(gpus, node), at = 0, to;
    fputs("{", out);
    info_json_string(out, "name", gpu->name, ", ");
    info_json_string(out, "model", gpu->model, ", \"numa_node\": ");
    if (numa == TW_TOPO_NONE)
        fputs("null, ", out);
    else
        fprintf(out, "%" PRIu32 ", ", numa);
    info_json_string(out, "nic", nic, ", \"nvlink\": [");
    for (; (to = nvlink_next(gpus, node, &at)) != TW_TOPO_NONE; at++, comma = ", ") {
        const struct tw_topo_link *link = &gpus->machine->links[at];
        fprintf(out, "%s{", comma);
        info_json_string(out, "to", name_of(gpus, to), ", ");
        fprintf(out, "\"links\": %" PRIu32 ", \"bytes_per_s\": %" PRIu64 "}", link->count,
                rate_from(link, node));
    }
    fputs("]}", out);
}

static void json_all(FILE *out, struct gpus *gpus)
{
    fputs("{\"gpus\": [", out);
    for (uint32_t i = 0; i < gpus->count; i++) {
        fputs(i ? ",\n    " : "\n    ", out);
        json_gpu(out, gpus, tw_topo_node_nth(gpus->machine, TW_NODE_GPU, i));
    }
    fputs("],\n    \"ring\": [", out);
    for (uint32_t i = 0; i < gpus->ring.count; i++) {
        fputs(i ? ", " : "", out);
        info_json_text(out, name_of(gpus, gpus->places[gpus->ring.order[i]].node));
    }
    fprintf(out, "], \"ring_bytes_per_s\": %" PRIu64 ", \"notes\": [",
            gpus->ring.count ? gpus->ring.bytes_per_s : 0);
    const char *comma = "";
    for (uint32_t i = 0; i < gpus->machine->nnotes; i++) {
        if (!is_about_nvlink(gpus->machine->notes[i]))
            continue;
        fputs(comma, out);
        info_json_text(out, gpus->machine->notes[i]);
        comma = ", ";
    }
    fputs("]}", out);
}

enum twill_status info_gpus_json(FILE *out, const struct tw_topo_graph *graph)
{
    struct gpus gpus;
    enum twill_status status = gpus_open(&gpus, graph);
    if (!tw_failed(status))
        json_all(out, &gpus);
    tw_topo_map_fini(&gpus.map);
    return status;
}
