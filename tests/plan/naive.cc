// SPDX-License-Identifier: Apache-2.0
// Knows: the model of plan.h, read as literally and slowly as can be. Never knows: the checker.
#include "plan/naive.hh"

#include "plan/contract.hh"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace
{

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// ---- values -------------------------------------------------------------------------------------

// A number as one of the call's type (rounded) or as a wide partial.
struct Number {
    uint64_t bits = 0;
    bool rounded = false;
};

uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// Plain plans add as integers do, in any order; where the order is promised, every order and every
// rounding gives another value. Finishing is no homomorphism, so that it counts how often and when.
struct Algebra {
    bool ordered = false;

    Number add(Number a, Number b) const
    {
        if (ordered)
            return {mix(a.bits * 3 + mix(b.bits + 5)), false};
        return {a.bits + b.bits, true};
    }
    Number finish(Number a) const
    {
        return {(a.bits ^ 0x5555) * 0x9e3779b97f4a7c15u + 77, !ordered};
    }
    Number round(Number a) const
    {
        if (ordered && !a.rounded)
            a.bits = mix(a.bits + 9);
        a.rounded = true;
        return a;
    }
};

// ---- a call -------------------------------------------------------------------------------------

struct Call {
    const tw_plan *plan;
    uint32_t slices, loops, elems; // of a slice
    uint32_t depth;                // of FIFOs, at least the plan's
    uint32_t copy;                 // of peers' scratch
    uint64_t count;
    std::vector<std::vector<uint64_t>> pairs; // [from][to]
    std::vector<char> inplace;                // [nranks]
    std::vector<std::vector<Number>> input;   // [nranks]
    uint64_t base;                            // of signals
    bool peer_scratch;
    Algebra algebra;

    uint64_t group_count(int rank, const tw_plan_part &part, uint64_t group) const
    {
        if (part.kind == TW_PART_PAIR_SEND)
            return pairs[(size_t)rank].at(group);
        if (part.kind == TW_PART_PAIR_RECV)
            return pairs.at(group)[(size_t)rank];
        if (part.kind == TW_PART_PER_RANK)
            return pairs.at(group).at(group);
        if (part.kind == TW_PART_OWN)
            return pairs[(size_t)rank][(size_t)rank];
        return count;
    }
    uint64_t cell_count(int rank, const tw_plan_part &part, uint32_t cell) const
    {
        if (part.kind == TW_PART_SHARD) { // the rank's cells of all that the call's group has
            uint64_t cells = (uint64_t)part.per * plan->nranks;
            uint64_t nth = (uint64_t)rank * part.per + cell % part.per;
            return count / cells + (nth < count % cells);
        }
        uint64_t group = group_count(rank, part, cell / part.per);
        return group / part.per + (cell % part.per < group % part.per);
    }
    // First element of a cell of IN or OUT.
    uint64_t cell_start(int rank, const tw_plan_part &part, uint32_t cell) const
    {
        uint64_t start = 0, sub = cell % part.per;
        for (uint32_t g = 0; g < cell / part.per; g++)
            start += group_count(rank, part, g);
        uint64_t group = group_count(rank, part, cell / part.per);
        return start + sub * (group / part.per) + std::min(sub, group % part.per);
    }
};

bool sends(uint8_t op)
{
    return op == TW_OP_SEND || op == TW_OP_RECV_SEND || op == TW_OP_RECV_REDUCE_SEND;
}
bool receives(uint8_t op)
{
    return op == TW_OP_RECV || op == TW_OP_RECV_SEND || op == TW_OP_RECV_REDUCE ||
           op == TW_OP_RECV_REDUCE_SEND;
}

// Cells of IN and OUT are cut alike in the whole plan: the first span tells. Defaults to one cell.
const tw_plan_part *user_part(const tw_plan *plan, tw_plan_buf buf)
{
    for (int r = 0; r < plan->nranks; r++)
        for (uint32_t l = 0; l < plan->ranks[r].nlanes; l++)
            for (uint32_t i = 0; i < plan->ranks[r].lanes[l].nsteps; i++) {
                const tw_plan_step &step = plan->ranks[r].lanes[l].steps[i];
                bool src = step.op != TW_OP_RECV && step.op != TW_OP_RECV_SEND &&
                           step.op != TW_OP_SIGNAL && step.op != TW_OP_WAIT;
                bool dst = step.op != TW_OP_SEND && step.op != TW_OP_SIGNAL &&
                           step.op != TW_OP_WAIT &&
                           (step.op != TW_OP_RECV_REDUCE_SEND || (step.flags & TW_STEP_STORE));
                if (src && step.src.block && step.src.buf == buf)
                    return &plan->parts[step.src.part];
                if (dst && step.dst.block && step.dst.buf == buf)
                    return &plan->parts[step.dst.part];
            }
    return nullptr;
}

bool may_alias(const tw_plan *plan, int rank)
{
    return contract::has_in(plan->coll, plan->root, rank) &&
           contract::has_out(plan->coll, plan->root, rank);
}

bool adds(const tw_plan *plan) { return contract::reduces(plan->coll); }

// ---- the machine --------------------------------------------------------------------------------

struct Message {
    std::vector<Number> data;
    bool wide;
    uint32_t plan_fifos, plan_depth; // layout it was sent under
};

struct Landing { // on its way to a peer: a put, or a signal
    bool signal;
    std::vector<std::pair<std::vector<Number> *, size_t>> where;
    std::vector<Number> data;
    std::tuple<int, uint32_t, uint32_t> word;
    uint64_t value;
};

struct Lane {
    int rank;
    uint32_t index;
    uint32_t loop = 0, step = 0, slice = 0;
    bool active = false;
    double priority = 0;
};

struct Rank {
    size_t call = 0;
    bool running = false;
    uint32_t lanes_left = 0;
    std::vector<Lane> lanes;
    std::vector<Number> user, scratch, shared; // shared: what peers may touch
    size_t in = 0, out = 0;                    // in user
};

class Machine
{
  public:
    Machine(const tw_plan *plan, uint64_t seed, const tw_plan *next)
        : random_(seed), nranks_(plan->nranks)
    {
        uint32_t scratch_calls = 0;
        uint32_t most = std::max(plan->parity, next ? next->parity : 1);
        size_t ncalls = next ? 4 + 2 * (most > 2) : 2 + (most > 1 ? most - 1 : draw(2));
        uint64_t base = 0;
        for (size_t c = 0; c < ncalls; c++) {
            calls_.push_back(draw_call(next && c % 2 ? next : plan));
            Call &call = calls_.back();
            call.copy = call.peer_scratch ? scratch_calls++ % call.plan->parity : 0;
            call.base = base;
            base += (uint64_t)call.loops * call.plan->sig_max;
        }
        ranks_.resize((size_t)nranks_);
        size_t shared = 0, scratch = 0, user = 0;
        for (const Call &call : calls_) {
            size_t cells = (size_t)call.plan->scratch_cells + call.plan->wide_cells;
            cells *= (size_t)call.slices * call.elems;
            shared = std::max(shared, cells * call.plan->parity);
            scratch = std::max(scratch, cells);
            for (int r = 0; r < nranks_; r++)
                user = std::max(user, in_size(call, r) + out_size(call, r));
        }
        // every plan's copies end inside, rounding of their places included
        shared += 64;
        for (Rank &rank : ranks_) {
            rank.user.resize(user);
            rank.scratch.resize(scratch);
            rank.shared.resize(shared);
            poison(rank.user);
            poison(rank.scratch);
            poison(rank.shared);
        }
        policy_ = draw(5);
        slow_ = (int)draw((uint64_t)nranks_);
        for (int r = 0; r < nranks_; r++)
            rank_priority_.push_back(unit());
    }

    void run()
    {
        while (!finished()) {
            if (draw(40) == 0)
                shuffle();
            if (!one_event())
                throw Failure("hang: " + stuck());
        }
        for (auto &[key, fifo] : fifos_)
            if (!fifo.empty())
                throw Failure("messages are left from rank " + std::to_string(std::get<0>(key)));
    }

  private:
    std::mt19937_64 random_;
    int nranks_;
    std::vector<Call> calls_;
    std::vector<Rank> ranks_;
    std::map<std::tuple<int, int, uint32_t>, std::deque<Message>> fifos_;
    std::map<std::tuple<int, uint32_t, int>, std::deque<Landing>> wires_; // (rank, lane, to)
    std::map<std::tuple<int, uint32_t, uint32_t>, uint64_t> words_;
    uint64_t policy_ = 0;
    int slow_ = 0;
    std::vector<double> rank_priority_;

    uint64_t draw(uint64_t below) { return random_() % below; }
    double unit() { return (double)(random_() >> 11) / 9007199254740992.0; }
    void poison(std::vector<Number> &memory)
    {
        for (Number &number : memory)
            number = {random_(), true};
    }

    // ---- calls

    Call draw_call(const tw_plan *plan)
    {
        Call call = {};
        call.plan = plan;
        call.slices = draw(3) ? plan->slices : 1;
        call.loops = 1 + (uint32_t)draw(3);
        call.elems = 1 + (uint32_t)draw(2);
        call.depth = plan->depth + (draw(2) ? 0 : (uint32_t)draw(3));
        call.peer_scratch = (plan->caps & TW_CAP_PUT_SCRATCH) != 0;
        call.algebra.ordered = plan->deterministic && adds(plan);
        const tw_plan_part *part = user_part(plan, TW_BUF_IN);
        part = part ? part : user_part(plan, TW_BUF_OUT);
        uint64_t per = part ? part->per : 1;
        uint64_t room = per * call.loops * call.slices * call.elems;
        call.count = draw(4) ? room - draw(std::min(room, per + 2)) : draw(room + 1);
        for (int r = 0; r < nranks_; r++) {
            std::vector<uint64_t> row;
            for (int q = 0; q < nranks_; q++)
                row.push_back(draw(3) ? draw(room + 1) : room);
            call.pairs.push_back(row);
            call.inplace.push_back(may_alias(plan, r) && draw(2));
        }
        if (draw(3) == 0) // all alike
            std::fill(call.inplace.begin(), call.inplace.end(), call.inplace[0]);
        for (int r = 0; r < nranks_; r++) // in place, a rank gives as much as it gets
            for (int q = 0; q < nranks_ && call.inplace[(size_t)r]; q++)
                call.pairs[(size_t)q][(size_t)r] = call.pairs[(size_t)r][(size_t)q];
        for (int r = 0; r < nranks_; r++) {
            if (!may_alias(plan, r))
                call.inplace[(size_t)r] = 0;
            call.input.emplace_back(in_size(call, r));
            poison(call.input.back());
        }
        return call;
    }

    size_t group_size(const Call &call, int rank, bool in, int group) const
    {
        return in ? contract::count_in(call.plan->coll, call.count, call.pairs, rank, group)
                  : contract::count_out(call.plan->coll, call.count, call.pairs, rank, group);
    }
    // Elements before a group; all of them for the group past the last.
    size_t group_start(const Call &call, int rank, bool in, int group) const
    {
        size_t size = 0;
        for (int g = 0; g < group; g++)
            size += group_size(call, rank, in, g);
        return size;
    }
    int groups(const Call &call, bool in) const
    {
        bool many = in ? contract::many_in(call.plan->coll) : contract::many_out(call.plan->coll);
        return many ? nranks_ : 1;
    }
    size_t in_size(const Call &call, int rank) const
    {
        return contract::has_in(call.plan->coll, call.plan->root, rank)
                   ? group_start(call, rank, true, groups(call, true))
                   : 0;
    }
    size_t out_size(const Call &call, int rank) const
    {
        return contract::has_out(call.plan->coll, call.plan->root, rank)
                   ? group_start(call, rank, false, groups(call, false))
                   : 0;
    }

    void place(Rank &rank, int r, const Call &call) const
    {
        rank.in = 0;
        rank.out = in_size(call, r);
        if (!call.inplace[(size_t)r])
            return;
        rank.out = 0;
        if (groups(call, false) > groups(call, true))
            rank.in = group_start(call, r, false, r);
        if (groups(call, true) > groups(call, false))
            rank.out = group_start(call, r, true, r);
    }

    void begin(int r)
    {
        Rank &rank = ranks_[(size_t)r];
        const Call &call = calls_[rank.call];
        place(rank, r, call);
        std::copy(call.input[(size_t)r].begin(), call.input[(size_t)r].end(),
                  rank.user.begin() + (ptrdiff_t)rank.in);
        rank.running = true;
        rank.lanes.clear();
        rank.lanes_left = 0;
        for (uint32_t l = 0; l < call.plan->ranks[r].nlanes; l++) {
            Lane lane = {r, l};
            lane.active = call.plan->ranks[r].lanes[l].nsteps > 0;
            lane.loop = lane.active ? 0 : call.loops;
            lane.priority = unit();
            rank.lanes_left += lane.active;
            rank.lanes.push_back(lane);
        }
        if (rank.lanes_left == 0)
            end(r);
    }

    // The user looks at OUT, then uses the memory for something else.
    void end(int r)
    {
        Rank &rank = ranks_[(size_t)r];
        const Call &call = calls_[rank.call];
        verify(rank, r, call);
        poison(rank.user);
        rank.running = false;
        rank.call++;
    }

    Number tree(const Call &call, size_t at, int first, int count) const
    {
        if (count == 1)
            return call.input[(size_t)first][at];
        int half = 1;
        while (half * 2 < count)
            half *= 2;
        return call.algebra.add(tree(call, at, first, half),
                                tree(call, at, first + half, count - half));
    }

    void verify(const Rank &rank, int r, const Call &call) const
    {
        const tw_plan *plan = call.plan;
        if (plan->coll == TW_COLL_BARRIER)
            for (const Rank &other : ranks_)
                if (other.call < rank.call || (other.call == rank.call && !other.running))
                    throw Failure("left the barrier alone");
        if (!contract::has_out(plan->coll, plan->root, r))
            return;
        size_t at = 0;
        for (int g = 0; g < groups(call, false); g++)
            for (size_t i = 0; i < group_size(call, r, false, g); i++, at++)
                if (rank.user[rank.out + at].bits != wanted(call, r, g, i).bits)
                    throw Failure("rank " + std::to_string(r) + " call " +
                                  std::to_string(rank.call) + " element " + std::to_string(at) +
                                  " is wrong");
    }

    // Element i of a group of OUT.
    Number wanted(const Call &call, int r, int group, size_t i) const
    {
        int coll = call.plan->coll, part = contract::source_group(coll, r);
        int from = contract::source_rank(coll, call.plan->root, group);
        size_t at = i + group_start(call, from, true, part);
        if (!adds(call.plan))
            return call.input.at((size_t)from).at(at);
        return call.algebra.round(call.algebra.finish(tree(call, at, 0, nranks_)));
    }

    // ---- memory

    using Places = std::vector<std::pair<std::vector<Number> *, size_t>>;

    // Where the elements of one slice of a span are, in memory of `owner`.
    Places locate(const Call &call, int owner, const tw_plan_span &span, uint32_t loop,
                  uint32_t slice)
    {
        Places places;
        if (span.block == 0)
            return places;
        Rank &rank = ranks_.at((size_t)owner);
        const tw_plan_part &part = call.plan->parts[span.part];
        for (uint32_t b = 0; b < span.nblocks; b++)
            for (uint32_t i = 0; i < span.block; i++) {
                uint32_t cell = span.first + b * span.stride + i;
                uint64_t size = call.cell_count(owner, part, cell);
                uint64_t skip = ((uint64_t)loop * call.slices + slice) * call.elems;
                uint64_t length = size > skip ? std::min<uint64_t>(size - skip, call.elems) : 0;
                std::vector<Number> *memory = &rank.user;
                uint64_t start;
                if (span.buf == TW_BUF_IN || span.buf == TW_BUF_OUT) {
                    Rank at = {};
                    place(at, owner, call);
                    start = (span.buf == TW_BUF_IN ? at.in : at.out) +
                            call.cell_start(owner, part, cell) + skip;
                } else {
                    uint64_t number =
                        span.buf == TW_BUF_WIDE ? call.plan->scratch_cells + cell : cell;
                    start = (number * call.slices + slice) * call.elems;
                    memory = call.peer_scratch ? &rank.shared : &rank.scratch;
                    if (call.peer_scratch)
                        start += rank.shared.size() * call.copy / call.plan->parity;
                }
                for (uint64_t e = 0; e < length; e++) {
                    if (start + e >= memory->size())
                        throw Failure("touches memory past the end of a buffer");
                    places.emplace_back(memory, start + e);
                }
            }
        return places;
    }

    static std::vector<Number> load(const Places &places)
    {
        std::vector<Number> data;
        for (auto &[memory, at] : places)
            data.push_back((*memory)[at]);
        return data;
    }

    static void store(const Places &places, const std::vector<Number> &data)
    {
        if (places.size() != data.size())
            throw Failure("stores " + std::to_string(data.size()) + " elements into " +
                          std::to_string(places.size()));
        for (size_t i = 0; i < data.size(); i++)
            (*places[i].first)[places[i].second] = data[i];
    }

    // ---- events

    bool finished() const
    {
        for (const Rank &rank : ranks_)
            if (rank.call < calls_.size())
                return false;
        for (auto &[key, wire] : wires_)
            if (!wire.empty())
                return false;
        return true;
    }

    void shuffle()
    {
        for (Rank &rank : ranks_)
            for (Lane &lane : rank.lanes)
                lane.priority = unit();
        for (double &priority : rank_priority_)
            priority = unit();
        slow_ = (int)draw((uint64_t)nranks_);
    }

    struct Event {
        double score;
        int kind; // 0 begin, 1 lane, 2 wire
        int rank;
        uint32_t lane;
        std::deque<Landing> *wire;
    };

    // 0: any order; 1: by priorities that change now and then; 2, 3: the same, and puts and signals
    // land as late as can be; 4: one rank is slow.
    double score(int rank, double priority, bool wire)
    {
        double value = policy_ % 2 || policy_ == 4 ? priority : unit();
        if (wire && (policy_ == 2 || policy_ == 3))
            value -= 10;
        if (policy_ == 4 && rank == slow_)
            value -= 5;
        return value;
    }

    bool one_event()
    {
        Event best = {-100, 0, 0, 0, nullptr};
        for (int r = 0; r < nranks_; r++) {
            Rank &rank = ranks_[(size_t)r];
            if (!rank.running && rank.call < calls_.size())
                consider(best, {score(r, rank_priority_[(size_t)r], false), 0, r, 0, nullptr});
            if (!rank.running)
                continue;
            for (Lane &lane : rank.lanes)
                if (lane.active && ready(lane))
                    consider(best, {score(r, lane.priority, false), 1, r, lane.index, nullptr});
        }
        for (auto &[key, wire] : wires_)
            if (!wire.empty())
                consider(best, {score(std::get<0>(key), unit(), true), 2, 0, 0, &wire});
        if (best.score <= -100)
            return false;
        if (best.kind == 0)
            begin(best.rank);
        else if (best.kind == 1)
            advance(ranks_[(size_t)best.rank].lanes[best.lane]);
        else
            land(*best.wire);
        return true;
    }

    static void consider(Event &best, const Event &event)
    {
        if (event.score > best.score)
            best = event;
    }

    void land(std::deque<Landing> &wire)
    {
        Landing landing = std::move(wire.front());
        wire.pop_front();
        if (landing.signal)
            words_[landing.word] = std::max(words_[landing.word], landing.value);
        else
            store(landing.where, landing.data);
    }

    // ---- steps

    const tw_plan_step &step_of(const Lane &lane) const
    {
        const tw_plan *plan = calls_[ranks_[(size_t)lane.rank].call].plan;
        return plan->ranks[lane.rank].lanes[lane.index].steps[lane.step];
    }

    bool dependency_met(const Lane &lane, const tw_plan_step &step) const
    {
        if (step.dep_lane == TW_NO_LANE)
            return true;
        const Lane &on = ranks_[(size_t)lane.rank].lanes.at(step.dep_lane);
        auto done = std::make_tuple(on.loop, on.step, on.slice); // everything before it is done
        if (step.flags & TW_STEP_WHOLE)
            return done >= std::make_tuple(lane.loop, step.dep_step + 1, 0u);
        return done > std::make_tuple(lane.loop, step.dep_step, lane.slice);
    }

    bool has_room(const Call &call, const std::deque<Message> &fifo) const
    {
        if (fifo.empty())
            return true;
        if (fifo.back().plan_fifos != call.plan->nfifos ||
            fifo.back().plan_depth != call.plan->depth)
            return false; // the layout changes when it is drained
        return fifo.size() < call.depth;
    }

    bool ready(const Lane &lane)
    {
        const Call &call = calls_[ranks_[(size_t)lane.rank].call];
        const tw_plan_step &step = step_of(lane);
        if (!dependency_met(lane, step))
            return false;
        if (receives(step.op) && fifos_[{step.from, lane.rank, step.fifo_in}].empty())
            return false;
        if (sends(step.op) && !has_room(call, fifos_[{lane.rank, step.to, step.fifo_out}]))
            return false;
        if (step.op == TW_OP_WAIT) {
            uint64_t value = call.base + (uint64_t)lane.loop * call.plan->sig_max + step.sig_value;
            return words_[{lane.rank, step.sig, lane.slice}] >= value;
        }
        return true;
    }

    std::vector<Number> combine(const Call &call, const tw_plan_step &step,
                                const std::vector<Number> &local, const std::vector<Number> &other,
                                bool narrow) const
    {
        if (local.size() != other.size())
            throw Failure("combines " + std::to_string(local.size()) + " elements with " +
                          std::to_string(other.size()));
        std::vector<Number> sum;
        for (size_t i = 0; i < local.size(); i++) {
            bool right = step.flags & TW_STEP_ACC_RIGHT;
            Number value =
                call.algebra.add(right ? other[i] : local[i], right ? local[i] : other[i]);
            sum.push_back(narrow ? call.algebra.round(value) : value);
        }
        return sum;
    }

    Message receive(const Lane &lane, const tw_plan_step &step)
    {
        auto &fifo = fifos_[{step.from, lane.rank, step.fifo_in}];
        Message message = std::move(fifo.front());
        fifo.pop_front();
        return message;
    }

    void send(const Call &call, const Lane &lane, const tw_plan_step &step,
              const std::vector<Number> &data, bool wide)
    {
        fifos_[{lane.rank, step.to, step.fifo_out}].push_back(
            {data, wide, call.plan->nfifos, call.plan->depth});
    }

    static void want_width(const Message &message, bool wide)
    {
        if (message.wide != wide && !message.data.empty())
            throw Failure("message has another width");
    }
    // Wide cells take narrow messages too.
    static void meet_width(const Message &message, bool wide)
    {
        if (!wide)
            want_width(message, false);
    }

    void raise(const Call &call, const Lane &lane, const tw_plan_step &step)
    {
        Landing landing = {};
        landing.signal = true;
        landing.word = {step.to, step.sig, lane.slice};
        landing.value = call.base + (uint64_t)lane.loop * call.plan->sig_max + step.sig_value;
        wires_[{lane.rank, lane.index, step.to}].push_back(landing);
    }

    void run_slice(const Lane &lane)
    {
        const Call &call = calls_[ranks_[(size_t)lane.rank].call];
        const tw_plan_step &step = step_of(lane);
        const Algebra &algebra = call.algebra;
        int src_rank = step.op == TW_OP_GET || step.op == TW_OP_GET_REDUCE ? step.from : lane.rank;
        int dst_rank = step.op == TW_OP_PUT ? step.to : lane.rank;
        bool src_wide = step.src.buf == TW_BUF_WIDE, dst_wide = step.dst.buf == TW_BUF_WIDE;
        auto src = [&] { return load(locate(call, src_rank, step.src, lane.loop, lane.slice)); };
        auto dst = [&] { return locate(call, dst_rank, step.dst, lane.loop, lane.slice); };
        auto polish = [&](std::vector<Number> data, bool narrow) {
            for (Number &number : data) {
                if (step.flags & TW_STEP_FINAL)
                    number = algebra.finish(number);
                if (narrow)
                    number = algebra.round(number);
            }
            return data;
        };
        bool out_wide = src_wide && !(step.flags & TW_STEP_ROUND);
        switch (step.op) {
        case TW_OP_COPY:
        case TW_OP_GET:
            store(dst(), polish(src(), !dst_wide));
            break;
        case TW_OP_PUT: {
            Landing landing = {};
            landing.where = dst();
            landing.data = polish(src(), !dst_wide);
            wires_[{lane.rank, lane.index, step.to}].push_back(landing);
            break;
        }
        case TW_OP_REDUCE:
        case TW_OP_GET_REDUCE:
            store(dst(), polish(combine(call, step, load(dst()), src(), !dst_wide), !dst_wide));
            break;
        case TW_OP_SEND:
            send(call, lane, step, polish(src(), !out_wide), out_wide);
            break;
        case TW_OP_RECV: {
            Message message = receive(lane, step);
            meet_width(message, dst_wide);
            store(dst(), message.data);
            break;
        }
        case TW_OP_RECV_REDUCE: {
            Message message = receive(lane, step);
            bool wide = src_wide || dst_wide;
            meet_width(message, wide);
            store(dst(), polish(combine(call, step, src(), message.data, !wide), !dst_wide));
            break;
        }
        case TW_OP_RECV_SEND: {
            Message message = receive(lane, step);
            if (step.dst.block) {
                want_width(message, dst_wide);
                if (dst().size() != message.data.size())
                    throw Failure("passes on a message of another length");
            }
            if (step.flags & TW_STEP_STORE)
                store(dst(), message.data);
            send(call, lane, step, message.data, message.wide);
            break;
        }
        case TW_OP_RECV_REDUCE_SEND: {
            Message message = receive(lane, step);
            meet_width(message, src_wide);
            std::vector<Number> sum =
                polish(combine(call, step, src(), message.data, !src_wide), !out_wide);
            if (step.flags & TW_STEP_STORE)
                store(dst(), sum);
            send(call, lane, step, sum, out_wide);
            break;
        }
        case TW_OP_SIGNAL:
            raise(call, lane, step);
            break;
        default:
            break;
        }
    }

    void advance(Lane &lane)
    {
        Rank &rank = ranks_[(size_t)lane.rank];
        const Call &call = calls_[rank.call];
        run_slice(lane);
        if (++lane.slice < call.slices)
            return;
        lane.slice = 0;
        if (++lane.step < call.plan->ranks[lane.rank].lanes[lane.index].nsteps)
            return;
        lane.step = 0;
        if (++lane.loop < call.loops)
            return;
        lane.active = false;
        if (--rank.lanes_left == 0)
            end(lane.rank);
    }

    std::string stuck() const
    {
        for (const Rank &rank : ranks_)
            for (const Lane &lane : rank.lanes)
                if (rank.running && lane.active)
                    return "rank " + std::to_string(lane.rank) + " lane " +
                           std::to_string(lane.index) + " step " + std::to_string(lane.step);
        return "nobody";
    }
};

} // namespace

NaiveResult naive_run(const tw_plan *plan, uint64_t seed, const tw_plan *next)
{
    try {
        Machine machine(plan, seed, next);
        machine.run();
    } catch (const Failure &failure) {
        std::string text = failure.what();
        return {text.rfind("hang", 0) == 0 ? Outcome::HANG : Outcome::WRONG,
                text + " (seed " + std::to_string(seed) + ")"};
    } catch (const std::out_of_range &) {
        return {Outcome::WRONG, "out of range (seed " + std::to_string(seed) + ")"};
    }
    return {Outcome::RIGHT, ""};
}
