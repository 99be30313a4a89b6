// SPDX-License-Identifier: Apache-2.0
// Knows: plans written by hand for what no built-in algorithm uses. Never knows: how steps run.
#include <gtest/gtest.h>

#include <cstring>

#include "collective.h"
#include "plan/contract.hh"
#include "reference.h"
#include "world.h"

extern "C" {
#include "algo/algo.h"
#include "base/status.h"
}

namespace
{

// Writes steps; spans and peers are filled in by the caller.
class Builder
{
  public:
    Builder(tw_coll coll, int size, int only_rank = -1)
    {
        tw_build_init(&build_, "by_hand", coll, size, 0, only_rank);
        build_.plan->depth = 2;
    }
    ~Builder() { tw_plan_destroy(build_.plan); }
    tw_plan *operator->() { return build_.plan; }
    uint8_t part(tw_part_kind kind, uint32_t groups, uint32_t per = 1)
    {
        return tw_build_part(&build_, kind, groups, per);
    }
    uint16_t lane(int rank) { return tw_build_lane(&build_, rank, 0); }
    uint32_t step(int rank, uint16_t lane, const tw_plan_step &step)
    {
        return tw_build_step(&build_, rank, lane, &step);
    }
    PlanPtr finish()
    {
        tw_plan *plan = nullptr;
        EXPECT_EQ(tw_build_finish(&build_, &plan), TWILL_OK) << tw_fail_text();
        return PlanPtr(plan);
    }

