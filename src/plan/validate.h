/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what each operation of a step reads and writes, and which cells fit each other; shared by
 * validation and the checker. Never knows: values, order, time. */
#ifndef TW_PLAN_VALIDATE_H
#define TW_PLAN_VALIDATE_H

#include "plan/plan.h"

/* What an operation uses. */
enum tw_op_trait {
    TW_TRAIT_SRC = 1,         /* src holds at least one cell */
    TW_TRAIT_SRC_MAYBE = 2,   /* src may be empty */
    TW_TRAIT_DST = 4,         /* dst holds at least one cell (with STORE, for fused forms) */
    TW_TRAIT_DST_MAYBE = 8,   /* dst may be empty */
    TW_TRAIT_DST_STORE = 16,  /* dst is used with STORE only */
    TW_TRAIT_DST_READ = 32,   /* dst is an operand too */
    TW_TRAIT_RECEIVES = 64,   /* a message on fifo_in from `from` */
    TW_TRAIT_SENDS = 128,     /* a message on fifo_out to `to` */
    TW_TRAIT_SRC_PEER = 256,  /* src lies on `from` */
    TW_TRAIT_DST_PEER = 512,  /* dst lies on `to` */
    TW_TRAIT_REDUCES = 1024,  /* combines two operands */
    TW_TRAIT_TO = 2048,       /* names `to` without a FIFO */
    TW_TRAIT_SIG = 4096,      /* names a signal and a value */
    TW_TRAIT_WIDENS = 8192,   /* a narrow src may go to a WIDE dst */
    TW_TRAIT_NARROWS = 16384, /* ROUND is legal: a WIDE src to a narrow dst */
};

struct tw_op_rule {
    const char *name;
    uint32_t traits;
    uint8_t flags; /* legal flags, tw_plan_flag */
};
extern const struct tw_op_rule tw_op_rules[TW_OP_COUNT];

/** The dst of the step is written. */
static inline bool tw_step_stores(const struct tw_plan_step *step)
{
    uint32_t traits = tw_op_rules[step->op].traits;
    if (traits & TW_TRAIT_DST_STORE)
        return step->flags & TW_STEP_STORE;
    return (traits & (TW_TRAIT_DST | TW_TRAIT_DST_MAYBE)) && step->dst.block != 0;
}

/* Cells of equal kind, per and id have equal counts of elements on whatever ranks they lie. */
struct tw_cell_fit {
    uint32_t kind, per;
    uint64_t id;
};
struct tw_cell_fit tw_cell_fit(const struct tw_plan *plan, int rank, uint8_t part, uint32_t cell);

static inline bool tw_cells_fit(struct tw_cell_fit a, struct tw_cell_fit b)
{
    return a.kind == b.kind && a.per == b.per && a.id == b.id;
}

/** Groups that IN or OUT has on a rank by the contract of plan.h: 0 where there is none (or where
 * the collective states none, as for p2p; then *any is set). */
uint32_t tw_buf_groups(const struct tw_plan *plan, int rank, enum tw_plan_buf buf, bool *any);

/* How the steps so far cut the groups of IN and OUT: alike in the whole plan. */
struct tw_user_cut {
    uint32_t per; /* 0: not seen yet */
};

/** The step-by-step half of tw_plan_validate. */
enum twill_status tw_step_validate(const struct tw_plan *plan, int rank, uint32_t lane,
                                   uint32_t step, struct tw_user_cut *cut);

/** tw_fail with the place of a step before the sentence. */
enum twill_status tw_step_fail(const struct tw_plan *plan, int rank, uint32_t lane, uint32_t step,
                               const char *format, ...) __attribute__((format(printf, 5, 6)));

const char *tw_buf_name(enum tw_plan_buf buf);

#endif
