/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where the ranks of a new communicator meet, and what they say there.
 * Never knows: what they do afterwards. */
#ifndef TW_COMM_MEETING_H
#define TW_COMM_MEETING_H

#include "comm/proc.h"

/* ---- what a unique id holds (id.c) --------------------------------------------------------------
 */

#define TW_ID_MAGIC 0x64692d6c6c697774ull /* "twill-id" */
#define TW_ID_VERSION 1u
#define TW_ID_HOST_BYTES 24
#define TW_ID_MEET_BYTES 24

struct tw_id {
    uint64_t magic;
    uint32_t version;
    uint32_t unused;
    uint8_t nonce[16];
    uint8_t key[TW_KEY_BYTES];
    uint8_t host[16];                 /* tw_host.id */
    char host_name[TW_ID_HOST_BYTES]; /* for people; cut to fit */
    char meet[TW_ID_MEET_BYTES];      /* abstract Unix name */
};

/** An id for a meeting point that is, or will be, open on this host. */
enum twill_status tw_id_fill(const struct tw_host *host, const uint8_t key[TW_KEY_BYTES],
                             const char *meet, twill_unique_id *id);

/* ---- what is said there (the same build on both ends, after a look at the head) -----------------
 */

#define TW_PROTOCOL 1u
#define TW_HELLO_MAGIC 0x68747769u
#define TW_OPTIONS_BYTES 1536

/* Stays as it is in every version. */
struct tw_hello_head {
    uint32_t magic, protocol;
    int32_t version; /* TWILL_VERSION */
    int32_t rank;
};

struct tw_hello {
    struct tw_hello_head head;
    int32_t size, pid;
    struct tw_proc_id proc;
    char host_name[TW_HOST_NAME_BYTES];
    char door[TW_SOCK_NAME_BYTES];  /* where the children in the tree connect */
    char options[TW_OPTIONS_BYTES]; /* lines "NAME=value": the same on all ranks */
};

/** Everything that ranks must agree on, with its value here. */
void tw_hello_options(const struct tw_comm_args *args, const struct tw_params *params,
                      char options[TW_OPTIONS_BYTES]);
/** Take what a caller said. hello is filled as far as it goes; text: the sentence of an error. */
enum twill_status tw_hello_parse(const uint8_t *data, uint32_t bytes, struct tw_hello *hello,
                                 char text[TW_ERROR_TEXT_BYTES]);
/** Can both be ranks of one communicator? The sentence names both and what differs. */
enum twill_status tw_hello_fits(const struct tw_hello *first, const struct tw_hello *hello,
                                char text[TW_ERROR_TEXT_BYTES]);

struct tw_welcome {
    uint8_t key[TW_KEY_BYTES]; /* of everything that follows; differs from the id's when keyless */
    uint8_t nonce[16];         /* names the communicator */
    char parent_door[TW_SOCK_NAME_BYTES]; /* "" for rank 0 */
    int32_t ranks_here, ranks_host;
    int32_t meet_rank;  /* least rank in the meeting point's process; -1: none */
    int32_t rank, size; /* the receiver's, in the new communicator */
    int32_t unused;
};

/** Context of a proof at the meeting point, and on a link of the tree. */
#define TW_MEET_CONTEXT "twill meeting"
void tw_tree_context(const uint8_t nonce[16], char context[64]);

/**
 * Open a meeting point in this process: it lives until the ranks have met, or shortly after their
 * meeting has failed, so that those who come late hear why. Holds a reference to the process's
 * state as long as ranks elsewhere may need it.
 *
 * @param name     abstract Unix name to listen at; "": any
 * @param keyless  first contact without a key: only this user's processes; the ranks get a fresh
 * key
 * @param idle_ns  how long it waits for the first rank; 0: for ever
 * @param actual   out: the name
 */
enum twill_status tw_meeting_open(const char *name, const uint8_t key[TW_KEY_BYTES], bool keyless,
                                  uint64_t idle_ns, char actual[TW_SOCK_NAME_BYTES]);

struct tw_roll;
/**
 * The same for the living ranks of a communicator: they come with their rank and size there, all
 * have met once those that did not come are lost, and the welcome says who they are from then on.
 * It stays for nobody once it has failed. Ranks that come after the others have met are turned away
 * without a word.
 *
 * @param roll  of that communicator, called; a copy is kept
 * @return TWILL_ERR_AGAIN  somebody else listens there; otherwise as above
 */
enum twill_status tw_meeting_open_roll(const char *name, const uint8_t key[TW_KEY_BYTES],
                                       uint64_t idle_ns, const struct tw_roll *roll,
                                       char actual[TW_SOCK_NAME_BYTES]);

struct tw_ctl;
/** The rank goes to the meeting point of that name: where it is in this process and fails, or has
 * failed, before the rank has a link to it, the rank fails with it. "": to none any more. The
 * loop's lock is held. */
void tw_meeting_expect(struct tw_ctl *ctl, const char *name);
/** The id will not be used, for the reason given: whoever still comes to its meeting point hears
 * it. Nothing happens when that is in another process, or when the ranks have met. The caller holds
 * a reference to the process's state. */
void tw_meeting_give_up(const twill_unique_id *id, enum twill_status status, const char *text);

/* The name to which a rank binds the socket with which it comes to the meeting point: it says which
 * rank is lost should it end before it has proven the key. */
void tw_meet_caller_name(int rank, char name[TW_SOCK_NAME_BYTES]);
/** @return -1: not such a name */
int tw_meet_caller_rank(const char *name);

/** Close all that are left; waits for those who are being heard, but for no peer. */
void tw_meetings_close(struct tw_proc_state *state);

#endif
