/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a roll says of its ranks, and who of them is told. Never knows: what a shrink does.
 */
#include <gtest/gtest.h>

#include "inject.h"
#include "ranks.h"

extern "C" {
#include "comm/control.h"
#include "comm/roll.h"
}

namespace
{

TEST(Roll, MarksWhoseProcessEnds)
{
    struct tw_proc *proc = nullptr;
    ASSERT_EQ(tw_proc_get(&proc), TWILL_OK);
    struct tw_proc_state *state = tw_proc_state();
    struct tw_roll *roll = tw_roll_create(3);
    ASSERT_NE(roll, nullptr);
    for (int r = 0; r < 3; r++)
        roll->procs[r].nonce[0] = (uint8_t)(r / 2 + 1); /* ranks 0 and 1 in one process */
    struct tw_roll *copy = tw_roll_copy(roll);
    ASSERT_NE(copy, nullptr);
    int told = 0;
    copy->owner = &told;
    copy->on_lost = [](struct tw_roll *r) { ++*static_cast<int *>(r->owner); };
    struct tw_proc_id stranger = roll->procs[0];
    stranger.nonce[1] = 9;
    tw_loop_lock(state->loop);
    tw_roll_call(state, roll);
    tw_roll_call(state, copy);
    tw_rolls_lost(state, &stranger);
    EXPECT_EQ(told, 0);
    tw_roll_end(state, roll);
    tw_rolls_lost(state, &roll->procs[1]);
    tw_roll_end(state, copy);
    tw_rolls_lost(state, &roll->procs[2]);
    tw_loop_unlock(state->loop);
    EXPECT_EQ(told, 1);
    EXPECT_FALSE(roll->lost[0] || roll->lost[1] || roll->lost[2]);
    EXPECT_TRUE(copy->lost[0] && copy->lost[1]);
    EXPECT_FALSE(copy->lost[2]);
    tw_roll_destroy(copy);
    tw_roll_destroy(roll);
    tw_roll_destroy(nullptr);
    tw_proc_put();
}

/* Rolls by hand: the list is the state's only field that they use. */
struct List {
    struct tw_proc_state state = {};
    struct tw_roll *rolls[3];
    List()
    {
        for (struct tw_roll *&roll : rolls) {
            roll = tw_roll_create(1);
            tw_roll_call(&state, roll);
        }
    }
    ~List()
    {
        for (struct tw_roll *roll : rolls)
            tw_roll_destroy(roll);
    }
    int called() const
    {
        int count = 0;
        const struct tw_roll *before = nullptr;
        for (const struct tw_roll *roll = state.rolls; roll != nullptr; roll = roll->next) {
            EXPECT_EQ(roll->prev, before);
            EXPECT_TRUE(roll->called);
            before = roll;
            count++;
        }
        return count;
    }
};

TEST(Roll, EndsInAnyOrderAndTwice)
{
    const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}};
    for (const auto &order : orders) {
        List list;
        EXPECT_EQ(list.called(), 3);
        for (int i = 0; i < 3; i++) {
            for (int twice = 0; twice < 2; twice++) {
                tw_roll_end(&list.state, list.rolls[order[i]]);
                EXPECT_EQ(list.called(), 2 - i);
            }
            EXPECT_FALSE(list.rolls[order[i]]->called);
        }
        tw_roll_end(&list.state, nullptr);
        EXPECT_EQ(list.state.rolls, nullptr);
        tw_roll_call(&list.state, list.rolls[1]); /* again */
        EXPECT_EQ(list.called(), 1);
    }
}

/* A copy has what was known, and is nobody's yet. */
TEST(Roll, ACopyIsNotCalled)
{
    List list;
    struct tw_roll *roll = list.rolls[1];
    roll->lost[0] = true;
    roll->procs[0].nonce[3] = 7;
    roll->owner = &list;
    roll->on_lost = [](struct tw_roll *) {};
    struct tw_roll *copy = tw_roll_copy(roll);
    ASSERT_NE(copy, nullptr);
    EXPECT_FALSE(copy->called);
    EXPECT_EQ(copy->on_lost, nullptr);
    EXPECT_EQ(copy->owner, nullptr);
    EXPECT_TRUE(copy->lost[0]);
    EXPECT_EQ(copy->procs[0].nonce[3], 7);
    tw_roll_end(&list.state, copy);
    EXPECT_EQ(list.called(), 3);
    copy->lost[0] = false;
    EXPECT_TRUE(roll->lost[0]) << "it has memory of its own";
    tw_roll_destroy(copy);
}

TEST(Roll, NoMemoryIsNoRoll)
{
    struct tw_roll *roll = tw_roll_create(5);
    ASSERT_NE(roll, nullptr);
    for (int fine = 0; fine < 3; fine++) {
        inject::alloc_fails(fine);
        EXPECT_EQ(tw_roll_create(5), nullptr);
        EXPECT_TRUE(inject::done()) << fine;
        inject::alloc_fails(fine);
        EXPECT_EQ(tw_roll_copy(roll), nullptr);
        EXPECT_TRUE(inject::done()) << fine;
    }
    tw_roll_destroy(roll);
}

} // namespace
