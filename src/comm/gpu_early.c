/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which kernels of a captured graph are started before the one in front of them has ended.
 * Never knows: what kernels do.
 *
 * Starting a kernel takes as long as what a small call has left to do. In a graph the device does
 * that for the next call while this one runs (programmatic dependent launch): its blocks then stand
 * on their multiprocessors and wait until this one has ended. Nothing else changes: what is behind
 * them in the stream waits for all of it, as ever. So it is done between two calls of the
 * communicator that stand next to each other, and only if both are small, since either kernel's
 * blocks keep room from others meanwhile: they are counted twice.
 */
#include "config.h"

#include "base/cuda.h"
#include "comm/gpu_copy.h"
#include "device/cuda/launch.h"

void tw_gpu_early_init(struct tw_gpu *gpu)
{
    gpu->early = gpu->comm->proc->params->early_launch && tw_gk_follows(gpu->device);
}

/* Is the launch one of them, or may be followed by one? */
static bool serves(const struct tw_gpu *gpu, const struct tw_gpu_launch *launch)
{
    const enum tw_gk_kernel kernel = launch->shape.kernel;

    return gpu->early && launch->found.capturing &&
           (kernel == TW_GK_LINE_REDUCE || kernel == TW_GK_LINE_MOVE) &&
           2 * launch->shape.blocks <= (uint32_t)gpu->most_blocks;
}

uint32_t tw_gpu_early_blocks(const struct tw_gpu *gpu, const struct tw_gpu_launch *launch)
{
    return launch->shape.blocks * (serves(gpu, launch) ? 2 : 1);
}

/* NULL: not known. */
static void *last_node(const struct tw_gpu *gpu, const struct tw_gpu_launch *launch)
{
    void *node = NULL;

    if (tw_failed(tw_cuda_capture_last(gpu->device, launch->stream, launch->found.capture, &node)))
        return NULL;
    return node;
}

enum twill_status tw_gpu_early_start(struct tw_gpu *const *gpus,
                                     const struct tw_gpu_launch *const *launches,
                                     struct tw_gk_launch *wire, void *done)
{
    const struct tw_gpu_launch *first = launches[0];

    wire->early = 0;
    if (!serves(gpus[0], first))
        return tw_gpu_kernels_start(gpus, launches, wire, done);
    struct tw_gpu_capture *capture = tw_gpu_capture_find(gpus[0], first->found.capture);
    const void *node = last_node(gpus[0], first);

    wire->early = TW_GK_LEADS;
    if (node != NULL && node == capture->early)
        wire->early |= TW_GK_FOLLOWS;
    const enum twill_status status = tw_gpu_kernels_start(gpus, launches, wire, done);
    capture->early = tw_failed(status) ? NULL : last_node(gpus[0], first);
    return status;
}
