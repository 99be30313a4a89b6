// SPDX-License-Identifier: Apache-2.0
// Knows: all the small ways to spoil a plan. Never knows: which of them matter.
#include "plan/mutate.hh"

#include <cstring>
#include <utility>

const char *mutation_name(MutationKind kind)
{
    static const char *const names[MUTATE_KINDS] = {
        "drop",   "duplicate", "swap", "move", "lane", "peer", "fifo",   "cell",
        "buffer", "size",      "part", "op",   "flag", "dep",  "signal", "claim"};
    return names[kind];
}

std::string Mutation::text() const
{
    return std::string(mutation_name(kind)) + "." + std::to_string(variant) + " rank " +
           std::to_string(rank) + " lane " + std::to_string(lane) + " step " + std::to_string(step);
}

namespace
{

uint32_t variants(const tw_plan *plan, MutationKind kind, int rank, uint32_t lane)
{
    const tw_plan_rank &program = plan->ranks[rank];
    switch (kind) {
    case MUTATE_MOVE:
        return program.lanes[lane].nsteps;
    case MUTATE_LANE:
        return program.nlanes * 2;
    case MUTATE_PEER:
        return 2 * (uint32_t)plan->nranks;
    case MUTATE_FIFO:
        return 4;
    case MUTATE_CELL:
        return 10;
    case MUTATE_BUFFER:
        return 2 * TW_BUF_COUNT;
    case MUTATE_SIZE:
        return 14;
    case MUTATE_PART:
        return 2 * plan->nparts;
    case MUTATE_OP:
        return TW_OP_COUNT;
    case MUTATE_FLAG:
        return 4;
    case MUTATE_DEPEND:
        return 5 + program.nlanes;
    case MUTATE_SIGNAL:
        return 6;
    case MUTATE_CLAIM:
        return 0;
    default:
        return 1;
    }
}

constexpr uint32_t CLAIMS = 24;

// Dependencies on a lane keep naming the same step when steps move: place[old] is the new place.
void redirect(tw_plan_rank &rank, uint32_t lane, const std::vector<uint32_t> &place)
{
    for (uint32_t l = 0; l < rank.nlanes; l++)
        for (uint32_t i = 0; i < rank.lanes[l].nsteps; i++) {
            tw_plan_step &step = rank.lanes[l].steps[i];
            if (step.dep_lane == lane && step.dep_step < place.size())
                step.dep_step = place[step.dep_step];
        }
}

bool insert(tw_plan_lane &lane, uint32_t at, const tw_plan_step &step)
{
    auto *steps =
        static_cast<tw_plan_step *>(realloc(lane.steps, (lane.nsteps + 1) * sizeof(*lane.steps)));
    if (!steps)
        return false;
    lane.steps = steps;
    lane.capacity = lane.nsteps + 1;
    memmove(steps + at + 1, steps + at, (lane.nsteps - at) * sizeof(*steps));
    steps[at] = step;
    lane.nsteps++;
    return true;
}

void erase(tw_plan_lane &lane, uint32_t at)
{
    memmove(lane.steps + at, lane.steps + at + 1, (lane.nsteps - at - 1) * sizeof(*lane.steps));
    lane.nsteps--;
}

std::vector<uint32_t> places(uint32_t count)
{
    std::vector<uint32_t> place(count);
    for (uint32_t i = 0; i < count; i++)
        place[i] = i;
    return place;
}

bool drop(tw_plan_rank &rank, const Mutation &m)
{
    tw_plan_lane &lane = rank.lanes[m.lane];
    for (uint32_t l = 0; l < rank.nlanes; l++) // who waited for it waits for the one before
        for (uint32_t i = 0; i < rank.lanes[l].nsteps; i++) {
            tw_plan_step &step = rank.lanes[l].steps[i];
            if (step.dep_lane != m.lane || step.dep_step != m.step || m.step > 0)
                continue;
            step.dep_lane = TW_NO_LANE;
            step.flags &= (uint8_t)~TW_STEP_WHOLE;
        }
    std::vector<uint32_t> place = places(lane.nsteps);
    for (uint32_t i = m.step; i < lane.nsteps; i++)
        place[i] = i ? i - 1 : 0;
    erase(lane, m.step);
    redirect(rank, m.lane, place);
    return true;
}

bool move(tw_plan_rank &rank, const Mutation &m, uint32_t to)
{
    tw_plan_lane &lane = rank.lanes[m.lane];
    if (to >= lane.nsteps || to == m.step)
        return false;
    tw_plan_step moved = lane.steps[m.step];
    std::vector<uint32_t> place = places(lane.nsteps);
    for (uint32_t i = 0; i < lane.nsteps; i++) {
        if (i == m.step)
            place[i] = to;
        else if (i > m.step && i <= to)
            place[i] = i - 1;
        else if (i < m.step && i >= to)
            place[i] = i + 1;
    }
    erase(lane, m.step);
    bool done = insert(lane, to, moved);
    redirect(rank, m.lane, place);
    return done;
}

bool duplicate(tw_plan_rank &rank, const Mutation &m)
{
    tw_plan_lane &lane = rank.lanes[m.lane];
    std::vector<uint32_t> place = places(lane.nsteps);
    for (uint32_t i = m.step + 1; i < lane.nsteps; i++)
        place[i] = i + 1;
    tw_plan_step copy = lane.steps[m.step];
    bool done = insert(lane, m.step, copy);
    redirect(rank, m.lane, place);
    return done;
}

// To the head or the end of another lane; its dependants depend on it no more.
bool change_lane(tw_plan_rank &rank, const Mutation &m)
{
    uint32_t to = m.variant / 2;
    if (to == m.lane)
        return false;
    tw_plan_step step = rank.lanes[m.lane].steps[m.step];
    drop(rank, m);
    uint32_t at = m.variant % 2 ? rank.lanes[to].nsteps : 0;
    std::vector<uint32_t> place = places(rank.lanes[to].nsteps);
    for (uint32_t i = at; i < place.size(); i++)
        place[i] = i + 1;
    bool done = insert(rank.lanes[to], at, step);
    redirect(rank, to, place);
    return done;
}

bool change_cell(tw_plan_step &step, uint32_t variant)
{
    static const int by[5] = {1, -1, 2, -2, 3};
    tw_plan_span &span = variant % 2 ? step.dst : step.src;
    if (span.block == 0)
        return false;
    span.first += (uint32_t)by[variant / 2];
    if (variant >= 8 && step.src.block && step.dst.block) { // both spans move together
        step.src.first += variant == 8 ? 1u - 3u : 1u;
        step.dst.first += variant == 8 ? 1u : 1u - 3u;
    }
    return true;
}

bool change_size(tw_plan_step &step, uint32_t variant)
{
    if (variant >= 12) { // both sides
        if (step.src.block == 0 || step.dst.block == 0)
            return false;
        step.src.block += variant == 12 ? 1u : ~0u;
        step.dst.block += variant == 12 ? 1u : ~0u;
        return step.src.block > 0 && step.dst.block > 0;
    }
    tw_plan_span &span = variant % 2 ? step.dst : step.src;
    if (span.block == 0)
        return false;
    uint32_t by = variant / 2 % 2 ? 1u : ~0u;
    (variant < 4 ? span.block : variant < 8 ? span.nblocks : span.stride) += by;
    return variant < 8 || span.nblocks > 1;
}

bool change_dep(tw_plan_rank &rank, const Mutation &m)
{
    tw_plan_step &step = rank.lanes[m.lane].steps[m.step];
    bool has = step.dep_lane != TW_NO_LANE;
    switch (m.variant) {
    case 0: // none
        step.dep_lane = TW_NO_LANE;
        step.flags &= (uint8_t)~TW_STEP_WHOLE;
        return has;
    case 1:
        step.dep_step--;
        return has;
    case 2:
        step.dep_step++;
        return has;
    case 3:
        step.flags ^= TW_STEP_WHOLE;
        return has;
    case 4: // the first step of that lane instead
        step.dep_step = 0;
        return has;
    default: // a new one, on the end of a lane
        if (has || rank.lanes[m.variant - 5].nsteps == 0)
            return false;
        step.dep_lane = (uint16_t)(m.variant - 5);
        step.dep_step = rank.lanes[m.variant - 5].nsteps - 1;
        return true;
    }
}

void raise_to(uint32_t *most, uint32_t least) { *most = least > *most ? least : *most; }

bool change_signal(tw_plan *plan, tw_plan_step &step, uint32_t variant)
{
    if (step.op != TW_OP_SIGNAL && step.op != TW_OP_WAIT)
        return false;
    static const int by[3] = {1, -1, 2};
    (variant % 2 ? step.sig : step.sig_value) += (uint32_t)by[variant / 2];
    if (by[variant / 2] > 0) {
        raise_to(&plan->nsigs, step.sig + 1);
        raise_to(&plan->sig_max, step.sig_value);
    }
    return true;
}

// Another operation, with what it needs made up from what the step has.
void change_op(tw_plan_step &step, uint8_t op)
{
    step.op = op;
    step.src = step.src.block ? step.src : step.dst;
    step.dst = step.dst.block ? step.dst : step.src;
    if (step.dst.buf == TW_BUF_IN)
        step.dst.buf = TW_BUF_OUT;
    step.from = step.from < 0 ? step.to : step.from;
    step.to = step.to < 0 ? step.from : step.to;
    bool adds = op == TW_OP_REDUCE || op == TW_OP_RECV_REDUCE || op == TW_OP_GET_REDUCE ||
                op == TW_OP_RECV_REDUCE_SEND;
    bool fused = op == TW_OP_RECV_SEND || op == TW_OP_RECV_REDUCE_SEND;
    int legal = TW_STEP_WHOLE | (adds ? TW_STEP_ACC_RIGHT | TW_STEP_FINAL : 0) |
                (op == TW_OP_COPY ? TW_STEP_FINAL : 0) | (fused ? TW_STEP_STORE : 0);
    step.flags &= (uint8_t)legal;
    if (fused)
        step.flags |= TW_STEP_STORE;
}

bool change_claim(tw_plan *plan, uint32_t variant)
{
    switch (variant) {
    case 0:
        plan->depth--;
        return plan->depth + 1 > 0;
    case 1:
        plan->depth++;
        return plan->nfifos > 0;
    case 2:
        plan->slices++;
        return true;
    case 3:
        plan->slices--;
        return true;
    case 4:
        plan->slices += 3;
        return true;
    case 5:
        plan->parity--;
        return true;
    case 6:
        plan->parity++;
        return true;
    case 7:
        plan->sig_max--;
        return plan->sig_max + 1 > 0;
    case 8:
        plan->sig_max++;
        return true;
    case 9:
        plan->nsigs--;
        return plan->nsigs + 1 > 0;
    case 10:
        plan->caps = 0;
        return true;
    case 11:
        plan->scratch_cells--;
        return plan->scratch_cells + 1 > 0;
    case 12:
        plan->wide_cells--;
        return plan->wide_cells + 1 > 0;
    case 13:
        plan->deterministic = !plan->deterministic;
        return true;
    case 14:
        plan->root = (plan->root + 1) % plan->nranks;
        return true;
    case 15:
        plan->widest--;
        return plan->widest + 1 > 0;
    case 16:
        plan->nfifos--;
        return plan->nfifos + 1 > 0;
    case 17:
    case 18:
        plan->parts[0].per += variant == 17 ? 1 : ~0u;
        return plan->nparts > 0;
    case 19:
    case 20:
        plan->parts[1].per += variant == 19 ? 1 : ~0u;
        return plan->nparts > 1;
    case 21:
        plan->coll = (uint8_t)((plan->coll + 1) % TW_COLL_P2P);
        return true;
    case 22:
        for (uint32_t i = 0; i < plan->nparts; i++)
            plan->parts[i].per++;
        return plan->nparts > 0;
    default:
        for (uint32_t i = 0; i < plan->nparts; i++)
            plan->parts[i].per--;
        return plan->nparts > 0;
    }
}

// What the operation looks at; changing the rest changes nothing.
bool uses(const tw_plan_step &step, MutationKind kind, bool second)
{
    bool in = step.op == TW_OP_RECV || step.op == TW_OP_RECV_REDUCE || step.op == TW_OP_RECV_SEND ||
              step.op == TW_OP_RECV_REDUCE_SEND;
    bool out =
        step.op == TW_OP_SEND || step.op == TW_OP_RECV_SEND || step.op == TW_OP_RECV_REDUCE_SEND;
    bool get = step.op == TW_OP_GET || step.op == TW_OP_GET_REDUCE;
    bool no_span = step.op == TW_OP_SIGNAL || step.op == TW_OP_WAIT;
    switch (kind) {
    case MUTATE_PEER:
        return second ? in || get : out || step.op == TW_OP_PUT || step.op == TW_OP_SIGNAL;
    case MUTATE_FIFO:
        return second ? in : out;
    case MUTATE_CELL:
    case MUTATE_BUFFER:
    case MUTATE_SIZE:
    case MUTATE_PART:
        if (second)
            return !no_span && step.op != TW_OP_SEND &&
                   (step.op != TW_OP_RECV_REDUCE_SEND || (step.flags & TW_STEP_STORE));
        return !no_span && step.op != TW_OP_RECV && step.op != TW_OP_RECV_SEND;
    default:
        return true;
    }
}

bool change_step(tw_plan *plan, const Mutation &m)
{
    tw_plan_step &step = plan->ranks[m.rank].lanes[m.lane].steps[m.step];
    tw_plan_step before = step;
    if (!uses(step, m.kind, m.variant % 2))
        return false;
    tw_plan_span &span = m.variant % 2 ? step.dst : step.src;
    switch (m.kind) {
    case MUTATE_PEER:
        (m.variant % 2 ? step.from : step.to) = (int32_t)(m.variant / 2);
        break;
    case MUTATE_FIFO:
        (m.variant % 2 ? step.fifo_in : step.fifo_out) =
            (uint16_t)((m.variant % 2 ? step.fifo_in : step.fifo_out) + (m.variant / 2 ? 1 : -1));
        if (m.variant / 2)
            raise_to(&plan->nfifos, (m.variant % 2 ? step.fifo_in : step.fifo_out) + 1u);
        break;
    case MUTATE_CELL:
        if (!change_cell(step, m.variant))
            return false;
        break;
    case MUTATE_BUFFER:
        if (span.block == 0)
            return false;
        span.buf = (uint8_t)(m.variant / 2);
        break;
    case MUTATE_SIZE:
        if (!change_size(step, m.variant))
            return false;
        break;
    case MUTATE_PART:
        if (span.block == 0)
            return false;
        span.part = (uint8_t)(m.variant / 2);
        break;
    case MUTATE_OP:
        if (m.variant == step.op)
            return false;
        change_op(step, (uint8_t)m.variant);
        break;
    case MUTATE_FLAG:
        step.flags ^= (uint8_t)(1u << m.variant);
        break;
    default:
        return change_signal(plan, step, m.variant);
    }
    return memcmp(&before, &step, sizeof(step)) != 0;
}

} // namespace

