/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a plan, one rank's buffers, its chan: runs the plan's steps on host memory.
 * Never knows: how the plan was chosen, communicators, streams. */
#ifndef TW_DEVICE_EXEC_H
#define TW_DEVICE_EXEC_H

#include "channel/channel.h"
#include "device/reduce.h"
#include "plan/plan.h"

/*
 * The interpreter is a state machine: progress runs until no lane can go on and never waits, so
 * that many calls advance side by side on one thread. It keeps to the order of src/plan/plan.h
 * exactly.
 */
struct tw_exec; /* room to run one call of plans up to a size; reused from call to call */

/* Elements of the groups of IN or OUT, for v-collectives; NULL displs: packed. Borrowed until the
 * call ends. */
struct tw_exec_counts {
    const size_t *counts, *displs; /* [nranks] */
};

struct tw_exec_call {
    const struct tw_plan *plan; /* borrowed until done; has this rank's program */
    int rank;
    const void *in; /* NULL where the collective has none here */
    void *out;
    size_t count; /* of every EQUAL group, and of the one OWN group */
    /* What the collective's rule says of IN and OUT: PER_RANK all ranks' counts, which all ranks
     * know, or for gather_v and scatter_v the root only (others leave them NULL); PAIR_SEND the
     * rank's row, PAIR_RECV its column. NULL where groups are EQUAL or OWN. */
    struct tw_exec_counts in_counts, out_counts;
    twill_type_t type;
    twill_redop_t op;
    const void *scalar; /* of premul_sum: one element of type, read by start; else ignored */
    uint64_t header;    /* goes with every message; one that arrives with another is a mismatch */
    /* [2 * nranks], borrowed: instead of header, of what goes to each rank and of what comes from
     * it. For plans whose every message has its two ranks as its first and last ones. NULL: header
     */
    const uint64_t *headers;
    uint32_t call_index; /* of calls on this chan that use peers' scratch: picks the parity */
};

enum tw_exec_phase {
    TW_PHASE_IDLE,
    TW_PHASE_LAYOUT,
    TW_PHASE_SEND,
    TW_PHASE_RECV,
    TW_PHASE_SIGNAL,
    TW_PHASE_DONE
};
/* Where a call waits: for messages about late ranks. */
struct tw_exec_wait {
    enum tw_exec_phase phase;
    int peer; /* TW_NO_RANK: none */
    uint16_t lane;
    uint32_t step, slice;
    uint64_t loop;
};

/**
 * @param chan          borrowed; its FIFOs belong to this exec while a call runs
 * @param scratch_bytes bound on a call's scratch, allocated here, once; the same on all ranks. Of
 * plans whose peers write it (TW_CAP_PUT_SCRATCH) the chan's own size is the bound
 * @param signal_base   shared by all execs of a chan that use signals: the value all ranks have
 * reached; NULL: none
 */
enum twill_status tw_exec_create(struct tw_chan *chan, enum tw_isa isa, size_t scratch_bytes,
                                 uint64_t *signal_base, struct tw_exec **exec);
/** Of local scratch that it holds. */
size_t tw_exec_scratch_bytes(const struct tw_exec *exec);
void tw_exec_destroy(struct tw_exec *exec);

/**
 * Bind a call. No allocation when an earlier call of this exec had as many lanes.
 * @return TWILL_OK; ERR_UNSUPPORTED type and op not served, or caps of the plan missing (nothing
 * done); ERR_NOMEM scratch or slots too small for the plan; ERR_USAGE a call is still running
 */
enum twill_status tw_exec_start(struct tw_exec *exec, const struct tw_exec_call *call);

/**
 * Run what can run, for a bounded time: it may return while lanes could still go on, with
 * *advanced set. @param advanced out (NULL allowed): something moved
 * @return TWILL_OK the call is done on this rank; INPROGRESS; ERR_MISMATCH a message with another
 * header arrived (tw_exec_wait names the peer; *found_header of tw_exec_mismatch); ERR_PEER a
 * broken message
 */
enum twill_status tw_exec_progress(struct tw_exec *exec, bool *advanced);
void tw_exec_where(const struct tw_exec *exec, struct tw_exec_wait *wait);
uint64_t tw_exec_mismatch(const struct tw_exec *exec); /* the header that arrived */
/** Drop a call after an error or an abort: the chan's FIFOs are unusable afterwards. */
void tw_exec_cancel(struct tw_exec *exec);

/** Elements of a cell in one slice, slices per loop and loops that a call will use: pure, for tests
 * and reports. */
struct tw_exec_shape {
    size_t slice_elems;
    uint32_t slices;
    uint64_t loops;
};
enum twill_status tw_exec_shape(const struct tw_plan *plan, size_t count, size_t type_bytes,
                                size_t fifo_bytes, size_t scratch_bytes,
                                struct tw_exec_shape *shape);

/** Slots and scratch have room for an element of each cell of a message: tw_exec_shape succeeds.
 * type_bytes: of a type. Says no word about it. */
bool tw_exec_fits(const struct tw_plan *plan, size_t type_bytes, size_t fifo_bytes,
                  size_t scratch_bytes);

#endif
