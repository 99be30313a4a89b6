/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: ranks that give a split's new communicator up before they have come to its meeting point.
 * Never knows: why they do, what is said at the meeting point. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/control.h"
#include "comm/proc.h"
#include "comm/split.h"

/*
 * The meeting point tells when a rank that has come is lost. One that will never come, since it was
 * told to stop or has no descriptor left, would be waited for until the deadline: so it says so
 * over the parent's control links. Its nonce in the split's table says which split and whose; a
 * rank that has no table yet remembers the nonce, and compares once it has.
 */

#define GONE_MOST 64u /* remembered; of more the oldest are forgotten, and waited for */

struct tw_gone {
    uint32_t count; /* so far */
    struct tw_frame_gone frames[GONE_MOST];
};

void tw_split_gone_tell(struct twill_comm *comm, enum twill_status status, const char *text)
{
    struct tw_frame_gone gone = {.nonce = {comm->nonce[0], comm->nonce[1]}, .status = status};

    if (comm->nonce[0] == 0 || comm->id_hash != 0 || comm->heard)
        return;
    struct twill_comm *parent = tw_split_parent_find(comm->parent);
    if (parent == NULL || tw_comm_status(parent) != TWILL_OK)
        return;
    (void)snprintf(gone.text, sizeof(gone.text), "split: %.*s", TW_ERROR_TEXT_BYTES - 16, text);
    for (int i = 0; i < TW_TREE_LINKS; i++)
        tw_link_send(&parent->ctl->tree[i], TW_FRAME_GONE, &gone, sizeof(gone));
}

static bool is_known(const struct tw_gone *known, const struct tw_frame_gone *gone)
{
    for (uint32_t i = 0; i < GONE_MOST; i++) {
        if (memcmp(known->frames[i].nonce, gone->nonce, sizeof(gone->nonce)) == 0)
            return true;
    }
    return false;
}

static void child_fail(struct twill_comm *child, const struct tw_frame_gone *gone)
{
    child->heard = true;
    tw_ctl_fail(child->ctl, NULL, (enum twill_status)gone->status, gone->text);
}

static bool waits_for(const struct twill_comm *child, const struct tw_frame_gone *gone)
{
    for (int i = 0; child->id_hash == 0 && i < child->nmates; i++) {
        if (memcmp(child->mates[i], gone->nonce, sizeof(gone->nonce)) == 0)
            return true;
    }
    return false;
}

void tw_split_gone_arrived(struct tw_ctl *ctl, const struct tw_link *link, const uint8_t *payload)
{
    struct tw_proc_state *state = tw_proc_state();
    struct tw_frame_gone gone;

    memcpy(&gone, payload, sizeof(gone));
    gone.text[sizeof(gone.text) - 1] = '\0';
    if (gone.status >= 0)
        gone.status = TWILL_ERR_PEER;
    for (int i = 0; i < TW_TREE_LINKS; i++) {
        if (&ctl->tree[i] != link)
            tw_link_send(&ctl->tree[i], TW_FRAME_GONE, &gone, sizeof(gone));
    }
    if (state->gone == NULL)
        state->gone = tw_alloc(sizeof(*state->gone));
    /* it comes once for each of the parent's ranks that live here */
    if (state->gone != NULL && !is_known(state->gone, &gone))
        state->gone->frames[state->gone->count++ % GONE_MOST] = gone;
    for (struct tw_ctl *at = state->ctls; at != NULL; at = at->next) {
        if (waits_for(at->comm, &gone))
            child_fail(at->comm, &gone);
    }
}

enum twill_status tw_split_mates_set(struct twill_comm *comm, const struct tw_split *split,
                                     int nmates)
{
    const struct tw_proc_state *state = tw_proc_state();
    uint64_t(*mates)[2] = tw_alloc((size_t)nmates * sizeof(*mates));
    int count = 0;

    if (mates == NULL)
        return TWILL_ERR_NOMEM;
    for (int r = 0; r < split->size; r++) {
        if (split->entries[r].color == split->own.color)
            memcpy(mates[count++], split->entries[r].nonce, sizeof(*mates));
    }
    tw_loop_lock(comm->ctl->loop);
    comm->mates = mates;
    comm->nmates = count;
    for (uint32_t i = 0; state->gone != NULL && i < GONE_MOST; i++) {
        const struct tw_frame_gone *gone = &state->gone->frames[i];
        if (gone->nonce[0] != 0 && waits_for(comm, gone))
            child_fail(comm, gone);
    }
    tw_loop_unlock(comm->ctl->loop);
    return tw_comm_status(comm);
}
