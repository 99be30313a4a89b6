/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the order in which the lanes of a plan's program run their slices, FIFOs, signals.
 * Never knows: element types, what a slice does.
 *
 * A block runs every lane whose number is its own modulo the blocks there are, slice by slice,
 * whichever can go on: so lanes may be many and still none keeps another from going on. Its first
 * thread decides, the others follow. The order is that of src/plan/plan.h, as src/device/exec.c
 * keeps it on the host.
 */
#ifndef TW_DEVICE_CUDA_TURN_CUH
#define TW_DEVICE_CUDA_TURN_CUH

#include "device/cuda/sync.cuh"

#define TW_LANE_ENDED UINT32_MAX /* in place of the count of a lane's slices */

/* In shared memory: the slice that the block runs. */
struct tw_turn {
    bool over; /* there is none: the call is done here, or has failed */
    uint32_t lane, step, slice;
    uint64_t loop;
    char *slot, *message; /* where the step has one; behind their heads */
    uint32_t message_bytes;
    uint32_t next; /* lane to look at first */
    int peer;      /* that something waits for; -1: none */
};

/* What a block knows of the plan. */
struct tw_player {
    struct tw_block *me;
    const struct tw_gk_plan *plan;
    const struct tw_gk_program *program;
};

/* ---- words -------------------------------------------------------------------------------------
 */

static __device__ inline uint64_t tw_tally(const struct tw_player *player, uint32_t count)
{
    return (uint64_t)player->me->epoch << 32 | count;
}

static __device__ inline uint32_t tw_tallied(const struct tw_player *player, const uint64_t *at)
{
    const uint64_t word = tw_load_acquire(at);

    return (uint32_t)(word >> 32) == player->me->epoch ? (uint32_t)word : 0;
}

/* ---- where plans' things lie -------------------------------------------------------------------
 */

static __device__ inline uint64_t *tw_signal_word(const struct tw_player *player, int rank,
                                                  const struct tw_gk_step *step, uint32_t slice)
{
    const struct tw_gk_call *call = player->me->call;

    return (uint64_t *)(tw_mem(call, rank) + call->layout.plan) + step->sig * player->plan->slices +
           slice;
}

/* Written by `from` in the memory of `at`: messages that it has sent there, or those of `at` that
 * it has read. */
static __device__ inline uint64_t *tw_fifo_word(const struct tw_gk_call *call, int at, int from,
                                                bool drained, uint32_t fifo)
{
    return (uint64_t *)(tw_mem(call, at) + call->layout.plan) +
           TW_GK_PLAN_SIGNALS * (uint32_t)call->size +
           ((uint32_t)from * 2 + drained) * TW_GK_PLAN_FIFOS + fifo;
}

static __device__ inline char *tw_fifo_slot(const struct tw_player *player, int at, int from,
                                            uint32_t fifo, uint32_t number)
{
    const struct tw_gk_call *call = player->me->call;
    const uint32_t slot = fifo * player->plan->depth + number % player->plan->depth;

    return tw_mem(call, at) + call->layout.plan + TW_GK_PLAN_FIFOS_AT((uint32_t)call->size) +
           (uint64_t)tw_peer_index(at, from) * call->layout.plan_fifo_each +
           (uint64_t)slot * player->plan->stride;
}

static __device__ inline char *tw_plan_scratch(const struct tw_gk_call *call, int rank)
{
    return tw_mem(call, rank) + call->layout.plan + TW_GK_PLAN_FIFOS_AT((uint32_t)call->size) +
           (uint64_t)(call->size - 1) * call->layout.plan_fifo_each;
}

/* The rank's own count of messages to or from a peer. */
static __device__ inline uint64_t *tw_fifo_own(uint64_t *counts, int peer, uint32_t fifo)
{
    return counts + (uint32_t)peer * TW_GK_PLAN_FIFOS + fifo;
}

/* ---- cells -------------------------------------------------------------------------------------
 */

static __device__ inline uint32_t tw_cell_of(const struct tw_gk_span *span, uint32_t i)
{
    return span->first + i / span->block * span->stride + i % span->block;
}

static __device__ inline uint64_t tw_group_elems(const struct tw_player *player,
                                                 const struct tw_gk_part *part, uint32_t group)
{
    const struct tw_gk_pair *pair = &player->me->pairs[group];

    return (part->counted == 1 ? pair->in_bytes : pair->out_bytes) / player->me->call->elem_bytes;
}

/* Elements of a cell. */
static __device__ inline uint64_t tw_cell_elems(const struct tw_player *player,
                                                const struct tw_gk_part *part, uint32_t cell)
{
    const uint32_t sub = cell % part->per;

    if (part->counted == 0)
        return part->each + (part->shift + sub < part->rest);
    const uint64_t count = tw_group_elems(player, part, cell / part->per);

    return count / part->per + (sub < count % part->per);
}