std::vector<Mutation> mutations(const tw_plan *plan)
{
    std::vector<Mutation> all;
    for (uint32_t v = 0; v < CLAIMS; v++)
        all.push_back({MUTATE_CLAIM, 0, 0, 0, v});
    for (int r = 0; r < plan->nranks; r++)
        for (uint32_t l = 0; l < plan->ranks[r].nlanes; l++)
            for (uint32_t i = 0; i < plan->ranks[r].lanes[l].nsteps; i++)
                for (int k = 0; k < MUTATE_KINDS; k++)
                    for (uint32_t v = 0; v < variants(plan, (MutationKind)k, r, l); v++)
                        all.push_back({(MutationKind)k, r, l, i, v});
    return all;
}

bool mutate(tw_plan *plan, const Mutation &m)
{
    tw_plan_rank &rank = plan->ranks[m.rank];
    switch (m.kind) {
    case MUTATE_DROP:
        return drop(rank, m);
    case MUTATE_DUPLICATE:
        return duplicate(rank, m);
    case MUTATE_SWAP:
        return move(rank, m, m.step + 1);
    case MUTATE_MOVE:
        return m.variant != m.step + 1 && move(rank, m, m.variant);
    case MUTATE_LANE:
        return change_lane(rank, m);
    case MUTATE_DEPEND:
        return change_dep(rank, m);
    case MUTATE_CLAIM:
        return change_claim(plan, m.variant);
    default:
        return change_step(plan, m);
    }
}
