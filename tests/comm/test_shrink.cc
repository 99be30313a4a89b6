/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a shrink takes from its parent, shows on its board and leaves behind.
 * Never knows: the C API, how survivors connect. */
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "inject.h"
#include "ranks.h"

extern "C" {
#include "comm/control.h"
#include "comm/record.h"
#include "comm/split.h"
}

namespace
{

class ShrinkParts : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        before_ = count_now();
        const twill_unique_id id = new_id();
        for (int r = 0; r < 2; r++)
            parents_[r] = std::make_unique<Comm>(args_of(r, 2, id));
        on_threads(2, [&](int r) { ASSERT_EQ(parents_[r]->connect(), TWILL_OK); });
    }
    void TearDown() override
    {
        for (struct twill_comm *child : children_)
            tw_comm_give_up(child);
        for (auto &parent : parents_)
            parent.reset();
        EXPECT_TRUE(count_returns(before_));
    }
    struct twill_comm *parent(int r) { return parents_[r]->get(); }
    /* Rank r's new communicator, not connected. */
    struct twill_comm *child(int r, bool blocking)
    {
        struct tw_split *split = nullptr;
        struct twill_comm *made = nullptr;
        struct tw_comm_args args = parent(r)->args;
        args.blocking = blocking;
        EXPECT_EQ(tw_shrink_create(parent(r), nullptr, 0, &split), TWILL_OK);
        EXPECT_EQ(tw_split_child(parent(r), split, &args, &made), TWILL_OK);
        tw_split_put(split);
        children_.push_back(made);
        return made;
    }
    int life(int r) { return (int)tw_record_word(&tw_record_board(parent(1 - r), r)->life); }
    int rolls()
    {
        int count = 0;
        tw_loop_lock(tw_proc_state()->loop);
        for (const struct tw_roll *roll = tw_proc_state()->rolls; roll; roll = roll->next)
            count++;
        tw_loop_unlock(tw_proc_state()->loop);
        return count;
    }
    std::unique_ptr<Comm> parents_[2];
    std::vector<struct twill_comm *> children_;
    Count before_;
};

TEST_F(ShrinkParts, ARollIsCalledWhileTheSplitLives)
{
    const int before = rolls();
    struct tw_split *split = nullptr;
    ASSERT_EQ(tw_shrink_create(parent(0), nullptr, 0, &split), TWILL_OK);
    ASSERT_NE(split->roll, nullptr);
    EXPECT_EQ(rolls(), before + 1);
    EXPECT_EQ(split->stream, nullptr) << "it has no all_gather";
    for (int r = 0; r < 2; r++) {
        EXPECT_FALSE(split->roll->lost[r]);
        EXPECT_EQ(memcmp(&split->roll->procs[r], &parent(0)->proc->id, sizeof(struct tw_proc_id)),
                  0);
    }
    tw_split_put(split);
    EXPECT_EQ(rolls(), before);
}

/* A loss that the parent has seen and not made a failure of yet is known to the new one. */
TEST_F(ShrinkParts, KnowsWhomTheParentHasLost)
{
    tw_loop_lock(tw_proc_state()->loop);
    parent(0)->ctl->peers[1].lost = true;
    tw_loop_unlock(tw_proc_state()->loop);
    struct tw_split *split = nullptr;
    ASSERT_EQ(tw_shrink_create(parent(0), nullptr, 0, &split), TWILL_OK);
    tw_loop_lock(tw_proc_state()->loop);
    parent(0)->ctl->peers[1].lost = false;
    tw_loop_unlock(tw_proc_state()->loop);
    EXPECT_FALSE(split->roll->lost[0]);
    EXPECT_TRUE(split->roll->lost[1]);
    tw_split_put(split);
}

