/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: when kernels of ranks are launched, and after what. Never knows: what they do. */
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "gpu_ranks.h"

namespace
{

using fake::before;
using fake::launches;

class GpuTeam : public GpuRanks
{
};

/* ---- one rank of a device ------------------------------------------------------------------- */

TEST_F(GpuTeam, ARankAloneOnItsDeviceWaitsForNobody)
{
    make({0, 1});
    void *stream = fake::stream(1);
    ASSERT_EQ(sum(1, stream), TWILL_OK);
    ASSERT_EQ(launches().size(), 1u);
    EXPECT_EQ(launches()[0].device, 1);
    EXPECT_EQ(launches()[0].stream, stream);
    EXPECT_EQ(launches()[0].launch.ranks, 1u);
    EXPECT_EQ(launches()[0].launch.call[0].rank, 1);
    ASSERT_EQ(sum(0, nullptr), TWILL_OK);
    EXPECT_EQ(launches()[1].stream, nullptr);
}

TEST_F(GpuTeam, CallsKeepTheirOrderOverStreams)
{
    make({0, 1});
    std::vector<void *> streams = {fake::stream(0), fake::stream(0), fake::stream(0), nullptr};
    for (int i : {0, 1, 0, 0, 2, 1, 3, 1, 1, 3})
        ASSERT_EQ(sum(0, streams[(size_t)i]), TWILL_OK);
    const auto all = launches();
    for (size_t i = 1; i < all.size(); i++)
        EXPECT_TRUE(before(all[i - 1].point, all[i].point)) << "call " << i;
}

TEST_F(GpuTeam, AStreamMayBeDestroyedOnceItsCallsHaveRun)
{
    make({0, 1});
    void *gone = fake::stream(0);
    ASSERT_EQ(sum(0, gone), TWILL_OK);
    fake::stream_end(gone);
    ASSERT_EQ(sum(0, fake::stream(0)), TWILL_OK);
    EXPECT_TRUE(before(launches()[0].point, launches()[1].point));
}

TEST_F(GpuTeam, CapturedCallsAreOrderedInTheirCaptureAlone)
{
    make({0, 1});
    void *plain = fake::stream(0);
    void *first = fake::stream(0, 77), *second = fake::stream(0, 77), *other = fake::stream(0, 78);
    ASSERT_EQ(sum(0, plain), TWILL_OK);
    ASSERT_EQ(sum(0, first), TWILL_OK);
    ASSERT_EQ(sum(0, second), TWILL_OK);
    ASSERT_EQ(sum(0, first), TWILL_OK);
    ASSERT_EQ(sum(0, other), TWILL_OK);
    void *again = fake::stream(0);
    ASSERT_EQ(sum(0, again), TWILL_OK);
    const auto all = launches();
    EXPECT_FALSE(before(all[0].point, all[1].point));
    EXPECT_TRUE(before(all[1].point, all[2].point));
    EXPECT_TRUE(before(all[2].point, all[3].point));
    EXPECT_FALSE(before(all[3].point, all[4].point));
    EXPECT_FALSE(before(all[4].point, all[5].point));
    EXPECT_TRUE(before(all[0].point, all[5].point)) << "those outside captures";
}

TEST_F(GpuTeam, CapturedCallsKeepTheirOrderAroundOthers)
{
    make({0, 1});
    void *plain = fake::stream(0), *another = fake::stream(0, 78);
    ASSERT_EQ(sum(0, fake::stream(0, 77)), TWILL_OK);
    ASSERT_EQ(sum(0, plain), TWILL_OK);
    ASSERT_EQ(sum(0, another), TWILL_OK);
    ASSERT_EQ(sum(0, fake::stream(0, 77)), TWILL_OK);
    ASSERT_EQ(sum(0, plain), TWILL_OK);
    ASSERT_EQ(sum(0, fake::stream(0, 78)), TWILL_OK);
    const auto all = launches();
    EXPECT_TRUE(before(all[0].point, all[3].point));
    EXPECT_TRUE(before(all[1].point, all[4].point));
    EXPECT_TRUE(before(all[2].point, all[5].point));
    EXPECT_FALSE(before(all[2].point, all[3].point));
}

TEST_F(GpuTeam, DestroyWaitsForCallsOutsideCaptures)
{
    make({0, 1});
    ASSERT_EQ(sum(0, fake::stream(0)), TWILL_OK);
    ASSERT_EQ(sum(1, fake::stream(1)), TWILL_OK);
    fake::hold(true);
    std::atomic<bool> let{false};
    std::thread later([&] {
        const int asked = fake::asked();
        wait_for([&] { return fake::asked() > asked + 3; });
        let = true;
        fake::hold(false);
    });
    destroy();
    EXPECT_TRUE(let);
    later.join();
}

TEST_F(GpuTeam, DestroyDoesNotAskForCapturedCalls)
{
    make({0, 1});
    ASSERT_EQ(sum(0, fake::stream(0, 5)), TWILL_OK);
    fake::hold(true);
    destroy();
    EXPECT_EQ(fake::asked(), 0);
    fake::hold(false);
}

/* ---- several ranks of a device -------------------------------------------------------------- */

TEST_F(GpuTeam, AGroupOfAllRanksIsOneKernelForEachDevice)
{
    make({0, 1, 0, 1, 0});
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    for (int rank = 4; rank >= 0; rank--)
        ASSERT_EQ(sum(rank, nullptr), TWILL_OK);
    EXPECT_TRUE(launches().empty());
    ASSERT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
    const auto all = launches();
    ASSERT_EQ(all.size(), 2u);
    for (const auto &one : all) {
        const std::vector<int> ranks =
            one.device == 0 ? std::vector<int>{0, 2, 4} : std::vector<int>{1, 3};
        ASSERT_EQ(one.launch.ranks, ranks.size());
        for (size_t i = 0; i < ranks.size(); i++) {
            EXPECT_EQ(one.launch.call[i].rank, ranks[i]);
            EXPECT_EQ(one.launch.call[i].size, 5);
            EXPECT_EQ(one.launch.call[i].state, gpu(ranks[i])->state);
        }
    }
}

TEST_F(GpuTeam, TheKernelComesBetweenWhatStandsInEveryStream)
{
    make({0, 0, 0});
    std::vector<void *> streams = {fake::stream(0), fake::stream(0), fake::stream(0)};
    for (int round = 0; round < 4; round++) {
        std::vector<fake::Point> earlier, later;
        for (void *stream : streams)
            earlier.push_back(fake::work(stream));
        ASSERT_EQ(twill_group_start(), TWILL_OK);
        for (int rank = 0; rank < 3; rank++)
            ASSERT_EQ(sum(rank, streams[(size_t)((rank + round) % 3)]), TWILL_OK);
        ASSERT_EQ(twill_group_end(), TWILL_OK);
        for (void *stream : streams)
            later.push_back(fake::work(stream));
        ASSERT_EQ(launches().size(), (size_t)round + 1);
        const fake::Point kernel = launches().back().point;
        for (int i = 0; i < 3; i++) {
            EXPECT_TRUE(before(earlier[(size_t)i], kernel));
            EXPECT_TRUE(before(kernel, later[(size_t)i]));
        }
        if (round > 0) {
            EXPECT_TRUE(before(launches()[(size_t)round - 1].point, kernel));
        }
    }
}

TEST_F(GpuTeam, RanksMayShareAStream)
{
    make({0, 0});
    void *stream = fake::stream(0);
    const fake::Point earlier = fake::work(stream);
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    ASSERT_EQ(sum(0, stream), TWILL_OK);
    ASSERT_EQ(sum(1, stream), TWILL_OK);
    ASSERT_EQ(twill_group_end(), TWILL_OK);
    ASSERT_EQ(launches().size(), 1u);
    EXPECT_TRUE(before(earlier, launches()[0].point));
}

TEST_F(GpuTeam, RanksAreCapturedTogether)
{
    make({0, 0});
    void *streams[] = {fake::stream(0, 9), fake::stream(0, 9)};
    for (int round = 0; round < 2; round++) {
        ASSERT_EQ(twill_group_start(), TWILL_OK);
        for (int rank = 0; rank < 2; rank++)
            ASSERT_EQ(sum(rank, streams[rank]), TWILL_OK);
        ASSERT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
    }
    ASSERT_EQ(launches().size(), 2u);
    EXPECT_TRUE(before(launches()[0].point, launches()[1].point));
}

TEST_F(GpuTeam, ThreadsWaitForTheLastToCall)
{
    make({0, 0, 0});
    std::atomic<bool> last_calls{false};
    std::atomic<int> early{0};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; rank++)
        threads.emplace_back([&, rank] {
            EXPECT_EQ(sum(rank, nullptr), TWILL_OK);
            early += !last_calls;
        });
    EXPECT_TRUE(launches().empty());
    last_calls = true;
    EXPECT_EQ(sum(2, nullptr), TWILL_OK);
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(early, 0) << "calls returned before all had called";
    ASSERT_EQ(launches().size(), 1u);
    EXPECT_EQ(launches()[0].launch.ranks, 3u);
}

