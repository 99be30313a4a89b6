/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which plan a call runs, and keeps those made. Never knows: how a plan runs. */
#include "config.h"

#include "comm/plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tw_plans_want_scratch(const struct tw_params *params)
{
    const struct tw_algo *algo;
    bool want = params->plan_file[0] != '\0';
    for (size_t i = 0; !want && (algo = tw_algo_at(i)) != NULL; i++)
        want = algo->caps & TW_CAP_PUT_SCRATCH && strstr(params->algo, algo->name) != NULL;
    return want;
}

/* ---- life -------------------------------------------------------------------------------------
 */

/* Algorithms that a choice may fall on. Those that add in the defined order are slower than their
 * likes, so they are there for who asked for that. */
static uint64_t allowed_of(const struct tw_plans *plans, enum tw_coll coll)
{
    uint64_t allowed = 0;
    bool ordered = plans->ordered && tw_coll_rule(coll)->reduces;
    const struct tw_algo *algo;
    for (size_t i = 0; i < 64 && (algo = tw_algo_at(i)) != NULL; i++) {
        bool in_order = algo->deterministic >> coll & 1;
        if (algo->colls >> coll & 1 && in_order == ordered)
            allowed |= (uint64_t)1 << i;
    }
    return allowed & ~plans->left_out[coll];
}

static enum twill_status choose_open(struct tw_plans *plans, const struct tw_params *params)
{
    const struct twill_comm *comm = plans->comm;
    struct tw_choose_args args;
    memset(&args, 0, sizeof args); /* compared as bytes */
    args.facts = comm->facts;
    enum twill_status status = tw_choose_table(&comm->facts, params->cost_file, &args.table);
    if (tw_failed(status))
        return status;
    for (int coll = 0; coll < TW_COLL_COUNT; coll++)
        args.allowed[coll] = allowed_of(plans, (enum tw_coll)coll);
    args.fifo_bytes = tw_chan_fifo_size(comm->chan);
    args.scratch_bytes = tw_ops_scratch_bytes(comm, TW_CAP_PUT_SCRATCH);
    args.own_scratch_bytes = tw_ops_scratch_bytes(comm, 0);
    args.signal_count = tw_chan_signal_count(comm->chan);
    args.nranks = (uint32_t)comm->size;
    args.ordered = plans->ordered;
    args.channels = plans->channels;
    args.caps = tw_chan_scratch_bytes(comm->chan) ? TW_CAP_PUT_SCRATCH : 0;
    plans->table_hash = tw_cost_table_hash(&args.table);
    return tw_choose_get(comm->proc->chooses, &args, &plans->choose);
}

enum twill_status tw_plans_create(struct twill_comm *comm, struct tw_plans **plans)
{
    const struct tw_params *params = comm->proc->params;
    struct tw_plans *p = tw_alloc(sizeof *p);
    if (!p)
        return TWILL_ERR_NOMEM;
    p->comm = comm;
    p->channels = comm->args.channels > 0 ? (uint32_t)comm->args.channels : 1;
    p->check = params->check_plans;
    p->ordered = comm->args.deterministic;
    enum twill_status status = tw_plans_read_proto(params->proto);
    if (!tw_failed(status))
        status = tw_plans_read_algo(p, params->algo);
    if (!tw_failed(status))
        status = tw_plans_read_files(p, params->plan_file);
    if (!tw_failed(status))
        status = choose_open(p, params);
    if (tw_failed(status)) {
        tw_plans_destroy(p);
        return status;
    }
    *plans = p;
    return TWILL_OK;
}

const struct tw_cost_table *tw_plans_costs(const struct tw_plans *plans)
{
    return tw_choose_costs(plans->choose);
}

void tw_plans_stamp(const struct tw_plans *plans, struct tw_facts_stamp *stamp)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < plans->nfiles; i++) {
        uint64_t pair[2] = {hash, plans->files[i].hash};
        hash = tw_hash64(pair, sizeof pair);
    }
    *stamp = (struct tw_facts_stamp){
        .measured = tw_topo_measured_hash(&plans->comm->facts.measured),
        .table = plans->table_hash,
        .plans = hash,
    };
}

void tw_plans_destroy(struct tw_plans *plans)
{
    if (!plans)
        return;
    for (int coll = 0; coll < TW_COLL_COUNT; coll++) {
        struct tw_plans_entry *next;
        for (struct tw_plans_entry *e = plans->entries[coll]; e; e = next) {
            next = e->next;
            tw_plan_destroy(e->plan);
            free(e);
        }
    }
    for (uint32_t i = 0; i < plans->nfiles; i++)
        tw_plan_destroy(plans->files[i].plan);
    tw_choose_put(plans->choose);
    free(plans);
}

/* ---- choice -----------------------------------------------------------------------------------
 */

