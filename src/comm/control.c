/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a communicator's control links: who is gone, who failed, who is in finalize.
 * Never knows: what the ranks compute. */
#include "config.h"

#include "comm/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "comm/proc.h"
#include "comm/split.h"

/* ---- failing -----------------------------------------------------------------------------------
 */

void tw_ctl_flood(struct tw_ctl *ctl, const struct tw_link *except)
{
    struct tw_frame_error error = {.origin = ctl->comm->rank};

    (void)pthread_mutex_lock(&ctl->comm->lock);
    error.status = ctl->comm->failing;
    memcpy(error.text, ctl->comm->failure, sizeof(error.text));
    (void)pthread_mutex_unlock(&ctl->comm->lock);
    if (&ctl->meet != except)
        tw_link_send(&ctl->meet, TW_FRAME_ERROR, &error, sizeof(error));
    for (int i = 0; i < TW_TREE_LINKS; i++) {
        if (&ctl->tree[i] != except)
            tw_link_send(&ctl->tree[i], TW_FRAME_ERROR, &error, sizeof(error));
    }
    (void)pthread_cond_broadcast(&ctl->changed);
    if (!ctl->muted)
        tw_loop_later(ctl->loop, &ctl->wake);
}

void tw_ctl_fail(struct tw_ctl *ctl, const struct tw_link *from, enum twill_status status,
                 const char *text)
{
    if (!tw_comm_mark(ctl->comm, status, text))
        return;
    tw_ctl_flood(ctl, from);
    tw_comm_publish(ctl->comm);
    tw_split_parent_failed(ctl->comm, status, text);
    /* what the meeting point says does not reach those whom it has not heard yet */
    if (from == NULL || from == &ctl->meet)
        tw_split_gone_tell(ctl->comm, status, text);
}

void tw_ctl_gone(struct tw_ctl *ctl, int rank, const char *why)
{
    struct twill_comm *comm = ctl->comm;
    bool ready = __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) != TW_COMM_INIT;
    char last[160];
    char text[TW_ERROR_TEXT_BYTES];

    if (tw_comm_status(comm) != TWILL_OK)
        return;
    if (!ready)
        (void)snprintf(last, sizeof(last), "in init of communicator %s", comm->args.name);
    else if (!tw_record_last(comm, rank, last, sizeof(last)))
        (void)snprintf(last, sizeof(last), "in no call yet");
    (void)snprintf(text, sizeof(text), "rank %d (process %d) is gone: %s; it was %s", rank,
                   (int)tw_ctl_pid(comm, rank), why, last);
    tw_warn(TW_SUB_COMM, "%s", text);
    tw_ctl_fail(ctl, NULL, TWILL_ERR_PEER, text);
}

/* ---- frames ------------------------------------------------------------------------------------
 */

static void error_arrived(struct tw_ctl *ctl, struct tw_link *link, const uint8_t *payload)
{
    struct tw_frame_error error;

    memcpy(&error, payload, sizeof(error));
    error.text[sizeof(error.text) - 1] = '\0';
    if (error.status >= 0)
        error.status = TWILL_ERR_PEER;
    tw_debug(TW_SUB_COMM, "rank %d hears from rank %d: %s", ctl->comm->rank, (int)error.origin,
             error.text);
    tw_ctl_fail(ctl, link, (enum twill_status)error.status, error.text);
}

static void left_arrived(struct tw_ctl *ctl, const struct tw_link *link, const uint8_t *payload)
{
    struct tw_frame_left left;

    memcpy(&left, payload, sizeof(left));
    if (left.rank < 0 || left.rank >= ctl->comm->size || ctl->peers == NULL ||
        ctl->peers[left.rank].left)
        return;
    ctl->peers[left.rank].left = true;
    for (int i = 0; i < TW_TREE_LINKS; i++) {
        if (&ctl->tree[i] != link)
            tw_link_send(&ctl->tree[i], TW_FRAME_LEFT, &left, sizeof(left));
    }
    (void)pthread_cond_broadcast(&ctl->changed);
}

static void data_arrived(struct tw_ctl *ctl, struct tw_link *link, uint8_t *payload, uint32_t bytes)
{
    struct tw_ctl_frame *frame = malloc(sizeof(*frame));
    int i = link->index;

    if (frame == NULL) {
        tw_ctl_fail(ctl, NULL, TWILL_ERR_NOMEM, "no memory for a frame of a control link");
        return;
    }
    *frame = (struct tw_ctl_frame){.payload = payload, .bytes = bytes};
    link->taken = true;
    if (ctl->last[i] != NULL)
        ctl->last[i]->next = frame;
    else
        ctl->first[i] = frame;
    ctl->last[i] = frame;
    (void)pthread_cond_broadcast(&ctl->changed);
}

static void fin_done(struct tw_ctl *ctl)
{
    ctl->fin_done = true;
    tw_link_send(&ctl->tree[TW_TREE_CHILD], TW_FRAME_FIN_DONE, NULL, 0);
    tw_link_send(&ctl->tree[TW_TREE_CHILD + 1], TW_FRAME_FIN_DONE, NULL, 0);
    (void)pthread_cond_broadcast(&ctl->changed);
}

