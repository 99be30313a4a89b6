/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: streams and events of CUDA's runtime. Never knows: what runs on them. */
#include "config.h"

#include "base/cuda_rt.h"

enum twill_status tw_cuda_stream_create(int device, void **stream)
{
    struct tw_cuda_place place;
    cudaStream_t made = NULL;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    status = tw_cuda_check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking),
                           "cudaStreamCreateWithFlags", device);
    if (!tw_failed(status))
        *stream = made;
    tw_cuda_leave(&place);
    return status;
}

void tw_cuda_stream_destroy(int device, void *stream)
{
    struct tw_cuda_place place;
    if (!stream || tw_failed(tw_cuda_enter(device, &place)))
        return;
    tw_cuda_note(cudaStreamDestroy((cudaStream_t)stream), "cudaStreamDestroy", device);
    tw_cuda_leave(&place);
}

enum twill_status tw_cuda_stream_wait(int device, void *stream)
{
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    status =
        tw_cuda_check(cudaStreamSynchronize((cudaStream_t)stream), "cudaStreamSynchronize", device);
    tw_cuda_leave(&place);
    return status;
}

/* cudaErrorNotReady is an answer. */
static enum twill_status answered(cudaError_t error, const char *call, int device, bool *yes)
{
    bool done = error == cudaSuccess;
    if (error == cudaErrorNotReady) {
        (void)cudaGetLastError();
        error = cudaSuccess;
    }
    enum twill_status status = tw_cuda_check(error, call, device);
    if (!tw_failed(status))
        *yes = done;
    return status;
}

enum twill_status tw_cuda_stream_query(int device, void *stream, bool *empty)
{
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    status = answered(cudaStreamQuery((cudaStream_t)stream), "cudaStreamQuery", device, empty);
    tw_cuda_leave(&place);
    return status;
}

/* Its arguments are others from CUDA 13 on. */
static cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *state,
                                unsigned long long *id)
{
#if CUDART_VERSION >= 13000
    return cudaStreamGetCaptureInfo(stream, state, id, NULL, NULL, NULL, NULL);
#else
    return cudaStreamGetCaptureInfo(stream, state, id, NULL, NULL, NULL);
#endif
}

static enum twill_status capture_failed(cudaError_t error, int device)
{
    if (error == cudaErrorStreamCaptureImplicit) {
        (void)cudaGetLastError();
        return tw_fail(TWILL_ERR_USAGE,
                       "the default stream of device %d cannot be used while a graph is captured "
                       "from a stream that waits for it (cudaErrorStreamCaptureImplicit)",
                       device);
    }
    return tw_cuda_check(error, "cudaStreamGetCaptureInfo, cudaStreamGetId", device);
}

enum twill_status tw_cuda_stream_look(int device, void *stream, struct tw_cuda_stream *found)
{
    struct tw_cuda_place place;
    enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    unsigned long long id = 0, capture = 0;
    enum twill_status status = tw_cuda_enter_captured(device, &place);
    if (tw_failed(status))
        return status;
    cudaError_t error = capture_info((cudaStream_t)stream, &state, &capture);
    if (error == cudaSuccess && state == cudaStreamCaptureStatusNone)
        error = cudaStreamGetId((cudaStream_t)stream, &id);
    status = capture_failed(error, device);
    tw_cuda_leave(&place);
    if (!tw_failed(status) && state == cudaStreamCaptureStatusInvalidated)
        status = tw_fail(TWILL_ERR_USAGE,
                         "the capture of a graph from a stream of device %d was made invalid by an "
                         "earlier call: cudaStreamEndCapture ends it",
                         device);
    if (!tw_failed(status))
        *found = (struct tw_cuda_stream){
            .capturing = state == cudaStreamCaptureStatusActive, .id = id, .capture = capture};
    return status;
}

enum twill_status tw_cuda_stream_capturing(int device, void *stream, bool *capturing)
{
    struct tw_cuda_stream found;
    enum twill_status status = tw_cuda_stream_look(device, stream, &found);
    if (!tw_failed(status))
        *capturing = found.capturing;
    return status;
}

/* Runtimes before CUDA 13 have it by another name and arguments: there nothing is known. */
static cudaError_t capture_tail(cudaStream_t stream, uint64_t capture, void **node)
{
    *node = NULL;
#if CUDART_VERSION >= 13000
    enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    const cudaGraphNode_t *nodes = NULL;
    const cudaGraphEdgeData *edges = NULL;
    size_t count = 0;
    const cudaError_t error =
        cudaStreamGetCaptureInfo(stream, &state, &id, NULL, &nodes, &edges, &count);
    if (error == cudaSuccess && state == cudaStreamCaptureStatusActive && id == capture &&
        count == 1)
        *node = nodes[0];
    return error;
#else
    (void)stream;
    (void)capture;
    return cudaSuccess;
#endif
}

enum twill_status tw_cuda_capture_last(int device, void *stream, uint64_t capture, void **node)
{
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_enter_captured(device, &place);
    if (tw_failed(status))
        return status;
    status = tw_cuda_check(capture_tail((cudaStream_t)stream, capture, node),
                           "cudaStreamGetCaptureInfo", device);
    tw_cuda_leave(&place);
    return status;
}

enum twill_status tw_cuda_event_create(int device, void **event)
{
    struct tw_cuda_place place;
    cudaEvent_t made = NULL;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    status = tw_cuda_check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming),
                           "cudaEventCreateWithFlags", device);
    if (!tw_failed(status))
        *event = made;
    tw_cuda_leave(&place);
    return status;
}

void tw_cuda_event_destroy(int device, void *event)
{
    struct tw_cuda_place place;
    if (!event || tw_failed(tw_cuda_enter(device, &place)))
        return;
    tw_cuda_note(cudaEventDestroy((cudaEvent_t)event), "cudaEventDestroy", device);
    tw_cuda_leave(&place);
}

enum twill_status tw_cuda_event_record(int device, void *event, void *stream)
{
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_enter_captured(device, &place);
    if (tw_failed(status))
        return status;
    status = tw_cuda_check(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream),
                           "cudaEventRecord", device);
    tw_cuda_leave(&place);
    return status;
}

enum twill_status tw_cuda_event_await(int device, void *event, void *stream)
{
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_enter_captured(device, &place);
    if (tw_failed(status))
        return status;
    status = tw_cuda_check(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0),
                           "cudaStreamWaitEvent", device);
    tw_cuda_leave(&place);
    return status;
}

enum twill_status tw_cuda_event_done(int device, void *event, bool *done)
{
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    status = answered(cudaEventQuery((cudaEvent_t)event), "cudaEventQuery", device, done);
    tw_cuda_leave(&place);
    return status;
}
