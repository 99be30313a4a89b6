// SPDX-License-Identifier: Apache-2.0
// Knows: how to run a plan's steps one at a time on small arrays, in any legal order.
// Never knows: the checker; it shares no code with it, so that one can find the other's mistakes.
#ifndef TW_TESTS_PLAN_NAIVE_HH
#define TW_TESTS_PLAN_NAIVE_HH

#include <cstdint>
#include <string>

extern "C" {
#include "plan/plan.h"
}

enum class Outcome { RIGHT, WRONG, HANG };

struct NaiveResult {
    Outcome outcome;
    std::string text; // what went wrong, and under which seed
};

// One run of a whole plan that tw_plan_validate accepts: several calls back to back, drawn counts,
// slices, loops, ranks in place and schedule (all from seed). With next, calls alternate.
NaiveResult naive_run(const tw_plan *plan, uint64_t seed, const tw_plan *next = nullptr);

#endif
