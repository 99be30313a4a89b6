/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the checker's state, shared by its files: linked programs, symbolic memory, clocks.
 * Never knows: bytes, transports, executors. */
#ifndef TW_PLAN_CHECK_H
#define TW_PLAN_CHECK_H

#include <stddef.h>

#include "plan/plan.h"

/* Threads: a struct tw_check belongs to one call of tw_plan_check. Functions that can fail return
 * false after tw_check_fault or tw_check_nomem, and the first failure sticks. */

#define TW_CHECK_NONE UINT32_MAX
#define TW_CHECK_LOOPS 2 /* most in a call */
#define TW_CHECK_DIMS_BLOCK 16
#define TW_CHECK_CALLS_MAX (TW_PLAN_PARITY_MAX + 2)

/* ---- memory (check_mem.c): blocks that go away together ------------------------------------- */

struct tw_check_block;
struct tw_check_arena {
    struct tw_check_block *blocks; /* owned, newest first */
    size_t total;                  /* bytes */
};
/** Zeroed; NULL without memory or past TW_CHECK_BYTES_MAX in all, so that an absurd plan costs an
 * error and not the machine. */
#define TW_CHECK_BYTES_MAX ((size_t)2 << 30)
void *tw_check_alloc(struct tw_check_arena *arena, size_t count, size_t size);
void tw_check_arena_fini(struct tw_check_arena *arena);

/* ---- expressions (check_expr.c): equal id, equal tree --------------------------------------- */

enum tw_expr_kind { TW_EXPR_UNDEF, TW_EXPR_LEAF, TW_EXPR_OP, TW_EXPR_FINAL, TW_EXPR_ROUND };

#define TW_EXPR_MIXED UINT32_MAX /* not a sum of one cell's inputs */

struct tw_expr {
    uint32_t kind;
    uint32_t left, right; /* leaf: rank, 0 */
    uint32_t cell;        /* input cell of all leaves, or TW_EXPR_MIXED */
    uint32_t ranks;       /* leaves in it */
    bool twice;           /* some rank's leaf is in it more than once */
    bool finals;          /* a FINAL is in it */
};

struct tw_exprs {
    struct tw_expr *nodes; /* owned; [0] is UNDEF */
    uint64_t *sets;  /* owned: ranks whose leaf is in it, [count * words]; words 0: not kept */
    uint32_t *slots; /* owned hash table of ids */
    uint32_t count, room, nslots, words;
};

bool tw_exprs_init(struct tw_exprs *exprs, int nranks, bool sets);
void tw_exprs_fini(struct tw_exprs *exprs);
/** Ids of leaves are given in order: nranks * cells of them. @return the first; 0 without memory */
uint32_t tw_exprs_leaves(struct tw_exprs *exprs, int nranks, uint32_t cells);
/** @return the id; 0 without memory */
uint32_t tw_expr_make(struct tw_exprs *exprs, enum tw_expr_kind kind, uint32_t left,
                      uint32_t right);
/** The id rounded to the call's type: leaves and rounded values stay. 0 without memory. */
uint32_t tw_expr_round(struct tw_exprs *exprs, uint32_t id);
/** Readable, for instance "final((r0 + r1))"; cut off at bytes. */
void tw_expr_print(const struct tw_exprs *exprs, uint32_t id, char *text, size_t bytes);

/* ---- linked programs (check_link.c) ---------------------------------------------------------- */

/* What a cell slice or a message's cell holds. meta: unit (call, loop, slice) in the low half, size
 * class of the cell in the high half; an undefined cell has meta 0. */
struct tw_check_value {
    uint32_t expr, meta;
};
#define TW_CHECK_UNIT(meta) ((meta)&0xffffu)

struct tw_check_ref {
    uint32_t cell, key; /* key: size class << 16 */
};

enum tw_check_trait {
    TW_DO_SRC = 1,       /* reads src */
    TW_DO_DST_READ = 2,  /* reads dst */
    TW_DO_DST_WRITE = 4, /* writes dst */
    TW_DO_OP = 8,        /* combines the local operand with src or message */
    TW_DO_RIGHT = 16,    /* the local operand is the right one */
    TW_DO_FINAL = 32,
    TW_DO_ROUND_OP = 64,   /* the combination is rounded (deterministic plans only) */
    TW_DO_ROUND_END = 128, /* the result is rounded */
    TW_DO_PUT = 256,       /* dst is written as a put */
};

enum tw_check_width { TW_WIDTH_NARROW, TW_WIDTH_WIDE, TW_WIDTH_ANY };

