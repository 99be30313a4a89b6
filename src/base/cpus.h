/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sets of CPUs, and whether those who share them outnumber them. Never knows: who they are.
 */
#ifndef TW_BASE_CPUS_H
#define TW_BASE_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bit c of the words in order: CPU c. What lies beyond the last is counted from 0 again. */
#define TW_CPUS_MOST 1024
#define TW_CPUS_WORDS (TW_CPUS_MOST / 64)

struct tw_cpus {
    uint64_t words[TW_CPUS_WORDS];
};

/** CPUs that the calling thread may run on (affinity); never empty: where they cannot be read, the
 * first alone. */
void tw_cpus_get(struct tw_cpus *cpus);

int tw_cpus_count(const struct tw_cpus *cpus);
void tw_cpus_add(struct tw_cpus *cpus, const struct tw_cpus *more);
bool tw_cpus_within(const struct tw_cpus *part, const struct tw_cpus *whole);

/** Are there more threads than CPUs, of all together or of those that can run only where the first
 * can? bound[count]: one set a thread. quota: of CPUs for all together; 0: none. */
bool tw_cpus_crowded(const struct tw_cpus *const *bound, int count, int quota);

#endif
