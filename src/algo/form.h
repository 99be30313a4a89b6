/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the schedules have in common: channels, cells, lanes, the plan around a program.
 * Never knows: any one schedule, bytes, transports. */
#ifndef TW_ALGO_FORM_H
#define TW_ALGO_FORM_H

#include "algo/algo.h"

/*
 * Data is cut into `chunks` for the algorithm, and each chunk once more into one cell for every
 * channel. A chunk is a group of IN or OUT where the collective has a group per rank (so that
 * chunks is 1 there: cells of a group are channels only), and otherwise a share of the one group.
 * Chunk c of channel k is cell c * channels + k. A program is written for one channel: a lane (or
 * several) of its own, fifo ids from k * fifos, signal ids from k * nsigs.
 *
 * Scratch chunks have the sizes of the collective's groups. Where these differ (the v-variants)
 * chunk c of scratch is as large as group c and there are no more of them than groups; else any
 * chunk fits any other of its number modulo `chunks`. With own_scratch they all fit the rank's own
 * chunk: that of its number among nranks chunks, or its group.
 */
struct tw_algo_job;

/** Write the steps of one rank on one channel. Called with at least 2 ranks. */
typedef void (*tw_algo_program_fn)(struct tw_algo_job *job, int rank, uint16_t channel);

/* What all ranks know of a plan before any step is written. Counts are for one channel. */
struct tw_algo_form {
    const char *name;
    uint32_t chunks; /* that a group is cut into */
    uint32_t depth, slices;
    uint32_t widest;                      /* chunks in the widest message; 0: no FIFO is used */
    uint32_t fifos;                       /* of a channel, each way between two ranks; 0: one */
    uint32_t scratch_chunks, wide_chunks; /* SCRATCH and WIDE have room for so many */
    uint32_t nsigs, sig_max;
    uint32_t caps;
    uint32_t param;     /* of the algorithm: radix, aggregation, ... */
    bool own_scratch;   /* SCRATCH and WIDE chunks are all as large as the rank's own chunk */
    bool one_channel;   /* spans need the cells of a chunk to be one */
    bool deterministic; /* adds in the defined order, unrounded: see tw_plan.deterministic */
    tw_algo_program_fn program;
};

struct tw_algo_job {
    struct tw_build build;
    enum tw_coll coll;
    const struct tw_coll_rule *rule; /* of coll */
    int nranks, root;
    uint32_t channels;
    uint32_t fifos, nsigs; /* of one channel */
    uint32_t param;
    uint8_t in_part, out_part, scratch_part;
};

/**
 * The plan of a form: partitions, then the program of each rank that is wanted. One rank alone gets
 * a copy (a finished one when the collective reduces) and no program.
 */
enum twill_status tw_algo_form_plan(const struct tw_algo_form *form,
                                    const struct tw_algo_args *args, struct tw_plan **plan);

/* ---- a lane being written ------------------------------------------------------------------- */

struct tw_algo_lane {
    struct tw_algo_job *job;
    int rank;
    uint16_t lane, channel;
    uint16_t fifo; /* of the channel's, for the messages of the steps to come */
};

struct tw_algo_lane tw_algo_lane_add(struct tw_algo_job *job, int rank, uint16_t channel);

/** count chunks from first on, each `stride` chunks behind the one before, on the lane's channel.
 */
struct tw_plan_span tw_algo_strided(const struct tw_algo_lane *lane, enum tw_plan_buf buf,
                                    uint32_t first, uint32_t stride, uint32_t count);
/** count neighbouring chunks; one chunk. */
struct tw_plan_span tw_algo_range(const struct tw_algo_lane *lane, enum tw_plan_buf buf,
                                  uint32_t first, uint32_t count);
struct tw_plan_span tw_algo_chunk(const struct tw_algo_lane *lane, enum tw_plan_buf buf,
                                  uint32_t chunk);

/* One step each; return its index in the lane. flags: tw_plan_flag. */
uint32_t tw_algo_copy(const struct tw_algo_lane *lane, struct tw_plan_span src,
                      struct tw_plan_span dst);
/** The copy that ends a reduction: finishes WIDE partials and rounds them. */
uint32_t tw_algo_finish(const struct tw_algo_lane *lane, struct tw_plan_span src,
                        struct tw_plan_span dst);
