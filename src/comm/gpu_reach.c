/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which devices of the process use a rank's buffers, and how they are let into memory that
 * they reach only then: mapped by cuMemMap, or of a pool.
 * Never knows: other processes, kernels. */
#include "config.h"

#include <stdio.h>

#include "base/cuda.h"
#include "comm/gpu.h"

void tw_gpu_others_find(struct tw_gpu *gpu, const struct tw_ctl_peer *peers)
{
    gpu->nothers = 0;
    for (int r = 0; r < gpu->comm->size; r++) {
        bool known = !gpu->here[r] || peers[r].device == gpu->device;

        for (int i = 0; i < gpu->nothers && !known; i++)
            known = gpu->others[i] == peers[r].device;
        if (!known)
            gpu->others[gpu->nothers++] = peers[r].device;
    }
}

/* The sentence of what went wrong, with whose buffer it is. */
static enum twill_status refused(const struct tw_gpu *gpu, enum twill_status status,
                                 const char *name, const char *which, const void *at)
{
    char why[TW_ERROR_TEXT_BYTES];

    (void)snprintf(why, sizeof(why), "%s", tw_fail_text());
    if (status != TWILL_ERR_UNSUPPORTED)
        return tw_fail(status, "%s: %s %p on CUDA device %d: %.300s", name, which, at, gpu->device,
                       why);
    return tw_fail(status,
                   "%s: %s %p on CUDA device %d is not from cudaMalloc, and devices of other ranks "
                   "do not reach it: %.220s; let them in before (cuMemSetAccess, "
                   "cudaMemPoolSetAccess), or use memory from cudaMalloc",
                   name, which, at, gpu->device, why);
}

/* What a capture takes of a pool gets its access when the graph is made of it, which has been; and
 * whether that is so of a buffer CUDA does not say. */
static enum twill_status capture_check(const struct tw_gpu *gpu, void *const *stream,
                                       const struct tw_cuda_access *found)
{
    bool capturing = false;

    if (stream == NULL || found->origin == TW_CUDA_MAPPED)
        return TWILL_OK;
    enum twill_status status = tw_cuda_stream_capturing(gpu->device, *stream, &capturing);
    if (tw_failed(status) || !capturing)
        return status;
    if (found->origin == TW_CUDA_POOL)
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "device %d is not let into its pool, and the call is captured",
                       found->lacking);
    return tw_fail(TWILL_ERR_UNSUPPORTED, "whom CUDA lets into it is not known, and the call is "
                                          "captured");
}

/* stream: NULL: no call's */
static enum twill_status let_in(const struct tw_gpu *gpu, const void *at, size_t bytes,
                                void *const *stream)
{
    struct tw_cuda_access found;
    enum twill_status status =
        tw_cuda_access_find(gpu->device, at, bytes, gpu->others, gpu->nothers, &found);

    if (tw_failed(status) || (found.origin != TW_CUDA_OTHER && found.lacking < 0))
        return status;
    status = capture_check(gpu, stream, &found);
    if (tw_failed(status) || found.origin == TW_CUDA_OTHER)
        return status;
    return tw_cuda_access_give(gpu->device, at, bytes, gpu->others, gpu->nothers);
}

enum twill_status tw_gpu_let_in(const struct tw_gpu *gpu, const void *at, size_t bytes)
{
    return gpu->nothers > 0 ? let_in(gpu, at, bytes, NULL) : TWILL_OK;
}

/* ---- calls -------------------------------------------------------------------------------------
 */

/* A sender of this process writes to the output of a receive. */
static size_t p2p_bytes(const struct tw_gpu *gpu, const struct tw_call *call, bool in)
{
    const struct tw_call_info *info = &call->info;

    if (in || info->is_send || !gpu->here[info->peer] || info->peer == gpu->comm->rank)
        return 0;
    return info->count * tw_type_bytes(info->type);
}

static bool told(uint64_t word) { return word != 0 && (word & TW_GK_REGISTERED) == 0; }

/* What peers are told of, as tw_gpu_fill has it; registered memory they have been let into. */
static size_t coll_bytes(const struct tw_gpu *gpu, const struct tw_call *call, bool in)
{
    const struct tw_call_info *info = &call->info;
    const struct tw_coll_rule *rule = tw_coll_rule(info->coll);
    struct tw_gpu_shape shape;
    struct tw_gk_call wire;

    tw_gpu_shape(gpu, call, &shape);
    tw_gpu_fill(gpu, call, &shape, &wire);
    if (!told(in ? wire.in_word : wire.out_word))
        return 0;
    if (tw_gpu_varies(info->coll))
        return in ? 0 : tw_gpu_out_bytes(call);
    const size_t bytes = info->count * tw_type_bytes(info->type);
    return (in ? rule->in.many : rule->out.many) ? bytes * (size_t)gpu->comm->size : bytes;
}

enum twill_status tw_gpu_call_let_in(const char *name, const struct tw_call *call, bool in)
{
    const struct tw_gpu *gpu = call->comm->gpu;
    const void *at = in ? call->in : call->out;

    if (gpu->nothers == 0)
        return TWILL_OK;
    const size_t bytes =
        call->info.coll == TW_COLL_P2P ? p2p_bytes(gpu, call, in) : coll_bytes(gpu, call, in);
    void *stream = call->stream;
    const enum twill_status status = bytes > 0 ? let_in(gpu, at, bytes, &stream) : TWILL_OK;

    return tw_failed(status) ? refused(gpu, status, name, in ? "sendbuf" : "recvbuf", at) : status;
}
