/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a described machine becomes one. Never knows: clusters, this host. */
#include "config.h"

#include "topo/recipe.h"

#include <stdio.h>

#define NS 1000ull
#define ROOT_PS (150 * NS)   /* from a NUMA node to its PCI root and out of the package */
#define SWITCH_PS (110 * NS) /* through a PCI switch */

/* What is being built. After the first failed addition nothing more is added. */
struct bench {
    struct tw_topo_machine *machine;
    const struct tw_topo_recipe *recipe;
    bool full; /* out of memory */
    uint32_t cores, pus;
};

static uint32_t part(struct bench *bench, unsigned kind, uint32_t parent, uint32_t os_index)
{
    uint32_t made =
        bench->full ? TW_TOPO_NONE : tw_topo_part_add(bench->machine, kind, parent, os_index);
    bench->full |= made == TW_TOPO_NONE;
    return made;
}

static void wire(struct bench *bench, uint32_t from, uint32_t to, uint64_t ps, uint64_t rate)
{
    bench->full |=
        bench->full || !tw_topo_wire_add(bench->machine, from, to, ps, rate, TW_TOPO_SYNTHETIC);
}

static void nvlink(struct bench *bench, uint32_t from, uint32_t to)
{
    const struct tw_topo_recipe *recipe = bench->recipe;
    wire(bench, from, to, recipe->nvlink_ps, recipe->nvlink_bytes_per_s);
    if (!bench->full)
        bench->machine->links[bench->machine->nlinks - 1].count = recipe->nvlink_cables;
}

static void describe(struct bench *bench, uint32_t node, const char *name, uint32_t index,
                     const char *model)
{
    if (bench->full)
        return;
    struct tw_topo_node *at = &bench->machine->nodes[node];
    (void)snprintf(at->name, sizeof(at->name), "%s%u", name, index);
    (void)snprintf(at->model, sizeof(at->model), "%s", model);
}

static void cores_add(struct bench *bench, uint32_t parent)
{
    const struct tw_topo_recipe *recipe = bench->recipe;
    uint32_t total = recipe->packages * recipe->numas * recipe->caches * recipe->cores;
    for (uint32_t c = 0; c < recipe->cores; c++, bench->cores++) {
        uint32_t core = part(bench, TW_NODE_CORE, parent, bench->cores);
        /* the kernel numbers first threads through, then the second ones */
        for (uint32_t t = 0; t < recipe->threads; t++)
            (void)part(bench, TW_NODE_PU, core, bench->cores + t * total);
    }
}

static void numa_add(struct bench *bench, uint32_t package, uint32_t index)
{
    const struct tw_topo_recipe *recipe = bench->recipe;
    uint32_t numa = part(bench, TW_NODE_NUMA, package, index);
    uint32_t memory = part(bench, TW_NODE_MEMORY, numa, index);
    if (!bench->full)
        bench->machine->nodes[memory].memory_bytes = recipe->memory_bytes;
    for (uint32_t c = 0; c < recipe->caches; c++) {
        uint32_t holder = numa;
        if (recipe->cache_level) {
            holder = part(bench, TW_NODE_CACHE, numa, index * recipe->caches + c);
            if (!bench->full) {
                bench->machine->nodes[holder].level = recipe->cache_level;
                bench->machine->nodes[holder].memory_bytes = recipe->l3_bytes;
            }
        }
        cores_add(bench, holder);
    }
}

/* The part that device i of n hangs on: a PCI switch, or a root of its own. */
static uint32_t slot(struct bench *bench, const uint32_t *switches, uint32_t i, uint32_t n)
{
    const struct tw_topo_recipe *recipe = bench->recipe;
    if (recipe->switches)
        return switches[i * recipe->switches / n];
    uint32_t numas = recipe->packages * recipe->numas;
    uint32_t numa = tw_topo_node_find(bench->machine, TW_NODE_NUMA, i * numas / n);
    uint32_t root = part(bench, TW_NODE_PCIROOT, numa, TW_TOPO_NONE);
    wire(bench, root, numa, ROOT_PS, recipe->pci_bytes_per_s);
    return root;
}

