/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which collectives copy engines serve, and where peers take what they copy.
 * Never knows: streams, kernels. */
#include "config.h"

#include "comm/gpu_copy.h"

#define COPY_THREADS 64u /* of the kernels' one block: one for each rank */

_Static_assert(COPY_THREADS >= TW_GK_RANKS_MAX, "a thread for each rank");

/* A rank in place would be sent its own input. */
static bool overwrites(const struct tw_call *call)
{
    return call->info.coll == TW_COLL_ALL_TO_ALL && call->in != NULL && call->in == call->out;
}

bool tw_gpu_copy_serves(const struct tw_gpu *gpu, const struct tw_call *call)
{
    const enum tw_coll coll = call->info.coll;
    const uint64_t bytes = call->info.count * tw_type_bytes(call->info.type);

    if (gpu->copy_from == 0 || gpu->comm->size < 2 || gpu->cut)
        return false;
    if (coll != TW_COLL_ALL_GATHER && coll != TW_COLL_ALL_TO_ALL && coll != TW_COLL_BROADCAST &&
        coll != TW_COLL_GATHER && coll != TW_COLL_SCATTER)
        return false;
    return bytes >= (gpu->all_here ? gpu->copy_from : gpu->copy_far_from) &&
           bytes > gpu->base.layout.line_each / 2 && !overwrites(call) &&
           !tw_gpu_plan_forced(gpu, call);
}

/* Not of a gather, where only the root has an output, nor of a scatter, where the root's may be
 * part of its input. bytes: out, of everybody's output */
static bool is_promisable(const struct tw_gpu *gpu, const struct tw_call *call, uint64_t *bytes)
{
    const enum tw_coll coll = call->info.coll;

    *bytes = call->info.count * tw_type_bytes(call->info.type);
    if (coll != TW_COLL_BROADCAST)
        *bytes *= (uint64_t)gpu->comm->size;
    return coll != TW_COLL_GATHER && coll != TW_COLL_SCATTER && tw_gpu_copy_serves(gpu, call);
}

bool tw_gpu_copy_promised(const struct tw_gpu *gpu, const struct tw_call *call)
{
    uint64_t bytes;

    return is_promisable(gpu, call, &bytes) && tw_gpu_reg_copied(gpu, call->out, bytes) != 0;
}

bool tw_gpu_copy_expected(const struct tw_gpu *gpu, const struct tw_call *call)
{
    uint64_t bytes;

    return (gpu->all_here && tw_gpu_copy_serves(gpu, call)) ||
           (is_promisable(gpu, call, &bytes) && tw_gpu_reg_copied_most(gpu) >= bytes);
}

void tw_gpu_copy_shape(bool promised, struct tw_gpu_shape *shape)
{
    shape->kernel = TW_GK_COPY_BEGIN;
    shape->blocks = 1;
    shape->threads = COPY_THREADS;
    shape->promised = promised;
}

void tw_gpu_copies_fill(const struct tw_gpu *gpu, const struct tw_call *const *peers,
                        const struct tw_gk_call *filled, struct tw_gpu_copies *copies)
{
    const uint64_t block = (uint64_t)filled->rank * filled->out_stride;

    for (int r = 0; r < filled->size; r++) {
        copies->to[r] = copies->after[r] = NULL;
        if ((filled->sends >> r & 1) == 0)
            continue;
        copies->to[r] =
            peers != NULL ? (char *)peers[r]->out : tw_gpu_reg_peer(gpu, filled->out_word, r);
        copies->to[r] += block;
    }
}
