// SPDX-License-Identifier: Apache-2.0
// Knows: all the small ways to spoil a plan. Never knows: which of them matter.
#ifndef TW_TESTS_PLAN_MUTATE_HH
#define TW_TESTS_PLAN_MUTATE_HH

#include <cstdint>
#include <string>
#include <vector>

extern "C" {
#include "plan/plan.h"
}

enum MutationKind {
    MUTATE_DROP,      // a step
    MUTATE_DUPLICATE, // a step, behind itself
    MUTATE_SWAP,      // a step with the next
    MUTATE_MOVE,      // a step to another place in its lane
    MUTATE_LANE,      // a step to another lane of its rank
    MUTATE_PEER,      // from, to
    MUTATE_FIFO,      // fifo ids
    MUTATE_CELL,      // first cell of a span
    MUTATE_BUFFER,    // of a span
    MUTATE_SIZE,      // block, nblocks, stride
    MUTATE_PART,      // partition of a span
    MUTATE_OP,        // the operation
    MUTATE_FLAG,      // final, acc_right, store, round
    MUTATE_DEPEND,    // drop, weaken, change, or add a dependency
    MUTATE_SIGNAL,    // id, value
    MUTATE_CLAIM,     // depth, slices, parity, cells, root, ... of the plan
    MUTATE_KINDS
};

const char *mutation_name(MutationKind kind);

struct Mutation {
    MutationKind kind;
    int rank;
    uint32_t lane, step;
    uint32_t variant;
    std::string text() const;
};

// Every mutation of the plan; some change nothing.
std::vector<Mutation> mutations(const tw_plan *plan);

// Apply to a copy. False: it would change nothing or makes no sense here.
bool mutate(tw_plan *plan, const Mutation &mutation);

#endif
