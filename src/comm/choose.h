/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which algorithm is the cheapest for a call, by facts that all ranks share.
 * Never knows: the communicator, which plans are made and kept. */
#ifndef TW_COMM_CHOOSE_H
#define TW_COMM_CHOOSE_H

#include "algo/crossover.h"
#include "comm/facts.h"

/* Ranks up to which algorithms are priced; beyond it pricing would take longer than it saves, and
 * tw_algo_choose decides. */
#define TW_CHOOSE_RANKS_MOST 32

/* All that a choice depends on. Equal on all ranks of a communicator. */
struct tw_choose_args {
    struct tw_facts facts;
    struct tw_cost_table table;
    uint64_t allowed[TW_COLL_COUNT]; /* bit i: algorithm i of the registry may be chosen */
    uint64_t fifo_bytes, scratch_bytes, signal_count; /* that the links have */
    uint64_t own_scratch_bytes;                       /* of plans that do not write into peers' */
    uint32_t nranks, channels;
    uint32_t caps;    /* tw_plan_cap that the links offer */
    uint32_t ordered; /* 1: reductions in the defined order only. The struct is compared as bytes */
};

/* Costs of the host that was measured, then those of the file.
 * @param file  TWILL_COST_FILE; "": none */
enum twill_status tw_choose_table(const struct tw_facts *facts, const char *file,
                                  struct tw_cost_table *table);

/* The choices of communicators with equal args: those of a process share one. */
struct tw_choose;
/* All of a process. */
struct tw_chooses;

enum twill_status tw_chooses_create(struct tw_chooses **all);
/** Nobody holds one any more. NULL: nothing */
void tw_chooses_destroy(struct tw_chooses *all);

/** @return TWILL_OK: *choose is referenced; TWILL_ERR_NOMEM */
enum twill_status tw_choose_get(struct tw_chooses *all, const struct tw_choose_args *args,
                                struct tw_choose **choose);
void tw_choose_put(struct tw_choose *choose); /* NULL: nothing */
/** Of its args; borrowed from it. */
const struct tw_cost_table *tw_choose_costs(const struct tw_choose *choose);

/* Sizes between a power of two and one and a half times it are of one class, and so are those from
 * there to the next power. */
#define TW_CHOOSE_CLASSES 82
uint32_t tw_choose_class(uint64_t bytes);
/* Calls for which each rank gives or gets so many bytes are small. */
#define TW_CHOOSE_SMALL_BYTES 4096
/** The last class of a collective's small calls. */
uint32_t tw_choose_small(int nranks, enum tw_coll coll);

/**
 * The algorithm for calls of a size class: the cheapest at its least size of those that are allowed
 * and fit the links. Priced when first asked for, which takes from 0.1 ms (2 ranks) to tens of ms
 * (tens of ranks), small classes all together: those between two that chose alike choose so too,
 * without a price of their own. Later answers take a lock.
 *
 * @param size_class  tw_choose_class of the bytes of the larger of the call's buffers
 * @return TWILL_OK; TWILL_ERR_UNSUPPORTED none is allowed, or none fits
 */
enum twill_status tw_choose_algo(struct tw_choose *choose, enum tw_coll coll, uint32_t size_class,
                                 const struct tw_algo **algo);

/**
 * What a call of a plan takes by the model.
 * @param plan   of all ranks
 * @param count  bound to each group
 * @return TWILL_OK; TWILL_ERR_UNSUPPORTED it does not fit the links, or there are too many ranks
 */
enum twill_status tw_choose_price(struct tw_choose *choose, const struct tw_plan *plan,
                                  uint64_t count, uint32_t type_bytes, uint64_t *time_ps);

/** The same of one message between two ranks. */
enum twill_status tw_choose_price_p2p(struct tw_choose *choose, uint64_t count, uint32_t type_bytes,
                                      uint64_t *time_ps);

#endif
