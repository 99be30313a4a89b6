/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a collective begins and ends whose data copy engines move in between.
 * Never knows: what is moved, who copies it.
 *
 * Two kernels of one block for each rank are one call. The first begins it and ends once the peers
 * are in the same call, so that copies behind it may write to their outputs; the second tells them
 * that this rank's copies are over and ends when theirs are. Only the second moves the epoch on.
 */
#include "device/cuda/call.cuh"
#include "device/cuda/data.cuh"
#include "device/cuda/kernels.cuh"

/* Where peer's record says that this rank's block goes is where the host copies it to: both have
 * the same registration, as far from its start. What the record says of an address in one process
 * the host has read itself. */
static __device__ inline bool lies_as_promised(const struct tw_block *me, const uint32_t *words)
{
    const struct tw_gk_call *call = me->call;
    const uint64_t own = call->out_word + (uint64_t)call->rank * call->out_stride;

    return (call->out_word & TW_GK_REGISTERED) == 0 || tw_is_number(&words[TW_GK_WORD_OUT], own);
}

__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_gk_copy_begin(const __grid_constant__ struct tw_gk_launch launch)
{
    const int peer = (int)threadIdx.x;
    uint32_t words[TW_GK_WORDS];
    struct tw_block me;

    tw_begin(&launch, nullptr, &me);
    if (peer >= me.call->size || peer == me.call->rank)
        return;
    tw_compare_before(&me, peer);
    if (!tw_has(me.call->sends | me.call->takes, peer) || !tw_record_match(&me, peer, words))
        return;
    if (tw_has(me.call->sends, peer) && !lies_as_promised(&me, words))
        tw_fail_here(&me, peer, TW_GK_ELSEWHERE, words);
}

__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_gk_copy_end(const __grid_constant__ struct tw_gk_launch launch)
{
    struct tw_block me;

    tw_resume(&launch, nullptr, &me);
    /* who has failed may have copied before the peers' calls began: nobody is to rely on that */
    tw_part(&me, tw_failed(&me) ? 0 : me.call->sends, me.call->takes);
    tw_end(&me);
}

/* What the rank sends to itself, beside the copies of the others: it waits for nobody. */
__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_gk_copy_own(const __grid_constant__ struct tw_gk_launch launch)
{
    const struct tw_gk_call *call = &launch.call[blockIdx.y];
    const char *in = call->in + (uint64_t)call->rank * call->in_stride;
    char *out = call->out + (uint64_t)call->rank * call->out_stride;

    if (tw_has(call->sends & call->takes, call->rank) && in != out)
        tw_copy(out, in, call->bytes, blockIdx.x * blockDim.x + threadIdx.x,
                gridDim.x * blockDim.x);
}
