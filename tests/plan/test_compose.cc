// SPDX-License-Identifier: Apache-2.0
// Knows: that an embedded plan does inside what it did alone. Never knows: the algorithms.
#include <vector>

#include "plan/plans.hh"

namespace
{

std::string fault_of(const tw_plan *plan)
{
    tw_check_report report = {};
    twill_status status = tw_plan_check(plan, nullptr, &report);
    return status == TWILL_OK ? "" : std::string(report.text) + tw_fail_text();
}

tw_step_ref no_step() { return {TW_NO_LANE, 0}; }

// Two hosts of `local` ranks: gather on each host, then between the hosts among ranks of equal
// place, each rank passing its whole host's groups. The sub-plans' IN is a piece of the outer OUT.
twill_status two_level(int local, int only_rank, bool hold, tw_plan **plan)
{
    int nranks = 2 * local;
    Plan inner = gather_plan(local, 1), outer = gather_plan(2, (uint32_t)local);
    tw_build build;
    tw_build_init(&build, "two_level", TW_COLL_ALL_GATHER, nranks, 0, only_rank);
    uint8_t in = tw_build_part(&build, TW_PART_EQUAL, 1, 1);
    uint8_t out = tw_build_part(&build, TW_PART_EQUAL, (uint32_t)nranks, 1);
    build.plan->slices = 1;
    std::vector<tw_step_ref> after((size_t)nranks, no_step());
    std::vector<uint16_t> lanes((size_t)local);
    for (int host = 0; host < 2; host++) {
        std::vector<int> ranks;
        for (int r = 0; r < local; r++)
            ranks.push_back(host * local + r);
        tw_cell_map map[TW_BUF_COUNT] = {{TW_BUF_IN, in, 0, 1, 0, 0, 0},
                                         {TW_BUF_OUT, out, (uint32_t)(host * local), 1, 0, 0, 0}};
        tw_build_embed(&build, inner.get(), ranks.data(), map, nullptr, lanes.data());
        for (int r = 0; r < local; r++)
            if (hold && lanes[r] != TW_NO_LANE)
                after[ranks[r]] = {lanes[r], inner->ranks[r].lanes[0].nsteps - 1};
    }
    for (int place = 0; place < local; place++) {
        int ranks[2] = {place, local + place};
        // the sub-plan's rank has its IN in its own part of OUT
        tw_cell_map map[TW_BUF_COUNT] = {{TW_BUF_OUT, out, 0, 1, 0, 0, (uint32_t)local},
                                         {TW_BUF_OUT, out, 0, 1, 0, 0, 0}};
        uint16_t second[2];
        build.plan->nfifos = inner->nfifos; // all pairs of hosts may use the same ones
        tw_build_embed(&build, outer.get(), ranks, map, after.data(), second);
    }
    return tw_build_finish(&build, plan);
}

} // namespace

// The identity changes nothing but where ids start.
TEST(Compose, IdentityIsThePlan)
{
    Plan sub = gather_plan(3, 2);
    tw_build build;
    tw_build_init(&build, "gather", TW_COLL_ALL_GATHER, 3, 0, -1);
    uint8_t in = tw_build_part(&build, TW_PART_EQUAL, 1, 2);
    uint8_t out = tw_build_part(&build, TW_PART_EQUAL, 3, 2);
    tw_cell_map map[TW_BUF_COUNT] = {{TW_BUF_IN, in, 0, 1, 0, 0, 0},
                                     {TW_BUF_OUT, out, 0, 1, 0, 0, 0}};
    int ranks[3] = {0, 1, 2};
    uint16_t lanes[3];
    ASSERT_EQ(tw_build_embed(&build, sub.get(), ranks, map, nullptr, lanes), TWILL_OK);
    tw_plan *plan = nullptr;
    ASSERT_EQ(tw_build_finish(&build, &plan), TWILL_OK) << tw_fail_text();
    Plan owner(plan);
    EXPECT_EQ(difference(plan, sub.get()), "");
    for (uint16_t lane : lanes)
        EXPECT_EQ(lane, 0);
}

