/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: epoll, one thread, callbacks under one lock. Never knows: what the descriptors are. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "comm/control.h"

/* ---- threads, conditions, timers ---------------------------------------------------------------
 */

enum twill_status tw_thread_start(pthread_t *thread, const char *name, void *(*fn)(void *),
                                  void *arg)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, fn, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, error, "thread \"%s\" does not start", name);
    (void)pthread_setname_np(*thread, name);
    return TWILL_OK;
}

void tw_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
}

bool tw_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns)
{
    if (deadline_ns == TW_NEVER) {
        (void)pthread_cond_wait(cond, lock);
        return true;
    }
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / TW_NS_S),
                             .tv_nsec = (long)(deadline_ns % TW_NS_S)};
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

enum twill_status tw_timer_open(int *fd, uint64_t after_ns)
{
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(after_ns / TW_NS_S),
                                           .tv_nsec = (long)(after_ns % TW_NS_S)}};

    if (after_ns == 0)
        when.it_value.tv_nsec = 1;
    *fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (*fd < 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "timer does not open");
    if (timerfd_settime(*fd, 0, &when, NULL) == 0)
        return TWILL_OK;
    int error = errno;
    (void)close(*fd);
    *fd = -1;
    return tw_fail_errno(TWILL_ERR_SYSTEM, error, "timer is not set");
}

/* ---- sources -----------------------------------------------------------------------------------
 */

static void wake_send(struct tw_loop *loop)
{
    const uint64_t one = 1;
    ssize_t written = write(loop->wake_fd, &one, sizeof(one));
    (void)written; /* a full counter wakes as well */
}

static void wake_on_event(struct tw_source *source, uint32_t events)
{
    uint64_t count = 0;
    ssize_t got = read(source->fd, &count, sizeof(count));

    (void)got;
    (void)events;
}

static enum twill_status slots_grow(struct tw_loop *loop)
{
    uint32_t more = loop->nslots > 0 ? loop->nslots * 2 : 16;
    struct tw_source **slots = realloc(loop->slots, more * sizeof(struct tw_source *));

    if (slots == NULL)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for %u watched descriptors", more);
    loop->slots = slots;
    uint32_t *generations = realloc(loop->generations, more * sizeof(*generations));
    if (generations == NULL)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for %u watched descriptors", more);
    loop->generations = generations;
    for (uint32_t i = loop->nslots; i < more; i++) {
        slots[i] = NULL;
        generations[i] = 1;
    }
    loop->nslots = more;
    return TWILL_OK;
}

enum twill_status tw_loop_watch(struct tw_loop *loop, struct tw_source *source, uint32_t events)
{
    uint32_t i = 0;

    while (i < loop->nslots && loop->slots[i] != NULL)
        i++;
    if (i == loop->nslots) {
        enum twill_status status = slots_grow(loop);
        if (status != TWILL_OK)
            return status;
    }
    uint64_t key = (uint64_t)loop->generations[i] << 32 | i;
    struct epoll_event event = {.events = events, .data.u64 = key};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) != 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "descriptor %d cannot be watched",
                             source->fd);
    loop->slots[i] = source;
    source->key = key;
    return TWILL_OK;
}

void tw_loop_unwatch(struct tw_loop *loop, struct tw_source *source)
{
    uint32_t i = (uint32_t)source->key;

    if (source->key == 0)
        return;
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    loop->slots[i] = NULL;
    loop->generations[i]++;
    if (loop->generations[i] == 0)
        loop->generations[i] = 1;
    source->key = 0;
}

static void event_dispatch(struct tw_loop *loop, const struct epoll_event *event)
{
    uint32_t i = (uint32_t)event->data.u64;
    uint32_t generation = (uint32_t)(event->data.u64 >> 32);

    if (i < loop->nslots && loop->slots[i] != NULL && loop->generations[i] == generation)
        loop->slots[i]->on_event(loop->slots[i], event->events);
}

/* ---- laters and tasks --------------------------------------------------------------------------
 */

void tw_loop_later(struct tw_loop *loop, struct tw_later *later)
{
    if (later->queued)
        return;
    later->queued = true;
    later->next = NULL;
    if (loop->last != NULL)
        loop->last->next = later;
    else
        loop->first = later;
    loop->last = later;
    wake_send(loop);
}

void tw_loop_forget(struct tw_loop *loop, struct tw_later *later)
{
    struct tw_later *before = NULL;

    for (struct tw_later *at = loop->first; at != NULL && later->queued; at = at->next) {
        if (at == later) {
            *(before != NULL ? &before->next : &loop->first) = at->next;
            if (loop->last == at)
                loop->last = before;
            later->queued = false;
        }
        before = at;
    }
    while (later->running)
        (void)pthread_cond_wait(&loop->changed, &loop->lock);
}

