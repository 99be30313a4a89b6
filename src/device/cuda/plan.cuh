/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a slice of each kind of step does, for any plan.
 * Never knows: the order of slices, which types there are.
 *
 * Results are those of src/device/exec_step.c and exec_value.c on the host, bit for bit.
 */
#ifndef TW_DEVICE_CUDA_PLAN_CUH
#define TW_DEVICE_CUDA_PLAN_CUH

#include "device/cuda/adder.cuh"
#include "device/cuda/turn.cuh"

/* Elements in memory, or none (at NULL). */
struct tw_spot {
    char *at;
    bool wide; /* unrounded partial results */
    bool raw;  /* an operand that is a rank's input, which premul_sum multiplies */
};

/* An element as it enters an operation. */
template <class N> struct tw_entry {
    typename N::bits bits; /* of a narrow one */
    typename N::acc value;
};

template <class N> struct tw_runner {
    using bits = typename N::bits;
    using acc = typename N::acc;
    /* the type has partial results of another width */
    static constexpr bool mixes = !N::integer && sizeof(acc) != sizeof(bits);

    tw_adder<N> adder;
    struct tw_player player;
    const struct tw_turn *turn;

    /* of the slice that runs */
    const struct tw_gk_step *step;
    uint64_t first, local_first; /* element of each cell; the same inside SCRATCH and WIDE */
    uint32_t taken, filled;      /* bytes of the message and of the slot, so far */
    bool message_wide, slot_wide;

    /* ---- values ---- */

    __device__ inline acc joined(acc left, acc right) const
    {
        switch (adder.op) {
        case TWILL_PROD:
            return N::template combine<TWILL_PROD>(left, right);
        case TWILL_MIN:
            return N::template combine<TWILL_MIN>(left, right);
        case TWILL_MAX:
            return N::template combine<TWILL_MAX>(left, right);
        case TWILL_BAND:
            return N::template combine<TWILL_BAND>(left, right);
        case TWILL_BOR:
            return N::template combine<TWILL_BOR>(left, right);
        case TWILL_BXOR:
            return N::template combine<TWILL_BXOR>(left, right);
        default:
            return N::template combine<TWILL_SUM>(left, right);
        }
    }

    __device__ inline tw_entry<N> enter(const struct tw_spot *spot, uint64_t i) const
    {
        tw_entry<N> entry = {};

        if (mixes && spot->wide) {
            entry.value = ((const acc *)spot->at)[i];
        } else {
            entry.bits = ((const bits *)spot->at)[i];
            if (spot->raw && adder.scales)
                entry.bits = N::scale(entry.bits, adder.scalar);
            entry.value = N::widen(entry.bits);
        }
        return entry;
    }

    /* exact: bits are the result as they are */
    __device__ inline void leave(const struct tw_spot *spot, uint64_t i, const tw_entry<N> &result,
                                 bool exact) const
    {
        if (mixes && spot->wide)
            ((acc *)spot->at)[i] = result.value;
        else
            ((bits *)spot->at)[i] = exact ? result.bits : N::narrow(result.value);
    }

    /* to[0] = to[1] = left (+) right, or left alone. */
    __device__ inline void put(const struct tw_spot *left, const struct tw_spot *right,
                               const struct tw_spot to[2], uint64_t count) const
    {
        const bool divides = step->flags & TW_GK_STEP_FINAL && adder.op == TWILL_AVG;
        const bool exact = right->at == nullptr && !divides && !left->wide;

        for (uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
            tw_entry<N> result = enter(left, i);

            if (right->at != nullptr)
                result.value = joined(result.value, enter(right, i).value);
            if (divides)
                result.value = N::divide(result.value, player.me->call->size);
            for (int t = 0; t < 2; t++)
                if (to[t].at != nullptr)
                    leave(&to[t], i, result, exact);
        }
    }

    /* ---- places ---- */

    __device__ inline uint64_t slice_elems(const struct tw_gk_span *span, uint32_t i) const
    {
        const uint64_t all =
            tw_cell_elems(&player, &player.plan->parts[span->part], tw_cell_of(span, i));
        const uint64_t left = all > first ? all - first : 0;

        return left < player.plan->slice_elems ? left : player.plan->slice_elems;
    }

    /* rank: whose scratch */
    __device__ inline struct tw_spot cell_spot(const struct tw_gk_span *span, uint32_t i,
                                               int rank) const
    {
        const struct tw_gk_plan *plan = player.plan;
        const struct tw_gk_call *call = player.me->call;
        const uint32_t cell = tw_cell_of(span, i);
        char *scratch = tw_plan_scratch(call, rank);

        if (span->buf == TW_GK_BUF_SCRATCH)
            return {scratch + cell * plan->room_bytes + local_first * sizeof(bits), false, false};
        if (span->buf == TW_GK_BUF_WIDE)
            return {scratch + plan->wide_at + cell * plan->wide_room_bytes +
                        local_first * (mixes ? sizeof(acc) : sizeof(bits)),
                    mixes, false};
        char *buffer = span->buf == TW_GK_BUF_IN ? (char *)call->in : call->out;
        const uint64_t before = tw_cell_first(&player, &plan->parts[span->part], cell) + first;

        return {buffer + before * sizeof(bits), false, span->buf == TW_GK_BUF_IN};
    }

    __device__ inline struct tw_spot spot_of(uint32_t at, uint32_t i) const
    {
        const int rank = player.me->call->rank;

        switch (at) {
        case TW_GK_AT_SRC:
            return cell_spot(&step->src, i, rank);
        case TW_GK_AT_DST:
            return cell_spot(&step->dst, i, rank);
        case TW_GK_AT_PEER_SRC:
            return cell_spot(&step->src, i, step->from);
        case TW_GK_AT_PEER_DST:
            return cell_spot(&step->dst, i, step->to_rank);
        case TW_GK_AT_MESSAGE:
            return {turn->message + taken, message_wide, false};
        case TW_GK_AT_SLOT:
            return {turn->slot + filled, slot_wide, false};
        default:
            return {nullptr, false, false};
        }
    }

    /* ---- a slice ---- */

    /* Whether a message or a slot holds unrounded partial results. */
    __device__ inline void find_widths(const struct tw_gk_span *span)
    {
        uint64_t elems = 0;

        for (uint32_t i = 0; i < span->cells; i++)
            elems += slice_elems(span, i);
        message_wide = turn->message != nullptr && turn->message_bytes == elems * sizeof(acc);
        slot_wide = !(step->flags & TW_GK_STEP_ROUND) &&
                    (message_wide || (step->src.cells != 0 && step->src.buf == TW_GK_BUF_WIDE));
    }

    /* False: the message is too short for it. */
    __device__ inline bool move_cell(uint32_t i, uint64_t elems)
    {
        const bool takes = turn->message != nullptr;
        const bool swap = step->flags & TW_GK_STEP_ACC_RIGHT && step->other != TW_GK_AT_NONE;
        const bool stores = step->to == TW_GK_AT_SLOT && step->dst.cells != 0;
        const uint64_t bytes = elems * (message_wide ? sizeof(acc) : sizeof(bits));

        if (takes && bytes > turn->message_bytes - taken)
            return false;
        if (elems != 0) {
            const struct tw_spot left = spot_of(swap ? step->other : step->local, i);
            const struct tw_spot right = spot_of(swap ? step->local : step->other, i);
            const struct tw_spot to[2] = {spot_of(step->to, i),
                                          spot_of(stores ? TW_GK_AT_DST : TW_GK_AT_NONE, i)};

            put(&left, &right, to, elems);
        }
        taken += takes ? (uint32_t)bytes : 0;
        if (step->to == TW_GK_AT_SLOT)
            filled += (uint32_t)(elems * (slot_wide ? sizeof(acc) : sizeof(bits)));
        return true;
    }

    /* All threads. False: the message is not what the step expects. */
    __device__ inline bool move()
    {
        const bool by_src = step->src.cells != 0;
        const struct tw_gk_span *span = by_src ? &step->src : &step->dst;
        const struct tw_gk_span *other = by_src && step->dst.cells != 0 ? &step->dst : nullptr;

        if (span->cells == 0 && step->relays) {
            tw_copy(turn->slot, turn->message, turn->message_bytes, threadIdx.x, blockDim.x);
            taken = filled = turn->message_bytes;
            return true;
        }
        if (mixes && player.plan->widens && span->cells != 0)
            find_widths(span);
        for (uint32_t i = 0; i < span->cells; i++) {
            const uint64_t elems = slice_elems(span, i);

            if (other != nullptr && (i >= other->cells || slice_elems(other, i) != elems))
                return false;
            if (!move_cell(i, elems))
                return false;
        }
        return turn->message == nullptr || taken == turn->message_bytes;
    }

    /* All threads. What turn says. */
    __device__ inline bool run_slice()
    {
        step = &player.program->step[turn->step];
        local_first = turn->slice * player.plan->slice_elems;
        first = turn->loop * player.plan->slices * player.plan->slice_elems + local_first;
        taken = filled = 0;
        message_wide = slot_wide = false;
        return move();
    }
};

