/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: whether the ranks' devices address each other's memory: what CUDA says of it, and what
 * comes of trying.
 * Never knows: what is done where they do not (gpu_cut.c), how ranks tell each other.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/cuda.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "comm/gpu_selftest.h"
#include "device/probe.h"

_Static_assert(sizeof(((struct tw_gk_host *)NULL)->seen) >= TW_GK_PROBE_ITEMS * sizeof(uint32_t),
               "room for what the self-test sees");

/* The first one counts. */
static void gap_say(struct tw_gpu_gap *gap, enum tw_gap kind, int from, int peer)
{
    if (gap->kind == TW_GAP_NONE)
        *gap = (struct tw_gpu_gap){.kind = (int32_t)kind, .from = from, .peer = peer};
}

/* ---- devices of this process -------------------------------------------------------------------
 */

/* The first rank on each device stands for the others there. */
static bool device_first(const struct tw_gpu *gpu, const struct tw_ctl_peer *peers, int rank)
{
    for (int r = 0; r < rank; r++)
        if (gpu->here[r] && peers[r].device == peers[rank].device)
            return false;
    return true;
}

/* To the devices of all ranks here, as every rank here finds it. */
static enum twill_status here_from(const struct tw_gpu *gpu, const struct tw_ctl_peer *peers,
                                   int from, struct tw_gpu_gap *gap)
{
    enum twill_status status = TWILL_OK;

    for (int to = 0; to < gpu->comm->size && !tw_failed(status); to++) {
        bool can = true;

        if (!gpu->here[to] || peers[to].device == peers[from].device ||
            !device_first(gpu, peers, to))
            continue;
        status = tw_cuda_peer_enable(peers[from].device, peers[to].device, &can);
        if (!tw_failed(status) && !can)
            gap_say(gap, TW_GAP_NO_PATH, from, to);
    }
    return status;
}

enum twill_status tw_gpu_test_here(const struct tw_gpu *gpu, const struct tw_ctl_peer *peers,
                                   struct tw_gpu_gap *gap)
{
    const struct twill_comm *comm = gpu->comm;
    enum twill_status status = TWILL_OK;

    *gap = (struct tw_gpu_gap){0};
    if (comm->size > 1 && !comm->proc->params->p2p)
        gap_say(gap, TW_GAP_OFF, comm->rank, comm->rank);
    for (int r = 0; r < comm->size && !tw_failed(status) && gap->kind == TW_GAP_NONE; r++)
        if (gpu->here[r] && device_first(gpu, peers, r))
            status = here_from(gpu, peers, r, gap);
    return status;
}

/* ---- the self-test -----------------------------------------------------------------------------
 */

bool tw_gpu_test_tries(const struct tw_gpu *gpu)
{
    return gpu->comm->size > __builtin_popcountll(gpu->mates);
}

/* Head: the inbox, in which each rank has as much. Tail: the end of what the owner has. */
static void memory_fill(int size, void *mem, const struct tw_gpu_entry *entry,
                        struct tw_probe_memory *memory)
{
    const struct tw_gk_layout layout = tw_gpu_layout(size, &entry->parts);

    _Static_assert(TW_PROBE_SPOT_BYTES == 2 * sizeof(struct tw_gk_record), "a rank's inbox");
    memory->head = mem;
    memory->tail = memory->head + layout.bytes - TW_GK_RANKS_MAX * TW_PROBE_SPOT_BYTES;
    memory->seed = entry->seed;
}

static enum twill_status step_run(struct tw_gpu *gpu, enum tw_probe_step step,
                                  const struct tw_probe_memory *of, uint64_t deadline_ns,
                                  struct tw_gpu_gap *gap)
{
    const struct tw_probe_side side = {
        .device = gpu->device,
        .rank = gpu->comm->rank,
        .ranks = gpu->comm->size,
        .of = of,
        .seen = gpu->host->seen,
        .deadline_ns = deadline_ns,
        .cancel = &gpu->comm->status,
    };
    enum tw_gap gaps[TW_GK_RANKS_MAX];
    enum twill_status status = tw_probe_run(&side, step, gaps);

    for (int r = 0; r < side.ranks && !tw_failed(status); r++) {
        if (gaps[r] == TW_GAP_NONE)
            continue;
        if (step == TW_PROBE_LOOK) /* at what the other has written */
            gap_say(gap, gaps[r], r, side.rank);
        else
            gap_say(gap, gaps[r], side.rank, r);
    }
    return status;
}

