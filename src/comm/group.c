/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the calling thread's open group: what was noted, and in which order its end goes.
 * Never knows: how the noted calls run. */
#include "config.h"

#include "comm/group.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm/control.h"
#include "comm/split.h"

struct group_init {
    struct twill_comm *comm; /* owned until connected */
    struct twill_comm **out; /* the caller's */
};

struct group_split {
    struct twill_comm *parent; /* borrowed */
    struct tw_split *split;    /* a reference */
    struct twill_comm *child;  /* owned until connected; NULL: none */
    struct twill_comm **out;   /* the caller's */
};

struct group {
    int depth;
    struct tw_call *calls; /* owned */
    size_t ncalls, calls_room;
    size_t **words; /* owned, and each of them: counts of v-variants */
    size_t nwords, words_room;
    struct group_init *inits; /* owned */
    size_t ninits, inits_room;
    struct group_split *splits; /* owned */
    size_t nsplits, splits_room;
    struct twill_comm **finals; /* owned; borrowed communicators */
    size_t nfinals, finals_room;
};

static _Thread_local struct group open_group;

bool tw_group_active(void) { return open_group.depth > 0; }

enum twill_status tw_group_start(void)
{
    open_group.depth++;
    return TWILL_OK;
}

static bool make_room(void **array, size_t *room, size_t used, size_t each)
{
    if (used < *room)
        return true;
    size_t more = *room ? 2 * *room : 16;
    void *grown = realloc(*array, more * each);
    if (!grown)
        return false;
    *array = grown;
    *room = more;
    return true;
}

static enum twill_status no_room(const char *what)
{
    return tw_fail(TWILL_ERR_NOMEM, "group: no memory to note %s", what);
}

enum twill_status tw_group_add_call(const struct tw_call *call)
{
    struct group *g = &open_group;
    size_t nwords = tw_call_words(call), *words = NULL;
    if (!make_room((void **)&g->calls, &g->calls_room, g->ncalls, sizeof *g->calls) ||
        (nwords && (!make_room((void **)&g->words, &g->words_room, g->nwords, sizeof *g->words) ||
                    !(words = malloc(nwords * sizeof *words)))))
        return no_room("a call");
    struct tw_call *noted = &g->calls[g->ncalls++];
    *noted = *call;
    if (words) {
        tw_counts_copy(&noted->info.counts, call->comm->size, words);
        g->words[g->nwords++] = words;
    }
    return TWILL_OK;
}

enum twill_status tw_group_add_inits(struct twill_comm *const *comms, int count,
                                     struct twill_comm **outs)
{
    struct group *g = &open_group;
    for (int i = 0; i < count; i++) {
        if (!make_room((void **)&g->inits, &g->inits_room, g->ninits, sizeof *g->inits)) {
            g->ninits -= (size_t)i;
            return no_room("an init");
        }
        g->inits[g->ninits++] = (struct group_init){comms[i], &outs[i]};
    }
    return TWILL_OK;
}

enum twill_status tw_group_add_finalize(struct twill_comm *comm)
{
    struct group *g = &open_group;
    for (size_t i = 0; i < g->nfinals; i++)
        if (g->finals[i] == comm)
            return tw_fail(TWILL_ERR_USAGE, "finalize: communicator %s is twice in the group",
                           comm->args.name);
    if (!make_room((void **)&g->finals, &g->finals_room, g->nfinals, sizeof(void *)))
        return no_room("a finalize");
    g->finals[g->nfinals++] = comm;
    return TWILL_OK;
}

enum twill_status tw_group_add_split(struct twill_comm *parent, struct tw_split *split,
                                     struct twill_comm *child, struct twill_comm **out)
{
    struct group *g = &open_group;
    if (!make_room((void **)&g->splits, &g->splits_room, g->nsplits, sizeof *g->splits))
        return no_room("a split");
    enum twill_status status = TWILL_OK;
    if (!split->roll) {
        const struct tw_call call = tw_split_call(parent, split);
        status = tw_group_add_call(&call);
    }
    if (!tw_failed(status))
        g->splits[g->nsplits++] = (struct group_split){parent, split, child, out};
    return status;
}

bool tw_group_uses_stream(const struct tw_stream *stream)
{
    for (size_t i = 0; i < open_group.ncalls; i++)
        if (open_group.calls[i].stream == stream)
            return true;
    return false;
}

/* ---- inits ------------------------------------------------------------------------------------
 */