/* Elements in the buffer before it. */
static __device__ inline uint64_t tw_cell_first(const struct tw_player *player,
                                                const struct tw_gk_part *part, uint32_t cell)
{
    const uint32_t group = cell / part->per, sub = cell % part->per;

    if (part->counted == 0)
        return group * part->count + sub * part->each + (sub < part->rest ? sub : part->rest);
    const struct tw_gk_pair *pair = &player->me->pairs[group];
    const uint64_t count = tw_group_elems(player, part, group), rest = count % part->per;

    return (part->counted == 1 ? pair->in_at : pair->out_at) / player->me->call->elem_bytes +
           sub * (count / part->per) + (sub < rest ? sub : rest);
}

/* Loops that a step takes part in. */
static __device__ inline uint64_t tw_step_loops(const struct tw_player *player,
                                                const struct tw_gk_step *step)
{
    const struct tw_gk_span *span = step->src.cells != 0 ? &step->src : &step->dst;
    const uint64_t per_loop = player->plan->slice_elems * player->plan->slices;
    uint64_t most = 0;

    for (uint32_t i = 0; i < span->cells; i++) {
        const uint64_t elems =
            tw_cell_elems(player, &player->plan->parts[span->part], tw_cell_of(span, i));

        most = elems > most ? elems : most;
    }
    return most == 0 ? 1 : (most + per_loop - 1) / per_loop;
}

/* ---- lanes -------------------------------------------------------------------------------------
 */

/* The block's first thread. Until a lane's word is of this call nobody takes it for begun. */
static __device__ __noinline__ void tw_lanes_begin(const struct tw_player *player)
{
    const struct tw_gk_program *program = player->program;

    for (uint32_t l = player->me->block; l < program->lanes; l += player->me->blocks) {
        const struct tw_gk_lane *lane = &program->lane[l];
        uint64_t loops = player->plan->sits_out ? 1 : player->plan->loops;

        for (uint32_t s = 0; s < lane->steps && player->plan->sits_out; s++) {
            const uint64_t need = tw_step_loops(player, &program->step[lane->first + s]);

            loops = need > loops ? need : loops;
        }
        program->loops[l] = (uint32_t)loops;
        tw_store_release(&program->done[l], tw_tally(player, lane->steps == 0 ? TW_LANE_ENDED : 0));
    }
}

/* One more slice of a lane has ended. */
static __device__ inline void tw_lane_next(const struct tw_player *player, uint32_t l)
{
    const struct tw_gk_program *program = player->program;
    const uint32_t all = program->loops[l] * program->lane[l].steps * player->plan->slices;
    const uint32_t done = tw_tallied(player, &program->done[l]) + 1;

    tw_store_release(&program->done[l], tw_tally(player, done == all ? TW_LANE_ENDED : done));
}

static __device__ inline bool tw_dependency_met(const struct tw_player *player,
                                                const struct tw_gk_step *step, uint64_t loop,
                                                uint32_t slice)
{
    const uint32_t slices = player->plan->slices;

    if (step->dep_lane == TW_GK_NO_LANE)
        return true;
    const uint64_t before =
        (loop * player->program->lane[step->dep_lane].steps + step->dep_step) * slices;
    const uint64_t need = before + (step->flags & TW_GK_STEP_WHOLE ? slices : slice + 1);

    return tw_tallied(player, &player->program->done[step->dep_lane]) >= need;
}

static __device__ inline bool tw_step_takes(const struct tw_gk_step *step)
{
    return step->local == TW_GK_AT_MESSAGE || step->other == TW_GK_AT_MESSAGE;
}

/* What a step of data waits for is there: turn gets its message and slot. */
static __device__ inline bool tw_turn_take(const struct tw_player *player,
                                           const struct tw_gk_step *step, struct tw_turn *turn)
{
    const struct tw_gk_call *call = player->me->call;
    const struct tw_gk_program *program = player->program;

    turn->message = turn->slot = nullptr;
    turn->message_bytes = 0;
    if (tw_step_takes(step)) {
        const uint32_t taken =
            tw_tallied(player, tw_fifo_own(program->taken, step->from, step->fifo_in));

        turn->peer = step->from;
        if (tw_tallied(player, tw_fifo_word(call, call->rank, step->from, false, step->fifo_in)) <=
            taken)
            return false;
        turn->message = tw_fifo_slot(player, call->rank, step->from, step->fifo_in, taken);
        turn->message_bytes = tw_load((const uint32_t *)turn->message);
        turn->message += TW_GK_PLAN_HEAD;
    }
    if (step->to == TW_GK_AT_SLOT) {
        const uint32_t sent =
            tw_tallied(player, tw_fifo_own(program->sent, step->to_rank, step->fifo_out));

        turn->peer = step->to_rank;
        if (sent - tw_tallied(player, tw_fifo_word(call, call->rank, step->to_rank, true,
                                                   step->fifo_out)) >=
            player->plan->depth)
            return false;
        turn->slot =
            tw_fifo_slot(player, step->to_rank, call->rank, step->fifo_out, sent) + TW_GK_PLAN_HEAD;
    }
    return true;
}