/* The larger of the call's buffers. */
static uint64_t call_bytes(const struct tw_call_info *info, int size)
{
    uint64_t bytes = (uint64_t)info->count * tw_type_bytes(info->type);
    switch (info->coll) {
    case TW_COLL_REDUCE_SCATTER:
    case TW_COLL_ALL_GATHER:
    case TW_COLL_ALL_TO_ALL:
    case TW_COLL_GATHER:
    case TW_COLL_SCATTER:
        return bytes * (uint64_t)size;
    case TW_COLL_REDUCE_SCATTER_V:
    case TW_COLL_ALL_GATHER_V:
        return (uint64_t)info->total * tw_type_bytes(info->type);
    default:
        return bytes;
    }
}

static const struct tw_plans_file *file_find(const struct tw_plans *plans,
                                             const struct tw_call_info *info)
{
    for (uint32_t i = 0; i < plans->nfiles; i++) {
        const struct tw_plan *plan = plans->files[i].plan;
        if (plan->coll == info->coll && plan->nranks == plans->comm->size &&
            plan->root == info->root)
            return &plans->files[i];
    }
    return NULL;
}

/* What a call is to run. */
struct pick {
    const struct tw_algo *algo;
    uint32_t param;
    uint32_t channels; /* 0: the communicator's */
};

static uint32_t channels_of(const struct tw_plans *plans, const struct pick *pick)
{
    return pick->channels ? pick->channels : plans->channels;
}

static struct tw_plans_entry *entry_find(const struct tw_plans *plans,
                                         const struct tw_call_info *info, const struct pick *pick)
{
    for (struct tw_plans_entry *e = plans->entries[info->coll]; e; e = e->next)
        if (e->algo == pick->algo && e->param == pick->param && e->root == info->root &&
            e->channels == channels_of(plans, pick))
            return e;
    return NULL;
}

static enum twill_status entry_get(struct tw_plans *plans, const struct tw_call_info *info,
                                   const struct pick *pick, struct tw_plans_entry **out)
{
    struct tw_plans_entry *entry = entry_find(plans, info, pick);
    if (!entry) {
        entry = tw_alloc(sizeof *entry);
        if (!entry)
            return TWILL_ERR_NOMEM;
        entry->algo = pick->algo;
        entry->param = pick->param;
        entry->channels = channels_of(plans, pick);
        entry->root = info->root;
        enum twill_status status = tw_plans_make(plans, info->coll, entry);
        if (tw_failed(status)) {
            free(entry);
            return status;
        }
        entry->next = plans->entries[info->coll];
        plans->entries[info->coll] = entry;
    }
    *out = entry;
    return entry->roomy ? TWILL_OK : tw_plans_room_check(plans->comm, entry->plan, info->type);
}

/* The links are too small for the algorithm of choice: the first other one that fits. All ranks
 * find the same one, since all their links are alike. */
static enum twill_status entry_get_other(struct tw_plans *plans, const struct tw_call_info *info,
                                         enum twill_status status, struct tw_plans_entry **out)
{
    uint64_t allowed = allowed_of(plans, info->coll);
    for (size_t i = 0; tw_failed(status) && i < 64 && tw_algo_at(i); i++) {
        const struct pick pick = {.algo = tw_algo_at(i)};
        if (allowed >> i & 1)
            status = entry_get(plans, info, &pick, out);
    }
    return status;
}

bool tw_plans_force(const struct tw_plans *plans, const struct tw_call_info *info)
{
    return plans->forced[info->coll] || file_find(plans, info);
}

bool tw_plans_force_some(const struct tw_plans *plans)
{
    bool some = plans->nfiles > 0;
    for (int coll = 0; coll < TW_COLL_COUNT; coll++)
        some |= plans->forced[coll] != NULL;
    return some;
}

/* ---- who decides ------------------------------------------------------------------------------
 */

static enum twill_status class_pick(struct tw_plans *plans, enum tw_coll coll, uint32_t class,
                                    const struct tw_algo **algo)
{
    const struct tw_algo **chosen = &plans->chosen[coll][class];
    enum twill_status status = TWILL_OK;
    if (!*chosen)
        status = tw_choose_algo(plans->choose, coll, class, chosen);
    *algo = *chosen;
    return status;
}

/* Without a lock or a price after the first call of a size class; small calls are all of one. */
static enum twill_status pick_find(struct tw_plans *plans, const struct tw_call_info *info,
                                   struct pick *pick)
{
    if (plans->forced[info->coll]) {
        *pick = (struct pick){plans->forced[info->coll], plans->forced_param[info->coll], 0};
        return TWILL_OK;
    }
    uint32_t class = tw_choose_class(call_bytes(info, plans->comm->size));
    uint32_t small = tw_choose_small(plans->comm->size, info->coll);
    *pick = (struct pick){.algo = plans->chosen[info->coll][class]};
    if (pick->algo)
        return TWILL_OK;
    enum twill_status status = TWILL_OK;
    for (uint32_t c = 0; c <= small && class <= small && !tw_failed(status); c++)
        status = class_pick(plans, info->coll, c, &pick->algo);
    return tw_failed(status) ? status : class_pick(plans, info->coll, class, &pick->algo);
}

/* The first small call of a collective and root makes the plans of all small ones: later ones then
 * need no memory. What fails here fails again where it is called for. */
