/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a choice by price must be. Never knows: how a price arises. */
#include <cstring>

#include <gtest/gtest.h>

extern "C" {
#include "base/status.h"
#include "comm/choose.h"
}

namespace
{

class Choose : public testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_EQ(tw_chooses_create(&all_), TWILL_OK);
        memset(&args_, 0, sizeof args_);
        args_.facts.cpus = 8;
        ASSERT_EQ(tw_choose_table(&args_.facts, "", &args_.table), TWILL_OK);
        for (uint64_t &allowed : args_.allowed)
            allowed = UINT64_MAX;
        args_.fifo_bytes = 1 << 20;
        args_.scratch_bytes = args_.own_scratch_bytes = 1 << 18;
        args_.nranks = 4;
        args_.channels = 1;
    }
    void TearDown() override
    {
        tw_choose_put(choose_);
        tw_chooses_destroy(all_);
    }
    void open() { ASSERT_EQ(tw_choose_get(all_, &args_, &choose_), TWILL_OK) << tw_fail_text(); }
    const tw_algo *algo(tw_coll coll, uint64_t bytes)
    {
        const tw_algo *algo = nullptr;
        EXPECT_EQ(tw_choose_algo(choose_, coll, tw_choose_class(bytes), &algo), TWILL_OK)
            << tw_fail_text();
        return algo;
    }
    /* UINT64_MAX: it does not fit. */
    uint64_t price(const tw_algo *algo, tw_coll coll, uint64_t bytes)
    {
        tw_algo_args wanted = {};
        wanted.coll = coll;
        wanted.nranks = (int)args_.nranks;
        wanted.only_rank = -1;
        wanted.channels = args_.channels;
        tw_plan *plan = nullptr;
        uint64_t time_ps = UINT64_MAX;
        EXPECT_EQ(algo->generate(&wanted, &plan), TWILL_OK);
        (void)tw_choose_price(choose_, plan, tw_crossover_count(coll, (int)args_.nranks, bytes, 4),
                              4, &time_ps);
        tw_plan_destroy(plan);
        return time_ps;
    }

    tw_chooses *all_ = nullptr;
    tw_choose_args args_;
    tw_choose *choose_ = nullptr;
};

TEST(ChooseClass, RisesWithTheSize)
{
    EXPECT_EQ(tw_choose_class(0), tw_choose_class(1));
    EXPECT_EQ(tw_choose_class(1024), tw_choose_class(1535));
    EXPECT_EQ(tw_choose_class(1536), tw_choose_class(2047));
    EXPECT_LT(tw_choose_class(1535), tw_choose_class(1536));
    EXPECT_LT(tw_choose_class(2047), tw_choose_class(2048));
    for (uint64_t bytes = 2; bytes; bytes *= 2)
        EXPECT_LT(tw_choose_class(bytes), (uint32_t)TW_CHOOSE_CLASSES);
    EXPECT_EQ(tw_choose_class(UINT64_MAX), (uint32_t)TW_CHOOSE_CLASSES - 1);
}

TEST_F(Choose, IsTheCheapestOfThoseAllowed)
{
    open();
    for (tw_coll coll : {TW_COLL_ALL_REDUCE, TW_COLL_BROADCAST, TW_COLL_ALL_TO_ALL, TW_COLL_REDUCE})
        for (uint64_t bytes : {256u, 65536u, 4u << 20}) {
            const tw_algo *best = algo(coll, bytes);
            ASSERT_NE(best, nullptr);
            EXPECT_EQ(best->caps, 0u) << "the links offer nothing";
            for (size_t i = 0; const tw_algo *other = tw_algo_at(i); i++) {
                if (!(other->colls >> coll & 1))
                    continue;
                EXPECT_LE(price(best, coll, bytes), price(other, coll, bytes))
                    << best->name << " " << other->name << " " << bytes;
            }
        }
}

TEST_F(Choose, KeepsToWhatIsAllowed)
{
    for (size_t i = 0; i < 64 && tw_algo_at(i); i++)
        if (strcmp(tw_algo_at(i)->name, "ring") == 0)
            args_.allowed[TW_COLL_ALL_REDUCE] = (uint64_t)1 << i;
    args_.allowed[TW_COLL_BROADCAST] = 0;
    open();
    EXPECT_STREQ(algo(TW_COLL_ALL_REDUCE, 8)->name, "ring");
    const tw_algo *none = nullptr;
    EXPECT_EQ(tw_choose_algo(choose_, TW_COLL_BROADCAST, tw_choose_class(8), &none),
              TWILL_ERR_UNSUPPORTED);
    EXPECT_EQ(none, nullptr);
}

