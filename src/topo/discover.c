/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: hwloc's tree of CPUs and memories. Never knows: PCI. */
#include "config.h"

#include "topo/discover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/param.h"
#include "base/status.h"
#include "topo/build.h"

#define GIB ((uint64_t)1 << 30)

/* ---- hwloc ---------------------------------------------------------------------------------- */

/* Left out: what would start drivers or ask displays, and the way to PCI that reads a long file of
 * names and keeps some of its memory; sysfs says the same. */
static void keep_to_files(hwloc_topology_t topology)
{
#if HWLOC_API_VERSION >= 0x00020100
    static const char *const left_out[] = {"opencl", "gl",        "cuda", "nvml",
                                           "rsmi",   "levelzero", "pci"};
    for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
        (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                            left_out[i]);
#else
    (void)topology;
#endif
}

enum twill_status tw_topo_restrict(hwloc_topology_t topology, unsigned long flags)
{
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    if (!set)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for a CPU set");
    int rc = hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS);
    if (rc == 0 && !hwloc_bitmap_iszero(set))
        rc = hwloc_topology_restrict(topology, set, flags);
    int error = errno;
    hwloc_bitmap_free(set);
    return rc ? tw_fail_errno(TWILL_ERR_SYSTEM, error, "cannot read this process's CPU affinity")
              : TWILL_OK;
}

static enum twill_status hwloc_open(hwloc_topology_t *topology, const struct tw_topo_source *source)
{
    if (hwloc_topology_init(topology))
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "hwloc cannot make a topology");
    keep_to_files(*topology);
    (void)hwloc_topology_set_io_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    /* chips of an NVSwitch are not among hwloc's important devices */
    (void)hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_PCI_DEVICE,
                                         HWLOC_TYPE_FILTER_KEEP_ALL);
    enum twill_status status = TWILL_OK;
    if (source->hwloc_xml && hwloc_topology_set_xml(*topology, source->hwloc_xml))
        status = tw_fail(TWILL_ERR_INVALID, "hwloc cannot read %s as a topology of its own",
                         source->hwloc_xml);
    else if (hwloc_topology_load(*topology))
        status = source->hwloc_xml
                     ? tw_fail(TWILL_ERR_INVALID, "hwloc cannot read %s as a topology of its own",
                               source->hwloc_xml)
                     : tw_fail_errno(TWILL_ERR_SYSTEM, errno, "hwloc cannot load the topology");
    else if (!source->hwloc_xml && source->scope == TW_TOPO_SCOPE_PROCESS)
        status = tw_topo_restrict(*topology, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS |
                                                 HWLOC_RESTRICT_FLAG_ADAPT_IO);
    if (tw_failed(status))
        hwloc_topology_destroy(*topology);
    return status;
}

/* ---- the tree of CPUs ----------------------------------------------------------------------- */

static unsigned cores_in(hwloc_topology_t topology, hwloc_obj_t obj)
{
    int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, obj->cpuset, HWLOC_OBJ_CORE);
    if (cores <= 0)
        cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, obj->cpuset, HWLOC_OBJ_PU);
    return cores > 0 ? (unsigned)cores : 0;
}

static uint32_t cache_level(hwloc_obj_type_t type)
{
    switch (type) {
    case HWLOC_OBJ_L2CACHE:
        return 2;
    case HWLOC_OBJ_L3CACHE:
        return 3;
    case HWLOC_OBJ_L4CACHE:
        return 4;
    case HWLOC_OBJ_L5CACHE:
        return 5;
    default:
        return 0;
    }
}

struct growth {
    struct tw_topo_machine *machine;
    hwloc_topology_t topology;
};

static uint32_t number_of(hwloc_obj_t obj)
{
    return obj->os_index == HWLOC_UNKNOWN_INDEX ? TW_TOPO_NONE : obj->os_index;
}

