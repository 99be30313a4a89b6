/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which kernel a call gets, and what that is told. Never knows: how it is launched, what
 * costs rest on. */
#include "config.h"

#include <string.h>

#include "comm/gpu_copy.h"

_Static_assert(TW_GK_PREMUL == TW_REDOP_PREMUL_SUM, "kernels know created sums by this number");

#define LINE_CLERKS 32u /* threads of a block that see to records */
#define LINE_THREADS_MOST (TW_GK_LINE_THREADS_MOST - LINE_CLERKS) /* and those that move data */
#define LINE_BLOCKS_MOST 128u
#define DIRECT_BLOCKS_MOST 64u
#define RING_BLOCKS_MOST 64u /* a block's warps make eight rings, or four */
#define UNIT_BYTES 8u        /* of a line's payload */
/* of what a rank sums: below, reads are as fast */
#define PUSH_FROM ((uint64_t)8 << 20)
#define PUSH_SCATTER_FROM ((uint64_t)256 << 20)
#define PUSH_SAME_FROM ((uint64_t)32 << 20) /* in place */
#define PUSH_BLOCKS_MOST 128u
#define PUSH_BLOCKS_LEAST 64u           /* with fewer, reads are faster */
#define PUSH_CHUNK ((uint32_t)64 << 10) /* and worth a block */
#define PUSH_LONG ((uint64_t)256 << 20) /* from there on twice as long chunks */
#define PUSH_CHUNKS_LEAST 2u            /* of a block: some are pushed while others are summed */
#define PUSH_ROUND ((uint64_t)32 << 10) /* bytes that all threads of a block load at once */

/* Which blocks go where. */
struct traffic {
    bool sends_all, takes_all; /* else to and from the root alone */
    bool sends, takes;         /* this rank does at all */
    bool many_in, many_out;    /* a block for each rank */
    bool reduces;
};

static struct traffic traffic_of(const struct tw_gpu *gpu, const struct tw_call_info *info)
{
    const struct tw_coll_rule *rule = tw_coll_rule(info->coll);
    const bool root = gpu->comm->rank == info->root;

    return (struct traffic){
        .sends_all = rule->out.where != TW_AT_ROOT,
        .takes_all = rule->in.where != TW_AT_ROOT,
        .sends = rule->in.where == TW_EVERYWHERE || (rule->in.where == TW_AT_ROOT && root),
        .takes = rule->out.where == TW_EVERYWHERE || (rule->out.where == TW_AT_ROOT && root),
        .many_in = rule->in.many,
        .many_out = rule->out.many,
        .reduces = rule->reduces,
    };
}

static uint32_t least(uint64_t a, uint32_t b) { return a < b ? (uint32_t)a : b; }

static uint32_t most_blocks(const struct tw_gpu *gpu, uint32_t most)
{
    return (uint32_t)gpu->most_blocks < most ? (uint32_t)gpu->most_blocks : most;
}

static bool is_lines(enum tw_gk_kernel kernel)
{
    return kernel == TW_GK_LINE_REDUCE || kernel == TW_GK_LINE_MOVE;
}

/* A thread for each unit, as far as there are as many. */
static void shape_lines(const struct tw_gpu *gpu, uint64_t bytes, struct tw_gpu_shape *shape)
{
    const uint64_t units = bytes / UNIT_BYTES + (bytes % UNIT_BYTES != 0);
    const uint32_t blocks =
        least(tw_gpu_cost_blocks(gpu, shape->kernel, bytes), most_blocks(gpu, LINE_BLOCKS_MOST));
    const uint64_t each = units / blocks + (units % blocks != 0);
    const uint64_t threads = each == 0 ? 32 : (each + 31) / 32 * 32;
    const uint32_t data = least(threads, LINE_THREADS_MOST);
    const uint64_t useful = units / data + (units % data != 0);

    shape->threads = data + LINE_CLERKS;
    shape->blocks = useful == 0 ? 1 : least(useful, blocks);
}

