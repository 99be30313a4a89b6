/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what kernels write for the host, and what ranks are told of it. Never knows: when kernels
 * write it. */
#include <cstring>
#include <fstream>

#include "gpu_ranks.h"

namespace
{

struct Words {
    uint32_t word[TW_GK_WORDS] = {};
};

Words words(uint32_t coll, uint32_t type, uint32_t op, uint32_t root, uint64_t bytes)
{
    Words made;
    made.word[TW_GK_WORD_CALL] = coll << 24 | type << 16 | op << 8;
    made.word[TW_GK_WORD_PATH] = root << 16 | 3;
    made.word[TW_GK_WORD_COUNT] = (uint32_t)bytes;
    made.word[TW_GK_WORD_COUNT + 1] = (uint32_t)(bytes >> 32);
    return made;
}

std::string text(const Words &words)
{
    char text[TW_GPU_CALL_TEXT_BYTES];
    memset(text, 'x', sizeof text);
    tw_gpu_call_text(words.word, text);
    EXPECT_LT(strnlen(text, sizeof text), sizeof text);
    return text;
}

/* ---- words ---------------------------------------------------------------------------------- */

TEST(GpuCallText, SaysCallCountTypeOperationAndRoot)
{
    EXPECT_EQ(text(words(TW_COLL_ALL_REDUCE, TWILL_FLOAT32, TWILL_SUM, 0, 400)),
              "all_reduce count 100 float32 sum");
    EXPECT_EQ(text(words(TW_COLL_REDUCE, TWILL_INT64, TWILL_MAX, 63, 16)),
              "reduce count 2 int64 max root 63");
    EXPECT_EQ(text(words(TW_COLL_BROADCAST, TWILL_BFLOAT16, TWILL_SUM, 1, 6)),
              "broadcast count 3 bfloat16 root 1");
    EXPECT_EQ(text(words(TW_COLL_ALL_TO_ALL, TWILL_FLOAT64, TWILL_SUM, 0, (uint64_t)1 << 43)),
              "all_to_all count 1099511627776 float64");
    EXPECT_EQ(text(words(TW_COLL_REDUCE_SCATTER, TWILL_UINT8, TW_GK_PREMUL, 0, 0)),
              "reduce_scatter count 0 uint8 premul_sum");
}

TEST(GpuCallText, WhateverTheWordsAre)
{
    const std::string none = "something that is no call";
    EXPECT_EQ(text(words(TW_COLL_COUNT, TWILL_FLOAT32, TWILL_SUM, 0, 4)), none);
    EXPECT_EQ(text(words(255, TWILL_FLOAT32, TWILL_SUM, 0, 4)), none);
    EXPECT_EQ(text(words(TW_COLL_ALL_REDUCE, 12, TWILL_SUM, 0, 4)), none);
    EXPECT_EQ(text(words(TW_COLL_ALL_REDUCE, 255, TWILL_SUM, 0, 4)), none);
    for (uint32_t call = 0; call < 1 << 16; call++) {
        Words all;
        for (uint32_t &word : all.word)
            word = UINT32_MAX;
        all.word[TW_GK_WORD_CALL] = call << 16 | (call * 7 & 0xff) << 8;
        EXPECT_NE(text(all), "");
    }
}

/* ---- what a kernel has found ---------------------------------------------------------------- */

class GpuWatch : public GpuRanks
{
  protected:
    void SetUp() override
    {
        GpuRanks::SetUp();
        path_ = testing::TempDir() + "twill-gpu-watch-" + std::to_string(getpid());
    }
    void TearDown() override
    {
        GpuRanks::TearDown();
        (void)remove(path_.c_str());
    }
    void put(uint32_t to[TW_GK_WORDS], const Words &words) const
    {
        for (int i = 0; i < TW_GK_WORDS; i++)
            __atomic_store_n(&to[i], words.word[i], __ATOMIC_RELAXED);
    }
    void trouble(int rank, uint32_t peer, uint32_t epoch, uint32_t what)
    {
        struct tw_gk_host *host = gpu(rank)->host;
        __atomic_store_n(&host->trouble_peer, peer, __ATOMIC_RELAXED);
        __atomic_store_n(&host->trouble_epoch, epoch, __ATOMIC_RELAXED);
        __atomic_store_n(&host->trouble, what, __ATOMIC_RELEASE);
    }
    void wait_begins(int rank, uint32_t peer, uint32_t epoch, const Words &words)
    {
        struct tw_gk_host *host = gpu(rank)->host;
        put(host->wait_words, words);
        __atomic_store_n(&host->wait_peer, peer, __ATOMIC_RELAXED);
        __atomic_store_n(&host->wait_epoch, epoch, __ATOMIC_RELAXED);
        __atomic_store_n(&host->waiting, 1, __ATOMIC_RELEASE);
    }
    void wait_ends(int rank) { __atomic_store_n(&gpu(rank)->host->waiting, 0, __ATOMIC_RELEASE); }
    std::string path_;
    const Words sum_ = words(TW_COLL_ALL_REDUCE, TWILL_FLOAT32, TWILL_SUM, 0, 400);
    const Words cast_ = words(TW_COLL_BROADCAST, TWILL_INT8, TWILL_SUM, 2, 3);
};

TEST_F(GpuWatch, AMismatchIsToldToEveryRank)
{
    make({0, 1, 2});
    put(gpu(1)->host->mine, sum_);
    put(gpu(1)->host->last, cast_);
    put(gpu(1)->host->theirs, cast_);
    trouble(1, 2, 17, TW_GK_MISMATCH);
    expect_all(TWILL_ERR_MISMATCH,
               "calls do not match: call 17 of rank 1 is all_reduce count 100 float32 sum, that of "
               "rank 2 broadcast count 3 int8 root 2");
}

TEST_F(GpuWatch, AMismatchOfTheCallBefore)
{
    make({0, 1});
    put(gpu(0)->host->mine, cast_);
    put(gpu(0)->host->last, sum_);
    put(gpu(0)->host->theirs, cast_);
    trouble(0, 1, 17, TW_GK_MISMATCH_BEFORE);
    expect_all(TWILL_ERR_MISMATCH,
               "calls do not match: call 16 of rank 0 is all_reduce count 100 float32 sum, that of "
               "rank 1 broadcast count 3 int8 root 2");
}

TEST_F(GpuWatch, AStoppedKernelIsNoNews)
{
    make({0, 1}, {{"TIMEOUT", "20ms"}});
    trouble(0, 1, 17, TW_GK_STOPPED);
    wait_begins(1, 0, 3, sum_); /* the watch has looked at rank 0 by the time that rank 1 is late */
    EXPECT_TRUE(fails_within(comms_[1], 10000));
    expect_all(TWILL_ERR_TIMEOUT, "rank 1 has waited");
}

TEST_F(GpuWatch, TheFirstFailureIsKept)
{
    make({0, 1});
    EXPECT_EQ(twill_comm_abort(comms_[0]), TWILL_OK);
    put(gpu(0)->host->theirs, cast_);
    trouble(0, 1, 17, TW_GK_MISMATCH);
    expect_all(TWILL_ERR_ABORTED, "");
}

/* ---- long waits ----------------------------------------------------------------------------- */

TEST_F(GpuWatch, ALateRankIsNamedAtTheTimeout)
{
    make({0, 1}, {{"TIMEOUT", "30ms"}, {"WARN", "0"}});
    wait_begins(0, 1, 5, cast_);
    expect_all(TWILL_ERR_TIMEOUT, "for rank 1 in call 5, broadcast count 3 int8 root 2");
    expect_all(TWILL_ERR_TIMEOUT, "rank 0 has waited ");
}

TEST_F(GpuWatch, ALateRankIsWarnedOfOnceInACall)
{
    make({0, 1}, {{"WARN", "20ms"}, {"LOG_FILE", path_}});
    const auto warnings = [&](const std::string &call) {
        const std::string all = file_text(path_);
        int count = 0;
        for (size_t at = all.find(call); at != std::string::npos; at = all.find(call, at + 1))
            count++;
        return count;
    };
    wait_begins(0, 1, 5, sum_);
    wait_for([&] { return warnings("rank 1 in call 5, all_reduce count 100 float32 sum") != 0; });
    wait_begins(0, 1, 6, sum_); /* another call of the same kind: its wait begins anew */
    wait_for([&] { return warnings("rank 1 in call 6, ") != 0; });
    wait_ends(0);
    EXPECT_EQ(warnings("in call 5, "), 1);
    EXPECT_EQ(warnings("in call 6, "), 1);
    for (twill_comm_t comm : comms_)
        EXPECT_EQ(tw_comm_status(comm), TWILL_OK);
}

TEST_F(GpuWatch, AWaitThatEndsIsForgotten)
{
    make({0, 1});
    const auto since = [&] {
        struct tw_loop *loop = comms_[0]->ctl->loop;
        tw_loop_lock(loop);
        const uint64_t ns = gpu(0)->wait_since_ns;
        tw_loop_unlock(loop);
        return ns;
    };
    wait_begins(0, 1, 5, sum_);
    wait_for([&] { return since() != 0; });
    const uint64_t first = since();
    wait_ends(0);
    wait_for([&] { return since() == 0; });
    wait_begins(0, 1, 5, sum_); /* another wait of the same call */
    wait_for([&] { return since() != 0; });
    EXPECT_GT(since(), first);
    wait_begins(0, 1, 6, sum_); /* the next call's, which the watch did not see end */
    const uint64_t second = since();
    wait_for([&] { return since() > second; });
    wait_ends(0);
}

TEST_F(GpuWatch, WithoutATimeoutAWaitGoesOn)
{
    make({0, 1}, {{"TIMEOUT", "0"}, {"WARN", "20ms"}, {"LOG_FILE", path_}});
    wait_begins(0, 1, 9, sum_);
    wait_for([&] { return file_text(path_).find("in call 9") != std::string::npos; });
    EXPECT_EQ(tw_comm_status(comms_[0]), TWILL_OK);
    wait_ends(0);
}

} // namespace
