/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the CPUs, cores, caches and NUMA nodes that this process may use.
 * Never knows: ranks, devices, links. */
#ifndef TW_TOPO_TOPO_H
#define TW_TOPO_TOPO_H

#include <stddef.h>

#include "twill.h"

struct tw_topo; /* one loaded machine */

/* What a process can be bound to. */
enum tw_topo_unit { TW_TOPO_CORE, TW_TOPO_NUMA };

struct tw_topo_info {
    char cpu_model[128]; /* "" when unknown */
    int cpus;            /* hardware threads that may be used */
    int cores, numa_nodes, packages;
    size_t l1d_bytes, l2_bytes, l3_bytes; /* of the first core; 0 when unknown */
    char cpu_list[256];                   /* the allowed CPUs, "0-3,8"; cut to fit */
};

/**
 * Look at the machine, restricted to what affinity and cgroup allow. Slow (milliseconds and more):
 * only for who asks.
 *
 * @param topo       out; owned by the caller; untouched on error
 * @param synthetic  NULL: this machine; otherwise an hwloc synthetic description, for tests
 * @return TWILL_OK; TWILL_ERR_INVALID a bad description; TWILL_ERR_SYSTEM hwloc failed
 */
enum twill_status tw_topo_load(struct tw_topo **topo, const char *synthetic);
void tw_topo_free(struct tw_topo *topo);

void tw_topo_info_get(const struct tw_topo *topo, struct tw_topo_info *info);

/** How many of a unit there are, at least 1. */
int tw_topo_count(const struct tw_topo *topo, enum tw_topo_unit unit);

/**
 * CPUs of a unit as a list, "0-3,8".
 *
 * @param index  0 <= index < tw_topo_count; otherwise TWILL_ERR_INVALID
 */
enum twill_status tw_topo_cpu_list(const struct tw_topo *topo, enum tw_topo_unit unit, int index,
                                   char *list, size_t list_bytes);

/** Bind the calling process to a unit; index as above. TWILL_ERR_SYSTEM when refused. */
enum twill_status tw_topo_bind(const struct tw_topo *topo, enum tw_topo_unit unit, int index);

#endif
