// SPDX-License-Identifier: Apache-2.0
// Knows: small plans for tests, written by hand, and how to compare plans.
// Never knows: the algorithms.
#ifndef TW_TESTS_PLAN_PLANS_HH
#define TW_TESTS_PLAN_PLANS_HH

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

extern "C" {
#include "base/status.h"
#include "plan/plan.h"
}

struct PlanDestroy {
    void operator()(tw_plan *plan) const { tw_plan_destroy(plan); }
};
using Plan = std::unique_ptr<tw_plan, PlanDestroy>;

inline tw_plan_step step_of(tw_plan_op op)
{
    tw_plan_step step = {};
    step.op = (uint8_t)op;
    step.dep_lane = TW_NO_LANE;
    step.from = step.to = TW_NO_RANK;
    return step;
}

inline tw_plan_step send_of(int to, tw_plan_span src, uint16_t fifo = 0)
{
    tw_plan_step step = step_of(TW_OP_SEND);
    step.to = to, step.src = src, step.fifo_out = fifo;
    return step;
}

inline tw_plan_step recv_of(int from, tw_plan_span dst, uint16_t fifo = 0)
{
    tw_plan_step step = step_of(TW_OP_RECV);
    step.from = from, step.dst = dst, step.fifo_in = fifo;
    return step;
}

inline tw_plan_step copy_of(tw_plan_span src, tw_plan_span dst)
{
    tw_plan_step step = step_of(TW_OP_COPY);
    step.src = src, step.dst = dst;
    return step;
}

// Every rank sends its group to every other: an all_gather with `per` cells a group.
inline Plan gather_plan(int nranks, uint32_t per, int only_rank = -1)
{
    tw_build build;
    tw_build_init(&build, "gather", TW_COLL_ALL_GATHER, nranks, 0, only_rank);
    uint8_t in = tw_build_part(&build, TW_PART_EQUAL, 1, per);
    uint8_t out = tw_build_part(&build, TW_PART_EQUAL, (uint32_t)nranks, per);
    for (int r = 0; r < nranks; r++) {
        if (!tw_build_wants(&build, r))
            continue;
        uint16_t lane = tw_build_lane(&build, r, 0);
        tw_plan_span own = tw_span_range(TW_BUF_IN, in, 0, per);
        tw_plan_step copy = copy_of(own, tw_span_range(TW_BUF_OUT, out, (uint32_t)r * per, per));
        tw_build_step(&build, r, lane, &copy);
        for (int p = 0; p < nranks; p++) {
            tw_plan_step step = send_of(p, own);
            if (p != r)
                tw_build_step(&build, r, lane, &step);
        }
        for (int p = 0; p < nranks; p++) {
            tw_plan_step step = recv_of(p, tw_span_range(TW_BUF_OUT, out, (uint32_t)p * per, per));
            if (p != r)
                tw_build_step(&build, r, lane, &step);
        }
    }
    tw_plan *plan = nullptr;
    EXPECT_EQ(tw_build_finish(&build, &plan), TWILL_OK) << tw_fail_text();
    return Plan(plan);
}

