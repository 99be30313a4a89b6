/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the table of kernels, how CUDA starts one. Never knows: what they do. */
#include "base/cuda_rt.h"

extern "C" {
#include "device/cuda/launch.h"
#include "device/cuda/probe.h"
}

#include "device/cuda/kernels.cuh"

struct type_row {
    twill_type_t type;
    const struct tw_gk_reduce_kernels *kernels;
};

static const struct type_row type_rows[] = {
#define ROW(name, type) {type, &tw_gk_reduce_##name},
    TW_GK_TYPES(ROW)
#undef ROW
};

static const struct tw_gk_reduce_kernels *kernels_of(twill_type_t type)
{
    for (const struct type_row &row : type_rows)
        if (row.type == type)
            return row.kernels;
    return nullptr;
}

/* NULL: there is none. Those of calls whose blocks differ take a struct tw_gk_launch_v, of plans a
 * struct tw_gk_launch_plan. */
static const void *kernel_find(enum tw_gk_kernel kernel, twill_type_t type)
{
    const struct tw_gk_reduce_kernels *row = kernels_of(type);

    switch (kernel) {
    case TW_GK_LINE_MOVE:
        return (const void *)tw_gk_line_move;
    case TW_GK_RING_MOVE:
        return (const void *)tw_gk_ring_move;
    case TW_GK_MOVE_V:
        return (const void *)tw_gk_move_v;
    case TW_GK_COPY_BEGIN:
        return (const void *)tw_gk_copy_begin;
    case TW_GK_COPY_END:
        return (const void *)tw_gk_copy_end;
    case TW_GK_COPY_OWN:
        return (const void *)tw_gk_copy_own;
    case TW_GK_P2P_FEW:
        return (const void *)tw_gk_p2p_few;
    case TW_GK_P2P_MANY:
        return (const void *)tw_gk_p2p_many;
    case TW_GK_LINE_REDUCE:
        return row != nullptr ? (const void *)row->line : nullptr;
    case TW_GK_RING_SCATTER:
        return row != nullptr ? (const void *)row->scatter : nullptr;
    case TW_GK_RING_ALL:
    case TW_GK_PUSH_ALL:
        return row != nullptr ? (const void *)row->all : nullptr;
    case TW_GK_DIRECT_SCATTER:
        return row != nullptr ? (const void *)row->direct_scatter : nullptr;
    case TW_GK_DIRECT_ALL:
        return row != nullptr ? (const void *)row->direct_all : nullptr;
    case TW_GK_SCATTER_V:
        return row != nullptr ? (const void *)row->scatter_v : nullptr;
    case TW_GK_PLAN:
        return row != nullptr ? (const void *)row->plan : nullptr;
    default:
        return nullptr;
    }
}

static enum twill_status load(int device)
{
    cudaError_t error = cudaSuccess;

    for (const struct type_row &row : type_rows)
        for (int kernel = 0; kernel < TW_GK_KERNELS && error == cudaSuccess; kernel++) {
            struct cudaFuncAttributes attributes;

            error = cudaFuncGetAttributes(&attributes,
                                          kernel_find((enum tw_gk_kernel)kernel, row.type));
        }
    if (error == cudaErrorNoKernelImageForDevice) {
        (void)cudaGetLastError();
        return tw_fail(TWILL_ERR_UNSUPPORTED, "this build has no kernels for CUDA device %d",
                       device);
    }
    return tw_cuda_check(error, "cudaFuncGetAttributes", device);
}

enum twill_status tw_gk_load(int device)
{
    struct tw_cuda_place place;

    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    status = load(device);
    tw_cuda_leave(&place);
    return tw_failed(status) ? status : tw_gk_probe_load(device);
}

bool tw_gk_follows(int device)
{
    struct tw_cuda_place place;
    struct cudaFuncAttributes attributes;

    if (tw_failed(tw_cuda_enter(device, &place)))
        return false;
    const cudaError_t error = cudaFuncGetAttributes(
        &attributes, kernel_find(TW_GK_LINE_MOVE, TWILL_INT8)); /* all are compiled alike */
    if (error != cudaSuccess)
        (void)cudaGetLastError(); /* it is no failure: kernels start one after another then */
    tw_cuda_leave(&place);
    return error == cudaSuccess && attributes.ptxVersion >= TW_GK_EARLY_PTX;
}

static cudaError_t start(const void *kernel, const struct tw_gk_launch *launch, uint32_t threads,
                         cudaStream_t stream, cudaEvent_t done)
{
    void *arguments[] = {const_cast<struct tw_gk_launch *>(launch)};
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};

    config.attrs = &attribute;
    config.gridDim = dim3(launch->blocks, launch->ranks);
    config.blockDim = dim3(threads);
    config.stream = stream;
    if (done != nullptr) { /* cheaper than a record of its own */
        attribute.id = cudaLaunchAttributeProgrammaticEvent;
        attribute.val.programmaticEvent.event = done;
        config.numAttrs = 1;
    } else if ((launch->early & TW_GK_FOLLOWS) != 0) {
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        config.numAttrs = 1;
    }
    return cudaLaunchKernelExC(&config, kernel, arguments);
}

enum twill_status tw_gk_launch(int device, enum tw_gk_kernel kernel, twill_type_t type,
                               const struct tw_gk_launch *launch, uint32_t threads, void *stream,
                               void *done)
{
    const void *fn = kernel_find(kernel, type);
    struct tw_cuda_place place;

    if (fn == nullptr)
        return tw_fail(TWILL_ERR_INTERNAL, "no kernel %d of type %d", (int)kernel, (int)type);
    enum twill_status status = tw_cuda_enter_captured(device, &place);
    if (tw_failed(status))
        return status;
    status = tw_cuda_check(start(fn, launch, threads, (cudaStream_t)stream, (cudaEvent_t)done),
                           "cudaLaunchKernelExC", device);
    tw_cuda_leave(&place);
    return status;
}
