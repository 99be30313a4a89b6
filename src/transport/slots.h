/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: messages in slots of memory that two threads or processes share, one direction.
 * Never knows: whose memory it is, how it came to be shared, what the messages mean. */
#ifndef TW_TRANSPORT_SLOTS_H
#define TW_TRANSPORT_SLOTS_H

#include <stdbool.h>
#include <string.h>

#include "transport/transport.h"

/*
 * Shared memory of a FIFO:
 *
 *   line 0                 state of the send end (slots.c)
 *   lines 1 .. subs_max    tail of sub i: messages that the receiver has released, ever
 *   bytes                  slots: sub after sub, `depth` each, each one header line and payload
 *
 * A slot begins with its header line: a sequence word, 8 opaque bytes, a length, and room for a
 * small message. A payload of more than TW_SLOT_INLINE_BYTES stays behind the header line, where
 * reserve had it written; a smaller one is moved into the header line by commit, so that it
 * travels in the one cache line that the receiver polls. (The line behind is then touched by the
 * sender alone and stays in its cache.)
 *
 * Order. Nothing relies on a store wider than 8 bytes being atomic.
 *
 *   sender                                   receiver
 *   S1 load-acquire tail, sees room          R1 load-acquire sequence, sees the awaited word
 *   S2 plain stores: payload, header,        R2 plain loads: length, header, payload
 *      length                                R3 store-release tail
 *   S3 store-release sequence
 *
 * Message n. S2 is sequenced before S3, and R1 reads the value that S3 stored, so S3 synchronises
 * with R1 and S2 happens before R2: the receiver sees the whole message, on any machine.
 * Message n + depth, same slot. R2 is sequenced before R3, S1 reads a value of R3 or a later one
 * of the same thread, so R2 of message n happens before S2 of message n + depth: a slot is never
 * overwritten while it is read. Tails are monotone counts, kept in a copy by the sender and read
 * again only when the copy says "full".
 * The awaited word is `base + n` where n counts the sub's messages since the FIFO was made and
 * `base` is a hash of a random salt, the layout and the number of layout changes. R1 polls a place
 * that, after a change of layout, still holds whatever an older layout had there, even payload;
 * such a word equals the awaited one with probability 2^-64 per message, and the salt is not a
 * value that user data is made from. Words wrap freely: they are compared for equality only.
 * Change of layout. The sender changes once all tails equal its counts (acquire), hence after
 * every R2 of the old layout; the receiver changes when it has taken the last message of the old
 * layout, hence after every S2 of it. Tails have places that no payload ever overlaps. So between
 * the two changes nobody reads as the new layout what is still being written as the old one.
 *
 * A peer that does not keep to this can make a sub look full or empty for ever, or change payload
 * while it is read; lengths are read once and bounded here, positions are computed from local
 * state alone.
 */
#define TW_SLOT_INLINE_BYTES 40
#define TW_SLOT_LINE_BYTES 64

struct tw_slot_line {
    uint64_t seq; /* atomic */
    uint64_t header;
    uint32_t bytes;
    uint32_t unused;
    unsigned char data[TW_SLOT_INLINE_BYTES];
};

/* One end's view of one sub. Local memory. */
struct tw_slots_sub {
    uint64_t count;       /* messages committed or released, ever */
    uint64_t tail_seen;   /* send end: newest tail it knows */
    uint64_t *tail;       /* atomic; in shared memory */
    unsigned char *slot;  /* of the next message */
    unsigned char *first; /* of this sub's slots */
    unsigned char *end;   /* behind this sub's slots */
};

/* One end of a FIFO. Local memory; one user at a time. */
struct tw_slots {
    struct tw_slots_sub *sub; /* owned, [subs_max] */
    uint32_t subs, depth;     /* 0 before the first layout */
    uint32_t slot_bytes;      /* payload */
    uint32_t subs_max;
    uint64_t base;         /* sequence word of a sub's message 0 in this layout */
    uint64_t stride;       /* from slot to slot */
    unsigned char *memory; /* borrowed: line 0 */
    size_t bytes;          /* of the slots' area */
    uint64_t salt;
    uint64_t changes; /* of layout so far */
    bool sender;
};

/** Most subs that a FIFO of `bytes` can have. */
uint32_t tw_slots_subs_max(size_t bytes);

