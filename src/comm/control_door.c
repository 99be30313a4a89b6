/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: who stands at a listening socket and whether they hold the key.
 * Never knows: what they come for. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "comm/control.h"

#define CALLERS_MAX 256u
#define ENDING_MS 200

struct caller {
    struct tw_door *door;
    int fd;
    pid_t pid;
    int pidfd;                 /* owned; -1: none */
    bool ended;                /* its process had before it was heard */
    uint8_t key[TW_KEY_BYTES]; /* the door forgets its own when it closes */
};

static void callers_accept(struct tw_door *door);

/* The connection of a process that ends is closed a moment before the process is seen to have
 * ended. */
static bool process_ended(const struct caller *caller, const struct tw_door *door)
{
    struct pollfd polled[2] = {{.fd = caller->pidfd, .events = POLLIN},
                               {.fd = door->cancel_fd, .events = POLLIN}};

    if (caller->ended)
        return true;
    if (caller->pidfd < 0 || poll(polled, 2, ENDING_MS) <= 0)
        return false;
    return (polled[0].revents & POLLIN) != 0;
}

static void caller_free(struct caller *caller)
{
    if (caller->pidfd >= 0)
        (void)close(caller->pidfd);
    sodium_memzero(caller->key, sizeof(caller->key));
    free(caller);
}

/* On a thread of its own, so that a caller who says nothing holds up nobody. */
static void caller_hear(void *arg)
{
    struct caller *caller = arg;
    struct tw_door *door = caller->door;
    struct tw_loop *loop = door->loop;
    uint8_t hello[TW_HELLO_BYTES_MAX];
    uint32_t bytes = 0;
    const struct tw_sock_wait wait = {.deadline_ns = tw_deadline_ns(door->patience_ns),
                                      .cancel_fd = door->cancel_fd};

    enum twill_status status = tw_sock_prove(caller->fd, caller->key, 1, door->context, &wait);
    bool proven = status == TWILL_OK;
    bool lost = status == TWILL_ERR_PEER && door->on_lost != NULL && process_ended(caller, door);
    char name[TW_SOCK_NAME_BYTES] = "";
    if (proven)
        status = tw_sock_recv_msg(caller->fd, hello, sizeof(hello), &bytes, &wait);
    else if (lost)
        tw_sock_peer_name(caller->fd, name);
    tw_loop_lock(loop);
    if (lost && door->source.fd >= 0)
        door->on_lost(door, caller->pid, name);
    if (proven && (status == TWILL_OK || status == TWILL_ERR_PEER) && door->source.fd >= 0)
        door->on_caller(door, caller->fd, hello, bytes);
    else
        (void)close(caller->fd);
    door->callers--;
    if (door->source.fd >= 0) {
        callers_accept(door); /* there may have been no place for them */
    } else if (door->callers == 0) {
        (void)close(door->cancel_fd);
        door->on_idle(door);
    }
    tw_loop_unlock(loop);
    caller_free(caller);
}

/* Only processes of this user may pose as ranks: the transports between processes of a host serve
 * no others either. */
static bool caller_known(int fd, pid_t *pid)
{
    uid_t uid = 0;

    if (tw_sock_peer(fd, pid, &uid) != TWILL_OK)
        return false;
    if (uid == geteuid())
        return true;
    (void)tw_fail(TWILL_ERR_AUTH, "process %d of user %u was turned away: this job is user %u's",
                  (int)*pid, (unsigned)uid, (unsigned)geteuid());
    return false;
}

/* tw_fail_text says for want of what. The door may be closed afterwards. */
static void caller_miss(struct tw_door *door, enum twill_status status)
{
    if (door->on_missed != NULL)
        door->on_missed(door, status);
}

/* Takes fd over. */
static void caller_admit(struct tw_door *door, int fd)
{
    pid_t pid = 0;
    bool known = caller_known(fd, &pid);
    struct caller *caller = known ? tw_alloc(sizeof(*caller)) : NULL;

    if (caller == NULL) {
        (void)close(fd);
        if (known)
            caller_miss(door, TWILL_ERR_NOMEM);
        return;
    }
    *caller = (struct caller){.door = door, .fd = fd, .pid = pid, .pidfd = -1};
    /* this process's own ranks end with it */
    if (door->on_lost != NULL && pid > 0 && pid != getpid()) {
        caller->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        caller->ended = caller->pidfd < 0 && errno == ESRCH;
    }
    memcpy(caller->key, door->key, sizeof(caller->key));
    enum twill_status status = tw_loop_spawn(door->loop, caller_hear, caller);
    if (status == TWILL_OK) {
        door->callers++;
        return;
    }
    (void)close(fd);
    caller_free(caller);
    caller_miss(door, status);
}

/* Without a descriptor to be had accept fails even when there is nobody. */
static bool somebody_waits(const struct tw_door *door)
{
    struct pollfd polled = {.fd = door->source.fd, .events = POLLIN};

    return poll(&polled, 1, 0) > 0 && (polled.revents & POLLIN) != 0;
}

/* Takes everybody who waits, as far as there are places; whoever leaves makes room for the next.
 * Edge-triggered: without descriptors to be had it gives up until somebody comes or leaves. */
static void callers_accept(struct tw_door *door)
{
    while (door->source.fd >= 0 && door->callers < CALLERS_MAX) {
        int fd = accept4(door->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            caller_admit(door, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        int error = errno;
        if (error != EAGAIN && somebody_waits(door))
            caller_miss(door,
                        tw_fail_errno(TWILL_ERR_SYSTEM, error, "a connection cannot be accepted"));
        return;
    }
}

static void door_on_event(struct tw_source *source, uint32_t events)
{
    (void)events;
    callers_accept((struct tw_door *)(void *)source); /* its first member */
}

enum twill_status tw_door_open(struct tw_door *door, struct tw_loop *loop, int listen_fd)
{
    door->loop = loop;
    door->callers = 0;
    door->source = (struct tw_source){.fd = listen_fd, .on_event = door_on_event};
    door->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum twill_status status = TWILL_OK;
    if (door->cancel_fd < 0)
        status = tw_fail_errno(TWILL_ERR_SYSTEM, errno, "eventfd does not open");
    else
        status = tw_loop_watch(loop, &door->source, EPOLLIN | EPOLLET);
    if (status == TWILL_OK)
        return TWILL_OK;
    if (door->cancel_fd >= 0)
        (void)close(door->cancel_fd);
    (void)close(listen_fd);
    door->source.fd = -1;
    return status;
}

void tw_door_close(struct tw_door *door)
{
    const uint64_t one = 1;

    if (door->source.fd < 0)
        return;
    tw_loop_unwatch(door->loop, &door->source);
    (void)close(door->source.fd);
    door->source.fd = -1;
    sodium_memzero(door->key, sizeof(door->key));
    ssize_t written = write(door->cancel_fd, &one, sizeof(one));
    (void)written; /* a fresh counter takes it */
    if (door->callers == 0) {
        (void)close(door->cancel_fd);
        door->on_idle(door);
    }
}