#define SWITCHES_MOST 8
static void devices_add(struct bench *bench)
{
    const struct tw_topo_recipe *recipe = bench->recipe;
    uint32_t switches[SWITCHES_MOST] = {0};
    uint32_t numas = recipe->packages * recipe->numas;
    for (uint32_t i = 0; i < recipe->switches && !bench->full; i++) {
        uint32_t numa =
            tw_topo_node_find(bench->machine, TW_NODE_NUMA, i * numas / recipe->switches);
        uint32_t root = part(bench, TW_NODE_PCIROOT, numa, TW_TOPO_NONE);
        wire(bench, root, numa, ROOT_PS, recipe->pci_bytes_per_s);
        switches[i] = part(bench, TW_NODE_PCISWITCH, root, TW_TOPO_NONE);
        wire(bench, switches[i], root, SWITCH_PS, recipe->pci_bytes_per_s);
        describe(bench, switches[i], "switch", i, "");
    }
    uint32_t net = recipe->nics ? part(bench, TW_NODE_NET, 0, TW_TOPO_NONE) : TW_TOPO_NONE;
    bool switched = recipe->nvlink_bytes_per_s && recipe->npairs == 0;
    uint32_t nvswitch = switched ? part(bench, TW_NODE_NVSWITCH, 0, TW_TOPO_NONE) : TW_TOPO_NONE;
    for (uint32_t i = 0; i < recipe->nics && !bench->full; i++) {
        uint32_t parent = slot(bench, switches, i, recipe->nics);
        uint32_t nic = part(bench, TW_NODE_NIC, parent, TW_TOPO_NONE);
        wire(bench, nic, parent, recipe->pci_ps, recipe->pci_bytes_per_s);
        wire(bench, nic, net, recipe->nic_ps, recipe->nic_bytes_per_s);
        describe(bench, nic, "nic", i, recipe->nic_model);
    }
    for (uint32_t i = 0; i < recipe->gpus && !bench->full; i++) {
        uint32_t parent = slot(bench, switches, i, recipe->gpus);
        uint32_t gpu = part(bench, TW_NODE_GPU, parent, TW_TOPO_NONE);
        wire(bench, gpu, parent, recipe->pci_ps, recipe->pci_bytes_per_s);
        if (nvswitch != TW_TOPO_NONE)
            nvlink(bench, gpu, nvswitch);
        describe(bench, gpu, "gpu", i, recipe->gpu_model);
        if (bench->full)
            break;
        bench->machine->nodes[gpu].memory_bytes = recipe->gpu_bytes;
        bench->machine->nodes[gpu].memory_bytes_per_s = recipe->gpu_bytes_per_s;
    }
    for (uint32_t i = 0; i < recipe->npairs && !bench->full; i++)
        nvlink(bench, tw_topo_node_nth(bench->machine, TW_NODE_GPU, recipe->pairs[i][0]),
               tw_topo_node_nth(bench->machine, TW_NODE_GPU, recipe->pairs[i][1]));
}

enum twill_status tw_topo_recipe_build(struct tw_topo_machine *machine,
                                       const struct tw_topo_recipe *recipe)
{
    struct bench bench = {.machine = machine, .recipe = recipe};
    (void)snprintf(machine->name, sizeof(machine->name), TW_TOPO_SYNTHETIC_PREFIX "%s",
                   recipe->name);
    (void)snprintf(machine->cpu_model, sizeof(machine->cpu_model), "%s", recipe->cpu_model);
    machine->origin = TW_TOPO_SYNTHETIC;
    machine->l1d_bytes = recipe->l1d_bytes;
    machine->l2_bytes = recipe->l2_bytes;
    machine->l3_bytes = recipe->l3_bytes;
    uint32_t host = part(&bench, TW_NODE_HOST, TW_TOPO_NONE, TW_TOPO_NONE);
    for (uint32_t p = 0; p < recipe->packages; p++) {
        uint32_t package = part(&bench, TW_NODE_PACKAGE, host, p);
        for (uint32_t n = 0; n < recipe->numas; n++)
            numa_add(&bench, package, p * recipe->numas + n);
    }
    if (!bench.full)
        bench.full = !tw_topo_tree_link(machine, &recipe->rates, TW_TOPO_SYNTHETIC);
    devices_add(&bench);
    if (!bench.full)
        bench.full =
            !tw_topo_note_add(machine, "synthetic: %s; nobody has measured it", recipe->text);
    return bench.full ? TWILL_ERR_NOMEM : TWILL_OK;
}
