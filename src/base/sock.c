/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: Unix sockets, deadlines, passing of descriptors. Never knows: what the bytes mean. */
#include "config.h"

#include "base/sock.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/status.h"
#include "base/time.h"

#define LISTEN_BACKLOG 1024
#define FD_MARK 'F'             /* the byte that a descriptor rides on */
#define STRAY_FDS 253           /* the most that the kernel carries with one message */
#define RETRY_NS (5 * TW_NS_MS) /* between attempts to connect */

static enum twill_status address_fill(struct sockaddr_un *address, socklen_t *length,
                                      const char *name)
{
    size_t bytes = name != NULL ? strlen(name) : 0;

    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    if (bytes >= TW_SOCK_NAME_BYTES)
        return tw_fail(TWILL_ERR_INVALID, "socket name \"%.32s...\" has %zu bytes, at most %d fit",
                       name, bytes, TW_SOCK_NAME_BYTES - 1);
    if (bytes == 0) {
        *length = sizeof(address->sun_family); /* autobind */
        return TWILL_OK;
    }
    memcpy(address->sun_path + 1, name, bytes);
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
    return TWILL_OK;
}

static enum twill_status socket_open(int *fd)
{
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "unix socket does not open");
    return TWILL_OK;
}

static enum twill_status name_read(int fd, char actual[TW_SOCK_NAME_BYTES])
{
    struct sockaddr_un address;
    socklen_t length = sizeof(address);
    const size_t head = offsetof(struct sockaddr_un, sun_path) + 1;

    memset(&address, 0, sizeof(address));
    if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "unix socket: getsockname failed");
    if (length <= head || length - head >= TW_SOCK_NAME_BYTES)
        return tw_fail(TWILL_ERR_SYSTEM, "unix socket: the kernel gave it no name");
    memcpy(actual, address.sun_path + 1, length - head);
    actual[length - head] = '\0';
    return TWILL_OK;
}

/* @param quiet  a name that is taken is no error to be said */
static enum twill_status listen_at(int *out, const char *name, bool quiet,
                                   char actual[TW_SOCK_NAME_BYTES])
{
    struct sockaddr_un address;
    socklen_t length = 0;
    int fd = -1;
    enum twill_status status = address_fill(&address, &length, name);

    if (status == TWILL_OK)
        status = socket_open(&fd);
    if (status != TWILL_OK)
        return status;
    bool bound = bind(fd, (const struct sockaddr *)&address, length) == 0;
    if (!bound && quiet && errno == EADDRINUSE)
        status = TWILL_ERR_AGAIN;
    else if (!bound)
        status = tw_fail_errno(TWILL_ERR_SYSTEM, errno, "unix socket \"@%s\" does not bind",
                               name != NULL ? name : "");
    else if (listen(fd, LISTEN_BACKLOG) != 0)
        status = tw_fail_errno(TWILL_ERR_SYSTEM, errno, "unix socket \"@%s\" does not listen",
                               name != NULL ? name : "");
    else
        status = name_read(fd, actual);
    if (status != TWILL_OK) {
        (void)close(fd);
        return status;
    }
    *out = fd;
    return TWILL_OK;
}

enum twill_status tw_sock_listen(int *fd, const char *name, char actual[TW_SOCK_NAME_BYTES])
{
    return listen_at(fd, name, false, actual);
}

enum twill_status tw_sock_listen_first(int *fd, const char *name, char actual[TW_SOCK_NAME_BYTES])
{
    return listen_at(fd, name, true, actual);
}

static bool deadline_passed(uint64_t deadline_ns)
{
    return deadline_ns != TW_NEVER && tw_now_ns() >= deadline_ns;
}

/* Waits until fd (-1: nothing, only time) is ready for events. It is called where going on would
 * block, so a deadline that has passed fails even if fd is ready by now: a peer that sends byte by
 * byte must not stretch it.
 *
 * @return TWILL_OK ready, or until_ns passed while the deadline has not */
static enum twill_status wait_ready(int fd, short events, uint64_t until_ns,
                                    const struct tw_sock_wait *wait)
{
    for (;;) {
        struct pollfd polled[2] = {{.fd = fd, .events = events},
                                   {.fd = wait->cancel_fd, .events = POLLIN}};
        bool late = deadline_passed(wait->deadline_ns);
        uint64_t first_ns = until_ns < wait->deadline_ns ? until_ns : wait->deadline_ns;
        int ready = poll(polled, 2, tw_deadline_poll_ms(first_ns));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0)
            return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "unix socket: poll failed");
        if (wait->cancel_fd >= 0 && polled[1].revents != 0)
            return tw_fail(TWILL_ERR_ABORTED, "waiting on a unix socket was cancelled");
        if (late)
            return tw_fail(TWILL_ERR_TIMEOUT, "waiting on a unix socket: the deadline passed");
        if (polled[0].revents != 0 || deadline_passed(until_ns))
            return TWILL_OK;
    }
}

