/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how copies stand between the two kernels of a call, and what goes beside them.
 * Never knows: which calls these are, how peers' outputs were found. */
#include "config.h"

#include "base/cuda.h"
#include "base/value.h"
#include "comm/gpu_copy.h"

#include <string.h>

#define AUTO_BYTES (UINT64_C(1) << 63) /* until tw_gpu_cost_copies; no size that is asked for */
#define PREFER_BYTES ((uint64_t)1 << 20)
#define OWN_BLOCKS 16u /* as fast as engines copy to a peer */

/* ---- life --------------------------------------------------------------------------------------
 */

static bool is_auto(const char *text) { return text[0] == '\0' || strcmp(text, "auto") == 0; }
static bool is_prefer(const char *text) { return strcmp(text, "prefer") == 0; }

/* from: of a block, on which copy engines serve; 0: never */
static enum twill_status engines_read(const char *text, uint64_t *from)
{
    *from = 0;
    if (strcmp(text, "off") == 0)
        return TWILL_OK;
    if (is_auto(text))
        *from = AUTO_BYTES;
    else if (is_prefer(text))
        *from = PREFER_BYTES;
    else if (!tw_value_bytes(text, from) || *from == 0)
        return tw_fail(TWILL_ERR_INVALID,
                       "init: TWILL_COPY_ENGINE is \"%s\", must be auto, prefer, off, or from how "
                       "many bytes of a block on copy engines move it",
                       text);
    return TWILL_OK;
}

enum twill_status tw_gpu_copy_create(struct tw_gpu *gpu, struct tw_gpu_entry *entry)
{
    const char *text = gpu->comm->proc->params->copy_engine;
    enum twill_status status = engines_read(text, &gpu->copy_from);

    gpu->copy_auto = is_auto(text);
    gpu->copy_alone = is_prefer(text);
    gpu->copy_far_from = entry->copy_from = gpu->copy_from;
    if (tw_failed(status) || gpu->copy_from == 0 || gpu->comm->size < 2)
        return status;
    for (int i = 0; i < TW_GPU_SIDES && !tw_failed(status); i++)
        status = tw_cuda_stream_create(gpu->device, &gpu->sides[i]);
    if (!tw_failed(status))
        status = tw_cuda_event_create(gpu->device, &gpu->arrived);
    if (!tw_failed(status))
        status = tw_cuda_event_create(gpu->device, &gpu->copied);
    return status;
}

void tw_gpu_copy_destroy(struct tw_gpu *gpu)
{
    for (int i = 0; i < TW_GPU_SIDES; i++)
        if (gpu->sides[i] != NULL)
            tw_cuda_stream_destroy(gpu->device, gpu->sides[i]);
    tw_cuda_event_destroy(gpu->device, gpu->arrived);
    tw_cuda_event_destroy(gpu->device, gpu->copied);
}

enum twill_status tw_gpu_copy_agree(int size, const struct tw_gpu_entry *entries)
{
    for (int r = 1; r < size; r++)
        if (entries[r].copy_from != entries[0].copy_from)
            return tw_fail(TWILL_ERR_MISMATCH,
                           "init: rank 0 and rank %d have different TWILL_COPY_ENGINE: they would "
                           "not choose alike",
                           r);
    return TWILL_OK;
}

/* ---- copies ------------------------------------------------------------------------------------
 */

/* The block that the rank sends itself, where it is not in its place already. */
static bool has_own(const struct tw_gk_call *call)
{
    const uint64_t rank = (uint64_t)call->rank;

    return (call->sends & call->takes) >> rank & 1 &&
           call->in + rank * call->in_stride != call->out + rank * call->out_stride;
}

static enum twill_status own_copy(const struct tw_gpu *gpu, const struct tw_gk_call *call,
                                  void *stream)
{
    const uint64_t rank = (uint64_t)call->rank;

    if (!has_own(call))
        return TWILL_OK;
    return tw_cuda_copy(gpu->device, call->out + rank * call->out_stride,
                        call->in + rank * call->in_stride, call->bytes, stream);
}

/* Only behind the kernel before, which says who is late. */
static enum twill_status peers_await(const struct tw_gpu *gpu, const struct tw_gpu_launch *launch,
                                     void *stream)
{
    enum twill_status status = TWILL_OK;

    for (int r = 0; r < launch->call.size && !tw_failed(status); r++)
        if (launch->copies->after[r] != NULL)
            status = tw_cuda_event_await(gpu->device, launch->copies->after[r], stream);
    return status;
}

/* One peer after the other, every rank beginning behind itself, so that no two meet at one. */
static enum twill_status peers_copy(const struct tw_gpu *gpu, const struct tw_gpu_launch *launch,
                                    void *stream)
{
    const struct tw_gk_call *call = &launch->call;
    enum twill_status status = TWILL_OK;

    for (int k = 1; k < call->size && !tw_failed(status); k++) {
        const int peer = (call->rank + k) % call->size;

        if ((call->sends >> peer & 1) != 0)
            status = tw_cuda_copy(gpu->device, launch->copies->to[peer],
                                  call->in + (uint64_t)peer * call->in_stride, call->bytes, stream);
    }
    return status;
}

