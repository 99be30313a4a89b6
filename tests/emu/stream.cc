/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what follows what in streams and by events.
 * Never knows: what the work is. */
#include "emu/stream.h"

#include <algorithm>

namespace emu
{

Streams &streams = *new Streams;

Streams::Streams()
{
    for (int i = 0; i < DEVICES; i++) {
        devices[i].normal.device = i;
        devices[i].normal.id = ++ids;
    }
}

CUstream_st *stream_find(cudaStream_t stream)
{
    if (stream == nullptr)
        return &streams.devices[current()].normal;
    for (Device &device : streams.devices)
        if (device.streams.count(stream) != 0)
            return stream;
    return nullptr;
}

std::vector<OpRef> stream_before(const CUstream_st *stream)
{
    const Device &device = streams.devices[stream->device];
    std::vector<OpRef> ops = {stream->last};

    if (stream->blocking)
        ops.push_back(device.normal.last);
    for (const CUstream_st *other : device.streams)
        if (stream == &device.normal && other->blocking)
            ops.push_back(other->last);
    return ops;
}

bool stream_implicit(const CUstream_st *stream)
{
    const Device &device = streams.devices[stream->device];

    if (stream != &device.normal)
        return false;
    return std::any_of(device.streams.begin(), device.streams.end(), [](const CUstream_st *other) {
        return other->blocking && other->capture != nullptr;
    });
}

cudaError_t stream_uncaptured(CUstream_st *stream)
{
    if (stream == nullptr)
        return cudaErrorInvalidResourceHandle;
    if (stream_implicit(stream))
        return cudaErrorStreamCaptureImplicit;
    if (stream->capture == nullptr)
        return cudaSuccess;
    stream->capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
}

cudaError_t stream_submit(CUstream_st *stream, const Job &job)
{
    if (stream == nullptr)
        return cudaErrorInvalidResourceHandle;
    if (stream_implicit(stream))
        return cudaErrorStreamCaptureImplicit;
    if (stream->capture == nullptr) {
        stream->last = start(job, stream_before(stream));
        return cudaSuccess;
    }
    if (stream->capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    std::vector<Node> &nodes = stream->capture->nodes;
    nodes.push_back({job, stream->tail});
    stream->tail = {nodes.size() - 1};
    return cudaSuccess;
}

cudaError_t event_record(cudaEvent_t event, CUstream_st *stream)
{
    if (stream == nullptr || event->device != stream->device)
        return cudaErrorInvalidResourceHandle;
    if (stream_implicit(stream))
        return cudaErrorStreamCaptureImplicit;
    event->capture = stream->capture;
    event->tail = stream->tail;
    if (stream->capture == nullptr)
        event->op = stream->last = start(Job(), stream_before(stream));
    return cudaSuccess;
}

cudaError_t submit(cudaStream_t stream, const Job &job)
{
    const Guard guard(streams.lock);
    return said(stream_submit(stream_find(stream), job));
}

void device_wait(int device)
{
    std::vector<OpRef> ops;
    {
        const Guard guard(streams.lock);
        Device &it = streams.devices[device];

        it.left.erase(std::remove_if(it.left.begin(), it.left.end(), ended), it.left.end());
        ops = it.left;
        ops.push_back(it.normal.last);
        for (const CUstream_st *stream : it.streams)
            ops.push_back(stream->last);
    }
    for (const OpRef &op : ops)
        await(op);
}

} // namespace emu

using namespace emu;

extern "C" {

cudaError_t cudaDeviceSynchronize(void)
{
    device_wait(current());
    return cudaSuccess;
}

/* ---- streams -----------------------------------------------------------------------------------
 */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    const Guard guard(streams.lock);
    auto *made = new CUstream_st();

    made->device = current();
    made->blocking = (flags & cudaStreamNonBlocking) == 0;
    made->id = ++streams.ids;
    streams.devices[made->device].streams.insert(made);
    *stream = made;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const Guard guard(streams.lock);

    if (stream == nullptr || stream_find(stream) == nullptr)
        return said(cudaErrorInvalidResourceHandle);
    Device &device = streams.devices[stream->device];
    if (!ended(stream->last))
        device.left.push_back(stream->last);
    device.streams.erase(stream);
    delete stream;
    return cudaSuccess;
}

/* Its last operation, and what that waits for. */
static cudaError_t last_of(cudaStream_t stream, OpRef *op)
{
    const Guard guard(streams.lock);
    CUstream_st *found = stream_find(stream);
    const cudaError_t error = stream_uncaptured(found);

    if (error != cudaSuccess)
        return said(error);
    if (stream == nullptr) /* what others have may have come before */
        found->last = start(Job(), stream_before(found));
    *op = found->last;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    OpRef op;
    const cudaError_t error = last_of(stream, &op);

    if (error == cudaSuccess)
        await(op);
    return error;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    OpRef op;
    const cudaError_t error = last_of(stream, &op);

    if (error != cudaSuccess)
        return error;
    return ended(op) ? cudaSuccess : said(cudaErrorNotReady);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    const Guard guard(streams.lock);
    const CUstream_st *found = stream_find(stream);

    if (found == nullptr)
        return said(cudaErrorInvalidResourceHandle);
    *id = found->id;
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*run)(void *argument), void *argument)
{
    Job job;
    job.slow = [=] { run(argument); };
    return submit(stream, job);
}

/* ---- events ------------------------------------------------------------------------------------
 */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new CUevent_st();
    (*event)->device = current();
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const Guard guard(streams.lock);
    return said(event_record(event, stream_find(stream)));
}

/* It joins the capture that the event is of. */
static cudaError_t join(CUstream_st *stream, const CUevent_st *event)
{
    if (stream->capture != nullptr && stream->capture != event->capture) {
        stream->capture->invalid = true;
        return cudaErrorStreamCaptureUnsupported;
    }
    if (event->capture->over)
        return cudaErrorStreamCaptureInvalidated;
    stream->capture = event->capture;
    for (size_t node : event->tail)
        if (std::find(stream->tail.begin(), stream->tail.end(), node) == stream->tail.end())
            stream->tail.push_back(node);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    const Guard guard(streams.lock);
    CUstream_st *found = stream_find(stream);

    if (found == nullptr)
        return said(cudaErrorInvalidResourceHandle);
    if (stream_implicit(found))
        return said(cudaErrorStreamCaptureImplicit);
    if (found->capture != nullptr || event->capture != nullptr)
        return said(join(found, event));
    std::vector<OpRef> ops = stream_before(found);
    ops.push_back(event->op);
    found->last = start(Job(), ops);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    const Guard guard(streams.lock);

    if (event->capture != nullptr) /* or was, which has no end that could be asked for */
        return said(cudaErrorStreamCaptureUnsupported);
    return ended(event->op) ? cudaSuccess : said(cudaErrorNotReady);
}
}
