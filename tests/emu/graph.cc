/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: graphs, and how a kernel gets into a stream or a graph. Never knows: what it does. */
#include <utility>

#include "emu/stream.h"

using namespace emu;

extern "C" {

/* ---- graphs ------------------------------------------------------------------------------------
 */

/* Nothing is forbidden to other threads here. */
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    static thread_local enum cudaStreamCaptureMode own = cudaStreamCaptureModeGlobal;
    std::swap(own, *mode);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode)
{
    const Guard guard(streams.lock);
    CUstream_st *found = stream != nullptr ? stream_find(stream) : nullptr;
    const cudaError_t error = stream_uncaptured(found);

    if (error != cudaSuccess)
        return said(error);
    found->capture = std::make_shared<Capture>();
    found->capture->id = ++streams.ids;
    found->tail.clear();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    const Guard guard(streams.lock);
    CUstream_st *found = stream_find(stream);

    if (found == nullptr || found->capture == nullptr)
        return said(cudaErrorInvalidValue);
    const CaptureRef capture = found->capture;
    capture->over = true;
    for (Device &device : streams.devices)
        for (CUstream_st *one : device.streams)
            if (one->capture == capture) {
                one->capture.reset();
                one->tail.clear();
            }
    if (capture->invalid)
        return said(cudaErrorStreamCaptureInvalidated);
    *graph = new CUgraph_st{capture->nodes};
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *,
                                     const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                     size_t *count)
{
    const Guard guard(streams.lock);
    CUstream_st *found = stream_find(stream);

    if (found == nullptr)
        return said(cudaErrorInvalidResourceHandle);
    if (stream_implicit(found))
        return said(cudaErrorStreamCaptureImplicit);
    *status = found->capture == nullptr ? cudaStreamCaptureStatusNone
              : found->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
    if (found->capture == nullptr)
        return cudaSuccess;
    *id = found->capture->id;
    if (nodes == nullptr)
        return cudaSuccess;
    found->told.clear();
    for (size_t node : found->tail)
        found->told.push_back((cudaGraphNode_t)(found->capture->id << 32 | (node + 1)));
    *nodes = found->told.data();
    *edges = nullptr;
    *count = found->told.size();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long)
{
    *exec = new CUgraphExec_st{graph->nodes};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    const Guard guard(streams.lock);
    CUstream_st *found = stream_find(stream);
    const cudaError_t error = stream_uncaptured(found);

    if (error != cudaSuccess)
        return said(error);
    const std::vector<OpRef> first = stream_before(found);
    std::vector<OpRef> ops;
    for (const Node &node : exec->nodes) {
        std::vector<OpRef> after = first;
        for (size_t i : node.after)
            after.push_back(ops[i]);
        ops.push_back(start(node.job, after));
    }
    ops.insert(ops.end(), first.begin(), first.end());
    found->last = start(Job(), ops);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

/* ---- kernels -----------------------------------------------------------------------------------
 */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
    std::function<void()> body;

    attributes->maxThreadsPerBlock = 1024;
    attributes->ptxVersion = 90;
    return kernel_bind(kernel, nullptr, &body) ? cudaSuccess : said(cudaErrorInvalidDeviceFunction);
}

static bool is_early(const cudaLaunchConfig_t *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization)
            return config->attrs[i].val.programmaticStreamSerializationAllowed != 0;
    return false;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel,
                                void **arguments)
{
    auto made = std::make_shared<Kernel>();
    const Guard guard(streams.lock);
    CUstream_st *stream = stream_find(config->stream);
    Job job;

    if (stream == nullptr || stream->device != current())
        return said(cudaErrorInvalidResourceHandle);
    if (!kernel_bind(kernel, arguments[0], &made->body))
        return said(cudaErrorInvalidDeviceFunction);
    made->blocks = config->gridDim.x * config->gridDim.y;
    made->across = config->gridDim.x;
    made->threads = config->blockDim.x;
    made->device = stream->device;
    made->early = is_early(config);
    job.kernel = made;
    cudaError_t error = stream_submit(stream, job);
    for (unsigned i = 0; i < config->numAttrs && error == cudaSuccess; i++)
        if (config->attrs[i].id == cudaLaunchAttributeProgrammaticEvent)
            error = event_record(config->attrs[i].val.programmaticEvent.event, stream);
    return said(error);
}
}
