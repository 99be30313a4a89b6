/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: machines that nobody has, described by a few numbers each.
 * Never knows: this host. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/value.h"
#include "topo/build.h"
#include "topo/graph.h"

#define PREFIX "synthetic-"
#define KIB 1024ull
#define MIB (1024ull * KIB)
#define GIB (1024ull * MIB)
#define GB 1000000000ull
#define NS 1000ull
#define US 1000000ull

#define ROOT_PS (150 * NS)   /* from a NUMA node to its PCI root and out of the package */
#define SWITCH_PS (110 * NS) /* through a PCI switch */
#define TIER_PS (300 * NS)   /* through a network switch, error correction included */

/*
 * One machine. The numbers are round ones of the kind of part, from vendors' data sheets (rates,
 * sizes) and from published core-to-core measurements (latencies); they are there to have plans
 * compared on different shapes, not to predict a machine.
 */
struct recipe {
    const char *name, *text, *cpu_model;
    uint64_t l1d_bytes, l2_bytes, l3_bytes;
    uint32_t packages, numas, caches, cores, threads; /* each in one of the part before it */
    uint8_t cache_level;                              /* 0: no shared cache */
    uint64_t memory_bytes;                            /* of each NUMA node */
    struct tw_topo_rates rates;
    uint32_t switches; /* PCI switches of the host, spread over its NUMA nodes; 0: none */
    uint64_t pci_ps, pci_bytes_per_s;
    uint32_t nics;
    const char *nic_model;
    uint64_t nic_ps, nic_bytes_per_s; /* from the NIC to the first switch's input */
    uint32_t gpus;
    const char *gpu_model;
    uint64_t gpu_bytes, gpu_bytes_per_s;
    uint64_t nvlink_ps, nvlink_bytes_per_s; /* from a GPU to the NVSwitch; 0: none */
};

