/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what becomes of a call on device memory: buffers checked, launch handed to the team, sends
 * and receives gathered.
 * Never knows: kernels, streams' order. */
#include "config.h"

#include "comm/gpu.h"

#include <stdlib.h>

#include "base/cuda.h"
#include "base/mem.h"
#include "comm/gpu_copy_p2p.h"

/* ---- buffers -----------------------------------------------------------------------------------
 */

static enum twill_status buffer_check(const struct tw_gpu *gpu, const char *name, const char *which,
                                      const void *at, bool *apart)
{
    struct tw_cuda_memory found;

    *apart = false;
    if (at == NULL)
        return TWILL_OK;
    enum twill_status status = tw_cuda_memory_find(at, &found);
    if (tw_failed(status))
        return status;
    *apart = found.apart;
    if (found.kind == TW_CUDA_DEVICE && found.device == gpu->device)
        return TWILL_OK;
    if (found.kind == TW_CUDA_DEVICE)
        return tw_fail(TWILL_ERR_INVALID,
                       "%s: %s %p is memory of CUDA device %d; the communicator's rank is on %d",
                       name, which, at, found.device, gpu->device);
    return tw_fail(TWILL_ERR_INVALID,
                   "%s: %s %p is %s; the communicator's rank is on CUDA device %d and takes its "
                   "memory only",
                   name, which, at,
                   found.kind == TW_CUDA_MANAGED  ? "managed memory"
                   : found.kind == TW_CUDA_PINNED ? "pinned host memory"
                                                  : "host memory, or was freed",
                   gpu->device);
}

static enum twill_status aligned_check(const char *name, const char *which, const void *at,
                                       size_t elem)
{
    if ((uintptr_t)at % elem == 0)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_INVALID, "%s: %s %p is not aligned to its elements of %zu bytes", name,
                   which, at, elem);
}

enum twill_status tw_gpu_call_check(const char *name, const struct tw_call *call)
{
    const struct tw_gpu *gpu = call->comm->gpu;
    const size_t elem = tw_type_bytes(call->info.type);
    /* what holds nothing is not looked at */
    const void *in = tw_gpu_holds(call, true) ? call->in : NULL;
    const void *out = tw_gpu_holds(call, false) ? call->out : NULL;

    enum twill_status status = aligned_check(name, "sendbuf", in, elem);

    if (!tw_failed(status))
        status = aligned_check(name, "recvbuf", out, elem);
    bool in_apart = false, out_apart = false;
    if (!tw_failed(status))
        status = buffer_check(gpu, name, "sendbuf", in, &in_apart);
    out_apart = in_apart;
    if (!tw_failed(status) && out != in)
        status = buffer_check(gpu, name, "recvbuf", out, &out_apart);
    if (!tw_failed(status) && in_apart)
        status = tw_gpu_call_let_in(name, call, true);
    if (!tw_failed(status) && out_apart)
        status = tw_gpu_call_let_in(name, call, false);
    return status;
}

/* ---- calls -------------------------------------------------------------------------------------
 */

/* set: that the call is in; NULL: none */
static enum twill_status submit(const struct tw_call *call, const struct tw_gpu_set *set,
                                uint64_t *ticket)
{
    struct tw_gpu *gpu = call->comm->gpu;
    struct tw_gpu_launch launch = {.type = call->info.type, .stream = call->stream};

    enum twill_status status = tw_cuda_stream_look(gpu->device, call->stream, &launch.found);
    if (tw_failed(status))
        return status;
    tw_gpu_shape(gpu, call, &launch.shape);
    if (set != NULL)
        tw_gpu_copy_shape(false, &launch.shape);
    tw_gpu_fill(gpu, call, &launch.shape, &launch.call);
    if (tw_gpu_varies(call->info.coll)) {
        tw_gpu_pairs_fill(call, launch.call.sends, launch.call.takes, gpu->pairs);
        launch.pairs = gpu->pairs;
    }
    struct tw_gpu_copies copies;
    if (launch.shape.kernel == TW_GK_COPY_BEGIN) {
        tw_gpu_copies_fill(gpu, set != NULL ? set->calls : NULL, &launch.call, &copies);
        if (set != NULL)
            tw_gpu_set_await(set, call, &copies);
        launch.copies = &copies;
    }
    struct tw_gk_plan plan;
    if (launch.shape.kernel == TW_GK_PLAN) {
        status = tw_gpu_plan_fill(gpu, call, &plan, &launch.call.out_word);
        launch.plan = &plan;
    }
    return tw_failed(status) ? status : tw_gpu_team_submit(gpu, &launch, ticket);
}