static void small_make(struct tw_plans *plans, const struct tw_call_info *info)
{
    uint32_t small = tw_choose_small(plans->comm->size, info->coll);
    if (plans->forced[info->coll] || tw_choose_class(call_bytes(info, plans->comm->size)) > small)
        return;
    for (uint32_t class = 0; class <= small; class ++) {
        struct pick pick = {.algo = plans->chosen[info->coll][class]};
        struct tw_plans_entry *entry;
        if (pick.algo && !entry_find(plans, info, &pick))
            (void)entry_get(plans, info, &pick, &entry);
    }
}

static enum twill_status file_get(const struct tw_plans *plans, const struct tw_call_info *info,
                                  const struct tw_plans_file *file, const struct tw_plan **plan,
                                  uint64_t *algo_hash)
{
    enum twill_status status = tw_plans_caps_check(plans->comm, file->plan);
    if (!tw_failed(status))
        status = tw_plans_room_check(plans->comm, file->plan, info->type);
    *plan = file->plan;
    *algo_hash = file->hash;
    return status;
}

enum twill_status tw_plans_get(struct tw_plans *plans, const struct tw_call_info *info,
                               const struct tw_plan **plan, uint64_t *algo_hash)
{
    const struct tw_plans_file *file = plans->nfiles ? file_find(plans, info) : NULL;
    if (file)
        return file_get(plans, info, file, plan, algo_hash);
    struct pick pick = {.algo = NULL};
    struct tw_plans_entry *entry = NULL;
    enum twill_status status = pick_find(plans, info, &pick);
    if (!tw_failed(status) && !entry_find(plans, info, &pick))
        small_make(plans, info);
    if (!tw_failed(status))
        status = entry_get(plans, info, &pick, &entry);
    if (tw_failed(status) && !plans->forced[info->coll])
        status = entry_get_other(plans, info, status, &entry);
    if (tw_failed(status))
        return status;
    *plan = entry->plan;
    *algo_hash = entry->hash;
    return TWILL_OK;
}

/* ---- rings that others than parameters ask for ------------------------------------------------
 */

static const struct tw_algo *ring_of(enum tw_coll coll) { return tw_algo_find("ring", coll); }

bool tw_plans_rings(const struct tw_plans *plans, enum tw_coll coll)
{
    bool open = !plans->forced[coll] && !(plans->ordered && tw_coll_rule(coll)->reduces);
    for (uint32_t i = 0; i < plans->nfiles; i++)
        open &= plans->files[i].plan->coll != coll;
    for (size_t i = 0; open && i < 64 && tw_algo_at(i); i++)
        if (tw_algo_at(i) == ring_of(coll))
            return !(plans->left_out[coll] >> i & 1);
    return false;
}

enum twill_status tw_plans_get_ring(struct tw_plans *plans, const struct tw_call_info *info,
                                    uint32_t channels, const struct tw_plan **plan,
                                    uint64_t *algo_hash)
{
    const struct pick pick = {.algo = ring_of(info->coll), .channels = channels};
    struct tw_plans_entry *entry = NULL;
    enum twill_status status = entry_get(plans, info, &pick, &entry);
    if (tw_failed(status))
        return status;
    *plan = entry->plan;
    *algo_hash = entry->hash;
    return TWILL_OK;
}

/* ---- prices -----------------------------------------------------------------------------------
 */

/* Touches nothing that calls change: any thread may ask. */
enum twill_status tw_plans_price(const struct tw_plans *plans, const struct tw_call_info *info,
                                 uint64_t *time_ps)
{
    const struct twill_comm *comm = plans->comm;
    const uint32_t type_bytes = (uint32_t)tw_type_bytes(info->type);
    const struct tw_plans_file *file = file_find(plans, info);
    bool all = info->coll == TW_COLL_REDUCE_SCATTER_V || info->coll == TW_COLL_ALL_GATHER_V;
    const uint64_t count = all ? info->total / (size_t)comm->size : info->count; /* the mean one */
    if (file)
        return tw_choose_price(plans->choose, file->plan, count, type_bytes, time_ps);
    struct tw_algo_args args = {
        .coll = info->coll,
        .nranks = comm->size,
        .root = info->root,
        .only_rank = -1,
        .channels = plans->channels,
        .param = plans->forced_param[info->coll],
    };
    if (comm->size > TW_CHOOSE_RANKS_MOST)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "%s: %d ranks are not priced",
                       tw_coll_name(info->coll), comm->size);
    const struct tw_algo *algo = plans->forced[info->coll];
    enum twill_status status =
        algo ? TWILL_OK
             : tw_choose_algo(plans->choose, info->coll,
                              tw_choose_class(call_bytes(info, comm->size)), &algo);
    struct tw_plan *plan = NULL;
    if (!tw_failed(status))
        status = algo->generate(&args, &plan);
    if (!tw_failed(status))
        status = tw_choose_price(plans->choose, plan, count, type_bytes, time_ps);
    tw_plan_destroy(plan);
    return status;
}
