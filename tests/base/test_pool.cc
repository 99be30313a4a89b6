/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/pool.c. Never knows: how it keeps its books. */
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <vector>

extern "C" {
#include "base/log.h"
#include "base/mem.h"
#include "base/status.h"
}
#include "fault.h"

namespace
{

class Pool : public testing::Test
{
  protected:
    static constexpr size_t bytes_ = 64 * 1024;
    void SetUp() override
    {
        tw_log_configure("none", nullptr);
        base_ = static_cast<char *>(tw_alloc(bytes_));
        ASSERT_EQ(TWILL_OK, tw_pool_create(&pool_, base_, bytes_));
    }
    void TearDown() override
    {
        tw_pool_destroy(pool_);
        std::free(base_);
        tw_log_configure(nullptr, nullptr);
    }
    char *get(size_t bytes) { return static_cast<char *>(tw_pool_get(pool_, bytes)); }
    char *base_ = nullptr;
    struct tw_pool *pool_ = nullptr;
};

TEST_F(Pool, WholeRangeCanBeHadAndComesBack)
{
    EXPECT_EQ(bytes_, tw_pool_room(pool_));
    char *all = get(bytes_);
    ASSERT_EQ(base_, all);
    EXPECT_EQ(bytes_, tw_pool_used(pool_));
    EXPECT_EQ(0u, tw_pool_room(pool_));
    EXPECT_EQ(nullptr, get(1));
    tw_pool_put(pool_, all);
    EXPECT_EQ(0u, tw_pool_used(pool_));
    EXPECT_EQ(bytes_, tw_pool_room(pool_));
}

TEST_F(Pool, BlocksAreAlignedAndApart)
{
    char *a = get(1);
    char *b = get(0);
    char *c = get(65);
    char *d = get(64);
    EXPECT_EQ(base_, a);
    EXPECT_EQ(base_ + 64, b);
    EXPECT_EQ(base_ + 128, c);
    EXPECT_EQ(base_ + 256, d);
    EXPECT_EQ(320u, tw_pool_used(pool_));
}

TEST_F(Pool, AbsurdSizesAreRefused)
{
    for (size_t bytes : {bytes_ + 1, SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2})
        EXPECT_EQ(nullptr, get(bytes)) << bytes;
    EXPECT_EQ(bytes_, tw_pool_room(pool_));
}

TEST_F(Pool, NeighboursJoinInEveryOrder)
{
    int order[] = {0, 1, 2, 3};
    do {
        char *at[4];
        for (auto &one : at)
            ASSERT_NE(nullptr, one = get(bytes_ / 4));
        for (int i : order)
            tw_pool_put(pool_, at[i]);
        ASSERT_EQ(bytes_, tw_pool_room(pool_));
    } while (std::next_permutation(order, order + 4));
}

TEST_F(Pool, FirstFitFillsTheFirstHole)
{
    char *a = get(1024);
    char *b = get(1024);
    char *c = get(1024);
    ASSERT_NE(nullptr, c);
    tw_pool_put(pool_, a);
    EXPECT_EQ(base_ + 3072, get(2048)) << "does not fit before b";
    EXPECT_EQ(base_, get(512));
    tw_pool_put(pool_, b);
    EXPECT_EQ(base_ + 512, get(1536)) << "the rest of a joins b";
}

TEST_F(Pool, PuttingBackWhatIsNotTakenIsSaidAndHarmless)
{
    char *a = get(128);
    tw_pool_put(pool_, a + 64);
    EXPECT_NE(nullptr, std::strstr(tw_fail_text(), "is not taken"));
    tw_pool_put(pool_, a);
    tw_last_error_set(0, "");
    tw_fail(TWILL_ERR_USAGE, "before");
    tw_pool_put(pool_, a);
    EXPECT_NE(nullptr, std::strstr(tw_fail_text(), "is not taken"));
    int outside = 0;
    tw_pool_put(pool_, &outside);
    tw_pool_put(pool_, nullptr);
    EXPECT_EQ(0u, tw_pool_used(pool_));
    EXPECT_EQ(bytes_, tw_pool_room(pool_));
}

TEST_F(Pool, ScribblingOverTheRangeMisleadsNobody)
{
    char *a = get(4096);
    char *b = get(4096);
    std::memset(base_, 0xa5, bytes_);
    tw_pool_put(pool_, a);
    std::memset(base_, 0x5a, bytes_);
    EXPECT_EQ(a, get(4096));
    tw_pool_put(pool_, b);
    EXPECT_EQ(b, get(4096));
}

TEST_F(Pool, NeverTouchesItsRange)
{
    struct tw_pool *pool = nullptr;
    void *range = mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, range);
    ASSERT_EQ(TWILL_OK, tw_pool_create(&pool, range, 1 << 20));
    void *a = tw_pool_get(pool, 1000);
    void *b = tw_pool_get(pool, 1000);
    tw_pool_put(pool, a);
    tw_pool_put(pool, b);
    tw_pool_destroy(pool);
    munmap(range, 1 << 20);
}

