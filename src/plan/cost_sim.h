/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the execution of a priced plan keeps: rates of this call, who is where, who waits.
 * Never knows: how a plan was linked. */
#ifndef TW_PLAN_COST_SIM_H
#define TW_PLAN_COST_SIM_H

#include "plan/cost_prog.h"

#define TW_COST_LOOPS 4 /* that are executed, and half of them to see what one more takes */

/* What a call pays an executor; per_kib are ps for 1024 bytes. */
struct tw_cost_exec_rate {
    uint64_t call, step, send, recv, signal, change; /* ps */
    uint64_t copy_kib, reduce_kib, warm_kib;
    uint64_t memory_share; /* of bytes that reach memory, of 1024 */
};
struct tw_cost_link_rate {
    uint64_t latency, post; /* ps */
    uint64_t kib;
    bool wire;
};

struct tw_cost_rates {
    struct tw_cost_exec_rate exec[TW_COST_EXEC_COUNT];
    struct tw_cost_link_rate link[TW_COST_LINK_COUNT];
    uint32_t slices, loops;        /* executed */
    uint64_t more_loops;           /* not executed */
    uint32_t units;                /* slices of all loops that share has room for */
    uint64_t *share;               /* owned, [nparts * loops * slices]: bytes * 1024 of a cell */
    uint32_t type_bytes, wide_num; /* wide_num: bytes of a partial */
    bool in_place;
};

/** Everything that depends on table and call alone. OK, or ERR_INVALID, ERR_NOMEM. */
enum twill_status tw_cost_rates_init(struct tw_cost_rates *rates, const struct tw_cost_prog *prog,
                                     const struct tw_cost_table *table,
                                     const struct tw_cost_call *call);
void tw_cost_rates_fini(struct tw_cost_rates *rates);

static inline uint64_t tw_cost_add(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}
/** ps for 1024 bytes at a rate; no less than 1 MB/s is believed. */
static inline uint64_t tw_cost_kib(uint64_t bytes_per_s)
{
    return 1024u * 1000000000000u / (bytes_per_s < 1000000u ? 1000000u : bytes_per_s);
}
/** Time of bytes at a rate. Both are bounded so that it fits (TW_COST_BYTES_MAX, 1 MB/s). */
static inline uint64_t tw_cost_bytes_ps(uint64_t bytes, uint64_t kib)
{
    return (bytes >> 10) * kib + ((bytes & 1023) * kib >> 10);
}

/* ---- lanes in time order (cost_heap.c) ------------------------------------------------------ */

struct tw_cost_event {
    uint64_t time;
    uint32_t lane; /* that could begin; from the number of lanes on: an engine that is free */
};
struct tw_cost_heap {
    struct tw_cost_event *events; /* owned, room for one a lane and one an engine */
    uint32_t count;
};
void tw_cost_heap_push(struct tw_cost_heap *heap, struct tw_cost_event event);
/** The earliest, of equal ones that of the lowest lane; the heap is not empty. */
struct tw_cost_event tw_cost_heap_pop(struct tw_cost_heap *heap);

/* ---- the execution (cost_run.c) ------------------------------------------------------------- */

/* Large plans are bound by memory: what a slice touches of a FIFO or a lane lies together. */
struct tw_cost_slot {
    uint64_t arrival, release;
};
struct tw_cost_queue {
    uint32_t pushed, popped;
    uint32_t reader, writer; /* lanes that wait; TW_COST_NONE: none */
    uint32_t edge;
    struct tw_cost_slot slots[]; /* [depth] */
};
/* When a step that others wait for ended a slice. */
struct tw_cost_mark {
    uint64_t time;
    uint32_t loop;   /* of time, + 1; 0: none yet */
    uint32_t waiter; /* first lane of a chain; TW_COST_NONE: none */
};
struct tw_cost_engine {
    uint64_t free, busy;
    int32_t rank;        /* that ran last; TW_NO_RANK: none yet */
    uint32_t head, tail; /* lanes that wait for it, in order; TW_COST_NONE: none */
    bool called;         /* its event is among the lanes' */
};
struct tw_cost_server {
    uint64_t free, busy, kib; /* kib 0: not rated by the net */
};
/* Why a lane is parked. */
enum tw_cost_wait {
    TW_COST_WAIT_STEP,
    TW_COST_WAIT_SIGNAL,
    TW_COST_WAIT_MESSAGE,
    TW_COST_WAIT_SLOT
};

struct tw_cost_walk {
    uint64_t ready;  /* end of its last slice */
    uint64_t put_at; /* its puts have arrived */
    uint32_t loop, step, slice;
    uint32_t next; /* in a chain or a queue */
    /* copies of the lane's own */
    uint32_t first_op, nops, engine, local;
    int32_t rank;
    uint8_t exec;
    uint8_t waits; /* enum tw_cost_wait, while it is parked */
};

struct tw_cost_sim {
    const struct tw_cost_prog *prog;
    struct tw_cost_rates rates;
    uint32_t depth;
    struct tw_cost_walk *lanes;
    struct tw_cost_engine *engines;
    struct tw_cost_server *resources;
    char *fifos; /* [nfifos] of fifo_bytes each */
    size_t fifo_bytes;
    uint64_t *sizes; /* [nfifos * depth]: of messages, where some step has no other size; or NULL */
    struct tw_cost_mark *marks; /* [nmarks * slices] */
    struct tw_cost_heap heap;
    uint64_t end; /* of the last lane so far */
    uint64_t slices;
};

static inline struct tw_cost_queue *tw_cost_queue_at(const struct tw_cost_sim *sim, uint32_t fifo)
{
    return (struct tw_cost_queue *)(void *)(sim->fifos + (size_t)fifo * sim->fifo_bytes);
}

/**
 * Execute, from all at zero: lanes and engines stand at the start of the call.
 * @return the first lane that waits for ever; TW_COST_NONE: all have ended
 */
uint32_t tw_cost_sim_run(struct tw_cost_sim *sim);

static inline uint64_t tw_cost_later(uint64_t a, uint64_t b) { return a > b ? a : b; }

#endif
