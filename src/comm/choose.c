/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which algorithm is the cheapest for a call, by facts that all ranks share.
 * Never knows: the communicator, which plans are made and kept. */
#include "config.h"

#include "comm/choose.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "channel/channel.h"
#include "device/exec.h"
#include "topo/graph.h"
#include "topo/plain.h"

#define TYPE_BYTES 4 /* that classes are priced with */

struct tw_choose {
    struct tw_choose *next;
    struct tw_chooses *all; /* borrowed */
    uint32_t refs;          /* under the lock of all */
    pthread_mutex_t lock;   /* of what follows */
    struct tw_choose_args args;
    struct tw_topo_graph *graph; /* owned */
    struct tw_cost_net net;
    /* [coll][class]: NULL: not asked for yet */
    const struct tw_algo *chosen[TW_COLL_COUNT][TW_CHOOSE_CLASSES];
};

struct tw_chooses {
    pthread_mutex_t lock;
    struct tw_choose *first;
};

/* ---- life ----------------------------------------------------------------------------------- */

enum twill_status tw_chooses_create(struct tw_chooses **all)
{
    struct tw_chooses *made = tw_alloc(sizeof(*made));
    if (!made)
        return TWILL_ERR_NOMEM;
    (void)pthread_mutex_init(&made->lock, NULL);
    *all = made;
    return TWILL_OK;
}

static void choose_free(struct tw_choose *choose)
{
    tw_cost_net_close(&choose->net);
    tw_topo_graph_free(choose->graph);
    (void)pthread_mutex_destroy(&choose->lock);
    free(choose);
}

void tw_chooses_destroy(struct tw_chooses *all)
{
    if (!all)
        return;
    (void)pthread_mutex_destroy(&all->lock);
    free(all);
}

/* The ranks' host as they see it together: equal on all of them, wherever it is built. */
static enum twill_status net_open(struct tw_choose *choose)
{
    const struct tw_facts *facts = &choose->args.facts;
    uint32_t nranks = choose->args.nranks;
    uint32_t cpus = facts->cpus < nranks ? facts->cpus : nranks;
    enum twill_status status = tw_topo_plain(&choose->graph, NULL, cpus);
    if (tw_failed(status))
        return status;
    struct tw_topo_machine *machine = &choose->graph->machines[0];
    struct tw_topo_place *places = tw_alloc(nranks * sizeof(*places));
    status = places ? tw_topo_measured_apply(&facts->measured, machine) : TWILL_ERR_NOMEM;
    if (!tw_failed(status))
        status = tw_topo_graph_seal(choose->graph);
    if (!tw_failed(status))
        status =
            tw_topo_place_ranks(choose->graph, TW_NODE_PU, TW_TOPO_PACKED, nranks, nranks, places);
    if (!tw_failed(status)) {
        const struct tw_cost_graph from = {
            .graph = choose->graph,
            .places = places,
            .nranks = (int)nranks,
            .inside = facts->one_process ? TW_COST_LINK_SELF : TW_COST_LINK_SHM,
            .between_hosts = TW_COST_LINK_TCP,
        };
        status = tw_cost_graph_open(&from, &choose->net);
    }
    free(places);
    return status;
}

static enum twill_status choose_make(const struct tw_choose_args *args, struct tw_choose **choose)
{
    struct tw_choose *made = tw_alloc(sizeof(*made));
    if (!made)
        return TWILL_ERR_NOMEM;
    (void)pthread_mutex_init(&made->lock, NULL);
    made->args = *args;
    enum twill_status status = args->nranks <= TW_CHOOSE_RANKS_MOST ? net_open(made) : TWILL_OK;
    if (tw_failed(status)) {
        choose_free(made);
        return status;
    }
    *choose = made;
    return TWILL_OK;
}

enum twill_status tw_choose_get(struct tw_chooses *all, const struct tw_choose_args *args,
                                struct tw_choose **choose)
{
    enum twill_status status = TWILL_OK;
    (void)pthread_mutex_lock(&all->lock);
    struct tw_choose *found = all->first;
    while (found && memcmp(&found->args, args, sizeof(*args)) != 0)
        found = found->next;
    if (!found) {
        status = choose_make(args, &found);
        if (!tw_failed(status)) {
            found->all = all;
            found->next = all->first;
            all->first = found;
        }
    }
    if (!tw_failed(status)) {
        found->refs++;
        *choose = found;
    }
    (void)pthread_mutex_unlock(&all->lock);
    return status;
}