// A plan that uses every operation, flag, buffer and form of a span. It passes validation; no
// collective is done by it.
inline Plan motley_plan()
{
    tw_build build;
    tw_build_init(&build, "motley-1.0+x", TW_COLL_P2P, 3, 0, -1);
    uint8_t even = tw_build_part(&build, TW_PART_EQUAL, 4, 4);
    tw_build_part(&build, TW_PART_PER_RANK, 3, 2);
    build.plan->scratch_cells = 32;
    build.plan->wide_cells = 16;
    build.plan->caps = TW_CAP_PUT_SCRATCH | TW_CAP_PEER_BUFFERS;
    build.plan->nsigs = 9;
    build.plan->sig_max = 40;
    build.plan->depth = 5, build.plan->slices = 3, build.plan->parity = 2;
    build.plan->nfifos = 8, build.plan->widest = 8;
    tw_plan_span a = tw_span_range(TW_BUF_IN, even, 4, 4);
    tw_plan_span b = tw_span_range(TW_BUF_OUT, even, 8, 4);
    tw_plan_span s = tw_span_range(TW_BUF_SCRATCH, even, 4, 4);
    tw_plan_span w = tw_span_range(TW_BUF_WIDE, even, 0, 4);
    tw_plan_span strided = {TW_BUF_SCRATCH, even, 0, 2, 2, 4, 2};
    uint16_t lane = tw_build_lane(&build, 0, 7), other = tw_build_lane(&build, 0, 65535);
    auto add = [&](uint16_t to, tw_plan_step step) { return tw_build_step(&build, 0, to, &step); };
    add(lane, copy_of(a, b));
    tw_plan_step step = copy_of(w, b);
    step.flags = TW_STEP_ROUND | TW_STEP_FINAL;
    uint32_t rounding = add(lane, step);
    step = copy_of(s, b);
    step.op = TW_OP_REDUCE, step.flags = TW_STEP_ACC_RIGHT | TW_STEP_WHOLE;
    step.dep_lane = lane, step.dep_step = rounding;
    add(other, step);
    add(lane, send_of(1, strided, 3));
    add(lane, recv_of(2, tw_span_one(TW_BUF_OUT, even, 15), 4));
    step = recv_of(2, b, 4);
    step.op = TW_OP_RECV_REDUCE, step.src = s;
    add(lane, step);
    step = recv_of(2, b, 4);
    step.op = TW_OP_RECV_SEND, step.to = 1, step.fifo_out = 3, step.flags = TW_STEP_STORE;
    add(lane, step);
    step.op = TW_OP_RECV_REDUCE_SEND, step.src = s, step.flags = TW_STEP_FINAL | TW_STEP_STORE;
    add(lane, step);
    step = copy_of(s, s);
    step.op = TW_OP_PUT, step.to = 2;
    add(lane, step);
    step = copy_of(s, b);
    step.op = TW_OP_GET, step.from = 1;
    add(lane, step);
    step.op = TW_OP_GET_REDUCE;
    add(lane, step);
    step = step_of(TW_OP_SIGNAL);
    step.to = 2, step.sig = 8, step.sig_value = 40;
    add(lane, step);
    step = step_of(TW_OP_WAIT);
    step.sig = 1, step.sig_value = 2, step.from = 2;
    add(lane, step);
    step = send_of(1, tw_span_none(), 5);
    step.dst = {TW_BUF_OUT, 0, 0, 3, 0, 1, 1}; // not used by a send: kept as it is
    step.fifo_in = 6;
    add(other, step);
    tw_plan *plan = nullptr;
    EXPECT_EQ(tw_build_finish(&build, &plan), TWILL_OK) << tw_fail_text();
    return Plan(plan);
}

// "" when equal in every field that a plan has, else where they differ.
inline std::string difference(const tw_plan *a, const tw_plan *b)
{
#define SAME(field)                                                                                \
    if (a->field != b->field)                                                                      \
    return #field
    if (strcmp(a->name, b->name) != 0)
        return "name";
    SAME(coll);
    SAME(deterministic);
    SAME(nranks);
    SAME(root);
    SAME(depth);
    SAME(slices);
    SAME(nfifos);
    SAME(widest);
    SAME(nsigs);
    SAME(sig_max);
    SAME(caps);
    SAME(parity);
    SAME(nparts);
    SAME(scratch_cells);
    SAME(wide_cells);
    SAME(only_rank);
#undef SAME
    for (uint32_t i = 0; i < a->nparts; i++) {
        const tw_plan_part &p = a->parts[i], &q = b->parts[i];
        if (p.kind != q.kind || p.groups != q.groups || p.per != q.per ||
            p.source_step != q.source_step || p.capacity != q.capacity)
            return "part " + std::to_string(i);
    }
    auto same_span = [](const tw_plan_span &p, const tw_plan_span &q) {
        return p.buf == q.buf && p.part == q.part && p.index == q.index && p.first == q.first &&
               p.block == q.block && p.stride == q.stride && p.nblocks == q.nblocks;
    };
    for (int r = 0; r < a->nranks; r++) {
        if (a->ranks[r].nlanes != b->ranks[r].nlanes)
            return "lanes of rank " + std::to_string(r);
        for (uint32_t l = 0; l < a->ranks[r].nlanes; l++) {
            const tw_plan_lane &m = a->ranks[r].lanes[l], &n = b->ranks[r].lanes[l];
            if (m.channel != n.channel || m.nsteps != n.nsteps)
                return "lane " + std::to_string(l) + " of rank " + std::to_string(r);
            for (uint32_t i = 0; i < m.nsteps; i++) {
                const tw_plan_step &p = m.steps[i], &q = n.steps[i];
                if (p.op != q.op || p.flags != q.flags || p.dep_lane != q.dep_lane ||
                    p.dep_step != q.dep_step || p.from != q.from || p.to != q.to ||
                    p.fifo_in != q.fifo_in || p.fifo_out != q.fifo_out || p.sig != q.sig ||
                    p.sig_value != q.sig_value || !same_span(p.src, q.src) ||
                    !same_span(p.dst, q.dst))
                    return "step " + std::to_string(i) + " of lane " + std::to_string(l) +
                           " of rank " + std::to_string(r);
            }
        }
    }
    return "";
}

#endif