static const struct recipe recipes[] = {
    {
        .name = "amd-2s-nps4",
        .text = "2 AMD packages, 4 NUMA nodes and 8 core dies each, 128 cores, 2 NICs of 200 Gb/s",
        .cpu_model = "synthetic AMD, 64 cores in 8 dies",
        .l1d_bytes = 32 * KIB,
        .l2_bytes = 1 * MIB,
        .l3_bytes = 32 * MIB,
        .packages = 2,
        .numas = 4,
        .caches = 2,
        .cores = 8,
        .threads = 2,
        .cache_level = 3,
        .memory_bytes = 96 * GIB,
        .rates = {.line_ps = {10 * NS, 20 * NS, 22 * NS, 85 * NS, 105 * NS, 200 * NS},
                  .core_bytes_per_s = 24 * GB,
                  .cache_bytes_per_s = 50 * GB,
                  .numa_bytes_per_s = 90 * GB,
                  .socket_bytes_per_s = 140 * GB,
                  .memory_ps = 45 * NS,
                  .memory_bytes_per_s = 100 * GB},
        .pci_ps = 100 * NS,
        .pci_bytes_per_s = 50 * GB,
        .nics = 2,
        .nic_model = "synthetic 200 Gb/s",
        .nic_ps = 500 * NS,
        .nic_bytes_per_s = 25 * GB,
    },
    {
        .name = "intel-2s",
        .text = "2 Intel packages of 48 cores on one mesh each, 2 NICs of 200 Gb/s",
        .cpu_model = "synthetic Intel, 48 cores",
        .l1d_bytes = 48 * KIB,
        .l2_bytes = 2 * MIB,
        .l3_bytes = 90 * MIB,
        .packages = 2,
        .numas = 1,
        .caches = 1,
        .cores = 48,
        .threads = 2,
        .cache_level = 3,
        .memory_bytes = 256 * GIB,
        .rates = {.line_ps = {12 * NS, 55 * NS, 60 * NS, 60 * NS, 60 * NS, 140 * NS},
                  .core_bytes_per_s = 13 * GB,
                  .cache_bytes_per_s = 240 * GB,
                  .numa_bytes_per_s = 240 * GB,
                  .socket_bytes_per_s = 110 * GB,
                  .memory_ps = 45 * NS,
                  .memory_bytes_per_s = 250 * GB},
        .pci_ps = 100 * NS,
        .pci_bytes_per_s = 50 * GB,
        .nics = 2,
        .nic_model = "synthetic 200 Gb/s",
        .nic_ps = 500 * NS,
        .nic_bytes_per_s = 25 * GB,
    },
    {
        .name = "nvswitch-8gpu",
        .text = "2 Intel packages, 8 GPUs on an NVSwitch, 4 PCI switches, 8 NICs of 400 Gb/s",
        .cpu_model = "synthetic Intel, 48 cores",
        .l1d_bytes = 48 * KIB,
        .l2_bytes = 2 * MIB,
        .l3_bytes = 90 * MIB,
        .packages = 2,
        .numas = 1,
        .caches = 1,
        .cores = 48,
        .threads = 2,
        .cache_level = 3,
        .memory_bytes = 1024 * GIB,
        .rates = {.line_ps = {12 * NS, 55 * NS, 60 * NS, 60 * NS, 60 * NS, 140 * NS},
                  .core_bytes_per_s = 13 * GB,
                  .cache_bytes_per_s = 240 * GB,
                  .numa_bytes_per_s = 240 * GB,
                  .socket_bytes_per_s = 110 * GB,
                  .memory_ps = 45 * NS,
                  .memory_bytes_per_s = 250 * GB},
        .switches = 4,
        .pci_ps = 100 * NS,
        .pci_bytes_per_s = 50 * GB,
        .nics = 8,
        .nic_model = "synthetic 400 Gb/s",
        .nic_ps = 500 * NS,
        .nic_bytes_per_s = 50 * GB,
        .gpus = 8,
        .gpu_model = "synthetic GPU with NVLink",
        .gpu_bytes = 141 * GIB,
        .gpu_bytes_per_s = 4000 * GB,
        .nvlink_ps = 400 * NS,
        .nvlink_bytes_per_s = 390 * GB,
    },
    {
        .name = "pcie-4gpu",
        .text = "1 AMD package, 4 GPUs below 2 PCI switches without NVLink, 1 NIC of 100 Gb/s",
        .cpu_model = "synthetic AMD, 32 cores in 4 dies",
        .l1d_bytes = 32 * KIB,
        .l2_bytes = 1 * MIB,
        .l3_bytes = 32 * MIB,
        .packages = 1,
        .numas = 1,
        .caches = 4,
        .cores = 8,
        .threads = 2,
        .cache_level = 3,
        .memory_bytes = 384 * GIB,
        .rates = {.line_ps = {10 * NS, 20 * NS, 22 * NS, 90 * NS, 100 * NS, 200 * NS},
                  .core_bytes_per_s = 24 * GB,
                  .cache_bytes_per_s = 50 * GB,
                  .numa_bytes_per_s = 140 * GB,
                  .socket_bytes_per_s = 140 * GB,
                  .memory_ps = 50 * NS,
                  .memory_bytes_per_s = 180 * GB},
        .switches = 2,
        .pci_ps = 150 * NS,
        .pci_bytes_per_s = 25 * GB,
        .nics = 1,
        .nic_model = "synthetic 100 Gb/s",
        .nic_ps = 600 * NS,
        .nic_bytes_per_s = 12 * GB + GB / 2,
        .gpus = 4,
        .gpu_model = "synthetic GPU without NVLink",
        .gpu_bytes = 48 * GIB,
        .gpu_bytes_per_s = 800 * GB,
    },
    {
        .name = "arm-64c",
        .text = "1 ARM package of 64 cores on a mesh, one thread each, 1 NIC of 200 Gb/s",
        .cpu_model = "synthetic ARM, 64 cores",
        .l1d_bytes = 64 * KIB,
        .l2_bytes = 1 * MIB,
        .l3_bytes = 32 * MIB,
        .packages = 1,
        .numas = 1,
        .caches = 1,
        .cores = 64,
        .threads = 1,
        .cache_level = 3,
        .memory_bytes = 256 * GIB,
        .rates = {.line_ps = {20 * NS, 45 * NS, 48 * NS, 48 * NS, 48 * NS, 250 * NS},
                  .core_bytes_per_s = 20 * GB,
                  .cache_bytes_per_s = 280 * GB,
                  .numa_bytes_per_s = 280 * GB,
                  .socket_bytes_per_s = 80 * GB,
                  .memory_ps = 50 * NS,
                  .memory_bytes_per_s = 250 * GB},
        .pci_ps = 120 * NS,
        .pci_bytes_per_s = 50 * GB,
        .nics = 1,
        .nic_model = "synthetic 200 Gb/s",
        .nic_ps = 500 * NS,
        .nic_bytes_per_s = 25 * GB,
    },
    {
        .name = "container-1c",
        .text = "a container that may use one core with one thread",
        .cpu_model = "synthetic, 1 core",
        .l1d_bytes = 32 * KIB,
        .l2_bytes = 1 * MIB,
        .packages = 1,
        .numas = 1,
        .caches = 1,
        .cores = 1,
        .threads = 1,
        .memory_bytes = 2 * GIB,
        .rates = {.line_ps = {20 * NS, 60 * NS, 60 * NS, 60 * NS, 60 * NS, 60 * NS},
                  .core_bytes_per_s = 10 * GB,
                  .cache_bytes_per_s = 20 * GB,
                  .numa_bytes_per_s = 20 * GB,
                  .socket_bytes_per_s = 20 * GB,
                  .memory_ps = 60 * NS,
                  .memory_bytes_per_s = 15 * GB},
    },
};
#define RECIPES (sizeof(recipes) / sizeof(recipes[0]))

