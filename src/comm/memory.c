/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a communicator holds in memory. Never knows: what it is for. */
#include "config.h"

#include "comm/memory.h"

#include "comm/gpu.h"
#include "comm/plans.h"

static uint64_t plan_bytes(const struct tw_plan *plan)
{
    uint64_t bytes = 0;
    if (!plan)
        return 0;
    bytes += sizeof *plan + (uint64_t)plan->nranks * sizeof *plan->ranks;
    for (int r = 0; r < plan->nranks; r++) {
        const struct tw_plan_rank *rank = &plan->ranks[r];
        bytes += (uint64_t)rank->nlanes * sizeof *rank->lanes;
        for (uint32_t l = 0; l < rank->nlanes; l++)
            bytes += (uint64_t)rank->lanes[l].capacity * sizeof *rank->lanes[l].steps;
    }
    return bytes;
}

static uint64_t plans_bytes(const struct tw_ops *ops)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ops->plans->nfiles; i++)
        bytes += plan_bytes(ops->plans->files[i].plan);
    for (int coll = 0; coll < TW_COLL_COUNT; coll++)
        for (const struct tw_plans_entry *e = ops->plans->entries[coll]; e; e = e->next)
            bytes += sizeof *e + plan_bytes(e->plan);
    for (int i = 0; i < 2 * ops->comm->size; i++)
        bytes += plan_bytes(ops->lanes[i].plan);
    return bytes;
}

void tw_memory_report(const struct twill_comm *comm, struct tw_memory *memory)
{
    const struct tw_nets *nets = &comm->proc->nets;
    memory->comm_staging = tw_chan_staging_bytes(comm->chan);
    tw_net_staging(nets->shm ? nets->shm : nets->self, &memory->process_staging,
                   &memory->staging_limit);
    memory->plans = plans_bytes(comm->ops);
    memory->scratch = tw_exec_scratch_bytes(comm->ops->exec);
    if (comm->ops->fused)
        memory->scratch += TW_FUSE_BYTES;
    memory->device = memory->device_staging = memory->device_limit = 0;
    if (comm->gpu) {
        memory->device = comm->gpu->staging_bytes;
        memory->device_staging = tw_gpu_staging_used(comm->gpu->shared);
        memory->device_limit = comm->proc->params->device_staging_bytes;
    }
}
