// SPDX-License-Identifier: Apache-2.0
// Knows: that plans live, die and are copied whole. Never knows: what they say.
#include "plan/plans.hh"

TEST(Plan, StartsEmpty)
{
    Plan plan(tw_plan_create("ring", TW_COLL_REDUCE, 5, 4, 3));
    ASSERT_TRUE(plan);
    EXPECT_STREQ(plan->name, "ring");
    EXPECT_EQ(plan->coll, TW_COLL_REDUCE);
    EXPECT_EQ(plan->nranks, 5);
    EXPECT_EQ(plan->root, 4);
    EXPECT_EQ(plan->only_rank, 3);
    EXPECT_EQ(plan->slices, 1u);
    EXPECT_EQ(plan->parity, 1u);
    EXPECT_EQ(plan->depth, 0u);
    EXPECT_EQ(tw_plan_widest(plan.get()), 1u);
    for (int r = 0; r < 5; r++)
        EXPECT_EQ(plan->ranks[r].nlanes, 0u);
}

TEST(Plan, RefusesNonsense)
{
    struct {
        const char *name;
        int coll, nranks, root, only_rank;
    } bad[] = {
        {nullptr, 0, 2, 0, -1},
        {"", 0, 2, 0, -1},
        {"two words", 0, 2, 0, -1},
        {"new\nline", 0, 2, 0, -1},
        {"h\xc3\xa9", 0, 2, 0, -1},
        {"a-name-that-is-exactly-as-long-as-the-field-is--", 0, 2, 0, -1},
        {"x", TW_COLL_COUNT, 2, 0, -1},
        {"x", -1, 2, 0, -1},
        {"x", 0, 0, 0, -1},
        {"x", 0, -1, 0, -1},
        {"x", 0, TW_PLAN_RANKS_MAX + 1, 0, -1},
        {"x", 0, 2, 2, -1},
        {"x", 0, 2, -1, -1},
        {"x", 0, 2, 0, 2},
        {"x", 0, 2, 0, -2},
    };
    for (const auto &b : bad) {
        EXPECT_EQ(tw_plan_create(b.name, (tw_coll)b.coll, b.nranks, b.root, b.only_rank), nullptr);
        EXPECT_EQ(tw_plan_shape_check(b.name, (tw_coll)b.coll, b.nranks, b.root, b.only_rank),
                  TWILL_ERR_INVALID);
        EXPECT_STRNE(tw_fail_text(), "");
    }
    EXPECT_EQ(tw_plan_shape_check("a-name-that-just-fits-into-the-field-it-is-for-",
                                  TW_COLL_BARRIER, TW_PLAN_RANKS_MAX, 0, -1),
              TWILL_OK);
}

TEST(Plan, CollectivesHaveNames)
{
    EXPECT_STREQ(tw_coll_name(TW_COLL_ALL_REDUCE), "all_reduce");
    EXPECT_STREQ(tw_coll_name(TW_COLL_P2P), "p2p");
    for (int c = 0; c < TW_COLL_COUNT; c++)
        EXPECT_NE(tw_coll_name((tw_coll)c), nullptr);
    EXPECT_EQ(tw_coll_name(TW_COLL_COUNT), nullptr);
    EXPECT_EQ(tw_coll_name((tw_coll)-1), nullptr);
}

TEST(Plan, CopyIsWholeAndItsOwn)
{
    Plan plan = motley_plan();
    plan->deterministic = true;
    Plan copy(tw_plan_copy(plan.get()));
    ASSERT_TRUE(copy);
    EXPECT_EQ(difference(plan.get(), copy.get()), "");
    copy->ranks[0].lanes[0].steps[0].src.first = 8;
    EXPECT_EQ(plan->ranks[0].lanes[0].steps[0].src.first, 4u);
    EXPECT_EQ(difference(plan.get(), copy.get()), "step 0 of lane 0 of rank 0");
    plan.reset(); // the copy stands alone
    EXPECT_EQ(copy->ranks[0].lanes[1].channel, 65535);
}

TEST(Plan, DestroyTakesNull) { tw_plan_destroy(nullptr); }

TEST(Plan, SpansCountTheirCells)
{
    tw_plan_span span = {TW_BUF_IN, 0, 0, 3, 2, 5, 3};
    ASSERT_EQ(tw_span_cells(&span), 6u);
    uint32_t want[] = {3, 4, 8, 9, 13, 14};
    for (uint32_t i = 0; i < 6; i++)
        EXPECT_EQ(tw_span_cell(&span, i), want[i]);
    span = tw_span_none();
    EXPECT_EQ(tw_span_cells(&span), 0u);
}
