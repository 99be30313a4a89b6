/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a meeting point is made of, for the files that serve it.
 * Never knows: who opens it. */
#ifndef TW_COMM_BOOTSTRAP_MEET_H
#define TW_COMM_BOOTSTRAP_MEET_H

#include "comm/control.h"
#include "comm/meeting.h"
#include "comm/roll.h"

struct tw_seat {
    struct tw_link link;
    struct tw_hello *hello; /* owned; NULL: nobody has come */
    bool told;              /* of the meeting's failure */
};

struct tw_meeting {
    struct tw_door door; /* first member: callbacks come back to it */
    struct tw_proc_state *state;
    struct tw_meeting *prev, *next;
    struct tw_source timer; /* owned; for the first caller, then for all, then for those too late */
    char name[TW_SOCK_NAME_BYTES]; /* where it listens */
    bool keyless, holds_ref;
    bool called; /* somebody who holds the key has come */
    int size;    /* of the first who came; 0: nobody yet */
    int arrived, told, byes;
    struct tw_seat *seats; /* owned, [size] */
    bool met, failed, ended;
    struct tw_frame_error failure;
    struct tw_roll *roll;   /* owned; those who may be lost. NULL: none may */
    struct tw_later burial; /* frees it, outside of all callbacks */
};

/* The loop's lock is held for all of these. */

/* ---- its life (bootstrap_meet_life.c) -----------------------------------------------------------
 */

/** Nobody else is waited for: closes the door and all links. The memory goes later, once the last
 * caller has gone. */
void tw_meeting_end(struct tw_meeting *meeting);
/** Ranks that are here keep the process's state open from now on. */
void tw_meeting_unref(struct tw_meeting *meeting);
/** From the first caller on all must come within TWILL_INIT_TIMEOUT. */
void tw_meeting_called(struct tw_meeting *meeting);
/** Everybody is here: there is no hurry any more. */
void tw_meeting_timer_stop(struct tw_meeting *meeting);
/** It has failed: stays a little for ranks that were not told yet. */
void tw_meeting_linger(struct tw_meeting *meeting);

/* ---- those who come (bootstrap_meet.c) ----------------------------------------------------------
 */

/** Seats for `size` ranks, unless there are some. @return false: it has failed for want of memory
 */
bool tw_meeting_seats(struct tw_meeting *meeting, int size);
/** One of the roll is lost: perhaps nobody is missing any more. */
void tw_meeting_settle(struct tw_meeting *meeting);
/** The door's on_caller, on_lost and on_missed. */
void tw_meeting_on_caller(struct tw_door *door, int fd, const uint8_t *data, uint32_t bytes);
void tw_meeting_on_lost(struct tw_door *door, pid_t pid, const char *name);
void tw_meeting_on_missed(struct tw_door *door, enum twill_status status);

/* ---- what they are told when it fails (bootstrap_meet_fail.c) -----------------------------------
 */

/** Tells everybody who is here, and then whoever still comes, until all have been told. */
__attribute__((format(printf, 4, 5))) void tw_meeting_fail(struct tw_meeting *meeting,
                                                           enum twill_status status, int origin,
                                                           const char *format, ...);
/** Nobody, or not everybody, has come in time: fails and names those who are missing. */
void tw_meeting_fail_late(struct tw_meeting *meeting);
/** Once it has failed: stay for those who were not told yet, or end. */
void tw_meeting_failed_end(struct tw_meeting *meeting);
/** rank knows of the failure. A rank out of range is accepted. */
void tw_meeting_told(struct tw_meeting *meeting, int rank);
/** A caller who cannot be seated hears why. Takes fd over. */
void tw_meeting_refuse(struct tw_meeting *meeting, int fd, const struct tw_frame_error *error);

#endif
