// SPDX-License-Identifier: Apache-2.0
// Knows: that plans whose ranks have changed places are proven, and which do. Never knows: how they
// are rewritten.
#include <algorithm>
#include <numeric>
#include <set>

#include "algo/cases.hh"

namespace
{

std::string fault_of(const tw_plan *plan, uint64_t seed)
{
    tw_check_options options = {};
    options.seed = seed;
    tw_check_report report = {};
    if (tw_plan_check(plan, &options, &report) == TWILL_OK)
        return "";
    return report.text[0] ? report.text : tw_fail_text();
}

std::string print(const tw_plan *plan)
{
    char *text = nullptr;
    EXPECT_EQ(tw_plan_print(plan, &text), TWILL_OK);
    std::string copy = text ? text : "";
    free(text);
    return copy;
}

// What goes by neighbours, or takes the block of one rank at a time: all of it moves.
bool moves(const tw_algo *algo, tw_coll coll)
{
    static const std::set<std::string> all = {"ring",        "recursive_doubling", "direct",
                                              "linear",      "two_shot",           "pairwise",
                                              "double_tree", "dissemination"};
    static const std::set<std::string> trees = {"binomial", "knomial", "two_level"};
    if (algo->deterministic >> coll & 1)
        return false;
    if (all.count(algo->name) &&
        !(coll == TW_COLL_ALL_GATHER && algo->name[0] == 'r' && algo->name[1] == 'e'))
        return true;
    return trees.count(algo->name) && (coll == TW_COLL_BROADCAST || coll == TW_COLL_REDUCE);
}

std::vector<std::vector<int>> orders_of(int nranks, std::mt19937_64 &random)
{
    std::vector<int> drawn((size_t)nranks);
    std::iota(drawn.begin(), drawn.end(), 0);
    std::vector<int> back(drawn.rbegin(), drawn.rend());
    std::shuffle(drawn.begin(), drawn.end(), random);
    return {back, drawn};
}

// @return whether it moved
bool move(const tw_algo *algo, const tw_algo_args &args, const std::vector<int> &rank_of,
          uint64_t seed)
{
    Plan plan = generate(algo, args);
    const std::string before = print(plan.get());
    tw_plan *moved = plan.release();
    const twill_status status = tw_plan_relabel(&moved, rank_of.data());
    plan.reset(moved);
    if (status != TWILL_OK) {
        EXPECT_EQ(status, TWILL_ERR_UNSUPPORTED) << title(algo, args) << tw_fail_text();
        EXPECT_EQ(print(plan.get()), before) << title(algo, args);
        return false;
    }
    if (has_root(args.coll)) {
        EXPECT_EQ(plan->root, rank_of[(size_t)args.root]);
    }
    EXPECT_EQ(fault_of(plan.get(), seed), "") << title(algo, args);
    return true;
}

} // namespace

TEST(Relabel, EveryAlgorithmIsProvenWhereItMoves)
{
    std::mt19937_64 random(6);
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        for (int nranks : {2, 3, 4, 5, 7, 8, 12})
            for (int root : roots_of(coll, nranks, random))
                for (uint32_t channels : {1u, 3u})
                    for (const auto &order : orders_of(nranks, random)) {
                        const tw_algo_args args = {coll, nranks, root, -1, channels, 0};
                        const bool moved = move(algo, args, order, random());
                        EXPECT_TRUE(moved || !moves(algo, coll)) << title(algo, args);
                        if (testing::Test::HasFailure())
                            return;
                    }
    });
}

TEST(Relabel, TheFirstOrderChangesNothing)
{
    std::vector<int> same(8);
    std::iota(same.begin(), same.end(), 0);
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        Plan plan = generate(algo, {coll, 8, 0, -1, 2, 0});
        const std::string before = print(plan.get());
        tw_plan *moved = plan.release();
        const twill_status status = tw_plan_relabel(&moved, same.data());
        plan.reset(moved);
        EXPECT_EQ(status, algo->deterministic >> coll & 1 ? TWILL_ERR_UNSUPPORTED : TWILL_OK);
        EXPECT_EQ(print(plan.get()), before) << title(algo, {coll, 8, 0, -1, 2, 0});
    });
}

TEST(Relabel, NeighboursOfARingAreThoseOfTheOrder)
{
    const std::vector<int> order = {0, 1, 3, 4, 6, 7, 5, 2};
    Plan plan =
        generate(tw_algo_find("ring", TW_COLL_ALL_REDUCE), {TW_COLL_ALL_REDUCE, 8, 0, -1, 1, 0});
    tw_plan *moved = plan.release();
    ASSERT_EQ(tw_plan_relabel(&moved, order.data()), TWILL_OK) << tw_fail_text();
    plan.reset(moved);
    for (size_t i = 0; i < order.size(); i++) {
        const tw_plan_lane &lane = plan->ranks[order[i]].lanes[0];
        for (uint32_t k = 0; k < lane.nsteps; k++) {
            if (lane.steps[k].to != TW_NO_RANK) {
                EXPECT_EQ(lane.steps[k].to, order[(i + 1) % 8]);
            }
            if (lane.steps[k].from != TW_NO_RANK) {
                EXPECT_EQ(lane.steps[k].from, order[(i + 7) % 8]);
            }
        }
    }
}

TEST(Relabel, PlacesThatAreNone)
{
    const std::vector<std::vector<int>> bad = {{0, 1, 2, 2}, {0, 1, 2, 4}, {-1, 0, 1, 2}};
    for (const auto &order : bad) {
        Plan plan = generate(tw_algo_find("ring", TW_COLL_ALL_GATHER),
                             {TW_COLL_ALL_GATHER, 4, 0, -1, 1, 0});
        tw_plan *same = plan.get();
        EXPECT_EQ(tw_plan_relabel(&same, order.data()), TWILL_ERR_INVALID);
        EXPECT_EQ(same, plan.get());
    }
    Plan alone =
        generate(tw_algo_find("ring", TW_COLL_ALL_GATHER), {TW_COLL_ALL_GATHER, 2, 0, 1, 1, 0});
    const int back[] = {1, 0};
    tw_plan *same = alone.get();
    EXPECT_EQ(tw_plan_relabel(&same, back), TWILL_ERR_UNSUPPORTED);
    EXPECT_EQ(same, alone.get());
}
