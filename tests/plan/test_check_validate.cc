// SPDX-License-Identifier: Apache-2.0
// Knows: plans that are not well formed, and the sentence that each deserves.
// Never knows: how it is found.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "plan/hand.hh"

extern "C" {
#include "base/log.h"
#include "base/status.h"
}

namespace
{

class Validate : public testing::Test
{
  protected:
    void SetUp() override { ASSERT_EQ(tw_log_configure("error", nullptr), TWILL_OK); }
    void TearDown() override { tw_log_configure("warn", nullptr); }

    // The sentence for hand-made plan `name` of 3 ranks after it was spoilt.
    static std::string of(const char *name, const std::function<void(tw_plan &)> &spoil)
    {
        HandPlan plan = hand_plan(name, 3);
        EXPECT_EQ(tw_plan_validate(plan.get()), TWILL_OK) << tw_fail_text();
        spoil(*plan);
        tw_check_report report;
        EXPECT_EQ(tw_plan_check(plan.get(), nullptr, &report), TWILL_ERR_INVALID);
        EXPECT_EQ(tw_plan_validate(plan.get()), TWILL_ERR_INVALID);
        EXPECT_STREQ(report.text, tw_fail_text());
        return tw_fail_text();
    }
    static std::string step(const char *name, uint32_t index,
                            const std::function<void(tw_plan_step &)> &spoil)
    {
        std::string text =
            of(name, [&](tw_plan &plan) { spoil(plan.ranks[1].lanes[0].steps[index]); });
        std::string place = std::string("plan ") + name + ": rank 1 channel 0 lane 0 step " +
                            std::to_string(index) + " (";
        EXPECT_EQ(text.substr(0, place.size()), place);
        return text.substr(text.find("): ") + 3);
    }
};

TEST_F(Validate, Header)
{
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.slices = 0; }),
              "plan wide_ring: 0 slices, not 1 to 256");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.parity = 17; }),
              "plan wide_ring: parity 17, not 1 to 16");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.depth = 2000; }),
              "plan wide_ring: fifos of depth 2000, at most 1024");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.nfifos = 33; }),
              "plan wide_ring: 33 fifos of a pair, at most 32");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.caps = 8; }),
              "plan wide_ring: capabilities 0x8 are unknown");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.root = 1; }),
              "plan wide_ring: root 1, but all_reduce has none");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.wide_cells = 1u << 30; }),
              "plan wide_ring: 0 scratch and 1073741824 wide cells, at most 16777216 each");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.nparts = 9; }),
              "plan wide_ring: 9 partitions, at most 8");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.parts[0].per = 0; }),
              "plan wide_ring: partition 0 of 1 groups by 0 cells, not 1 to 16777216 cells");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.parts[0].kind = 9; }),
              "plan wide_ring: partition 0 has unknown kind 9");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.parts[0].kind = TW_PART_RUNTIME; }),
              "plan wide_ring: partition 0 is filled at run time, which no executor serves");
    EXPECT_EQ(of("pairs_all_to_all", [](tw_plan &p) { p.parts[0].groups = 4; }),
              "plan pairs_all_to_all: partition 0 of pairs has 4 groups for 3 ranks");
    EXPECT_EQ(of("pairs_all_to_all", [](tw_plan &p) { p.parts[0].kind = TW_PART_OWN; }),
              "plan pairs_all_to_all: partition 0 of the rank's own has 3 groups, not one");
    EXPECT_EQ(
        of("pairs_all_to_all",
           [](tw_plan &p) {
               p.parts[0].kind = TW_PART_SHARD;
               p.parts[0].groups = 1;
           }),
        "plan pairs_all_to_all: rank 0 channel 0 lane 0 step 0 (copy): partition 0, of shards, "
        "cuts in");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.only_rank = 1; }),
              "plan wide_ring: has lanes of rank 0, but is of rank 1 only");
    EXPECT_NE(of("wide_ring", [](tw_plan &p) { memset(p.name, 'x', sizeof(p.name)); }), "");
    EXPECT_NE(of("wide_ring", [](tw_plan &p) { p.coll = 99; }), "");
}

TEST_F(Validate, Operation)
{
    EXPECT_EQ(step("wide_ring", 1, [](tw_plan_step &s) { s.op = 99; }),
              "operation 99 does not exist");
    EXPECT_EQ(step("wide_ring", 1, [](tw_plan_step &s) { s.flags = TW_STEP_FINAL; }),
              "flags 0x4 are not for this operation");
    EXPECT_EQ(step("wide_ring", 1, [](tw_plan_step &s) { s.flags = TW_STEP_WHOLE; }),
              "waits for a whole step without a dependency");
}

