/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the calls of a closing group run: which communicators side by side here, which in the
 * progress thread.
 * Never knows: the open group, how a single item moves. */
#include "config.h"

#include "comm/group.h"

#include <stdio.h>
#include <stdlib.h>

#include "comm/control.h"
#include "comm/gpu.h"

/* What one communicator does in the group. */
struct share {
    struct twill_comm *comm; /* claimed */
    size_t nsendrecvs;
    bool queued;                  /* runs in the progress thread */
    struct tw_item *first, *last; /* owned until submitted */
    size_t nfused;                /* calls still to come that the last item takes */
    struct tw_item *batch;        /* the last item, when there are sends or receives */
    struct tw_item *at;           /* runs here: the one that runs */
};

struct closing {
    const struct tw_call *calls; /* borrowed */
    size_t ncalls;
    struct share *shares; /* owned, [ncalls] */
    size_t nshares;
    struct tw_item **queue; /* owned, [ncalls]: for the progress thread, in order */
    size_t nqueue;
    struct tw_item **waits; /* owned, [ncalls]: those of them that somebody waits for */
    size_t nwaits;
    enum twill_status status; /* the first error */
};

static struct share *share_of(const struct closing *c, const struct tw_call *call)
{
    return &c->shares[call->comm->ops->group_slot];
}

/* ---- claim and sort ---------------------------------------------------------------------------
 */

static bool claimed_here(const struct twill_comm *comm)
{
    return __atomic_load_n(&comm->user, __ATOMIC_RELAXED) == tw_ops_self();
}

/* One share for each communicator of the calls, claimed. */
static enum twill_status shares_claim(struct closing *c)
{
    for (size_t i = 0; i < c->ncalls; i++) {
        const struct tw_call *call = &c->calls[i];
        struct tw_ops *ops = call->comm->ops;
        if (!claimed_here(call->comm)) {
            enum twill_status status = tw_ops_claim(call->comm, "group");
            if (tw_failed(status))
                return status;
            ops->group_slot = c->nshares++;
            share_of(c, call)->comm = call->comm;
        }
        struct share *share = share_of(c, call);
        if (tw_gpu_serves(call))
            continue;
        share->nsendrecvs += call->info.coll == TW_COLL_P2P;
        share->queued |= call->stream || __atomic_load_n(&ops->pending, __ATOMIC_ACQUIRE);
    }
    return TWILL_OK;
}

/* item NULL: there was no memory for it. */
static bool share_append(struct share *share, struct tw_item *item)
{
    if (!item)
        return false;
    item->waited = false; /* until one of its ops has no stream */
    if (share->last)
        share->last->next = item;
    else
        share->first = item;
    share->last = item;
    return true;
}

/* One more call of an item of several. */
static void item_note(struct tw_item *item, const struct tw_call *call)
{
    tw_op_init(&item->ops[item->nops++], call);
    item->waited |= !call->stream;
}

/* An item of several calls, to be noted. */
static bool share_append_many(struct share *share, bool batch, size_t nops)
{
    if (!share_append(share, tw_item_create(share->comm, batch, (uint32_t)nops)))
        return false;
    share->last->nops = 0; /* so far */
    return true;
}

static bool is_sendrecv(const struct tw_call *call)
{
    return call->info.coll == TW_COLL_P2P && !tw_gpu_serves(call);
}
static bool is_collective(const struct tw_call *call)
{
    return call->info.coll != TW_COLL_P2P && !tw_gpu_serves(call);
}

static void note_error(struct closing *c, const struct tw_item *item)
{
    if (!tw_failed(item->status))
        return;
    tw_last_error_set(tw_comm_key(item->comm), item->text);
    if (tw_failed(c->status))
        return;
    c->status = item->status;
    tw_last_error_set(0, item->text);
}

/* This rank cannot do what the others of its communicator do by now, or soon: all of them are told.
 * Other communicators go on. */
static void item_refuse(struct closing *c, struct tw_item *item, enum twill_status status)
{
    item->status = status;
    snprintf(item->text, sizeof item->text, "%s", tw_fail_text());
    if (item->comm->size > 1)
        tw_comm_fail_text(item->comm, status, item->text);
    note_error(c, item);
}

/* A collective gets an item of its own, or begins or continues one of several. */
static enum twill_status collective_note(struct closing *c, size_t i)
{
    const struct tw_call *call = &c->calls[i];
    struct share *share = share_of(c, call);
    if (!share->nfused) {
        size_t count = tw_fuse_count(call, c->ncalls - i);
        if (count == 1) {
            bool appended = share_append(share, tw_item_create_call(call, false));
            if (appended)
                share->last->waited = !call->stream;
            return appended ? TWILL_OK : TWILL_ERR_NOMEM;
        }
        /* with the joint call behind them */
        if (!share_append_many(share, false, count + 1))
            return TWILL_ERR_NOMEM;
        share->nfused = count;
    }
    item_note(share->last, call);
    if (--share->nfused)
        return TWILL_OK;
    enum twill_status status = tw_fuse_check(share->last);
    if (!tw_failed(status))
        status = tw_fuse_prepare(share->last);
    if (tw_failed(status))
        item_refuse(c, share->last, status);
    return TWILL_OK;
}

