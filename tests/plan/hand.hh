// SPDX-License-Identifier: Apache-2.0
// Knows: correct plans written by hand for what the algorithms do not use: puts into users'
// buffers, gets, dependencies between lanes, wide partials, pairs' counts, plans in plans. Never
// knows: how they are proven.
#ifndef TW_TESTS_PLAN_HAND_HH
#define TW_TESTS_PLAN_HAND_HH

#include <memory>
#include <string>
#include <vector>

extern "C" {
#include "plan/plan.h"
}

struct HandDestroy {
    void operator()(tw_plan *plan) const { tw_plan_destroy(plan); }
};
using HandPlan = std::unique_ptr<tw_plan, HandDestroy>;

// All of them for this many ranks, at least 2. Throws when the builder refuses one.
std::vector<HandPlan> hand_plans(int nranks);

// By name; throws for an unknown one.
HandPlan hand_plan(const std::string &name, int nranks);
std::vector<std::string> hand_names();

// A step with no span, no peer and no dependency, for tests that write their own.
tw_plan_step hand_step(tw_plan_op op);

#endif