// Ranks in another order: each plays another one, so the groups end in the wrong places.
TEST(Compose, RanksAndCellsAreRenamed)
{
    Plan sub = gather_plan(3, 1);
    tw_build build;
    tw_build_init(&build, "x", TW_COLL_ALL_GATHER, 3, 0, -1);
    uint8_t in = tw_build_part(&build, TW_PART_EQUAL, 1, 1);
    uint8_t out = tw_build_part(&build, TW_PART_EQUAL, 3, 1);
    tw_cell_map map[TW_BUF_COUNT] = {{TW_BUF_IN, in, 0, 1, 0, 0, 0},
                                     {TW_BUF_OUT, out, 0, 1, 0, 0, 0}};
    int turned[3] = {1, 2, 0};
    uint16_t lanes[3];
    ASSERT_EQ(tw_build_embed(&build, sub.get(), turned, map, nullptr, lanes), TWILL_OK);
    tw_plan *plan = nullptr;
    ASSERT_EQ(tw_build_finish(&build, &plan), TWILL_OK) << tw_fail_text();
    EXPECT_NE(fault_of(plan), "");
    const tw_plan_step &send = plan->ranks[2].lanes[0].steps[1],
                       &inner = sub->ranks[1].lanes[0].steps[1];
    EXPECT_EQ(send.op, TW_OP_SEND);
    EXPECT_EQ(send.to, turned[inner.to]);
    tw_plan_destroy(plan);
}

TEST(Compose, TwoLevelsGather)
{
    for (int local = 2; local <= 5; local++) {
        tw_plan *plan = nullptr;
        ASSERT_EQ(two_level(local, -1, true, &plan), TWILL_OK) << tw_fail_text();
        Plan owner(plan);
        EXPECT_EQ(fault_of(plan), "") << local;
        for (int r = 0; r < 2 * local; r++) {
            tw_plan *one = nullptr;
            ASSERT_EQ(two_level(local, r, true, &one), TWILL_OK) << tw_fail_text();
            Plan one_owner(one);
            EXPECT_EQ(one->ranks[r].nlanes, plan->ranks[r].nlanes);
            EXPECT_EQ(one->nfifos, plan->nfifos);
            EXPECT_EQ(one->depth, plan->depth);
        }
    }
    tw_plan *plan = nullptr;
    ASSERT_EQ(two_level(3, -1, false, &plan), TWILL_OK);
    EXPECT_NE(fault_of(plan), ""); // nothing orders the second level behind the first
    tw_plan_destroy(plan);
}

// Two all_gathers side by side on disjoint cells have FIFOs of their own; `after` puts the second
// behind the first.
TEST(Compose, IdsMoveAndFirstStepsWait)
{
    Plan sub = gather_plan(2, 1);
    tw_build build;
    tw_build_init(&build, "x", TW_COLL_ALL_GATHER, 2, 0, -1);
    uint8_t in = tw_build_part(&build, TW_PART_EQUAL, 1, 3);
    uint8_t out = tw_build_part(&build, TW_PART_EQUAL, 2, 3);
    int ranks[2] = {0, 1};
    uint16_t lanes[2];
    for (uint32_t cell = 0; cell < 3; cell++) {
        tw_cell_map map[TW_BUF_COUNT] = {{TW_BUF_IN, in, cell, 3, 0, 0, 0},
                                         {TW_BUF_OUT, out, cell, 3, 0, 0, 0}};
        tw_step_ref after[2] = {{lanes[0], 1}, {TW_NO_LANE, 0}};
        ASSERT_EQ(tw_build_embed(&build, sub.get(), ranks, map, cell == 2 ? after : nullptr, lanes),
                  TWILL_OK);
        EXPECT_EQ(lanes[0], cell);
    }
    tw_plan *plan = nullptr;
    ASSERT_EQ(tw_build_finish(&build, &plan), TWILL_OK) << tw_fail_text();
    Plan owner(plan);
    EXPECT_EQ(plan->nfifos, 3u);
    EXPECT_EQ(fault_of(plan), "");
    const tw_plan_step &first = plan->ranks[0].lanes[2].steps[0];
    EXPECT_EQ(first.dep_lane, 1);
    EXPECT_EQ(first.dep_step, 1u);
    EXPECT_EQ(first.flags, TW_STEP_WHOLE);
    EXPECT_EQ(plan->ranks[1].lanes[2].steps[0].dep_lane, TW_NO_LANE);
    EXPECT_EQ(plan->ranks[1].lanes[2].steps[1].fifo_out, 2);
    EXPECT_EQ(plan->ranks[0].lanes[2].steps[2].fifo_in, 2);
    EXPECT_EQ(plan->ranks[0].lanes[2].steps[2].dst.first, 5u); // group 1, sub-cell 2
}