enum twill_status tw_gpu_run(const struct tw_call *call)
{
    uint64_t ticket;

    if (call->info.coll == TW_COLL_P2P)
        return tw_gpu_p2p_run(call);
    enum twill_status status = submit(call, NULL, &ticket);
    return tw_failed(status) ? status : tw_gpu_team_wait(call->comm->gpu, ticket);
}

/* A call that is one of a set, as far as the set has come. */
static enum twill_status set_submit(const struct tw_call *calls, size_t i, struct tw_gpu_set *set,
                                    uint64_t *ticket)
{
    if (i == set->first)
        set->status = tw_gpu_set_arrive(set);
    if (tw_failed(set->status)) /* the others would wait for it */
        return set->status;
    set->status = submit(&calls[i], set, ticket);
    if (!tw_failed(set->status) && i == set->last)
        set->status = tw_gpu_set_part(set);
    if (tw_failed(set->status) && i != set->first) /* some have begun */
        tw_comm_fail(calls[i].comm, set->status, "%s", tw_fail_text());
    return set->status;
}

static enum twill_status collectives_run(const struct tw_call *calls, size_t count)
{
    uint64_t *tickets = tw_alloc(count * sizeof(*tickets));
    enum twill_status first = TWILL_OK;
    struct tw_gpu_set *sets = NULL;

    if (tickets == NULL)
        return TWILL_ERR_NOMEM;
    if (tw_failed(tw_gpu_sets_find(calls, count, &sets))) {
        free(tickets);
        return TWILL_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        struct tw_gpu_set *set = tw_gpu_serves(&calls[i]) ? tw_gpu_set_of(sets, &calls[i]) : NULL;
        enum twill_status status = TWILL_OK;

        if (set != NULL)
            status = set_submit(calls, i, set, &tickets[i]);
        else if (tw_gpu_serves(&calls[i]) && calls[i].info.coll != TW_COLL_P2P)
            status = submit(&calls[i], NULL, &tickets[i]);
        if (tw_failed(status) && !tw_failed(first))
            first = status;
        if (tw_failed(status))
            tw_last_error_keep(tw_comm_key(calls[i].comm));
    }
    for (size_t i = 0; i < count && !tw_failed(first); i++)
        if (tickets[i] != 0)
            first = tw_gpu_team_wait(calls[i].comm->gpu, tickets[i]);
    if (tw_failed(first))
        tw_last_error_keep(0);
    tw_gpu_sets_free(sets);
    free(tickets);
    return first;
}

static bool some_served(const struct tw_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tw_gpu_serves(&calls[i]))
            return true;
    return false;
}

/* batches: [3 * count]: of the calls, and of messages before those that are copied */
static enum twill_status group_start(const struct tw_call *calls, size_t count,
                                     const struct tw_gpu_sends *sends, struct tw_gpu_batch *batches)
{
    struct tw_gpu_batch *ready = batches + count;
    enum twill_status status =
        tw_gpu_batches_make(sends->count > 0 ? sends->rest : calls, count, batches);

    if (!tw_failed(status))
        status = tw_gpu_batches_make(sends->ready, 2 * sends->count, ready);
    if (!tw_failed(status))
        status = collectives_run(calls, count);
    if (tw_failed(status))
        return status;
    if (sends->count > 0)
        status = tw_gpu_sends_start(sends, ready);
    if (!tw_failed(status))
        status = tw_gpu_batches_start(batches, count);
    if (tw_failed(status))
        tw_gpu_sends_fail(sends, status);
    return status;
}

enum twill_status tw_gpu_run_group(const struct tw_call *calls, size_t count)
{
    if (!some_served(calls, count))
        return TWILL_OK;
    struct tw_gpu_batch *batches = tw_alloc(3 * count * sizeof(*batches));
    struct tw_gpu_sends sends;

    if (batches == NULL)
        return TWILL_ERR_NOMEM;
    enum twill_status status = tw_gpu_sends_find(calls, count, &sends);
    if (!tw_failed(status))
        status = group_start(calls, count, &sends, batches);
    if (tw_failed(status))
        tw_last_error_keep(0);
    tw_gpu_batches_free(batches, 3 * count);
    free(batches);
    tw_gpu_sends_free(&sends);
    return status;
}
