/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: when one thread sends and receives the same messages in a group, and what becomes of them
 * then: copies, with messages of nothing before and behind.
 * Never knows: how kernels send.
 *
 * The receiver sends a message of nothing when it has come to its receive; the sender copies, and
 * sends one when that is done. So numbers, late ranks and graphs are as they are without copies.
 * Where both streams are in one capture, or in none, events keep the copy between the receive's
 * coming and its end, whatever becomes of the messages.
 */
#include "config.h"

#include "comm/gpu_copy_p2p.h"

#include <stdlib.h>

#include "base/cuda.h"
#include "base/mem.h"

/* What goes from one rank to another, in the group. */
struct list {
    const struct tw_call *calls;
    size_t count;
    const struct tw_cuda_stream *found; /* [count]: of the calls' streams */
    const struct tw_call *first;        /* a send of the list */
};

static bool is_p2p(const struct tw_call *call)
{
    return tw_gpu_serves(call) && call->info.coll == TW_COLL_P2P;
}

static uint64_t bytes_of(const struct tw_call *call)
{
    return call->info.count * tw_type_bytes(call->info.type);
}

/* A send that may be copied, as far as it is known alone. */
static bool is_large(const struct tw_call *call)
{
    if (!is_p2p(call) || !call->info.is_send || call->info.peer == call->comm->rank)
        return false;
    const struct tw_gpu *gpu = call->comm->gpu;

    return gpu->copy_from != 0 && !gpu->cut && gpu->here[call->info.peer] &&
           bytes_of(call) >= gpu->copy_from;
}

/* ---- lists -------------------------------------------------------------------------------------
 */

static bool in_list(const struct list *list, const struct tw_call *call, bool is_send)
{
    const int from = list->first->comm->rank, to = list->first->info.peer;

    return is_p2p(call) && call->comm->id_hash == list->first->comm->id_hash &&
           call->info.is_send == is_send && call->comm->rank == (is_send ? from : to) &&
           call->info.peer == (is_send ? to : from);
}

/* Place of the next one from `at` on; count: there is none. */
static size_t next_in(const struct list *list, bool is_send, size_t at)
{
    while (at < list->count && !in_list(list, &list->calls[at], is_send))
        at++;
    return at;
}

/* What went between the two before this group has gone from both, as far as the host knows. */
static bool is_even(const struct tw_call *send, const struct tw_call *recv)
{
    const struct tw_gpu *from = send->comm->gpu, *to = recv->comm->gpu;
    const int there = send->info.peer, back = recv->info.peer;

    return to != NULL && from->given[there][1] == to->given[back][0] &&
           from->given[there][0] == to->given[back][1];
}

static bool is_pair(const struct list *list, size_t send, size_t recv)
{
    const struct tw_call *from = &list->calls[send], *to = &list->calls[recv];

    return is_large(from) && from->info.count == to->info.count &&
           from->info.type == to->info.type &&
           list->found[send].capturing == list->found[recv].capturing && is_even(from, to);
}

/* All of a list, or nothing. */
static void list_take(const struct list *list, struct tw_gpu_sends *sends)
{
    size_t send = next_in(list, true, 0), recv = next_in(list, false, 0);
    const size_t before = sends->count;

    while (send < list->count && recv < list->count && is_pair(list, send, recv)) {
        sends->all[sends->count++] =
            (struct tw_gpu_send){.send = &list->calls[send],
                                 .recv = &list->calls[recv],
                                 .joined = list->found[send].capture == list->found[recv].capture};
        send = next_in(list, true, send + 1);
        recv = next_in(list, false, recv + 1);
    }
    if (send < list->count || recv < list->count)
        sends->count = before;
}

static bool is_taken(const struct tw_gpu_sends *sends, const struct tw_call *call)
{
    for (size_t i = 0; i < sends->count; i++)
        if (sends->all[i].send == call || sends->all[i].recv == call)
            return true;
    return false;
}

/* Streams of which some are captured and some are not are an error, which is for others to find. */
static bool streams_look(const struct tw_call *calls, size_t count, struct tw_cuda_stream *found)
{
    const struct tw_cuda_stream *first = NULL;

    for (size_t i = 0; i < count; i++) {
        if (!is_p2p(&calls[i]))
            continue;
        if (tw_failed(
                tw_cuda_stream_look(calls[i].comm->gpu->device, calls[i].stream, &found[i])) ||
            (first != NULL && first->capturing != found[i].capturing))
            return false;
        first = &found[i];
    }
    return true;
}

