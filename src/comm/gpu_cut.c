/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: ranks' memory where devices do not address each other's: host memory of the owner, pinned,
 * which every process maps and pins for its own devices.
 * Never knows: why it is needed.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/cuda.h"
#include "base/mem.h"
#include "channel/channel.h"
#include "comm/gpu_selftest.h"

struct tw_gpu_cut {
    void *own;                     /* what peers write to */
    uint32_t bytes;                /* of every rank's */
    struct tw_chan_memory *memory; /* owned: of several processes; NULL: CUDA's own */
    void **pinned;                 /* owned, [size]: of memory, what CUDA has been told of */
};

static enum twill_status pin(struct tw_gpu *gpu, int rank, void *ptr)
{
    enum twill_status status = tw_cuda_host_pin(gpu->device, ptr, gpu->cut_mem->bytes);

    if (!tw_failed(status))
        gpu->cut_mem->pinned[rank] = ptr;
    return status;
}

/* For other processes to map. */
static enum twill_status shared_take(struct tw_gpu *gpu, struct tw_blob *blob)
{
    struct tw_gpu_cut *cut = gpu->cut_mem;
    enum twill_status status =
        tw_chan_memory_create(gpu->comm->chan, cut->bytes, &cut->memory, blob);

    if (tw_failed(status))
        return status;
    cut->own = tw_chan_memory_own(cut->memory);
    return pin(gpu, gpu->comm->rank, cut->own);
}

enum twill_status tw_gpu_cut_offer(struct tw_gpu *gpu, const struct tw_gpu_entry *entries,
                                   struct tw_gpu_cut_entry *entry)
{
    const int size = gpu->comm->size;
    struct tw_gpu_cut *cut = tw_alloc(sizeof(*cut));

    if (cut == NULL)
        return TWILL_ERR_NOMEM;
    gpu->cut_mem = cut;
    cut->pinned = tw_alloc((size_t)size * sizeof(void *));
    if (cut->pinned == NULL)
        return TWILL_ERR_NOMEM;
    cut->bytes = tw_gpu_layout_agree(size, entries).bytes;
    for (int r = 0; r < size; r++) {
        tw_cuda_ipc_close(gpu->device, gpu->opened[r]);
        gpu->opened[r] = NULL;
    }
    enum twill_status status = gpu->all_here ? tw_cuda_pinned_alloc(cut->bytes, &cut->own)
                                             : shared_take(gpu, &entry->blob);
    entry->mem = (uint64_t)(uintptr_t)cut->own;
    return status;
}

/* One of them, as this process has it. */
static enum twill_status map(struct tw_gpu *gpu, int rank, const struct tw_gpu_cut_entry *entry,
                             void **mem)
{
    struct tw_gpu_cut *cut = gpu->cut_mem;

    *mem = (void *)(uintptr_t)entry->mem;
    if (tw_chan_same_process(gpu->comm->chan, rank))
        return TWILL_OK;
    enum twill_status status = tw_chan_memory_map(cut->memory, rank, &entry->blob, cut->bytes, mem);
    return tw_failed(status) ? status : pin(gpu, rank, *mem);
}

enum twill_status tw_gpu_cut_take(struct tw_gpu *gpu, const struct tw_gpu_cut_entry *cuts)
{
    const struct twill_comm *comm = gpu->comm;
    enum twill_status status = TWILL_OK;

    tw_cuda_free(gpu->device, gpu->mem);
    gpu->mem = gpu->cut_mem->own;
    gpu->cut = true;
    for (int r = 0; r < comm->size && !tw_failed(status); r++) {
        status = map(gpu, r, &cuts[r], &gpu->at[r]);
        if (!tw_failed(status) && gpu->cut_mem->memory != NULL)
            status = tw_cuda_host_find(gpu->device, gpu->at[r], &gpu->at[r]);
    }
    if (tw_failed(status))
        return status;
    /* from now on ranks do as if they were of several processes */
    memset(gpu->here, 0, sizeof(gpu->here));
    gpu->here[comm->rank] = true;
    gpu->all_here = false;
    return TWILL_OK;
}

void tw_gpu_cut_drop(struct tw_gpu *gpu)
{
    struct tw_gpu_cut *cut = gpu->cut_mem;

    if (cut == NULL)
        return;
    for (int r = 0; cut->pinned != NULL && r < gpu->comm->size; r++)
        tw_cuda_host_unpin(gpu->device, cut->pinned[r]);
    if (cut->memory != NULL)
        tw_chan_memory_destroy(cut->memory);
    else
        tw_cuda_pinned_free(cut->own);
    free(cut->pinned);
    free(cut);
    gpu->cut_mem = NULL;
}
