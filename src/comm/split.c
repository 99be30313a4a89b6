/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: who of a communicator's ranks makes a new one together, and where those meet.
 * Never knows: how they connect there, arguments of the C API. */
#include "config.h"

#include "comm/split.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/control.h"
#include "comm/ops.h"

/*
 * The ranks of the parent tell each other colour, key and a fresh nonce in one all_gather, so that
 * a split has its place in the parent's order of calls like any other and is told from them by its
 * record. Everything else follows from that table on every rank alike: who belongs to a colour, in
 * which order, and, from its first rank's nonce and the secret that the parent's ranks share, the
 * meeting point's name and key. So the second half is an ordinary init, which needs the parent no
 * more. Until the new ranks have met, a failure of the parent is theirs too: one of them may be
 * lost, and the others would wait for it.
 */

/* ---- life --------------------------------------------------------------------------------------
 */

enum twill_status tw_split_create(struct twill_comm *parent, int color, int key, bool queued,
                                  struct tw_split **out)
{
    struct tw_split *split = tw_alloc(sizeof(*split));

    if (split == NULL)
        return TWILL_ERR_NOMEM;
    split->refs = 1;
    split->size = parent->size;
    split->rank = parent->rank;
    split->parent = parent->key;
    memcpy(split->parent_name, parent->args.name, sizeof(split->parent_name));
    memcpy(split->secret, parent->secret, sizeof(split->secret));
    split->own.color = color;
    split->own.key = key;
    tw_random(split->own.nonce, sizeof(split->own.nonce));
    split->entries = tw_alloc((size_t)split->size * sizeof(*split->entries));
    enum twill_status status = split->entries != NULL ? TWILL_OK : TWILL_ERR_NOMEM;
    if (status == TWILL_OK && queued)
        status = tw_stream_create(&split->stream);
    if (status == TWILL_OK) {
        *out = split;
        return TWILL_OK;
    }
    tw_split_put(split);
    return status;
}

