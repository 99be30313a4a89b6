/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which algorithm is the cheapest for a size, by the cost model.
 * Never knows: communicators, parameters, who asks. */
#ifndef TW_ALGO_CROSSOVER_H
#define TW_ALGO_CROSSOVER_H

#include "algo/algo.h"
#include "plan/cost.h"

struct tw_crossover_args {
    enum tw_coll coll;
    int nranks;
    int root;
    uint32_t channels;
    uint32_t caps; /* tw_plan_cap that the links offer; algorithms that need more are left out */
    uint32_t type_bytes; /* of an element; sizes are rounded up to whole elements a group */
    uint64_t bytes;      /* the size: of the larger of the call's buffers. 1 to 1 TiB */
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

/**
 * Price every algorithm of the registry that serves the collective; the cheapest wins, the first of
 * the registry among equals. Equal arguments give the equal result on every rank and machine:
 * prices are integers. All are logged (algo=debug). Generates the plans of all ranks: for tens of
 * ranks milliseconds an algorithm.
 *
 * @param algo, time_ps  out; untouched on error
 * @return TWILL_OK; TWILL_ERR_UNSUPPORTED no algorithm can be used, or `shape` leaves all out;
 * TWILL_ERR_INVALID; TWILL_ERR_NOMEM
 */
enum twill_status tw_crossover_pick(const struct tw_crossover_args *args,
                                    const struct tw_algo **algo, uint64_t *time_ps);

/** The count that a call binds to a group, so that the larger of its buffers has about `bytes`. */
uint64_t tw_crossover_count(enum tw_coll coll, int nranks, uint64_t bytes, uint32_t type_bytes);

#endif
