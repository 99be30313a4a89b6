/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sends and receives on devices, those of a rank in a group together.
 * Never knows: collectives. */
#ifndef TW_COMM_GPU_P2P_H
#define TW_COMM_GPU_P2P_H

#include "comm/gpu.h"
#include "comm/ops.h"

/* What a rank sends and receives in one group. */
struct tw_gpu_batch {
    struct tw_gpu *gpu;   /* NULL: nothing */
    struct tw_item *item; /* owned, with its calls */
};

/** The sends and receives among the calls, by rank: batches[count], of which those that are used
 * come first. Each can run: self sends have their receives, and there is room. ERR_USAGE,
 * ERR_UNSUPPORTED (tw_fail called): none can. tw_gpu_batches_free in any case. */
enum twill_status tw_gpu_batches_make(const struct tw_call *calls, size_t count,
                                      struct tw_gpu_batch *batches);
/** Start them: ranks that share a device in one kernel. The ranks' other calls have been started.
 * @return the first error; batches of communicators that have none are started in any case */
enum twill_status tw_gpu_batches_start(struct tw_gpu_batch *batches, size_t count);
void tw_gpu_batches_free(struct tw_gpu_batch *batches, size_t count);
/** One send or receive alone. */
enum twill_status tw_gpu_p2p_run(const struct tw_call *call);

/* ---- how a batch is cut (gpu_p2p_cut.c) --------------------------------------------------------
 */

/** Threads' groups that a rank's kernel has, at most. */
uint32_t tw_gpu_p2p_groups(const struct tw_gpu *gpu);
/** ERR_UNSUPPORTED: more than one launch can take. */
enum twill_status tw_gpu_p2p_check(const struct tw_gpu *gpu, const struct tw_item *item);
/**
 * Append a checked batch to a launch, as the rank at `place`.
 * @return its groups; 0: there is no room for it (tw_fail called)
 */
uint32_t tw_gpu_p2p_cut(const struct tw_gpu *gpu, const struct tw_item *item, uint32_t place,
                        struct tw_gk_launch_p2p *launch);

#endif
