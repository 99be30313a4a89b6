/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what two processes say over a fresh connection. Never knows: who is connected already. */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "base/time.h"
#include "transport/cma.h"
#include "transport/offer.h"
#include "transport/rma.h"
#include "transport/shm.h"
#include "transport/shm_wire.h"

#define FETCH_NS (10 * TW_NS_S)

static struct tw_shm_wire_head head_of(enum tw_shm_wire_kind kind)
{
    return (struct tw_shm_wire_head){TW_SHM_WIRE_MAGIC, TW_SHM_WIRE_VERSION, (uint16_t)kind};
}

static enum twill_status head_check(const struct tw_shm_wire_head *head, uint32_t bytes,
                                    enum tw_shm_wire_kind kind, size_t expected)
{
    if (bytes < sizeof(*head) || head->magic != TW_SHM_WIRE_MAGIC) {
        return tw_fail(TWILL_ERR_PEER, "connection: %u bytes that are no message of twill", bytes);
    }
    if (head->version != TW_SHM_WIRE_VERSION) {
        return tw_fail(TWILL_ERR_VERSION, "peer speaks version %u of the shm transport, not %d",
                       head->version, TW_SHM_WIRE_VERSION);
    }
    if (head->kind != kind || bytes != expected) {
        return tw_fail(TWILL_ERR_PEER,
                       "connection: message of kind %u and %u bytes, expected %d, %zu", head->kind,
                       bytes, kind, expected);
    }
    return TWILL_OK;
}

/* ---- endpoints ------------------------------------------------------------------------------ */

/* Maps the peer's segment and fills an ep; takes segment over, not fd. */
static enum twill_status ep_make(struct tw_net *net, const struct tw_shm_wire_hello *hello, int fd,
                                 int segment, struct tw_ep **out)
{
    struct tw_ep *ep = tw_alloc(sizeof(*ep));
    struct tw_shm_ep *shm = tw_alloc(sizeof(*shm));
    pid_t pid = 0;
    uid_t uid;
    enum twill_status status = TWILL_ERR_NOMEM;
    if (ep == NULL || shm == NULL) {
        close(segment);
        goto err_free;
    }
    status = tw_sock_peer(fd, &pid, &uid);
    if (status != TWILL_OK) {
        close(segment);
        goto err_free;
    }
    status = tw_shm_map(&shm->map, segment, hello->staging_bytes);
    if (status != TWILL_OK) {
        goto err_free;
    }
    close(shm->map.fd); /* the mapping is enough */
    shm->map.fd = -1;
    shm->fd = fd;
    shm->pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    memcpy(shm->service_key, hello->service_key, TW_KEY_BYTES);
    memcpy(shm->service_name, hello->service_name, TW_SOCK_NAME_BYTES);
    shm->service_name[TW_SOCK_NAME_BYTES - 1] = '\0';
    *ep = (struct tw_ep){.net = net,
                         .peer = hello->from,
                         .caps = TW_NET_ADDRESSABLE,
                         .base = shm->map.base,
                         .bytes = shm->map.bytes,
                         .pid = pid,
                         .shm = shm};
    *out = ep;
    return TWILL_OK;

err_free:
    free(ep);
    free(shm);
    return status;
}

static void hello_fill(const struct tw_net *net, const struct tw_proc_id *to,
                       struct tw_shm_wire_hello *hello)
{
    memset(hello, 0, sizeof(*hello));
    hello->head = head_of(TW_SHM_WIRE_HELLO);
    hello->from = net->config.self;
    hello->to = *to;
    hello->staging_bytes = net->staging.bytes;
    hello->pattern_address = (uint64_t)(uintptr_t)net->shm->pattern;
    memcpy(hello->pattern, net->shm->pattern, sizeof(hello->pattern));
    memcpy(hello->service_key, net->shm->service->key, TW_KEY_BYTES);
    memcpy(hello->service_name, net->shm->service_name, TW_SOCK_NAME_BYTES);
    hello->cma = net->config.allow_cma;
}

static bool cma_readable(const struct tw_net *net, const struct tw_shm_wire_hello *hello, int pid)
{
    return net->config.allow_cma && hello->cma == 1 &&
           tw_cma_probe(pid, hello->pattern_address, hello->pattern, sizeof(hello->pattern));
}

static enum twill_status hello_send(struct tw_net *net, int fd,
                                    const struct tw_shm_wire_hello *hello,
                                    const struct tw_sock_wait *wait)
{
    enum twill_status status = tw_sock_send_msg(fd, hello, sizeof(*hello), wait);
    return status == TWILL_OK ? tw_sock_send_fd(fd, net->staging.fd, wait) : status;
}

static bool addressed(const struct tw_net *net, const struct tw_shm_wire_hello *hello)
{
    return memcmp(&hello->to, &net->config.self, sizeof(hello->to)) == 0;
}