/* bytes: of a block of the collective */
static void shape_kernel(const struct tw_gpu *gpu, enum tw_gk_kernel kernel, uint64_t bytes,
                         struct tw_gpu_shape *shape)
{
    const uint64_t size = (uint64_t)gpu->comm->size;
    /* of an all_reduce a rank reads its share */
    const uint64_t own = kernel == TW_GK_DIRECT_ALL ? bytes / size : bytes;

    shape->kernel = kernel;
    if (is_lines(kernel)) {
        shape_lines(gpu, bytes, shape);
        return;
    }
    shape->threads = TW_GK_THREADS_MOST;
    shape->blocks = least(tw_gpu_cost_blocks(gpu, kernel, own),
                          most_blocks(gpu, least(RING_BLOCKS_MOST, DIRECT_BLOCKS_MOST)));
}

/* Every rank's buffers can be reached by every rank: a fact that all of them know, as buffers are
 * registered on all ranks or on none. */
static bool all_reach(const struct tw_gpu *gpu, const struct tw_call *call)
{
    const struct tw_call_info *info = &call->info;
    const struct tw_coll_rule *rule = tw_coll_rule(info->coll);
    const uint64_t bytes = info->count * tw_type_bytes(info->type);
    const uint64_t all = bytes * (uint64_t)gpu->comm->size;

    if (info->op == TW_REDOP_PREMUL_SUM)
        return false; /* a rank's scalar is known to it alone */
    if (gpu->all_here)
        return true;
    if (tw_gpu_reg_word(gpu, call->in, rule->in.many ? all : bytes) == 0)
        return false;
    /* only an all_reduce writes to peers' outputs */
    return info->coll != TW_COLL_ALL_REDUCE || tw_gpu_reg_word(gpu, call->out, bytes) != 0;
}

/* Sums go right into everybody's output, shares by rings: inputs are not to be read as they are. */
static bool pushes(const struct tw_gpu *gpu, const struct tw_call *call)
{
    return call->info.coll == TW_COLL_ALL_REDUCE && call->info.op == TW_REDOP_PREMUL_SUM &&
           gpu->all_here;
}

static bool serves(const struct tw_gpu *gpu, const struct tw_call *call, enum tw_gk_kernel kernel)
{
    return (kernel != TW_GK_DIRECT_ALL && kernel != TW_GK_DIRECT_SCATTER) || all_reach(gpu, call);
}

/* What may be cheaper than lines, or is there where these have no room; the last one always serves.
 * Of equal ones the first is taken. */
static uint32_t kernels_of(const struct tw_gpu *gpu, const struct tw_call *call,
                           enum tw_gk_kernel kernels[2])
{
    const bool all = call->info.coll == TW_COLL_ALL_REDUCE;

    if (!tw_coll_rule(call->info.coll)->reduces) {
        kernels[0] = TW_GK_RING_MOVE;
        return 1;
    }
    if (pushes(gpu, call)) {
        kernels[0] = TW_GK_PUSH_ALL;
        return 1;
    }
    kernels[0] = all ? TW_GK_DIRECT_ALL : TW_GK_DIRECT_SCATTER;
    kernels[1] = all ? TW_GK_RING_ALL : TW_GK_RING_SCATTER;
    return 2;
}

/* The cheapest kernel of those that can serve the call. What has no bytes goes by lines. Who
 * reaches what is looked up only where it counts: that takes longer than small calls have. */
static void shape_blocks(const struct tw_gpu *gpu, const struct tw_call *call, uint64_t bytes,
                         struct tw_gpu_shape *shape)
{
    const enum tw_coll coll = call->info.coll;
    enum tw_gk_kernel kernels[2];
    const uint32_t count = bytes > 0 ? kernels_of(gpu, call, kernels) : 0;
    bool found = bytes <= gpu->base.layout.line_each / 2;

