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

/* The last call's stream may be gone by now, so it is not touched: but where both are of one
 * capture. A captured call and one outside captures are in the order in which the user starts the
 * graph. */
enum twill_status tw_gpu_stream_follow(struct tw_gpu *gpu, const struct tw_gpu_launch *launch)
{
    const struct tw_cuda_stream *last = &gpu->last, *now = &launch->found;
    enum twill_status status = TWILL_OK;

    if (now->capturing) {
        if (last->capturing && last->capture == now->capture)
            status = tw_gpu_stream_join(gpu, gpu->stream, launch->stream);
    } else if (gpu->done_once && gpu->done_id != now->id) {
        gpu->many_streams = true;
        status = tw_cuda_event_await(gpu->device, gpu->done, launch->stream);
    }
    gpu->last = launch->found;
    gpu->stream = launch->stream;
    return status;
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
