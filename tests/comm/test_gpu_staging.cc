/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what TWILL_DEVICE_STAGING promises: a bound on what communicators of a process hold on a
 * device. Never knows: how it is cut. */
#include <map>
#include <memory>

#include "gpu_ranks.h"

namespace
{

const uint64_t MIB = (uint64_t)1 << 20;

class GpuStaging : public GpuRanks
{
  protected:
    using Comms = std::vector<twill_comm_t>;

    void SetUp() override
    {
        GpuRanks::SetUp();
        limit("");
    }
    void TearDown() override
    {
        while (!more_.empty())
            end(0);
        GpuRanks::TearDown();
    }
    void limit(const char *bytes)
    {
        set_params({{"PROBE", "0"}, {"DEVICE_STAGING", *bytes ? bytes : "64M"}});
    }
    /* Another communicator. */
    enum twill_status begin(const std::vector<int> &devices)
    {
        Comms made(devices.size());
        const enum twill_status status =
            twill_comm_init_all(made.data(), (int)devices.size(), devices.data(), nullptr);
        if (status == TWILL_OK)
            more_.push_back(made);
        return status;
    }
    void end(size_t which)
    {
        for (twill_comm_t comm : more_.at(which))
            EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
        more_.erase(more_.begin() + (long)which);
    }
    static twill_memory report(twill_comm_t comm)
    {
        twill_memory memory = TWILL_MEMORY_INIT;
        EXPECT_EQ(twill_comm_memory(comm, &memory), TWILL_OK);
        return memory;
    }
    static uint64_t line(twill_comm_t comm) { return comm->gpu->base.layout.line_each; }

