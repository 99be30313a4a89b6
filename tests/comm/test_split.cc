/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what splits keep, and when they let go of it.
 * Never knows: the C API. */
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "ranks.h"

extern "C" {
#include "comm/control.h"
#include "comm/split.h"
}

namespace
{

/* Two ranks of this process, connected. */
struct Two {
    std::unique_ptr<Comm> rank[2];
    Two()
    {
        const twill_unique_id id = new_id();
        for (int r = 0; r < 2; r++)
            rank[r] = std::make_unique<Comm>(args_of(r, 2, id));
        on_threads(2, [this](int r) { EXPECT_EQ(rank[r]->connect(), TWILL_OK); });
    }
    ~Two()
    {
        on_threads(2, [this](int r) { rank[r]->finalize(); });
    }
    Two(const Two &) = delete;
    Two &operator=(const Two &) = delete;
};

TEST(Split, RanksShareASecretAndOthersHaveAnother)
{
    Two a, b;
    EXPECT_EQ(memcmp(a.rank[0]->get()->secret, a.rank[1]->get()->secret, TW_KEY_BYTES), 0);
    EXPECT_NE(memcmp(a.rank[0]->get()->secret, b.rank[0]->get()->secret, TW_KEY_BYTES), 0);
    struct tw_split *split = nullptr;
    ASSERT_EQ(tw_split_create(a.rank[0]->get(), 3, 0, false, &split), TWILL_OK);
    struct tw_split_entry leader = split->own;
    struct tw_split_meet one, same, other, shrink;
    tw_split_meet_derive(split, &leader, &one);
    tw_split_meet_derive(split, &leader, &same);
    leader.nonce[1]++;
    tw_split_meet_derive(split, &leader, &other);
    tw_split_meet_derive(split, nullptr, &shrink);
    EXPECT_STREQ(one.name, same.name);
    EXPECT_EQ(memcmp(one.key, same.key, sizeof(one.key)), 0);
    EXPECT_STRNE(one.name, other.name);
    EXPECT_STRNE(one.name, shrink.name);
    EXPECT_NE(memcmp(one.key, other.key, sizeof(one.key)), 0);
    EXPECT_NE(memcmp(one.key, shrink.key, sizeof(one.key)), 0);
    tw_split_put(split);
}

/* Told each other their colors, one rank cannot go on: the other must not wait for it. */
static void fail_parent()
{
    Two parent;
    struct tw_split *split = nullptr;
    struct twill_comm *child = nullptr;
    struct tw_comm_args args = parent.rank[0]->get()->args;
    ASSERT_EQ(tw_split_create(parent.rank[0]->get(), 0, 0, false, &split), TWILL_OK);
    split->entries[0] = split->own;
    split->entries[1] = split->own;
    ASSERT_EQ(tw_split_child(parent.rank[0]->get(), split, &args, &child), TWILL_OK);
    tw_split_put(split);
    ASSERT_EQ(tw_comm_connect(&child, 1, false), TWILL_INPROGRESS);
    tw_comm_fail(parent.rank[1]->get(), TWILL_ERR_PEER, "rank 1 is not well");
    EXPECT_TRUE(fails_within(child, 5000));
    EXPECT_EQ(tw_comm_status(child), TWILL_ERR_PEER);
    EXPECT_NE(std::string(child->failure).find("split: rank 1 is not well"), std::string::npos)
        << child->failure;
    tw_comm_give_up(child);
}

TEST(Split, AParentThatFailsEndsWhatHasNotMet)
{
    const Count before = count_now();
    fail_parent();
    EXPECT_TRUE(count_returns(before)); /* the meeting point goes too */
}

} // namespace