/** Prepare fresh shared memory; the receiver does it before it tells the sender. */
void tw_slots_format(void *memory, size_t bytes, uint64_t salt);
/** @param memory  aligned to a line, tw_fifo_memory_bytes(bytes) long; borrowed until fini */
enum twill_status tw_slots_init(struct tw_slots *slots, void *memory, size_t bytes, uint64_t salt,
                                bool sender);
void tw_slots_fini(struct tw_slots *slots);
/** As tw_fifo_ops.layout. */
enum twill_status tw_slots_layout(struct tw_slots *slots, uint32_t subs, uint32_t depth);
/** A length beyond the slot arrived: says so. */
enum twill_status tw_slots_bad_length(const struct tw_slots *slots, uint32_t sub, uint32_t bytes);

/*
 * Life of the send end, in line 0. A receive end may take its memory back when no sender came or
 * when the sender has left.
 */
/** The send end begins: false when the receiver has gone (or memory is not this FIFO's). */
bool tw_slots_attach(void *memory, uint64_t salt);
/** The send end will not write any more. */
void tw_slots_leave(void *memory, uint64_t salt);
/** Receiver: true when nobody writes now and nobody can attach later. */
bool tw_slots_revoke(void *memory, uint64_t salt);

static inline enum twill_status tw_slots_reserve(struct tw_slots *slots, uint32_t sub, void **data)
{
    if (sub >= slots->subs) {
        return TWILL_ERR_INVALID;
    }
    struct tw_slots_sub *s = &slots->sub[sub];
    if (s->count - s->tail_seen >= slots->depth) {
        s->tail_seen = __atomic_load_n(s->tail, __ATOMIC_ACQUIRE);
        if (s->count - s->tail_seen >= slots->depth) {
            return TWILL_ERR_AGAIN;
        }
    }
    *data = s->slot + TW_SLOT_LINE_BYTES;
    return TWILL_OK;
}

static inline void tw_slots_advance(const struct tw_slots *slots, struct tw_slots_sub *s)
{
    s->count++;
    s->slot += slots->stride;
    if (s->slot == s->end) {
        s->slot = s->first;
    }
}

static inline void tw_slots_commit(struct tw_slots *slots, uint32_t sub, uint32_t bytes,
                                   uint64_t header)
{
    struct tw_slots_sub *s = &slots->sub[sub];
    struct tw_slot_line *line = (struct tw_slot_line *)(void *)s->slot;
    if (bytes <= TW_SLOT_INLINE_BYTES) {
        const unsigned char *from = s->slot + TW_SLOT_LINE_BYTES;
        uint32_t at = 0;
        for (; at + 8 <= bytes; at += 8) { /* the widths in which it was written: stores forward */
            memcpy(line->data + at, from + at, 8);
        }
        for (; at + 4 <= bytes; at += 4) {
            memcpy(line->data + at, from + at, 4);
        }
        for (; at < bytes; at++) {
            line->data[at] = from[at];
        }
    }
    line->header = header;
    line->bytes = bytes;
    __atomic_store_n(&line->seq, slots->base + s->count, __ATOMIC_RELEASE);
    tw_slots_advance(slots, s);
}

static inline enum twill_status tw_slots_peek(const struct tw_slots *slots, uint32_t sub,
                                              struct tw_msg *msg)
{
    if (sub >= slots->subs) {
        return TWILL_ERR_INVALID;
    }
    const struct tw_slots_sub *s = &slots->sub[sub];
    const struct tw_slot_line *line = (const struct tw_slot_line *)(const void *)s->slot;
    if (__atomic_load_n(&line->seq, __ATOMIC_ACQUIRE) != slots->base + s->count) {
        return TWILL_ERR_AGAIN;
    }
    uint32_t bytes = __atomic_load_n(&line->bytes, __ATOMIC_RELAXED); /* once: not to be trusted */
    if (bytes > slots->slot_bytes) {
        return tw_slots_bad_length(slots, sub, bytes);
    }
    msg->bytes = bytes;
    msg->header = line->header;
    msg->data = bytes <= TW_SLOT_INLINE_BYTES ? line->data : s->slot + TW_SLOT_LINE_BYTES;
    return TWILL_OK;
}

static inline void tw_slots_release(struct tw_slots *slots, uint32_t sub)
{
    struct tw_slots_sub *s = &slots->sub[sub];
    tw_slots_advance(slots, s);
    __atomic_store_n(s->tail, s->count, __ATOMIC_RELEASE);
}

#endif
