/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which protocol of the cost model a kernel is, and what a call takes by it.
 * Never knows: which kernel is chosen. */
#include "config.h"

#include "comm/gpu_copy.h"
#include "comm/ops.h"

#define BYTES_OF_MB 1000000u
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

/* Of those that parameters ask for it is not known. */
static uint64_t price_plan(const struct tw_gpu *gpu, enum tw_coll coll, uint64_t bytes)
{
    if (gpu->ring_from[coll] == 0)
        return 0;
    return tw_cost_ring_price(&gpu->costs, coll, gpu->comm->size, bytes, gpu->ring_channels);
}

uint64_t tw_gpu_cost(const struct tw_gpu *gpu, const struct tw_gpu_shape *shape, enum tw_coll coll,
                     uint64_t bytes)
{
    if (shape->kernel == TW_GK_PLAN)
        return price_plan(gpu, coll, bytes);
    return tw_cost_proto_price(&gpu->costs, proto_of(gpu, shape->kernel), coll, gpu->comm->size,
                               bytes, shape->blocks);
}

static uint64_t price(const struct tw_cost_table *costs, const struct tw_gpu *gpu,
                      enum tw_cost_proto proto, enum tw_coll coll, uint64_t bytes)
{
    const uint32_t most = (uint32_t)gpu->most_blocks;
    uint32_t blocks = 1;

    if (proto < TW_COST_PROTO_KERNELS)
        blocks = tw_cost_proto_blocks(costs, proto, bytes);
    return tw_cost_proto_price(costs, proto, coll, coll == TW_COLL_P2P ? 2 : gpu->comm->size, bytes,
                               blocks < most ? blocks : most);
}

uint64_t tw_gpu_cost_p2p(const struct tw_gpu *gpu, uint64_t bytes)
{
    enum tw_cost_proto proto = gpu->cut        ? TW_COST_PROTO_PINNED_RINGS
                               : gpu->all_here ? TW_COST_PROTO_WRITES
                                               : TW_COST_PROTO_RINGS;
    if (gpu->all_here && !gpu->cut && gpu->copy_from > 0 && bytes >= gpu->copy_from)
        proto = TW_COST_PROTO_COPIES;
    /* the others may send nothing meanwhile */
    return price(tw_plans_costs(gpu->comm->ops->plans), gpu, proto, TW_COLL_P2P, bytes);
}

/* The least block from which on copies are no slower; UINT64_MAX: there is none. Each call that
 * they serve has the same bytes on the busiest rank, whatever the collective. */
