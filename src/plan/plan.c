/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the life of a plan's memory. Never knows: which steps make sense. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define ONE(where, kind)                                                                           \
    {                                                                                              \
        TW_##where, false, TW_PART_##kind                                                          \
    }
#define MANY(where, kind)                                                                          \
    {                                                                                              \
        TW_##where, true, TW_PART_##kind                                                           \
    }

static const struct tw_coll_rule rules[TW_COLL_COUNT] = {
    [TW_COLL_ALL_REDUCE] = {.name = "all_reduce",
                            .in = ONE(EVERYWHERE, EQUAL),
                            .out = ONE(EVERYWHERE, EQUAL),
                            .reduces = true},
    [TW_COLL_REDUCE] = {.name = "reduce",
                        .in = ONE(EVERYWHERE, EQUAL),
                        .out = ONE(AT_ROOT, EQUAL),
                        .rooted = true,
                        .reduces = true},
    [TW_COLL_BROADCAST] = {.name = "broadcast",
                           .in = ONE(AT_ROOT, EQUAL),
                           .out = ONE(EVERYWHERE, EQUAL),
                           .rooted = true},
    [TW_COLL_REDUCE_SCATTER] = {.name = "reduce_scatter",
                                .in = MANY(EVERYWHERE, EQUAL),
                                .out = ONE(EVERYWHERE, EQUAL),
                                .reduces = true},
    [TW_COLL_ALL_GATHER] = {.name = "all_gather",
                            .in = ONE(EVERYWHERE, EQUAL),
                            .out = MANY(EVERYWHERE, EQUAL)},
    [TW_COLL_ALL_TO_ALL] = {.name = "all_to_all",
                            .in = MANY(EVERYWHERE, EQUAL),
                            .out = MANY(EVERYWHERE, EQUAL)},
    [TW_COLL_BARRIER] = {.name = "barrier"},
    [TW_COLL_GATHER] = {.name = "gather",
                        .in = ONE(EVERYWHERE, EQUAL),
                        .out = MANY(AT_ROOT, EQUAL),
                        .rooted = true},
    [TW_COLL_SCATTER] = {.name = "scatter",
                         .in = MANY(AT_ROOT, EQUAL),
                         .out = ONE(EVERYWHERE, EQUAL),
                         .rooted = true},
    [TW_COLL_ALL_GATHER_V] = {.name = "all_gather_v",
                              .in = ONE(EVERYWHERE, OWN),
                              .out = MANY(EVERYWHERE, PER_RANK)},
    [TW_COLL_REDUCE_SCATTER_V] = {.name = "reduce_scatter_v",
                                  .in = MANY(EVERYWHERE, PER_RANK),
                                  .out = ONE(EVERYWHERE, OWN),
                                  .reduces = true},
    [TW_COLL_ALL_TO_ALL_V] = {.name = "all_to_all_v",
                              .in = MANY(EVERYWHERE, PAIR_SEND),
                              .out = MANY(EVERYWHERE, PAIR_RECV),
                              .some = true},
    [TW_COLL_GATHER_V] = {.name = "gather_v",
                          .in = ONE(EVERYWHERE, OWN),
                          .out = MANY(AT_ROOT, PER_RANK),
                          .rooted = true,
                          .some = true},
    [TW_COLL_SCATTER_V] = {.name = "scatter_v",
                           .in = MANY(AT_ROOT, PER_RANK),
                           .out = ONE(EVERYWHERE, OWN),
                           .rooted = true,
                           .some = true},
    [TW_COLL_P2P] = {.name = "p2p"},
};

const struct tw_coll_rule *tw_coll_rule(enum tw_coll coll)
{
    return (unsigned)coll < TW_COLL_COUNT ? &rules[coll] : NULL;
}

const char *tw_coll_name(enum tw_coll coll)
{
    return (unsigned)coll < TW_COLL_COUNT ? rules[coll].name : NULL;
}

