/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the meeting point's side: who has come, whether they fit together, what they are told.
 * Never knows: the tree, channels, operations; how long it stays. */
#include "config.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "comm/bootstrap_meet.h"

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
        if (meeting->byes == meeting->arrived)
            tw_meeting_end(meeting);
        return;
    }
    tw_link_close(link);
    if (type != TW_FRAME_ERROR || bytes != sizeof(error)) {
        tw_meeting_fail(meeting, TWILL_ERR_PEER, link->index,
                        "init: rank %d sent the meeting point what it does not understand",
                        link->index);
        tw_meeting_failed_end(meeting);
        return;
    }
    memcpy(&error, payload, sizeof(error));
    error.text[sizeof(error.text) - 1] = '\0';
    tw_meeting_told(meeting, link->index);
    tw_meeting_fail(meeting, error.status < 0 ? (enum twill_status)error.status : TWILL_ERR_PEER,
                    error.origin, "%s", error.text);
    tw_meeting_failed_end(meeting);
}

/* A rank that came and is lost is as if it had not come. */
static void seat_clear(struct tw_meeting *meeting, int rank)
{
    free(meeting->seats[rank].hello);
    meeting->seats[rank].hello = NULL;
    meeting->arrived--;
    meeting->roll->lost[rank] = true;
    tw_meeting_settle(meeting);
}

static void seat_on_down(struct tw_link *link, const char *why)
{
    struct tw_meeting *meeting = link->owner;

    if (meeting->roll != NULL && !meeting->met && !meeting->failed) {
        seat_clear(meeting, link->index);
        return;
    }
    tw_meeting_told(meeting, link->index);
    tw_meeting_fail(meeting, TWILL_ERR_PEER, link->index,
                    "init: rank %d (process %d) is gone: %s before all ranks were ready",
                    link->index, (int)meeting->seats[link->index].hello->pid, why);
    tw_meeting_failed_end(meeting);
}

