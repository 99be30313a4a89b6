/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: bytes, alignment, anonymous and fd-backed pages. Never knows: what they hold. */
#ifndef TW_BASE_MEM_H
#define TW_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "twill.h"

#define TW_LINE_BYTES 64

/** Zeroed memory aligned to a cache line; NULL when there is none (tw_fail was called). free()
 * frees. */
void *tw_alloc(size_t bytes);

/** Do two pieces of memory share a byte? Neither runs past the end of memory; an empty one shares
 * none. */
static inline bool tw_overlap(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes)
{
    return a_bytes && b_bytes && a < b + b_bytes && b < a + a_bytes;
}

/* Memory that other processes can map: a memfd sealed against shrinking and growing. */
struct tw_shm {
    int fd;       /* owned; -1 when none */
    void *base;   /* owned mapping */
    size_t bytes; /* whole pages */
};

/** Create, size, seal (F_SEAL_SHRINK|GROW|SEAL) and map. name shows in /proc/PID/maps. */
enum twill_status tw_shm_create(struct tw_shm *shm, const char *name, size_t bytes);

/**
 * Map a peer's segment. Takes fd over, also on error. Refuses what is not sealed against shrinking,
 * or smaller than least_bytes (a peer's word for a length is never believed).
 */
enum twill_status tw_shm_map(struct tw_shm *shm, int fd, size_t least_bytes);
void tw_shm_close(struct tw_shm *shm);

/* First-fit allocator over a range it does not own; its book-keeping lives outside the range, so
 * that a peer that scribbles over the range cannot mislead it. Thread-safe. */
struct tw_pool;
enum twill_status tw_pool_create(struct tw_pool **pool, void *base, size_t bytes);
void tw_pool_destroy(struct tw_pool *pool);
/** Aligned to a cache line, not zeroed; NULL when there is no room (no tw_fail: callers may try
 * less). */
void *tw_pool_get(struct tw_pool *pool, size_t bytes);
void tw_pool_put(struct tw_pool *pool, void *ptr);
size_t tw_pool_used(const struct tw_pool *pool);
size_t tw_pool_room(const struct tw_pool *pool); /* largest block to be had now */

#endif