static bool name_is_legal(const char *name)
{
    static const char legal[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
    size_t length = strspn(name, legal);
    return length > 0 && length < TW_PLAN_NAME_BYTES && name[length] == '\0';
}

enum twill_status tw_plan_shape_check(const char *name, enum tw_coll coll, int nranks, int root,
                                      int only_rank)
{
    if (!name || !name_is_legal(name))
        return tw_fail(
            TWILL_ERR_INVALID,
            "plan name is empty, longer than %d bytes or has letters besides a-z A-Z 0-9 _.+-",
            TW_PLAN_NAME_BYTES - 1);
    if ((unsigned)coll >= TW_COLL_COUNT || nranks < 1 || nranks > TW_PLAN_RANKS_MAX || root < 0 ||
        root >= nranks || only_rank < -1 || only_rank >= nranks)
        return tw_fail(
            TWILL_ERR_INVALID,
            "plan %s: collective %d, %d ranks (1 to %d), root %d, only rank %d do not go together",
            name, (int)coll, nranks, TW_PLAN_RANKS_MAX, root, only_rank);
    return TWILL_OK;
}

struct tw_plan *tw_plan_create(const char *name, enum tw_coll coll, int nranks, int root,
                               int only_rank)
{
    if (tw_failed(tw_plan_shape_check(name, coll, nranks, root, only_rank)))
        return NULL;
    struct tw_plan *plan = calloc(1, sizeof(*plan));
    if (plan)
        plan->ranks = calloc((size_t)nranks, sizeof(*plan->ranks));
    if (!plan || !plan->ranks) {
        free(plan);
        tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for %d ranks", name, nranks);
        return NULL;
    }
    memcpy(plan->name, name, strlen(name) + 1);
    plan->coll = (uint8_t)coll;
    plan->nranks = nranks;
    plan->root = root;
    plan->slices = 1;
    plan->parity = 1;
    plan->only_rank = only_rank;
    return plan;
}

void tw_plan_destroy(struct tw_plan *plan)
{
    if (!plan)
        return;
    for (int r = 0; r < plan->nranks; r++) {
        for (uint32_t l = 0; l < plan->ranks[r].nlanes; l++)
            free(plan->ranks[r].lanes[l].steps);
        free(plan->ranks[r].lanes);
    }
    free(plan->ranks);
    free(plan);
}

static bool lane_copy(struct tw_plan_lane *to, const struct tw_plan_lane *from)
{
    *to = (struct tw_plan_lane){.channel = from->channel};
    if (from->nsteps == 0)
        return true;
    to->steps = malloc(from->nsteps * sizeof(*to->steps));
    if (!to->steps)
        return false;
    memcpy(to->steps, from->steps, from->nsteps * sizeof(*to->steps));
    to->nsteps = from->nsteps;
    to->capacity = from->nsteps;
    return true;
}

static bool rank_copy(struct tw_plan_rank *to, const struct tw_plan_rank *from)
{
    if (from->nlanes == 0)
        return true;
    to->lanes = calloc(from->nlanes, sizeof(*to->lanes));
    if (!to->lanes)
        return false;
    to->nlanes = from->nlanes;
    to->capacity = from->nlanes;
    for (uint32_t l = 0; l < from->nlanes; l++)
        if (!lane_copy(&to->lanes[l], &from->lanes[l]))
            return false;
    return true;
}

struct tw_plan *tw_plan_copy(const struct tw_plan *plan)
{
    struct tw_plan *copy = tw_plan_create(plan->name, (enum tw_coll)plan->coll, plan->nranks,
                                          plan->root, plan->only_rank);
    if (!copy)
        return NULL;
    struct tw_plan_rank *ranks = copy->ranks;
    *copy = *plan;
    copy->ranks = ranks;
    for (int r = 0; r < plan->nranks; r++) {
        if (!rank_copy(&ranks[r], &plan->ranks[r])) {
            tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for a copy", plan->name);
            tw_plan_destroy(copy);
            return NULL;
        }
    }
    return copy;
}

uint32_t tw_plan_widest(const struct tw_plan *plan) { return plan->widest ? plan->widest : 1; }
