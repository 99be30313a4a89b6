/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: writing, reading and hashing of records. Never knows: what follows from them. */
#include "config.h"

#include <stdlib.h>

#include "base/mem.h"
#include "comm/record.h"

size_t tw_record_board_bytes(int size)
{
    return sizeof(struct tw_board) + 2 * (size_t)size * sizeof(struct tw_board_lane) +
           2 * (size_t)size * TW_RECORD_DEPTH * sizeof(uint64_t);
}

/* What the record of collective `number` says of each rank. */
static uint64_t *board_counts(const struct tw_board *board, int size, uint64_t number)
{
    const struct tw_board_lane *end = &board->pairs[2 * (size_t)size];

    return (uint64_t *)(uintptr_t)end + number % TW_RECORD_DEPTH * 2 * (size_t)size;
}

enum twill_status tw_record_create(struct twill_comm *comm)
{
    struct tw_record *record = tw_alloc(sizeof(*record));

    if (record == NULL)
        return TWILL_ERR_NOMEM;
    record->pairs = tw_alloc(2 * (size_t)comm->size * sizeof(*record->pairs));
    record->headers = tw_alloc(2 * (size_t)comm->size * sizeof(*record->headers));
    if (record->pairs == NULL || record->headers == NULL) {
        free(record->pairs);
        free(record->headers);
        free(record);
        return TWILL_ERR_NOMEM;
    }
    comm->record = record;
    return TWILL_OK;
}

void tw_record_destroy(struct twill_comm *comm)
{
    if (comm->record == NULL)
        return;
    free(comm->record->pairs);
    free(comm->record->headers);
    free(comm->record);
    comm->record = NULL;
}

static struct tw_board *own_board(const struct twill_comm *comm)
{
    return comm->chan != NULL ? tw_chan_board(comm->chan) : NULL;
}

const struct tw_board *tw_record_board(const struct twill_comm *comm, int rank)
{
    if (comm->chan == NULL)
        return NULL;
    return rank == comm->rank ? own_board(comm) : tw_chan_peer_board(comm->chan, rank);
}

void tw_record_life(struct twill_comm *comm, enum tw_record_life life)
{
    struct tw_board *board = own_board(comm);

    if (board != NULL)
        __atomic_store_n(&board->life, (uint64_t)life, __ATOMIC_RELEASE);
}

void tw_record_life_change(struct twill_comm *comm, enum tw_record_life from,
                           enum tw_record_life to)
{
    struct tw_board *board = own_board(comm);
    uint64_t expected = from;

    if (board != NULL)
        (void)__atomic_compare_exchange_n(&board->life, &expected, (uint64_t)to, false,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

bool tw_record_failed(const struct twill_comm *comm, int rank)
{
    const struct tw_board *board;

    if (__atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) == TW_COMM_INIT)
        return false;
    board = tw_record_board(comm, rank);
    return board != NULL && tw_record_word(&board->life) == TW_LIFE_FAILED;
}

/* ---- hash --------------------------------------------------------------------------------------
 * Two halves of a 128-bit product folded together: a few cycles a step, and every bit of both
 * factors reaches every bit of the result. Not secret: ranks trust each other.
 */

#define K0 0x9e3779b97f4a7c15ull
#define K1 0xbf58476d1ce4e5b9ull
#define K2 0x94d049bb133111ebull
#define K3 0xd6e8feb86659fd93ull

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)(a ^ K0) * (b ^ K1);

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t tw_record_hash(uint64_t id_hash, const struct tw_record_call *call)
{
    return fold(fold(id_hash ^ K2, call->number) ^ call->what,
                fold(call->count, call->algo_hash ^ K3) ^ call->spread);
}

uint64_t tw_record_coll_hash(uint64_t id_hash, int from, int to, const struct tw_record_call *call)
{
    const struct tw_coll_rule *rule = tw_coll_rule((enum tw_coll)(call->what & 0xff));
    struct tw_record_call pair = *call;

    if (rule == NULL || !rule->some)
        return tw_record_hash(id_hash, call);
    pair.count = call->to;
    return tw_record_pair_hash(id_hash, from, to, &pair);
}

uint64_t tw_record_spread(const size_t *counts, int size)
{
    uint64_t hash = K1;

    for (int r = 0; r < size; r++)
        hash = fold(hash, counts[r] ^ K2);
    return hash | 1;
}

