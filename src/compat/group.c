/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the calling thread's group: what has to be done once twill's group has ended.
 * Never knows: what runs in twill's group. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat/compat.h"

/* Items up to the group's end, and after it while they are worked off. */
struct group {
    int depth;
    ncclResult_t error; /* that spoilt it */
    char text[TW_COMPAT_TEXT_BYTES];
    struct tw_compat_item *items; /* owned */
    size_t count, room;
};
static _Thread_local struct group own;

bool tw_compat_group_open(void) { return own.depth > 0; }

void tw_compat_group_spoil(ncclResult_t result)
{
    /* such a call is no part of the group, which stays good */
    if (!own.depth || result == ncclInvalidArgument || own.error != ncclSuccess)
        return;
    own.error = result;
    (void)snprintf(own.text, sizeof own.text, "%s", tw_compat_text());
}

bool tw_compat_group_note(const struct tw_compat_item *item)
{
    if (own.count == own.room) {
        size_t room = own.room ? 2 * own.room : 16;
        void *items = realloc(own.items, room * sizeof *own.items);
        if (!items) {
            tw_compat_fail(ncclSystemError, "group: no memory to note a call");
            return false;
        }
        own.items = items;
        own.room = room;
    }
    own.items[own.count++] = *item;
    return true;
}

void tw_compat_group_keep(ncclComm_t comm)
{
    const struct tw_compat_item item = {.kind = TW_COMPAT_KEEP, .comm = comm};
    for (size_t i = own.count; i-- > 0;) {
        if (own.items[i].kind == TW_COMPAT_KEEP && own.items[i].comm == comm) {
            tw_compat_leave(comm); /* the other one stays */
            return;
        }
    }
    if (!tw_compat_group_note(&item))
        tw_compat_leave(
            comm); /* an abort in mid-group would free it too early: better than to hang */
}

/* ---- the end ------------------------------------------------------------------------------------
 */

/* The first error, and its sentence. */
struct outcome {
    ncclResult_t result;
    char text[TW_COMPAT_TEXT_BYTES];
};

static bool failed(ncclResult_t result)
{
    return result != ncclSuccess && result != ncclInProgress;
}

static void outcome_add(struct outcome *outcome, ncclResult_t result)
{
    if (failed(outcome->result) || result == ncclSuccess)
        return;
    outcome->result = result;
    if (failed(result))
        (void)snprintf(outcome->text, sizeof outcome->text, "%s", tw_compat_text());
}

static void item_new(const struct tw_compat_item *item)
{
    if (item->comm->comm) {
        *item->out = item->comm;
        if (item->parent)
            tw_compat_adopt(item->parent, item->comm);
    } else {
        tw_compat_comm_drop(item->comm); /* it was not made, or is a split's without a color */
    }
    if (item->parent)
        tw_compat_leave(item->parent);
}

/* Windows are collectives: those of one communicator in their order, several communicators, which
 * may be ranks of one, beside each other. */
struct lane {
    const struct group *group; /* borrowed */
    ncclComm_t comm;
    pthread_t thread;
    bool on;
    struct outcome outcome;
};

static bool is_window(const struct tw_compat_item *item)
{
    return item->kind == TW_COMPAT_WINDOW || item->kind == TW_COMPAT_CLOSE;
}

static void *lane_main(void *argument)
{
    struct lane *lane = argument;
    for (size_t i = 0; i < lane->group->count; i++) {
        const struct tw_compat_item *item = &lane->group->items[i];
        if (!is_window(item) || item->comm != lane->comm)
            continue;
        outcome_add(&lane->outcome, item->kind == TW_COMPAT_WINDOW ? tw_compat_window_open(item)
                                                                   : tw_compat_window_close(item));
    }
    return NULL;
}

static size_t lanes_fill(const struct group *g, struct lane *lanes)
{
    size_t count = 0;
    for (size_t i = 0; i < g->count; i++) {
        size_t at = 0;
        if (!is_window(&g->items[i]))
            continue;
        while (at < count && lanes[at].comm != g->items[i].comm)
            at++;
        if (at == count)
            lanes[count++] = (struct lane){.group = g, .comm = g->items[i].comm};
    }
    return count;
}