const char *tw_topo_synthetic_name(unsigned index, const char **text)
{
    if (index >= RECIPES)
        return NULL;
    if (text)
        *text = recipes[index].text;
    return recipes[index].name;
}

/* ---- one machine ---------------------------------------------------------------------------- */

/* What is being built. After the first failed addition nothing more is added. */
struct bench {
    struct tw_topo_machine *machine;
    const struct recipe *recipe;
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
    const struct recipe *recipe = bench->recipe;
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
    const struct recipe *recipe = bench->recipe;
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
    const struct recipe *recipe = bench->recipe;
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
    const struct recipe *recipe = bench->recipe;
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
    uint32_t nvswitch =
        recipe->nvlink_bytes_per_s ? part(bench, TW_NODE_NVSWITCH, 0, TW_TOPO_NONE) : TW_TOPO_NONE;
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
            wire(bench, gpu, nvswitch, recipe->nvlink_ps, recipe->nvlink_bytes_per_s);
        describe(bench, gpu, "gpu", i, recipe->gpu_model);
        if (bench->full)
            break;
        bench->machine->nodes[gpu].memory_bytes = recipe->gpu_bytes;
        bench->machine->nodes[gpu].memory_bytes_per_s = recipe->gpu_bytes_per_s;
    }
}

static enum twill_status machine_build(struct tw_topo_machine *machine, const struct recipe *recipe)
{
    struct bench bench = {.machine = machine, .recipe = recipe};
    (void)snprintf(machine->name, sizeof(machine->name), PREFIX "%s", recipe->name);
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

/* ---- a cluster of them ---------------------------------------------------------------------- */

struct options {
    uint64_t hosts, leaf, oversub, rails;
};

static enum twill_status option_read(struct options *options, const char *name, const char *value)
{
    static const struct {
        const char *name;
        size_t offset;
        int64_t least, most;
    } known[] = {
        {"hosts", offsetof(struct options, hosts), 1, 65536},
        {"leaf", offsetof(struct options, leaf), 1, 65536},
        {"oversub", offsetof(struct options, oversub), 1, 64},
        {"rails", offsetof(struct options, rails), 0, 1},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(name, known[i].name) != 0)
            continue;
        int64_t number = 0;
        if (!tw_value_int(value, &number) || number < known[i].least || number > known[i].most)
            return tw_fail(TWILL_ERR_INVALID, "described machine: %s=%s: not %lld to %lld", name,
                           value, (long long)known[i].least, (long long)known[i].most);
        uint64_t taken = (uint64_t)number;
        memcpy((char *)options + known[i].offset, &taken, sizeof(taken));
        return TWILL_OK;
    }
    return tw_fail(TWILL_ERR_INVALID,
                   "described machine: no option '%s'; there are hosts, leaf, oversub, rails",
                   name);
}

