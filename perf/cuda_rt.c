/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: CUDA's runtime, which is linked statically. Never knows: ranks, cases, what is measured.
 */
#include "config.h"

#include "perf_cuda.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

static bool good(cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return true;
    cudaGetLastError(); /* said here, not by a later call */
    fprintf(stderr, "twill-perf: %s: %s: %s\n", call, cudaGetErrorName(error),
            cudaGetErrorString(error));
    return false;
}

bool perf_cuda_built(void) { return true; }

int perf_cuda_count(const char **why)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    *why = error == cudaSuccess ? "none is visible" : cudaGetErrorString(error);
    if (error == cudaSuccess)
        return count;
    cudaGetLastError();
    return 0;
}

void perf_cuda_name(int device, char *text, size_t bytes)
{
    struct cudaDeviceProp found;
    if (good(cudaGetDeviceProperties(&found, device), "cudaGetDeviceProperties"))
        snprintf(text, bytes, "%s", found.name);
    else
        snprintf(text, bytes, "unknown");
}

bool perf_cuda_use(int device) { return good(cudaSetDevice(device), "cudaSetDevice"); }

bool perf_cuda_alloc(int device, size_t bytes, void **ptr)
{
    *ptr = NULL;
    return perf_cuda_use(device) && good(cudaMalloc(ptr, bytes), "cudaMalloc");
}

bool perf_cuda_free(int device, void *ptr)
{
    return perf_cuda_use(device) && good(cudaFree(ptr), "cudaFree");
}

bool perf_cuda_copy(void *dst, const void *src, size_t bytes, void *stream)
{
    return good(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

bool perf_cuda_stream_create(int device, bool first, void **stream)
{
    int least = 0, most = 0;
    return perf_cuda_use(device) &&
           good(cudaDeviceGetStreamPriorityRange(&least, &most),
                "cudaDeviceGetStreamPriorityRange") &&
           good(cudaStreamCreateWithPriority((cudaStream_t *)stream, cudaStreamNonBlocking,
                                             first ? most : least),
                "cudaStreamCreateWithPriority");
}

bool perf_cuda_stream_destroy(void *stream)
{
    return good(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

bool perf_cuda_stream_wait(void *stream)
{
    return good(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

bool perf_cuda_event_create(int device, void **event)
{
    return perf_cuda_use(device) && good(cudaEventCreate((cudaEvent_t *)event), "cudaEventCreate");
}

bool perf_cuda_event_destroy(void *event)
{
    return good(cudaEventDestroy(event), "cudaEventDestroy");
}

bool perf_cuda_event_record(void *event, void *stream)
{
    return good(cudaEventRecord(event, stream), "cudaEventRecord");
}

bool perf_cuda_event_await(void *event, void *stream)
{
    return good(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

bool perf_cuda_event_us(void *begin, void *end, double *us)
{
    float ms = 0;
    bool got = good(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    *us = (double)ms * 1e3;
    return got;
}

bool perf_cuda_capture_begin(void *stream)
{
    return good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                "cudaStreamBeginCapture");
}

bool perf_cuda_capture_end(void *stream, void **graph)
{
    cudaGraph_t noted = NULL;
    cudaGraphExec_t ready = NULL;
    *graph = NULL;
    if (!good(cudaStreamEndCapture(stream, &noted), "cudaStreamEndCapture"))
        return false;
    /* the thread's other streams may still be captured, which must not forbid this */
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    bool done =
        good(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    done &= good(cudaGraphInstantiate(&ready, noted, 0), "cudaGraphInstantiate");
    done &= good(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    done &= good(cudaGraphDestroy(noted), "cudaGraphDestroy");
    *graph = ready;
    return done;
}

bool perf_cuda_graph_launch(void *graph, void *stream)
{
    return good(cudaGraphLaunch(graph, stream), "cudaGraphLaunch");
}

bool perf_cuda_graph_destroy(void *graph)
{
    return good(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
}

bool perf_cuda_product_fill(int device, const struct perf_product *product, void *stream)
{
    return perf_cuda_use(device) &&
           good((cudaError_t)perf_product_fill(product, stream), "the matrix product's inputs");
}

bool perf_cuda_product_start(int device, const struct perf_product *product, void *stream)
{
    return perf_cuda_use(device) &&
           good((cudaError_t)perf_product_start(product, stream), "the matrix product's kernel");
}

bool perf_cuda_product_compare(int device, const struct perf_product *product, void *stream)
{
    return perf_cuda_use(device) &&
           good((cudaError_t)perf_product_compare(product, stream), "the matrix product's check");
}
