/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the memory report must add up to, seen through the C API. Never knows: who counts. */
#include <cstddef>
#include <cstring>

#include "world.h"

namespace
{

twill_memory report_of(twill_comm_t comm)
{
    twill_memory report = TWILL_MEMORY_INIT;
    EXPECT_OK(twill_comm_memory(comm, &report), comm);
    return report;
}

TEST(Memory, AddsUp)
{
    world::run_alone(
        [] {
            twill_comm_t one = nullptr, three[3];
            ASSERT_OK(twill_comm_init_all(&one, 1, nullptr, nullptr), nullptr);
            const twill_memory before = report_of(one);
            EXPECT_EQ(before.staging_limit_bytes, 16u << 20);
            EXPECT_EQ(before.registered_bytes, 0u);
            EXPECT_EQ(before.process_staging_bytes, before.comm_staging_bytes);
            ASSERT_OK(twill_comm_init_all(three, 3, nullptr, nullptr), nullptr);
            uint64_t sum = before.comm_staging_bytes;
            for (twill_comm_t comm : three) {
                const twill_memory report = report_of(comm);
                EXPECT_GT(report.comm_staging_bytes, before.comm_staging_bytes);
                sum += report.comm_staging_bytes;
            }
            EXPECT_EQ(report_of(one).process_staging_bytes, sum);
            for (twill_comm_t comm : three)
                EXPECT_OK(twill_comm_destroy(comm), nullptr);
            EXPECT_EQ(report_of(one).process_staging_bytes, before.comm_staging_bytes);
            EXPECT_OK(twill_comm_destroy(one), nullptr);
        },
        {{"TWILL_STAGING", "16M"}});
}

TEST(Memory, CountsPlansAndRegistrations)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        const twill_memory before = report_of(comm);
        EXPECT_GT(before.scratch_bytes, 0u);
        int x = 1;
        EXPECT_OK(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
        const twill_memory after = report_of(comm);
        EXPECT_GT(after.plan_bytes, before.plan_bytes);
        EXPECT_OK(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
        EXPECT_EQ(report_of(comm).plan_bytes, after.plan_bytes);
        void *memory = nullptr;
        twill_reg_t reg = nullptr;
        ASSERT_OK(twill_mem_alloc(&memory, 10000, TWILL_DEVICE_HOST), nullptr);
        ASSERT_OK(twill_register(comm, memory, 10000, &reg), comm);
        EXPECT_EQ(report_of(comm).registered_bytes, 10000u);
        ASSERT_OK(twill_deregister(comm, reg), comm);
        EXPECT_EQ(report_of(comm).registered_bytes, 0u);
        EXPECT_OK(twill_mem_free(memory), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Memory, OlderAndBadStructs)
{
    world::run_alone([] {
        twill_comm_t comm = nullptr;
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
        twill_memory report = TWILL_MEMORY_INIT;
        memset(&report.plan_bytes, 0x5a, sizeof report.plan_bytes);
        const uint64_t untouched = report.plan_bytes;
        report.size = offsetof(twill_memory, plan_bytes);
        EXPECT_OK(twill_comm_memory(comm, &report), comm);
        EXPECT_GT(report.staging_limit_bytes, 0u);
        EXPECT_EQ(report.plan_bytes, untouched);
        report.size = 8;
        EXPECT_EQ(twill_comm_memory(comm, &report), TWILL_ERR_INVALID);
        report = TWILL_MEMORY_INIT;
        report.magic++;
        EXPECT_EQ(twill_comm_memory(comm, &report), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_memory(comm, nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_comm_memory(nullptr, &report), TWILL_ERR_INVALID);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

} // namespace