void tw_split_put(struct tw_split *split)
{
    if (split == NULL || __atomic_sub_fetch(&split->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (split->stream != NULL)
        (void)tw_stream_destroy(split->stream);
    if (split->roll != NULL) {
        tw_loop_lock(tw_proc_state()->loop);
        tw_roll_end(tw_proc_state(), split->roll);
        tw_loop_unlock(tw_proc_state()->loop);
        tw_roll_destroy(split->roll);
    }
    free(split->entries);
    sodium_memzero(split, sizeof(*split));
    free(split);
}

struct tw_call tw_split_call(struct twill_comm *parent, struct tw_split *split)
{
    return (struct tw_call){
        .info = {.coll = TW_COLL_ALL_GATHER,
                 .guise = TW_CALL_SPLIT,
                 .count = sizeof(split->own),
                 .type = TWILL_UINT8},
        .in = &split->own,
        .out = split->entries,
        .comm = parent,
        .stream = split->stream,
    };
}

/* ---- what the parent keeps ---------------------------------------------------------------------
 */

void tw_split_keep(struct twill_comm *parent, struct tw_split *split)
{
    tw_split_sweep(parent, false);
    (void)pthread_mutex_lock(&parent->lock);
    split->next = parent->splits;
    parent->splits = split;
    (void)pthread_mutex_unlock(&parent->lock);
}

void tw_split_sweep(struct twill_comm *parent, bool all)
{
    struct tw_split *over = NULL;

    (void)pthread_mutex_lock(&parent->lock);
    for (struct tw_split **at = &parent->splits; *at != NULL;) {
        struct tw_split *split = *at;
        if (!all && tw_stream_await(split->stream, NULL) == TWILL_INPROGRESS) {
            at = &split->next;
            continue;
        }
        *at = split->next;
        split->next = over;
        over = split;
    }
    (void)pthread_mutex_unlock(&parent->lock);
    while (over != NULL) {
        struct tw_split *split = over;
        over = split->next;
        tw_split_put(split);
    }
}

/* ---- who belongs together ----------------------------------------------------------------------
 */

/* Does a stand before b in the new communicator? */
static bool before(const struct tw_split_entry *entries, int a, int b)
{
    if (entries[a].key != entries[b].key)
        return entries[a].key < entries[b].key;
    return a < b;
}

struct place {
    int size, rank;
    int leader; /* the parent's number of rank 0 */
};

static struct place place_find(const struct tw_split *split)
{
    struct place place = {.size = 0, .rank = 0, .leader = split->rank};

    for (int r = 0; r < split->size; r++) {
        if (split->entries[r].color != split->own.color)
            continue;
        place.size++;
        place.rank += before(split->entries, r, split->rank);
        if (before(split->entries, r, place.leader))
            place.leader = r;
    }
    return place;
}

void tw_split_meet_derive(const struct tw_split *split, const struct tw_split_entry *leader,
                          struct tw_split_meet *meet)
{
    static const char domain[] = "twill split 1";
    static const char shrink[] = "twill shrink 1";
    uint8_t out[TW_KEY_BYTES + sizeof(uint64_t)];
    uint64_t name = 0;
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, split->secret, sizeof(split->secret), sizeof(out));
    if (leader == NULL) {
        (void)crypto_generichash_update(&state, (const uint8_t *)shrink, sizeof(shrink));
        (void)crypto_generichash_update(&state, split->without, sizeof(split->without));
    } else {
        (void)crypto_generichash_update(&state, (const uint8_t *)domain, sizeof(domain));
        (void)crypto_generichash_update(&state, (const uint8_t *)&leader->color,
                                        sizeof(leader->color));
        (void)crypto_generichash_update(&state, (const uint8_t *)leader->nonce,
                                        sizeof(leader->nonce));
    }
    (void)crypto_generichash_final(&state, out, sizeof(out));
    memcpy(meet->key, out, sizeof(meet->key));
    memcpy(&name, out + sizeof(meet->key), sizeof(name));
    (void)snprintf(meet->name, sizeof(meet->name), "twill-%016llx", (unsigned long long)name);
    sodium_memzero(out, sizeof(out));
    sodium_memzero(&state, sizeof(state));
}

/* ---- the step before an init -------------------------------------------------------------------
 */

struct twill_comm *tw_split_parent_find(uint64_t key)
{
    struct tw_ctl *ctl = tw_proc_state()->ctls;

    while (ctl != NULL && ctl->comm->key != key)
        ctl = ctl->next;
    return ctl != NULL ? ctl->comm : NULL;
}

void tw_split_parent_failed(struct twill_comm *parent, enum twill_status status, const char *text)
{
    char own[TW_ERROR_TEXT_BYTES];

    for (struct tw_ctl *ctl = tw_proc_state()->ctls; ctl != NULL; ctl = ctl->next) {
        bool shrinks = ctl->comm->args.shrinks;
        if (ctl->comm->parent != parent->key || ctl->comm->id_hash != 0)
            continue;
        /* a shrink is there for ranks that are lost, but not for those that call something else */
        if (shrinks && status != TWILL_ERR_MISMATCH)
            continue;
        (void)snprintf(own, sizeof(own), "%s: %.*s", shrinks ? "shrink" : "split",
                       TW_ERROR_TEXT_BYTES - 16, text);
        tw_ctl_fail(ctl, NULL, status, own);
    }
}

enum twill_status tw_split_child(struct twill_comm *parent, struct tw_split *split,
                                 struct tw_comm_args *args, struct twill_comm **out)
{
    struct twill_comm *child = NULL;

    args->size = parent->size;
    args->rank = parent->rank;
    args->derived = true;
    args->shrinks = split->roll != NULL;
    enum twill_status status = tw_comm_prepare(args, &child);
    if (status != TWILL_OK)
        return status;
    (void)__atomic_fetch_add(&split->refs, 1, __ATOMIC_RELAXED);
    child->origin = split;
    tw_loop_lock(parent->ctl->loop);
    child->parent = parent->key;
    if (split->roll == NULL)
        memcpy(child->nonce, split->own.nonce, sizeof(child->nonce));
    if (tw_comm_status(parent) != TWILL_OK && split->roll == NULL)
        tw_split_parent_failed(parent, tw_comm_status(parent), parent->failure);
    tw_loop_unlock(parent->ctl->loop);
    *out = child;
    return TWILL_OK;
}

/* Others read them while it connects, under the lock. */
static void place_set(struct twill_comm *comm, const struct place *place)
{
    tw_loop_lock(comm->ctl->loop);
    comm->size = comm->args.size = place->size;
    comm->rank = comm->args.rank = place->rank;
    tw_loop_unlock(comm->ctl->loop);
}

enum twill_status tw_split_ready(struct twill_comm *comm)
{
    const struct tw_split *split = comm->origin;
    char actual[TW_SOCK_NAME_BYTES];
    enum twill_status status = TWILL_OK;
    struct tw_split_meet meet;

    if (split->roll != NULL)
        return tw_shrink_ready(comm);
    if (split->stream != NULL)
        status = tw_stream_await(split->stream, comm);
    if (status != TWILL_OK)
        return status;
    const struct place place = place_find(split);
    place_set(comm, &place);
    status = tw_split_mates_set(comm, split, place.size);
    if (status != TWILL_OK)
        return status;
    tw_split_meet_derive(split, &split->entries[place.leader], &meet);
    comm->args.from_env = true; /* its rank 0 may open the meeting point later */
    comm->args.own_id = place.rank == 0;
    if (place.rank == 0) {
        status = tw_meeting_open(meet.name, meet.key, false, comm->proc->params->init_timeout_ns,
                                 actual);
        if (status != TWILL_OK)
            status = tw_fail(status, "the meeting point does not open: %s", tw_fail_text());
    }
    if (status == TWILL_OK)
        status = tw_id_fill(&comm->proc->host, meet.key, meet.name, &comm->args.id);
    sodium_memzero(&meet, sizeof(meet));
    return status;
}
