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
    uint32_t param, channels;
    int root;
    struct tw_plan *plan; /* owned; of this rank, or of all */
    uint64_t hash;
    bool roomy; /* the links are large enough for every type */
};

/* A plan of TWILL_PLAN_FILE. */
struct tw_plans_file {
    struct tw_plan *plan; /* owned; of all ranks, proven */
    uint64_t hash;        /* of its text */
};
#define TW_PLANS_ORDER_MOST 64 /* ranks that are put in another order than their own */
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
    /* the ranks around the ring: what a plan's rank i does, rank_of[i] does */
    bool moved; /* they are not in their own order */
    int rank_of[TW_PLANS_ORDER_MOST];
};

/** TWILL_ALGO's grammar (docs/choice.md). ERR_INVALID lists what is known. */
enum twill_status tw_plans_read_algo(struct tw_plans *plans, const char *value);
/** TWILL_PROTO's: the same with protocols. */
enum twill_status tw_plans_read_proto(const char *value);
/** Load and prove the plans of text files into plans->files. @param paths  ':' between */
enum twill_status tw_plans_read_files(struct tw_plans *plans, const char *paths);
/** Run the checker on a whole plan. @param what  whose plan it is, for the sentence */
enum twill_status tw_plans_prove(const struct tw_plan *plan, const char *what);

/* ---- making them (plans_make.c) ----------------------------------------------------------------
 */

/** Generates the plan of entry->algo, param, channels and root, its ranks in the order that was
 * set, and makes sure, before any rank starts, that the links offer what it needs. Fills plan, hash
 * and roomy. */
enum twill_status tw_plans_make(const struct tw_plans *plans, enum tw_coll coll,
                                struct tw_plans_entry *entry);
/** What the plan needs that the links of this communicator lack: every rank finds the same. */
enum twill_status tw_plans_caps_check(const struct twill_comm *comm, const struct tw_plan *plan);
/** Slots and scratch hold an element of each cell of a message: then they do for any count. */
enum twill_status tw_plans_room_check(const struct twill_comm *comm, const struct tw_plan *plan,
                                      twill_type_t type);

#endif
