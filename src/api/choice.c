/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments of the question which plan a call would run. Never knows: how that is chosen. */
#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "comm/choose.h"
#include "comm/gpu.h"
#include "comm/ops.h"

#define US_OF_PS 1e-6

/* Of the struct's first version: predicted_us came later. */
#define SIZE_LEAST offsetof(struct twill_choice, predicted_us)

static enum twill_status find_coll(const char *name, enum tw_coll *coll)
{
    for (int i = 0; name && i < TW_COLL_P2P; i++) {
        if (strcmp(tw_coll_name((enum tw_coll)i), name) == 0) {
            *coll = (enum tw_coll)i;
            return TWILL_OK;
        }
    }
    return tw_fail(TWILL_ERR_INVALID, "comm_choice: no collective \"%s\"", name ? name : "NULL");
}

static enum twill_status check_call(const struct twill_comm *comm, const struct tw_call_info *info)
{
    size_t bytes;
    if (!tw_type_bytes(info->type)) {
        return tw_fail(TWILL_ERR_INVALID, "comm_choice: %d is no type", (int)info->type);
    }
    if (info->root < 0 || info->root >= comm->size) {
        return tw_fail(TWILL_ERR_INVALID, "comm_choice: root %d is out of range: ranks are 0 to %d",
                       info->root, comm->size - 1);
    }
    if (__builtin_mul_overflow(info->count, tw_type_bytes(info->type), &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)comm->size, &bytes) || bytes > PTRDIFF_MAX) {
        return tw_fail(TWILL_ERR_INVALID, "comm_choice: count %zu of %s is more than memory",
                       info->count, tw_type_name(info->type));
    }
    return TWILL_OK;
}

static enum twill_status check_struct(const struct twill_choice *choice)
{
    if (!choice) {
        return tw_fail(TWILL_ERR_INVALID, "comm_choice: the output is NULL");
    }
    if (choice->magic != TWILL_CHOICE_MAGIC || choice->size < SIZE_LEAST) {
        return tw_fail(TWILL_ERR_INVALID,
                       "comm_choice: the struct was not initialised with TWILL_CHOICE_INIT");
    }
    return TWILL_OK;
}

static int32_t channels_of(const struct tw_plan *plan, int rank)
{
    int32_t most = 0;
    for (uint32_t i = 0; i < plan->ranks[rank].nlanes; i++) {
        int32_t channel = plan->ranks[rank].lanes[i].channel;
        most = channel > most ? channel : most;
    }
    return most + 1;
}

/* On devices a kernel serves the call, which has the name of the plan that it is. False: it is the
 * one that runs any plan. */
static bool choose_kernel(twill_comm_t comm, const struct tw_call_info *info,
                          struct twill_choice *choice)
{
    const struct tw_call call = {.info = *info, .comm = comm};
    struct tw_gpu_shape shape;
    if (tw_gpu_plan_forced(comm->gpu, &call)) {
        return false;
    }
    tw_gpu_shape_expected(comm->gpu, &call, &shape);
    snprintf(choice->algo, sizeof choice->algo, "%s", tw_gpu_algo_name(&shape));
    snprintf(choice->proto, sizeof choice->proto, "%s", tw_gpu_proto_name(&shape));
    choice->channels = (int32_t)shape.blocks;
    if (choice->size >= SIZE_LEAST + sizeof choice->predicted_us) {
        const uint64_t bytes = info->count * tw_type_bytes(info->type);
        choice->predicted_us = (double)tw_gpu_cost(comm->gpu, &shape, info->coll, bytes) * US_OF_PS;
    }
    return true;
}

/* 0: it is not known. */
static uint64_t plan_price(const struct tw_gpu *gpu, const struct tw_call_info *info)
{
    const struct tw_gpu_shape shape = {.kernel = TW_GK_PLAN};
    return tw_gpu_cost(gpu, &shape, info->coll, info->count * tw_type_bytes(info->type));
}

static enum twill_status choose(twill_comm_t comm, const struct tw_call_info *info,
                                struct twill_choice *choice)
{
    const struct tw_plan *plan;
    uint64_t hash;
    if (__atomic_load_n(&comm->ops->pending, __ATOMIC_ACQUIRE)) {
        return tw_fail(TWILL_ERR_USAGE, "comm_choice: operations of communicator %s are queued",
                       comm->args.name);
    }
    enum twill_status status = comm->gpu != NULL
                                   ? tw_gpu_plan_get(comm->gpu, info, &plan, &hash)
                                   : tw_plans_get(comm->ops->plans, info, &plan, &hash);
    if (tw_failed(status)) {
        return status;
    }
    snprintf(choice->algo, sizeof choice->algo, "%s", plan->name);
    snprintf(choice->proto, sizeof choice->proto, "simple");
    choice->channels = channels_of(plan, comm->rank);
    if (choice->size >= SIZE_LEAST + sizeof choice->predicted_us) {
        uint64_t time_ps = 0;
        bool known = comm->gpu == NULL && comm->size <= TW_CHOOSE_RANKS_MOST &&
                     !tw_failed(tw_plans_price(comm->ops->plans, info, &time_ps));
        if (comm->gpu != NULL) {
            time_ps = plan_price(comm->gpu, info);
        }
        choice->predicted_us = known || comm->gpu != NULL ? (double)time_ps * US_OF_PS : 0;
    }
    return TWILL_OK;
}

enum twill_status twill_comm_choice(twill_comm_t comm, const char *collective, size_t count,
                                    twill_type_t type, int root, struct twill_choice *choice)
{
    struct tw_call_info info = {.count = count, .type = type};
    enum twill_status status = tw_api_enter(comm, "comm_choice");
    if (tw_failed(status)) {
        return status;
    }
    status = check_struct(choice);
    if (!tw_failed(status)) {
        status = find_coll(collective, &info.coll);
    }
    if (!tw_failed(status) && tw_coll_rule(info.coll)->rooted) {
        info.root = root;
    }
    if (!tw_failed(status)) {
        status = check_call(comm, &info);
    }
    if (!tw_failed(status)) {
        info.total = count * (size_t)comm->size; /* looked at for v-variants */
    }
    if (!tw_failed(status) && (comm->gpu == NULL || !choose_kernel(comm, &info, choice))) {
        status = choose(comm, &info, choice);
    }
    if (tw_failed(status)) {
        tw_last_error_keep(tw_comm_key(comm));
    }
    tw_api_leave(comm);
    return status;
}
