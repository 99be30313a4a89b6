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

void tw_view_toward(struct tw_view *view, int peer)
{
    if (view->info->coll == TW_COLL_P2P || !tw_record_has_pairs(&view->own))
        return;
    tw_record_toward(view->info, view->comm->rank, peer, &view->own);
    tw_record_toward_text(&view->own, peer, view->own_text);
}

/* ---- two calls ---------------------------------------------------------------------------------
 */

bool tw_view_differ(const struct tw_record_call *a, const struct tw_record_call *b)
{
    return a->what != b->what || a->count != b->count || a->algo_hash != b->algo_hash ||
           a->spread != b->spread || a->to != b->from || a->from != b->to;
}

bool tw_view_past(struct tw_view *view, int peer, const struct tw_record_call *theirs)
{
    const struct tw_board *board = tw_record_board(view->comm, view->comm->rank);
    struct tw_record_call past;

    if (theirs->number >= view->number || board == NULL ||
        !tw_record_read_coll(board, view->comm->size, theirs->number, peer, &past) ||
        !tw_view_differ(theirs, &past))
        return false;
    view->own = past;
    view->number = past.number;
    tw_record_toward_text(&past, peer, view->own_text);
    return true;
}

/* The first count that two ranks that must have all of them do not have alike. */
static void counts_text(const struct tw_view *view, int peer, char *text, size_t bytes)
{
    const struct tw_board *theirs = tw_record_board(view->comm, peer);
    const struct tw_board *mine = tw_record_board(view->comm, view->comm->rank);
    bool gathers = view->info->coll == TW_COLL_ALL_GATHER_V;
    struct tw_record_call a, b;

    for (int r = 0; theirs != NULL && mine != NULL && r < view->comm->size; r++) {
        if (!tw_record_read_coll(theirs, view->comm->size, view->number, r, &a) ||
            !tw_record_read_coll(mine, view->comm->size, view->number, r, &b) ||
            (uint8_t)a.what != (uint8_t)b.what)
            return;
        uint64_t their_count = gathers ? a.from : a.to;
        uint64_t my_count = gathers ? b.from : b.to;
        if (their_count == my_count)
            continue;
        (void)snprintf(text, bytes,
                       ", but rank %d has count %" PRIu64 " for rank %d, rank %d has %" PRIu64,
                       peer, their_count, r, view->comm->rank, my_count);
        return;
    }
}

enum twill_status tw_view_mismatch(const struct tw_view *view, int peer, const char *peer_text)
{
    char but[128] = "";

    /* a v-variant's sentences say the same call from two sides: they never are the same */
    if (view->info->guise == TW_CALL_FUSED && strcmp(peer_text, view->own_text) == 0)
        (void)snprintf(but, sizeof(but), ", but with other counts");
    else if (view->own.spread != 0 && view->info->guise == TW_CALL_PLAIN)
        counts_text(view, peer, but, sizeof(but));
    else if (strcmp(peer_text, view->own_text) == 0)
        (void)snprintf(but, sizeof(but), ", but with another plan");
    tw_comm_fail(view->comm, TWILL_ERR_MISMATCH, "rank %d called %s, rank %d called %s%s", peer,
                 peer_text, view->comm->rank, view->own_text, but);
    return tw_comm_status(view->comm);
}

const struct tw_board_lane *tw_view_lane(const struct tw_view *view, const struct tw_board *board)
{
    if (view->info->coll == TW_COLL_P2P)
        return &board->pairs[tw_record_pair(view->comm->rank, !view->info->is_send)];
    return &board->colls;
}

bool tw_view_theirs(const struct tw_view *view, const struct tw_board *board,
                    struct tw_record_call *theirs)
{
    if (view->info->coll != TW_COLL_P2P)
        return tw_record_read_coll(board, view->comm->size, view->number, view->comm->rank, theirs);
    return tw_record_read(tw_view_lane(view, board), view->number, theirs);
}

void tw_view_text(const struct tw_view *view, const struct tw_record_call *call,
                  char text[TW_RECORD_TEXT_BYTES])
{
    if (view->info->coll == TW_COLL_P2P)
        tw_record_pair_text(call, view->comm->rank, !view->info->is_send, text);
    else
        tw_record_toward_text(call, view->comm->rank, text);
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
