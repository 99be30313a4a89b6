/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what one waits in, and how calls of ranks are put into words.
 * Never knows: what a wait comes to. */
#ifndef TW_COMM_RECORD_VIEW_H
#define TW_COMM_RECORD_VIEW_H

#include "comm/record.h"

/* What one waits in. */
struct tw_view {
    struct twill_comm *comm;
    const struct tw_call_info *info;
    struct tw_record_call own;
    char own_text[TW_RECORD_TEXT_BYTES];
    uint64_t number;
};

void tw_view_init(struct tw_view *view, struct twill_comm *comm, const struct tw_call_info *info,
                  uint64_t number);
/** The own call as the peer is to see it: what a v-variant says of the peer. */
void tw_view_toward(struct tw_view *view, int peer);
/** The lane on peer's board that must hold the counterpart of the call. */
const struct tw_board_lane *tw_view_lane(const struct tw_view *view, const struct tw_board *board);
/** The counterpart, of the same number, on the board of a peer. @return false: it is not there */
bool tw_view_theirs(const struct tw_view *view, const struct tw_board *board,
                    struct tw_record_call *theirs);
/** A call of that lane in words. */
void tw_view_text(const struct tw_view *view, const struct tw_record_call *call,
                  char text[TW_RECORD_TEXT_BYTES]);
/** Calls of two ranks, each as it is toward the other. */
bool tw_view_differ(const struct tw_record_call *a, const struct tw_record_call *b);
/** An own collective that is over already did not match theirs of the same number: it went through
 * without the peer's part, and is the one to name. The view then shows it. @return whether it is so
 */
bool tw_view_past(struct tw_view *view, int peer, const struct tw_record_call *theirs);
/** The communicator fails: peer made another call than the one that the view shows toward it.
 * @return its status */
enum twill_status tw_view_mismatch(const struct tw_view *view, int peer, const char *peer_text);

/* A text that grows; what does not fit is cut. */
struct tw_line {
    char *text;
    size_t bytes, used;
};
void tw_line_add(struct tw_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** "rank 3 is in all_reduce #7 count 100 float32 sum" */
void tw_line_activity(struct tw_line *line, struct twill_comm *comm, int rank);

#endif
