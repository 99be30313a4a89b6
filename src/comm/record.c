/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a long wait means: calls that do not match, ranks that are late or gone.
 * Never knows: how a call runs. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/time.h"
#include "comm/record_view.h"

#define LOOK_LEAST_NS TW_NS_MS
#define LOOK_MOST_NS (100 * TW_NS_MS)
#define LATE_NAMED 4 /* ranks named in one sentence */

/* ---- findings ----------------------------------------------------------------------------------
 */

static void phase_text(const struct tw_exec_wait *where, char *text, size_t bytes)
{
    static const char *const phases[] = {"starting",  "setting up fifos",     "sending",
                                         "receiving", "waiting for a signal", "finishing"};
    const char *phase =
        where != NULL && where->phase <= TW_PHASE_DONE ? phases[where->phase] : "waiting";

    if (where == NULL || where->peer == TW_NO_RANK)
        (void)snprintf(text, bytes, "%s", phase);
    else
        (void)snprintf(text, bytes, "%s, peer %d, lane %u, step %u, loop %" PRIu64 ", slice %u",
                       phase, where->peer, (unsigned)where->lane, where->step, where->loop,
                       where->slice);
}

enum finding { FOUND_NOTHING, FOUND_LATE, FOUND_FAILURE };

/* The peer's state, read before its numbers: whatever it began or ended, it did before it left. */
struct presence {
    uint64_t life;
    bool gone;
};

/* The peer will not come: its process is gone, or it ends its part. */
static enum finding absent_fail(const struct tw_view *view, int peer,
                                const struct presence *presence, const struct tw_exec_wait *where)
{
    char phase[96];

    if (presence->life != TW_LIFE_OPEN) {
        tw_comm_fail(view->comm, TWILL_ERR_MISMATCH, "rank %d %s, rank %d called %s", peer,
                     presence->life == TW_LIFE_FINALIZING  ? "is in finalize"
                     : presence->life == TW_LIFE_SHRINKING ? "is in comm_shrink"
                                                           : "destroyed the communicator",
                     view->comm->rank, view->own_text);
        return FOUND_FAILURE;
    }
    phase_text(where, phase, sizeof(phase));
    tw_comm_fail(view->comm, TWILL_ERR_PEER,
                 "rank %d (process %d) is gone; rank %d waits in %s (%s)", peer,
                 (int)tw_ctl_pid(view->comm, peer), view->comm->rank, view->own_text, phase);
    return FOUND_FAILURE;
}

/* Calls that did not match may all have gone through: each rank sent, and nobody received. What
 * they left in the fifos is in the way of this call. */
static bool past_look(struct tw_view *view, int peer, const struct tw_board *board)
{
    struct tw_record_call theirs;
    char text[TW_RECORD_TEXT_BYTES];

    for (uint64_t back = TW_RECORD_DEPTH - 1; back > 0; back--) {
        if (view->number <= back ||
            !tw_record_read_coll(board, view->comm->size, view->number - back, view->comm->rank,
                                 &theirs) ||
            !tw_view_past(view, peer, &theirs))
            continue;
        tw_record_toward_text(&theirs, view->comm->rank, text);
        (void)tw_view_mismatch(view, peer, text);
        return true;
    }
    return false;
}

static enum finding peer_look(struct tw_view *view, int peer, const struct tw_exec_wait *where)
{
    const struct tw_board *board = tw_record_board(view->comm, peer);
    const struct tw_board_lane *lane = tw_view_lane(view, board);
    struct tw_record_call theirs;
    char text[TW_RECORD_TEXT_BYTES];
    const struct presence presence = {
        .life = tw_record_word(&board->life),
        .gone = tw_chan_peer_status(view->comm->chan, peer) != TWILL_OK,
    };
    /* of a failure the control links are about to tell; it explains what follows from it */
    if (presence.life == TW_LIFE_FAILED)
        return FOUND_NOTHING;
    if (view->info->coll != TW_COLL_P2P && past_look(view, peer, board))
        return FOUND_FAILURE;
    bool absent = presence.gone || presence.life != TW_LIFE_OPEN;

    if (tw_record_word(&lane->begun) < view->number)
        return absent ? absent_fail(view, peer, &presence, where) : FOUND_LATE;
    tw_view_toward(view, peer);
    if (tw_view_theirs(view, board, &theirs) && tw_view_differ(&theirs, &view->own)) {
        tw_view_text(view, &theirs, text);
        (void)tw_view_mismatch(view, peer, text);
        return FOUND_FAILURE;
    }
    /* what an ended call had to give is on its way, even if the rank is gone */
    if (absent && tw_record_word(&lane->ended) < view->number)
        return absent_fail(view, peer, &presence, where);
    return FOUND_NOTHING;
}

