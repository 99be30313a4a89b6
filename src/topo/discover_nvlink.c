/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how NVLink joins GPUs, by NVML or by estimate. Never knows: hwloc's objects, how NVML is
 * asked. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/time.h"
#include "topo/build.h"
#include "topo/discover.h"
#include "topo/nvml.h"

#define GB 1000000000ull
#define NS 1000ull
#define SWITCH_PS (400 * NS) /* GPU to NVSwitch */
#define DIRECT_PS (670 * NS) /* GPU to GPU: a flag between two H200, as measured */
#define GUESSED_RATE (390 * GB)
#define PATIENCE_NS (30 * TW_NS_S) /* starting the driver of many GPUs takes some seconds */

/* ---- by estimate ------------------------------------------------------------------------------
 */

static bool guess(struct tw_topo_machine *machine, const struct tw_topo_nvidia *seen)
{
    if (seen->nvswitches == 0)
        return tw_topo_note_add(machine, "NVLink: unknown, neither sysfs nor hwloc shows it; paths "
                                         "between GPUs go by PCI here");
    uint32_t nvswitch = tw_topo_part_add(machine, TW_NODE_NVSWITCH, 0, TW_TOPO_NONE);
    if (nvswitch == TW_TOPO_NONE)
        return false;
    for (uint32_t i = 0; i < seen->ngpus; i++)
        if (!tw_topo_wire_add(machine, seen->gpu[i], nvswitch, SWITCH_PS, GUESSED_RATE,
                              TW_TOPO_ESTIMATE))
            return false;
    return tw_topo_note_add(machine,
                            "NVLink: %u NVSwitch chips are there; how many links a GPU has to "
                            "them, and how fast, is unknown",
                            seen->nvswitches);
}

/* ---- by NVML ----------------------------------------------------------------------------------
 */

struct wiring {
    struct tw_topo_machine *machine;
    const struct tw_topo_nvml *nvml;
    uint32_t node[TW_TOPO_NVML_GPUS_MOST]; /* of NVML's GPUs; NONE: not in the graph */
    uint32_t nvswitch, wires;              /* the node of all chips; NONE until there is one */
};

struct bundle {
    uint32_t count;
    uint64_t bytes_per_s;
};

/* The links of a GPU with one other end. */
static struct bundle bundle_of(const struct tw_topo_nvml_gpu *gpu, int to)
{
    struct bundle bundle = {0};
    for (uint32_t i = 0; i < gpu->nlinks; i++) {
        if (gpu->link[i].to != to)
            continue;
        bundle.count++;
        bundle.bytes_per_s += gpu->link[i].bytes_per_s;
    }
    return bundle;
}

static bool bundle_add(struct wiring *wiring, uint32_t from, uint32_t to, uint64_t latency_ps,
                       struct bundle bundle)
{
    struct tw_topo_machine *machine = wiring->machine;
    if (!tw_topo_wire_add(machine, from, to, latency_ps, bundle.bytes_per_s, TW_TOPO_SYSTEM))
        return false;
    machine->links[machine->nlinks - 1].count = bundle.count;
    wiring->wires++;
    return true;
}

static bool switch_add(struct wiring *wiring, uint32_t g)
{
    struct bundle bundle = bundle_of(&wiring->nvml->gpu[g], TW_TOPO_NVML_SWITCH);
    if (bundle.count == 0)
        return true;
    if (wiring->nvswitch == TW_TOPO_NONE)
        wiring->nvswitch = tw_topo_part_add(wiring->machine, TW_NODE_NVSWITCH, 0, TW_TOPO_NONE);
    return wiring->nvswitch != TW_TOPO_NONE &&
           bundle_add(wiring, wiring->node[g], wiring->nvswitch, SWITCH_PS, bundle);
}

/* What one end calls up is no link if the other does not. */
static bool pair_add(struct wiring *wiring, uint32_t a, uint32_t b)
{
    struct bundle to = bundle_of(&wiring->nvml->gpu[a], (int)b);
    struct bundle back = bundle_of(&wiring->nvml->gpu[b], (int)a);
    if (to.count != back.count &&
        !tw_topo_note_add(wiring->machine, "NVLink: %s has %u links to %s, which has %u back",
                          wiring->nvml->gpu[a].address, to.count, wiring->nvml->gpu[b].address,
                          back.count))
        return false;
    if (to.count == 0 || back.count == 0)
        return true;
    return bundle_add(wiring, wiring->node[a], wiring->node[b], DIRECT_PS,
                      to.bytes_per_s < back.bytes_per_s ? to : back);
}

