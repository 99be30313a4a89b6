/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory that goes away in one piece. Never knows: what it is for. */
#include <stdlib.h>
#include <string.h>

#include "plan/check.h"

struct tw_check_block {
    struct tw_check_block *next;
    size_t used, bytes;
    _Alignas(max_align_t) unsigned char data[];
};

#define BLOCK_BYTES ((size_t)64 << 10)

void *tw_check_alloc(struct tw_check_arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX >> 2) / size)
        return NULL;
    size_t align = _Alignof(max_align_t);
    size_t bytes = (count * size + align - 1) / align * align;
    struct tw_check_block *block = arena->blocks;
    arena->total += bytes;
    if (arena->total > TW_CHECK_BYTES_MAX)
        return NULL;
    if (!block || block->bytes - block->used < bytes) {
        size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = malloc(sizeof(*block) + room);
        if (!block)
            return NULL;
        *block = (struct tw_check_block){.next = arena->blocks, .bytes = room};
        arena->blocks = block;
    }
    void *ptr = block->data + block->used;
    block->used += bytes;
    return memset(ptr, 0, bytes);
}

void tw_check_arena_fini(struct tw_check_arena *arena)
{
    while (arena->blocks) {
        struct tw_check_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}
