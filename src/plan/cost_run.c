/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the execution of a plan in simulated time. Never knows: values, where rates come from. */
#include "plan/cost_sim.h"

static const struct tw_cost_op *op_at(const struct tw_cost_sim *sim,
                                      const struct tw_cost_walk *lane)
{
    return &tw_cost_ops(sim->prog)[lane->first_op + lane->step];
}

static uint64_t *size_at(const struct tw_cost_sim *sim, uint32_t fifo, uint32_t message)
{
    return &sim->sizes[(size_t)fifo * sim->depth + message % sim->depth];
}

/* ---- when can a slice begin? ---------------------------------------------------------------- */

/* A mark of this loop is awaited: *time grows to it, or the lane is chained to it. */
static bool mark_ready(struct tw_cost_sim *sim, uint32_t l, uint32_t mark, bool whole,
                       uint64_t *time)
{
    struct tw_cost_walk *lane = &sim->lanes[l];
    uint32_t slice = whole ? sim->rates.slices - 1 : lane->slice;
    struct tw_cost_mark *on = &sim->marks[(size_t)mark * sim->rates.slices + slice];
    if (on->loop > lane->loop + 1)
        return true; /* long over */
    if (on->loop == lane->loop + 1) {
        *time = tw_cost_later(*time, on->time);
        return true;
    }
    lane->next = on->waiter;
    on->waiter = l;
    return false;
}

static bool fifos_ready(const struct tw_cost_sim *sim, uint32_t l, const struct tw_cost_op *op,
                        uint64_t *time)
{
    if (op->does & TW_COST_TAKES) {
        struct tw_cost_queue *in = tw_cost_queue_at(sim, op->in);
        if (in->pushed == in->popped) {
            in->reader = l;
            sim->lanes[l].waits = TW_COST_WAIT_MESSAGE;
            return false;
        }
        *time = tw_cost_later(*time, in->slots[in->popped % sim->depth].arrival);
    }
    if (op->does & TW_COST_GIVES) {
        struct tw_cost_queue *out = tw_cost_queue_at(sim, op->out);
        if (out->pushed - out->popped == sim->depth) {
            out->writer = l;
            sim->lanes[l].waits = TW_COST_WAIT_SLOT;
            return false;
        }
        *time = tw_cost_later(*time, out->slots[out->pushed % sim->depth].release);
    }
    return true;
}

/* The lane's next slice begins when all is there; it is parked where something is not. */
static void lane_offer(struct tw_cost_sim *sim, uint32_t l)
{
    struct tw_cost_walk *lane = &sim->lanes[l];
    const struct tw_cost_op *op = op_at(sim, lane);
    uint64_t time = lane->ready;
    lane->waits = TW_COST_WAIT_STEP;
    if (op->dep != TW_COST_NONE && !mark_ready(sim, l, op->dep, op->does & TW_COST_WHOLE, &time))
        return;
    lane->waits = TW_COST_WAIT_SIGNAL;
    if (op->word != TW_COST_NONE && !mark_ready(sim, l, op->word, false, &time))
        return;
    if (fifos_ready(sim, l, op, &time))
        tw_cost_heap_push(&sim->heap, (struct tw_cost_event){time, l});
}

/* ---- what does it take? --------------------------------------------------------------------- */

static uint64_t slice_bytes(const struct tw_cost_sim *sim, const struct tw_cost_walk *lane,
                            const struct tw_cost_op *op)
{
    const struct tw_cost_rates *rates = &sim->rates;
    if (op->does & TW_COST_UNSIZED)
        return *size_at(sim, op->in, tw_cost_queue_at(sim, op->in)->popped);
    if (op->cells == 0 || (rates->in_place && op->does & TW_COST_OWN))
        return 0;
    uint32_t unit = lane->loop * rates->slices + lane->slice;
    uint64_t share = rates->share[op->part * rates->units + unit];
    uint64_t bytes = op->cells * share >> 10;
    return op->does & TW_COST_WIDE ? bytes / rates->type_bytes * rates->wide_num : bytes;
}

/* A resource serves in the order in which it is asked. @return when it is through */
static uint64_t serve(struct tw_cost_server *resource, uint64_t from, uint64_t ps)
{
    resource->free = tw_cost_add(tw_cost_later(resource->free, from), ps);
    resource->busy = tw_cost_add(resource->busy, ps);
    return resource->free;
}

/* All that a transfer crosses. @return when the last of it is through */
static uint64_t edge_serve(struct tw_cost_sim *sim, const struct tw_cost_edge *edge, uint64_t from,
                           uint64_t bytes)
{
    const uint32_t *crossed = (const uint32_t *)sim->prog->crossed.at + edge->first;
    uint64_t end = tw_cost_add(from, tw_cost_bytes_ps(bytes, edge->kib));
    for (uint32_t i = 0; i < edge->count; i++) {
        struct tw_cost_server *server = &sim->resources[crossed[i]];
        end = tw_cost_later(end, serve(server, from, tw_cost_bytes_ps(bytes, server->kib)));
    }
    return end;
}

