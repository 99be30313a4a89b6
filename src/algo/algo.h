/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: schedules, as pure functions of (collective, ranks, root, parameters) to a plan.
 * Never knows: bytes, transports, who runs the plan. */
#ifndef TW_ALGO_ALGO_H
#define TW_ALGO_ALGO_H

#include "plan/plan.h"

struct tw_algo_args {
    enum tw_coll coll;
    int nranks;
    int root;          /* 0 where there is none */
    int only_rank;     /* -1: all ranks' programs */
    uint32_t channels; /* at least 1; an algorithm may use fewer (never more) */
    uint32_t param;    /* the algorithm's own, tw_algo.param; 0: its default */
};

/* The one number that some algorithms take besides channels. */
struct tw_algo_param {
    const char *name; /* "radix", "aggregation", "group" */
    /** The values worth trying on nranks, in rising order; 0 past the last. Other values are legal,
     * too large ones mean the largest that makes a difference. */
    uint32_t (*value)(int nranks, size_t i);
};

/* One algorithm for some collectives. Its plans are right for every mix of ranks in place. */
struct tw_algo {
    const char *name;       /* as TWILL_ALGO takes it: "ring", "recursive_doubling", ... */
    uint32_t colls;         /* bit per enum tw_coll */
    uint32_t deterministic; /* those of colls that it does in the defined order */
    uint32_t caps;          /* tw_plan_cap that it needs */
    const struct tw_algo_param *param; /* what args.param is; NULL: not looked at */
    const char *source;                /* paper, section */
    enum twill_status (*generate)(const struct tw_algo_args *args, struct tw_plan **plan);
};

/** The registry, in a fixed order; NULL past the end. */
const struct tw_algo *tw_algo_at(size_t i);
/** By name; NULL if unknown or if it does not serve coll. */
const struct tw_algo *tw_algo_find(const char *name, enum tw_coll coll);

/**
 * The algorithm for a call when none is forced: depends on facts that all ranks share only.
 * @param bytes  of the larger of the call's buffers; not looked at where tw_coll_rule.some, since
 *               ranks would not agree
 */
const struct tw_algo *tw_algo_choose(enum tw_coll coll, int nranks, uint64_t bytes);
/** The same where results must not depend on the choice: reductions take a deterministic one. */
const struct tw_algo *tw_algo_choose_ordered(enum tw_coll coll, int nranks, uint64_t bytes);
/** Does algo serve coll, or in the defined order if `ordered` is set and coll reduces? */
bool tw_algo_serves(const struct tw_algo *algo, enum tw_coll coll, bool ordered);

#endif
