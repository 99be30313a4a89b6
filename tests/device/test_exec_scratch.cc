// SPDX-License-Identifier: Apache-2.0
// Knows: plans that read and write peers' scratch. Never knows: how steps run.
#include <gtest/gtest.h>

#include <cstring>

#include "by_hand.h"

using namespace by_hand;

namespace
{

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

} // namespace
