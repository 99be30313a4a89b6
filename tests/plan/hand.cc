// SPDX-License-Identifier: Apache-2.0
// Knows: correct plans, written out. Never knows: how they are proven.
#include "plan/hand.hh"

#include <stdexcept>

extern "C" {
#include "base/status.h"
}

tw_plan_step hand_step(tw_plan_op op)
{
    tw_plan_step step = {};
    step.op = (uint8_t)op;
    step.dep_lane = TW_NO_LANE;
    step.from = step.to = TW_NO_RANK;
    return step;
}

namespace
{

// A plan being written. Steps are chained: w.step(OP).src(...).to(...).add(rank, lane).
class Writer
{
  public:
    Writer(const char *name, tw_coll coll, int nranks, int root = 0) : nranks(nranks)
    {
        tw_build_init(&build, name, coll, nranks, root, -1);
    }

    class Step
    {
      public:
        Step(Writer &writer, tw_plan_op op) : writer_(writer), step_(hand_step(op)) {}
        Step &src(tw_plan_buf buf, uint8_t part, uint32_t first, uint32_t cells = 1)
        {
            step_.src = tw_span_range(buf, part, first, cells);
            return *this;
        }
        Step &dst(tw_plan_buf buf, uint8_t part, uint32_t first, uint32_t cells = 1)
        {
            step_.dst = tw_span_range(buf, part, first, cells);
            return *this;
        }
        Step &src(const tw_plan_span &span)
        {
            step_.src = span;
            return *this;
        }
        Step &dst(const tw_plan_span &span)
        {
            step_.dst = span;
            return *this;
        }
        Step &from(int rank, uint16_t fifo = 0)
        {
            step_.from = rank;
            step_.fifo_in = fifo;
            return *this;
        }
        Step &to(int rank, uint16_t fifo = 0)
        {
            step_.to = rank;
            step_.fifo_out = fifo;
            return *this;
        }
        Step &flags(int flags)
        {
            step_.flags = (uint8_t)(step_.flags | flags);
            return *this;
        }
        Step &after(uint16_t lane, uint32_t step)
        {
            step_.dep_lane = lane;
            step_.dep_step = step;
            return *this;
        }
        Step &sig(uint32_t sig, uint32_t value = 1)
        {
            step_.sig = sig;
            step_.sig_value = value;
            return *this;
        }
        uint32_t add(int rank, uint16_t lane)
        {
            return tw_build_step(&writer_.build, rank, lane, &step_);
        }

      private:
        Writer &writer_;
        tw_plan_step step_;
    };

    Step step(tw_plan_op op) { return {*this, op}; }
    uint8_t part(tw_part_kind kind, uint32_t groups, uint32_t per)
    {
        return tw_build_part(&build, kind, groups, per);
    }
    void lanes(uint16_t count)
    {
        for (int r = 0; r < nranks; r++)
            for (uint16_t l = 0; l < count; l++)
                tw_build_lane(&build, r, l);
    }
    HandPlan finish()
    {
        tw_plan *plan = nullptr;
        if (tw_failed(tw_build_finish(&build, &plan)))
            throw std::runtime_error(tw_fail_text());
        return HandPlan(plan);
    }

