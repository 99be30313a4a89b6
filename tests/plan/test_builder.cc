// SPDX-License-Identifier: Apache-2.0
// Knows: that what is built is what was asked for. Never knows: the algorithms.
#include "plan/plans.hh"

TEST(Builder, KeepsOrderAndLabels)
{
    tw_build build;
    tw_build_init(&build, "x", TW_COLL_ALL_TO_ALL, 2, 0, -1);
    EXPECT_EQ(tw_build_part(&build, TW_PART_EQUAL, 2, 3), 0);
    EXPECT_EQ(tw_build_part(&build, TW_PART_PAIR_SEND, 2, 3), 1);
    EXPECT_EQ(tw_build_lane(&build, 1, 4), 0);
    EXPECT_EQ(tw_build_lane(&build, 1, 2), 1);
    EXPECT_EQ(tw_build_lane(&build, 0, 9), 0);
    for (uint32_t i = 0; i < 100; i++) {
        tw_plan_step step =
            copy_of(tw_span_one(TW_BUF_IN, 0, i % 6), tw_span_one(TW_BUF_OUT, 0, i % 6));
        EXPECT_EQ(tw_build_step(&build, 1, 1, &step), i);
    }
    tw_plan *plan = nullptr;
    ASSERT_EQ(tw_build_finish(&build, &plan), TWILL_OK) << tw_fail_text();
    Plan owner(plan);
    EXPECT_EQ(plan->ranks[1].nlanes, 2u);
    EXPECT_EQ(plan->ranks[1].lanes[0].channel, 4);
    EXPECT_EQ(plan->ranks[1].lanes[1].channel, 2);
    ASSERT_EQ(plan->ranks[1].lanes[1].nsteps, 100u);
    for (uint32_t i = 0; i < 100; i++)
        EXPECT_EQ(plan->ranks[1].lanes[1].steps[i].src.first, i % 6);
    EXPECT_EQ(plan->depth, 0u); // no FIFO is used
    EXPECT_EQ(plan->nfifos, 0u);
}

TEST(Builder, FactsGrowWithTheSteps)
{
    tw_build build;
    tw_build_init(&build, "x", TW_COLL_P2P, 3, 0, -1);
    uint8_t part = tw_build_part(&build, TW_PART_EQUAL, 1, 16);
    uint16_t lane = tw_build_lane(&build, 0, 0);
    EXPECT_EQ(build.plan->depth, 1u);
    tw_plan_step step = send_of(1, tw_span_range(TW_BUF_IN, part, 2, 5), 6);
    tw_build_step(&build, 0, lane, &step);
    EXPECT_EQ(build.plan->nfifos, 7u);
    EXPECT_EQ(build.plan->widest, 5u);
    step = recv_of(2, {TW_BUF_OUT, part, 0, 0, 2, 4, 4}, 9);
    tw_build_step(&build, 0, lane, &step);
    EXPECT_EQ(build.plan->nfifos, 10u);
    EXPECT_EQ(build.plan->widest, 8u);
    step = copy_of(tw_span_range(TW_BUF_IN, part, 0, 16), tw_span_range(TW_BUF_OUT, part, 0, 16));
    tw_build_step(&build, 0, lane, &step);
    EXPECT_EQ(build.plan->widest, 8u); // a copy is no message
    step = step_of(TW_OP_SIGNAL);
    step.to = 1, step.sig = 11, step.sig_value = 3;
    tw_build_step(&build, 0, lane, &step);
    EXPECT_EQ(build.plan->nsigs, 12u);
    EXPECT_EQ(build.plan->sig_max, 3u);
    tw_plan *plan = nullptr;
    ASSERT_EQ(tw_build_finish(&build, &plan), TWILL_OK) << tw_fail_text();
    tw_plan_destroy(plan);
}

