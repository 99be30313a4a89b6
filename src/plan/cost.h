/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: plans, what steps and links cost, which resources they share.
 * Never knows: who asks, transports, which algorithm wrote a plan, the machine itself. */
#ifndef TW_PLAN_COST_H
#define TW_PLAN_COST_H

#include <stddef.h>

#include "plan/plan.h"

/*
 * The price of a plan is the time that a discrete-event execution of its steps takes (docs/cost.md
 * has the model and what it leaves out):
 *
 * - Lanes run side by side, each in the order loop, step, slice; a slice begins when the lane, its
 *   dependency, its message, its free slot and its signal are there.
 * - An engine (a CPU, a GPU's block) does one slice at a time, in the order in which they became
 *   ready; lanes of a rank share its engine, and ranks may share one (then a change of rank costs).
 *   A slice costs its engine the overheads of its operation and bytes at the copy or reduce rate.
 * - What a transfer passes (memory, links, NICs, switches) are resources. Each serves transfers one
 *   after another in the order in which they come, at its own rate; a transfer is over when the
 *   slowest of its resources has served it. Resources do not hold each other up.
 * - On a COPY link the engine itself moves the bytes and is busy until they are through; on a WIRE
 *   link it hands them over and goes on.
 * - A message is seen, and a slot or a signal comes back, one latency after the step ended.
 *
 * All arithmetic is in integers and all ties are broken by number, so that equal inputs give the
 * same price on every machine. Nothing depends on the locale, the environment or the time.
 *
 * Times are ps, rates MB/s (10^6 bytes a second). Nothing here is shared between calls: any number
 * of threads may price at the same time.
 */
#define TW_COST_NONE UINT32_MAX

/* ---- the table (cost_table.c) --------------------------------------------------------------- */

enum tw_cost_unit { TW_COST_UNIT_NS, TW_COST_UNIT_MBS, TW_COST_UNIT_BYTES, TW_COST_UNIT_COUNT };

enum tw_cost_exec { TW_COST_HOST, TW_COST_GPU, TW_COST_EXEC_COUNT };
enum tw_cost_exec_field {
#define TW_COST_EXEC_ROW(field, name, unit, host, gpu, doc) TW_COST_##field,
#include "plan/cost_param.def"
#undef TW_COST_EXEC_ROW
    TW_COST_EXEC_FIELDS
};

enum tw_cost_carrier { TW_COST_COPY, TW_COST_WIRE };
enum tw_cost_link_kind {
#define TW_COST_LINK_KIND(kind, name, carrier, latency, rate, post, doc) TW_COST_LINK_##kind,
#include "plan/cost_param.def"
#undef TW_COST_LINK_KIND
    TW_COST_LINK_COUNT
};
enum tw_cost_link_field {
#define TW_COST_LINK_ROW(field, name, unit, doc) TW_COST_##field,
#include "plan/cost_param.def"
#undef TW_COST_LINK_ROW
    TW_COST_LINK_FIELDS
};

/* How data of calls on devices travels: by kernels of twill's, then by copy engines. */
enum tw_cost_proto {
#define TW_COST_PROTO(kind, name, start, rate, block, grain, blocks) TW_COST_PROTO_##kind,
#include "plan/cost_param.def"
#undef TW_COST_PROTO
    TW_COST_PROTO_KERNELS,
    TW_COST_PROTO_LAST_KERNEL = TW_COST_PROTO_KERNELS - 1,
#define TW_COST_COPIES(kind, name, start, rate) TW_COST_PROTO_##kind,
#include "plan/cost_param.def"
#undef TW_COST_COPIES
    TW_COST_PROTO_COUNT
};
enum tw_cost_proto_field {
#define TW_COST_PROTO_ROW(field, name, unit, doc) TW_COST_PROTO_##field,
#include "plan/cost_param.def"
#undef TW_COST_PROTO_ROW
    TW_COST_PROTO_FIELDS
};
#define TW_COST_COPIES_FIELDS (TW_COST_PROTO_RATE + 1) /* the first ones */