static uint64_t copies_from(const struct tw_gpu *gpu, enum tw_cost_proto copies)
{
    const enum tw_coll coll = TW_COLL_ALL_GATHER;
    uint64_t slower = 0, from = BYTES_MOST;

    if (price(&gpu->costs, gpu, copies, coll, from) >
        price(&gpu->costs, gpu, TW_COST_PROTO_WRITES, coll, from))
        return UINT64_MAX;
    while (from - slower > 1) {
        const uint64_t middle = slower + (from - slower) / 2;
        if (price(&gpu->costs, gpu, copies, coll, middle) <=
            price(&gpu->costs, gpu, TW_COST_PROTO_WRITES, coll, middle))
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

/* ---- what lies between devices ------------------------------------------------------------------
 */

/* Of the wire a protocol's payload has so many eighths. */
static uint64_t eighths_of(enum tw_cost_proto proto)
{
    return proto == TW_COST_PROTO_LINES ? 4 : proto == TW_COST_PROTO_RINGS ? 7 : 8;
}

static void rate_bound(struct tw_cost_table *costs, enum tw_cost_proto proto, uint64_t bytes_per_s)
{
    uint64_t *rate = &costs->value[tw_cost_proto_index(proto, TW_COST_PROTO_RATE)];
    const uint64_t most = bytes_per_s / 8 * eighths_of(proto) / BYTES_OF_MB;

    if (most < *rate)
        *rate = most > 0 ? most : 1;
}

/* Kernels and copies that exchange with all others, at so many bytes a second. */
static void rates_bound(struct tw_cost_table *costs, uint64_t bytes_per_s)
{
    static const enum tw_cost_proto protos[] = {TW_COST_PROTO_LINES,  TW_COST_PROTO_RINGS,
                                                TW_COST_PROTO_READS,  TW_COST_PROTO_WRITES,
                                                TW_COST_PROTO_COPIES, TW_COST_PROTO_FAR_COPIES};

    for (size_t i = 0; i < sizeof(protos) / sizeof(protos[0]); i++)
        rate_bound(costs, protos[i], bytes_per_s);
}

void tw_gpu_cost_bound(struct tw_gpu *gpu)
{
    gpu->costs = *tw_plans_costs(gpu->comm->ops->plans);
    if (!gpu->between.known || !gpu->between.uneven)
        return;
    rates_bound(&gpu->costs, gpu->between.all_bytes_per_s);
    rate_bound(&gpu->costs, TW_COST_PROTO_PLANS, gpu->between.ring_bytes_per_s);
}

/* The fastest of what else might serve a large call, whoever reaches what: who does may differ from
 * rank to rank. */
static uint64_t price_others(const struct tw_cost_table *costs, const struct tw_gpu *gpu,
                             enum tw_coll coll, uint64_t bytes)
{
    static const enum tw_cost_proto sums[] = {TW_COST_PROTO_RINGS, TW_COST_PROTO_READS};
    static const enum tw_cost_proto moves[] = {TW_COST_PROTO_WRITES, TW_COST_PROTO_COPIES};
    const enum tw_cost_proto *protos = tw_coll_rule(coll)->reduces ? sums : moves;
    const uint64_t a = price(costs, gpu, protos[0], coll, bytes);
    const uint64_t b = price(costs, gpu, protos[1], coll, bytes);

    return a < b ? a : b;
}

/* The least block, of more than lines have room for, from which on the ring is faster; 0: none. */
static uint64_t ring_from(const struct tw_cost_table *costs, const struct tw_gpu *gpu,
                          enum tw_coll coll)
{
    const int size = gpu->comm->size;
    uint64_t slower = gpu->base.layout.line_each / 2, from = BYTES_MOST;

    if (tw_cost_ring_price(costs, coll, size, from, gpu->ring_channels) >=
        price_others(costs, gpu, coll, from))
        return 0;
    while (from - slower > 1) {
        const uint64_t middle = slower + (from - slower) / 2;
        if (tw_cost_ring_price(costs, coll, size, middle, gpu->ring_channels) <
            price_others(costs, gpu, coll, middle))
            from = middle;
        else
            slower = middle;
    }
    return from;
}

/* The user wants engines to move it, whatever is faster. */
static bool copies_wanted(const struct tw_gpu *gpu, enum tw_coll coll)
{
    return !tw_coll_rule(coll)->reduces && gpu->copy_from > 0 && !gpu->copy_auto;
}

void tw_gpu_cost_rings(struct tw_gpu *gpu)
{
    static const enum tw_coll served[] = {TW_COLL_ALL_REDUCE, TW_COLL_REDUCE_SCATTER,
                                          TW_COLL_ALL_GATHER, TW_COLL_BROADCAST, TW_COLL_REDUCE};
    const struct tw_gpu_between *between = &gpu->between;
    const struct twill_comm *comm = gpu->comm;
    const uint32_t most = (uint32_t)gpu->most_blocks;
    struct tw_cost_table alone; /* where a root sends, or takes, alone */

    for (int coll = 0; coll < TW_COLL_COUNT; coll++)
        gpu->ring_from[coll] = 0;
    gpu->ring_channels = comm->args.channels > 0     ? (uint32_t)comm->args.channels
                         : most < TW_GPU_PLAN_BLOCKS ? most
                                                     : TW_GPU_PLAN_BLOCKS;
    if (!between->known || !between->uneven || gpu->cut)
        return;
    alone = *tw_plans_costs(comm->ops->plans);
    rates_bound(&alone, between->one_bytes_per_s);
    rate_bound(&alone, TW_COST_PROTO_PLANS, between->ring_bytes_per_s);
    for (size_t i = 0; i < sizeof(served) / sizeof(served[0]); i++)
        if (tw_plans_rings(comm->ops->plans, served[i]) && !copies_wanted(gpu, served[i]))
            gpu->ring_from[served[i]] =
                ring_from(tw_coll_rule(served[i])->rooted ? &alone : &gpu->costs, gpu, served[i]);
}
