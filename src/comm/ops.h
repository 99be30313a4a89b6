/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how calls of a communicator wait, run and end; which plan each runs.
 * Never knows: argument checking of the C API, how peers are connected. */
#ifndef TW_COMM_OPS_H
#define TW_COMM_OPS_H

#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "comm/comm.h"

/*
 * An op is one call. An item is what a communicator does at a time: one collective, or a batch of
 * sends and receives. A communicator's items run one after another, in the caller's thread when
 * nothing is queued and no stream is involved, else in the progress thread. Whoever runs an item
 * owns the communicator's execs meanwhile.
 */
struct tw_op {
    struct tw_call_info info;
    const void *in;           /* the user's, borrowed until done */
    void *out;                /* the user's, borrowed until done */
    struct tw_scalar scalar;  /* of premul_sum */
    struct tw_stream *stream; /* borrowed; NULL: somebody waits for the item */
    uint64_t ticket; /* of the group or call: ops with one ticket do not wait for another */
    struct tw_op *stream_next, *lane_next;
    struct tw_mark *mark; /* a point in the stream and no call (event.c); NULL: a call */
    bool is_wait;         /* leaves the stream once the mark is reached; else it is the mark */
    struct tw_exec *exec; /* borrowed from ops; NULL: not started */
    uint64_t number;
    bool headless; /* peers put into scratch of this rank: nothing says which call that was for */
    struct tw_record_wait wait;
};

struct tw_item {
    struct twill_comm *comm;
    struct tw_item *next;       /* queue of the communicator */
    struct tw_item *next_round; /* the progress thread's own */
    struct tw_op *ops;          /* owned with the item's memory, or the caller's */
    uint32_t nops;
    struct tw_op *joint; /* behind ops: the one call that they are made into (fuse.c); NULL: none */
    bool batch;          /* sends and receives */
    bool waited;         /* somebody waits for `done` and frees; else the progress thread frees */
    bool started;        /* by its runner */
    bool done;           /* under the progress lock, or the runner's own */
    enum twill_status status;       /* negative before it has started: it ends with that at once */
    char text[TW_ERROR_TEXT_BYTES]; /* sentence of a negative status */
};

/* Bound on an exec's scratch, its own or peers': the same on all ranks, since the shape of a call
 * depends on it. */
#define TW_OPS_SCRATCH_BYTES ((size_t)256 << 10)
/** Of plans with these caps: less where peers write it, as that is taken from a staging that may be
 * short. */
static inline size_t tw_ops_scratch_bytes(const struct twill_comm *comm, uint32_t caps)
{
    return caps & TW_CAP_PUT_SCRATCH ? tw_chan_scratch_bytes(comm->chan) : TW_OPS_SCRATCH_BYTES;
}

/* Words that peers may raise, for each rank, where plans may use signals at all. */
#define TW_OPS_SIGNALS 64

/* One direction to one peer. */
struct tw_p2p_lane {
    struct tw_exec *exec;        /* owned; made at first use */
    struct tw_plan *plan;        /* owned */
    struct tw_op *head, *tail;   /* ops of the running batch that are not done */
    struct tw_p2p_lane *next_on; /* lanes of the running batch with work */
};

struct tw_ops {
    struct twill_comm *comm;   /* borrowed: the owner */
    struct tw_plans *plans;    /* owned */
    struct tw_exec *exec;      /* owned; collectives */
    struct tw_p2p_lane *lanes; /* owned, [2 * size]: peer's send, receive */
    struct tw_p2p_lane *on;    /* lanes of the running batch with work */
    char *fused;               /* owned: [TW_FUSE_BYTES]; NULL before the first fused call */
    uint64_t signal_base;
    uint32_t scratch_calls; /* calls so far that use peers' scratch */

    /* under the lock of the progress engine */
    struct tw_item *head, *tail; /* queue */
    struct tw_ops *next_active;  /* communicators with a queue */
    uint32_t pending;            /* atomic: items in the queue, the running one included */

    size_t group_slot; /* while the closing group of the claiming thread holds the communicator */
};

/* ---- one thread at a time (ops.c) ------------------------------------------------------------ */

/** Names the calling thread; never 0. */
uintptr_t tw_ops_self(void);