#define TW_COST_PLAN_VALUES                                                                        \
    ((uint32_t)TW_COST_EXEC_COUNT * TW_COST_EXEC_FIELDS +                                          \
     (uint32_t)TW_COST_LINK_COUNT * TW_COST_LINK_FIELDS)
#define TW_COST_KERNEL_VALUES ((uint32_t)TW_COST_PROTO_KERNELS * TW_COST_PROTO_FIELDS)
#define TW_COST_VALUES                                                                             \
    (TW_COST_PLAN_VALUES + TW_COST_KERNEL_VALUES +                                                 \
     (uint32_t)(TW_COST_PROTO_COUNT - TW_COST_PROTO_KERNELS) * TW_COST_COPIES_FIELDS)

/* What steps and links cost: executors field by field, then links, then protocols on devices. Equal
 * on all ranks of a job. */
struct tw_cost_table {
    uint64_t value[TW_COST_VALUES]; /* ps, MB/s, bytes or a number */
};

static inline uint32_t tw_cost_exec_index(enum tw_cost_exec exec, enum tw_cost_exec_field field)
{
    return (uint32_t)exec * TW_COST_EXEC_FIELDS + (uint32_t)field;
}
static inline uint32_t tw_cost_link_index(enum tw_cost_link_kind kind,
                                          enum tw_cost_link_field field)
{
    return (uint32_t)TW_COST_EXEC_COUNT * TW_COST_EXEC_FIELDS +
           (uint32_t)kind * TW_COST_LINK_FIELDS + (uint32_t)field;
}

static inline uint32_t tw_cost_proto_index(enum tw_cost_proto proto, enum tw_cost_proto_field field)
{
    const uint32_t behind = (uint32_t)proto - TW_COST_PROTO_KERNELS;

    return TW_COST_PLAN_VALUES +
           ((uint32_t)proto < TW_COST_PROTO_KERNELS
                ? (uint32_t)proto * TW_COST_PROTO_FIELDS
                : TW_COST_KERNEL_VALUES + behind * TW_COST_COPIES_FIELDS) +
           (uint32_t)field;
}

/* A row of the table as files and docs show it; strings are static. */
struct tw_cost_row {
    char name[32]; /* "host.copy.near", "shm.latency" */
    enum tw_cost_unit unit;
    uint64_t dflt, least, most; /* in the table's own unit */
    const char *doc;
};
/** @return false past the end */
bool tw_cost_row_get(uint32_t index, struct tw_cost_row *row);
/** Index by name; TW_COST_NONE if there is none. */
uint32_t tw_cost_row_find(const char *name);
/** "shm", ...; NULL past the end */
const char *tw_cost_link_name(unsigned kind);
enum tw_cost_carrier tw_cost_link_carrier(enum tw_cost_link_kind kind);

/** The built-in values. */
void tw_cost_table_default(struct tw_cost_table *table);
/** Of all values: to compare over ranks. Never 0. */
uint64_t tw_cost_table_hash(const struct tw_cost_table *table);
/** As a file: *text is malloc'ed. @param note  lines of comment, each without "#"; NULL: none */
enum twill_status tw_cost_table_print(const struct tw_cost_table *table, const char *note,
                                      char **text);
/**
 * Read a file's text: "twill-cost 1", then "name value" lines; "#" starts a comment. Rows that are
 * left out keep what *table holds. Free of the locale.
 *
 * @param table  in and out; untouched on error
 * @return TWILL_OK; TWILL_ERR_INVALID with line, column and what was expected
 */
enum twill_status tw_cost_table_parse(const char *text, size_t bytes, struct tw_cost_table *table);
/** The same of a file; errors name the path. */
enum twill_status tw_cost_table_load(const char *path, struct tw_cost_table *table);
enum twill_status tw_cost_table_save(const char *path, const struct tw_cost_table *table,
                                     const char *note);

/* ---- calls on devices (cost_proto.c) --------------------------------------------------------- */

/*
 * A kernel that waits for its peers is no plan whose steps are executed: its time is
 *
 *     start + bytes / min(rate, blocks x block)
 *
 * of the bytes that the busiest rank sends or takes. Lines are as many for each peer at once, so
 * there blocks count for each; copies are made one after another, so there the start does.
 */

/** Blocks of threads for a call of which a rank works on so many bytes: at least 1. Not of copies.
 */
