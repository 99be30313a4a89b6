/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the parts of twill-sim, some of which twill-tune uses too, and what they promise.
 * Never knows: how prices are made. */
#ifndef TW_TOOLS_SIM_SIM_H
#define TW_TOOLS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "algo/algo.h"
#include "plan/cost.h"
#include "topo/graph.h"

#define SIM_EXIT_FAILED 3
#define SIM_FILES_MOST 256

/* ---- what ranks run on (machine.c) ---------------------------------------------------------- */

struct sim_machine_options {
    const char *machine; /* NULL: this host; a synthetic name, or a file of twill-topo */
    int gpus;            /* place ranks on GPUs: 1 yes, 0 no, -1: where there are any */
    uint32_t per_host;   /* 0: as many as there are CPUs or GPUs */
    bool cyclic;         /* one on each host in turn */
    bool ring;           /* then in the order of a ring (topo/ring.h) */
    uint8_t between_hosts;
};

struct sim_machine {
    struct tw_topo_graph *graph; /* owned */
    int nranks;
    bool gpus;
    char *order; /* owned; in which ranks were put, for people; NULL: as places come */
    struct tw_cost_net net;
};

/** Ranks take CPUs in order of the machine, as twill-run --bind core does; more ranks than a host
 * of one machine has share them in turn. All that is wrong is said through tw_fail. */
enum twill_status sim_machine_open(const struct sim_machine_options *options, int nranks,
                                   struct sim_machine *machine);
void sim_machine_close(struct sim_machine *machine);

/** TWILL_COST_FILE's or path's table, or the built-in one. path NULL: the parameter decides. */
enum twill_status sim_table_open(const char *path, struct tw_cost_table *table);

/* ---- a plan to be priced (job.c) ------------------------------------------------------------ */

struct sim_job_options {
    const struct tw_algo *algo; /* NULL: plan */
    const struct tw_plan *plan; /* borrowed */
    enum tw_coll coll;
    int nranks, root;
    uint32_t channels;
    uint32_t param;      /* the algorithm's own; 0: its default */
    uint64_t fifo_bytes; /* of each FIFO; 0: what a process with TWILL_STAGING=32M would take, on
                            GPUs 4M */
};

struct sim_job {
    struct tw_cost_prog *prog; /* owned */
    struct tw_plan *facts;     /* owned: rank 0's program and all facts */
    uint64_t fifo_bytes;
    size_t scratch_bytes;
};

/** Generate and link, rank by rank where there are many. */
enum twill_status sim_job_open(const struct sim_job_options *options,
                               const struct sim_machine *machine, struct sim_job *job);
void sim_job_close(struct sim_job *job);

struct sim_size {
    uint64_t count, size_bytes; /* bytes as nccl-tests count them */
};
/** The call whose larger buffer has at most so many bytes, whole elements for every rank. */
struct sim_size sim_size_of(enum tw_coll coll, int nranks, uint64_t bytes, uint32_t type_bytes);
/** busbw / algbw */
double sim_bus_factor(enum tw_coll coll, int nranks);

/** Price a call, cut as the host executor cuts it. */
enum twill_status sim_job_price(const struct sim_job *job, const struct tw_cost_table *table,
                                uint64_t count, uint32_t type_bytes, bool in_place,
                                struct tw_cost_price *price);

/** By name; TW_COLL_COUNT for none (p2p is none). */
enum tw_coll sim_coll_find(const char *name);
/** Bytes of an element by twill's or nccl-tests' name of the type; 0: there is none. */
uint32_t sim_type_bytes(const char *name);

/* ---- measured sweeps (samples.c) ------------------------------------------------------------ */

struct sim_sample {
    enum tw_coll coll;
    const struct tw_algo *algo;
    int nranks;
    uint32_t channels, type_bytes;
    int root;
    bool in_place;
    uint64_t count, size_bytes;
    double time_us;
};
struct sim_samples {
    struct sim_sample *at; /* owned */
    size_t count, room;
};

/**
 * Add the rows of a CSV file of twill-perf that ran on nranks ranks; of equal cases the least time
 * stays. Rows of operations that have no plan (send_recv) and of plans that are not built in are
 * passed over.
 *
 * @param column   of the time: time_us, time_us_min, time_us_median, ...
 * @param skipped  out: rows passed over are added
 */
enum twill_status sim_samples_read(struct sim_samples *samples, const char *path, int nranks,
                                   const char *column, size_t *skipped);
void sim_samples_free(struct sim_samples *samples);

/* Of CSV files, which twill-tune reads for itself where calls ran no plan. */
#define SIM_CSV_LINE_BYTES 1024
#define SIM_CSV_FIELDS_MOST 64
/** Cut a line at commas, in place. @return the number of fields */
int sim_csv_cut(char *line, char *fields[SIM_CSV_FIELDS_MOST]);
/** The field of that name; -1: there is none. */
int sim_csv_find(char *const fields[], int count, const char *name);
/** A decimal number with a point, whatever the locale says. */
bool sim_csv_number(const char *text, double *value);

/* Linked plans of samples, each made once. */
struct sim_pool;
enum twill_status sim_pool_create(const struct sim_machine_options *machine,
                                  struct sim_pool **pool);
void sim_pool_destroy(struct sim_pool *pool);
enum twill_status sim_pool_price(struct sim_pool *pool, const struct tw_cost_table *table,
                                 const struct sim_sample *sample, uint64_t *time_ps);

/** Middle of values, which are sorted by it; the mean of the two middle ones. count at least 1. */
double sim_median(double *values, size_t count);

/* ---- twill-sim's own (options.c, main.c, sweep.c, against.c, report.c) ------------------------
 */

enum sim_form { SIM_TEXT, SIM_JSON, SIM_CSV };

struct sim_options {
    struct sim_machine_options machine;
    enum tw_coll coll;
    bool coll_given;
    const char *algo; /* NULL: all, the cheapest is shown */
    const char *plan; /* file; NULL: built in */
    int nranks;       /* 0: not given */
    int root;
    uint32_t channels, param;
    uint64_t min_bytes, max_bytes;
    uint32_t factor;
    const char *type;
    bool in_place;
    int check; /* 1 --check, 0 --no-check, -1: plans of files, and built-in ones to 64 ranks */
    uint64_t fifo_bytes;
    const char *cost;
    const char *against[SIM_FILES_MOST];
    int nagainst;
    const char *column;
    enum sim_form form;
};

/** @return CLI_GO_ON; otherwise the status to exit with (everything has been said). */
int sim_options_parse(struct sim_options *options, int argc, char **argv);

struct sim_row {
    struct sim_size size;
    const char *algo;
    struct tw_cost_price price;
    char limit[128];
};

/** All sizes of the sweep. @return the status to exit with */
int sim_sweep(const struct sim_options *options);
/** Predicted against measured. @return the status to exit with */
int sim_against(const struct sim_options *options);

/* What all rows have in common. */
struct sim_head {
    const struct sim_options *options;
    enum tw_coll coll;
    int nranks;
    uint32_t type_bytes;
    const char *machine;
    const char *order; /* of the ranks; NULL: that of the machine */
    uint64_t table_hash;
    const char *proof; /* what was proven, in words */
};
void sim_report_head(const struct sim_head *head);
void sim_report_row(const struct sim_head *head, const struct sim_row *row, bool first);
void sim_report_tail(const struct sim_head *head);

#endif
