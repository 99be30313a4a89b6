/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: in which order a rank's calls run, whichever streams they were given.
 * Never knows: what calls are, how they are started.
 */
#include "config.h"

#include "base/cuda.h"
#include "comm/gpu.h"

enum twill_status tw_gpu_stream_join(struct tw_gpu *gpu, void *from, void *to)
{
    if (from == to)
        return TWILL_OK;
    enum twill_status status = tw_cuda_event_record(gpu->device, gpu->event, from);
    return tw_failed(status) ? status : tw_cuda_event_await(gpu->device, gpu->event, to);
}

struct tw_gpu_capture *tw_gpu_capture_find(struct tw_gpu *gpu, uint64_t capture)
{
    for (int i = 0; i < TW_GPU_CAPTURES; i++)
        if (gpu->captures[i].capture == capture)
            return &gpu->captures[i];
    struct tw_gpu_capture *oldest = &gpu->captures[gpu->captures_begun++ % TW_GPU_CAPTURES];

    *oldest = (struct tw_gpu_capture){.capture = capture};
    return oldest;
}

/* The stream of the capture's last call still captures, or the capture would have ended. */
static enum twill_status capture_follow(struct tw_gpu *gpu, const struct tw_gpu_launch *launch)
{
    struct tw_gpu_capture *capture = tw_gpu_capture_find(gpu, launch->found.capture);
    enum twill_status status = TWILL_OK;

    if (capture->stream != NULL)
        status = tw_gpu_stream_join(gpu, capture->stream, launch->stream);
    capture->stream = launch->stream;
    return status;
}

/* The last call's stream may be gone by now, so it is not touched: but where both are of one
 * capture. A captured call and one outside captures are in the order in which the user starts the
 * graph. */
enum twill_status tw_gpu_stream_follow(struct tw_gpu *gpu, const struct tw_gpu_launch *launch)
{
    if (launch->found.capturing)
        return capture_follow(gpu, launch);
    if (!gpu->done_once || gpu->done_id == launch->found.id)
        return TWILL_OK;
    gpu->many_streams = true;
    return tw_cuda_event_await(gpu->device, gpu->done, launch->stream);
}

enum twill_status tw_gpu_stream_note(struct tw_gpu *gpu, const struct tw_gpu_launch *launch,
                                     void *stream)
{
    if (launch->found.capturing)
        return TWILL_OK;
    gpu->done_once = true;
    gpu->done_id = launch->found.id;
    return gpu->many_streams ? tw_cuda_event_record(gpu->device, gpu->done, stream) : TWILL_OK;
}
