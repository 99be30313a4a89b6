/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which CPUs of a machine the calling thread may run on. Never knows: why. */
#ifndef TW_TOPO_SELF_H
#define TW_TOPO_SELF_H

#include "topo/graph.h"

/**
 * CPUs of this host's machine that the calling thread may run on.
 *
 * @param pus  out, room for machine->nnodes: their nodes, in order
 * @return how many; 0 when the kernel does not say
 */
uint32_t tw_topo_cpus_allowed(const struct tw_topo_machine *machine, uint32_t *pus);

/**
 * Where the calling thread sits, for a rank's place: the first PU of its affinity when that lies
 * within one core, otherwise TW_TOPO_NONE (it may wander: place such ranks by tw_topo_place_ranks).
 */
uint32_t tw_topo_place_self(const struct tw_topo_machine *machine);

#endif
