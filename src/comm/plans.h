/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a communicator remembers of plans. Never knows: operations. */
#ifndef TW_COMM_PLANS_H
#define TW_COMM_PLANS_H

#include "algo/algo.h"
#include "comm/choose.h"
#include "comm/ops.h"

/* A plan that is ready for use. */
struct tw_plans_entry {
    struct tw_plans_entry *next;
    const struct tw_algo *algo;
    uint32_t param;
    int root;
    struct tw_plan *plan; /* owned */
    uint64_t hash;
    bool roomy; /* the links are large enough for every type */
};

/* A plan of TWILL_PLAN_FILE. */
struct tw_plans_file {
    struct tw_plan *plan; /* owned; of all ranks, proven */
    uint64_t hash;        /* of its text */
};
#define TW_PLANS_FILES_MOST 16
#define TW_PLANS_FILE_BYTES_MOST ((size_t)64 << 20)

struct tw_plans {
    struct twill_comm *comm; /* borrowed */
    uint32_t channels;
    bool check;
    bool ordered;                                /* reductions in the defined order only */
    struct tw_choose *choose;                    /* referenced */
    uint64_t table_hash;                         /* of the costs that choose has */
    const struct tw_algo *forced[TW_COLL_COUNT]; /* by TWILL_ALGO; NULL: chosen */
    uint32_t forced_param[TW_COLL_COUNT];
    uint64_t left_out[TW_COLL_COUNT]; /* bit i: algorithm i is left out by TWILL_ALGO */
    /* [coll][class]: what choose said; NULL: not asked yet */
    const struct tw_algo *chosen[TW_COLL_COUNT][TW_CHOOSE_CLASSES];
    struct tw_plans_entry *entries[TW_COLL_COUNT]; /* owned */
    struct tw_plans_file files[TW_PLANS_FILES_MOST];
    uint32_t nfiles;
};

/** TWILL_ALGO's grammar (docs/choice.md). ERR_INVALID lists what is known. */
enum twill_status tw_plans_read_algo(struct tw_plans *plans, const char *value);
/** TWILL_PROTO's: the same with protocols. */
enum twill_status tw_plans_read_proto(const char *value);
/** Load and prove the plans of text files into plans->files. @param paths  ':' between */
enum twill_status tw_plans_read_files(struct tw_plans *plans, const char *paths);
/** Run the checker on a whole plan. @param what  whose plan it is, for the sentence */
enum twill_status tw_plans_prove(const struct tw_plan *plan, const char *what);

#endif
