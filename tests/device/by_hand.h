// SPDX-License-Identifier: Apache-2.0
// Knows: how tests write plans step by step, and call them. Never knows: what is tested.
#ifndef TESTS_DEVICE_BY_HAND_H
#define TESTS_DEVICE_BY_HAND_H

#include <gtest/gtest.h>

#include "collective.h"
#include "plan/contract.hh"
#include "world.h"

extern "C" {
#include "algo/algo.h"
#include "base/status.h"
}

namespace by_hand
{

// Writes steps; spans and peers are filled in by the caller.
class Builder
{
  public:
    Builder(tw_coll coll, int size, int only_rank = -1)
    {
        tw_build_init(&build_, "by_hand", coll, size, 0, only_rank);
        build_.plan->depth = 2;
    }
    ~Builder() { tw_plan_destroy(build_.plan); }
    tw_plan *operator->() { return build_.plan; }
    uint8_t part(tw_part_kind kind, uint32_t groups, uint32_t per = 1)
    {
        return tw_build_part(&build_, kind, groups, per);
    }
    uint16_t lane(int rank) { return tw_build_lane(&build_, rank, 0); }
    uint32_t step(int rank, uint16_t lane, const tw_plan_step &step)
    {
        return tw_build_step(&build_, rank, lane, &step);
    }
    PlanPtr finish()
    {
        tw_plan *plan = nullptr;
        EXPECT_EQ(tw_build_finish(&build_, &plan), TWILL_OK) << tw_fail_text();
        return PlanPtr(plan);
    }

  private:
    tw_build build_;
};

inline tw_plan_step make(tw_plan_op op, tw_plan_span src, tw_plan_span dst, uint8_t flags = 0)
{
    tw_plan_step step = {};
    step.op = op;
    step.flags = flags;
    step.dep_lane = TW_NO_LANE;
    step.from = step.to = TW_NO_RANK;
    step.src = src;
    step.dst = dst;
    return step;
}
inline tw_plan_step copy(tw_plan_span src, tw_plan_span dst, uint8_t flags = 0)
{
    return make(TW_OP_COPY, src, dst, flags);
}
inline tw_plan_step send(int to, tw_plan_span src, uint8_t flags = 0)
{
    tw_plan_step step = make(TW_OP_SEND, src, tw_span_none(), flags);
    step.to = to;
    return step;
}
inline tw_plan_step recv(int from, tw_plan_span dst)
{
    tw_plan_step step = make(TW_OP_RECV, tw_span_none(), dst);
    step.from = from;
    return step;
}
inline tw_plan_step fused(tw_plan_op op, int from, int to, tw_plan_span src, tw_plan_span dst,
                          uint8_t flags = 0)
{
    tw_plan_step step = make(op, src, dst, flags);
    step.from = from;
    step.to = to;
    return step;
}
inline tw_plan_step after(tw_plan_step step, uint16_t lane, uint32_t index, bool whole = false)
{
    step.dep_lane = lane;
    step.dep_step = index;
    step.flags |= whole ? TW_STEP_WHOLE : 0;
    return step;
}
inline tw_plan_step signal_to(int to, uint32_t sig, uint32_t value)
{
    tw_plan_step step = make(TW_OP_SIGNAL, tw_span_none(), tw_span_none());
    step.to = to;
    step.sig = sig;
    step.sig_value = value;
    return step;
}
inline tw_plan_step wait_for(uint32_t sig, uint32_t value)
{
    tw_plan_step step = make(TW_OP_WAIT, tw_span_none(), tw_span_none());
    step.sig = sig;
    step.sig_value = value;
    return step;
}

template <class T> std::vector<T> draw_ints(size_t count, std::mt19937_64 &rng)
{
    std::vector<T> out(count);
    for (T &value : out) {
        value = static_cast<T>(rng());
    }
    return out;
}

inline tw_exec_call plain_call(const World &world, const tw_plan *plan, int rank, const void *in,
                               void *out, size_t count, twill_type_t type)
{
    tw_exec_call call = {};
    call.plan = plan;
    call.rank = rank;
    call.in = in;
    call.out = out;
    call.count = count;
    call.type = type;
    call.op = TWILL_SUM;
    call.header = 42;
    call.call_index = world.call_index;
    return call;
}

} // namespace by_hand

#endif
