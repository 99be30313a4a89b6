/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which memory on devices can be registered, and which calls it is for. Never knows: how
 * processes reach each other's. */
#include "gpu_ranks.h"

namespace
{

class GpuReg : public GpuRanks
{
  protected:
    /* Every rank registers its own; the status is that of all. */
    enum twill_status enlist(const std::vector<void *> &at, size_t bytes)
    {
        std::vector<enum twill_status> status(comms_.size());
        regs_.assign(comms_.size(), nullptr);
        texts_.assign(comms_.size(), "");
        on_threads((int)comms_.size(), [&](int rank) {
            const auto r = (size_t)rank;
            status[r] = twill_register(comms_[r], at[r], bytes, &regs_[r]);
            texts_[r] = twill_last_error(comms_[r]);
        });
        for (size_t r = 1; r < status.size(); r++)
            EXPECT_EQ(status[r], status[0]) << texts_[r];
        return status[0];
    }
    void drop()
    {
        on_threads((int)comms_.size(), [&](int rank) {
            const auto r = (size_t)rank;
            EXPECT_EQ(twill_deregister(comms_[r], regs_[r]), TWILL_OK);
        });
    }
    /* As if the other ranks were other processes. */
    void apart()
    {
        for (size_t rank = 0; rank < comms_.size(); rank++)
            gpu((int)rank)->all_here = false;
    }
    struct fake::Launch call(const void *in, void *out)
    {
        EXPECT_EQ(twill_all_reduce(in, out, count_, TWILL_INT8, TWILL_SUM, comms_[0], nullptr),
                  TWILL_OK);
        return fake::launches().back();
    }
    static constexpr size_t count_ = 1 << 20;
    std::vector<twill_reg_t> regs_;
    std::vector<std::string> texts_;
};

TEST_F(GpuReg, RegisteredBuffersAreReadDirectly)
{
    make({0, 1});
    apart();
    std::vector<void *> at = {buffer(0, 4 * count_), buffer(1, 4 * count_)};
    char *mine = static_cast<char *>(at[0]);
    char *other = buffer(0, count_);
    EXPECT_EQ(call(mine, mine + count_).kernel, TW_GK_RING_ALL);
    ASSERT_EQ(enlist(at, 3 * count_), TWILL_OK) << texts_[0];
    EXPECT_EQ(call(mine, mine + count_).kernel, TW_GK_DIRECT_ALL);
    EXPECT_EQ(call(mine + 2 * count_, mine).kernel, TW_GK_DIRECT_ALL) << "to its end";
    EXPECT_EQ(call(mine + 2 * count_ + 1, mine).kernel, TW_GK_RING_ALL) << "past its end";
    EXPECT_EQ(call(other, mine).kernel, TW_GK_RING_ALL);
    EXPECT_EQ(call(mine, other).kernel, TW_GK_RING_ALL);
    drop();
    EXPECT_EQ(call(mine, mine + count_).kernel, TW_GK_RING_ALL);
}

/* Only an all_reduce writes to the peers' outputs. */
TEST_F(GpuReg, OutputsThatNobodyElseWritesNeedNotBeRegistered)
{
    make({0, 1});
    apart();
    std::vector<void *> at = {buffer(0, 2 * count_), buffer(1, 2 * count_)};
    char *mine = static_cast<char *>(at[0]);
    char *other = buffer(0, count_);
    ASSERT_EQ(enlist(at, 2 * count_), TWILL_OK) << texts_[0];
    EXPECT_EQ(call(mine, other).kernel, TW_GK_RING_ALL);
    EXPECT_EQ(twill_reduce_scatter(mine, other, count_, TWILL_INT8, TWILL_SUM, comms_[0], nullptr),
              TWILL_OK);
    const auto scatter = fake::launches().back();
    EXPECT_EQ(scatter.kernel, TW_GK_DIRECT_SCATTER);
    EXPECT_NE(scatter.launch.call[0].direct, 0u);
    EXPECT_EQ(scatter.launch.call[0].out_word, 0u);
    EXPECT_EQ(twill_reduce(mine, other, count_, TWILL_INT8, TWILL_SUM, 0, comms_[0], nullptr),
              TWILL_OK);
    EXPECT_EQ(fake::launches().back().kernel, TW_GK_DIRECT_SCATTER);
}

/* A record names them by registration: what peers make of it is the address that they have. */
TEST_F(GpuReg, RecordsSayWhichRegistrationAndWhereInIt)
{
    make({0, 1});
    apart();
    std::vector<void *> first = {buffer(0, count_), buffer(1, count_)};
    std::vector<void *> second = {buffer(0, 4 * count_), buffer(1, 4 * count_)};
    ASSERT_EQ(enlist(first, count_), TWILL_OK);
    ASSERT_EQ(enlist(second, 4 * count_), TWILL_OK);
    char *mine = static_cast<char *>(second[0]);
    const auto launch = call(mine + 160, mine + 2 * count_);
    const struct tw_gk_call &told = launch.launch.call[0];
    EXPECT_EQ(told.in_word, (uint64_t)1 << 63 | (uint64_t)1 << 48 | 160);
    EXPECT_EQ(told.out_word, (uint64_t)1 << 63 | (uint64_t)1 << 48 | 2 * count_);
    ASSERT_NE(told.bases, nullptr);
    for (size_t peer = 0; peer < 2; peer++)
        EXPECT_EQ(told.bases[1 * 2 + peer], (uint64_t)(uintptr_t)second[peer]);
}

TEST_F(GpuReg, WhatIsNoMemoryOfTheDeviceIsRefusedOnAllRanks)
{
    make({0, 1, 2});
    char host[64];
    EXPECT_EQ(enlist({buffer(0, 64), host, buffer(2, 64)}, 64), TWILL_ERR_INVALID);
    for (const std::string &text : texts_)
        EXPECT_NE(text.find("rank 1 has no memory that can be registered"), std::string::npos)
            << text;
    EXPECT_EQ(enlist({buffer(0, 64), buffer(1, 64), buffer(1, 64)}, 64), TWILL_ERR_INVALID);
    EXPECT_NE(texts_[0].find("rank 2 has no memory"), std::string::npos) << texts_[0];
    EXPECT_EQ(enlist({buffer(0, 64), buffer(1, 63), buffer(2, 64)}, 64), TWILL_ERR_INVALID);
    EXPECT_NE(texts_[1].find("64 bytes at"), std::string::npos) << texts_[1];
    for (int rank = 0; rank < 3; rank++)
        EXPECT_EQ(tw_comm_status(comms_[(size_t)rank]), TWILL_OK);
    EXPECT_EQ(enlist({buffer(0, 64), buffer(1, 64), buffer(2, 64)}, 64), TWILL_OK) << texts_[0];
}

TEST_F(GpuReg, PlacesAreUsedAgain)
{
    make({0, 1});
    std::vector<void *> at = {buffer(0, 64), buffer(1, 64)};
    for (int i = 0; i < TW_GPU_REGS; i++)
        ASSERT_EQ(enlist(at, 64), TWILL_OK) << texts_[0];
    std::vector<twill_reg_t> last = regs_;
    EXPECT_EQ(enlist(at, 64), TWILL_ERR_NOMEM);
    regs_ = last;
    drop();
    EXPECT_EQ(enlist(at, 64), TWILL_OK);
}

} // namespace
