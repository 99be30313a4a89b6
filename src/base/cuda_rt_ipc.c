/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how memory of cudaMalloc comes to other processes, and that one of them maps a piece once
 * for a device however often it is asked to: CUDA refuses some second openings.
 * Never knows: what it is for. */
#include "config.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda_rt.h"
#include "base/mem.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) == TW_CUDA_IPC_BYTES, "the size of CUDA's handle");

enum twill_status tw_cuda_ipc_export(const void *ptr, uint8_t handle[TW_CUDA_IPC_BYTES])
{
    struct tw_cuda_memory memory;
    struct tw_cuda_place place;
    cudaIpcMemHandle_t made;
    enum twill_status status = tw_cuda_memory_find(ptr, &memory);
    if (tw_failed(status))
        return status;
    if (memory.kind != TW_CUDA_DEVICE)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "%p is no memory of a CUDA device: no IPC handle",
                       ptr);
    status = tw_cuda_enter(memory.device, &place);
    if (tw_failed(status))
        return status;
    if (memory.apart)
        status = tw_fail(TWILL_ERR_UNSUPPORTED,
                         "memory at %p of device %d is not from cudaMalloc (mapped by VMM, or of a "
                         "pool): no IPC handle",
                         ptr, memory.device);
    else
        status = tw_cuda_check(cudaIpcGetMemHandle(&made, (void *)(uintptr_t)ptr),
                               "cudaIpcGetMemHandle", memory.device);
    if (!tw_failed(status))
        memcpy(handle, &made, TW_CUDA_IPC_BYTES);
    tw_cuda_leave(&place);
    return status;
}

/* ---- what is open ------------------------------------------------------------------------------
 */

struct opened {
    struct opened *next;
    int device;
    unsigned uses;
    uint8_t handle[TW_CUDA_IPC_BYTES];
    void *base;
};
static struct opened *all; /* under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The lock is held, the device entered. A new one has no uses yet. */
static enum twill_status open_new(int device, const uint8_t handle[TW_CUDA_IPC_BYTES],
                                  struct opened **found)
{
    cudaIpcMemHandle_t theirs;
    struct opened *one = tw_alloc(sizeof(*one));
    if (one == NULL)
        return TWILL_ERR_NOMEM;
    memcpy(&theirs, handle, TW_CUDA_IPC_BYTES);
    enum twill_status status =
        tw_cuda_check(cudaIpcOpenMemHandle(&one->base, theirs, cudaIpcMemLazyEnablePeerAccess),
                      "cudaIpcOpenMemHandle", device);
    if (tw_failed(status)) {
        free(one);
        return status;
    }
    one->device = device;
    memcpy(one->handle, handle, TW_CUDA_IPC_BYTES);
    one->next = all;
    all = one;
    *found = one;
    return TWILL_OK;
}

enum twill_status tw_cuda_ipc_open(int device, const uint8_t handle[TW_CUDA_IPC_BYTES], void **base)
{
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    (void)pthread_mutex_lock(&lock);
    struct opened *one = all;
    while (one != NULL &&
           (one->device != device || memcmp(one->handle, handle, TW_CUDA_IPC_BYTES) != 0))
        one = one->next;
    if (one == NULL)
        status = open_new(device, handle, &one);
    if (!tw_failed(status)) {
        one->uses++;
        *base = one->base;
    }
    (void)pthread_mutex_unlock(&lock);
    tw_cuda_leave(&place);
    return status;
}

void tw_cuda_ipc_close(int device, void *base)
{
    struct tw_cuda_place place;
    if (!base || tw_failed(tw_cuda_enter(device, &place)))
        return;
    (void)pthread_mutex_lock(&lock);
    struct opened **at = &all;
    while (*at != NULL && ((*at)->device != device || (*at)->base != base))
        at = &(*at)->next;
    struct opened *one = *at;
    if (one != NULL && --one->uses == 0) {
        *at = one->next;
        tw_cuda_note(cudaIpcCloseMemHandle(base), "cudaIpcCloseMemHandle", device);
        free(one);
    }
    (void)pthread_mutex_unlock(&lock);
    tw_cuda_leave(&place);
}
