/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a communicator's life and its one sticky failure.
 * Never knows: how ranks find each other, what operations do. */
#include "config.h"

#include "comm/comm.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "comm/bootstrap.h"
#include "comm/control.h"
#include "comm/gpu.h"
#include "comm/split.h"

/* ---- failing -----------------------------------------------------------------------------------
 */

bool tw_comm_mark(struct twill_comm *comm, enum twill_status status, const char *text)
{
    (void)pthread_mutex_lock(&comm->lock);
    bool first = comm->failing == TWILL_OK;
    if (first) {
        (void)snprintf(comm->failure, sizeof(comm->failure), "%s", text);
        comm->failing = status;
    }
    (void)pthread_mutex_unlock(&comm->lock);
    /* For peers that see this process end before they hear why. */
    if (first && __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) != TW_COMM_INIT)
        tw_record_life(comm, TW_LIFE_FAILED);
    return first;
}

void tw_comm_publish(struct twill_comm *comm)
{
    const uint64_t one = 1;

    (void)pthread_mutex_lock(&comm->lock);
    __atomic_store_n(&comm->status, (int)comm->failing, __ATOMIC_RELEASE);
    ssize_t written = write(comm->cancel_fd, &one, sizeof(one));
    (void)written; /* readable already */
    (void)pthread_mutex_unlock(&comm->lock);
    struct tw_gpu *gpu = __atomic_load_n(&comm->gpu, __ATOMIC_ACQUIRE); /* init may be making it */
    if (gpu != NULL)
        tw_gpu_stop(gpu);
}

void tw_comm_fail_text(struct twill_comm *comm, enum twill_status status, const char *text)
{
    tw_loop_lock(comm->ctl->loop);
    tw_ctl_fail(comm->ctl, NULL, status, text);
    tw_loop_unlock(comm->ctl->loop);
}