    if (found)
        shape_kernel(gpu, tw_coll_rule(coll)->reduces ? TW_GK_LINE_REDUCE : TW_GK_LINE_MOVE, bytes,
                     shape);
    for (uint32_t i = 0; i < count; i++) {
        struct tw_gpu_shape other = *shape;

        shape_kernel(gpu, kernels[i], bytes, &other);
        if (found && tw_gpu_cost(gpu, &other, coll, bytes) >= tw_gpu_cost(gpu, shape, coll, bytes))
            continue;
        if (serves(gpu, call, kernels[i])) {
            *shape = other;
            found = true;
        }
    }
}

void tw_gpu_shape_init(struct tw_gpu *gpu)
{
    gpu->push_from = PUSH_FROM;
    gpu->push_scatter_from = PUSH_SCATTER_FROM;
    gpu->push_same_from = PUSH_SAME_FROM;
    gpu->push_chunk = PUSH_CHUNK;
    gpu->push_blocks = PUSH_BLOCKS_LEAST;
}

/* Where two ranks would read, and have much to: they push. Whether ranks are in place, each knows
 * of itself alone: their kernels tell each other, and read where one of them is. */
static void shape_pushes(const struct tw_gpu *gpu, enum tw_coll coll, uint64_t bytes,
                         struct tw_gpu_shape *shape)
{
    const bool all = shape->kernel == TW_GK_DIRECT_ALL;
    const uint64_t share = all ? bytes / 2 : bytes;
    const uint64_t from = all ? gpu->push_from : gpu->push_scatter_from;
    const uint32_t chunk = gpu->push_chunk * (share < PUSH_LONG ? 1 : 2);

    if (gpu->comm->size != 2 || from == 0 || share < from || coll == TW_COLL_REDUCE ||
        (!all && shape->kernel != TW_GK_DIRECT_SCATTER) ||
        most_blocks(gpu, PUSH_BLOCKS_MOST) < gpu->push_blocks)
        return;
    shape->blocks = least((share + chunk - 1) / chunk, most_blocks(gpu, PUSH_BLOCKS_MOST));
    const uint64_t each = share / shape->blocks / PUSH_CHUNKS_LEAST;

    shape->chunk = least((each + PUSH_ROUND - 1) / PUSH_ROUND * PUSH_ROUND, chunk);
}

/* Ranks may know of their own blocks only, and where they know all of them, what they think of
 * others' is compared pair by pair: nothing rests on counts. */
static void shape_pairs(const struct tw_gpu *gpu, bool reduces, struct tw_gpu_shape *shape)
{
    shape->kernel = reduces ? TW_GK_SCATTER_V : TW_GK_MOVE_V;
    shape->threads = TW_GK_THREADS_MOST;
    shape->blocks = most_blocks(gpu, RING_BLOCKS_MOST);
}

void tw_gpu_shape(const struct tw_gpu *gpu, const struct tw_call *call, struct tw_gpu_shape *shape)
{
    const struct tw_call_info *info = &call->info;
    const uint64_t bytes = info->count * tw_type_bytes(info->type);

    shape->promised = false;
    shape->chunk = 0;
    if (tw_gpu_plan_forced(gpu, call)) {
        shape->kernel = TW_GK_PLAN;
        shape->threads = TW_GK_THREADS_MOST;
        shape->blocks = most_blocks(gpu, TW_GPU_PLAN_BLOCKS);
    } else if (tw_gpu_varies(info->coll)) {
        shape_pairs(gpu, tw_coll_rule(info->coll)->reduces, shape);
    } else if (tw_gpu_copy_promised(gpu, call)) {
        tw_gpu_copy_shape(true, shape);
    } else {
        shape_blocks(gpu, call, bytes, shape);
        shape_pushes(gpu, info->coll, bytes, shape);
    }
}

void tw_gpu_shape_expected(const struct tw_gpu *gpu, const struct tw_call *call,
                           struct tw_gpu_shape *shape)
{
    tw_gpu_shape(gpu, call, shape);
    if (tw_gpu_copy_expected(gpu, call))
        tw_gpu_copy_shape(false, shape);
}

