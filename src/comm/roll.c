/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which ranks' processes have ended. Never knows: what follows from it. */
#include "config.h"

#include "comm/roll.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct tw_roll *tw_roll_create(int size)
{
    struct tw_roll *roll = tw_alloc(sizeof(*roll));

    if (roll == NULL)
        return NULL;
    roll->size = size;
    roll->lost = tw_alloc((size_t)size * sizeof(*roll->lost));
    roll->procs = tw_alloc((size_t)size * sizeof(*roll->procs));
    if (roll->lost != NULL && roll->procs != NULL)
        return roll;
    tw_roll_destroy(roll);
    return NULL;
}

struct tw_roll *tw_roll_copy(const struct tw_roll *roll)
{
    struct tw_roll *copy = tw_roll_create(roll->size);

    if (copy == NULL)
        return NULL;
    memcpy(copy->lost, roll->lost, (size_t)roll->size * sizeof(*roll->lost));
    memcpy(copy->procs, roll->procs, (size_t)roll->size * sizeof(*roll->procs));
    return copy;
}

void tw_roll_destroy(struct tw_roll *roll)
{
    if (roll == NULL)
        return;
    free(roll->lost);
    free(roll->procs);
    free(roll);
}

void tw_roll_call(struct tw_proc_state *state, struct tw_roll *roll)
{
    roll->called = true;
    roll->prev = NULL;
    roll->next = state->rolls;
    if (state->rolls != NULL)
        state->rolls->prev = roll;
    state->rolls = roll;
}

void tw_roll_end(struct tw_proc_state *state, struct tw_roll *roll)
{
    if (roll == NULL || !roll->called)
        return;
    roll->called = false;
    if (roll->prev != NULL)
        roll->prev->next = roll->next;
    else
        state->rolls = roll->next;
    if (roll->next != NULL)
        roll->next->prev = roll->prev;
}

void tw_rolls_lost(const struct tw_proc_state *state, const struct tw_proc_id *proc)
{
    for (struct tw_roll *roll = state->rolls; roll != NULL; roll = roll->next) {
        bool found = false;
        for (int r = 0; r < roll->size; r++) {
            bool lost = memcmp(&roll->procs[r], proc, sizeof(*proc)) == 0;
            roll->lost[r] = roll->lost[r] || lost;
            found = found || lost;
        }
        if (found && roll->on_lost != NULL)
            roll->on_lost(roll);
    }
}