TEST_F(Pool, UnalignedRangesLoseTheirEdges)
{
    struct tw_pool *pool = nullptr;
    ASSERT_EQ(TWILL_OK, tw_pool_create(&pool, base_ + 1, 300));
    EXPECT_EQ(192u, tw_pool_room(pool)); /* 64 .. 256 of 1 .. 301 */
    EXPECT_EQ(base_ + 64, tw_pool_get(pool, 192));
    tw_pool_destroy(pool);
    pool = nullptr;
    EXPECT_EQ(TWILL_ERR_INVALID, tw_pool_create(&pool, base_ + 1, 100));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_pool_create(&pool, base_, 63));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_pool_create(&pool, nullptr, 4096));
    EXPECT_EQ(nullptr, pool);
    tw_pool_destroy(nullptr);
}

TEST_F(Pool, NoMemoryForTheBooks)
{
    struct tw_pool *pool = nullptr;
    for (int skip : {0, 1}) {
        Fault fault(FAULT_CALLOC, ENOMEM, skip);
        EXPECT_EQ(TWILL_ERR_NOMEM, tw_pool_create(&pool, base_, bytes_));
        EXPECT_TRUE(fault.fired());
        EXPECT_EQ(nullptr, pool);
    }
    {
        Fault fault(FAULT_CALLOC, ENOMEM);
        EXPECT_EQ(nullptr, get(100));
        EXPECT_TRUE(fault.fired());
    }
    EXPECT_EQ(0u, tw_pool_used(pool_));
    EXPECT_EQ(base_, get(bytes_)) << "the failed call took nothing";
}

/* Against a model: taken blocks never overlap, used is their sum, all comes back. */
TEST_F(Pool, RandomUseMatchesAModel)
{
    std::mt19937 random(20261129);
    std::map<char *, size_t> taken;
    for (int i = 0; i < 20000; i++) {
        if (taken.size() < 40 && random() % 2 == 0) {
            size_t bytes = random() % 6000;
            size_t room = tw_pool_room(pool_);
            char *at = get(bytes);
            size_t rounded = bytes == 0 ? 64 : (bytes + 63) / 64 * 64;
            ASSERT_EQ(rounded <= room, at != nullptr);
            if (at == nullptr)
                continue;
            auto next = taken.lower_bound(at);
            ASSERT_TRUE(next == taken.end() || at + rounded <= next->first);
            ASSERT_TRUE(next == taken.begin() ||
                        std::prev(next)->first + std::prev(next)->second <= at);
            ASSERT_LE(at + rounded, base_ + bytes_);
            taken[at] = rounded;
        } else if (!taken.empty()) {
            auto gone = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
            tw_pool_put(pool_, gone->first);
            taken.erase(gone);
        }
        size_t used = 0;
        for (const auto &one : taken)
            used += one.second;
        ASSERT_EQ(used, tw_pool_used(pool_));
    }
    for (const auto &one : taken)
        tw_pool_put(pool_, one.first);
    EXPECT_EQ(bytes_, tw_pool_room(pool_));
}

TEST_F(Pool, ThreadsShareIt)
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([this, t] {
            for (int i = 0; i < 2000; i++) {
                size_t bytes = 64 + static_cast<size_t>(i * 37 % 900);
                char *at = get(bytes);
                ASSERT_NE(nullptr, at);
                std::memset(at, t, bytes);
                for (size_t b = 0; b < bytes; b++)
                    ASSERT_EQ(t, at[b]);
                tw_pool_put(pool_, at);
            }
        });
    for (auto &thread : threads)
        thread.join();
    EXPECT_EQ(bytes_, tw_pool_room(pool_));
}

} // namespace
