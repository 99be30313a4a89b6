/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how many elements fit into slots and scratch, how a call is cut to fit.
 * Never knows: addresses, this rank. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "device/exec_state.h"

#define DEPTH_LEAST 2
#define SMALL_BYTES 4096 /* cells up to this go in one slice: latency rules */
#define SLICE_BYTES_MOST                                                                           \
    (1 << 20)        /* where nothing else bounds a slice: progress returns in time                \
                      */
#define WIDE_BYTES 4 /* of an unrounded partial of a narrow float */

uint32_t tw_exec_depth(const struct tw_plan *plan)
{
    return plan->depth > DEPTH_LEAST ? plan->depth : DEPTH_LEAST;
}

bool tw_exec_has_pairs(const struct tw_plan *plan)
{
    return tw_coll_rule((enum tw_coll)plan->coll)->some;
}

static size_t ceil_div(size_t a, size_t b) { return a / b + (a % b != 0); }

size_t tw_exec_room_bytes(const struct tw_exec_shape *shape, size_t elem_bytes)
{
    return ceil_div(shape->slice_elems * shape->slices * elem_bytes, TW_LINE_BYTES) * TW_LINE_BYTES;
}

/* Most elements of a slice that slots and scratch have room for, whole lines if it is at least one;
 * 0: none. */
static size_t slice_limit(const struct tw_plan *plan, uint32_t slices, size_t type_bytes,
                          size_t fifo_bytes, size_t scratch_bytes)
{
    const size_t wide_bytes = type_bytes > WIDE_BYTES ? type_bytes : WIDE_BYTES;
    const size_t line_elems = TW_LINE_BYTES / type_bytes;
    size_t limit = SLICE_BYTES_MOST / type_bytes;

    if (plan->nfifos > 0) {
        const size_t message_bytes = plan->wide_cells > 0 ? wide_bytes : type_bytes;
        const size_t slot = tw_fifo_slot_bytes(fifo_bytes, plan->nfifos, tw_exec_depth(plan)) /
                            (message_bytes * tw_plan_widest(plan));

        limit = slot < limit ? slot : limit;
    }
    if (plan->scratch_cells > 0 || plan->wide_cells > 0) {
        const size_t half = scratch_bytes / plan->parity / TW_LINE_BYTES * TW_LINE_BYTES;
        /* a wide cell's room in lines is at most wide_bytes / type_bytes times a narrow one's */
        const size_t rooms = plan->scratch_cells + plan->wide_cells * (wide_bytes / type_bytes);
        const size_t room = half / rooms / TW_LINE_BYTES * TW_LINE_BYTES;
        const size_t elems = room / type_bytes / slices;

        limit = elems < limit ? elems : limit;
    }
    return limit >= line_elems ? limit / line_elems * line_elems : limit;
}

void tw_exec_limits_find(const struct tw_plan *plan, size_t type_bytes, size_t fifo_bytes,
                         size_t scratch_bytes, struct tw_exec_limits *limits)
{
    const struct tw_exec_limits_key key = {
        plan->nfifos, tw_exec_depth(plan),  tw_plan_widest(plan),
        plan->slices, plan->scratch_cells,  plan->wide_cells,
        plan->parity, (uint32_t)type_bytes, plan->caps & TW_CAP_PUT_SCRATCH};

    if (memcmp(&key, &limits->key, sizeof(key)) == 0) {
        return;
    }
    limits->key = key;
    limits->whole = slice_limit(plan, 1, type_bytes, fifo_bytes, scratch_bytes);
    limits->sliced = slice_limit(plan, plan->slices, type_bytes, fifo_bytes, scratch_bytes);
}

enum twill_status tw_exec_cut(const struct tw_plan *plan, const struct tw_exec_limits *limits,
                              size_t cell_elems, struct tw_exec_shape *shape)
{
    assert(limits->key.type_bytes > 0); /* limits were found for a type */
    const size_t type_bytes = limits->key.type_bytes;
    const size_t line_elems = type_bytes > 0 ? TW_LINE_BYTES / type_bytes : 1; /* never 0 */
    const bool pairs = tw_exec_has_pairs(plan);
    const bool small = cell_elems <= limits->whole && cell_elems * type_bytes <= SMALL_BYTES;
    const bool cut = plan->slices > 1 && limits->sliced > 0 && (pairs || !small);
    const size_t limit = cut ? limits->sliced : limits->whole;
    size_t total, slice;

    *shape = (struct tw_exec_shape){cell_elems > 0 ? cell_elems : 1, cut ? plan->slices : 1, 1};
    if (limit == 0) {
        return tw_fail(TWILL_ERR_NOMEM,
                       "plan %s: fifos or scratch have no room for one element of each of its "
                       "cells (%u fifos of %u slots for %u cells, %u and %u cells of scratch)",
                       plan->name, plan->nfifos, tw_exec_depth(plan), tw_plan_widest(plan),
                       plan->scratch_cells, plan->wide_cells);
    }
    if (small && !pairs) {
        return TWILL_OK;
    }
    total = ceil_div(ceil_div(cell_elems, limit), shape->slices) * shape->slices;
    slice = ceil_div(cell_elems, total > 0 ? total : 1);
    slice = ceil_div(slice, line_elems) * line_elems;
    /* the two ends of a pair do not know each other's other counts: the same slices for all */
    slice = pairs || slice > limit ? limit : slice;
    total = ceil_div(cell_elems, slice);
    shape->slice_elems = slice;
    shape->loops = total == 0 ? 1 : ceil_div(total, shape->slices);
    return TWILL_OK;
}

enum twill_status tw_exec_shape(const struct tw_plan *plan, size_t count, size_t type_bytes,
                                size_t fifo_bytes, size_t scratch_bytes,
                                struct tw_exec_shape *shape)
{
    struct tw_exec_limits limits = {.key = {0}};
    size_t most = 0;

    if (type_bytes == 0 || type_bytes > TW_LINE_BYTES) {
        return tw_fail(TWILL_ERR_INVALID, "elements of %zu bytes", type_bytes);
    }
    for (uint32_t p = 0; p < plan->nparts; p++) {
        const bool shard = plan->parts[p].kind == TW_PART_SHARD;
        const size_t cells = (size_t)plan->parts[p].per * (shard ? (size_t)plan->nranks : 1);
        const size_t elems = ceil_div(count, cells);

        most = elems > most ? elems : most;
    }
    tw_exec_limits_find(plan, type_bytes, fifo_bytes, scratch_bytes, &limits);
    return tw_exec_cut(plan, &limits, most, shape);
}

bool tw_exec_fits(const struct tw_plan *plan, size_t type_bytes, size_t fifo_bytes,
                  size_t scratch_bytes)
{
    struct tw_exec_limits limits = {.key = {0}};

    tw_exec_limits_find(plan, type_bytes, fifo_bytes, scratch_bytes, &limits);
    return limits.whole > 0;
}
