/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a rank holds on its device and how it reaches its peers' part of theirs.
 * Never knows: calls, kernels. */
#include "config.h"

#include "comm/gpu.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cuda.h"
#include "base/log.h"
#include "base/mem.h"
#include "comm/gpu_copy.h"
#include "comm/gpu_selftest.h"
#include "comm/ops.h"
#include "device/probe.h"

#define DRAIN_NAP_NS (20 * 1000L)

enum twill_status tw_gpu_check(int device)
{
    enum twill_status status = tw_cuda_ready();

    if (tw_failed(status))
        return status;
    if (device >= tw_cuda_device_count())
        return tw_fail(TWILL_ERR_INVALID, "CUDA device %d does not exist: there are %d", device,
                       tw_cuda_device_count());
    return tw_gk_load(device);
}

static enum twill_status device_read(struct tw_gpu *gpu, struct tw_gpu_entry *entry)
{
    struct tw_cuda_device found;
    enum twill_status status = tw_cuda_device_read(gpu->device, &found);

    if (tw_failed(status))
        return status;
    memcpy(entry->uuid, found.uuid, sizeof(entry->uuid));
    entry->multiprocessors = (uint32_t)found.multiprocessors;
    tw_gpu_early_init(gpu);
    gpu->shared = tw_gpu_device_get(&gpu->comm->proc->gpus, gpu->device, found.multiprocessors);
    return gpu->shared != NULL ? TWILL_OK : TWILL_ERR_NOMEM;
}

static bool same_proc(const struct tw_ctl_peer *a, const struct tw_ctl_peer *b)
{
    return memcmp(&a->proc, &b->proc, sizeof(a->proc)) == 0;
}

static enum twill_status team_join(struct tw_gpu *gpu, const struct tw_ctl_peer *peers,
                                   struct tw_gpu_parts *parts)
{
    const struct twill_comm *comm = gpu->comm;
    int ranks = 0, place = 0;

    for (int r = 0; r < comm->size; r++) {
        if (!same_proc(&peers[r], &peers[comm->rank]) || peers[r].device != gpu->device)
            continue;
        place += r < comm->rank;
        ranks++;
        gpu->mates |= UINT64_C(1) << r;
    }
    if (ranks > TW_GK_JOINT_MAX)
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "init: %d ranks of one process on CUDA device %d: this build has at most %d",
                       ranks, gpu->device, TW_GK_JOINT_MAX);
    tw_gpu_plan_room(comm, parts);
    return tw_gpu_team_join(gpu, ranks, place, parts);
}

/* ---- memory ------------------------------------------------------------------------------------
 */

static enum twill_status own_take(struct tw_gpu *gpu)
{
    void *state = NULL, *host = NULL;
    enum twill_status status =
        tw_cuda_alloc(gpu->device, tw_gpu_state_bytes(gpu->comm->size), &state);

    gpu->state = state;
    if (!tw_failed(status))
        status = tw_cuda_pinned_alloc(sizeof(struct tw_gk_host), &host);
    __atomic_store_n(&gpu->host, host, __ATOMIC_RELEASE);
    if (!tw_failed(status))
        status = tw_cuda_event_create(gpu->device, &gpu->event);
    if (!tw_failed(status))
        status = tw_cuda_event_create(gpu->device, &gpu->done);
    if (!tw_failed(status))
        status = tw_cuda_event_create(gpu->device, &gpu->mark);
    return status;
}

/* What peers write to, unless it is known already that they cannot. */
static enum twill_status memory_take(struct tw_gpu *gpu, uint64_t deadline_ns,
                                     struct tw_gpu_entry *entry)
{
    if (entry->gap.kind != TW_GAP_NONE)
        return TWILL_OK;
    const struct tw_gk_layout layout = tw_gpu_layout(gpu->comm->size, &entry->parts);
    enum twill_status status = tw_cuda_alloc(gpu->device, layout.bytes, &gpu->mem);

    entry->mem = (uint64_t)(uintptr_t)gpu->mem;
    if (!tw_failed(status) && !gpu->all_here && tw_failed(tw_cuda_ipc_export(gpu->mem, entry->ipc)))
        entry->gap.kind = TW_GAP_CLOSED;
    return tw_failed(status) ? status : tw_gpu_test_offer(gpu, entry, deadline_ns);
}