static void lists_take(const struct tw_call *calls, size_t count,
                       const struct tw_cuda_stream *found, struct tw_gpu_sends *sends)
{
    for (size_t i = 0; i < count; i++) {
        const struct list list = {calls, count, found, &calls[i]};

        if (is_large(&calls[i]) && !is_taken(sends, &calls[i]))
            list_take(&list, sends);
    }
}

/* ---- messages of nothing -----------------------------------------------------------------------
 */

static struct tw_call nothing(const struct tw_call *call, bool is_send)
{
    struct tw_call made = *call;

    made.info.is_send = is_send;
    made.info.count = 0;
    made.in = NULL;
    made.out = NULL;
    return made;
}

static void messages_make(const struct tw_call *calls, size_t count, struct tw_gpu_sends *sends)
{
    for (size_t i = 0; i < sends->count; i++) {
        sends->ready[2 * i] = nothing(sends->all[i].recv, true);
        sends->ready[2 * i + 1] = nothing(sends->all[i].send, false);
    }
    for (size_t i = 0; i < count; i++)
        sends->rest[i] = is_p2p(&calls[i]) && is_taken(sends, &calls[i])
                             ? nothing(&calls[i], calls[i].info.is_send)
                             : calls[i];
}

enum twill_status tw_gpu_sends_find(const struct tw_call *calls, size_t count,
                                    struct tw_gpu_sends *sends)
{
    struct tw_cuda_stream *found = NULL;
    bool some = false;

    *sends = (struct tw_gpu_sends){0};
    for (size_t i = 0; i < count; i++)
        some |= is_large(&calls[i]);
    if (!some)
        return TWILL_OK;
    found = tw_alloc(count * sizeof(*found));
    sends->all = tw_alloc(count * sizeof(*sends->all));
    sends->ready = tw_alloc(2 * count * sizeof(*sends->ready));
    sends->rest = tw_alloc(count * sizeof(*sends->rest));
    const bool room =
        found != NULL && sends->all != NULL && sends->ready != NULL && sends->rest != NULL;
    if (room && streams_look(calls, count, found))
        lists_take(calls, count, found, sends);
    free(found);
    if (room && sends->count > 0)
        messages_make(calls, count, sends);
    return room ? TWILL_OK : TWILL_ERR_NOMEM;
}

void tw_gpu_sends_free(struct tw_gpu_sends *sends)
{
    free(sends->all);
    free(sends->ready);
    free(sends->rest);
}

/* ---- copies ------------------------------------------------------------------------------------
 */

/* What comes later in one call's stream comes after what the other's has now. */
static enum twill_status join(const struct tw_call *from, void *event, const struct tw_call *to)
{
    enum twill_status status = tw_cuda_event_record(from->comm->gpu->device, event, from->stream);

    if (tw_failed(status))
        return status;
    return tw_cuda_event_await(to->comm->gpu->device, event, to->stream);
}

static enum twill_status copies(const struct tw_gpu_sends *sends)
{
    enum twill_status status = TWILL_OK;

    for (size_t i = 0; i < sends->count && !tw_failed(status); i++) {
        const struct tw_gpu_send *one = &sends->all[i];

        if (one->joined)
            status = join(one->recv, one->recv->comm->gpu->arrived, one->send);
    }
    for (size_t i = 0; i < sends->count && !tw_failed(status); i++) {
        const struct tw_gpu_send *one = &sends->all[i];

        status = tw_cuda_copy(one->send->comm->gpu->device, one->recv->out, one->send->in,
                              bytes_of(one->send), one->send->stream);
    }
    for (size_t i = 0; i < sends->count && !tw_failed(status); i++) {
        const struct tw_gpu_send *one = &sends->all[i];

        if (one->joined)
            status = join(one->send, one->send->comm->gpu->copied, one->recv);
    }
    return status;
}

void tw_gpu_sends_fail(const struct tw_gpu_sends *sends, enum twill_status status)
{
    for (size_t i = 0; i < sends->count; i++)
        tw_comm_fail(sends->all[i].send->comm, status, "%s", tw_fail_text());
}

enum twill_status tw_gpu_sends_start(const struct tw_gpu_sends *sends, struct tw_gpu_batch *batches)
{
    enum twill_status status = tw_gpu_batches_start(batches, 2 * sends->count);

    return tw_failed(status) ? status : copies(sends);
}
