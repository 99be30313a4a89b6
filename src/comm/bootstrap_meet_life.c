/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: when a meeting point opens, how long it stays, how it goes.
 * Never knows: what is said there. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "comm/bootstrap_meet.h"

#define PATIENCE_NS (5 * TW_NS_S)

void tw_meeting_unref(struct tw_meeting *meeting)
{
    if (!meeting->holds_ref)
        return;
    meeting->holds_ref = false;
    tw_proc_put_soon();
}

/* ---- the end -----------------------------------------------------------------------------------
 */

static void meeting_free(struct tw_later *later)
{
    struct tw_meeting *meeting =
        (struct tw_meeting *)(void *)((char *)later - offsetof(struct tw_meeting, burial));
    struct tw_loop *loop = meeting->state->loop;

    tw_loop_lock(loop);
    if (meeting->prev != NULL)
        meeting->prev->next = meeting->next;
    else
        meeting->state->meetings = meeting->next;
    if (meeting->next != NULL)
        meeting->next->prev = meeting->prev;
    for (int r = 0; r < meeting->size; r++)
        free(meeting->seats[r].hello);
    free(meeting->seats);
    tw_meeting_unref(meeting);
    tw_loop_unlock(loop);
    free(meeting);
}

static void meeting_on_idle(struct tw_door *door)
{
    struct tw_meeting *meeting = (struct tw_meeting *)(void *)door;

    tw_loop_later(meeting->state->loop, &meeting->burial);
}

void tw_meeting_timer_stop(struct tw_meeting *meeting)
{
    if (meeting->timer.fd < 0)
        return;
    tw_loop_unwatch(meeting->state->loop, &meeting->timer);
    (void)close(meeting->timer.fd);
    meeting->timer.fd = -1;
}

/* The memory goes later, once the last caller has gone. */
void tw_meeting_end(struct tw_meeting *meeting)
{
    if (meeting->ended)
        return;
    meeting->ended = true;
    tw_meeting_timer_stop(meeting);
    for (int r = 0; r < meeting->size; r++)
        tw_link_close(&meeting->seats[r].link);
    tw_door_close(&meeting->door);
}

/* ---- time --------------------------------------------------------------------------------------
 */

static void timer_on_event(struct tw_source *source, uint32_t events)
{
    struct tw_meeting *meeting =
        (struct tw_meeting *)(void *)((char *)source - offsetof(struct tw_meeting, timer));

    (void)events;
    tw_meeting_timer_stop(meeting);
    if (meeting->met)
        return; /* the ranks' own deadlines count from here on */
    if (!meeting->failed)
        tw_meeting_fail_late(meeting);
    tw_meeting_end(meeting);
}

void tw_meeting_timer_start(struct tw_meeting *meeting)
{
    uint64_t timeout_ns = meeting->state->proc.params->init_timeout_ns;

    if (meeting->timed || timeout_ns == 0)
        return;
    meeting->timed = true;
    if (tw_timer_open(&meeting->timer.fd, timeout_ns) != TWILL_OK)
        return;
    if (tw_loop_watch(meeting->state->loop, &meeting->timer, EPOLLIN) != TWILL_OK) {
        (void)close(meeting->timer.fd);
        meeting->timer.fd = -1;
    }
}

/* ---- opening and closing -----------------------------------------------------------------------
 */

enum twill_status tw_meeting_open(const char *name, const uint8_t key[TW_KEY_BYTES], bool keyless,
                                  char actual[TW_SOCK_NAME_BYTES])
{
    struct tw_proc *proc = NULL;
    int fd = -1;
    enum twill_status status = tw_proc_get(&proc);

    if (status != TWILL_OK)
        return status;
    struct tw_proc_state *state = tw_proc_state();
    struct tw_meeting *meeting = tw_alloc(sizeof(*meeting));
    status = meeting != NULL ? tw_sock_listen(&fd, name, actual) : TWILL_ERR_NOMEM;
    if (status == TWILL_OK) {
        meeting->state = state;
        meeting->keyless = keyless;
        meeting->holds_ref = true;
        meeting->burial.run = meeting_free;
        meeting->timer = (struct tw_source){.fd = -1, .on_event = timer_on_event};
        meeting->door.patience_ns = PATIENCE_NS;
        meeting->door.on_caller = tw_meeting_on_caller;
        meeting->door.on_idle = meeting_on_idle;
        memcpy(meeting->door.key, key, TW_KEY_BYTES);
        (void)snprintf(meeting->door.context, sizeof(meeting->door.context), TW_MEET_CONTEXT);
        tw_loop_lock(state->loop);
        status = tw_door_open(&meeting->door, state->loop, fd);
        if (status == TWILL_OK) {
            meeting->next = state->meetings;
            if (state->meetings != NULL)
                state->meetings->prev = meeting;
            state->meetings = meeting;
        }
        tw_loop_unlock(state->loop);
    }
    if (status != TWILL_OK) {
        free(meeting);
        tw_proc_put();
    }
    return status;
}

void tw_meetings_close(struct tw_proc_state *state)
{
    tw_loop_lock(state->loop);
    for (struct tw_meeting *meeting = state->meetings; meeting != NULL;) {
        struct tw_meeting *next = meeting->next;
        meeting->holds_ref = false;
        tw_meeting_end(meeting);
        meeting = next;
    }
    tw_loop_unlock(state->loop);
}
