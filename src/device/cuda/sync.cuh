/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a thread waits for a peer: records, counters, failures, what the host hears.
 * Never knows: element types, what is moved. */
#ifndef TW_DEVICE_CUDA_SYNC_CUH
#define TW_DEVICE_CUDA_SYNC_CUH

#include <cstddef>
#include <cstdint>

#include "device/cuda/place.cuh"
#include "device/cuda/ptx.cuh"
#include "device/cuda/wire.h"

/* The pairs that tw_store_pairs leaves, if they are of the epoch. */
static __device__ inline bool tw_load_pairs(const void *at, uint32_t epoch, uint32_t *first,
                                            uint32_t *second)
{
    uint32_t first_epoch, second_epoch;

    tw_look_pairs(at, first, &first_epoch, second, &second_epoch);
    return first_epoch == epoch && second_epoch == epoch;
}

#define TW_WAIT_NS 1000000ull /* a wait that the host is told of */

struct tw_wait {
    uint32_t looks;
    uint64_t since_ns;
    bool is_long; /* and counted as such */
    bool tells;   /* the host */
};

static __device__ inline bool tw_failed(const struct tw_block *me)
{
    return tw_load(&me->call->state->failed) != 0;
}

/* Bytes that the peer has to say it gives. */
static __device__ inline uint64_t tw_expected(const struct tw_block *me, int peer)
{
    return me->pairs != nullptr ? me->pairs[peer].out_bytes : me->call->bytes;
}

/* Both records: what was expected of the peer, and what it said. */
static __device__ inline void tw_fail_words(const struct tw_block *me, int peer,
                                            const uint32_t *words)
{
    struct tw_gk_host *host = me->call->host;
    const uint64_t bytes = tw_expected(me, peer);

    for (int i = 0; i < TW_GK_WORDS; i++) {
        tw_store(&host->mine[i], me->call->words[i]);
        tw_store(&host->last[i], me->call->state->words[(me->epoch - 1) & 1][i]);
        tw_store(&host->theirs[i], words[i]);
    }
    tw_store(&host->mine[TW_GK_WORD_COUNT], (uint32_t)bytes);
    tw_store(&host->mine[TW_GK_WORD_COUNT + 1], (uint32_t)(bytes >> 32));
    if (me->pairs != nullptr) {
        tw_store(&host->mine[TW_GK_WORD_BACK], (uint32_t)me->pairs[peer].in_bytes);
        tw_store(&host->mine[TW_GK_WORD_BACK + 1], (uint32_t)(me->pairs[peer].in_bytes >> 32));
    }
}

/* The first of the rank's failures is told to the host. words: the peer's record; NULL: none */
static __device__ inline void tw_fail_here(const struct tw_block *me, int peer, uint32_t trouble,
                                           const uint32_t *words)
{
    struct tw_gk_host *host = me->call->host;

    if (atomicExch(&me->call->state->failed, 1) != 0)
        return;
    if (words != nullptr)
        tw_fail_words(me, peer, words);
    tw_store(&host->trouble_peer, (uint32_t)peer);
    tw_store(&host->trouble_epoch, me->epoch);
    tw_store_release(&host->trouble, trouble);
}

/* Both ranks mean the same call: all words but bytes and address. */
static __device__ inline bool tw_same_kind(const uint32_t *mine, const uint32_t *theirs)
{
    return mine[TW_GK_WORD_CALL] == theirs[TW_GK_WORD_CALL] &&
           mine[TW_GK_WORD_PATH] == theirs[TW_GK_WORD_PATH];
}

static __device__ inline bool tw_is_number(const uint32_t *words, uint64_t bytes)
{
    return words[0] == (uint32_t)bytes && words[1] == (uint32_t)(bytes >> 32);
}

/* And peer gives as many bytes as are expected of it, and expects as many as it is given. */
static __device__ inline bool tw_same_call(const struct tw_block *me, int peer,
                                           const uint32_t *theirs)
{
    return tw_same_kind(me->call->words, theirs) &&
           tw_is_number(&theirs[TW_GK_WORD_COUNT], tw_expected(me, peer)) &&
           (me->pairs == nullptr ||
            tw_is_number(&theirs[TW_GK_WORD_BACK], me->pairs[peer].in_bytes));
}

/* peer's record of this epoch, if it is there. */
static __device__ inline bool tw_record_read(const struct tw_block *me, int peer, uint32_t epoch,
                                             uint32_t words[TW_GK_WORDS])
{
    const struct tw_gk_record *record = tw_inbox(me->call, me->call->rank, peer, epoch);
    bool whole = true;

    for (int i = 0; i < TW_GK_WORDS; i += 2)
        whole &= tw_load_pairs(record->pair[i], epoch, &words[i], &words[i + 1]);
    return whole;
}

/* The host hears of one of the long waits: of another one when that is over. */
static __device__ inline void tw_wait_tell(const struct tw_block *me, int peer,
                                           struct tw_wait *wait)
{
    const uint32_t *words = me->words != nullptr ? me->words : me->call->words;
    struct tw_gk_host *host = me->call->host;

