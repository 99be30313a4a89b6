/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the steps by which ranks on devices find out whether they address each other's memory, and
 * those that they take where they do not. Never knows: how ranks tell each other what they found.
 */
#ifndef TW_COMM_GPU_SELFTEST_H
#define TW_COMM_GPU_SELFTEST_H

#include "comm/gpu.h"
#include "transport/transport.h"

/* ---- whether they do (gpu_selftest.c) ----------------------------------------------------------
 *
 * Between the steps every rank has told every rank what it found. As soon as one has found
 * something, none makes the next step, and all go by host memory.
 */

/** Of the devices of this process, before memory is taken. gpu->here is set. */
enum twill_status tw_gpu_test_here(const struct tw_gpu *gpu, const struct tw_ctl_peer *peers,
                                   struct tw_gpu_gap *gap);
/** Some rank is of another device or process than others: alike on all ranks. */
bool tw_gpu_test_tries(const struct tw_gpu *gpu);
/** Writes what the others are to read into the rank's memory, which is new; fills entry->seed. */
enum twill_status tw_gpu_test_offer(struct tw_gpu *gpu, struct tw_gpu_entry *entry,
                                    uint64_t deadline_ns);
/** Opens the others' memory, which fills gpu->at, reads there and writes there. */
enum twill_status tw_gpu_test_try(struct tw_gpu *gpu, const struct tw_gpu_entry *entries,
                                  uint64_t deadline_ns, struct tw_gpu_gap *gap);
/** Looks at what the others have written here; the memory is as new again. */
enum twill_status tw_gpu_test_look(struct tw_gpu *gpu, const struct tw_gpu_entry *entries,
                                   uint64_t deadline_ns, struct tw_gpu_gap *gap);
/** Some rank has found something: says so in the log. */
bool tw_gpu_gap_find(const struct tw_gpu *gpu, const struct tw_ctl_peer *peers,
                     const struct tw_gpu_gap *gap);

/* ---- host memory in its stead (gpu_cut.c) ------------------------------------------------------
 */

/* What ranks tell each other of theirs. */
struct tw_gpu_cut_entry {
    uint64_t mem; /* address in its process */
    struct tw_blob blob;
};

/** Takes it and lets go of what was opened; alike on all ranks, which have all ended their trying.
 */
enum twill_status tw_gpu_cut_offer(struct tw_gpu *gpu, const struct tw_gpu_entry *entries,
                                   struct tw_gpu_cut_entry *entry);
/** Everybody's; fills gpu->at. The memory on the device goes. */
enum twill_status tw_gpu_cut_take(struct tw_gpu *gpu, const struct tw_gpu_cut_entry *cuts);
/** Nobody uses it any more. None: nothing. */
void tw_gpu_cut_drop(struct tw_gpu *gpu);

#endif
