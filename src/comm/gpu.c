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

/* ---- devices that do not address each other ----------------------------------------------------
 */

/* The first rank on each device stands for the others there. */
static bool device_first(const struct tw_ctl_peer *peers, int rank)
{
    for (int r = 0; r < rank; r++)
        if (same_proc(&peers[r], &peers[rank]) && peers[r].device == peers[rank].device)
            return false;
    return true;
}

/* Every rank of a process finds the same. can: of those of this process all */
static enum twill_status reach_find(const struct tw_gpu *gpu, const struct tw_ctl_peer *peers,
                                    bool *can)
{
    const struct twill_comm *comm = gpu->comm;
    const struct tw_ctl_peer *own = &peers[comm->rank];
    enum twill_status status = TWILL_OK;

    *can = comm->proc->params->p2p || comm->size == 1;
    for (int p = 0; p < comm->size; p++)
        for (int q = 0; q < comm->size && *can && !tw_failed(status); q++)
            if (same_proc(&peers[p], own) && same_proc(&peers[q], own) &&
                peers[p].device != peers[q].device && device_first(peers, p) &&
                device_first(peers, q))
                status = tw_cuda_peer_enable(peers[p].device, peers[q].device, can);
    return status;
}

/* By pinned memory a process serves its own ranks only. */
static enum twill_status cut_find(struct tw_gpu *gpu, const struct tw_ctl_peer *peers)
{
    const struct twill_comm *comm = gpu->comm;
    const char *why = comm->proc->params->p2p ? "" : " (TWILL_P2P=0)";
    bool can = true;
    enum twill_status status = reach_find(gpu, peers, &can);

    gpu->cut = !can;
    if (tw_failed(status) || can)
        return status;
    for (int r = 0; r < comm->size; r++) {
        if (same_proc(&peers[r], &peers[comm->rank]))
            continue;
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "init: CUDA devices of rank %d's process do not address each other%s, and "
                       "rank %d is of another process: pinned host memory serves the ranks of one "
                       "process only",
                       comm->rank, why, r);
    }
    tw_info(TW_SUB_COMM,
            "communicator %s rank %d: CUDA devices do not address each other%s: data goes by "
            "pinned host memory, which is slow",
            comm->args.name, comm->rank, why);
    return TWILL_OK;
}

/* ---- memory ------------------------------------------------------------------------------------
 */

static enum twill_status memory_take(struct tw_gpu *gpu, struct tw_gpu_entry *entry)
{
    void *state = NULL, *host = NULL;
    const int size = gpu->comm->size;
    const struct tw_gk_layout layout = tw_gpu_layout(size, &entry->parts);
    enum twill_status status = gpu->cut ? tw_cuda_pinned_alloc(layout.bytes, &gpu->mem)
                                        : tw_cuda_alloc(gpu->device, layout.bytes, &gpu->mem);
    if (!tw_failed(status))
        status = tw_cuda_alloc(gpu->device, tw_gpu_state_bytes(size), &state);
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
    if (!tw_failed(status) && !gpu->cut)
        status = tw_cuda_ipc_export(gpu->mem, entry->ipc);
    entry->max_sms = (uint32_t)gpu->comm->args.max_sms;
    entry->mem = (uint64_t)(uintptr_t)gpu->mem;
    return status;
}

enum twill_status tw_gpu_create(struct twill_comm *comm, const struct tw_ctl_peer *peers,
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
        status = cut_find(gpu, peers);
    if (!tw_failed(status))
        status = team_join(gpu, peers, &entry->parts);
    return tw_failed(status) ? status : memory_take(gpu, entry);
}

/* ---- peers -------------------------------------------------------------------------------------
 */

static enum twill_status peer_reach(struct tw_gpu *gpu, int rank, const struct tw_gpu_entry *entry,
                                    const struct tw_ctl_peer *peer, void **mem)
{
    enum twill_status status = TWILL_OK;

    /* in a process: devices have been seen to reach each other, or it is pinned */
    *mem = (void *)(uintptr_t)entry->mem;
    if (!gpu->here[rank]) {
        status = tw_cuda_ipc_open(gpu->device, entry->ipc, &gpu->opened[rank]);
        *mem = gpu->opened[rank];
    }
    if (!tw_failed(status))
        return TWILL_OK;
    return tw_fail(status,
                   "init: CUDA device %d of rank %d does not reach device %d of rank %d: %s",
                   gpu->device, gpu->comm->rank, peer->device, rank, tw_fail_text());
}

