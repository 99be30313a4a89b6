/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: copies by memcpy and by the kernel, timed. Never knows: pairs of CPUs. */
#ifndef TW_TOPO_PROBE_COPY_H
#define TW_TOPO_PROBE_COPY_H

#include "topo/measured.h"

/**
 * Fills copy_* and cma_* on the CPU that the caller runs on, as far as the time goes.
 *
 * @return false: cut short by the deadline, or no memory
 */
bool tw_topo_copies_measure(const struct tw_topo_machine *machine, uint64_t deadline_ns,
                            struct tw_topo_measured *measured);

#endif
