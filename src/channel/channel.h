/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a rank's links to its peers by index: FIFOs, boards, scratch, signals; which transport
 * serves which. Never knows: plans, datatypes, collectives, how blobs travel. */
#ifndef TW_CHANNEL_CHANNEL_H
#define TW_CHANNEL_CHANNEL_H

#include "transport/transport.h"

/*
 * A chan belongs to one rank of one communicator. Per peer (itself left out) it has one FIFO each
 * way; it has a board (a small area that only the owner writes and every peer reads: the records of
 * current calls), and, when asked for, scratch that peers may write and signal words that peers may
 * raise.
 *
 * Creation is a collective in three steps, so that the caller can exchange blobs as it likes:
 *   1. tw_chan_create   connects endpoints, allocates receive ends
 *   2. tw_chan_export   blob for peer p, for each p; the caller brings each to its peer
 *   3. tw_chan_import   with the blob that p made for this rank
 */
struct tw_chan;

struct tw_chan_peer {
    struct tw_proc_id proc;
    struct tw_blob address; /* of the peer's listener */
};

struct tw_chan_config {
    int rank, size;
    const struct tw_chan_peer *peers; /* [size], borrowed during create */
    const uint8_t *key;
    size_t fifo_bytes; /* of each FIFO; the same on all ranks */
    size_t board_bytes;
    size_t scratch_bytes; /* peers may write it; 0: none */
    uint32_t signals;     /* words that peers may raise; 0: none */
    struct tw_sock_wait wait;
};

/* The process's nets, opened once for all chans. */
struct tw_nets {
    struct tw_net *self, *shm; /* owned by whoever opened them; shm may be NULL (TWILL_SHM=0) */
};

struct tw_chan_blob {
    struct tw_blob fifo, board, scratch, signals;
};

/* What a new communicator asks of this process's staging. */
struct tw_chan_need {
    int size, ranks_here; /* ranks in all, of this process */
    size_t fixed_bytes;   /* of each rank here: board and signals */
    size_t scratch_most;  /* of each rank here; 0: no scratch */
    size_t scratch_least; /* less is of little use; 0: 4 KiB */
};
/* What each of its ranks gets; all 0: there is no room. */
struct tw_chan_share {
    size_t fifo_bytes, scratch_bytes;
};
/**
 * The largest power of two of FIFO bytes from 256 KiB down to 1 KiB, and as much scratch (from
 * scratch_most down to scratch_least, if any is wanted), for which all that this process needs fits
 * into a sixteenth of the staging still free and leaves what 48 communicators need with 1 KiB and
 * 4 KiB of scratch; these if they fit at all. Ranks take the least over all ranks.
 */
struct tw_chan_share tw_chan_share_find(const struct tw_nets *nets,
                                        const struct tw_chan_need *need);

enum twill_status tw_chan_create(const struct tw_nets *nets, const struct tw_chan_config *config,
                                 struct tw_chan **chan);
enum twill_status tw_chan_export(struct tw_chan *chan, int peer, struct tw_chan_blob *blob);
enum twill_status tw_chan_import(struct tw_chan *chan, int peer, const struct tw_chan_blob *blob);
void tw_chan_destroy(struct tw_chan *chan); /* never waits */

/** TWILL_ERR_PEER when peer's process is gone. */
enum twill_status tw_chan_peer_status(const struct tw_chan *chan, int peer);
bool tw_chan_same_process(const struct tw_chan *chan, int peer);
const char *tw_chan_transport(const struct tw_chan *chan, int peer); /* "self", "shm" */
/** Of this rank's receive ends and areas, which lie in this process's staging. */
uint64_t tw_chan_staging_bytes(const struct tw_chan *chan);
size_t tw_chan_fifo_size(const struct tw_chan *chan);

#define TW_CHAN_NETS 2
/* A descriptor that every peer may take who is told the token. Caller's storage. */
struct tw_chan_offer {
    uint64_t token[2];
    int fd;                            /* owned; -1: none */
    struct tw_offer *on[TW_CHAN_NETS]; /* owned */
};
/** Takes fd over, also on errors. */
enum twill_status tw_chan_offer(struct tw_chan *chan, int fd, struct tw_chan_offer *offer);
void tw_chan_withdraw(struct tw_chan_offer *offer);
/** What another rank offers. fd: out, the caller's. Blocks, 10 s at most. ERR_PEER: it has
 * withdrawn it, or is gone. */
enum twill_status tw_chan_take(struct tw_chan *chan, int peer, const uint64_t token[2], int *fd);

void *tw_chan_board(struct tw_chan *chan); /* own, writable, zeroed at creation */
const void *tw_chan_peer_board(const struct tw_chan *chan, int peer);
void *tw_chan_scratch(struct tw_chan *chan);
void *tw_chan_peer_scratch(const struct tw_chan *chan, int peer); /* NULL when not addressable */
uint64_t *tw_chan_signals(struct tw_chan *chan);
uint64_t *tw_chan_peer_signals(const struct tw_chan *chan, int peer);
/* Bytes of scratch and number of signal words, the same on all ranks: users stay inside. */
size_t tw_chan_scratch_bytes(const struct tw_chan *chan);
uint32_t tw_chan_signal_count(const struct tw_chan *chan);

/* Memory beside the chan's own: a piece of each rank's, which every peer maps. It goes before the
 * chan does. */
struct tw_chan_memory;
/** Zeroed, on whole pages. @param blob  out: for the peers of other processes; empty where there is
 * none */
enum twill_status tw_chan_memory_create(struct tw_chan *chan, size_t bytes,
                                        struct tw_chan_memory **memory, struct tw_blob *blob);
void *tw_chan_memory_own(const struct tw_chan_memory *memory);
/** The piece of a peer of another process, of `bytes` bytes; once for each. @param at  out: until
 * destroy, on a page */
enum twill_status tw_chan_memory_map(struct tw_chan_memory *memory, int peer,
                                     const struct tw_blob *blob, size_t bytes, void **at);
/** NULL: nothing. What peers have mapped stays theirs. */
void tw_chan_memory_destroy(struct tw_chan_memory *memory);

/* FIFO ends by peer index; see tw_fifo_ops for the contract of each. */
enum twill_status tw_chan_layout_send(struct tw_chan *chan, int peer, uint32_t subs,
                                      uint32_t depth);
enum twill_status tw_chan_layout_recv(struct tw_chan *chan, int peer, uint32_t subs,
                                      uint32_t depth);
enum twill_status tw_chan_reserve(struct tw_chan *chan, int peer, uint32_t sub, void **data);
void tw_chan_commit(struct tw_chan *chan, int peer, uint32_t sub, uint32_t bytes, uint64_t header);
enum twill_status tw_chan_peek(struct tw_chan *chan, int peer, uint32_t sub, struct tw_msg *msg);
void tw_chan_release(struct tw_chan *chan, int peer, uint32_t sub);

#endif
