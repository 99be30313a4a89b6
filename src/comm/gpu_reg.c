/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: device memory that all ranks have registered: where every rank's is, for every rank.
 * Never knows: calls, other than that they name buffers.
 *
 * A registration has a slot, the same on all ranks, with the addresses of every rank's memory as
 * this rank's device has them. What a record says of a buffer is its slot and its place in there.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/cuda.h"
#include "base/mem.h"
#include "comm/gpu.h"

/* What a rank tells of its memory. */
struct entry {
    int32_t status; /* negative: it has none to offer */
    uint32_t unused;
    uint64_t at, offset; /* address in its process; bytes from the allocation's start */
    uint8_t ipc[TW_CUDA_IPC_BYTES];
};

struct tw_gpu_reg {
    const char *ptr; /* the user's, borrowed; NULL: the slot is free */
    size_t bytes;
    void **opened; /* owned, [size]: mappings of other processes' allocations */
};

/* Everybody's `bytes` bytes, in ranks' order, through the host. */
static enum twill_status gather(struct twill_comm *comm, enum tw_call_guise guise, const void *mine,
                                void *all, size_t bytes)
{
    const struct tw_call call = {
        .info = {.coll = TW_COLL_ALL_GATHER, .guise = guise, .count = bytes, .type = TWILL_UINT8},
        .in = mine,
        .out = all,
        .comm = comm,
    };
    return tw_ops_call(&call);
}

static void entry_fill(const struct tw_gpu *gpu, const void *ptr, size_t bytes, struct entry *entry)
{
    struct tw_cuda_memory found;
    void *base = NULL;
    size_t whole = 0;

    entry->status = tw_cuda_memory_find(ptr, &found);
    if (!tw_failed((enum twill_status)entry->status) &&
        (found.kind != TW_CUDA_DEVICE || found.device != gpu->device))
        entry->status = tw_fail(TWILL_ERR_INVALID,
                                "register: %p is no memory of the communicator's CUDA device %d",
                                ptr, gpu->device);
    if (!tw_failed((enum twill_status)entry->status))
        entry->status = tw_cuda_memory_range(ptr, &base, &whole);
    entry->at = (uint64_t)(uintptr_t)ptr;
    entry->offset = entry->at - (uint64_t)(uintptr_t)base;
    if (!tw_failed((enum twill_status)entry->status) && entry->offset + bytes > whole)
        entry->status =
            tw_fail(TWILL_ERR_INVALID,
                    "register: %zu bytes at %p run past the end of their allocation", bytes, ptr);
    if (!tw_failed((enum twill_status)entry->status) && !gpu->all_here && !gpu->cut)
        entry->status = tw_cuda_ipc_export(base, entry->ipc);
}

/* The first rank that could not, as every rank tells it. */
static enum twill_status first_failed(const struct tw_gpu *gpu, const struct entry *entries,
                                      const char *what)
{
    char own[TW_ERROR_TEXT_BYTES] = "";

    if (tw_failed((enum twill_status)entries[gpu->comm->rank].status))
        memcpy(own, tw_fail_text(), strlen(tw_fail_text()) + 1);
    for (int r = 0; r < gpu->comm->size; r++) {
        const enum twill_status status = (enum twill_status)entries[r].status;

        if (tw_failed(status))
            return tw_fail(status, "register: rank %d %s%s%.300s", r, what,
                           r == gpu->comm->rank ? ": " : "", r == gpu->comm->rank ? own : "");
    }
    return TWILL_OK;
}

static void slot_clear(struct tw_gpu *gpu, struct tw_gpu_reg *reg)
{
    for (int r = 0; reg->opened != NULL && r < gpu->comm->size; r++)
        tw_cuda_ipc_close(gpu->device, reg->opened[r]);
    free(reg->opened);
    *reg = (struct tw_gpu_reg){NULL, 0, NULL};
}

/* Addresses of everybody's memory, into the device's table. */
static enum twill_status slot_fill(struct tw_gpu *gpu, int slot, const struct entry *entries)
{
    const struct twill_comm *comm = gpu->comm;
    struct tw_gpu_reg *reg = &gpu->regs[slot];
    uint64_t bases[TW_GK_RANKS_MAX] = {0};
    enum twill_status status = TWILL_OK;

    for (int r = 0; r < comm->size && !tw_failed(status); r++) {
        bases[r] = entries[r].at;
        if (gpu->here[r] || gpu->cut)
            continue;
        status = tw_cuda_ipc_open(gpu->device, entries[r].ipc, &reg->opened[r]);
        bases[r] = (uint64_t)(uintptr_t)reg->opened[r] + entries[r].offset;
    }
    if (tw_failed(status))
        return status;
    return tw_cuda_copy_now(gpu->device, gpu->reg_bases + (size_t)slot * (size_t)comm->size, bases,
                            (size_t)comm->size * sizeof(*bases));
}

