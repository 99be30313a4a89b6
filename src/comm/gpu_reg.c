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
#include "comm/gpu_reg.h"

/* What a rank tells of its memory. */
struct entry {
    int32_t status; /* negative: it has none to offer */
    uint16_t symmetric;
    uint16_t large; /* of large pages: other processes' engines copy to it at full speed */
    uint64_t bytes;
    uint64_t at, offset;         /* address in its process; bytes from the allocation's start */
    struct tw_gpu_pieces pieces; /* count 0: in this process, or by IPC */
    uint8_t ipc[TW_CUDA_IPC_BYTES];
};

/* What ranks tell each other. */
struct table {
    struct entry entries[TW_GK_RANKS_MAX];
    struct tw_gpu_pieces pieces[TW_GK_RANKS_MAX];
    struct tw_gpu_round rounds[TW_GK_RANKS_MAX];
};

struct tw_gpu_reg {
    const char *ptr; /* the user's, borrowed; NULL: the slot is free */
    size_t bytes;
    void **opened;              /* owned, [size]: mappings of other processes' allocations... */
    struct tw_cuda_span *spans; /* ...and pieces; owned, [size] */
    uint64_t *bases; /* owned, [size]: everybody's memory, as this rank's device has it */
    bool symmetric;
    bool large; /* on every rank */
};

enum twill_status tw_gpu_reg_gather(struct twill_comm *comm, const void *mine, void *all,
                                    size_t bytes)
{
    const struct tw_call call = {
        .info = {.coll = TW_COLL_ALL_GATHER,
                 .guise = TW_CALL_REGISTER,
                 .count = bytes,
                 .type = TWILL_UINT8},
        .in = mine,
        .out = all,
        .comm = comm,
    };
    return tw_ops_call(&call);
}

/* From cudaMalloc: one allocation. apart: pieces side by side. */
static enum twill_status range_check(int device, const void *ptr, size_t bytes, bool apart,
                                     void **base, bool *large)
{
    const char *const end = (const char *)ptr + bytes;
    void *start = NULL;
    size_t whole = 0;
    enum twill_status status = tw_cuda_memory_range(ptr, base, &whole);

    *large = apart || whole % TW_CUDA_LARGE_PAGE == 0;
    for (const char *at = (char *)*base + whole; apart && at < end && !tw_failed(status);
         at = (char *)start + whole)
        status = tw_cuda_piece_find(device, at, &start, &whole);
    if (*base == NULL || (!tw_failed(status) && (apart || (char *)*base + whole >= end)))
        return status;
    return tw_fail(TWILL_ERR_INVALID,
                   "register: %zu bytes at %p run past the end of their allocation", bytes, ptr);
}

/* How other processes come to it. */
static enum twill_status way_find(const struct tw_gpu *gpu, const void *ptr, size_t bytes,
                                  bool apart, struct entry *entry)
{
    if (apart) {
        const enum twill_status status = tw_gpu_let_in(gpu, ptr, bytes);

        if (tw_failed(status))
            return status;
    }
    if (gpu->all_here || gpu->cut)
        return TWILL_OK;
    if (!apart)
        return tw_cuda_ipc_export((const char *)ptr - entry->offset, entry->ipc);
    return tw_gpu_pieces_count(gpu, ptr, bytes, &entry->pieces);
}

static enum twill_status entry_fill(const struct tw_gpu *gpu, const void *ptr, size_t bytes,
                                    struct entry *entry)
{
    struct tw_cuda_memory found;
    void *base = NULL;
    bool large = false;
    enum twill_status status = tw_cuda_memory_find(ptr, &found);

    if (tw_failed(status))
        return status;
    if (found.kind != TW_CUDA_DEVICE || found.device != gpu->device)
        return tw_fail(TWILL_ERR_INVALID,
                       "register: %p is no memory of the communicator's CUDA device %d", ptr,
                       gpu->device);
    status = range_check(gpu->device, ptr, bytes, found.apart, &base, &large);
    if (tw_failed(status))
        return status;
    entry->large = large;
    entry->at = (uint64_t)(uintptr_t)ptr;
    entry->offset = entry->at - (uint64_t)(uintptr_t)base;
    return way_find(gpu, ptr, bytes, found.apart, entry);
}

#define UNREACHED                                                                                  \
    "has memory that peers do not reach: not from cudaMalloc or twill_mem_alloc, nor "             \
    "from cuMemCreate with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"

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
            return tw_fail(status, "register: rank %d %s%s%.240s", r,
                           status == TWILL_ERR_UNSUPPORTED ? UNREACHED : what,
                           r == gpu->comm->rank ? ": " : "", r == gpu->comm->rank ? own : "");
    }
    return TWILL_OK;
}

