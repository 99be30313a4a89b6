/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments of the memory calls, whose memory is whose, which is registered with which
 * communicator, and how ranks agree on it.
 * Never knows: how memory is mapped. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/cuda.h"
#include "base/mem.h"
#include "comm/gpu.h"
#include "transport/hostmem.h"

#define SHARED_BYTES ((size_t)1 << 20)

struct twill_reg {
    struct twill_reg *next; /* of the communicator */
    void *ptr;              /* the user's, borrowed until deregistered */
    size_t bytes;
    int slot; /* of memory on a device */
};

static enum twill_status device_check(int device)
{
    if (tw_cuda_absence())
        return tw_fail(TWILL_ERR_UNSUPPORTED, "mem_alloc: device %d: %s", device,
                       tw_cuda_absence());
    if (device < 0 || device >= tw_cuda_device_count())
        return tw_fail(TWILL_ERR_INVALID, "mem_alloc: there is no device %d: they are 0 to %d",
                       device, tw_cuda_device_count() - 1);
    return TWILL_OK;
}

enum twill_status twill_current_device(int *device)
{
    if (!device)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID, "current_device: the output is NULL"));
    enum twill_status status = tw_cuda_current(device);
    return tw_failed(status) ? tw_api_error(status) : status;
}

/* So much that it is of large pages. Less than CUDA's least piece of them shares one anyway. */
static size_t device_bytes(size_t bytes)
{
    const size_t page = TW_CUDA_LARGE_PAGE;

    if (bytes < SHARED_BYTES || bytes > SIZE_MAX - page)
        return bytes;
    return (bytes + page - 1) / page * page;
}

enum twill_status twill_mem_alloc(void **ptr, size_t bytes, int device)
{
    if (!ptr)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID, "mem_alloc: the output is NULL"));
    *ptr = NULL;
    if (device != TWILL_DEVICE_HOST) {
        enum twill_status status = device_check(device);
        if (tw_failed(status))
            return tw_api_error(status);
    }
    if (!bytes)
        return TWILL_OK;
    enum twill_status status = device == TWILL_DEVICE_HOST
                                   ? tw_hostmem_alloc(bytes, ptr)
                                   : tw_cuda_alloc(device, device_bytes(bytes), ptr);
    return tw_failed(status) ? tw_api_error(status) : status;
}

/* Quiet. A device is asked only about what is not the host's: a program that stays on the host
 * never starts CUDA by freeing. */
static bool on_host(const void *ptr)
{
    struct tw_hostmem found;
    enum twill_status status = tw_hostmem_find(ptr, 1, &found);
    if (status == TWILL_OK)
        close(found.fd);
    return status != TWILL_ERR_INVALID;
}

/* The device that ptr is the start of an allocation of, or -1. */
static int device_of(const void *ptr)
{
    struct tw_cuda_memory memory;
    void *base = NULL;
    size_t bytes = 0;
    if (!tw_cuda_device_count() || tw_failed(tw_cuda_memory_find(ptr, &memory)) ||
        memory.kind != TW_CUDA_DEVICE || memory.apart ||
        tw_failed(tw_cuda_memory_range(ptr, &base, &bytes)))
        return -1;
    return base == ptr ? memory.device : -1;
}

enum twill_status twill_mem_free(void *ptr)
{
    if (!ptr)
        return TWILL_OK;
    if (!on_host(ptr)) {
        int device = device_of(ptr);
        if (device >= 0) {
            tw_cuda_free(device, ptr);
            return TWILL_OK;
        }
    }
    enum twill_status status = tw_hostmem_free(ptr);
    return tw_failed(status) ? tw_api_error(status) : status;
}

/* ---- agreement --------------------------------------------------------------------------------
 */

#define NAMED_BYTES 128

static void name_rank(char named[NAMED_BYTES], int rank)
{
    size_t used = strlen(named);
    if (used + 24 < NAMED_BYTES)
        snprintf(named + used, NAMED_BYTES - used, "%s%d", used ? ", " : "", rank);
    else if (!strstr(named, " ..."))
        snprintf(named + used, NAMED_BYTES - used, ", ...");
}

