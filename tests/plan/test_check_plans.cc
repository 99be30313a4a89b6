// SPDX-License-Identifier: Apache-2.0
// Knows: plans that are right, and that the checker says so. Never knows: how it finds out.
#include <gtest/gtest.h>

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
        for (uint64_t seed = 0; seed < 40; seed++) {
            NaiveResult result = naive_run(plan.get(), seed);
            EXPECT_EQ(result.outcome, Outcome::RIGHT) << plan->name << ": " << result.text;
        }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Right, testing::Values(2, 3, 4, 5));

} // namespace