/* ---- connecting side ------------------------------------------------------------------------ */

enum twill_status tw_shm_dial(int *fd, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t bytes = strlen(name);
    memcpy(address.sun_path + 1, name, bytes);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) {
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "connecting to @%s: no socket", name);
    }
    if (connect(made, (const struct sockaddr *)&address, length) == 0) {
        *fd = made;
        return TWILL_OK;
    }
    int error = errno;
    close(made);
    if (error == EAGAIN || error == EINTR) {
        return TWILL_ERR_AGAIN;
    }
    return error == ECONNREFUSED
               ? TWILL_ERR_PEER
               : tw_fail_errno(TWILL_ERR_SYSTEM, error, "connecting to @%s", name);
}

static enum twill_status reply_recv(struct tw_net *net, int fd, const struct tw_proc_id *peer,
                                    const struct tw_sock_wait *wait, struct tw_ep **ep)
{
    struct tw_shm_wire_hello reply;
    uint32_t bytes;
    enum twill_status status = tw_sock_recv_msg(fd, &reply, sizeof(reply), &bytes, wait);
    if (status == TWILL_OK) {
        status = head_check(&reply.head, bytes, TW_SHM_WIRE_HELLO, sizeof(reply));
    }
    if (status == TWILL_OK &&
        (memcmp(&reply.from, peer, sizeof(*peer)) != 0 || !addressed(net, &reply))) {
        status = tw_fail(TWILL_ERR_PEER, "connection: another process answers at this address");
    }
    int segment;
    if (status == TWILL_OK) {
        status = tw_sock_recv_fd(fd, &segment, wait);
    }
    if (status == TWILL_OK) {
        status = ep_make(net, &reply, fd, segment, ep);
    }
    if (status == TWILL_OK) {
        (*ep)->cma = cma_readable(net, &reply, (*ep)->pid);
    }
    return status;
}

enum twill_status tw_shm_greet(struct tw_net *net, int fd, const struct tw_proc_id *peer,
                               const uint8_t key[TW_KEY_BYTES], const struct tw_sock_wait *wait,
                               struct tw_ep **ep)
{
    struct tw_shm_wire_hello hello;
    struct tw_ep *made = NULL;
    hello_fill(net, peer, &hello);
    enum twill_status status = tw_sock_prove(fd, key, 0, TW_SHM_PROOF_CONTEXT, wait);
    if (status == TWILL_OK) {
        status = hello_send(net, fd, &hello, wait);
    }
    if (status == TWILL_OK) {
        status = reply_recv(net, fd, peer, wait, &made);
    }
    if (status == TWILL_OK) {
        struct tw_shm_wire_agreed agreed = {.head = head_of(TW_SHM_WIRE_HELLO), .cma = made->cma};
        status = tw_sock_send_msg(fd, &agreed, sizeof(agreed), wait);
    }
    if (status == TWILL_OK) {
        *ep = made;
    } else if (made != NULL) {
        tw_shm_ep_free(made); /* closes fd */
    } else {
        close(fd);
    }
    return status;
}

/* ---- accepting side ------------------------------------------------------------------------- */

static enum twill_status hello_check(const struct tw_net *net,
                                     const struct tw_shm_wire_hello *hello)
{
    char text[TW_PROC_TEXT_BYTES];
    if (!addressed(net, hello)) {
        return tw_fail(TWILL_ERR_PEER, "connection from process %s is for another process",
                       tw_proc_text(&hello->from, text));
    }
    if (memcmp(hello->from.host, net->config.self.host, sizeof(hello->from.host)) != 0 ||
        memcmp(&hello->from, &net->config.self, sizeof(hello->from)) >= 0) {
        return tw_fail(TWILL_ERR_PEER,
                       "connection from process %s, which is not the one to connect",
                       tw_proc_text(&hello->from, text));
    }
    return TWILL_OK;
}

/* Our half of the hello, then what both agreed on. */
static enum twill_status hello_answer(struct tw_ep *ep, const struct tw_shm_wire_hello *hello,
                                      const struct tw_sock_wait *wait)
{
    struct tw_net *net = ep->net;
    struct tw_shm_wire_hello reply;
    struct tw_shm_wire_agreed agreed;
    uint32_t bytes;
    hello_fill(net, &hello->from, &reply);
    bool mine = cma_readable(net, hello, ep->pid);
    reply.cma = mine;
    enum twill_status status = hello_send(net, ep->shm->fd, &reply, wait);
    if (status == TWILL_OK) {
        status = tw_sock_recv_msg(ep->shm->fd, &agreed, sizeof(agreed), &bytes, wait);
    }
    if (status == TWILL_OK) {
        status = head_check(&agreed.head, bytes, TW_SHM_WIRE_HELLO, sizeof(agreed));
    }
    if (status == TWILL_OK) {
        ep->cma = mine && agreed.cma == 1;
    }
    return status;
}