// A dependency, a signal, scratch and a block of neighbours under a map.
TEST(Compose, EverythingMoves)
{
    tw_build build;
    tw_build_init(&build, "sub", TW_COLL_P2P, 2, 0, -1);
    uint8_t part = tw_build_part(&build, TW_PART_EQUAL, 8, 1);
    build.plan->caps = TW_CAP_PUT_SCRATCH;
    build.plan->scratch_cells = 6, build.plan->depth = 4, build.plan->parity = 2;
    uint16_t a = tw_build_lane(&build, 0, 3), b = tw_build_lane(&build, 0, 4);
    tw_plan_step put =
        copy_of(tw_span_range(TW_BUF_IN, part, 2, 3), {TW_BUF_SCRATCH, part, 0, 0, 1, 2, 3});
    put.op = TW_OP_PUT, put.to = 1;
    tw_build_step(&build, 0, a, &put);
    tw_plan_step signal = step_of(TW_OP_SIGNAL);
    signal.to = 1, signal.sig = 2, signal.sig_value = 5;
    signal.dep_lane = a, signal.dep_step = 0;
    tw_build_step(&build, 0, b, &signal);
    tw_plan *made = nullptr;
    ASSERT_EQ(tw_build_finish(&build, &made), TWILL_OK) << tw_fail_text();
    Plan sub(made);

    tw_build_init(&build, "x", TW_COLL_P2P, 9, 0, -1);
    uint8_t other = tw_build_part(&build, TW_PART_EQUAL, 1, 1);
    uint8_t wide = tw_build_part(&build, TW_PART_EQUAL, 99, 1);
    build.plan->nsigs = 10, build.plan->nfifos = 1;
    tw_build_lane(&build, 7, 0);
    tw_cell_map map[TW_BUF_COUNT] = {{TW_BUF_OUT, wide, 40, 2, 0, 0, 0},
                                     {TW_BUF_OUT, other, 0, 1, 0, 0, 0},
                                     {TW_BUF_SCRATCH, wide, 50, 3, 0, 0, 0},
                                     {TW_BUF_WIDE, other, 0, 1, 0, 0, 0}};
    int ranks[2] = {7, 5};
    tw_step_ref after[9];
    for (auto &ref : after)
        ref = no_step();
    uint16_t lanes[2];
    ASSERT_EQ(tw_build_embed(&build, sub.get(), ranks, map, after, lanes), TWILL_OK);
    EXPECT_EQ(lanes[0], 1);
    EXPECT_EQ(lanes[1], 0);
    const tw_plan *plan = build.plan;
    EXPECT_EQ(plan->scratch_cells, 50u + 5 * 3 + 1);
    EXPECT_EQ(plan->nsigs, 13u);
    EXPECT_EQ(plan->sig_max, 5u);
    EXPECT_EQ(plan->parity, 2u);
    EXPECT_EQ(plan->caps, (uint32_t)TW_CAP_PUT_SCRATCH);
    const tw_plan_step &moved = plan->ranks[7].lanes[1].steps[0];
    uint32_t src[] = {44, 46, 48}, dst[] = {50, 56, 62};
    ASSERT_EQ(tw_span_cells(&moved.src), 3u);
    ASSERT_EQ(tw_span_cells(&moved.dst), 3u);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(tw_span_cell(&moved.src, i), src[i]);
        EXPECT_EQ(tw_span_cell(&moved.dst, i), dst[i]);
    }
    EXPECT_EQ(moved.src.buf, TW_BUF_OUT);
    EXPECT_EQ(moved.src.part, wide);
    EXPECT_EQ(moved.to, 5);
    const tw_plan_step &told = plan->ranks[7].lanes[2].steps[0];
    EXPECT_EQ(told.sig, 12u);
    EXPECT_EQ(told.dep_lane, 1);
    EXPECT_EQ(plan->ranks[7].lanes[2].channel, 4);
    tw_plan_destroy(build.plan);
}

// A cell that becomes a run of cells, neighbours or not, and steps that follow in a lane.
TEST(Compose, CellsBecomeRuns)
{
    Plan sub = gather_plan(2, 1);
    tw_build build;
    tw_build_init(&build, "x", TW_COLL_ALL_GATHER, 4, 0, -1);
    uint8_t in = tw_build_part(&build, TW_PART_EQUAL, 1, 3);
    uint8_t out = tw_build_part(&build, TW_PART_EQUAL, 4, 3);
    int ranks[2] = {3, 1};
    uint16_t lanes[2];
    tw_cell_map near[TW_BUF_COUNT] = {{TW_BUF_IN, in, 0, 3, 3, 1, 0},
                                      {TW_BUF_OUT, out, 0, 3, 3, 1, 0}};
    tw_cell_map far[TW_BUF_COUNT] = {{TW_BUF_OUT, out, 0, 1, 3, 3, 1},
                                     {TW_BUF_OUT, out, 0, 1, 3, 3, 0}};
    ASSERT_EQ(tw_build_embed(&build, sub.get(), ranks, near, nullptr, lanes), TWILL_OK);
    EXPECT_EQ(build.plan->widest, 3u);
    uint32_t before = build.plan->ranks[1].lanes[0].nsteps;
    tw_step_ref after[4] = {no_step(), {0, TW_STEP_BEHIND}, no_step(), {0, TW_STEP_BEHIND}};
    ASSERT_EQ(tw_build_embed(&build, sub.get(), ranks, far, after, lanes), TWILL_OK);
    EXPECT_EQ(build.plan->ranks[1].nlanes, 1u);
    const tw_plan_step &recv = build.plan->ranks[1].lanes[0].steps[before - 1];
    EXPECT_EQ(recv.op, TW_OP_RECV); // group 0 of sub
    EXPECT_EQ(recv.dst.first, 0u);
    EXPECT_EQ(recv.dst.block, 3u);
    const tw_plan_step &send = build.plan->ranks[1].lanes[0].steps[before + 1];
    EXPECT_EQ(send.op, TW_OP_SEND);
    uint32_t cells[] = {1, 4, 7}; // rank 1 of sub
    ASSERT_EQ(tw_span_cells(&send.src), 3u);
    for (uint32_t i = 0; i < 3; i++)
        EXPECT_EQ(tw_span_cell(&send.src, i), cells[i]);
    after[1].lane = 7;
    EXPECT_EQ(tw_build_embed(&build, sub.get(), ranks, far, after, lanes), TWILL_ERR_INVALID);
    tw_plan_destroy(build.plan);
}

