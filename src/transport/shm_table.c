/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which peers are connected, being connected or gone: one ep for each pair of processes.
 * Never knows: what is said over a connection. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "base/time.h"
#include "transport/shm.h"

#define RETRY_NS (5 * TW_NS_MS)
#define GIVE_UP_NS (1 * TW_NS_S) /* a listener that refuses for so long will not come back */
#define HELLO_NS (10 * TW_NS_S)

static const char goodbye_byte = 'B';

/* ---- endpoints ------------------------------------------------------------------------------ */

void tw_shm_ep_free(struct tw_ep *ep)
{
    struct tw_shm_ep *shm = ep->shm;
    if (shm->fd >= 0) {
        (void)!send(shm->fd, &goodbye_byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        close(shm->fd);
    }
    if (shm->pidfd >= 0) {
        close(shm->pidfd);
    }
    tw_shm_close(&shm->map);
    free(shm);
    free(ep);
}

bool tw_shm_ep_hangup(const struct tw_ep *ep, bool *goodbye)
{
    char byte = 0;
    ssize_t got = recv(ep->shm->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    *goodbye = got == 1 && byte == goodbye_byte;
    if (got == 1 && !*goodbye) {
        char text[TW_PROC_TEXT_BYTES];
        tw_warn(TW_SUB_NET, "process %s sent what no peer sends: connection dropped",
                tw_proc_text(&ep->peer, text));
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        struct pollfd died = {.fd = ep->shm->pidfd, .events = POLLIN};
        return poll(&died, 1, 0) == 1;
    }
    return true;
}

static void unlink_from(struct tw_ep **list, struct tw_ep *ep)
{
    for (; *list != NULL; list = &(*list)->shm->next) {
        if (*list == ep) {
            *list = ep->shm->next;
            return;
        }
    }
}

bool tw_shm_ep_lose_locked(struct tw_ep *ep, bool goodbye)
{
    struct tw_net *net = ep->net;
    unlink_from(&net->shm->live, ep);
    __atomic_store_n(&ep->lost, 1, __ATOMIC_RELEASE); /* before the peer can see the hang-up */
    tw_shm_unwatch_locked(net, ep->shm->fd);
    close(ep->shm->fd);
    ep->shm->fd = -1;
    if (ep->shm->pidfd >= 0) {
        tw_shm_unwatch_locked(net, ep->shm->pidfd);
        close(ep->shm->pidfd);
        ep->shm->pidfd = -1;
    }
    ep->shm->goodbye = goodbye;
    bool used = __atomic_load_n(&ep->refs, __ATOMIC_ACQUIRE) != 0;
    if (used) {
        ep->shm->next = net->shm->dead;
        net->shm->dead = ep;
    } else {
        tw_shm_ep_free(ep);
    }
    tw_shm_notify_locked(net);
    return used;
}

void tw_shm_ep_put(struct tw_ep *ep)
{
    if (ep == NULL) {
        return;
    }
    struct tw_net *net = ep->net;
    pthread_mutex_lock(&net->lock);
    if (__atomic_sub_fetch(&ep->refs, 1, __ATOMIC_ACQ_REL) == 0 && tw_ep_lost(ep)) {
        unlink_from(&net->shm->dead, ep);
        tw_shm_ep_free(ep);
    } /* a live one stays connected until the net closes: the next communicator finds it */
    pthread_mutex_unlock(&net->lock);
}

static bool same(const struct tw_proc_id *a, const struct tw_proc_id *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static struct tw_ep *find(struct tw_ep *list, const struct tw_proc_id *peer)
{
    while (list != NULL && !same(&list->peer, peer)) {
        list = list->shm->next;
    }
    return list;
}

struct tw_ep *tw_shm_ep_by_id_locked(struct tw_net *net, uint64_t id)
{
    struct tw_ep *ep = net->shm->live;
    while (ep != NULL && ep->shm->id != id) {
        ep = ep->shm->next;
    }
    return ep;
}

/* The live ep to peer. One whose peer hung up is lost here and now: what its process said by other
 * ways after it closed must not find the old connection. */
static struct tw_ep *find_live(struct tw_net *net, const struct tw_proc_id *peer)
{
    struct tw_ep *ep = find(net->shm->live, peer);
    bool goodbye;
    if (ep != NULL && tw_shm_ep_hangup(ep, &goodbye) && goodbye) {
        tw_shm_ep_lose_locked(ep, true);
        return NULL;
    }
    return ep;
}

/* ---- waiting for the table ------------------------------------------------------------------ */

void tw_shm_notify_locked(struct tw_net *net)
{
    const uint64_t one = 1;
    for (struct tw_shm_waiter *waiter = net->shm->waiters; waiter != NULL; waiter = waiter->next) {
        (void)!write(waiter->fd, &one, sizeof(one));
    }
}

void tw_shm_refused_locked(struct tw_net *net, enum twill_status status)
{
    struct tw_shm_net *shm = net->shm;
    shm->refusals++;
    shm->refused_status = status;
    (void)snprintf(shm->refused_text, sizeof(shm->refused_text), "%s", tw_fail_text());
    tw_shm_notify_locked(net);
}

/* Until the table changes, most_ns pass (0: no bound), the deadline passes or the wait is
 * cancelled. */
static enum twill_status wait_change(struct tw_net *net, const struct tw_sock_wait *wait,
                                     uint64_t most_ns)
{
    struct tw_shm_waiter waiter = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (waiter.fd < 0) {
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "waiting for a connection: no eventfd");
    }
    const uint64_t refusals = net->shm->refusals;
    waiter.next = net->shm->waiters;
    net->shm->waiters = &waiter;
    pthread_mutex_unlock(&net->lock);

    uint64_t until_ns = tw_deadline_ns(most_ns);
    struct pollfd polled[2] = {{.fd = waiter.fd, .events = POLLIN},
                               {.fd = wait->cancel_fd, .events = POLLIN}};
    (void)poll(polled, 2,
               tw_deadline_poll_ms(until_ns < wait->deadline_ns ? until_ns : wait->deadline_ns));

    pthread_mutex_lock(&net->lock);
    struct tw_shm_waiter **at = &net->shm->waiters;
    while (*at != &waiter) {
        at = &(*at)->next;
    }
    *at = waiter.next;
    close(waiter.fd);
    if (polled[1].revents != 0) {
        return tw_fail(TWILL_ERR_ABORTED, "connecting was cancelled");
    }
    if (wait->deadline_ns != TW_NEVER && tw_now_ns() >= wait->deadline_ns) {
        return tw_fail(TWILL_ERR_TIMEOUT, "its process did not connect before the deadline");
    }
    if (net->shm->refusals != refusals) {
        return tw_fail(net->shm->refused_status, "%s", net->shm->refused_text);
    }
    return TWILL_OK;
}

/* ---- ep_get --------------------------------------------------------------------------------- */

enum twill_status tw_shm_ep_install(struct tw_ep *ep, bool referenced)
{
    struct tw_net *net = ep->net;
    pthread_mutex_lock(&net->lock);
    bool fits =
        !net->shm->closing && find(net->shm->live, &ep->peer) == NULL && tw_shm_watch_locked(ep);
    if (fits) {
        ep->refs = referenced ? 1 : 0;
        ep->shm->next = net->shm->live;
        net->shm->live = ep;
        tw_shm_notify_locked(net);
    }
    pthread_mutex_unlock(&net->lock);
    if (fits) {
        return TWILL_OK;
    }
    tw_shm_ep_free(ep);
    return tw_fail(TWILL_ERR_PEER, "connection dropped: its process has one, or the net closes");
}

/* A connection attempt's parts that do not change. */
struct visit {
    struct tw_net *net;
    const struct tw_proc_id *peer;
    const uint8_t *key;
    const struct tw_sock_wait *wait;
    char name[TW_SOCK_NAME_BYTES];
    uint64_t failing_ns; /* since when nobody answers; 0: not failing */
};

static enum twill_status visit_init(struct visit *visit, const struct tw_blob *address)
{
    const struct tw_proc_id *self = &visit->net->config.self;
    char text[TW_PROC_TEXT_BYTES];
    if (memcmp(visit->peer->host, self->host, sizeof(self->host)) != 0) {
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "process %s is on another host: shared memory does not reach it",
                       tw_proc_text(visit->peer, text));
    }
    if (same(visit->peer, self)) {
        return tw_fail(TWILL_ERR_INVALID, "process %s is this one: transport shm is for others",
                       tw_proc_text(visit->peer, text));
    }
    if (address->bytes == 0 || address->bytes >= TW_SOCK_NAME_BYTES) {
        return tw_fail(TWILL_ERR_INVALID, "address of process %s has %u bytes: no socket's name",
                       tw_proc_text(visit->peer, text), address->bytes);
    }
    memcpy(visit->name, address->data, address->bytes);
    visit->name[address->bytes] = '\0';
    return TWILL_OK;
}

static bool being_called(const struct tw_net *net, const struct tw_proc_id *peer)
{
    const struct tw_shm_call *call = net->shm->calls;
    while (call != NULL && !same(&call->peer, peer)) {
        call = call->next;
    }
    return call != NULL;
}

/* One attempt, the lock let go meanwhile. On success *ep is installed and referenced. */
static enum twill_status attempt(struct visit *visit, struct tw_ep **ep)
{
    struct tw_net *net = visit->net;
    struct tw_shm_call call = {.peer = *visit->peer, .next = net->shm->calls};
    net->shm->calls = &call;
    pthread_mutex_unlock(&net->lock);

    int fd;
    struct tw_ep *made = NULL;
    enum twill_status status = tw_shm_dial(&fd, visit->name);
    if (status == TWILL_OK) {
        uint64_t most_ns = tw_deadline_ns(HELLO_NS);
        struct tw_sock_wait wait = *visit->wait;
        wait.deadline_ns = most_ns < wait.deadline_ns ? most_ns : wait.deadline_ns;
        status = tw_shm_greet(net, fd, visit->peer, visit->key, &wait, &made);
    }
    if (status == TWILL_OK) {
        status = tw_shm_ep_install(made, true);
    }

    pthread_mutex_lock(&net->lock);
    struct tw_shm_call **at = &net->shm->calls;
    while (*at != &call) {
        at = &(*at)->next;
    }
    *at = call.next;
    tw_shm_notify_locked(net);
    if (status == TWILL_OK) {
        *ep = made;
    }
    return status;
}

/* As attempt, and judges a failure: AGAIN when another attempt makes sense. */
static enum twill_status visit_try(struct visit *visit, struct tw_ep **ep)
{
    enum twill_status status = attempt(visit, ep);
    if (status != TWILL_ERR_PEER) {
        return status;
    }
    uint64_t now = tw_now_ns();
    if (visit->failing_ns == 0) {
        visit->failing_ns = now;
    }
    if (now - visit->failing_ns < GIVE_UP_NS) {
        return TWILL_ERR_AGAIN;
    }
    char text[TW_PROC_TEXT_BYTES];
    return tw_fail(TWILL_ERR_PEER, "process %s does not answer at @%s any more",
                   tw_proc_text(visit->peer, text), visit->name);
}

static enum twill_status get_locked(struct visit *visit, struct tw_ep **ep)
{
    struct tw_net *net = visit->net;
    bool calls = memcmp(&net->config.self, visit->peer, sizeof(*visit->peer)) < 0;
    for (;;) {
        struct tw_ep *found = find_live(net, visit->peer);
        if (found != NULL) {
            tw_ep_ref(found);
            *ep = found;
            return TWILL_OK;
        }
        const struct tw_ep *gone = find(net->shm->dead, visit->peer);
        if (gone != NULL && !gone->shm->goodbye) {
            char text[TW_PROC_TEXT_BYTES];
            return tw_fail(TWILL_ERR_PEER, "process %s is gone", tw_proc_text(visit->peer, text));
        }
        enum twill_status status = TWILL_ERR_AGAIN;
        uint64_t most_ns = 0;
        if (calls && !being_called(net, visit->peer)) {
            status = visit_try(visit, ep);
            most_ns = RETRY_NS;
        }
        if (status == TWILL_ERR_AGAIN) {
            status = wait_change(net, visit->wait, most_ns);
        } else if (status == TWILL_OK) {
            return TWILL_OK;
        }
        if (status != TWILL_OK) {
            return status;
        }
    }
}

enum twill_status tw_shm_ep_get(struct tw_net *net, const struct tw_proc_id *peer,
                                const struct tw_blob *address, const uint8_t key[TW_KEY_BYTES],
                                const struct tw_sock_wait *wait, struct tw_ep **ep)
{
    struct visit visit = {.net = net, .peer = peer, .key = key, .wait = wait};
    enum twill_status status = visit_init(&visit, address);
    if (status != TWILL_OK) {
        return status;
    }
    pthread_mutex_lock(&net->lock);
    status = get_locked(&visit, ep);
    pthread_mutex_unlock(&net->lock);
    return status;
}
