/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the living ranks of a communicator, failed or not, come together in a new one.
 * Never knows: what is said at their meeting point, arguments of the C API. */
#include "config.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/control.h"
#include "comm/roll.h"
#include "comm/split.h"

/*
 * Nothing of the parent is used but what its ranks know: a secret, each other's processes, and
 * whose process has ended. The meeting point's name comes from the secret, and whoever can listen
 * there first is the host; its process's end frees the name for another, and those who were there
 * come again. The host waits until every rank has come or is known to be lost, and decides: so all
 * survivors have the same list. From then on it is an init like any other, in which one more death
 * fails all of them alike, and they may shrink again.
 */

static struct tw_roll *roll_of(struct twill_comm *parent)
{
    struct tw_proc_state *state = tw_proc_state();
    struct tw_roll *roll = tw_roll_create(parent->size);

    if (roll == NULL)
        return NULL;
    tw_loop_lock(state->loop);
    for (int r = 0; r < parent->size; r++) {
        roll->procs[r] = parent->ctl->peers[r].proc;
        roll->lost[r] = parent->ctl->peers[r].lost;
    }
    tw_roll_call(state, roll);
    tw_loop_unlock(state->loop);
    /* those who were lost before the roll was called */
    for (int r = 0; r < parent->size; r++) {
        if (r == parent->rank || tw_chan_peer_status(parent->chan, r) == TWILL_OK)
            continue;
        tw_loop_lock(state->loop);
        roll->lost[r] = true;
        tw_loop_unlock(state->loop);
    }
    return roll;
}

/* Those who are left out are not waited for, as if they were lost. Who leaves out others meets
 * elsewhere: two halves of a communicator may shrink at the same time. */
static void leave_out(struct tw_split *split, const int *without, int count)
{
    bool *out = split->roll->lost;

    if (count == 0)
        return;
    tw_loop_lock(tw_proc_state()->loop);
    for (int i = 0; i < count; i++)
        out[without[i]] = true;
    tw_loop_unlock(tw_proc_state()->loop);
}

/* A map of the ranks, so that neither order nor repetition counts. */
static enum twill_status without_hash(struct tw_split *split, const int *without, int count)
{
    if (count == 0)
        return TWILL_OK;
    bool *map = tw_alloc((size_t)split->size * sizeof(*map));
    if (map == NULL)
        return TWILL_ERR_NOMEM;
    for (int i = 0; i < count; i++)
        map[without[i]] = true;
    (void)crypto_generichash(split->without, sizeof(split->without), (const uint8_t *)map,
                             (size_t)split->size * sizeof(*map), NULL, 0);
    free(map);
    return TWILL_OK;
}

enum twill_status tw_shrink_create(struct twill_comm *parent, const int *without, int count,
                                   struct tw_split **out)
{
    struct tw_split *split = NULL;
    enum twill_status status = tw_split_create(parent, 0, 0, false, &split);

    if (status != TWILL_OK)
        return status;
    status = without_hash(split, without, count);
    if (status == TWILL_OK)
        split->roll = roll_of(parent);
    if (split->roll == NULL) {
        tw_split_put(split);
        return TWILL_ERR_NOMEM;
    }
    leave_out(split, without, count);
    *out = split;
    return TWILL_OK;
}

/* What this rank's board says to those who wait in a call of a healthy parent. Where ranks are left
 * out they may well wait there: this one comes when it has shrunk. */
static void life_set(const struct tw_split *split, enum tw_record_life from, enum tw_record_life to)
{
    if (!sodium_is_zero(split->without, sizeof(split->without)))
        return;
    tw_loop_lock(tw_proc_state()->loop);
    struct twill_comm *parent = tw_split_parent_find(split->parent);
    if (parent != NULL && tw_comm_status(parent) == TWILL_OK)
        tw_record_life_change(parent, from, to);
    tw_loop_unlock(tw_proc_state()->loop);
}

enum twill_status tw_shrink_ready(struct twill_comm *comm)
{
    struct tw_split_meet meet;

    /* Without waiting, calls of the parent may still be on their way. */
    if (comm->args.blocking != 0)
        life_set(comm->origin, TW_LIFE_OPEN, TW_LIFE_SHRINKING);
    comm->args.from_env = true;
    tw_split_meet_derive(comm->origin, NULL, &meet);
    enum twill_status status = tw_id_fill(&comm->proc->host, meet.key, meet.name, &comm->args.id);
    sodium_memzero(&meet, sizeof(meet));
    return status;
}

enum twill_status tw_shrink_host(struct twill_comm *comm)
{
    char actual[TW_SOCK_NAME_BYTES];
    struct tw_id id;

    memcpy(&id, &comm->args.id, sizeof(id));
    enum twill_status status = tw_meeting_open_roll(
        id.meet, id.key, comm->proc->params->init_timeout_ns, comm->origin->roll, actual);
    sodium_memzero(&id, sizeof(id));
    comm->args.own_id = comm->args.own_id || status == TWILL_OK;
    return status == TWILL_ERR_AGAIN ? TWILL_OK : status;
}

void tw_shrink_over(struct twill_comm *comm)
{
    if (comm->args.blocking != 0)
        life_set(comm->origin, TW_LIFE_SHRINKING, TW_LIFE_OPEN);
}
