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

enum twill_status tw_plans_create(struct twill_comm *comm, struct tw_plans **plans)
{
    const struct tw_params *params = comm->proc->params;
    if (params->proto[0] && strcmp(params->proto, "simple") != 0)
        return tw_fail(TWILL_ERR_INVALID, "TWILL_PROTO: no protocol \"%s\"; there is: simple",
                       params->proto);
    struct tw_plans *p = tw_alloc(sizeof *p);
    if (!p)
        return TWILL_ERR_NOMEM;
    p->comm = comm;
    p->channels = comm->args.channels > 0 ? (uint32_t)comm->args.channels : 1;
    p->check = params->check_plans;
    p->ordered = comm->args.deterministic;
    enum twill_status status = tw_plans_read_algo(p, params->algo);
    if (!tw_failed(status) && params->plan_file[0])
        status = tw_plans_read_file(p, params->plan_file);
    if (tw_failed(status)) {
        free(p);
        return status;
    }
    *plans = p;
    return TWILL_OK;
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
    tw_plan_destroy(plans->file.plan);
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

static bool file_serves(const struct tw_plans *plans, const struct tw_call_info *info)
{
    const struct tw_plan *plan = plans->file.plan;
    return plan && plan->coll == info->coll && plan->nranks == plans->comm->size &&
           plan->root == info->root;
}

static uint64_t entry_hash(const struct tw_plans_entry *entry, uint32_t channels)
{
    struct {
        char name[TW_PLAN_NAME_BYTES];
        uint64_t channels, root;
    } names;
    memset(&names, 0, sizeof names);
    snprintf(names.name, sizeof names.name, "%s", entry->algo->name);
    names.channels = channels;
    names.root = (uint64_t)entry->root;
    return tw_hash64(&names, sizeof names);
}

/* What the plan needs that the links of this communicator lack: every rank finds the same. */
static enum twill_status check_caps(const struct twill_comm *comm, const struct tw_plan *plan)
{
    const char *lacks = NULL;
    if (plan->caps & TW_CAP_PEER_BUFFERS)
        lacks = "buffers that peers can address";
    else if (plan->caps & TW_CAP_PUT_SCRATCH && !tw_chan_scratch_bytes(comm->chan))
        lacks = "scratch that peers can write";
    else if ((uint64_t)plan->nsigs * plan->slices > tw_chan_signal_count(comm->chan))
        lacks = "signal words";
    if (!lacks)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_UNSUPPORTED, "%s: plan %s needs %s, which this communicator lacks",
                   tw_coll_name((enum tw_coll)plan->coll), plan->name, lacks);
}

/* Slots and scratch hold an element of each cell of a message: then they do for any count. */
static enum twill_status check_room(const struct twill_comm *comm, const struct tw_plan *plan,
                                    twill_type_t type)
{
    struct tw_exec_shape shape;
    return tw_exec_shape(plan, 1, tw_type_bytes(type), tw_chan_fifo_size(comm->chan),
                         tw_ops_scratch_bytes(comm), &shape);
}

/* Generates the plan and makes sure, before any rank starts, that the links have room for it. */
static enum twill_status entry_make(const struct tw_plans *plans, enum tw_coll coll,
                                    struct tw_plans_entry *entry)
{
    const struct twill_comm *comm = plans->comm;
    struct tw_algo_args args = {
        .coll = coll,
        .nranks = comm->size,
        .root = entry->root,
        .only_rank = plans->check ? -1 : comm->rank,
        .channels = plans->channels,
    };
    enum twill_status status = entry->algo->generate(&args, &entry->plan);
    if (tw_failed(status))
        return status;
    status = check_caps(comm, entry->plan);
    if (!tw_failed(status) && plans->check)
        status = tw_plans_prove(entry->plan, "TWILL_CHECK_PLANS");
    if (tw_failed(status)) {
        tw_plan_destroy(entry->plan);
        return status;
    }
    entry->hash = entry_hash(entry, plans->channels);
    entry->roomy = !tw_failed(check_room(comm, entry->plan, TWILL_FLOAT64));
    tw_debug(TW_SUB_COMM, "communicator %s rank %d: %s runs %s", comm->args.name, comm->rank,
             tw_coll_name(coll), entry->plan->name);
    return TWILL_OK;
}