TEST_F(ShrinkParts, WithoutMemoryNothingIsLeft)
{
    const int before = rolls();
    struct tw_split *split = nullptr;
    int tries = 0;
    for (; tries < 20 && !split; tries++) {
        inject::alloc_fails(tries);
        const enum twill_status status = tw_shrink_create(parent(0), nullptr, 0, &split);
        EXPECT_EQ(status, inject::done() ? TWILL_ERR_NOMEM : TWILL_OK) << tries;
        EXPECT_EQ(split == nullptr, status != TWILL_OK);
        EXPECT_EQ(rolls(), before + (status == TWILL_OK));
    }
    EXPECT_GT(tries, 4) << "split, entries, and a roll's three";
    tw_split_put(split);
}

/* A peer in a call of the parent is told what this rank does, as long as it waits here. */
TEST_F(ShrinkParts, TheBoardSaysSoWhileItBlocks)
{
    struct twill_comm *waits = child(0, true), *aside = child(1, false);
    EXPECT_EQ(tw_shrink_ready(aside), TWILL_OK);
    EXPECT_EQ(life(1), TW_LIFE_OPEN) << "its calls may still be on their way";
    EXPECT_EQ(tw_shrink_ready(waits), TWILL_OK);
    EXPECT_EQ(life(0), TW_LIFE_SHRINKING);
    struct tw_id ids[2];
    memcpy(&ids[0], &waits->args.id, sizeof(ids[0]));
    memcpy(&ids[1], &aside->args.id, sizeof(ids[1]));
    EXPECT_STREQ(ids[0].meet, ids[1].meet) << "both go to one meeting point";
    EXPECT_EQ(memcmp(ids[0].key, ids[1].key, sizeof(ids[0].key)), 0);
    tw_shrink_over(aside);
    EXPECT_EQ(life(0), TW_LIFE_SHRINKING);
    tw_shrink_over(waits);
    EXPECT_EQ(life(0), TW_LIFE_OPEN);
}

/* What a board says of a failure or of leaving is not overwritten. */
TEST_F(ShrinkParts, TheBoardOfAFailedParentStays)
{
    struct twill_comm *waits = child(0, true);
    tw_comm_fail(parent(0), TWILL_ERR_USAGE, "not well");
    ASSERT_TRUE(fails_within(parent(0), 1000));
    const int failed = life(0);
    EXPECT_NE(failed, TW_LIFE_OPEN);
    EXPECT_EQ(tw_shrink_ready(waits), TWILL_OK);
    EXPECT_EQ(life(0), failed);
    tw_shrink_over(waits);
    EXPECT_EQ(life(0), failed);
}

TEST_F(ShrinkParts, TheParentMayBeGone)
{
    struct twill_comm *waits = child(0, true);
    parents_[0].reset();
    EXPECT_EQ(tw_shrink_ready(waits), TWILL_OK);
    tw_shrink_over(waits);
    EXPECT_NE(waits->args.id.bytes[0], 0);
}

/* Whoever opens the meeting point first is the host, once. */
TEST_F(ShrinkParts, OneIsTheHost)
{
    struct twill_comm *first = child(1, false), *second = child(0, false);
    for (struct twill_comm *one : {first, second})
        EXPECT_EQ(tw_shrink_ready(one), TWILL_OK);
    EXPECT_EQ(tw_shrink_host(first), TWILL_OK);
    EXPECT_TRUE(first->args.own_id);
    EXPECT_EQ(tw_shrink_host(second), TWILL_OK) << "somebody else is it: no error";
    EXPECT_FALSE(second->args.own_id);
    EXPECT_EQ(tw_shrink_host(first), TWILL_OK);
    EXPECT_TRUE(first->args.own_id) << "it comes again and still is";
    tw_id_give_up(&first->args.id, TWILL_ERR_ABORTED, "given up"); /* as its init would */
    EXPECT_EQ(tw_shrink_host(second), TWILL_OK);
    EXPECT_TRUE(second->args.own_id) << "the place was free for it";
    tw_id_give_up(&second->args.id, TWILL_ERR_ABORTED, "given up");
}

} // namespace