/* The later's memory may be gone once it has run, unless somebody waits in tw_loop_forget. */
static void laters_run(struct tw_loop *loop)
{
    while (loop->first != NULL) {
        struct tw_later *later = loop->first;
        loop->first = later->next;
        if (loop->first == NULL)
            loop->last = NULL;
        later->queued = false;
        later->running = true;
        tw_loop_unlock(loop);
        later->run(later);
        tw_loop_lock(loop);
        (void)pthread_cond_broadcast(&loop->changed);
    }
}

struct task {
    struct tw_later join; /* first: tasks are freed by their joining */
    struct tw_loop *loop;
    pthread_t thread;
    void (*fn)(void *arg);
    void *arg;
};

static void *task_main(void *arg)
{
    struct task *task = arg;

    task->fn(task->arg);
    tw_loop_lock(task->loop);
    tw_loop_later(task->loop, &task->join);
    tw_loop_unlock(task->loop);
    return NULL;
}

static void task_join(struct tw_later *later)
{
    struct task *task = (struct task *)(void *)later;

    (void)pthread_join(task->thread, NULL);
    tw_loop_lock(task->loop);
    task->loop->tasks--;
    task->join.running = false;
    tw_loop_unlock(task->loop);
    free(task);
}

enum twill_status tw_loop_spawn(struct tw_loop *loop, void (*fn)(void *arg), void *arg)
{
    struct task *task = tw_alloc(sizeof(*task));

    if (task == NULL)
        return TWILL_ERR_NOMEM;
    task->join.run = task_join;
    task->loop = loop;
    task->fn = fn;
    task->arg = arg;
    /* the lock is held: the task cannot queue its joining before `thread` is written */
    enum twill_status status = tw_thread_start(&task->thread, "twill-greet", task_main, task);
    if (status != TWILL_OK) {
        free(task);
        return status;
    }
    loop->tasks++;
    return TWILL_OK;
}

/* ---- the thread --------------------------------------------------------------------------------
 */

static void *loop_main(void *arg)
{
    struct tw_loop *loop = arg;
    bool stop = false;

    while (!stop) {
        struct epoll_event event;
        /* one event at a time, so that no callback can make a later event of a batch stale */
        int count = epoll_wait(loop->epoll_fd, &event, 1, -1);
        tw_loop_lock(loop);
        if (count == 1)
            event_dispatch(loop, &event);
        laters_run(loop);
        stop = loop->stop;
        tw_loop_unlock(loop);
    }
    return NULL;
}

static void loop_free(struct tw_loop *loop)
{
    if (loop->wake_fd >= 0)
        (void)close(loop->wake_fd);
    if (loop->epoll_fd >= 0)
        (void)close(loop->epoll_fd);
    (void)pthread_cond_destroy(&loop->changed);
    (void)pthread_mutex_destroy(&loop->lock);
    free(loop->slots);
    free(loop->generations);
    free(loop);
}

enum twill_status tw_loop_create(struct tw_loop **out)
{
    struct tw_loop *loop = tw_alloc(sizeof(*loop));

    if (loop == NULL)
        return TWILL_ERR_NOMEM;
    (void)pthread_mutex_init(&loop->lock, NULL);
    tw_cond_init(&loop->changed);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->wake = (struct tw_source){.fd = loop->wake_fd, .on_event = wake_on_event};
    enum twill_status status = TWILL_OK;
    if (loop->epoll_fd < 0 || loop->wake_fd < 0)
        status = tw_fail_errno(TWILL_ERR_SYSTEM, errno, "control thread: no descriptor");
    if (status == TWILL_OK)
        status = tw_loop_watch(loop, &loop->wake, EPOLLIN);
    if (status == TWILL_OK)
        status = tw_thread_start(&loop->thread, "twill-control", loop_main, loop);
    if (status != TWILL_OK) {
        loop_free(loop);
        return status;
    }
    *out = loop;
    return TWILL_OK;
}

void tw_loop_destroy(struct tw_loop *loop)
{
    if (loop == NULL)
        return;
    tw_loop_lock(loop);
    while (loop->tasks > 0)
        (void)pthread_cond_wait(&loop->changed, &loop->lock);
    loop->stop = true;
    wake_send(loop);
    tw_loop_unlock(loop);
    (void)pthread_join(loop->thread, NULL);
    loop_free(loop);
}