TEST_F(Validate, Dependency)
{
    auto on = [](uint16_t lane, uint32_t index) {
        return [=](tw_plan_step &s) {
            s.dep_lane = lane;
            s.dep_step = index;
        };
    };
    EXPECT_EQ(step("lanes_all_reduce", 1, on(2, 0)),
              "depends on lane 2 step 0, which does not exist");
    EXPECT_EQ(step("lanes_all_reduce", 1, on(1, 2)),
              "depends on lane 1 step 2, which does not exist");
    EXPECT_EQ(step("lanes_all_reduce", 1, on(0, 1)),
              "depends on step 1 of its own lane, which comes later");
}

TEST_F(Validate, Peer)
{
    EXPECT_EQ(step("wide_ring", 1, [](tw_plan_step &s) { s.to = 3; }),
              "to: 3 is not a rank below 3");
    EXPECT_EQ(step("wide_ring", 1, [](tw_plan_step &s) { s.to = TW_NO_RANK; }),
              "to: -1 is not a rank below 3");
    EXPECT_EQ(step("wide_ring", 2, [](tw_plan_step &s) { s.from = 1; }),
              "from: is the rank itself");
    EXPECT_EQ(step("wide_ring", 1, [](tw_plan_step &s) { s.fifo_out = 1; }),
              "fifo_out: 1 is not below 1");
    EXPECT_EQ(step("put_all_gather", 0, [](tw_plan_step &s) { s.sig_value = 3; }),
              "signal 1 value 3; the plan has 3 signals of values 1 to 2");
    EXPECT_EQ(step("put_all_gather", 0, [](tw_plan_step &s) { s.sig = 3; }),
              "signal 3 value 1; the plan has 3 signals of values 1 to 2");
}

TEST_F(Validate, Fifo)
{
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.depth = 0; }),
              "plan wide_ring: rank 0 channel 0 lane 0 step 1 (send): "
              "fifo_out: used, but the plan's depth is 0");
    EXPECT_EQ(of("pairs_all_to_all", [](tw_plan &p) { p.widest = 1; }),
              "plan pairs_all_to_all: rank 0 channel 0 lane 0 step 1 (send): "
              "message of 2 cells in a plan whose widest has 1");
    EXPECT_EQ(of("lanes_all_reduce",
                 [](tw_plan &p) {
                     p.ranks[1].lanes[1].steps[1].to = 2;
                     p.ranks[1].lanes[1].steps[1].fifo_out = 0;
                 }),
              "plan lanes_all_reduce: rank 1 channel 1 lane 1 step 1 (recv_send): "
              "its fifo is already used by lane 0");
}

TEST_F(Validate, Span)
{
    EXPECT_EQ(step("wide_ring", 1, [](tw_plan_step &s) { s.src.buf = 4; }),
              "src: buffer 4, partition 0, index 0 do not exist (1 partitions)");
    EXPECT_EQ(step("wide_ring", 1, [](tw_plan_step &s) { s.src.part = 1; }),
              "src: buffer 3, partition 1, index 0 do not exist (1 partitions)");
    EXPECT_EQ(step("wide_ring", 1, [](tw_plan_step &s) { s.src.nblocks = 0; }),
              "src: 0 blocks of 1 cells, one every 1, are not a span");
    EXPECT_EQ(step("wide_ring", 0,
                   [](tw_plan_step &s) {
                       s.src.nblocks = 2;
                       s.src.stride = 2;
                   }),
              "src: 2 blocks of 3 cells, one every 2, are not a span");
    EXPECT_EQ(step("wide_ring", 0, [](tw_plan_step &s) { s.dst.first = 1; }),
              "dst: first 1, 1 blocks of 3 cells, one every 3, pass the end of wide at 3 cells");
    EXPECT_EQ(step("wide_ring", 0, [](tw_plan_step &s) { s.src.first = ~0u; }),
              "src: first 4294967295, 1 blocks of 3 cells, one every 3, pass the end of in at 3 "
              "cells");
    EXPECT_EQ(
        step("wide_ring", 0,
             [](tw_plan_step &s) { s.src = {TW_BUF_IN, 0, 0, 0, 1u << 31, 1u << 31, 1u << 31}; }),
        "src: first 0, 2147483648 blocks of 2147483648 cells, one every 2147483648, pass the "
        "end of in at 3 cells");
}

