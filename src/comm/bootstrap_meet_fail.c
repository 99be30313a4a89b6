/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what ranks hear of a meeting that fails, those who are there and those who come later.
 * Never knows: why it fails. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "comm/bootstrap_meet.h"

void tw_meeting_told(struct tw_meeting *meeting, int rank)
{
    if (rank < 0 || rank >= meeting->size || meeting->seats[rank].told)
        return;
    meeting->seats[rank].told = true;
    meeting->told++;
}

/* Ranks of this process need no connection to hear it, and without descriptors they get none. Those
 * of a shrink come again. */
static void ranks_here_fail(struct tw_meeting *meeting)
{
    for (struct tw_ctl *ctl = meeting->state->ctls; ctl != NULL; ctl = ctl->next) {
        if (meeting->roll != NULL || tw_link_up(&ctl->meet) ||
            strcmp(ctl->meet_name, meeting->name) != 0)
            continue;
        tw_ctl_fail(ctl, NULL, (enum twill_status)meeting->failure.status, meeting->failure.text);
        tw_meeting_told(meeting, ctl->comm->rank);
    }
}

void tw_meeting_expect(struct tw_ctl *ctl, const char *name)
{
    struct tw_meeting *meeting = tw_proc_state()->meetings;

    (void)snprintf(ctl->meet_name, sizeof(ctl->meet_name), "%s", name);
    while (meeting != NULL && (meeting->ended || strcmp(meeting->name, name) != 0))
        meeting = meeting->next;
    if (meeting == NULL || !meeting->failed)
        return;
    ranks_here_fail(meeting);
    tw_meeting_failed_end(meeting);
}

__attribute__((format(printf, 4, 5))) void tw_meeting_fail(struct tw_meeting *meeting,
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
        struct tw_seat *seat = &meeting->seats[r];
        if (seat->hello == NULL || !tw_link_up(&seat->link))
            continue;
        tw_link_send(&seat->link, TW_FRAME_ERROR, &meeting->failure, sizeof(meeting->failure));
        tw_link_close(&seat->link);
        tw_meeting_told(meeting, r);
    }
    ranks_here_fail(meeting);
    tw_meeting_linger(meeting);
}

void tw_meeting_failed_end(struct tw_meeting *meeting)
{
    if (meeting->met || meeting->roll != NULL ||
        (meeting->size > 0 && meeting->told == meeting->size))
        tw_meeting_end(meeting);
}

void tw_meeting_refuse(struct tw_meeting *meeting, int fd, const struct tw_frame_error *error)
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
        if (meeting->seats[r].hello != NULL || (meeting->roll != NULL && meeting->roll->lost[r]))
            continue;
        int more = listed == 8 ? snprintf(text + used, bytes - used, ", ...")
                               : snprintf(text + used, bytes - used, listed > 0 ? ", %d" : "%d", r);
        used += more > 0 ? (size_t)more : 0;
        if (listed++ == 8)
            return;
    }
}

void tw_meeting_fail_late(struct tw_meeting *meeting)
{
    const struct tw_params *params = meeting->state->proc.params;
    char missing[96];

    if (!meeting->called) {
        tw_meeting_fail(meeting, TWILL_ERR_TIMEOUT, -1, "init: no rank came to the meeting point");
        tw_debug(TW_SUB_COMM, "meeting point @%s closes: no rank came to it", meeting->name);
        return;
    }
    missing_list(meeting, missing, sizeof(missing));
    tw_meeting_fail(meeting, TWILL_ERR_TIMEOUT, -1,
                    "init: %d of %d ranks came within %.3g s; missing: %s", meeting->arrived,
                    meeting->size, (double)params->init_timeout_ns / 1e9, missing);
    tw_warn(TW_SUB_COMM, "%s", meeting->failure.text);
}
