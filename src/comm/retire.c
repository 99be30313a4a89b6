/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a communicator ends when its user is done with it, and what several ranks of one
 * process mean for that.
 * Never knows: handles, how ranks meet. */
#include "config.h"

#include <stdlib.h>

#include "comm/group.h"

/*
 * Ranks of one process reach each other's memory by address, and one thread may destroy several of
 * them one after another, so a rank of a process that holds others waits here, out of its user's
 * sight, for the last of them. That one finalizes all and frees all.
 */

static bool is_open(const struct twill_comm *comm)
{
    return !tw_failed(tw_comm_status(comm)) &&
           __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) == TW_COMM_READY;
}

/* Finalizes those that are open, frees all. The list is chained by parked_next. */
static enum twill_status end_all(struct twill_comm *list)
{
    size_t count = 0, open = 0;
    for (struct twill_comm *comm = list; comm; comm = comm->parked_next)
        count++;
    enum twill_status status = TWILL_OK;
    struct twill_comm **comms = tw_alloc(count * sizeof(void *));
    for (struct twill_comm *comm = list; comm; comm = comm->parked_next) {
        if (!is_open(comm))
            continue;
        if (comms)
            comms[open++] = comm;
        else
            tw_comm_abort(comm); /* no memory to end it in good order */
    }
    if (!comms)
        status = TWILL_ERR_NOMEM;
    else if (open)
        status = tw_finalize_all(comms, open);
    free(comms);
    while (list) {
        struct twill_comm *comm = list;
        list = comm->parked_next;
        tw_last_error_forget(comm);
        tw_comm_free(comm);
    }
    return status;
}

/* A finalize that goes on by itself comes to its end; an init's thread is there already. */
static void finalize_join(struct twill_comm *comm)
{
    if (!comm->init_thread_on)
        return;
    pthread_join(comm->init_thread, NULL);
    comm->init_thread_on = false;
}

enum twill_status tw_comm_retire(struct twill_comm *comm)
{
    struct twill_comm *list = comm;
    comm->parked_next = NULL;
    __atomic_store_n(&comm->magic, 0, __ATOMIC_RELEASE);
    tw_last_error_forget(comm); /* this thread's; a parked rank is freed by another */
    if (__atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) == TW_COMM_INIT) {
        tw_comm_free(comm);
        return TWILL_OK;
    }
    comm->args.blocking = 1; /* from here on nobody else would see it through */
    finalize_join(comm);
    if (comm->ops && comm->ranks_here > 1)
        list = tw_progress_park(comm->proc->progress, comm);
    return list ? end_all(list) : TWILL_OK;
}
