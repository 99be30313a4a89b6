/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the files of the cost model share: a plan turned into flat tables.
 * Never knows: times, rates, sizes of calls. */
#ifndef TW_PLAN_COST_PROG_H
#define TW_PLAN_COST_PROG_H

#include "plan/cost.h"

/* What a slice of an operation does, as far as it costs. */
enum tw_cost_do {
    TW_COST_MOVES = 1,      /* bytes, by copying */
    TW_COST_REDUCES = 2,    /* bytes, by reducing */
    TW_COST_STORES = 4,     /* besides sending: bytes once more, which are warm */
    TW_COST_TAKES = 8,      /* a message */
    TW_COST_GIVES = 16,     /* a message */
    TW_COST_PUTS = 32,      /* into a peer's memory */
    TW_COST_GETS = 64,      /* from a peer's memory */
    TW_COST_SIGNALS = 128,  /* raises a word, or waits for one */
    TW_COST_WHOLE = 256,    /* the dependency is for all slices */
    TW_COST_WIDE = 512,     /* bytes are of fp32 partials */
    TW_COST_UNSIZED = 1024, /* bytes are the message's */
    TW_COST_OWN = 2048,     /* copies IN to OUT, which is one place in a call in place */
};

struct tw_cost_op {
    uint16_t does; /* enum tw_cost_do */
    uint8_t part, op;
    uint32_t cells;
    uint32_t in;   /* FIFO of TAKES; TW_COST_NONE */
    uint32_t out;  /* FIFO of GIVES, edge of PUTS, GETS and of a raised signal; TW_COST_NONE */
    uint32_t dep;  /* mark that it waits for; TW_COST_NONE */
    uint32_t word; /* mark of the signal that a wait is for; TW_COST_NONE */
    uint32_t mark; /* its own, that others wait for; TW_COST_NONE */
};

struct tw_cost_lane {
    int32_t rank;
    uint32_t number; /* of the rank's lanes */
    uint32_t engine;
    uint32_t local; /* edge to its own memory */
    uint8_t exec;
    uint32_t first_op, nops;
};

/* A path between two ranks, kept short. */
struct tw_cost_edge {
    uint64_t latency_ps, kib; /* of the path itself; kib: ps for 1024 bytes, 0: no bound */
    uint32_t first, count;    /* of resources in prog->crossed */
    uint8_t link;
};

/* A signal or wait of the program, until all are known. */
struct tw_cost_raise {
    int32_t rank; /* whose word */
    uint32_t sig, value;
    uint32_t op; /* index */
};

/* From (from, to, id) to a number; ids of edges are UINT32_MAX. */
struct tw_cost_key {
    int32_t from, to;
    uint32_t id, index; /* index TW_COST_NONE: empty */
};
struct tw_cost_map {
    struct tw_cost_key *keys; /* owned, [room], room a power of two or 0 */
    uint32_t room, count;
};

struct tw_cost_list {
    void *at; /* owned */
    uint32_t count, room;
};

struct tw_cost_prog {
    struct tw_plan facts;          /* no programs */
    const struct tw_cost_net *net; /* borrowed */
    uint32_t nengines;             /* the net's, then those of lanes that have their own */
    uint32_t nmarks;
    uint64_t user_groups; /* groups of IN and OUT together, where a rank has most */
    uint64_t most_groups; /* of the larger one of them */
    struct tw_cost_list ops, lanes, fifos, edges, crossed, raises, waits;
    struct tw_cost_map map;
    uint8_t *present;         /* owned, [nranks] */
    uint32_t ranks_left;      /* not added yet */
    bool unsized;             /* some step has the size of its message */
    bool joined;              /* waits know their signals */
    enum twill_status status; /* of the net's last answer */
};

static inline struct tw_cost_op *tw_cost_ops(const struct tw_cost_prog *prog)
{
    return prog->ops.at;
}
static inline struct tw_cost_lane *tw_cost_lanes(const struct tw_cost_prog *prog)
{
    return prog->lanes.at;
}
/* Edge of each FIFO. */
static inline uint32_t *tw_cost_fifos(const struct tw_cost_prog *prog) { return prog->fifos.at; }
static inline struct tw_cost_edge *tw_cost_edges(const struct tw_cost_prog *prog)
{
    return prog->edges.at;
}

/** Join waits to signals, once all ranks are there. */
enum twill_status tw_cost_prog_join(struct tw_cost_prog *prog);

#endif
