/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the meeting point's side: who has come, whether they fit together, what they are told.
 * Never knows: the tree, channels, operations. */
#include "config.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "comm/control.h"
#include "comm/meeting.h"

#define PATIENCE_NS (5 * TW_NS_S)

struct seat {
    struct tw_link link;
    struct tw_hello *hello; /* owned; NULL: nobody has come */
    bool told;              /* of the meeting's failure */
};

struct tw_meeting {
    struct tw_door door; /* first member: callbacks come back to it */
    struct tw_proc_state *state;
    struct tw_meeting *prev, *next;
    struct tw_source timer; /* owned; from the first arrival on */
    bool keyless, holds_ref, timed;
    int size; /* of the first who came; 0: nobody yet */
    int arrived, told, byes;
    struct seat *seats; /* owned, [size] */
    bool met, failed, ended;
    struct tw_frame_error failure;
    struct tw_later burial; /* frees it, outside of all callbacks */
};

static void meeting_unref(struct tw_meeting *meeting)
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
    meeting_unref(meeting);
    tw_loop_unlock(loop);
    free(meeting);
}

static void meeting_on_idle(struct tw_door *door)
{
    struct tw_meeting *meeting = (struct tw_meeting *)(void *)door;

    tw_loop_later(meeting->state->loop, &meeting->burial);
}

static void timer_close(struct tw_meeting *meeting)
{
    if (meeting->timer.fd < 0)
        return;
    tw_loop_unwatch(meeting->state->loop, &meeting->timer);
    (void)close(meeting->timer.fd);
    meeting->timer.fd = -1;
}

/* The memory goes later, once the last caller has gone. */
static void meeting_end(struct tw_meeting *meeting)
{
    if (meeting->ended)
        return;
    meeting->ended = true;
    timer_close(meeting);
    for (int r = 0; r < meeting->size; r++)
        tw_link_close(&meeting->seats[r].link);
    tw_door_close(&meeting->door);
}

/* ---- failing -----------------------------------------------------------------------------------
 */

static void seat_told(struct tw_meeting *meeting, int rank)
{
    if (rank < 0 || rank >= meeting->size || meeting->seats[rank].told)
        return;
    meeting->seats[rank].told = true;
    meeting->told++;
}

/* Tells everybody who is here, and then whoever still comes, until all have been told. */
__attribute__((format(printf, 4, 5))) static void meeting_fail(struct tw_meeting *meeting,
                                                               enum twill_status status, int origin,
                                                               const char *format, ...)
{
    va_list args;

    if (meeting->failed)
        return;
    meeting->failed = true;
    meeting->failure.status = status;
    meeting->failure.origin = origin;
    va_start(args, format);
    (void)vsnprintf(meeting->failure.text, sizeof(meeting->failure.text), format, args);
    va_end(args);
    for (int r = 0; r < meeting->size; r++) {
        struct seat *seat = &meeting->seats[r];
        if (seat->hello == NULL || !tw_link_up(&seat->link))
            continue;
        tw_link_send(&seat->link, TW_FRAME_ERROR, &meeting->failure, sizeof(meeting->failure));
        tw_link_close(&seat->link);
        seat_told(meeting, r);
    }
    meeting_unref(meeting);
}

/* Once it has failed: stay for those who were not told yet, or end. */
static void failed_end(struct tw_meeting *meeting)
{
    if (meeting->met || (meeting->size > 0 && meeting->told == meeting->size))
        meeting_end(meeting);
}

/* A caller who cannot be seated hears why. */
static void caller_refuse(struct tw_meeting *meeting, int fd, const struct tw_frame_error *error)
{
    struct tw_link link = {.max_bytes = TW_FRAME_SMALL_BYTES};

    if (tw_link_open(&link, meeting->state->loop, fd) != TWILL_OK)
        return;
    tw_link_send(&link, TW_FRAME_ERROR, error, sizeof(*error));
    tw_link_close(&link);
}

/* The list of ranks that have not come: "2, 5", at most eight. */
static void missing_list(const struct tw_meeting *meeting, char *text, size_t bytes)
{
    size_t used = 0;
    int listed = 0;

    text[0] = '\0';
    for (int r = 0; r < meeting->size && used < bytes; r++) {
        if (meeting->seats[r].hello != NULL)
            continue;
        int more = listed == 8 ? snprintf(text + used, bytes - used, ", ...")
                               : snprintf(text + used, bytes - used, listed > 0 ? ", %d" : "%d", r);
        used += more > 0 ? (size_t)more : 0;
        if (listed++ == 8)
            return;
    }
}