/* "hosts=64,leaf=16"; text is cut up. */
static enum twill_status options_read(struct options *options, char *text)
{
    enum twill_status status = TWILL_OK;
    while (text && !tw_failed(status)) {
        char *next = strchr(text, ',');
        if (next)
            *next++ = '\0';
        char *value = strchr(text, '=');
        if (!value)
            return tw_fail(TWILL_ERR_INVALID, "described machine: '%s' is no option=number", text);
        *value++ = '\0';
        status = option_read(options, text, value);
        text = next;
    }
    return status;
}

static enum twill_status recipe_find(const char *name, const struct recipe **recipe)
{
    char all[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < RECIPES; i++) {
        if (strcmp(name, recipes[i].name) == 0) {
            *recipe = &recipes[i];
            return TWILL_OK;
        }
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
                                 recipes[i].name);
    }
    return tw_fail(TWILL_ERR_INVALID, "no described machine '%s'; there are %s", name, all);
}

static void fabric_build(struct tw_topo_fabric *fabric, const struct recipe *recipe,
                         const struct options *options)
{
    uint64_t ports = options->rails ? 1 : recipe->nics; /* of a host at one switch */
    uint64_t joined = options->leaf < options->hosts ? options->leaf : options->hosts;
    bool two = options->hosts > options->leaf || options->rails;
    fabric->ntiers = two ? 2 : 1;
    fabric->rails = options->rails != 0;
    fabric->tier[0] = (struct tw_topo_tier){
        .down = (uint32_t)options->leaf,
        .latency_ps = TIER_PS,
        .up_bytes_per_s = two ? joined * ports * recipe->nic_bytes_per_s / options->oversub : 0,
    };
    if (two)
        fabric->tier[1] = (struct tw_topo_tier){
            .down = (uint32_t)((options->hosts + options->leaf - 1) / options->leaf),
            .latency_ps = TIER_PS,
        };
}

static enum twill_status graph_build(struct tw_topo_graph *graph, const struct recipe *recipe,
                                     const struct options *options)
{
    if (options->hosts > 1 && recipe->nics == 0)
        return tw_fail(TWILL_ERR_INVALID, "described machine %s has no NIC, so one host is all",
                       recipe->name);
    if (tw_topo_machine_add(graph) == TW_TOPO_NONE ||
        !tw_topo_hosts_add(graph, 0, (uint32_t)options->hosts))
        return TWILL_ERR_NOMEM;
    enum twill_status status = machine_build(&graph->machines[0], recipe);
    if (tw_failed(status))
        return status;
    if (options->hosts > 1)
        fabric_build(&graph->fabric, recipe, options);
    return tw_topo_graph_seal(graph);
}

enum twill_status tw_topo_synthetic(struct tw_topo_graph **graph, const char *name)
{
    char text[TW_TOPO_NAME_BYTES], full[TW_TOPO_NAME_BYTES];
    const struct recipe *recipe = NULL;
    if (strncmp(name, PREFIX, strlen(PREFIX)) == 0)
        name += strlen(PREFIX);
    if (strlen(name) >= sizeof(text) - strlen(PREFIX))
        return tw_fail(TWILL_ERR_INVALID, "described machine: a name of more than %zu letters",
                       sizeof(text) - strlen(PREFIX) - 1);
    (void)snprintf(text, sizeof(text), "%s", name);
    (void)snprintf(full, sizeof(full), PREFIX "%.*s", (int)(sizeof(full) - sizeof(PREFIX)), name);
    char *rest = strchr(text, ':');
    if (rest)
        *rest++ = '\0';
    enum twill_status status = recipe_find(text, &recipe);
    if (tw_failed(status))
        return status;
    struct options options = {.hosts = 1, .leaf = 32, .oversub = 1};
    options.rails = recipe->gpus > 0 && recipe->nics == recipe->gpus;
    status = options_read(&options, rest);
    if (tw_failed(status))
        return status;
    struct tw_topo_graph *made = tw_topo_graph_create(full);
    if (!made)
        return TWILL_ERR_NOMEM;
    status = graph_build(made, recipe, &options);
    if (tw_failed(status)) {
        tw_topo_graph_free(made);
        return status;
    }
    *graph = made;
    return TWILL_OK;
}
