/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which calls on devices are refused, and what a group makes of the others.
 * Never knows: kernels. */
#include "gpu_ranks.h"

namespace
{

using fake::launches;

class GpuCall : public GpuRanks
{
  protected:
    enum twill_status copy(const void *in, void *out, twill_type_t type = TWILL_INT8)
    {
        return twill_all_reduce(in, out, 4, type, TWILL_SUM, comms_[0], nullptr);
    }
    void says(const char *part) const
    {
        EXPECT_NE(std::string(twill_last_error(comms_[0])).find(part), std::string::npos)
            << twill_last_error(comms_[0]);
    }
};

TEST_F(GpuCall, BuffersLieOnTheDevice)
{
    make({0, 1});
    char *mine = buffer(0, 64), *other = buffer(1, 64);
    char host[64], pinned[64], managed[64];
    fake::mark(pinned, sizeof pinned, TW_CUDA_PINNED, -1);
    fake::mark(managed, sizeof managed, TW_CUDA_MANAGED, 0);
    EXPECT_EQ(copy(host, mine), TWILL_ERR_INVALID);
    says("sendbuf");
    says("is host memory, or was freed");
    EXPECT_EQ(copy(mine, host), TWILL_ERR_INVALID);
    says("recvbuf");
    EXPECT_EQ(copy(mine, pinned), TWILL_ERR_INVALID);
    says("is pinned host memory; the communicator's rank is on CUDA device 0");
    EXPECT_EQ(copy(managed, mine), TWILL_ERR_INVALID);
    says("is managed memory");
    EXPECT_EQ(copy(other, mine), TWILL_ERR_INVALID);
    says("is memory of CUDA device 1; the communicator's rank is on 0");
    EXPECT_TRUE(launches().empty());
    EXPECT_EQ(tw_comm_status(comms_[0]), TWILL_OK);
    EXPECT_EQ(copy(mine, mine + 8), TWILL_OK);
    EXPECT_EQ(launches().size(), 1u);
}

TEST_F(GpuCall, BuffersAreAlignedToTheirElements)
{
    make({0, 1});
    char *mine = buffer(0, 256);
    EXPECT_EQ(copy(mine + 4, mine + 64, TWILL_FLOAT64), TWILL_ERR_INVALID);
    says("is not aligned to its elements of 8 bytes");
    EXPECT_EQ(copy(mine, mine + 65, TWILL_FLOAT16), TWILL_ERR_INVALID);
    says("recvbuf");
    EXPECT_EQ(copy(mine + 1, mine + 65, TWILL_INT8), TWILL_OK);
    EXPECT_EQ(copy(mine + 8, mine + 72, TWILL_FLOAT64), TWILL_OK);
    EXPECT_EQ(launches().size(), 2u);
}

TEST_F(GpuCall, BuffersThatAreIgnoredAreNotLookedAt)
{
    make({0, 1});
    char host[64];
    EXPECT_EQ(twill_reduce(buffer(0, 64), host, 4, TWILL_INT8, TWILL_SUM, 1, comms_[0], nullptr),
              TWILL_OK);
    EXPECT_EQ(twill_all_reduce(host, nullptr, 0, TWILL_INT8, TWILL_SUM, comms_[0], nullptr),
              TWILL_OK);
    EXPECT_EQ(twill_barrier(comms_[0], nullptr), TWILL_OK);
    ASSERT_EQ(launches().size(), 3u) << "a call of nothing takes its place too";
    EXPECT_EQ(launches()[0].launch.call[0].out, nullptr);
}

TEST_F(GpuCall, StreamsOfTheHostAreNone)
{
    make({0, 1});
    twill_stream_t stream;
    ASSERT_EQ(twill_stream_create(&stream), TWILL_OK);
    EXPECT_LT(sum(0, stream), 0);
    EXPECT_EQ(twill_stream_destroy(stream), TWILL_OK);
    EXPECT_EQ(fake::misuse().size(), 1u) << "CUDA was asked what it is";
    EXPECT_TRUE(launches().empty());
    destroy();
    fake::reset(8);
}

TEST_F(GpuCall, GroupsKeepTheOrderOfCalls)
{
    make({0, 1});
    void *streams[] = {fake::stream(0), fake::stream(0)};
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    for (int i = 0; i < 4; i++)
        ASSERT_EQ(sum(0, streams[i % 2], (size_t)i + 1), TWILL_OK);
    ASSERT_EQ(sum(1, nullptr, 9), TWILL_OK);
    EXPECT_TRUE(launches().empty());
    ASSERT_EQ(twill_group_end(), TWILL_OK);
    const auto all = launches();
    ASSERT_EQ(all.size(), 5u) << "small all_reduces are not made one";
    for (size_t i = 0; i < 4; i++) {
        EXPECT_EQ(all[i].launch.call[0].bytes, (i + 1) * 4);
        if (i > 0) {
            EXPECT_TRUE(fake::before(all[i - 1].point, all[i].point));
        }
    }
}

TEST_F(GpuCall, AnArgumentErrorDoesNotHarmTheGroup)
{
    make({0, 1});
    char host[4];
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    ASSERT_EQ(sum(0, nullptr), TWILL_OK);
    EXPECT_EQ(copy(host, host), TWILL_ERR_INVALID);
    ASSERT_EQ(twill_group_end(), TWILL_OK);
    EXPECT_EQ(launches().size(), 1u);
}

TEST_F(GpuCall, TheChoiceIsTheKernelThatIsLaunched)
{
    make({0, 1});
    struct twill_choice choice = TWILL_CHOICE_INIT;
    for (size_t count : {4, 1 << 21}) {
        ASSERT_EQ(twill_comm_choice(comms_[0], "all_reduce", count, TWILL_FLOAT32, 0, &choice),
                  TWILL_OK);
        EXPECT_STREQ(choice.algo, count == 4 ? "direct_put" : "two_shot_get");
        EXPECT_STREQ(choice.proto, count == 4 ? "lines" : "direct");
        EXPECT_GT(choice.predicted_us, count == 4 ? 1 : 25);
        EXPECT_LT(choice.predicted_us, count == 4 ? 10 : 200);
        ASSERT_EQ(sum(0, nullptr, count), TWILL_OK);
        EXPECT_EQ(launches().back().launch.blocks, (uint32_t)choice.channels);
    }
}

TEST_F(GpuCall, EveryRankReachesEveryRanksMemory)
{
    make({0, 1, 0});
    ASSERT_EQ(twill_group_start(), TWILL_OK);
    for (int rank = 0; rank < 3; rank++)
        ASSERT_EQ(sum(rank, nullptr), TWILL_OK);
    ASSERT_EQ(twill_group_end(), TWILL_OK);
    for (const auto &launch : launches())
        for (uint32_t i = 0; i < launch.launch.ranks; i++)
            for (int peer = 0; peer < 3; peer++)
                EXPECT_EQ(launch.launch.call[i].near[peer], gpu(peer)->mem);
}

} // namespace
