/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the plans that calls on devices run where the parameters ask for them, or what lies
 * between devices makes a ring faster. Never knows: how a plan runs. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/cuda.h"
#include "base/mem.h"
#include "comm/gpu.h"
#include "comm/ops.h"
#include "device/exec_gpu.h"

#define ROOM_ALIGN 4096u
#define ELEM_BYTES_LEAST 4u /* of calls that go around the ring for what lies between devices */

/* A plan's program in the device's memory. Plans live as long as the communicator. */
struct tw_gpu_program {
    struct tw_gpu_program *next;
    const struct tw_plan *plan; /* borrowed */
    void *at;                   /* owned, on the device */
};

_Static_assert(TW_GK_PLAN_SIGNALS == TW_OPS_SIGNALS, "devices have the signals that hosts have");

/* There is one scratch, for plans of either sort. A slot of ours is a line smaller than the host's,
 * a head included. */
void tw_gpu_plan_room(const struct twill_comm *comm, struct tw_gpu_parts *parts)
{
    const bool asked = comm->ops != NULL && tw_plans_force_some(comm->ops->plans);
    const bool some = asked || tw_gpu_rings(comm->gpu);
    const size_t fifo = some ? tw_chan_fifo_size(comm->chan) : 0;
    const size_t bytes = some ? tw_ops_scratch_bytes(comm, 0) : 0;

    parts->plan_fifo_each = (uint32_t)((fifo + ROOM_ALIGN - 1) / ROOM_ALIGN * ROOM_ALIGN);
    parts->plan_scratch = (uint32_t)((bytes + ROOM_ALIGN - 1) / ROOM_ALIGN * ROOM_ALIGN);
    parts->plan_spared = some && !asked;
}

void tw_gpu_plans_destroy(struct tw_gpu *gpu)
{
    while (gpu->programs != NULL) {
        struct tw_gpu_program *program = gpu->programs;

        gpu->programs = program->next;
        tw_cuda_free(gpu->device, program->at);
        free(program);
    }
    tw_exec_destroy(gpu->binder);
    gpu->binder = NULL;
}

/* The interpreter moves element by element, and a narrow float would be rounded at each rank. */
static bool goes_around(const struct tw_gpu *gpu, const struct tw_call_info *info)
{
    const uint64_t from = gpu->ring_from[info->coll], elem = tw_type_bytes(info->type);

    return from > 0 && elem >= ELEM_BYTES_LEAST && info->count * elem >= from;
}

bool tw_gpu_plan_forced(const struct tw_gpu *gpu, const struct tw_call *call)
{
    if (gpu->binder == NULL)
        return false;
    return tw_plans_force(gpu->comm->ops->plans, &call->info) || goes_around(gpu, &call->info);
}

static enum twill_status program_place(const struct tw_gpu *gpu, struct tw_gpu_program *program)
{
    const int rank = gpu->comm->rank;
    const size_t bytes = tw_exec_gpu_bytes(program->plan, rank);
    void *image = tw_alloc(bytes);

    if (image == NULL)
        return TWILL_ERR_NOMEM;
    enum twill_status status = tw_cuda_alloc(gpu->device, bytes, &program->at);
    if (!tw_failed(status)) {
        tw_exec_gpu_program(program->plan, rank, (uint64_t)(uintptr_t)program->at, image);
        status = tw_cuda_copy_now(gpu->device, program->at, image, bytes);
    }
    free(image);
    return status;
}

static enum twill_status program_get(struct tw_gpu *gpu, const struct tw_plan *plan,
                                     struct tw_gpu_program **found)
{
    struct tw_gpu_program *program = gpu->programs;

    while (program != NULL && program->plan != plan)
        program = program->next;
    *found = program;
    if (program != NULL)
        return TWILL_OK;
    program = tw_alloc(sizeof(*program));
    if (program == NULL)
        return TWILL_ERR_NOMEM;
    program->plan = plan;
    enum twill_status status = program_place(gpu, program);
    if (tw_failed(status)) {
        tw_cuda_free(gpu->device, program->at);
        free(program);
        return status;
    }
    program->next = gpu->programs;
    gpu->programs = program;
    *found = program;
    return TWILL_OK;
}

