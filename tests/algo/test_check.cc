// SPDX-License-Identifier: Apache-2.0
// Knows: that the checker proves every plan. Never knows: how plan or checker work.
#include <algorithm>

#include "algo/cases.hh"

namespace
{

// "" when proven, else the checker's sentence.
std::string fault_of(const tw_plan *plan, const tw_plan *next, uint64_t seed)
{
    tw_check_options options = {};
    options.seed = seed;
    options.next = next;
    tw_check_report report = {};
    twill_status status = tw_plan_check(plan, &options, &report);
    if (status == TWILL_OK)
        return "";
    return report.text[0] ? report.text : tw_fail_text();
}

// Signals, and lanes that share cells, carry clocks of all ranks and lanes: these are dear for the
// checker beyond a few tens of ranks.
bool is_dear(const tw_algo *algo, int nranks)
{
    return nranks > (algo->caps ? 16 : !strcmp(algo->name, "two_level") ? 36 : 64);
}

struct Case {
    const tw_algo *algo;
    tw_algo_args args;
};

void prove(const Case &c, uint64_t seed)
{
    Plan plan = generate(c.algo, c.args);
    ASSERT_EQ(fault_of(plan.get(), nullptr, seed), "") << title(c.algo, c.args);
}

// Proves cases in a drawn order until the seconds are spent.
void prove_some(std::vector<Case> cases, std::mt19937_64 &random, double seconds)
{
    std::shuffle(cases.begin(), cases.end(), random);
    Clock clock;
    size_t proven = 0;
    for (const Case &c : cases) {
        if (clock.seconds() > seconds)
            break;
        prove(c, random());
        if (testing::Test::HasFatalFailure())
            return;
        proven++;
    }
    EXPECT_GT(proven, 0u);
    testing::Test::RecordProperty("proven", (int)proven);
    testing::Test::RecordProperty("of", (int)cases.size());
    printf("proven %zu of %zu cases; TW_TEST_BUDGET=seconds proves more\n", proven, cases.size());
}

} // namespace

// All rank counts to 64, all roots to 8 ranks, one channel: always.
TEST(Check, EveryRankCount)
{
    std::mt19937_64 random(4);
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        for (int nranks = 1; nranks <= most_ranks && !is_dear(algo, nranks); nranks++)
            for (int root : roots_of(coll, nranks, random)) {
                prove({algo, {coll, nranks, root, -1, 1, 0}}, random());
                if (testing::Test::HasFatalFailure())
                    return;
            }
    });
}

// More channels, other parameters, and put plans of many ranks: as many as the budget allows.
TEST(Check, MoreWithinBudget)
{
    std::mt19937_64 random(5);
    std::vector<Case> cases;
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        for (int nranks = 1; nranks <= most_ranks; nranks++)
            for (uint32_t param : params_of(algo))
                for (uint32_t channels = 1; channels <= (is_dear(algo, nranks) ? 1 : 3); channels++)
                    for (int root : roots_of(coll, nranks, random, 4))
                        if (param || channels > 1 || is_dear(algo, nranks) || nranks > 8)
                            cases.push_back({algo, {coll, nranks, root, -1, channels, param}});
    });
    prove_some(cases, random, budget_s(1));
}

// Beyond 64 ranks, sampled.
TEST(Check, SampledBeyond)
{
    std::mt19937_64 random(6);
    std::vector<Case> cases;
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        for (int i = 0; i < 3 && !algo->caps; i++) {
            int nranks = 65 + (int)(random() % 64);
            int root = has_root(coll) ? (int)(random() % (uint64_t)nranks) : 0;
            cases.push_back({algo, {coll, nranks, root, -1, 1, 0}});
        }
    });
    prove_some(cases, random, budget_s(0.5));
}