/* say: nobody has kept the reason yet. */
static void inits_give_up(const struct group *g, enum twill_status status, bool say)
{
    char text[TW_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text, "%s", tw_fail_text());
    for (size_t i = 0; i < g->ninits; i++)
        if (tw_comm_status(g->inits[i].comm) == status)
            snprintf(text, sizeof text, "%s", g->inits[i].comm->failure);
    for (size_t i = 0; i < g->ninits; i++)
        tw_comm_give_up(g->inits[i].comm);
    if (!say)
        return;
    tw_fail_again(status, text);
    tw_last_error_keep(0);
}

static enum twill_status inits_run(const struct group *g)
{
    if (!g->ninits)
        return TWILL_OK;
    struct twill_comm **comms = malloc(g->ninits * sizeof(void *));
    enum twill_status status = TWILL_OK;
    bool wait = false;
    if (!comms) {
        status = no_room("inits");
    } else {
        for (size_t i = 0; i < g->ninits; i++) {
            comms[i] = g->inits[i].comm;
            wait |= comms[i]->args.blocking != 0;
        }
        status = tw_comm_connect(comms, (int)g->ninits, wait);
    }
    free(comms);
    if (tw_failed(status)) {
        inits_give_up(g, status, true);
        return status;
    }
    for (size_t i = 0; i < g->ninits; i++)
        *g->inits[i].out = g->inits[i].comm;
    return status;
}

/* ---- splits -----------------------------------------------------------------------------------
 */

/* say: nobody has kept the reason yet. */
static void splits_give_up(const struct group *g, enum twill_status status, bool say)
{
    char text[TW_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text, "%s", tw_fail_text());
    for (size_t i = 0; i < g->nsplits; i++) {
        const struct group_split *s = &g->splits[i];
        if (s->child && tw_comm_status(s->child) == status)
            snprintf(text, sizeof text, "%s", s->child->failure);
    }
    for (size_t i = 0; i < g->nsplits; i++)
        if (g->splits[i].child)
            tw_comm_give_up(g->splits[i].child);
    if (!say)
        return;
    tw_fail_again(status, text);
    tw_last_error_keep(0);
}

/* The all_gathers are done or queued, or `before` says why there is nothing of them. */
static enum twill_status splits_run(const struct group *g, enum twill_status before)
{
    if (!g->nsplits)
        return before;
    struct twill_comm **comms = malloc(g->nsplits * sizeof(void *));
    enum twill_status status = comms || tw_failed(before) ? before : no_room("splits");
    int count = 0;
    bool wait = false;
    for (size_t i = 0; i < g->nsplits; i++) {
        const struct group_split *s = &g->splits[i];
        if (s->split->stream)
            tw_split_keep(s->parent, s->split);
        else
            tw_split_put(s->split);
        if (!s->child || !comms)
            continue;
        comms[count++] = s->child;
        wait |= s->child->args.blocking != 0;
    }
    if (!tw_failed(status) && count)
        status = tw_comm_connect(comms, count, wait);
    free(comms);
    if (tw_failed(status)) {
        splits_give_up(g, status, !tw_failed(before));
        return status;
    }
    for (size_t i = 0; i < g->nsplits; i++)
        *g->splits[i].out = g->splits[i].child;
    return status;
}

/* ---- finalizes --------------------------------------------------------------------------------
 */

struct finalize {
    struct twill_comm *comm; /* borrowed */
    pthread_t thread;
    bool on;
    enum twill_status status;
    char text[TW_ERROR_TEXT_BYTES];
};

static void *finalize_main(void *argument)
{
    struct finalize *f = argument;
    f->status = tw_comm_finalize(f->comm);
    if (tw_failed(f->status))
        snprintf(f->text, sizeof f->text, "%s",
                 tw_comm_status(f->comm) == f->status ? f->comm->failure : tw_fail_text());
    return NULL;
}

