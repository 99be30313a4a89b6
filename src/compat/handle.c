/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which handles live, who is inside of which, and when one may be freed.
 * Never knows: what the calls do. */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "compat/compat.h"

/*
 * A handle's word counts the threads inside: questions in the low bits, calls above. A watcher may
 * abort while another thread is inside a call: the communicator is doomed then, no new call gets
 * in, and the last to leave frees it. Nobody waits.
 */
#define ONE_QUESTION 1u
#define QUESTIONS 0x3fffu
#define ONE_CALL 0x4000u
#define CALLS 0x0fffc000u
#define LIVES 0x40000000u
#define DOOMED 0x80000000u

/* Freed handles wait in a line, and are used again when it is this long. */
#define LINE_LEAST 64

static struct {
    pthread_mutex_t lock;
    ncclComm_t first, last;
    unsigned count;
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- life ---------------------------------------------------------------------------------------
 */

ncclComm_t tw_compat_comm_new(const char *call)
{
    ncclComm_t comm = NULL;
    (void)pthread_mutex_lock(&line.lock);
    if (line.count > LINE_LEAST) {
        comm = line.first;
        line.first = comm->next;
        line.count--;
    }
    (void)pthread_mutex_unlock(&line.lock);
    if (!comm)
        comm = calloc(1, sizeof *comm);
    if (!comm) {
        tw_compat_fail(ncclSystemError, "%s: no memory for a communicator's handle", call);
        return NULL;
    }
    comm->next = NULL;
    comm->comm = NULL;
    comm->device = TWILL_DEVICE_HOST;
    atomic_store(&comm->revoked, false);
    atomic_store(&comm->word, LIVES);
    return comm;
}

/* Nothing refers to it any more but what is stale. */
static void line_up(ncclComm_t comm)
{
    atomic_store(&comm->word, 0);
    (void)pthread_mutex_lock(&line.lock);
    comm->next = NULL;
    if (line.count)
        line.last->next = comm;
    else
        line.first = comm;
    line.last = comm;
    line.count++;
    (void)pthread_mutex_unlock(&line.lock);
}

void tw_compat_comm_drop(ncclComm_t comm)
{
    if (comm)
        line_up(comm);
}

/* ---- what came out of what ----------------------------------------------------------------------
 */

void tw_compat_adopt(ncclComm_t parent, ncclComm_t child)
{
    (void)pthread_mutex_lock(&line.lock);
    child->parent = parent;
    child->sibling = parent->children;
    parent->children = child;
    (void)pthread_mutex_unlock(&line.lock);
}

static bool connects(ncclComm_t comm)
{
    enum twill_status status = TWILL_OK;
    return twill_comm_async_error(comm->comm, &status) == TWILL_OK && status == TWILL_INPROGRESS;
}

bool tw_compat_expecting(ncclComm_t comm)
{
    bool some = false;
    (void)pthread_mutex_lock(&line.lock);
    for (ncclComm_t *at = &comm->children; *at;) {
        ncclComm_t child = *at;
        if (connects(child)) {
            some = true;
            at = &child->sibling;
            continue;
        }
        *at = child->sibling;
        child->parent = NULL;
        child->sibling = NULL;
    }
    (void)pthread_mutex_unlock(&line.lock);
    return some;
}

static void family_leave(ncclComm_t comm)
{
    (void)pthread_mutex_lock(&line.lock);
    ncclComm_t *at = comm->parent ? &comm->parent->children : NULL;
    while (at && *at && *at != comm)
        at = &(*at)->sibling;
    if (at && *at)
        *at = comm->sibling;
    comm->parent = NULL;
    comm->sibling = NULL;
    while (comm->children) {
        ncclComm_t child = comm->children;
        comm->children = child->sibling;
        child->parent = NULL;
        child->sibling = NULL;
    }
    (void)pthread_mutex_unlock(&line.lock);
}

/* ---- inside -------------------------------------------------------------------------------------
 */

static ncclResult_t step_in(ncclComm_t comm, const char *call, uint32_t one)
{
    if (!comm)
        return tw_compat_fail(ncclInvalidArgument, "%s: the communicator is NULL", call);
    uint32_t word = atomic_load(&comm->word);
    do {
        if (!(word & LIVES) || word & DOOMED)
            return tw_compat_fail(ncclInvalidArgument,
                                  "%s: %p is no communicator, or one that was destroyed", call,
                                  (void *)comm);
    } while (!atomic_compare_exchange_weak(&comm->word, &word, word + one));
    return ncclSuccess;
}

static void step_out(ncclComm_t comm, uint32_t one)
{
    if (atomic_fetch_sub(&comm->word, one) - one == (LIVES | DOOMED))
        tw_compat_reap(comm);
}

ncclResult_t tw_compat_enter(ncclComm_t comm, const char *call)
{
    return step_in(comm, call, ONE_CALL);
}

void tw_compat_leave(ncclComm_t comm) { step_out(comm, ONE_CALL); }

ncclResult_t tw_compat_ask(ncclComm_t comm, const char *call)
{
    return step_in(comm, call, ONE_QUESTION);
}

void tw_compat_asked(ncclComm_t comm) { step_out(comm, ONE_QUESTION); }

ncclResult_t tw_compat_end(ncclComm_t comm, enum twill_status status)
{
    ncclResult_t result = tw_compat_say(status, comm->comm);
    if (tw_compat_group_open()) {
        if (status >= 0) {
            tw_compat_group_keep(comm);
            return result;
        }
        tw_compat_group_spoil(result);
    }
    tw_compat_leave(comm);
    return result;
}

/* ---- the end ------------------------------------------------------------------------------------
 */

void tw_compat_doom(ncclComm_t comm) { (void)atomic_fetch_or(&comm->word, DOOMED); }

static enum twill_status free_all(ncclComm_t comm)
{
    family_leave(comm); /* who asks its parent looks at it no more */
    enum twill_status status = twill_comm_destroy(comm->comm);
    if (status == TWILL_ERR_INVALID || status == TWILL_ERR_USAGE || status == TWILL_ERR_BUSY)
        return status; /* it lives on */
    tw_compat_windows_drop(comm);
    line_up(comm);
    return status;
}

void tw_compat_reap(ncclComm_t comm)
{
    const struct tw_compat_item item = {.kind = TW_COMPAT_REAP, .comm = comm};
    if (!tw_compat_group_open())
        (void)free_all(comm);
    else
        (void)tw_compat_group_note(&item); /* no memory: it is lost, with its memory */
}

ncclResult_t tw_compat_destroy(ncclComm_t comm)
{
    uint32_t word = atomic_load(&comm->word);
    do {
        if (word & DOOMED || (word & CALLS) != ONE_CALL) {
            tw_compat_leave(comm);
            return tw_compat_fail(ncclInvalidUsage,
                                  "ncclCommDestroy: another thread is inside a call of the "
                                  "communicator");
        }
    } while (!atomic_compare_exchange_weak(&comm->word, &word, word | DOOMED));
    while (atomic_load(&comm->word) & QUESTIONS)
        sched_yield(); /* they wait for nothing */
    enum twill_status status = free_all(comm);
    ncclResult_t result = tw_compat_say(status, NULL);
    if (status == TWILL_ERR_INVALID || status == TWILL_ERR_USAGE || status == TWILL_ERR_BUSY) {
        (void)atomic_fetch_and(&comm->word, ~DOOMED);
        tw_compat_leave(comm);
    }
    return result;
}
