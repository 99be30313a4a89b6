// SPDX-License-Identifier: Apache-2.0
// Knows: plans written by hand for what no built-in algorithm uses. Never knows: how steps run.
#include <gtest/gtest.h>

#include <cstring>

#include "by_hand.h"
#include "reference.h"

using namespace by_hand;

namespace
{

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
