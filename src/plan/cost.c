/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the life of one pricing: memory, the start of a call, what the end says.
 * Never knows: the order in which steps run. */
#include "config.h"

#include "plan/cost.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "plan/cost_sim.h"

#define LEAST_DEPTH 2      /* executors give every FIFO so many slots */
#define LIMIT_PERMILLE 500 /* from here on the busiest is what limits */

/* ---- memory --------------------------------------------------------------------------------- */

static void sim_free(struct tw_cost_sim *sim)
{
    free(sim->lanes);
    free(sim->engines);
    free(sim->resources);
    free(sim->fifos);
    free(sim->sizes);
    free(sim->marks);
    free(sim->heap.events);
}

static bool sim_alloc(struct tw_cost_sim *sim)
{
    const struct tw_cost_prog *prog = sim->prog;
    size_t marks = (size_t)prog->nmarks * sim->rates.slices;
    size_t fifo = sizeof(struct tw_cost_queue) + sim->depth * sizeof(struct tw_cost_slot);
    sim->fifo_bytes = (fifo + TW_LINE_BYTES - 1) / TW_LINE_BYTES * TW_LINE_BYTES;
    sim->lanes = calloc((size_t)prog->lanes.count + 1, sizeof(*sim->lanes));
    sim->engines = calloc((size_t)prog->nengines + 1, sizeof(*sim->engines));
    sim->resources = calloc((size_t)prog->net->nresources + 1, sizeof(*sim->resources));
    sim->fifos = tw_alloc((prog->fifos.count + (size_t)1) * sim->fifo_bytes);
    sim->marks = calloc(marks + 1, sizeof(*sim->marks));
    sim->heap.events =
        calloc((size_t)prog->lanes.count + prog->nengines + 1, sizeof(*sim->heap.events));
    if (prog->unsized)
        sim->sizes = calloc((size_t)prog->fifos.count * sim->depth + 1, sizeof(*sim->sizes));
    return sim->lanes && sim->engines && sim->resources && sim->fifos && sim->marks &&
           sim->heap.events && (sim->sizes || !prog->unsized);
}

/* ---- the start of a call -------------------------------------------------------------------- */

/* Ranks that share an engine enter the call one after another. */
static void lanes_start(struct tw_cost_sim *sim)
{
    const struct tw_cost_prog *prog = sim->prog;
    for (uint32_t l = 0; l < prog->lanes.count; l++) {
        const struct tw_cost_lane *lane = &tw_cost_lanes(prog)[l];
        struct tw_cost_engine *engine = &sim->engines[lane->engine];
        if (lane->number == 0 || lane->engine >= prog->net->nengines)
            engine->free = tw_cost_add(engine->free, sim->rates.exec[lane->exec].call);
        sim->lanes[l] = (struct tw_cost_walk){
            .first_op = lane->first_op,
            .nops = lane->nops,
            .engine = lane->engine,
            .local = lane->local,
            .rank = lane->rank,
            .exec = lane->exec,
        };
    }
}

static void sim_start(struct tw_cost_sim *sim)
{
    const struct tw_cost_prog *prog = sim->prog;
    for (uint32_t e = 0; e < prog->nengines; e++) {
        sim->engines[e].rank = TW_NO_RANK;
        sim->engines[e].head = sim->engines[e].tail = TW_COST_NONE;
    }
    for (uint32_t r = 0; r < prog->net->nresources; r++) {
        uint64_t rate = prog->net->resources[r];
        sim->resources[r].kib = rate ? tw_cost_kib(rate) : 0;
    }
    for (uint32_t f = 0; f < prog->fifos.count; f++) {
        struct tw_cost_queue *fifo = tw_cost_queue_at(sim, f);
        fifo->reader = fifo->writer = TW_COST_NONE;
        fifo->edge = tw_cost_fifos(prog)[f];
    }
    for (size_t m = 0; m < (size_t)prog->nmarks * sim->rates.slices; m++)
        sim->marks[m].waiter = TW_COST_NONE;
    lanes_start(sim);
}

/* ---- what came of it ------------------------------------------------------------------------ */

static void limit_find(const struct tw_cost_sim *sim, uint64_t time, struct tw_cost_price *price)
{
    uint64_t busy = 0;
    price->limit = TW_COST_BY_LATENCY;
    price->busiest = TW_COST_NONE;
    for (uint32_t r = 0; r < sim->prog->net->nresources; r++)
        if (sim->resources[r].busy > busy) {
            busy = sim->resources[r].busy;
            price->limit = TW_COST_BY_RESOURCE;
            price->busiest = r;
        }
    for (uint32_t e = 0; e < sim->prog->nengines; e++)
        if (sim->engines[e].busy > busy) {
            busy = sim->engines[e].busy;
            price->limit = TW_COST_BY_ENGINE;
            price->busiest = e;
        }
    uint64_t unit = time / 1000 ? time / 1000 : 1;
    price->busy_permille = busy / unit > 1000 ? 1000 : (uint32_t)(busy / unit);
    if (price->busy_permille < LIMIT_PERMILLE) {
        price->limit = TW_COST_BY_LATENCY;
        price->busiest = TW_COST_NONE;
    }
}

