/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the parts of twill-perf and what they promise each other; twill by its public header.
 * Never knows: the library's inside: nothing of it is included but twill.h, nothing linked but how
 * numbers are read. */
#ifndef TW_PERF_PERF_H
#define TW_PERF_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "twill.h"

#define PERF_EXIT_WRONG 1
#define PERF_EXIT_FAILED 3

/* ---- the command line (options.c) ---------------------------------------------------------- */

enum perf_op {
    PERF_ALL_REDUCE,
    PERF_REDUCE,
    PERF_BROADCAST,
    PERF_REDUCE_SCATTER,
    PERF_ALL_GATHER,
    PERF_ALL_TO_ALL,
    PERF_GATHER,
    PERF_SCATTER,
    PERF_REDUCE_SCATTER_V,
    PERF_ALL_GATHER_V,
    PERF_ALL_TO_ALL_V,
    PERF_GATHER_V,
    PERF_SCATTER_V,
    PERF_BARRIER,
    PERF_SEND_RECV,
    PERF_OP_COUNT
};

#define PERF_TYPE_COUNT 12
#define PERF_REDOP_COUNT 9
/* twill's own reductions by their values, and behind them a created sum: each rank's input times
 * perf_mulsum_scalar of the rank. */
#define PERF_MULSUM ((twill_redop_t)(PERF_REDOP_COUNT - 1))
#define PERF_MAX_SIZES 10000
#define PERF_MAX_LISTED 64
#define PERF_MAX_GPUS 64
#define PERF_MAX_REPLAYS 1000
#define PERF_LEAST_CALLS 2 /* that --volume leaves of -n */
#define PERF_MAX_THREADS 1024
#define PERF_ROOT_ALL (-1)

/* --overlap: matrix products beside calls, on a stream of equal priority or behind that of calls */
enum perf_overlap { PERF_OVERLAP_NONE, PERF_OVERLAP_EQUAL, PERF_OVERLAP_FIRST };

struct perf_options {
    enum perf_op ops[PERF_OP_COUNT];
    int op_count;
    size_t min_bytes, max_bytes, step_bytes; /* step_bytes 0: step_factor is used */
    int step_factor;
    size_t sizes[PERF_MAX_LISTED]; /* --sizes, ascending; with size_count they are the sweep */
    int size_count;
    int iterations, warmup, checks;
    size_t volume; /* bytes that the timed calls of a row may come to, or 0 for any */
    twill_type_t types[PERF_TYPE_COUNT];
    int type_count;
    twill_redop_t redops[PERF_REDOP_COUNT];
    int redop_count;
    bool all_types, all_redops; /* asked for by "all": pairs that do not fit are left out */
    bool all_ops;               /* likewise: those that a peer does not have */
    int root;                   /* PERF_ROOT_ALL: every rank in turn */
    int threads;
    bool cuda;   /* --device cuda */
    int gpus;    /* ranks a thread drives; 0: -g was not given */
    int graph;   /* 0: calls on a stream; else how often their graph is replayed; -1: not given */
    int max_sms; /* as in a config; TWILL_UNSET: not given */
    bool nccl;   /* --peer: the calls go to NCCL */
    bool list;   /* say what would run; run nothing */
    bool uneven; /* the v-variants' blocks differ in size */
    int registered; /* -R */
    uint64_t seed;
    size_t inject; /* elements to spoil before the first check of each row: for tests */
    const char *json, *csv, *plot; /* borrowed from argv; NULL: none */
    const char *nccl_path;         /* borrowed likewise */
    enum perf_overlap overlap;
};

/** @return CLI_GO_ON; otherwise the status to exit with (everything has been said). */
int perf_options_parse(struct perf_options *options, int argc, char **argv);
/** The next size of the sweep, or 0 after the last (the first: from = 0). */
size_t perf_options_next_size(const struct perf_options *options, size_t from);
/** Timed calls of a row whose size is bytes. */
int perf_options_calls(const struct perf_options *options, size_t bytes);

/* ---- names (names.c) ---------------------------------------------------------------------------
 */

const char *perf_type_name(twill_type_t type);
/** text is the type's name, twill's or nccl-tests'. */
bool perf_type_named(twill_type_t type, const char *text);
const char *perf_redop_name(twill_redop_t redop);
/** "equal", "first"; "" without --overlap. */
const char *perf_overlap_name(enum perf_overlap overlap);
/** Bitwise operations are of integers only. */
bool perf_redop_fits(twill_redop_t redop, twill_type_t type);
size_t perf_type_bytes(twill_type_t type);

/* ---- values (values.c): what a rank's input holds, without keeping it --------------------------
 */

enum perf_kind {
    PERF_RAW,    /* any bits: data that is only moved, and integers */
    PERF_SMALL,  /* floats: integers so small that their sum over the ranks is exact */
    PERF_POWER,  /* floats: +-1/2, +-1, +-2, whose product is exact */
    PERF_FINITE, /* floats: any bits that are a finite number */
};

struct perf_values {
    twill_type_t type;
    enum perf_kind kind;
    int limit; /* PERF_SMALL: largest magnitude; PERF_POWER: largest exponent */
    uint64_t seed, iteration;
};

/** Bits of each type's significand, the hidden one included; 0 for integers. */
int perf_type_digits(twill_type_t type);
/** Bits of n elements of a rank's input, from index first. */
void perf_values_bits(const struct perf_values *values, int rank, size_t first, size_t n,
                      uint64_t *bits);
