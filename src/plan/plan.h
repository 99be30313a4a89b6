/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: steps as data: which cells move or combine, in which order, between which ranks.
 * Never knows: bytes, types, addresses, transports, the algorithm that wrote it. */
#ifndef TW_PLAN_PLAN_H
#define TW_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "twill.h"

/*
 * Model. A plan belongs to (collective, ranks, root, algorithm, parameters) and never to a byte
 * count.
 *
 * Cells. A partition cuts a buffer into `groups` groups of `per` cells. Cell c is sub-cell c % per
 * of group c / per. At the call every group is bound to a count of elements, cut into `per`
 * sub-cells whose sizes differ by at most one (the first count % per have one more). Kinds say what
 * the counts are: EQUAL the call's count for every group; PER_RANK counts[group] of the call;
 * PAIR_SEND / PAIR_RECV the rank's own row / column of an all_to_all_v; RUNTIME filled by a step.
 * SHARD, for SCRATCH and WIDE only and of one group, is what an EQUAL group that is cut into nranks
 * * per cells has for the rank: its cells rank * per and on. Cells of SCRATCH and WIDE that EQUAL,
 * OWN or SHARD cuts go on past the groups, sub-cells of one more group each.
 * Two cells "fit" when they have equal sub-index and `per`, and their groups are bound to equal
 * counts.
 *
 * Spans. A span is a list of cells of one buffer: for b < nblocks, for i < block: first + b*stride
 * + i.
 *
 * Slices. Every cell is cut alike into slices of at most slice_elems elements (bound at the call).
 * Slice s of a step is slice s of every cell of its spans, packed in span order; one FIFO slot
 * holds it. A slice of a short cell may be empty; an empty slice still takes its slot and its
 * signal.
 *
 * Loops. A call runs `loops` loops of `S` slices, S either 1 or the plan's `slices`. Loop order is
 * loop, step, slice: in a lane, all slices of step k in this loop precede step k+1. SCRATCH and
 * WIDE cells hold one loop's slices only and are reused by the next loop.
 *
 * Lanes. A rank's program is an ordered list of steps per lane; lanes run concurrently. A step's
 * dependency (dep_lane, dep_step) lets its slice s start when that step of the same rank has
 * finished its slice s of the same loop. A call ends on a rank when all its lanes end; its next
 * call starts then. Where a scratch cell lies depends on the call's count: nothing holds from call
 * to call.
 *
 * FIFOs. Keyed (from, to, fifo). Exactly one lane of `from` writes it and one lane of `to` reads
 * it. Depth is at least the plan's `depth` slots, so that a free slot says nothing about what the
 * receiver has done. Messages carry their length; the order is the program order.
 *
 * Signals. sig is a word per (rank, sig, slice) that only grows: SIGNAL raises the word at `to`,
 * WAIT waits until the own word is at least sig_value. One lane of the plan raises a word, so that
 * a wait knows whom it saw. Values are 1..sig_max inside a loop; the executor adds a base that
 * grows from loop to loop and call to call. PUT data is visible before a later SIGNAL of the same
 * lane to the same peer, and by nothing else that the lane does.
 *
 * Width. WIDE cells hold fp32 partials, all others the call's type; a message has one width. A
 * local or addressed source that is narrow widens into a WIDE dst (copy, reduce, recv_reduce, put,
 * get, get_reduce). Wide to narrow happens only with ROUND, for which src is WIDE and dst is not:
 * copy, put, get, recv_reduce; a send or recv_reduce_send with ROUND sends a narrow message.
 * Otherwise a message is as wide as its sender's src. A wide message must meet WIDE cells: recv's
 * dst, recv_reduce's src or dst, recv_reduce_send's src; a narrow one that meets them widens, as
 * does a narrow src of a recv_reduce into WIDE. recv_send wants the width of its dst if it has one.
 * FINAL goes before the rounding.
 */

enum tw_coll {
    TW_COLL_ALL_REDUCE,
    TW_COLL_REDUCE,
    TW_COLL_BROADCAST,
    TW_COLL_REDUCE_SCATTER,
    TW_COLL_ALL_GATHER,
    TW_COLL_ALL_TO_ALL,
    TW_COLL_BARRIER,
    TW_COLL_GATHER,
    TW_COLL_SCATTER,
    TW_COLL_ALL_GATHER_V,
    TW_COLL_REDUCE_SCATTER_V,
    TW_COLL_ALL_TO_ALL_V,
    TW_COLL_GATHER_V,
    TW_COLL_SCATTER_V,
    TW_COLL_P2P, /* a group of sends and receives; one rank's view only */
    TW_COLL_COUNT
};
/** "all_reduce", ...; NULL past the end */
const char *tw_coll_name(enum tw_coll coll);

