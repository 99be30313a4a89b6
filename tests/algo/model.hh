// SPDX-License-Identifier: Apache-2.0
// Knows: a plan's meaning, executed step by step over tagged values under a random schedule.
// Never knows: the checker, the executors, the algorithms.
//
// An evaluation of plans that shares no code with the checker. A value says which input cell it
// comes from, which ranks' inputs are in it, how often it was finished, and of which slice, loop
// and call it is. Lanes of all ranks are advanced one slice at a time in random order, FIFOs hold
// `depth` messages and a fused step needs its message and a free slot at once. At most 64 ranks.
#ifndef TW_TESTS_ALGO_MODEL_HH
#define TW_TESTS_ALGO_MODEL_HH

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "plan/contract.hh"

extern "C" {
#include "plan/plan.h"
}

namespace model
{

struct Value {
    uint64_t ranks = 0; // whose inputs are in it; 0: never written
    uint32_t cell = 0;  // of those ranks' IN
    uint32_t finals = 0;
    uint32_t slice = 0, loop = 0, call = 0;
    bool operator==(const Value &o) const
    {
        return ranks == o.ranks && cell == o.cell && finals == o.finals && slice == o.slice &&
               loop == o.loop && call == o.call;
    }
};

struct Options {
    uint32_t slices = 1, loops = 1, calls = 1;
    uint64_t inplace = 0; // bit per rank
    uint64_t seed = 1;
};

class Run
{
  public:
    // Runs `plans` in turn for options.calls calls; all have the same collective, ranks and root.
    Run(std::vector<const tw_plan *> plans, const Options &options)
        : plans_(std::move(plans)), options_(options), random_(options.seed),
          ranks_(plans_[0]->nranks)
    {
        for (int r = 0; r < plans_[0]->nranks; r++)
            call_start(r);
    }

    // "" or what went wrong.
    std::string go()
    {
        while (error_.empty()) {
            bool moved = false, open = false;
            for (auto &at : order()) {
                if (!at.first->running)
                    continue;
                open = true;
                uint32_t burst = 1 + random_() % 4;
                while (burst-- > 0 && at.first->running &&
                       advance(at.second.first, at.second.second))
                    moved = true;
            }
            if (!open)
                return empty_fifos();
            if (!moved)
                return "deadlock: " + stuck();
        }
        return error_;
    }

    // Longest chain of messages and signals, each sent after the one before was received.
    uint32_t chain() const { return chain_; }
    // Rounds of messages when a rank sends one and receives one in a round (neighbouring messages
    // to or from one peer count as one).
    uint32_t one_port() const { return one_port_; }

  private:
    struct Lane {
        uint32_t loop = 0, step = 0, slice = 0;
        std::vector<uint32_t> clocks; // chain clock behind each step
        uint32_t clock = 0;
        bool done = false;
    };
    struct Rank {
        uint32_t call = 0;
        bool running = false;
        std::vector<Lane> lanes;
        std::map<std::tuple<int, uint32_t, uint32_t, uint32_t>, Value> cells; // buf cell loop slice
        uint32_t sent_round = 0, heard_round = 0; // of the newest message out and in
        int sent_to = -1, heard_from = -1;        // its peer, -1 once the other direction was used
    };
    struct Message {
        std::vector<Value> values;
        uint32_t clock, round;
    };
    using Word = std::vector<std::pair<uint64_t, uint32_t>>; // values raised, with chain clocks
    using Fifo = std::tuple<int, int, int>;

    std::vector<const tw_plan *> plans_;
    Options options_;
    std::mt19937_64 random_;
    std::vector<Rank> ranks_;
    std::map<Fifo, std::deque<Message>> fifos_;
    std::map<std::tuple<int, uint32_t, uint32_t>, Word> words_;
    std::string error_;
    uint32_t chain_ = 0, one_port_ = 0;

    const tw_plan *plan_of(int r) const { return plans_[ranks_[r].call % plans_.size()]; }
    uint32_t per_of(const tw_plan *p) const { return p->nparts ? p->parts[0].per : 0; }
    uint32_t slices_of(const tw_plan *p) const
    {
        return options_.slices < p->slices ? options_.slices : p->slices;
    }

    std::vector<std::pair<Rank *, std::pair<int, uint32_t>>> order()
    {
        std::vector<std::pair<Rank *, std::pair<int, uint32_t>>> all;
        for (int r = 0; r < (int)ranks_.size(); r++)
            for (uint32_t l = 0; l < plan_of(r)->ranks[r].nlanes || l == 0; l++)
                all.push_back({&ranks_[r], {r, l}});
        std::shuffle(all.begin(), all.end(), random_);
        return all;
    }