TEST_F(Validate, Contract)
{
    EXPECT_EQ(step("wide_ring", 0, [](tw_plan_step &s) { s.dst.buf = TW_BUF_IN; }), "writes to in");
    EXPECT_EQ(of("wide_reduce", [](tw_plan &p) { p.root = 1; }),
              "plan wide_reduce: rank 2 channel 0 lane 0 step 0 (recv_reduce): "
              "rank 2 has no out buffer in reduce");
    EXPECT_EQ(of("wide_ring", [](tw_plan &p) { p.parts[0].groups = 2; }),
              "plan wide_ring: rank 0 channel 0 lane 0 step 0 (copy): "
              "partition 0 (kind 0, 2 groups) does not cut in, which has 1 groups");
    EXPECT_EQ(of("put_all_gather", [](tw_plan &p) { p.parts[1].per = 3; }),
              "plan put_all_gather: rank 0 channel 0 lane 0 step 2 (copy): "
              "partition 1 cuts groups of out into 3 cells, an earlier step into 2");
    EXPECT_EQ(of("put_all_gather", [](tw_plan &p) { p.caps = TW_CAP_PUT_SCRATCH; }),
              "plan put_all_gather: rank 0 channel 0 lane 0 step 4 (put): "
              "touches out of a peer without the capability for it");
    EXPECT_EQ(of("push_all_reduce", [](tw_plan &p) { p.caps = TW_CAP_PEER_BUFFERS; }),
              "plan push_all_reduce: rank 0 channel 0 lane 0 step 0 (put): "
              "touches scratch of a peer without the capability for it");
}

TEST_F(Validate, Fit)
{
    EXPECT_EQ(step("wide_ring", 0, [](tw_plan_step &s) { s.dst.block = 2; }),
              "src has 3 cells, dst has 2");
    EXPECT_EQ(step("push_all_reduce", 0, [](tw_plan_step &s) { s.dst.first--; }),
              "in cell 2 (partition 0) does not fit scratch cell 4 (partition 0)");
    EXPECT_EQ(step("pairs_all_to_all", 6, [](tw_plan_step &s) { s.dst.first -= 2; }),
              "in cell 2 (partition 0) does not fit out cell 0 (partition 1)");
}

TEST_F(Validate, Width)
{
    EXPECT_EQ(step("wide_ring", 0, [](tw_plan_step &s) { s.flags = TW_STEP_ROUND; }),
              "rounds, but src is not wide");
    EXPECT_EQ(step("wide_ring", 3, [](tw_plan_step &s) { s.flags &= (uint8_t)~TW_STEP_ROUND; }),
              "wide src goes to narrow out without rounding");
    EXPECT_EQ(step("wide_reduce", 2, [](tw_plan_step &s) { s.flags = TW_STEP_ROUND; }),
              "flags 0x8 are not for this operation");
    EXPECT_EQ(step("wide_ring", 3, [](tw_plan_step &s) { s.src.buf = TW_BUF_IN; }),
              "rounds, but src is not wide");
    EXPECT_EQ(step("wide_ring", 3,
                   [](tw_plan_step &s) {
                       s.op = TW_OP_RECV_REDUCE_SEND;
                       s.to = 2;
                       s.src.buf = TW_BUF_IN;
                       s.dst.buf = TW_BUF_WIDE;
                       s.flags = TW_STEP_STORE;
                   }),
              "narrow src goes to a wide dst");
    EXPECT_EQ(step("wide_ring", 3, [](tw_plan_step &s) { s.dst.buf = TW_BUF_WIDE; }),
              "rounds, but dst is wide");
}

TEST_F(Validate, Emptiness)
{
    EXPECT_EQ(step("wide_ring", 0, [](tw_plan_step &s) { s.src.block = 0; }), "src is empty");
    EXPECT_EQ(step("wide_ring", 0, [](tw_plan_step &s) { s.dst.block = 0; }), "dst is empty");
    EXPECT_EQ(step("wide_ring", 3, [](tw_plan_step &s) { s.dst.block = 0; }), "dst is empty");
    EXPECT_EQ(step("wide_ring", 4, [](tw_plan_step &s) { s.dst.block = 0; }), "dst is empty");
}

} // namespace
