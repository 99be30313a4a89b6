/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where slots lie in a FIFO's memory, in each layout. Never knows: whose memory it is. */
#include "config.h"

#include "transport/slots.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"

/* line 0: salt + one of these */
enum { STATE_FRESH, STATE_ATTACHED, STATE_LEFT, STATE_REVOKED };

#define SUBS_LEAST 4
#define SUBS_MOST 64
#define SUB_BYTES 256 /* of FIFO for each sub beyond the least */

uint32_t tw_slots_subs_max(size_t bytes)
{
    size_t subs = bytes / SUB_BYTES;
    return subs < SUBS_LEAST ? SUBS_LEAST : subs > SUBS_MOST ? SUBS_MOST : (uint32_t)subs;
}

static size_t control_bytes(size_t bytes)
{
    return (1 + (size_t)tw_slots_subs_max(bytes)) * TW_SLOT_LINE_BYTES;
}

size_t tw_fifo_memory_bytes(size_t bytes) { return control_bytes(bytes) + bytes; }

size_t tw_fifo_slot_bytes(size_t bytes, uint32_t subs, uint32_t depth)
{
    if (subs == 0 || depth == 0 || subs > tw_slots_subs_max(bytes)) {
        return 0;
    }
    uint64_t lines = bytes / TW_SLOT_LINE_BYTES / ((uint64_t)subs * depth);
    if (lines < 1 + TW_SLOT_MIN_BYTES / TW_SLOT_LINE_BYTES) {
        return 0;
    }
    uint64_t payload = (lines - 1) * TW_SLOT_LINE_BYTES;
    return payload > UINT32_MAX / 2 ? UINT32_MAX / 2 + 1 : payload;
}

void tw_slots_format(void *memory, size_t bytes, uint64_t salt)
{
    memset(memory, 0, control_bytes(bytes));
    __atomic_store_n((uint64_t *)memory, salt + STATE_FRESH, __ATOMIC_RELEASE);
}

bool tw_slots_attach(void *memory, uint64_t salt)
{
    uint64_t expected = salt + STATE_FRESH;
    return __atomic_compare_exchange_n((uint64_t *)memory, &expected, salt + STATE_ATTACHED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void tw_slots_leave(void *memory, uint64_t salt)
{
    __atomic_store_n((uint64_t *)memory, salt + STATE_LEFT, __ATOMIC_RELEASE);
}

bool tw_slots_revoke(void *memory, uint64_t salt)
{
    uint64_t state = salt + STATE_FRESH;
    if (__atomic_compare_exchange_n((uint64_t *)memory, &state, salt + STATE_REVOKED, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return true;
    }
    return state == salt + STATE_LEFT || state == salt + STATE_REVOKED;
}

enum twill_status tw_slots_init(struct tw_slots *slots, void *memory, size_t bytes, uint64_t salt,
                                bool sender)
{
    uint32_t subs_max = tw_slots_subs_max(bytes);
    *slots = (struct tw_slots){
        .subs_max = subs_max, .memory = memory, .bytes = bytes, .salt = salt, .sender = sender};
    slots->sub = tw_alloc(subs_max * sizeof(*slots->sub));
    if (slots->sub == NULL) {
        return TWILL_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < subs_max; i++) {
        slots->sub[i].tail =
            (uint64_t *)(void *)(slots->memory + (1 + (size_t)i) * TW_SLOT_LINE_BYTES);
    }
    return TWILL_OK;
}

void tw_slots_fini(struct tw_slots *slots)
{
    free(slots->sub);
    slots->sub = NULL;
    slots->subs = 0;
}

/* The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators, OOPSLA 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static bool drained(const struct tw_slots *slots)
{
    for (uint32_t i = 0; i < slots->subs; i++) {
        if (__atomic_load_n(slots->sub[i].tail, __ATOMIC_ACQUIRE) != slots->sub[i].count) {
            return false;
        }
    }
    return true;
}

enum twill_status tw_slots_layout(struct tw_slots *slots, uint32_t subs, uint32_t depth)
{
    if (subs == slots->subs && depth == slots->depth) {
        return TWILL_OK;
    }
    size_t slot_bytes = tw_fifo_slot_bytes(slots->bytes, subs, depth);
    if (slot_bytes == 0) {
        return tw_fail(TWILL_ERR_INVALID, "fifo of %zu bytes has no room for %u subs of %u slots",
                       slots->bytes, subs, depth);
    }
    if (slots->sender && !drained(slots)) {
        return TWILL_ERR_AGAIN;
    }
    slots->changes++;
    slots->subs = subs;
    slots->depth = depth;
    slots->slot_bytes = (uint32_t)slot_bytes;
    slots->stride = TW_SLOT_LINE_BYTES + slot_bytes;
    slots->base = mix(mix(slots->salt + slots->changes) + (((uint64_t)subs << 32) | depth));
    unsigned char *at = slots->memory + control_bytes(slots->bytes);
    for (uint32_t i = 0; i < subs; i++) {
        struct tw_slots_sub *s = &slots->sub[i];
        s->tail_seen = s->count;
        s->slot = s->first = at;
        at += depth * slots->stride;
        s->end = at;
    }
    return TWILL_OK;
}

enum twill_status tw_slots_bad_length(const struct tw_slots *slots, uint32_t sub, uint32_t bytes)
{
    return tw_fail(TWILL_ERR_PEER,
                   "message of %u bytes in a slot of %u (sub %u): the peer broke the protocol",
                   bytes, slots->slot_bytes, sub);
}