    static bool has(const tw_plan *p, int r, int buf)
    {
        return buf == TW_BUF_IN ? contract::has_in(p->coll, p->root, r)
                                : contract::has_out(p->coll, p->root, r);
    }

    uint32_t groups(const tw_plan *p, int buf) const
    {
        bool many = buf == TW_BUF_IN ? contract::many_in(p->coll) : contract::many_out(p->coll);
        return many ? (uint32_t)p->nranks : 1;
    }

    // Where a cell lives: in place, IN and OUT are one buffer.
    std::tuple<int, uint32_t, uint32_t, uint32_t> place(int r, int buf, uint32_t cell,
                                                        uint32_t loop, uint32_t slice) const
    {
        const tw_plan *p = plan_of(r);
        if (buf >= TW_BUF_SCRATCH)
            return {buf, cell, 0, slice};
        bool inplace = (options_.inplace >> r & 1) && has(p, r, TW_BUF_IN) && has(p, r, TW_BUF_OUT);
        uint32_t in = groups(p, TW_BUF_IN), out = groups(p, TW_BUF_OUT);
        if (inplace && (buf == TW_BUF_OUT ? in > out : out > in))
            cell += (uint32_t)r * per_of(p);
        return {inplace ? TW_BUF_IN : buf, cell, loop, slice};
    }

    void call_start(int r)
    {
        Rank &rank = ranks_[r];
        const tw_plan *p = plan_of(r);
        rank.running = true;
        rank.lanes.assign(p->ranks[r].nlanes, Lane());
        for (uint32_t l = 0; l < p->ranks[r].nlanes; l++) {
            rank.lanes[l].clocks.assign(p->ranks[r].lanes[l].nsteps, 0);
            rank.lanes[l].done = p->ranks[r].lanes[l].nsteps == 0;
        }
        for (auto it = rank.cells.begin(); it != rank.cells.end();)
            it = std::get<0>(it->first) < TW_BUF_SCRATCH ? rank.cells.erase(it) : std::next(it);
        if (!has(p, r, TW_BUF_IN))
            return;
        for (uint32_t c = 0; c < groups(p, TW_BUF_IN) * per_of(p); c++)
            for (uint32_t loop = 0; loop < options_.loops; loop++)
                for (uint32_t s = 0; s < slices_of(p); s++) {
                    Value v;
                    v.ranks = 1ull << r, v.cell = c, v.slice = s, v.loop = loop, v.call = rank.call;
                    rank.cells[place(r, TW_BUF_IN, c, loop, s)] = v;
                }
    }

    void fail(int r, uint32_t l, const std::string &what)
    {
        const Lane &lane = ranks_[r].lanes[l];
        error_ = "call " + std::to_string(ranks_[r].call) + " rank " + std::to_string(r) +
                 " lane " + std::to_string(l) + " loop " + std::to_string(lane.loop) + " step " +
                 std::to_string(lane.step) + " slice " + std::to_string(lane.slice) + ": " + what;
    }

    std::vector<Value> read(int owner, int r, uint32_t l, const tw_plan_span &span)
    {
        const Lane &lane = ranks_[r].lanes[l];
        std::vector<Value> values;
        for (uint32_t i = 0; i < span.block * span.nblocks; i++) {
            uint32_t cell = span.first + i / span.block * span.stride + i % span.block;
            auto it = ranks_[owner].cells.find(place(owner, span.buf, cell, lane.loop, lane.slice));
            if (it == ranks_[owner].cells.end() || it->second.ranks == 0) {
                fail(r, l, "reads a cell that nobody wrote");
                return {};
            }
            const Value &v = it->second;
            if (v.slice != lane.slice || v.loop != lane.loop || v.call != ranks_[r].call)
                fail(r, l, "reads a value of another slice, loop or call");
            values.push_back(v);
        }
        return values;
    }

    void write(int owner, int r, uint32_t l, const tw_plan_span &span,
               const std::vector<Value> &values)
    {
        const Lane &lane = ranks_[r].lanes[l];
        if (span.block * span.nblocks != values.size())
            return fail(r, l, "writes another number of cells than it has");
        for (uint32_t i = 0; i < values.size(); i++) {
            uint32_t cell = span.first + i / span.block * span.stride + i % span.block;
            ranks_[owner].cells[place(owner, span.buf, cell, lane.loop, lane.slice)] = values[i];
        }
    }

