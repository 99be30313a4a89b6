// SPDX-License-Identifier: Apache-2.0
// Knows: that every plan does its collective when run naively. Never knows: the checker.
#include "algo/cases.hh"
#include "algo/model.hh"

namespace
{

// Two loops and two calls under a random schedule, with a random mix of in-place ranks.
std::string run(const std::vector<const tw_plan *> &plans, std::mt19937_64 &random)
{
    model::Options options;
    options.slices = 1 + random() % 2;
    options.loops = 1 + random() % 2;
    options.calls = 2;
    options.inplace = random() & random();
    options.seed = random();
    return model::Run(plans, options).go();
}

} // namespace

// To 5 ranks all plans, beyond that as many as the budget allows.
TEST(Model, EveryPlanIsRight)
{
    struct Case {
        const tw_algo *algo;
        tw_algo_args args;
    };
    std::mt19937_64 random(1);
    std::vector<Case> cases;
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        for (int nranks = 1; nranks <= most_ranks;
             nranks += nranks < 9 ? 1 : 8 + (int)(random() % 40))
            for (int root : roots_of(coll, nranks, random))
                for (uint32_t param : params_of(algo))
                    cases.push_back(
                        {algo, {coll, nranks, root, -1, 1 + (uint32_t)(random() % 3), param}});
    });
    std::shuffle(cases.begin(), cases.end(), random);
    Clock clock;
    for (const Case &c : cases) {
        if (c.args.nranks > 5 && clock.seconds() > budget_s(1))
            continue;
        Plan plan = generate(c.algo, c.args);
        ASSERT_EQ(run({plan.get()}, random), "") << title(c.algo, c.args);
    }
}

// ---- the model itself can fail ----------------------------------------------------------------

namespace
{

// The first complaint of some seeds, "" if there is none.
std::string complaint(const tw_plan *plan, const tw_plan *next = nullptr, uint64_t inplace = 0)
{
    std::vector<const tw_plan *> plans = {plan};
    if (next)
        plans.push_back(next);
    for (uint64_t seed = 0; seed < 200; seed++) {
        model::Options options;
        options.slices = 2, options.loops = 2, options.calls = 2;
        options.inplace = inplace;
        options.seed = seed;
        std::string text = model::Run(plans, options).go();
        if (!text.empty())
            return text;
    }
    return "";
}

void drop(tw_plan *plan, int rank, uint32_t lane, uint32_t step)
{
    tw_plan_lane *list = &plan->ranks[rank].lanes[lane];
    memmove(&list->steps[step], &list->steps[step + 1],
            (list->nsteps - step - 1) * sizeof(list->steps[0]));
    list->nsteps--;
}

Plan make(const char *name, tw_coll coll, int nranks)
{
    return generate(tw_algo_find(name, coll), {coll, nranks, 0, -1, 1, 0});
}

} // namespace

TEST(Model, SeesDeadlock)
{
    Plan plan = make("ring", TW_COLL_ALL_REDUCE, 4);
    EXPECT_EQ(complaint(plan.get()), "");
    plan->depth = 2; // as many as slices: the full circle cannot move
    EXPECT_NE(complaint(plan.get()).find("deadlock"), std::string::npos);
}

TEST(Model, SeesReuseOfScratch)
{
    Plan plan = make("direct_put", TW_COLL_ALL_REDUCE, 3);
    EXPECT_EQ(complaint(plan.get()), "");
    for (int i = 0; i < 2; i++) // rank 1 goes on before the others have read
        drop(plan.get(), 1, 0, plan->ranks[1].lanes[0].nsteps - 1);
    EXPECT_NE(complaint(plan.get()), "");
}

TEST(Model, SeesEachDroppedStep)
{
    for (const char *name : {"ring", "recursive_doubling", "circulant", "direct", "two_shot"}) {
        Plan whole = make(name, TW_COLL_ALL_REDUCE, 3);
        const tw_plan_lane &lane = whole->ranks[2].lanes[0];
        for (uint32_t i = 0; i < lane.nsteps; i++) {
            Plan plan(tw_plan_copy(whole.get()));
            drop(plan.get(), 2, 0, i);
            EXPECT_NE(complaint(plan.get()), "") << name << " step " << i;
        }
    }
}

TEST(Model, SeesMissingFinalAndOverwrittenInput)
{
    Plan plan = make("two_shot", TW_COLL_ALL_REDUCE, 2);
    tw_plan_lane *lane = &plan->ranks[0].lanes[0];
    for (uint32_t i = 0; i < lane->nsteps; i++)
        lane->steps[i].flags &= (uint8_t)~TW_STEP_FINAL;
    EXPECT_NE(complaint(plan.get()).find("out cell"), std::string::npos);
    plan = make("direct", TW_COLL_ALL_REDUCE, 4);
    for (uint32_t i = 0; i < plan->ranks[3].lanes[0].nsteps; i++) { // own data does not step aside
        tw_plan_step *step = &plan->ranks[3].lanes[0].steps[i];
        if (step->op == TW_OP_REDUCE)
            step->src.buf = TW_BUF_IN;
    }
    EXPECT_EQ(complaint(plan.get()), "");
    EXPECT_NE(complaint(plan.get(), nullptr, 8), "");
}