static bool same_proc(const struct tw_proc_id *a, const struct tw_proc_id *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* Those who have come are numbered in their order. */
static int rank_new(const struct tw_meeting *meeting, int rank)
{
    int number = 0;

    for (int r = 0; r < rank; r++)
        number += meeting->seats[r].hello != NULL;
    return number;
}

/* @return -1 for number -1 */
static int seat_of(const struct tw_meeting *meeting, int number)
{
    int rank = -1;

    while (number >= 0)
        number -= meeting->seats[++rank].hello != NULL;
    return rank;
}

static void welcome_send(struct tw_meeting *meeting, int rank, struct tw_welcome *welcome)
{
    const struct tw_hello *own = meeting->seats[rank].hello;

    welcome->rank = rank_new(meeting, rank);
    welcome->size = meeting->arrived;
    int parent = seat_of(meeting, tw_tree_parent(welcome->rank));
    welcome->ranks_here = welcome->ranks_host = 0;
    for (int r = 0; r < meeting->size; r++) {
        const struct tw_hello *hello = meeting->seats[r].hello;
        if (hello == NULL)
            continue;
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

    tw_meeting_timer_stop(meeting);
    meeting->met = true;
    memcpy(welcome.key, meeting->door.key, sizeof(welcome.key));
    if (meeting->keyless || meeting->roll != NULL)
        tw_random(welcome.key, sizeof(welcome.key));
    tw_random(welcome.nonce, sizeof(welcome.nonce));
    for (int r = meeting->size - 1; r >= 0; r--) {
        const struct tw_hello *hello = meeting->seats[r].hello;
        if (hello != NULL && same_proc(&hello->proc, &meeting->state->proc.id))
            welcome.meet_rank = rank_new(meeting, r);
    }
    for (int r = 0; r < meeting->size; r++) {
        if (meeting->seats[r].hello != NULL)
            welcome_send(meeting, r, &welcome);
    }
    /* Ranks here keep the state open for as long as the others may need this. */
    if (welcome.meet_rank >= 0)
        tw_meeting_unref(meeting);
    sodium_memzero(&welcome, sizeof(welcome));
}

void tw_meeting_settle(struct tw_meeting *meeting)
{
    if (meeting->met || meeting->failed || meeting->arrived == 0)
        return;
    for (int r = 0; r < meeting->size; r++) {
        bool excused = meeting->roll != NULL && meeting->roll->lost[r];
        if (meeting->seats[r].hello == NULL && !excused)
            return;
    }
    all_welcome(meeting);
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

/* A caller who left without a word: its socket's name says who it was to be. */
static void silent_name(int fd, char text[TW_ERROR_TEXT_BYTES])
{
    char name[TW_SOCK_NAME_BYTES];

    tw_sock_peer_name(fd, name);
    int rank = tw_meet_caller_rank(name);
    if (rank >= 0)
        (void)snprintf(text, TW_ERROR_TEXT_BYTES,
                       "init: rank %d is gone: it left the meeting point before it had said which "
                       "options it has",
                       rank);
}

/* @return owned; NULL: the meeting has failed, with the reason */
static struct tw_hello *hello_accept(struct tw_meeting *meeting, int fd, const uint8_t *data,
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
    if (bytes == 0)
        silent_name(fd, text);
    tw_warn(TW_SUB_COMM, "%s", text);
    tw_meeting_fail(meeting, status, -1, "%s", text);
    free(hello);
    return NULL;
}

/* The first who comes says how many there will be. */
bool tw_meeting_seats(struct tw_meeting *meeting, int size)
{
    if (meeting->size > 0)
        return true;
    meeting->seats = calloc((size_t)size, sizeof(*meeting->seats));
    if (meeting->seats == NULL) {
        tw_meeting_fail(meeting, TWILL_ERR_NOMEM, -1, "init: no memory for %d ranks", size);
        return false;
    }
    meeting->size = size;
    for (int r = 0; r < size; r++)
        meeting->seats[r].link.source.fd = -1;
    return true;
}

static void caller_seat(struct tw_meeting *meeting, int fd, struct tw_hello *hello)
{
    struct tw_seat *seat = &meeting->seats[hello->head.rank];

    seat->hello = hello;
    seat->link = (struct tw_link){.owner = meeting,
                                  .index = hello->head.rank,
                                  .max_bytes = TW_FRAME_SMALL_BYTES,
                                  .on_frame = seat_on_frame,
                                  .on_down = seat_on_down};
    meeting->arrived++;
    if (tw_link_open(&seat->link, meeting->state->loop, fd) != TWILL_OK)
        tw_meeting_fail(meeting, TWILL_ERR_SYSTEM, -1, "init: %s", tw_fail_text());
    else
        tw_meeting_settle(meeting);
}

void tw_meeting_on_caller(struct tw_door *door, int fd, const uint8_t *data, uint32_t bytes)
{
    static const struct tw_frame_error used = {
        .status = TWILL_ERR_USAGE,
        .origin = -1,
        .text = "init: this unique id was used already: it is good for one communicator"};
    struct tw_meeting *meeting = (struct tw_meeting *)(void *)door;
    struct tw_hello *hello = NULL;
    struct tw_hello_head head;

    if (meeting->roll != NULL && (meeting->met || bytes == 0)) {
        (void)close(fd); /* it comes again, or it is lost */
        return;
    }
    if (meeting->met) {
        tw_meeting_refuse(meeting, fd, &used);
        return;
    }
    tw_meeting_called(meeting);
    if (!meeting->failed)
        hello = hello_accept(meeting, fd, data, bytes);
    if (hello != NULL && tw_meeting_seats(meeting, hello->size)) {
        caller_seat(meeting, fd, hello);
        return;
    }
    free(hello);
    tw_meeting_refuse(meeting, fd, &meeting->failure);
    if (bytes >= sizeof(head)) {
        memcpy(&head, data, sizeof(head));
        tw_meeting_told(meeting, head.rank);
    }
    tw_meeting_failed_end(meeting);
}

/* Only this user's processes get so far, and any of them could end a rank as well: so its word for
 * which rank it was is believed, though it had not proven the key. */
void tw_meeting_on_lost(struct tw_door *door, pid_t pid, const char *name)
{
    struct tw_meeting *meeting = (struct tw_meeting *)(void *)door;
    int rank = tw_meet_caller_rank(name);

    if (meeting->roll != NULL)
        return; /* the transport tells */
    if (meeting->met || meeting->failed || rank < 0 || (meeting->size > 0 && rank >= meeting->size))
        return;
    if (meeting->size > 0 && meeting->seats[rank].hello != NULL)
        return;
    tw_meeting_called(meeting);
    tw_meeting_fail(meeting, TWILL_ERR_PEER, rank,
                    "init: rank %d (process %d) is gone: its process has ended before it had "
                    "proven the key",
                    rank, (int)pid);
    tw_warn(TW_SUB_COMM, "%s", meeting->failure.text);
    tw_meeting_told(meeting, rank);
    tw_meeting_failed_end(meeting);
}

/* One that this process cannot hear would be waited for. */
void tw_meeting_on_missed(struct tw_door *door, enum twill_status status)
{
    struct tw_meeting *meeting = (struct tw_meeting *)(void *)door;

    if (meeting->roll != NULL || meeting->met || meeting->failed)
        return; /* a shrink's ranks come again */
    tw_meeting_called(meeting);
    tw_meeting_fail(meeting, status, -1,
                    "init: the meeting point (process %d) cannot hear a rank: %s", (int)getpid(),
                    tw_fail_text());
    tw_warn(TW_SUB_COMM, "%s", meeting->failure.text);
}