/* The node for an object below parent; the parent itself for one that has none. NONE: no memory */
static uint32_t object_add(struct growth *growth, hwloc_obj_t obj, uint32_t parent)
{
    struct tw_topo_machine *machine = growth->machine;
    uint32_t level = cache_level(obj->type), made;
    switch (obj->type) {
    case HWLOC_OBJ_PACKAGE:
        return tw_topo_part_add(machine, TW_NODE_PACKAGE, parent, number_of(obj));
    case HWLOC_OBJ_CORE:
        return tw_topo_part_add(machine, TW_NODE_CORE, parent, number_of(obj));
    case HWLOC_OBJ_PU:
        /* virtual machines may have threads without cores */
        if (machine->nodes[parent].kind != TW_NODE_CORE)
            parent = tw_topo_part_add(machine, TW_NODE_CORE, parent, number_of(obj));
        return parent == TW_TOPO_NONE
                   ? TW_TOPO_NONE
                   : tw_topo_part_add(machine, TW_NODE_PU, parent, number_of(obj));
    default:
        if (level == 0 || machine->nodes[parent].kind == TW_NODE_CORE ||
            cores_in(growth->topology, obj) < 2)
            return parent;
        made = tw_topo_part_add(machine, TW_NODE_CACHE, parent, obj->logical_index);
        if (made != TW_TOPO_NONE) {
            machine->nodes[made].level = (uint8_t)level;
            machine->nodes[made].memory_bytes = obj->attr ? obj->attr->cache.size : 0;
        }
        return made;
    }
}

/* The NUMA nodes of an object. @return the node that its CPUs go below: the first of them */
static uint32_t memories_add(struct growth *growth, hwloc_obj_t obj, uint32_t parent)
{
    uint32_t first = TW_TOPO_NONE;
    for (hwloc_obj_t child = obj->memory_first_child; child; child = child->next_sibling) {
        hwloc_obj_t at = child;
        while (at && at->type != HWLOC_OBJ_NUMANODE) /* behind a memory-side cache */
            at = at->memory_first_child;
        if (!at)
            continue;
        uint32_t numa = tw_topo_part_add(growth->machine, TW_NODE_NUMA, parent, number_of(at));
        uint32_t memory = numa == TW_TOPO_NONE ? TW_TOPO_NONE
                                               : tw_topo_part_add(growth->machine, TW_NODE_MEMORY,
                                                                  numa, number_of(at));
        if (memory == TW_TOPO_NONE)
            return TW_TOPO_NONE;
        growth->machine->nodes[memory].memory_bytes =
            at->attr ? at->attr->numanode.local_memory : 0;
        at->userdata = (void *)(uintptr_t)(numa + 1);
        first = first == TW_TOPO_NONE ? numa : first;
    }
    return first == TW_TOPO_NONE ? parent : first;
}

/* Whether memory may hang on a node of this kind: not on a core. */
static bool holds_memory(const struct tw_topo_machine *machine, uint32_t node)
{
    return machine->nodes[node].kind != TW_NODE_CORE && machine->nodes[node].kind != TW_NODE_PU;
}

/* hwloc's tree is a dozen levels deep at most. */
static bool tree_add(struct growth *growth, hwloc_obj_t obj,
                     uint32_t parent) /* NOLINT(misc-no-recursion) */
{
    uint32_t node = obj->type == HWLOC_OBJ_MACHINE ? parent : object_add(growth, obj, parent);
    if (node == TW_TOPO_NONE)
        return false;
    if (holds_memory(growth->machine, node))
        node = memories_add(growth, obj, node);
    if (node == TW_TOPO_NONE)
        return false;
    obj->userdata = (void *)(uintptr_t)(node + 1);
    for (hwloc_obj_t child = obj->first_child; child; child = child->next_sibling)
        if (!tree_add(growth, child, node))
            return false;
    return true;
}

/* ---- facts ---------------------------------------------------------------------------------- */

static uint64_t cache_bytes(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
    return cache && cache->attr ? cache->attr->cache.size : 0;
}

static const char *info(hwloc_topology_t topology, const char *name)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *text = package ? hwloc_obj_get_info_by_name(package, name) : NULL;
    return text ? text : hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), name);
}

