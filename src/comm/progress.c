/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: queues of communicators and streams, and the one thread that runs them.
 * Never knows: what an item does. */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm/ops.h"

/*
 * One lock guards every queue; it is held for the moves of a few pointers only, never while an item
 * runs. An item may start when it heads its communicator's queue and each of its streams' first
 * waiting calls are of its own ticket. Both orders are those of submission, so they cannot form a
 * cycle.
 */
struct tw_progress {
    pthread_mutex_t lock;
    pthread_cond_t work; /* for the thread: something was queued, or stop */
    pthread_cond_t done; /* for callers: an item ended, or a communicator failed */
    pthread_t thread;
    bool thread_on;
    bool stop;
    uint64_t tickets;
    struct tw_ops *active; /* communicators with a queue, oldest first */
};

enum twill_status tw_progress_create(struct tw_progress **progress)
{
    struct tw_progress *p = tw_alloc(sizeof *p);
    if (!p)
        return TWILL_ERR_NOMEM;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    *progress = p;
    return TWILL_OK;
}

void tw_progress_destroy(struct tw_progress *progress)
{
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->stop = true;
    bool join = progress->thread_on;
    pthread_cond_signal(&progress->work);
    pthread_mutex_unlock(&progress->lock);
    if (join)
        pthread_join(progress->thread, NULL);
    pthread_cond_destroy(&progress->done);
    pthread_cond_destroy(&progress->work);
    pthread_mutex_destroy(&progress->lock);
    free(progress);
}

/* ---- under the lock ---------------------------------------------------------------------------
 */

static void active_add(struct tw_progress *progress, struct tw_ops *ops)
{
    struct tw_ops **at = &progress->active;
    while (*at)
        at = &(*at)->next_active;
    ops->next_active = NULL;
    *at = ops;
}

static void active_remove(struct tw_progress *progress, const struct tw_ops *ops)
{
    struct tw_ops **at = &progress->active;
    while (*at != ops)
        at = &(*at)->next_active;
    *at = ops->next_active;
}

static void stream_add(struct tw_stream *stream, struct tw_op *op)
{
    op->stream_next = NULL;
    if (stream->head)
        stream->tail->stream_next = op;
    else
        stream->head = op;
    stream->tail = op;
}

/* op is among those of the first ticket, unless its communicator has failed. */
static void stream_remove(struct tw_stream *stream, const struct tw_op *op)
{
    struct tw_op *before = NULL;
    for (struct tw_op *at = stream->head; at != op; at = at->stream_next)
        before = at;
    if (before)
        before->stream_next = op->stream_next;
    else
        stream->head = op->stream_next;
    if (stream->tail == op)
        stream->tail = before;
}

static void item_add(struct tw_progress *progress, struct tw_item *item)
{
    struct tw_ops *ops = item->comm->ops;
    item->next = NULL;
    if (ops->head) {
        ops->tail->next = item;
    } else {
        ops->head = item;
        active_add(progress, ops);
    }
    ops->tail = item;
    __atomic_fetch_add(&ops->pending, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < item->nops; i++) {
        item->ops[i].ticket = progress->tickets;
        if (item->ops[i].stream)
            stream_add(item->ops[i].stream, &item->ops[i]);
    }
}

static void stream_take_error(struct tw_stream *stream, const struct tw_item *item)
{
    if (!tw_failed(item->status) || tw_failed(stream->status))
        return;
    stream->status = item->status;
    snprintf(stream->text, sizeof stream->text, "%s", item->text);
}

static void item_finish(struct tw_progress *progress, struct tw_item *item)
{
    struct tw_ops *ops = item->comm->ops;
    for (uint32_t i = 0; i < item->nops; i++) {
        struct tw_stream *stream = item->ops[i].stream;
        if (!stream)
            continue;
        stream_remove(stream, &item->ops[i]);
        stream_take_error(stream, item);
        (void)tw_stream_settle(stream);
    }
    ops->head = item->next;
    if (!ops->head)
        active_remove(progress, ops);
    /* Release: whoever sees the queue empty may use the communicator's execs. */
    __atomic_fetch_sub(&ops->pending, 1, __ATOMIC_RELEASE);
    if (item->waited)
        item->done = true;
    else
        free(item);
}

/* What belongs to a failed communicator ends at once, whatever stands before it on its streams. */
static bool item_ready(const struct tw_item *item)
{
    if (tw_failed(tw_comm_status(item->comm)))
        return true;
    for (uint32_t i = 0; i < item->nops; i++) {
        const struct tw_stream *stream = item->ops[i].stream;
        if (stream && stream->head->ticket != item->ops[i].ticket)
            return false;
    }
    return true;
}

/* Heads that run or may start, chained by next_round. */
static struct tw_item *round_collect(const struct tw_progress *progress)
{
    struct tw_item *first = NULL, **last = &first;
    for (struct tw_ops *ops = progress->active; ops; ops = ops->next_active) {
        struct tw_item *item = ops->head;
        if (!item->started && !item_ready(item))
            continue;
        *last = item;
        last = &item->next_round;
    }
    *last = NULL;
    return first;
}

/* ---- the thread -------------------------------------------------------------------------------
 */

