/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: one thread of a net that accepts connections and notices the end of peers; guests: short
 * threads in which a fresh connection proves itself, so that none holds up another.
 * Never knows: what is said over a connection. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "base/time.h"
#include "transport/shm.h"

#define GUEST_NS (5 * TW_NS_S)    /* to prove and introduce oneself */
#define EVICT_NS (200 * TW_NS_MS) /* when all places are taken, the oldest must be this old */
#define RETRY_MS 50               /* after accept failed for want of descriptors or memory */
#define STACK_BYTES ((size_t)512 << 10)
#define EVENTS 16

struct tw_shm_guest {
    pthread_t thread;
    struct tw_net *net;
    int fd;        /* owned; taken over by the guest's thread */
    int cancel_fd; /* owned eventfd */
    uint64_t since_ns;
    uint8_t key[TW_KEY_BYTES];
    bool done; /* under net->lock */
    struct tw_shm_guest *next;
};

static void raise_event(int fd)
{
    const uint64_t one = 1;
    (void)!write(fd, &one, sizeof(one));
}

bool tw_shm_watch_locked(struct tw_ep *ep)
{
    struct tw_shm_net *shm = ep->net->shm;
    ep->shm->id = ++shm->next_id;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = ep->shm->id};
    if (epoll_ctl(shm->epoll_fd, EPOLL_CTL_ADD, ep->shm->fd, &event) != 0) {
        return false;
    }
    return ep->shm->pidfd < 0 ||
           epoll_ctl(shm->epoll_fd, EPOLL_CTL_ADD, ep->shm->pidfd, &event) == 0;
}

void tw_shm_unwatch_locked(struct tw_net *net, int fd)
{
    (void)epoll_ctl(net->shm->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Threads of the net take no signals: those are the application's. */
static int thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, &attr, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

/* ---- guests --------------------------------------------------------------------------------- */

static void guest_free(struct tw_shm_guest *guest)
{
    close(guest->cancel_fd);
    free(guest);
}

static void *guest_run(void *context)
{
    struct tw_shm_guest *guest = context;
    struct tw_net *net = guest->net;
    const struct tw_sock_wait wait = {.deadline_ns = tw_deadline_ns(GUEST_NS),
                                      .cancel_fd = guest->cancel_fd};
    enum twill_status status = tw_shm_receive(net, guest->fd, guest->key, &wait);
    pthread_mutex_lock(&net->lock);
    if (status == TWILL_ERR_SYSTEM || status == TWILL_ERR_NOMEM) {
        tw_shm_refused_locked(net, status);
    }
    guest->done = true;
    raise_event(net->shm->wake_fd);
    pthread_mutex_unlock(&net->lock);
    return NULL;
}

/* Takes fd over. The lock is held. */
static void guest_admit(struct tw_net *net, int fd, const uint8_t key[TW_KEY_BYTES])
{
    pid_t pid;
    uid_t uid = 0;
    if (tw_sock_peer(fd, &pid, &uid) != TWILL_OK || uid != geteuid()) {
        tw_debug(TW_SUB_NET, "connection of user %u refused", (unsigned)uid);
        close(fd);
        return;
    }
    struct tw_shm_guest *guest = tw_alloc(sizeof(*guest));
    if (guest == NULL) {
        close(fd);
        tw_shm_refused_locked(net, TWILL_ERR_NOMEM);
        return;
    }
    guest->net = net;
    guest->fd = fd;
    guest->since_ns = tw_now_ns();
    memcpy(guest->key, key, TW_KEY_BYTES);
    guest->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = guest->cancel_fd < 0 ? errno : thread_start(&guest->thread, guest_run, guest);
    if (error != 0) {
        tw_shm_refused_locked(net, tw_fail_errno(TWILL_ERR_SYSTEM, error,
                                                 "connection dropped: no thread to serve it"));
        close(fd);
        if (guest->cancel_fd >= 0) {
            close(guest->cancel_fd);
        }
        free(guest);
        return;
    }
    guest->next = net->shm->guests;
    net->shm->guests = guest;
    net->shm->nguests++;
}

/* Joins those who are done; `all`: waits for the others too. */
static void guests_reap(struct tw_net *net, bool all)
{
    struct tw_shm_guest *gone = NULL;
    pthread_mutex_lock(&net->lock);
    for (struct tw_shm_guest **at = &net->shm->guests; *at != NULL;) {
        struct tw_shm_guest *guest = *at;
        if (!guest->done && !all) {
            at = &guest->next;
            continue;
        }
        raise_event(guest->cancel_fd);
        *at = guest->next;
        guest->next = gone;
        gone = guest;
        net->shm->nguests--;
    }
    pthread_mutex_unlock(&net->lock);
    while (gone != NULL) {
        struct tw_shm_guest *guest = gone;
        gone = guest->next;
        pthread_join(guest->thread, NULL);
        guest_free(guest);
    }
}

/* All places are taken: the oldest guest leaves when it had its time. @return ms until then */
static int guest_evict_locked(struct tw_shm_net *shm)
{
    const struct tw_shm_guest *oldest = NULL;
    for (const struct tw_shm_guest *guest = shm->guests; guest != NULL; guest = guest->next) {
        oldest = oldest == NULL || guest->since_ns < oldest->since_ns ? guest : oldest;
    }
    uint64_t age = oldest != NULL ? tw_now_ns() - oldest->since_ns : 0;
    if (age >= EVICT_NS) {
        raise_event(oldest->cancel_fd);
        return RETRY_MS; /* its end wakes us */
    }
    return (int)((EVICT_NS - age) / TW_NS_MS) + 1;
}

/* ---- events --------------------------------------------------------------------------------- */

static struct tw_listener *listener_by_id(const struct tw_shm_net *shm, uint64_t id)
{
    struct tw_listener *listener = shm->listeners;
    while (listener != NULL && listener->id != id) {
        listener = listener->next;
    }
    return listener;
}

/* @return false when accepting failed for a reason that may pass */
static bool listener_accept_locked(struct tw_net *net, struct tw_listener *listener)
{
    listener->armed = false; /* EPOLLONESHOT */
    while (net->shm->nguests < TW_SHM_GUESTS_MAX) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            guest_admit(net, fd, listener->key);
        } else if (errno == EAGAIN) {
            return true;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            tw_shm_refused_locked(
                net, tw_fail_errno(TWILL_ERR_SYSTEM, errno, "a connection cannot be accepted"));
            return false;
        }
    }
    return true;
}

