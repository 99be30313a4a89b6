// SPDX-License-Identifier: Apache-2.0
// Knows: what the executor must refuse or notice. Never knows: how steps run.
#include <gtest/gtest.h>

#include "collective.h"

extern "C" {
#include "algo/algo.h"
#include "base/status.h"
}

namespace
{

PlanPtr built_in(const char *name, tw_coll coll, int size, int only_rank = -1,
                 uint32_t channels = 1)
{
    const tw_algo_args args = {coll, size, 0, only_rank, channels, 0};
    tw_plan *plan = nullptr;
    EXPECT_EQ(tw_algo_find(name, coll)->generate(&args, &plan), TWILL_OK);
    return PlanPtr(plan);
}

// Two ranks and a call of rank 0 that is in order, to be spoilt by each test.
class ExecErrors : public ::testing::Test
{
  protected:
    ExecErrors() : plan(built_in("direct", TW_COLL_ALL_REDUCE, 2)), buffers(what), world({2})
    {
        call = make_call(world, plan.get(), what, buffers, 0);
    }
    twill_status start() { return tw_exec_start(world.execs[0], &call); }
    // The executor is as good as new.
    void expect_usable()
    {
        std::mt19937_64 rng(1);
        EXPECT_EQ(
            run_collective(world, plan.get(), what,
                           [&](const std::vector<tw_exec *> &execs) { return drive(execs, rng); }),
            "");
    }
    static Collective make_what()
    {
        Collective made;
        made.count = 10;
        return made;
    }

