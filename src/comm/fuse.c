/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how small all_reduces of a group become one. Never knows: who runs it, records. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "comm/ops.h"

/*
 * A small all_reduce costs what its messages cost, whatever they carry. So those that follow each
 * other in a group are packed behind each other, reduced in one call, and handed out again. All
 * ranks must do this alike, so nothing counts but the calls themselves: not where buffers lie, and
 * not which streams they are on. The joint call has a record of its own with a hash of the counts:
 * ranks that group differently are told so.
 */

/* ---- which? --------------------------------------------------------------------------------- */

static size_t call_bytes(const struct tw_call_info *info)
{
    size_t each = tw_type_bytes(info->type);
    return info->count > TW_FUSE_BYTES / each ? SIZE_MAX : info->count * each;
}

static bool is_small(const struct tw_call_info *info)
{
    return info->coll == TW_COLL_ALL_REDUCE && info->guise == TW_CALL_PLAIN && info->count &&
           info->op != TW_REDOP_PREMUL_SUM && call_bytes(info) <= TW_FUSE_CALL_BYTES;
}

size_t tw_fuse_count(const struct tw_call *calls, size_t ncalls)
{
    const struct tw_call_info *first = &calls[0].info;
    size_t count = 0, bytes = 0;
    if (!is_small(first))
        return 1;
    for (size_t i = 0; i < ncalls && count < TW_FUSE_CALLS; i++) {
        const struct tw_call_info *info = &calls[i].info;
        if (calls[i].comm != calls[0].comm || info->coll == TW_COLL_P2P)
            continue;
        if (!is_small(info) || info->type != first->type || info->op != first->op ||
            bytes + call_bytes(info) > TW_FUSE_BYTES)
            break;
        bytes += call_bytes(info);
        count++;
    }
    return count;
}

/* ---- may they? ------------------------------------------------------------------------------ */

static const char *out_start(const struct tw_op *op) { return op->out; }
static const char *out_end(const struct tw_op *op)
{
    return (const char *)op->out + call_bytes(&op->info);
}

/* The ops by the addresses of their outputs: those of an array come in this order. */
static void outs_sort(const struct tw_item *item, uint32_t sorted[TW_FUSE_CALLS])
{
    for (uint32_t i = 0; i < item->nops; i++) {
        uint32_t at = i;
        for (; at > 0 && out_start(&item->ops[sorted[at - 1]]) > out_start(&item->ops[i]); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = i;
    }
}

/* Outputs that are sorted and do not overlap.
 * @return the first in sorted that op `reader` reads, but for its own; nops: there is none */
static uint32_t out_read_by(const struct tw_item *item, const uint32_t *sorted, uint32_t reader)
{
    const struct tw_op *op = &item->ops[reader];
    const char *from = op->in, *to = from + call_bytes(&op->info);
    uint32_t low = 0, high = item->nops;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (out_end(&item->ops[sorted[middle]]) > from)
            high = middle;
        else
            low = middle + 1;
    }
    if (low < item->nops && sorted[low] == reader)
        low++;
    return low < item->nops && out_start(&item->ops[sorted[low]]) < to ? low : item->nops;
}

static enum twill_status refuse(const struct tw_item *item, uint32_t writer, uint32_t other,
                                const char *does)
{
    return tw_fail(TWILL_ERR_USAGE,
                   "group: of rank %d's %u small all_reduces that run as one, number %u writes "
                   "what number %u %s: calls of a group are simultaneous",
                   item->comm->rank, item->nops, writer, other, does);
}

enum twill_status tw_fuse_check(const struct tw_item *item)
{
    uint32_t sorted[TW_FUSE_CALLS];
    outs_sort(item, sorted);
    for (uint32_t s = 1; s < item->nops; s++) {
        uint32_t a = sorted[s - 1], b = sorted[s];
        if (out_end(&item->ops[a]) > out_start(&item->ops[b]))
            return refuse(item, a < b ? a : b, a < b ? b : a, "writes");
    }
    for (uint32_t i = 0; i < item->nops; i++) {
        uint32_t found = out_read_by(item, sorted, i);
        if (found < item->nops)
            return refuse(item, sorted[found], i, "reads");
    }
    return TWILL_OK;
}

/* ---- as one --------------------------------------------------------------------------------- */

enum twill_status tw_fuse_prepare(struct tw_item *item)
{
    struct tw_ops *ops = item->comm->ops;
    size_t counts[TW_FUSE_CALLS];
    if (!ops->fused)
        ops->fused = tw_alloc(TW_FUSE_BYTES);
    if (!ops->fused)
        return tw_fail(TWILL_ERR_NOMEM,
                       "group: rank %d has no memory to run %u small all_reduces as one",
                       item->comm->rank, item->nops);
    struct tw_call call = {
        .info = item->ops[0].info,
        .in = ops->fused,
        .out = ops->fused,
        .comm = item->comm,
    };
    call.info.guise = TW_CALL_FUSED;
    call.info.fused = item->nops;
    call.info.count = 0;
    for (uint32_t i = 0; i < item->nops; i++) {
        counts[i] = item->ops[i].info.count;
        call.info.count += counts[i];
    }
    call.info.spread = tw_record_spread(counts, (int)item->nops);
    item->joint = &item->ops[item->nops];
    tw_op_init(item->joint, &call);
    return TWILL_OK;
}

void tw_fuse_pack(const struct tw_item *item)
{
    char *at = item->comm->ops->fused;
    for (uint32_t i = 0; i < item->nops; i++) {
        size_t bytes = call_bytes(&item->ops[i].info);
        memcpy(at, item->ops[i].in, bytes);
        at += bytes;
    }
}

void tw_fuse_unpack(const struct tw_item *item)
{
    const char *at = item->comm->ops->fused;
    for (uint32_t i = 0; i < item->nops; i++) {
        size_t bytes = call_bytes(&item->ops[i].info);
        memcpy(item->ops[i].out, at, bytes);
        at += bytes;
    }
}