/* Links of a GPU to what is no part of the graph. */
static uint32_t elsewhere(const struct wiring *wiring, const struct tw_topo_nvml_gpu *gpu)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < gpu->nlinks; i++) {
        int to = gpu->link[i].to;
        count += to == TW_TOPO_NVML_NOBODY || (to >= 0 && wiring->node[to] == TW_TOPO_NONE);
    }
    return count;
}

static bool gpu_notes(struct wiring *wiring, uint32_t g)
{
    struct tw_topo_machine *machine = wiring->machine;
    const struct tw_topo_nvml_gpu *gpu = &wiring->nvml->gpu[g];
    uint32_t lost = elsewhere(wiring, gpu);
    if (gpu->mig)
        return tw_topo_note_add(machine,
                                "NVLink: %s is cut into instances (MIG), which do not "
                                "reach other GPUs",
                                gpu->address);
    if (gpu->ndown && !tw_topo_note_add(machine, "NVLink: %u of %u links of %s are down",
                                        gpu->ndown, gpu->ndown + gpu->nlinks, gpu->address))
        return false;
    return lost == 0 ||
           tw_topo_note_add(machine, "NVLink: %u links of %s lead to no GPU or switch of this host",
                            lost, gpu->address);
}

static bool wires_add(struct wiring *wiring)
{
    for (uint32_t a = 0; a < wiring->nvml->ngpus; a++) {
        if (wiring->node[a] == TW_TOPO_NONE)
            continue;
        if (!gpu_notes(wiring, a) || !switch_add(wiring, a))
            return false;
        for (uint32_t b = a + 1; b < wiring->nvml->ngpus; b++)
            if (wiring->node[b] != TW_TOPO_NONE && !pair_add(wiring, a, b))
                return false;
    }
    return wiring->wires > 0 ||
           tw_topo_note_add(wiring->machine, "NVLink: none between these GPUs, says NVML");
}

/* @return how many of the graph's GPUs NVML knows, each once */
static uint32_t nodes_match(struct wiring *wiring, const struct tw_topo_nvidia *seen)
{
    uint32_t known = 0;
    for (uint32_t g = 0; g < TW_TOPO_NVML_GPUS_MOST; g++)
        wiring->node[g] = TW_TOPO_NONE;
    for (uint32_t i = 0; i < seen->ngpus; i++) {
        for (uint32_t g = 0; g < wiring->nvml->ngpus; g++) {
            if (strcmp(wiring->nvml->gpu[g].address, wiring->machine->nodes[seen->gpu[i]].name) !=
                0)
                continue;
            wiring->node[g] = seen->gpu[i];
            known++;
            break;
        }
    }
    return known;
}

/* @return whether NVML said it all; *fits is false when memory ran out then */
static bool ask(struct tw_topo_machine *machine, const char *library,
                const struct tw_topo_nvidia *seen, struct tw_topo_nvml *nvml, char *why, bool *fits)
{
    if (!tw_topo_nvml_ask(library, PATIENCE_NS, nvml, why))
        return false;
    struct wiring wiring = {.machine = machine, .nvml = nvml, .nvswitch = TW_TOPO_NONE};
    uint32_t known = nodes_match(&wiring, seen);
    if (known == 0) {
        (void)snprintf(why, TW_TOPO_NVML_WHY_BYTES, "it knows none of the %u GPUs that are here",
                       seen->ngpus);
        return false;
    }
    *fits =
        wires_add(&wiring) &&
        (known == seen->ngpus ||
         tw_topo_note_add(machine,
                          "NVLink: unknown of %u GPUs, which NVML does not show; a container may "
                          "lack them",
                          seen->ngpus - known));
    return true;
}

bool tw_topo_nvlink_add(struct tw_topo_machine *machine, const struct tw_topo_source *source,
                        const struct tw_topo_nvidia *seen)
{
    char why[TW_TOPO_NVML_WHY_BYTES];
    bool fits = true;
    if (seen->ngpus < 2)
        return true;
    if (!source->nvml)
        return guess(machine, seen);
    struct tw_topo_nvml *nvml = malloc(sizeof(*nvml));
    if (!nvml) {
        (void)tw_fail(TWILL_ERR_NOMEM, "no memory for what NVML says");
        return false;
    }
    bool said = ask(machine, source->nvml, seen, nvml, why, &fits);
    free(nvml);
    if (said)
        return fits;
    return tw_topo_note_add(machine, "NVLink: NVML does not serve: %s", why) &&
           guess(machine, seen);
}
