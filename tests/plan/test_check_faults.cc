// SPDX-License-Identifier: Apache-2.0
// Knows: small wrong plans, and the sentence that each deserves. Never knows: how it is found.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "plan/hand.hh"

extern "C" {
#include "base/log.h"
#include "base/status.h"
}

namespace
{

HandPlan parsed(const std::string &text)
{
    tw_plan *plan = nullptr;
    if (tw_failed(tw_plan_parse(text.data(), text.size(), &plan)))
        throw std::runtime_error(tw_fail_text());
    return HandPlan(plan);
}

class Fault : public testing::Test
{
  protected:
    void SetUp() override { ASSERT_EQ(tw_log_configure("error", nullptr), TWILL_OK); }
    void TearDown() override { tw_log_configure("warn", nullptr); }

    static std::string of(const HandPlan &plan, const tw_plan *next = nullptr)
    {
        tw_check_options options = {4, 1, next};
        tw_check_report report;
        memset(&report, 1, sizeof(report));
        EXPECT_EQ(tw_plan_check(plan.get(), &options, &report), TWILL_ERR_INVALID);
        EXPECT_STREQ(report.text, tw_fail_text());
        return report.text;
    }
    static std::string of(const std::string &text) { return of(parsed(text)); }
    static void proven(const std::string &text)
    {
        tw_check_report report;
        EXPECT_EQ(tw_plan_check(parsed(text).get(), nullptr, &report), TWILL_OK) << report.text;
    }
};

// Plan x of a collective for two ranks, with a partition of IN, one of OUT (all of one cell a
// group), and one lane a rank.
std::string two(const std::string &coll, const std::string &facts, const std::string &rank0,
                const std::string &rank1)
{
    std::string in = coll == "reduce_scatter" || coll == "all_to_all" ? "2" : "1";
    std::string out = coll == "all_gather" || coll == "all_to_all" ? "2" : "1";
    return "plan x " + coll + " ranks 2 root 0\nfacts " + facts + "\npart equal groups " + in +
           " per 1\npart equal groups " + out + " per 1\nrank 0\nlane channel 7\n" + rank0 +
           "rank 1\nlane channel 8\n" + rank1;
}

const char fifo[] = "depth 4 fifos 1 widest 2";
const std::string at0 = "plan x: rank 0 channel 7 lane 0 ",
                  at1 = "plan x: rank 1 channel 8 lane 0 ";

// ---- values

TEST_F(Fault, ReadsWhatIsNotWritten)
{
    EXPECT_EQ(of(two("reduce", "scratch 2",
                     "copy src in.0[0] dst out.1[0]\nreduce src scratch.0[1] dst out.1[0]\n", "")),
              at0 + "step 1 (reduce), call 0 loop 0 slice 0: "
                    "reads scratch cell 1 of rank 0, which is not written yet");
    EXPECT_EQ(of(two("reduce", "", "reduce src in.0[0] dst out.1[0]\n", "")),
              at0 + "step 0 (reduce), call 0 loop 0 slice 0: "
                    "reads out cell 0 of rank 0, which is not written yet");
}

TEST_F(Fault, WritesNothing)
{
    EXPECT_EQ(of(two("all_gather", "scratch 1", "copy src in.0[0] dst out.1[0]\n",
                     "copy src in.0[0] dst scratch.0[0]\n")),
              "plan x: rank 0, call 0 loop 0 slice 0: out cell 1 is never written");
    EXPECT_EQ(of("plan x all_reduce ranks 1 root 0\nfacts\n"),
              "plan x: rank 0, call 0 loop 0 slice 0: out cell 0 is never written");
}

TEST_F(Fault, GathersTheWrongInput)
{
    EXPECT_EQ(of(two("all_gather", "scratch 1",
                     "copy src in.0[0] dst out.1[0]\ncopy src in.0[0] dst out.1[1]\n",
                     "copy src in.0[0] dst scratch.0[0]\n")),
              "plan x: rank 0, call 0 loop 0 slice 0: out cell 1 is not the input it should be: "
              "r0.0");
}

std::string sums(const std::string &rank0)
{
    return two("reduce", fifo, rank0, "send to 0 src in.0[0]\n");
}

TEST_F(Fault, SumsWrongly)
{
    const std::string where = "plan x: rank 0, call 0 loop 0 slice 0: out cell 0 ";
    const std::string add = "recv_reduce from 1 src in.0[0] dst out.1[0]";
    proven(sums(add + " final\n"));
    EXPECT_EQ(of(sums(add + "\n")), where + "is not finished: (r0.0 + r1.0)");
    EXPECT_EQ(of(sums("recv from 1 dst out.1[0]\ncopy src out.1[0] dst out.1[0] final\n")),
              where + "lacks a rank's input: final(r1.0)");
    EXPECT_EQ(of(sums(add + " final\ncopy src out.1[0] dst out.1[0] final\n")),
              where + "is finished twice: final(final((r0.0 + r1.0)))");
    // a later sum of a finished one; fails in the mix that keeps IN apart
    EXPECT_EQ(of(sums(add + " final\nreduce src in.0[0] dst out.1[0]\n")),
              where + "adds to a finished sum: (final((r0.0 + r1.0)) + r0.0)");
    EXPECT_EQ(of(sums("recv_reduce from 1 src in.0[0] dst out.1[0] acc_right\n"
                      "reduce src out.1[0] dst out.1[0] final\n")),
              where + "has a rank's input more than once: final(((r1.0 + r0.0) + (r1.0 + r0.0)))");
}

TEST_F(Fault, SumsAnotherCell)
{
    std::string sum = of(two("reduce_scatter", fifo,
                             "send to 1 src in.0[0]\n"
                             "recv_reduce from 1 src in.0[0] dst out.1[0] final\n",
                             "send to 0 src in.0[1]\n"
                             "recv_reduce from 0 src in.0[1] dst out.1[0] final\n"));
    EXPECT_NE(sum.find("out cell 0 is not the sum of that cell: final((r"), std::string::npos)
        << sum;
}

TEST_F(Fault, AddsInAnotherOrder)
{
    HandPlan plan = hand_plan("ordered_reduce_scatter", 4);
    tw_plan_lane &lane = plan->ranks[2].lanes[0];
    for (uint32_t i = 0; i < lane.nsteps; i++)
        if (lane.steps[i].op == TW_OP_REDUCE) {
            lane.steps[i].flags |= TW_STEP_ACC_RIGHT;
            break;
        }
    EXPECT_EQ(of(plan), "plan ordered_reduce_scatter: rank 2, call 0 loop 0 slice 0: out cell 0 is "
                        "not added in the order that a deterministic plan has: "
                        "round(final(((r1.2 + r0.2) + (r2.2 + r3.2))))");
}

// Adding in the call's type rounds each partial: not what is promised.
TEST_F(Fault, RoundsPartials)
{
    EXPECT_EQ(
        of(two("reduce", "depth 1 fifos 1 widest 1 deterministic",
               "recv_reduce from 1 src in.0[0] dst out.1[0] final\n", "send to 0 src in.0[0]\n")),
        "plan x: rank 0, call 0 loop 0 slice 0: out cell 0 is not added in the order that a "
        "deterministic plan has: round(final(round((r0.0 + r1.0))))");
}

// Right when IN and OUT are apart: rank 0 overwrites its input before it is sent.
TEST_F(Fault, IsRightOnlyOutOfPlace)
{
    std::string rank0 = "recv_reduce from 1 src in.0[0] dst out.1[0] final\n"
                        "send to 1 src in.0[0]\n";
    std::string rank1 = "send to 0 src in.0[0]\n"
                        "recv_reduce from 0 src in.0[0] dst out.1[0] final\n";
    EXPECT_EQ(of(two("all_reduce", fifo, rank0, rank1)),
              "plan x: rank 1, call 1 loop 0 slice 0: out cell 0 is finished twice: "
              "final((r1.0 + final((r0.0 + r1.0))))");
}

TEST_F(Fault, ReadsACellAndWritesItAsAnother)
{
    EXPECT_EQ(of("plan x all_reduce ranks 1 root 0\nfacts scratch 9\npart equal groups 1 per 1\n"
                 "rank 0\nlane channel 0\ncopy src scratch.0[0+2] dst scratch.0[1+2]\n"),
              "plan x: rank 0 channel 0 lane 0 step 0 (copy): "
              "reads scratch cell 1 and writes it as another of scratch");
}

// ---- messages

std::string gathers(const std::string &facts, const std::string &rank0, const std::string &rank1)
{
    return "plan x all_gather ranks 2 root 0\nfacts widest 2 " + facts +
           "\npart equal groups 1 per 2\npart equal groups 2 per 2\nrank 0\nlane channel 7\n"
           "copy src in.0[0+2] dst out.1[0+2]\n" +
           rank0 + "rank 1\nlane channel 8\ncopy src in.0[0+2] dst out.1[2+2]\n" + rank1;
}

TEST_F(Fault, MessageOfAnotherLength)
{
    EXPECT_EQ(of(gathers("depth 2 fifos 1", "send to 1 src in.0[0+2]\nrecv from 1\n",
                         "recv from 0 dst out.1[0]\nsend to 0\n")),
              at1 + "step 1 (recv), call 0 loop 0 slice 0: "
                    "message from rank 0 lane 0 step 1 has 2 cells where 1 are wanted");
}

TEST_F(Fault, MessageOfAnotherSize)
{
    EXPECT_EQ(
        of(gathers("depth 2 fifos 1", "send to 1 src in.0[0]\nsend to 1 src in.0[0]\nrecv from 1\n",
                   "recv from 0 dst out.1[0]\nrecv from 0 dst out.1[1]\nsend to 0\n")),
        at1 + "step 2 (recv), call 0 loop 0 slice 0: "
              "cell 0 of the message from rank 0 lane 0 step 2 is of another size");
}

TEST_F(Fault, MessageOfAnotherWidth)
{
    EXPECT_EQ(of(two("reduce", "depth 1 fifos 1 widest 1 wide 1",
                     "recv_reduce from 1 src in.0[0] dst out.1[0] final\n",
                     "copy src in.0[0] dst wide.0[0]\nsend to 0 src wide.0[0]\n")),
              at0 + "step 0 (recv_reduce), call 0 loop 0 slice 0: "
                    "message from rank 1 lane 0 step 1 is wide");
}

TEST_F(Fault, ScratchReadAsAnotherSize)
{
    EXPECT_EQ(of("plan x all_reduce ranks 1 root 0\nfacts scratch 1\n"
                 "part equal groups 1 per 2\npart equal groups 1 per 1\nrank 0\nlane channel 0\n"
                 "copy src in.0[0] dst scratch.0[0]\ncopy src scratch.1[0] dst scratch.1[0]\n"),
              "plan x: rank 0 channel 0 lane 0 step 1 (copy), call 0 loop 0 slice 0: "
              "reads scratch cell 0 of rank 0, which holds a cell of another size");
}

TEST_F(Fault, MessagesThatNoOneReceives)
{
    std::string rank1 = "recv from 0 dst out.1[0+2]\nsend to 0 src in.0[0+2]\n";
    std::string rank0 = "send to 1 src in.0[0+2]\nrecv from 1 dst out.1[2+2]\n";
    proven(gathers("depth 1 fifos 2", rank0, rank1));
    EXPECT_EQ(of(gathers("depth 9 fifos 2", rank0 + "send to 1:1 src in.0[0+2]\n", rank1)),
              at0 + "step 3 (send), call 0 loop 0 slice 0: "
                    "its message to rank 1 on fifo 1 is never received");
    EXPECT_EQ(of(gathers("depth 9 fifos 1", rank0 + "send to 1 src in.0[0+2]\n", rank1)),
              at1 + "step 1 (recv), call 1 loop 0 slice 0: "
                    "message from rank 0 lane 0 step 3 is of call 0 loop 0 slice 0");
}

// ---- waiting

TEST_F(Fault, WaitsForever)
{
    std::string send = "send to 1 src in.0[0+2]\n", recv = "recv from 1 dst out.1[2+2]\n";
    EXPECT_EQ(of(gathers("depth 1 fifos 1", recv + send,
                         "recv from 0 dst out.1[0+2]\nsend to 0 src in.0[0+2]\n")),
              at0 + "step 1 (recv), call 0 loop 0 slice 0: "
                    "waits forever for a message from rank 1 on fifo 0 (deadlock)");
    EXPECT_EQ(of(gathers("depth 1 fifos 1", send + send + recv,
                         "send to 0 src in.0[0+2]\nsend to 0 src in.0[0+2]\n"
                         "recv from 0 dst out.1[0+2]\n")),
              at0 + "step 2 (send), call 0 loop 0 slice 0: "
                    "waits forever for room for a message to rank 1 on fifo 0 (deadlock)");
    EXPECT_EQ(
        of(two("reduce", "signals 1 sig_max 2 caps 1", "wait sig 0:2\n", "signal to 0 sig 0:1\n")),
        at0 + "step 0 (wait), call 0 loop 0 slice 0: "
              "waits for signal 0 to reach 2, which no one raises");
    EXPECT_EQ(of(two("reduce", "signals 1 sig_max 2 caps 1", "wait sig 0:2\n", "")),
              at0 + "step 0 (wait), call 0 loop 0 slice 0: "
                    "waits forever for signal 0 to reach 2 (deadlock)");
    EXPECT_EQ(of("plan x all_reduce ranks 1 root 0\nfacts scratch 1\npart equal groups 1 per 1\n"
                 "rank 0\nlane channel 0\ncopy src in.0[0] dst out.0[0] after 1:0\n"
                 "lane channel 1\ncopy src in.0[0] dst scratch.0[0] after 0:0\n"),
              "plan x: rank 0 channel 0 lane 0 step 0 (copy), call 0 loop 0 slice 0: "
              "waits forever for lane 1 step 0 (deadlock)");
}

// The plan needs one slot more than slices, to take a message out and put one in.
TEST_F(Fault, ClaimsTooLittleDepth)
{
    HandPlan plan = hand_plan("wide_ring", 3);
    plan->depth = 2;
    EXPECT_EQ(of(plan), "plan wide_ring: rank 0 channel 0 lane 0 step 2 (recv_reduce_send), "
                        "call 1 loop 0 slice 0: waits forever for room for a message to rank 1 on "
                        "fifo 0 (deadlock)");
}

// ---- order

TEST_F(Fault, LanesThatDoNotWaitForEachOther)
{
    std::string text = "plan x all_reduce ranks 1 root 0\nfacts scratch 1\n"
                       "part equal groups 1 per 1\nrank 0\nlane channel 3\n"
                       "copy src in.0[0] dst scratch.0[0]\nlane channel 4\n"
                       "copy src scratch.0[0] dst out.0[0] final";
    EXPECT_EQ(of(text + "\n"), "plan x: rank 0 channel 4 lane 1 step 0 (copy), "
                               "call 0 loop 0 slice 0: reads scratch cell 0 of rank 0, "
                               "not ordered with a write by rank 0 channel 3 lane 0 step 0 (copy)");
    // the reader waits for the writer, but the writer's next loop not for the reader
    std::string next_loop = of(text + " after 0:0\n");
    EXPECT_NE(next_loop.find("loop"), std::string::npos);
    EXPECT_NE(next_loop.find("scratch cell 0 of rank 0, not ordered with a "), std::string::npos)
        << next_loop;
}

TEST_F(Fault, HandsScratchOverTooEarly)
{
    HandPlan plan = hand_plan("handover_reduce", 3);
    tw_plan_lane &lane = plan->ranks[0].lanes[0];
    ASSERT_EQ(lane.steps[2].op, TW_OP_RECV);
    lane.steps[2].dep_lane = TW_NO_LANE;
    EXPECT_NE(of(plan).find("not ordered with"), std::string::npos);
}

std::string push(const std::string &rank0, const std::string &rank1,
                 const std::string &facts = "caps 1 signals 2 sig_max 2 scratch 1")
{
    return "plan x broadcast ranks 2 root 0\nfacts " + facts +
           "\npart equal groups 1 per 1\nrank 0\nlane channel 7\ncopy src in.0[0] dst out.0[0]\n" +
           rank0 + "rank 1\nlane channel 8\n" + rank1;
}

TEST_F(Fault, PutsWithoutSayingSo)
{
    std::string put = "put to 1 src in.0[0] dst scratch.0[0]\n", tell = "signal to 1 sig 0:1\n",
                read = "wait sig 0:1\ncopy src scratch.0[0] dst out.0[0]\n",
                ack = "signal to 0 sig 1:1\n", wait = "wait sig 1:1\n";
    proven(push(put + tell + wait, read + ack));
    std::string early = of(push(tell + put + wait, read + ack));
    EXPECT_NE(early.find("scratch cell 0 of rank 1"), std::string::npos) << early;
    // nobody says that it was read: the next loop, or the next call, overwrites it
    std::string unread = of(push(put + tell, read));
    EXPECT_NE(unread.find("scratch cell 0 of rank 1, not ordered with"), std::string::npos);
    EXPECT_NE(unread.find("in another call by"), std::string::npos) << unread;
    // two copies help from call to call, not from loop to loop
    unread = of(push(put + tell, read, "caps 1 signals 2 sig_max 2 scratch 1 parity 2"));
    EXPECT_NE(unread.find("scratch cell 0 of rank 1, not ordered with"), std::string::npos);
    EXPECT_EQ(unread.find("in another call by"), std::string::npos) << unread;
}

// A message is not what makes a put visible, even from the same lane to the same peer.
TEST_F(Fault, SaysAPutByMessage)
{
    EXPECT_EQ(of(push("put to 1 src in.0[0] dst scratch.0[0]\nsend to 1\nrecv from 1\n",
                      "recv from 0\ncopy src scratch.0[0] dst out.0[0]\nsend to 0\n",
                      "caps 1 scratch 1 depth 1 fifos 1 widest 1")),
              at1 + "step 1 (copy), call 0 loop 0 slice 0: reads scratch cell 0 of rank 1, "
                    "not ordered with a put by rank 0 channel 7 lane 0 step 1 (put)");
}

TEST_F(Fault, TouchesABufferOutsideItsCall)
{
    std::string facts = "caps 2 signals 2 sig_max 2 depth 1 fifos 1 widest 1";
    std::string put = "put to 1 src in.0[0] dst out.0[0]\n", tell = "signal to 1 sig 0:1\n";
    proven(push("recv from 1\n" + put + tell, "send to 0\nwait sig 0:1\n", facts));
    EXPECT_EQ(of(push(put + tell, "wait sig 0:1\n", facts)),
              at0 + "step 1 (put), call 0 loop 0 slice 0: "
                    "writes out cell 0 of rank 1, whose call may not have begun");
    EXPECT_EQ(of(push("recv from 1\n" + put + "send to 1\n", "send to 0\nrecv from 0\n", facts)),
              "plan x: rank 1: its call ends not ordered with an access to its buffers by "
              "rank 0 channel 7 lane 0 step 2 (put)");
    std::string gone = of(push("signal to 1 sig 0:1\n",
                               "wait sig 0:1\nget from 0 src in.0[0] dst out.0[0]\n", facts));
    EXPECT_TRUE(gone.find("whose call may have ended") != std::string::npos ||
                gone.find("its call ends not ordered with") != std::string::npos)
        << gone;
}

TEST_F(Fault, RaisesAnothersSignal)
{
    EXPECT_EQ(of("plan x barrier ranks 3 root 0\nfacts signals 1 sig_max 1 caps 1\n"
                 "rank 0\nlane channel 0\nsignal to 2 sig 0:1\n"
                 "rank 1\nlane channel 0\nsignal to 2 sig 0:1\nrank 2\nlane channel 0\n"),
              "plan x: rank 1 channel 0 lane 0 step 0 (signal): "
              "signal 0 of rank 2 is raised by rank 0 lane 0 too");
}

TEST_F(Fault, LeavesABarrierAlone)
{
    EXPECT_EQ(of("plan x barrier ranks 2 root 0\nfacts depth 1 fifos 1\n"
                 "rank 0\nlane channel 0\nsend to 1\nrank 1\nlane channel 0\nrecv from 0\n"),
              "plan x: rank 0 may leave the barrier before rank 1 has come");
}

// ---- plans after plans

TEST_F(Fault, PlanThatMayNotFollow)
{
    // alone, each knows by its own answers that scratch is free
    HandPlan push = hand_plan("push_all_reduce", 3), other = hand_plan("push_all_reduce", 3);
    tw_check_options options = {4, 1, other.get()};
    tw_check_report report;
    EXPECT_EQ(tw_plan_check(push.get(), &options, &report), TWILL_OK) << report.text;
    other->parity = 1;
    EXPECT_NE(of(push, other.get()).find("in another call"), std::string::npos);
}

// Rank 2 raises in one plan, rank 1 in the next, the word that rank 0 may still wait for.
TEST_F(Fault, SignalThatChangesHands)
{
    auto tells = [](int from) {
        std::string text = "plan x" + std::to_string(from) +
                           " broadcast ranks 3 root 0\nfacts signals 2 sig_max 1 caps 1 depth 1 "
                           "fifos 1 widest 1\npart equal groups 1 per 1\n";
        for (int rank = 0; rank < 3; rank++) {
            text += "rank " + std::to_string(rank) + "\nlane channel 0\n";
            if (rank == 0)
                text += "copy src in.0[0] dst out.0[0]\nsend to 1 src in.0[0]\n"
                        "send to 2 src in.0[0]\nwait sig 0:1\n";
            else
                text += "recv from 0 dst out.0[0]\n";
            if (rank == from)
                text += "signal to 0 sig 0:1\n";
        }
        return parsed(text);
    };
    HandPlan first = tells(2), next = tells(1);
    tw_check_report report;
    EXPECT_EQ(tw_plan_check(first.get(), nullptr, &report), TWILL_OK) << report.text;
    EXPECT_EQ(tw_plan_check(next.get(), nullptr, &report), TWILL_OK) << report.text;
    tw_check_options options = {4, 1, next.get()};
    EXPECT_EQ(tw_plan_check(first.get(), &options, &report), TWILL_OK) << report.text;
    // let rank 1 go on without having heard of rank 0's wait
    tw_plan_lane &lane = next->ranks[1].lanes[0];
    std::swap(lane.steps[0], lane.steps[1]);
    EXPECT_NE(of(first, next.get()).find("signal 0"), std::string::npos);
    EXPECT_NE(of(first, next.get()).find("not ordered with"), std::string::npos);
}

TEST_F(Fault, PlansOfOtherRanks)
{
    HandPlan plan = hand_plan("star_barrier", 3), next = hand_plan("star_barrier", 2);
    EXPECT_EQ(of(plan, next.get()), "plan star_barrier: has 3 ranks, the plan after it has 2");
}

// ---- what cannot be proven

TEST_F(Fault, OneRanksProgram)
{
    HandPlan plan = parsed("plan x barrier ranks 2 root 0 only 1\nfacts\nrank 1\nlane channel 0\n");
    EXPECT_EQ(of(plan), "plan x: has only rank 1's program; all are wanted");
}

TEST_F(Fault, AbsurdSizes)
{
    HandPlan plan = hand_plan("push_all_reduce", 4);
    plan->scratch_cells = TW_PLAN_CELLS_MAX;
    plan->slices = TW_PLAN_SLICES_MAX;
    plan->parity = TW_PLAN_PARITY_MAX;
    tw_check_report report;
    EXPECT_EQ(tw_plan_check(plan.get(), nullptr, &report), TWILL_ERR_NOMEM);
    EXPECT_STREQ(tw_fail_text(), "plan push_all_reduce: no memory to check it");
}

TEST_F(Fault, NoReportIsFine)
{
    HandPlan plan = parsed(two("reduce", "", "copy src in.0[0] dst out.1[0]\n", ""));
    EXPECT_EQ(tw_plan_check(plan.get(), nullptr, nullptr), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "out cell 0 is not finished"), nullptr);
}

} // namespace
