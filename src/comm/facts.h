/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the ranks of a communicator tell each other of their host, and what they make of it.
 * Never knows: how it travels, what is chosen by it. */
#ifndef TW_COMM_FACTS_H
#define TW_COMM_FACTS_H

#include "base/cpus.h"
#include "topo/measured.h"

struct twill_comm;

/* What a rank says; goes as it is (the same build on both ends). */
struct tw_facts_entry {
    uint8_t measured[TW_TOPO_MEASURED_BYTES];
    struct tw_cpus cpus; /* that it may run on */
    int32_t quota;       /* CPUs that its control group allows; 0: no limit */
    uint32_t unused;
};

/* What follows from all ranks' entries: the same on every rank. */
struct tw_facts {
    struct tw_topo_measured measured;
    uint32_t cpus;        /* that the ranks have together; at least 1 */
    uint32_t one_process; /* 1: all ranks are in one process */
};

/* What choices rest on, as a rank has it in the end. */
struct tw_facts_stamp {
    uint64_t measured, table, plans;
};

/**
 * What this rank knows of its host. Rank 0 measures if its process has not done so: about 10 ms,
 * once in the life of a process, while the others wait for its entry. Nothing is measured for one
 * rank alone, or where TWILL_PROBE is 0.
 */
void tw_facts_say(const struct twill_comm *comm, struct tw_facts_entry *entry);

/**
 * Merge all ranks' entries.
 * @param entries  [size] pointers
 * @param facts    out; untouched on error
 * @return TWILL_OK; TWILL_ERR_PEER an entry makes no sense: the sentence names its rank
 */
enum twill_status tw_facts_merge(const struct twill_comm *comm,
                                 const struct tw_facts_entry *const *entries,
                                 struct tw_facts *facts);

/** All ranks' stamps are the same. @return TWILL_OK; TWILL_ERR_MISMATCH names two ranks and what
 * they differ in */
enum twill_status tw_facts_compare(const struct tw_facts_stamp *stamps, int size);

#endif