static void listeners_arm_locked(struct tw_shm_net *shm)
{
    for (struct tw_listener *at = shm->listeners; at != NULL; at = at->next) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = at->id};
        if (!at->armed) {
            at->armed = epoll_ctl(shm->epoll_fd, EPOLL_CTL_MOD, at->fd, &event) == 0;
        }
    }
}

/* @return false: see listener_accept_locked */
static bool event_serve(struct tw_net *net, uint64_t id)
{
    struct tw_proc_id gone;
    bool tell = false;
    bool fine = true;
    pthread_mutex_lock(&net->lock);
    struct tw_listener *listener = listener_by_id(net->shm, id);
    struct tw_ep *ep = listener == NULL ? tw_shm_ep_by_id_locked(net, id) : NULL;
    bool goodbye;
    if (listener != NULL) {
        fine = listener_accept_locked(net, listener);
    } else if (ep != NULL && tw_shm_ep_hangup(ep, &goodbye)) {
        gone = ep->peer;
        tell = tw_shm_ep_lose_locked(ep, goodbye) && !goodbye;
    }
    pthread_mutex_unlock(&net->lock);
    if (tell && net->config.on_peer_lost != NULL) {
        net->config.on_peer_lost(net->config.context, &gone);
    }
    return fine;
}

static void wake_drain(int fd)
{
    uint64_t count;
    (void)!read(fd, &count, sizeof(count));
}

static void *service_run(void *context)
{
    struct tw_net *net = context;
    struct tw_shm_net *shm = net->shm;
    int timeout_ms = -1;
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(shm->epoll_fd, events, EVENTS, timeout_ms);
        bool fine = true;
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 == 0) {
                wake_drain(shm->wake_fd);
            } else {
                fine = event_serve(net, events[i].data.u64) && fine;
            }
        }
        guests_reap(net, false);
        pthread_mutex_lock(&net->lock);
        bool closing = shm->closing;
        timeout_ms = fine ? -1 : RETRY_MS;
        if (shm->nguests >= TW_SHM_GUESTS_MAX) {
            timeout_ms = guest_evict_locked(shm);
        } else if (fine) {
            listeners_arm_locked(shm);
        }
        pthread_mutex_unlock(&net->lock);
        if (closing) {
            return NULL;
        }
    }
}

enum twill_status tw_shm_service_start(struct tw_net *net)
{
    int error = thread_start(&net->shm->thread, service_run, net);
    return error == 0 ? TWILL_OK
                      : tw_fail_errno(TWILL_ERR_SYSTEM, error, "shm net: no service thread");
}

void tw_shm_service_stop(struct tw_net *net)
{
    pthread_mutex_lock(&net->lock);
    net->shm->closing = true;
    raise_event(net->shm->wake_fd);
    pthread_mutex_unlock(&net->lock);
    pthread_join(net->shm->thread, NULL);
    guests_reap(net, true);
}
