/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: life of the shm net and its listeners. Never knows: what is said over connections. */
#include "config.h"

#include "transport/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/host.h"
#include "base/status.h"
#include "transport/fifo.h"

/* ---- listeners ------------------------------------------------------------------------------ */

static enum twill_status listener_open(struct tw_net *net, const uint8_t key[TW_KEY_BYTES],
                                       struct tw_listener **listener, char name[TW_SOCK_NAME_BYTES])
{
    struct tw_listener *made = tw_alloc(sizeof(*made));
    if (made == NULL) {
        return TWILL_ERR_NOMEM;
    }
    made->net = net;
    memcpy(made->key, key, TW_KEY_BYTES);
    enum twill_status status = tw_sock_listen(&made->fd, NULL, name);
    if (status != TWILL_OK) {
        free(made);
        return status;
    }
    struct tw_shm_net *shm = net->shm;
    pthread_mutex_lock(&net->lock);
    made->id = ++shm->next_id;
    made->armed = true;
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = made->id};
    int failed = epoll_ctl(shm->epoll_fd, EPOLL_CTL_ADD, made->fd, &event) != 0 ? errno : 0;
    if (failed == 0) {
        made->next = shm->listeners;
        shm->listeners = made;
    }
    pthread_mutex_unlock(&net->lock);
    if (failed != 0) {
        close(made->fd);
        free(made);
        return tw_fail_errno(TWILL_ERR_SYSTEM, failed, "listener cannot be watched");
    }
    *listener = made;
    return TWILL_OK;
}

static enum twill_status shm_listen(struct tw_net *net, const uint8_t key[TW_KEY_BYTES],
                                    struct tw_listener **listener, struct tw_blob *address)
{
    char name[TW_SOCK_NAME_BYTES];
    enum twill_status status = listener_open(net, key, listener, name);
    if (status == TWILL_OK) {
        address->bytes = (uint32_t)strlen(name);
        memcpy(address->data, name, address->bytes);
    }
    return status;
}

static void shm_unlisten(struct tw_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    struct tw_net *net = listener->net;
    pthread_mutex_lock(&net->lock);
    for (struct tw_listener **at = &net->shm->listeners; *at != NULL; at = &(*at)->next) {
        if (*at == listener) {
            *at = listener->next;
            break;
        }
    }
    tw_shm_unwatch_locked(net, listener->fd);
    close(listener->fd);
    pthread_mutex_unlock(&net->lock);
    free(listener);
}

/* ---- net ------------------------------------------------------------------------------------ */

static void shm_part_destroy(struct tw_shm_net *shm)
{
    if (shm->wake_fd >= 0) {
        close(shm->wake_fd);
    }
    if (shm->epoll_fd >= 0) {
        close(shm->epoll_fd);
    }
    free(shm);
}

static enum twill_status shm_part_create(struct tw_shm_net **out)
{
    struct tw_shm_net *shm = tw_alloc(sizeof(*shm));
    if (shm == NULL) {
        return TWILL_ERR_NOMEM;
    }
    tw_random(shm->pattern, sizeof(shm->pattern));
    shm->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    shm->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};
    if (shm->epoll_fd < 0 || shm->wake_fd < 0 ||
        epoll_ctl(shm->epoll_fd, EPOLL_CTL_ADD, shm->wake_fd, &event) != 0) {
        enum twill_status status = tw_fail_errno(TWILL_ERR_SYSTEM, errno, "shm net: no epoll");
        shm_part_destroy(shm);
        return status;
    }
    *out = shm;
    return TWILL_OK;
}

static enum twill_status shm_open_net(const struct tw_net_config *config, struct tw_net **net)
{
    struct tw_net *made;
    enum twill_status status = tw_net_create("shm", config, true, &made);
    if (status != TWILL_OK) {
        return status;
    }
    status = shm_part_create(&made->shm);
    if (status != TWILL_OK) {
        goto err_net;
    }
    uint8_t key[TW_KEY_BYTES];
    tw_random(key, sizeof(key));
    status = listener_open(made, key, &made->shm->service, made->shm->service_name);
    if (status != TWILL_OK) {
        goto err_part;
    }
    status = tw_shm_service_start(made);
    if (status != TWILL_OK) {
        goto err_listener;
    }
    *net = made;
    return TWILL_OK;

err_listener:
    shm_unlisten(made->shm->service);
err_part:
    shm_part_destroy(made->shm);
err_net:
    tw_net_destroy(made);
    return status;
}

static void eps_free(struct tw_ep *ep)
{
    while (ep != NULL) {
        struct tw_ep *next = ep->shm->next;
        tw_shm_ep_free(ep);
        ep = next;
    }
}

static void shm_close(struct tw_net *net)
{
    if (net == NULL) {
        return;
    }
    tw_shm_service_stop(net);
    shm_unlisten(net->shm->service);
    for (struct tw_listener *next, *at = net->shm->listeners; at != NULL; at = next) {
        next = at->next;
        shm_unlisten(at);
    }
    tw_fifo_sweep(net, true);
    eps_free(net->shm->live);
    eps_free(net->shm->dead);
    shm_part_destroy(net->shm);
    tw_net_destroy(net);
}

const struct tw_net_ops tw_shm_net_ops = {
    .name = "shm",
    .open = shm_open_net,
    .close = shm_close,
    .listen = shm_listen,
    .unlisten = shm_unlisten,
    .ep_get = tw_shm_ep_get,
    .ep_put = tw_shm_ep_put,
    .ep_status = tw_ep_status,
    .ep_caps = tw_ep_caps,
};