static struct tw_plans_entry *entry_find(const struct tw_plans *plans, enum tw_coll coll, int root,
                                         const struct tw_algo *algo)
{
    for (struct tw_plans_entry *e = plans->entries[coll]; e; e = e->next)
        if (e->algo == algo && e->root == root)
            return e;
    return NULL;
}

static enum twill_status entry_get(struct tw_plans *plans, const struct tw_call_info *info,
                                   const struct tw_algo *algo, struct tw_plans_entry **out)
{
    struct tw_plans_entry *entry = entry_find(plans, info->coll, info->root, algo);
    if (!entry) {
        entry = tw_alloc(sizeof *entry);
        if (!entry)
            return TWILL_ERR_NOMEM;
        entry->algo = algo;
        entry->root = info->root;
        enum twill_status status = entry_make(plans, info->coll, entry);
        if (tw_failed(status)) {
            free(entry);
            return status;
        }
        entry->next = plans->entries[info->coll];
        plans->entries[info->coll] = entry;
    }
    *out = entry;
    return entry->roomy ? TWILL_OK : check_room(plans->comm, entry->plan, info->type);
}

/* The links are too small for the algorithm of choice: the first other one that fits. All ranks
 * find the same one, since all their links are alike. */
static enum twill_status entry_get_other(struct tw_plans *plans, const struct tw_call_info *info,
                                         enum twill_status status, struct tw_plans_entry **out)
{
    for (size_t i = 0; tw_failed(status) && tw_algo_at(i); i++)
        if (tw_algo_serves(tw_algo_at(i), info->coll, plans->ordered))
            status = entry_get(plans, info, tw_algo_at(i), out);
    return status;
}

static enum twill_status file_get(const struct tw_plans *plans, const struct tw_call_info *info,
                                  const struct tw_plan **plan, uint64_t *algo_hash)
{
    enum twill_status status = check_caps(plans->comm, plans->file.plan);
    if (!tw_failed(status))
        status = check_room(plans->comm, plans->file.plan, info->type);
    *plan = plans->file.plan;
    *algo_hash = plans->file.hash;
    return status;
}

enum twill_status tw_plans_get(struct tw_plans *plans, const struct tw_call_info *info,
                               const struct tw_plan **plan, uint64_t *algo_hash)
{
    if (file_serves(plans, info))
        return file_get(plans, info, plan, algo_hash);
    int size = plans->comm->size;
    const struct tw_algo *forced = plans->forced[info->coll];
    uint64_t bytes = call_bytes(info, size);
    const struct tw_algo *algo = forced;
    if (!algo)
        algo = plans->ordered ? tw_algo_choose_ordered(info->coll, size, bytes)
                              : tw_algo_choose(info->coll, size, bytes);
    if (!algo)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "%s: no algorithm serves it with %d ranks",
                       tw_coll_name(info->coll), size);
    struct tw_plans_entry *entry = NULL;
    enum twill_status status = entry_get(plans, info, algo, &entry);
    if (tw_failed(status) && !forced)
        status = entry_get_other(plans, info, status, &entry);
    if (tw_failed(status))
        return status;
    *plan = entry->plan;
    *algo_hash = entry->hash;
    return TWILL_OK;
}

enum twill_status tw_plans_p2p(const struct twill_comm *comm, int peer, bool is_send,
                               struct tw_plan **plan)
{
    struct tw_build build;
    tw_build_init(&build, is_send ? "send" : "recv", TW_COLL_P2P, comm->size, 0, comm->rank);
    if (build.plan) {
        build.plan->depth = 2;
        build.plan->slices = 2;
    }
    uint8_t part = tw_build_part(&build, TW_PART_EQUAL, 1, 1);
    uint16_t lane = tw_build_lane(&build, comm->rank, 0);
    struct tw_plan_step step = {
        .op = is_send ? TW_OP_SEND : TW_OP_RECV,
        .dep_lane = TW_NO_LANE,
        .from = is_send ? TW_NO_RANK : peer,
        .to = is_send ? peer : TW_NO_RANK,
    };
    if (is_send)
        step.src = tw_span_one(TW_BUF_IN, part, 0);
    else
        step.dst = tw_span_one(TW_BUF_OUT, part, 0);
    tw_build_step(&build, comm->rank, lane, &step);
    return tw_build_finish(&build, plan);
}
