/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a host of which no more is known than its CPUs. Never knows: where they sit. */
#ifndef TW_TOPO_PLAIN_H
#define TW_TOPO_PLAIN_H

#include "topo/graph.h"

/**
 * A host with cores of one CPU each behind one cache and one memory, numbers by estimate: what can
 * be said without asking hwloc, which takes far longer than a probe. Sizes of caches are those of
 * the C library where it knows them.
 *
 * @param cpus   [count] the kernel's numbers, in this order; NULL: 0 to count - 1, and no sizes of
 *               caches, so that the graph is the same wherever it is made
 * @param count  at least 1
 * @param graph  out, sealed; owned by the caller; untouched on error
 * @return TWILL_OK; TWILL_ERR_NOMEM
 */
enum twill_status tw_topo_plain(struct tw_topo_graph **graph, const uint32_t *cpus, uint32_t count);

#endif
