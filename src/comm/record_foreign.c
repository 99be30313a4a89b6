/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which call a message belongs to that was not expected. Never knows: how a call runs. */
#include "config.h"

#include <inttypes.h>

#include "comm/record_view.h"

/* Which of peer's collectives sends messages with this header? */
static bool coll_find(const struct tw_view *view, int peer, const struct tw_board *board,
                      uint64_t found, struct tw_record_call *call)
{
    int rank = view->comm->rank;

    for (uint64_t i = 0; i < TW_RECORD_DEPTH; i++) {
        uint64_t number = tw_record_word(&board->colls.begun) - i;
        if (tw_record_read_coll(board, view->comm->size, number, rank, call) &&
            tw_record_coll_hash(view->comm->id_hash, peer, rank, call) == found)
            return true;
    }
    return false;
}

/* Which of its sends? */
static bool send_find(const struct tw_view *view, int peer, const struct tw_board *board,
                      uint64_t found, struct tw_record_call *call)
{
    const struct tw_board_lane *sends = &board->pairs[tw_record_pair(view->comm->rank, true)];

    for (uint64_t i = 0; i < TW_RECORD_DEPTH; i++) {
        uint64_t number = tw_record_word(&sends->begun) - i;
        if (tw_record_read(sends, number, call) &&
            tw_record_pair_hash(view->comm->id_hash, peer, view->comm->rank, call) == found)
            return true;
    }
    return false;
}

static bool header_find(struct tw_view *view, int peer, const struct tw_board *board,
                        uint64_t found, char text[TW_RECORD_TEXT_BYTES])
{
    struct tw_record_call call;

    if (coll_find(view, peer, board, found, &call)) {
        if (view->info->coll != TW_COLL_P2P)
            (void)tw_view_past(view, peer, &call);
        tw_record_toward_text(&call, view->comm->rank, text);
        return true;
    }
    if (!send_find(view, peer, board, found, &call))
        return false;
    tw_record_pair_text(&call, view->comm->rank, true, text);
    return true;
}

enum twill_status tw_record_mismatch(struct twill_comm *comm, const struct tw_call_info *info,
                                     uint64_t number, int peer, uint64_t found)
{
    const struct tw_board *board = tw_record_board(comm, peer);
    struct tw_record_call theirs;
    char text[TW_RECORD_TEXT_BYTES];
    struct tw_view view;

    if (tw_comm_status(comm) != TWILL_OK)
        return tw_comm_status(comm);
    tw_view_init(&view, comm, info, number);
    tw_view_toward(&view, peer);
    /* Its call of the same number says more than a later one, whose message this may be. */
    if (board != NULL && tw_view_theirs(&view, board, &theirs) &&
        tw_view_differ(&theirs, &view.own)) {
        tw_view_text(&view, &theirs, text);
        return tw_view_mismatch(&view, peer, text);
    }
    if (board != NULL && header_find(&view, peer, board, found, text))
        return tw_view_mismatch(&view, peer, text);
    tw_comm_fail(comm, TWILL_ERR_MISMATCH,
                 "rank %d sent a message of another call (header %#" PRIx64 "), rank %d called %s",
                 peer, found, comm->rank, view.own_text);
    return tw_comm_status(comm);
}
