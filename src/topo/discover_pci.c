/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: hwloc's I/O objects. Never knows: caches, latencies of CPUs. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "topo/build.h"
#include "topo/discover.h"

#define GB 1000000000ull
#define NS 1000ull
#define ROOT_PS (150 * NS)   /* NUMA node to PCI root and out of the package */
#define SWITCH_PS (110 * NS) /* through a PCI switch */
#define DEVICE_PS (150 * NS) /* from a device to what it hangs on */
#define PORT_PS (500 * NS)   /* through a NIC and a cable to the first switch */
#define ROOT_RATE (50 * GB)  /* where nothing says more */
#define GPU_RATE (25 * GB)
#define NIC_RATE (12 * GB)
#define VERBS_RATE (12500000000ull) /* 100 Gb/s */
#define NET_RATE (1250000000ull)    /* 10 Gb/s */

#define VENDOR_NVIDIA 0x10de
#define VENDOR_AMD 0x1002

struct walk {
    struct tw_topo_machine *machine;
    const struct tw_topo_source *source;
    uint32_t gpus;
    struct tw_topo_nvidia nvidia;
};

enum what { NOTHING, GPU, NIC, NVSWITCH };

/* By the class of the PCI code and ID assignment: 02 network, 03 display, 12 accelerator, 0680 a
 * bridge of no other kind, as which NVSwitch chips show themselves. */
static enum what what_is(const struct hwloc_pcidev_attr_s *pci)
{
    unsigned base = pci->class_id >> 8;
    bool maker = pci->vendor_id == VENDOR_NVIDIA || pci->vendor_id == VENDOR_AMD;
    if (base == 0x02)
        return NIC;
    /* a VGA of another maker is the board's own */
    if (pci->class_id == 0x0302 || pci->class_id == 0x0380 || base == 0x12)
        return GPU;
    if (base == 0x03 && maker)
        return GPU;
    return pci->class_id == 0x0680 && pci->vendor_id == VENDOR_NVIDIA ? NVSWITCH : NOTHING;
}

