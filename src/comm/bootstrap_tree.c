/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: gathering and exchanging entries over a binary tree. Never knows: what the entries are. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "comm/bootstrap.h"

/*
 * Ranks are the nodes of a heap: the subtree of r holds, level by level, the ranks from
 * (r + 1) * 2^k - 1 on, 2^k of them, as far as there are so many. Frames list a subtree in that
 * order, so they need no rank numbers.
 */
struct walk {
    int size;
    int64_t first, count; /* of the level */
    int64_t next;         /* in the level */
};

static struct walk walk_start(int root, int size)
{
    return (struct walk){.size = size, .first = root, .count = 1, .next = 0};
}

/* @return next rank of the subtree; -1 past the end */
static int walk_next(struct walk *walk)
{
    if (walk->next == walk->count || walk->first + walk->next >= walk->size) {
        walk->first = 2 * walk->first + 1;
        walk->count *= 2;
        walk->next = 0;
    }
    if (walk->first >= walk->size)
        return -1;
    return (int)(walk->first + walk->next++);
}

static int subtree_ranks(int root, int size)
{
    struct walk walk = walk_start(root, size);
    int count = 0;

    while (walk_next(&walk) >= 0)
        count++;
    return count;
}

size_t tw_tree_frame_bytes(int size, size_t gather_bytes, size_t exchange_bytes)
{
    size_t gather = (size_t)size * gather_bytes;
    size_t exchange = (size_t)size * (size_t)size * exchange_bytes;

    return gather > exchange ? gather : exchange;
}

/* ---- frames ------------------------------------------------------------------------------------
 */

static enum twill_status frame_missing(const struct tw_tree_call *call, int index)
{
    struct twill_comm *comm = call->comm;

    if (tw_comm_status(comm) != TWILL_OK)
        return tw_comm_status(comm);
    return tw_fail(TWILL_ERR_TIMEOUT, "init: rank %d waits in vain for rank %d while %s",
                   comm->rank, comm->ctl->tree_rank[index], call->step);
}

/* Next frame of a link. @param payload  out, owned by the caller */
static enum twill_status frame_recv(const struct tw_tree_call *call, int index, size_t bytes,
                                    uint8_t **payload)
{
    struct tw_ctl *ctl = call->comm->ctl;
    bool in_time = true;

    tw_loop_lock(ctl->loop);
    while (ctl->first[index] == NULL && tw_comm_status(call->comm) == TWILL_OK && in_time)
        in_time = tw_cond_wait(&ctl->changed, &ctl->loop->lock, call->deadline_ns);
    struct tw_ctl_frame *frame = ctl->first[index];
    if (frame != NULL && tw_comm_status(call->comm) == TWILL_OK) {
        ctl->first[index] = frame->next;
        if (frame->next == NULL)
            ctl->last[index] = NULL;
    } else {
        frame = NULL;
    }
    tw_loop_unlock(ctl->loop);
    if (frame == NULL)
        return frame_missing(call, index);
    uint32_t got = frame->bytes;
    *payload = frame->payload;
    free(frame);
    if (got == bytes)
        return TWILL_OK;
    free(*payload);
    *payload = NULL;
    return tw_fail(TWILL_ERR_PEER, "init: rank %d sent %u bytes while %s, not %zu",
                   ctl->tree_rank[index], got, call->step, bytes);
}

static void frame_send(const struct tw_tree_call *call, int index, const void *data, size_t bytes)
{
    struct tw_ctl *ctl = call->comm->ctl;

    tw_loop_lock(ctl->loop);
    tw_link_send(&ctl->tree[index], TW_FRAME_DATA, data, (uint32_t)bytes);
    tw_loop_unlock(ctl->loop);
}

static int child_rank(const struct tw_tree_call *call, int index)
{
    return call->comm->ctl->tree_rank[index];
}

/* ---- gather ------------------------------------------------------------------------------------
 */

/* Copy entries of a subtree between the table and a packed list. */
static void subtree_copy(int root, int size, uint8_t *table, uint8_t *list, size_t bytes,
                         bool to_list)
{
    struct walk walk = walk_start(root, size);

    if (bytes == 0)
        return;
    for (int r = walk_next(&walk); r >= 0; r = walk_next(&walk), list += bytes)
        memcpy(to_list ? list : table + (size_t)r * bytes,
               to_list ? table + (size_t)r * bytes : list, bytes);
}

static enum twill_status gather_up(const struct tw_tree_call *call, uint8_t *table, size_t bytes,
                                   uint8_t *list)
{
    int size = call->comm->size;
    int rank = call->comm->rank;

    for (int i = TW_TREE_CHILD; i < TW_TREE_LINKS; i++) {
        uint8_t *payload = NULL;
        int child = child_rank(call, i);
        if (child < 0)
            continue;
        size_t expected = (size_t)subtree_ranks(child, size) * bytes;
        enum twill_status status = frame_recv(call, i, expected, &payload);
        if (status != TWILL_OK)
            return status;
        subtree_copy(child, size, table, payload, bytes, false);
        free(payload);
    }
    if (rank == 0)
        return TWILL_OK;
    subtree_copy(rank, size, table, list, bytes, true);
    frame_send(call, TW_TREE_PARENT, list, (size_t)subtree_ranks(rank, size) * bytes);
    return TWILL_OK;
}

