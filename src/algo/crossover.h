/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which algorithm is the cheapest for which size, by the cost model.
 * Never knows: communicators, parameters, who asks. */
#ifndef TW_ALGO_CROSSOVER_H
#define TW_ALGO_CROSSOVER_H

#include "algo/algo.h"
#include "plan/cost.h"

/*
 * Every algorithm of the registry that serves the collective is priced at each power of two, but
 * for those that were twice as dear at a smaller size as the best is now; the cheapest wins, the
 * first of the registry among equals. Where the winner changes the border is
 * looked for in eighths of the smaller size. Sizes are bytes of the larger of the call's buffers,
 * as in tw_algo_choose.
 *
 * Equal arguments give the equal result on every rank and machine: prices are integers.
 */
#define TW_CROSSOVER_CLASSES 41 /* powers of two from 1 byte to 1 TiB */
#define TW_CROSSOVER_ROWS 64

struct tw_crossover_args {
    enum tw_coll coll;
    int nranks;
    int root;
    uint32_t channels;
    uint32_t caps; /* tw_plan_cap that the links offer; algorithms that need more are left out */
    bool deterministic;  /* only algorithms that do it in the defined order */
    uint32_t type_bytes; /* of an element; sizes are rounded up to whole elements a group */
    uint64_t max_bytes;  /* priced up to here; beyond it the last winner holds. 1 to 1 TiB */
    const struct tw_cost_net *net;
    const struct tw_cost_table *table;
    /**
     * How the executor cuts a call. An error leaves the plan out at that size.
     * NULL: whole cells in one slice.
     */
    enum twill_status (*shape)(const void *ctx, const struct tw_plan *plan, uint64_t count,
                               uint32_t type_bytes, struct tw_cost_shape *shape);
    const void *shape_ctx;
    /** Leave an algorithm out; NULL: none. Must answer alike on all ranks. */
    bool (*skip)(const void *ctx, const struct tw_algo *algo);
    const void *skip_ctx;
};

struct tw_crossover_row {
    uint64_t bytes; /* from here to the next row */
    const struct tw_algo *algo;
};

struct tw_crossover {
    enum tw_coll coll;
    int nranks;
    uint32_t nrows; /* at least 1; the first is for 0 bytes */
    struct tw_crossover_row rows[TW_CROSSOVER_ROWS];
    uint32_t nclasses;
    uint64_t time_ps[TW_CROSSOVER_CLASSES]; /* of the winner at 1, 2, 4, ... bytes */
};

/**
 * Generates the plans of all ranks: for tens of ranks milliseconds an algorithm.
 * @param out  untouched on error
 * @return TWILL_OK; TWILL_ERR_UNSUPPORTED no algorithm can be used; TWILL_ERR_INVALID;
 * TWILL_ERR_NOMEM
 */
enum twill_status tw_crossover_make(const struct tw_crossover_args *args, struct tw_crossover *out);

/** The algorithm for a size. */
const struct tw_algo *tw_crossover_algo(const struct tw_crossover *crossover, uint64_t bytes);
/** What it takes by the model: prices at powers of two, a straight line between two of them, and
 * beyond the last in proportion. */
uint64_t tw_crossover_time_ps(const struct tw_crossover *crossover, uint64_t bytes);

/** Equal on ranks whose tables say the same. Never 0. */
uint64_t tw_crossover_hash(const struct tw_crossover *crossover);

/** The count that a call binds to a group, so that the larger of its buffers has about `bytes`. */
uint64_t tw_crossover_count(enum tw_coll coll, int nranks, uint64_t bytes, uint32_t type_bytes);

#endif