enum twill_status tw_gpu_test_offer(struct tw_gpu *gpu, struct tw_gpu_entry *entry,
                                    uint64_t deadline_ns)
{
    struct tw_probe_memory of[TW_GK_RANKS_MAX] = {{0}};
    struct tw_gpu_gap gap = {0};

    tw_random(&entry->seed, sizeof(entry->seed));
    if (!tw_gpu_test_tries(gpu))
        return TWILL_OK;
    memory_fill(gpu->comm->size, gpu->mem, entry, &of[gpu->comm->rank]);
    return step_run(gpu, TW_PROBE_OFFER, of, deadline_ns, &gap);
}

/* Ranks of one device have one way to its memory. */
static void all_fill(const struct tw_gpu *gpu, const struct tw_gpu_entry *entries,
                     struct tw_probe_memory *of)
{
    const struct tw_gpu_entry *own = &entries[gpu->comm->rank];

    for (int r = 0; r < gpu->comm->size; r++) {
        memory_fill(gpu->comm->size, gpu->at[r], &entries[r], &of[r]);
        of[r].tried = memcmp(entries[r].uuid, own->uuid, sizeof(own->uuid)) != 0;
    }
}

/* ---- other processes ---------------------------------------------------------------------------
 */

/* Where the other process's device is one of this process too, CUDA says what it reaches; and
 * whatever it says, memory may not open. */
static enum twill_status other_open(struct tw_gpu *gpu, const struct tw_gpu_entry *entry, int rank,
                                    struct tw_gpu_gap *gap)
{
    int device = -1;
    bool can = true;
    enum twill_status status = tw_cuda_device_find(entry->uuid, &device);

    if (!tw_failed(status) && device >= 0)
        status = tw_cuda_peer_can(gpu->device, device, &can);
    if (tw_failed(status))
        return status;
    if (!can) {
        gap_say(gap, TW_GAP_NO_PATH, gpu->comm->rank, rank);
    } else if (tw_failed(tw_cuda_ipc_open(gpu->device, entry->ipc, &gpu->opened[rank]))) {
        gap_say(gap, TW_GAP_CLOSED, gpu->comm->rank, rank);
    }
    gpu->at[rank] = gpu->opened[rank];
    return TWILL_OK;
}

enum twill_status tw_gpu_test_try(struct tw_gpu *gpu, const struct tw_gpu_entry *entries,
                                  uint64_t deadline_ns, struct tw_gpu_gap *gap)
{
    struct tw_probe_memory of[TW_GK_RANKS_MAX] = {{0}};
    const int rank = gpu->comm->rank;
    enum twill_status status = TWILL_OK;

    *gap = (struct tw_gpu_gap){0};
    for (int r = 0; r < gpu->comm->size && !tw_failed(status) && gap->kind == TW_GAP_NONE; r++) {
        gpu->at[r] = r == rank ? gpu->mem : (void *)(uintptr_t)entries[r].mem;
        if (!gpu->here[r])
            status = other_open(gpu, &entries[r], r, gap);
    }
    if (tw_failed(status) || gap->kind != TW_GAP_NONE || !tw_gpu_test_tries(gpu))
        return status;
    all_fill(gpu, entries, of);
    return step_run(gpu, TW_PROBE_TRY, of, deadline_ns, gap);
}

enum twill_status tw_gpu_test_look(struct tw_gpu *gpu, const struct tw_gpu_entry *entries,
                                   uint64_t deadline_ns, struct tw_gpu_gap *gap)
{
    struct tw_probe_memory of[TW_GK_RANKS_MAX] = {{0}};

    *gap = (struct tw_gpu_gap){0};
    if (!tw_gpu_test_tries(gpu))
        return TWILL_OK;
    all_fill(gpu, entries, of);
    return step_run(gpu, TW_PROBE_LOOK, of, deadline_ns, gap);
}

/* ---- what all ranks make of it -----------------------------------------------------------------
 */

static bool is_rank(int32_t rank, int size) { return rank >= 0 && rank < size; }

bool tw_gpu_gap_find(const struct tw_gpu *gpu, const struct tw_ctl_peer *peers,
                     const struct tw_gpu_gap *gap)
{
    const struct twill_comm *comm = gpu->comm;
    char pair[96] = "";

    if (gap->kind == TW_GAP_NONE)
        return false;
    if (is_rank(gap->from, comm->size) && is_rank(gap->peer, comm->size) && gap->from != gap->peer)
        (void)snprintf(pair, sizeof(pair),
                       "from CUDA device %d of rank %d to device %d of rank %d: ",
                       peers[gap->from].device, gap->from, peers[gap->peer].device, gap->peer);
    tw_info(TW_SUB_COMM,
            "communicator %s rank %d: data goes by pinned host memory, which is slow: %s%s",
            comm->args.name, comm->rank, pair,
            tw_gap_text(gap->kind > 0 ? (enum tw_gap)gap->kind : TW_GAP_COUNT));
    return true;
}