static void timer_on_event(struct tw_source *source, uint32_t events)
{
    struct tw_meeting *meeting =
        (struct tw_meeting *)(void *)((char *)source - offsetof(struct tw_meeting, timer));
    char missing[96];

    (void)events;
    timer_close(meeting);
    if (meeting->met)
        return; /* the ranks' own deadlines count from here on */
    if (!meeting->failed) {
        missing_list(meeting, missing, sizeof(missing));
        meeting_fail(meeting, TWILL_ERR_TIMEOUT, -1,
                     "init: %d of %d ranks came within %.3g s; missing: %s", meeting->arrived,
                     meeting->size, (double)meeting->state->proc.params->init_timeout_ns / 1e9,
                     missing);
        tw_warn(TW_SUB_COMM, "%s", meeting->failure.text);
    }
    meeting_end(meeting);
}

/* ---- those who have come -----------------------------------------------------------------------
 */

static void seat_on_frame(struct tw_link *link, enum tw_frame_type type, uint8_t *payload,
                          uint32_t bytes)
{
    struct tw_meeting *meeting = link->owner;
    struct tw_frame_error error;

    if (type == TW_FRAME_BYE) {
        tw_link_close(link);
        meeting->byes++;
        if (meeting->byes == meeting->size)
            meeting_end(meeting);
        return;
    }
    tw_link_close(link);
    if (type != TW_FRAME_ERROR || bytes != sizeof(error)) {
        meeting_fail(meeting, TWILL_ERR_PEER, link->index,
                     "init: rank %d sent the meeting point what it does not understand",
                     link->index);
        failed_end(meeting);
        return;
    }
    memcpy(&error, payload, sizeof(error));
    error.text[sizeof(error.text) - 1] = '\0';
    seat_told(meeting, link->index);
    meeting_fail(meeting, error.status < 0 ? (enum twill_status)error.status : TWILL_ERR_PEER,
                 error.origin, "%s", error.text);
    failed_end(meeting);
}

static void seat_on_down(struct tw_link *link, const char *why)
{
    struct tw_meeting *meeting = link->owner;

    seat_told(meeting, link->index);
    meeting_fail(meeting, TWILL_ERR_PEER, link->index,
                 "init: rank %d (process %d) is gone: %s before all ranks were ready", link->index,
                 (int)meeting->seats[link->index].hello->pid, why);
    failed_end(meeting);
}

