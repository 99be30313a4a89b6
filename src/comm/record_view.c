/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how what ranks do is put into words. Never knows: what a wait comes to. */
#include "config.h"

#include "comm/record_view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tw_view_init(struct tw_view *view, struct twill_comm *comm, const struct tw_call_info *info,
                  uint64_t number)
{
    view->comm = comm;
    view->info = info;
    view->number = number;
    tw_record_pack(info, number, &view->own);
    if (info->coll == TW_COLL_P2P)
        tw_record_pair_text(&view->own, info->peer, info->is_send, view->own_text);
    else
        tw_record_text(&view->own, view->own_text);
}

/* ---- two calls ---------------------------------------------------------------------------------
 */

bool tw_view_differ(const struct tw_record_call *a, const struct tw_record_call *b)
{
    return a->what != b->what || a->count != b->count || a->algo_hash != b->algo_hash;
}

enum twill_status tw_view_mismatch(const struct tw_view *view, int peer, const char *peer_text)
{
    bool same_words = strcmp(peer_text, view->own_text) == 0;

    tw_comm_fail(view->comm, TWILL_ERR_MISMATCH, "rank %d called %s, rank %d called %s%s", peer,
                 peer_text, view->comm->rank, view->own_text,
                 same_words ? ", but with another plan" : "");
    return tw_comm_status(view->comm);
}

/* The lane on peer's board that must hold the tw_view_lane of the call. */
const struct tw_board_lane *tw_view_lane(const struct tw_view *view, const struct tw_board *board)
{
    if (view->info->coll == TW_COLL_P2P)
        return &board->pairs[tw_record_pair(view->comm->rank, !view->info->is_send)];
    return &board->colls;
}

void tw_view_text(const struct tw_view *view, const struct tw_record_call *call,
                  char text[TW_RECORD_TEXT_BYTES])
{
    if (view->info->coll == TW_COLL_P2P)
        tw_record_pair_text(call, view->comm->rank, !view->info->is_send, text);
    else
        tw_record_text(call, text);
}

/* ---- what a rank does --------------------------------------------------------------------------
 */

__attribute__((format(printf, 2, 3))) void tw_line_add(struct tw_line *line, const char *format,
                                                       ...)
{
    va_list args;

    va_start(args, format);
    int more = vsnprintf(line->text + line->used, line->bytes - line->used, format, args);
    va_end(args);
    if (more > 0)
        line->used += (size_t)more;
    if (line->used >= line->bytes)
        line->used = line->bytes - 1;
}

/* "in send #3 to rank 1 count 10 float32". @return false: in none */
static bool pair_activity(const struct tw_board *board, int size, char *text, size_t bytes)
{
    char call_text[TW_RECORD_TEXT_BYTES];
    struct tw_record_call call;

    for (size_t i = 0; i < 2 * (size_t)size; i++) {
        const struct tw_board_lane *lane = &board->pairs[i];
        uint64_t begun = tw_record_word(&lane->begun);
        if (begun == tw_record_word(&lane->ended) || !tw_record_read(lane, begun, &call))
            continue;
        tw_record_pair_text(&call, (int)(i / 2), i % 2 != 0, call_text);
        (void)snprintf(text, bytes, "in %s", call_text);
        return true;
    }
    return false;
}

bool tw_record_last(struct twill_comm *comm, int rank, char *text, size_t bytes)
{
    const struct tw_board *board = tw_record_board(comm, rank);
    char call_text[TW_RECORD_TEXT_BYTES];
    struct tw_record_call call;

    if (board == NULL)
        return false;
    uint64_t begun = tw_record_word(&board->colls.begun);
    bool running = begun != tw_record_word(&board->colls.ended);
    if (!running && pair_activity(board, comm->size, text, bytes))
        return true;
    if (begun == 0)
        return false;
    if (tw_record_read(&board->colls, begun, &call))
        tw_record_text(&call, call_text);
    else
        (void)snprintf(call_text, sizeof(call_text), "call #%" PRIu64, begun);
    (void)snprintf(text, bytes, "%s %s", running ? "in" : "not in a call since", call_text);
    return true;
}

void tw_line_activity(struct tw_line *line, struct twill_comm *comm, int rank)
{
    char text[TW_RECORD_TEXT_BYTES + 32];

    if (!tw_record_last(comm, rank, text, sizeof(text)))
        (void)snprintf(text, sizeof(text), "in no call yet");
    tw_line_add(line, "rank %d is %s", rank, text);
}
