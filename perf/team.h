/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a thread with its ranks does: calls of a library, on memory of a kind, measured and
 * checked. Never knows: how CUDA or NCCL are spoken to. */
#ifndef TW_PERF_TEAM_H
#define TW_PERF_TEAM_H

#include "perf.h"

/* The ranks that one thread drives: one on the host, -g of them on GPUs. */
struct perf_team {
    const struct perf_options *options;
    const struct perf_library *library;
    const struct perf_place *place;
    struct perf_rank *ranks; /* owned, as all below */
    int count;
    int size; /* ranks of the run */
    /* What threads tell each other goes by a communicator of twill on the host that has one member
     * for each thread. On the host it is the one that is measured. */
    twill_comm_t talk; /* borrowed */
    int member, members;
    int processes;
    char *gather;  /* one record for each member, and one of its own behind them */
    double *times; /* [time_room] */
    size_t time_room;
    struct perf_beside *beside; /* overlap.c's: [count]; NULL without --overlap */
};

/** Say what a call of twill on team->talk answered. @return true when it was TWILL_OK */
bool perf_team_ok(const struct perf_team *team, enum twill_status status, const char *call);
/** A thread's part of the run. talk is borrowed. @return the status to exit with */
int perf_team_run(const struct perf_options *options, twill_comm_t talk, int processes);

/* ---- libraries (lib_twill.c, lib_nccl.c): who does what is measured -----------------------------
 * Calls say what went wrong, and return false. */

struct perf_library {
    const char *name;
    /* -R from which buffers on a GPU are the library's own memory. */
    int own_memory_from;
    bool (*serves)(enum perf_op op, twill_redop_t redop);
    bool (*in_place)(enum perf_op op);
    void (*version)(char *text, size_t bytes);
    /* Fill rank, size and what the library needs of each rank. Collective. */
    bool (*connect)(struct perf_team *team);
    bool (*disconnect)(struct perf_team *team);
    void (*abort)(struct perf_team *team);
    bool (*alloc)(const struct perf_rank *rank, size_t bytes, void **ptr);
    bool (*free)(const struct perf_rank *rank, void *ptr);
    /* Registration of the buffers. Collective. */
    bool (*attach)(struct perf_team *team);
    bool (*detach)(struct perf_team *team);
    bool (*redop_begin)(struct perf_team *team, const struct perf_case *c);
    bool (*redop_end)(struct perf_team *team, const struct perf_case *c);
    /* One call of each of the team's ranks, in a group where there are several. */
    bool (*call)(const struct perf_team *team, const struct perf_case *c);
    /* Errors of calls that are under way. */
    bool (*healthy)(const struct perf_team *team);
    /* What c would run with; algo "" where nobody says. */
    bool (*choice)(const struct perf_team *team, const struct perf_case *c,
                   struct twill_choice *choice);
};
extern const struct perf_library perf_twill, perf_nccl;
/** Opens NCCL's library. @return CLI_GO_ON, or the status to exit with (it was said) */
int perf_nccl_open(const struct perf_options *options);

/* ---- places (place_host.c, place_cuda.c): where buffers are, and what a clock is there ----------
 */

#define PERF_PAGE_BYTES 65536 /* buffers are of whole ones, as programs have large ones */
#define PERF_GUARD_BYTES 4096 /* around each buffer; keeps the data aligned to a page */

struct perf_place {
    const char *name;
    /* What the mean of a row is, and what its single times are. */
    const char *(*time_is)(const struct perf_options *options);
    void (*describe)(const struct perf_team *team, char *text, size_t bytes);
    /* Most single times of a row. */
    size_t (*time_room)(const struct perf_options *options);
    /* Buffers, and what calls need beside them. end takes what begin made of it. */
    bool (*begin)(struct perf_team *team);
    bool (*end)(struct perf_team *team);
    /* Inputs of a case, for calls that nobody checks. */
    bool (*fill)(const struct perf_rank *rank, const struct perf_case *c);
    /* What the host wrote to the views goes to the buffers, and back. */
    bool (*put)(const struct perf_rank *rank, const struct perf_case *c);
    bool (*get)(const struct perf_rank *rank, const struct perf_case *c);
    /* All calls made so far are done, and well. */
    bool (*settle)(const struct perf_team *team);
    /* One call, done. */
    bool (*once)(const struct perf_team *team, const struct perf_case *c);
    /* mean_us: of the slowest rank here; team->times[*n]: single times, likewise. */
    bool (*time)(struct perf_team *team, const struct perf_case *c, double *mean_us, size_t *n);
};
extern const struct perf_place perf_place_host, perf_place_cuda;
/** The options fit what this build and this machine have. @return CLI_GO_ON, or the status to exit
 * with (it was said) */
