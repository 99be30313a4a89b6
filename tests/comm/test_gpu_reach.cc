/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which devices are let into buffers that are not from cudaMalloc, and when. Never knows:
 * how CUDA lets them in. */
#include "fake_vmm.h"
#include "gpu_ranks.h"

namespace
{

typedef std::set<int> In;

class GpuReach : public GpuRanks
{
  protected:
    char *apart(int device, size_t bytes, enum tw_cuda_origin origin = TW_CUDA_MAPPED,
                size_t piece_bytes = 0)
    {
        char *at = buffer(device, bytes);
        fake::Apart how;
        how.origin = origin;
        how.device = device;
        how.piece_bytes = piece_bytes;
        fake::apart(at, bytes, how);
        return at;
    }
    enum twill_status sum(char *in, char *out, size_t count, void *stream = nullptr)
    {
        return twill_all_reduce(in, out, count, TWILL_INT8, TWILL_SUM, comms_[0], stream);
    }
    std::string said() { return twill_last_error(comms_[0]); }
    static constexpr size_t large_ = 4 << 20;
};

TEST_F(GpuReach, PeersDevicesAreLetIntoWhatTheyUse)
{
    make({2, 4, 4, 7});
    char *in = apart(2, large_), *out = apart(2, large_);
    ASSERT_EQ(sum(in, out, large_), TWILL_OK) << said();
    EXPECT_EQ(fake::launches().back().kernel, TW_GK_DIRECT_ALL);
    EXPECT_EQ(fake::who_is_in(in), (In{4, 7}));
    EXPECT_EQ(fake::who_is_in(out), (In{4, 7}));
    EXPECT_EQ(fake::openings(), 2);
    ASSERT_EQ(sum(in, out, large_), TWILL_OK) << said();
    EXPECT_EQ(fake::openings(), 2) << "nobody is let in twice";
}

/* It may have been unmapped and mapped anew since. */
TEST_F(GpuReach, WhoWasLetInOnceIsAskedForAgain)
{
    make({0, 1});
    char *at = apart(0, large_);
    ASSERT_EQ(sum(at, at, large_), TWILL_OK) << said();
    EXPECT_EQ(fake::openings(), 1) << "one buffer";
    fake::Apart anew;
    fake::apart(at, large_, anew);
    EXPECT_EQ(fake::who_is_in(at), In{});
    ASSERT_EQ(sum(at, at, large_), TWILL_OK) << said();
    EXPECT_EQ(fake::who_is_in(at), In{1});
}

TEST_F(GpuReach, EveryPieceOfABufferIsLookedAt)
{
    make({0, 1});
    const size_t piece = large_ / 4;
    char *at = apart(0, large_, TW_CUDA_MAPPED, piece);
    fake::let_in(at, 1);
    fake::let_in(at + 2 * piece, 1);
    ASSERT_EQ(sum(at + 1, at + 1, 2 * piece), TWILL_OK) << said();
    EXPECT_EQ(fake::who_is_in(at + piece), In{1});
    EXPECT_EQ(fake::who_is_in(at + 3 * piece), In{}) << "it is not in the buffer";
    fake::unmap(at + 2 * piece);
    const size_t before = fake::launches().size();
    EXPECT_EQ(sum(at, at, large_), TWILL_ERR_INVALID);
    EXPECT_NE(said().find("all_reduce: sendbuf"), std::string::npos) << said();
    EXPECT_EQ(fake::launches().size(), before);
    EXPECT_EQ(sum(at, at, 2 * piece), TWILL_OK) << said();
}

TEST_F(GpuReach, BuffersThatNobodyElseUsesAreLeftAlone)
{
    make({0, 1});
    char *in = apart(0, large_), *out = apart(0, large_);
    ASSERT_EQ(sum(in, out, 64), TWILL_OK) << "by lines: " << said();
    EXPECT_EQ(fake::openings(), 0);
    ASSERT_EQ(twill_all_gather(in, out, large_ / 2, TWILL_INT8, comms_[0], nullptr), TWILL_OK);
    EXPECT_EQ(fake::who_is_in(in), In{}) << "only outputs are written";
    EXPECT_EQ(fake::who_is_in(out), In{1});
}

TEST_F(GpuReach, RanksOfOneDeviceNeedNoLettingIn)
{
    make({3, 3});
    char *at = apart(3, large_);
    fake::refuse(3);
    on_threads(2, [&](int rank) {
        EXPECT_EQ(
            twill_all_reduce(at, at, large_, TWILL_INT8, TWILL_SUM, comms_[(size_t)rank], nullptr),
            TWILL_OK);
    });
    EXPECT_EQ(fake::openings(), 0);
}

TEST_F(GpuReach, DevicesWithoutPathsAreNotAsked)
{
    fake::cut(0, 1);
    make({0, 1});
    char *at = apart(0, large_);
    ASSERT_EQ(sum(at, at, large_), TWILL_OK) << said();
    EXPECT_EQ(fake::openings(), 0);
}

TEST_F(GpuReach, WhatCudaRefusesIsAnErrorThatLeavesTheCommunicatorWell)
{
    make({0, 1});
    char *at = apart(0, large_), *plain = buffer(0, large_);
    fake::refuse(1);
    EXPECT_EQ(sum(plain, at, large_), TWILL_ERR_UNSUPPORTED);
    for (const char *part : {"all_reduce: recvbuf", "on CUDA device 0", "device 1 is refused",
                             "cuMemSetAccess", "cudaMalloc"})
        EXPECT_NE(said().find(part), std::string::npos) << part << ": " << said();
    EXPECT_TRUE(fake::launches().empty());
    EXPECT_EQ(tw_comm_status(comms_[0]), TWILL_OK);
    EXPECT_EQ(sum(plain, plain, large_), TWILL_OK) << said();
}

/* What a graph takes of a pool has the access that the pool gives when it is captured. */
TEST_F(GpuReach, PoolsAreNotOpenedWithinACapture)
{
    make({0, 1});
    char *pool = apart(0, large_, TW_CUDA_POOL), *mapped = apart(0, large_);
    void *captured = fake::stream(0, 5), *other = fake::stream(0);
    EXPECT_EQ(sum(pool, pool, large_, captured), TWILL_ERR_UNSUPPORTED);
    EXPECT_NE(said().find("captured"), std::string::npos) << said();
    EXPECT_EQ(fake::openings(), 0);
    EXPECT_EQ(sum(mapped, mapped, large_, captured), TWILL_OK) << said();
    EXPECT_EQ(fake::who_is_in(mapped), In{1});
    EXPECT_EQ(sum(pool, pool, large_, other), TWILL_OK) << said();
    EXPECT_EQ(fake::who_is_in(pool), In{1});
    EXPECT_EQ(sum(pool, pool, large_, captured), TWILL_OK) << said();
}

/* Opened from another process, for instance, or of a graph. */
TEST_F(GpuReach, WhatTheDriverDoesNotKnowIsTakenOutsideCaptures)
{
    make({0, 1});
    char *at = apart(0, large_, TW_CUDA_OTHER);
    EXPECT_EQ(sum(at, at, large_), TWILL_OK) << said();
    EXPECT_EQ(fake::openings(), 0);
    EXPECT_EQ(sum(at, at, large_, fake::stream(0, 5)), TWILL_ERR_UNSUPPORTED);
    EXPECT_NE(said().find("captured"), std::string::npos) << said();
}

TEST_F(GpuReach, ReceivesLetSendersIn)
{
    make({0, 1, 1});
    char *to = apart(0, 4096), *from = apart(0, 4096);
    ASSERT_EQ(twill_send(from, 4096, TWILL_INT8, 1, comms_[0], nullptr), TWILL_OK) << said();
    EXPECT_EQ(fake::openings(), 0);
    ASSERT_EQ(twill_recv(to, 4096, TWILL_INT8, 2, comms_[0], nullptr), TWILL_OK) << said();
    EXPECT_EQ(fake::who_is_in(to), In{1});
}

TEST_F(GpuReach, OutputsWhoseBlocksDifferAreOpened)
{
    make({0, 1});
    const size_t counts[] = {1000, 3000};
    char *in = apart(0, 1000), *out = apart(0, 4000, TW_CUDA_MAPPED, 2000);
    ASSERT_EQ(twill_all_gather_v(in, out, counts, nullptr, TWILL_INT8, comms_[0], nullptr),
              TWILL_OK)
        << said();
    EXPECT_EQ(fake::who_is_in(in), In{});
    EXPECT_EQ(fake::who_is_in(out), In{1});
    EXPECT_EQ(fake::who_is_in(out + 3999), In{1});
}

} // namespace
