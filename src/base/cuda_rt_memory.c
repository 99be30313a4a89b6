/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory of CUDA's runtime: had, found, copied.
 * Never knows: what it is for. */
#include "config.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/cuda_rt.h"

/* Runs what `work` enqueues on a stream of its own and waits for it: the default stream would wait
 * for all others, and is not to be used while a graph is captured. The device is entered. */
struct job {
    void *dst;
    const void *src; /* NULL: dst is zeroed */
    size_t bytes;
};

static cudaError_t job_run(const struct job *job)
{
    cudaStream_t stream = NULL;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return error;
    if (job->src)
        error = cudaMemcpyAsync(job->dst, job->src, job->bytes, cudaMemcpyDefault, stream);
    else
        error = cudaMemsetAsync(job->dst, 0, job->bytes, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    cudaError_t closed = cudaStreamDestroy(stream);
    return error == cudaSuccess ? closed : error;
}

enum twill_status tw_cuda_alloc(int device, size_t bytes, void **ptr)
{
    struct tw_cuda_place place;
    void *made = NULL;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    status = tw_cuda_check(cudaMalloc(&made, bytes), "cudaMalloc", device);
    if (!tw_failed(status) && bytes) {
        const struct job zero = {.dst = made, .bytes = bytes};
        status = tw_cuda_check(job_run(&zero), "zeroing new memory", device);
        if (tw_failed(status))
            tw_cuda_note(cudaFree(made), "cudaFree", device);
    }
    if (!tw_failed(status))
        *ptr = made;
    tw_cuda_leave(&place);
    return status;
}

void tw_cuda_free(int device, void *ptr)
{
    struct tw_cuda_place place;
    if (!ptr || tw_failed(tw_cuda_enter(device, &place)))
        return;
    tw_cuda_note(cudaFree(ptr), "cudaFree", device);
    tw_cuda_leave(&place);
}

enum twill_status tw_cuda_pinned_alloc(size_t bytes, void **ptr)
{
    struct tw_cuda_place place;
    void *made = NULL;
    enum twill_status status = tw_cuda_enter_any(&place);
    if (tw_failed(status))
        return status;
    const unsigned flags = cudaHostAllocPortable | cudaHostAllocMapped;
    status = tw_cuda_check(cudaHostAlloc(&made, bytes, flags), "cudaHostAlloc", -1);
    if (!tw_failed(status)) {
        if (made)
            memset(made, 0, bytes);
        *ptr = made;
    }
    tw_cuda_leave(&place);
    return status;
}

void tw_cuda_pinned_free(void *ptr)
{
    struct tw_cuda_place place;
    if (!ptr || tw_failed(tw_cuda_enter_any(&place)))
        return;
    tw_cuda_note(cudaFreeHost(ptr), "cudaFreeHost", -1);
    tw_cuda_leave(&place);
}

/* ---- what a pointer is -------------------------------------------------------------------------
 */

typedef CUresult attributes_call(unsigned count, CUpointer_attribute *which, void **values,
                                 CUdeviceptr ptr);
static attributes_call *ask_attributes; /* NULL: the driver has it not */
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static void attributes_entry(void)
{
    void *entry = tw_cuda_driver_entry("cuPointerGetAttributes");
    memcpy(&ask_attributes, &entry, sizeof ask_attributes);
}

/* Before every call: one question to the driver, for which no context is needed. */
enum twill_status tw_cuda_memory_find(const void *ptr, struct tw_cuda_memory *found)
{
    unsigned type = 0, managed = 0, ipc = 0;
    int device = -1;
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    void *values[] = {&type, &managed, &device, &ipc};
    enum twill_status status = tw_cuda_ready();
    if (tw_failed(status))
        return status;
    (void)pthread_once(&asked, attributes_entry);
    if (!ask_attributes)
        return tw_fail(TWILL_ERR_SYSTEM, "CUDA's driver has no cuPointerGetAttributes");
    CUresult result =
        ptr ? ask_attributes(4, which, values, (CUdeviceptr)(uintptr_t)ptr) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE)
        return tw_fail(TWILL_ERR_SYSTEM, "cuPointerGetAttributes: CUDA driver error %d",
                       (int)result);
    *found = (struct tw_cuda_memory){.kind = TW_CUDA_PLAIN, .device = -1};
    if (result != CUDA_SUCCESS || !type) /* it never saw the pointer */
        return TWILL_OK;
    found->kind = managed                        ? TW_CUDA_MANAGED
                  : type == CU_MEMORYTYPE_DEVICE ? TW_CUDA_DEVICE
                                                 : TW_CUDA_PINNED;
    if (found->kind != TW_CUDA_PINNED)
        found->device = device;
    found->apart = found->kind == TW_CUDA_DEVICE && !ipc;
    return TWILL_OK;
}

typedef CUresult range_call(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr);

static range_call *range_entry(void)
{
    void *entry = tw_cuda_driver_entry("cuMemGetAddressRange");
    range_call *call;
    memcpy(&call, &entry, sizeof call);
    return call;
}

enum twill_status tw_cuda_memory_range(const void *ptr, void **base, size_t *bytes)
{
    struct tw_cuda_memory memory;
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_memory_find(ptr, &memory);
    if (tw_failed(status))
        return status;
    if (memory.device < 0)
        return tw_fail(TWILL_ERR_INVALID, "%p is no memory of a CUDA device", ptr);
    status = tw_cuda_enter(memory.device, &place);
    if (tw_failed(status))
        return status;
    CUdeviceptr start = 0;
    size_t size = 0;
    range_call *range = range_entry();
    CUresult result =
        range ? range(&start, &size, (CUdeviceptr)(uintptr_t)ptr) : CUDA_ERROR_NOT_FOUND;
    tw_cuda_leave(&place);
    if (result != CUDA_SUCCESS)
        return tw_fail(TWILL_ERR_INVALID,
                       "cuMemGetAddressRange on device %d: CUDA driver error %d: %p lies in no "
                       "allocation",
                       memory.device, (int)result, ptr);
    memcpy(base, &start, sizeof *base);
    *bytes = size;
    return TWILL_OK;
}

/* ---- copies ------------------------------------------------------------------------------------
 */

enum twill_status tw_cuda_copy(int device, void *dst, const void *src, size_t bytes, void *stream)
{
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    if (bytes)
        status =
            tw_cuda_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, (cudaStream_t)stream),
                          "cudaMemcpyAsync", device);
    tw_cuda_leave(&place);
    return status;
}

enum twill_status tw_cuda_copy_now(int device, void *dst, const void *src, size_t bytes)
{
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    const struct job copy = {.dst = dst, .src = src, .bytes = bytes};
    if (bytes && !src)
        status = tw_fail(TWILL_ERR_INVALID, "copy on device %d: the source is NULL", device);
    else if (bytes)
        status = tw_cuda_check(job_run(&copy), "copying", device);
    tw_cuda_leave(&place);
    return status;
}