    std::vector<Value> join(int r, uint32_t l, const std::vector<Value> &a,
                            const std::vector<Value> &b)
    {
        std::vector<Value> sum = a;
        if (a.size() != b.size())
            fail(r, l, "adds spans of different sizes");
        for (size_t i = 0; i < a.size() && i < b.size(); i++) {
            if (a[i].ranks & b[i].ranks)
                fail(r, l, "adds a rank's input twice");
            if (a[i].finals || b[i].finals || a[i].cell != b[i].cell || a[i].slice != b[i].slice ||
                a[i].loop != b[i].loop || a[i].call != b[i].call)
                fail(r, l, "adds values that do not belong together");
            sum[i].ranks |= b[i].ranks;
        }
        return sum;
    }

    bool dep_met(int r, const tw_plan_step &step, const Lane &lane)
    {
        if (step.dep_lane == TW_NO_LANE)
            return true;
        const Lane &dep = ranks_[r].lanes[step.dep_lane];
        if (dep.done || dep.loop != lane.loop)
            return dep.done || dep.loop > lane.loop;
        if (dep.step != step.dep_step)
            return dep.step > step.dep_step;
        return !(step.flags & TW_STEP_WHOLE) && dep.slice > lane.slice;
    }

    // One slice of the lane's step, if it can run.
    bool advance(int r, uint32_t l)
    {
        Rank &rank = ranks_[r];
        if (l < rank.lanes.size() && !rank.lanes[l].done && !run_step(r, l))
            return false;
        bool moved = l < rank.lanes.size() && !rank.lanes[l].done;
        if (moved)
            step_end(r, l);
        for (const Lane &lane : rank.lanes)
            if (!lane.done)
                return moved;
        call_end(r);
        return true;
    }

    void step_end(int r, uint32_t l)
    {
        Lane &lane = ranks_[r].lanes[l];
        const tw_plan *p = plan_of(r);
        lane.clocks[lane.step] = lane.clock;
        if (++lane.slice < slices_of(p))
            return;
        lane.slice = 0;
        if (++lane.step < p->ranks[r].lanes[l].nsteps)
            return;
        lane.step = 0;
        lane.done = ++lane.loop == options_.loops;
    }

    bool run_step(int r, uint32_t l)
    {
        const tw_plan *p = plan_of(r);
        Rank &rank = ranks_[r];
        Lane &lane = rank.lanes[l];
        const tw_plan_step &step = p->ranks[r].lanes[l].steps[lane.step];
        if (!dep_met(r, step, lane))
            return false;
        bool receives = step.op == TW_OP_RECV || step.op == TW_OP_RECV_REDUCE ||
                        step.op == TW_OP_RECV_SEND || step.op == TW_OP_RECV_REDUCE_SEND;
        bool sends = step.op == TW_OP_SEND || step.op == TW_OP_RECV_SEND ||
                     step.op == TW_OP_RECV_REDUCE_SEND;
        auto *in = receives ? &fifos_[Fifo(step.from, r, step.fifo_in)] : nullptr;
        auto *out = sends ? &fifos_[Fifo(r, step.to, step.fifo_out)] : nullptr;
        if ((in && in->empty()) || (out && out->size() >= p->depth))
            return false;
        if (step.op == TW_OP_WAIT && !signal_seen(r, l, step))
            return false;
        if (step.dep_lane != TW_NO_LANE)
            hear(lane, rank.lanes[step.dep_lane].clocks[step.dep_step]);
        std::vector<Value> value;
        if (in) {
            value = in->front().values;
            hear(lane, in->front().clock);
            take_round(rank, step.from, in->front().round);
            in->pop_front();
        }
        compute(r, l, step, value);
        if (out)
            out->push_back({value, lane.clock + 1, give_round(rank, step.to)});
        return true;
    }

    void compute(int r, uint32_t l, const tw_plan_step &step, std::vector<Value> &value)
    {
        int reads_at = step.op == TW_OP_GET || step.op == TW_OP_GET_REDUCE ? step.from : r;
        std::vector<Value> src;
        if (step.src.block)
            src = read(reads_at, r, l, step.src);
        if (step.op == TW_OP_RECV_REDUCE || step.op == TW_OP_RECV_REDUCE_SEND)
            value = join(r, l, src, value);
        else if (step.op == TW_OP_REDUCE || step.op == TW_OP_GET_REDUCE)
            value = join(r, l, read(r, r, l, step.dst), src);
        else if (step.src.block)
            value = src;
        if (step.flags & TW_STEP_FINAL)
            for (Value &v : value)
                v.finals++;
        if (step.op == TW_OP_SIGNAL)
            signal_raise(r, l, step);
        bool fused = step.op == TW_OP_RECV_SEND || step.op == TW_OP_RECV_REDUCE_SEND;
        if (step.dst.block && (!fused || (step.flags & TW_STEP_STORE)))
            write(step.op == TW_OP_PUT ? step.to : r, r, l, step.dst, value);
        else if (step.op == TW_OP_RECV && !value.empty())
            fail(r, l, "drops a message");
    }