/* Signals are raised and awaited here. What the block has put before is behind a fence. */
static __device__ inline bool tw_turn_signal(const struct tw_player *player,
                                             const struct tw_gk_step *step, struct tw_turn *turn)
{
    const struct tw_gk_call *call = player->me->call;
    const uint32_t value = (uint32_t)turn->loop * player->plan->sig_max + step->sig_value;

    if (step->kind == TW_GK_STEP_SIGNAL) {
        tw_fence();
        tw_store_release(tw_signal_word(player, step->to_rank, step, turn->slice),
                         tw_tally(player, value));
        return true;
    }
    turn->peer = step->from;
    return tw_tallied(player, tw_signal_word(player, call->rank, step, turn->slice)) >= value;
}

/* A lane's slices that move nothing are run. True: one is there that does, turn says which. */
static __device__ inline bool tw_turn_lane(const struct tw_player *player, uint32_t l,
                                           struct tw_turn *turn, bool *ended)
{
    const struct tw_gk_lane *lane = &player->program->lane[l];
    const uint32_t slices = player->plan->slices;

    for (;;) {
        const uint32_t done = tw_tallied(player, &player->program->done[l]);

        *ended = done == TW_LANE_ENDED;
        if (*ended)
            return false;
        turn->lane = l;
        turn->slice = done % slices;
        turn->step = lane->first + done / slices % lane->steps;
        turn->loop = done / slices / lane->steps;
        const struct tw_gk_step *step = &player->program->step[turn->step];

        if (!tw_dependency_met(player, step, turn->loop, turn->slice))
            return false;
        if (!player->plan->sits_out || turn->loop < tw_step_loops(player, step)) {
            if (step->kind == TW_GK_STEP_DATA)
                return tw_turn_take(player, step, turn);
            if (!tw_turn_signal(player, step, turn))
                return false;
        }
        tw_lane_next(player, l);
    }
}

/* ---- turns -------------------------------------------------------------------------------------
 */

/* True: turn says what is next. */
static __device__ inline bool tw_turn_try(const struct tw_player *player, struct tw_turn *turn)
{
    const uint32_t blocks = player->me->blocks, lanes = player->program->lanes;
    const uint32_t own =
        player->me->block < lanes ? (lanes - player->me->block + blocks - 1) / blocks : 0;
    bool all = true;

    turn->peer = -1;
    for (uint32_t i = 0; i < own; i++) {
        const uint32_t at = (turn->next + i) % own;
        bool ended = false;

        if (tw_turn_lane(player, player->me->block + at * blocks, turn, &ended)) {
            turn->next = at + 1;
            return true;
        }
        all &= ended;
    }
    turn->over = all;
    return all;
}

/* True: the wait is given up. What another block of this rank keeps from going on is for that one
 * to tell of: a wait that this one has told of is over. */
static __device__ inline bool tw_turn_look(struct tw_block *me, int peer, struct tw_wait *wait)
{
    if (peer < 0) {
        tw_wait_over(me, wait);
        *wait = {.looks = wait->looks};
    }
    return tw_wait_look(me->call, me->pairs, me->words, me->epoch, peer < 0 ? me->call->rank : peer,
                        wait);
}

/* The block's first thread: waits for something to do. */
static __device__ __noinline__ void tw_turn_next(const struct tw_player *player,
                                                 struct tw_turn *turn)
{
    struct tw_block *me = player->me;
    struct tw_wait wait = {};

    for (uint32_t spins = 1; !me->dead && !tw_turn_try(player, turn); spins++)
        if (spins % TW_SPINS_LOOK == 0)
            me->dead = tw_turn_look(me, turn->peer, &wait);
    tw_wait_over(me, &wait);
    turn->over |= me->dead;
}

/* The block's first thread: all threads have done their part of the slice. filled: bytes of the
 * slot */
static __device__ __noinline__ void tw_turn_end(const struct tw_player *player,
                                                const struct tw_turn *turn, uint32_t filled)
{
    const struct tw_gk_call *call = player->me->call;
    const struct tw_gk_program *program = player->program;
    const struct tw_gk_step *step = &program->step[turn->step];

    if (turn->slot != nullptr)
        tw_store((uint32_t *)(turn->slot - TW_GK_PLAN_HEAD), filled);
    tw_fence();
    if (turn->slot != nullptr) {
        uint64_t *own = tw_fifo_own(program->sent, step->to_rank, step->fifo_out);
        const uint64_t sent = tw_tally(player, tw_tallied(player, own) + 1);

        *own = sent;
        tw_store_release(tw_fifo_word(call, step->to_rank, call->rank, false, step->fifo_out),
                         sent);
    }
    if (turn->message != nullptr) {
        uint64_t *own = tw_fifo_own(program->taken, step->from, step->fifo_in);
        const uint64_t taken = tw_tally(player, tw_tallied(player, own) + 1);

        *own = taken;
        tw_store_release(tw_fifo_word(call, step->from, call->rank, true, step->fifo_in), taken);
    }
    tw_lane_next(player, turn->lane);
}

#endif
