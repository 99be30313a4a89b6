/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what becomes of sends and receives on devices: those of a group are one kernel for each
 * rank, or for ranks that share a device.
 * Never knows: how kernels run them. */
#include "config.h"

#include "comm/gpu_p2p.h"

#include <stdlib.h>

#include "base/cuda.h"
#include "base/mem.h"

/* ---- batches -----------------------------------------------------------------------------------
 */

static bool is_p2p(const struct tw_call *call)
{
    return tw_gpu_serves(call) && call->info.coll == TW_COLL_P2P;
}

static enum twill_status batch_check(const struct tw_gpu_batch *batch)
{
    enum twill_status status = tw_batch_check(batch->item);

    if (tw_failed(tw_comm_status(batch->gpu->comm)))
        return TWILL_OK; /* it starts nothing, and says so then */
    return tw_failed(status) ? status : tw_gpu_p2p_check(batch->gpu, batch->item);
}

/* The batch of the call's rank, with room for `more` calls if it is new. NULL: no memory. */
static struct tw_gpu_batch *batch_of(const struct tw_call *call, size_t more,
                                     struct tw_gpu_batch *batches)
{
    struct tw_gpu_batch *batch = batches;

    while (batch->gpu != NULL && batch->gpu != call->comm->gpu)
        batch++;
    if (batch->gpu != NULL)
        return batch;
    batch->item = tw_item_create(call->comm, true, (uint32_t)more);
    if (batch->item == NULL)
        return NULL;
    batch->item->nops = 0; /* so far */
    batch->gpu = call->comm->gpu;
    return batch;
}

enum twill_status tw_gpu_batches_make(const struct tw_call *calls, size_t count,
                                      struct tw_gpu_batch *batches)
{
    enum twill_status status = TWILL_OK;

    for (size_t i = 0; i < count; i++)
        batches[i] = (struct tw_gpu_batch){0};
    for (size_t i = 0; i < count; i++) {
        if (!is_p2p(&calls[i]))
            continue;
        struct tw_gpu_batch *batch = batch_of(&calls[i], count - i, batches);
        if (batch == NULL)
            return TWILL_ERR_NOMEM;
        tw_op_init(&batch->item->ops[batch->item->nops++], &calls[i]);
    }
    for (size_t i = 0; i < count && batches[i].gpu != NULL && !tw_failed(status); i++) {
        status = batch_check(&batches[i]);
        if (tw_failed(status))
            tw_last_error_keep(tw_comm_key(batches[i].gpu->comm));
    }
    return status;
}

void tw_gpu_batches_free(struct tw_gpu_batch *batches, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(batches[i].item);
}

/* ---- streams -----------------------------------------------------------------------------------
 */

/* The batches of one launch, with the streams that their calls were given: each once. */
struct joint {
    struct tw_gpu_batch *batches[TW_GK_JOINT_MAX];
    struct tw_gpu_launch ranks[TW_GK_JOINT_MAX]; /* stream: the rank's first */
    uint32_t count;
    void **streams; /* owned */
    size_t nstreams;
    uint32_t threads; /* of a block */
    struct tw_gk_launch_p2p wire;
};

static bool stream_known(const struct joint *joint, const void *stream)
{
    /* mostly it is the newest */
    for (size_t i = joint->nstreams; i-- > 0;)
        if (joint->streams[i] == stream)
            return true;
    return false;
}

/* A batch is in one capture with all its streams, or in none. */
static enum twill_status stream_add(struct joint *joint, const struct tw_gpu *gpu, void *stream)
{
    const struct tw_cuda_stream *first = &joint->ranks[0].found;
    struct tw_cuda_stream found;

    if (stream_known(joint, stream))
        return TWILL_OK;
    enum twill_status status = tw_cuda_stream_look(gpu->device, stream, &found);
    if (tw_failed(status))
        return status;
    if (joint->nstreams > 0 &&
        (found.capturing != first->capturing || found.capture != first->capture))
        return tw_fail(TWILL_ERR_USAGE,
                       "group: sends and receives of rank %d are on streams of which one is in a "
                       "capture that another one is not in",
                       gpu->comm->rank);
    if (joint->nstreams == 0)
        joint->ranks[0].found = found;
    joint->streams[joint->nstreams++] = stream;
    return TWILL_OK;
}

