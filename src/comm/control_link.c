/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: frames over a socket that never blocks. Never knows: what the frames mean. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/control.h"

#define FRAME_MARK 0x7477u
#define OUT_ROOM_FIRST 1024u
/* A neighbour that has stopped reading is given up once so much waits for it after init. */
#define OUT_SLACK_BYTES ((size_t)64 * 1024)

/* The owner may still answer a peer that is there but talks nonsense. */
static void link_fail(struct tw_link *link, const char *why)
{
    link->on_down(link, why);
    tw_link_close(link);
}

void tw_link_close(struct tw_link *link)
{
    if (!tw_link_up(link))
        return;
    tw_loop_unwatch(link->loop, &link->source);
    (void)close(link->source.fd);
    link->source.fd = -1;
    free(link->payload);
    free(link->out);
    link->payload = NULL;
    link->out = NULL;
    link->out_first = link->out_end = link->out_room = 0;
    link->head_got = link->got = 0;
}

/* ---- out ---------------------------------------------------------------------------------------
 */

/* Errors are left to the reading side: it sees the hang-up after whatever came before it. */
static void out_flush(struct tw_link *link)
{
    while (link->out_first < link->out_end) {
        ssize_t sent = send(link->source.fd, link->out + link->out_first,
                            link->out_end - link->out_first, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return;
        link->out_first += (size_t)sent;
    }
    link->out_first = link->out_end = 0;
}

static bool out_reserve(struct tw_link *link, size_t bytes)
{
    size_t used = link->out_end - link->out_first;

    if (link->out_first > 0 && used > 0)
        memmove(link->out, link->out + link->out_first, used);
    link->out_first = 0;
    link->out_end = used;
    if (used + bytes <= link->out_room)
        return true;
    if (used + bytes > (size_t)link->max_bytes + OUT_SLACK_BYTES)
        return false;
    size_t room = link->out_room > 0 ? link->out_room : OUT_ROOM_FIRST;
    while (room < used + bytes)
        room *= 2;
    uint8_t *out = realloc(link->out, room);
    if (out == NULL)
        return false;
    link->out = out;
    link->out_room = room;
    return true;
}

void tw_link_send(struct tw_link *link, enum tw_frame_type type, const void *data, uint32_t bytes)
{
    const struct tw_frame_head head = {.bytes = bytes, .type = (uint16_t)type, .mark = FRAME_MARK};

    if (!tw_link_up(link))
        return;
    if (!out_reserve(link, sizeof(head) + bytes)) {
        /* the peer sees a link that ends in the middle, and on_event here a hang-up */
        (void)shutdown(link->source.fd, SHUT_RDWR);
        return;
    }
    memcpy(link->out + link->out_end, &head, sizeof(head));
    if (bytes > 0)
        memcpy(link->out + link->out_end + sizeof(head), data, bytes);
    link->out_end += sizeof(head) + bytes;
    out_flush(link);
}

/* ---- in ----------------------------------------------------------------------------------------
 */

/* @return bytes read; 0: nothing there now; -1: the link has failed and is closed */
static ssize_t in_read(struct tw_link *link, void *data, size_t bytes)
{
    ssize_t got = -1;

    do {
        got = recv(link->source.fd, data, bytes, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got > 0)
        return got;
    if (got < 0 && errno == EAGAIN)
        return 0;
    link_fail(link, got == 0 ? "it closed its control link" : "its control link was reset");
    return -1;
}

/* A whole head is there. @return false: it is no head; the link has failed */
static bool head_accept(struct tw_link *link)
{
    const struct tw_frame_head *head = &link->head;
    char why[128];

    if (head->mark != FRAME_MARK || head->type == 0 || head->type >= TW_FRAME_TYPES ||
        head->bytes > link->max_bytes) {
        (void)snprintf(why, sizeof(why),
                       "its control link carried garbage (mark %#x, type %u, %u bytes)",
                       (unsigned)head->mark, (unsigned)head->type, (unsigned)head->bytes);
        link->garbage = true;
        link_fail(link, why);
        return false;
    }
    link->got = 0;
    link->payload = malloc(head->bytes > 0 ? head->bytes : 1);
    if (link->payload == NULL) {
        link_fail(link, "there is no memory for its frame");
        return false;
    }
    return true;
}

/* The payload outlives a link that is closed by its frame. @return true: read on */
static bool frame_finish(struct tw_link *link)
{
    const struct tw_frame_head head = link->head;
    uint8_t *payload = link->payload;

    link->head_got = 0;
    link->payload = NULL;
    link->taken = false;
    link->on_frame(link, (enum tw_frame_type)head.type, payload, head.bytes);
    if (!link->taken)
        free(payload);
    return tw_link_up(link);
}

/* @return true: the head is whole and makes sense */
static bool head_read(struct tw_link *link)
{
    while (link->head_got < sizeof(link->head)) {
        ssize_t got = in_read(link, (uint8_t *)&link->head + link->head_got,
                              sizeof(link->head) - link->head_got);
        if (got <= 0)
            return false;
        link->head_got += (uint32_t)got;
        if (link->head_got == sizeof(link->head))
            return head_accept(link);
    }
    return true;
}

void tw_link_read(struct tw_link *link)
{
    while (tw_link_up(link) && head_read(link)) {
        if (link->got < link->head.bytes) {
            ssize_t got = in_read(link, link->payload + link->got, link->head.bytes - link->got);
            if (got <= 0)
                return;
            link->got += (uint32_t)got;
        }
        if (link->got == link->head.bytes && !frame_finish(link))
            return;
    }
}

static void link_on_event(struct tw_source *source, uint32_t events)
{
    struct tw_link *link = (struct tw_link *)(void *)source; /* its first member */

    if ((events & EPOLLOUT) != 0)
        out_flush(link);
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        tw_link_read(link);
}

enum twill_status tw_link_open(struct tw_link *link, struct tw_loop *loop, int fd)
{
    link->loop = loop;
    link->source = (struct tw_source){.fd = fd, .on_event = link_on_event};
    link->head_got = link->got = 0;
    /* edge-triggered in both directions: nothing to change when output is left over */
    enum twill_status status =
        tw_loop_watch(loop, &link->source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    if (status != TWILL_OK) {
        (void)close(fd);
        link->source.fd = -1;
    }
    return status;
}