// Any plan may follow any other of the same ranks: slots, scratch and signals are shared. Of 2
// ranks all pairs, beyond that drawn ones.
TEST(Check, AnyPlanMayFollowAnother)
{
    std::mt19937_64 random(7);
    std::vector<std::vector<Plan>> plans(9);
    for (int nranks = 2; nranks <= 8; nranks++)
        for_each_algo([&](const tw_algo *algo, tw_coll coll) {
            for (uint32_t channels = 1; channels <= 2; channels++)
                plans[nranks].push_back(generate(
                    algo, {coll, nranks, has_root(coll) ? (int)(random() % (uint64_t)nranks) : 0,
                           -1, channels, 0}));
        });
    size_t pairs = 0;
    auto follow = [&](const Plan &plan, const Plan &next) {
        pairs++;
        ASSERT_EQ(fault_of(plan.get(), next.get(), random()), "")
            << plan->name << " " << (int)plan->coll << " then " << next->name << " "
            << (int)next->coll << ", ranks " << plan->nranks;
    };
    for (const Plan &plan : plans[2])
        for (const Plan &next : plans[2])
            follow(plan, next);
    Clock clock;
    while (clock.seconds() < budget_s(1) && !HasFatalFailure()) {
        const std::vector<Plan> &some = plans[3 + random() % 6];
        follow(some[random() % some.size()], some[random() % some.size()]);
    }
    EXPECT_GT(pairs, plans[2].size() * plans[2].size());
}

// The proof is not empty: without its closing handshake a put plan is right when it follows itself
// only if no other plan uses its scratch, and the checker says so.
TEST(Check, ReuseBetweenPlansIsSeen)
{
    tw_algo_args args = {TW_COLL_ALL_REDUCE, 3, 0, -1, 1, 0};
    Plan plan = generate(tw_algo_find("two_shot_put", args.coll), args);
    Plan next = generate(tw_algo_find("direct_put", args.coll), args);
    EXPECT_EQ(fault_of(plan.get(), next.get(), 1), "");
    for (int r = 0; r < 3; r++)
        plan->ranks[r].lanes[0].nsteps -= 2; // the waits for "I have read"
    EXPECT_NE(fault_of(plan.get(), next.get(), 1), "");
}

// The order of adding is part of the proof: two operands swapped, or a rounding in between, are
// faults in a deterministic plan only.
TEST(Check, OrderIsSeen)
{
    for (const char *name : {"ordered", "ordered_tree", "ordered_halving", "ordered_direct"}) {
        tw_algo_args args = {TW_COLL_ALL_REDUCE, 4, 0, -1, 1, 0};
        Plan plan = generate(tw_algo_find(name, args.coll), args);
        EXPECT_EQ(fault_of(plan.get(), nullptr, 1), "") << name;
        tw_plan_lane &lane = plan->ranks[1].lanes[0];
        for (uint32_t i = 0; i < lane.nsteps; i++) {
            tw_plan_step &step = lane.steps[i];
            if (step.op != TW_OP_RECV_REDUCE && step.op != TW_OP_REDUCE)
                continue;
            step.flags ^= TW_STEP_ACC_RIGHT;
            EXPECT_NE(fault_of(plan.get(), nullptr, 1).find("order that a deterministic"),
                      std::string::npos)
                << name << " step " << i;
            plan->deterministic = false;
            EXPECT_EQ(fault_of(plan.get(), nullptr, 1), "") << name << " step " << i;
            plan->deterministic = true;
            step.flags ^= TW_STEP_ACC_RIGHT;
        }
    }
}

TEST(Check, DepthIsTheLeast)
{
    tw_algo_args args = {TW_COLL_ALL_REDUCE, 4, 0, -1, 1, 0};
    for (const char *name : {"ring", "recursive_doubling", "halving_doubling", "two_shot"}) {
        Plan plan = generate(tw_algo_find(name, args.coll), args);
        EXPECT_EQ(fault_of(plan.get(), nullptr, 1), "") << name;
        plan->depth--;
        EXPECT_NE(fault_of(plan.get(), nullptr, 1), "") << name;
    }
}
