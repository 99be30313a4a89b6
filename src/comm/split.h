/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a communicator comes out of another: what the ranks tell each other first.
 * Never knows: how the new one's ranks connect. */
#ifndef TW_COMM_SPLIT_H
#define TW_COMM_SPLIT_H

#include "comm/meeting.h"
#include "comm/roll.h"

/* What each rank tells all of the parent, in one all_gather of it. Nothing here is secret. */
struct tw_split_entry {
    int32_t color; /* negative: it takes no part in any of the new ones */
    int32_t key;
    uint64_t nonce[2]; /* fresh: the leader's names the new communicator */
};

/*
 * One rank's split or shrink, from the call until its new communicator is connected. It outlives
 * the parent and the new communicator where one of them goes early: a queued all_gather of the
 * parent writes into it.
 */
struct tw_split {
    uint32_t refs;         /* atomic */
    struct tw_split *next; /* of those that the parent keeps */
    int size, rank;        /* the parent's */
    uint64_t parent;       /* twill_comm.key */
    char parent_name[TW_COMM_NAME_BYTES];
    uint8_t secret[TW_KEY_BYTES]; /* of the parent's ranks */
    struct tw_split_entry own;
    struct tw_split_entry *entries; /* owned, [size] */
    struct tw_stream *stream;       /* owned; NULL: the all_gather blocks */
    struct tw_roll *roll;           /* owned; of a shrink, which has no all_gather. NULL: a split */
    uint8_t without[TW_KEY_BYTES];  /* of a shrink: hash of the ranks it leaves out; 0: none */
};

/* Where new ranks meet, and by which key: known to the parent's ranks and to nobody else. */
struct tw_split_meet {
    uint8_t key[TW_KEY_BYTES];
    char name[TW_ID_MEET_BYTES];
};
/** @param leader  what its rank 0 said; NULL: of a shrink */
void tw_split_meet_derive(const struct tw_split *split, const struct tw_split_entry *leader,
                          struct tw_split_meet *meet);
/** The loop's lock is held. NULL: its user has destroyed it. */
struct twill_comm *tw_split_parent_find(uint64_t key);

/** A rank's part in a split of parent. @param queued  its all_gather goes through a stream of its
 * own */
enum twill_status tw_split_create(struct twill_comm *parent, int color, int key, bool queued,
                                  struct tw_split **split);
/** A new communicator of this rank, prepared: not connected, with the parent's size and rank until
 * tw_split_ready. It holds a reference of split. */
enum twill_status tw_split_child(struct twill_comm *parent, struct tw_split *split,
                                 struct tw_comm_args *args, struct twill_comm **child);
/** NULL accepted. The all_gather is over, or was never submitted. */
void tw_split_put(struct tw_split *split);

/** The parent's all_gather of the split. */
struct tw_call tw_split_call(struct twill_comm *parent, struct tw_split *split);
/** The all_gather was submitted: parent keeps split (a reference of the caller's) until it is over,
 * whoever else lets go of it. */
void tw_split_keep(struct twill_comm *parent, struct tw_split *split);
/** Let go of what parent keeps and is over; `all`: parent has nothing queued any more. */
void tw_split_sweep(struct twill_comm *parent, bool all);

/**
 * First step of a split's new communicator (comm->origin is set): waits for the all_gather, finds
 * out who belongs to it, and lets its rank 0 open the meeting point. Fills size, rank and id.
 * @return otherwise the tw_fail'ed reason
 */
enum twill_status tw_split_ready(struct twill_comm *comm);

/** parent has failed: so have those of its new communicators whose ranks have not met. Under the
 * loop's lock. */
void tw_split_parent_failed(struct twill_comm *parent, enum twill_status status, const char *text);

/* ---- ranks that give up (split_gone.c) ---------------------------------------------------------
 */

/** comm has failed here, not by another rank: the others of its split hear of it over the parent,
 * if it comes of a split and has not met them yet. Under the loop's lock. */
void tw_split_gone_tell(struct twill_comm *comm, enum twill_status status, const char *text);
struct tw_link;
/** A TW_FRAME_GONE has come over link, of a parent's tree. Under the loop's lock. */
void tw_split_gone_arrived(struct tw_ctl *ctl, const struct tw_link *link, const uint8_t *payload);
/** The table is complete: comm waits for the ranks of its color, nmates of them. @return otherwise
 * what one of them that had given up before has said */
enum twill_status tw_split_mates_set(struct twill_comm *comm, const struct tw_split *split,
                                     int nmates);

/* ---- shrink (shrink.c) -------------------------------------------------------------------------
 */

/** A rank's part in a shrink of parent, which was ready once; from now on lost ranks are noted.
 * @param without  [count], ranks of parent that are left out though they live; not this one */
enum twill_status tw_shrink_create(struct twill_comm *parent, const int *without, int count,
                                   struct tw_split **split);
/** First step of a shrink's new communicator: fills the id. */
enum twill_status tw_shrink_ready(struct twill_comm *comm);
/** Before each attempt to come to the meeting point: open it, unless somebody else has. */
enum twill_status tw_shrink_host(struct twill_comm *comm);
/** All have come, or there will be no new communicator. */
void tw_shrink_over(struct twill_comm *comm);

#endif