uint32_t tw_cost_proto_blocks(const struct tw_cost_table *table, enum tw_cost_proto proto,
                              uint64_t bytes);
/**
 * What a call takes.
 * @param bytes   of a block of the collective: its count times its type's
 * @param blocks  of threads, at least 1; not looked at for copies
 * @return ps; UINT64_MAX: more than that
 */
uint64_t tw_cost_proto_price(const struct tw_cost_table *table, enum tw_cost_proto proto,
                             enum tw_coll coll, int nranks, uint64_t bytes, uint32_t blocks);
/**
 * What a call takes around a ring, by the kernel that runs plans: its start in each round, and the
 * bytes that a rank sends to the next.
 * @param channels  of the plan, as many blocks, at least 1
 */
uint64_t tw_cost_ring_price(const struct tw_cost_table *table, enum tw_coll coll, int nranks,
                            uint64_t bytes, uint32_t channels);

/* ---- what ranks run on ---------------------------------------------------------------------- */

#define TW_COST_PATH_MOST 96

/* How bytes get from a rank to another; from a rank to itself: to its memory and back, which what
 * caches do not hold goes on each step. */
struct tw_cost_path {
    uint8_t link;         /* enum tw_cost_link_kind; not looked at from a rank to itself */
    uint64_t latency_ps;  /* of the path itself; the link's is added */
    uint64_t bytes_per_s; /* of a lone transfer; 0: no bound but the link's */
    uint32_t nresources;
    uint32_t resources[TW_COST_PATH_MOST]; /* that a transfer uses; twice what it crosses twice */
};

/* Where a rank runs. */
struct tw_cost_place {
    uint8_t exec;    /* enum tw_cost_exec */
    bool own_lanes;  /* each lane has an engine to itself; else `engine` runs them all */
    uint32_t engine; /* below nengines; ranks that name one share it */
};

/*
 * The machine as the model sees it: by hand, by tw_cost_flat_open or by tw_cost_graph_open. All of
 * it is borrowed while a plan is linked and priced. Functions answer alike whenever they are asked.
 */
struct tw_cost_net {
    int nranks;
    uint32_t nengines, nresources;
    const uint64_t *resources; /* [nresources]: bytes a second of all transfers; 0: no bound */
    void *ctx;                 /* of the functions below */
    void (*place)(const struct tw_cost_net *net, int rank, struct tw_cost_place *place);
    /** @param path  all zero before */
    enum twill_status (*path)(const struct tw_cost_net *net, int from, int to,
                              struct tw_cost_path *path);
    /** What an engine or a resource is called, for instance "NIC 0 out of host 3". */
    void (*name)(const struct tw_cost_net *net, bool engine, uint32_t index, char *text,
                 size_t bytes);
    void (*close)(struct tw_cost_net *net); /* frees what ctx owns; NULL: nothing */
};

static inline void tw_cost_net_close(struct tw_cost_net *net)
{
    if (net->close)
        net->close(net);
}

/* ---- a machine of one kind of path (cost_flat.c) -------------------------------------------- */

struct tw_cost_flat {
    int nranks;
    uint32_t engines; /* ranks use them in turn; 0: one each */
    uint8_t exec;     /* enum tw_cost_exec */
    bool own_lanes;
    uint8_t link;                /* enum tw_cost_link_kind */
    uint64_t latency_ps;         /* of every path */
    uint64_t bytes_per_s;        /* of every path; 0: no bound */
    uint64_t shared_bytes_per_s; /* of a resource that all paths cross; 0: there is none */
    uint64_t port_bytes_per_s;   /* of each rank's way out, and of its way in; 0: there is none */
};

/**
 * @param net  out; close with tw_cost_net_close; untouched on error
 * @return TWILL_OK; TWILL_ERR_INVALID names what makes no sense; TWILL_ERR_NOMEM
 */
enum twill_status tw_cost_flat_open(const struct tw_cost_flat *flat, struct tw_cost_net *net);

/* ---- a topology (cost_graph.c) -------------------------------------------------------------- */

struct tw_topo_graph;
struct tw_topo_place;