void tw_topo_text_copy(char *to, size_t bytes, const char *from)
{
    size_t length = 0;
    for (; from && from[length] && length + 1 < bytes; length++) {
        unsigned char c = (unsigned char)from[length];
        to[length] = (char)(c < 0x20 || c > 0x7e ? '?' : c);
    }
    to[length] = '\0';
}

static void facts_take(struct tw_topo_machine *machine, hwloc_topology_t topology,
                       const struct tw_topo_source *source)
{
    char host[256] = "";
    const char *name = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "HostName");
    if (!name && !source->hwloc_xml && gethostname(host, sizeof(host) - 1) == 0)
        name = host;
    if (!name && source->hwloc_xml) {
        const char *slash = strrchr(source->hwloc_xml, '/');
        name = slash ? slash + 1 : source->hwloc_xml;
    }
    tw_topo_text_copy(machine->name, sizeof(machine->name), name && name[0] ? name : "unnamed");
    tw_topo_text_copy(machine->cpu_model, sizeof(machine->cpu_model), info(topology, "CPUModel"));
    machine->origin = TW_TOPO_SYSTEM;
    machine->l1d_bytes = cache_bytes(topology, HWLOC_OBJ_L1CACHE);
    machine->l2_bytes = cache_bytes(topology, HWLOC_OBJ_L2CACHE);
    machine->l3_bytes = cache_bytes(topology, HWLOC_OBJ_L3CACHE);
}

static bool notes_take(struct tw_topo_machine *machine, const struct tw_topo_source *source)
{
    if (!tw_topo_note_add(machine, "numbers whose origin is estimate are typical of such parts, "
                                   "not measured"))
        return false;
    uint32_t pus = tw_topo_node_count(machine, TW_NODE_PU);
    int time = source->hwloc_xml ? 0 : tw_host_cpu_quota();
    return time == 0 || (uint32_t)time >= pus ||
           tw_topo_note_add(machine, "a control group grants the time of %d CPUs only", time);
}

static enum twill_status machine_fill(struct tw_topo_machine *machine, hwloc_topology_t topology,
                                      const struct tw_topo_source *source)
{
    struct growth growth = {.machine = machine, .topology = topology};
    facts_take(machine, topology, source);
    uint32_t host = tw_topo_part_add(machine, TW_NODE_HOST, TW_TOPO_NONE, TW_TOPO_NONE);
    bool fits = host != TW_TOPO_NONE && tree_add(&growth, hwloc_get_root_obj(topology), host) &&
                tw_topo_tree_link(machine, tw_topo_typical(info(topology, "CPUVendor")),
                                  TW_TOPO_ESTIMATE) &&
                notes_take(machine, source) && tw_topo_devices_add(machine, topology, source);
    return fits ? TWILL_OK : TWILL_ERR_NOMEM;
}

enum twill_status tw_topo_discover_from(struct tw_topo_graph **graph,
                                        const struct tw_topo_source *source)
{
    hwloc_topology_t topology;
    enum twill_status status = hwloc_open(&topology, source);
    if (tw_failed(status))
        return status;
    struct tw_topo_graph *made = tw_topo_graph_create("");
    if (!made || tw_topo_machine_add(made) == TW_TOPO_NONE || !tw_topo_hosts_add(made, 0, 1))
        status = TWILL_ERR_NOMEM;
    else
        status = machine_fill(&made->machines[0], topology, source);
    hwloc_topology_destroy(topology);
    if (!tw_failed(status)) {
        memcpy(made->name, made->machines[0].name, sizeof(made->name));
        status = tw_topo_graph_seal(made);
    }
    if (tw_failed(status)) {
        tw_topo_graph_free(made);
        return status;
    }
    *graph = made;
    return TWILL_OK;
}

enum twill_status tw_topo_discover(struct tw_topo_graph **graph, enum tw_topo_scope scope)
{
    struct tw_topo_source source = {.sysfs = "/sys", .proc = "/proc", .scope = scope};
    const struct tw_params *params;
    enum twill_status status = tw_params_get(&params);
    if (tw_failed(status))
        return status;
    if (params->nvml)
        source.nvml = "libnvidia-ml.so.1";
    return tw_topo_discover_from(graph, &source);
}
