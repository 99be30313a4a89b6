/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: TWILL_ALGO's grammar and that plans are kept. Never knows: what the plans do. */
#include <cstring>

#include <gtest/gtest.h>

extern "C" {
#include "comm/plans.h"
}

namespace
{

TEST(PlansRead, OneNameIsForEveryCollectiveThatItServes)
{
    struct tw_plans plans = {};
    ASSERT_EQ(tw_plans_read_algo(&plans, "ring"), TWILL_OK);
    for (int coll = 0; coll < TW_COLL_COUNT; coll++)
        EXPECT_EQ(plans.forced[coll], tw_algo_find("ring", (enum tw_coll)coll)) << coll;
    EXPECT_NE(plans.forced[TW_COLL_ALL_REDUCE], nullptr);
    EXPECT_EQ(plans.forced[TW_COLL_BARRIER], nullptr);
}

TEST(PlansRead, LaterPartsWin)
{
    struct tw_plans plans = {};
    ASSERT_EQ(tw_plans_read_algo(&plans, "ring,all_reduce=direct,broadcast=binomial"), TWILL_OK);
    EXPECT_STREQ(plans.forced[TW_COLL_ALL_REDUCE]->name, "direct");
    EXPECT_STREQ(plans.forced[TW_COLL_BROADCAST]->name, "binomial");
    EXPECT_STREQ(plans.forced[TW_COLL_ALL_GATHER]->name, "ring");
}

TEST(PlansRead, EmptyForcesNothing)
{
    struct tw_plans plans = {};
    ASSERT_EQ(tw_plans_read_algo(&plans, ""), TWILL_OK);
    for (const struct tw_algo *forced : plans.forced)
        EXPECT_EQ(forced, nullptr);
}

TEST(PlansRead, ParametersGoWithTheName)
{
    struct tw_plans plans = {};
    ASSERT_EQ(tw_plans_read_algo(&plans, "knomial:4,all_gather=pat:2"), TWILL_OK);
    EXPECT_STREQ(plans.forced[TW_COLL_BROADCAST]->name, "knomial");
    EXPECT_EQ(plans.forced_param[TW_COLL_BROADCAST], 4u);
    EXPECT_STREQ(plans.forced[TW_COLL_ALL_GATHER]->name, "pat");
    EXPECT_EQ(plans.forced_param[TW_COLL_ALL_GATHER], 2u);
    ASSERT_EQ(tw_plans_read_algo(&plans, "broadcast=binomial"), TWILL_OK);
    EXPECT_EQ(plans.forced_param[TW_COLL_BROADCAST], 0u) << "of the algorithm that is gone";
    for (const char *bad : {"knomial:", "knomial:0", "knomial:x", "knomial:2x", "knomial:-1",
                            "knomial:65537", "ring:2", "^knomial:2"}) {
        struct tw_plans none = {};
        EXPECT_EQ(tw_plans_read_algo(&none, bad), TWILL_ERR_INVALID) << bad;
        EXPECT_EQ(none.forced[TW_COLL_BROADCAST], nullptr) << bad;
    }
    EXPECT_EQ(tw_plans_read_algo(&plans, "ring:2"), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "knomial, pat"), nullptr) << tw_fail_text();
}

uint64_t bit_of(const char *name)
{
    for (size_t i = 0; tw_algo_at(i); i++)
        if (strcmp(tw_algo_at(i)->name, name) == 0)
            return (uint64_t)1 << i;
    return 0;
}

TEST(PlansRead, ACaretLeavesOut)
{
    struct tw_plans plans = {};
    ASSERT_EQ(tw_plans_read_algo(&plans, "all_reduce=^ring,all_reduce=^direct,^pat"), TWILL_OK);
    EXPECT_EQ(plans.left_out[TW_COLL_ALL_REDUCE], bit_of("ring") | bit_of("direct"));
    EXPECT_EQ(plans.left_out[TW_COLL_ALL_GATHER], bit_of("pat"));
    EXPECT_EQ(plans.left_out[TW_COLL_BROADCAST], 0u);
    EXPECT_EQ(plans.forced[TW_COLL_ALL_REDUCE], nullptr);
    ASSERT_EQ(tw_plans_read_algo(&plans, "ring,all_reduce=^ring"), TWILL_OK);
    EXPECT_EQ(plans.forced[TW_COLL_ALL_REDUCE], nullptr) << "the later part wins";
    EXPECT_STREQ(plans.forced[TW_COLL_BROADCAST]->name, "ring");
    EXPECT_EQ(tw_plans_read_algo(&plans, "all_to_all=^ring"), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "pairwise"), nullptr) << tw_fail_text();
}

