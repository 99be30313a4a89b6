/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: devices that reach each other, that say they do not, and that lie; in one process.
 * Never knows: how pinned memory is shared (test_gpu_cut.cc), what calls make of it. */
#include "gpu_ranks.h"

#include <cstring>

#include "../base/capture.h"

namespace
{

class GpuSelftest : public GpuRanks
{
  protected:
    void make_logged(const std::vector<int> &devices,
                     std::vector<std::pair<std::string, std::string>> params = {})
    {
        params.push_back({"LOG", "warn,comm=info"});
        params.push_back({"LOG_FILE", folder_.path("log")});
        make(devices, params);
    }
    std::string log() { return text_of(folder_.path("log")); }
    bool pinned(int rank)
    {
        struct tw_cuda_memory found;
        EXPECT_EQ(tw_cuda_memory_find(gpu(rank)->mem, &found), TWILL_OK);
        return found.kind == TW_CUDA_PINNED;
    }
    bool zero(int rank)
    {
        const char *at = static_cast<const char *>(gpu(rank)->mem);
        return at[0] == 0 && memcmp(at, at + 1, gpu(rank)->base.layout.bytes - 1) == 0;
    }
    void expect_cut(int ranks, bool cut)
    {
        for (int r = 0; r < ranks; r++) {
            EXPECT_EQ(gpu(r)->cut, cut) << r;
            EXPECT_EQ(pinned(r), cut) << r;
            EXPECT_EQ(gpu(r)->all_here, !cut) << r;
            EXPECT_TRUE(zero(r)) << r;
            for (int p = 0; p < ranks; p++)
                EXPECT_EQ(gpu(r)->at[p], gpu(p)->mem);
        }
    }
    Folder folder_;
};

TEST_F(GpuSelftest, TheSelfTestLeavesMemoryAsItWas)
{
    make_logged({0, 1, 2});
    EXPECT_EQ(fake::probes(), 9) << "three steps of each rank";
    expect_cut(3, false);
    EXPECT_FALSE(contains(log(), "pinned")) << log();
}

TEST_F(GpuSelftest, OneDeviceIsNotTried)
{
    make({3, 3, 3});
    EXPECT_EQ(fake::probes(), 0);
    expect_cut(3, false);
}

/* Ranks of a device try the others' device only. */
TEST_F(GpuSelftest, TwoRanksOnEachOfTwoDevices)
{
    make({0, 0, 1, 1});
    EXPECT_EQ(fake::probes(), 12);
    expect_cut(4, false);
}

TEST_F(GpuSelftest, AsManyRanksAsThereCanBe)
{
#ifdef __SANITIZE_THREAD__
    const int ranks = 16; /* of 64 it takes half a minute, and sees the same threads meet */
#else
    const int ranks = 64;
#endif
    std::vector<int> devices;
    for (int rank = 0; rank < ranks; rank++)
        devices.push_back(rank % 8);
    make(devices, {{"PROBE", "0"}, {"DEVICE_STAGING", "1G"}});
    expect_cut(ranks, false);
    destroy();
    fake::lie(7, 6, fake::LOST);
    make(devices, {{"PROBE", "0"}, {"DEVICE_STAGING", "1G"}});
    expect_cut(ranks, true);
}

TEST_F(GpuSelftest, EachLieIsFoundAndNamed)
{
    const struct {
        fake::Lie lie;
        const char *words;
    } lies[] = {
        {fake::LOST, "the self-test's writes are lost"},
        {fake::TWISTED_WRITES, "the self-test's writes arrive as other bytes"},
        {fake::STALE, "the self-test's reads find nothing"},
        {fake::TWISTED_READS, "the self-test's reads find other bytes than are there"},
    };
    const size_t before = fake::bytes_of(4) + fake::bytes_of(5);
    for (const auto &one : lies) {
        fake::reset(8);
        fake::lie(5, 4, one.lie);
        make_logged({0, 4, 5});
        expect_cut(3, true);
        for (int r = 0; r < 3; r++)
            EXPECT_TRUE(contains(
                log(), "rank " + std::to_string(r) +
                           ": data goes by pinned host memory, which is slow: from CUDA device 5 "
                           "of rank 2 to device 4 of rank 1: " +
                           one.words))
                << log();
        destroy();
        EXPECT_EQ(fake::bytes_of(4) + fake::bytes_of(5), before);
        (void)remove(folder_.path("log").c_str());
    }
}

/* Whichever of the ranks it is, and whichever way: none uses the devices' memory. */
TEST_F(GpuSelftest, OnePairCutsAllOff)
{
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) {
            if (from == to)
                continue;
            fake::reset(8);
            fake::lie(from, to, (from + to) % 2 == 0 ? fake::LOST : fake::STALE);
            make({0, 1, 2, 3, 0});
            expect_cut(5, true);
            destroy();
        }
    fake::reset(8);
    fake::lie(6, 7, fake::LOST);
    make({0, 1, 2, 3, 0});
    expect_cut(5, false);
}

TEST_F(GpuSelftest, WhatCudaSaysIsNotTried)
{
    fake::cut(1, 2);
    make_logged({0, 1, 2});
    EXPECT_EQ(fake::probes(), 0);
    expect_cut(3, true);
    EXPECT_TRUE(contains(log(), "from CUDA device 1 of rank 1 to device 2 of rank 2: there is no "
                                "peer access"))
        << log();
}

TEST_F(GpuSelftest, TheParameterIsNamed)
{
    make_logged({0, 0}, {{"P2P", "0"}});
    expect_cut(2, true);
    EXPECT_TRUE(contains(log(), "which is slow: TWILL_P2P=0")) << log();
    destroy();
    make_logged({2}, {{"P2P", "0"}});
    EXPECT_FALSE(gpu(0)->cut) << "there is nobody to reach";
}

TEST_F(GpuSelftest, ASplitTriesAnew)
{
    fake::lie(0, 3, fake::STALE);
    make({0, 1, 3, 2});
    expect_cut(4, true);
    const std::vector<twill_comm_t> halves = this->halves();
    if (HasFailure())
        return;
    for (int rank = 0; rank < 4; rank++)
        EXPECT_EQ(halves[(size_t)rank]->gpu->cut, rank % 2 == 0) << rank;
    for (twill_comm_t comm : halves)
        EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
}

} // namespace