/* Every rank has two buffers in turn, so that calls of different rounds are told apart. */
TEST_F(GpuTeam, ThreadsInRoundsAreNeverMixedUp)
{
    const int ranks = 4, rounds = 200;
    make({0, 0, 0, 0});
    std::vector<std::thread> threads;
    std::vector<char *> at;
    for (int rank = 0; rank < ranks; rank++)
        at.push_back(buffer(0, rounds * 4));
    for (int rank = 0; rank < ranks; rank++)
        threads.emplace_back([&, rank] {
            void *stream = fake::stream(0);
            for (int i = 0; i < rounds; i++) {
                char *mine = at[(size_t)rank] + (size_t)i * 4;
                EXPECT_EQ(twill_all_reduce(mine, mine, 1, TWILL_INT32, TWILL_SUM,
                                           comms_[(size_t)rank], stream),
                          TWILL_OK);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    const auto all = launches();
    ASSERT_EQ(all.size(), (size_t)rounds);
    for (size_t i = 0; i < all.size(); i++)
        for (size_t rank = 0; rank < (size_t)ranks; rank++)
            ASSERT_EQ(all[i].launch.call[rank].in, at[rank] + i * 4) << "round " << i;
}

/* ---- what goes wrong ------------------------------------------------------------------------ */

TEST_F(GpuTeam, DifferentCallsAreNoKernelAndBothAreNamed)
{
    make({0, 0, 1});
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    ASSERT_EQ(sum(0, nullptr, 5), TWILL_OK);
    ASSERT_EQ(sum(1, nullptr, 6), TWILL_OK);
    EXPECT_EQ(twill_group_end(), TWILL_ERR_MISMATCH);
    expect_all(TWILL_ERR_MISMATCH,
               "calls do not match: that of rank 0 is all_reduce count 5 float32 sum, that of rank "
               "1 all_reduce count 6 float32 sum");
    EXPECT_TRUE(launches().empty());
}

TEST_F(GpuTeam, ThreadsInDifferentCallsAllHearOfIt)
{
    make({0, 0, 0});
    on_threads(3, [&](int rank) {
        EXPECT_EQ(rank != 1 ? sum(rank, nullptr) : twill_barrier(comms_[1], nullptr),
                  TWILL_ERR_MISMATCH);
    });
    expect_all(TWILL_ERR_MISMATCH, "rank 1 barrier");
    EXPECT_TRUE(launches().empty());
}

TEST_F(GpuTeam, AFailedLaunchFailsAllRanksOfTheTeam)
{
    make({0, 0, 0});
    fake::fail_launches(TWILL_ERR_SYSTEM);
    on_threads(3, [&](int rank) { EXPECT_EQ(sum(rank, nullptr), TWILL_ERR_SYSTEM); });
    expect_all(TWILL_ERR_SYSTEM, "the launch was made to fail");
    fake::fail_launches(TWILL_OK);
    for (int rank = 0; rank < 3; rank++)
        EXPECT_EQ(sum(rank, nullptr), TWILL_ERR_SYSTEM) << "it has failed for good";
}

TEST_F(GpuTeam, AnAbortEndsTheWaitForTheOthers)
{
    make({0, 0});
    std::thread waits([&] { EXPECT_EQ(sum(0, nullptr), TWILL_ERR_ABORTED); });
    EXPECT_EQ(twill_comm_abort(comms_[1]), TWILL_OK);
    waits.join();
    EXPECT_TRUE(launches().empty());
}

TEST_F(GpuTeam, AFailureStopsTheKernels)
{
    make({0, 1});
    EXPECT_EQ(gpu(0)->host->stop, 0u);
    EXPECT_EQ(twill_comm_abort(comms_[1]), TWILL_OK);
    expect_all(TWILL_ERR_ABORTED, "");
    for (int rank = 0; rank < 2; rank++)
        wait_for([&] { return __atomic_load_n(&gpu(rank)->host->stop, __ATOMIC_ACQUIRE) != 0; });
}

} // namespace