static uint64_t link_serve(struct tw_cost_sim *sim, const struct tw_cost_edge *edge, uint64_t from,
                           uint64_t bytes)
{
    uint64_t alone = tw_cost_bytes_ps(bytes, sim->rates.link[edge->link].kib);
    return tw_cost_later(tw_cost_add(from, alone), edge_serve(sim, edge, from, bytes));
}

/* Engine time of a slice without what it waits for. */
static uint64_t engine_ps(const struct tw_cost_exec_rate *rate, uint32_t does, uint64_t bytes)
{
    uint64_t ps = rate->step;
    ps += does & TW_COST_GIVES ? rate->send : 0;
    ps += does & TW_COST_TAKES ? rate->recv : 0;
    ps += does & TW_COST_SIGNALS ? rate->signal : 0;
    if (does & TW_COST_MOVES)
        ps += tw_cost_bytes_ps(bytes, rate->copy_kib);
    if (does & TW_COST_REDUCES)
        ps += tw_cost_bytes_ps(bytes, rate->reduce_kib);
    if (does & TW_COST_STORES)
        ps += tw_cost_bytes_ps(bytes, rate->warm_kib);
    return ps;
}

static const struct tw_cost_edge *edge_of(const struct tw_cost_sim *sim,
                                          const struct tw_cost_op *op)
{
    if (op->out == TW_COST_NONE)
        return NULL;
    bool fifo = op->does & TW_COST_GIVES;
    return &tw_cost_edges(sim->prog)[fifo ? tw_cost_queue_at(sim, op->out)->edge : op->out];
}

/* One slice, from now on. @return when what it sent is there; the lane's ready is set */
static uint64_t slice_run(struct tw_cost_sim *sim, struct tw_cost_walk *lane,
                          const struct tw_cost_op *op, uint64_t now, uint64_t bytes)
{
    const struct tw_cost_exec_rate *rate = &sim->rates.exec[lane->exec];
    struct tw_cost_engine *engine = &sim->engines[lane->engine];
    const struct tw_cost_edge *edge = edge_of(sim, op);
    const struct tw_cost_link_rate *link = edge ? &sim->rates.link[edge->link] : NULL;
    uint64_t latency = link ? link->latency + edge->latency_ps : 0;
    bool gets = op->does & TW_COST_GETS;
    uint64_t ps = engine_ps(rate, op->does, bytes) + (link ? link->post : 0);
    if (engine->rank != lane->rank && engine->rank != TW_NO_RANK)
        ps = tw_cost_add(ps, rate->change);
    if (link && gets && !link->wire)
        ps += latency; /* the engine awaits what it reads */
    uint64_t end = tw_cost_add(now, ps);
    end = tw_cost_later(end, edge_serve(sim, &tw_cost_edges(sim->prog)[lane->local], now,
                                        bytes * rate->memory_share >> 10));
    if (link && !link->wire && bytes)
        end = tw_cost_later(end, link_serve(sim, edge, now, bytes));
    engine->rank = lane->rank;
    engine->busy = tw_cost_add(engine->busy, ps);
    engine->free = end;
    lane->ready = end;
    if (!link)
        return end;
    uint64_t there = link->wire ? link_serve(sim, edge, end, bytes) : end;
    there = tw_cost_add(there, gets && !link->wire ? 0 : latency);
    if (gets && link->wire)
        lane->ready = there = tw_cost_add(there, latency);
    return there;
}

/* ---- what follows from it? ------------------------------------------------------------------ */

static void mark_set(struct tw_cost_sim *sim, struct tw_cost_mark *mark, uint32_t loop,
                     uint64_t time)
{
    uint32_t waiter = mark->waiter;
    mark->loop = loop + 1;
    mark->time = time;
    mark->waiter = TW_COST_NONE;
    while (waiter != TW_COST_NONE) {
        uint32_t next = sim->lanes[waiter].next;
        lane_offer(sim, waiter);
        waiter = next;
    }
}

static void message_take(struct tw_cost_sim *sim, uint32_t number, uint64_t end)
{
    struct tw_cost_queue *fifo = tw_cost_queue_at(sim, number);
    const struct tw_cost_edge *edge = &tw_cost_edges(sim->prog)[fifo->edge];
    uint32_t writer = fifo->writer;
    fifo->slots[fifo->popped % sim->depth].release =
        tw_cost_add(end, sim->rates.link[edge->link].latency + edge->latency_ps);
    fifo->popped++;
    fifo->writer = TW_COST_NONE;
    if (writer != TW_COST_NONE)
        lane_offer(sim, writer);
}

static void message_give(struct tw_cost_sim *sim, uint32_t number, uint64_t there, uint64_t bytes)
{
    struct tw_cost_queue *fifo = tw_cost_queue_at(sim, number);
    uint32_t reader = fifo->reader;
    fifo->slots[fifo->pushed % sim->depth].arrival = there;
    if (sim->sizes)
        *size_at(sim, number, fifo->pushed) = bytes;
    fifo->pushed++;
    fifo->reader = TW_COST_NONE;
    if (reader != TW_COST_NONE)
        lane_offer(sim, reader);
}