static enum twill_status votes_count(const int32_t *votes, int count, char named[NAMED_BYTES])
{
    enum twill_status status = TWILL_OK;
    for (int rank = 0; rank < count; rank++) {
        if (votes[rank] >= 0)
            continue;
        name_rank(named, rank);
        if (!tw_failed(status))
            status = (enum twill_status)votes[rank];
    }
    return status;
}

/* Every rank learns of every rank's status. named: the ranks that failed. */
static enum twill_status agree(twill_comm_t comm, enum tw_call_guise guise, int32_t mine,
                               char named[NAMED_BYTES])
{
    int32_t *votes = tw_alloc((size_t)comm->size * sizeof *votes);
    if (!votes)
        return TWILL_ERR_NOMEM;
    const struct tw_call call = {
        .info = {.coll = TW_COLL_ALL_GATHER, .guise = guise, .count = 1, .type = TWILL_INT32},
        .in = &mine,
        .out = votes,
        .comm = comm,
    };
    enum twill_status status = tw_ops_call(&call);
    if (!tw_failed(status))
        status = votes_count(votes, comm->size, named);
    free(votes);
    return status;
}

/* ---- registration -----------------------------------------------------------------------------
 */

/* Quiet: the sentence comes from the agreement, on every rank. */
static enum twill_status mappable(const void *ptr, size_t bytes)
{
    struct tw_hostmem found;
    enum twill_status status = tw_hostmem_find(ptr, bytes, &found);
    if (status == TWILL_OK)
        close(found.fd);
    return status == TWILL_ERR_INVALID ? TWILL_ERR_UNSUPPORTED : status;
}

/* All ranks registered likewise, and symmetric memory is equally much. On the host, where nothing
 * else comes of it. */
static enum twill_status promise_agree(twill_comm_t comm, size_t bytes, bool symmetric)
{
    uint64_t mine = symmetric ? bytes : 0, *all = tw_alloc((size_t)comm->size * sizeof *all);
    if (!all)
        return TWILL_ERR_NOMEM;
    const struct tw_call call = {
        .info = {.coll = TW_COLL_ALL_GATHER,
                 .guise = TW_CALL_REGISTER,
                 .count = 1,
                 .type = TWILL_UINT64},
        .in = &mine,
        .out = all,
        .comm = comm,
    };
    enum twill_status status = tw_ops_call(&call);
    for (int rank = 1; rank < comm->size && !tw_failed(status); rank++)
        if (all[rank] != all[0])
            status = tw_fail(TWILL_ERR_INVALID,
                             "register: symmetric memory of rank 0 is %llu bytes, of rank %d %llu",
                             (unsigned long long)all[0], rank, (unsigned long long)all[rank]);
    free(all);
    return status;
}

static enum twill_status register_all(twill_comm_t comm, struct twill_reg *reg, bool symmetric)
{
    char named[NAMED_BYTES] = "";
    enum twill_status mine, status;
    if (comm->gpu) {
        status = tw_gpu_register(comm, reg->ptr, reg->bytes, symmetric, &reg->slot);
    } else {
        mine = mappable(reg->ptr, reg->bytes);
        status = agree(comm, TW_CALL_REGISTER, mine, named);
        if (!tw_failed(status))
            status = promise_agree(comm, reg->bytes, symmetric);
    }
    if (!tw_failed(status)) {
        reg->next = comm->regs;
        comm->regs = reg;
        return status;
    }
    if (named[0] && status == TWILL_ERR_UNSUPPORTED)
        tw_fail(status,
                "register: memory of rank %s cannot be mapped: it is not from twill_mem_alloc; "
                "such memory is copied through staging or by the kernel (CMA)",
                named);
    else if (named[0])
        tw_fail(status, "register: rank %s failed to look at its memory", named);
    return status;
}

static enum twill_status register_check(const void *ptr, size_t bytes)
{
    if (tw_group_active())
        return tw_fail(TWILL_ERR_USAGE, "register: not inside a group");
    if (!ptr || !bytes)
        return tw_fail(TWILL_ERR_INVALID, "register: %s", ptr ? "0 bytes" : "the memory is NULL");
    if ((uintptr_t)ptr + bytes < (uintptr_t)ptr)
        return tw_fail(TWILL_ERR_INVALID, "register: %zu bytes run past the end of memory", bytes);
    return TWILL_OK;
}

