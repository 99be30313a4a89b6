/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the steps of a plan become flat tables: who waits for whom, what passes where.
 * Never knows: times, rates, sizes of calls. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plan/cost_sim.h"
#include "plan/validate.h"

#define BYTES_MOST ((size_t)8 << 30)

/* ---- memory --------------------------------------------------------------------------------- */

/* Of one table; all of them together stay near the bound that cost.h states. */
static enum twill_status too_large(const struct tw_cost_prog *prog)
{
    if (tw_failed(prog->status))
        return prog->status;
    return tw_fail(TWILL_ERR_NOMEM, "plan %s of %d ranks is too large to be priced",
                   prog->facts.name, prog->facts.nranks);
}

static void *list_add(struct tw_cost_list *list, size_t size)
{
    if (list->count == list->room) {
        uint32_t room = list->room ? list->room + list->room / 2 : 64;
        void *grown = room * size > BYTES_MOST / 2 ? NULL : realloc(list->at, room * size);
        if (!grown)
            return NULL;
        list->at = grown;
        list->room = room;
    }
    return (char *)list->at + list->count++ * size;
}

static uint32_t key_hash(int32_t from, int32_t to, uint32_t id)
{
    uint64_t h = ((uint64_t)(uint32_t)from << 32 | (uint32_t)to) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ id) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32);
}

static struct tw_cost_key *map_slot(const struct tw_cost_map *map, int32_t from, int32_t to,
                                    uint32_t id)
{
    uint32_t at = key_hash(from, to, id) & (map->room - 1);
    while (map->keys[at].index != TW_COST_NONE &&
           (map->keys[at].from != from || map->keys[at].to != to || map->keys[at].id != id))
        at = (at + 1) & (map->room - 1);
    return &map->keys[at];
}

static bool map_grow(struct tw_cost_map *map)
{
    struct tw_cost_map old = *map;
    uint32_t room = old.room ? 2 * old.room : 64;
    if (room > BYTES_MOST / 2 / sizeof(*map->keys))
        return false;
    map->keys = malloc(room * sizeof(*map->keys));
    if (!map->keys) {
        map->keys = old.keys;
        return false;
    }
    map->room = room;
    memset(map->keys, 0xff, room * sizeof(*map->keys)); /* index TW_COST_NONE */
    for (uint32_t i = 0; i < old.room; i++) {
        const struct tw_cost_key *key = &old.keys[i];
        if (key->index != TW_COST_NONE)
            *map_slot(map, key->from, key->to, key->id) = *key;
    }
    free(old.keys);
    return true;
}

/* The slot of a key, new ones with index TW_COST_NONE; NULL without memory. */
static struct tw_cost_key *map_get(struct tw_cost_map *map, int32_t from, int32_t to, uint32_t id)
{
    if (map->count + map->count / 2 >= map->room && !map_grow(map))
        return NULL;
    struct tw_cost_key *key = map_slot(map, from, to, id);
    if (key->index == TW_COST_NONE) {
        *key = (struct tw_cost_key){from, to, id, TW_COST_NONE};
        map->count++;
    }
    return key;
}

/* ---- life ----------------------------------------------------------------------------------- */

enum twill_status tw_cost_prog_create(const struct tw_plan *plan, const struct tw_cost_net *net,
                                      struct tw_cost_prog **prog)
{
    if (net->nranks != plan->nranks)
        return tw_fail(TWILL_ERR_INVALID, "plan %s has %d ranks, the machine places %d", plan->name,
                       plan->nranks, net->nranks);
    struct tw_cost_prog *made = calloc(1, sizeof(*made));
    uint8_t *present = calloc((size_t)plan->nranks, 1);
    if (!made || !present) {
        free(made);
        free(present);
        return tw_fail(TWILL_ERR_NOMEM, "no memory to price plan %s", plan->name);
    }
    made->facts = *plan;
    made->facts.ranks = NULL;
    made->net = net;
    made->nengines = net->nengines;
    made->present = present;
    made->ranks_left = (uint32_t)plan->nranks;
    *prog = made;
    return TWILL_OK;
}

