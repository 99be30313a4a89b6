/* SPDX-License-Identifier: Apache-2.0 */
#include <random>
#include <thread>

#include "bootstrap.h"

/* ---- aborts ----
 * An id whose ranks were aborted before they came stays good, and its meeting point open: these
 * tests leave some behind, so each runs in a process of its own. */

TEST_F(Bootstrap, AbortWhileRanksAreMissing)
{
    in_child([] {
        struct twill_comm *comms[2];
        prepare(comms, 2, 3, new_id());
        EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(comms, 2, false));
        uint64_t start = now_ms();
        tw_comm_abort(comms[1]);
        EXPECT_EQ(TWILL_ERR_ABORTED, tw_comm_status(comms[1]));
        tw_comm_free(comms[1]);
        tw_comm_free(comms[0]); /* which may not have heard of it */
        EXPECT_LT(now_ms() - start, 1000u);
    });
}

/* Who has come hears at once that another rank gave up. */
TEST_F(Bootstrap, AnAbortIsToldToThoseWhoWait)
{
    in_child([] {
        struct twill_comm *comms[2];
        prepare(comms, 2, 3, new_id());
        EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(comms, 2, false));
        /* both are there once both have a link to the meeting point */
        uint64_t until = now_ms() + 10000;
        for (bool both = false; !both && now_ms() < until;) {
            tw_loop_lock(comms[0]->ctl->loop);
            both = tw_link_up(&comms[0]->ctl->meet) && tw_link_up(&comms[1]->ctl->meet);
            tw_loop_unlock(comms[0]->ctl->loop);
        }
        uint64_t start = now_ms();
        tw_comm_abort(comms[0]);
        EXPECT_TRUE(fails_within(comms[1], 1000));
        EXPECT_LT(now_ms() - start, 1000u);
        Outcome outcome = outcome_of(comms[1]);
        EXPECT_EQ(TWILL_ERR_ABORTED, outcome.status);
        EXPECT_TRUE(contains(outcome.text, "aborted by rank 0")) << outcome.text;
        tw_comm_free(comms[0]);
        tw_comm_free(comms[1]);
    });
}

TEST_F(Bootstrap, AbortAtAnyMoment)
{
    in_child([] {
        std::mt19937 random(11);
        for (int i = 0; i < 40; i++) {
            unsigned pause_us = random() % 3000;
            int who = (int)(random() % 3);
            struct twill_comm *comms[3];
            prepare(comms, 3, 3, new_id());
            EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(comms, 3, false));
            /* Where in init the abort comes is left to the seed and to chance: its inner moments
             * have no sign that could be waited for. */
            std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
            tw_comm_abort(comms[who]);
            EXPECT_EQ(TWILL_ERR_ABORTED, tw_comm_status(comms[who]));
            uint64_t start = now_ms();
            for (struct twill_comm *comm : comms)
                tw_comm_free(comm);
            EXPECT_LT(now_ms() - start, 2000u);
        }
    });
}

/* ---- those who come late ---- */

/* Nothing in the process keeps its state but the meeting point itself, for a little while. */
TEST_F(Bootstrap, WhoComesAfterTheFailureHearsItsCause)
{
    twill_unique_id id = new_id();
    struct twill_comm *first = nullptr;
    prepare(&first, 1, 3, id);
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(&first, 1, false));
    await_meeting(first);
    tw_comm_abort(first);
    tw_comm_free(first);
    for (int rank : {2, 1}) {
        Ending late = try_connect(args_of(rank, 3, id));
        EXPECT_EQ(TWILL_ERR_ABORTED, late.status) << late.text;
        EXPECT_TRUE(contains(late.text, "aborted by rank 0")) << late.text;
        EXPECT_LT(late.ms, 900u);
    }
}

/* All have been told: the meeting point does not stay for anybody. */
TEST_F(Bootstrap, AFailureThatAllHaveHeardLeavesNothing)
{
    uint64_t start = now_ms();
    twill_unique_id id = new_id();
    struct twill_comm *first = nullptr;
    prepare(&first, 1, 2, id);
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(&first, 1, false));
    await_meeting(first);
    tw_comm_abort(first);
    EXPECT_EQ(TWILL_ERR_ABORTED, try_connect(args_of(1, 2, id)).status);
    tw_comm_free(first);
    EXPECT_TRUE(count_returns(before_));
    EXPECT_LT(now_ms() - start, 900u);
}
