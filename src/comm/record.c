/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a long wait means: calls that do not match, ranks that are late or gone.
 * Never knows: how a call runs. */
#include "config.h"

#include "comm/record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"

#define LOOK_LEAST_NS TW_NS_MS
#define LOOK_MOST_NS (100 * TW_NS_MS)
#define LATE_NAMED 4 /* ranks named in one sentence */

/* What one waits in. */
struct view {
    struct twill_comm *comm;
    const struct tw_call_info *info;
    struct tw_record_call own;
    char own_text[TW_RECORD_TEXT_BYTES];
    uint64_t number;
};

static void view_init(struct view *view, struct twill_comm *comm, const struct tw_call_info *info,
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

/* ---- what a rank does --------------------------------------------------------------------------
 */

/* A text that grows; what does not fit is cut. */
struct line {
    char *text;
    size_t bytes, used;
};

__attribute__((format(printf, 2, 3))) static void line_add(struct line *line, const char *format,
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

static void activity_add(struct line *line, struct twill_comm *comm, int rank)
{
    char text[TW_RECORD_TEXT_BYTES + 32];

    if (!tw_record_last(comm, rank, text, sizeof(text)))
        (void)snprintf(text, sizeof(text), "in no call yet");
    line_add(line, "rank %d is %s", rank, text);
}

/* ---- findings ----------------------------------------------------------------------------------
 */

static bool calls_differ(const struct tw_record_call *a, const struct tw_record_call *b)
{
    return a->what != b->what || a->count != b->count || a->algo_hash != b->algo_hash;
}

static enum twill_status mismatch_fail(const struct view *view, int peer, const char *peer_text)
{
    bool same_words = strcmp(peer_text, view->own_text) == 0;

    tw_comm_fail(view->comm, TWILL_ERR_MISMATCH, "rank %d called %s, rank %d called %s%s", peer,
                 peer_text, view->comm->rank, view->own_text,
                 same_words ? ", but with another plan" : "");
    return tw_comm_status(view->comm);
}

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

/* The lane on peer's board that must hold the counterpart of the call. */
static const struct tw_board_lane *counterpart(const struct view *view,
                                               const struct tw_board *board)
{
    if (view->info->coll == TW_COLL_P2P)
        return &board->pairs[tw_record_pair(view->comm->rank, !view->info->is_send)];
    return &board->colls;
}

static void counterpart_text(const struct view *view, const struct tw_record_call *call,
                             char text[TW_RECORD_TEXT_BYTES])
{
    if (view->info->coll == TW_COLL_P2P)
        tw_record_pair_text(call, view->comm->rank, !view->info->is_send, text);
    else
        tw_record_text(call, text);
}

enum finding { FOUND_NOTHING, FOUND_LATE, FOUND_FAILURE };

/* The peer's state, read before its numbers: whatever it began or ended, it did before it left. */
struct presence {
    uint64_t life;
    bool gone;
};

/* The peer will not come: its process is gone, or it ends its part. */
static enum finding absent_fail(const struct view *view, int peer, const struct presence *presence,
                                const struct tw_exec_wait *where)
{
    char phase[96];

    if (presence->life != TW_LIFE_OPEN) {
        tw_comm_fail(view->comm, TWILL_ERR_MISMATCH, "rank %d %s, rank %d called %s", peer,
                     presence->life == TW_LIFE_FINALIZING ? "is in finalize"
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

static enum finding peer_look(const struct view *view, int peer, const struct tw_exec_wait *where)
{
    const struct tw_board *board = tw_record_board(view->comm, peer);
    const struct tw_board_lane *lane = counterpart(view, board);
    struct tw_record_call theirs;
    char text[TW_RECORD_TEXT_BYTES];
    const struct presence presence = {
        .life = tw_record_word(&board->life),
        .gone = tw_chan_peer_status(view->comm->chan, peer) != TWILL_OK,
    };
    /* of a failure the control links are about to tell; it explains what follows from it */
    if (presence.life == TW_LIFE_FAILED)
        return FOUND_NOTHING;
    bool absent = presence.gone || presence.life != TW_LIFE_OPEN;

    if (tw_record_word(&lane->begun) < view->number)
        return absent ? absent_fail(view, peer, &presence, where) : FOUND_LATE;
    if (tw_record_read(lane, view->number, &theirs) && calls_differ(&theirs, &view->own)) {
        counterpart_text(view, &theirs, text);
        (void)mismatch_fail(view, peer, text);
        return FOUND_FAILURE;
    }
    /* what an ended call had to give is on its way, even if the rank is gone */
    if (absent && tw_record_word(&lane->ended) < view->number)
        return absent_fail(view, peer, &presence, where);
    return FOUND_NOTHING;
}

/* ---- lateness ----------------------------------------------------------------------------------
 */

struct late {
    int count;
    int ranks[LATE_NAMED];
};

static void late_text(const struct view *view, const struct late *late,
                      const struct tw_exec_wait *where, uint64_t waited_ns, struct line *line)
{
    char phase[96];

    line_add(line, "rank %d waits since %.3g s in %s; ", view->comm->rank, (double)waited_ns / 1e9,
             view->own_text);
    if (late->count == 0) {
        phase_text(where, phase, sizeof(phase));
        line_add(line, "all are in it too (%s)", phase);
        return;
    }
    line_add(line, "late: ");
    for (int i = 0; i < late->count && i < LATE_NAMED; i++) {
        line_add(line, "%s", i > 0 ? "; " : "");
        activity_add(line, view->comm, late->ranks[i]);
    }
    if (late->count > LATE_NAMED)
        line_add(line, "; and %d more", late->count - LATE_NAMED);
}

static enum twill_status lateness_look(const struct view *view, const struct late *late,
                                       const struct tw_exec_wait *where, uint64_t waited_ns,
                                       struct tw_record_wait *wait)
{
    const struct tw_params *params = view->comm->proc->params;
    bool over = params->timeout_ns > 0 && waited_ns >= params->timeout_ns;
    bool warn = params->warn_ns > 0 && waited_ns >= params->warn_ns && !wait->warned;
    char text[TW_ERROR_TEXT_BYTES];
    struct line line = {text, sizeof(text), 0};

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
    struct view view;

    if (tw_comm_status(comm) != TWILL_OK)
        return tw_comm_status(comm);
    if (now < wait->next_ns)
        return TWILL_INPROGRESS;
    uint64_t waited_ns = now > wait->since_ns ? now - wait->since_ns : 0;
    uint64_t pause_ns = waited_ns / 8;
    pause_ns = pause_ns < LOOK_LEAST_NS ? LOOK_LEAST_NS : pause_ns;
    wait->next_ns = now + (pause_ns > LOOK_MOST_NS ? LOOK_MOST_NS : pause_ns);
    view_init(&view, comm, info, number);
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

void tw_record_late(struct twill_comm *comm, const char *where)
{
    char text[TW_ERROR_TEXT_BYTES];
    struct line line = {text, sizeof(text), 0};
    int named = 0;

    line_add(&line, "rank %d waited in vain in %s; late: ", comm->rank, where);
    for (int r = 0; r < comm->size && named < LATE_NAMED; r++) {
        const struct tw_board *board = tw_record_board(comm, r);
        if (r == comm->rank || board == NULL || tw_record_word(&board->life) != TW_LIFE_OPEN)
            continue;
        line_add(&line, "%s", named++ > 0 ? "; " : "");
        activity_add(&line, comm, r);
    }
    if (named == 0)
        line_add(&line, "nobody, but the news has not come");
    tw_comm_fail(comm, TWILL_ERR_TIMEOUT, "%s", text);
}

/* ---- foreign messages --------------------------------------------------------------------------
 */

/* Which of peer's collectives sends messages with this header? */
static bool coll_find(const struct view *view, const struct tw_board *board, uint64_t found,
                      struct tw_record_call *call)
{
    for (uint64_t i = 0; i < TW_RECORD_DEPTH; i++) {
        uint64_t number = tw_record_word(&board->colls.begun) - i;
        if (tw_record_read(&board->colls, number, call) &&
            tw_record_hash(view->comm->id_hash, call) == found)
            return true;
    }
    return false;
}

/* Which of its sends? */
static bool send_find(const struct view *view, int peer, const struct tw_board *board,
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

/* An own collective that is over already did not match theirs of the same number: it went through
 * without the peer's part, and is the one to name. */
static void own_past(struct view *view, const struct tw_record_call *theirs)
{
    const struct tw_board *board = tw_record_board(view->comm, view->comm->rank);
    struct tw_record_call past;

    if (theirs->number >= view->number || board == NULL ||
        !tw_record_read(&board->colls, theirs->number, &past) || !calls_differ(theirs, &past))
        return;
    view->own = past;
    tw_record_text(&past, view->own_text);
}

static bool header_find(struct view *view, int peer, const struct tw_board *board, uint64_t found,
                        char text[TW_RECORD_TEXT_BYTES])
{
    struct tw_record_call call;

    if (coll_find(view, board, found, &call)) {
        if (view->info->coll != TW_COLL_P2P)
            own_past(view, &call);
        tw_record_text(&call, text);
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
    struct view view;

    if (tw_comm_status(comm) != TWILL_OK)
        return tw_comm_status(comm);
    view_init(&view, comm, info, number);
    /* Its call of the same number says more than a later one, whose message this may be. */
    const struct tw_board_lane *lane = board != NULL ? counterpart(&view, board) : NULL;
    if (lane != NULL && tw_record_read(lane, number, &theirs) && calls_differ(&theirs, &view.own)) {
        counterpart_text(&view, &theirs, text);
        return mismatch_fail(&view, peer, text);
    }
    if (board != NULL && header_find(&view, peer, board, found, text))
        return mismatch_fail(&view, peer, text);
    tw_comm_fail(comm, TWILL_ERR_MISMATCH,
                 "rank %d sent a message of another call (header %#" PRIx64 "), rank %d called %s",
                 peer, found, comm->rank, view.own_text);
    return tw_comm_status(comm);
}