void tw_choose_put(struct tw_choose *choose)
{
    if (!choose)
        return;
    struct tw_chooses *all = choose->all;
    (void)pthread_mutex_lock(&all->lock);
    bool last = --choose->refs == 0;
    for (struct tw_choose **at = &all->first; last && *at; at = &(*at)->next) {
        if (*at == choose) {
            *at = choose->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&all->lock);
    if (last)
        choose_free(choose);
}

const struct tw_cost_table *tw_choose_costs(const struct tw_choose *choose)
{
    return &choose->args.table;
}

/* ---- prices --------------------------------------------------------------------------------- */

uint32_t tw_choose_class(uint64_t bytes)
{
    if (bytes < 2)
        return 0;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(bytes);
    uint32_t class = 2 * power + (uint32_t)(bytes >> (power - 1) & 1);
    return class < TW_CHOOSE_CLASSES ? class : TW_CHOOSE_CLASSES - 1;
}

static uint64_t class_bytes(uint32_t class)
{
    uint64_t power = (uint64_t)1 << class / 2;
    return class % 2 ? power + power / 2 : power;
}

/* How the executor would cut the call; an error where the links cannot carry the plan. */
static enum twill_status shape_of(const void *ctx, const struct tw_plan *plan, uint64_t count,
                                  uint32_t type_bytes, struct tw_cost_shape *shape)
{
    const struct tw_choose_args *args = &((const struct tw_choose *)ctx)->args;
    const uint64_t scratch_bytes =
        plan->caps & TW_CAP_PUT_SCRATCH ? args->scratch_bytes : args->own_scratch_bytes;
    struct tw_exec_shape cut;
    if ((plan->caps & ~args->caps) != 0 ||
        (uint64_t)plan->nsigs * plan->slices > args->signal_count ||
        !tw_exec_fits(plan, type_bytes, args->fifo_bytes, scratch_bytes))
        return TWILL_ERR_UNSUPPORTED;
    enum twill_status status =
        tw_exec_shape(plan, count, type_bytes, args->fifo_bytes, scratch_bytes, &cut);
    if (!tw_failed(status))
        *shape = (struct tw_cost_shape){
            .slice_elems = cut.slice_elems, .slices = cut.slices, .loops = cut.loops};
    return status;
}

/* An algorithm's bit stands at its number in the registry. */
struct rule {
    uint64_t allowed;
};

static bool is_left_out(const void *ctx, const struct tw_algo *algo)
{
    const struct rule *rule = ctx;
    for (size_t i = 0; tw_algo_at(i); i++)
        if (tw_algo_at(i) == algo)
            return i >= 64 || !(rule->allowed >> i & 1);
    return true;
}

static enum twill_status pick(struct tw_choose *choose, enum tw_coll coll, uint32_t class,
                              const struct tw_algo **algo)
{
    const struct tw_choose_args *args = &choose->args;
    const struct rule rule = {args->allowed[coll]};
    const struct tw_crossover_args wanted = {
        .coll = coll,
        .nranks = (int)args->nranks,
        .channels = args->channels,
        .caps = args->caps,
        .type_bytes = TYPE_BYTES,
        .bytes = class_bytes(class),
        .net = &choose->net,
        .table = &args->table,
        .shape = shape_of,
        .shape_ctx = choose,
        .skip = is_left_out,
        .skip_ctx = &rule,
    };
    uint64_t time_ps;
    return tw_crossover_pick(&wanted, algo, &time_ps);
}

/* Where nothing is priced: what the thresholds say, if it is allowed, else the first that is. */
static enum twill_status pick_unpriced(const struct tw_choose_args *args, enum tw_coll coll,
                                       uint64_t bytes, const struct tw_algo **algo)
{
    const struct rule rule = {args->allowed[coll]};
    *algo = args->ordered ? tw_algo_choose_ordered(coll, (int)args->nranks, bytes)
                          : tw_algo_choose(coll, (int)args->nranks, bytes);
    for (size_t i = 0; *algo == NULL || is_left_out(&rule, *algo); i++) {
        *algo = tw_algo_at(i);
        if (*algo == NULL)
            return tw_fail(TWILL_ERR_UNSUPPORTED, "%s: no algorithm can be used with %u ranks",
                           tw_coll_name(coll), args->nranks);
    }
    return TWILL_OK;
}

/* Ranks do not know each other's counts, or there is nothing to be priced. */
static bool is_unpriced(const struct tw_choose_args *args, enum tw_coll coll)
{
    return args->nranks == 1 || args->nranks > TW_CHOOSE_RANKS_MOST || tw_coll_rule(coll)->some;
}

uint32_t tw_choose_small(int nranks, enum tw_coll coll)
{
    const struct tw_coll_rule *rule = tw_coll_rule(coll);
    bool groups = rule->in.many || rule->out.many;
    return tw_choose_class(TW_CHOOSE_SMALL_BYTES * (groups ? (uint64_t)nranks : 1));
}

/* Of first and last and, unless these chose alike, of those between. */
static enum twill_status pick_span(struct tw_choose *choose, enum tw_coll coll, uint32_t first,
                                   uint32_t last)
{
    const struct tw_algo **chosen = choose->chosen[coll];
    enum twill_status status = TWILL_OK;
    if (!chosen[first])
        status = pick(choose, coll, first, &chosen[first]);
    if (!tw_failed(status) && !chosen[last])
        status = pick(choose, coll, last, &chosen[last]);
    if (tw_failed(status) || last - first < 2)
        return status;
    for (uint32_t class = first + 1; class < last && chosen[first] == chosen[last]; class ++)
        chosen[class] = chosen[first];
    uint32_t middle = first + (last - first) / 2;
    if (chosen[first] == chosen[last])
        return TWILL_OK;
    status = pick_span(choose, coll, first, middle);
    return tw_failed(status) ? status : pick_span(choose, coll, middle, last);
}

enum twill_status tw_choose_algo(struct tw_choose *choose, enum tw_coll coll, uint32_t class,
                                 const struct tw_algo **algo)
{
    if (is_unpriced(&choose->args, coll))
        return pick_unpriced(&choose->args, coll, tw_coll_rule(coll)->some ? 0 : class_bytes(class),
                             algo);
    enum twill_status status = TWILL_OK;
    (void)pthread_mutex_lock(&choose->lock);
    const struct tw_algo **chosen = &choose->chosen[coll][class];
    uint32_t small = tw_choose_small((int)choose->args.nranks, coll);
    if (!*chosen && class <= small)
        status = pick_span(choose, coll, 0, small);
    else if (!*chosen)
        status = pick(choose, coll, class, chosen);
    if (!tw_failed(status))
        *algo = *chosen;
    (void)pthread_mutex_unlock(&choose->lock);
    return status;
}

enum twill_status tw_choose_price(struct tw_choose *choose, const struct tw_plan *plan,
                                  uint64_t count, uint32_t type_bytes, uint64_t *time_ps)
{
    struct tw_cost_call call = {.count = count, .type_bytes = type_bytes};
    struct tw_cost_price price;
    if (choose->args.nranks > TW_CHOOSE_RANKS_MOST)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "%u ranks are not priced", choose->args.nranks);
    enum twill_status status = shape_of(choose, plan, count, type_bytes, &call.shape);
    if (tw_failed(status))
        return tw_fail(TWILL_ERR_UNSUPPORTED, "plan %s does not fit the links", plan->name);
    (void)pthread_mutex_lock(&choose->lock);
    status = tw_plan_cost(plan, &choose->net, &choose->args.table, &call, &price);
    (void)pthread_mutex_unlock(&choose->lock);
    if (!tw_failed(status))
        *time_ps = price.time_ps;
    return status;
}

