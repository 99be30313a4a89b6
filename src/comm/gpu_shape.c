/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which kernel a call gets, and what that is told. Never knows: how it is launched. */
#include "config.h"

#include <string.h>

#include "comm/gpu_copy.h"

_Static_assert(TW_GK_PREMUL == TW_REDOP_PREMUL_SUM, "kernels know created sums by this number");

#define LINE_CLERKS 32u        /* threads of a block that see to records */
#define LINE_THREADS_MOST 480u /* and those that move data: with the clerks, a block */
#define LINE_BLOCKS_MOST 128u
#define PLAN_BLOCKS_MOST 16u
#define DIRECT_BLOCKS_MOST 64u
#define RING_BLOCKS_MOST (TW_GK_SLOTS_MAX / TW_GK_SLOTS / 2) /* a block's groups make two rings */
#define RING_BLOCK_BYTES ((uint64_t)16 << 10)                /* worth a block */
#define DIRECT_BLOCK_BYTES ((uint64_t)8 << 10)

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

static void shape_lines(const struct tw_gpu *gpu, uint64_t bytes, struct tw_gpu_shape *shape)
{
    uint64_t units = (bytes + 7) / 8;
    uint64_t threads = (units + 31) / 32 * 32;

    const uint32_t data = threads == 0 ? 32 : least(threads, LINE_THREADS_MOST);

    shape->threads = data + LINE_CLERKS;
    shape->blocks = least((units + data - 1) / data, most_blocks(gpu, LINE_BLOCKS_MOST));
    if (shape->blocks == 0)
        shape->blocks = 1;
}

/* each: bytes worth a block */
static void shape_blocks(const struct tw_gpu *gpu, uint64_t bytes, uint64_t each, uint32_t most,
                         struct tw_gpu_shape *shape)
{
    shape->threads = TW_GK_THREADS_MOST;
    shape->blocks = least((bytes + each - 1) / each, most_blocks(gpu, most));
    if (shape->blocks == 0)
        shape->blocks = 1;
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

static void shape_sums(const struct tw_gpu *gpu, const struct tw_call *call, uint64_t bytes,
                       struct tw_gpu_shape *shape)
{
    const bool all = call->info.coll == TW_COLL_ALL_REDUCE;

    if (pushes(gpu, call)) {
        shape->kernel = TW_GK_PUSH_ALL;
        shape_blocks(gpu, bytes, RING_BLOCK_BYTES, RING_BLOCKS_MOST, shape);
    } else if (all_reach(gpu, call)) {
        shape->kernel = all ? TW_GK_DIRECT_ALL : TW_GK_DIRECT_SCATTER;
        shape_blocks(gpu, all ? bytes / (uint64_t)gpu->comm->size : bytes, DIRECT_BLOCK_BYTES,
                     DIRECT_BLOCKS_MOST, shape);
    } else {
        shape->kernel = all ? TW_GK_RING_ALL : TW_GK_RING_SCATTER;
        shape_blocks(gpu, bytes, RING_BLOCK_BYTES, RING_BLOCKS_MOST, shape);
    }
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

    const bool reduces = tw_coll_rule(info->coll)->reduces;
    shape->promised = false;
    if (tw_gpu_plan_forced(gpu, call)) {
        shape->kernel = TW_GK_PLAN;
        shape->threads = TW_GK_THREADS_MOST;
        shape->blocks = most_blocks(gpu, PLAN_BLOCKS_MOST);
    } else if (tw_gpu_varies(info->coll)) {
        shape_pairs(gpu, reduces, shape);
    } else if (bytes <= gpu->base.layout.line_each / 2) {
        shape->kernel = reduces ? TW_GK_LINE_REDUCE : TW_GK_LINE_MOVE;
        shape_lines(gpu, bytes, shape);
    } else if (reduces) {
        shape_sums(gpu, call, bytes, shape);
    } else if (tw_gpu_copy_promised(gpu, call)) {
        tw_gpu_copy_shape(true, shape);
    } else {
        shape->kernel = TW_GK_RING_MOVE;
        shape_blocks(gpu, bytes, RING_BLOCK_BYTES, DIRECT_BLOCKS_MOST, shape);
    }
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

const char *tw_gpu_algo_name(const struct tw_gpu_shape *shape) { return algo_names[shape->kernel]; }

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
        promised ? tw_gpu_reg_symmetric(gpu, call->out, bytes) : (uint64_t)(uintptr_t)call->out;
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