/* Collectives in the order of calls, then the batch. */
static enum twill_status shares_fill(struct closing *c)
{
    for (size_t i = 0; i < c->ncalls; i++) {
        enum twill_status status = is_collective(&c->calls[i]) ? collective_note(c, i) : TWILL_OK;
        if (tw_failed(status))
            return status;
    }
    for (size_t i = 0; i < c->nshares; i++) {
        struct share *share = &c->shares[i];
        if (share->nsendrecvs && !share_append_many(share, true, share->nsendrecvs))
            return TWILL_ERR_NOMEM;
        share->batch = share->last;
    }
    for (size_t i = 0; i < c->ncalls; i++)
        if (is_sendrecv(&c->calls[i]))
            item_note(share_of(c, &c->calls[i])->batch, &c->calls[i]);
    for (size_t i = 0; i < c->nshares; i++) {
        if (!c->shares[i].nsendrecvs)
            continue;
        enum twill_status status = tw_batch_check(c->shares[i].batch);
        if (tw_failed(status))
            return status;
    }
    return TWILL_OK;
}

/* ---- run --------------------------------------------------------------------------------------
 */

static enum twill_status queue_submit(struct closing *c)
{
    for (size_t i = 0; i < c->ncalls; i++) {
        if (!c->calls[i].stream || tw_gpu_serves(&c->calls[i]))
            continue;
        enum twill_status status = tw_stream_attach(c->calls[i].stream);
        if (tw_failed(status))
            return status;
    }
    for (size_t i = 0; i < c->nshares; i++) {
        if (!c->shares[i].queued)
            continue;
        for (struct tw_item *item = c->shares[i].first; item; item = item->next) {
            c->queue[c->nqueue++] = item;
            if (item->waited)
                c->waits[c->nwaits++] = item;
        }
    }
    if (!c->nqueue)
        return TWILL_OK;
    enum twill_status status =
        tw_progress_submit(c->queue[0]->comm->proc->progress, c->queue, c->nqueue);
    if (tw_failed(status))
        return status;
    for (size_t i = 0; i < c->nshares; i++)
        if (c->shares[i].queued)
            c->shares[i].first = NULL; /* the progress thread's now */
    return TWILL_OK;
}

static void queue_wait(struct closing *c)
{
    for (size_t i = 0; i < c->nwaits; i++) {
        tw_progress_wait(c->waits[i]->comm->proc->progress, c->waits[i]);
        note_error(c, c->waits[i]);
        free(c->waits[i]);
    }
}

/* Moves every communicator that runs here once. @return how many have more to do */
static size_t shares_step(struct closing *c, bool *advanced)
{
    size_t left = 0;
    uint64_t now_ns = tw_now_ns();
    for (size_t i = 0; i < c->nshares; i++) {
        struct share *share = &c->shares[i];
        if (!share->at)
            continue;
        left++;
        if (tw_item_step(share->at, now_ns, advanced) == TWILL_INPROGRESS)
            continue;
        note_error(c, share->at);
        share->at = share->at->next;
    }
    return left;
}

static void shares_run(struct closing *c)
{
    struct tw_backoff backoff;
    struct tw_patience patience = TW_PATIENCE_NONE;
    for (size_t i = 0; i < c->nshares; i++) {
        struct share *share = &c->shares[i];
        share->at = share->queued ? NULL : share->first;
        if (share->at)
            patience = tw_patience_both(patience, share->comm->patience);
    }
    tw_backoff_init(&backoff, patience);
    for (;;) {
        bool advanced = false;
        if (!shares_step(c, &advanced))
            return;
        if (advanced)
            tw_backoff_reset(&backoff);
        else
            tw_backoff_wait(&backoff);
    }
}

static void closing_fini(struct closing *c)
{
    for (size_t i = 0; i < c->nshares; i++) {
        struct tw_item *next;
        for (struct tw_item *item = c->shares[i].first; item; item = next) {
            next = item->next;
            free(item);
        }
        tw_ops_unclaim(c->shares[i].comm);
    }
    free(c->shares);
    free(c->queue);
    free(c->waits);
}

enum twill_status tw_group_run(const struct tw_call *calls, size_t ncalls)
{
    struct closing c = {.calls = calls, .ncalls = ncalls, .status = TWILL_OK};
    enum twill_status status = TWILL_ERR_NOMEM;
    c.shares = tw_alloc(ncalls * sizeof *c.shares);
    c.queue = tw_alloc(ncalls * sizeof(void *));
    c.waits = tw_alloc(ncalls * sizeof(void *));
    if (c.shares && c.queue && c.waits)
        status = shares_claim(&c);
    if (!tw_failed(status))
        status = shares_fill(&c);
    if (!tw_failed(status))
        status = queue_submit(&c);
    if (tw_failed(status)) {
        tw_last_error_keep(0);
        closing_fini(&c);
        return status;
    }
    status = tw_gpu_run_group(calls, ncalls);
    if (tw_failed(status) && !tw_failed(c.status))
        c.status = status;
    shares_run(&c);
    queue_wait(&c);
    closing_fini(&c);
    return c.status;
}
