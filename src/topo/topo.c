/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: hwloc. Never knows: ranks, devices, links. */
#include "config.h"

#include "topo/topo.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "topo/discover.h"

struct tw_topo {
    hwloc_topology_t machine; /* owned */
};

static enum twill_status load(hwloc_topology_t machine, const char *synthetic)
{
    if (synthetic && hwloc_topology_set_synthetic(machine, synthetic))
        return tw_fail(TWILL_ERR_INVALID, "bad description of a machine: '%s'", synthetic);
    if (hwloc_topology_load(machine))
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "hwloc cannot load the topology");
    return synthetic ? TWILL_OK : tw_topo_restrict(machine, 0);
}

enum twill_status tw_topo_load(struct tw_topo **topo, const char *synthetic)
{
    struct tw_topo *t = calloc(1, sizeof(*t));
    if (!t)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for a topology");
    if (hwloc_topology_init(&t->machine)) {
        free(t);
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "hwloc cannot make a topology");
    }
    enum twill_status status = load(t->machine, synthetic);
    if (tw_failed(status)) {
        tw_topo_free(t);
        return status;
    }
    *topo = t;
    return TWILL_OK;
}

void tw_topo_free(struct tw_topo *topo)
{
    if (!topo)
        return;
    hwloc_topology_destroy(topo->machine);
    free(topo);
}

/* Machines without the level (some virtual ones have no core objects) count their CPUs instead. */
static hwloc_obj_type_t unit_type(const struct tw_topo *topo, enum tw_topo_unit unit)
{
    hwloc_obj_type_t type = unit == TW_TOPO_NUMA ? HWLOC_OBJ_NUMANODE : HWLOC_OBJ_CORE;
    return hwloc_get_nbobjs_by_type(topo->machine, type) > 0 ? type : HWLOC_OBJ_PU;
}

int tw_topo_count(const struct tw_topo *topo, enum tw_topo_unit unit)
{
    int count = hwloc_get_nbobjs_by_type(topo->machine, unit_type(topo, unit));
    return count > 0 ? count : 1;
}

static size_t cache_bytes(hwloc_topology_t machine, hwloc_obj_type_t type)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(machine, type, 0);
    return cache && cache->attr ? (size_t)cache->attr->cache.size : 0;
}

static const char *cpu_model(hwloc_topology_t machine)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(machine, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    if (!model)
        model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(machine), "CPUModel");
    return model ? model : "";
}

static int at_least_one(int count) { return count > 0 ? count : 1; }

void tw_topo_info_get(const struct tw_topo *topo, struct tw_topo_info *info)
{
    hwloc_topology_t machine = topo->machine;
    memset(info, 0, sizeof(*info));
    snprintf(info->cpu_model, sizeof(info->cpu_model), "%s", cpu_model(machine));
    info->cpus = at_least_one(hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PU));
    info->cores = tw_topo_count(topo, TW_TOPO_CORE);
    info->numa_nodes = at_least_one(hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE));
    info->packages = at_least_one(hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PACKAGE));
    info->l1d_bytes = cache_bytes(machine, HWLOC_OBJ_L1CACHE);
    info->l2_bytes = cache_bytes(machine, HWLOC_OBJ_L2CACHE);
    info->l3_bytes = cache_bytes(machine, HWLOC_OBJ_L3CACHE);
    hwloc_bitmap_list_snprintf(info->cpu_list, sizeof(info->cpu_list),
                               hwloc_get_root_obj(machine)->cpuset);
}

static enum twill_status unit_cpus(const struct tw_topo *topo, enum tw_topo_unit unit, int index,
                                   hwloc_const_cpuset_t *set)
{
    hwloc_obj_t obj = NULL;
    if (index >= 0)
        obj = hwloc_get_obj_by_type(topo->machine, unit_type(topo, unit), (unsigned)index);
    if (!obj)
        return tw_fail(TWILL_ERR_INVALID, "no %s %d: this machine has %d",
                       unit == TW_TOPO_NUMA ? "NUMA node" : "core", index,
                       tw_topo_count(topo, unit));
    *set = obj->cpuset;
    return TWILL_OK;
}

enum twill_status tw_topo_cpu_list(const struct tw_topo *topo, enum tw_topo_unit unit, int index,
                                   char *list, size_t list_bytes)
{
    hwloc_const_cpuset_t set = NULL;
    enum twill_status status = unit_cpus(topo, unit, index, &set);
    if (!tw_failed(status))
        hwloc_bitmap_list_snprintf(list, list_bytes, set);
    return status;
}

enum twill_status tw_topo_bind(const struct tw_topo *topo, enum tw_topo_unit unit, int index)
{
    hwloc_const_cpuset_t set = NULL;
    enum twill_status status = unit_cpus(topo, unit, index, &set);
    if (tw_failed(status))
        return status;
    /* a node without CPUs (memory only) binds nothing */
    if (!hwloc_bitmap_iszero(set) && hwloc_set_cpubind(topo->machine, set, HWLOC_CPUBIND_PROCESS))
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "cannot bind to %s %d",
                             unit == TW_TOPO_NUMA ? "NUMA node" : "core", index);
    return TWILL_OK;
}
