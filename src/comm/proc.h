/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the room shares in a process beside struct tw_proc. Never knows: other rooms. */
#ifndef TW_COMM_PROC_H
#define TW_COMM_PROC_H

#include "comm/comm.h"

struct tw_loop;
struct tw_ctl;
struct tw_meeting;
struct tw_roll;

/* Behind struct tw_proc, which is its first member. The lists are guarded by the loop's lock. */
struct tw_proc_state {
    struct tw_proc proc;
    struct tw_loop *loop;        /* owned */
    struct tw_ctl *ctls;         /* of this process's communicators; owned by them */
    struct tw_meeting *meetings; /* owned */
    struct tw_roll *rolls;       /* that are called (roll.h); owned by splits and meetings */
    struct tw_gone *gone; /* owned; NULL: nobody yet. Ranks that gave splits up (split_gone.c) */
    struct twill_comm *parked; /* owned: destroyed, waits for other ranks here (retire.c) */
};

/** The caller holds a reference. */
struct tw_proc_state *tw_proc_state(void);

/** As tw_proc_put, from any thread, the control thread and under the loop's lock too. */
void tw_proc_put_soon(void);

#endif
