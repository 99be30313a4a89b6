/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the plan of a call is made and what it needs. Never knows: which one a call runs. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "comm/plans.h"

static uint64_t entry_hash(const struct tw_plans *plans, const struct tw_plans_entry *entry)
{
    struct {
        char name[TW_PLAN_NAME_BYTES];
        uint64_t channels, root, param, order;
    } names;
    memset(&names, 0, sizeof names);
    snprintf(names.name, sizeof names.name, "%s", entry->algo->name);
    names.channels = entry->channels;
    names.root = (uint64_t)entry->root;
    names.param = entry->param;
    names.order = plans->moved ? tw_hash64(plans->rank_of, sizeof plans->rank_of) : 0;
    return tw_hash64(&names, sizeof names);
}

enum twill_status tw_plans_caps_check(const struct twill_comm *comm, const struct tw_plan *plan)
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

enum twill_status tw_plans_room_check(const struct twill_comm *comm, const struct tw_plan *plan,
                                      twill_type_t type)
{
    struct tw_exec_shape shape;
    return tw_exec_shape(plan, 1, tw_type_bytes(type), tw_chan_fifo_size(comm->chan),
                         tw_ops_scratch_bytes(comm, plan->caps), &shape);
}

/* ---- ranks in another order -------------------------------------------------------------------
 */

void tw_plans_order_set(struct tw_plans *plans, const int *order)
{
    const int size = plans->comm->size;
    plans->moved = false;
    memset(plans->rank_of, 0, sizeof plans->rank_of);
    if (size > TW_PLANS_ORDER_MOST)
        return;
    for (int i = 0; i < size; i++) {
        plans->rank_of[i] = order[i];
        plans->moved |= order[i] != i;
    }
}

/* The plan's own number of a rank. */
static int place_of(const struct tw_plans *plans, int rank)
{
    int place = 0;
    while (plans->rank_of[place] != rank)
        place++;
    return place;
}

/* All ranks find alike whether a plan's ranks can be moved, since each looks at all of them. */
static enum twill_status generate_moved(const struct tw_plans *plans, const struct tw_algo *algo,
                                        struct tw_algo_args args, struct tw_plan **out)
{
    struct tw_plan *plan = NULL;
    if (tw_coll_rule(args.coll)->rooted)
        args.root = place_of(plans, args.root);
    args.only_rank = -1;
    enum twill_status status = algo->generate(&args, &plan);
    if (tw_failed(status))
        return status;
    status = tw_plan_relabel(&plan, plans->rank_of);
    if (tw_failed(status))
        tw_plan_destroy(plan);
    else
        *out = plan;
    return status;
}

static enum twill_status generate(const struct tw_plans *plans, enum tw_coll coll,
                                  struct tw_plans_entry *entry)
{
    struct tw_algo_args args = {
        .coll = coll,
        .nranks = plans->comm->size,
        .root = entry->root,
        .only_rank = plans->check ? -1 : plans->comm->rank,
        .channels = entry->channels,
        .param = entry->param,
    };
    if (plans->moved) {
        enum twill_status status = generate_moved(plans, entry->algo, args, &entry->plan);
        if (status != TWILL_ERR_UNSUPPORTED)
            return status;
    }
    return entry->algo->generate(&args, &entry->plan);
}

enum twill_status tw_plans_make(const struct tw_plans *plans, enum tw_coll coll,
                                struct tw_plans_entry *entry)
{
    const struct twill_comm *comm = plans->comm;
    enum twill_status status = generate(plans, coll, entry);
    if (tw_failed(status))
        return status;
    status = tw_plans_caps_check(comm, entry->plan);
    if (!tw_failed(status) && plans->check)
        status = tw_plans_prove(entry->plan, "TWILL_CHECK_PLANS");
    if (tw_failed(status)) {
        tw_plan_destroy(entry->plan);
        return status;
    }
    entry->hash = entry_hash(plans, entry);
    entry->roomy = !tw_failed(tw_plans_room_check(comm, entry->plan, TWILL_FLOAT64));
    tw_debug(TW_SUB_COMM, "communicator %s rank %d: %s runs %s", comm->args.name, comm->rank,
             tw_coll_name(coll), entry->plan->name);
    return TWILL_OK;
}
