/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the order in which lanes and their steps run, the life of a call.
 * Never knows: what a step does. */
#include "device/exec.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "device/exec_state.h"

#define TURN_SLICES 16 /* that a lane may run before the others get their turn */
#define TURNS 64       /* of all lanes in one progress: the caller looks after its deadlines */

/* ---- life ----------------------------------------------------------------------------------- */

enum twill_status tw_exec_create(struct tw_chan *chan, enum tw_isa isa, size_t scratch_bytes,
                                 uint64_t *signal_base, struct tw_exec **exec)
{
    struct tw_exec *made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return tw_fail(TWILL_ERR_NOMEM, "no memory for an executor");
    }
    made->chan = chan;
    made->isa = isa;
    made->scratch_bytes = scratch_bytes;
    made->signal_base = signal_base;
    if (scratch_bytes > 0) {
        made->scratch = tw_alloc(scratch_bytes);
        if (made->scratch == NULL) {
            free(made);
            return TWILL_ERR_NOMEM;
        }
    }
    *exec = made;
    return TWILL_OK;
}

size_t tw_exec_scratch_bytes(const struct tw_exec *exec)
{
    return exec->scratch != NULL ? exec->scratch_bytes : 0;
}

void tw_exec_destroy(struct tw_exec *exec)
{
    if (exec == NULL) {
        return;
    }
    free(exec->scratch);
    free(exec->lanes);
    free(exec->peers);
    free(exec->peer_of);
    free(exec->displs);
    free(exec);
}

enum twill_status tw_exec_grow(struct tw_exec *exec, const struct tw_plan *plan, uint32_t nlanes)
{
    const uint32_t nranks = (uint32_t)plan->nranks;

    if (nlanes > exec->lanes_cap) {
        struct tw_exec_lane *lanes = realloc(exec->lanes, nlanes * sizeof(*lanes));

        if (lanes == NULL) {
            return tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for %u lanes", plan->name, nlanes);
        }
        exec->lanes = lanes;
        exec->lanes_cap = nlanes;
    }
    if (nranks > exec->peers_cap) {
        struct tw_exec_peer *peers = realloc(exec->peers, nranks * sizeof(*peers));
        int *peer_of = NULL;

        if (peers != NULL) {
            exec->peers = peers;
            peer_of = realloc(exec->peer_of, nranks * sizeof(*peer_of));
        }
        if (peer_of == NULL) {
            return tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for %u peers", plan->name, nranks);
        }
        exec->peer_of = peer_of;
        exec->peers_cap = nranks;
    }
    return TWILL_OK;
}

/* ---- start ---------------------------------------------------------------------------------- */

size_t tw_exec_span_most(const struct tw_exec *exec, const struct tw_plan_span *span)
{
    size_t most = 0;

    for (uint32_t i = 0; i < tw_span_cells(span); i++) {
        const size_t elems = tw_exec_cell_elems(&exec->parts[span->part], tw_span_cell(span, i));

        most = elems > most ? elems : most;
    }
    return most;
}

uint64_t tw_exec_step_loops(const struct tw_exec *exec, const struct tw_plan_step *step)
{
    const size_t per_loop = exec->shape.slice_elems * exec->shape.slices;
    const struct tw_plan_span *span = tw_exec_src(step) != NULL ? &step->src : tw_exec_dst(step);
    const size_t most = span != NULL ? tw_exec_span_most(exec, span) : 0;

    return most == 0 ? 1 : most / per_loop + (most % per_loop != 0);
}

static uint64_t lane_loops(const struct tw_exec *exec, const struct tw_plan_lane *lane)
{
    uint64_t loops = 1;

    if (!exec->pairs) {
        return exec->shape.loops;
    }
    for (uint32_t s = 0; s < lane->nsteps; s++) {
        const uint64_t need = tw_exec_step_loops(exec, &lane->steps[s]);

        loops = need > loops ? need : loops;
    }
    return loops;
}