static enum twill_status streams_find(struct joint *joint)
{
    enum twill_status status = TWILL_OK;
    size_t most = 0;

    for (uint32_t r = 0; r < joint->count; r++)
        most += joint->batches[r]->item->nops;
    joint->streams = tw_alloc(most * sizeof(void *));
    if (joint->streams == NULL)
        return TWILL_ERR_NOMEM;
    for (uint32_t r = 0; r < joint->count; r++) {
        const struct tw_gpu *gpu = joint->batches[r]->gpu;
        const struct tw_item *item = joint->batches[r]->item;

        for (uint32_t i = 0; i < item->nops && !tw_failed(status); i++)
            status = stream_add(joint, gpu, item->ops[i].stream);
        joint->ranks[r].stream = item->ops[0].stream;
        if (r > 0 && !tw_failed(status))
            status =
                tw_cuda_stream_look(gpu->device, joint->ranks[r].stream, &joint->ranks[r].found);
    }
    return status;
}

/* ---- starting ----------------------------------------------------------------------------------
 */

/* All blocks that the ranks may have, before any has several groups of threads. */
static void blocks_set(struct joint *joint, uint32_t groups)
{
    const uint32_t blocks = (uint32_t)joint->batches[0]->gpu->most_blocks;
    const uint32_t each = (groups + blocks - 1) / blocks;

    joint->wire.launch.blocks = (groups + each - 1) / each;
    joint->wire.launch.early = 0;
    joint->threads = each * TW_GK_GROUP;
}

static enum twill_status wire_fill(struct joint *joint)
{
    struct tw_gk_launch *launch = &joint->wire.launch;
    uint32_t most = 0;

    joint->wire.ops = 0;
    for (uint32_t r = 0; r < joint->count; r++) {
        const struct tw_gpu *gpu = joint->batches[r]->gpu;
        const uint32_t groups = tw_gpu_p2p_cut(gpu, joint->batches[r]->item, r, &joint->wire);

        if (groups == 0)
            return TWILL_ERR_UNSUPPORTED;
        launch->call[r] = gpu->base;
        most = groups > most ? groups : most;
    }
    launch->ranks = joint->count;
    blocks_set(joint, most);
    return TWILL_OK;
}

/* The other streams go on behind the kernel. */
static enum twill_status joint_part(struct joint *joint, void *stream)
{
    struct tw_gpu *first = joint->batches[0]->gpu;
    enum twill_status status = TWILL_OK;

    for (size_t i = 1; i < joint->nstreams && !tw_failed(status); i++)
        status = tw_gpu_stream_join(first, stream, joint->streams[i]);
    for (uint32_t r = 0; r < joint->count && !tw_failed(status); r++) {
        struct tw_gpu *gpu = joint->batches[r]->gpu;

        if (joint->count > 1) /* the launch left its end with nobody */
            gpu->many_streams = true;
        status = tw_gpu_stream_note(gpu, &joint->ranks[r], stream);
    }
    return status;
}

/* The kernel waits for those of ranks of the team which are not in it: they are started apart, and
 * what would come between waits for it in turn. */
static bool mates_awaited(const struct joint *joint)
{
    uint64_t in = 0, peers = 0;

    for (uint32_t r = 0; r < joint->count; r++) {
        const struct tw_item *item = joint->batches[r]->item;

        in |= UINT64_C(1) << joint->batches[r]->gpu->comm->rank;
        for (uint32_t i = 0; i < item->nops; i++)
            peers |= UINT64_C(1) << item->ops[i].info.peer;
    }
    return (peers & joint->batches[0]->gpu->mates & ~in) != 0;
}

/* Into the first stream, after what stands in the others. */
static enum twill_status joint_launch(struct joint *joint)
{
    struct tw_gpu *first = joint->batches[0]->gpu, *ranks[TW_GK_JOINT_MAX];
    struct tw_gpu_start start = {.ranks = ranks,
                                 .count = joint->count,
                                 .blocks = joint->wire.launch.blocks,
                                 .stream = joint->streams[0],
                                 .found = &joint->ranks[0].found,
                                 .at_once = mates_awaited(joint)};
    const bool told = joint->count == 1 && !start.found->capturing;
    enum twill_status status = TWILL_OK;

