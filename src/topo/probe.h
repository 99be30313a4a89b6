/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how to measure this host in a few milliseconds, and where to keep what came out.
 * Never knows: ranks, who else measures. */
#ifndef TW_TOPO_PROBE_H
#define TW_TOPO_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "topo/measured.h"

#define TW_TOPO_PROBE_NS 10000000ull

/**
 * Measure with two threads that end before it returns: how long a cache line takes between CPUs of
 * each nearness (a few pairs of each, their median; each pair's best of several runs), how long one
 * CPU takes to go from a thread to another, how fast it copies what fits each cache and what lies
 * in memory, and what process_vm_readv costs. Only
 * CPUs that this thread may run on are used; its own affinity does not change. Fields stay 0 for
 * what cannot be measured: one CPU has no pairs, a filter may forbid the call.
 *
 * Several processes of a host that measure at once disturb each other: let one do it, the others
 * merge an empty struct.
 *
 * @param machine    this host's; borrowed
 * @param budget_ns  time for all of it; what has not been measured by then stays 0. Overrun: one
 *                   copy or fault, below a millisecond on an idle CPU
 * @param measured   out
 * @param complete   out, may be NULL: the time was enough
 * @return TWILL_OK; TWILL_ERR_SYSTEM no thread could be started; TWILL_ERR_NOMEM
 */
enum twill_status tw_topo_probe(const struct tw_topo_machine *machine, uint64_t budget_ns,
                                struct tw_topo_measured *measured, bool *complete);

/**
 * The same from this user's cache where it has a measurement of this boot, these CPUs and this
 * version that is less than a day old; otherwise measured, and kept when complete. The cache is the
 * folder twill in XDG_RUNTIME_DIR. Nothing is kept or believed where that is not set, not this
 * user's own, or open to others.
 */
enum twill_status tw_topo_measure(const struct tw_topo_machine *machine, uint64_t budget_ns,
                                  struct tw_topo_measured *measured);

/* ---- the cache's parts, for tests ----------------------------------------------------------- */

/** What a measurement holds for: boot, CPUs, caches, version. TWILL_ERR_SYSTEM: no boot id */
enum twill_status tw_topo_cache_key(const struct tw_topo_machine *machine, uint64_t *key);
/** now_ns: of CLOCK_BOOTTIME. @return false: nothing there that can be believed */
bool tw_topo_cache_read(const char *directory, uint64_t key, uint64_t now_ns,
                        struct tw_topo_measured *measured);
/** @return false: not kept; nothing is logged above debug */
bool tw_topo_cache_write(const char *directory, uint64_t key, uint64_t now_ns,
                         const struct tw_topo_measured *measured);

#endif