    uint64_t base(int r, const Lane &lane) const
    {
        uint64_t top = 0;
        for (const tw_plan *p : plans_)
            top = p->sig_max > top ? p->sig_max : top;
        return ((uint64_t)ranks_[r].call * options_.loops + lane.loop) * top;
    }

    bool signal_seen(int r, uint32_t l, const tw_plan_step &step)
    {
        Lane &lane = ranks_[r].lanes[l];
        for (const auto &raised : words_[{r, step.sig, lane.slice}]) {
            if (raised.first < base(r, lane) + step.sig_value)
                continue;
            hear(lane, raised.second);
            return true;
        }
        return false;
    }

    void signal_raise(int r, uint32_t l, const tw_plan_step &step)
    {
        Lane &lane = ranks_[r].lanes[l];
        Word &word = words_[{step.to, step.sig, lane.slice}];
        uint64_t value = base(r, lane) + step.sig_value;
        if (!word.empty() && word.back().first >= value)
            return fail(r, l, "a signal does not grow");
        word.push_back({value, lane.clock + 1});
    }

    void hear(Lane &lane, uint32_t clock)
    {
        lane.clock = clock > lane.clock ? clock : lane.clock;
        chain_ = clock > chain_ ? clock : chain_;
    }

    void take_round(Rank &rank, int peer, uint32_t sent)
    {
        uint32_t next = rank.heard_round + (peer == rank.heard_from ? 0 : 1);
        rank.heard_round = sent > next ? sent : next;
        rank.heard_from = peer;
        rank.sent_to = -1;
        one_port_ = rank.heard_round > one_port_ ? rank.heard_round : one_port_;
    }

    uint32_t give_round(Rank &rank, int peer)
    {
        uint32_t next = rank.sent_round + (peer == rank.sent_to ? 0 : 1);
        // what was heard in a round goes on in the next one
        if (peer != rank.sent_to && next <= rank.heard_round)
            next = rank.heard_round + 1;
        rank.sent_round = next;
        rank.sent_to = peer;
        rank.heard_from = -1;
        return next;
    }

    Value wanted(const tw_plan *p, int r, uint32_t cell)
    {
        uint64_t all = p->nranks == 64 ? ~0ull : (1ull << p->nranks) - 1;
        uint32_t per = per_of(p), group = cell / per, sub = cell % per;
        Value v;
        v.cell = contract::source_group(p->coll, r) * per + sub;
        v.ranks = 1ull << contract::source_rank(p->coll, p->root, (int)group);
        if (contract::reduces(p->coll)) {
            v.ranks = all;
            v.finals = 1;
        }
        return v;
    }

    void call_end(int r)
    {
        Rank &rank = ranks_[r];
        const tw_plan *p = plan_of(r);
        uint32_t cells = has(p, r, TW_BUF_OUT) ? groups(p, TW_BUF_OUT) * per_of(p) : 0;
        for (uint32_t c = 0; c < cells; c++)
            for (uint32_t loop = 0; loop < options_.loops; loop++)
                for (uint32_t s = 0; s < slices_of(p); s++) {
                    Value v = wanted(p, r, c);
                    v.slice = s, v.loop = loop, v.call = rank.call;
                    if (!(rank.cells[place(r, TW_BUF_OUT, c, loop, s)] == v) && error_.empty())
                        error_ = "rank " + std::to_string(r) + ": out cell " + std::to_string(c) +
                                 " is wrong in call " + std::to_string(rank.call);
                }
        rank.running = false;
        if (rank.call + 1 < options_.calls) {
            rank.call++;
            call_start(r);
        }
    }

    std::string stuck() const
    {
        for (int r = 0; r < (int)ranks_.size(); r++)
            for (uint32_t l = 0; l < ranks_[r].lanes.size(); l++)
                if (ranks_[r].running && !ranks_[r].lanes[l].done)
                    return "rank " + std::to_string(r) + " lane " + std::to_string(l) + " step " +
                           std::to_string(ranks_[r].lanes[l].step);
        return "nobody waits";
    }

    std::string empty_fifos() const
    {
        for (const auto &fifo : fifos_)
            if (!fifo.second.empty())
                return "a message is left in a fifo";
        return error_;
    }
};

} // namespace model

#endif
