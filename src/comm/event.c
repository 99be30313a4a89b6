/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: points in streams that other streams and threads wait for. Never knows: calls. */
#include "config.h"

#include <stdlib.h>

#include "comm/ops.h"

/*
 * A record puts a mark at the end of a stream; the mark is reached once it heads the stream. A wait
 * puts an op at the end of another stream that leaves it once the mark that the event had then is
 * reached. Marks are counted, so that event and streams may go in any order. All under the
 * progress engine's lock.
 */
struct tw_mark {
    uint32_t refs;
    bool reached;              /* atomic */
    struct tw_stream *waiters; /* streams that it heads as a wait */
};

#define TW_EVENT_MAGIC 0x7477736576656e74ull

struct tw_event {
    uint64_t magic;       /* TW_EVENT_MAGIC while alive */
    struct tw_proc *proc; /* referenced from the first mark on that may not be reached */
    struct tw_mark
        *mark; /* referenced: of the last record; NULL: none, or it was reached at once */
};

/* ---- marks ------------------------------------------------------------------------------------
 */

static void mark_put(struct tw_mark *mark)
{
    if (mark && --mark->refs == 0)
        free(mark);
}

static bool mark_reached(const struct tw_mark *mark)
{
    return !mark || __atomic_load_n(&mark->reached, __ATOMIC_ACQUIRE);
}

/* The streams that waited, chained. */
static struct tw_stream *mark_reach(struct tw_mark *mark)
{
    struct tw_stream *waiters = mark->waiters;
    mark->waiters = NULL;
    __atomic_store_n(&mark->reached, true, __ATOMIC_RELEASE);
    for (struct tw_stream *s = waiters; s; s = s->waiter_next)
        s->waits = false;
    return waiters;
}

static struct tw_stream *chain(struct tw_stream *first, struct tw_stream *rest)
{
    struct tw_stream **at = &first;
    while (*at)
        at = &(*at)->waiter_next;
    *at = rest;
    return first;
}

/* @return false: it stands before a mark that is not reached */
static bool head_leaves(struct tw_stream *stream, struct tw_stream **also)
{
    struct tw_op *op = stream->head;
    if (op->is_wait && !mark_reached(op->mark)) {
        if (!stream->waits) {
            stream->waits = true;
            stream->waiter_next = op->mark->waiters;
            op->mark->waiters = stream;
        }
        return false;
    }
    if (!op->is_wait)
        *also = chain(mark_reach(op->mark), *also);
    stream->head = op->stream_next;
    mark_put(op->mark);
    free(op);
    return true;
}

bool tw_stream_settle(struct tw_stream *stream)
{
    bool moved = false;
    if (stream->waits) /* it is in the list of a mark that is not reached */
        return false;
    stream->waiter_next = NULL;
    while (stream) {
        struct tw_stream *next = stream->waiter_next;
        stream->waiter_next = NULL;
        while (stream->head && stream->head->mark && head_leaves(stream, &next))
            moved = true;
        stream = next;
    }
    return moved;
}

/* Takes over a reference of mark, unless it fails. */
static enum twill_status mark_add(struct tw_stream *stream, struct tw_mark *mark, bool is_wait)
{
    struct tw_op *op = tw_alloc(sizeof *op);
    if (!op)
        return TWILL_ERR_NOMEM;
    op->mark = mark;
    op->is_wait = is_wait;
    op->stream = stream;
    tw_progress_mark(stream->proc->progress, stream, op);
    return TWILL_OK;
}

/* ---- events -----------------------------------------------------------------------------------
 */

enum twill_status tw_event_create(struct tw_event **event)
{
    struct tw_event *e = tw_alloc(sizeof *e);
    if (!e)
        return TWILL_ERR_NOMEM;
    e->magic = TW_EVENT_MAGIC;
    *event = e;
    return TWILL_OK;
}

bool tw_event_alive(const struct tw_event *event)
{
    return __atomic_load_n(&event->magic, __ATOMIC_ACQUIRE) == TW_EVENT_MAGIC;
}

static void mark_drop(struct tw_event *event)
{
    if (!event->mark)
        return;
    tw_progress_lock(event->proc->progress);
    mark_put(event->mark);
    event->mark = NULL;
    tw_progress_unlock(event->proc->progress, false);
}

void tw_event_destroy(struct tw_event *event)
{
    mark_drop(event);
    __atomic_store_n(&event->magic, 0, __ATOMIC_RELEASE);
    if (event->proc)
        tw_proc_put();
    free(event);
}

enum twill_status tw_event_record(struct tw_event *event, struct tw_stream *stream)
{
    if (!stream || !stream->proc) { /* it never had a call */
        mark_drop(event);
        return TWILL_OK;
    }
    enum twill_status status = event->proc ? TWILL_OK : tw_proc_get(&event->proc);
    if (tw_failed(status))
        return status;
    struct tw_mark *mark = tw_alloc(sizeof *mark);
    if (!mark)
        return TWILL_ERR_NOMEM;
    mark->refs = 2;
    tw_progress_lock(event->proc->progress);
    status = mark_add(stream, mark, false);
    if (!tw_failed(status)) {
        mark_put(event->mark);
        event->mark = mark;
    } else {
        free(mark);
    }
    tw_progress_unlock(event->proc->progress, true);
    return status;
}

enum twill_status tw_event_wait(struct tw_stream *stream, struct tw_event *event)
{
    if (!stream) {
        tw_event_synchronize(event);
        return TWILL_OK;
    }
    if (mark_reached(event->mark))
        return TWILL_OK;
    enum twill_status status = tw_stream_attach(stream);
    if (tw_failed(status))
        return status;
    tw_progress_lock(event->proc->progress);
    event->mark->refs++; /* before it may be reached */
    status = mark_add(stream, event->mark, true);
    if (tw_failed(status))
        event->mark->refs--;
    tw_progress_unlock(event->proc->progress, true);
    return status;
}

bool tw_event_reached(const struct tw_event *event) { return mark_reached(event->mark); }

void tw_event_synchronize(const struct tw_event *event)
{
    if (mark_reached(event->mark))
        return;
    tw_progress_lock(event->proc->progress);
    while (!mark_reached(event->mark))
        tw_progress_sleep(event->proc->progress);
    tw_progress_unlock(event->proc->progress, false);
}
