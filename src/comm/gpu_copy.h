/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which collectives on devices copy engines serve, and what they are to copy.
 * Never knows: what kernels do before and behind the copies. */
#ifndef TW_COMM_GPU_COPY_H
#define TW_COMM_GPU_COPY_H

#include "comm/gpu.h"

/* What copies need to know. */
struct tw_gpu_copies {
    char *to[TW_GK_RANKS_MAX];    /* where peers take what the rank sends, as its device has it */
    void *after[TW_GK_RANKS_MAX]; /* borrowed: events that come first; NULL: none */
};

/* ---- which calls, what is copied (gpu_copy.c) --------------------------------------------------
 */

/** Does the call only move, in blocks that are large enough, and is not in place where peers would
 * overwrite what is still to be sent? Of itself alone: whether peers' outputs are known is another
 * question. */
bool tw_gpu_copy_serves(const struct tw_gpu *gpu, const struct tw_call *call);
/** And every rank's output lies in a symmetric registration, as they have promised each other. */
bool tw_gpu_copy_promised(const struct tw_gpu *gpu, const struct tw_call *call);
/** Would they, going by what is known without buffers: one thread makes the calls of all ranks, or
 * there is symmetric memory that holds the outputs? */
bool tw_gpu_copy_expected(const struct tw_gpu *gpu, const struct tw_call *call);
/** @param promised  peers' outputs are found by symmetric registrations; else all calls are known
 */
void tw_gpu_copy_shape(bool promised, struct tw_gpu_shape *shape);
/** filled: what kernels are told. peers: [size], everybody's calls; NULL: as promised. */
void tw_gpu_copies_fill(const struct tw_gpu *gpu, const struct tw_call *const *peers,
                        const struct tw_gk_call *filled, struct tw_gpu_copies *copies);

/* ---- starting (gpu_copy_start.c) ---------------------------------------------------------------
 */

/** What a rank needs to have calls copied, from TWILL_COPY_ENGINE. INVALID: that makes no sense. */
enum twill_status tw_gpu_copy_create(struct tw_gpu *gpu, struct tw_gpu_entry *entry);
void tw_gpu_copy_destroy(struct tw_gpu *gpu);
/** All ranks would choose alike. MISMATCH names two that would not. */
enum twill_status tw_gpu_copy_agree(int size, const struct tw_gpu_entry *entries);
/**
 * Start what runs a call, into the stream of the first launch: a kernel; or the kernel before,
 * copies and the kernel behind, with what a rank copies to itself beside them.
 *
 * @param gpus      [wire->ranks]: those of one team; gpu->half of the first is true where this
 * fails in the middle: peers have been told of a call that will not end
 * @param launches  [wire->ranks]: alike, but for whose they are
 * @param wire      what kernels are told of them
 * @param done      event that comes behind; NULL: none
 */
enum twill_status tw_gpu_kernels_start(struct tw_gpu *const *gpus,
                                       const struct tw_gpu_launch *const *launches,
                                       const struct tw_gk_launch *wire, void *done);

/* ---- calls of all ranks in one group (gpu_copy_group.c) ----------------------------------------
 */

/* The calls of all ranks of a communicator that are one collective. */
struct tw_gpu_set {
    struct tw_gpu_set *next;
    const struct tw_call *calls[TW_GK_RANKS_MAX]; /* borrowed, by rank */
    size_t first, last;                           /* of their places in the group */
    bool joined; /* streams wait for each other by events: all are in one capture, or in none */
    enum twill_status status; /* of the calls that were started: the first error */
};

/** Those of a group's calls that copy engines serve because one thread makes all of them: a fact
 * that it knows for every rank. A rank's calls must not run ahead of the others' in the group.
 * sets: out, NULL: there are none. NOMEM */
enum twill_status tw_gpu_sets_find(const struct tw_call *calls, size_t count,
                                   struct tw_gpu_set **sets);
void tw_gpu_sets_free(struct tw_gpu_set *sets);
/** NULL: the call is in none. */
struct tw_gpu_set *tw_gpu_set_of(struct tw_gpu_set *sets, const struct tw_call *call);
/** Before any call of the set is started: notes where the ranks' streams are. Where that fails none
 * of them is to be. */
enum twill_status tw_gpu_set_arrive(struct tw_gpu_set *set);
/** Of one of them: its copies come behind what was noted of those whose outputs they write. */
void tw_gpu_set_await(const struct tw_gpu_set *set, const struct tw_call *call,
                      struct tw_gpu_copies *copies);
/** All are started: every stream goes on once its rank's output is written, come what may. */
enum twill_status tw_gpu_set_part(const struct tw_gpu_set *set);

#endif