void tw_op_init(struct tw_op *op, const struct tw_call *call);
/** Waited for, not started. */
void tw_item_init(struct tw_item *item, struct twill_comm *comm, bool batch, struct tw_op *ops,
                  uint32_t nops);
/** An item with room for nops ops behind it, to be initialised; free() frees. NULL: no memory. */
struct tw_item *tw_item_create(struct twill_comm *comm, bool batch, uint32_t nops);
/** An item of one call, with a copy of its counts; free() frees. NULL: no memory. */
struct tw_item *tw_item_create_call(const struct tw_call *call, bool batch);
/** Words that the counts of a v-variant take, all arrays together. */
size_t tw_call_words(const struct tw_call *call);
/** Move the counts into words[tw_call_words], which outlive the user's. */
void tw_counts_copy(struct tw_call_counts *counts, int size, size_t *words);

/* ---- running (run.c) --------------------------------------------------------------------------
 */

/** Run an item to its end in the calling thread, which waits by degrees. No allocation, system call
 * or lock while it waits less than the backoff's spinning. The communicator's queue is empty. */
enum twill_status tw_item_run(struct tw_item *item);
/**
 * Start the item if need be and move it on. Never waits.
 * @param now_ns    tw_now_ns()
 * @param advanced  set to true when something moved; left alone otherwise
 * @return INPROGRESS; OK or negative: over, item->status and text are set
 */
enum twill_status tw_item_step(struct tw_item *item, uint64_t now_ns, bool *advanced);
/** Sends and receives of the item with this rank itself pair up; ERR_USAGE names what does not. Not
 * looked at once the communicator has failed: calls may be missing that were refused for it, and
 * the item ends with that when it starts. */
enum twill_status tw_batch_check(const struct tw_item *item);

/* ---- small all_reduces of a group in one (fuse.c) ----------------------------------------------
 */

/* What is small, and how much one pass takes: the same on all ranks. */
#define TW_FUSE_CALL_BYTES ((size_t)16 << 10)
#define TW_FUSE_BYTES ((size_t)256 << 10)
#define TW_FUSE_CALLS 64

/**
 * How many of the calls, from the first on, run as one: they are small all_reduces of the first
 * one's communicator, type and operation that follow each other among its collectives. Depends on
 * nothing but what is equal on all ranks.
 */
size_t tw_fuse_count(const struct tw_call *calls, size_t ncalls);
/** In one call there is no before and after: ERR_USAGE names the first two of the item's ops of
 * which one reads or writes what the other writes. */
enum twill_status tw_fuse_check(const struct tw_item *item);
/** The item's checked ops become one call. */
enum twill_status tw_fuse_prepare(struct tw_item *item);
/** Runs in place of the joint call's start and end. */
void tw_fuse_pack(const struct tw_item *item);
void tw_fuse_unpack(const struct tw_item *item);

/* ---- plans (plans.c) --------------------------------------------------------------------------
 */

/** Reads TWILL_ALGO, TWILL_PROTO, TWILL_CHECK_PLANS, TWILL_PLAN_FILE and TWILL_COST_FILE;
 * ERR_INVALID names what is wrong there. */
enum twill_status tw_plans_create(struct twill_comm *comm, struct tw_plans **plans);
void tw_plans_destroy(struct tw_plans *plans);
/** Do the parameters ask for plans that write into peers' scratch? They get scratch from staging
 * then. */
bool tw_plans_want_scratch(const struct tw_params *params);
/** Do the parameters say which plan a call of coll and root is to have? Equal on all ranks. */
bool tw_plans_force(const struct tw_plans *plans, const struct tw_call_info *info);
/** Do they for any call? */
bool tw_plans_force_some(const struct tw_plans *plans);
/**
 * The plan of a call, made at its first use.
 *
 * @param info       coll, root, count and type decide; equal on all ranks
 * @param algo_hash  out: names the plan and its parameters, equal on ranks that run the same
 */
enum twill_status tw_plans_get(struct tw_plans *plans, const struct tw_call_info *info,
                               const struct tw_plan **plan, uint64_t *algo_hash);
/** Plans of algorithms made from now on have their ranks in this order, where that can be and the
 * sums stay what they are. order: [size], equal on all ranks. Before the first plan. */
