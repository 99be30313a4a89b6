/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what splits keep, and when they let go of it.
 * Never knows: what a split communicator is used for. */
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "../api/world.h"
#include "inject.h"
#include "ranks.h"

extern "C" {
#include "comm/control.h"
#include "comm/group.h"
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

/* ---- the public calls -------------------------------------------------------------------------
 */

enum twill_status make_child(twill_comm_t comm, bool shrink, twill_comm_t *child,
                             const twill_config *config)
{
    return shrink ? twill_comm_shrink(comm, child, config)
                  : twill_comm_split(comm, 2147483647, 0, child, config);
}

std::string name_of_child(const char *parent_name, bool shrink, const char *own)
{
    twill_comm_t comm = nullptr, child = nullptr;
    twill_config config = TWILL_CONFIG_INIT;
    config.name = parent_name;
    EXPECT_OK(twill_comm_init_all(&comm, 1, nullptr, &config), nullptr);
    config.name = own;
    EXPECT_OK(make_child(comm, shrink, &child, own ? &config : nullptr), comm);
    const std::string name = child ? child->args.name : "";
    EXPECT_OK(twill_comm_destroy(child), nullptr);
    EXPECT_OK(twill_comm_destroy(comm), nullptr);
    return name;
}

TEST(SplitCall, ChildrenAreNamedAfterTheirParents)
{
    world::run_alone([] {
        const std::string longest(TW_COMM_NAME_BYTES - 1, 'n');
        EXPECT_EQ(name_of_child("job", false, nullptr), "job/2147483647");
        EXPECT_EQ(name_of_child("job", true, nullptr), "job-");
        for (const bool shrink : {false, true})
            EXPECT_EQ(name_of_child("job", shrink, "own"), "own");
        EXPECT_EQ(name_of_child(longest.c_str(), false, nullptr),
                  longest.substr(0, TW_COMM_NAME_BYTES - 16) + "/2147483647");
        EXPECT_EQ(name_of_child(longest.c_str(), true, nullptr),
                  longest.substr(0, TW_COMM_NAME_BYTES - 2) + "-");
    });
}

/* Memory ends at the fine-th allocation of the calling thread. @return false: it did not end */
bool end_memory(bool shrink, bool group, bool blocking, int fine)
{
    twill_comm_t comm = nullptr, child = nullptr;
    twill_config config = TWILL_CONFIG_INIT;
    EXPECT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
    config.blocking = blocking;
    /* the first small all_gather makes plans for all others, as far as memory goes */
    char byte = 0;
    EXPECT_OK(twill_all_gather(&byte, &byte, 1, TWILL_UINT8, comm, nullptr), comm);
    if (group) {
        EXPECT_OK(twill_group_start(), nullptr);
    }
    inject::alloc_fails(fine);
    enum twill_status status = make_child(comm, shrink, &child, &config);
    const bool at_end = group && !tw_failed(status);
    if (at_end) {
        status = twill_group_end();
    } else if (group) {
        EXPECT_OK(twill_group_end(), nullptr);
    }
    const bool ended = inject::done();
    if (ended) {
        EXPECT_EQ(status, TWILL_ERR_NOMEM);
        EXPECT_EQ(child, nullptr);
        EXPECT_TRUE(contains(world::text(at_end ? nullptr : comm), "memory"))
            << fine << world::text(at_end ? nullptr : comm);
    } else {
        while (status == TWILL_INPROGRESS)
            EXPECT_OK(twill_comm_async_error(child, &status), child);
        EXPECT_EQ(status, TWILL_OK);
    }
    EXPECT_FALSE(tw_group_active());
    EXPECT_EQ(comm->user, 0u);
    EXPECT_OK(twill_comm_destroy(child), nullptr);
    EXPECT_OK(twill_comm_destroy(comm), nullptr);
    return ended;
}

TEST(SplitCall, WithoutMemoryNothingIsLeft)
{
    for (int way = 0; way < 8; way++) {
        SCOPED_TRACE(way);
        world::run_alone([way] {
            const Count before = count_now();
            int fine = 0;
            while (fine < 1000 && end_memory(way & 1, way & 2, way & 4, fine))
                fine++;
            EXPECT_GT(fine, 3);
            EXPECT_LT(fine, 1000);
            EXPECT_TRUE(count_returns(before));
        });
    }
}

/* Another thread is inside a call of the parent. */
TEST(SplitCall, ABusyParentMakesNoChild)
{
    world::run_alone([] {
        twill_comm_t comm = nullptr, child = nullptr;
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
        world::threads(1, [&](int) { ASSERT_EQ(tw_ops_claim(comm, "test"), TWILL_OK); });
        for (const bool shrink : {false, true}) {
            EXPECT_EQ(make_child(comm, shrink, &child, nullptr), TWILL_ERR_BUSY);
            EXPECT_EQ(child, nullptr);
        }
        tw_ops_unclaim(comm);
        EXPECT_OK(make_child(comm, true, &child, nullptr), comm);
        EXPECT_OK(twill_comm_destroy(child), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

} // namespace