    std::vector<Comms> more_;
};

TEST_F(GpuStaging, WhatIsReportedIsWhatIsHeld)
{
    for (const auto &devices :
         {std::vector<int>{0, 1}, {2}, {0, 1, 0}, {0, 1, 2, 3, 4, 5, 6, 7, 1}}) {
        ASSERT_EQ(begin(devices), TWILL_OK) << twill_last_error(nullptr);
        for (const Comms &comms : more_)
            for (twill_comm_t comm : comms) {
                const auto memory = report(comm);
                const int device = comm->args.device;
                EXPECT_EQ(memory.device_staging_bytes, fake::bytes_of(device));
                EXPECT_GT(memory.device_bytes, 0u);
                EXPECT_EQ(memory.device_limit_bytes, 64 * MIB);
            }
    }
    std::map<int, uint64_t> sums;
    for (const Comms &comms : more_)
        for (twill_comm_t comm : comms)
            sums[comm->args.device] += report(comm).device_bytes;
    for (const auto &sum : sums)
        EXPECT_EQ(sum.second, fake::bytes_of(sum.first));
}

TEST_F(GpuStaging, TwoRanksTakeFourMebibytesAtMost)
{
    ASSERT_EQ(begin({0, 1}), TWILL_OK);
    EXPECT_LE(fake::bytes_of(0), 4 * MIB);
    EXPECT_GE(line(more_[0][0]), MIB) << "that calls of 512 KiB go by lines";
}

/* The first ones have what is of use, those that follow share the rest. */
TEST_F(GpuStaging, CommunicatorsGetLessAsItGetsShort)
{
    uint64_t last = UINT64_MAX;
    int whole = 0, count = 0;
    enum twill_status status;
    while ((status = begin({0, 1})) == TWILL_OK && count++ < 1000) {
        const uint64_t now = line(more_.back()[0]);
        EXPECT_LE(fake::bytes_of(0), 64 * MIB);
        EXPECT_LE(now, last);
        EXPECT_EQ(now, line(more_.back()[1]));
        whole += now == MIB;
        last = now;
    }
    EXPECT_EQ(status, TWILL_ERR_NOMEM);
    const std::string text = twill_last_error(nullptr);
    EXPECT_NE(text.find("TWILL_DEVICE_STAGING is 67108864 bytes, of which CUDA device "),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("1 ranks of a communicator of 2 take "), std::string::npos) << text;
    EXPECT_GE(whole, 14);
    EXPECT_GE(count, whole + 32);
    EXPECT_GT(fake::bytes_of(0), 63 * MIB) << "all is used";
    const uint64_t had = fake::bytes_of(0);
    EXPECT_EQ(begin({0, 1}), TWILL_ERR_NOMEM);
    EXPECT_EQ(fake::bytes_of(0), had) << "what failed holds nothing";
    EXPECT_EQ(begin({2, 3}), TWILL_OK) << "other devices have theirs";
    end(0);
    EXPECT_EQ(begin({0, 1}), TWILL_OK) << "what was destroyed holds nothing";
}

TEST_F(GpuStaging, RanksOfADeviceShareAlike)
{
    for (int size : {2, 4, 8, 64}) {
        std::vector<int> devices;
        for (int rank = 0; rank < size; rank++)
            devices.push_back(size == 64 ? rank % 8 : 0);
        ASSERT_EQ(begin(devices), TWILL_OK) << twill_last_error(nullptr);
        EXPECT_LE(fake::bytes_of(0), 64 * MIB);
        for (twill_comm_t comm : more_[0])
            EXPECT_EQ(report(comm).device_bytes, report(more_[0][0]).device_bytes);
        end(0);
        EXPECT_EQ(fake::bytes_of(0), 0u);
    }
}

/* Ranks have the same layout, whatever else their devices hold. */
TEST_F(GpuStaging, TheShortestDeviceRules)
{
    while (begin({1}) == TWILL_OK && more_.size() < 300 &&
           report(more_[0][0]).device_staging_bytes < 63 * MIB) {
    }
    for (int i = 0; i < 15; i++)
        ASSERT_EQ(begin({1, 2}), TWILL_OK) << twill_last_error(nullptr);
    ASSERT_EQ(begin({0, 1}), TWILL_OK) << twill_last_error(nullptr);
    EXPECT_LT(line(more_.back()[0]), MIB);
    EXPECT_EQ(memcmp(&more_.back()[0]->gpu->base.layout, &more_.back()[1]->gpu->base.layout,
                     sizeof(struct tw_gk_layout)),
              0);
}

TEST_F(GpuStaging, TooLittleForAny)
{
    limit("64K");
    EXPECT_EQ(begin({0, 1}), TWILL_ERR_NOMEM);
    EXPECT_NE(std::string(twill_last_error(nullptr)).find("TWILL_DEVICE_STAGING is 65536 bytes"),
              std::string::npos)
        << twill_last_error(nullptr);
    limit("1M");
    EXPECT_EQ(begin({0, 1}), TWILL_OK) << twill_last_error(nullptr);
    EXPECT_LE(fake::bytes_of(0), MIB);
}

TEST_F(GpuStaging, AnInitThatFailsHoldsNothing)
{
    ASSERT_EQ(begin({5}), TWILL_OK); /* keeps the process's state */
    fake::full_device = 2;
    EXPECT_EQ(begin({0, 1, 2, 0}), TWILL_ERR_NOMEM);
    for (int device : {0, 1, 2})
        EXPECT_EQ(fake::bytes_of(device), 0u);
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(begin({1, 2}), TWILL_ERR_NOMEM);
    ASSERT_EQ(begin({1, 3}), TWILL_OK) << twill_last_error(nullptr);
    EXPECT_EQ(report(more_.back()[0]).device_staging_bytes, fake::bytes_of(1));
    EXPECT_EQ(line(more_.back()[0]), MIB);
}

TEST_F(GpuStaging, ADeviceWithoutMemorySaysSo)
{
    ASSERT_EQ(begin({0}), TWILL_OK);
    fake::full = true;
    EXPECT_EQ(begin({1, 2}), TWILL_ERR_NOMEM);
    EXPECT_NE(std::string(twill_last_error(nullptr)).find("the device was made to have no more"),
              std::string::npos)
        << twill_last_error(nullptr);
    EXPECT_EQ(fake::bytes_of(1), 0u);
    fake::full = false;
    ASSERT_EQ(begin({1, 2}), TWILL_OK);
    EXPECT_EQ(report(more_.back()[0]).device_staging_bytes, fake::bytes_of(1));
}

/* Calls of every size with the least memory there may be. */
TEST_F(GpuStaging, TheLeastServesCallsOfAllSizes)
{
    limit("200K");
    ASSERT_EQ(begin({0, 1}), TWILL_OK) << twill_last_error(nullptr);
    twill_comm_t comm = more_[0][0];
    const size_t border = line(comm) / 2;
    char *at = buffer(0, 4 * MIB);
    for (size_t bytes : {(size_t)1, border - 1, border, border + 1, (size_t)4 << 20}) {
        ASSERT_EQ(twill_broadcast(at, at, bytes, TWILL_INT8, 0, comm, nullptr), TWILL_OK);
        const auto one = fake::launches().back();
        EXPECT_EQ(one.kernel, bytes <= border ? TW_GK_LINE_MOVE : TW_GK_RING_MOVE);
        EXPECT_EQ(one.launch.call[0].layout.line_each, line(comm));
    }
}

} // namespace
