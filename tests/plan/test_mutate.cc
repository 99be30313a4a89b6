// SPDX-License-Identifier: Apache-2.0
// Knows: spoils correct plans one step at a time, asks the checker, and runs what it accepts.
// Never knows: how the checker decides.
//
// A mutant that the checker accepts must run right under every schedule tried: if not, the checker
// has a hole. TW_TEST_BUDGET: processor seconds (10); with enough of them all mutants are tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include "plan/contract.hh"
#include "plan/hand.hh"
#include "plan/mutate.hh"
#include "plan/naive.hh"

extern "C" {
#include "algo/algo.h"
#include "base/log.h"
}

namespace
{

struct Subject {
    std::string title;
    HandPlan plan, next; // next: follows it in the calls, or none
    std::vector<Mutation> mutations;
    size_t tried = 0;
};

struct Tally {
    uint64_t mutants = 0, malformed = 0, killed = 0, survivors = 0;
    uint64_t sampled = 0, seen = 0; // killed ones that were run too, and went wrong
};

double seconds() { return (double)clock() / CLOCKS_PER_SEC; }

double budget()
{
    const char *text = getenv("TW_TEST_BUDGET");
    double value = text ? atof(text) : 0;
    return value > 0 ? value : 10;
}

HandPlan generated(const tw_algo *algo, tw_coll coll, int nranks, uint32_t channels)
{
    tw_algo_args args = {coll, nranks, contract::rooted(coll) ? nranks / 2 : 0, -1, channels, 0};
    tw_plan *plan = nullptr;
    EXPECT_EQ(algo->generate(&args, &plan), TWILL_OK) << algo->name;
    return HandPlan(plan);
}

HandPlan copy(const HandPlan &plan) { return HandPlan(tw_plan_copy(plan.get())); }

void add(std::vector<Subject> &subjects, const std::string &title, HandPlan plan, HandPlan next)
{
    Subject subject = {title, std::move(plan), std::move(next), {}, 0};
    subject.mutations = mutations(subject.plan.get());
    subjects.push_back(std::move(subject));
}

std::vector<Subject> all_subjects()
{
    std::vector<Subject> subjects;
    for (int nranks = 1; nranks <= 8; nranks++)
        for (size_t i = 0; const tw_algo *algo = tw_algo_at(i); i++)
            for (int c = 0; c < TW_COLL_COUNT; c++)
                for (uint32_t channels = 1; channels <= (nranks <= 4 ? 2u : 1u); channels++)
                    if (algo->colls >> c & 1)
                        add(subjects,
                            std::string(algo->name) + " " + tw_coll_name((tw_coll)c) + " " +
                                std::to_string(nranks) + " channels " + std::to_string(channels),
                            generated(algo, (tw_coll)c, nranks, channels), nullptr);
    for (int nranks = 2; nranks <= 5; nranks++)
        for (HandPlan &plan : hand_plans(nranks)) {
            std::string title = std::string(plan->name) + " " + std::to_string(nranks);
            add(subjects, title, std::move(plan), nullptr);
        }
    // before another plan that shares slots, scratch or signals
    for (int nranks = 2; nranks <= 4; nranks++) {
        std::vector<HandPlan> plans = hand_plans(nranks);
        for (const char *name : {"two_shot_put", "direct_put"})
            plans.push_back(
                generated(tw_algo_find(name, TW_COLL_ALL_REDUCE), TW_COLL_ALL_REDUCE, nranks, 1));
        for (const HandPlan &plan : plans)
            for (const HandPlan &next : plans) {
                bool shares = (plan->nsigs && next->nsigs) || (plan->nfifos && next->nfifos);
                tw_check_options options = {4, 0, next.get()};
                tw_check_report report;
                // plans that may not follow each other are subjects too: as they are
                if (shares && tw_plan_check(plan.get(), &options, &report) == TWILL_OK)
                    add(subjects,
                        std::string(plan->name) + " before " + next->name + " " +
                            std::to_string(nranks),
                        copy(plan), copy(next));
            }
    }
    return subjects;
}

class Mutants : public testing::Test
{
  protected:
    void SetUp() override { ASSERT_EQ(tw_log_configure("error", nullptr), TWILL_OK); }
    void TearDown() override { tw_log_configure("warn", nullptr); }

