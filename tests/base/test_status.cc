/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/status.c. Never knows: how it keeps its sentences. */
#include <cerrno>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "base/log.h"
#include "base/status.h"
}

namespace
{

class Status : public testing::Test
{
  protected:
    void SetUp() override { tw_log_configure("none", nullptr); }
    void TearDown() override { tw_log_configure(nullptr, nullptr); }
};

TEST_F(Status, NamesAreWhatTheHeaderSays)
{
    EXPECT_STREQ("TWILL_OK", twill_status_string(TWILL_OK));
    EXPECT_STREQ("TWILL_INPROGRESS", twill_status_string(TWILL_INPROGRESS));
    EXPECT_STREQ("TWILL_ERR_VERSION", twill_status_string(TWILL_ERR_VERSION));
    EXPECT_STREQ("TWILL_UNKNOWN", twill_status_string(static_cast<twill_status>(-19)));
}

TEST_F(Status, ValuesAreFrozen)
{
    EXPECT_EQ(0, TWILL_OK);
    EXPECT_EQ(1, TWILL_INPROGRESS);
    EXPECT_EQ(-1, TWILL_ERR_INVALID);
    EXPECT_EQ(-23, TWILL_ERR_INTERNAL);
    EXPECT_EQ(-40, TWILL_ERR_PEER);
    EXPECT_EQ(-45, TWILL_ERR_VERSION);
    EXPECT_FALSE(tw_failed(TWILL_INPROGRESS));
    EXPECT_TRUE(tw_failed(TWILL_ERR_AUTH));
}

TEST_F(Status, FailReturnsItsStatusAndKeepsTheSentence)
{
    EXPECT_EQ(TWILL_ERR_USAGE, tw_fail(TWILL_ERR_USAGE, "thing %d has %s", 7, "gone"));
    EXPECT_STREQ("thing 7 has gone", tw_fail_text());
}

TEST_F(Status, FailErrnoAddsTheReason)
{
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_fail_errno(TWILL_ERR_SYSTEM, ENOSPC, "file \"%s\"", "a"));
    EXPECT_EQ(std::string("file \"a\": ") + std::strerror(ENOSPC), tw_fail_text());
}

TEST_F(Status, ASentenceMayQuoteThePreviousOne)
{
    tw_fail(TWILL_ERR_PEER, "inner");
    tw_fail(TWILL_ERR_PEER, "outer: %s", tw_fail_text());
    EXPECT_STREQ("outer: inner", tw_fail_text());
}

TEST_F(Status, AFailureSaidElsewhereBecomesThisThreads)
{
    tw_fail(TWILL_ERR_USAGE, "before");
    EXPECT_EQ(TWILL_ERR_PEER, tw_fail_again(TWILL_ERR_PEER, "said by another thread"));
    EXPECT_STREQ("said by another thread", tw_fail_text());
    EXPECT_EQ(TWILL_ERR_PEER, tw_fail_again(TWILL_ERR_PEER, tw_fail_text()));
    EXPECT_STREQ("said by another thread", tw_fail_text());
    tw_fail_again(TWILL_ERR_PEER, std::string(5000, 'x').c_str());
    EXPECT_EQ(std::string(TW_ERROR_TEXT_BYTES - 1, 'x'), tw_fail_text());
}

TEST_F(Status, LongSentencesAreCut)
{
    std::string text(5000, 'x');
    tw_fail(TWILL_ERR_PEER, "%s", text.c_str());
    EXPECT_EQ(std::string(TW_ERROR_TEXT_BYTES - 1, 'x'), tw_fail_text());
    tw_fail_errno(TWILL_ERR_PEER, EIO, "%s", text.c_str());
    EXPECT_EQ(std::string(TW_ERROR_TEXT_BYTES - 1, 'x'), tw_fail_text());
}