    for (uint32_t r = 0; r < joint->count && !tw_failed(status); r++) {
        ranks[r] = joint->batches[r]->gpu;
        status = tw_gpu_stream_follow(ranks[r], &joint->ranks[r]);
    }
    for (size_t i = 1; i < joint->nstreams && !tw_failed(status); i++)
        status = tw_gpu_stream_join(first, joint->streams[i], start.stream);
    if (tw_failed(status))
        return status;
    status = tw_gpu_blocks_begin(&start);
    if (!tw_failed(status))
        status = tw_gk_launch(first->device,
                              joint->wire.ops <= TW_GK_OPS_FEW ? TW_GK_P2P_FEW : TW_GK_P2P_MANY,
                              TWILL_UINT8, &joint->wire.launch, joint->threads, start.stream,
                              told ? first->done : NULL);
    if (!tw_failed(status))
        status = joint_part(joint, start.stream);
    return tw_gpu_blocks_end(&start, status);
}

static void joint_count(const struct joint *joint)
{
    for (uint32_t r = 0; r < joint->count; r++) {
        const struct tw_item *item = joint->batches[r]->item;

        for (uint32_t i = 0; i < item->nops; i++)
            joint->batches[r]->gpu->given[item->ops[i].info.peer][item->ops[i].info.is_send]++;
    }
}

static enum twill_status joint_start(struct joint *joint)
{
    const struct tw_gpu *first = joint->batches[0]->gpu;
    enum twill_status status = streams_find(joint);

    if (!tw_failed(status))
        status = wire_fill(joint);
    if (!tw_failed(status)) {
        tw_gpu_team_lock(first);
        status = joint_launch(joint);
        tw_gpu_team_unlock(first);
        joint_count(joint);
    }
    free(joint->streams);
    return status;
}

/* The communicators that have failed start nothing. */
static enum twill_status batch_can(const struct tw_gpu_batch *batch)
{
    const enum twill_status status = tw_comm_status(batch->gpu->comm);

    return tw_failed(status) ? tw_fail_again(status, batch->gpu->comm->failure) : TWILL_OK;
}

/* The first batch goes, with all others of its ranks' team. */
static enum twill_status team_start(struct tw_gpu_batch *batches, size_t count, bool *started)
{
    struct joint *joint = malloc(sizeof(*joint)); /* large, and little of it used */

    if (joint == NULL)
        return tw_fail(TWILL_ERR_NOMEM, "no memory to start sends and receives");
    joint->count = 0;
    joint->streams = NULL;
    joint->nstreams = 0;
    for (size_t i = 0; i < count && batches[i].gpu != NULL; i++) {
        if (started[i] || batches[i].gpu->team != batches[0].gpu->team)
            continue;
        joint->batches[joint->count++] = &batches[i];
        started[i] = true;
    }
    enum twill_status status = batch_can(&batches[0]);
    if (!tw_failed(status))
        status = joint_start(joint);
    if (tw_failed(status)) {
        for (uint32_t r = 0; r < joint->count; r++)
            tw_last_error_keep(tw_comm_key(joint->batches[r]->gpu->comm));
    }
    free(joint);
    return status;
}

enum twill_status tw_gpu_batches_start(struct tw_gpu_batch *batches, size_t count)
{
    enum twill_status first = TWILL_OK;

    if (count == 0 || batches[0].gpu == NULL)
        return TWILL_OK;
    bool *started = tw_alloc(count * sizeof(*started));
    if (started == NULL)
        return TWILL_ERR_NOMEM;
    for (size_t i = 0; i < count && batches[i].gpu != NULL; i++) {
        if (started[i])
            continue;
        enum twill_status status = team_start(batches + i, count - i, started + i);
        if (tw_failed(status) && !tw_failed(first))
            first = status;
    }
    free(started);
    return first;
}

enum twill_status tw_gpu_p2p_run(const struct tw_call *call)
{
    struct tw_gpu_batch batch;

    enum twill_status status = tw_gpu_batches_make(call, 1, &batch);
    if (!tw_failed(status))
        status = tw_gpu_batches_start(&batch, 1);
    tw_gpu_batches_free(&batch, 1);
    return status;
}