// The program of one rank is enough where that is the one that is wanted.
TEST(Compose, OneRankOfASubPlan)
{
    Plan one = gather_plan(3, 2, 1), all = gather_plan(3, 2);
    tw_cell_map map[TW_BUF_COUNT] = {{TW_BUF_IN, 0, 0, 1, 0, 0, 0}, {TW_BUF_OUT, 1, 0, 1, 0, 0, 0}};
    int ranks[3] = {2, 0, 1};
    uint16_t lanes[3];
    Plan plans[2];
    for (int i = 0; i < 2; i++) {
        tw_build build;
        tw_build_init(&build, "x", TW_COLL_ALL_GATHER, 3, 0, 0);
        tw_build_part(&build, TW_PART_EQUAL, 1, 2);
        tw_build_part(&build, TW_PART_EQUAL, 3, 2);
        // what all ranks know, rank 1 alone cannot tell
        one->depth = all->depth, one->widest = all->widest, one->nfifos = all->nfifos;
        ASSERT_EQ(tw_build_embed(&build, i ? one.get() : all.get(), ranks, map, nullptr, lanes),
                  TWILL_OK);
        tw_plan *plan = nullptr;
        ASSERT_EQ(tw_build_finish(&build, &plan), TWILL_OK) << tw_fail_text();
        plans[i].reset(plan);
    }
    EXPECT_EQ(difference(plans[0].get(), plans[1].get()), "");
}

TEST(Compose, RefusesWhatHasNoPlace)
{
    Plan sub = gather_plan(3, 2), one = gather_plan(3, 2, 1);
    tw_cell_map map[TW_BUF_COUNT] = {{TW_BUF_IN, 0, 0, 1, 0, 0, 0}, {TW_BUF_OUT, 1, 0, 1, 0, 0, 0}};
    uint16_t lanes[3];
    auto embed = [&](const tw_plan *plan, std::vector<int> ranks, uint32_t nfifos) {
        tw_build build;
        tw_build_init(&build, "x", TW_COLL_ALL_GATHER, 4, 0, -1);
        build.plan->nfifos = nfifos;
        twill_status status = tw_build_embed(&build, plan, ranks.data(), map, nullptr, lanes);
        EXPECT_EQ(build.status, status);
        EXPECT_EQ(tw_build_embed(&build, plan, ranks.data(), map, nullptr, lanes), status);
        tw_plan_destroy(build.plan);
        return status;
    };
    EXPECT_EQ(embed(one.get(), {0, 1, 2}, 0), TWILL_ERR_INVALID);
    EXPECT_EQ(embed(sub.get(), {0, 1, 1}, 0), TWILL_ERR_INVALID);
    EXPECT_EQ(embed(sub.get(), {0, 1, 4}, 0), TWILL_ERR_INVALID);
    EXPECT_EQ(embed(sub.get(), {0, 1, -1}, 0), TWILL_ERR_INVALID);
    EXPECT_EQ(embed(sub.get(), {0, 1, 2}, TW_PLAN_FIFOS_MAX), TWILL_ERR_INVALID);
    sub->ranks[0].lanes[0].steps[0].src = {TW_BUF_IN, 0, 0, 0, 2, 3, 2}; // blocks with gaps
    map[TW_BUF_IN].stride = 2;
    EXPECT_EQ(embed(sub.get(), {0, 1, 2}, 0), TWILL_ERR_INVALID);
    sub->ranks[0].lanes[0].steps[0].src = tw_span_one(TW_BUF_IN, 0, UINT32_MAX);
    EXPECT_EQ(embed(sub.get(), {0, 1, 2}, 0), TWILL_ERR_INVALID);
}
