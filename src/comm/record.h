/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what stands on a rank's board. Never knows: control links, who reads it when. */
#ifndef TW_COMM_RECORD_H
#define TW_COMM_RECORD_H

#include "comm/comm.h"
#include "comm/control.h"

/*
 * A board is written by its owner alone and read by every peer, at any time and without a lock.
 * Every word is an atomic. A record is published like a seqlock's value: `seq` odd, fields, `seq`
 * even; the fields are stored with release and loaded with acquire, so that a reader who saw a new
 * field also sees the odd `seq` when it looks again. A reader believes nothing it reads: numbers
 * are compared and printed, never used as an index or an address.
 */
#define TW_RECORD_DEPTH 4 /* records kept of each sort */

struct tw_board_call {
    uint64_t seq;
    uint64_t number;
    /* coll | type << 8 | op << 16 | guise << 24 | root (FUSED: number of calls) << 32 */
    uint64_t what;
    uint64_t count;
    uint64_t algo_hash;
    uint64_t spread;
    uint64_t unused[2];
};

/* Calls of one sort: collectives, sends to one peer, receives from one peer. They begin and end in
 * order, with numbers from 1 on. */
struct tw_board_lane {
    uint64_t begun, ended; /* numbers of the newest */
    uint64_t unused[6];
    struct tw_board_call calls[TW_RECORD_DEPTH];
};

struct tw_board {
    uint64_t life; /* enum tw_record_life */
    uint64_t unused[7];
    struct tw_board_lane colls;
    struct tw_board_lane pairs[]; /* [2 * size]: receives from peer p, sends to peer p */
    /* and behind them uint64_t [TW_RECORD_DEPTH][2 * size]: for each of colls.calls that is a
     * v-variant, the elements that go to peer p and come from it; under that record's seq */
};

/* The owner's counters live off the board, where no peer can write. */
struct tw_record {
    uint64_t begun, ended;
    uint64_t (*pairs)[2]; /* owned, [2 * size]: begun, ended */
    uint64_t *headers;    /* owned, [2 * size]: of tw_record_headers */
};

/* A call as read from a board. */
struct tw_record_call {
    uint64_t number, what, count, algo_hash, spread;
    uint64_t to, from; /* of a v-variant, once a peer is named: elements to it, from it; else 0 */
};

static inline size_t tw_record_pair(int peer, bool is_send)
{
    return 2 * (size_t)peer + (is_send ? 1 : 0);
}

/** rank's board, or NULL while there is none. */
const struct tw_board *tw_record_board(const struct twill_comm *comm, int rank);
static inline uint64_t tw_record_word(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
/** Write the record of a call that begins. Numbers rise by one. */
void tw_record_publish(struct tw_board_lane *lane, const struct tw_record_call *call);
/** The record of call `number`. @return false: it is not (any more) there */
bool tw_record_read(const struct tw_board_lane *lane, uint64_t number, struct tw_record_call *call);
/** The record of the collective `number`, with what it says of one rank. @return false: as above */
bool tw_record_read_coll(const struct tw_board *board, int size, uint64_t number, int rank,
                         struct tw_record_call *call);
/** Is it a v-variant, so that it says something of each rank? */
bool tw_record_has_pairs(const struct tw_record_call *call);
/** What a v-variant of `rank` says of `peer`: call->to, call->from. */
void tw_record_toward(const struct tw_call_info *info, int rank, int peer,
                      struct tw_record_call *call);

/** What of info all ranks must agree on; fields without meaning for the collective are left out. */
void tw_record_pack(const struct tw_call_info *info, uint64_t number, struct tw_record_call *call);
/** The header of a collective's messages. */
uint64_t tw_record_hash(uint64_t id_hash, const struct tw_record_call *call);
/** The header of what a rank sends to another one in a collective, of which call->to is set. */
uint64_t tw_record_coll_hash(uint64_t id_hash, int from, int to, const struct tw_record_call *call);
/** The header of what goes from one rank to another. */
uint64_t tw_record_pair_hash(uint64_t id_hash, int from, int to, const struct tw_record_call *call);

/* Of one sentence. */
#define TW_RECORD_TEXT_BYTES 192
/** "all_reduce #7 count 100 float32 sum" */
void tw_record_text(const struct tw_record_call *call, char text[TW_RECORD_TEXT_BYTES]);
/** The same; of a v-variant also what it says of a rank, "with 3 elements to rank 1 and 0 from it"
 */
void tw_record_toward_text(const struct tw_record_call *call, int peer,
                           char text[TW_RECORD_TEXT_BYTES]);
/** "send #3 to rank 1 count 10 float32" */
void tw_record_pair_text(const struct tw_record_call *call, int peer, bool is_send,
                         char text[TW_RECORD_TEXT_BYTES]);

#endif