    if (!wait->is_long)
        atomicAdd(&me->call->state->waiting, 1);
    wait->is_long = true;
    if (!wait->tells && atomicExch(&me->call->state->teller, 1) != 0)
        return;
    wait->tells = true;
    for (int i = 0; i < TW_GK_WORDS; i++)
        tw_store(&host->wait_words[i], words[i]);
    tw_store(&host->wait_peer, (uint32_t)peer);
    tw_store(&host->wait_epoch, me->epoch);
    tw_store_release(&host->waiting, 1);
}

static __device__ inline void tw_wait_over(const struct tw_block *me, const struct tw_wait *wait)
{
    if (wait->tells)
        atomicExch(&me->call->state->teller, 0);
    if (wait->is_long && atomicSub(&me->call->state->waiting, 1) == 1)
        tw_store_release(&me->call->host->waiting, 0);
}

/* The slow part of a wait for peer, or for another block where that is the rank itself, which has
 * no record. True: it is over, without what was waited for. No address of the fast part's variables
 * comes here: they stay in registers. */
static __device__ __noinline__ bool tw_wait_look(const struct tw_gk_call *call,
                                                 const struct tw_gk_pair *pairs,
                                                 const uint32_t *words_of, uint32_t epoch, int peer,
                                                 struct tw_wait *wait)
{
    const struct tw_block me = {.call = call, .pairs = pairs, .words = words_of, .epoch = epoch};
    uint32_t words[TW_GK_WORDS];

    if (tw_failed(&me))
        return true;
    if (words_of == nullptr && peer != call->rank && tw_record_read(&me, peer, epoch, words) &&
        !tw_same_call(&me, peer, words)) {
        tw_fail_here(&me, peer, TW_GK_MISMATCH, words);
        return true;
    }
    if (++wait->looks % TW_LOOKS_STOP != 0)
        return false;
    if (tw_load(&call->host->stop) != 0) {
        tw_fail_here(&me, peer, TW_GK_STOPPED, nullptr);
        return true;
    }
    const uint64_t now_ns = tw_now_ns();
    if (wait->since_ns == 0)
        wait->since_ns = now_ns;
    if (now_ns - wait->since_ns > TW_WAIT_NS)
        tw_wait_tell(&me, peer, wait);
    return false;
}

/* Polls until ready() says so. False: it was given up, and this thread waits for nothing more. */
template <class Ready>
static __device__ inline bool tw_wait_until(struct tw_block *me, int peer, const Ready &ready)
{
    struct tw_wait wait = {};

    if (me->dead)
        return false;
    for (uint32_t spins = 1; !ready(); spins++) {
        if (spins % TW_SPINS_LOOK == 0 &&
            tw_wait_look(me->call, me->pairs, me->words, me->epoch, peer, &wait)) {
            me->dead = true;
            break;
        }
    }
    tw_wait_over(me, &wait);
    return !me->dead;
}

/* Until a counter that only grows has reached value. */
static __device__ inline void tw_wait_count(struct tw_block *me, int peer, const uint32_t *at,
                                            uint32_t value)
{
    (void)tw_wait_until(me, peer, [&] { return (int32_t)(tw_load_acquire(at) - value) >= 0; });
}

/* Until peer has said that it has ended its part of this call. It may have gone on to the next one,
 * and no further: any other epoch is of long ago, also one from which half of all epochs are over.
 */
static __device__ inline void tw_wait_ended(struct tw_block *me, int peer)
{
    const uint32_t *at = &tw_marks(me, me->call->rank, peer)->ended;

    (void)tw_wait_until(me, peer, [&] { return tw_load_acquire(at) - me->epoch <= 1; });
}

/* Until peer's record of an epoch is there. False: it never was. */
static __device__ inline bool tw_record_wait(struct tw_block *me, int peer, uint32_t epoch,
                                             uint32_t words[TW_GK_WORDS])
{
    return tw_wait_until(me, peer, [&] { return tw_record_read(me, peer, epoch, words); });
}

/* The same for this call; another one of the peer's is a failure, and false. */
static __device__ inline bool tw_record_match(struct tw_block *me, int peer,
                                              uint32_t words[TW_GK_WORDS])
{
    if (!tw_record_wait(me, peer, me->epoch, words))
        return false;
    if (tw_same_call(me, peer, words))
        return true;
    tw_fail_here(me, peer, TW_GK_MISMATCH, words);
    me->dead = true;
    return false;
}

/* Unit i of what peer sends by lines. */
static __device__ inline void tw_line_wait(struct tw_block *me, int peer, uint64_t i, uint2 *unit)
{
    const char *at = tw_lines(me->call, me->call->rank, peer, me->epoch) + i * 16;
    uint32_t first = 0, second = 0;

    (void)tw_wait_until(me, peer, [&] { return tw_load_pairs(at, me->epoch, &first, &second); });
    *unit = make_uint2(first, second);
}

/* Where a buffer lies that peer's record tells of. */
static __device__ inline char *tw_reached(const struct tw_gk_call *call, int peer,
                                          const uint32_t *words, int first)
{
    const uint64_t word = (uint64_t)words[first + 1] << 32 | words[first];

    if ((word & TW_GK_REGISTERED) == 0)
        return (char *)word;
    const uint64_t slot = (word & ~TW_GK_REGISTERED) >> TW_GK_SLOT_SHIFT;
    const uint64_t offset = word & ((UINT64_C(1) << TW_GK_SLOT_SHIFT) - 1);

    return (char *)call->bases[slot * (uint64_t)call->size + (uint64_t)peer] + offset;
}

#endif