static void sim_price(const struct tw_cost_sim *sim, struct tw_cost_price *price)
{
    uint64_t time = sim->rates.exec[TW_COST_HOST].call; /* ranks without a step return at once */
    for (uint32_t e = 0; e < sim->prog->nengines; e++)
        time = tw_cost_later(time, sim->engines[e].free);
    time = tw_cost_later(time, sim->end);
    *price = (struct tw_cost_price){.time_ps = time, .slices = sim->slices};
    limit_find(sim, time, price);
}

static enum twill_status blocked(const struct tw_cost_prog *prog, uint32_t l,
                                 const struct tw_cost_walk *lane)
{
    static const char *const whats[] = {
        [TW_COST_WAIT_STEP] = "the step that it depends on",
        [TW_COST_WAIT_SIGNAL] = "a signal",
        [TW_COST_WAIT_MESSAGE] = "a message",
        [TW_COST_WAIT_SLOT] = "a free slot",
    };
    return tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d lane %u step %u waits for ever for %s",
                   prog->facts.name, lane->rank, tw_cost_lanes(prog)[l].number, lane->step,
                   whats[lane->waits]);
}

/* Execute so many loops. */
static enum twill_status loops_price(const struct tw_cost_prog *prog,
                                     const struct tw_cost_rates *rates, uint32_t loops,
                                     struct tw_cost_price *price)
{
    struct tw_cost_sim sim = {.prog = prog, .rates = *rates};
    enum twill_status status = TWILL_OK;
    sim.rates.loops = loops;
    sim.depth = prog->facts.depth > LEAST_DEPTH ? prog->facts.depth : LEAST_DEPTH;
    if (!sim_alloc(&sim)) {
        status = tw_fail(TWILL_ERR_NOMEM, "no memory to price plan %s", prog->facts.name);
    } else {
        sim_start(&sim);
        uint32_t stuck = tw_cost_sim_run(&sim);
        if (stuck != TW_COST_NONE)
            status = blocked(prog, stuck, &sim.lanes[stuck]);
        else
            sim_price(&sim, price);
    }
    sim_free(&sim);
    return status;
}

enum twill_status tw_cost_prog_price(struct tw_cost_prog *prog, const struct tw_cost_table *table,
                                     const struct tw_cost_call *call, struct tw_cost_price *price)
{
    struct tw_cost_rates rates = {.share = NULL};
    struct tw_cost_price half = {.time_ps = 0}, all = {.time_ps = 0};
    enum twill_status status = tw_cost_prog_join(prog);
    if (!tw_failed(status))
        status = tw_cost_rates_init(&rates, prog, table, call);
    if (!tw_failed(status))
        status = loops_price(prog, &rates, rates.loops, &all);
    if (!tw_failed(status) && rates.more_loops) {
        /* two calls differ by the loops in the middle, with the pipeline full */
        status = loops_price(prog, &rates, TW_COST_LOOPS / 2, &half);
        uint64_t more, two = all.time_ps > half.time_ps ? all.time_ps - half.time_ps : 0;
        if (__builtin_mul_overflow(two / (TW_COST_LOOPS / 2), rates.more_loops, &more))
            more = UINT64_MAX;
        all.time_ps = tw_cost_add(all.time_ps, more);
        all.slices += half.slices;
    }
    tw_cost_rates_fini(&rates);
    if (!tw_failed(status))
        *price = all;
    return status;
}

enum twill_status tw_plan_cost(const struct tw_plan *plan, const struct tw_cost_net *net,
                               const struct tw_cost_table *table, const struct tw_cost_call *call,
                               struct tw_cost_price *price)
{
    struct tw_cost_prog *prog = NULL;
    enum twill_status status = tw_cost_prog_create(plan, net, &prog);
    if (!tw_failed(status))
        status = tw_cost_prog_add(prog, plan);
    if (!tw_failed(status))
        status = tw_cost_prog_price(prog, table, call, price);
    tw_cost_prog_destroy(prog);
    return status;
}

void tw_cost_limit_name(const struct tw_cost_net *net, const struct tw_cost_price *price,
                        char *text, size_t bytes)
{
    if (price->limit == TW_COST_BY_LATENCY)
        snprintf(text, bytes, "latency");
    else if (price->limit == TW_COST_BY_ENGINE && price->busiest >= net->nengines)
        snprintf(text, bytes, "the engine of a lane");
    else
        net->name(net, price->limit == TW_COST_BY_ENGINE, price->busiest, text, bytes);
}
