/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which memory on devices can be registered, and which calls it is for. Never knows: how
 * processes reach each other's. */
#include "fake_vmm.h"
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
    /* And so that none addresses another's memory but by what it has mapped. */
    void far_apart()
    {
        apart();
        for (int rank = 0; rank < (int)comms_.size(); rank++) {
            gpu(rank)->nothers = 0;
            for (int peer = 0; peer < (int)comms_.size(); peer++)
                gpu(rank)->here[peer] = peer == rank;
        }
    }
    char *pieces(int device, size_t bytes, size_t piece_bytes, bool exportable = true)
    {
        char *at = buffer(device, bytes);
        fake::Apart how;
        how.device = device;
        how.piece_bytes = piece_bytes;
        how.exportable = exportable;
        fake::apart(at, bytes, how);
        return at;
    }
    void expect_texts(const std::string &part)
    {
        for (const std::string &text : texts_)
            EXPECT_NE(text.find(part), std::string::npos) << text;
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

/* Of a reduce_scatter that is pushed the output too, or its rank does not say that it may be. */
TEST_F(GpuReg, PushedOutputsAreRegistered)
{
    make({0, 1});
    apart();
    std::vector<void *> at = {buffer(0, 3 * count_), buffer(1, 3 * count_)};
    char *mine = static_cast<char *>(at[0]);
    char *other = buffer(0, count_);
    ASSERT_EQ(enlist(at, 3 * count_), TWILL_OK) << texts_[0];
    gpu(0)->push_scatter_from = 1;
    const auto word = [&](char *out) {
        EXPECT_EQ(
            twill_reduce_scatter(mine, out, count_, TWILL_INT8, TWILL_SUM, comms_[0], nullptr),
            TWILL_OK);
        const auto launch = fake::launches().back();
        EXPECT_EQ(launch.kernel, TW_GK_DIRECT_SCATTER);
        EXPECT_NE(launch.launch.call[0].chunk, 0u) << "as the other rank sees it";
        return launch.launch.call[0].in_word;
    };
    EXPECT_EQ(word(mine + 2 * count_), TW_GK_REGISTERED | TW_GK_APART);
    EXPECT_EQ(word(other), TW_GK_REGISTERED);
    EXPECT_EQ(word(mine), TW_GK_REGISTERED) << "in place";
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

/* ---- pieces -----------------------------------------------------------------------------------
 */

/* Of 1, 16, 17 and 100 pieces, from somewhere in the first to somewhere in the last. */
TEST_F(GpuReg, PiecesAreMappedSideBySideInOtherProcesses)
{
    make({0, 1, 2, 3});
    far_apart();
    const size_t counts[] = {1, 16, 17, 100}, piece = 4096, bytes = 100;
    std::vector<void *> at;
    std::vector<size_t> offsets = {11, 4000, 0, 99};
    for (size_t r = 0; r < 4; r++)
        at.push_back(pieces((int)r, counts[r] * piece, piece) + offsets[r]);
    /* the same number of bytes for all: those of many pieces begin where so many are left */
    ASSERT_EQ(enlist(at, bytes), TWILL_OK) << texts_[0];
    EXPECT_EQ(fake::spans(), 4u * 3);
    drop();
    EXPECT_EQ(fake::spans(), 0u);

    const auto r = [](int rank) { return (size_t)rank; };
    std::vector<twill_reg_t> regs(4);
    on_threads(4, [&](int rank) {
        EXPECT_EQ(twill_register(comms_[r(rank)], at[r(rank)],
                                 counts[r(rank)] * piece - offsets[r(rank)], &regs[r(rank)]),
                  TWILL_OK);
    });
    for (size_t own = 0; own < 4; own++)
        for (size_t peer = 0; peer < 4; peer++) {
            const uint64_t base = gpu((int)own)->reg_bases[peer];
            if (own == peer) {
                EXPECT_EQ(base, (uint64_t)(uintptr_t)at[peer]);
                continue;
            }
            for (size_t i = 0; i < counts[peer]; i++) {
                const auto found = fake::mapped_at(base - offsets[peer] + i * piece);
                EXPECT_EQ(found.first, (char *)at[peer] - offsets[peer] + i * piece);
                EXPECT_EQ(found.second, piece);
            }
        }
    destroy();
    EXPECT_EQ(fake::spans(), 0u);
}

TEST_F(GpuReg, MemoryThatCannotBeExportedIsRefusedOnAllRanks)
{
    make({0, 1, 2});
    far_apart();
    const size_t piece = 4096, bytes = 40 * piece;
    std::vector<void *> good = {pieces(0, bytes, piece), pieces(1, bytes, piece),
                                pieces(2, bytes, piece)};
    std::vector<void *> bad = good;
    bad[1] = pieces(1, bytes, piece, false);
    EXPECT_EQ(enlist(bad, bytes), TWILL_ERR_UNSUPPORTED);
    expect_texts("rank 1 has memory that peers do not reach");
    EXPECT_NE(texts_[1].find("made without a descriptor"), std::string::npos) << texts_[1];
    fake::Apart pool;
    pool.device = 2;
    pool.origin = TW_CUDA_POOL;
    bad = good;
    bad[2] = buffer(2, bytes);
    fake::apart(bad[2], bytes, pool);
    EXPECT_EQ(enlist(bad, bytes), TWILL_ERR_UNSUPPORTED);
    expect_texts("rank 2 has memory that peers do not reach");
    EXPECT_EQ(fake::spans(), 0u);
    /* the last piece of one rank, when others have mapped two rounds */
    fake::Apart last;
    last.device = 0;
    last.exportable = false;
    bad = good;
    bad[0] = pieces(0, bytes, piece);
    fake::apart((char *)bad[0] + bytes - piece, piece, last);
    EXPECT_EQ(enlist(bad, bytes), TWILL_ERR_UNSUPPORTED);
    expect_texts("rank 0 has memory");
    EXPECT_EQ(fake::spans(), 0u);
    EXPECT_EQ(enlist(good, bytes), TWILL_OK) << texts_[0];
    drop();
}

TEST_F(GpuReg, WhoCannotMapIsNamed)
{
    make({0, 1});
    far_apart();
    const size_t bytes = 40 * 4096;
    const std::vector<void *> at = {pieces(0, bytes, 4096), pieces(1, bytes, 4096)};
    fake::refuse(1);
    EXPECT_EQ(enlist(at, bytes), TWILL_ERR_SYSTEM);
    expect_texts("rank 1 cannot reach the others' memory");
    EXPECT_EQ(fake::spans(), 0u);
    for (twill_comm_t comm : comms_)
        EXPECT_EQ(tw_comm_status(comm), TWILL_OK);
}

TEST_F(GpuReg, WhatIsMappedEndsWithItsLastPiece)
{
    make({0, 1});
    const size_t bytes = 4 * 4096;
    std::vector<void *> at = {pieces(0, bytes, 4096), pieces(1, bytes, 4096)};
    ASSERT_EQ(enlist(at, bytes), TWILL_OK) << texts_[0];
    EXPECT_EQ(fake::who_is_in((char *)at[0] + bytes - 1), std::set<int>{1}) << "of this process";
    drop();
    fake::unmap((char *)at[1] + 2 * 4096);
    EXPECT_EQ(enlist(at, bytes), TWILL_ERR_INVALID);
    expect_texts("rank 1 has no memory that can be registered");
    EXPECT_EQ(enlist(at, bytes / 2), TWILL_OK) << texts_[0];
    drop();
}

} // namespace