static enum twill_status table_make(struct tw_gpu *gpu)
{
    const size_t count = (size_t)TW_GPU_REGS * (size_t)gpu->comm->size;
    void *bases = NULL;

    if (gpu->regs == NULL)
        gpu->regs = tw_alloc(TW_GPU_REGS * sizeof(*gpu->regs));
    if (gpu->regs == NULL)
        return TWILL_ERR_NOMEM;
    if (gpu->reg_bases != NULL)
        return TWILL_OK;
    enum twill_status status = tw_cuda_alloc(gpu->device, count * sizeof(uint64_t), &bases);
    gpu->reg_bases = bases;
    gpu->base.bases = bases;
    return status;
}

/* All ranks take and free slots in one order. */
static int slot_find(const struct tw_gpu *gpu)
{
    for (int slot = 0; slot < TW_GPU_REGS; slot++)
        if (gpu->regs[slot].ptr == NULL)
            return slot;
    return -1;
}

static enum twill_status offer(struct tw_gpu *gpu, const void *ptr, size_t bytes,
                               struct entry *entries)
{
    struct entry mine = {0};
    enum twill_status status = table_make(gpu);

    if (!tw_failed(status) && slot_find(gpu) < 0)
        status = tw_fail(TWILL_ERR_NOMEM, "register: a communicator has at most %d registrations",
                         TW_GPU_REGS);
    mine.status = status;
    if (!tw_failed(status))
        entry_fill(gpu, ptr, bytes, &mine);
    status = gather(gpu->comm, TW_CALL_REGISTER, &mine, entries, sizeof(mine));
    return tw_failed(status) ? status
                             : first_failed(gpu, entries, "has no memory that can be registered");
}

enum twill_status tw_gpu_register(struct twill_comm *comm, void *ptr, size_t bytes, int *slot)
{
    struct tw_gpu *gpu = comm->gpu;
    struct entry mine = {0}, *entries = tw_alloc((size_t)comm->size * sizeof(*entries));

    if (entries == NULL)
        return TWILL_ERR_NOMEM;
    enum twill_status status = offer(gpu, ptr, bytes, entries);
    if (tw_failed(status)) {
        free(entries);
        return status;
    }
    *slot = slot_find(gpu);
    struct tw_gpu_reg *reg = &gpu->regs[*slot];
    reg->opened = tw_alloc((size_t)comm->size * sizeof(void *));
    mine.status = reg->opened != NULL ? slot_fill(gpu, *slot, entries) : TWILL_ERR_NOMEM;
    status = gather(comm, TW_CALL_REGISTER, &mine, entries, sizeof(mine));
    if (!tw_failed(status))
        status = first_failed(gpu, entries, "cannot reach the others' memory");
    free(entries);
    if (tw_failed(status)) {
        slot_clear(gpu, reg);
        return status;
    }
    reg->ptr = ptr;
    reg->bytes = bytes;
    return TWILL_OK;
}

void tw_gpu_deregister(struct twill_comm *comm, int slot)
{
    if (comm->gpu != NULL && comm->gpu->regs != NULL)
        slot_clear(comm->gpu, &comm->gpu->regs[slot]);
}

void tw_gpu_regs_drop(struct tw_gpu *gpu)
{
    for (int slot = 0; gpu->regs != NULL && slot < TW_GPU_REGS; slot++)
        slot_clear(gpu, &gpu->regs[slot]);
    free(gpu->regs);
    tw_cuda_free(gpu->device, gpu->reg_bases);
    gpu->regs = NULL;
    gpu->reg_bases = NULL;
}

uint64_t tw_gpu_reg_word(const struct tw_gpu *gpu, const void *at, uint64_t bytes)
{
    const char *first = at;

    if (gpu->cut)
        return 0;
    for (int slot = 0; gpu->regs != NULL && first != NULL && slot < TW_GPU_REGS; slot++) {
        const struct tw_gpu_reg *reg = &gpu->regs[slot];

        if (reg->ptr != NULL && first >= reg->ptr &&
            (uint64_t)(first - reg->ptr) + bytes <= reg->bytes)
            return TW_GK_REGISTERED | (uint64_t)slot << TW_GK_SLOT_SHIFT |
                   (uint64_t)(first - reg->ptr);
    }
    return 0;
}
