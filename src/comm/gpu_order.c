/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where a communicator's devices are in the host's graph, and what that says of rings and of
 * all exchanging at once. Never knows: calls, plans. */
#include "config.h"

#include "comm/gpu_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "comm/gpu.h"
#include "topo/ring.h"
#include "topo/xml.h"

/* Of a communicator. Devices are numbered as ranks come to them. */
struct look {
    const struct twill_comm *comm;
    const struct tw_gpu_spot *spots;
    const struct tw_topo_graph *graph;
    uint32_t count;                                /* of devices */
    uint32_t device[TW_GK_RANKS_MAX];              /* of each rank */
    const struct tw_gpu_spot *of[TW_GK_RANKS_MAX]; /* of each device */
    struct tw_topo_place places[TW_GK_RANKS_MAX];
};

/* ---- this host --------------------------------------------------------------------------------
 */

void tw_gpu_graph_init(struct tw_gpu_graph *graph)
{
    graph->looked = false;
    graph->graph = NULL;
    (void)pthread_mutex_init(&graph->lock, NULL);
}

void tw_gpu_graph_fini(struct tw_gpu_graph *graph)
{
    tw_topo_graph_free(graph->graph);
    graph->graph = NULL;
    (void)pthread_mutex_destroy(&graph->lock);
}

/* Only a file is an error. */
static enum twill_status graph_look(const char *file, struct tw_gpu_graph *kept)
{
    enum twill_status status;

    if (file[0] != '\0') {
        status = tw_topo_xml_load(&kept->graph, file);
        return tw_failed(status) ? tw_fail(status, "TWILL_TOPO_FILE: %s", tw_fail_text()) : status;
    }
    status = tw_topo_discover(&kept->graph, TW_TOPO_SCOPE_GROUP);
    if (tw_failed(status))
        tw_info(TW_SUB_TOPO, "what lies between devices is not known: %s", tw_fail_text());
    return TWILL_OK;
}

static enum twill_status graph_get(const struct twill_comm *comm,
                                   const struct tw_topo_graph **graph)
{
    struct tw_gpu_graph *kept = &comm->proc->gpus.graph;
    enum twill_status status = TWILL_OK;

    (void)pthread_mutex_lock(&kept->lock);
    if (!kept->looked)
        status = graph_look(comm->proc->params->topo_file, kept);
    kept->looked = !tw_failed(status);
    *graph = kept->graph;
    (void)pthread_mutex_unlock(&kept->lock);
    return status;
}

/* ---- devices ----------------------------------------------------------------------------------
 */

enum twill_status tw_gpu_spot_read(const struct twill_comm *comm, struct tw_gpu_spot *spot)
{
    struct tw_cuda_device found;
    enum twill_status status = tw_gpu_check(comm->args.device);

    if (!tw_failed(status))
        status = tw_cuda_device_read(comm->args.device, &found);
    if (tw_failed(status))
        return status;
    memcpy(spot->pci, found.pci, sizeof(spot->pci));
    memcpy(spot->uuid, found.uuid, sizeof(spot->uuid));
    return TWILL_OK;
}

static void devices_number(int size, struct look *look)
{
    look->count = 0;
    for (int r = 0; r < size; r++) {
        uint32_t d = 0;

        while (d < look->count && memcmp(look->of[d]->uuid, look->spots[r].uuid, 16) != 0)
            d++;
        if (d == look->count)
            look->of[look->count++] = &look->spots[r];
        look->device[r] = d;
    }
}

bool tw_gpu_between_matters(int size, const struct tw_gpu_spot *spots)
{
    struct look look = {.spots = spots};

    if (size > TW_GK_RANKS_MAX)
        return false; /* there is no such communicator */
    devices_number(size, &look);
    return look.count >= TW_GPU_DEVICES_LEAST;
}

/* By its PCI name. TW_TOPO_NONE: not there */
static uint32_t node_named(const struct tw_topo_machine *machine, const char *pci)
{
    for (uint32_t i = 0; i < machine->nnodes && pci[0] != '\0'; i++)
        if (machine->nodes[i].kind == TW_NODE_GPU && strcmp(machine->nodes[i].name, pci) == 0)
            return i;
    return TW_TOPO_NONE;
}

/* False: some are not in the graph. */
static bool places_find(struct look *look, bool by_name)
{
    const struct tw_topo_machine *machine = tw_topo_machine_of(look->graph, 0);

    for (uint32_t d = 0; d < look->count; d++) {
        const uint32_t node = by_name ? node_named(machine, look->of[d]->pci)
                                      : tw_topo_node_nth(machine, TW_NODE_GPU, d);

        if (node == TW_TOPO_NONE)
            return false;
        look->places[d] = (struct tw_topo_place){0, node};
    }
    return true;
}

/* ---- what follows -----------------------------------------------------------------------------
 */

struct paths {
    struct tw_topo_routes *routes; /* owned */
    uint32_t *load;                /* owned, [nresources]: how often devices' paths pass it */
    uint64_t least, most;          /* rates of paths that have their way for themselves */
};

