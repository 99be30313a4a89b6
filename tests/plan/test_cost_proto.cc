// SPDX-License-Identifier: Apache-2.0
// Knows: what calls on devices take by the formula of docs/cost.md. Never knows: kernels.
#include <gtest/gtest.h>

#include <string>

extern "C" {
#include "plan/cost.h"
}

namespace
{

constexpr uint64_t US = 1000000;
constexpr auto LINES = TW_COST_PROTO_LINES, READS = TW_COST_PROTO_READS,
               COPIES = TW_COST_PROTO_COPIES;

class CostProto : public testing::Test
{
  protected:
    CostProto()
    {
        tw_cost_table_default(&table_);
        // a MB/s is a byte a us
        for (int p = 0; p < TW_COST_PROTO_COUNT; p++) {
            set((enum tw_cost_proto)p, TW_COST_PROTO_START, 5 * US);
            set((enum tw_cost_proto)p, TW_COST_PROTO_RATE, 1000);
            if (p >= TW_COST_PROTO_KERNELS)
                continue;
            set((enum tw_cost_proto)p, TW_COST_PROTO_BLOCK, 100);
            set((enum tw_cost_proto)p, TW_COST_PROTO_GRAIN, 4096);
            set((enum tw_cost_proto)p, TW_COST_PROTO_BLOCKS, 12);
        }
    }
    void set(enum tw_cost_proto proto, enum tw_cost_proto_field field, uint64_t value)
    {
        table_.value[tw_cost_proto_index(proto, field)] = value;
    }
    uint64_t price(enum tw_cost_proto proto, enum tw_coll coll, int nranks, uint64_t bytes,
                   uint32_t blocks) const
    {
        return tw_cost_proto_price(&table_, proto, coll, nranks, bytes, blocks);
    }
    struct tw_cost_table table_;
};

TEST_F(CostProto, RowsAreNamed)
{
    EXPECT_EQ(tw_cost_row_find("cuda.lines.start"),
              tw_cost_proto_index(LINES, TW_COST_PROTO_START));
    EXPECT_EQ(tw_cost_row_find("pinned.rings.blocks"),
              tw_cost_proto_index(TW_COST_PROTO_PINNED_RINGS, TW_COST_PROTO_BLOCKS));
    EXPECT_EQ(tw_cost_row_find("cuda.far-copies.rate"),
              tw_cost_proto_index(TW_COST_PROTO_FAR_COPIES, TW_COST_PROTO_RATE));
    EXPECT_EQ(tw_cost_row_find("cuda.copies.block"), TW_COST_NONE) << "engines have none";
    const std::string text = "twill-cost 1\ncuda.reads.blocks 0\n";
    EXPECT_EQ(tw_cost_table_parse(text.data(), text.size(), &table_), TWILL_ERR_INVALID);
}

TEST_F(CostProto, StartAndBytesOverTheLesserRate)
{
    // 3 peers get 4000 bytes each
    EXPECT_EQ(price(READS, TW_COLL_ALL_GATHER, 4, 4000, 64), 5 * US + 12 * US);
    EXPECT_EQ(price(READS, TW_COLL_ALL_GATHER, 4, 4000, 10), 5 * US + 12 * US);
    EXPECT_EQ(price(READS, TW_COLL_ALL_GATHER, 4, 4000, 5), 5 * US + 24 * US) << "few blocks";
    // blocks of lines count for each peer
    EXPECT_EQ(price(LINES, TW_COLL_ALL_GATHER, 4, 4000, 2), 5 * US + 20 * US);
    EXPECT_EQ(price(LINES, TW_COLL_ALL_GATHER, 4, 4000, 4), 5 * US + 12 * US);
    // a copy to each peer begins by itself
    EXPECT_EQ(price(COPIES, TW_COLL_ALL_GATHER, 4, 4000, 1), 15 * US + 12 * US);
    // one shot and two shots
    EXPECT_EQ(price(LINES, TW_COLL_ALL_REDUCE, 4, 4000, 12), 5 * US + 12 * US);
    EXPECT_EQ(price(READS, TW_COLL_ALL_REDUCE, 4, 4000, 12), 5 * US + 6 * US);
    EXPECT_EQ(price(READS, TW_COLL_BARRIER, 1, 0, 1), 5 * US);
}

// From each rank to the next, at 1000 MB/s
TEST_F(CostProto, AroundARingEachRoundStarts)
{
    const auto ring = [&](enum tw_coll coll, uint64_t bytes, uint32_t channels) {
        return tw_cost_ring_price(&table_, coll, 4, bytes, channels);
    };
    EXPECT_EQ(ring(TW_COLL_ALL_REDUCE, 4000, 10), 6 * 5 * US + 6 * US);
    EXPECT_EQ(ring(TW_COLL_ALL_GATHER, 4000, 10), 3 * 5 * US + 12 * US);
    EXPECT_EQ(ring(TW_COLL_REDUCE_SCATTER, 4000, 10), 3 * 5 * US + 12 * US);
    EXPECT_EQ(ring(TW_COLL_BROADCAST, 4000, 10), 3 * 5 * US + 4 * US) << "past each rank once";
    EXPECT_EQ(ring(TW_COLL_REDUCE, 4000, 10), 3 * 5 * US + 4 * US);
    EXPECT_EQ(ring(TW_COLL_BROADCAST, 4000, 5), 3 * 5 * US + 8 * US) << "few channels";
    EXPECT_EQ(ring(TW_COLL_BROADCAST, 4000, 64), 3 * 5 * US + 4 * US);
    EXPECT_GE(ring(TW_COLL_ALL_GATHER, UINT64_MAX, 1), ring(TW_COLL_ALL_GATHER, 1ull << 62, 1));
}

TEST_F(CostProto, BlocksByTheirGrain)
{
    EXPECT_EQ(tw_cost_proto_blocks(&table_, READS, 0), 1u);
    EXPECT_EQ(tw_cost_proto_blocks(&table_, READS, 4096), 1u);
    EXPECT_EQ(tw_cost_proto_blocks(&table_, READS, 4097), 2u);
    EXPECT_EQ(tw_cost_proto_blocks(&table_, READS, UINT64_MAX), 12u);
}

// No size, number of ranks or row makes a larger call look cheaper by running over.
TEST_F(CostProto, NeverRunsOver)
{
    for (uint64_t rate : {(uint64_t)1, (uint64_t)100000000}) {
        set(READS, TW_COST_PROTO_RATE, rate);
        set(READS, TW_COST_PROTO_BLOCK, rate);
        for (enum tw_coll coll : {TW_COLL_ALL_REDUCE, TW_COLL_ALL_TO_ALL})
            for (int nranks : {2, 64}) {
                uint64_t last = 0;
                for (uint64_t bytes = 1; bytes != 0; bytes *= 2) {
                    const uint64_t now = price(READS, coll, nranks, bytes, 64);
                    EXPECT_GE(now, last) << bytes;
                    last = now;
                }
            }
    }
}

} // namespace