enum tw_part_kind {
    TW_PART_EQUAL,
    TW_PART_PER_RANK,
    TW_PART_PAIR_SEND,
    TW_PART_PAIR_RECV,
    TW_PART_OWN,
    TW_PART_SHARD,
    TW_PART_RUNTIME
};

struct tw_plan_part {
    uint8_t kind;
    uint32_t groups;
    uint32_t per;
    uint32_t source_step; /* RUNTIME: (lane << 20 | step) that yields the counts */
    uint32_t capacity;    /* RUNTIME: bound on a group's count */
};

enum tw_plan_buf { TW_BUF_IN, TW_BUF_OUT, TW_BUF_SCRATCH, TW_BUF_WIDE, TW_BUF_COUNT };

struct tw_plan_span {
    uint8_t buf;
    uint8_t part;   /* index into plan->parts: partition by which `first` counts cells */
    uint16_t index; /* 0, or a run-time row-index table (later) */
    uint32_t first, block, stride, nblocks; /* block 0: no span */
};

/* X(name, text) */
#define TW_PLAN_OP_LIST(X)                                                                         \
    X(COPY, "copy")                         /* dst = src */                                        \
    X(REDUCE, "reduce")                     /* dst = dst (+) src */                                \
    X(SEND, "send")                         /* src -> to */                                        \
    X(RECV, "recv")                         /* from -> dst */                                      \
    X(RECV_REDUCE, "recv_reduce")           /* dst = src (+) message */                            \
    X(RECV_SEND, "recv_send")               /* message -> to; with STORE also dst = message */     \
    X(RECV_REDUCE_SEND, "recv_reduce_send") /* src (+) message -> to; with STORE also to dst */    \
    X(PUT, "put")                           /* src -> dst on `to` */                               \
    X(GET, "get")                           /* dst = src on `from` */                              \
    X(GET_REDUCE, "get_reduce")             /* dst = dst (+) src on `from` */                      \
    X(SIGNAL, "signal")                     /* raise sig on `to` */                                \
    X(WAIT, "wait")                         /* until own sig >= sig_value */
enum tw_plan_op {
#define TW_PLAN_OP_ENUM(name, text) TW_OP_##name,
    TW_PLAN_OP_LIST(TW_PLAN_OP_ENUM)
#undef TW_PLAN_OP_ENUM
        TW_OP_COUNT
};

enum tw_plan_flag {
    TW_STEP_STORE = 1, /* fused forms: the value also goes to dst */
    TW_STEP_ACC_RIGHT =
        2,             /* the local operand (dst or src) is the right one; default: the left one */
    TW_STEP_FINAL = 4, /* the result is the whole reduction: finish it (avg's division) */
    TW_STEP_ROUND = 8, /* WIDE source: round to the call's type */
    TW_STEP_WHOLE =
        16, /* the dependency waits for the whole step, all slices, not slice by slice */
};

#define TW_NO_LANE 0xffffu
#define TW_NO_RANK (-1)

struct tw_plan_step {
    uint8_t op;
    uint8_t flags;
    uint16_t dep_lane; /* TW_NO_LANE: none */
    uint32_t dep_step;
    int32_t from, to; /* peers; TW_NO_RANK: none */
    uint16_t fifo_in, fifo_out;
    struct tw_plan_span src; /* on `from` for GET and GET_REDUCE */
    struct tw_plan_span dst; /* on `to` for PUT */
    uint32_t sig, sig_value;
};

struct tw_plan_lane {
    struct tw_plan_step *steps; /* owned */
    uint32_t nsteps, capacity;
    uint16_t channel; /* label: which lanes belong together (one thread block on a GPU) */
};

struct tw_plan_rank {
    struct tw_plan_lane *lanes; /* owned */
    uint32_t nlanes, capacity;
};

#define TW_PLAN_PARTS_MAX 8
#define TW_PLAN_FIFOS_MAX 32 /* fifo ids of a pair */
#define TW_PLAN_NAME_BYTES 48
#define TW_PLAN_RANKS_MAX 65536

