/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>
#include <string.h>

#include "inject.h"
#include "ranks.h"

extern "C" {
#include "comm/control.h"
#include "comm/group.h"
#include "comm/proc.h"
}

/* Waits that would never end do so after some seconds, as failures. */
class Retire : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        before_ = count_now();
        set_params({{"INIT_TIMEOUT", "20s"}, {"TIMEOUT", "8s"}});
    }
    void TearDown() override
    {
        EXPECT_TRUE(count_returns(before_));
        set_params({});
    }
    /* All ranks of a communicator in this process, ready. */
    static std::vector<struct twill_comm *> ready(int size, bool blocking = true)
    {
        std::vector<struct twill_comm *> comms(size);
        twill_unique_id id = new_id();
        for (int rank = 0; rank < size; rank++) {
            struct tw_comm_args args = args_of(rank, size, id);
            args.blocking = blocking;
            EXPECT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[rank]));
        }
        EXPECT_EQ(TWILL_OK, tw_comm_connect(comms.data(), size, true));
        return comms;
    }
    /* Control blocks of this process: communicators that are not freed. */
    static int living()
    {
        struct tw_proc_state *state = tw_proc_state();
        int count = 0;
        tw_loop_lock(state->loop);
        for (struct tw_ctl *ctl = state->ctls; ctl != nullptr; ctl = ctl->next)
            count++;
        tw_loop_unlock(state->loop);
        return count;
    }
    Count before_;
};

TEST_F(Retire, TheLastRankEndsAllAndOtherCommunicatorsDoNotCount)
{
    auto three = ready(3);
    auto two = ready(2);
    EXPECT_EQ(TWILL_OK, tw_comm_retire(three[1]));
    EXPECT_EQ(TWILL_OK, tw_comm_retire(two[0]));
    EXPECT_EQ(TWILL_OK, tw_comm_retire(three[0]));
    EXPECT_EQ(5, living());
    EXPECT_EQ(TWILL_OK, tw_comm_retire(three[2]));
    EXPECT_EQ(2, living());
    EXPECT_EQ(TWILL_OK, tw_comm_retire(two[1]));
}

/* As when a rank hears of a failure right after the last barrier of init, in which rank 0 has
 * become ready. */
static void fail_init(struct twill_comm *comm)
{
    __atomic_store_n(&comm->state, TW_COMM_INIT, __ATOMIC_RELEASE);
    tw_comm_fail_text(comm, TWILL_ERR_NOMEM, "injected");
}

TEST_F(Retire, ARankThatFailedInInitLeavesNobodyParked)
{
    auto comms = ready(2);
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[0])); /* rank 1 is still to come */
    EXPECT_EQ(2, living());
    fail_init(comms[1]);
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[1]));
}

TEST_F(Retire, GivingUpARankLeavesNobodyParked)
{
    auto comms = ready(3);
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[0]));
    fail_init(comms[1]);
    tw_comm_give_up(comms[1]);
    EXPECT_EQ(2, living()) << "rank 2 will come";
    EXPECT_EQ(TWILL_ERR_NOMEM, (fails_within(comms[2], 5000), tw_comm_status(comms[2])));
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[2]));
}

TEST_F(Retire, AReadyRankThatIsGivenUpIsAbortedOnTheOthers)
{
    auto comms = ready(2);
    tw_comm_give_up(comms[1]);
    EXPECT_TRUE(fails_within(comms[0], 5000));
    EXPECT_EQ(TWILL_ERR_ABORTED, outcome_of(comms[0]).status);
    EXPECT_TRUE(contains(outcome_of(comms[0]).text, "rank 1 gave communicator test up"))
        << outcome_of(comms[0]).text;
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[0]));
}

TEST_F(Retire, ARankThatFailedIsFreedAtOnce)
{
    auto comms = ready(3);
    tw_comm_abort(comms[0]);
    EXPECT_TRUE(fails_within(comms[1], 5000));
    EXPECT_TRUE(fails_within(comms[2], 5000));
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[0]));
    EXPECT_EQ(2, living());
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[2]));
    EXPECT_EQ(1, living());
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[1]));
}

/* One thread drives both ranks: the first one's finalize ends only with the second one's. */
TEST_F(Retire, AFinalizeThatGoesOnByItselfIsWaitedForAtTheEnd)
{
    auto comms = ready(2, false);
    uint64_t start = now_ms();
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_finalize(comms[0]));
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[0]));
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[1]));
    comms = ready(2, false);
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_finalize(comms[0]));
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_finalize(comms[1]));
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[1]));
    EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[0]));
    EXPECT_LT(now_ms() - start, 5000u);
}

/* ---- without threads or memory ---- */

static void expect_all_failed(const std::vector<struct twill_comm *> &comms,
                              enum twill_status status, const char *text)
{
    for (struct twill_comm *comm : comms) {
        EXPECT_TRUE(fails_within(comm, 2000));
        EXPECT_EQ(status, outcome_of(comm).status);
        EXPECT_TRUE(contains(outcome_of(comm).text, text)) << outcome_of(comm).text;
    }
}

TEST_F(Retire, WithoutAThreadFinalizeFailsOnAllAtOnce)
{
    auto comms = ready(3);
    uint64_t start = now_ms();
    inject::thread_fails(1);
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_finalize_all(comms.data(), 3));
    EXPECT_TRUE(inject::done());
    EXPECT_LT(now_ms() - start, 4000u);
    EXPECT_TRUE(contains(tw_last_error_find(0), "does not start"));
    expect_all_failed(comms, TWILL_ERR_SYSTEM, "does not start");
    for (struct twill_comm *comm : comms)
        EXPECT_EQ(TWILL_OK, tw_comm_retire(comm));
}

TEST_F(Retire, WithoutMemoryFinalizeFailsOnAllAtOnce)
{
    auto comms = ready(3);
    inject::alloc_fails(0);
    EXPECT_EQ(TWILL_ERR_NOMEM, tw_finalize_all(comms.data(), 3));
    EXPECT_TRUE(inject::done());
    expect_all_failed(comms, TWILL_ERR_NOMEM, "no memory");
    for (struct twill_comm *comm : comms)
        EXPECT_EQ(TWILL_OK, tw_comm_retire(comm));
}

TEST_F(Retire, WithoutMemoryTheLastRankStillFreesAll)
{
    for (int fine = 0; fine < 2; fine++) {
        auto comms = ready(3);
        EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[2]));
        EXPECT_EQ(TWILL_OK, tw_comm_retire(comms[0]));
        inject::alloc_fails(fine);
        EXPECT_EQ(TWILL_ERR_NOMEM, tw_comm_retire(comms[1]));
        EXPECT_TRUE(inject::done());
    }
}

TEST_F(Retire, WithoutAThreadInitFailsOnAllAtOnce)
{
    std::vector<struct twill_comm *> comms(3);
    twill_unique_id id = new_id();
    for (int rank = 0; rank < 3; rank++) {
        struct tw_comm_args args = args_of(rank, 3, id);
        ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[rank]));
    }
    uint64_t start = now_ms();
    inject::thread_fails(2);
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_comm_connect(comms.data(), 3, true));
    EXPECT_TRUE(inject::done());
    EXPECT_LT(now_ms() - start, 5000u);
    expect_all_failed(comms, TWILL_ERR_SYSTEM, "\"twill-init\" does not start");
    for (struct twill_comm *comm : comms)
        tw_comm_give_up(comm);
    tw_id_give_up(&id, TWILL_ERR_SYSTEM, "nobody may have come");
}
