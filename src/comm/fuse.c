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

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return tw_overlap((uintptr_t)a, a_bytes, (uintptr_t)b, b_bytes);
}

enum twill_status tw_fuse_check(const struct tw_item *item)
{
    for (uint32_t i = 0; i < item->nops; i++) {
        const struct tw_op *a = &item->ops[i];
        size_t a_bytes = call_bytes(&a->info);
        for (uint32_t j = 0; j < item->nops; j++) {
            const struct tw_op *b = &item->ops[j];
            size_t b_bytes = call_bytes(&b->info);
            if (i == j)
                continue;
            if (overlap(a->out, a_bytes, b->in, b_bytes) ||
                overlap(a->out, a_bytes, b->out, b_bytes))
                return tw_fail(TWILL_ERR_USAGE,
                               "group: of rank %d's %u small all_reduces that run as one, number "
                               "%u writes what number %u %s: calls of a group are simultaneous",
                               item->comm->rank, item->nops, i, j,
                               overlap(a->out, a_bytes, b->in, b_bytes) ? "reads" : "writes");
        }
    }
    return TWILL_OK;
}

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