enum tw_plan_cap {                         /* what the ranks' links must offer */
                   TW_CAP_PUT_SCRATCH = 1, /* peers' scratch is addressable */
                   TW_CAP_PEER_BUFFERS =
                       2 /* peers' in and out are addressable (registered, or one process) */
};

struct tw_plan {
    char name[TW_PLAN_NAME_BYTES]; /* the algorithm's, for messages */
    uint8_t coll;
    bool deterministic; /* claims the defined order: docs/algorithms.md */
    int32_t nranks;
    int32_t root;    /* 0 where the collective has none */
    uint32_t depth;  /* least FIFO depth for which it is free of deadlock; 0: it uses no FIFO */
    uint32_t slices; /* most slices a step has in a loop */
    uint32_t nfifos; /* fifo ids are below it */
    uint32_t widest; /* most cells a message has on any rank; a FIFO slot is shared by so many */
    uint32_t nsigs, sig_max;
    uint32_t caps;   /* tw_plan_cap */
    uint32_t parity; /* copies of scratch, equal parts of it, used in turn by the calls of plans
                      * with TW_CAP_PUT_SCRATCH; at least 1 */
    uint32_t nparts;
    struct tw_plan_part parts[TW_PLAN_PARTS_MAX];
    uint32_t scratch_cells,
        wide_cells;             /* SCRATCH, WIDE: their cells are numbered below these; a scratch
                                 * cell has room for one loop's slices of any cell of the call */
    int32_t only_rank;          /* -1: all ranks' programs are there; else just this one's */
    struct tw_plan_rank *ranks; /* owned, [nranks]; empty for those left out */
};

/*
 * IN and OUT of each collective: on which ranks they are, how many groups they have there, one or
 * one for each rank, and the kind of partition that cuts them.
 *   all_reduce           IN, OUT: 1 group                               EQUAL
 *   reduce, broadcast    the same, but OUT, or IN, at the root only     EQUAL
 *   reduce_scatter(_v)   IN: nranks groups, OUT: 1 group                EQUAL (PER_RANK, OWN)
 *   all_gather(_v)       IN: 1 group, OUT: nranks groups                EQUAL (OWN, PER_RANK)
 *   gather(_v)           the same, OUT at the root only                 EQUAL (OWN, PER_RANK)
 *   scatter(_v)          IN at the root only: nranks groups, OUT: 1     EQUAL (PER_RANK, OWN)
 *   all_to_all(_v)       IN, OUT: nranks groups                         EQUAL (PAIR_SEND,
 * PAIR_RECV) barrier, p2p         none (spans are empty); whatever the plan says `per` is the
 * plan's choice, the same for IN and OUT. The count that the call binds to an EQUAL group is the C
 * call's `count` (recvcount for reduce_scatter and scatter, sendcount for all_gather and gather).
 *
 * In place, on a rank that has both: IN == OUT where they have equally many groups; else the one of
 * one group is group `rank` of the other. all_to_all_v in place wants a rank's row and column to be
 * equal. A plan is right for every mix of ranks in place: nobody knows who else is.
 */
enum tw_coll_where { TW_NOWHERE, TW_AT_ROOT, TW_EVERYWHERE };
struct tw_coll_buf {
    uint8_t where;
    bool many;    /* a group for each rank; else one */
    uint8_t kind; /* tw_part_kind */
};
struct tw_coll_rule {
    const char *name;
    struct tw_coll_buf in, out;
    bool rooted;  /* has a root; others' is 0 */
    bool reduces; /* OUT is a reduction of all ranks' IN */
    bool some;    /* only some ranks know a group's count: other counts differ from rank to rank */
};
/** NULL past the end. */
const struct tw_coll_rule *tw_coll_rule(enum tw_coll coll);

/* ---- life (plan.c) ------------------------------------------------------------------------- */

/**
 * @param name  letters, digits and "_.+-", at least one, below TW_PLAN_NAME_BYTES
 * @param only_rank  -1: all ranks
 * @return NULL and tw_fail without memory or for nonsense sizes; depth 0, slices and parity 1
 */
struct tw_plan *tw_plan_create(const char *name, enum tw_coll coll, int nranks, int root,
                               int only_rank);
/** Whether create takes these: TWILL_OK, or TWILL_ERR_INVALID and tw_fail. */
enum twill_status tw_plan_shape_check(const char *name, enum tw_coll coll, int nranks, int root,
                                      int only_rank);