void tw_comm_fail(struct twill_comm *comm, enum twill_status status, const char *format, ...)
{
    char text[TW_ERROR_TEXT_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (tw_comm_status(comm) != TWILL_OK)
        return;
    (void)tw_fail(status, "%s", text);
    tw_comm_fail_text(comm, status, text);
}

void tw_comm_abort(struct twill_comm *comm)
{
    char text[TW_ERROR_TEXT_BYTES];

    __atomic_store_n(&comm->aborted, true, __ATOMIC_RELEASE);
    (void)snprintf(text, sizeof(text), "communicator %s was aborted by rank %d", comm->args.name,
                   tw_comm_rank_now(comm));
    tw_comm_fail_text(comm, TWILL_ERR_ABORTED, text);
}

int tw_comm_rank_now(struct twill_comm *comm)
{
    tw_loop_lock(comm->ctl->loop);
    int rank = comm->rank;
    tw_loop_unlock(comm->ctl->loop);
    return rank;
}

/* ---- coming ------------------------------------------------------------------------------------
 */

enum twill_status tw_comm_prepare(const struct tw_comm_args *args, struct twill_comm **out)
{
    struct twill_comm *comm = tw_alloc(sizeof(*comm));

    if (comm == NULL)
        return TWILL_ERR_NOMEM;
    comm->args = *args;
    comm->args.name[sizeof(comm->args.name) - 1] = '\0';
    tw_random(&comm->key, sizeof(comm->key));
    comm->rank = args->rank;
    comm->size = args->size;
    (void)pthread_mutex_init(&comm->lock, NULL);
    enum twill_status status = tw_proc_get(&comm->proc);
    if (status != TWILL_OK)
        goto err_free;
    comm->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (comm->cancel_fd < 0) {
        status = tw_fail_errno(TWILL_ERR_SYSTEM, errno, "eventfd does not open");
        goto err_proc_put;
    }
    status = tw_ctl_create(comm);
    if (status != TWILL_OK)
        goto err_close;
    comm->magic = TW_COMM_MAGIC;
    *out = comm;
    return TWILL_OK;

err_close:
    (void)close(comm->cancel_fd);
err_proc_put:
    tw_proc_put();
err_free:
    (void)pthread_mutex_destroy(&comm->lock);
    sodium_memzero(comm, sizeof(*comm));
    free(comm);
    return status;
}

/* Whoever fails it holds the loop's lock until the status is there to be seen. */
static enum twill_status status_settled(struct twill_comm *comm)
{
    tw_loop_lock(comm->ctl->loop);
    tw_loop_unlock(comm->ctl->loop);
    return tw_comm_status(comm);
}

/* READY and failed exclude each other: a failure that comes first keeps the communicator in INIT,
 * where nobody can wait for it. */
static enum twill_status ready_or_failed(struct twill_comm *comm)
{
    (void)pthread_mutex_lock(&comm->lock);
    bool ready = comm->failing == TWILL_OK;
    if (ready)
        __atomic_store_n(&comm->state, TW_COMM_READY, __ATOMIC_RELEASE);
    (void)pthread_mutex_unlock(&comm->lock);
    if (ready)
        return TWILL_OK;
    return status_settled(comm);
}

static enum twill_status init_run(struct twill_comm *comm)
{
    enum twill_status status = comm->origin != NULL ? tw_split_ready(comm) : TWILL_OK;
    char text[TW_ERROR_TEXT_BYTES];

    if (status == TWILL_OK)
        status = tw_boot_run(comm);
    /* A wait that was cut short ends with ABORTED: the communicator's own failure says why. */
    if (status != TWILL_OK && status_settled(comm) != TWILL_OK)
        status = tw_fail_again(tw_comm_status(comm), comm->failure);
    if (status != TWILL_OK && comm->args.derived && comm->args.own_id)
        tw_id_give_up(&comm->args.id, status, tw_fail_text());
    sodium_memzero(&comm->args.id, sizeof(comm->args.id));
    if (comm->args.shrinks)
        tw_shrink_over(comm);
    tw_split_put(comm->origin);
    comm->origin = NULL;
    if (status == TWILL_OK)
        return ready_or_failed(comm);
    if (status == TWILL_ERR_PEER)
        tw_ctl_news(comm);
    if (status_settled(comm) == TWILL_OK) {
        (void)snprintf(text, sizeof(text), "rank %d: %.*s", comm->rank, TW_ERROR_TEXT_BYTES - 32,
                       tw_fail_text());
        tw_comm_fail_text(comm, status, text);
    }
    return tw_comm_status(comm);
}

static void *init_main(void *arg)
{
    (void)init_run(arg);
    return NULL;
}

static enum twill_status init_start(struct twill_comm *comm)
{
    enum twill_status status = tw_thread_start(&comm->init_thread, "twill-init", init_main, comm);

    comm->init_thread_on = status == TWILL_OK;
    return status;
}

static void init_join(struct twill_comm *comm)
{
    if (comm->init_thread_on)
        (void)pthread_join(comm->init_thread, NULL);
    comm->init_thread_on = false;
}

enum twill_status tw_comm_connect(struct twill_comm *const *comms, int count, bool wait)
{
    enum twill_status first = TWILL_OK;
    char text[TW_ERROR_TEXT_BYTES];

    if (wait && count == 1)
        return init_run(comms[0]);
    for (int i = 0; i < count && first == TWILL_OK; i++)
        first = init_start(comms[i]);
    if (first != TWILL_OK) {
        /* those that run would wait for those that cannot */
        (void)snprintf(text, sizeof(text), "init: %.*s", TW_ERROR_TEXT_BYTES - 16, tw_fail_text());
        for (int i = 0; i < count; i++)
            tw_comm_fail_text(comms[i], first, text);
    }
    if (!wait)
        return first == TWILL_OK ? TWILL_INPROGRESS : first;
    for (int i = 0; i < count; i++) {
        init_join(comms[i]);
        if (first == TWILL_OK)
            first = tw_comm_status(comms[i]);
    }
    return first;
}

/* ---- going -------------------------------------------------------------------------------------
 */

static enum twill_status finalize_run(struct twill_comm *comm)
{
    uint64_t deadline_ns = tw_deadline_ns(comm->proc->params->timeout_ns);
    enum twill_status status = tw_ops_drain(comm);

    if (status == TWILL_OK && comm->gpu != NULL)
        status = tw_gpu_drain(comm->gpu);
    if (status == TWILL_OK) {
        tw_record_life(comm, TW_LIFE_FINALIZING);
        status = tw_ctl_finalize(comm, deadline_ns);
    }
    if (status == TWILL_OK)
        __atomic_store_n(&comm->state, TW_COMM_FINALIZED, __ATOMIC_RELEASE);
    return status;
}

static void *finalize_main(void *arg)
{
    (void)finalize_run(arg);
    return NULL;
}

enum twill_status tw_comm_finalize(struct twill_comm *comm)
{
    int ready = TW_COMM_READY;

    if (tw_comm_status(comm) != TWILL_OK)
        return tw_comm_status(comm);
    if (!__atomic_compare_exchange_n(&comm->state, &ready, TW_COMM_FINALIZING, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return tw_fail(TWILL_ERR_USAGE, "finalize: communicator %s %s", comm->args.name,
                       ready == TW_COMM_INIT ? "is still in init" : "was finalized already");
    if (comm->args.blocking != 0)
        return finalize_run(comm);
    init_join(comm); /* READY: it has ended */
    enum twill_status status =
        tw_thread_start(&comm->init_thread, "twill-finalize", finalize_main, comm);
    comm->init_thread_on = status == TWILL_OK;
    if (status == TWILL_OK)
        return TWILL_INPROGRESS;
    __atomic_store_n(&comm->state, TW_COMM_READY, __ATOMIC_RELEASE);
    return status;
}

/* A thread of this communicator's own that still runs is told to stop. */
static void thread_stop(struct twill_comm *comm)
{
    int state = __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE);
    char text[TW_ERROR_TEXT_BYTES];

    if (comm->init_thread_on && (state == TW_COMM_INIT || state == TW_COMM_FINALIZING)) {
        (void)snprintf(text, sizeof(text), "rank %d destroyed communicator %s in %s",
                       tw_comm_rank_now(comm), comm->args.name,
                       state == TW_COMM_INIT ? "init" : "finalize");
        tw_comm_fail_text(comm, TWILL_ERR_ABORTED, text);
    }
    init_join(comm);
}

void tw_comm_free(struct twill_comm *comm)
{
    if (comm == NULL)
        return;
    thread_stop(comm);
    tw_ctl_mute(comm);
    if (comm->ops != NULL)
        tw_ops_destroy(comm);
    tw_gpu_destroy(comm);
    tw_split_sweep(comm, true);
    tw_split_put(comm->origin);
    if (tw_comm_status(comm) == TWILL_OK)
        tw_record_life(comm, TW_LIFE_DESTROYED);
    tw_ctl_destroy(comm);
    tw_record_destroy(comm);
    tw_chan_destroy(comm->chan);
    free(comm->mates);
    (void)close(comm->cancel_fd);
    (void)pthread_mutex_destroy(&comm->lock);
    comm->magic = 0;
    sodium_memzero(&comm->args, sizeof(comm->args));
    sodium_memzero(comm->secret, sizeof(comm->secret));
    free(comm);
    tw_proc_put();
}
