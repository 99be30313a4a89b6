/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which ranks' processes have ended. Never knows: what follows from it. */
#ifndef TW_COMM_ROLL_H
#define TW_COMM_ROLL_H

#include "comm/proc.h"

/* The ranks of a communicator that may have failed. While it is called, the control thread marks
 * those whose process ends. */
struct tw_roll {
    struct tw_roll *prev, *next; /* of those that are called */
    bool called;
    void (*on_lost)(struct tw_roll *roll); /* NULL: nobody wants to know. Under the loop's lock */
    void *owner;                           /* for on_lost */
    int size;
    bool *lost;               /* owned, [size] */
    struct tw_proc_id *procs; /* owned, [size] */
};

/** Not called yet, nobody lost. @return NULL: no memory (tw_fail was called) */
struct tw_roll *tw_roll_create(int size);
struct tw_roll *tw_roll_copy(const struct tw_roll *roll);
/** NULL accepted. It is not called (any more). */
void tw_roll_destroy(struct tw_roll *roll);

/* The loop's lock is held for these. */
void tw_roll_call(struct tw_proc_state *state, struct tw_roll *roll);
/** NULL, or one that is not called: nothing happens. */
void tw_roll_end(struct tw_proc_state *state, struct tw_roll *roll);
/** A process has ended. */
void tw_rolls_lost(const struct tw_proc_state *state, const struct tw_proc_id *proc);

#endif