    tw_build build;
    int nranks;
};

constexpr tw_plan_buf IN = TW_BUF_IN, OUT = TW_BUF_OUT, SCRATCH = TW_BUF_SCRATCH,
                      WIDE = TW_BUF_WIDE;

// Each rank pushes its input into all others' OUT once they said that their call has begun.
HandPlan put_all_gather(int n)
{
    Writer w("put_all_gather", TW_COLL_ALL_GATHER, n);
    uint8_t in = w.part(TW_PART_EQUAL, 1, 2), out = w.part(TW_PART_EQUAL, (uint32_t)n, 2);
    w.build.plan->caps = TW_CAP_PEER_BUFFERS;
    w.build.plan->slices = 2;
    w.lanes(1);
    for (int r = 0; r < n; r++) {
        for (int p = 0; p < n; p++)
            if (p != r)
                w.step(TW_OP_SIGNAL).to(p).sig((uint32_t)r, 1).add(r, 0);
        w.step(TW_OP_COPY).src(IN, in, 0, 2).dst(OUT, out, (uint32_t)r * 2, 2).add(r, 0);
        for (int k = 1; k < n; k++) {
            int p = (r + k) % n;
            w.step(TW_OP_WAIT).sig((uint32_t)p, 1).add(r, 0);
            w.step(TW_OP_PUT).src(IN, in, 0, 2).to(p).dst(OUT, out, (uint32_t)r * 2, 2).add(r, 0);
            w.step(TW_OP_SIGNAL).to(p).sig((uint32_t)r, 2).add(r, 0);
        }
        for (int p = 0; p < n; p++)
            if (p != r)
                w.step(TW_OP_WAIT).sig((uint32_t)p, 2).add(r, 0);
    }
    return w.finish();
}

// Reduce_scatter by reading the peers' inputs, who stay until all have read.
HandPlan get_reduce_scatter(int n)
{
    Writer w("get_reduce_scatter", TW_COLL_REDUCE_SCATTER, n);
    uint8_t in = w.part(TW_PART_EQUAL, (uint32_t)n, 1), out = w.part(TW_PART_EQUAL, 1, 1);
    w.build.plan->caps = TW_CAP_PEER_BUFFERS;
    w.build.plan->slices = 2;
    w.lanes(1);
    for (int r = 0; r < n; r++) {
        auto all = [&](tw_plan_op op, uint32_t value) {
            for (int k = 1; k < n; k++) {
                int p = (r + k) % n;
                if (op == TW_OP_SIGNAL)
                    w.step(op).to(p).sig((uint32_t)r, value).add(r, 0);
                else
                    w.step(op).sig((uint32_t)p, value).add(r, 0);
            }
        };
        all(TW_OP_SIGNAL, 1);
        all(TW_OP_WAIT, 1);
        w.step(TW_OP_COPY).src(IN, in, (uint32_t)r).dst(OUT, out, 0).add(r, 0);
        for (int k = 1; k < n; k++)
            w.step(TW_OP_GET_REDUCE)
                .src(IN, in, (uint32_t)r)
                .from((r + k) % n)
                .dst(OUT, out, 0)
                .flags((k == n - 1 ? TW_STEP_FINAL : 0) | (k % 2 ? TW_STEP_ACC_RIGHT : 0))
                .add(r, 0);
        all(TW_OP_SIGNAL, 2);
        all(TW_OP_WAIT, 2);
    }
    return w.finish();
}

// Broadcast: the others fetch from the root's input, after it came and before it goes. The root
// copies before that: in place its copy is a write to what they read.
HandPlan get_broadcast(int n)
{
    int root = n - 1;
    Writer w("get_broadcast", TW_COLL_BROADCAST, n, root);
    uint8_t cut = w.part(TW_PART_EQUAL, 1, 3);
    w.build.plan->caps = TW_CAP_PEER_BUFFERS;
    w.build.plan->slices = 2;
    w.lanes(1);
    for (int r = 0; r < n; r++) {
        if (r != root) {
            w.step(TW_OP_WAIT).sig(0, 1).add(r, 0);
            w.step(TW_OP_GET).src(IN, cut, 0, 3).from(root).dst(OUT, cut, 0, 3).add(r, 0);
            w.step(TW_OP_SIGNAL).to(root).sig(1 + (uint32_t)r, 1).add(r, 0);
            continue;
        }
        w.step(TW_OP_COPY).src(IN, cut, 0, 3).dst(OUT, cut, 0, 3).add(r, 0);
        for (int p = 0; p < root; p++)
            w.step(TW_OP_SIGNAL).to(p).sig(0, 1).add(r, 0);
        for (int p = 0; p < root; p++)
            w.step(TW_OP_WAIT).sig(1 + (uint32_t)p, 1).add(r, 0);
    }
    return w.finish();
}

// All_reduce over scratch in two copies. A loop needs no last word of its readers: the second
// half of a loop tells that the first half of scratch was read, the first half of the next loop
// that the second was. From call to call the copies change, so that a call may start at once.
HandPlan push_all_reduce(int n)
{
    Writer w("push_all_reduce", TW_COLL_ALL_REDUCE, n);
    uint32_t N = (uint32_t)n;
    uint8_t cut = w.part(TW_PART_EQUAL, 1, N);
    w.build.plan->caps = TW_CAP_PUT_SCRATCH;
    w.build.plan->parity = 2;
    w.build.plan->slices = 2;
    w.build.plan->scratch_cells = N * N + N;
    w.lanes(1);
    for (int r = 0; r < n; r++) {
        uint32_t R = (uint32_t)r;
        for (int k = 1; k < n; k++) {
            uint32_t p = (uint32_t)((r + k) % n);
            w.step(TW_OP_PUT).src(IN, cut, p).to((int)p).dst(SCRATCH, cut, R * N + p).add(r, 0);
            w.step(TW_OP_SIGNAL).to((int)p).sig(R, 1).add(r, 0);
        }
        w.step(TW_OP_COPY).src(IN, cut, R).dst(OUT, cut, R).add(r, 0);
        for (int k = 1; k < n; k++) {
            uint32_t p = (uint32_t)((r + k) % n);
            w.step(TW_OP_WAIT).sig(p, 1).add(r, 0);
            w.step(TW_OP_REDUCE)
                .src(SCRATCH, cut, p * N + R)
                .dst(OUT, cut, R)
                .flags(k == n - 1 ? TW_STEP_FINAL : 0)
                .add(r, 0);
        }
        for (int k = 1; k < n; k++) {
            uint32_t p = (uint32_t)((r + k) % n);
            w.step(TW_OP_PUT).src(OUT, cut, R).to((int)p).dst(SCRATCH, cut, N * N + R).add(r, 0);
            w.step(TW_OP_SIGNAL).to((int)p).sig(R, 2).add(r, 0);
        }
        for (int k = 1; k < n; k++) {
            uint32_t p = (uint32_t)((r + k) % n);
            w.step(TW_OP_WAIT).sig(p, 2).add(r, 0);
            w.step(TW_OP_COPY).src(SCRATCH, cut, N * N + p).dst(OUT, cut, p).add(r, 0);
        }
    }
    return w.finish();
}

// Chain all_reduce with the way up and the way down in lanes of their own. The last rank turns
// round slice by slice.
HandPlan lanes_all_reduce(int n)
{
    Writer w("lanes_all_reduce", TW_COLL_ALL_REDUCE, n);
    uint8_t cut = w.part(TW_PART_EQUAL, 1, 2);
    w.build.plan->slices = 4;
    w.build.plan->depth = 2;
    w.lanes(2);
    for (int r = 0; r < n; r++) {
        uint32_t last = 0;
        for (uint32_t c = 0; c < 2; c++) {
            if (r == 0)
                last = w.step(TW_OP_SEND).src(IN, cut, c).to(1).add(r, 0);
            else if (r < n - 1)
                last =
                    w.step(TW_OP_RECV_REDUCE_SEND).src(IN, cut, c).from(r - 1).to(r + 1).add(r, 0);
            else
                last = w.step(TW_OP_RECV_REDUCE)
                           .src(IN, cut, c)
                           .from(r - 1)
                           .dst(OUT, cut, c)
                           .flags(TW_STEP_FINAL)
                           .add(r, 0);
            if (r == n - 1)
                w.step(TW_OP_SEND).src(OUT, cut, c).to(r - 1, 1).after(0, last).add(r, 1);
            else if (r > 0)
                w.step(TW_OP_RECV_SEND)
                    .from(r + 1, 1)
                    .to(r - 1, 1)
                    .dst(OUT, cut, c)
                    .flags(TW_STEP_STORE)
                    .after(0, last)
                    .add(r, 1);
            else
                w.step(TW_OP_RECV).from(1, 1).dst(OUT, cut, c).after(0, last).add(r, 1);
        }
    }
    return w.finish();
}

// Reduce through a scratch cell that one lane fills and another empties; both reuse it for the
// next cell and the next loop, so that each waits for the other.
HandPlan handover_reduce(int n)
{
    Writer w("handover_reduce", TW_COLL_REDUCE, n, 0);
    uint8_t cut = w.part(TW_PART_EQUAL, 1, 2), flat = w.part(TW_PART_EQUAL, 1, 2);
    w.build.plan->slices = 2;
    w.build.plan->depth = 1;
    w.build.plan->scratch_cells = 2;
    w.lanes(2);
    for (int r = 1; r < n; r++)
        for (uint32_t c = 0; c < 2; c++)
            w.step(TW_OP_SEND).src(IN, cut, c).to(0, 0).add(r, 0);
    uint32_t copied = 0, added = 0;
    for (uint32_t c = 0; c < 2; c++)
        copied = w.step(TW_OP_COPY).src(IN, cut, c).dst(OUT, cut, c).add(0, 1);
    for (int p = 1; p < n; p++) {
        for (uint32_t c = 0; c < 2; c++) {
            auto recv = w.step(TW_OP_RECV).from(p, 0).dst(SCRATCH, flat, c);
            if (p > 1)
                recv.after(1, copied + 2 * (uint32_t)(p - 2) + 1 + c);
            uint32_t got = recv.add(0, 0);
            added = w.step(TW_OP_REDUCE)
                        .src(SCRATCH, flat, c)
                        .dst(OUT, cut, c)
                        .flags(p == n - 1 ? TW_STEP_FINAL : 0)
                        .after(0, got)
                        .add(0, 1);
        }
    }
    // the filling lane ends its loop when the other has emptied the last cells: an empty copy of
    // its own output after it
    auto end = w.step(TW_OP_SEND).to(1, 1).after(1, added);
    end.add(0, 0);
    w.step(TW_OP_RECV).from(0, 1).add(1, 0);
    return w.finish();
}

// The tree of a deterministic sum, over wide[first .. first + count).
void add_tree(Writer &w, uint8_t cut, int rank, uint32_t first, uint32_t count)
{
    if (count == 1)
        return;
    uint32_t half = 1;
    while (2 * half < count)
        half *= 2;
    add_tree(w, cut, rank, first, half);
    add_tree(w, cut, rank, first + half, count - half);
    w.step(TW_OP_REDUCE).src(WIDE, cut, first + half).dst(WIDE, cut, first).add(rank, 0);
}

// Each rank gathers its shard from all, widens, adds in tree order, finishes, rounds once.
HandPlan ordered_reduce_scatter(int n)
{
    Writer w("ordered_reduce_scatter", TW_COLL_REDUCE_SCATTER, n);
    uint32_t N = (uint32_t)n;
    uint8_t in = w.part(TW_PART_EQUAL, N, 1), out = w.part(TW_PART_EQUAL, 1, 1);
    w.build.plan->deterministic = true;
    w.build.plan->scratch_cells = N;
    w.build.plan->wide_cells = N;
    w.lanes(1);
    for (int r = 0; r < n; r++) {
        for (int k = 1; k < n; k++)
            w.step(TW_OP_SEND).src(IN, in, (uint32_t)((r + k) % n)).to((r + k) % n).add(r, 0);
        w.step(TW_OP_COPY).src(IN, in, (uint32_t)r).dst(WIDE, in, (uint32_t)r).add(r, 0);
        for (int k = 1; k < n; k++) {
            uint32_t p = (uint32_t)((r - k + n) % n);
            w.step(TW_OP_RECV).from((int)p).dst(SCRATCH, in, p).add(r, 0);
            w.step(TW_OP_COPY).src(SCRATCH, in, p).dst(WIDE, in, p).add(r, 0);
        }
        add_tree(w, in, r, 0, N);
        w.step(TW_OP_COPY)
            .src(WIDE, in, 0)
            .dst(OUT, out, 0)
            .flags(TW_STEP_FINAL | TW_STEP_ROUND)
            .add(r, 0);
    }
    return w.finish();
}

// A ring whose partials travel wide, rounded when the sum is whole.
HandPlan wide_ring(int n)
{
    Writer w("wide_ring", TW_COLL_ALL_REDUCE, n);
    uint32_t N = (uint32_t)n;
    uint8_t cut = w.part(TW_PART_EQUAL, 1, N);
    w.build.plan->depth = 3;
    w.build.plan->slices = 2;
    w.build.plan->wide_cells = N;
    w.lanes(1);
    for (int r = 0; r < n; r++) {
        int right = (r + 1) % n, left = (r + n - 1) % n;
        auto cell = [&](int k) { return (uint32_t)((r - k + 2 * n) % n); };
        w.step(TW_OP_COPY).src(IN, cut, 0, N).dst(WIDE, cut, 0, N).add(r, 0);
        w.step(TW_OP_SEND).src(WIDE, cut, cell(0)).to(right).add(r, 0);
        for (int k = 1; k < n - 1; k++)
            w.step(TW_OP_RECV_REDUCE_SEND)
                .src(WIDE, cut, cell(k))
                .from(left)
                .to(right)
                .flags(k % 2 ? TW_STEP_ACC_RIGHT : 0)
                .add(r, 0);
        w.step(TW_OP_RECV_REDUCE_SEND)
            .src(WIDE, cut, cell(n - 1))
            .from(left)
            .to(right)
            .dst(OUT, cut, cell(n - 1))
            .flags(TW_STEP_FINAL | TW_STEP_ROUND | TW_STEP_STORE)
            .add(r, 0);
        for (int k = n; k < 2 * n - 2; k++)
            w.step(TW_OP_RECV_SEND)
                .from(left)
                .to(right)
                .dst(OUT, cut, cell(k))
                .flags(TW_STEP_STORE)
                .add(r, 0);
        w.step(TW_OP_RECV).from(left).dst(OUT, cut, cell(2 * n - 2)).add(r, 0);
    }
    return w.finish();
}

// Rank 0's wide sum goes to rank 1 as wide, is rounded there; others send theirs rounded.
HandPlan wide_reduce(int n)
{
    Writer w("wide_reduce", TW_COLL_REDUCE, n, n - 1);
    uint8_t cut = w.part(TW_PART_EQUAL, 1, 1);
    w.build.plan->wide_cells = 2;
    w.lanes(1);
    for (int r = 0; r < n - 1; r++) {
        w.step(TW_OP_COPY).src(IN, cut, 0).dst(WIDE, cut, 0).add(r, 0);
        if (r > 0) {
            w.step(TW_OP_RECV).from(r - 1).dst(WIDE, cut, 1).add(r, 0);
            w.step(TW_OP_REDUCE).src(WIDE, cut, 1).dst(WIDE, cut, 0).add(r, 0);
        }
        w.step(TW_OP_SEND)
            .src(WIDE, cut, 0)
            .to(r + 1)
            .flags(r == n - 2 ? TW_STEP_ROUND : 0)
            .add(r, 0);
    }
    w.step(TW_OP_RECV_REDUCE)
        .src(IN, cut, 0)
        .from(n - 2)
        .dst(OUT, cut, 0)
        .flags(TW_STEP_FINAL)
        .add(n - 1, 0);
    return w.finish();
}

// all_to_all with counts of their own for each pair, several cells a group, through scratch on
// the way out of odd ranks. What is sent makes room for what comes: OUT may be IN.
HandPlan pairs_all_to_all(int n)
{
    Writer w("pairs_all_to_all", TW_COLL_ALL_TO_ALL_V, n);
    uint32_t N = (uint32_t)n;
    uint8_t in = w.part(TW_PART_PAIR_SEND, N, 2), out = w.part(TW_PART_PAIR_RECV, N, 2);
    w.build.plan->scratch_cells = 2 * N;
    w.build.plan->slices = 2;
    w.lanes(1);
    for (int r = 0; r < n; r++) {
        for (int k = 0; k < n; k++) {
            int peer = (k - r + n) % n;
            uint32_t at = 2 * (uint32_t)peer;
            if (peer == r) {
                w.step(TW_OP_COPY).src(IN, in, at, 2).dst(OUT, out, at, 2).add(r, 0);
                continue;
            }
            if (r % 2)
                w.step(TW_OP_COPY).src(IN, in, at, 2).dst(SCRATCH, in, at, 2).add(r, 0);
            w.step(TW_OP_SEND).src(r % 2 ? SCRATCH : IN, in, at, 2).to(peer).add(r, 0);
            w.step(TW_OP_RECV).from(peer).dst(OUT, out, at, 2).add(r, 0);
        }
    }
    w.build.plan->depth = 2;
    return w.finish();
}

// all_gather by doubling with strided spans and spans of several blocks; nranks rounded down to
// a power of two does it, the others get everything from rank 0.
HandPlan strided_all_gather(int n)
{
    Writer w("strided_all_gather", TW_COLL_ALL_GATHER, n);
    uint32_t N = (uint32_t)n;
    uint8_t in = w.part(TW_PART_EQUAL, 1, 2), out = w.part(TW_PART_EQUAL, N, 2);
    w.lanes(1);
    int power = 1;
    while (2 * power <= n)
        power *= 2;
    // cell 0 of every block of ranks: block 1, stride 2, twice: as two messages
    auto half = [&](int first, int count, uint32_t sub) {
        return tw_plan_span{OUT, out, 0, 2 * (uint32_t)first + sub, 1, 2, (uint32_t)count};
    };
    for (int r = 0; r < n; r++)
        w.step(TW_OP_COPY).src(IN, in, 0, 2).dst(OUT, out, 2 * (uint32_t)r, 2).add(r, 0);
    for (int r = power; r < n; r++) {
        w.step(TW_OP_SEND).src(OUT, out, 2 * (uint32_t)r, 2).to(0).add(r, 0);
        w.step(TW_OP_RECV).from(r).dst(OUT, out, 2 * (uint32_t)r, 2).add(0, 0);
    }
    for (int span = 1; span < power; span *= 2)
        for (int r = 0; r < power; r++) {
            int peer = r ^ span, mine = r / span * span, theirs = peer / span * span;
            for (uint32_t sub = 0; sub < 2; sub++)
                w.step(TW_OP_SEND).src(half(mine, span, sub)).to(peer).add(r, 0);
            for (uint32_t sub = 0; sub < 2; sub++)
                w.step(TW_OP_RECV).from(peer).dst(half(theirs, span, sub)).add(r, 0);
        }
    for (int r = 1; r < n && power < n; r++) {
        uint32_t first = r < power ? 2 * (uint32_t)power : 0;
        uint32_t cells = r < power ? 2 * (N - (uint32_t)power) : 2 * N;
        w.step(TW_OP_SEND).src(OUT, out, first, cells).to(r).add(0, 0);
        w.step(TW_OP_RECV).from(0).dst(OUT, out, first, cells).add(r, 0);
    }
    w.build.plan->depth = 2;
    return w.finish();
}

// Everyone tells rank 0, which tells everyone.
HandPlan star_barrier(int n)
{
    Writer w("star_barrier", TW_COLL_BARRIER, n);
    w.lanes(1);
    for (int r = 1; r < n; r++) {
        w.step(TW_OP_SEND).to(0).add(r, 0);
        w.step(TW_OP_RECV).from(r).add(0, 0);
    }
    for (int r = 1; r < n; r++) {
        w.step(TW_OP_SEND).to(r).add(0, 0);
        w.step(TW_OP_RECV).from(0).add(r, 0);
    }
    return w.finish();
}

// Reduce to rank 0 and broadcast from it, each a plan of its own, joined by dependencies.
HandPlan embedded_all_reduce(int n)
{
    Writer up("up", TW_COLL_REDUCE, n, 0), down("down", TW_COLL_BROADCAST, n, 0);
    for (Writer *w : {&up, &down}) {
        w->part(TW_PART_EQUAL, 1, 1);
        w->lanes(1);
    }
    for (int r = 1; r < n; r++) {
        up.step(TW_OP_SEND).src(IN, 0, 0).to(0).add(r, 0);
        up.step(TW_OP_RECV_REDUCE)
            .src(r == 1 ? IN : OUT, 0, 0)
            .from(r)
            .dst(OUT, 0, 0)
            .flags(r == n - 1 ? TW_STEP_FINAL : 0)
            .add(0, 0);
        down.step(TW_OP_SEND).src(IN, 0, 0).to(r).add(0, 0);
        down.step(TW_OP_RECV).from(0).dst(OUT, 0, 0).add(r, 0);
    }
    HandPlan reduce = up.finish(), broadcast = down.finish();
    Writer w("embedded_all_reduce", TW_COLL_ALL_REDUCE, n);
    w.part(TW_PART_EQUAL, 1, 1);
    std::vector<int> ranks;
    std::vector<uint16_t> lanes((size_t)n);
    std::vector<tw_step_ref> after((size_t)n);
    for (int r = 0; r < n; r++)
        ranks.push_back(r);
    tw_cell_map first[TW_BUF_COUNT] = {{IN, 0, 0, 1, 0, 0, 0},
                                       {OUT, 0, 0, 1, 0, 0, 0},
                                       {SCRATCH, 0, 0, 1, 0, 0, 0},
                                       {WIDE, 0, 0, 1, 0, 0, 0}};
    tw_cell_map second[TW_BUF_COUNT] = {{OUT, 0, 0, 1, 0, 0, 0},
                                        {OUT, 0, 0, 1, 0, 0, 0},
                                        {SCRATCH, 0, 0, 1, 0, 0, 0},
                                        {WIDE, 0, 0, 1, 0, 0, 0}};
    if (tw_failed(
            tw_build_embed(&w.build, reduce.get(), ranks.data(), first, nullptr, lanes.data())))
        throw std::runtime_error(tw_fail_text());
    for (int r = 0; r < n; r++)
        after[(size_t)r] = {lanes[(size_t)r],
                            w.build.plan->ranks[r].lanes[lanes[(size_t)r]].nsteps - 1};
    if (tw_failed(tw_build_embed(&w.build, broadcast.get(), ranks.data(), second, after.data(),
                                 lanes.data())))
        throw std::runtime_error(tw_fail_text());
    return w.finish();
}

struct Maker {
    const char *name;
    HandPlan (*make)(int nranks);
};
const Maker makers[] = {
    {"put_all_gather", put_all_gather},
    {"get_reduce_scatter", get_reduce_scatter},
    {"get_broadcast", get_broadcast},
    {"push_all_reduce", push_all_reduce},
    {"lanes_all_reduce", lanes_all_reduce},
    {"handover_reduce", handover_reduce},
    {"ordered_reduce_scatter", ordered_reduce_scatter},
    {"wide_ring", wide_ring},
    {"wide_reduce", wide_reduce},
    {"pairs_all_to_all", pairs_all_to_all},
    {"strided_all_gather", strided_all_gather},
    {"star_barrier", star_barrier},
    {"embedded_all_reduce", embedded_all_reduce},
};

} // namespace

HandPlan hand_plan(const std::string &name, int nranks)
{
    for (const Maker &maker : makers)
        if (name == maker.name)
            return maker.make(nranks);
    throw std::runtime_error("no plan " + name);
}

std::vector<std::string> hand_names()
{
    std::vector<std::string> names;
    for (const Maker &maker : makers)
        names.push_back(maker.name);
    return names;
}

std::vector<HandPlan> hand_plans(int nranks)
{
    std::vector<HandPlan> plans;
    for (const Maker &maker : makers)
        plans.push_back(maker.make(nranks));
    return plans;
}
