/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a communicator ends when its user is done with it, and what several ranks of one
 * process mean for that.
 * Never knows: handles, how ranks meet. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "comm/control.h"
#include "comm/group.h"
#include "comm/proc.h"

/*
 * Finalize is a barrier, and one thread may destroy several ranks of its process one after another.
 * So a healthy rank of a process in which others live is parked, out of its user's sight, until the
 * last of them goes: that one finalizes all and frees all. Who lives is seen from the control
 * blocks of the process, under the loop's lock; it is no matter of counting, since ranks whose init
 * failed, or that failed later, go without waiting for anybody.
 */

static bool is_open(const struct twill_comm *comm)
{
    return !tw_failed(tw_comm_status(comm)) &&
           __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) == TW_COMM_READY;
}

/* A thread of its own takes it through finalize. */
static bool is_finalizing(const struct twill_comm *comm)
{
    return comm->init_thread_on && __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) != TW_COMM_INIT;
}

/* ---- who lives --------------------------------------------------------------------------------
 */

static bool of_one(const struct twill_comm *a, const struct twill_comm *b)
{
    return a->id_hash && a->id_hash == b->id_hash;
}

static bool others_live(const struct tw_proc_state *state, const struct twill_comm *comm)
{
    for (const struct tw_ctl *ctl = state->ctls; ctl; ctl = ctl->next)
        if (!ctl->comm->retired && of_one(ctl->comm, comm))
            return true;
    return false;
}

static struct twill_comm *parked_take(struct tw_proc_state *state, struct twill_comm *list)
{
    const struct twill_comm *comm = list;
    struct twill_comm **at = &state->parked;
    while (*at) {
        struct twill_comm *one = *at;
        if (!of_one(one, comm)) {
            at = &one->parked_next;
            continue;
        }
        *at = one->parked_next;
        one->parked_next = list;
        list = one;
    }
    return list;
}

/* The user is done with comm. @return what is to end now, chained by parked_next; NULL: parked */
static struct twill_comm *leave(struct twill_comm *comm, bool may_park)
{
    struct tw_proc_state *state = tw_proc_state();
    struct twill_comm *list = comm;
    tw_loop_lock(state->loop);
    comm->retired = true;
    comm->parked_next = NULL;
    bool others = others_live(state, comm);
    if (!others) {
        list = parked_take(state, comm);
    } else if (may_park) {
        comm->parked_next = state->parked;
        state->parked = comm;
        list = NULL;
    }
    tw_loop_unlock(state->loop);
    return list;
}

/* ---- ending -----------------------------------------------------------------------------------
 */

static enum twill_status open_finalize(struct twill_comm *list)
{
    size_t count = 0, open = 0;
    for (const struct twill_comm *comm = list; comm; comm = comm->parked_next)
        count++;
    struct twill_comm **comms = tw_alloc(count * sizeof(void *));
    for (struct twill_comm *comm = list; comm; comm = comm->parked_next) {
        comm->args.blocking = 1; /* from here on nobody else would see it through */
        if (!is_open(comm))
            continue;
        if (comms)
            comms[open++] = comm;
        else
            tw_comm_fail(comm, TWILL_ERR_NOMEM, "rank %d: no memory to finalize communicator %s",
                         comm->rank, comm->args.name);
    }
    enum twill_status status = comms ? TWILL_OK : TWILL_ERR_NOMEM;
    if (open)
        status = tw_finalize_all(comms, open);
    free(comms);
    return status;
}

/* A finalize that goes on by itself comes to its end, now that all ranks of this process are in it.
 * An init's thread has ended. */
static enum twill_status finalize_join(struct twill_comm *comm)
{
    bool healthy = !tw_failed(tw_comm_status(comm));
    if (!is_finalizing(comm))
        return TWILL_OK;
    pthread_join(comm->init_thread, NULL);
    comm->init_thread_on = false;
    if (!healthy || !tw_failed(tw_comm_status(comm)))
        return TWILL_OK;
    tw_last_error_set(0, comm->failure);
    return tw_comm_status(comm);
}

/* One of the ranks has failed, and so has the communicator: nobody is waited for. */
static void failure_share(struct twill_comm *list)
{
    const struct twill_comm *failed = list;
    while (failed && !tw_failed(tw_comm_status(failed)))
        failed = failed->parked_next;
    for (struct twill_comm *comm = list; failed && comm; comm = comm->parked_next)
        if (comm != failed)
            tw_comm_fail_text(comm, tw_comm_status(failed), failed->failure);
}

/* Finalizes those that are open, frees all. */
static enum twill_status end_all(struct twill_comm *list)
{
    failure_share(list);
    enum twill_status status = open_finalize(list);
    for (struct twill_comm *comm = list; comm; comm = comm->parked_next) {
        enum twill_status joined = finalize_join(comm);
        status = tw_failed(status) ? status : joined;
    }
    while (list) {
        struct twill_comm *comm = list;
        list = comm->parked_next;
        tw_comm_free(comm);
    }
    return status;
}

enum twill_status tw_comm_retire(struct twill_comm *comm)
{
    char text[TW_ERROR_TEXT_BYTES];
    __atomic_store_n(&comm->magic, 0, __ATOMIC_RELEASE);
    int state = __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE);
    if (state == TW_COMM_INIT && !tw_failed(tw_comm_status(comm))) {
        snprintf(text, sizeof text, "rank %d destroyed communicator %s in init",
                 tw_comm_rank_now(comm), comm->args.name);
        tw_comm_fail_text(comm, TWILL_ERR_ABORTED, text);
    }
    bool waits = state == TW_COMM_READY || state == TW_COMM_FINALIZING;
    struct twill_comm *list = leave(comm, waits && !tw_failed(tw_comm_status(comm)));
    return list ? end_all(list) : TWILL_OK;
}

void tw_comm_give_up(struct twill_comm *comm)
{
    char text[TW_ERROR_TEXT_BYTES];
    if (!tw_failed(tw_comm_status(comm))) {
        snprintf(text, sizeof text,
                 "rank %d gave communicator %s up: what it was made together with failed",
                 tw_comm_rank_now(comm), comm->args.name);
        tw_comm_fail_text(comm, TWILL_ERR_ABORTED, text);
    }
    (void)end_all(leave(comm, false));
}