/* ---- the call ----------------------------------------------------------------------------------
 */

/* All threads. Every rank has begun the call, and runs the same plan: nothing of calls before it is
 * on its way. */
static __device__ inline void tw_plan_meet(struct tw_block *me)
{
    const int peer = (int)threadIdx.x;
    uint32_t words[TW_GK_WORDS];

    if (peer < me->call->size && peer != me->call->rank && tw_record_match(me, peer, words) &&
        !tw_is_number(&words[TW_GK_WORD_OUT], me->call->out_word)) {
        tw_fail_here(me, peer, TW_GK_OTHER_PLAN, nullptr);
        me->dead = true;
    }
    __syncthreads();
}

template <class N>
__global__ void __launch_bounds__(TW_GK_THREADS, 1)
    tw_plan_run(const __grid_constant__ struct tw_gk_launch_plan launch)
{
    __shared__ struct tw_turn turn;
    const struct tw_gk_plan *plan = &launch.plan[blockIdx.y];
    tw_runner<N> runner;

    runner.adder.begin(&launch.v.launch, plan->varies ? launch.v.pairs : nullptr);
    struct tw_block *me = &runner.adder.me;
    const bool leads = threadIdx.x == 0;

    runner.player = {me, plan, plan->program};
    runner.turn = &turn;
    tw_plan_meet(me);
    if (leads) {
        turn.next = 0;
        turn.over = tw_failed(me);
        if (!turn.over)
            tw_lanes_begin(&runner.player);
    }
    for (;;) {
        if (leads && !turn.over)
            tw_turn_next(&runner.player, &turn);
        __syncthreads();
        if (turn.over)
            break;
        const bool right = runner.run_slice();

        __syncthreads();
        if (leads && right) {
            tw_turn_end(&runner.player, &turn, runner.filled);
        } else if (leads) {
            tw_fail_here(me, runner.step->from, TW_GK_BROKEN, nullptr);
            turn.over = true;
        }
    }
    tw_part(me, ~UINT64_C(0), ~UINT64_C(0)); /* all have run their lanes */
    tw_compare(me);
    tw_end(me);
}

#endif