uint32_t tw_algo_reduce(const struct tw_algo_lane *lane, struct tw_plan_span src,
                        struct tw_plan_span dst, uint8_t flags);
uint32_t tw_algo_send(const struct tw_algo_lane *lane, int to, struct tw_plan_span src);
/** Slice by slice after a step of another lane of the rank. */
uint32_t tw_algo_send_after(const struct tw_algo_lane *lane, int to, struct tw_plan_span src,
                            uint16_t dep_lane, uint32_t dep_step);
uint32_t tw_algo_recv(const struct tw_algo_lane *lane, int from, struct tw_plan_span dst);
uint32_t tw_algo_recv_reduce(const struct tw_algo_lane *lane, int from, struct tw_plan_span src,
                             struct tw_plan_span dst, uint8_t flags);
/** Stores to dst as well. */
uint32_t tw_algo_recv_send(const struct tw_algo_lane *lane, int from, int to,
                           struct tw_plan_span dst);
/** Stores to dst as well when flags have TW_STEP_STORE; pass tw_span_none() otherwise. */
uint32_t tw_algo_recv_reduce_send(const struct tw_algo_lane *lane, const int from_to[2],
                                  struct tw_plan_span src, struct tw_plan_span dst, uint8_t flags);
uint32_t tw_algo_put(const struct tw_algo_lane *lane, int to, struct tw_plan_span src,
                     struct tw_plan_span dst);
/* Signal words of a channel are numbered by the rank that raises them: raise the own one at `to`;
 * wait for `from` to have raised its one here. */
uint32_t tw_algo_signal(const struct tw_algo_lane *lane, int to, uint32_t value);
uint32_t tw_algo_wait(const struct tw_algo_lane *lane, int from, uint32_t value);

/* ---- ranks on a circle ---------------------------------------------------------------------- */

/** (rank + by) mod nranks, for by from -nranks on. */
static inline int tw_algo_around(const struct tw_algo_job *job, int rank, int by)
{
    return (rank + by + job->nranks) % job->nranks;
}

/* Chunks on the circle of n that do not wrap around the last. */
struct tw_algo_piece {
    uint32_t at;    /* of the first one, in the sequence that was cut */
    uint32_t first; /* its number */
    uint32_t count;
};
/** Cut chunks first, first + stride, ... (count of them, at least 1, in less than a turn of the n)
 * where they wrap; returns how many pieces, 1 or 2. */
int tw_algo_cut(uint32_t n, uint32_t first, uint32_t stride, uint32_t count,
                struct tw_algo_piece pieces[2]);

/** Least k with 2^k >= n, and the greatest power of two that is not above n; n at least 1. */
static inline uint32_t tw_algo_log2_ceil(uint32_t n)
{
    return n <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(n - 1);
}
static inline uint32_t tw_algo_power_below(uint32_t n)
{
    return 1u << (31 - (uint32_t)__builtin_clz(n));
}
static inline bool tw_algo_is_power(uint32_t n) { return (n & (n - 1)) == 0; }

/* ---- the generators ------------------------------------------------ */

enum twill_status tw_algo_ring(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_recursive_doubling(const struct tw_algo_args *args,
                                             struct tw_plan **plan);
enum twill_status tw_algo_halving_doubling(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_circulant(const struct tw_algo_args *args, struct tw_plan **plan);
/** The same plan under the name of an algorithm that falls back to it. */
enum twill_status tw_algo_circulant_as(const char *name, const struct tw_algo_args *args,
                                       struct tw_plan **plan);
enum twill_status tw_algo_direct(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_two_shot(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_ordered(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_ordered_as(const char *name, const struct tw_algo_args *args,
                                     struct tw_plan **plan);
enum twill_status tw_algo_ordered_direct(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_ordered_tree(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_ordered_halving(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_direct_put(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_two_shot_put(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_binomial(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_knomial(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_double_tree(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_bruck(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_pat(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_pairwise(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_two_level(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_linear(const struct tw_algo_args *args, struct tw_plan **plan);
enum twill_status tw_algo_dissemination(const struct tw_algo_args *args, struct tw_plan **plan);

#endif