static enum twill_status register_memory(twill_comm_t comm, void *ptr, size_t bytes, bool symmetric,
                                         twill_reg_t *reg)
{
    enum twill_status status = tw_api_enter(comm, "register");
    if (tw_failed(status))
        return status;
    struct twill_reg *made = NULL;
    if (!reg)
        status = tw_fail(TWILL_ERR_INVALID, "register: the output is NULL");
    else
        status = register_check(ptr, bytes);
    if (!tw_failed(status)) {
        *reg = NULL;
        made = tw_alloc(sizeof *made);
        status = made ? TWILL_OK : TWILL_ERR_NOMEM;
    }
    if (made) {
        made->ptr = ptr;
        made->bytes = bytes;
        status = register_all(comm, made, symmetric);
    }
    if (!tw_failed(status)) {
        *reg = made;
    } else {
        free(made);
        if (!tw_failed(tw_api_failure(comm)))
            tw_last_error_keep(tw_comm_key(comm));
    }
    tw_api_leave(comm);
    return status;
}

enum twill_status twill_register(twill_comm_t comm, void *ptr, size_t bytes, twill_reg_t *reg)
{
    return register_memory(comm, ptr, bytes, false, reg);
}

enum twill_status twill_register_symmetric(twill_comm_t comm, void *ptr, size_t bytes,
                                           twill_reg_t *reg)
{
    return register_memory(comm, ptr, bytes, true, reg);
}

static struct twill_reg **reg_find(twill_comm_t comm, const struct twill_reg *reg)
{
    struct twill_reg **at = &comm->regs;
    while (*at && *at != reg)
        at = &(*at)->next;
    return at;
}

/* comm is claimed. */
static enum twill_status deregister(twill_comm_t comm, struct twill_reg *reg)
{
    struct twill_reg **at = reg ? reg_find(comm, reg) : NULL;
    if (!at || !*at)
        return tw_api_comm_error(
            comm, tw_fail(TWILL_ERR_INVALID, "deregister: %p is no registration of communicator %s",
                          (void *)reg, comm->args.name));
    if (tw_group_active())
        return tw_api_comm_error(comm, tw_fail(TWILL_ERR_USAGE, "deregister: not inside a group"));
    enum twill_status status = tw_api_failure(comm);
    if (tw_failed(status)) {
        if (comm->gpu)
            (void)tw_gpu_drain(comm->gpu); /* kernels end, but what they have copied goes on */
    } else {
        status = tw_api_ready(comm, "deregister");
        if (tw_failed(status))
            return status;
        char named[NAMED_BYTES] = "";
        if (comm->gpu)
            status = tw_gpu_drain(comm->gpu); /* this rank's calls; then all ranks have said so */
        status = agree(comm, TW_CALL_DEREGISTER, status, named);
        if (tw_failed(status) && !tw_failed(tw_api_failure(comm)))
            tw_last_error_keep(tw_comm_key(comm));
    }
    *at = reg->next;
    if (comm->gpu)
        tw_gpu_deregister(comm, reg->slot);
    free(reg);
    return status;
}

enum twill_status twill_deregister(twill_comm_t comm, twill_reg_t reg)
{
    enum twill_status status = tw_api_alive(comm, "deregister");
    if (tw_failed(status))
        return status;
    status = tw_ops_claim(comm, "deregister");
    if (tw_failed(status))
        return tw_api_comm_error(comm, status);
    status = deregister(comm, reg);
    tw_api_leave(comm);
    return status;
}

uint64_t tw_api_reg_bytes(const struct twill_comm *comm)
{
    uint64_t bytes = 0;
    for (const struct twill_reg *reg = comm->regs; reg; reg = reg->next)
        bytes += reg->bytes;
    return bytes;
}

void tw_api_reg_drop(twill_comm_t comm)
{
    while (comm->regs) {
        struct twill_reg *reg = comm->regs;
        comm->regs = reg->next;
        free(reg);
    }
}