static void address_of(const struct hwloc_pcidev_attr_s *pci, char text[32])
{
    (void)snprintf(text, 32, "%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev, pci->func);
}

/* A virtual function stands for what its physical one has already said. */
static bool is_virtual(const struct walk *walk, const struct hwloc_pcidev_attr_s *pci)
{
    char address[32], line[8];
    address_of(pci, address);
    return tw_topo_line_read(line, sizeof(line), walk->source->sysfs,
                             "bus/pci/devices/%s/physfn/vendor", address);
}

static bool wanted(const struct walk *walk, hwloc_obj_t obj)
{
    if (obj->type != HWLOC_OBJ_PCI_DEVICE || !obj->attr)
        return false;
    enum what what = what_is(&obj->attr->pcidev);
    return what == GPU || (what == NIC && !is_virtual(walk, &obj->attr->pcidev));
}

/* Ways down from a bridge that lead to a wanted device, two at most. */
static unsigned ways_down(const struct walk *walk, hwloc_obj_t obj) /* NOLINT(misc-no-recursion) */
{
    unsigned ways = 0;
    for (hwloc_obj_t child = obj->io_first_child; child && ways < 2; child = child->next_sibling)
        ways +=
            wanted(walk, child) || (child->type == HWLOC_OBJ_BRIDGE && ways_down(walk, child) > 0);
    return ways;
}

/* ---- devices -------------------------------------------------------------------------------- */

/* typical: for one of which nothing is known */
static uint64_t device_rate(const struct walk *walk, const struct hwloc_pcidev_attr_s *pci,
                            uint64_t typical, unsigned *origin)
{
    char address[32];
    address_of(pci, address);
    uint64_t rate = tw_topo_pci_rate(walk->source->sysfs, address);
    *origin = TW_TOPO_SYSTEM;
    if (rate == 0 && pci->linkspeed > 0.01f && pci->linkspeed < 1000.0f)
        rate = (uint64_t)(pci->linkspeed * 1e6f) * 1000 / 100 * 85; /* payload, as from sysfs */
    if (rate != 0)
        return rate;
    *origin = TW_TOPO_ESTIMATE;
    return typical;
}

/* The newest node's names. */
static void name_device(struct walk *walk, hwloc_obj_t obj, uint32_t node, const char *name)
{
    char address[32], model[TW_TOPO_NAME_BYTES] = "";
    const struct hwloc_pcidev_attr_s *pci = &obj->attr->pcidev;
    struct tw_topo_node *at = &walk->machine->nodes[node];
    const char *known = hwloc_obj_get_info_by_name(obj, "PCIDevice");
    address_of(pci, address);
    tw_topo_text_copy(at->name, sizeof(at->name), name ? name : address);
    if (walk->source->proc &&
        tw_topo_line_read(model, sizeof(model), walk->source->proc,
                          "driver/nvidia/gpus/%s/information", address) &&
        strncmp(model, "Model:", 6) == 0)
        known = model + 6 + strspn(model + 6, " \t");
    if (known)
        tw_topo_text_copy(at->model, sizeof(at->model), known);
    else
        (void)snprintf(at->model, sizeof(at->model), "%04x:%04x", pci->vendor_id, pci->device_id);
}

static bool gpu_add(struct walk *walk, hwloc_obj_t obj, uint32_t parent)
{
    unsigned origin;
    uint64_t rate = device_rate(walk, &obj->attr->pcidev, GPU_RATE, &origin);
    uint32_t gpu = tw_topo_part_add(walk->machine, TW_NODE_GPU, parent, TW_TOPO_NONE);
    if (gpu == TW_TOPO_NONE)
        return false;
    name_device(walk, obj, gpu, NULL);
    walk->gpus++;
    struct tw_topo_nvidia *nvidia = &walk->nvidia;
    if (obj->attr->pcidev.vendor_id == VENDOR_NVIDIA && nvidia->ngpus < TW_TOPO_NVIDIA_MOST)
        nvidia->gpu[nvidia->ngpus++] = gpu;
    return tw_topo_wire_add(walk->machine, gpu, parent, DEVICE_PS, rate, origin);
}

/* The device's name as programs use it: of verbs before that of the network. */
static const char *nic_name(hwloc_obj_t obj, bool *verbs)
{
    const char *name = NULL;
    *verbs = false;
    for (hwloc_obj_t os = obj->io_first_child; os; os = os->next_sibling) {
        if (os->type != HWLOC_OBJ_OS_DEVICE || !os->attr || !os->name)
            continue;
        bool fabric = os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
        bool network = os->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK;
        if (fabric || (network && !name)) {
            name = os->name;
            *verbs = fabric;
        }
        if (fabric)
            break;
    }
    return name;
}

static bool port_add(struct walk *walk, uint32_t nic, const char *name, bool verbs)
{
    struct tw_topo_machine *machine = walk->machine;
    uint64_t rate = 0;
    if (name && verbs)
        rate = tw_topo_verbs_rate(walk->source->sysfs, name);
    else if (name)
        rate = tw_topo_net_rate(walk->source->sysfs, name);
    unsigned origin = rate ? TW_TOPO_SYSTEM : TW_TOPO_ESTIMATE;
    if (!rate && !tw_topo_note_add(machine, "nic %s: nothing says how fast its port is",
                                   machine->nodes[nic].name))
        return false;
    if (!rate)
        rate = verbs ? VERBS_RATE : NET_RATE;
    uint32_t net = tw_topo_node_nth(machine, TW_NODE_NET, 0);
    if (net == TW_TOPO_NONE)
        net = tw_topo_part_add(machine, TW_NODE_NET, 0, TW_TOPO_NONE);
    return net != TW_TOPO_NONE && tw_topo_wire_add(machine, nic, net, PORT_PS, rate, origin);
}

static bool nic_add(struct walk *walk, hwloc_obj_t obj, uint32_t parent)
{
    bool verbs;
    unsigned origin;
    const char *name = nic_name(obj, &verbs);
    uint64_t rate = device_rate(walk, &obj->attr->pcidev, NIC_RATE, &origin);
    uint32_t nic = tw_topo_part_add(walk->machine, TW_NODE_NIC, parent, TW_TOPO_NONE);
    if (nic == TW_TOPO_NONE)
        return false;
    name_device(walk, obj, nic, name);
    return tw_topo_wire_add(walk->machine, nic, parent, DEVICE_PS, rate, origin) &&
           port_add(walk, nic, name, verbs);
}

/* ---- bridges -------------------------------------------------------------------------------- */

static bool bridge_add(struct walk *walk, hwloc_obj_t bridge, uint32_t parent);

static bool below_add(struct walk *walk, hwloc_obj_t obj,
                      uint32_t parent) /* NOLINT(misc-no-recursion) */
{
    for (hwloc_obj_t child = obj->io_first_child; child; child = child->next_sibling) {
        bool fits = true;
        if (child->type == HWLOC_OBJ_BRIDGE)
            fits = bridge_add(walk, child, parent);
        else if (wanted(walk, child))
            fits = what_is(&child->attr->pcidev) == GPU ? gpu_add(walk, child, parent)
                                                        : nic_add(walk, child, parent);
        if (!fits)
            return false;
    }
    return true;
}

/* The rates of the parts below a bridge: of the fastest, and of all together. */
static void rates_below(const struct tw_topo_machine *machine, uint32_t node, uint64_t *most,
                        uint64_t *sum)
{
    uint64_t all = 0;
    *most = ROOT_RATE;
    for (uint32_t i = node + 1; i < machine->nnodes; i++) {
        if (machine->nodes[i].parent != node || machine->nodes[i].uplink == TW_TOPO_NONE)
            continue;
        uint64_t rate = machine->links[machine->nodes[i].uplink].bytes_per_s[0];
        all += rate;
        *most = rate > *most ? rate : *most;
    }
    *sum = all < *most ? *most : all;
}

/* A switch that says nothing carries as much as the fastest part below it, a root as all of them:
 * its ports are what is narrow. */
static bool bridge_link(struct walk *walk, hwloc_obj_t bridge, uint32_t node, uint32_t parent)
{
    struct tw_topo_machine *machine = walk->machine;
    bool root = machine->nodes[node].kind == TW_NODE_PCIROOT;
    unsigned origin = TW_TOPO_ESTIMATE;
    uint64_t most, sum, rate = 0;
    rates_below(machine, node, &most, &sum);
    if (!root)
        rate = device_rate(walk, &bridge->attr->bridge.upstream.pci, most, &origin);
    if (!tw_topo_wire_add(machine, node, parent, root ? ROOT_PS : SWITCH_PS, root ? most : rate,
                          origin))
        return false;
    const struct tw_topo_link *link = &machine->links[machine->nlinks - 1];
    for (int d = 0; d < 2 && root; d++)
        machine->resources[link->resource[d]].bytes_per_s = sum;
    return true;
}

/* A bridge between PCI and PCI with one way down is a port: no part of its own. */
static bool bridge_add(struct walk *walk, hwloc_obj_t bridge,
                       uint32_t parent) /* NOLINT(misc-no-recursion) */
{
    bool root = bridge->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
    unsigned ways = ways_down(walk, bridge);
    if ((root && ways == 0) || (!root && ways < 2))
        return below_add(walk, bridge, parent);
    unsigned kind = root ? TW_NODE_PCIROOT : TW_NODE_PCISWITCH;
    uint32_t made = tw_topo_part_add(walk->machine, kind, parent, TW_TOPO_NONE);
    if (made == TW_TOPO_NONE)
        return false;
    struct tw_topo_node *at = &walk->machine->nodes[made];
    if (root)
        (void)snprintf(at->name, sizeof(at->name), "%04x:%02x",
                       bridge->attr->bridge.downstream.pci.domain,
                       bridge->attr->bridge.downstream.pci.secondary_bus);
    else
        address_of(&bridge->attr->bridge.upstream.pci, at->name);
    return below_add(walk, bridge, made) && bridge_link(walk, bridge, made, parent);
}

/* The part of the tree of CPUs that a device may hang on. */
static uint32_t holder_of(const struct tw_topo_machine *machine, hwloc_obj_t obj)
{
    uint32_t node = obj->userdata ? (uint32_t)(uintptr_t)obj->userdata - 1 : 0;
    while (node != 0 && machine->nodes[node].kind != TW_NODE_NUMA &&
           machine->nodes[node].kind != TW_NODE_PACKAGE)
        node = machine->nodes[node].parent;
    /* a host with one package has it close to everything */
    if (node == 0 && tw_topo_node_count(machine, TW_NODE_NUMA) == 1)
        node = tw_topo_node_nth(machine, TW_NODE_NUMA, 0);
    return node;
}

static bool parts_add(struct walk *walk, hwloc_obj_t obj) /* NOLINT(misc-no-recursion) */
{
    if (obj->io_first_child && !below_add(walk, obj, holder_of(walk->machine, obj)))
        return false;
    for (hwloc_obj_t child = obj->first_child; child; child = child->next_sibling)
        if (!parts_add(walk, child))
            return false;
    return true;
}

/* sysfs shows the chips of an NVSwitch, if anything. */
static uint32_t nvswitches_count(hwloc_topology_t topology)
{
    uint32_t count = 0;
    for (hwloc_obj_t pci = NULL; (pci = hwloc_get_next_pcidev(topology, pci));)
        count += pci->attr && what_is(&pci->attr->pcidev) == NVSWITCH;
    return count;
}

bool tw_topo_devices_add(struct tw_topo_machine *machine, hwloc_topology_t topology,
                         const struct tw_topo_source *source)
{
    struct walk walk = {.machine = machine, .source = source};
    walk.nvidia.nvswitches = nvswitches_count(topology);
    return parts_add(&walk, hwloc_get_root_obj(topology)) &&
           tw_topo_nvlink_add(machine, source, &walk.nvidia) &&
           (walk.gpus == 0 ||
            tw_topo_note_add(machine,
                             "GPUs: sysfs does not say the size and rate of their memory"));
}
