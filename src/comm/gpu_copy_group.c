/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: when one thread makes a collective's calls of all ranks in a group, and how their streams
 * wait for each other then.
 * Never knows: how a call is copied.
 *
 * The kernels before and behind the copies see to order as long as nothing fails. Where a call is
 * given up, its copies are done all the same: events make sure that then too they neither begin
 * before the rank that they write to has come to the call, nor are under way when its stream has
 * gone on. So what holds of other calls' buffers holds of these.
 */
#include "config.h"

#include "comm/gpu_copy.h"

#include <stdlib.h>

#include "base/cuda.h"
#include "base/mem.h"

/* ---- sets --------------------------------------------------------------------------------------
 */

static bool is_collective(const struct tw_call *call)
{
    return tw_gpu_serves(call) && call->info.coll != TW_COLL_P2P;
}

static bool same_comm(const struct tw_call *a, const struct tw_call *b)
{
    return is_collective(a) && is_collective(b) && a->comm->id_hash == b->comm->id_hash &&
           a->comm->size == b->comm->size;
}

static bool same_call(const struct tw_call *a, const struct tw_call *b)
{
    return a->info.coll == b->info.coll && a->info.count == b->info.count &&
           a->info.type == b->info.type && a->info.root == b->info.root &&
           tw_gpu_copy_serves(b->comm->gpu, b);
}

/* The calls of all ranks that are as many collectives behind the group's begin as call `at`, which
 * is the first of them: each rank's earlier ones come before all of these, so that they can be
 * started in the group's order. False: there are no such calls. */
static bool set_fill(const struct tw_call *calls, size_t count, size_t at, struct tw_gpu_set *set)
{
    const int size = calls[at].comm->size;
    size_t seen[TW_GK_RANKS_MAX] = {0}, place = 0;
    int found = 0;

    *set = (struct tw_gpu_set){.first = at};
    for (size_t i = 0; i < at; i++)
        place += same_comm(&calls[i], &calls[at]) && calls[i].comm == calls[at].comm;
    for (size_t i = 0; i < count && found < size; i++) {
        if (!same_comm(&calls[i], &calls[at]))
            continue;
        const int rank = calls[i].comm->rank;
        const bool is_it = seen[rank]++ == place;
        if (is_it != (i >= at))
            return false;
        if (!is_it)
            continue;
        if (!same_call(&calls[at], &calls[i]))
            return false;
        set->calls[rank] = &calls[i];
        set->last = i;
        found++;
    }
    return found == size;
}

enum twill_status tw_gpu_sets_find(const struct tw_call *calls, size_t count,
                                   struct tw_gpu_set **sets)
{
    struct tw_gpu_set **end = sets, *set = NULL;

    *sets = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct tw_call *call = &calls[i];

        if (!is_collective(call) || !call->comm->gpu->all_here ||
            !tw_gpu_copy_serves(call->comm->gpu, call) || tw_gpu_set_of(*sets, call) != NULL)
            continue;
        if (set == NULL && (set = tw_alloc(sizeof(*set))) == NULL) {
            tw_gpu_sets_free(*sets);
            *sets = NULL;
            return TWILL_ERR_NOMEM;
        }
        if (!set_fill(calls, count, i, set))
            continue;
        *end = set;
        end = &set->next;
        set = NULL;
    }
    free(set);
    return TWILL_OK;
}

void tw_gpu_sets_free(struct tw_gpu_set *sets)
{
    while (sets != NULL) {
        struct tw_gpu_set *set = sets;

        sets = set->next;
        free(set);
    }
}

struct tw_gpu_set *tw_gpu_set_of(struct tw_gpu_set *sets, const struct tw_call *call)
{
    while (sets != NULL && sets->calls[call->comm->rank] != call)
        sets = sets->next;
    return sets;
}

/* ---- streams -----------------------------------------------------------------------------------
 */

static bool is_rooted(const struct tw_call *call) { return tw_coll_rule(call->info.coll)->rooted; }

/* Does one rank's call write to the other's output? */
static bool writes(const struct tw_call *from, const struct tw_call *to)
{
    const enum tw_coll coll = from->info.coll;
    const int root = from->info.root;

    if (from->comm->gpu->team == to->comm->gpu->team) /* one stream has both */
        return false;
    return !is_rooted(from) || (coll == TW_COLL_GATHER ? to : from)->comm->rank == root;
}

/* Where the rank's call will be, behind its last one. */
static enum twill_status arrive(const struct tw_call *call, struct tw_cuda_stream *found)
{
    struct tw_gpu *gpu = call->comm->gpu;
    struct tw_gpu_launch launch = {.stream = call->stream};

    enum twill_status status = tw_cuda_stream_look(gpu->device, call->stream, &launch.found);
    *found = launch.found;
    if (!tw_failed(status))
        status = tw_gpu_stream_follow(gpu, &launch);
    return tw_failed(status) ? status
                             : tw_cuda_event_record(gpu->device, gpu->arrived, call->stream);
}

enum twill_status tw_gpu_set_arrive(struct tw_gpu_set *set)
{
    const int size = set->calls[0]->comm->size;
    struct tw_cuda_stream first = {0};
    enum twill_status status = TWILL_OK;

    set->joined = true;
    for (int r = 0; r < size && !tw_failed(status); r++) {
        struct tw_cuda_stream found = {0};

        status = arrive(set->calls[r], &found);
        if (r == 0)
            first = found;
        set->joined &= found.capturing == first.capturing && found.capture == first.capture;
    }
    return status;
}

void tw_gpu_set_await(const struct tw_gpu_set *set, const struct tw_call *call,
                      struct tw_gpu_copies *copies)
{
    for (int r = 0; r < call->comm->size; r++)
        if (set->joined && writes(call, set->calls[r]))
            copies->after[r] = set->calls[r]->comm->gpu->arrived;
}

/* The rank's stream, and what comes behind its call in others. */
static enum twill_status part(const struct tw_gpu_set *set, const struct tw_call *call)
{
    struct tw_gpu *gpu = call->comm->gpu;
    enum twill_status status = TWILL_OK;
    struct tw_cuda_stream found;
    bool waits = false;

    for (int r = 0; r < call->comm->size && !tw_failed(status); r++) {
        if (!writes(set->calls[r], call))
            continue;
        status = tw_cuda_event_await(gpu->device, set->calls[r]->comm->gpu->copied, call->stream);
        waits = true;
    }
    if (!waits || tw_failed(status))
        return status;
    status = tw_cuda_stream_look(gpu->device, call->stream, &found);
    if (tw_failed(status) || found.capturing)
        return status;
    return tw_cuda_event_record(gpu->device, gpu->done, call->stream);
}

enum twill_status tw_gpu_set_part(const struct tw_gpu_set *set)
{
    enum twill_status status = TWILL_OK;

    for (int r = 0; r < set->calls[0]->comm->size && !tw_failed(status); r++)
        if (set->joined && !tw_failed(set->status))
            status = part(set, set->calls[r]);
    return status;
}
