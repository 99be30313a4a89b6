// SPDX-License-Identifier: Apache-2.0
// Knows: plans of several lanes: what depends on what, slice by slice. Never knows: how steps run.
#include <gtest/gtest.h>

#include <cstring>

#include "by_hand.h"

using namespace by_hand;

namespace
{

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

} // namespace
