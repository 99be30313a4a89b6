/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which protocol of the cost model a kernel is, and what a call takes by it.
 * Never knows: which kernel is chosen. */
#include "config.h"

#include "comm/gpu_copy.h"

#define BYTES_MOST ((uint64_t)1 << 42) /* of a block: more is not looked at */

/* Of a kernel that moves, it is known to all ranks whether every output is written directly in one
 * process only; between processes it depends on who has registered his. */
static enum tw_cost_proto proto_of(const struct tw_gpu *gpu, enum tw_gk_kernel kernel)
{
    switch (kernel) {
    case TW_GK_LINE_REDUCE:
    case TW_GK_LINE_MOVE:
        return gpu->cut ? TW_COST_PROTO_PINNED_LINES : TW_COST_PROTO_LINES;
    case TW_GK_DIRECT_SCATTER:
    case TW_GK_DIRECT_ALL:
        return TW_COST_PROTO_READS;
    case TW_GK_COPY_BEGIN:
    case TW_GK_COPY_END:
        return gpu->all_here ? TW_COST_PROTO_COPIES : TW_COST_PROTO_FAR_COPIES;
    case TW_GK_RING_MOVE:
    case TW_GK_MOVE_V:
        if (gpu->all_here && !gpu->cut)
            return TW_COST_PROTO_WRITES;
        break;
    default: /* by rings, all or half of it */
        break;
    }
    return gpu->cut ? TW_COST_PROTO_PINNED_RINGS : TW_COST_PROTO_RINGS;
}

uint32_t tw_gpu_cost_blocks(const struct tw_gpu *gpu, enum tw_gk_kernel kernel, uint64_t bytes)
{
    return tw_cost_proto_blocks(&gpu->costs, proto_of(gpu, kernel), bytes);
}

uint64_t tw_gpu_cost(const struct tw_gpu *gpu, const struct tw_gpu_shape *shape, enum tw_coll coll,
                     uint64_t bytes)
{
    if (shape->kernel == TW_GK_PLAN)
        return 0;
    return tw_cost_proto_price(&gpu->costs, proto_of(gpu, shape->kernel), coll, gpu->comm->size,
                               bytes, shape->blocks);
}

static uint64_t price(const struct tw_gpu *gpu, enum tw_cost_proto proto, int nranks,
                      uint64_t bytes)
{
    const uint32_t most = (uint32_t)gpu->most_blocks;
    uint32_t blocks = 1;

    if (proto < TW_COST_PROTO_KERNELS)
        blocks = tw_cost_proto_blocks(&gpu->costs, proto, bytes);
    return tw_cost_proto_price(&gpu->costs, proto, TW_COLL_ALL_GATHER, nranks, bytes,
                               blocks < most ? blocks : most);
}

uint64_t tw_gpu_cost_p2p(const struct tw_gpu *gpu, uint64_t bytes)
{
    enum tw_cost_proto proto = gpu->cut        ? TW_COST_PROTO_PINNED_RINGS
                               : gpu->all_here ? TW_COST_PROTO_WRITES
                                               : TW_COST_PROTO_RINGS;
    if (gpu->all_here && !gpu->cut && gpu->copy_from > 0 && bytes >= gpu->copy_from)
        proto = TW_COST_PROTO_COPIES;
    return price(gpu, proto, 2, bytes);
}

/* The least block from which on copies are no slower; UINT64_MAX: there is none. Each call that
 * they serve has the same bytes on the busiest rank, whatever the collective. */
static uint64_t copies_from(const struct tw_gpu *gpu, enum tw_cost_proto copies)
{
    const int size = gpu->comm->size;
    uint64_t slower = 0, from = BYTES_MOST;

    if (price(gpu, copies, size, from) > price(gpu, TW_COST_PROTO_WRITES, size, from))
        return UINT64_MAX;
    while (from - slower > 1) {
        const uint64_t middle = slower + (from - slower) / 2;
        if (price(gpu, copies, size, middle) <= price(gpu, TW_COST_PROTO_WRITES, size, middle))
            from = middle;
        else
            slower = middle;
    }
    return from;
}

void tw_gpu_cost_copies(struct tw_gpu *gpu)
{
    if (!gpu->copy_auto)
        return;
    gpu->copy_from = copies_from(gpu, TW_COST_PROTO_COPIES);
    gpu->copy_far_from = copies_from(gpu, TW_COST_PROTO_FAR_COPIES);
}
