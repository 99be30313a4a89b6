/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a communicator remembers of plans. Never knows: operations. */
#ifndef TW_COMM_PLANS_H
#define TW_COMM_PLANS_H

#include "algo/algo.h"
#include "comm/ops.h"

/* A plan that is ready for use. */
struct tw_plans_entry {
    struct tw_plans_entry *next;
    const struct tw_algo *algo;
    int root;
    struct tw_plan *plan; /* owned */
    uint64_t hash;
    bool roomy; /* the links are large enough for every type */
};

struct tw_plans {
    struct twill_comm *comm; /* borrowed */
    uint32_t channels;
    bool check;
    bool ordered; /* reductions in the defined order only */
    const struct tw_algo *forced[TW_COLL_COUNT];   /* by TWILL_ALGO; NULL: chosen */
    struct tw_plans_entry *entries[TW_COLL_COUNT]; /* owned */
    struct tw_plans_entry file;                    /* plan NULL: none */
};

/** TWILL_ALGO's grammar: a name for all collectives, or coll=name,coll=name. ERR_INVALID lists what
 * is known. */
enum twill_status tw_plans_read_algo(struct tw_plans *plans, const char *value);
/** Load and prove the plan of a text file into plans->file. */
enum twill_status tw_plans_read_file(struct tw_plans *plans, const char *path);
/** Run the checker on a whole plan. @param what  whose plan it is, for the sentence */
enum twill_status tw_plans_prove(const struct tw_plan *plan, const char *what);

#endif