void tw_cost_prog_destroy(struct tw_cost_prog *prog)
{
    if (!prog)
        return;
    free(prog->ops.at);
    free(prog->lanes.at);
    free(prog->fifos.at);
    free(prog->edges.at);
    free(prog->crossed.at);
    free(prog->raises.at);
    free(prog->waits.at);
    free(prog->map.keys);
    free(prog->present);
    free(prog);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static bool edge_fill(struct tw_cost_prog *prog, const struct tw_cost_path *path,
                      struct tw_cost_edge *edge)
{
    *edge = (struct tw_cost_edge){
        .latency_ps = path->latency_ps,
        .kib = path->bytes_per_s ? tw_cost_kib(path->bytes_per_s) : 0,
        .first = prog->crossed.count,
        .link = path->link,
    };
    for (uint32_t i = 0; i < path->nresources; i++) {
        if (prog->net->resources[path->resources[i]] == 0)
            continue;
        uint32_t *crossed = list_add(&prog->crossed, sizeof(*crossed));
        if (!crossed)
            return false;
        *crossed = path->resources[i];
        edge->count++;
    }
    return true;
}

/* A number for the path from a rank to another. */
static bool edge_get(struct tw_cost_prog *prog, int32_t from, int32_t to, uint32_t *number)
{
    struct tw_cost_key *key = map_get(&prog->map, from, to, UINT32_MAX);
    if (!key)
        return false;
    if (key->index == TW_COST_NONE) {
        struct tw_cost_path path = {.link = 0};
        struct tw_cost_edge *edge = list_add(&prog->edges, sizeof(*edge));
        prog->status = prog->net->path(prog->net, from, to, &path);
        if (!edge || tw_failed(prog->status) || !edge_fill(prog, &path, edge))
            return false;
        key->index = prog->edges.count - 1;
    }
    *number = key->index;
    return true;
}

static bool fifo_get(struct tw_cost_prog *prog, int32_t from, int32_t to, uint32_t id,
                     uint32_t *fifo)
{
    struct tw_cost_key *key = map_get(&prog->map, from, to, id);
    if (!key)
        return false;
    if (key->index == TW_COST_NONE) {
        uint32_t *edge = list_add(&prog->fifos, sizeof(*edge));
        if (!edge)
            return false;
        key->index = prog->fifos.count - 1;
        *fifo = key->index;
        uint32_t number;
        if (!edge_get(prog, from, to, &number)) /* may move the map: key is not looked at again */
            return false;
        tw_cost_fifos(prog)[*fifo] = number;
        return true;
    }
    *fifo = key->index;
    return true;
}

static uint16_t does_of(const struct tw_plan_step *step)
{
    static const uint16_t does[TW_OP_COUNT] = {
        [TW_OP_COPY] = TW_COST_MOVES,
        [TW_OP_REDUCE] = TW_COST_REDUCES,
        [TW_OP_SEND] = TW_COST_MOVES | TW_COST_GIVES,
        [TW_OP_RECV] = TW_COST_MOVES | TW_COST_TAKES,
        [TW_OP_RECV_REDUCE] = TW_COST_REDUCES | TW_COST_TAKES,
        [TW_OP_RECV_SEND] = TW_COST_MOVES | TW_COST_TAKES | TW_COST_GIVES,
        [TW_OP_RECV_REDUCE_SEND] = TW_COST_REDUCES | TW_COST_TAKES | TW_COST_GIVES,
        [TW_OP_PUT] = TW_COST_MOVES | TW_COST_PUTS,
        [TW_OP_GET] = TW_COST_MOVES | TW_COST_GETS,
        [TW_OP_GET_REDUCE] = TW_COST_REDUCES | TW_COST_GETS,
        [TW_OP_SIGNAL] = TW_COST_SIGNALS,
        [TW_OP_WAIT] = TW_COST_SIGNALS,
    };
    uint16_t what = does[step->op];
    bool fused = step->op == TW_OP_RECV_SEND || step->op == TW_OP_RECV_REDUCE_SEND;
    if (fused && step->flags & TW_STEP_STORE)
        what |= TW_COST_STORES;
    if (step->flags & TW_STEP_WHOLE)
        what |= TW_COST_WHOLE;
    if (step->op == TW_OP_COPY && step->src.buf == TW_BUF_IN && step->dst.buf == TW_BUF_OUT)
        what |= TW_COST_OWN;
    return what;
}

/* What tells the size of a step: the operand, else where it goes. */
static const struct tw_plan_span *size_span(const struct tw_plan_step *step)
{
    uint32_t traits = tw_op_rules[step->op].traits;
    bool src = traits & (TW_TRAIT_SRC | TW_TRAIT_SRC_MAYBE) && step->src.block;
    return src ? &step->src : &step->dst;
}

static bool raise_add(struct tw_cost_list *list, int32_t rank, const struct tw_plan_step *step,
                      uint32_t op)
{
    struct tw_cost_raise *raise = list_add(list, sizeof(*raise));
    if (raise)
        *raise = (struct tw_cost_raise){rank, step->sig, step->sig_value, op};
    return raise;
}

static bool op_peers(struct tw_cost_prog *prog, int32_t rank, const struct tw_plan_step *step,
                     struct tw_cost_op *op)
{
    uint32_t self = prog->ops.count; /* it is added next */
    if (op->does & TW_COST_TAKES && !fifo_get(prog, step->from, rank, step->fifo_in, &op->in))
        return false;
    if (op->does & TW_COST_GIVES && !fifo_get(prog, rank, step->to, step->fifo_out, &op->out))
        return false;
    if (op->does & TW_COST_PUTS && !edge_get(prog, rank, step->to, &op->out))
        return false;
    if (op->does & TW_COST_GETS && !edge_get(prog, step->from, rank, &op->out))
        return false;
    if (step->op == TW_OP_SIGNAL)
        return edge_get(prog, rank, step->to, &op->out) &&
               raise_add(&prog->raises, step->to, step, self);
    return step->op != TW_OP_WAIT || raise_add(&prog->waits, rank, step, self);
}

static bool op_add(struct tw_cost_prog *prog, int32_t rank, const struct tw_plan_step *step)
{
    const struct tw_plan_span *span = size_span(step);
    struct tw_cost_op op = {
        .does = does_of(step),
        .op = step->op,
        .in = TW_COST_NONE,
        .out = TW_COST_NONE,
        .dep = TW_COST_NONE,
        .word = TW_COST_NONE,
        .mark = TW_COST_NONE,
    };
    if (op.does & (TW_COST_MOVES | TW_COST_REDUCES) && span->block) {
        op.cells = tw_span_cells(span);
        op.part = span->part;
    } else if (op.does & TW_COST_TAKES && op.does & TW_COST_GIVES) {
        op.does |= TW_COST_UNSIZED;
        prog->unsized = true;
    }
    if (op.cells && step->src.buf == TW_BUF_WIDE && step->src.block)
        op.does |= TW_COST_WIDE;
    if (op.cells && step->dst.buf == TW_BUF_WIDE && step->dst.block)
        op.does |= TW_COST_WIDE;
    if (!op_peers(prog, rank, step, &op))
        return false;
    struct tw_cost_op *added = list_add(&prog->ops, sizeof(op));
    if (added)
        *added = op;
    return added;
}

/* ---- ranks ---------------------------------------------------------------------------------- */

static bool lane_add(struct tw_cost_prog *prog, int32_t rank, uint32_t number,
                     const struct tw_plan_lane *from)
{
    struct tw_cost_place place = {.exec = TW_COST_HOST};
    uint32_t local;
    prog->net->place(prog->net, rank, &place);
    struct tw_cost_lane *lane = list_add(&prog->lanes, sizeof(*lane));
    if (!lane || !edge_get(prog, rank, rank, &local))
        return false;
    *lane = (struct tw_cost_lane){
        .rank = rank,
        .number = number,
        .engine = place.own_lanes ? prog->nengines++ : place.engine,
        .local = local,
        .exec = place.exec,
        .first_op = prog->ops.count,
        .nops = from->nsteps,
    };
    for (uint32_t s = 0; s < from->nsteps; s++)
        if (!op_add(prog, rank, &from->steps[s]))
            return false;
    return true;
}

/* Steps that others of the rank wait for get a mark. */
static void lane_deps(struct tw_cost_prog *prog, const struct tw_plan_lane *from, uint32_t first,
                      uint32_t number)
{
    struct tw_cost_op *ops = tw_cost_ops(prog);
    const struct tw_cost_lane *lanes = tw_cost_lanes(prog) + first;
    for (uint32_t s = 0; s < from->nsteps; s++) {
        const struct tw_plan_step *step = &from->steps[s];
        if (step->dep_lane == TW_NO_LANE)
            continue;
        struct tw_cost_op *on = &ops[lanes[step->dep_lane].first_op + step->dep_step];
        if (on->mark == TW_COST_NONE)
            on->mark = prog->nmarks++;
        ops[lanes[number].first_op + s].dep = on->mark;
    }
}

static enum twill_status rank_add(struct tw_cost_prog *prog, const struct tw_plan *plan, int rank)
{
    const struct tw_plan_rank *from = &plan->ranks[rank];
    uint32_t first = prog->lanes.count;
    if (prog->present[rank])
        return tw_fail(TWILL_ERR_INVALID, "plan %s: rank %d is given twice", plan->name, rank);
    for (uint32_t l = 0; l < from->nlanes; l++)
        if (!lane_add(prog, rank, l, &from->lanes[l]))
            return too_large(prog);
    for (uint32_t l = 0; l < from->nlanes; l++)
        lane_deps(prog, &from->lanes[l], first, l);
    bool any = false;
    uint64_t in = tw_buf_groups(plan, rank, TW_BUF_IN, &any);
    uint64_t out = tw_buf_groups(plan, rank, TW_BUF_OUT, &any);
    prog->user_groups = tw_cost_later(prog->user_groups, in + out);
    prog->most_groups = tw_cost_later(prog->most_groups, in > out ? in : out);
    prog->present[rank] = 1;
    prog->ranks_left--;
    return TWILL_OK;
}

static bool facts_alike(const struct tw_plan *a, const struct tw_plan *b)
{
    bool parts = a->nparts == b->nparts;
    for (uint32_t p = 0; parts && p < a->nparts; p++)
        parts = a->parts[p].groups == b->parts[p].groups && a->parts[p].per == b->parts[p].per;
    return parts && a->coll == b->coll && a->nranks == b->nranks && a->depth == b->depth &&
           a->slices == b->slices && a->nfifos == b->nfifos && strcmp(a->name, b->name) == 0;
}

enum twill_status tw_cost_prog_add(struct tw_cost_prog *prog, const struct tw_plan *plan)
{
    enum twill_status status = TWILL_OK;
    if (!facts_alike(&prog->facts, plan))
        return tw_fail(TWILL_ERR_INVALID, "plan %s: programs of ranks have different facts",
                       plan->name);
    int first = plan->only_rank < 0 ? 0 : plan->only_rank;
    int last = plan->only_rank < 0 ? plan->nranks - 1 : plan->only_rank;
    for (int r = first; r <= last && !tw_failed(status); r++)
        status = rank_add(prog, plan, r);
    return status;
}

/* ---- signals -------------------------------------------------------------------------------- */

static int raise_order(const void *a, const void *b)
{
    const struct tw_cost_raise *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->sig != y->sig)
        return x->sig < y->sig ? -1 : 1;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* The first raise of the word to at least the value that is waited for. */
static const struct tw_cost_raise *raise_find(const struct tw_cost_prog *prog,
                                              const struct tw_cost_raise *wait)
{
    const struct tw_cost_raise *raises = prog->raises.at;
    struct tw_cost_raise key = *wait;
    uint32_t low = 0, high = prog->raises.count;
    key.op = 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (raise_order(&raises[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found =
        low < prog->raises.count && raises[low].rank == wait->rank && raises[low].sig == wait->sig;
    return found ? &raises[low] : NULL;
}

enum twill_status tw_cost_prog_join(struct tw_cost_prog *prog)
{
    struct tw_cost_op *ops = tw_cost_ops(prog);
    const struct tw_cost_raise *waits = prog->waits.at;
    if (prog->joined)
        return TWILL_OK;
    if (prog->ranks_left)
        return tw_fail(TWILL_ERR_INVALID, "plan %s: the programs of %u ranks are missing",
                       prog->facts.name, prog->ranks_left);
    if (prog->raises.count)
        qsort(prog->raises.at, prog->raises.count, sizeof(struct tw_cost_raise), raise_order);
    for (uint32_t w = 0; w < prog->waits.count; w++) {
        const struct tw_cost_raise *raise = raise_find(prog, &waits[w]);
        if (!raise)
            return tw_fail(TWILL_ERR_INVALID,
                           "plan %s: rank %d waits for signal %u to be %u, which nobody raises",
                           prog->facts.name, waits[w].rank, waits[w].sig, waits[w].value);
        if (ops[raise->op].mark == TW_COST_NONE)
            ops[raise->op].mark = prog->nmarks++;
        ops[waits[w].op].word = ops[raise->op].mark;
    }
    prog->joined = true;
    return TWILL_OK;
}
