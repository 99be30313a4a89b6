/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the parts of registration have of each other.
 * Never knows: calls. */
#ifndef TW_COMM_GPU_REG_H
#define TW_COMM_GPU_REG_H

#include "comm/gpu.h"

/** Everybody's `bytes` bytes, in ranks' order, through the host. */
enum twill_status tw_gpu_reg_gather(struct twill_comm *comm, const void *mine, void *all,
                                    size_t bytes);

/* ---- memory that other processes map by descriptors (gpu_pieces.c) -----------------------------
 */

/* Where a rank's memory lies in the pieces that hold it. */
struct tw_gpu_pieces {
    uint32_t count; /* 0: it goes another way */
    uint32_t unused;
    uint64_t bytes;  /* of all of them */
    uint64_t offset; /* of the memory, from the first one's start */
};

#define TW_GPU_PIECES_ROUND 16
/* What a rank tells of its next pieces. */
struct tw_gpu_round {
    int32_t status;
    uint32_t count;
    struct {
        uint64_t token[2], bytes;
    } piece[TW_GPU_PIECES_ROUND];
};

/** ERR_UNSUPPORTED: other processes cannot map it. */
enum twill_status tw_gpu_pieces_count(const struct tw_gpu *gpu, const void *ptr, size_t bytes,
                                      struct tw_gpu_pieces *pieces);
/**
 * Ranks hand each other the pieces of their memory, some at a time, and map those of other
 * processes. Collective, where any rank has pieces.
 *
 * @param ptr     the rank's memory
 * @param pieces  [size], everybody's; of ranks whose memory goes another way: 0
 * @param mine    a failure of this rank so far, which stops all
 * @param rounds  [size], to work with
 * @param spans   [size], zeroed: what is mapped, also on errors
 *
 * @return mine; what went wrong here since. OK also where another rank is what stopped it: that has
 * an error, which ranks tell each other afterwards
 */
enum twill_status tw_gpu_pieces_pass(struct tw_gpu *gpu, const void *ptr,
                                     const struct tw_gpu_pieces *pieces, enum twill_status mine,
                                     struct tw_gpu_round *rounds, struct tw_cuda_span *spans);

#endif