static void slot_clear(struct tw_gpu *gpu, struct tw_gpu_reg *reg)
{
    for (int r = 0; reg->opened != NULL && r < gpu->comm->size; r++)
        tw_cuda_ipc_close(gpu->device, reg->opened[r]);
    for (int r = 0; reg->spans != NULL && r < gpu->comm->size; r++)
        tw_cuda_span_free(gpu->device, &reg->spans[r]);
    free(reg->opened);
    free(reg->spans);
    free(reg->bases);
    *reg = (struct tw_gpu_reg){0};
}

/* What comes by IPC. */
static enum twill_status slot_open(const struct tw_gpu *gpu, const struct entry *entries,
                                   struct tw_gpu_reg *reg)
{
    const size_t size = (size_t)gpu->comm->size;
    enum twill_status status = TWILL_OK;

    reg->opened = tw_alloc(size * sizeof(*reg->opened));
    reg->spans = tw_alloc(size * sizeof(*reg->spans));
    reg->bases = tw_alloc(size * sizeof(*reg->bases));
    if (reg->opened == NULL || reg->spans == NULL || reg->bases == NULL)
        return TWILL_ERR_NOMEM;
    for (size_t r = 0; r < size && !tw_failed(status); r++)
        if (!gpu->here[r] && !gpu->cut && entries[r].pieces.count == 0)
            status = tw_cuda_ipc_open(gpu->device, entries[r].ipc, &reg->opened[r]);
    return status;
}

/* Addresses of everybody's memory, into the device's table. */
static enum twill_status slot_fill(const struct tw_gpu *gpu, int slot, const struct entry *entries)
{
    const size_t size = (size_t)gpu->comm->size;
    const struct tw_gpu_reg *reg = &gpu->regs[slot];
    uint64_t *bases = reg->bases;

    for (size_t r = 0; r < size; r++) {
        const struct entry *entry = &entries[r];

        if (gpu->here[r] || gpu->cut)
            bases[r] = entry->at;
        else if (entry->pieces.count > 0)
            bases[r] = (uint64_t)(uintptr_t)reg->spans[r].base + entry->pieces.offset;
        else
            bases[r] = (uint64_t)(uintptr_t)reg->opened[r] + entry->offset;
    }
    return tw_cuda_copy_now(gpu->device, gpu->reg_bases + (size_t)slot * size, bases,
                            size * sizeof(*bases));
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

/* Symmetric memory is so on all ranks, and equally much. */
static enum twill_status promise_check(const struct tw_gpu *gpu, const struct entry *entries)
{
    for (int r = 1; r < gpu->comm->size; r++) {
        if (entries[r].symmetric != entries[0].symmetric)
            return tw_fail(TWILL_ERR_INVALID,
                           "register: rank %d registers symmetric memory, rank %d does not",
                           entries[0].symmetric ? 0 : r, entries[0].symmetric ? r : 0);
        if (entries[0].symmetric && entries[r].bytes != entries[0].bytes)
            return tw_fail(TWILL_ERR_INVALID,
                           "register: symmetric memory of rank 0 is %llu bytes, of rank %d %llu",
                           (unsigned long long)entries[0].bytes, r,
                           (unsigned long long)entries[r].bytes);
    }
    return TWILL_OK;
}

static enum twill_status offer(struct tw_gpu *gpu, const void *ptr, size_t bytes, bool symmetric,
                               struct entry *entries)
{
    struct entry mine = {0};
    enum twill_status status = table_make(gpu);

    if (!tw_failed(status) && slot_find(gpu) < 0)
        status = tw_fail(TWILL_ERR_NOMEM, "register: a communicator has at most %d registrations",
                         TW_GPU_REGS);
    if (!tw_failed(status))
        status = entry_fill(gpu, ptr, bytes, &mine);
    mine.status = status;
    mine.symmetric = symmetric;
    mine.bytes = bytes;
    status = tw_gpu_reg_gather(gpu->comm, &mine, entries, sizeof(mine));
    if (!tw_failed(status))
        status = first_failed(gpu, entries, "has no memory that can be registered");
    return tw_failed(status) ? status : promise_check(gpu, entries);
}

/* All that this rank does to reach the others' memory. */
static enum twill_status reach(struct tw_gpu *gpu, const void *ptr, int slot, struct table *table)
{
    struct tw_gpu_reg *reg = &gpu->regs[slot];
    enum twill_status mine = slot_open(gpu, table->entries, reg);