/** The same elements of a float type as numbers. scratch: [n] */
void perf_values_numbers(const struct perf_values *values, int rank, size_t first, size_t n,
                         uint64_t *scratch, double *number);
void perf_values_store(const struct perf_values *values, int rank, size_t first, size_t n,
                       void *data);
/** Bits of element i as they lie in memory. */
uint64_t perf_bits_load(twill_type_t type, const void *data, size_t i);
void perf_bits_store(twill_type_t type, void *data, size_t i, uint64_t bits);
/** A float's value. */
double perf_bits_decode(twill_type_t type, uint64_t bits);
/** The float nearest to value, ties to even; above the largest number inf, or for float8 the
 * largest number. value is no NaN. */
uint64_t perf_bits_round(twill_type_t type, double value);
/** An integer's value, sign-extended when the type is signed. */
uint64_t perf_bits_extend(twill_type_t type, uint64_t bits);

/* ---- one rank -----------------------------------------------------------------------------------
 */

struct perf_buffer {
    char *data; /* what calls are given: max_bytes, guards around them */
    char *view; /* the same as the host reads and writes it: data itself, or a copy; NULL: none */
    void *base, *view_base; /* owned: what is freed */
    void *reg;              /* the library's registration */
};

struct perf_gpu; /* place_cuda.c */

struct perf_rank {
    const struct perf_options *options;
    twill_comm_t comm; /* twill's */
    void *peer;        /* NCCL's */
    int rank, size;
    int device;           /* TWILL_DEVICE_HOST, or CUDA's number */
    void *stream;         /* what calls are given */
    struct perf_gpu *gpu; /* owned; NULL on the host */
    struct perf_buffer send, recv;
    twill_redop_t mulsum; /* while PERF_MULSUM of a type is swept */
    size_t buffer_bytes;
    size_t *counts;     /* owned: [2 * size], of a v-variant's send and receive blocks */
    uint64_t iteration; /* of checked calls, counts on through the run: inputs never repeat */
};

/** Say what a call of twill answered. @return true when it was TWILL_OK */
bool perf_ok(const struct perf_rank *rank, enum twill_status status, const char *call);

/* ---- operations (ops.c)
 * --------------------------------------------------------------------------- */

struct perf_case {
    enum perf_op op;
    twill_type_t type;
    twill_redop_t redop;
    int root;
    bool in_place;
    bool uneven;                   /* blocks of v-variants fall from twice the mean to none */
    size_t count;                  /* as passed to the call; of a v-variant's block in the mean */
    size_t size_bytes;             /* as nccl-tests counts them: all ranks' parts */
    size_t send_count, recv_count; /* of this rank */
};

struct perf_op_info {
    const char *name;
    bool reduces, rooted, moves, in_place;
    bool many_in, many_out; /* a block for each rank; else one */
    bool varies;            /* blocks may differ */
    double (*bus_factor)(int ranks);
};
const struct perf_op_info *perf_op_info(enum perf_op op);

/** Fill count, size_bytes, send_count and recv_count for a size of the sweep. */
void perf_case_shape(const struct perf_rank *rank, struct perf_case *c, size_t bytes);
/** A case of another rank, as this one has it: send_count and recv_count may differ. */
struct perf_case perf_case_for(const struct perf_rank *rank, const struct perf_case *c);
/** Fill rank->counts where the call takes any. */
void perf_case_counts(const struct perf_rank *rank, const struct perf_case *c);
/** Elements of what one rank's input has for another's output, in an operation with blocks. */
size_t perf_case_block(const struct perf_case *c, int ranks, int from, int to);
/** Elements before the block of rank `to` in the input of `from`, and before that of `from` in the
 * output of `to`; 0 where there is one block. */
size_t perf_case_in_first(const struct perf_case *c, int ranks, int from, int to);
size_t perf_case_out_first(const struct perf_case *c, int ranks, int from, int to);
/** False for ranks whose receive buffer the call ignores. */
bool perf_case_has_output(const struct perf_rank *rank, const struct perf_case *c);
/** What PERF_MULSUM multiplies a rank's input by: small, so that sums stay exact. */
#define PERF_MULSUM_MOST 2
static inline int perf_mulsum_scalar(int rank) { return 1 + rank % PERF_MULSUM_MOST; }
/** What calls are given, and the same for the host to look at. */
const void *perf_case_send(const struct perf_rank *rank, const struct perf_case *c);
void *perf_case_recv(const struct perf_rank *rank, const struct perf_case *c);
char *perf_case_send_view(const struct perf_rank *rank, const struct perf_case *c);
char *perf_case_recv_view(const struct perf_rank *rank, const struct perf_case *c);

/* ---- what is right (expect.c) ------------------------------------------------------------------
 */

#define PERF_BLOCK 256
/* Elements of the expected output: bits where they are exact, or numbers with a tolerance. */
struct perf_expected {
    uint64_t bits[PERF_BLOCK];
    double number[PERF_BLOCK], tolerance[PERF_BLOCK];
    bool is_number;
};

/** What the inputs of a case hold. */
struct perf_values perf_values_of(const struct perf_rank *rank, const struct perf_case *c);
/** n elements, at most PERF_BLOCK, of this rank's output from index first. */
void perf_expect(const struct perf_rank *rank, const struct perf_case *c,
                 const struct perf_values *values, size_t first, size_t n,
                 struct perf_expected *expected);
/** What the check of a case allows, in words. */
void perf_check_tolerance_text(const struct perf_case *c, int ranks, char *text, size_t bytes);

#endif