static const char *const algo_names[TW_GK_KERNELS] = {
    [TW_GK_LINE_REDUCE] = "direct_put",
    [TW_GK_LINE_MOVE] = "direct",
    [TW_GK_RING_SCATTER] = "direct",
    [TW_GK_RING_ALL] = "two_shot_put",
    [TW_GK_PUSH_ALL] = "two_shot_put",
    [TW_GK_RING_MOVE] = "direct",
    [TW_GK_DIRECT_SCATTER] = "direct_get",
    [TW_GK_DIRECT_ALL] = "two_shot_get",
    [TW_GK_SCATTER_V] = "direct",
    [TW_GK_MOVE_V] = "direct",
    [TW_GK_P2P_FEW] = "p2p",
    [TW_GK_P2P_MANY] = "p2p",
    [TW_GK_PLAN] = "plan",
    [TW_GK_COPY_BEGIN] = "direct",
    [TW_GK_COPY_END] = "direct",
    [TW_GK_COPY_OWN] = "direct",
};
static const char *const proto_names[TW_GK_KERNELS] = {
    [TW_GK_LINE_REDUCE] = "lines", [TW_GK_LINE_MOVE] = "lines", [TW_GK_RING_SCATTER] = "rings",
    [TW_GK_RING_ALL] = "rings",    [TW_GK_RING_MOVE] = "rings", [TW_GK_DIRECT_SCATTER] = "direct",
    [TW_GK_DIRECT_ALL] = "direct", [TW_GK_PUSH_ALL] = "direct", [TW_GK_SCATTER_V] = "rings",
    [TW_GK_MOVE_V] = "rings",      [TW_GK_P2P_FEW] = "rings",   [TW_GK_P2P_MANY] = "rings",
    [TW_GK_PLAN] = "fifo",         [TW_GK_COPY_BEGIN] = "copy", [TW_GK_COPY_END] = "copy",
    [TW_GK_COPY_OWN] = "copy",
};

const char *tw_gpu_algo_name(const struct tw_gpu_shape *shape)
{
    if (shape->chunk != 0) /* unless a rank is in place */
        return shape->kernel == TW_GK_DIRECT_ALL ? "two_shot_put" : "direct_put";
    return algo_names[shape->kernel];
}

const char *tw_gpu_proto_name(const struct tw_gpu_shape *shape)
{
    return proto_names[shape->kernel];
}

/* In place, what a peer writes to the output may be what this rank has yet to send. */
static bool output_is_free(const struct traffic *traffic, const struct tw_call *call)
{
    return !(traffic->many_in && traffic->many_out && call->in == call->out);
}

static uint64_t mask_all(int size) { return size == 64 ? UINT64_MAX : (UINT64_C(1) << size) - 1; }

/* Peers are told where the buffers lie, if they can reach them. */
static void reach_in(const struct tw_gpu *gpu, const struct tw_call *call, uint64_t bytes,
                     struct tw_gk_call *out)
{
    out->in_word =
        gpu->all_here ? (uint64_t)(uintptr_t)call->in : tw_gpu_reg_word(gpu, call->in, bytes);
}

static void reach_out(const struct tw_gpu *gpu, const struct tw_call *call, uint64_t bytes,
                      struct tw_gk_call *out)
{
    out->out_word =
        gpu->all_here ? (uint64_t)(uintptr_t)call->out : tw_gpu_reg_word(gpu, call->out, bytes);
    out->direct = out->out_word != 0 || out->in_word != 0;
}

/* Not in place: the peer may write to the output before this rank has read the input. Or right in
 * place, of an all_reduce. Memory that is mapped at two addresses is taken for two buffers: what a
 * kernel finds that uses both, CUDA does not say. */
static void reach_apart(const struct tw_gpu *gpu, const struct tw_call *call, uint64_t in_bytes,
                        uint64_t out_bytes, struct tw_gk_call *out)
{
    const uint64_t in = (uint64_t)(uintptr_t)call->in, to = (uint64_t)(uintptr_t)call->out;

    if (out->out_word != 0 && (in + in_bytes <= to || to + out_bytes <= in))
        out->in_word |= TW_GK_APART;
    else if (out->out_word != 0 && in == to && in_bytes == out_bytes &&
             out_bytes / 2 >= gpu->push_same_from)
        out->in_word |= TW_GK_SAME;
}