/* Takes fd over on errors. */
static enum twill_status connect_to(int fd, const char *name, const struct tw_sock_wait *wait)
{
    struct sockaddr_un address;
    socklen_t length = 0;
    enum twill_status status = address_fill(&address, &length, name);

    while (status == TWILL_OK && connect(fd, (const struct sockaddr *)&address, length) != 0) {
        /* nobody listens yet, or the queue of those who wait to be accepted is full */
        if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR)
            status = wait_ready(-1, 0, tw_now_ns() + RETRY_NS, wait);
        else
            status =
                tw_fail_errno(TWILL_ERR_SYSTEM, errno, "connecting to unix socket \"@%s\"", name);
    }
    if (status != TWILL_OK)
        (void)close(fd);
    return status;
}

enum twill_status tw_sock_connect_as(int *out, const char *own, const char *name,
                                     const struct tw_sock_wait *wait)
{
    struct sockaddr_un address;
    socklen_t length = 0;
    int fd = -1;

    if (name == NULL || name[0] == '\0')
        return tw_fail(TWILL_ERR_INVALID, "unix socket to connect to has no name");
    enum twill_status status = socket_open(&fd);
    if (status != TWILL_OK)
        return status;
    if (own != NULL)
        status = address_fill(&address, &length, own);
    if (status == TWILL_OK && own != NULL &&
        bind(fd, (const struct sockaddr *)&address, length) != 0)
        status = tw_fail_errno(TWILL_ERR_SYSTEM, errno, "unix socket \"@%s\" does not bind", own);
    if (status != TWILL_OK) {
        (void)close(fd);
        return status;
    }
    status = connect_to(fd, name, wait);
    if (status == TWILL_OK)
        *out = fd;
    return status;
}

enum twill_status tw_sock_connect(int *out, const char *name, const struct tw_sock_wait *wait)
{
    return tw_sock_connect_as(out, NULL, name, wait);
}

enum twill_status tw_sock_accept(int *out, int listen_fd, const struct tw_sock_wait *wait)
{
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            *out = fd;
            return TWILL_OK;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN)
            return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "unix socket: accept failed");
        enum twill_status status = wait_ready(listen_fd, POLLIN, TW_NEVER, wait);
        if (status != TWILL_OK)
            return status;
    }
}

/* What a failed send or receive means: TWILL_OK try again, after waiting where it would block. */
static enum twill_status transfer_failed(int fd, short events, const char *verb,
                                         const struct tw_sock_wait *wait)
{
    if (errno == EINTR)
        return TWILL_OK;
    if (errno == EAGAIN)
        return wait_ready(fd, events, TW_NEVER, wait);
    if (errno == ECONNRESET || errno == EPIPE)
        return tw_fail_errno(TWILL_ERR_PEER, errno, "unix socket: the peer is gone while %s", verb);
    return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "unix socket: error while %s", verb);
}

enum twill_status tw_sock_send(int fd, const void *data, size_t bytes,
                               const struct tw_sock_wait *wait)
{
    const char *at = data;

    while (bytes > 0) {
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
        if (sent >= 0) {
            at += sent;
            bytes -= (size_t)sent;
            continue;
        }
        enum twill_status status = transfer_failed(fd, POLLOUT, "sending", wait);
        if (status != TWILL_OK)
            return status;
    }
    return TWILL_OK;
}

enum twill_status tw_sock_recv(int fd, void *data, size_t bytes, const struct tw_sock_wait *wait)
{
    char *at = data;

    while (bytes > 0) {
        ssize_t got = recv(fd, at, bytes, 0);
        if (got == 0)
            return tw_fail(TWILL_ERR_PEER, "unix socket: closed by the peer, %zu bytes missing",
                           bytes);
        if (got > 0) {
            at += got;
            bytes -= (size_t)got;
            continue;
        }
        enum twill_status status = transfer_failed(fd, POLLIN, "receiving", wait);
        if (status != TWILL_OK)
            return status;
    }
    return TWILL_OK;
}