    for (int r = 0; r < gpu->comm->size; r++)
        table->pieces[r] = table->entries[r].pieces;
    mine = tw_gpu_pieces_pass(gpu, ptr, table->pieces, mine, table->rounds, reg->spans);
    return tw_failed(mine) ? mine : slot_fill(gpu, slot, table->entries);
}

static bool all_large(const struct tw_gpu *gpu, const struct entry *entries)
{
    bool large = true;

    for (int r = 0; r < gpu->comm->size; r++)
        large &= entries[r].large != 0;
    return large;
}

static enum twill_status enlist(struct tw_gpu *gpu, const void *ptr, size_t bytes, bool symmetric,
                                struct table *table, int *slot)
{
    struct entry mine = {0};
    enum twill_status status = offer(gpu, ptr, bytes, symmetric, table->entries);

    if (tw_failed(status))
        return status;
    *slot = slot_find(gpu);
    gpu->regs[*slot].large = all_large(gpu, table->entries);
    mine.status = reach(gpu, ptr, *slot, table);
    status = tw_gpu_reg_gather(gpu->comm, &mine, table->entries, sizeof(mine));
    if (!tw_failed(status))
        status = first_failed(gpu, table->entries, "cannot reach the others' memory");
    if (tw_failed(status))
        slot_clear(gpu, &gpu->regs[*slot]);
    return status;
}

enum twill_status tw_gpu_register(struct twill_comm *comm, void *ptr, size_t bytes, bool symmetric,
                                  int *slot)
{
    struct tw_gpu *gpu = comm->gpu;
    struct table *table = tw_alloc(sizeof(*table));

    if (table == NULL)
        return TWILL_ERR_NOMEM;
    const enum twill_status status = enlist(gpu, ptr, bytes, symmetric, table, slot);
    free(table);
    if (tw_failed(status))
        return status;
    gpu->regs[*slot].ptr = ptr;
    gpu->regs[*slot].bytes = bytes;
    gpu->regs[*slot].symmetric = symmetric;
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

/* Copy engines are to write there: into other processes' memory of small pages only where they are
 * asked for. */
static bool copied_to(const struct tw_gpu *gpu, const struct tw_gpu_reg *reg)
{
    return reg->symmetric && (reg->large || gpu->all_here || !gpu->copy_auto);
}

/* copied: what engines write to alone */
static uint64_t word_of(const struct tw_gpu *gpu, const void *at, uint64_t bytes, bool copied)
{
    const char *first = at;

    if (gpu->cut)
        return 0;
    for (int slot = 0; gpu->regs != NULL && first != NULL && slot < TW_GPU_REGS; slot++) {
        const struct tw_gpu_reg *reg = &gpu->regs[slot];

        if (reg->ptr != NULL && first >= reg->ptr && (!copied || copied_to(gpu, reg)) &&
            (uint64_t)(first - reg->ptr) + bytes <= reg->bytes)
            return TW_GK_REGISTERED | (uint64_t)slot << TW_GK_SLOT_SHIFT |
                   (uint64_t)(first - reg->ptr);
    }
    return 0;
}

uint64_t tw_gpu_reg_word(const struct tw_gpu *gpu, const void *at, uint64_t bytes)
{
    return word_of(gpu, at, bytes, false);
}

uint64_t tw_gpu_reg_copied(const struct tw_gpu *gpu, const void *at, uint64_t bytes)
{
    return word_of(gpu, at, bytes, true);
}

uint64_t tw_gpu_reg_copied_most(const struct tw_gpu *gpu)
{
    uint64_t most = 0;

    for (int slot = 0; gpu->regs != NULL && slot < TW_GPU_REGS; slot++)
        if (copied_to(gpu, &gpu->regs[slot]) && gpu->regs[slot].bytes > most)
            most = gpu->regs[slot].bytes;
    return most;
}

char *tw_gpu_reg_peer(const struct tw_gpu *gpu, uint64_t word, int rank)
{
    const struct tw_gpu_reg *reg = &gpu->regs[(word & ~TW_GK_REGISTERED) >> TW_GK_SLOT_SHIFT];
    const uint64_t offset = word & ((UINT64_C(1) << TW_GK_SLOT_SHIFT) - 1);

    return (char *)(uintptr_t)(reg->bases[rank] + offset);
}