/* As far as it is known before memory is taken, of which plans need some. */
static void order_take(struct tw_gpu *gpu, const struct tw_gpu_between *between)
{
    int order[TW_GK_RANKS_MAX];

    gpu->between = *between;
    gpu->most_blocks = TW_GK_BLOCKS_MAX;
    for (int i = 0; i < gpu->comm->size && between->known; i++)
        order[i] = between->order[i];
    if (between->known)
        tw_plans_order_set(gpu->comm->ops->plans, order);
    tw_gpu_cost_bound(gpu);
    tw_gpu_cost_rings(gpu);
}

enum twill_status tw_gpu_create(struct twill_comm *comm, const struct tw_ctl_peer *peers,
                                const struct tw_gpu_between *between, uint64_t deadline_ns,
                                struct tw_gpu_entry *entry)
{
    if (comm->size > TW_GK_RANKS_MAX)
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "init: %d ranks on devices: this build has at most %d in a communicator",
                       comm->size, TW_GK_RANKS_MAX);
    struct tw_gpu *gpu = tw_alloc(sizeof(*gpu));

    if (gpu == NULL)
        return TWILL_ERR_NOMEM;
    gpu->comm = comm;
    gpu->device = comm->args.device;
    gpu->source.fd = -1;
    tw_gpu_shape_init(gpu);
    order_take(gpu, between);
    gpu->all_here = true;
    for (int r = 0; r < comm->size; r++) {
        gpu->here[r] = same_proc(&peers[r], &peers[comm->rank]);
        gpu->all_here &= gpu->here[r];
    }
    gpu->opened = tw_alloc((size_t)comm->size * sizeof(void *));
    gpu->pairs = tw_alloc((size_t)comm->size * sizeof(*gpu->pairs));
    /* from here on destroy frees what there is, and another rank's failure stops it */
    __atomic_store_n(&comm->gpu, gpu, __ATOMIC_RELEASE);
    if (gpu->opened == NULL || gpu->pairs == NULL)
        return TWILL_ERR_NOMEM;
    enum twill_status status = tw_gpu_check(gpu->device);
    if (!tw_failed(status))
        status = device_read(gpu, entry);
    if (!tw_failed(status))
        status = tw_gpu_test_here(gpu, peers, &entry->gap);
    if (!tw_failed(status))
        status = team_join(gpu, peers, &entry->parts);
    if (!tw_failed(status))
        status = own_take(gpu);
    if (!tw_failed(status))
        status = tw_gpu_copy_create(gpu, entry);
    entry->max_sms = (uint32_t)comm->args.max_sms;
    return tw_failed(status) ? status : memory_take(gpu, deadline_ns, entry);
}

/* ---- peers -------------------------------------------------------------------------------------
 */

/* The table of many ranks' memory lies on the device. */
static enum twill_status table_set(struct tw_gpu *gpu)
{
    const int size = gpu->comm->size;
    void *far = NULL;

    if (size <= TW_GK_NEAR) {
        for (int r = 0; r < size; r++)
            gpu->base.near[r] = gpu->at[r];
        return TWILL_OK;
    }
    enum twill_status status = tw_cuda_alloc(gpu->device, (size_t)size * sizeof(void *), &far);
    if (!tw_failed(status))
        status = tw_cuda_copy_now(gpu->device, far, gpu->at, (size_t)size * sizeof(void *));
    gpu->far = far;
    gpu->base.far = far;
    return status;
}

/* What a rank may have: blocks of all ranks of its device, whosever they are, are resident at once,
 * one on a multiprocessor; those of one process are one kernel, which keeps to its bound. */
static int blocks_of(int size, const struct tw_gpu_entry *entries, const struct tw_ctl_peer *peers,
                     int rank)
{
    const struct tw_gpu_entry *own = &entries[rank];
    int mates = 1, joined = 1; /* with the rank itself */

    for (int r = 0; r < size; r++) {
        const bool mate = r != rank && memcmp(entries[r].uuid, own->uuid, sizeof(own->uuid)) == 0;

        mates += mate;
        joined += mate && same_proc(&peers[r], &peers[rank]);
    }
    const int resident = (int)own->multiprocessors / mates;
    const int bound = own->max_sms > 0 ? (int)own->max_sms / joined : INT_MAX;
    return resident < bound ? resident : bound;
}