static void smaller(uint32_t value, uint32_t *least) { *least = value < *least ? value : *least; }

/* What any rank has room for. */
static struct tw_gk_layout layout_agree(int size, const struct tw_gpu_entry *entries)
{
    struct tw_gpu_parts least = entries[0].parts;

    for (int r = 1; r < size; r++) {
        smaller(entries[r].parts.line_each, &least.line_each);
        smaller(entries[r].parts.ring_each, &least.ring_each);
        smaller(entries[r].parts.plan_fifo_each, &least.plan_fifo_each);
        smaller(entries[r].parts.plan_scratch, &least.plan_scratch);
    }
    return tw_gpu_layout(size, &least);
}

/* The table of many ranks' memory lies on the device. */
static enum twill_status table_set(struct tw_gpu *gpu, void *const *table)
{
    const int size = gpu->comm->size;
    void *far = NULL;

    if (size <= TW_GK_NEAR) {
        for (int r = 0; r < size; r++)
            gpu->base.near[r] = table[r];
        return TWILL_OK;
    }
    enum twill_status status = tw_cuda_alloc(gpu->device, (size_t)size * sizeof(void *), &far);
    if (!tw_failed(status))
        status = tw_cuda_copy_now(gpu->device, far, table, (size_t)size * sizeof(void *));
    gpu->far = far;
    gpu->base.far = far;
    return status;
}

static enum twill_status peers_reach(struct tw_gpu *gpu, const struct tw_gpu_entry *entries,
                                     const struct tw_ctl_peer *peers)
{
    const struct twill_comm *comm = gpu->comm;
    void *table[TW_GK_RANKS_MAX] = {gpu->mem};
    enum twill_status status = TWILL_OK;

    for (int r = 0; r < comm->size && !tw_failed(status); r++) {
        const bool here = same_proc(&peers[r], &peers[comm->rank]);

        table[r] = gpu->mem;
        gpu->all_here &= here;
        gpu->here[r] = here;
        if (r != comm->rank)
            status = peer_reach(gpu, r, &entries[r], &peers[r], &table[r]);
    }
    if (gpu->cut) { /* ranks do as if they were of several processes */
        memset(gpu->here, 0, sizeof(gpu->here));
        gpu->here[comm->rank] = true;
        gpu->all_here = false;
    }
    tw_gpu_others_find(gpu, peers);
    return tw_failed(status) ? status : table_set(gpu, table);
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

    gpu->all_here = true;
    gpu->base.rank = comm->rank;
    gpu->base.size = comm->size;
    gpu->base.state = gpu->state;
    gpu->base.host = gpu->host;
    gpu->base.layout = layout_agree(comm->size, entries);
    enum twill_status status = peers_reach(gpu, entries, peers);
    if (tw_failed(status))
        return status;
    gpu->most_blocks = blocks_agree(comm->size, entries, peers);
    gpu->push_bytes = tw_gpu_push_bytes(comm->size, gpu->mates);
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
    tw_cuda_event_destroy(gpu->device, gpu->event);
    tw_cuda_event_destroy(gpu->device, gpu->done);
    tw_cuda_event_destroy(gpu->device, gpu->mark);
    tw_cuda_free(gpu->device, gpu->far);
    if (gpu->cut)
        tw_cuda_pinned_free(gpu->mem);
    else
        tw_cuda_free(gpu->device, gpu->mem);
    tw_cuda_free(gpu->device, gpu->state);
    if (gpu->staging_bytes > 0)
        tw_gpu_staging_give(gpu->shared, gpu->staging_bytes);
    tw_cuda_pinned_free(gpu->host);
    free(gpu->opened);
    free(gpu->pairs);
    free(gpu);
    comm->gpu = NULL;
}
