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
        args_.max_bytes = 1 << 24;
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

TEST_F(Crossover, TheChosenIsTheCheapestAtEveryPowerOfTwo)
{
    for (int coll = 0; coll < TW_COLL_P2P; coll++)
        for (int n : {1, 2, 3, 8}) {
            machine(n, (tw_coll)coll);
            tw_crossover made = {};
            ASSERT_EQ(tw_crossover_make(&args_, &made), TWILL_OK) << tw_fail_text();
            EXPECT_EQ(made.rows[0].bytes, 0u);
            for (uint64_t bytes = 1; bytes <= args_.max_bytes; bytes *= 16) {
                const tw_algo *chosen = tw_crossover_algo(&made, bytes);
                uint64_t best = price(chosen, bytes);
                EXPECT_EQ(tw_crossover_time_ps(&made, bytes), best);
                for_each_algo([&](const tw_algo *algo, tw_coll c) {
                    if (c == (tw_coll)coll && algo->caps == 0) {
                        EXPECT_LE(best, price(algo, bytes)) << chosen->name << " " << algo->name;
                    }
                });
            }
        }
}

// Where a border lies the two are about equally dear, and each is cheaper on its side.
TEST_F(Crossover, BordersAreWhereTheOrderChanges)
{
    machine(8, TW_COLL_ALL_REDUCE);
    tw_crossover made = {};
    ASSERT_EQ(tw_crossover_make(&args_, &made), TWILL_OK);
    ASSERT_GE(made.nrows, 2u);
    for (uint32_t r = 1; r < made.nrows; r++) {
        uint64_t border = made.rows[r].bytes;
        EXPECT_GT(border, made.rows[r - 1].bytes);
        EXPECT_EQ(tw_crossover_algo(&made, border - 1), made.rows[r - 1].algo);
        EXPECT_EQ(tw_crossover_algo(&made, border), made.rows[r].algo);
        if (border < 64)
            continue;
        EXPECT_LE(price(made.rows[r].algo, border), price(made.rows[r - 1].algo, border));
        EXPECT_LE(price(made.rows[r - 1].algo, border * 7 / 8 - 4),
                  price(made.rows[r].algo, border * 7 / 8 - 4));
    }
}

TEST_F(Crossover, TimesBetweenAndBeyondPowersOfTwo)
{
    machine(4, TW_COLL_ALL_GATHER);
    tw_crossover made = {};
    ASSERT_EQ(tw_crossover_make(&args_, &made), TWILL_OK);
    uint64_t last = 0;
    for (uint64_t bytes = 0; bytes < 1u << 27; bytes = bytes + bytes / 3 + 1) {
        uint64_t time = tw_crossover_time_ps(&made, bytes);
        EXPECT_GE(time, last) << bytes;
        last = time;
    }
    uint64_t a = tw_crossover_time_ps(&made, 1 << 20), b = tw_crossover_time_ps(&made, 1 << 21);
    EXPECT_NEAR((double)tw_crossover_time_ps(&made, 3 << 19), (double)(a + b) / 2, (double)b / 1e3);
    uint64_t top = tw_crossover_time_ps(&made, 1 << 24);
    EXPECT_EQ(tw_crossover_time_ps(&made, 1 << 25), 2 * top);
    EXPECT_EQ(tw_crossover_time_ps(&made, (uint64_t)1 << 40), top << 16);
    EXPECT_EQ(tw_crossover_time_ps(&made, UINT64_MAX), UINT64_MAX);
}

TEST_F(Crossover, CapsAndSkipsLeaveOut)
{
    machine(2, TW_COLL_ALL_REDUCE);
    tw_crossover made = {};
    args_.skip = [](const void *ctx, const tw_algo *algo) {
        return strcmp(algo->name, (const char *)ctx) != 0;
    };
    args_.skip_ctx = "direct_put";
    EXPECT_EQ(tw_crossover_make(&args_, &made), TWILL_ERR_UNSUPPORTED);
    args_.caps = TW_CAP_PUT_SCRATCH;
    ASSERT_EQ(tw_crossover_make(&args_, &made), TWILL_OK);
    EXPECT_EQ(made.nrows, 1u);
    EXPECT_STREQ(made.rows[0].algo->name, "direct_put");
    args_.deterministic = true;
    EXPECT_EQ(tw_crossover_make(&args_, &made), TWILL_ERR_UNSUPPORTED);
    args_.skip = nullptr;
    ASSERT_EQ(tw_crossover_make(&args_, &made), TWILL_OK);
    for (uint32_t r = 0; r < made.nrows; r++)
        EXPECT_TRUE(made.rows[r].algo->deterministic >> TW_COLL_ALL_REDUCE & 1);
    args_.max_bytes = 0;
    EXPECT_EQ(tw_crossover_make(&args_, &made), TWILL_ERR_INVALID);
}

TEST_F(Crossover, ShapesAreTheExecutorsAndMayRefuse)
{
    machine(4, TW_COLL_ALL_REDUCE);
    tw_crossover whole = {}, cut = {};
    ASSERT_EQ(tw_crossover_make(&args_, &whole), TWILL_OK);
    args_.shape = [](const void *, const tw_plan *plan, uint64_t count, uint32_t,
                     tw_cost_shape *shape) {
        if (strcmp(plan->name, "ring") == 0)
            return TWILL_ERR_NOMEM;
        *shape = {count, 1, 1};
        return TWILL_OK;
    };
    ASSERT_EQ(tw_crossover_make(&args_, &cut), TWILL_OK);
    for (uint32_t r = 0; r < cut.nrows; r++)
        EXPECT_STRNE(cut.rows[r].algo->name, "ring");
    args_.shape = [](const void *, const tw_plan *, uint64_t, uint32_t, tw_cost_shape *) {
        return TWILL_ERR_NOMEM;
    };
    EXPECT_EQ(tw_crossover_make(&args_, &cut), TWILL_ERR_UNSUPPORTED);
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

// Equal inputs, equal table; any other table or machine shows in the hash.
TEST_F(Crossover, TheSameForEveryone)
{
    machine(5, TW_COLL_REDUCE_SCATTER);
    tw_crossover a = {}, b = {};
    ASSERT_EQ(tw_crossover_make(&args_, &a), TWILL_OK);
    ASSERT_EQ(tw_crossover_make(&args_, &b), TWILL_OK);
    EXPECT_EQ(tw_crossover_hash(&a), tw_crossover_hash(&b));
    EXPECT_NE(tw_crossover_hash(&a), 0u);
    table_.value[tw_cost_row_find("host.step")] += 1;
    ASSERT_EQ(tw_crossover_make(&args_, &b), TWILL_OK);
    EXPECT_NE(tw_crossover_hash(&a), tw_crossover_hash(&b));
}

} // namespace
