// SPDX-License-Identifier: Apache-2.0
// Knows: what a choice by price must be: the cheapest everywhere. Never knows: how it is found.
#include "algo/cases.hh"

extern "C" {
#include "algo/crossover.h"
#include "base/log.h"
}

namespace
{

class Crossover : public testing::Test
{
  protected:
    tw_cost_table table_ = {};
    tw_cost_net net_ = {};
    tw_crossover_args args_ = {};

    void SetUp() override
    {
        ASSERT_EQ(tw_log_configure("error", nullptr), TWILL_OK);
        tw_cost_table_default(&table_);
    }
    void TearDown() override
    {
        tw_cost_net_close(&net_);
        tw_log_configure("warn", nullptr);
    }
    void machine(int nranks, tw_coll coll)
    {
        tw_cost_flat flat = {};
        flat.nranks = nranks;
        flat.link = TW_COST_LINK_SHM;
        flat.latency_ps = 100000;
        tw_cost_net_close(&net_);
        ASSERT_EQ(tw_cost_flat_open(&flat, &net_), TWILL_OK);
        args_ = {};
        args_.coll = coll;
        args_.nranks = nranks;
        args_.channels = 1;
        args_.type_bytes = 4;
        args_.bytes = 1 << 24;
        args_.net = &net_;
        args_.table = &table_;
    }
    uint64_t price(const tw_algo *algo, uint64_t bytes)
    {
        Plan plan = generate(algo, {args_.coll, args_.nranks, args_.root, -1, 1, 0});
        tw_cost_call call = {};
        tw_cost_price price = {};
        call.count = tw_crossover_count(args_.coll, args_.nranks, bytes, 4);
        call.type_bytes = 4;
        EXPECT_EQ(tw_plan_cost(plan.get(), &net_, &table_, &call, &price), TWILL_OK);
        return price.time_ps;
    }
};

TEST_F(Crossover, TheChosenIsTheCheapest)
{
    for (int coll = 0; coll < TW_COLL_P2P; coll++)
        for (int n : {1, 2, 3, 8}) {
            machine(n, (tw_coll)coll);
            for (args_.bytes = 1; args_.bytes <= 1 << 24; args_.bytes *= 16) {
                const tw_algo *chosen = nullptr;
                uint64_t best = 0;
                ASSERT_EQ(tw_crossover_pick(&args_, &chosen, &best), TWILL_OK) << tw_fail_text();
                EXPECT_EQ(best, price(chosen, args_.bytes));
                for_each_algo([&](const tw_algo *algo, tw_coll c) {
                    if (c == (tw_coll)coll && algo->caps == 0) {
                        EXPECT_LE(best, price(algo, args_.bytes))
                            << chosen->name << " " << algo->name;
                    }
                });
            }
        }
}

TEST_F(Crossover, CapsAndSkipsLeaveOut)
{
    machine(2, TW_COLL_ALL_REDUCE);
    const tw_algo *algo = nullptr;
    uint64_t time = 7;
    args_.skip = [](const void *ctx, const tw_algo *candidate) {
        return strcmp(candidate->name, (const char *)ctx) != 0;
    };
    args_.skip_ctx = "direct_put";
    EXPECT_EQ(tw_crossover_pick(&args_, &algo, &time), TWILL_ERR_UNSUPPORTED);
    args_.caps = TW_CAP_PUT_SCRATCH;
    ASSERT_EQ(tw_crossover_pick(&args_, &algo, &time), TWILL_OK);
    EXPECT_STREQ(algo->name, "direct_put");
    args_.bytes = 0;
    EXPECT_EQ(tw_crossover_pick(&args_, &algo, &time), TWILL_ERR_INVALID);
    args_.bytes = ((uint64_t)1 << 40) + 1;
    EXPECT_EQ(tw_crossover_pick(&args_, &algo, &time), TWILL_ERR_INVALID);
}

TEST_F(Crossover, ShapesAreTheExecutorsAndMayRefuse)
{
    machine(4, TW_COLL_ALL_REDUCE);
    const tw_algo *whole = nullptr, *cut = nullptr;
    uint64_t time = 0;
    ASSERT_EQ(tw_crossover_pick(&args_, &whole, &time), TWILL_OK);
    // the one that would have won has no room
    args_.shape_ctx = whole->name;
    args_.shape = [](const void *ctx, const tw_plan *plan, uint64_t count, uint32_t,
                     tw_cost_shape *shape) {
        if (strcmp(plan->name, (const char *)ctx) == 0)
            return TWILL_ERR_NOMEM;
        *shape = {count, 1, 1};
        return TWILL_OK;
    };
    ASSERT_EQ(tw_crossover_pick(&args_, &cut, &time), TWILL_OK);
    EXPECT_STRNE(cut->name, whole->name);
    args_.shape = [](const void *, const tw_plan *, uint64_t, uint32_t, tw_cost_shape *) {
        return TWILL_ERR_NOMEM;
    };
    const tw_algo *before = cut;
    EXPECT_EQ(tw_crossover_pick(&args_, &cut, &time), TWILL_ERR_UNSUPPORTED);
    EXPECT_EQ(cut, before);
}

// Bytes that a rank sends; every cell has so many elements of 4 bytes.
uint64_t sent_by(const tw_plan *plan, int rank, uint64_t cell)
{
    uint64_t bytes = 0;
    for (uint32_t l = 0; l < plan->ranks[rank].nlanes; l++)
        for (uint32_t i = 0; i < plan->ranks[rank].lanes[l].nsteps; i++) {
            const tw_plan_step &step = plan->ranks[rank].lanes[l].steps[i];
            const tw_plan_span &span = step.src.block ? step.src : step.dst;
            if (step.op == TW_OP_SEND || step.op == TW_OP_RECV_SEND ||
                step.op == TW_OP_RECV_REDUCE_SEND || step.op == TW_OP_PUT)
                bytes += (uint64_t)span.block * span.nblocks * cell * 4;
        }
    return bytes;
}

// Only a few loops of a call are executed: what is said of the others must not beat the ports.
TEST_F(Crossover, NoPortCarriesMoreThanItsRate)
{
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        if (coll != TW_COLL_ALL_REDUCE)
            return;
        Plan plan = generate(algo, {coll, 8, 0, -1, 2, 0});
        tw_cost_flat flat = {};
        flat.nranks = 8;
        flat.link = TW_COST_LINK_PEER;
        flat.exec = TW_COST_GPU;
        flat.own_lanes = true;
        flat.port_bytes_per_s = 1000000000;
        tw_cost_net_close(&net_);
        ASSERT_EQ(tw_cost_flat_open(&flat, &net_), TWILL_OK);
        const uint64_t slice = 4096, loops = 40, cell = slice * plan->slices * loops;
        tw_cost_call call = {};
        call.count = plan->parts[0].per * cell;
        call.type_bytes = 4;
        call.shape = {slice, plan->slices, loops};
        tw_cost_price price = {};
        ASSERT_EQ(tw_plan_cost(plan.get(), &net_, &table_, &call, &price), TWILL_OK);
        for (int r = 0; r < 8; r++)
            EXPECT_GE(price.time_ps / 1000, sent_by(plan.get(), r, cell)) << algo->name << " " << r;
    });
}

} // namespace