/* To the next slice. @return false when the lane is over */
static bool lane_advance(struct tw_cost_sim *sim, struct tw_cost_walk *lane)
{
    if (++lane->slice < sim->rates.slices)
        return true;
    lane->slice = 0;
    if (++lane->step < lane->nops)
        return true;
    sim->end = tw_cost_later(sim->end, lane->ready);
    lane->step = 0;
    return ++lane->loop < sim->rates.loops;
}

static void lane_run(struct tw_cost_sim *sim, uint32_t l, uint64_t now)
{
    struct tw_cost_walk *lane = &sim->lanes[l];
    const struct tw_cost_op *op = op_at(sim, lane);
    uint32_t loop = lane->loop, slice = lane->slice;
    uint64_t bytes = slice_bytes(sim, lane, op);
    uint64_t there = slice_run(sim, lane, op, now, bytes);
    sim->slices++;
    if (op->does & TW_COST_PUTS)
        lane->put_at = tw_cost_later(lane->put_at, there);
    uint64_t told = op->does & TW_COST_SIGNALS && op->out != TW_COST_NONE
                        ? tw_cost_later(there, lane->put_at)
                        : lane->ready;
    if (op->does & TW_COST_TAKES)
        message_take(sim, op->in, sim->engines[lane->engine].free);
    if (op->does & TW_COST_GIVES)
        message_give(sim, op->out, there, bytes);
    if (op->mark != TW_COST_NONE)
        mark_set(sim, &sim->marks[(size_t)op->mark * sim->rates.slices + slice], loop, told);
    if (lane_advance(sim, lane))
        lane_offer(sim, l);
}

/* ---- who gets the engine? ------------------------------------------------------------------- */

static void engine_enqueue(struct tw_cost_sim *sim, struct tw_cost_engine *engine, uint32_t l)
{
    sim->lanes[l].next = TW_COST_NONE;
    if (engine->head == TW_COST_NONE)
        engine->head = l;
    else
        sim->lanes[engine->tail].next = l;
    engine->tail = l;
}

/* The queue's first lane of the rank that has the engine, since a rank keeps its CPU until it has
 * nothing to do; or the first of all. The queue is not empty. */
static uint32_t engine_dequeue(struct tw_cost_sim *sim, struct tw_cost_engine *engine)
{
    uint32_t before = TW_COST_NONE, l = engine->head;
    while (l != TW_COST_NONE && sim->lanes[l].rank != engine->rank) {
        before = l;
        l = sim->lanes[l].next;
    }
    if (l == TW_COST_NONE) {
        l = engine->head;
        before = TW_COST_NONE;
    }
    if (before == TW_COST_NONE)
        engine->head = sim->lanes[l].next;
    else
        sim->lanes[before].next = sim->lanes[l].next;
    if (engine->tail == l)
        engine->tail = before;
    return l;
}

/* From now on, when the engine is free and all that begins at that time has asked for it. */
static void engine_call(struct tw_cost_sim *sim, uint32_t e, uint64_t now)
{
    struct tw_cost_engine *engine = &sim->engines[e];
    if (engine->head == TW_COST_NONE || engine->called)
        return;
    engine->called = true;
    tw_cost_heap_push(&sim->heap, (struct tw_cost_event){tw_cost_later(engine->free, now),
                                                         sim->prog->lanes.count + e});
}

/* A lane that could begin takes its engine, or queues for it: also where the rank that had it last
 * may go on at the same time. */
static void engine_ask(struct tw_cost_sim *sim, struct tw_cost_event event)
{
    uint32_t e = sim->lanes[event.lane].engine;
    struct tw_cost_engine *engine = &sim->engines[e];
    bool other = engine->rank != sim->lanes[event.lane].rank && engine->free == event.time;
    if (other || engine->head != TW_COST_NONE || engine->free > event.time)
        engine_enqueue(sim, engine, event.lane);
    else
        lane_run(sim, event.lane, event.time);
    engine_call(sim, e, event.time);
}

static void engine_serve(struct tw_cost_sim *sim, uint32_t e, uint64_t now)
{
    struct tw_cost_engine *engine = &sim->engines[e];
    engine->called = false;
    lane_run(sim, engine_dequeue(sim, engine), now);
    engine_call(sim, e, now);
}

uint32_t tw_cost_sim_run(struct tw_cost_sim *sim)
{
    uint32_t count = sim->prog->lanes.count;
    for (uint32_t l = 0; l < count; l++)
        if (sim->lanes[l].nops)
            lane_offer(sim, l);
    while (sim->heap.count) {
        struct tw_cost_event event = tw_cost_heap_pop(&sim->heap);
        if (event.lane < count)
            engine_ask(sim, event);
        else
            engine_serve(sim, event.lane - count, event.time);
    }
    for (uint32_t l = 0; l < count; l++)
        if (sim->lanes[l].nops && sim->lanes[l].loop < sim->rates.loops)
            return l;
    return TW_COST_NONE;
}