uint64_t tw_record_pair_hash(uint64_t id_hash, int from, int to, const struct tw_record_call *call)
{
    uint64_t pair = (uint64_t)(uint32_t)from << 32 | (uint32_t)to;

    return fold(tw_record_hash(id_hash, call), pair ^ K3);
}

/* ---- writing: on the path of every call --------------------------------------------------------
 */

static bool has_root(enum tw_coll coll)
{
    const struct tw_coll_rule *rule = tw_coll_rule(coll);
    return rule != NULL && rule->rooted;
}

static bool has_op(enum tw_coll coll)
{
    const struct tw_coll_rule *rule = tw_coll_rule(coll);
    return rule != NULL && rule->reduces;
}

/* Counts of its own for each rank. */
static bool has_pairs(enum tw_coll coll)
{
    const struct tw_coll_rule *rule = tw_coll_rule(coll);
    return rule != NULL &&
           (rule->some || rule->in.kind == TW_PART_PER_RANK || rule->out.kind == TW_PART_PER_RANK);
}

bool tw_record_has_pairs(const struct tw_record_call *call)
{
    return has_pairs((enum tw_coll)(call->what & 0xff));
}

void tw_record_pack(const struct tw_call_info *info, uint64_t number, struct tw_record_call *call)
{
    bool barrier = info->coll == TW_COLL_BARRIER;

    call->number = number;
    call->what = (uint64_t)(uint8_t)info->coll | (uint64_t)(uint8_t)info->guise << 24;
    if (!barrier)
        call->what |= (uint64_t)(uint8_t)info->type << 8;
    if (has_op(info->coll))
        call->what |= (uint64_t)(uint8_t)info->op << 16;
    if (has_root(info->coll))
        call->what |= (uint64_t)(uint32_t)info->root << 32;
    if (info->guise == TW_CALL_FUSED)
        call->what |= (uint64_t)info->fused << 32;
    call->count = barrier || has_pairs(info->coll) ? 0 : info->count;
    call->algo_hash = info->algo_hash;
    call->spread = info->spread;
    call->to = call->from = 0;
}

void tw_record_toward(const struct tw_call_info *info, int rank, int peer,
                      struct tw_record_call *call)
{
    const struct tw_call_counts *counts = &info->counts;
    bool root = rank == info->root;
    bool meets = root || peer == info->root; /* of a rooted one */

    switch (info->coll) {
    case TW_COLL_ALL_GATHER_V:
        call->to = counts->out[rank];
        call->from = counts->out[peer];
        return;
    case TW_COLL_REDUCE_SCATTER_V:
        call->to = counts->in[peer];
        call->from = counts->in[rank];
        return;
    case TW_COLL_ALL_TO_ALL_V:
        call->to = counts->in[peer];
        call->from = counts->out[peer];
        return;
    case TW_COLL_GATHER_V:
        call->to = root || !meets ? 0 : info->count;
        call->from = root ? counts->out[peer] : 0;
        return;
    case TW_COLL_SCATTER_V:
        call->to = root ? counts->in[peer] : 0;
        call->from = root || !meets ? 0 : info->count;
        return;
    default:
        return;
    }
}

/* The record may not be believed until close. */
static void slot_open(struct tw_board_lane *lane, const struct tw_record_call *call)
{
    struct tw_board_call *slot = &lane->calls[call->number % TW_RECORD_DEPTH];

    __atomic_store_n(&slot->seq, 2 * call->number - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->number, call->number, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->what, call->what, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->count, call->count, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->algo_hash, call->algo_hash, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->spread, call->spread, __ATOMIC_RELEASE);
}

static void slot_close(struct tw_board_lane *lane, uint64_t number)
{
    __atomic_store_n(&lane->calls[number % TW_RECORD_DEPTH].seq, 2 * number, __ATOMIC_RELEASE);
    __atomic_store_n(&lane->begun, number, __ATOMIC_RELEASE);
}

void tw_record_publish(struct tw_board_lane *lane, const struct tw_record_call *call)
{
    slot_open(lane, call);
    slot_close(lane, call->number);
}

