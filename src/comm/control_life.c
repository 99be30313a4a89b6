/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a communicator's control links come and go, finalize, processes that transports have
 * lost. Never knows: what frames say. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "comm/control.h"
#include "comm/proc.h"
#include "comm/roll.h"

/* How long news of an orderly leave or of a better-told failure may take. */
#define NEWS_NS (2 * TW_NS_S) /* for a failure to be heard of that another rank shows */
#define GRACE_NS (200 * TW_NS_MS)
#define SPLIT_GRACE_NS (800 * TW_NS_MS)

/* ---- what was lost -----------------------------------------------------------------------------
 */

static void meet_give_up(struct tw_ctl *ctl)
{
    char text[TW_ERROR_TEXT_BYTES];

    if (ctl->meet_rank >= 0)
        (void)snprintf(text, sizeof(text),
                       "init: rank %d is gone, and the meeting point with its process",
                       ctl->meet_rank);
    else
        (void)snprintf(text, sizeof(text),
                       "init: the meeting point is gone: the process that made the unique id has "
                       "ended");
    tw_ctl_fail(ctl, NULL, TWILL_ERR_PEER, text);
}

/* A rank that had failed before its process ended is not the cause, if there is another. */
static void peers_give_up(struct tw_ctl *ctl)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < ctl->comm->size; r++) {
            struct tw_ctl_peer *peer = &ctl->peers[r];
            if (!peer->lost || (pass == 0 && tw_record_failed(ctl->comm, r)))
                continue;
            if (!peer->left && !ctl->fin_done)
                tw_ctl_gone(ctl, r, "its process has ended");
            peer->lost = false;
        }
    }
}

static void lost_give_up(struct tw_ctl *ctl)
{
    bool init = __atomic_load_n(&ctl->comm->state, __ATOMIC_ACQUIRE) == TW_COMM_INIT;

    for (int i = 0; i < TW_TREE_LINKS; i++) {
        if (ctl->tree_lost[i] && !ctl->fin_done)
            tw_ctl_gone(ctl, ctl->tree_rank[i], "it closed its control link");
        ctl->tree_lost[i] = false;
    }
    if (ctl->peers != NULL)
        peers_give_up(ctl);
    if (ctl->meet_lost && init)
        meet_give_up(ctl);
    ctl->meet_lost = false;
}

static void grace_on_event(struct tw_source *source, uint32_t events)
{
    struct tw_ctl *ctl = source->owner;

    (void)events;
    tw_loop_unwatch(ctl->loop, source);
    (void)close(source->fd);
    source->fd = -1;
    lost_give_up(ctl);
}

void tw_ctl_grace(struct tw_ctl *ctl)
{
    if (ctl->grace.fd >= 0)
        return;
    ctl->grace.owner = ctl;
    ctl->grace.on_event = grace_on_event;
    if (tw_timer_open(&ctl->grace.fd, GRACE_NS) != TWILL_OK) {
        lost_give_up(ctl);
    } else if (tw_loop_watch(ctl->loop, &ctl->grace, EPOLLIN) != TWILL_OK) {
        (void)close(ctl->grace.fd);
        ctl->grace.fd = -1;
        lost_give_up(ctl);
    }
}

void tw_ctl_peer_lost(void *context, const struct tw_proc_id *peer)
{
    struct tw_proc_state *state = context;

    tw_loop_lock(state->loop);
    tw_rolls_lost(state, peer);
    for (struct tw_ctl *ctl = state->ctls; ctl != NULL; ctl = ctl->next) {
        for (int r = 0; ctl->peers != NULL && r < ctl->comm->size; r++) {
            if (memcmp(&ctl->peers[r].proc, peer, sizeof(*peer)) != 0 || ctl->peers[r].left)
                continue;
            ctl->peers[r].lost = true;
            tw_ctl_grace(ctl);
        }
    }
    tw_loop_unlock(state->loop);
}

int32_t tw_ctl_pid(const struct twill_comm *comm, int rank)
{
    return comm->ctl->peers != NULL ? comm->ctl->peers[rank].pid : 0;
}

void tw_ctl_news(struct twill_comm *comm)
{
    struct tw_ctl *ctl = comm->ctl;
    const bool split = comm->nonce[0] != 0; /* hears over its parent's links, too */
    uint64_t until_ns = tw_deadline_ns(split ? SPLIT_GRACE_NS : GRACE_NS + GRACE_NS / 2);
    bool in_time = true;

    tw_loop_lock(ctl->loop);
    while (tw_comm_status(comm) == TWILL_OK && (split || tw_link_up(&ctl->meet)) && in_time)
        in_time = tw_cond_wait(&ctl->changed, &ctl->loop->lock, until_ns);
    tw_loop_unlock(ctl->loop);
}

/* ---- finalize ----------------------------------------------------------------------------------
 */

static int who_left(const struct tw_ctl *ctl)
{
    for (int r = 0; r < ctl->comm->size; r++) {
        if (ctl->peers[r].left)
            return r;
    }
    return -1;
}

/* Until all are in finalize, somebody left, the communicator failed, or the time is over. */
static bool finalize_wait(struct tw_ctl *ctl, uint64_t deadline_ns, int *left)
{
    bool in_time = true;

    tw_loop_lock(ctl->loop);
    for (;;) {
        *left = who_left(ctl);
        if (ctl->fin_done || *left >= 0 || tw_comm_status(ctl->comm) != TWILL_OK || !in_time)
            break;
        in_time = tw_cond_wait(&ctl->changed, &ctl->loop->lock, deadline_ns);
    }
    bool done = ctl->fin_done;
    tw_loop_unlock(ctl->loop);
    return done;
}

