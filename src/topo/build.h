/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which links and resources the parts of a host have. Never knows: which host it is. */
#ifndef TW_TOPO_BUILD_H
#define TW_TOPO_BUILD_H

#include "topo/graph.h"

/* The numbers of a machine's tree of CPUs. */
struct tw_topo_rates {
    uint64_t line_ps[TW_TOPO_NEAR_COUNT]; /* a line from PU to PU, one way, by nearness */
    uint64_t core_bytes_per_s;            /* one core's copies */
    uint64_t cache_bytes_per_s;           /* in and out of a shared cache, each way */
    uint64_t numa_bytes_per_s;            /* between NUMA node and package, each way */
    uint64_t socket_bytes_per_s;          /* between package and package, each way */
    uint64_t memory_ps;                   /* from NUMA node to memory, one way */
    uint64_t memory_bytes_per_s;          /* of a memory, both ways together */
};

/** Typical of a vendor's server parts of these years, to be taken until something is measured.
 * @param vendor  as the CPU says it, "GenuineIntel"; NULL or another: between what the known have
 */
const struct tw_topo_rates *tw_topo_typical(const char *vendor);

/** Adds a node under parent. @return its index, or TW_TOPO_NONE: no memory */
uint32_t tw_topo_part_add(struct tw_topo_machine *machine, unsigned kind, uint32_t parent,
                          uint32_t os_index);

/** Adds a link with equal numbers and a resource each way. @return false: no memory */
bool tw_topo_wire_add(struct tw_topo_machine *machine, uint32_t from, uint32_t to,
                      uint64_t latency_ps, uint64_t bytes_per_s, unsigned origin);

/**
 * Adds the links to their parents that parts of the tree of CPUs and memories do not have yet.
 *
 * Latency: a PU's way up to a part and the way down from it to another PU take line_ps of that
 * part's nearness together.
 */
bool tw_topo_tree_link(struct tw_topo_machine *machine, const struct tw_topo_rates *rates,
                       unsigned origin);

/**
 * What a line needs from a PU below a node up to that node and down again; the tree's numbers are
 * differences of it. 0 for PUs and what is no part of the tree of CPUs.
 *
 * @param around_ps  out, [nnodes]
 */
void tw_topo_tree_around(const struct tw_topo_machine *machine,
                         const uint64_t line_ps[TW_TOPO_NEAR_COUNT], uint64_t *around_ps);

/** Nearness (enum tw_topo_near) that a part of the tree of CPUs stands for; -1 for PUs and what is
 * no such part. */
int tw_topo_part_near(const struct tw_topo_node *node);

#endif