TEST(Builder, LeavesOutOtherRanks)
{
    Plan all = gather_plan(4, 2), one = gather_plan(4, 2, 2);
    EXPECT_EQ(one->only_rank, 2);
    for (int r = 0; r < 4; r++)
        EXPECT_EQ(one->ranks[r].nlanes, r == 2 ? 1u : 0u);
    EXPECT_EQ(one->ranks[2].lanes[0].nsteps, all->ranks[2].lanes[0].nsteps);
}

TEST(Builder, FirstErrorSticks)
{
    tw_plan *plan = nullptr;
    tw_build build;
    tw_build_init(&build, "x", TW_COLL_ALL_REDUCE, 4, 0, 1);
    EXPECT_TRUE(tw_build_wants(&build, 1));
    for (int r : {-1, 0, 2, 4})
        EXPECT_FALSE(tw_build_wants(&build, r));
    tw_build_lane(&build, 2, 0); // left out
    EXPECT_EQ(build.status, TWILL_ERR_INTERNAL);
    EXPECT_FALSE(tw_build_wants(&build, 1));
    for (int i = 0; i <= TW_PLAN_PARTS_MAX; i++)
        tw_build_part(&build, TW_PART_EQUAL, 1, 1);
    EXPECT_EQ(tw_build_finish(&build, &plan), TWILL_ERR_INTERNAL);
    EXPECT_EQ(plan, nullptr);
    EXPECT_EQ(build.plan, nullptr);
}

TEST(Builder, RefusesWhatIsTooMuchOrNotThere)
{
    tw_plan *plan = nullptr;
    tw_build build;
    tw_build_init(&build, "x", TW_COLL_ALL_REDUCE, 0, 0, -1);
    EXPECT_EQ(build.status, TWILL_ERR_INVALID);
    tw_plan_step step = step_of(TW_OP_COPY);
    tw_build_step(&build, 0, 0, &step);
    EXPECT_EQ(tw_build_finish(&build, &plan), TWILL_ERR_INVALID);

    tw_build_init(&build, "x", TW_COLL_ALL_REDUCE, 2, 0, -1);
    for (int i = 0; i < TW_PLAN_PARTS_MAX; i++)
        EXPECT_EQ(tw_build_part(&build, TW_PART_EQUAL, 1, 1), i);
    EXPECT_EQ(build.status, TWILL_OK);
    tw_build_part(&build, TW_PART_EQUAL, 1, 1);
    EXPECT_EQ(tw_build_finish(&build, &plan), TWILL_ERR_INVALID);

    tw_build_init(&build, "x", TW_COLL_ALL_REDUCE, 2, 0, -1);
    tw_build_step(&build, 0, 0, &step); // no such lane
    EXPECT_EQ(tw_build_finish(&build, &plan), TWILL_ERR_INTERNAL);

    tw_build_init(&build, "x", TW_COLL_ALL_REDUCE, 2, 0, -1);
    for (uint32_t i = 0; i < TW_NO_LANE; i++)
        ASSERT_EQ(tw_build_lane(&build, 0, 0), i);
    tw_build_lane(&build, 0, 0);
    EXPECT_EQ(tw_build_finish(&build, &plan), TWILL_ERR_INVALID);
    EXPECT_EQ(plan, nullptr);
}

// What is handed out passed validation.
TEST(Builder, FinishValidates)
{
    tw_plan *plan = nullptr;
    tw_build build;
    tw_build_init(&build, "x", TW_COLL_ALL_REDUCE, 2, 0, -1);
    uint8_t part = tw_build_part(&build, TW_PART_EQUAL, 1, 4);
    tw_plan_step step =
        copy_of(tw_span_range(TW_BUF_IN, part, 0, 5), tw_span_range(TW_BUF_OUT, part, 0, 5));
    tw_build_step(&build, 0, tw_build_lane(&build, 0, 0), &step);
    EXPECT_EQ(tw_build_finish(&build, &plan), TWILL_ERR_INVALID);
    EXPECT_EQ(plan, nullptr);
}
