/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which kernels of a graph may begin before the last one has ended. Never knows: what they
 * do.
 */
#include "gpu_ranks.h"

namespace
{

using fake::launches;

constexpr uint32_t LEADS = TW_GK_LEADS, BOTH = TW_GK_LEADS | TW_GK_FOLLOWS;

class GpuEarly : public GpuRanks
{
  protected:
    void begin(const std::vector<int> &devices, int code = 90, const char *param = "1")
    {
        fake::code(code);
        make(devices, {{"EARLY_LAUNCH", param}});
    }
    /* What the launch of rank 0's call is. */
    uint32_t call(void *stream, size_t count = 4)
    {
        EXPECT_EQ(sum(0, stream, count), TWILL_OK);
        return launches().back().launch.early;
    }
};

TEST_F(GpuEarly, SmallCallsBehindEachOther)
{
    begin({0, 1});
    void *stream = fake::stream(0, 7);
    EXPECT_EQ(call(stream), LEADS) << "there is nothing in front";
    EXPECT_EQ(call(stream), BOTH);
    EXPECT_EQ(call(stream, 1000), BOTH);
    (void)fake::work(stream);
    EXPECT_EQ(call(stream), LEADS) << "behind the user's kernel, which may not be ready for it";
    EXPECT_EQ(call(stream), BOTH);
    EXPECT_EQ(call(stream, (size_t)64 << 20), 0u) << "it takes all there is";
    EXPECT_EQ(call(stream), LEADS) << "behind one that does not say when";
}

/* A kernel of more than half of the blocks would not fit next to another one. */
TEST_F(GpuEarly, OnlyWhereTwoOfThemFit)
{
    struct twill_config config = TWILL_CONFIG_INIT;
    config.max_sms = 20;
    fake::code(90);
    make({0, 1}, {}, &config);
    void *stream = fake::stream(0, 7);
    (void)call(stream);
    const auto blocks = [] { return launches().back().launch.blocks; };
    size_t count = 4;
    for (uint32_t early = BOTH; early == BOTH; count *= 2) {
        early = call(stream, count);
        EXPECT_EQ(early == BOTH, 2 * blocks() <= 20u) << blocks();
        ASSERT_LT(count, (size_t)1 << 22);
    }
}

TEST_F(GpuEarly, OfOneCommunicatorAndCapture)
{
    begin({0, 1});
    twill_comm_t other[2];
    const int devices[] = {0, 1};
    ASSERT_EQ(twill_comm_init_all(other, 2, devices, nullptr), TWILL_OK);
    void *stream = fake::stream(0, 7), *next = fake::stream(0, 8), *plain = fake::stream(0);
    EXPECT_EQ(call(stream), LEADS);
    std::swap(comms_[0], other[0]);
    EXPECT_EQ(call(stream), LEADS) << "their kernels know nothing of each other";
    std::swap(comms_[0], other[0]);
    EXPECT_EQ(call(stream), LEADS);
    EXPECT_EQ(call(next), LEADS);
    EXPECT_EQ(call(stream), BOTH);
    EXPECT_EQ(call(plain), 0u) << "outside captures events say when a kernel has ended";
    EXPECT_EQ(call(plain), 0u);
    for (twill_comm_t comm : other)
        EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
}

TEST_F(GpuEarly, NotWhereKernelsCannotOrNobodyWantsIt)
{
    begin({0, 1}, 80); /* the device could */
    void *stream = fake::stream(0, 7);
    (void)call(stream);
    EXPECT_EQ(call(stream), 0u);
    destroy();
    begin({0, 1}, 90, "0");
    (void)call(stream);
    EXPECT_EQ(call(stream), 0u);
}

/* Of several ranks one kernel serves all. */
TEST_F(GpuEarly, KernelsOfSeveralRanks)
{
    begin({0, 0});
    void *stream = fake::stream(0, 7);
    for (uint32_t early : {LEADS, BOTH}) {
        EXPECT_EQ(twill_group_start(), TWILL_OK);
        (void)sum(0, stream);
        (void)sum(1, stream);
        EXPECT_EQ(twill_group_end(), TWILL_OK);
        EXPECT_EQ(launches().back().launch.ranks, 2u);
        EXPECT_EQ(launches().back().launch.early, early);
    }
}

/* Kernels of two communicators, of which each may have two under way. */
TEST_F(GpuEarly, BlocksOfBothAreCounted)
{
    fake::reset(2, 8);
    begin({0, 1});
    twill_comm_t other[2];
    const int devices[] = {0, 1};
    ASSERT_EQ(twill_comm_init_all(other, 2, devices, nullptr), TWILL_OK);
    void *one = fake::stream(0, 7), *two = fake::stream(0, 7);
    const auto four = [&](twill_comm_t comm,
                          void *stream) { /* blocks */
                                          char *at = buffer(0, (size_t)4 * 480 * 8);
                                          EXPECT_EQ(twill_broadcast(at, at, (size_t)4 * 480 * 8,
                                                                    TWILL_INT8, 0, comm, stream),
                                                    TWILL_OK);
                                          EXPECT_EQ(launches().back().launch.blocks, 4u);
                                          return launches().back().point;
    };
    const fake::Point first = four(comms_[0], one), last = four(other[0], two);
    EXPECT_NE(launches().back().launch.early, 0u);
    EXPECT_TRUE(fake::before(first, last)) << "twice four and twice four are more than eight";
    for (twill_comm_t comm : other)
        EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
}

} // namespace