/* Moves each item once. @return those that ended, chained by next_round */
static struct tw_item *round_run(struct tw_item *round, bool *advanced,
                                 struct tw_patience *patience)
{
    struct tw_item *ended = NULL, **last = &ended;
    uint64_t now_ns = tw_now_ns();
    struct tw_item *next;
    for (struct tw_item *item = round; item; item = next) {
        next = item->next_round;
        *patience = tw_patience_both(*patience, item->comm->patience);
        if (tw_item_step(item, now_ns, advanced) == TWILL_INPROGRESS)
            continue;
        *last = item;
        last = &item->next_round;
    }
    *last = NULL;
    return ended;
}

static void *progress_main(void *argument)
{
    struct tw_progress *progress = argument;
    struct tw_backoff backoff;
    tw_backoff_init(&backoff, (struct tw_patience){0});
    pthread_mutex_lock(&progress->lock);
    for (;;) {
        struct tw_item *round = round_collect(progress);
        if (!round) {
            if (progress->stop)
                break;
            pthread_cond_wait(&progress->work, &progress->lock);
            tw_backoff_reset(&backoff);
            continue;
        }
        pthread_mutex_unlock(&progress->lock);
        bool advanced = false;
        struct tw_patience patience = TW_PATIENCE_NONE;
        struct tw_item *ended = round_run(round, &advanced, &patience);
        if (advanced) {
            tw_backoff_init(&backoff, patience);
        } else {
            tw_backoff_wait(&backoff);
        }
        pthread_mutex_lock(&progress->lock);
        struct tw_item *next;
        for (struct tw_item *item = ended; item; item = next) {
            next = item->next_round;
            item_finish(progress, item);
        }
        if (ended)
            pthread_cond_broadcast(&progress->done);
    }
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

/* ---- callers ----------------------------------------------------------------------------------
 */

static enum twill_status thread_start(struct tw_progress *progress)
{
    if (progress->thread_on)
        return TWILL_OK;
    /* The program's signals are for its own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&progress->thread, NULL, progress_main, progress);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return tw_fail_errno(TWILL_ERR_SYSTEM, error, "stream: cannot start the progress thread");
    progress->thread_on = true;
    return TWILL_OK;
}

enum twill_status tw_progress_submit(struct tw_progress *progress, struct tw_item *const *items,
                                     size_t count)
{
    pthread_mutex_lock(&progress->lock);
    enum twill_status status = thread_start(progress);
    if (!tw_failed(status)) {
        progress->tickets++;
        for (size_t i = 0; i < count; i++)
            item_add(progress, items[i]);
        pthread_cond_signal(&progress->work);
    }
    pthread_mutex_unlock(&progress->lock);
    return status;
}

void tw_progress_wait(struct tw_progress *progress, const struct tw_item *item)
{
    pthread_mutex_lock(&progress->lock);
    while (!item->done)
        pthread_cond_wait(&progress->done, &progress->lock);
    pthread_mutex_unlock(&progress->lock);
}

void tw_progress_drain(struct tw_progress *progress, const struct tw_ops *ops, bool failure_ends)
{
    pthread_mutex_lock(&progress->lock);
    while (ops->head && !(failure_ends && tw_failed(tw_comm_status(ops->comm))))
        pthread_cond_wait(&progress->done, &progress->lock);
    pthread_mutex_unlock(&progress->lock);
}

enum twill_status tw_progress_await(struct tw_progress *progress, const struct tw_stream *stream,
                                    const struct twill_comm *comm)
{
    enum twill_status status = TWILL_INPROGRESS;
    pthread_mutex_lock(&progress->lock);
    while (comm && stream->head && !tw_failed(tw_comm_status(comm)))
        pthread_cond_wait(&progress->done, &progress->lock);
    if (comm && tw_failed(tw_comm_status(comm)))
        status = tw_fail_again(tw_comm_status(comm), comm->failure);
    else if (!stream->head)
        status = tw_failed(stream->status) ? tw_fail_again(stream->status, stream->text) : TWILL_OK;
    pthread_mutex_unlock(&progress->lock);
    return status;
}

void tw_progress_lock(struct tw_progress *progress) { pthread_mutex_lock(&progress->lock); }

void tw_progress_unlock(struct tw_progress *progress, bool moved)
{
    if (moved) {
        pthread_cond_signal(&progress->work);
        pthread_cond_broadcast(&progress->done);
    }
    pthread_mutex_unlock(&progress->lock);
}

void tw_progress_sleep(struct tw_progress *progress)
{
    pthread_cond_wait(&progress->done, &progress->lock);
}

void tw_progress_mark(struct tw_progress *progress, struct tw_stream *stream, struct tw_op *op)
{
    op->ticket = ++progress->tickets;
    stream_add(stream, op);
    (void)tw_stream_settle(stream);
}

void tw_progress_wake(struct tw_progress *progress)
{
    pthread_mutex_lock(&progress->lock);
    pthread_cond_signal(&progress->work);
    pthread_cond_broadcast(&progress->done);
    pthread_mutex_unlock(&progress->lock);
}

enum twill_status tw_progress_stream(struct tw_progress *progress, struct tw_stream *stream,
                                     bool wait)
{
    enum twill_status status = TWILL_INPROGRESS;
    pthread_mutex_lock(&progress->lock);
    while (wait && stream->head)
        pthread_cond_wait(&progress->done, &progress->lock);
    if (!stream->head) {
        status = stream->status;
        stream->status = TWILL_OK;
        if (tw_failed(status))
            tw_last_error_set(0, stream->text);
    }
    pthread_mutex_unlock(&progress->lock);
    return status;
}
