// SPDX-License-Identifier: Apache-2.0
// Knows: how tests walk over algorithms, collectives, ranks and roots. Never knows: any schedule.
#ifndef TW_TESTS_ALGO_CASES_HH
#define TW_TESTS_ALGO_CASES_HH

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "plan/contract.hh"

extern "C" {
#include "algo/algo.h"
#include "base/status.h"
}

struct PlanDestroy {
    void operator()(tw_plan *plan) const { tw_plan_destroy(plan); }
};
using Plan = std::unique_ptr<tw_plan, PlanDestroy>;

inline Plan generate(const tw_algo *algo, const tw_algo_args &args)
{
    tw_plan *plan = nullptr;
    twill_status status = algo->generate(&args, &plan);
    EXPECT_EQ(status, TWILL_OK) << algo->name << ": " << tw_fail_text();
    return Plan(plan);
}

inline std::string title(const tw_algo *algo, const tw_algo_args &args)
{
    return std::string(algo->name) + " " + tw_coll_name(args.coll) + " ranks " +
           std::to_string(args.nranks) + " root " + std::to_string(args.root) + " channels " +
           std::to_string(args.channels) +
           (args.param ? std::string(" ") + algo->param->name + " " + std::to_string(args.param)
                       : "");
}

inline bool has_root(tw_coll coll) { return contract::rooted(coll); }

// All roots to 8 ranks, beyond that a few and `extra` drawn ones.
inline std::vector<int> roots_of(tw_coll coll, int nranks, std::mt19937_64 &random, int extra = 1)
{
    std::vector<int> roots;
    if (!has_root(coll))
        return {0};
    if (nranks <= 8) {
        for (int r = 0; r < nranks; r++)
            roots.push_back(r);
        return roots;
    }
    roots = {0, nranks - 1};
    for (int i = 0; i < extra; i++)
        roots.push_back((int)(random() % (uint64_t)nranks));
    return roots;
}

// The default and some values of the algorithm's own parameter.
inline std::vector<uint32_t> params_of(const tw_algo *algo)
{
    return algo->param ? std::vector<uint32_t>{0, 2, 3, 4, 6, 16, 64} : std::vector<uint32_t>{0};
}

// Each algorithm with each collective that it serves.
template <class F> void for_each_algo(F &&body)
{
    for (size_t i = 0; const tw_algo *algo = tw_algo_at(i); i++)
        for (int c = 0; c < TW_COLL_COUNT; c++)
            if (algo->colls >> c & 1)
                body(algo, (tw_coll)c);
}

// Sanitizers are slow, and see what they can see in few ranks: TSan nothing at all where there is
// one thread.
#if defined(__SANITIZE_THREAD__)
constexpr int most_ranks = 10;
constexpr double slowness = 8;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int most_ranks = 24;
constexpr double slowness = 3;
#else
constexpr int most_ranks = 64;
constexpr double slowness = 1;
#endif

// TW_TEST_BUDGET in processor seconds, or the small default.
inline double budget_s(double dflt)
{
    const char *text = getenv("TW_TEST_BUDGET");
    return text && atof(text) > 0 ? atof(text) : dflt / slowness;
}

// Processor time, so that a busy machine does not change what a budget buys.
class Clock
{
  public:
    double seconds() const { return (double)(clock() - start_) / CLOCKS_PER_SEC; }

  private:
    clock_t start_ = clock();
};

#endif