static void start_lanes(struct tw_exec *exec, const struct tw_plan_rank *mine)
{
    exec->nlanes = mine->nlanes;
    exec->lanes_live = 0;
    for (uint32_t l = 0; l < mine->nlanes; l++) {
        struct tw_exec_lane *lane = &exec->lanes[l];

        *lane = (struct tw_exec_lane){
            .steps = mine->lanes[l].steps, .nsteps = mine->lanes[l].nsteps, .peer = TW_NO_RANK};
        if (lane->nsteps == 0) {
            lane->loop = TW_LANE_DONE;
        } else {
            lane->loops = lane_loops(exec, &mine->lanes[l]);
            exec->lanes_live++;
        }
    }
}

/* Receive ends never wait; the senders' ends may, until the peer has drained them. */
static enum twill_status lay_receivers(struct tw_exec *exec)
{
    const struct tw_plan *plan = exec->call.plan;

    for (uint32_t p = 0; p < exec->npeers; p++) {
        if (exec->peers[p].recv) {
            enum twill_status status = tw_chan_layout_recv(exec->chan, exec->peers[p].rank,
                                                           plan->nfifos, tw_exec_depth(plan));
            if (status != TWILL_OK) {
                return status;
            }
        }
    }
    return TWILL_OK;
}

enum twill_status tw_exec_start(struct tw_exec *exec, const struct tw_exec_call *call)
{
    const struct tw_plan *plan = call->plan;
    enum twill_status status;

    if (exec->phase != TW_PHASE_IDLE && exec->phase != TW_PHASE_DONE) {
        return tw_fail(TWILL_ERR_USAGE, "plan %s: the executor still runs a call", plan->name);
    }
    if (call->rank < 0 || call->rank >= plan->nranks) {
        return tw_fail(TWILL_ERR_INVALID, "plan %s of %d ranks has no rank %d", plan->name,
                       plan->nranks, call->rank);
    }
    exec->call = *call;
    status = tw_exec_grow(exec, plan, plan->ranks[call->rank].nlanes);
    if (status == TWILL_OK) {
        status = tw_exec_bind(exec);
    }
    if (status == TWILL_OK) {
        status = lay_receivers(exec);
    }
    if (status != TWILL_OK) {
        exec->phase = TW_PHASE_IDLE;
        return status;
    }
    start_lanes(exec, &plan->ranks[call->rank]);
    exec->signal_now = exec->signal_base != NULL ? *exec->signal_base : 0;
    exec->failed = TWILL_OK;
    exec->phase = TW_PHASE_LAYOUT;
    return TWILL_OK;
}

/* ---- progress ------------------------------------------------------------------------------- */

/* Has the step on which this one depends finished this slice (or, WHOLE, all) of this loop? */
static bool dependency_met(const struct tw_exec *exec, const struct tw_exec_lane *lane)
{
    const struct tw_plan_step *step = &lane->steps[lane->step];
    const struct tw_exec_lane *on;

    if (step->dep_lane == TW_NO_LANE) {
        return true;
    }
    on = &exec->lanes[step->dep_lane];
    if (on->loop != lane->loop) {
        return on->loop > lane->loop;
    }
    if (on->step != step->dep_step) {
        return on->step > step->dep_step;
    }
    return !(step->flags & TW_STEP_WHOLE) && on->slice > lane->slice;
}

static void lane_next(struct tw_exec *exec, struct tw_exec_lane *lane)
{
    if (++lane->slice < exec->shape.slices) {
        return;
    }
    lane->slice = 0;
    if (++lane->step < lane->nsteps) {
        return;
    }
    lane->step = 0;
    if (++lane->loop == lane->loops) {
        lane->loop = TW_LANE_DONE;
        exec->lanes_live--;
    }
}

/* One slice. In plans with pairs a step sits out the loops that its own cells do not reach. */
static enum twill_status lane_step(struct tw_exec *exec, struct tw_exec_lane *lane)
{
    if (!dependency_met(exec, lane)) {
        lane->phase = TW_PHASE_IDLE;
        lane->peer = TW_NO_RANK;
        return TWILL_ERR_AGAIN;
    }
    if (exec->pairs && lane->loop >= tw_exec_step_loops(exec, &lane->steps[lane->step])) {
        return TWILL_OK;
    }
    return tw_exec_step(exec, lane);
}

static enum twill_status lane_turn(struct tw_exec *exec, struct tw_exec_lane *lane, bool *moved)
{
    enum twill_status status = TWILL_OK;

