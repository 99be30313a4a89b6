/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the files of the interpreter share: a call bound to memory, where each lane stands.
 * Never knows: more than exec.h. */
#ifndef TW_DEVICE_EXEC_STATE_H
#define TW_DEVICE_EXEC_STATE_H

#include "device/convert.h"
#include "device/exec.h"

/* A partition bound to the call's counts. */
struct tw_exec_part {
    uint32_t groups, per;
    size_t count, each, rest;      /* others: of a group; count / cells; count % cells */
    uint32_t shift;                /* SHARD: the first of those cells */
    const size_t *counts, *displs; /* [groups], of PER_RANK and pairs; NULL: others */
    bool unknown;                  /* this rank has no counts and no business with it */
};

struct tw_exec_lane {
    const struct tw_plan_step *steps; /* borrowed from the plan */
    uint32_t nsteps, step, slice;
    uint64_t loop, loops;     /* loop TW_LANE_DONE: ended */
    enum tw_exec_phase phase; /* why it last stopped; IDLE: a dependency */
    int peer;
};
#define TW_LANE_DONE UINT64_MAX

/* Kernels of the call's type and op; wide_* on partials. */
struct tw_exec_math {
    tw_reduce_fn reduce[TW_FORM_COUNT]; /* NULL: not a reduction */
    tw_divide_fn divide, wide_divide;   /* from partials; NULL: not avg */
    tw_scale_fn scale;                  /* NULL: not premul_sum */
    tw_convert_fn widen, round;         /* NULL: the type is its own wide type */
    uint32_t bytes, wide_bytes;         /* of an element */
    int nranks;
    uint64_t scalar; /* of premul_sum: an element of the type in its first bytes */
};

/* Most elements of a slice where steps have one slice, and where they have the plan's; 0: there is
 * no room. Of the last plan that was run; the key says of what. */
struct tw_exec_limits_key {
    uint32_t nfifos, depth, widest, slices, scratch_cells, wide_cells, parity, type_bytes;
    uint32_t puts; /* TW_CAP_PUT_SCRATCH, which says whose scratch it is; or 0 */
};
struct tw_exec_limits {
    struct tw_exec_limits_key key; /* all 0: none yet */
    size_t whole, sliced;
};

struct tw_exec_peer {
    int rank;
    bool send, recv;
};

struct tw_exec {
    struct tw_chan *chan; /* borrowed */
    enum tw_isa isa;
    char *scratch; /* owned */
    size_t scratch_bytes;
    uint64_t *signal_base; /* borrowed; NULL: none */

    struct tw_exec_call call;
    enum tw_exec_phase phase; /* IDLE, LAYOUT, RECV while lanes run, DONE */
    enum twill_status failed; /* of the running call */
    uint32_t failed_lane;     /* where failed is set while lanes run */
    uint64_t found_header;
    struct tw_exec_limits limits;
    struct tw_exec_shape shape;
    struct tw_exec_math math;
    struct tw_exec_part parts[TW_PLAN_PARTS_MAX];
    char *base[TW_BUF_COUNT]; /* of the buffers; SCRATCH and WIDE: this call's half */
    size_t scratch_half;      /* bytes from the start of a peer's scratch to this call's half */
    size_t room_bytes, wide_room_bytes; /* of a SCRATCH and a WIDE cell */
    size_t wide_at;                     /* bytes from SCRATCH to WIDE, on every rank */
    uint64_t signal_now;                /* base of this call */
    bool pairs;                         /* some counts are known to pairs of ranks only */

    struct tw_exec_lane *lanes; /* owned */
    uint32_t nlanes, lanes_cap, lanes_live;
    struct tw_exec_peer *peers; /* owned: those that the program names */
    int *peer_of;               /* owned: rank to its place in peers, -1: not there */
    uint32_t npeers, peers_cap, peers_laid;
    size_t *displs; /* owned: of packed partitions */
    size_t displs_cap;
};

/* ---- exec.c --------------------------------------------------------------------------------- */

/** Room for the plan's lanes and ranks; kept for later calls. */
enum twill_status tw_exec_grow(struct tw_exec *exec, const struct tw_plan *plan, uint32_t nlanes);

/* ---- exec_shape.c --------------------------------------------------------------------------- */

/** Bytes of scratch that a plan's calls share out. */
static inline size_t tw_exec_scratch_for(const struct tw_exec *exec, const struct tw_plan *plan)
{
    return plan->caps & TW_CAP_PUT_SCRATCH ? tw_chan_scratch_bytes(exec->chan)
                                           : exec->scratch_bytes;
}
/** Depth of the FIFOs for a plan: at least two, so that a sender may run ahead. */
uint32_t tw_exec_depth(const struct tw_plan *plan);
/** Fill limits, unless they are of such a plan already. FIFO and scratch sizes are an executor's
 * own, and never change for such a plan. */
void tw_exec_limits_find(const struct tw_plan *plan, size_t type_bytes, size_t fifo_bytes,
                         size_t scratch_bytes, struct tw_exec_limits *limits);