    const Collective what = make_what();
    const PlanPtr plan;
    Buffers buffers;
    World world;
    tw_exec_call call;
};

TEST_F(ExecErrors, TypeAndOperation)
{
    call.type = (twill_type_t)15;
    EXPECT_EQ(start(), TWILL_ERR_UNSUPPORTED);
    for (const twill_type_t type : {TWILL_FLOAT16, TWILL_FLOAT8E4M3, TWILL_FLOAT64}) {
        call.type = type;
        call.op = TWILL_BXOR;
        EXPECT_EQ(start(), TWILL_ERR_UNSUPPORTED);
    }
    call.type = TWILL_FLOAT32;
    call.op = (twill_redop_t)TW_REDOP_COUNT;
    EXPECT_EQ(start(), TWILL_ERR_UNSUPPORTED);
    call.op = TW_REDOP_PREMUL_SUM;
    call.scalar = nullptr;
    EXPECT_EQ(start(), TWILL_ERR_INVALID);
    call.op = TWILL_SUM;
    expect_usable();
}

TEST_F(ExecErrors, AnyTypeCanBeMoved)
{
    std::mt19937_64 rng(1);
    const PlanPtr gather = built_in("ring", TW_COLL_ALL_GATHER, 2);
    Collective moved = what;
    moved.coll = TW_COLL_ALL_GATHER;
    for (int type = TWILL_INT8; type <= TWILL_FLOAT8E5M2; type++) {
        moved.type = (twill_type_t)type;
        EXPECT_EQ(
            run_collective(world, gather.get(), moved,
                           [&](const std::vector<tw_exec *> &execs) { return drive(execs, rng); }),
            "");
    }
}

TEST_F(ExecErrors, ProgramsAndRanks)
{
    const PlanPtr other = built_in("direct", TW_COLL_ALL_REDUCE, 2, 1);
    call.plan = other.get();
    EXPECT_EQ(start(), TWILL_ERR_INVALID);
    call.plan = plan.get();
    call.rank = 2;
    EXPECT_EQ(start(), TWILL_ERR_INVALID);
    call.rank = -1;
    EXPECT_EQ(start(), TWILL_ERR_INVALID);
    expect_usable();
}

TEST_F(ExecErrors, MissingBuffers)
{
    call.out = nullptr;
    EXPECT_EQ(start(), TWILL_ERR_INVALID);
    call.out = buffers.out(0);
    call.in = nullptr;
    EXPECT_EQ(start(), TWILL_ERR_INVALID);
    EXPECT_NE(std::string(tw_fail_text()).find("input"), std::string::npos);
    call.out = nullptr; // nothing to read or write: no buffers needed
    call.count = 0;
    EXPECT_EQ(start(), TWILL_OK);
    tw_exec_cancel(world.execs[0]);
    expect_usable();
}

TEST_F(ExecErrors, PeersBuffersAndRunTimeCells)
{
    PlanPtr bad(tw_plan_copy(plan.get()));
    bad->caps |= TW_CAP_PEER_BUFFERS;
    call.plan = bad.get();
    EXPECT_EQ(start(), TWILL_ERR_UNSUPPORTED);

    bad.reset(tw_plan_copy(plan.get()));
    bad->parts[0].kind = TW_PART_RUNTIME;
    call.plan = bad.get();
    EXPECT_EQ(start(), TWILL_ERR_UNSUPPORTED);

    bad.reset(tw_plan_copy(plan.get()));
    tw_plan_step *step = &bad->ranks[0].lanes[0].steps[0];
    step->op = TW_OP_PUT;
    step->dst = step->src;
    step->dst.buf = TW_BUF_OUT;
    call.plan = bad.get();
    EXPECT_EQ(start(), TWILL_ERR_UNSUPPORTED);

    bad.reset(tw_plan_copy(plan.get()));
    bad->parts[0].kind = TW_PART_PER_RANK;
    call.plan = bad.get();
    EXPECT_EQ(start(), TWILL_ERR_INVALID);
    EXPECT_NE(std::string(tw_fail_text()).find("counts"), std::string::npos);
    expect_usable();
}

// Steps that would lead outside memory are refused although the plan was never validated.
TEST_F(ExecErrors, WildSteps)
{
    const auto spoil = [&](void (*how)(tw_plan_step *)) {
        PlanPtr bad(tw_plan_copy(plan.get()));
        how(&bad->ranks[0].lanes[0].steps[0]);
        call.plan = bad.get();
        return start();
    };
    EXPECT_EQ(spoil([](tw_plan_step *step) { step->op = TW_OP_COUNT; }), TWILL_ERR_INVALID);
    EXPECT_EQ(spoil([](tw_plan_step *step) { step->to = 0; }), TWILL_ERR_INVALID);
    EXPECT_EQ(spoil([](tw_plan_step *step) { step->to = 2; }), TWILL_ERR_INVALID);
    EXPECT_EQ(spoil([](tw_plan_step *step) { step->to = -1; }), TWILL_ERR_INVALID);
    EXPECT_EQ(spoil([](tw_plan_step *step) { step->fifo_out = 1; }), TWILL_ERR_INVALID);
    EXPECT_EQ(spoil([](tw_plan_step *step) { step->src.block = 2; }), TWILL_ERR_INVALID);
    EXPECT_EQ(spoil([](tw_plan_step *step) { step->src.buf = 9; }), TWILL_ERR_INVALID);
    EXPECT_EQ(spoil([](tw_plan_step *step) { step->src.part = 7; }), TWILL_ERR_INVALID);
    EXPECT_EQ(spoil([](tw_plan_step *step) { step->dep_lane = 3; }), TWILL_ERR_INVALID);
    expect_usable();
}

TEST_F(ExecErrors, NoRoom)
{
    WorldConfig small = {2};
    small.fifo_bytes = 256;
    small.scratch_bytes = 128;
    World narrow(small);
    const PlanPtr wide = built_in("ring", TW_COLL_ALL_REDUCE, 2, -1, 8);
    call.plan = wide.get();
    EXPECT_EQ(tw_exec_start(narrow.execs[0], &call), TWILL_ERR_NOMEM);
    const PlanPtr puts = built_in("two_shot_put", TW_COLL_ALL_REDUCE, 2);
    call.plan = puts.get();
    EXPECT_EQ(tw_exec_start(narrow.execs[0], &call), TWILL_ERR_NOMEM);
}

TEST_F(ExecErrors, NoSignals)
{
    const PlanPtr puts = built_in("direct_put", TW_COLL_ALL_REDUCE, 2);
    WorldConfig few = {2};
    few.signals = 1;
    World world1(few);
    call.plan = puts.get();
    EXPECT_EQ(tw_exec_start(world1.execs[0], &call), TWILL_ERR_UNSUPPORTED);
    tw_exec *exec = nullptr;
    ASSERT_EQ(tw_exec_create(world.chans[0], TW_ISA_PORTABLE, 1 << 20, nullptr, &exec), TWILL_OK);
    EXPECT_EQ(tw_exec_start(exec, &call), TWILL_ERR_UNSUPPORTED);
    tw_exec_destroy(exec);
    ASSERT_EQ(
        tw_exec_create(world.chans[0], TW_ISA_PORTABLE, 2 << 20, &world.signal_bases[0], &exec),
        TWILL_OK);
    EXPECT_EQ(tw_exec_start(exec, &call), TWILL_OK); // within the chan's scratch, which is half
    tw_exec_destroy(exec);
    tw_exec_destroy(nullptr);
}

TEST_F(ExecErrors, OutOfTurn)
{
    EXPECT_EQ(tw_exec_progress(world.execs[0], nullptr), TWILL_ERR_USAGE);
    ASSERT_EQ(start(), TWILL_OK);
    EXPECT_EQ(start(), TWILL_ERR_USAGE);
    tw_exec_cancel(world.execs[0]);
    expect_usable();
    EXPECT_EQ(tw_exec_progress(world.execs[0], nullptr), TWILL_OK); // done stays done
}

// A message written by hand in place of rank 1's.
void forge(World &world, uint32_t bytes, uint64_t header)
{
    void *slot = nullptr;
    ASSERT_EQ(tw_chan_layout_send(world.chans[1], 0, 1, 2), TWILL_OK);
    ASSERT_EQ(tw_chan_reserve(world.chans[1], 0, 0, &slot), TWILL_OK);
    memset(slot, 1, bytes);
    tw_chan_commit(world.chans[1], 0, 0, bytes, header);
}

TEST_F(ExecErrors, AnotherCallsMessage)
{
    ASSERT_EQ(start(), TWILL_OK);
    forge(world, 40, call.header + 1);
    EXPECT_EQ(tw_exec_progress(world.execs[0], nullptr), TWILL_ERR_MISMATCH);
    EXPECT_EQ(tw_exec_progress(world.execs[0], nullptr), TWILL_ERR_MISMATCH);
    EXPECT_EQ(tw_exec_mismatch(world.execs[0]), call.header + 1);
    struct tw_exec_wait wait;
    tw_exec_where(world.execs[0], &wait);
    EXPECT_EQ(wait.phase, TW_PHASE_RECV);
    EXPECT_EQ(wait.peer, 1);
    EXPECT_EQ(start(), TWILL_ERR_USAGE);
    tw_exec_cancel(world.execs[0]);
}

TEST_F(ExecErrors, BrokenLengths)
{
    for (const uint32_t bytes : {0u, 36u, 39u, 44u, 4096u}) {
        World fresh({2});
        call = make_call(fresh, plan.get(), what, buffers, 0);
        ASSERT_EQ(tw_exec_start(fresh.execs[0], &call), TWILL_OK);
        forge(fresh, bytes, call.header);
        EXPECT_EQ(tw_exec_progress(fresh.execs[0], nullptr), TWILL_ERR_PEER) << bytes;
        EXPECT_NE(std::string(tw_fail_text()).find("rank 1"), std::string::npos);
        tw_exec_cancel(fresh.execs[0]);
    }
}

// ---- the cut ------------------------------------------------------------------------------------

TEST(ExecShape, SmallCallsAreWhole)
{
    const PlanPtr plan = built_in("direct", TW_COLL_ALL_REDUCE, 4);
    struct tw_exec_shape shape;
    for (const size_t count : {1, 2, 3, 1000, 1024}) {
        ASSERT_EQ(tw_exec_shape(plan.get(), count, 4, 64 << 10, 1 << 20, &shape), TWILL_OK);
        EXPECT_EQ(shape.slice_elems, count);
        EXPECT_EQ(shape.slices, 1u);
        EXPECT_EQ(shape.loops, 1u);
    }
    ASSERT_EQ(tw_exec_shape(plan.get(), 0, 4, 64 << 10, 1 << 20, &shape), TWILL_OK);
    EXPECT_EQ(shape.loops, 1u);
    EXPECT_EQ(tw_exec_shape(plan.get(), 1, 0, 64 << 10, 1 << 20, &shape), TWILL_ERR_INVALID);
}

// Whatever the sizes: all elements are covered, no loop is empty, a slice fits into its slot and
// a loop into scratch.
TEST(ExecShape, FitsAndCovers)
{
    std::mt19937_64 rng(11);
    for (unsigned i = 0; i < rounds(10000, 500); i++) {
        const int size = 2 + rng() % 8;
        const char *const names[] = {"ring", "direct", "two_shot_put", "halving_doubling"};
        const PlanPtr plan =
            built_in(names[rng() % 4], TW_COLL_ALL_REDUCE, size, rng() % size, 1 + rng() % 3);
        const size_t type = size_t{1} << rng() % 4;
        const size_t fifo = size_t{64} << rng() % 13;
        const size_t scratch = (rng() % 16 + 1) << (8 + rng() % 9);
        const size_t count = rng() >> (24 + rng() % 40);
        const size_t cell = (count + plan->parts[0].per - 1) / plan->parts[0].per;
        struct tw_exec_shape shape;
        const twill_status status = tw_exec_shape(plan.get(), count, type, fifo, scratch, &shape);
        const size_t depth = plan->depth < 2 ? 2 : plan->depth;
        const size_t slot =
            plan->nfifos > 0 ? tw_fifo_slot_bytes(fifo, plan->nfifos, depth) : SIZE_MAX;
        if (status == TWILL_ERR_NOMEM) {
            const bool slots_short = slot < type * tw_plan_widest(plan.get());
            const bool scratch_short = scratch / plan->parity < 64 * (plan->scratch_cells + 1);
            EXPECT_TRUE(slots_short || scratch_short);
            continue;
        }
        ASSERT_EQ(status, TWILL_OK);
        const size_t loop = shape.slice_elems * shape.slices;
        ASSERT_TRUE(shape.slices == 1 || shape.slices == plan->slices);
        ASSERT_GE(shape.slice_elems, 1u);
        ASSERT_GE(loop * shape.loops, cell);
        ASSERT_TRUE(shape.loops == 1 || loop * (shape.loops - 1) < cell);
        ASSERT_LE(shape.slice_elems * type * (plan->nfifos ? tw_plan_widest(plan.get()) : 1), slot);
        const size_t room = (loop * type + 63) / 64 * 64;
        ASSERT_TRUE(plan->scratch_cells == 0 ||
                    room * plan->scratch_cells <= scratch / plan->parity);
    }
}

} // namespace