  private:
    tw_build build_;
};

tw_plan_step make(tw_plan_op op, tw_plan_span src, tw_plan_span dst, uint8_t flags = 0)
{
    tw_plan_step step = {};
    step.op = op;
    step.flags = flags;
    step.dep_lane = TW_NO_LANE;
    step.from = step.to = TW_NO_RANK;
    step.src = src;
    step.dst = dst;
    return step;
}
tw_plan_step copy(tw_plan_span src, tw_plan_span dst, uint8_t flags = 0)
{
    return make(TW_OP_COPY, src, dst, flags);
}
tw_plan_step send(int to, tw_plan_span src, uint8_t flags = 0)
{
    tw_plan_step step = make(TW_OP_SEND, src, tw_span_none(), flags);
    step.to = to;
    return step;
}
tw_plan_step recv(int from, tw_plan_span dst)
{
    tw_plan_step step = make(TW_OP_RECV, tw_span_none(), dst);
    step.from = from;
    return step;
}
tw_plan_step fused(tw_plan_op op, int from, int to, tw_plan_span src, tw_plan_span dst,
                   uint8_t flags = 0)
{
    tw_plan_step step = make(op, src, dst, flags);
    step.from = from;
    step.to = to;
    return step;
}
tw_plan_step after(tw_plan_step step, uint16_t lane, uint32_t index, bool whole = false)
{
    step.dep_lane = lane;
    step.dep_step = index;
    step.flags |= whole ? TW_STEP_WHOLE : 0;
    return step;
}
tw_plan_step signal_to(int to, uint32_t sig, uint32_t value)
{
    tw_plan_step step = make(TW_OP_SIGNAL, tw_span_none(), tw_span_none());
    step.to = to;
    step.sig = sig;
    step.sig_value = value;
    return step;
}
tw_plan_step wait_for(uint32_t sig, uint32_t value)
{
    tw_plan_step step = make(TW_OP_WAIT, tw_span_none(), tw_span_none());
    step.sig = sig;
    step.sig_value = value;
    return step;
}

template <class T> std::vector<T> draw_ints(size_t count, std::mt19937_64 &rng)
{
    std::vector<T> out(count);
    for (T &value : out) {
        value = static_cast<T>(rng());
    }
    return out;
}

tw_exec_call plain_call(const World &world, const tw_plan *plan, int rank, const void *in,
                        void *out, size_t count, twill_type_t type)
{
    tw_exec_call call = {};
    call.plan = plan;
    call.rank = rank;
    call.in = in;
    call.out = out;
    call.count = count;
    call.type = type;
    call.op = TWILL_SUM;
    call.header = 42;
    call.call_index = world.call_index;
    return call;
}

// ---- counts per pair and per rank ---------------------------------------------------------------

// Each rank has only its own program; one exchange goes through many loops, others through one.
TEST(ExecPlans, CountsPerPairAndPerRank)
{
    std::mt19937_64 rng(1);
    const std::pair<const char *, tw_coll> names[] = {
        {"direct", TW_COLL_ALL_TO_ALL_V}, {"pairwise", TW_COLL_ALL_TO_ALL_V},
        {"ring", TW_COLL_ALL_GATHER_V},   {"circulant", TW_COLL_REDUCE_SCATTER_V},
        {"linear", TW_COLL_GATHER_V},     {"linear", TW_COLL_SCATTER_V}};
    for (int size = 2; size <= 6; size++) {
        WorldConfig config = {size};
        config.fifo_bytes = 2 << 10;
        World world(config);
        for (const auto &[name, coll] : names) {
            Collective what;
            what.coll = coll;
            what.size = size;
            what.root = contract::rooted(coll) ? (int)(rng() % size) : 0;
            what.type = TWILL_INT32;
            std::vector<PlanPtr> plans;
            for (int r = 0; r < size; r++) {
                const tw_algo_args args = {coll, size, what.root, r, 1 + (uint32_t)size % 2, 0};
                tw_plan *plan = nullptr;
                ASSERT_EQ(tw_algo_find(name, coll)->generate(&args, &plan), TWILL_OK);
                plans.emplace_back(plan);
            }
            for (int i = 0; i < 6; i++) {
                what.inplace = rng() & rng();
                what.pairs = draw_pairs(what, 3000, rng);
                what.seed = rng() % 1000000;
                Buffers buffers(what);
                std::vector<tw_exec_call> calls;
                for (int r = 0; r < size; r++) {
                    calls.push_back(make_call(world, plans[r].get(), what, buffers, r));
                }
                ASSERT_EQ(world.start(calls), "");
                ASSERT_EQ(drive(world.execs, rng), "");
                ASSERT_EQ(buffers.check(), "") << name << " " << tw_coll_name(coll);
            }
        }
    }
}

// A rank that has nothing to give or to take may leave its buffer out.
TEST(ExecPlans, EmptyGroupsNeedNoBuffer)
{
    World world({2});
    std::mt19937_64 rng(2);
    const tw_algo_args args = {TW_COLL_ALL_GATHER_V, 2, 0, -1, 1, 0};
    tw_plan *made = nullptr;
    ASSERT_EQ(tw_algo_find("ring", args.coll)->generate(&args, &made), TWILL_OK);
    const PlanPtr plan(made);
    const size_t counts[] = {3, 0};
    const std::vector<int32_t> in = {5, 6, 7};
    std::vector<int32_t> out[2] = {std::vector<int32_t>(3), std::vector<int32_t>(3)};
    std::vector<tw_exec_call> calls;
    for (int r = 0; r < 2; r++) {
        calls.push_back(plain_call(world, plan.get(), r, r == 0 ? in.data() : nullptr,
                                   out[r].data(), counts[r], TWILL_INT32));
        calls[r].out_counts = {counts, nullptr};
    }
    ASSERT_EQ(world.start(calls), "");
    ASSERT_EQ(drive(world.execs, rng), "");
    EXPECT_EQ(out[0], in);
    EXPECT_EQ(out[1], in);
}

// What is missing or contradicts itself is an error before anything moves.
TEST(ExecPlans, CountsAreLookedAt)
{
    World world({2});
    const size_t counts[] = {3, 4};
    const std::vector<int32_t> in(7);
    std::vector<int32_t> out(7);
    const auto status = [&](const char *name, tw_coll coll, int root, const size_t *in_counts,
                            const size_t *out_counts) {
        const tw_algo_args args = {coll, 2, root, -1, 1, 0};
        tw_plan *made = nullptr;
        EXPECT_EQ(tw_algo_find(name, coll)->generate(&args, &made), TWILL_OK);
        const PlanPtr plan(made);
        tw_exec_call call = plain_call(world, plan.get(), 0, in.data(), out.data(), 3, TWILL_INT32);
        call.in_counts = {in_counts, nullptr};
        call.out_counts = {out_counts, nullptr};
        const twill_status result = tw_exec_start(world.execs[0], &call);
        tw_exec_cancel(world.execs[0]);
        return result;
    };
    const size_t other[] = {2, 4};
    EXPECT_EQ(status("ring", TW_COLL_ALL_GATHER_V, 0, nullptr, counts), TWILL_OK);
    EXPECT_EQ(status("ring", TW_COLL_ALL_GATHER_V, 0, nullptr, nullptr), TWILL_ERR_INVALID);
    EXPECT_EQ(status("ring", TW_COLL_ALL_GATHER_V, 0, counts, nullptr), TWILL_ERR_INVALID);
    EXPECT_EQ(status("ring", TW_COLL_ALL_GATHER_V, 0, nullptr, other), TWILL_ERR_INVALID);
    EXPECT_EQ(status("ring", TW_COLL_REDUCE_SCATTER_V, 0, counts, nullptr), TWILL_OK);
    EXPECT_EQ(status("direct", TW_COLL_ALL_TO_ALL_V, 0, counts, counts), TWILL_OK);
    EXPECT_EQ(status("direct", TW_COLL_ALL_TO_ALL_V, 0, counts, nullptr), TWILL_ERR_INVALID);
    EXPECT_EQ(status("linear", TW_COLL_GATHER_V, 0, nullptr, counts), TWILL_OK);
    EXPECT_EQ(status("linear", TW_COLL_GATHER_V, 0, nullptr, nullptr), TWILL_ERR_INVALID);
    EXPECT_EQ(status("linear", TW_COLL_GATHER_V, 1, nullptr, nullptr), TWILL_OK);
}

// ---- unrounded partials -------------------------------------------------------------------------

// A chain from the last rank to rank 0 that keeps fp32 partials: in[0] + (in[1] + (... in[n-1])),
// or, with right, ((in[n-1] + in[n-2]) + ...) + in[0]; averaged, rounded once, handed out narrow.
PlanPtr chain_plan(int size, bool fuse)
{
    Builder build(TW_COLL_ALL_REDUCE, size);
    const uint8_t part = build.part(TW_PART_EQUAL, 1, 3);
    const tw_plan_span in = tw_span_range(TW_BUF_IN, part, 0, 3);
    const tw_plan_span out = tw_span_range(TW_BUF_OUT, part, 0, 3);
    const tw_plan_span wide = tw_span_range(TW_BUF_WIDE, part, 0, 3);
    build->wide_cells = 3;
    build->scratch_cells = 3;
    build->slices = 2;
    for (int r = size - 1; r >= 0; r--) {
        const uint16_t lane = build.lane(r);
        build.step(r, lane, copy(in, wide));
        build.step(r, lane, copy(in, tw_span_range(TW_BUF_SCRATCH, part, 0, 3))); // beside wide
        if (r == size - 1) {
            build.step(r, lane, send(r - 1, wide));
        } else if (r == 0) {
            build.step(
                r, lane,
                fused(TW_OP_RECV_REDUCE, 1, TW_NO_RANK, wide, out, TW_STEP_ROUND | TW_STEP_FINAL));
        } else if (fuse) {
            build.step(r, lane, fused(TW_OP_RECV_REDUCE_SEND, r + 1, r - 1, wide, tw_span_none()));
        } else {
            build.step(r, lane, fused(TW_OP_RECV_REDUCE, r + 1, TW_NO_RANK, wide, wide));
            build.step(r, lane, send(r - 1, wide));
        }
        if (r == 0) {
            build.step(r, lane, send(1, out));
        } else if (r == size - 1) {
            build.step(r, lane, recv(r - 1, out));
        } else {
            build.step(r, lane,
                       fused(TW_OP_RECV_SEND, r - 1, r + 1, tw_span_none(), out, TW_STEP_STORE));
        }
    }
    return build.finish();
}

TEST(ExecPlans, WidePartialsRoundOnce)
{
    std::mt19937_64 rng(3);
    for (int size = 2; size <= 5; size++) {
        for (const bool fuse : {false, true}) {
            WorldConfig config = {size};
            config.fifo_bytes = 2 << 10;
            config.scratch_bytes = 4 << 10;
            World world(config);
            const PlanPtr plan = chain_plan(size, fuse);
            for (const size_t count : {0, 1, 2, 3, 100, 2500}) {
                std::vector<std::vector<uint16_t>> ins;
                std::vector<std::vector<uint16_t>> outs(size, std::vector<uint16_t>(count + 1));
                std::vector<tw_exec_call> calls;
                for (int r = 0; r < size; r++) {
                    ins.push_back(std::vector<uint16_t>(count + 1));
                    for (uint16_t &value : ins[r]) { // magnitudes near 1: sums do round
                        value = (uint16_t)(0x3f00 + rng() % 0x100) | (rng() % 2 ? 0x8000 : 0);
                    }
                }
                for (int r = 0; r < size; r++) {
                    calls.push_back(plain_call(world, plan.get(), r, ins[r].data(), outs[r].data(),
                                               count, TWILL_BFLOAT16));
                    calls[r].op = TWILL_AVG;
                }
                ASSERT_EQ(world.start(calls), "");
                ASSERT_EQ(drive(world.execs, rng), "");
                for (size_t i = 0; i < count; i++) {
                    float sum = (float)reference::decode(TWILL_BFLOAT16, ins[size - 1][i]);
                    for (int r = size - 2; r >= 0; r--) {
                        sum = (float)reference::decode(TWILL_BFLOAT16, ins[r][i]) + sum;
                    }
                    const uint64_t want = reference::encode(TWILL_BFLOAT16, sum / (float)size);
                    for (int r = 0; r < size; r++) {
                        ASSERT_EQ(outs[r][i], want) << "rank " << r << " element " << i;
                    }
                }
            }
        }
    }
}

// ---- lanes and dependencies ---------------------------------------------------------------------

// A chain broadcast in which receiving and sending are lanes of their own.
PlanPtr lanes_plan(int size, bool whole)
{
    Builder build(TW_COLL_BROADCAST, size);
    const uint8_t part = build.part(TW_PART_EQUAL, 1);
    const tw_plan_span in = tw_span_one(TW_BUF_IN, part, 0);
    const tw_plan_span out = tw_span_one(TW_BUF_OUT, part, 0);
    build->slices = 4;
    build->depth = 4;
    for (int r = 0; r < size; r++) {
        const uint16_t second = build.lane(r); // stands before the lane on which it depends
        const uint16_t first = build.lane(r);
        build.step(r, first, r == 0 ? copy(in, out) : recv(r - 1, out));
        if (r < size - 1) {
            build.step(r, second, after(send(r + 1, out), first, 0, whole));
        }
    }
    return build.finish();
}

TEST(ExecPlans, DependenciesBetweenLanes)
{
    std::mt19937_64 rng(4);
    WorldConfig config = {4};
    config.fifo_bytes = 4 << 10;
    World world(config);
    for (const bool whole : {false, true}) {
        const PlanPtr plan = lanes_plan(4, whole);
        for (const size_t count : {0, 1, 5, 1200, 20000}) {
            const std::vector<int32_t> in = draw_ints<int32_t>(count + 1, rng);
            std::vector<std::vector<int32_t>> outs(4, std::vector<int32_t>(count + 1));
            std::vector<tw_exec_call> calls;
            for (int r = 0; r < 4; r++) {
                outs[r][count] = in[count];
                calls.push_back(plain_call(world, plan.get(), r, r == 0 ? in.data() : nullptr,
                                           outs[r].data(), count, TWILL_INT32));
            }
            ASSERT_EQ(world.start(calls), "");
            ASSERT_EQ(drive(world.execs, rng), "");
            for (int r = 0; r < 4; r++) {
                EXPECT_EQ(outs[r], in) << "rank " << r << " count " << count;
            }
        }
    }
}

// Slice by slice the sender's message is on its way as soon as its slice is there; WHOLE waits for
// the last slice. The sender here has slots for all slices of its peer, the receiver takes none.
TEST(ExecPlans, WholeWaitsForAllSlices)
{
    for (const bool whole : {false, true}) {
        Builder build(TW_COLL_P2P, 2);
        const uint8_t part = build.part(TW_PART_EQUAL, 1);
        const tw_plan_span in = tw_span_one(TW_BUF_IN, part, 0);
        const tw_plan_span out = tw_span_one(TW_BUF_OUT, part, 0);
        build->slices = 2;
        const uint16_t first = build.lane(0);
        const uint16_t second = build.lane(0);
        build.step(0, first, recv(1, out));
        build.step(0, second, after(send(1, in), first, 0, whole));
        const uint16_t lane = build.lane(1);
        build.step(1, lane, send(0, in));
        const PlanPtr plan = build.finish();
        World world({2});
        std::vector<int32_t> data(8192, 1);
        std::vector<int32_t> got(8192);
        const tw_exec_call call =
            plain_call(world, plan.get(), 0, data.data(), got.data(), data.size(), TWILL_INT32);
        ASSERT_EQ(tw_exec_start(world.execs[0], &call), TWILL_OK);
        // rank 1 by hand: one slice of two
        void *slot = nullptr;
        ASSERT_EQ(tw_chan_layout_send(world.chans[1], 0, 1, 2), TWILL_OK);
        ASSERT_EQ(tw_chan_layout_recv(world.chans[1], 0, 1, 2), TWILL_OK);
        ASSERT_EQ(tw_chan_reserve(world.chans[1], 0, 0, &slot), TWILL_OK);
        std::memcpy(slot, data.data(), 4096 * 4);
        tw_chan_commit(world.chans[1], 0, 0, 4096 * 4, 42);
        ASSERT_EQ(tw_exec_progress(world.execs[0], nullptr), TWILL_INPROGRESS);
        tw_msg msg;
        EXPECT_EQ(tw_chan_peek(world.chans[1], 0, 0, &msg), whole ? TWILL_ERR_AGAIN : TWILL_OK);
        tw_exec_cancel(world.execs[0]);
    }
}

// A lane that is a loop ahead waits for the other lane's step of its own loop, not of an older one.
TEST(ExecPlans, DependenciesAreOfTheSameLoop)
{
    std::mt19937_64 rng(5);
    Builder build(TW_COLL_P2P, 2);
    const uint8_t part = build.part(TW_PART_EQUAL, 1);
    const tw_plan_span in = tw_span_one(TW_BUF_IN, part, 0);
    const tw_plan_span out = tw_span_one(TW_BUF_OUT, part, 0);
    build->scratch_cells = 1;
    const uint16_t first = build.lane(0);
    const uint16_t second = build.lane(0);
    build.step(0, first, copy(in, out));
    build.step(0, first, recv(1, tw_span_one(TW_BUF_SCRATCH, part, 0)));
    build.step(0, second, after(send(1, out), first, 0));
    const uint16_t lane = build.lane(1);
    build.step(1, lane, recv(0, out));
    build.step(1, lane, send(0, out));
    const PlanPtr plan = build.finish();
    WorldConfig config = {2};
    config.fifo_bytes = 1 << 10;
    World world(config);
    const std::vector<int32_t> data = draw_ints<int32_t>(2000, rng);
    std::vector<int32_t> out0(data.size(), -1);
    std::vector<int32_t> out1(data.size(), -1);
    const std::vector<tw_exec_call> calls = {
        plain_call(world, plan.get(), 0, data.data(), out0.data(), data.size(), TWILL_INT32),
        plain_call(world, plan.get(), 1, nullptr, out1.data(), data.size(), TWILL_INT32)};
    ASSERT_EQ(world.start(calls), "");
    ASSERT_EQ(tw_exec_progress(world.execs[0], nullptr), TWILL_INPROGRESS); // as far as it can
    ASSERT_EQ(drive(world.execs, rng), "");
    EXPECT_EQ(out1, data);
}

// Each slice has a signal word of its own.
TEST(ExecPlans, SignalsAreOfASlice)
{
    Builder build(TW_COLL_P2P, 2);
    const uint8_t part = build.part(TW_PART_EQUAL, 1);
    build->slices = 2;
    build->nsigs = 2;
    const uint16_t first = build.lane(0);
    const uint16_t second = build.lane(0);
    build.step(0, first, recv(1, tw_span_one(TW_BUF_OUT, part, 0)));
    build.step(0, second, after(signal_to(1, 1, 3), first, 0));
    const PlanPtr plan = build.finish();
    World world({2});
    std::vector<int32_t> got(8192);
    const tw_exec_call call =
        plain_call(world, plan.get(), 0, nullptr, got.data(), got.size(), TWILL_INT32);
    ASSERT_EQ(tw_exec_start(world.execs[0], &call), TWILL_OK);
    const uint64_t *words = tw_chan_signals(world.chans[1]);
    ASSERT_EQ(tw_chan_layout_send(world.chans[1], 0, 1, 2), TWILL_OK);
    for (int slice = 0; slice < 2; slice++) {
        void *slot = nullptr;
        ASSERT_EQ(tw_chan_reserve(world.chans[1], 0, 0, &slot), TWILL_OK);
        std::memset(slot, 0, 4096 * 4);
        tw_chan_commit(world.chans[1], 0, 0, 4096 * 4, 42);
        ASSERT_EQ(tw_exec_progress(world.execs[0], nullptr),
                  slice == 0 ? TWILL_INPROGRESS : TWILL_OK);
        EXPECT_EQ(words[0] + words[1], 0u);
        EXPECT_EQ(words[2], 3u);
        EXPECT_EQ(words[3], slice == 0 ? 0u : 3u);
    }
    EXPECT_EQ(world.signal_bases[0], 3u);
}

// ---- get, and scratch used in turn --------------------------------------------------------------

// All ranks expose their input in scratch and read each other's. With parity 2 no rank says that it
// has read: the other half serves the next call, and signals of that call come after this one.
PlanPtr get_plan(int size, uint32_t parity)
{
    Builder build(TW_COLL_ALL_REDUCE, size);
    const uint8_t part = build.part(TW_PART_EQUAL, 1, 2);
    const tw_plan_span in = tw_span_range(TW_BUF_IN, part, 0, 2);
    const tw_plan_span out = tw_span_range(TW_BUF_OUT, part, 0, 2);
    const tw_plan_span scratch = tw_span_range(TW_BUF_SCRATCH, part, 0, 2);
    build->scratch_cells = 2;
    build->parity = parity;
    build->caps = TW_CAP_PUT_SCRATCH;
    for (int r = 0; r < size; r++) {
        const uint16_t lane = build.lane(r);
        build.step(r, lane, copy(in, scratch));
        for (int p = 0; p < size; p++) {
            if (p != r) {
                build.step(r, lane, signal_to(p, r, 1));
            }
        }
        for (int p = 0; p < size; p++) {
            if (p == r) {
                build.step(r, lane, p == 0 ? copy(scratch, out) : make(TW_OP_REDUCE, scratch, out));
                continue;
            }
            build.step(r, lane, wait_for(p, 1));
            tw_plan_step get = make(p == 0 ? TW_OP_GET : TW_OP_GET_REDUCE, scratch, out);
            get.from = p;
            build.step(r, lane, get);
        }
        for (int p = 0; p < size && parity == 1; p++) {
            if (p != r) {
                build.step(r, lane, signal_to(p, r, 2));
            }
        }
        for (int p = 0; p < size && parity == 1; p++) {
            if (p != r) {
                build.step(r, lane, wait_for(p, 2));
            }
        }
    }
    return build.finish();
}

void check_get(World &world, const tw_plan *plan, size_t count, const Driver &driver,
               std::mt19937_64 &rng)
{
    const int n = world.config.size;
    std::vector<std::vector<uint8_t>> ins;
    std::vector<std::vector<uint8_t>> outs(n, std::vector<uint8_t>(count + 1));
    std::vector<uint8_t> want(count);
    std::vector<tw_exec_call> calls;
    for (int r = 0; r < n; r++) {
        ins.push_back(draw_ints<uint8_t>(count + 1, rng));
        for (size_t i = 0; i < count; i++) {
            want[i] = (uint8_t)(want[i] + ins[r][i]);
        }
    }
    for (int r = 0; r < n; r++) {
        calls.push_back(
            plain_call(world, plan, r, ins[r].data(), outs[r].data(), count, TWILL_UINT8));
    }
    ASSERT_EQ(world.start(calls), "");
    ASSERT_EQ(driver(world.execs), "");
    for (int r = 0; r < n; r++) {
        outs[r].resize(count);
        EXPECT_EQ(outs[r], want) << "rank " << r << " count " << count;
    }
}

TEST(ExecPlans, GetAndGetReduce)
{
    std::mt19937_64 rng(6);
    const Driver one_thread = [&](const std::vector<tw_exec *> &execs) {
        return drive(execs, rng);
    };
    for (int size = 2; size <= 5; size++) {
        WorldConfig config = {size};
        config.scratch_bytes = 16 << 10;
        World world(config);
        const PlanPtr plan = get_plan(size, 1);
        for (const size_t count : {0, 1, 3, 1000, 50000}) { // the last needs several loops
            check_get(world, plan.get(), count, one_thread, rng);
            check_get(world, plan.get(), count / 2, drive_threads, rng);
        }
    }
}

TEST(ExecPlans, ScratchInTurn)
{
    std::mt19937_64 rng(7);
    World world({3});
    const PlanPtr plan = get_plan(3, 2);
    for (int i = 0; i < (int)rounds(200, 50); i++) {
        check_get(world, plan.get(), rng() % 2000, drive_threads, rng);
    }
}

// Three calls of rank 0 and 1 under parity 2, rank 0 always ahead as far as the plan lets it: what
// rank 1 still reads is not overwritten.
TEST(ExecPlans, HalvesDoNotOverlap)
{
    std::mt19937_64 rng(8);
    World world({2});
    const PlanPtr plan = get_plan(2, 2);
    const size_t count = 100;
    std::vector<std::vector<uint8_t>> in0, in1;
    std::vector<std::vector<uint8_t>> out0(3, std::vector<uint8_t>(count));
    std::vector<std::vector<uint8_t>> out1 = out0;
    for (int i = 0; i < 3; i++) {
        in0.push_back(draw_ints<uint8_t>(count, rng));
        in1.push_back(draw_ints<uint8_t>(count, rng));
    }
    const auto start = [&](int rank, int call_index) {
        auto &in = rank == 0 ? in0 : in1;
        auto &out = rank == 0 ? out0 : out1;
        tw_exec_call call = plain_call(world, plan.get(), rank, in[call_index].data(),
                                       out[call_index].data(), count, TWILL_UINT8);
        call.call_index = call_index;
        ASSERT_EQ(tw_exec_start(world.execs[rank], &call), TWILL_OK);
    };
    start(0, 0);
    ASSERT_EQ(tw_exec_progress(world.execs[0], nullptr), TWILL_INPROGRESS);
    start(1, 0);
    // rank 1 has signalled; make it wait before it reads: rank 0 runs ahead into the next call
    uint64_t *const word = &tw_chan_signals(world.chans[1])[0];
    const uint64_t said = *word;
    *word = 0;
    ASSERT_EQ(tw_exec_progress(world.execs[1], nullptr), TWILL_INPROGRESS);
    ASSERT_EQ(tw_exec_progress(world.execs[0], nullptr), TWILL_OK);
    start(0, 1);
    ASSERT_EQ(tw_exec_progress(world.execs[0], nullptr), TWILL_INPROGRESS);
    EXPECT_GT(*word, said); // signals grow from call to call
    ASSERT_EQ(tw_exec_progress(world.execs[1], nullptr), TWILL_OK);
    for (int i = 1; i < 3; i++) {
        start(1, i);
        if (i > 1) {
            start(0, i);
        }
        ASSERT_EQ(drive(world.execs, rng), "");
    }
    for (int i = 0; i < 3; i++) {
        for (size_t e = 0; e < count; e++) {
            const uint8_t want = (uint8_t)(in0[i][e] + in1[i][e]);
            ASSERT_EQ(out0[i][e], want) << "call " << i;
            ASSERT_EQ(out1[i][e], want) << "call " << i;
        }
    }
}

// ---- a message that nobody on the way looks at --------------------------------------------------

TEST(ExecPlans, PassOnWithoutStoring)
{
    std::mt19937_64 rng(10);
    World world({3});
    Builder build(TW_COLL_P2P, 3);
    const uint8_t part = build.part(TW_PART_EQUAL, 1);
    build.step(0, build.lane(0), send(1, tw_span_one(TW_BUF_IN, part, 0)));
    build.step(1, build.lane(1), fused(TW_OP_RECV_SEND, 0, 2, tw_span_none(), tw_span_none()));
    build.step(2, build.lane(2), recv(1, tw_span_one(TW_BUF_OUT, part, 0)));
    const PlanPtr plan = build.finish();
    for (const size_t count : {0, 1, 100000}) {
        const std::vector<int32_t> in = draw_ints<int32_t>(count + 1, rng);
        std::vector<int32_t> out(count + 1);
        out[count] = in[count];
        std::vector<tw_exec_call> calls;
        for (int r = 0; r < 3; r++) {
            calls.push_back(plain_call(world, plan.get(), r, r == 0 ? in.data() : nullptr,
                                       r == 2 ? out.data() : nullptr, count, TWILL_INT32));
        }
        ASSERT_EQ(world.start(calls), "");
        ASSERT_EQ(drive(world.execs, rng), "");
        EXPECT_EQ(out, in);
    }
}

} // namespace