enum twill_status tw_tree_gather(const struct tw_tree_call *call, void *entries, size_t bytes)
{
    size_t all = (size_t)call->comm->size * bytes;
    uint8_t *list = tw_alloc(all);
    uint8_t *payload = NULL;

    if (list == NULL)
        return TWILL_ERR_NOMEM;
    enum twill_status status = gather_up(call, entries, bytes, list);
    free(list);
    if (status == TWILL_OK && call->comm->rank > 0) {
        status = frame_recv(call, TW_TREE_PARENT, all, &payload);
        if (status == TWILL_OK && all > 0)
            memcpy(entries, payload, all);
        free(payload);
    }
    for (int i = TW_TREE_CHILD; status == TWILL_OK && i < TW_TREE_LINKS; i++) {
        if (child_rank(call, i) >= 0)
            frame_send(call, i, entries, all);
    }
    return status;
}

/* ---- exchange ----------------------------------------------------------------------------------
 * Up go rows: for each rank of the subtree, what it has for every rank. Down go columns: for each
 * rank of the subtree, what every rank has for it.
 */

struct matrix {
    uint8_t *rows; /* [size][size] entries at rank 0; elsewhere the subtree's rows, by rank */
    size_t row_bytes;
};

static enum twill_status rows_up(const struct tw_tree_call *call, const struct matrix *matrix,
                                 uint8_t *list)
{
    int size = call->comm->size;
    int rank = call->comm->rank;
    size_t row = matrix->row_bytes;

    for (int i = TW_TREE_CHILD; i < TW_TREE_LINKS; i++) {
        uint8_t *payload = NULL;
        int child = child_rank(call, i);
        if (child < 0)
            continue;
        size_t expected = (size_t)subtree_ranks(child, size) * row;
        enum twill_status status = frame_recv(call, i, expected, &payload);
        if (status != TWILL_OK)
            return status;
        subtree_copy(child, size, matrix->rows, payload, row, false);
        free(payload);
    }
    if (rank == 0)
        return TWILL_OK;
    subtree_copy(rank, size, matrix->rows, list, row, true);
    frame_send(call, TW_TREE_PARENT, list, (size_t)subtree_ranks(rank, size) * row);
    return TWILL_OK;
}

static void transpose(uint8_t *rows, int size, size_t bytes, uint8_t *columns)
{
    for (size_t to = 0; to < (size_t)size; to++) {
        for (size_t from = 0; from < (size_t)size; from++)
            memcpy(columns + (to * (size_t)size + from) * bytes,
                   rows + (from * (size_t)size + to) * bytes, bytes);
    }
}

static enum twill_status columns_down(const struct tw_tree_call *call, uint8_t *columns, size_t row,
                                      uint8_t *list)
{
    int size = call->comm->size;
    int rank = call->comm->rank;

    if (rank > 0) {
        uint8_t *payload = NULL;
        size_t expected = (size_t)subtree_ranks(rank, size) * row;
        enum twill_status status = frame_recv(call, TW_TREE_PARENT, expected, &payload);
        if (status != TWILL_OK)
            return status;
        subtree_copy(rank, size, columns, payload, row, false);
        free(payload);
    }
    for (int i = TW_TREE_CHILD; i < TW_TREE_LINKS; i++) {
        int child = child_rank(call, i);
        if (child < 0)
            continue;
        subtree_copy(child, size, columns, list, row, true);
        frame_send(call, i, list, (size_t)subtree_ranks(child, size) * row);
    }
    return TWILL_OK;
}

enum twill_status tw_tree_exchange(const struct tw_tree_call *call, void *entries, size_t bytes)
{
    size_t size = (size_t)call->comm->size;
    size_t rank = (size_t)call->comm->rank;
    size_t row = size * bytes;
    uint8_t *list = tw_alloc(size * row);
    uint8_t *columns = tw_alloc(size * row);
    struct matrix matrix = {.rows = tw_alloc(size * row), .row_bytes = row};
    enum twill_status status = TWILL_ERR_NOMEM;

    if (list != NULL && columns != NULL && matrix.rows != NULL) {
        memcpy(matrix.rows + rank * row, entries, row);
        status = rows_up(call, &matrix, list);
        if (status == TWILL_OK && rank == 0)
            transpose(matrix.rows, (int)size, bytes, columns);
        if (status == TWILL_OK)
            status = columns_down(call, columns, row, list);
        if (status == TWILL_OK)
            memcpy(entries, columns + rank * row, row);
    }
    free(matrix.rows);
    free(columns);
    free(list);
    return status;
}