    // Under `tries` drawn schedules: the first that goes wrong, or right.
    NaiveResult execute(const Subject &subject, const tw_plan *mutant, int tries)
    {
        NaiveResult result = {Outcome::RIGHT, ""};
        for (int i = 0; i < tries && result.outcome == Outcome::RIGHT; i++)
            result = naive_run(mutant, random_(), subject.next.get());
        return result;
    }

    void judge(Subject &subject, const Mutation &mutation, int tries)
    {
        HandPlan mutant = copy(subject.plan);
        if (!mutate(mutant.get(), mutation))
            return;
        Tally &tally = tallies_[mutation.kind];
        tally.mutants++;
        if (tw_failed_(tw_plan_validate(mutant.get()))) {
            tally.malformed++;
            return;
        }
        tw_check_options options = {4, random_(), subject.next.get()};
        tw_check_report report;
        twill_status status = tw_plan_check(mutant.get(), &options, &report);
        ASSERT_TRUE(status == TWILL_OK || status == TWILL_ERR_INVALID) << report.text;
        EXPECT_EQ(status == TWILL_OK, report.text[0] == '\0') << mutation.text();
        if (status != TWILL_OK) {
            tally.killed++;
            if (tally.killed % 32 == 0) {
                tally.sampled++;
                tally.seen += execute(subject, mutant.get(), 12).outcome != Outcome::RIGHT;
            }
            return;
        }
        tally.survivors++;
        if (getenv("TW_TEST_SURVIVORS"))
            printf("accepted: %s, %s\n", subject.title.c_str(), mutation.text().c_str());
        NaiveResult result = execute(subject, mutant.get(), tries);
        EXPECT_EQ(result.outcome, Outcome::RIGHT)
            << "hole: " << subject.title << ", " << mutation.text() << ": " << result.text;
    }

    void print() const
    {
        Tally sum;
        printf("mutation     mutants  malformed     killed  survivors  killed ones run: wrong\n");
        for (int k = 0; k <= MUTATE_KINDS; k++) {
            const Tally &t = k < MUTATE_KINDS ? tallies_[k] : sum;
            printf("%-10s %9llu  %9llu  %9llu  %9llu  %6llu of %llu\n",
                   k < MUTATE_KINDS ? mutation_name((MutationKind)k) : "all",
                   (unsigned long long)t.mutants, (unsigned long long)t.malformed,
                   (unsigned long long)t.killed, (unsigned long long)t.survivors,
                   (unsigned long long)t.seen, (unsigned long long)t.sampled);
            sum.mutants += t.mutants;
            sum.malformed += t.malformed;
            sum.killed += t.killed;
            sum.survivors += t.survivors;
            sum.sampled += t.sampled;
            sum.seen += t.seen;
        }
    }

    static bool tw_failed_(twill_status status) { return status < 0; }

    std::mt19937_64 random_{20240229};
    Tally tallies_[MUTATE_KINDS];
};

// All accepted mutants run right. Subjects take turns, each with its mutants in a drawn order.
TEST_F(Mutants, AcceptedOnesRunRight)
{
    double until = seconds() + budget();
    int tries = budget() > 60 ? 24 : 8;
    std::vector<Subject> subjects = all_subjects();
    for (Subject &subject : subjects)
        std::shuffle(subject.mutations.begin(), subject.mutations.end(), random_);
    std::shuffle(subjects.begin(), subjects.end(), random_);
    bool left = true;
    while (left && seconds() < until && !HasFailure()) {
        left = false;
        for (Subject &subject : subjects) {
            if (subject.tried == subject.mutations.size() || seconds() >= until)
                continue;
            left = true;
            judge(subject, subject.mutations[subject.tried++], tries);
        }
    }
    printf("%zu plans%s\n", subjects.size(), left ? "" : ", every mutant");
    print();
    uint64_t seen = 0, sampled = 0;
    for (const Tally &tally : tallies_) {
        seen += tally.seen;
        sampled += tally.sampled;
    }
    // the executor has teeth: most of what the checker refuses goes wrong before its eyes
    EXPECT_GT(seen * 2, sampled);
}

} // namespace
