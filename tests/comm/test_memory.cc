/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what each part of a communicator adds to its memory report. Never knows: the C API. */
#include <gtest/gtest.h>

#include <memory>

#include "ranks.h"

extern "C" {
#include "comm/group.h"
#include "comm/memory.h"
#include "comm/plans.h"
}

namespace
{

class MemoryReport : public ::testing::Test
{
  protected:
    void make(const std::vector<std::pair<std::string, std::string>> &params = {})
    {
        set_params(params);
        const twill_unique_id id = new_id();
        for (int r = 0; r < 2; r++)
            ranks_[r] = std::make_unique<Comm>(args_of(r, 2, id));
        on_threads(2, [&](int r) { ASSERT_EQ(ranks_[r]->connect(), TWILL_OK); });
    }
    void TearDown() override
    {
        on_threads(2, [&](int r) { ranks_[r]->finalize(); });
        for (auto &rank : ranks_)
            rank.reset();
        set_params({});
    }
    struct twill_comm *comm() { return ranks_[0]->get(); }
    struct tw_memory report()
    {
        struct tw_memory memory = {};
        tw_memory_report(comm(), &memory);
        return memory;
    }
    std::unique_ptr<Comm> ranks_[2];
};

/* A plan of one rank of three whose two lanes have room for 5 and 7 steps. */
struct Plan {
    struct tw_plan_lane lanes[2] = {};
    struct tw_plan_rank ranks[3] = {};
    struct tw_plan plan = {};
    const uint64_t bytes = sizeof(struct tw_plan) + 3 * sizeof(struct tw_plan_rank) +
                           2 * sizeof(struct tw_plan_lane) + 12 * sizeof(*lanes[0].steps);
    Plan()
    {
        lanes[0].capacity = 5;
        lanes[1].capacity = 7;
        ranks[1].lanes = lanes;
        ranks[1].nlanes = 2;
        plan.nranks = 3;
        plan.ranks = ranks;
    }
};

TEST_F(MemoryReport, CountsEachPlanWhereverItIs)
{
    make();
    struct tw_ops *ops = comm()->ops;
    Plan plan;
    const uint64_t before = report().plans;
    struct tw_plan *lane_plan = ops->lanes[3].plan;
    ops->lanes[3].plan = &plan.plan; /* receives from rank 1 */
    EXPECT_EQ(report().plans, before + plan.bytes);
    ops->plans->files[0].plan = &plan.plan;
    ops->plans->nfiles = 1;
    EXPECT_EQ(report().plans, before + 2 * plan.bytes);
    struct tw_plans_entry entry = {};
    entry.plan = &plan.plan;
    entry.next = ops->plans->entries[TW_COLL_BARRIER];
    ops->plans->entries[TW_COLL_BARRIER] = &entry;
    EXPECT_EQ(report().plans, before + 3 * plan.bytes + sizeof(entry));
    ops->lanes[3].plan = lane_plan;
    ops->plans->nfiles = 0;
    ops->plans->files[0].plan = nullptr;
    ops->plans->entries[TW_COLL_BARRIER] = entry.next;
    EXPECT_EQ(report().plans, before);
}

/* What packs small all_reduces stays from the first group on. */
TEST_F(MemoryReport, CountsWhatGroupsArePackedIn)
{
    make();
    const struct tw_memory before = report();
    int x[2][2] = {};
    for (int round = 0; round < 2; round++) {
        ASSERT_EQ(tw_group_start(), TWILL_OK);
        for (int r = 0; r < 2; r++) {
            for (int &one : x[r]) {
                struct tw_call call = {};
                call.info.coll = TW_COLL_ALL_REDUCE;
                call.info.count = 1;
                call.info.type = TWILL_INT32;
                call.comm = ranks_[r]->get();
                call.in = call.out = &one;
                ASSERT_EQ(tw_ops_call(&call), TWILL_OK);
            }
        }
        ASSERT_EQ(tw_group_end(), TWILL_OK);
        EXPECT_EQ(report().scratch, before.scratch + TW_FUSE_BYTES);
    }
    EXPECT_EQ(report().comm_staging, before.comm_staging);
}

/* Ranks of one process need no shared memory; what they take is counted and bounded all the same.
 */
TEST_F(MemoryReport, StagingWithoutSharedMemory)
{
    make({{"SHM", "0"}, {"STAGING", "4M"}});
    EXPECT_EQ(report().staging_limit, 4u << 20);
    EXPECT_GT(report().comm_staging, 0u);
    EXPECT_GE(report().process_staging, 2 * report().comm_staging);
    EXPECT_LE(report().process_staging, report().staging_limit);
}

} // namespace