/* From a device to another, beside those that were looked at before. */
static enum twill_status path_add(const struct look *look, struct paths *paths, uint32_t from,
                                  uint32_t to)
{
    struct tw_topo_path path;

    if (from == to)
        return TWILL_OK;
    enum twill_status status = tw_topo_path_find(paths->routes, look->places[from],
                                                 look->places[to], TW_TOPO_VIA_CACHE, &path);
    if (tw_failed(status))
        return status;
    for (uint32_t i = 0; i < path.nresources; i++)
        paths->load[path.resource[i]]++;
    if (path.bytes_per_s < paths->least)
        paths->least = path.bytes_per_s;
    if (path.bytes_per_s > paths->most)
        paths->most = path.bytes_per_s;
    return TWILL_OK;
}

/* Of each of the paths that were added, if all are in use. */
static uint64_t rate_of(const struct look *look, const struct paths *paths)
{
    uint64_t rate = paths->least;

    for (uint32_t i = 0; i < look->graph->nresources; i++) {
        const uint64_t all = tw_topo_resource_rate(look->graph, i);

        if (paths->load[i] > 0 && all / paths->load[i] < rate)
            rate = all / paths->load[i];
    }
    return rate;
}

static uint64_t peers_of(const struct look *look) { return look->count > 1 ? look->count - 1 : 1; }

/* From the device, or from all of them. */
static enum twill_status exchange(const struct look *look, struct paths *paths, uint32_t from,
                                  bool all, uint64_t *bytes_per_s)
{
    enum twill_status status = TWILL_OK;

    memset(paths->load, 0, look->graph->nresources * sizeof(*paths->load));
    paths->least = TW_TOPO_RATE_MOST;
    for (uint32_t a = 0; a < look->count; a++)
        for (uint32_t b = 0; b < look->count && !tw_failed(status) && (all || a == from); b++)
            status = path_add(look, paths, a, b);
    *bytes_per_s = peers_of(look) * rate_of(look, paths);
    return status;
}

static enum twill_status rates_find(const struct look *look, struct tw_gpu_between *between)
{
    struct paths paths = {NULL, NULL, TW_TOPO_RATE_MOST, 0};
    enum twill_status status = tw_topo_routes_create(&paths.routes, look->graph);

    paths.load = tw_alloc(((size_t)look->graph->nresources + 1) * sizeof(*paths.load));
    if (paths.load == NULL)
        status = TWILL_ERR_NOMEM;
    between->one_bytes_per_s = UINT64_MAX;
    for (uint32_t d = 0; d < look->count && !tw_failed(status); d++) {
        uint64_t rate = 0;

        status = exchange(look, &paths, d, false, &rate);
        if (rate < between->one_bytes_per_s)
            between->one_bytes_per_s = rate;
    }
    if (!tw_failed(status))
        status = exchange(look, &paths, 0, true, &between->all_bytes_per_s);
    /* rounded down alike */
    between->uneven = paths.least != paths.most ||
                      between->all_bytes_per_s / peers_of(look) < paths.least / peers_of(look);
    free(paths.load);
    tw_topo_routes_destroy(paths.routes);
    return status;
}

static enum twill_status ring_find(const struct look *look, struct tw_gpu_between *between)
{
    const uint32_t size = (uint32_t)look->comm->size;
    struct tw_topo_ring ring;
    uint32_t placed = 0;
    enum twill_status status = tw_topo_ring_find(look->graph, look->places, look->count, &ring);

    for (uint32_t i = 0; i < look->count && !tw_failed(status); i++)
        for (uint32_t r = 0; r < size; r++)
            if (look->device[r] == ring.order[i])
                between->order[placed++] = (uint8_t)r;
    if (!tw_failed(status))
        between->ring_bytes_per_s = ring.bytes_per_s;
    return status;
}

static void between_log(const struct look *look, const struct tw_gpu_between *between)
{
    char text[TW_GK_RANKS_MAX * 4] = "";
    size_t used = 0;

    for (int i = 0; i < look->comm->size; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %d", between->order[i]);
    tw_info(TW_SUB_COMM,
            "communicator %s: around the ring ranks%s, %.4g GB/s to the next; %.4g GB/s to all at "
            "once",
            look->comm->args.name, text, (double)between->ring_bytes_per_s / 1e9,
            (double)between->all_bytes_per_s / 1e9);
}

enum twill_status tw_gpu_between_find(const struct twill_comm *comm,
                                      const struct tw_gpu_spot *spots,
                                      struct tw_gpu_between *between)
{
    const bool told = comm->proc->params->topo_file[0] != '\0';
    struct tw_gpu_between found = {.known = 1};
    struct look look = {.comm = comm, .spots = spots};

    if (!told && spots[0].pci[0] == '\0') {
        tw_info(TW_SUB_COMM, "communicator %s: devices have no PCI names to be found by",
                comm->args.name);
        return TWILL_OK;
    }
    enum twill_status status = graph_get(comm, &look.graph);
    if (tw_failed(status) || look.graph == NULL)
        return status;
    devices_number(comm->size, &look);
    if (!places_find(&look, true) && !(told && places_find(&look, false))) {
        tw_info(TW_SUB_COMM, "communicator %s: topology %s does not have all of its %u devices",
                comm->args.name, look.graph->name, look.count);
        return TWILL_OK;
    }
    status = rates_find(&look, &found);
    if (!tw_failed(status))
        status = ring_find(&look, &found);
    if (tw_failed(status)) { /* some reach no other */
        tw_info(TW_SUB_COMM, "communicator %s: no order of its devices: %s", comm->args.name,
                tw_fail_text());
        return status == TWILL_ERR_NOMEM ? status : TWILL_OK;
    }
    between_log(&look, &found);
    *between = found;
    return TWILL_OK;
}