/* ---- around the ring ---------------------------------------------------------------------------
 */

bool tw_gpu_rings(const struct tw_gpu *gpu)
{
    for (int coll = 0; coll < TW_COLL_COUNT; coll++)
        if (gpu->ring_from[coll] > 0)
            return true;
    return false;
}

enum twill_status tw_gpu_plan_get(struct tw_gpu *gpu, const struct tw_call_info *info,
                                  const struct tw_plan **plan, uint64_t *hash)
{
    struct tw_plans *plans = gpu->comm->ops->plans;

    if (tw_plans_force(plans, info))
        return tw_plans_get(plans, info, plan, hash);
    return tw_plans_get_ring(plans, info, gpu->ring_channels, plan, hash);
}

/* Of a collective, with each root. What the links have no room for goes as if there were no ring:
 * all ranks find the same. */
static enum twill_status rings_place(struct tw_gpu *gpu, enum tw_coll coll)
{
    const int roots = tw_coll_rule(coll)->rooted ? gpu->comm->size : 1;
    enum twill_status status = TWILL_OK;

    for (int root = 0; root < roots && !tw_failed(status); root++) {
        const struct tw_call_info info = {
            .coll = coll, .root = root, .count = 1, .type = TWILL_FLOAT64};
        struct tw_gpu_program *program;
        const struct tw_plan *plan;
        uint64_t hash;

        status = tw_plans_get_ring(gpu->comm->ops->plans, &info, gpu->ring_channels, &plan, &hash);
        if (tw_failed(status) && status != TWILL_ERR_NOMEM) {
            gpu->ring_from[coll] = 0;
            return TWILL_OK;
        }
        if (!tw_failed(status))
            status = program_get(gpu, plan, &program);
    }
    return status;
}

enum twill_status tw_gpu_plans_create(struct tw_gpu *gpu)
{
    const struct twill_comm *comm = gpu->comm;

    if (gpu->base.layout.plan == 0) {
        memset(gpu->ring_from, 0, sizeof(gpu->ring_from));
        return TWILL_OK;
    }
    enum twill_status status =
        tw_exec_create(comm->chan, comm->proc->isa, tw_ops_scratch_bytes(comm, 0),
                       &gpu->binder_signals, &gpu->binder);
    for (int coll = 0; coll < TW_COLL_COUNT && !tw_failed(status); coll++)
        if (gpu->ring_from[coll] > 0)
            status = rings_place(gpu, (enum tw_coll)coll);
    return status;
}

enum twill_status tw_gpu_plan_fill(struct tw_gpu *gpu, const struct tw_call *call,
                                   struct tw_gk_plan *out, uint64_t *hash)
{
    const struct tw_plan *plan = NULL;
    struct tw_gpu_program *program = NULL;

    enum twill_status status = tw_gpu_plan_get(gpu, &call->info, &plan, hash);
    if (tw_failed(status))
        return status;
    const struct tw_exec_call bound = {
        .plan = plan,
        .rank = gpu->comm->rank,
        .in = call->in,
        .out = call->out,
        .count = call->info.count,
        .in_counts = {call->info.counts.in, call->info.counts.in_displs},
        .out_counts = {call->info.counts.out, call->info.counts.out_displs},
        .type = call->info.type,
        .op = call->info.op,
        .scalar = &call->scalar.value, /* kernels read the right one */
    };
    status = tw_exec_gpu_bind(gpu->binder, &bound, &gpu->base.layout, out);
    if (!tw_failed(status))
        status = program_get(gpu, plan, &program);
    if (tw_failed(status))
        return status;
    out->program = program->at;
    out->varies = tw_gpu_varies(call->info.coll);
    return TWILL_OK;
}