struct tw_check_op {
    uint8_t op;
    bool whole;
    uint8_t in_width, out_width; /* of messages; ANY: not looked at, or as it came in */
    uint16_t traits;
    uint8_t src_buf, dst_buf;
    uint32_t ncells;   /* TW_CHECK_NONE: as many as the message has */
    uint32_t src, dst; /* first of ncells in refs; TW_CHECK_NONE: no span. A recv_send that does not
                          store has its sizes from dst */
    int32_t src_rank, dst_rank;
    uint32_t fifo_in, fifo_out;
    uint32_t dep_lane, dep_step, dep_mark; /* lane of the whole check; TW_CHECK_NONE: none */
    uint32_t mark;                         /* others depend on it; TW_CHECK_NONE: none do */
    uint32_t word, sig_value;
    uint32_t pair; /* put and signal: the lane's puts to that peer; TW_CHECK_NONE: it has none */
};

struct tw_check_lane {
    int32_t rank;
    uint32_t index; /* in its rank */
    uint32_t prog;
    uint32_t first_op, nsteps;
    /* where it stands */
    uint32_t call, loop, step, slice;
    uint32_t unit; /* of (call, loop, slice) */
    bool queued;
    bool waits_dep, waits_word;
    uint32_t dim;
    uint32_t time;                          /* steps begun */
    uint32_t call_time[TW_CHECK_CALLS_MAX]; /* time when the call began */
    uint32_t *clock;                        /* [dims] */
};

struct tw_check_slot {
    uint32_t ncells;
    bool wide;
    uint32_t lane, step, unit; /* of the sender */
    struct tw_check_value *values;
    uint32_t *clock;
};

struct tw_check_fifo {
    int32_t from, to;
    uint32_t id;
    uint32_t pushed, popped; /* messages so far */
    uint32_t prog;           /* whose layout it has */
    uint32_t reader, writer; /* lanes that wait; TW_CHECK_NONE: none */
    struct tw_check_slot *slots;
};

/* What a lane puts to a peer. A put is an event of its own: nothing comes after it but what follows
 * a wait for a later signal of that lane to that peer. */
struct tw_check_pair {
    uint32_t lane;
    int32_t to;
    uint32_t nth;                /* of the pairs of `to` */
    uint32_t last;               /* lane's time at the last put */
    uint32_t user_call, user_at; /* the same, to IN or OUT of the peer; call + 1 */
    uint32_t seen;               /* first in ck->seen; TW_CHECK_NONE: none */
};
/* A wait of dim at time has seen the puts of a pair up to bound. */
struct tw_check_seen {
    uint32_t dim, time, bound;
    uint32_t next;
};

struct tw_check_raise {
    uint64_t value;
    uint32_t lane;
    uint32_t pair, bound; /* puts that it makes visible; bound 0: none */
    uint32_t *clock;
};
/* A signal word of one slice. One lane of a plan raises it; its raises that a wait may still be for
 * are kept in order. */
struct tw_check_word {
    int32_t rank;
    uint32_t sig;
    uint32_t raiser[2];            /* lane by program; TW_CHECK_NONE: none */
    uint32_t waiter;               /* index of the one lane that waits; TW_CHECK_NONE: several */
    bool waited;                   /* by a lane, in the plans */
    uint32_t prog;                 /* of the newest raise */
    uint32_t waits;                /* in ck->reads, those since another lane began to raise */
    uint64_t value;                /* now */
    uint64_t consumed;             /* by waits of the only waiter: raises up to it are gone */
    struct tw_check_raise *raises; /* owned by the check, [room] */
    uint32_t count, room;
};

struct tw_check_prog {
    const struct tw_plan *plan;
    uint32_t first_lane, nlanes;
    uint32_t *rank_lane; /* [nranks + 1]: first lane of each rank */
    uint32_t per, in_cells, out_cells;
    uint32_t key_base[TW_PLAN_PARTS_MAX];
    uint32_t in_part; /* partition of IN; TW_CHECK_NONE: IN is not used */
    uint32_t fifo_depth;
    uint32_t first_leaf;
    uint32_t *in_keys;              /* [nranks * in_cells]: size class << 16 */
    uint32_t *goal;                 /* [in_cells]: deterministic reductions: the expression */
    bool peer_scratch, peer_user;   /* peers may touch scratch; do touch IN or OUT */
    size_t user_base, scratch_base; /* in values */
    uint32_t user_stride, scratch_stride;
    uint32_t nmixes;
    uint8_t *mixes; /* [nmixes * nranks]: 1: that rank is in place */
};

