/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill_comm_choice promises. Never knows: how plans are chosen. */
#include <gtest/gtest.h>

#include <cstring>

#include "twill.h"

namespace
{

bool same(const struct twill_choice &a, const struct twill_choice &b)
{
    return std::strcmp(a.algo, b.algo) == 0 && std::strcmp(a.proto, b.proto) == 0 &&
           a.channels == b.channels;
}

class Choice : public testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_EQ(twill_comm_init_all(comms_, kRanks, nullptr, nullptr), TWILL_OK)
            << twill_last_error(nullptr);
    }
    /* Ranks of one process meet in destroy: each needs a thread of its own, or an abort first. */
    void TearDown() override
    {
        for (twill_comm_t comm : comms_)
            twill_comm_abort(comm);
        for (twill_comm_t comm : comms_)
            twill_comm_destroy(comm);
    }

    static constexpr int kRanks = 3;
    twill_comm_t comms_[kRanks] = {};
};

TEST_F(Choice, IsTheSameOnEveryRank)
{
    for (const char *coll : {"all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather",
                             "all_to_all", "barrier"})
        for (size_t count : {size_t{0}, size_t{1}, size_t{1} << 20}) {
            struct twill_choice first = TWILL_CHOICE_INIT;
            ASSERT_EQ(twill_comm_choice(comms_[0], coll, count, TWILL_FLOAT32, 2, &first), TWILL_OK)
                << twill_last_error(comms_[0]);
            EXPECT_NE(first.algo[0], 0);
            EXPECT_STREQ(first.proto, "simple");
            EXPECT_GE(first.channels, 1);
            for (int rank = 1; rank < kRanks; rank++) {
                struct twill_choice other = TWILL_CHOICE_INIT;
                ASSERT_EQ(twill_comm_choice(comms_[rank], coll, count, TWILL_FLOAT32, 2, &other),
                          TWILL_OK);
                EXPECT_TRUE(same(first, other)) << coll << " " << count;
            }
        }
}

TEST_F(Choice, RefusesWhatIsNoCall)
{
    struct twill_choice choice = TWILL_CHOICE_INIT;
    const struct twill_choice before = choice;
    EXPECT_EQ(twill_comm_choice(nullptr, "all_reduce", 1, TWILL_INT32, 0, &choice),
              TWILL_ERR_INVALID);
    EXPECT_EQ(twill_comm_choice(comms_[0], "reduce_all", 1, TWILL_INT32, 0, &choice),
              TWILL_ERR_INVALID);
    EXPECT_NE(std::strstr(twill_last_error(comms_[0]), "reduce_all"), nullptr);
    EXPECT_EQ(twill_comm_choice(comms_[0], nullptr, 1, TWILL_INT32, 0, &choice), TWILL_ERR_INVALID);
    EXPECT_EQ(twill_comm_choice(comms_[0], "reduce", 1, TWILL_INT32, kRanks, &choice),
              TWILL_ERR_INVALID);
    EXPECT_EQ(twill_comm_choice(comms_[0], "reduce", 1, static_cast<twill_type_t>(99), 0, &choice),
              TWILL_ERR_INVALID);
    EXPECT_EQ(twill_comm_choice(comms_[0], "all_gather", SIZE_MAX / 4, TWILL_INT32, 0, &choice),
              TWILL_ERR_INVALID);
    EXPECT_EQ(twill_comm_choice(comms_[0], "all_gather", 1, TWILL_INT32, 0, nullptr),
              TWILL_ERR_INVALID);
    EXPECT_TRUE(same(choice, before));
    choice.magic = 0;
    EXPECT_EQ(twill_comm_choice(comms_[0], "all_gather", 1, TWILL_INT32, 0, &choice),
              TWILL_ERR_INVALID);
}

} // namespace