/* Takes fd over. */
static enum twill_status welcome(struct tw_net *net, int fd, const struct tw_shm_wire_hello *hello,
                                 const struct tw_sock_wait *wait)
{
    struct tw_ep *ep;
    int segment;
    enum twill_status status = hello_check(net, hello);
    if (status == TWILL_OK) {
        status = tw_sock_recv_fd(fd, &segment, wait);
    }
    if (status == TWILL_OK) {
        status = ep_make(net, hello, fd, segment, &ep);
    }
    if (status != TWILL_OK) {
        close(fd);
        return status;
    }
    status = hello_answer(ep, hello, wait);
    if (status != TWILL_OK) {
        tw_shm_ep_free(ep);
        return status;
    }
    return tw_shm_ep_install(ep, false);
}

static enum twill_status fetch_answer(struct tw_net *net, int fd,
                                      const struct tw_shm_wire_fetch *fetch,
                                      const struct tw_sock_wait *wait)
{
    int found = tw_mr_fd(net, fetch->token);
    if (found < 0) {
        found = tw_offer_fd(net, fetch->token);
    }
    struct tw_shm_wire_fetched fetched = {.head = head_of(TW_SHM_WIRE_FETCH), .found = found >= 0};
    enum twill_status status = tw_sock_send_msg(fd, &fetched, sizeof(fetched), wait);
    if (found >= 0) {
        if (status == TWILL_OK) {
            status = tw_sock_send_fd(fd, found, wait);
        }
        close(found);
    }
    return status;
}

enum twill_status tw_shm_receive(struct tw_net *net, int fd, const uint8_t key[TW_KEY_BYTES],
                                 const struct tw_sock_wait *wait)
{
    union {
        struct tw_shm_wire_head head;
        struct tw_shm_wire_hello hello;
        struct tw_shm_wire_fetch fetch;
    } in;
    uint32_t bytes = 0;
    memset(&in, 0, sizeof(in));
    enum twill_status status = tw_sock_prove(fd, key, 1, TW_SHM_PROOF_CONTEXT, wait);
    if (status == TWILL_OK) {
        status = tw_sock_recv_msg(fd, &in, sizeof(in), &bytes, wait);
    }
    if (status == TWILL_OK && in.head.kind == TW_SHM_WIRE_FETCH) {
        status = head_check(&in.head, bytes, TW_SHM_WIRE_FETCH, sizeof(in.fetch));
        if (status == TWILL_OK) {
            status = fetch_answer(net, fd, &in.fetch, wait);
        }
    } else if (status == TWILL_OK) {
        status = head_check(&in.head, bytes, TW_SHM_WIRE_HELLO, sizeof(in.hello));
        if (status == TWILL_OK) {
            return welcome(net, fd, &in.hello, wait);
        }
    }
    close(fd);
    return status;
}

/* ---- descriptors of registered memory ------------------------------------------------------- */

static enum twill_status fetch_ask(int conn, const uint8_t key[TW_KEY_BYTES],
                                   const uint64_t token[2], const struct tw_sock_wait *wait,
                                   int *fd)
{
    struct tw_shm_wire_fetch fetch = {.head = head_of(TW_SHM_WIRE_FETCH),
                                      .token = {token[0], token[1]}};
    struct tw_shm_wire_fetched fetched;
    uint32_t bytes;
    enum twill_status status = tw_sock_prove(conn, key, 0, TW_SHM_PROOF_CONTEXT, wait);
    if (status == TWILL_OK) {
        status = tw_sock_send_msg(conn, &fetch, sizeof(fetch), wait);
    }
    if (status == TWILL_OK) {
        status = tw_sock_recv_msg(conn, &fetched, sizeof(fetched), &bytes, wait);
    }
    if (status == TWILL_OK) {
        status = head_check(&fetched.head, bytes, TW_SHM_WIRE_FETCH, sizeof(fetched));
    }
    if (status == TWILL_OK && fetched.found != 1) {
        status = tw_fail(TWILL_ERR_PEER, "peer no longer has the memory that is imported");
    }
    return status == TWILL_OK ? tw_sock_recv_fd(conn, fd, wait) : status;
}

enum twill_status tw_shm_fetch(struct tw_ep *ep, const uint64_t token[2], int *fd)
{
    const struct tw_sock_wait wait = {.deadline_ns = tw_deadline_ns(FETCH_NS), .cancel_fd = -1};
    int conn;
    if (tw_ep_lost(ep)) {
        return tw_fail(TWILL_ERR_PEER, "memory cannot be imported: its process is gone");
    }
    enum twill_status status = tw_sock_connect(&conn, ep->shm->service_name, &wait);
    if (status != TWILL_OK) {
        return status;
    }
    status = fetch_ask(conn, ep->shm->service_key, token, &wait, fd);
    close(conn);
    return status;
}