/* Rank 0 sends, rank 1 receives, the others have nothing to do; one rank alone copies. */
static enum twill_status message_plan(uint32_t nranks, struct tw_plan **plan)
{
    struct tw_build build;
    tw_build_init(&build, "message", TW_COLL_P2P, (int)nranks, 0, -1);
    if (build.plan) {
        build.plan->depth = 2;
        build.plan->slices = 2;
    }
    uint8_t part = tw_build_part(&build, TW_PART_EQUAL, 1, 1);
    const struct tw_plan_span in = tw_span_one(TW_BUF_IN, part, 0);
    const struct tw_plan_span out = tw_span_one(TW_BUF_OUT, part, 0);
    struct tw_plan_step step = {
        .op = TW_OP_COPY,
        .dep_lane = TW_NO_LANE,
        .from = TW_NO_RANK,
        .to = TW_NO_RANK,
        .src = in,
        .dst = out,
    };
    if (nranks == 1) {
        tw_build_step(&build, 0, tw_build_lane(&build, 0, 0), &step);
        return tw_build_finish(&build, plan);
    }
    step.op = TW_OP_SEND;
    step.to = 1;
    step.dst = tw_span_none();
    tw_build_step(&build, 0, tw_build_lane(&build, 0, 0), &step);
    step = (struct tw_plan_step){.op = TW_OP_RECV,
                                 .dep_lane = TW_NO_LANE,
                                 .from = 0,
                                 .to = TW_NO_RANK,
                                 .src = tw_span_none(),
                                 .dst = out};
    tw_build_step(&build, 1, tw_build_lane(&build, 1, 0), &step);
    return tw_build_finish(&build, plan);
}

enum twill_status tw_choose_price_p2p(struct tw_choose *choose, uint64_t count, uint32_t type_bytes,
                                      uint64_t *time_ps)
{
    struct tw_plan *plan = NULL;
    if (choose->args.nranks > TW_CHOOSE_RANKS_MOST)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "%u ranks are not priced", choose->args.nranks);
    enum twill_status status = message_plan(choose->args.nranks, &plan);
    if (!tw_failed(status))
        status = tw_choose_price(choose, plan, count, type_bytes, time_ps);
    tw_plan_destroy(plan);
    return status;
}
