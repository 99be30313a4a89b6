/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the parts of twill-tune and what they promise each other.
 * Never knows: how prices are made. */
#ifndef TW_TOOLS_TUNE_TUNE_H
#define TW_TOOLS_TUNE_TUNE_H

#include "sim.h"

#define TUNE_RANKS_MOST 8
#define TUNE_PATH_BYTES 4096
#define TUNE_EXIT_FAILED 3

/* A sweep that somebody has measured. */
struct tune_sweep {
    const char *path; /* borrowed from argv */
    int nranks;
};

struct tune_options {
    bool cuda;           /* tune calls on devices; else those on this host */
    const char *out;     /* NULL: standard output */
    const char *machine; /* this host as twill-topo wrote it; NULL: look at it */
    const char *cost;    /* table to begin with; NULL: as everywhere */
    int nranks[TUNE_RANKS_MOST];
    int nnranks; /* 0: of devices, as many as there are */
    int rounds;
    uint64_t max_bytes;     /* 0: as is usual there */
    const char *run, *perf; /* programs; NULL: beside this one, or in PATH */
    const char *column;
    const char *algo; /* the only one to measure; NULL: all */
    struct tune_sweep sweeps[SIM_FILES_MOST];
    int nsweeps;
    bool quiet;
};

/** @return CLI_GO_ON; otherwise the status to exit with (everything has been said). */
int tune_options_parse(struct tune_options *options, int argc, char **argv);

/** Run twill-perf under twill-run for every algorithm and number of ranks; add what it measured.
 * Progress is said on standard error. */
enum twill_status tune_measure(const struct tune_options *options, struct sim_samples *samples);

/* How well a table predicts samples. */
struct tune_quality {
    double median, nine_tenths; /* of |predicted / measured - 1| */
};
/** @param nranks  0: all samples; else those of so many ranks */
enum twill_status tune_quality_of(struct sim_pool *pool, const struct tw_cost_table *table,
                                  const struct sim_samples *samples, int nranks,
                                  struct tune_quality *quality);

/**
 * Fit the rows of host and shm to the samples: least squares of the logarithm of predicted /
 * measured, by Gauss and Newton with Levenberg's and Marquardt's damping, gradients by differences;
 * samples that are off by more than a third count as by absolute value (Huber), so that a few
 * disturbed ones do not pull. Rows that the samples say nothing of stay.
 *
 * @param table  in: where to begin; out: the fit
 */
enum twill_status tune_fit(struct sim_pool *pool, const struct sim_samples *samples,
                           struct tw_cost_table *table);

/* ---- programs (program.c) ------------------------------------------------------------------- */

/** given, else beside this program, else by name: PATH decides. */
void tune_program_find(const char *given, const char *name, char path[TUNE_PATH_BYTES]);
/** Until it has ended; it ends with this program. Its standard output goes nowhere.
 * @param variables  "NAME=VALUE" for its environment, ended by NULL; NULL: none */
enum twill_status tune_program_run(char *const argv[], char *const variables[]);
/** A new one for temporary files. From here on signals that ask this program to end are passed on
 * to what it runs, and end it with an error. */
enum twill_status tune_folder_make(char folder[TUNE_PATH_BYTES]);

/* ---- calls on devices ----------------------------------------------------------------------- */

/* What a call on devices took. */
struct tune_call {
    enum tw_cost_proto proto;
    enum tw_coll coll;
    int nranks;
    uint64_t bytes; /* of a block */
    uint32_t blocks;
    double time_us;
};
struct tune_calls {
    struct tune_call *at; /* owned */
    size_t count, room;
};

/** Samples, fit, file: what main does for the host. */
enum twill_status tune_device(const struct tune_options *options);
/**
 * Add the rows of a CSV file of twill-perf, of calls in one process, one rank a device, out of
 * place; of equal cases the least time stays. What says nothing of one protocol is passed over.
 * @param cut  devices did not reach each other
 */
enum twill_status tune_calls_read(struct tune_calls *calls, const char *path, int nranks,
                                  const char *column, bool cut);
/** Run twill-perf over the devices of this host, with each protocol made the cheapest in turn. */
enum twill_status tune_calls_measure(const struct tune_options *options, int nranks,
                                     const struct tw_cost_table *table, struct tune_calls *calls);
/**
 * Fit starts and rates of every protocol that calls speak of: least squares of the logarithm of
 * predicted / measured (Huber), by trying steps of each row. What they say nothing of stays.
 * @param table  in: where to begin; out: the fit
 */
void tune_calls_fit(const struct tune_calls *calls, struct tw_cost_table *table);
/** @return cases of the protocol */
size_t tune_calls_quality(const struct tune_calls *calls, const struct tw_cost_table *table,
                          enum tw_cost_proto proto, struct tune_quality *quality);

/** Solve a x = b for a symmetric positive definite a [n][n]; b becomes x. @return false: it is not
 * positive definite. a is spoilt. */
bool tune_solve(size_t n, double *a, double *b);

#endif