static bool same_proc(const struct tw_proc_id *a, const struct tw_proc_id *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static void welcome_send(struct tw_meeting *meeting, int rank, struct tw_welcome *welcome)
{
    const struct tw_hello *own = meeting->seats[rank].hello;
    int parent = tw_tree_parent(rank);

    welcome->ranks_here = welcome->ranks_host = 0;
    for (int r = 0; r < meeting->size; r++) {
        const struct tw_hello *hello = meeting->seats[r].hello;
        welcome->ranks_here += same_proc(&hello->proc, &own->proc);
        welcome->ranks_host +=
            memcmp(hello->proc.host, own->proc.host, sizeof(own->proc.host)) == 0;
    }
    memset(welcome->parent_door, 0, sizeof(welcome->parent_door));
    if (parent >= 0)
        memcpy(welcome->parent_door, meeting->seats[parent].hello->door,
               sizeof(welcome->parent_door));
    tw_link_send(&meeting->seats[rank].link, TW_FRAME_WELCOME, welcome, sizeof(*welcome));
}

static void all_welcome(struct tw_meeting *meeting)
{
    struct tw_welcome welcome = {.meet_rank = -1};

    timer_close(meeting);
    meeting->met = true;
    memcpy(welcome.key, meeting->door.key, sizeof(welcome.key));
    if (meeting->keyless)
        tw_random(welcome.key, sizeof(welcome.key));
    tw_random(welcome.nonce, sizeof(welcome.nonce));
    for (int r = meeting->size - 1; r >= 0; r--) {
        if (same_proc(&meeting->seats[r].hello->proc, &meeting->state->proc.id))
            welcome.meet_rank = r;
    }
    for (int r = 0; r < meeting->size; r++)
        welcome_send(meeting, r, &welcome);
    /* Ranks here keep the state open for as long as the others may need this. */
    if (welcome.meet_rank >= 0)
        meeting_unref(meeting);
    sodium_memzero(&welcome, sizeof(welcome));
}

/* ---- those who come ----------------------------------------------------------------------------
 */

static const struct tw_hello *first_hello(const struct tw_meeting *meeting)
{
    for (int r = 0; r < meeting->size; r++) {
        if (meeting->seats[r].hello != NULL)
            return meeting->seats[r].hello;
    }
    return NULL;
}

/* @return owned; NULL: the meeting has failed, with the reason */
static struct tw_hello *hello_accept(struct tw_meeting *meeting, const uint8_t *data,
                                     uint32_t bytes)
{
    const struct tw_hello *first = first_hello(meeting);
    struct tw_hello *hello = tw_alloc(sizeof(*hello));
    char text[TW_ERROR_TEXT_BYTES] = "init: the meeting point has no memory";
    enum twill_status status = TWILL_ERR_NOMEM;

    if (hello != NULL)
        status = tw_hello_parse(data, bytes, hello, text);
    if (status == TWILL_OK && first != NULL)
        status = tw_hello_fits(first, hello, text);
    if (status == TWILL_OK && first != NULL && meeting->seats[hello->head.rank].hello != NULL) {
        (void)snprintf(text, sizeof(text), "init: rank %d came twice: process %d and process %d",
                       hello->head.rank, (int)meeting->seats[hello->head.rank].hello->pid,
                       (int)hello->pid);
        status = TWILL_ERR_MISMATCH;
    }
    if (status == TWILL_OK)
        return hello;
    tw_warn(TW_SUB_COMM, "%s", text);
    meeting_fail(meeting, status, -1, "%s", text);
    free(hello);
    return NULL;
}

/* From the first caller on it is a matter of time. */
static void timer_start(struct tw_meeting *meeting)
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

/* The first who comes says how many there will be. */
static bool seats_make(struct tw_meeting *meeting, int size)
{
    if (meeting->size > 0)
        return true;
    meeting->seats = calloc((size_t)size, sizeof(*meeting->seats));
    if (meeting->seats == NULL) {
        meeting_fail(meeting, TWILL_ERR_NOMEM, -1, "init: no memory for %d ranks", size);
        return false;
    }
    meeting->size = size;
    for (int r = 0; r < size; r++)
        meeting->seats[r].link.source.fd = -1;
    return true;
}

static void caller_seat(struct tw_meeting *meeting, int fd, struct tw_hello *hello)
{
    struct seat *seat = &meeting->seats[hello->head.rank];

    seat->hello = hello;
    seat->link = (struct tw_link){.owner = meeting,
                                  .index = hello->head.rank,
                                  .max_bytes = TW_FRAME_SMALL_BYTES,
                                  .on_frame = seat_on_frame,
                                  .on_down = seat_on_down};
    meeting->arrived++;
    if (tw_link_open(&seat->link, meeting->state->loop, fd) != TWILL_OK)
        meeting_fail(meeting, TWILL_ERR_SYSTEM, -1, "init: %s", tw_fail_text());
    else if (meeting->arrived == meeting->size)
        all_welcome(meeting);
}

static void meeting_on_caller(struct tw_door *door, int fd, const uint8_t *data, uint32_t bytes)
{
    static const struct tw_frame_error used = {
        .status = TWILL_ERR_USAGE,
        .origin = -1,
        .text = "init: this unique id was used already: it is good for one communicator"};
    struct tw_meeting *meeting = (struct tw_meeting *)(void *)door;
    struct tw_hello *hello = NULL;
    struct tw_hello_head head;

    if (meeting->met) {
        caller_refuse(meeting, fd, &used);
        return;
    }
    timer_start(meeting);
    if (!meeting->failed)
        hello = hello_accept(meeting, data, bytes);
    if (hello != NULL && seats_make(meeting, hello->size)) {
        caller_seat(meeting, fd, hello);
        return;
    }
    free(hello);
    caller_refuse(meeting, fd, &meeting->failure);
    if (bytes >= sizeof(head)) {
        memcpy(&head, data, sizeof(head));
        seat_told(meeting, head.rank);
    }
    failed_end(meeting);
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
        meeting->door.on_caller = meeting_on_caller;
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
        meeting_end(meeting);
        meeting = next;
    }
    tw_loop_unlock(state->loop);
}