TEST_F(Status, EachKeyKeepsItsOwn)
{
    std::thread([] {
        const uint64_t a = 1, b = UINT64_MAX;
        EXPECT_EQ(nullptr, tw_last_error_find(a));
        EXPECT_EQ(nullptr, tw_last_error_find(0));
        tw_fail(TWILL_ERR_PEER, "of a");
        tw_last_error_keep(a);
        tw_last_error_set(b, "of b");
        tw_last_error_set(0, "of none");
        EXPECT_STREQ("of a", tw_last_error_find(a));
        EXPECT_STREQ("of b", tw_last_error_find(b));
        EXPECT_STREQ("of none", tw_last_error_find(0));
        tw_last_error_set(a, tw_last_error_find(b));
        EXPECT_STREQ("of b", tw_last_error_find(a));
        tw_last_error_set(a, tw_last_error_find(a));
        EXPECT_STREQ("of b", tw_last_error_find(a));
    }).join();
}

TEST_F(Status, TheNewestSixteenKeysAreRemembered)
{
    std::thread([] {
        tw_last_error_set(0, "of none"); /* beside them */
        for (uint64_t key = 100; key < 120; key++)
            tw_last_error_set(key, std::to_string(key).c_str());
        EXPECT_STREQ("of none", tw_last_error_find(0));
        for (uint64_t key = 100; key < 104; key++)
            EXPECT_EQ(nullptr, tw_last_error_find(key)) << key;
        for (uint64_t key = 104; key < 120; key++)
            EXPECT_EQ(std::to_string(key), tw_last_error_find(key)) << key;
        tw_last_error_set(104, "again"); /* now the newest: the next one drops 105 */
        tw_last_error_set(100, "0");
        EXPECT_STREQ("again", tw_last_error_find(104));
        EXPECT_EQ(nullptr, tw_last_error_find(105));
    }).join();
}

TEST_F(Status, ThreadsDoNotSeeEachOther)
{
    static const uint64_t key = 77;
    tw_fail(TWILL_ERR_PEER, "mine");
    tw_last_error_keep(key);
    std::thread([] {
        EXPECT_STREQ("", tw_fail_text());
        EXPECT_EQ(nullptr, tw_last_error_find(key));
        tw_fail(TWILL_ERR_PEER, "theirs");
        tw_last_error_keep(key);
    }).join();
    EXPECT_STREQ("mine", tw_fail_text());
    EXPECT_STREQ("mine", tw_last_error_find(key));
}

TEST_F(Status, TypesHaveBytesAndNames)
{
    EXPECT_EQ(1u, tw_type_bytes(TWILL_INT8));
    EXPECT_EQ(2u, tw_type_bytes(TWILL_BFLOAT16));
    EXPECT_EQ(4u, tw_type_bytes(TWILL_FLOAT32));
    EXPECT_EQ(8u, tw_type_bytes(TWILL_FLOAT64));
    EXPECT_EQ(1u, tw_type_bytes(TWILL_FLOAT8E5M2));
    EXPECT_STREQ("bfloat16", tw_type_name(TWILL_BFLOAT16));
    EXPECT_STREQ("float8e4m3", tw_type_name(TWILL_FLOAT8E4M3));
    for (int bad : {-1, 12, 1000000, INT32_MIN, INT32_MAX}) {
        EXPECT_EQ(0u, tw_type_bytes(static_cast<twill_type_t>(bad))) << bad;
        EXPECT_EQ(nullptr, tw_type_name(static_cast<twill_type_t>(bad))) << bad;
        EXPECT_EQ(nullptr, tw_redop_name(static_cast<twill_redop_t>(bad))) << bad;
    }
    for (int type = 0; type < 12; type++)
        EXPECT_NE(nullptr, tw_type_name(static_cast<twill_type_t>(type))) << type;
    EXPECT_STREQ("sum", tw_redop_name(TWILL_SUM));
    EXPECT_STREQ("avg", tw_redop_name(TWILL_AVG));
}

} // namespace