/* Accesses to one cell slice in one call: last write and the reads since. */
struct tw_check_read {
    uint32_t dim, time;
    uint32_t next;
};
struct tw_check_access {
    uint32_t call; /* + 1; 0: none yet */
    uint32_t write_dim, write_time;
    bool put;       /* write_dim is a pair */
    uint32_t reads; /* index in ck->reads, TW_CHECK_NONE: none */
};

/* One call of a run. */
struct tw_check_call {
    uint32_t prog, slices, loops;
    const uint8_t *inplace;  /* [nranks] */
    uint32_t first_unit;     /* of loop 0 slice 0 */
    uint32_t scratch_number; /* of those that use peers' scratch */
    uint64_t signal_base;
    size_t (*bases)[TW_BUF_COUNT]; /* [nranks]: plane 0 of each buffer in values */
};

struct tw_check_rank {
    uint32_t call, lanes_left;
    uint32_t deps_waiting, words_waiting; /* lanes of it */
    uint32_t *clock;                      /* at the start of the call */
    uint32_t *touched;                    /* by others, in its IN and OUT, this call */
    uint32_t npairs;                      /* that put to it */
    uint32_t *pairs;                      /* [npairs] */
};

/* All accesses of one call to one rank's scratch, which peers may write. */
struct tw_check_region {
    bool any;
    uint32_t version;         /* changes with each access */
    uint32_t *reads, *writes; /* [dims] */
    uint32_t *puts;           /* [pairs of that rank]: time */
};

struct tw_check {
    struct tw_check_arena arena;
    struct tw_exprs exprs;
    struct tw_check_report *report;
    enum twill_status status;
    int nranks;
    uint32_t nprogs;
    struct tw_check_prog progs[2];
    uint32_t nlanes, nops, nrefs, nfifos, nwords, nmarks;
    struct tw_check_lane *lanes;
    struct tw_check_op *ops;
    struct tw_check_ref *refs;
    struct tw_check_fifo *fifos;
    struct tw_check_word *words; /* [nwords * slices] */
    uint32_t slices;             /* most of both plans */
    uint32_t widest;             /* most cells in a message */
    bool clocks;
    uint32_t dims; /* ranks, then lanes, filled up to whole blocks */
    uint32_t npairs;
    struct tw_check_pair *pairs;
    struct tw_check_seen *seen; /* owned */
    uint32_t nseen, seen_room;
    uint32_t *marks; /* [nmarks * loops * slices * dims] */
    struct tw_check_value *values;
    size_t nvalues, nmemory;          /* all; those that are memory (the rest is slots) */
    struct tw_check_access *accesses; /* [nmemory] */
    struct tw_check_read *reads;      /* owned */
    uint32_t nreads, reads_room, reads_free;
    struct tw_check_rank *ranks;
    struct tw_check_region *regions; /* [nranks * TW_CHECK_CALLS_MAX] */
    uint64_t *passed; /* [nlanes * nranks * 2]: regions as they were when last passed */
    uint32_t ncalls;
    struct tw_check_call calls[TW_CHECK_CALLS_MAX];
    uint32_t *queue; /* [nlanes] ring of lanes that may be able to go on */
    uint32_t queue_head, nqueue, ranks_left;
    uint64_t steps_run;
};

/* How much there is in plans. */
struct tw_check_survey {
    uint32_t steps, ends, sigs, puts; /* ends: of FIFOs; sigs: signals and waits */
    uint64_t refs;
};

/** How a plan cuts IN and OUT (per, in_cells, out_cells, in_part, nlanes); adds to *all. */
void tw_check_survey_prog(struct tw_check_prog *prog, struct tw_check_survey *all);
/** Number the sizes of cells: key_base, in_keys. */
bool tw_check_keys(struct tw_check *ck, struct tw_check_prog *prog);
/** The size class of a cell, in the high half. */
uint32_t tw_check_cell_key(const struct tw_check_prog *prog, int rank, uint8_t part, uint32_t cell);
/** Turn plans into flat tables. Faults that need no execution are reported here. */
bool tw_check_link(struct tw_check *ck, const struct tw_plan *plan, const struct tw_plan *next);
/** Memory, slots and clocks for the linked plans (check_layout.c). ck->ncalls is set. */
bool tw_check_layout(struct tw_check *ck);
/** Whether two lanes of one rank touch one cell and one of them writes: then ck->clocks is set. */
bool tw_check_shares(struct tw_check *ck);
/** Where a cell lies in a rank that is in place: index in OUT, or in IN for reduce_scatter. */
uint32_t tw_check_alias(const struct tw_check_prog *prog, int rank, uint8_t buf, uint32_t cell);

/* ---- execution (check_run.c, check_step.c) --------------------------------------------------- */

