/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the kernel that tries whether a device gets at memory, by the loads and stores that the
 * other kernels use; how it is started. Stands alone, so that a program that needs no other kernel
 * links none.
 * Never knows: whose memory it is. */
#include "base/cuda_rt.h"

extern "C" {
#include "device/cuda/probe.h"
}

#include "device/cuda/kernels.cuh"
#include "device/cuda/ptx.cuh"

/* Few, and of few registers: room for them is soon found, also beside blocks that wait. */
#define THREADS 64

static_assert(sizeof(struct tw_gk_probe) <= 4096, "what a kernel's parameters may have anywhere");

static __device__ inline uint32_t seen(uint32_t right, uint32_t nothing)
{
    return right == TW_GK_PROBE_WORDS     ? TW_GK_SEEN_RIGHT
           : nothing == TW_GK_PROBE_WORDS ? TW_GK_SEEN_NOTHING
                                          : TW_GK_SEEN_OTHER;
}

static __device__ inline void spot_write(const struct tw_gk_probe_item *item)
{
    for (uint32_t i = 0; i < TW_GK_PROBE_WORDS; i++)
        tw_store(item->at + i, TW_GK_PROBE_WORD(item->seed, i));
}

static __device__ inline uint32_t spot_read(const struct tw_gk_probe_item *item)
{
    uint32_t right = 0, nothing = 0;

    for (uint32_t i = 0; i < TW_GK_PROBE_WORDS; i++) {
        const uint32_t word = tw_load(item->at + i);

        right += word == TW_GK_PROBE_WORD(item->seed, i);
        nothing += word == 0;
    }
    for (uint32_t i = 0; i < TW_GK_PROBE_WORDS && item->verb == TW_GK_PROBE_TAKE; i++)
        tw_store(item->at + i, 0);
    return seen(right, nothing);
}

/* Items of one thread come one after the other, all others side by side. */
__global__ void __launch_bounds__(THREADS, 8)
    tw_gk_probe_kernel(const __grid_constant__ struct tw_gk_probe probe)
{
    for (uint32_t i = threadIdx.x; i < probe.items; i += THREADS) {
        const struct tw_gk_probe_item item = probe.item[i];
        uint32_t found = TW_GK_SEEN_NOT;

        if (item.verb == TW_GK_PROBE_WRITE)
            spot_write(&item);
        else
            found = spot_read(&item);
        tw_fence();
        tw_store(probe.seen + i, found);
    }
}

enum twill_status tw_gk_probe_load(int device)
{
    struct cudaFuncAttributes attributes;
    struct tw_cuda_place place;

    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    const cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)tw_gk_probe_kernel);
    if (error == cudaErrorNoKernelImageForDevice) {
        (void)cudaGetLastError();
        status =
            tw_fail(TWILL_ERR_UNSUPPORTED, "this build has no kernels for CUDA device %d", device);
    } else {
        status = tw_cuda_check(error, "cudaFuncGetAttributes", device);
    }
    tw_cuda_leave(&place);
    return status;
}

enum twill_status tw_gk_probe_start(int device, const struct tw_gk_probe *probe, void *stream)
{
    void *arguments[] = {const_cast<struct tw_gk_probe *>(probe)};
    cudaLaunchConfig_t config = {};
    struct tw_cuda_place place;

    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    config.gridDim = dim3(1);
    config.blockDim = dim3(THREADS);
    config.stream = (cudaStream_t)stream;
    status =
        tw_cuda_check(cudaLaunchKernelExC(&config, (const void *)tw_gk_probe_kernel, arguments),
                      "cudaLaunchKernelExC", device);
    tw_cuda_leave(&place);
    return status;
}