enum twill_status tw_sock_send_msg(int fd, const void *data, uint32_t bytes,
                                   const struct tw_sock_wait *wait)
{
    const uint8_t head[4] = {(uint8_t)bytes, (uint8_t)(bytes >> 8), (uint8_t)(bytes >> 16),
                             (uint8_t)(bytes >> 24)};
    enum twill_status status = tw_sock_send(fd, head, sizeof(head), wait);

    return status == TWILL_OK ? tw_sock_send(fd, data, bytes, wait) : status;
}

enum twill_status tw_sock_recv_msg(int fd, void *data, uint32_t max_bytes, uint32_t *bytes,
                                   const struct tw_sock_wait *wait)
{
    uint8_t head[4];
    enum twill_status status = tw_sock_recv(fd, head, sizeof(head), wait);

    if (status != TWILL_OK)
        return status;
    uint32_t length = (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 |
                      (uint32_t)head[3] << 24;
    if (length > max_bytes)
        return tw_fail(TWILL_ERR_PEER,
                       "unix socket: the peer announces a message of %u bytes, at most %u may come",
                       length, max_bytes);
    status = tw_sock_recv(fd, data, length, wait);
    if (status == TWILL_OK)
        *bytes = length;
    return status;
}

enum twill_status tw_sock_send_fd(int fd, int passed, const struct tw_sock_wait *wait)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    char mark = FD_MARK;
    struct iovec payload = {.iov_base = &mark, .iov_len = 1};
    struct msghdr message = {.msg_iov = &payload,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};

    memset(&control, 0, sizeof(control));
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &passed, sizeof(int));
    while (sendmsg(fd, &message, MSG_NOSIGNAL) < 0) {
        enum twill_status status = transfer_failed(fd, POLLOUT, "sending a descriptor", wait);
        if (status != TWILL_OK)
            return status;
    }
    return TWILL_OK;
}

/* Takes the descriptors out of a message: the first one is kept, the others are closed. */
static int fds_collect(struct msghdr *message, int *kept)
{
    int count = 0;

    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL;
         head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t here = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here; i++, count++) {
            int fd = -1;
            memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
            if (count == 0)
                *kept = fd;
            else
                (void)close(fd);
        }
    }
    return count;
}

enum twill_status tw_sock_recv_fd(int fd, int *passed, const struct tw_sock_wait *wait)
{
    union {
        char bytes[CMSG_SPACE(STRAY_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    char mark = 0;
    struct iovec payload = {.iov_base = &mark, .iov_len = 1};
    struct msghdr message = {.msg_iov = &payload, .msg_iovlen = 1, .msg_control = control.bytes};
    int kept = -1;
    ssize_t got = -1;

    for (;;) {
        message.msg_controllen = sizeof(control.bytes);
        got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
        if (got >= 0)
            break;
        enum twill_status status = transfer_failed(fd, POLLIN, "receiving a descriptor", wait);
        if (status != TWILL_OK)
            return status;
    }
    int count = fds_collect(&message, &kept);
    if (count == 1 && got == 1 && mark == FD_MARK && (message.msg_flags & MSG_CTRUNC) == 0) {
        *passed = kept;
        return TWILL_OK;
    }
    if (kept >= 0)
        (void)close(kept);
    if (count == 0 && got == 1 && mark == FD_MARK && (message.msg_flags & MSG_CTRUNC) != 0)
        return tw_fail(TWILL_ERR_SYSTEM,
                       "unix socket: the peer's descriptor finds no room: too many open files");
    if (got == 0)
        return tw_fail(TWILL_ERR_PEER, "unix socket: closed by the peer, a descriptor is missing");
    return tw_fail(TWILL_ERR_PEER, "unix socket: the peer sent %d descriptors, one was to come",
                   count);
}

enum twill_status tw_sock_peer(int fd, pid_t *pid, uid_t *uid)
{
    struct ucred who;
    socklen_t bytes = sizeof(who);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "unix socket: SO_PEERCRED failed");
    *pid = who.pid;
    *uid = who.uid;
    return TWILL_OK;
}

void tw_sock_peer_name(int fd, char name[TW_SOCK_NAME_BYTES])
{
    struct sockaddr_un address;
    socklen_t length = sizeof(address);
    const size_t head = offsetof(struct sockaddr_un, sun_path) + 1;

    memset(&address, 0, sizeof(address));
    name[0] = '\0';
    if (getpeername(fd, (struct sockaddr *)&address, &length) != 0 || length <= head ||
        address.sun_path[0] != '\0' || length - head >= TW_SOCK_NAME_BYTES)
        return;
    memcpy(name, address.sun_path + 1, length - head);
    name[length - head] = '\0';
}