void tw_plan_destroy(struct tw_plan *plan);
struct tw_plan *tw_plan_copy(const struct tw_plan *plan);

/** Cells of a span, and its i-th cell. */
static inline uint32_t tw_span_cells(const struct tw_plan_span *span)
{
    return span->block * span->nblocks;
}
static inline uint32_t tw_span_cell(const struct tw_plan_span *span, uint32_t i)
{
    return span->first + (i / span->block) * span->stride + i % span->block;
}
/** Most cells a message of the whole plan has (all ranks know it): slots are shared by so many cell
 * slices. At least 1. */
uint32_t tw_plan_widest(const struct tw_plan *plan);

#define TW_PLAN_SLICES_MAX 256
#define TW_PLAN_PARITY_MAX 16
#define TW_PLAN_DEPTH_MAX 1024
#define TW_PLAN_CELLS_MAX (1u << 24) /* of a partition, and of scratch */
#define TW_PLAN_STEPS_MAX (1u << 24) /* of a lane */

/**
 * Cheap structural checks that every consumer relies on (spans inside their partitions, peers and
 * fifo ids in range, dependencies point at existing steps, one writer and one reader lane per FIFO
 * of the ranks present, flags fit the op). The checker calls it first; so does every loader.
 *
 * Spans: the strides of a span do not make its blocks overlap. IN is never written, OUT and IN are
 * not touched where the collective has none, and both are cut by partitions of the kind and groups
 * stated above with one `per`. PUT's dst and GET's src lie in the peer's SCRATCH, WIDE, OUT (or IN,
 * GET only) and the plan's caps say so. Fields that an op does not use are not looked at.
 *
 * @return TWILL_OK, or TWILL_ERR_INVALID and a sentence that names rank, channel, lane and step;
 * TWILL_ERR_NOMEM
 */
enum twill_status tw_plan_validate(const struct tw_plan *plan);

/* ---- builder (builder.c): generators write with these; the first error sticks and is returned by
 * _finish -- */

struct tw_build {
    struct tw_plan *plan; /* owned until finish */
    enum twill_status status;
};

/** Starts a plan. Adds no parts. depth, slices, parity default to 1. A generator that leaves ranks
 * out states depth, slices, nfifos, widest, nsigs, sig_max and scratch_cells itself, as all ranks
 * need the same. */
void tw_build_init(struct tw_build *build, const char *name, enum tw_coll coll, int nranks,
                   int root, int only_rank);
/** A partition; returns its index. */
uint8_t tw_build_part(struct tw_build *build, enum tw_part_kind kind, uint32_t groups,
                      uint32_t per);
/** True when rank's program is wanted: generators skip the others and stay O(own steps). */
bool tw_build_wants(const struct tw_build *build, int rank);
/** A new lane of rank; returns its index. */
uint16_t tw_build_lane(struct tw_build *build, int rank, uint16_t channel);
/** Appends a step; returns its index in the lane. nfifos, widest, nsigs, sig_max grow as needed. A
 * lane or a step of a rank that is not wanted is an error. */
uint32_t tw_build_step(struct tw_build *build, int rank, uint16_t lane,
                       const struct tw_plan_step *step);
/** Hands the plan out (validated) or destroys it and returns the first error. */
enum twill_status tw_build_finish(struct tw_build *build, struct tw_plan **plan);

/** Spans in the three usual shapes. */
static inline struct tw_plan_span tw_span_one(enum tw_plan_buf buf, uint8_t part, uint32_t cell)
{
    return (struct tw_plan_span){(uint8_t)buf, part, 0, cell, 1, 1, 1};
}
static inline struct tw_plan_span tw_span_range(enum tw_plan_buf buf, uint8_t part, uint32_t first,
                                                uint32_t cells)
{
    return (struct tw_plan_span){(uint8_t)buf, part, 0, first, cells, cells, 1};
}
static inline struct tw_plan_span tw_span_none(void)
{
    return (struct tw_plan_span){0, 0, 0, 0, 0, 0, 0};
}

/* ---- composition (compose.c) ---------------------------------------------------------------- */

/*
 * Where the cells of one buffer of a sub-plan go: cell c of any partition, of sub's rank r, becomes
 * the cells first + r * by_rank + c * stride + i * run_stride, i < run (0: one), of buffer buf, by
 * partition part.
 */