TEST(PlansRead, Protocols)
{
    EXPECT_EQ(tw_plans_read_proto(""), TWILL_OK);
    EXPECT_EQ(tw_plans_read_proto("simple"), TWILL_OK);
    EXPECT_EQ(tw_plans_read_proto("simple,all_reduce=simple"), TWILL_OK);
    for (const char *bad : {"ll", "all_reduce=ll", "^simple"}) {
        EXPECT_EQ(tw_plans_read_proto(bad), TWILL_ERR_INVALID) << bad;
        EXPECT_NE(strstr(tw_fail_text(), "there is: simple"), nullptr) << tw_fail_text();
    }
    EXPECT_EQ(tw_plans_read_proto("allreduce=simple"), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "all_reduce, "), nullptr) << tw_fail_text();
}

TEST(PlansRead, Errors)
{
    struct tw_plans plans = {};
    for (const char *bad : {"nothing", "all_reduce=", "=ring", "all_reduce=pairwise", "p2p=ring",
                            "ring;direct", "all_reduce=ring=direct"}) {
        EXPECT_EQ(tw_plans_read_algo(&plans, bad), TWILL_ERR_INVALID) << bad;
        EXPECT_NE(strstr(tw_fail_text(), "there are: "), nullptr) << tw_fail_text();
    }
}

TEST(PlansP2p, AreTheSameAtBothEnds)
{
    struct twill_comm comm = {};
    comm.size = 3;
    struct tw_plan *plans[2];
    comm.rank = 0;
    ASSERT_EQ(tw_plans_p2p(&comm, 2, true, &plans[0]), TWILL_OK);
    comm.rank = 2;
    ASSERT_EQ(tw_plans_p2p(&comm, 0, false, &plans[1]), TWILL_OK);
    EXPECT_EQ(plans[0]->depth, plans[1]->depth);
    EXPECT_EQ(plans[0]->slices, plans[1]->slices);
    EXPECT_EQ(plans[0]->nfifos, plans[1]->nfifos);
    EXPECT_EQ(tw_plan_widest(plans[0]), tw_plan_widest(plans[1]));
    const struct tw_plan_step *send = &plans[0]->ranks[0].lanes[0].steps[0];
    const struct tw_plan_step *recv = &plans[1]->ranks[2].lanes[0].steps[0];
    EXPECT_EQ(send->op, TW_OP_SEND);
    EXPECT_EQ(send->to, 2);
    EXPECT_EQ(recv->op, TW_OP_RECV);
    EXPECT_EQ(recv->from, 0);
    for (struct tw_plan *plan : plans)
        tw_plan_destroy(plan);
}

/* Whatever the links are, all ranks of a communicator use one plan for a call, and keep it. */
TEST(Plans, AreMadeOnce)
{
    twill_comm_t comm;
    ASSERT_EQ(twill_comm_init_all(&comm, 1, nullptr, nullptr), TWILL_OK);
    struct tw_plans *plans = nullptr;
    ASSERT_EQ(tw_plans_create(comm, &plans), TWILL_OK);
    struct tw_call_info info = {};
    info.coll = TW_COLL_BROADCAST;
    info.count = 10;
    info.type = TWILL_FLOAT32;
    const struct tw_plan *first = nullptr, *again = nullptr;
    uint64_t hash = 0, hash_again = 1;
    ASSERT_EQ(tw_plans_get(plans, &info, &first, &hash), TWILL_OK);
    ASSERT_EQ(tw_plans_get(plans, &info, &again, &hash_again), TWILL_OK);
    EXPECT_EQ(first, again);
    EXPECT_EQ(hash, hash_again);
    info.count = 10000000; /* another size class has another schedule, with another name */
    ASSERT_EQ(tw_plans_get(plans, &info, &again, &hash_again), TWILL_OK);
    EXPECT_NE(first, again);
    EXPECT_NE(hash, hash_again);
    tw_plans_destroy(plans);
    EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
}

} // namespace