enum twill_status tw_ctl_finalize(struct twill_comm *comm, uint64_t deadline_ns)
{
    int left = -1;

    tw_loop_lock(comm->ctl->loop);
    tw_ctl_fin(comm->ctl);
    tw_loop_unlock(comm->ctl->loop);
    if (finalize_wait(comm->ctl, deadline_ns, &left))
        return TWILL_OK;
    /* where nobody is late to be seen, another rank's time was over first, and who was late has
     * heard of it already: this rank will, too */
    if (left < 0 && tw_comm_status(comm) == TWILL_OK && !tw_record_late(comm, "finalize", false) &&
        finalize_wait(comm->ctl, tw_deadline_ns(NEWS_NS), &left))
        return TWILL_OK;
    if (left >= 0)
        tw_comm_fail(comm, TWILL_ERR_MISMATCH,
                     "rank %d destroyed the communicator, rank %d waits for it in finalize", left,
                     comm->rank);
    else if (tw_comm_status(comm) == TWILL_OK)
        (void)tw_record_late(comm, "finalize", true);
    return tw_comm_status(comm);
}

/* ---- coming and going
 * --------------------------------------------------------------------------------------
 */

/* Runs on the control thread, outside the lock: operations have locks of their own. */
static void wake_run(struct tw_later *later)
{
    struct tw_ctl *ctl = (struct tw_ctl *)(void *)((char *)later - offsetof(struct tw_ctl, wake));

    tw_ops_wake(ctl->comm);
    tw_loop_lock(ctl->loop);
    later->running = false;
    tw_loop_unlock(ctl->loop);
}

enum twill_status tw_ctl_create(struct twill_comm *comm)
{
    struct tw_proc_state *state = tw_proc_state();
    struct tw_ctl *ctl = tw_alloc(sizeof(*ctl));

    if (ctl == NULL)
        return TWILL_ERR_NOMEM;
    ctl->comm = comm;
    ctl->loop = state->loop;
    ctl->wake.run = wake_run;
    ctl->meet_rank = -1;
    ctl->meet.source.fd = ctl->grace.fd = ctl->door.source.fd = -1;
    for (int i = 0; i < TW_TREE_LINKS; i++) {
        ctl->tree[i].source.fd = -1;
        ctl->tree_rank[i] = -1;
    }
    tw_cond_init(&ctl->changed);
    comm->ctl = ctl;
    tw_loop_lock(ctl->loop);
    ctl->next = state->ctls;
    if (state->ctls != NULL)
        state->ctls->prev = ctl;
    state->ctls = ctl;
    tw_loop_unlock(ctl->loop);
    return TWILL_OK;
}

void tw_ctl_mute(struct twill_comm *comm)
{
    struct tw_ctl *ctl = comm->ctl;

    tw_loop_lock(ctl->loop);
    ctl->muted = true;
    tw_loop_forget(ctl->loop, &ctl->wake);
    tw_loop_unlock(ctl->loop);
}

/* A rank that goes without finalize says so, and the others decide whether they needed it. */
static void leave_tell(struct tw_ctl *ctl)
{
    struct twill_comm *comm = ctl->comm;

    if (tw_comm_status(comm) != TWILL_OK)
        return; /* they have heard of the failure */
    const struct tw_frame_left left = {.rank = comm->rank};
    for (int i = 0; i < TW_TREE_LINKS; i++) {
        if (!ctl->fin_done)
            tw_link_send(&ctl->tree[i], TW_FRAME_LEFT, &left, sizeof(left));
        tw_link_send(&ctl->tree[i], TW_FRAME_BYE, NULL, 0);
    }
}

static void links_close(struct tw_ctl *ctl)
{
    tw_link_close(&ctl->meet);
    for (int i = 0; i < TW_TREE_LINKS; i++) {
        tw_link_close(&ctl->tree[i]);
        while (ctl->first[i] != NULL) {
            struct tw_ctl_frame *frame = ctl->first[i];
            ctl->first[i] = frame->next;
            free(frame->payload);
            free(frame);
        }
    }
    if (ctl->grace.fd >= 0) {
        tw_loop_unwatch(ctl->loop, &ctl->grace);
        (void)close(ctl->grace.fd);
    }
}

void tw_ctl_door_close(struct tw_ctl *ctl)
{
    if (!ctl->door_used)
        return;
    tw_door_close(&ctl->door);
    while (!ctl->door_idle)
        (void)pthread_cond_wait(&ctl->changed, &ctl->loop->lock);
    ctl->door_used = false;
}

void tw_ctl_destroy(struct twill_comm *comm)
{
    struct tw_ctl *ctl = comm->ctl;
    struct tw_proc_state *state = tw_proc_state();

    if (ctl == NULL)
        return;
    tw_loop_lock(ctl->loop);
    tw_ctl_door_close(ctl);
    leave_tell(ctl);
    links_close(ctl);
    if (ctl->prev != NULL)
        ctl->prev->next = ctl->next;
    else
        state->ctls = ctl->next;
    if (ctl->next != NULL)
        ctl->next->prev = ctl->prev;
    tw_loop_unlock(ctl->loop);
    (void)pthread_cond_destroy(&ctl->changed);
    free(ctl->welcome);
    free(ctl->peers);
    free(ctl);
    comm->ctl = NULL;
}