struct tw_cell_map {
    uint8_t buf, part;
    uint32_t first, stride;
    uint32_t run, run_stride;
    uint32_t by_rank;
};
struct tw_step_ref {
    uint16_t lane;
    uint32_t step;
};
#define TW_STEP_BEHIND UINT32_MAX

/**
 * Put the programs of `sub` into the plan being built.
 *
 * @param sub       all ranks' programs, or that of one rank, the only one of those mapped that is
 * wanted
 * @param rank_map  [sub->nranks] rank of the outer plan for each of sub's
 * @param cell_map  per buffer of sub
 * @param after     per outer rank (may be NULL): (lane, step) on which every first step of that
 * rank's new lanes depends (TW_STEP_WHOLE), lane TW_NO_LANE for none. Step TW_STEP_BEHIND: sub's
 * one lane of that rank is no new one, its steps follow in `lane`: where sub's cells go to scratch
 * that the next loop writes again, no dependency would do
 * @param lanes     out, per sub rank: outer index of its first new lane (lanes keep sub's order);
 * TW_NO_LANE for a rank that is not wanted
 * FIFO and signal ids of sub are moved behind those already used (set plan->nfifos back to let
 * sub-plans of disjoint ranks share theirs); depth, widest, sig_max, parity, caps and scratch of
 * the plan grow to sub's; slices stays the caller's choice, no more than sub's. Flags are kept:
 * strip FINAL where sub does not end the reduction.
 * @return TWILL_OK; TWILL_ERR_INVALID ranks are not distinct, ids run out, a span of several blocks
 * cannot be written under a stride other than 1, or one of several cells under a run that is not
 * `stride` neighbours; or no lane to follow in; TWILL_ERR_NOMEM. It sticks to the builder.
 */
enum twill_status tw_build_embed(struct tw_build *build, const struct tw_plan *sub,
                                 const int *rank_map,
                                 const struct tw_cell_map cell_map[TW_BUF_COUNT],
                                 const struct tw_step_ref *after, uint16_t *lanes);

/* ---- other places (relabel.c) -----------------------------------------------------------------
 */

/**
 * The ranks of a plan change places: what rank r did, rank rank_of[r] does, with the blocks of the
 * ranks that it did it for changed likewise. It stays a plan of its collective, with another root
 * where that one has moved.
 *
 * @param plan     in: of all ranks; out: another one, the first is gone; untouched on error
 * @param rank_of  [nranks]: each rank once
 * @return TWILL_OK; TWILL_ERR_UNSUPPORTED it adds in the order of ranks, or a step takes blocks of
 * several ranks that would not be a span: all ranks find the same;
 * TWILL_ERR_INVALID no such places; TWILL_ERR_NOMEM
 */
enum twill_status tw_plan_relabel(struct tw_plan **plan, const int *rank_of);

/* ---- text (text.c) --------------------------------------------------------------------------- */

/** Readable, loads back to an equal plan. *text is malloc'ed. */
enum twill_status tw_plan_print(const struct tw_plan *plan, char **text);
/** Errors name line and column and what was expected. Never crashes on any input. Validates. */
enum twill_status tw_plan_parse(const char *text, size_t bytes, struct tw_plan **plan);

/* ---- checker (check.c) ----------------------------------------------------------------------- */

struct tw_check_options {
    uint32_t max_inplace_ranks; /* all mixes of in-place ranks up to this many ranks (default 4),
                                   sampled beyond */
    uint64_t seed;              /* for the sampling */
    const struct tw_plan
        *next; /* a second plan that shares slots, scratch and signals: runs plan, next, plan, next;
                * NULL: plan twice (parity + 1 times when parity > 1) */
};

#define TW_CHECK_TEXT_BYTES 512
struct tw_check_report {
    char text[TW_CHECK_TEXT_BYTES]; /* first fault: rank, channel, lane, step, cell and what is
                                       wrong; "" if none */
    uint64_t steps_run;
};

/**
 * Prove a whole plan (all ranks present) by symbolic execution: see docs/plan.md.
 *
 * @return TWILL_OK proven; TWILL_ERR_INVALID not a correct plan of its collective, report says
 * where; TWILL_ERR_NOMEM
 */
enum twill_status tw_plan_check(const struct tw_plan *plan, const struct tw_check_options *options,
                                struct tw_check_report *report);

#endif