/* A v-variant: what it says of each rank, and the headers that follow from it. */
static void publish_counts(struct twill_comm *comm, const struct tw_call_info *info,
                           struct tw_record_call *call)
{
    struct tw_board *board = own_board(comm);
    uint64_t *counts = board_counts(board, comm->size, call->number);
    uint64_t *headers = comm->record->headers;

    slot_open(&board->colls, call);
    for (int r = 0; r < comm->size; r++) {
        tw_record_toward(info, comm->rank, r, call);
        __atomic_store_n(&counts[2 * (size_t)r], call->to, __ATOMIC_RELEASE);
        __atomic_store_n(&counts[2 * (size_t)r + 1], call->from, __ATOMIC_RELEASE);
        headers[2 * (size_t)r] = tw_record_coll_hash(comm->id_hash, comm->rank, r, call);
        call->to = call->from; /* what the rank at the other end sends */
        headers[2 * (size_t)r + 1] = tw_record_coll_hash(comm->id_hash, r, comm->rank, call);
    }
    slot_close(&board->colls, call->number);
}

const uint64_t *tw_record_headers(const struct twill_comm *comm, const struct tw_call_info *info)
{
    return tw_coll_rule(info->coll)->some ? comm->record->headers : NULL;
}

uint64_t tw_record_begin(struct twill_comm *comm, const struct tw_call_info *info)
{
    struct tw_board *board = own_board(comm);
    struct tw_record_call call;

    if (info->coll != TW_COLL_P2P) {
        tw_record_pack(info, ++comm->record->begun, &call);
        if (has_pairs(info->coll))
            publish_counts(comm, info, &call);
        else
            tw_record_publish(&board->colls, &call);
        return tw_record_hash(comm->id_hash, &call);
    }
    size_t pair = tw_record_pair(info->peer, info->is_send);
    tw_record_pack(info, ++comm->record->pairs[pair][0], &call);
    tw_record_publish(&board->pairs[pair], &call);
    return tw_record_pair_hash(comm->id_hash, info->is_send ? comm->rank : info->peer,
                               info->is_send ? info->peer : comm->rank, &call);
}

void tw_record_end(struct twill_comm *comm, const struct tw_call_info *info)
{
    struct tw_board *board = own_board(comm);

    if (info->coll != TW_COLL_P2P) {
        __atomic_store_n(&board->colls.ended, ++comm->record->ended, __ATOMIC_RELEASE);
        return;
    }
    size_t pair = tw_record_pair(info->peer, info->is_send);
    __atomic_store_n(&board->pairs[pair].ended, ++comm->record->pairs[pair][1], __ATOMIC_RELEASE);
}

uint64_t tw_record_number(const struct twill_comm *comm, const struct tw_call_info *info)
{
    if (info->coll != TW_COLL_P2P)
        return comm->record->begun;
    return comm->record->pairs[tw_record_pair(info->peer, info->is_send)][0];
}

/* ---- reading -----------------------------------------------------------------------------------
 */

bool tw_record_read(const struct tw_board_lane *lane, uint64_t number, struct tw_record_call *call)
{
    const struct tw_board_call *slot = &lane->calls[number % TW_RECORD_DEPTH];

    if (number == 0 || tw_record_word(&slot->seq) != 2 * number)
        return false;
    call->number = tw_record_word(&slot->number);
    call->what = tw_record_word(&slot->what);
    call->count = tw_record_word(&slot->count);
    call->algo_hash = tw_record_word(&slot->algo_hash);
    call->spread = tw_record_word(&slot->spread);
    call->to = call->from = 0;
    return __atomic_load_n(&slot->seq, __ATOMIC_RELAXED) == 2 * number && call->number == number;
}

bool tw_record_read_coll(const struct tw_board *board, int size, uint64_t number, int rank,
                         struct tw_record_call *call)
{
    const struct tw_board_call *slot = &board->colls.calls[number % TW_RECORD_DEPTH];
    const uint64_t *counts = board_counts(board, size, number);

    if (!tw_record_read(&board->colls, number, call))
        return false;
    if (!tw_record_has_pairs(call))
        return true;
    call->to = tw_record_word(&counts[2 * (size_t)rank]);
    call->from = tw_record_word(&counts[2 * (size_t)rank + 1]);
    return __atomic_load_n(&slot->seq, __ATOMIC_RELAXED) == 2 * number;
}