/* ---- beside the stream -------------------------------------------------------------------------
 */

/* A stream of the rank's that can go beside the call's: none that is captured into another graph.
 * NULL: there is none. */
static void *side_find(const struct tw_gpu *gpu, const struct tw_cuda_stream *found)
{
    for (int i = 0; i < TW_GPU_SIDES; i++) {
        struct tw_cuda_stream side;

        if (gpu->sides[i] != NULL &&
            !tw_failed(tw_cuda_stream_look(gpu->device, gpu->sides[i], &side)) &&
            (!side.capturing || (found->capturing && side.capture == found->capture)))
            return gpu->sides[i];
    }
    return NULL;
}

struct start {
    struct tw_gpu *const *gpus;
    const struct tw_gpu_launch *const *launches;
    const struct tw_gk_launch *wire;
    void *stream;
    void *side; /* NULL: none is needed, or there is none */
};

static enum twill_status own_copies(const struct start *start, void *stream)
{
    enum twill_status status = TWILL_OK;

    for (uint32_t i = 0; i < start->wire->ranks && !tw_failed(status); i++)
        status = own_copy(start->gpus[i], &start->launches[i]->call, stream);
    return status;
}

static enum twill_status kernel(const struct start *start, enum tw_gk_kernel which, void *done)
{
    const struct tw_gpu_launch *first = start->launches[0];

    return tw_gk_launch(start->gpus[0]->device, which, first->type, start->wire,
                        first->shape.threads, start->stream, done);
}

/* By a kernel, which waits for nobody: in graphs engines that do this too take turns with those
 * that copy to peers. */
static enum twill_status own_kernel(const struct start *start)
{
    const struct tw_gpu *gpu = start->gpus[0];
    struct tw_gk_launch wire = *start->wire;

    wire.blocks = (uint32_t)gpu->most_blocks < OWN_BLOCKS ? (uint32_t)gpu->most_blocks : OWN_BLOCKS;
    return tw_gk_launch(gpu->device, TW_GK_COPY_OWN, start->launches[0]->type, &wire,
                        TW_GK_THREADS_MOST, start->side, NULL);
}

static enum twill_status side_begin(struct start *start)
{
    bool some = false;

    for (uint32_t i = 0; i < start->wire->ranks; i++)
        some |= has_own(&start->launches[i]->call);
    start->side = some ? side_find(start->gpus[0], &start->launches[0]->found) : NULL;
    if (start->side == NULL)
        return TWILL_OK;
    enum twill_status status = tw_gpu_stream_join(start->gpus[0], start->stream, start->side);
    if (tw_failed(status))
        return status;
    return start->gpus[0]->copy_alone ? own_copies(start, start->side) : own_kernel(start);
}

/* Between the kernels. */
static enum twill_status copies_start(const struct start *start)
{
    enum twill_status status = TWILL_OK;

    for (uint32_t i = 0; i < start->wire->ranks && !tw_failed(status); i++)
        status = peers_await(start->gpus[i], start->launches[i], start->stream);
    for (uint32_t i = 0; i < start->wire->ranks && !tw_failed(status); i++)
        status = peers_copy(start->gpus[i], start->launches[i], start->stream);
    if (!tw_failed(status) && start->side == NULL)
        status = own_copies(start, start->stream);
    for (uint32_t i = 0; i < start->wire->ranks && !tw_failed(status); i++)
        if (!start->launches[i]->shape.promised) /* those that are written wait for it */
            status =
                tw_cuda_event_record(start->gpus[i]->device, start->gpus[i]->copied, start->stream);
    if (!tw_failed(status) && start->side != NULL)
        status = tw_gpu_stream_join(start->gpus[0], start->side, start->stream);
    return status;
}

static enum twill_status call_start(struct start *start, void *done)
{
    enum twill_status status = side_begin(start);

    if (!tw_failed(status))
        status = kernel(start, TW_GK_COPY_BEGIN, NULL);
    if (tw_failed(status))
        return status;
    start->gpus[0]->half = true;
    status = copies_start(start);
    if (!tw_failed(status))
        status = kernel(start, TW_GK_COPY_END, done);
    start->gpus[0]->half = tw_failed(status);
    return status;
}

enum twill_status tw_gpu_kernels_start(struct tw_gpu *const *gpus,
                                       const struct tw_gpu_launch *const *launches,
                                       const struct tw_gk_launch *wire, void *done)
{
    struct start start = {
        .gpus = gpus, .launches = launches, .wire = wire, .stream = launches[0]->stream};

    if (launches[0]->copies != NULL)
        return call_start(&start, done);
    return kernel(&start, launches[0]->shape.kernel, done);
}