void tw_ctl_fin(struct tw_ctl *ctl)
{
    int parts = 1;

    for (int i = TW_TREE_CHILD; i < TW_TREE_LINKS; i++)
        parts += ctl->tree_rank[i] >= 0;
    ctl->fins++;
    if (ctl->fins != parts)
        return;
    if (ctl->tree_rank[TW_TREE_PARENT] >= 0)
        tw_link_send(&ctl->tree[TW_TREE_PARENT], TW_FRAME_FIN, NULL, 0);
    else
        fin_done(ctl);
}

static void garbage_arrived(struct tw_ctl *ctl, struct tw_link *link, enum tw_frame_type type,
                            uint32_t bytes)
{
    char why[128];

    (void)snprintf(why, sizeof(why), "its control link carried garbage (type %u, %u bytes)",
                   (unsigned)type, bytes);
    tw_ctl_gone(ctl, ctl->tree_rank[link->index], why);
    tw_link_close(link);
}

static void tree_on_frame(struct tw_link *link, enum tw_frame_type type, uint8_t *payload,
                          uint32_t bytes)
{
    struct tw_ctl *ctl = link->owner;
    bool from_parent = link->index == TW_TREE_PARENT;

    if (type == TW_FRAME_DATA && ctl->gathering)
        data_arrived(ctl, link, payload, bytes);
    else if (type == TW_FRAME_ERROR && bytes == sizeof(struct tw_frame_error))
        error_arrived(ctl, link, payload);
    else if (type == TW_FRAME_LEFT && bytes == sizeof(struct tw_frame_left))
        left_arrived(ctl, link, payload);
    else if (type == TW_FRAME_GONE && bytes == sizeof(struct tw_frame_gone))
        tw_split_gone_arrived(ctl, link, payload);
    else if (type == TW_FRAME_FIN && bytes == 0 && !from_parent)
        tw_ctl_fin(ctl);
    else if (type == TW_FRAME_FIN_DONE && bytes == 0 && from_parent)
        fin_done(ctl);
    else if (type == TW_FRAME_BYE && bytes == 0)
        ctl->tree_bye[link->index] = true;
    else
        garbage_arrived(ctl, link, type, bytes);
}

static void tree_on_down(struct tw_link *link, const char *why)
{
    struct tw_ctl *ctl = link->owner;
    bool init = __atomic_load_n(&ctl->comm->state, __ATOMIC_ACQUIRE) == TW_COMM_INIT;

    if (ctl->fin_done || ctl->tree_bye[link->index])
        return;
    if (!init || link->garbage) {
        tw_ctl_gone(ctl, ctl->tree_rank[link->index], why);
        return;
    }
    /* the meeting point knows why */
    ctl->tree_lost[link->index] = true;
    tw_ctl_grace(ctl);
}

static void meet_on_frame(struct tw_link *link, enum tw_frame_type type, uint8_t *payload,
                          uint32_t bytes)
{
    struct tw_ctl *ctl = link->owner;

    if (type == TW_FRAME_ERROR && bytes == sizeof(struct tw_frame_error)) {
        error_arrived(ctl, link, payload);
        return;
    }
    if (type == TW_FRAME_WELCOME && ctl->welcome == NULL) {
        ctl->welcome = payload;
        link->taken = true;
        ctl->welcome_bytes = bytes;
        (void)pthread_cond_broadcast(&ctl->changed);
        return;
    }
    tw_ctl_fail(ctl, NULL, TWILL_ERR_PEER, "init: the meeting point sent garbage");
    tw_link_close(link);
}

/* Its process may have left in good order, just before this rank is ready too. */
static void meet_on_down(struct tw_link *link, const char *why)
{
    struct tw_ctl *ctl = link->owner;

    (void)why;
    if (ctl->comm->args.shrinks && ctl->welcome == NULL) {
        ctl->meet_again = true;
        (void)pthread_cond_broadcast(&ctl->changed);
        return;
    }
    ctl->meet_lost = true;
    tw_ctl_grace(ctl);
}

/* ---- links -------------------------------------------------------------------------------------
 */

enum twill_status tw_ctl_tree_open(struct tw_ctl *ctl, int index, int rank, int fd)
{
    struct tw_link *link = &ctl->tree[index];

    *link = (struct tw_link){.owner = ctl,
                             .index = index,
                             .max_bytes = ctl->max_bytes,
                             .on_frame = tree_on_frame,
                             .on_down = tree_on_down};
    ctl->tree_rank[index] = rank;
    enum twill_status status = tw_link_open(link, ctl->loop, fd);
    (void)pthread_cond_broadcast(&ctl->changed);
    return status;
}

enum twill_status tw_ctl_meet_open(struct tw_ctl *ctl, int fd)
{
    ctl->meet = (struct tw_link){.owner = ctl,
                                 .max_bytes = TW_FRAME_SMALL_BYTES,
                                 .on_frame = meet_on_frame,
                                 .on_down = meet_on_down};
    return tw_link_open(&ctl->meet, ctl->loop, fd);
}