/* Kernels that are chosen only where everybody's output is reached. */
static bool all_written(enum tw_gk_kernel kernel)
{
    return kernel == TW_GK_DIRECT_ALL || kernel == TW_GK_DIRECT_SCATTER || kernel == TW_GK_PUSH_ALL;
}

/* Copies know themselves where outputs lie: this is to compare it, and to go on from here where
 * calls are promised to lie alike. */
static void reach_copies(const struct tw_gpu *gpu, const struct tw_call *call, bool promised,
                         uint64_t bytes, struct tw_gk_call *out)
{
    out->out_word =
        promised ? tw_gpu_reg_copied(gpu, call->out, bytes) : (uint64_t)(uintptr_t)call->out;
    out->direct = 1;
}

void tw_gpu_fill(const struct tw_gpu *gpu, const struct tw_call *call,
                 const struct tw_gpu_shape *shape, struct tw_gk_call *out)
{
    const struct tw_call_info *info = &call->info;
    const struct traffic traffic = traffic_of(gpu, info);
    const uint64_t all = mask_all(gpu->comm->size), root = UINT64_C(1) << info->root;
    const uint64_t bytes = tw_gpu_varies(info->coll) ? 0 : info->count * tw_type_bytes(info->type);

    *out = gpu->base;
    out->op = (uint32_t)info->op;
    out->in = call->in;
    out->out = call->out;
    out->elem_bytes = (uint32_t)tw_type_bytes(info->type);
    out->bytes = bytes;
    out->in_stride = traffic.many_in ? bytes : 0;
    out->out_stride = traffic.many_out ? bytes : 0;
    out->sends = !traffic.sends ? 0 : traffic.sends_all ? all : root;
    out->takes = !traffic.takes ? 0 : traffic.takes_all ? all : root;
    if (info->coll == TW_COLL_BARRIER) /* of nothing: but everybody's record is awaited */
        out->sends = out->takes = all;
    out->scalar_at = call->scalar.at;
    out->scalar = call->scalar.value;
    if (shape->kernel == TW_GK_DIRECT_ALL || shape->kernel == TW_GK_DIRECT_SCATTER)
        reach_in(gpu, call, traffic.many_in ? bytes * (uint64_t)gpu->comm->size : bytes, out);
    if (shape->kernel == TW_GK_MOVE_V && traffic.takes && output_is_free(&traffic, call))
        reach_out(gpu, call, tw_gpu_out_bytes(call), out);
    out->lanes = shape->kernel == TW_GK_RING_ALL ? 2 : 1;
    if (all_written(shape->kernel) ||
        ((shape->kernel == TW_GK_RING_ALL || shape->kernel == TW_GK_RING_MOVE) && traffic.takes &&
         output_is_free(&traffic, call)))
        reach_out(gpu, call, traffic.many_out ? bytes * (uint64_t)gpu->comm->size : bytes, out);
    out->chunk = shape->chunk;
    if (out->chunk != 0)
        reach_apart(gpu, call, traffic.many_in ? bytes * (uint64_t)gpu->comm->size : bytes, bytes,
                    out);
    if (shape->kernel == TW_GK_COPY_BEGIN && traffic.takes)
        reach_copies(gpu, call, shape->promised,
                     traffic.many_out ? bytes * (uint64_t)gpu->comm->size : bytes, out);
    out->words[TW_GK_WORD_CALL] = (uint32_t)info->coll << 24 | (uint32_t)info->type << 16 |
                                  (uint32_t)info->op << 8 | (uint32_t)info->guise;
    out->words[TW_GK_WORD_PATH] =
        (uint32_t)info->root << 16 | (uint32_t)shape->kernel << 8 | shape->blocks;
    out->words[TW_GK_WORD_COUNT] = (uint32_t)bytes;
    out->words[TW_GK_WORD_COUNT + 1] = (uint32_t)(bytes >> 32);
}