    for (int i = 0; i < TURN_SLICES && lane->loop != TW_LANE_DONE; i++) {
        status = lane_step(exec, lane);
        if (status != TWILL_OK) {
            break;
        }
        *moved = true;
        lane_next(exec, lane);
    }
    return status == TWILL_ERR_AGAIN ? TWILL_OK : status;
}

static enum twill_status finish(struct tw_exec *exec)
{
    const struct tw_plan *plan = exec->call.plan;

    if (exec->signal_base != NULL && plan->nsigs > 0) {
        *exec->signal_base = exec->signal_now + exec->shape.loops * plan->sig_max;
    }
    exec->phase = TW_PHASE_DONE;
    return TWILL_OK;
}

static enum twill_status run_lanes(struct tw_exec *exec, bool *advanced)
{
    bool moved = true;

    for (int turn = 0; turn < TURNS && moved && exec->lanes_live > 0; turn++) {
        moved = false;
        for (uint32_t l = 0; l < exec->nlanes; l++) {
            enum twill_status status = lane_turn(exec, &exec->lanes[l], &moved);

            if (status != TWILL_OK) {
                exec->failed = status;
                exec->failed_lane = l;
                return status;
            }
        }
        *advanced |= moved;
    }
    return exec->lanes_live > 0 ? TWILL_INPROGRESS : finish(exec);
}

enum twill_status tw_exec_progress(struct tw_exec *exec, bool *advanced)
{
    enum twill_status status;
    bool ignored;

    advanced = advanced != NULL ? advanced : &ignored;
    *advanced = false;
    if (exec->failed != TWILL_OK) {
        return exec->failed;
    }
    if (exec->phase == TW_PHASE_DONE) {
        return TWILL_OK;
    }
    if (exec->phase == TW_PHASE_IDLE) {
        return tw_fail(TWILL_ERR_USAGE, "the executor runs no call");
    }
    if (exec->phase == TW_PHASE_LAYOUT) {
        status = tw_exec_lay(exec);
        if (status == TWILL_ERR_AGAIN) {
            return TWILL_INPROGRESS;
        }
        if (status != TWILL_OK) {
            exec->failed = status;
            return status;
        }
        exec->phase = TW_PHASE_RECV;
        *advanced = true;
    }
    return run_lanes(exec, advanced);
}

void tw_exec_cancel(struct tw_exec *exec)
{
    exec->phase = TW_PHASE_IDLE;
    exec->failed = TWILL_OK;
}

/* ---- reports -------------------------------------------------------------------------------- */

/* The lane that failed; else the first that waits for a peer; else the first that waits at all. */
static const struct tw_exec_lane *waiting_lane(const struct tw_exec *exec)
{
    const struct tw_exec_lane *first = NULL;

    if (exec->failed != TWILL_OK) {
        return &exec->lanes[exec->failed_lane];
    }
    for (uint32_t l = 0; l < exec->nlanes; l++) {
        const struct tw_exec_lane *lane = &exec->lanes[l];

        if (lane->loop == TW_LANE_DONE) {
            continue;
        }
        if (lane->phase != TW_PHASE_IDLE) {
            return lane;
        }
        first = first == NULL ? lane : first;
    }
    return first;
}

void tw_exec_where(const struct tw_exec *exec, struct tw_exec_wait *wait)
{
    const struct tw_exec_lane *lane;

    *wait = (struct tw_exec_wait){.phase = exec->phase, .peer = TW_NO_RANK};
    if (exec->phase == TW_PHASE_LAYOUT && exec->peers_laid < exec->npeers) {
        wait->peer = exec->peers[exec->peers_laid].rank;
    }
    lane = exec->phase == TW_PHASE_RECV ? waiting_lane(exec) : NULL;
    if (lane == NULL) {
        return;
    }
    wait->phase = lane->phase;
    wait->peer = lane->peer;
    wait->lane = (uint16_t)(lane - exec->lanes);
    wait->step = lane->step;
    wait->slice = lane->slice;
    wait->loop = lane->loop;
}

uint64_t tw_exec_mismatch(const struct tw_exec *exec) { return exec->found_header; }
