/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which parts of a range are taken. Never knows: what the range is or holds: it never
 * touches it. */
#include "config.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"

/* The range cut into blocks: a list in address order, neighbours never both free. */
struct block {
    struct block *next, *before; /* owned; borrowed */
    size_t offset, bytes;
    bool taken;
};

struct tw_pool {
    pthread_mutex_t lock;
    char *base; /* borrowed, aligned to a cache line */
    size_t bytes;
    size_t used;         /* under lock */
    struct block *first; /* owned; never NULL */
};

enum twill_status tw_pool_create(struct tw_pool **out, void *base, size_t bytes)
{
    uintptr_t start = (uintptr_t)base;
    size_t skip = (TW_LINE_BYTES - start % TW_LINE_BYTES) % TW_LINE_BYTES;

    if (base == NULL || bytes < skip + TW_LINE_BYTES)
        return tw_fail(TWILL_ERR_INVALID, "pool: %zu bytes hold no cache line", bytes);
    struct tw_pool *pool = calloc(1, sizeof(*pool));
    struct block *whole = calloc(1, sizeof(*whole));
    if (pool == NULL || whole == NULL) {
        free(pool);
        free(whole);
        return tw_fail(TWILL_ERR_NOMEM, "pool: no memory for its book-keeping");
    }
    (void)pthread_mutex_init(&pool->lock, NULL);
    pool->base = (char *)base + skip;
    pool->bytes = (bytes - skip) / TW_LINE_BYTES * TW_LINE_BYTES;
    whole->bytes = pool->bytes;
    pool->first = whole;
    *out = pool;
    return TWILL_OK;
}

void tw_pool_destroy(struct tw_pool *pool)
{
    if (pool == NULL)
        return;
    for (struct block *block = pool->first; block != NULL;) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* Cuts what block has beyond bytes into a free block behind it. */
static bool block_cut(struct block *block, size_t bytes)
{
    if (block->bytes == bytes)
        return true;
    struct block *rest = calloc(1, sizeof(*rest));
    if (rest == NULL)
        return false;
    rest->offset = block->offset + bytes;
    rest->bytes = block->bytes - bytes;
    rest->before = block;
    rest->next = block->next;
    if (rest->next != NULL)
        rest->next->before = rest;
    block->next = rest;
    block->bytes = bytes;
    return true;
}

static void block_join_next(struct block *block)
{
    struct block *gone = block->next;

    block->bytes += gone->bytes;
    block->next = gone->next;
    if (block->next != NULL)
        block->next->before = block;
    free(gone);
}

void *tw_pool_get(struct tw_pool *pool, size_t bytes)
{
    void *got = NULL;

    if (bytes == 0)
        bytes = 1;
    if (bytes > pool->bytes)
        return NULL;
    bytes = (bytes + TW_LINE_BYTES - 1) / TW_LINE_BYTES * TW_LINE_BYTES;
    (void)pthread_mutex_lock(&pool->lock);
    struct block *block = pool->first;
    while (block != NULL && (block->taken || block->bytes < bytes))
        block = block->next;
    if (block != NULL && block_cut(block, bytes)) {
        block->taken = true;
        pool->used += bytes;
        got = pool->base + block->offset;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return got;
}

void tw_pool_put(struct tw_pool *pool, void *ptr)
{
    if (ptr == NULL)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    struct block *block = pool->first;
    while (block != NULL && (!block->taken || pool->base + block->offset != ptr))
        block = block->next;
    if (block != NULL) {
        block->taken = false;
        pool->used -= block->bytes;
        if (block->next != NULL && !block->next->taken)
            block_join_next(block);
        if (block->before != NULL && !block->before->taken)
            block_join_next(block->before);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (block == NULL)
        (void)tw_fail(TWILL_ERR_INTERNAL, "pool: %p was put back but is not taken", ptr);
}

/* The lock is no part of what const promises. */
static void lock_const(const struct tw_pool *pool)
{
    (void)pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&pool->lock);
}

static void unlock_const(const struct tw_pool *pool)
{
    (void)pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&pool->lock);
}

size_t tw_pool_used(const struct tw_pool *pool)
{
    lock_const(pool);
    size_t used = pool->used;
    unlock_const(pool);
    return used;
}

size_t tw_pool_room(const struct tw_pool *pool)
{
    size_t most = 0;

    lock_const(pool);
    for (const struct block *block = pool->first; block != NULL; block = block->next) {
        if (!block->taken && block->bytes > most)
            most = block->bytes;
    }
    unlock_const(pool);
    return most;
}