int perf_place_check(const struct perf_options *options);

/* ---- checking (check.c) ------------------------------------------------------------------------
 */

/** Fill the view of a case's inputs and poison that of its output. */
void perf_check_prepare(const struct perf_rank *rank, const struct perf_case *c);
/** Bytes around the output that are poisoned and compared too. */
#define PERF_POISON_BYTES 64
/**
 * One checked call: fresh inputs, poisoned output, the call, the comparison with a reference of its
 * own (fp64 for floats, 64-bit integers) of every element, guards and untouched inputs included.
 *
 * @param spoil  elements to damage before the comparison
 * @param wrong  out: what was wrong on the team's ranks
 * @return false when the library answered with an error (it was said)
 */
bool perf_check_call(struct perf_team *team, const struct perf_case *c, size_t spoil,
                     uint64_t *wrong);

/* ---- measuring (measure.c) ----------------------------------------------------------------------
 */

struct perf_row {
    struct perf_case c;
    double time_us, min_us, median_us, p99_us, max_us; /* time: mean; all: maximum over the ranks */
    double algbw_gbs, busbw_gbs;
    bool checked;
    uint64_t wrong;             /* over all ranks */
    struct twill_choice choice; /* algo "": the operation has none (send_recv) */
    /* With --overlap, of calls and products beside each other. */
    double beside_us, product_us, product_beside_us; /* product_us: alone, as time_us is of calls */
};

enum perf_result { PERF_DONE, PERF_FAILED };

/** Warm up, time and check one case. Every member gets the same row. */
enum perf_result perf_measure(struct perf_team *team, const struct perf_case *c,
                              struct perf_row *row);
/** values[n] of each member, a few: the largest on every one. @return false on failure */
bool perf_team_most(const struct perf_team *team, double *values, size_t n);
/** Bytes of perf_team.gather. */
size_t perf_gather_bytes(int members);

/* ---- beside matrix products (overlap.c): with --overlap, on GPUs --------------------------------
 */

/** Products on each device of the team, tried and compared. end takes what begin made of it. */
bool perf_overlap_begin(struct perf_team *team);
bool perf_overlap_end(struct perf_team *team);
/** Fill in what a measured row has of products. Every member gets the same. */
bool perf_overlap_measure(struct perf_team *team, const struct perf_case *c, struct perf_row *row);
/** What is lost beside the other, in percent of the time alone; 0 where nothing was measured. */
double perf_overlap_loss(double alone_us, double beside_us);
/** What both get done at once, of what each gets done alone: 1 is no more than one by one. */
double perf_overlap_together(const struct perf_row *row);

/* ---- the run (sweep.c) -------------------------------------------------------------------------
 */

struct perf_rows {
    struct perf_row *rows; /* owned */
    size_t count, room;
    uint64_t wrong;
    double busbw_sum; /* over rows that move data */
    size_t busbw_rows;
};

/** All cases in order; member 0 prints and keeps the rows. @return false on failure */
bool perf_sweep(struct perf_team *team, struct perf_rows *rows);

/* ---- output (report.c, files.c, plot.c) --------------------------------------------------------
 */

void perf_report_head(const struct perf_team *team);
void perf_report_columns(const struct perf_team *team, const struct perf_case *c);
/** Said of a type and reduction that is not checked exactly. */
void perf_report_tolerance(const struct perf_case *c, int ranks);
/** --list: what a case would run with. */
void perf_report_choice(const struct perf_row *row);
/** in: NULL when there is no in-place form */
void perf_report_row(const struct perf_row *out, const struct perf_row *in);
/** A row of --overlap. */
void perf_report_overlap(const struct perf_row *row);
void perf_report_tail(const struct perf_rows *rows, bool checked);

/** Before a long run: can the files be written? All return false when not (it was said). */
bool perf_files_try(const struct perf_options *options);
bool perf_files_write(const struct perf_team *team, const struct perf_rows *rows);
bool perf_csv_write(const char *path, const struct perf_team *team, const struct perf_rows *rows);
bool perf_plot_write(const char *path, const struct perf_team *team, const struct perf_rows *rows);

#endif