TEST_F(Choose, LinksWithoutRoomAreAnError)
{
    args_.fifo_bytes = 64;
    open();
    const tw_algo *none = nullptr;
    EXPECT_EQ(tw_choose_algo(choose_, TW_COLL_ALL_REDUCE, tw_choose_class(8), &none),
              TWILL_ERR_UNSUPPORTED);
    EXPECT_NE(strstr(tw_fail_text(), "room"), nullptr) << tw_fail_text();
}

TEST_F(Choose, ScratchThatPeersWriteIsUsedWhereItIs)
{
    args_.caps = TW_CAP_PUT_SCRATCH;
    args_.signal_count = 1024;
    uint64_t only = 0;
    for (size_t i = 0; i < 64 && tw_algo_at(i); i++)
        if (tw_algo_at(i)->caps == TW_CAP_PUT_SCRATCH)
            only |= (uint64_t)1 << i;
    args_.allowed[TW_COLL_ALL_REDUCE] = only;
    open();
    EXPECT_EQ(algo(TW_COLL_ALL_REDUCE, 1024)->caps, (uint32_t)TW_CAP_PUT_SCRATCH);
}

TEST_F(Choose, ManyRanksAndUnknownCountsGoByThresholds)
{
    open();
    EXPECT_EQ(algo(TW_COLL_ALL_TO_ALL_V, 1 << 20), tw_algo_choose(TW_COLL_ALL_TO_ALL_V, 4, 0));
    tw_choose_put(choose_);
    args_.nranks = TW_CHOOSE_RANKS_MOST + 1;
    open();
    EXPECT_EQ(algo(TW_COLL_ALL_REDUCE, 1 << 20),
              tw_algo_choose(TW_COLL_ALL_REDUCE, TW_CHOOSE_RANKS_MOST + 1, 1 << 20));
    args_.allowed[TW_COLL_ALL_REDUCE] = 2; /* another communicator's: the second alone */
    tw_choose_put(choose_);
    open();
    EXPECT_EQ(algo(TW_COLL_ALL_REDUCE, 1 << 20), tw_algo_at(1));
}

TEST_F(Choose, EqualFactsShareOne)
{
    open();
    tw_choose *again = nullptr;
    ASSERT_EQ(tw_choose_get(all_, &args_, &again), TWILL_OK);
    EXPECT_EQ(again, choose_);
    tw_choose_put(again);
    args_.facts.cpus = 1;
    ASSERT_EQ(tw_choose_get(all_, &args_, &again), TWILL_OK);
    EXPECT_NE(again, choose_);
    tw_choose_put(again);
}

TEST_F(Choose, MeasuredRatesGoIntoTheTable)
{
    tw_cost_table table, plain = args_.table;
    tw_facts facts = {};
    facts.measured.copy_bytes_per_s[TW_TOPO_COPY_MEMORY] = 5000000000;
    facts.measured.switch_ps = 1234567;
    ASSERT_EQ(tw_choose_table(&facts, "", &table), TWILL_OK);
    const uint32_t far = tw_cost_exec_index(TW_COST_HOST, TW_COST_COPY_FAR);
    const uint32_t add = tw_cost_exec_index(TW_COST_HOST, TW_COST_REDUCE_FAR);
    EXPECT_EQ(table.value[far], 5000u);
    EXPECT_EQ(table.value[add], 5000 * plain.value[add] / plain.value[far]);
    const uint32_t change = tw_cost_exec_index(TW_COST_HOST, TW_COST_SWITCH);
    EXPECT_EQ(table.value[change], 1234567u);
    table.value[change] = plain.value[change];
    table.value[far] = plain.value[far];
    table.value[add] = plain.value[add];
    EXPECT_EQ(memcmp(&table, &plain, sizeof table), 0) << "nothing else was measured";
    tw_cost_row row;
    ASSERT_TRUE(tw_cost_row_get(change, &row));
    facts.measured.switch_ps = UINT64_MAX;
    ASSERT_EQ(tw_choose_table(&facts, "", &table), TWILL_OK);
    EXPECT_EQ(table.value[change], row.most) << "no more than a file may say";
    EXPECT_EQ(tw_choose_table(&facts, "/nowhere/costs", &table), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "TWILL_COST_FILE"), nullptr) << tw_fail_text();
}

TEST_F(Choose, AMessageHasAPriceThatRises)
{
    for (uint32_t nranks : {1u, 2u, 5u}) {
        args_.nranks = nranks;
        open();
        uint64_t small = 0, large = 0;
        ASSERT_EQ(tw_choose_price_p2p(choose_, 1, 4, &small), TWILL_OK) << tw_fail_text();
        ASSERT_EQ(tw_choose_price_p2p(choose_, 1 << 20, 4, &large), TWILL_OK);
        EXPECT_GT(small, 0u);
        EXPECT_GT(large, small);
        tw_choose_put(choose_);
        choose_ = nullptr;
    }
}

} // namespace