enum twill_status tw_record_compare(struct twill_comm *comm, const struct tw_call_info *info,
                                    uint64_t number)
{
    struct tw_record_call own, theirs;
    struct tw_view view;
    char text[TW_RECORD_TEXT_BYTES];

    tw_record_pack(info, number, &own);
    for (int r = 0; r < comm->size; r++) {
        const struct tw_board *board = r != comm->rank ? tw_record_board(comm, r) : NULL;
        if (board == NULL || !tw_record_read_coll(board, comm->size, number, comm->rank, &theirs))
            continue;
        if (tw_record_has_pairs(&own))
            tw_record_toward(info, comm->rank, r, &own);
        if (!tw_view_differ(&theirs, &own))
            continue;
        tw_view_init(&view, comm, info, number);
        tw_view_toward(&view, r);
        tw_view_text(&view, &theirs, text);
        return tw_view_mismatch(&view, r, text);
    }
    return TWILL_OK;
}

/* ---- lateness ----------------------------------------------------------------------------------
 */

struct late {
    int count;
    int ranks[LATE_NAMED];
};

static void late_text(const struct tw_view *view, const struct late *late,
                      const struct tw_exec_wait *where, uint64_t waited_ns, struct tw_line *line)
{
    char phase[96];

    tw_line_add(line, "rank %d waits since %.3g s in %s; ", view->comm->rank,
                (double)waited_ns / 1e9, view->own_text);
    if (late->count == 0) {
        phase_text(where, phase, sizeof(phase));
        tw_line_add(line, "all are in it too (%s)", phase);
        return;
    }
    tw_line_add(line, "late: ");
    for (int i = 0; i < late->count && i < LATE_NAMED; i++) {
        tw_line_add(line, "%s", i > 0 ? "; " : "");
        tw_line_activity(line, view->comm, late->ranks[i]);
    }
    if (late->count > LATE_NAMED)
        tw_line_add(line, "; and %d more", late->count - LATE_NAMED);
}

static enum twill_status lateness_look(const struct tw_view *view, const struct late *late,
                                       const struct tw_exec_wait *where, uint64_t waited_ns,
                                       struct tw_record_wait *wait)
{
    const struct tw_params *params = view->comm->proc->params;
    bool over = params->timeout_ns > 0 && waited_ns >= params->timeout_ns;
    bool warn = params->warn_ns > 0 && waited_ns >= params->warn_ns && !wait->warned;
    char text[TW_ERROR_TEXT_BYTES];
    struct tw_line line = {text, sizeof(text), 0};

    if (!over && !warn)
        return TWILL_INPROGRESS;
    late_text(view, late, where, waited_ns, &line);
    if (over) {
        tw_comm_fail(view->comm, TWILL_ERR_TIMEOUT, "%s", text);
        return tw_comm_status(view->comm);
    }
    wait->warned = true;
    tw_warn(TW_SUB_COMM, "%s", text);
    return TWILL_INPROGRESS;
}

enum twill_status tw_record_look(struct twill_comm *comm, const struct tw_call_info *info,
                                 uint64_t number, const struct tw_exec_wait *where,
                                 struct tw_record_wait *wait)
{
    uint64_t now = tw_now_ns();
    struct late late = {0};
    struct tw_view view;

    if (tw_comm_status(comm) != TWILL_OK)
        return tw_comm_status(comm);
    if (now < wait->next_ns)
        return TWILL_INPROGRESS;
    uint64_t waited_ns = now > wait->since_ns ? now - wait->since_ns : 0;
    uint64_t pause_ns = waited_ns / 8;
    pause_ns = pause_ns < LOOK_LEAST_NS ? LOOK_LEAST_NS : pause_ns;
    wait->next_ns = now + (pause_ns > LOOK_MOST_NS ? LOOK_MOST_NS : pause_ns);
    tw_view_init(&view, comm, info, number);
    for (int r = 0; r < comm->size; r++) {
        if (r == comm->rank || (info->coll == TW_COLL_P2P && r != info->peer))
            continue;
        enum finding finding = peer_look(&view, r, where);
        if (finding == FOUND_FAILURE)
            return tw_comm_status(comm);
        if (finding == FOUND_LATE && late.count++ < LATE_NAMED)
            late.ranks[late.count - 1] = r;
    }
    return lateness_look(&view, &late, where, waited_ns, wait);
}

bool tw_record_late(struct twill_comm *comm, const char *where, bool anyway)
{
    char text[TW_ERROR_TEXT_BYTES];
    struct tw_line line = {text, sizeof(text), 0};
    int named = 0;

    tw_line_add(&line, "rank %d waited in vain in %s; late: ", comm->rank, where);
    for (int r = 0; r < comm->size && named < LATE_NAMED; r++) {
        const struct tw_board *board = tw_record_board(comm, r);
        if (r == comm->rank || board == NULL || tw_record_word(&board->life) != TW_LIFE_OPEN)
            continue;
        tw_line_add(&line, "%s", named++ > 0 ? "; " : "");
        tw_line_activity(&line, comm, r);
    }
    if (named == 0 && !anyway)
        return false;
    if (named == 0)
        tw_line_add(&line, "nobody, but the news has not come");
    tw_comm_fail(comm, TWILL_ERR_TIMEOUT, "%s", text);
    return true;
}