/* Blocks are equally many on all ranks: the least that any may have. */
static int blocks_agree(int size, const struct tw_gpu_entry *entries,
                        const struct tw_ctl_peer *peers)
{
    int blocks = TW_GK_BLOCKS_MAX;

    for (int r = 0; r < size; r++) {
        const int most = blocks_of(size, entries, peers, r);

        blocks = most < blocks ? most : blocks;
    }
    return blocks > 0 ? blocks : 1;
}

enum twill_status tw_gpu_connect(struct twill_comm *comm, const struct tw_gpu_entry *entries,
                                 const struct tw_ctl_peer *peers)
{
    struct tw_gpu *gpu = comm->gpu;

    gpu->base.rank = comm->rank;
    gpu->base.size = comm->size;
    gpu->base.state = gpu->state;
    gpu->base.host = gpu->host;
    gpu->base.layout = tw_gpu_layout_agree(comm->size, entries);
    tw_gpu_others_find(gpu, peers);
    enum twill_status status = tw_gpu_copy_agree(comm->size, entries);
    if (!tw_failed(status))
        status = table_set(gpu);
    if (tw_failed(status))
        return status;
    gpu->most_blocks = blocks_agree(comm->size, entries, peers);
    tw_gpu_cost_copies(gpu);
    tw_gpu_cost_rings(gpu);
    status = tw_gpu_blocks_join(gpu);
    if (!tw_failed(status))
        status = tw_gpu_plans_create(gpu);
    return tw_failed(status) ? status : tw_gpu_watch(gpu);
}

/* ---- the end -----------------------------------------------------------------------------------
 */

void tw_gpu_stop(struct tw_gpu *gpu)
{
    struct tw_gk_host *host = __atomic_load_n(&gpu->host, __ATOMIC_ACQUIRE);

    if (host != NULL)
        __atomic_store_n(&host->stop, 1, __ATOMIC_RELEASE);
    if (__atomic_load_n(&gpu->team, __ATOMIC_ACQUIRE) != NULL)
        tw_gpu_team_wake(gpu);
}

/* Streams are the user's and may be gone: the event is not. */
enum twill_status tw_gpu_drain(struct tw_gpu *gpu)
{
    const struct timespec nap = {0, DRAIN_NAP_NS};
    bool done = !gpu->done_once;
    enum twill_status status = TWILL_OK;

    while (!done && !tw_failed(status)) {
        status = tw_cuda_event_done(gpu->device, gpu->done, &done);
        if (!done)
            (void)nanosleep(&nap, NULL);
    }
    return status;
}

void tw_gpu_destroy(struct twill_comm *comm)
{
    struct tw_gpu *gpu = comm->gpu;

    if (gpu == NULL)
        return;
    tw_gpu_unwatch(gpu);
    tw_gpu_stop(gpu);
    (void)tw_gpu_drain(gpu);
    tw_gpu_blocks_leave(gpu);
    tw_gpu_team_leave(gpu);
    tw_gpu_regs_drop(gpu);
    tw_gpu_plans_destroy(gpu);
    for (int r = 0; gpu->opened != NULL && r < comm->size; r++)
        if (gpu->opened[r] != NULL)
            tw_cuda_ipc_close(gpu->device, gpu->opened[r]);
    tw_gpu_copy_destroy(gpu);
    tw_cuda_event_destroy(gpu->device, gpu->event);
    tw_cuda_event_destroy(gpu->device, gpu->done);
    tw_cuda_event_destroy(gpu->device, gpu->mark);
    tw_cuda_free(gpu->device, gpu->far);
    if (!gpu->cut)
        tw_cuda_free(gpu->device, gpu->mem);
    tw_gpu_cut_drop(gpu);
    tw_cuda_free(gpu->device, gpu->state);
    if (gpu->staging_bytes > 0)
        tw_gpu_staging_give(gpu->shared, gpu->staging_bytes);
    tw_cuda_pinned_free(gpu->host);
    free(gpu->opened);
    free(gpu->pairs);
    free(gpu);
    comm->gpu = NULL;
}