enum twill_status tw_finalize_all(struct twill_comm *const *comms, size_t count)
{
    struct finalize *all = tw_alloc(count * sizeof *all);
    enum twill_status status = TWILL_OK;
    if (!all) {
        for (size_t i = 0; i < count; i++)
            tw_comm_fail(comms[i], TWILL_ERR_NOMEM, "finalize: no memory for %zu ranks", count);
        tw_last_error_keep(0);
        return TWILL_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        all[i].comm = comms[i];
        if (i + 1 == count)
            break; /* this one runs here */
        status = tw_thread_start(&all[i].thread, "twill-finalize", finalize_main, &all[i]);
        all[i].on = !tw_failed(status);
        /* the others of its communicator would wait for it: all of them are told */
        if (!all[i].on)
            tw_comm_fail(comms[i], status, "finalize: %s", tw_fail_text());
    }
    for (size_t i = count; i-- > 0;)
        if (!all[i].on)
            finalize_main(&all[i]);
    status = TWILL_OK;
    for (size_t i = 0; i < count; i++) {
        if (all[i].on)
            pthread_join(all[i].thread, NULL);
        if (all[i].status == TWILL_INPROGRESS && status == TWILL_OK)
            status = TWILL_INPROGRESS;
        if (!tw_failed(all[i].status))
            continue;
        tw_last_error_set(tw_comm_key(comms[i]), all[i].text);
        if (!tw_failed(status))
            tw_last_error_set(0, all[i].text);
        status = tw_failed(status) ? status : all[i].status;
    }
    free(all);
    return status;
}

/* The group's finalizes, each communicator claimed. */
static enum twill_status finals_run(const struct group *g)
{
    size_t claimed = 0;
    enum twill_status status = TWILL_OK;
    while (claimed < g->nfinals && !tw_failed(status)) {
        status = tw_ops_claim(g->finals[claimed], "finalize");
        if (!tw_failed(status))
            claimed++;
    }
    if (tw_failed(status))
        tw_last_error_keep(0);
    else if (claimed)
        status = tw_finalize_all(g->finals, claimed);
    for (size_t i = 0; i < claimed; i++)
        tw_ops_unclaim(g->finals[i]);
    return status;
}

/* ---- the end ----------------------------------------------------------------------------------
 */

static void group_free(struct group *g)
{
    while (g->nwords)
        free(g->words[--g->nwords]);
    free(g->words);
    free(g->calls);
    free(g->inits);
    free(g->splits);
    free(g->finals);
}

enum twill_status tw_group_end(void)
{
    if (!open_group.depth) {
        enum twill_status status =
            tw_fail(TWILL_ERR_USAGE, "group_end: no group is open in this thread");
        tw_last_error_keep(0);
        return status;
    }
    if (--open_group.depth)
        return TWILL_OK;
    struct group g = open_group;
    open_group = (struct group){0};
    enum twill_status init_status = inits_run(&g);
    enum twill_status status = init_status;
    if (!tw_failed(status) && g.ncalls)
        status = tw_group_run(g.calls, g.ncalls);
    status = splits_run(&g, status);
    if (status == TWILL_INPROGRESS)
        init_status = status;
    if (!tw_failed(status))
        status = finals_run(&g);
    group_free(&g);
    return tw_failed(status) || init_status == TWILL_OK ? status : init_status;
}

/* It is closed without having run: what was noted is forgotten, for the reason status. */
static void group_forget(struct group *g, enum twill_status status)
{
    if (g->ninits)
        inits_give_up(g, status, false);
    for (size_t i = 0; i < g->nsplits; i++)
        tw_split_put(g->splits[i].split);
    splits_give_up(g, status, false);
    group_free(g);
}

/* Only the outermost group can be closed without running it. */
static enum twill_status outermost_take(const char *call, struct group *g)
{
    if (open_group.depth != 1)
        return tw_fail(TWILL_ERR_USAGE,
                       open_group.depth ? "%s: a group is open around this one: only the outermost "
                                          "can be closed so"
                                        : "%s: no group is open in this thread",
                       call);
    *g = open_group;
    open_group = (struct group){0};
    return TWILL_OK;
}

enum twill_status tw_group_simulate(uint64_t *time_ps)
{
    struct group g;
    enum twill_status status = outermost_take("group_simulate_end", &g);
    if (tw_failed(status)) {
        tw_last_error_keep(0);
        return status;
    }
    if (g.ninits || g.nsplits || g.nfinals)
        status = tw_fail(TWILL_ERR_USAGE, "group_simulate_end: the group makes or finalizes "
                                          "communicators, which has no predicted time");
    else
        status = tw_simulate(g.calls, g.ncalls, time_ps);
    if (tw_failed(status))
        tw_last_error_keep(0);
    group_forget(&g, status);
    return status;
}

enum twill_status tw_group_cancel(void)
{
    struct group g;
    enum twill_status status = outermost_take("group_cancel", &g);
    if (tw_failed(status)) {
        tw_last_error_keep(0);
        return status;
    }
    if (g.ninits || g.nsplits)
        tw_fail_again(TWILL_ERR_ABORTED, "the group that makes the communicator was canceled");
    group_forget(&g, TWILL_ERR_ABORTED);
    return TWILL_OK;
}
