// SPDX-License-Identifier: Apache-2.0
// Knows: plans that are right, and that the checker says so. Never knows: how it finds out.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "plan/hand.hh"
#include "plan/naive.hh"

namespace
{

class Right : public testing::TestWithParam<int>
{
};

TEST_P(Right, HandMadePlansAreProven)
{
    for (const HandPlan &plan : hand_plans(GetParam())) {
        tw_check_report report;
        EXPECT_EQ(tw_plan_check(plan.get(), nullptr, &report), TWILL_OK) << report.text;
        EXPECT_STREQ(report.text, "");
        EXPECT_GT(report.steps_run, 0u);
    }
}

TEST_P(Right, HandMadePlansRunRight)
{
    for (const HandPlan &plan : hand_plans(GetParam()))
        for (uint64_t seed = 0; seed < 12; seed++) {
            NaiveResult result = naive_run(plan.get(), seed);
            EXPECT_EQ(result.outcome, Outcome::RIGHT) << plan->name << ": " << result.text;
        }
}

// A whole group of sends and receives has no result to be judged, but it must not block.
TEST(RightText, GroupsOfMessages)
{
    auto status = [](const std::string &rank1) {
        std::string text = "plan x p2p ranks 2 root 0\nfacts depth 1 fifos 1 widest 1 slices 2\n"
                           "part per_rank groups 2 per 1\nrank 0\n"
                           "lane channel 0\nsend to 1 src in.0[1]\n"
                           "lane channel 0\nrecv from 1 dst out.0[1]\n"
                           "rank 1\n" +
                           rank1;
        tw_plan *plan = nullptr;
        EXPECT_EQ(tw_plan_parse(text.data(), text.size(), &plan), TWILL_OK);
        HandPlan owner(plan);
        return tw_plan_check(plan, nullptr, nullptr);
    };
    EXPECT_EQ(status("lane channel 0\nsend to 0 src in.0[0]\n"
                     "lane channel 0\nrecv from 0 dst out.0[0]\n"),
              TWILL_OK);
    EXPECT_EQ(status("lane channel 0\nrecv from 0 dst out.0[0]\nsend to 0 src in.0[0]\n"),
              TWILL_OK);
    EXPECT_EQ(status("lane channel 0\nrecv from 0 dst out.0[0]\n"), TWILL_ERR_INVALID);
}

// The example of docs/plan.md.
TEST(RightText, ExampleIsProvenAndRuns)
{
    const char *folder = getenv("srcdir");
    std::ifstream file(std::string(folder ? folder : ".") + "/docs/plans/chain.plan");
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    tw_plan *plan = nullptr;
    ASSERT_EQ(tw_plan_parse(text.data(), text.size(), &plan), TWILL_OK);
    HandPlan owner(plan);
    EXPECT_STREQ(plan->name, "chain");
    EXPECT_EQ(tw_plan_check(plan, nullptr, nullptr), TWILL_OK);
    for (uint64_t seed = 0; seed < 20; seed++)
        EXPECT_EQ(naive_run(plan, seed).outcome, Outcome::RIGHT);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Right, testing::Values(2, 3, 4, 5));

} // namespace
