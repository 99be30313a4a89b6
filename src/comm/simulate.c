/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how long a group's calls would take by the cost model. Never knows: how calls run. */
#include "config.h"

#include <stdlib.h>

#include "comm/gpu.h"
#include "comm/plans.h"

/* What one communicator would do. */
struct share {
    const struct twill_comm *comm; /* borrowed */
    struct tw_call_info joint;     /* of what runs as one, so far */
    size_t njoint;                 /* still to come of it */
    uint64_t collectives_ps;       /* one after another */
    uint64_t sends_ps, recvs_ps;   /* both ways at once, and those of one way share the CPU */
};

static uint64_t sum(uint64_t a, uint64_t b)
{
    uint64_t both;
    return __builtin_add_overflow(a, b, &both) ? UINT64_MAX : both;
}

/* A kernel, or one that copies are made behind: each by itself. */
static enum twill_status kernel_add(struct share *share, const struct tw_call *call)
{
    const struct tw_call_info *info = &call->info;
    const struct tw_gpu *gpu = call->comm->gpu;
    struct tw_gpu_shape shape;
    const bool all = info->coll == TW_COLL_REDUCE_SCATTER_V || info->coll == TW_COLL_ALL_GATHER_V;
    const uint64_t count = all ? info->total / (size_t)call->comm->size : info->count; /* mean */

    tw_gpu_shape_expected(gpu, call, &shape);
    if (shape.kernel == TW_GK_PLAN && gpu->ring_from[info->coll] == 0)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "%s: plans on devices are not priced",
                       tw_coll_name(info->coll));
    share->collectives_ps =
        sum(share->collectives_ps,
            tw_gpu_cost(gpu, &shape, info->coll, count * tw_type_bytes(info->type)));
    return TWILL_OK;
}

/* A call, or the last of several that run as one. */
static enum twill_status collective_add(struct share *share, const struct tw_call *call,
                                        size_t ncalls)
{
    uint64_t time_ps = 0;
    if (tw_gpu_serves(call))
        return kernel_add(share, call);
    if (share->njoint == 0) {
        share->njoint = tw_fuse_count(call, ncalls);
        share->joint = call->info;
        share->joint.count = 0;
    }
    share->joint.count += call->info.count;
    if (--share->njoint)
        return TWILL_OK;
    enum twill_status status = tw_plans_price(call->comm->ops->plans, &share->joint, &time_ps);
    share->collectives_ps = sum(share->collectives_ps, time_ps);
    return status;
}

static enum twill_status message_add(struct share *share, const struct tw_call *call)
{
    const struct tw_call_info *info = &call->info;
    const uint32_t type_bytes = (uint32_t)tw_type_bytes(info->type);
    uint64_t time_ps = 0;
    enum twill_status status = TWILL_OK;
    if (tw_gpu_serves(call))
        time_ps = tw_gpu_cost_p2p(call->comm->gpu, info->count * type_bytes);
    else
        status =
            tw_choose_price_p2p(call->comm->ops->plans->choose, info->count, type_bytes, &time_ps);
    uint64_t *way = info->is_send ? &share->sends_ps : &share->recvs_ps;
    *way = sum(*way, time_ps);
    return status;
}

static struct share *share_of(struct share *shares, size_t *count, const struct twill_comm *comm)
{
    for (size_t i = 0; i < *count; i++)
        if (shares[i].comm == comm)
            return &shares[i];
    shares[*count].comm = comm;
    return &shares[(*count)++];
}

enum twill_status tw_simulate(const struct tw_call *calls, size_t ncalls, uint64_t *time_ps)
{
    uint64_t longest = 0;
    size_t count = 0;
    enum twill_status status = TWILL_OK;
    struct share *shares = tw_alloc((ncalls ? ncalls : 1) * sizeof *shares);
    if (!shares)
        return TWILL_ERR_NOMEM;
    for (size_t i = 0; i < ncalls && !tw_failed(status); i++) {
        struct share *share = share_of(shares, &count, calls[i].comm);
        status = calls[i].info.coll == TW_COLL_P2P ? message_add(share, &calls[i])
                                                   : collective_add(share, &calls[i], ncalls - i);
    }
    for (size_t i = 0; i < count; i++) {
        const struct share *s = &shares[i];
        uint64_t batch = s->sends_ps > s->recvs_ps ? s->sends_ps : s->recvs_ps;
        uint64_t all = sum(s->collectives_ps, batch);
        longest = all > longest ? all : longest;
    }
    free(shares);
    if (!tw_failed(status))
        *time_ps = longest;
    return status;
}