/** Run ck->calls once from fresh memory. */
bool tw_check_run(struct tw_check *ck);
/** One slice of a step, which is ready. */
bool tw_check_step(struct tw_check *ck, struct tw_check_lane *lane, const struct tw_check_op *op);
void tw_check_wake(struct tw_check *ck, uint32_t lane);
/** Wake the lanes of a rank that wait for a signal word, or for a dependency. */
void tw_check_wake_rank(struct tw_check *ck, int rank, bool words);
/** What a signal or wait of this lane means, over all loops and calls. */
static inline uint64_t tw_check_sig_value(const struct tw_check *ck,
                                          const struct tw_check_lane *lane,
                                          const struct tw_check_op *op)
{
    return ck->calls[lane->call].signal_base +
           (uint64_t)lane->loop * ck->progs[lane->prog].plan->sig_max + op->sig_value;
}

/* ---- clocks (check_clock.c, check_access.c): only called when ck->clocks --------------------- */

void tw_check_clock_reset(struct tw_check *ck);
/** Before a slice: what it waited for happened before it. */
bool tw_check_clock_enter(struct tw_check *ck, struct tw_check_lane *lane,
                          const struct tw_check_op *op, const struct tw_check_slot *in);
/** After a slice: messages, signals and dependants get its clock. */
bool tw_check_clock_leave(struct tw_check *ck, struct tw_check_lane *lane,
                          const struct tw_check_op *op, struct tw_check_slot *out);
/** The first dimension from `from` on in which clock is ahead of other; ck->dims: none. */
uint32_t tw_check_clock_ahead(const struct tw_check *ck, const uint32_t *clock,
                              const uint32_t *other, uint32_t from);
/** Whether whoever has this clock has seen a pair's put of that time. */
bool tw_check_put_seen(const struct tw_check *ck, uint32_t pair, uint32_t time,
                       const uint32_t *clock);
/** Add to a list of reads (or waits), after dropping those that come before it. */
bool tw_check_read_add(struct tw_check *ck, uint32_t *list, const struct tw_check_lane *lane);
/** The first of a list that does not come before clock; TW_CHECK_NONE: none. */
uint32_t tw_check_read_open(const struct tw_check *ck, uint32_t list, const uint32_t *clock);
void tw_check_access_reset(struct tw_check *ck);

/* One access; loc indexes values. */
struct tw_check_touch {
    struct tw_check_lane *lane;
    const struct tw_check_op *op;
    int32_t rank; /* whose memory */
    uint8_t buf;
    bool write;
    uint32_t cell;
    size_t loc;
};
bool tw_check_touch(struct tw_check *ck, const struct tw_check_touch *touch);
void tw_check_clock_call(struct tw_check *ck, int rank);
/** All lanes of the rank are done: no peer may be touching its user's memory. */
bool tw_check_clock_return(struct tw_check *ck, int rank);

/* ---- the contract (check_goal.c) ---------------------------------------------------------------
 */

bool tw_check_goal_init(struct tw_check *ck, struct tw_check_prog *prog);
/** Has the rank, whose call ends, what the collective promises? */
bool tw_check_goal(struct tw_check *ck, int rank);
bool tw_check_has_in(const struct tw_plan *plan, int rank);
/** Whether IN and OUT of the rank may be the same memory. */
bool tw_check_may_alias(const struct tw_plan *plan, int rank);

/* ---- faults (check_fault.c) --------------------------------------------------------------------
 */

/** Keep the first fault: place of the lane, then the sentence. @return false */
bool tw_check_fault(struct tw_check *ck, const struct tw_check_lane *lane, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Fault of a plan without a lane. @return false */
bool tw_check_fault_plan(struct tw_check *ck, const struct tw_plan *plan, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool tw_check_nomem(struct tw_check *ck);
/** Nothing can move: say who waits for what. @return false */
bool tw_check_deadlock(struct tw_check *ck);
/** Fill text with "call C loop L slice S". */
void tw_check_unit_text(const struct tw_check *ck, uint32_t unit, char *text, size_t bytes);
/** Fill text with "rank R lane L step S (op)" of the step that a lane began at a time. */
void tw_check_when(const struct tw_check *ck, uint32_t dim, uint32_t time, char *text,
                   size_t bytes);

static inline const struct tw_plan_step *
tw_check_step_at(const struct tw_check *ck, const struct tw_check_lane *lane, uint32_t step)
{
    const struct tw_plan *plan = ck->progs[lane->prog].plan;
    return &plan->ranks[lane->rank].lanes[lane->index].steps[step];
}

#endif