void tw_plans_order_set(struct tw_plans *plans, const int *order);
/** May calls of coll go around the ring though no parameter says so? Equal on all ranks. */
bool tw_plans_rings(const struct tw_plans *plans, enum tw_coll coll);
/** As tw_plans_get, of a call that does, where tw_plans_rings. */
enum twill_status tw_plans_get_ring(struct tw_plans *plans, const struct tw_call_info *info,
                                    uint32_t channels, const struct tw_plan **plan,
                                    uint64_t *algo_hash);
/**
 * What a collective would take by the cost model, if every rank entered it at once.
 * @return TWILL_OK; TWILL_ERR_UNSUPPORTED too many ranks, or what the links cannot carry. Threads:
 * any
 */
enum twill_status tw_plans_price(const struct tw_plans *plans, const struct tw_call_info *info,
                                 uint64_t *time_ps);
/** What choices go by; the same on all ranks of a ready communicator. Borrowed from plans. */
const struct tw_cost_table *tw_plans_costs(const struct tw_plans *plans);
/** What this rank's choices rest on. */
void tw_plans_stamp(const struct tw_plans *plans, struct tw_facts_stamp *stamp);
/** Plan of one send or receive; owned by the caller. Its hash is TW_P2P_PLAN_HASH. */
#define TW_P2P_PLAN_HASH 1u
enum twill_status tw_plans_p2p(const struct twill_comm *comm, int peer, bool is_send,
                               struct tw_plan **plan);

/* ---- the progress engine and streams (progress.c, stream.c) -------------------------------------
 */

#define TW_STREAM_MAGIC 0x747773747265616dull

struct tw_stream {
    uint64_t magic;                /* TW_STREAM_MAGIC while alive */
    struct tw_proc *proc;          /* referenced from the first call on; NULL before */
    struct tw_op *head;            /* calls that are not done, in order; under the engine's lock */
    struct tw_op *tail;            /* valid while head is not NULL */
    bool waits;                    /* the head waits for a mark; under the engine's lock */
    struct tw_stream *waiter_next; /* of those that wait for one mark */
    enum twill_status status; /* first error that was not reported yet; under the engine's lock */
    char text[TW_ERROR_TEXT_BYTES];
};

/** The stream is about to get its first call: it holds on to the process state. */
enum twill_status tw_stream_attach(struct tw_stream *stream);

/** What checked calls would take as one group (simulate.c). @return TWILL_OK;
 * TWILL_ERR_UNSUPPORTED; TWILL_ERR_NOMEM */
enum twill_status tw_simulate(const struct tw_call *calls, size_t ncalls, uint64_t *time_ps);

/** Note a call in the calling thread's open group. */
enum twill_status tw_group_add_call(const struct tw_call *call);

/**
 * Append items to their communicators' queues and their ops to the streams, all at once.
 * @return TWILL_OK; ERR_SYSTEM no thread could be started: nothing was queued
 */
enum twill_status tw_progress_submit(struct tw_progress *progress, struct tw_item *const *items,
                                     size_t count);
/** Sleep until a waited item is done. */
void tw_progress_wait(struct tw_progress *progress, const struct tw_item *item);
/** Sleep until nothing of ops is queued or, with `failure_ends`, its communicator has failed. */
void tw_progress_drain(struct tw_progress *progress, const struct tw_ops *ops, bool failure_ends);
/* What events are made of. */
void tw_progress_lock(struct tw_progress *progress);
/** @param moved  whoever sleeps looks again */
void tw_progress_unlock(struct tw_progress *progress, bool moved);
/** Locked: sleep until something has happened. */
void tw_progress_sleep(struct tw_progress *progress);
/** Locked: append a mark or a wait (owned from now on) to a stream that is attached. */
void tw_progress_mark(struct tw_progress *progress, struct tw_stream *stream, struct tw_op *op);
/** Locked: marks at the stream's head are reached, and waits for them leave other streams.
 * @return something was (event.c) */
bool tw_stream_settle(struct tw_stream *stream);
/** Of tw_stream_await. */
enum twill_status tw_progress_await(struct tw_progress *progress, const struct tw_stream *stream,
                                    const struct twill_comm *comm);
/** Everybody who sleeps looks again. */
void tw_progress_wake(struct tw_progress *progress);
/** Wait (or look) whether a stream is empty, and take its error. */
enum twill_status tw_progress_stream(struct tw_progress *progress, struct tw_stream *stream,
                                     bool wait);

#endif