/** @param cell_elems  most elements of any cell of the call */
enum twill_status tw_exec_cut(const struct tw_plan *plan, const struct tw_exec_limits *limits,
                              size_t cell_elems, struct tw_exec_shape *shape);
/** Bytes of a scratch cell: whole lines, so that ranks that write neighbours share none. */
size_t tw_exec_room_bytes(const struct tw_exec_shape *shape, size_t elem_bytes);
/** True when some groups' counts are known to pairs of ranks only. */
bool tw_exec_has_pairs(const struct tw_plan *plan);

/* ---- exec_bind.c ---------------------------------------------------------------------------- */

/** Everything of start but the lanes. exec->call is set. */
enum twill_status tw_exec_bind(struct tw_exec *exec);
/** The last part of it: go through all steps, fill peers. Memory is bound. (exec_bind_program.c)
 * @param most  elements of the largest cell */
enum twill_status tw_exec_bind_program(struct tw_exec *exec, size_t most);
/** Lay the FIFOs out. OK or AGAIN (a sender's FIFO is not drained yet). */
enum twill_status tw_exec_lay(struct tw_exec *exec);

/* ---- exec_value.c --------------------------------------------------------------------------- */

/* Elements in memory, or none (at NULL). */
struct tw_exec_place {
    char *at;
    bool wide;
    bool raw; /* an operand that is a rank's input, which premul_sum multiplies */
};

/* to[0] = to[1] = left (+) right, or left alone; finished when final. to may equal left or right.
 */
struct tw_exec_value {
    struct tw_exec_place left, right, to[2];
    size_t count;
    bool final;
};
void tw_exec_value_put(const struct tw_exec_math *math, const struct tw_exec_value *value);

/* ---- exec_step.c ---------------------------------------------------------------------------- */

/* Where operands come from and results go. */
enum tw_exec_at {
    TW_AT_NONE,
    TW_AT_SRC,
    TW_AT_DST,
    TW_AT_PEER_SRC,
    TW_AT_PEER_DST,
    TW_AT_MESSAGE,
    TW_AT_SLOT
};
/* Spans that a step goes by; whatever else stands in it is not looked at. */
enum { TW_BY_SRC = 1, TW_BY_DST = 2, TW_MAY_STORE = 4 /* dst with TW_STEP_STORE */ };

struct tw_exec_form {
    uint8_t local, other; /* operands, the local one first; other NONE: the value is local's */
    uint8_t to;
    uint8_t spans;
};
/* [SIGNAL] and [WAIT] are all zero: they move nothing. */
extern const struct tw_exec_form tw_exec_forms[TW_OP_COUNT];

static inline bool tw_exec_takes(const struct tw_exec_form *form)
{
    return form->local == TW_AT_MESSAGE || form->other == TW_AT_MESSAGE;
}

static inline const struct tw_plan_span *tw_exec_src(const struct tw_plan_step *step)
{
    return tw_exec_forms[step->op].spans & TW_BY_SRC ? &step->src : NULL;
}

static inline const struct tw_plan_span *tw_exec_dst(const struct tw_plan_step *step)
{
    const uint8_t spans = tw_exec_forms[step->op].spans;

    return spans & TW_BY_DST || (spans & TW_MAY_STORE && step->flags & TW_STEP_STORE) ? &step->dst
                                                                                      : NULL;
}

/** True for what moves data in or out of a peer's memory. */
static inline bool tw_exec_reaches(uint8_t op)
{
    return op == TW_OP_PUT || op == TW_OP_GET || op == TW_OP_GET_REDUCE;
}

/** One slice of the step at which the lane stands. OK: it is done; AGAIN: lane says why not. */
enum twill_status tw_exec_step(struct tw_exec *exec, struct tw_exec_lane *lane);

/* ---- cells (bound to the call) -------------------------------------------------------- */

/** Elements of a cell. */
static inline size_t tw_exec_cell_elems(const struct tw_exec_part *part, uint32_t cell)
{
    const uint32_t sub = part->per == 1 ? 0 : cell % part->per;
    size_t count;

    if (part->counts == NULL) {
        return part->each + (part->shift + sub < part->rest);
    }
    count = part->counts[cell / part->per];
    return count / part->per + (sub < count % part->per);
}

/** Elements in the buffer before a cell. */
static inline size_t tw_exec_cell_first(const struct tw_exec_part *part, uint32_t cell)
{
    const uint32_t group = part->per == 1 ? cell : cell / part->per;
    const uint32_t sub = cell - group * part->per;
    size_t count, rest;

    if (part->counts == NULL) {
        return group * part->count + sub * part->each + (sub < part->rest ? sub : part->rest);
    }
    count = part->counts[group];
    rest = count % part->per;
    return part->displs[group] + sub * (count / part->per) + (sub < rest ? sub : rest);
}

/** Most elements of any cell of a span (a partition that is unknown here has none). */
size_t tw_exec_span_most(const struct tw_exec *exec, const struct tw_plan_span *span);
/** Loops that a step of a plan with pairs takes part in. */
uint64_t tw_exec_step_loops(const struct tw_exec *exec, const struct tw_plan_step *step);

#endif
