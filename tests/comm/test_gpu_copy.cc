/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which calls copy engines serve, what is copied, and what comes before what. Never knows:
 * what the kernels around the copies do. */
#include <algorithm>

#include "gpu_ranks.h"

extern "C" {
#include "comm/gpu_copy.h"
}

namespace
{

using fake::before;
using fake::Copy;
using fake::Launch;

constexpr size_t MIB = (size_t)1 << 20;

class GpuCopy : public GpuRanks
{
  protected:
    /* Ranks on devices, each with a stream and buffers for blocks of so many bytes. */
    void begin(const std::vector<int> &devices, size_t bytes, const char *engine = "prefer",
               size_t more = 4096)
    {
        make(devices, {{"COPY_ENGINE", engine}});
        const size_t all = devices.size() * bytes;

        bytes_ = bytes;
        for (int device : devices) {
            streams_.push_back(fake::stream(device));
            in_.push_back(buffer(device, all));
            out_.push_back(buffer(device, all + more));
        }
    }
    void TearDown() override
    {
        streams_.clear();
        GpuRanks::TearDown();
    }
    int size() const { return (int)comms_.size(); }
    enum twill_status gather(int rank, void *in = nullptr, size_t less = 0)
    {
        const auto r = (size_t)rank;
        return twill_all_gather(in != nullptr ? in : in_[r], out_[r], bytes_ - less, TWILL_INT8,
                                comms_[r], streams_[r]);
    }
    template <class Call> enum twill_status group(const Call &calls)
    {
        EXPECT_EQ(twill_group_start(), TWILL_OK);
        calls();
        return twill_group_end();
    }
    enum twill_status gather_all()
    {
        return group([&] {
            for (int rank = 0; rank < size(); rank++)
                EXPECT_EQ(gather(rank), TWILL_OK);
        });
    }
    static bool by_engines()
    {
        const auto all = fake::launches();
        return std::any_of(all.begin(), all.end(),
                           [](const Launch &one) { return one.kernel == TW_GK_COPY_BEGIN; });
    }
    static Launch find(enum tw_gk_kernel kernel, int device)
    {
        for (const Launch &one : fake::launches())
            if (one.kernel == kernel && one.device == device)
                return one;
        ADD_FAILURE() << "no kernel " << (int)kernel << " on device " << device;
        return {};
    }
    static Copy find(const void *dst)
    {
        for (const Copy &one : fake::copies())
            if (one.dst == dst)
                return one;
        ADD_FAILURE() << "nothing is copied to " << dst;
        return {};
    }
    /* All registered likewise. */
    void enlist(size_t bytes)
    {
        regs_.resize(comms_.size());
        on_threads(size(), [&](int rank) {
            const auto r = (size_t)rank;
            EXPECT_EQ(twill_register_symmetric(comms_[r], out_[r], bytes, &regs_[r]), TWILL_OK)
                << twill_last_error(comms_[r]);
        });
    }
    /* As if the other ranks were other processes. */
    void apart()
    {
        for (int rank = 0; rank < size(); rank++)
            gpu(rank)->all_here = false;
    }
    size_t bytes_ = 0;
    std::vector<void *> streams_;
    std::vector<char *> in_, out_;
    std::vector<twill_reg_t> regs_;
};

TEST_F(GpuCopy, OneThreadsCallsOfAllRanks)
{
    begin({0, 1}, 2 * MIB);
    const fake::Point earlier = fake::work(streams_[1]);
    ASSERT_EQ(gather_all(), TWILL_OK) << twill_last_error(nullptr);
    const fake::Point later = fake::work(streams_[1]);

    ASSERT_EQ(fake::launches().size(), 4u);
    ASSERT_EQ(fake::copies().size(), 4u);
    const Launch first = find(TW_GK_COPY_BEGIN, 0), last = find(TW_GK_COPY_END, 0);
    EXPECT_EQ(first.launch.blocks, 1u);
    EXPECT_EQ(first.threads, 64u);
    EXPECT_EQ(first.launch.call[0].words[TW_GK_WORD_PATH],
              last.launch.call[0].words[TW_GK_WORD_PATH]);
    const Copy there = find(out_[1]), own = find(out_[0]);
    EXPECT_EQ(there.src, in_[0]);
    EXPECT_EQ(there.bytes, 2 * MIB);
    EXPECT_EQ(own.src, in_[0]);
    EXPECT_TRUE(before(first.point, there.point));
    EXPECT_TRUE(before(there.point, last.point));
    EXPECT_TRUE(before(own.point, last.point));
    EXPECT_FALSE(before(there.point, own.point)) << "beside each other";
    EXPECT_FALSE(before(own.point, there.point));
    EXPECT_EQ(find(out_[0] + 2 * MIB).src, in_[1]);
    /* whatever becomes of the kernels */
    EXPECT_TRUE(before(earlier, there.point));
    EXPECT_TRUE(before(there.point, later));
    EXPECT_FALSE(before(earlier, first.point)) << "it is the kernel that says who is late";
}

/* Unless multiprocessors are to stay free. */
TEST_F(GpuCopy, OwnBlocksByAKernel)
{
    begin({0, 0, 1}, 2 * MIB, "1M");
    ASSERT_EQ(gather_all(), TWILL_OK) << twill_last_error(nullptr);
    EXPECT_EQ(fake::copies().size(), 6u);
    const Launch own = find(TW_GK_COPY_OWN, 0), last = find(TW_GK_COPY_END, 0);
    EXPECT_EQ(own.launch.ranks, 2u);
    EXPECT_EQ(own.launch.call[1].out, out_[1]);
    EXPECT_EQ(own.launch.call[1].bytes, 2 * MIB);
    EXPECT_GT(own.launch.blocks, 1u);
    EXPECT_EQ(own.threads, (uint32_t)TW_GK_THREADS_MOST);
    EXPECT_TRUE(before(own.point, last.point));
    EXPECT_FALSE(before(own.point, find(TW_GK_COPY_BEGIN, 0).point)) << "beside each other";
    EXPECT_FALSE(before(find(TW_GK_COPY_BEGIN, 0).point, own.point));
    for (const Launch &one : fake::launches())
        EXPECT_TRUE(one.kernel != TW_GK_COPY_BEGIN || one.launch.blocks == 1) << "it is as it was";
    destroy();
    fake::reset(8);
    streams_.clear();
    in_.clear();
    out_.clear();
    begin({0, 1}, 2 * MIB, "1M");
    ASSERT_EQ(group([&] {
                  for (int r = 0; r < 2; r++)
                      EXPECT_EQ(gather(r, out_[(size_t)r] + (size_t)r * bytes_), TWILL_OK);
              }),
              TWILL_OK);
    for (const Launch &one : fake::launches())
        EXPECT_NE(one.kernel, TW_GK_COPY_OWN) << "in place there is nothing to do";
}

TEST_F(GpuCopy, BehindTheLastCallOnAnotherStream)
{
    begin({0, 1}, 2 * MIB);
    ASSERT_EQ(gather_all(), TWILL_OK);
    const Copy there = find(out_[1]);
    void *other = fake::stream(1);
    ASSERT_EQ(sum(1, other), TWILL_OK);
    EXPECT_TRUE(before(there.point, fake::launches().back().point));
}

TEST_F(GpuCopy, FromWhichSizeOn)
{
    static const struct {
        const char *engine;
        size_t bytes;
        bool copies;
    } cases[] = {{"auto", 64 * MIB, true},   {"auto", 48 * MIB, false},
                 {"", 64 * MIB, true},       {"prefer", MIB, true},
                 {"prefer", MIB - 1, false}, {"off", 64 * MIB, false},
                 {"3M", 3 * MIB, true},      {"3M", 3 * MIB - 1, false},
                 {"1", 500 * 1024, false}}; /* lines are quicker */

    for (const auto &one : cases) {
        struct twill_choice choice = TWILL_CHOICE_INIT;

        fake::reset(8);
        begin({0, 1}, one.bytes, one.engine);
        ASSERT_EQ(gather_all(), TWILL_OK);
        EXPECT_EQ(by_engines(), one.copies) << one.engine << " " << one.bytes;
        ASSERT_EQ(twill_comm_choice(comms_[0], "all_gather", one.bytes, TWILL_INT8, 0, &choice),
                  TWILL_OK);
        EXPECT_STREQ(choice.algo, "direct");
        EXPECT_EQ(std::string(choice.proto) == "copy", one.copies);
        destroy();
        streams_.clear();
        in_.clear();
        out_.clear();
    }
}

TEST_F(GpuCopy, WhatMakesNoSenseIsRefused)
{
    for (const char *bad : {"often", "-1", "0", "1.5", "preferr"}) {
        set_params({{"COPY_ENGINE", bad}});
        const int devices[] = {0, 1};
        twill_comm_t comms[2];
        EXPECT_EQ(twill_comm_init_all(comms, 2, devices, nullptr), TWILL_ERR_INVALID) << bad;
        EXPECT_NE(std::string(twill_last_error(nullptr))
                      .find("TWILL_COPY_ENGINE is \"" + std::string(bad) + "\""),
                  std::string::npos)
            << twill_last_error(nullptr);
    }
    struct tw_gpu_entry entries[3] = {};
    EXPECT_EQ(tw_gpu_copy_agree(3, entries), TWILL_OK);
    entries[2].copy_from = 1;
    EXPECT_EQ(tw_gpu_copy_agree(3, entries), TWILL_ERR_MISMATCH);
    EXPECT_NE(std::string(tw_fail_text()).find("rank 0 and rank 2"), std::string::npos);
}

TEST_F(GpuCopy, OnlyWhereAllRanksCallsAreKnownAndAlike)
{
    begin({0, 1, 2}, 2 * MIB);
    for (int rank = 0; rank < 3; rank++)
        ASSERT_EQ(gather(rank), TWILL_OK);
    EXPECT_FALSE(by_engines()) << "without a group";
    ASSERT_EQ(group([&] {
                  (void)gather(0);
                  (void)gather(2);
              }),
              TWILL_OK);
    EXPECT_FALSE(by_engines()) << "not of all ranks";
    ASSERT_EQ(group([&] {
                  (void)gather(0);
                  (void)gather(1, nullptr, 1);
                  (void)gather(2);
              }),
              TWILL_OK);
    EXPECT_FALSE(by_engines()) << "of other lengths";
    ASSERT_EQ(group([&] {
                  for (int rank = 0; rank < 3; rank++)
                      for (int i = 0; i < 2; i++)
                          (void)gather(rank);
              }),
              TWILL_OK);
    EXPECT_FALSE(by_engines()) << "a rank's calls ahead of the others'";
    ASSERT_EQ(group([&] {
                  for (int i = 0; i < 2; i++)
                      for (int rank = 2; rank >= 0; rank--)
                          (void)gather(rank);
              }),
              TWILL_OK);
    EXPECT_TRUE(by_engines());
    EXPECT_EQ(fake::copies().size(), 18u);
}

TEST_F(GpuCopy, NotInPlaceWhereInputsWouldBeOverwritten)
{
    begin({0, 1}, 2 * MIB);
    for (int places = 0; places < 4; places++) {
        const size_t had = fake::copies().size();

        ASSERT_EQ(group([&] {
                      for (size_t r = 0; r < 2; r++)
                          EXPECT_EQ(twill_all_to_all((places >> r & 1) != 0 ? out_[r] : in_[r],
                                                     out_[r], bytes_, TWILL_INT8, comms_[r],
                                                     streams_[r]),
                                    TWILL_OK);
                  }),
                  TWILL_OK);
        EXPECT_EQ(fake::copies().size() - had, places == 0 ? 4u : 0u);
    }
    ASSERT_EQ(group([&] {
                  for (int r = 0; r < 2; r++)
                      EXPECT_EQ(gather(r, out_[(size_t)r] + (size_t)r * bytes_), TWILL_OK);
              }),
              TWILL_OK);
    EXPECT_EQ(fake::copies().size(), 6u) << "the own blocks of a gather are in their places";
}

TEST_F(GpuCopy, RootedCalls)
{
    begin({0, 1, 2}, 2 * MIB);
    ASSERT_EQ(group([&] {
                  for (size_t r = 0; r < 3; r++)
                      EXPECT_EQ(twill_broadcast(in_[r], out_[r], bytes_, TWILL_INT8, 1, comms_[r],
                                                streams_[r]),
                                TWILL_OK);
              }),
              TWILL_OK);
    ASSERT_EQ(fake::copies().size(), 3u);
    EXPECT_EQ(find(out_[0]).src, in_[1]);
    EXPECT_EQ(find(out_[2]).src, in_[1]);
    ASSERT_EQ(group([&] {
                  for (size_t r = 0; r < 3; r++)
                      EXPECT_EQ(twill_gather(in_[r], r == 2 ? out_[r] : nullptr, bytes_, TWILL_INT8,
                                             2, comms_[r], streams_[r]),
                                TWILL_OK);
              }),
              TWILL_OK);
    ASSERT_EQ(fake::copies().size(), 6u);
    EXPECT_EQ(find(out_[2] + bytes_).src, in_[1]);
    EXPECT_EQ(find(out_[2] + 2 * bytes_).src, in_[2]);
    ASSERT_EQ(group([&] {
                  for (size_t r = 0; r < 3; r++)
                      EXPECT_EQ(twill_scatter(r == 0 ? in_[r] : nullptr, out_[r] + 64, bytes_,
                                              TWILL_INT8, 0, comms_[r], streams_[r]),
                                TWILL_OK);
              }),
              TWILL_OK);
    ASSERT_EQ(fake::copies().size(), 9u);
    EXPECT_EQ(find(out_[1] + 64).src, in_[0] + bytes_);
    EXPECT_EQ(find(out_[0] + 64).src, in_[0]);
}

TEST_F(GpuCopy, RanksOfADeviceAreOneKernel)
{
    begin({0, 0, 1}, 2 * MIB);
    ASSERT_EQ(gather_all(), TWILL_OK);
    EXPECT_EQ(fake::launches().size(), 4u);
    EXPECT_EQ(find(TW_GK_COPY_BEGIN, 0).launch.ranks, 2u);
    EXPECT_EQ(find(TW_GK_COPY_END, 1).launch.ranks, 1u);
    EXPECT_EQ(fake::copies().size(), 9u);
    EXPECT_TRUE(before(find(out_[2] + bytes_).point, find(TW_GK_COPY_END, 0).point));
    const fake::Point later = fake::work(streams_[1]);
    EXPECT_TRUE(before(find(out_[1] + 2 * bytes_).point, later)) << "from the other device";
}

/* ---- sends ------------------------------------------------------------------------------------
 */

TEST_F(GpuCopy, SendsOfAGroupWithTheirReceives)
{
    begin({0, 1}, 4 * MIB);
    const auto send = [&](int from, size_t bytes, void *stream) {
        return twill_send(in_[(size_t)from], bytes, TWILL_INT8, 1 - from, comms_[(size_t)from],
                          stream);
    };
    const auto recv = [&](int to, size_t bytes, void *stream) {
        return twill_recv(out_[(size_t)to], bytes, TWILL_INT8, 1 - to, comms_[(size_t)to], stream);
    };
    const fake::Point earlier = fake::work(streams_[1]);
    ASSERT_EQ(group([&] {
                  EXPECT_EQ(send(0, 2 * MIB, streams_[0]), TWILL_OK);
                  EXPECT_EQ(recv(1, 2 * MIB, streams_[1]), TWILL_OK);
                  EXPECT_EQ(recv(0, 100, streams_[0]), TWILL_OK);
                  EXPECT_EQ(send(1, 100, streams_[1]), TWILL_OK);
              }),
              TWILL_OK);
    const fake::Point later = fake::work(streams_[1]);
    ASSERT_EQ(fake::copies().size(), 1u);
    EXPECT_EQ(fake::copies()[0].dst, out_[1]);
    EXPECT_EQ(fake::copies()[0].src, in_[0]);
    EXPECT_EQ(fake::launches().size(), 4u) << "before and behind";
    EXPECT_TRUE(before(earlier, fake::copies()[0].point));
    EXPECT_TRUE(before(fake::copies()[0].point, later));
    EXPECT_TRUE(before(fake::launches()[0].point, fake::copies()[0].point));

    ASSERT_EQ(group([&] {
                  EXPECT_EQ(send(0, 2 * MIB, streams_[0]), TWILL_OK);
                  EXPECT_EQ(recv(1, 2 * MIB - 1, streams_[1]), TWILL_OK);
              }),
              TWILL_OK);
    ASSERT_EQ(group([&] {
                  EXPECT_EQ(send(0, 2 * MIB, streams_[0]), TWILL_OK);
                  EXPECT_EQ(send(0, 100, streams_[0]), TWILL_OK);
                  EXPECT_EQ(recv(1, 2 * MIB, streams_[1]), TWILL_OK);
                  EXPECT_EQ(recv(1, 100, streams_[1]), TWILL_OK);
              }),
              TWILL_OK);
    EXPECT_EQ(fake::copies().size(), 1u) << "other lengths; a list of which some are small";
    ASSERT_EQ(send(0, 2 * MIB, streams_[0]), TWILL_OK);
    ASSERT_EQ(group([&] {
                  EXPECT_EQ(send(0, 2 * MIB, streams_[0]), TWILL_OK);
                  EXPECT_EQ(recv(1, 2 * MIB, streams_[1]), TWILL_OK);
              }),
              TWILL_OK);
    EXPECT_EQ(fake::copies().size(), 1u) << "the receive is of the send before";
    ASSERT_EQ(recv(1, 2 * MIB, streams_[1]), TWILL_OK);
    ASSERT_EQ(group([&] {
                  for (int i = 0; i < 2; i++) {
                      EXPECT_EQ(recv(1, 2 * MIB, streams_[1]), TWILL_OK);
                      EXPECT_EQ(send(0, 2 * MIB, streams_[0]), TWILL_OK);
                      EXPECT_EQ(recv(0, MIB, streams_[0]), TWILL_OK);
                      EXPECT_EQ(send(1, MIB, streams_[1]), TWILL_OK);
                  }
              }),
              TWILL_OK);
    ASSERT_EQ(fake::copies().size(), 5u);
    EXPECT_FALSE(before(fake::copies()[1].point, fake::copies()[3].point)) << "both ways at once";
}

/* ---- by promise ------------------------------------------------------------------------------ */

TEST_F(GpuCopy, SymmetricMemoryNeedsNoGroup)
{
    begin({0, 1}, 2 * MIB);
    enlist(4 * MIB + 64);
    apart();
    out_[0] += 64;
    ASSERT_EQ(gather(0), TWILL_OK);
    ASSERT_EQ(fake::copies().size(), 2u);
    EXPECT_EQ(find(out_[1] + 64).src, in_[0]) << "as far from the start as here";
    const Launch first = find(TW_GK_COPY_BEGIN, 0);
    EXPECT_EQ(first.launch.call[0].out_word, (uint64_t)1 << 63 | 64);
    EXPECT_NE(first.launch.call[0].direct, 0u);
    EXPECT_FALSE(before(find(out_[1] + 64).point, find(out_[0]).point));
    out_[0] += 1;
    ASSERT_EQ(gather(0), TWILL_OK);
    EXPECT_EQ(fake::copies().size(), 2u) << "past its end";
}

TEST_F(GpuCopy, WhatPromisesDoNotTell)
{
    begin({0, 1}, 2 * MIB);
    enlist(4 * MIB);
    apart();
    EXPECT_EQ(twill_gather(in_[0], out_[0], bytes_, TWILL_INT8, 0, comms_[0], streams_[0]),
              TWILL_OK);
    EXPECT_EQ(twill_scatter(in_[0], out_[0], bytes_, TWILL_INT8, 0, comms_[0], streams_[0]),
              TWILL_OK);
    EXPECT_EQ(twill_all_to_all(out_[0], out_[0], bytes_, TWILL_INT8, comms_[0], streams_[0]),
              TWILL_OK);
    EXPECT_FALSE(by_engines());
    EXPECT_EQ(twill_broadcast(out_[0], out_[0], bytes_, TWILL_INT8, 0, comms_[0], streams_[0]),
              TWILL_OK);
    EXPECT_EQ(fake::copies().size(), 1u);
}

/* Engines are slow there, so they are taken only where they are asked for. */
TEST_F(GpuCopy, OtherProcessesMemoryOfSmallPages)
{
    static const struct {
        const char *engine;
        size_t more;
        bool copies;
    } cases[] = {{"auto", 4096, false}, {"auto", 65536, true},  {"auto", 0, true},
                 {"48M", 4096, true},   {"prefer", 4096, true}, {"off", 0, false}};

    for (const auto &one : cases) {
        struct twill_choice choice = TWILL_CHOICE_INIT;

        fake::reset(8);
        begin({0, 1}, 64 * MIB, one.engine, one.more);
        enlist(128 * MIB);
        apart();
        ASSERT_EQ(gather(0), TWILL_OK);
        EXPECT_EQ(by_engines(), one.copies) << one.engine << " " << one.more;
        ASSERT_EQ(twill_comm_choice(comms_[0], "all_gather", bytes_, TWILL_INT8, 0, &choice),
                  TWILL_OK);
        EXPECT_EQ(std::string(choice.proto) == "copy", one.copies);
        destroy();
        streams_.clear();
        in_.clear();
        out_.clear();
    }
}

TEST_F(GpuCopy, SmallPagesOfOneRankCountForAll)
{
    begin({0, 1}, 64 * MIB, "auto", 65536);
    out_[1] = buffer(1, 128 * MIB + 4096);
    enlist(128 * MIB);
    apart();
    ASSERT_EQ(gather(0), TWILL_OK);
    EXPECT_FALSE(by_engines());
}

/* ---- captures -------------------------------------------------------------------------------- */

/* A graph of both, graphs of each, and a call while they are captured: CUDA was not misused. */
TEST_F(GpuCopy, InGraphs)
{
    begin({0, 1}, 2 * MIB);
    const std::vector<void *> outside = streams_;

    streams_ = {fake::stream(0, 7), fake::stream(1, 7)};
    ASSERT_EQ(gather_all(), TWILL_OK) << twill_last_error(nullptr);
    EXPECT_EQ(find(out_[0]).capture, 7u);
    streams_ = outside;
    ASSERT_EQ(gather_all(), TWILL_OK) << twill_last_error(nullptr);
    EXPECT_EQ(fake::copies().back().capture, 0u);
    streams_ = {fake::stream(0, 8), fake::stream(1, 9)};
    ASSERT_EQ(gather_all(), TWILL_OK) << twill_last_error(nullptr);
    EXPECT_EQ(fake::copies().back().capture, 9u);
    EXPECT_EQ(fake::copies().size(), 12u);
}

/* ---- trouble --------------------------------------------------------------------------------- */

TEST_F(GpuCopy, ACallThatCannotBeEndedFailsAllRanks)
{
    begin({0, 1}, 2 * MIB);
    enlist(4 * MIB);
    apart();
    char *place = out_[0]; /* in place: all copies are to peers */
    fake::fail_copies(true);
    EXPECT_EQ(gather(0, place), TWILL_ERR_SYSTEM);
    fake::fail_copies(false);
    expect_all(TWILL_ERR_SYSTEM, "the copy was made to fail");
}

/* A stream that is none: found before any rank's call has begun. */
TEST_F(GpuCopy, AGroupThatCannotBeStarted)
{
    begin({0, 1, 2}, 2 * MIB);
    void *good = streams_[1];
    streams_[1] = fake::stream(0);
    EXPECT_EQ(gather_all(), TWILL_ERR_SYSTEM);
    EXPECT_TRUE(fake::launches().empty());
    EXPECT_EQ(fake::misuse().size(), 1u) << "CUDA was asked what it is";
    streams_[1] = good;
    for (int rank = 0; rank < 3; rank++)
        EXPECT_EQ(tw_comm_status(comms_[(size_t)rank]), TWILL_OK);
    EXPECT_EQ(gather_all(), TWILL_OK);
    destroy();
    fake::reset(8);
}

TEST_F(GpuCopy, AGroupOfWhichSomeHaveBegun)
{
    begin({0, 1}, 2 * MIB);
    fake::fail_copies(true);
    EXPECT_EQ(gather_all(), TWILL_ERR_SYSTEM) << "what a rank copies to itself comes first";
    EXPECT_TRUE(fake::launches().empty());
    EXPECT_EQ(tw_comm_status(comms_[0]), TWILL_OK);
    EXPECT_EQ(group([&] {
                  for (int r = 0; r < 2; r++) /* in place */
                      EXPECT_EQ(gather(r, out_[(size_t)r] + (size_t)r * bytes_), TWILL_OK);
              }),
              TWILL_ERR_SYSTEM);
    EXPECT_EQ(fake::launches().size(), 1u);
    fake::fail_copies(false);
    expect_all(TWILL_ERR_SYSTEM, "the copy was made to fail");
}

TEST_F(GpuCopy, ACallThatWasNotBegunDoesNot)
{
    begin({0, 1}, 2 * MIB);
    enlist(4 * MIB);
    apart();
    fake::fail_launches(TWILL_ERR_SYSTEM);
    EXPECT_EQ(gather(0), TWILL_ERR_SYSTEM);
    fake::fail_launches(TWILL_OK);
    EXPECT_EQ(tw_comm_status(comms_[0]), TWILL_OK);
    EXPECT_EQ(gather(0), TWILL_OK);
}

} // namespace