static void windows_run(const struct group *g, struct outcome *outcome)
{
    struct lane *lanes = calloc(g->count, sizeof *lanes);
    if (!lanes) {
        outcome_add(outcome, tw_compat_fail(ncclSystemError, "group: no memory for windows"));
        return;
    }
    size_t count = lanes_fill(g, lanes);
    for (size_t i = 0; i + 1 < count; i++) {
        lanes[i].on = pthread_create(&lanes[i].thread, NULL, lane_main, &lanes[i]) == 0;
        if (lanes[i].on)
            continue;
        outcome_add(outcome, tw_compat_fail(ncclSystemError, "group: no thread for a window"));
        (void)twill_comm_abort(lanes[i].comm->comm); /* its other ranks would wait for it */
    }
    if (count)
        (void)lane_main(&lanes[count - 1]);
    for (size_t i = 0; i < count; i++) {
        if (lanes[i].on)
            (void)pthread_join(lanes[i].thread, NULL);
        if (failed(lanes[i].outcome.result))
            tw_compat_text_set(lanes[i].outcome.text);
        outcome_add(outcome, lanes[i].outcome.result);
    }
    free(lanes);
}

/* twill's group has ended. run: well, so windows are due. */
static void items_run(const struct group *g, bool run, struct outcome *outcome)
{
    bool windows = false;
    for (size_t i = 0; i < g->count; i++) {
        if (g->items[i].kind == TW_COMPAT_NEW)
            item_new(&g->items[i]);
        windows |= is_window(&g->items[i]);
    }
    if (windows && run)
        windows_run(g, outcome);
    for (size_t i = 0; i < g->count; i++) {
        const struct tw_compat_item *item = &g->items[i];
        if (is_window(item) && !run)
            tw_compat_window_undo(item);
        if (item->kind == TW_COMPAT_KEEP || is_window(item))
            tw_compat_leave(item->comm);
    }
    for (size_t i = 0; i < g->count; i++) {
        const struct tw_compat_item *item = &g->items[i];
        if (item->kind == TW_COMPAT_DESTROY)
            outcome_add(outcome, tw_compat_destroy(item->comm));
        else if (item->kind == TW_COMPAT_REAP)
            tw_compat_reap(item->comm);
    }
}

/* End the outermost group; simulation NULL: run it. */
static ncclResult_t outermost_end(struct twill_simulation *simulation)
{
    struct group g = own;
    struct outcome outcome = {.result = ncclSuccess};
    own = (struct group){0};
    if (g.error != ncclSuccess) {
        (void)twill_group_cancel();
        outcome.result = g.error;
        (void)snprintf(outcome.text, sizeof outcome.text, "%s", g.text);
    } else {
        enum twill_status status =
            simulation ? twill_group_simulate_end(simulation) : twill_group_end();
        outcome_add(&outcome, tw_compat_say(status, NULL));
    }
    items_run(&g, !simulation && !failed(outcome.result), &outcome);
    free(g.items);
    if (failed(outcome.result))
        tw_compat_text_set(outcome.text);
    return outcome.result;
}

/* ---- entry points -------------------------------------------------------------------------------
 */

ncclResult_t ncclGroupStart(void)
{
    enum twill_status status = twill_group_start();
    own.depth += status >= 0;
    return tw_compat_say(status, NULL);
}
TW_COMPAT_TWIN(GroupStart);

ncclResult_t ncclGroupEnd(void)
{
    if (own.depth == 1)
        return outermost_end(NULL);
    own.depth -= own.depth > 0;
    return tw_compat_say(twill_group_end(), NULL); /* an inner one, or an error */
}
TW_COMPAT_TWIN(GroupEnd);

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    struct twill_simulation simulation = TWILL_SIMULATION_INIT;
    if (!info || info->magic != 0x74685283u)
        return tw_compat_fail(ncclInvalidArgument, "ncclGroupSimulateEnd: %s",
                              info ? "the struct was not set to NCCL_SIM_INFO_INITIALIZER"
                                   : "the output is NULL");
    if (own.depth != 1)
        return ncclGroupEnd();
    ncclResult_t result = outermost_end(&simulation);
    const size_t end = offsetof(ncclSimInfo_t, estimatedTime) + sizeof info->estimatedTime;
    if (result == ncclSuccess && info->size >= end)
        info->estimatedTime = (float)simulation.predicted_us;
    return result;
}
TW_COMPAT_TWIN(GroupSimulateEnd);