struct tw_cost_graph {
    const struct tw_topo_graph *graph;  /* borrowed until close */
    const struct tw_topo_place *places; /* [nranks], borrowed during the call: PUs or GPUs */
    int nranks;
    uint8_t inside;        /* link between ranks of a host: SELF, SHM or, of GPUs, PEER */
    uint8_t between_hosts; /* TCP or RDMA */
};

/** As tw_cost_flat_open. Paths are looked up when a plan is linked: one thread at a time then. */
enum twill_status tw_cost_graph_open(const struct tw_cost_graph *from, struct tw_cost_net *net);

/* ---- pricing (cost_link.c, cost.c) ---------------------------------------------------------- */

/* How a call is cut, as the executor that will run it cuts it (tw_exec_shape for host memory). */
struct tw_cost_shape {
    uint64_t slice_elems; /* of a cell; 0: whole cells, one slice, one loop */
    uint32_t slices;      /* of a loop: 1 or the plan's */
    uint64_t loops;
};

struct tw_cost_call {
    uint64_t count; /* bound to every group, whatever its partition's kind */
    uint32_t type_bytes;
    bool in_place; /* all ranks: a copy from IN to OUT then moves nothing */
    struct tw_cost_shape shape;
};

/* What keeps the plan from being faster: the busiest of all, if it is busy half of the time. */
enum tw_cost_limit { TW_COST_BY_LATENCY, TW_COST_BY_ENGINE, TW_COST_BY_RESOURCE };

struct tw_cost_price {
    uint64_t time_ps; /* from the call on all ranks at once to the end of the last */
    enum tw_cost_limit limit;
    uint32_t busiest;       /* engine or resource; TW_COST_NONE for TW_COST_BY_LATENCY */
    uint32_t busy_permille; /* of the time: the busiest of all, whatever the limit is */
    uint64_t slices;        /* of steps that were executed */
};

/* Most bytes of a call's group times groups, so that no sum overflows. */
#define TW_COST_BYTES_MAX ((uint64_t)1 << 42)

/*
 * A plan made ready for pricing on a net. Programs of ranks are added one after another, so that a
 * plan of thousands of ranks need never be in memory as a whole.
 */
struct tw_cost_prog;

/**
 * @param plan  for its facts (all but the programs); borrowed during the call
 * @param net   borrowed until destroy; net->nranks is plan->nranks
 * @return TWILL_OK; TWILL_ERR_INVALID; TWILL_ERR_NOMEM
 */
enum twill_status tw_cost_prog_create(const struct tw_plan *plan, const struct tw_cost_net *net,
                                      struct tw_cost_prog **prog);
/**
 * Add the programs of the ranks that plan has (only_rank -1: all), each rank once. The plan has
 * been validated.
 * @return TWILL_OK; TWILL_ERR_INVALID its facts are others than those of create, or a rank is there
 * already; TWILL_ERR_NOMEM: also when the whole would take more than 8 GiB
 */
enum twill_status tw_cost_prog_add(struct tw_cost_prog *prog, const struct tw_plan *plan);
void tw_cost_prog_destroy(struct tw_cost_prog *prog);

/**
 * Price a call. Every rank's program has been added.
 *
 * Calls of more than 4 loops: 4 are executed, then 2, and each of the rest takes half of the
 * difference.
 *
 * @param price  out; untouched on error
 * @return TWILL_OK; TWILL_ERR_INVALID an absurd call, or the plan blocks for ever (the sentence
 * names rank, lane and step); TWILL_ERR_NOMEM
 */
enum twill_status tw_cost_prog_price(struct tw_cost_prog *prog, const struct tw_cost_table *table,
                                     const struct tw_cost_call *call, struct tw_cost_price *price);

/** create, add, price, destroy. */
enum twill_status tw_plan_cost(const struct tw_plan *plan, const struct tw_cost_net *net,
                               const struct tw_cost_table *table, const struct tw_cost_call *call,
                               struct tw_cost_price *price);

/** The limit in words: "latency", "cpu 1", "memory 0 of host 2", ... */
void tw_cost_limit_name(const struct tw_cost_net *net, const struct tw_cost_price *price,
                        char *text, size_t bytes);

#endif
