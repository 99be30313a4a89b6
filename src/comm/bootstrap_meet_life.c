/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: when a meeting point opens, how long it stays, how it goes.
 * Never knows: what is said there. */
#include "config.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "comm/bootstrap_meet.h"

#define PATIENCE_NS (5 * TW_NS_S)
#define LINGER_NS (1 * TW_NS_S) /* for ranks that come after it has failed */

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
    tw_roll_destroy(meeting->roll);
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
    tw_roll_end(meeting->state, meeting->roll);
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
    if (meeting->failed) {
        tw_meeting_end(meeting);
        return;
    }
    tw_meeting_fail_late(meeting);
    if (!meeting->called || meeting->roll != NULL)
        tw_meeting_end(meeting);
}

/* Instead of what it was set to. 0: never. Without a timer it ends with the process's state. */
static void timer_set(struct tw_meeting *meeting, uint64_t after_ns)
{
    tw_meeting_timer_stop(meeting);
    if (after_ns == 0 || tw_timer_open(&meeting->timer.fd, after_ns) != TWILL_OK)
        return;
    if (tw_loop_watch(meeting->state->loop, &meeting->timer, EPOLLIN) != TWILL_OK) {
        (void)close(meeting->timer.fd);
        meeting->timer.fd = -1;
    }
}

void tw_meeting_called(struct tw_meeting *meeting)
{
    if (!meeting->called && !meeting->failed)
        timer_set(meeting, meeting->state->proc.params->init_timeout_ns);
    meeting->called = true;
}

void tw_meeting_linger(struct tw_meeting *meeting)
{
    timer_set(meeting, LINGER_NS);
    if (meeting->timer.fd < 0)
        tw_meeting_unref(meeting); /* nothing would end it */
}

/* ---- opening and closing -----------------------------------------------------------------------
 */

/* Filled; not open yet. */
static void meeting_init(struct tw_meeting *meeting, const uint8_t key[TW_KEY_BYTES], bool keyless)
{
    meeting->state = tw_proc_state();
    meeting->keyless = keyless;
    meeting->holds_ref = true;
    meeting->burial.run = meeting_free;
    meeting->timer = (struct tw_source){.fd = -1, .on_event = timer_on_event};
    meeting->door.patience_ns = PATIENCE_NS;
    meeting->door.on_caller = tw_meeting_on_caller;
    meeting->door.on_lost = tw_meeting_on_lost;
    meeting->door.on_missed = tw_meeting_on_missed;
    meeting->door.on_idle = meeting_on_idle;
    memcpy(meeting->door.key, key, TW_KEY_BYTES);
    (void)snprintf(meeting->door.context, sizeof(meeting->door.context), TW_MEET_CONTEXT);
}

static void meeting_link(struct tw_meeting *meeting)
{
    struct tw_proc_state *state = meeting->state;

    meeting->next = state->meetings;
    if (state->meetings != NULL)
        state->meetings->prev = meeting;
    state->meetings = meeting;
}

static void roll_on_lost(struct tw_roll *roll) { tw_meeting_settle(roll->owner); }

/* Seats for all of the roll, and word of those who are lost from now on. */
static enum twill_status roll_join(struct tw_meeting *meeting, const struct tw_roll *roll)
{
    if (!tw_meeting_seats(meeting, roll->size))
        return TWILL_ERR_NOMEM;
    tw_loop_lock(meeting->state->loop);
    meeting->roll = tw_roll_copy(roll);
    if (meeting->roll != NULL) {
        meeting->roll->owner = meeting;
        meeting->roll->on_lost = roll_on_lost;
        tw_roll_call(meeting->state, meeting->roll);
    }
    tw_loop_unlock(meeting->state->loop);
    return meeting->roll != NULL ? TWILL_OK : TWILL_ERR_NOMEM;
}

static void roll_leave(struct tw_meeting *meeting)
{
    tw_loop_lock(meeting->state->loop);
    tw_roll_end(meeting->state, meeting->roll);
    tw_loop_unlock(meeting->state->loop);
    tw_roll_destroy(meeting->roll);
}

/* Takes fd over, also on error. */
static enum twill_status meeting_serve(struct tw_meeting *meeting, int fd, uint64_t idle_ns)
{
    tw_loop_lock(meeting->state->loop);
    enum twill_status status = tw_door_open(&meeting->door, meeting->state->loop, fd);
    if (status == TWILL_OK) {
        meeting_link(meeting);
        timer_set(meeting, idle_ns);
    }
    tw_loop_unlock(meeting->state->loop);
    return status;
}

enum twill_status tw_meeting_open(const char *name, const uint8_t key[TW_KEY_BYTES], bool keyless,
                                  uint64_t idle_ns, char actual[TW_SOCK_NAME_BYTES])
{
    struct tw_proc *proc = NULL;
    int fd = -1;
    enum twill_status status = tw_proc_get(&proc);

    if (status != TWILL_OK)
        return status;
    struct tw_meeting *meeting = tw_alloc(sizeof(*meeting));
    status = meeting != NULL ? tw_sock_listen(&fd, name, actual) : TWILL_ERR_NOMEM;
    if (status == TWILL_OK) {
        meeting_init(meeting, key, keyless);
        memcpy(meeting->name, actual, sizeof(meeting->name));
        status = meeting_serve(meeting, fd, idle_ns);
    }
    if (status != TWILL_OK) {
        free(meeting);
        tw_proc_put();
    }
    return status;
}

enum twill_status tw_meeting_open_roll(const char *name, const uint8_t key[TW_KEY_BYTES],
                                       uint64_t idle_ns, const struct tw_roll *roll,
                                       char actual[TW_SOCK_NAME_BYTES])
{
    struct tw_proc *proc = NULL;
    int fd = -1;
    enum twill_status status = tw_sock_listen_first(&fd, name, actual);

    if (status != TWILL_OK)
        return status;
    status = tw_proc_get(&proc);
    if (status != TWILL_OK) {
        (void)close(fd);
        return status;
    }
    struct tw_meeting *meeting = tw_alloc(sizeof(*meeting));
    if (meeting == NULL) {
        (void)close(fd);
        tw_proc_put();
        return TWILL_ERR_NOMEM;
    }
    meeting_init(meeting, key, false);
    memcpy(meeting->name, actual, sizeof(meeting->name));
    status = roll_join(meeting, roll);
    if (status == TWILL_OK)
        status = meeting_serve(meeting, fd, idle_ns);
    else
        (void)close(fd);
    if (status != TWILL_OK) {
        roll_leave(meeting);
        free(meeting->seats);
        free(meeting);
        tw_proc_put();
    }
    return status;
}

void tw_meeting_give_up(const twill_unique_id *id, enum twill_status status, const char *text)
{
    struct tw_proc_state *state = tw_proc_state();
    struct tw_id inside;

    memcpy(&inside, id, sizeof(inside));
    tw_loop_lock(state->loop);
    struct tw_meeting *meeting = state->meetings;
    while (meeting != NULL && (meeting->ended || strcmp(meeting->name, inside.meet) != 0))
        meeting = meeting->next;
    if (meeting != NULL && !meeting->met)
        tw_meeting_fail(meeting, status, -1, "%s", text);
    if (meeting != NULL && meeting->roll != NULL && meeting->failed)
        tw_meeting_end(meeting); /* the place is free for another attempt */
    tw_loop_unlock(state->loop);
    sodium_memzero(&inside, sizeof(inside));
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
