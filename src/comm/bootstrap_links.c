/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a rank gets its control links to its parent and its children in the tree.
 * Never knows: how ranks learned of each other, what goes over the links. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "comm/bootstrap.h"

struct tree_hello {
    uint32_t magic;
    int32_t rank;
};

void tw_tree_context(const uint8_t nonce[16], char context[TW_CONTEXT_BYTES])
{
    int used = snprintf(context, TW_CONTEXT_BYTES, "twill tree ");

    for (int i = 0; i < 16; i++)
        used += snprintf(context + used, TW_CONTEXT_BYTES - (size_t)used, "%02x", nonce[i]);
}

static void child_on_caller(struct tw_door *door, int fd, const uint8_t *data, uint32_t bytes)
{
    struct tw_ctl *ctl = (struct tw_ctl *)(void *)((char *)door - offsetof(struct tw_ctl, door));
    struct tree_hello hello = {0};

    if (bytes == sizeof(hello))
        memcpy(&hello, data, sizeof(hello));
    int index = hello.rank - 2 * ctl->comm->rank - 1 + TW_TREE_CHILD;
    if (hello.magic != TW_HELLO_MAGIC || index < TW_TREE_CHILD || index >= TW_TREE_LINKS ||
        hello.rank >= ctl->comm->size || ctl->tree_rank[index] >= 0) {
        tw_warn(TW_SUB_COMM, "rank %d turned a connection away: it is of none of its children",
                ctl->comm->rank);
        (void)close(fd);
        return;
    }
    if (tw_ctl_tree_open(ctl, index, hello.rank, fd) != TWILL_OK)
        tw_ctl_fail(ctl, NULL, TWILL_ERR_SYSTEM, tw_fail_text());
}

static void child_on_idle(struct tw_door *door)
{
    struct tw_ctl *ctl = (struct tw_ctl *)(void *)((char *)door - offsetof(struct tw_ctl, door));

    ctl->door_idle = true;
    (void)pthread_cond_broadcast(&ctl->changed);
}

static void child_on_missed(struct tw_door *door, enum twill_status status)
{
    struct tw_ctl *ctl = (struct tw_ctl *)(void *)((char *)door - offsetof(struct tw_ctl, door));
    char text[TW_ERROR_TEXT_BYTES];

    (void)snprintf(text, sizeof(text), "init: rank %d cannot hear one of its children: %.*s",
                   ctl->comm->rank, TW_ERROR_TEXT_BYTES - 64, tw_fail_text());
    tw_ctl_fail(ctl, NULL, status, text);
}

static enum twill_status door_open(struct tw_boot *boot)
{
    struct tw_door *door = &boot->ctl->door;
    int fd = boot->tree_fd;

    memcpy(door->key, boot->welcome.key, sizeof(door->key));
    tw_tree_context(boot->welcome.nonce, door->context);
    door->patience_ns = 5 * TW_NS_S;
    door->on_caller = child_on_caller;
    door->on_missed = child_on_missed;
    door->on_idle = child_on_idle;
    tw_loop_lock(boot->ctl->loop);
    boot->tree_fd = -1;
    enum twill_status status = tw_door_open(door, boot->ctl->loop, fd);
    boot->ctl->door_used = status == TWILL_OK;
    tw_loop_unlock(boot->ctl->loop);
    return status;
}

static enum twill_status parent_connect(struct tw_boot *boot)
{
    const struct tree_hello hello = {.magic = TW_HELLO_MAGIC, .rank = boot->comm->rank};
    char context[TW_CONTEXT_BYTES];
    int fd = -1;

    if (boot->comm->rank == 0)
        return TWILL_OK;
    tw_tree_context(boot->welcome.nonce, context);
    enum twill_status status = tw_sock_connect(&fd, boot->welcome.parent_door, &boot->wait);
    if (status == TWILL_OK)
        status = tw_sock_prove(fd, boot->welcome.key, 0, context, &boot->wait);
    if (status == TWILL_OK)
        status = tw_sock_send_msg(fd, &hello, sizeof(hello), &boot->wait);
    if (status != TWILL_OK) {
        if (fd >= 0)
            (void)close(fd);
        return status;
    }
    tw_loop_lock(boot->ctl->loop);
    status = tw_ctl_tree_open(boot->ctl, TW_TREE_PARENT, tw_tree_parent(boot->comm->rank), fd);
    tw_loop_unlock(boot->ctl->loop);
    return status;
}

static enum twill_status children_wait(struct tw_boot *boot)
{
    struct tw_ctl *ctl = boot->ctl;
    struct twill_comm *comm = boot->comm;
    bool in_time = true;
    int missing = -1;

    tw_loop_lock(ctl->loop);
    for (;;) {
        missing = -1;
        for (int i = TW_TREE_LINKS - 1; i >= TW_TREE_CHILD; i--) {
            int child = 2 * comm->rank + 1 + i - TW_TREE_CHILD;
            if (child < comm->size && ctl->tree_rank[i] < 0)
                missing = child;
        }
        if (missing < 0 || tw_comm_status(comm) != TWILL_OK || !in_time)
            break;
        in_time = tw_cond_wait(&ctl->changed, &ctl->loop->lock, boot->wait.deadline_ns);
    }
    tw_loop_unlock(ctl->loop);
    if (tw_comm_status(comm) == TWILL_OK && missing >= 0)
        return tw_fail(TWILL_ERR_TIMEOUT, "init: rank %d waits in vain for rank %d to connect",
                       comm->rank, missing);
    return tw_comm_status(comm);
}

enum twill_status tw_boot_links(struct tw_boot *boot)
{
    size_t frame = tw_boot_frame_bytes(boot->comm->size);

    if (frame > UINT32_MAX / 2)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "init: %d ranks are more than this build connects",
                       boot->comm->size);
    tw_loop_lock(boot->ctl->loop);
    boot->ctl->max_bytes = (uint32_t)frame + TW_FRAME_SMALL_BYTES;
    boot->ctl->gathering = true;
    tw_loop_unlock(boot->ctl->loop);
    enum twill_status status = door_open(boot);
    if (status == TWILL_OK)
        status = parent_connect(boot);
    if (status == TWILL_OK)
        status = children_wait(boot);
    return status;
}
