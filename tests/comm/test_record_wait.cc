/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "calls.h"

extern "C" {
#include "base/log.h"
}

/* ---- those that are not there ---- */

TEST_F(Record, FinalizeAndDestroyDoNotMatchACall)
{
    make(3);
    struct tw_call_info info = coll(TW_COLL_ALL_REDUCE, 1);
    std::thread finalizer([&] { EXPECT_EQ(TWILL_ERR_MISMATCH, comms_[1]->finalize()); });
    wait_for([&] { return tw_record_word(&tw_record_board(comm(0), 1)->life) != TW_LIFE_OPEN; });
    tw_record_begin(comm(0), &info);
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(0), info, 1));
    finalizer.join();
    expect_all(TWILL_ERR_MISMATCH,
               "rank 1 is in finalize, rank 0 called all_reduce #1 count 1 float32 sum");
    comms_.clear();
    make(2);
    comms_[1].reset();
    comms_.resize(1);
    tw_record_begin(comm(0), &info);
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(0), info, 1));
    EXPECT_EQ("rank 1 destroyed the communicator, rank 0 called all_reduce #1 count 1 float32 sum",
              failure(0));
}

TEST_F(Record, WhoEndedTheCallBeforeItLeftIsNotMissed)
{
    make(2);
    struct tw_call_info info = coll(TW_COLL_BROADCAST, 1);
    tw_record_begin(comm(0), &info);
    tw_record_begin(comm(1), &info);
    tw_record_end(comm(1), &info);
    comms_[1].reset();
    EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), info, 1));
    EXPECT_EQ(TWILL_OK, tw_comm_status(comm(0)));
    comms_.resize(1);
}

TEST_F(Record, AKilledRankIsNamedWithWhatItDid)
{
    twill_unique_id id = {};
    Child victim([](const Wire &wire) {
        Comm comm(args_of(0, 2, share_id(wire, true)));
        if (comm.connect() != TWILL_OK)
            return 1;
        struct tw_call_info info = coll(TW_COLL_ALL_REDUCE, 100);
        tw_record_begin(comm.get(), &info);
        wire.put(1);
        int byte = 0;
        (void)wire.get(&byte);
        return 0;
    });
    ASSERT_TRUE(victim.wire.get(&id));
    {
        Comm comm(args_of(1, 2, id));
        ASSERT_EQ(TWILL_OK, comm.connect());
        int byte = 0;
        ASSERT_TRUE(victim.wire.get(&byte));
        std::string pid = std::to_string(victim.pid());
        victim.kill(SIGKILL);
        EXPECT_TRUE(fails_within(comm.get(), 1000));
        EXPECT_EQ(TWILL_ERR_PEER, tw_comm_status(comm.get()));
        EXPECT_TRUE(contains(comm.failure(), "rank 0 (process " + pid + ") is gone"))
            << comm.failure();
        EXPECT_TRUE(contains(comm.failure(), "it was in all_reduce #1 count 100 float32 sum"))
            << comm.failure();
    }
    EXPECT_EQ(128 + SIGKILL, victim.wait());
}

TEST_F(Record, ALookAtAKilledRankNamesTheWait)
{
    twill_unique_id id = {};
    Child victim([](const Wire &wire) {
        Comm comm(args_of(0, 2, share_id(wire, true)));
        if (comm.connect() != TWILL_OK)
            return 1;
        wire.put(1);
        int byte = 0;
        (void)wire.get(&byte);
        return 0;
    });
    ASSERT_TRUE(victim.wire.get(&id));
    {
        Comm comm(args_of(1, 2, id));
        ASSERT_EQ(TWILL_OK, comm.connect());
        int byte = 0;
        ASSERT_TRUE(victim.wire.get(&byte));
        struct tw_call_info info = coll(TW_COLL_ALL_REDUCE, 100);
        tw_record_begin(comm.get(), &info);
        victim.kill(SIGKILL);
        uint64_t start = now_ms();
        enum twill_status status = TWILL_INPROGRESS;
        while (status == TWILL_INPROGRESS && now_ms() - start < 5000)
            status = look(comm.get(), info, 1);
        EXPECT_EQ(TWILL_ERR_PEER, status);
        EXPECT_TRUE(contains(comm.failure(), "is gone")) << comm.failure();
        EXPECT_LT(now_ms() - start, 1000u);
    }
    EXPECT_EQ(128 + SIGKILL, victim.wait());
}

/* ---- lateness ---- */

TEST_F(Record, LateRanksAreWarnedOfOnce)
{
    std::string path = "/tmp/twill-test-late-" + std::to_string(getpid());
    make(4, {{"WARN", "50ms"}, {"LOG_FILE", path}});
    struct tw_call_info info = coll(TW_COLL_ALL_REDUCE, 7);
    struct tw_call_info recv = pair(false, 0, 3);
    for (int rank = 0; rank < 4; rank++) {
        tw_record_begin(comm(rank), &info);
        tw_record_end(comm(rank), &info);
    }
    tw_record_begin(comm(0), &info);
    tw_record_begin(comm(1), &info);
    tw_record_begin(comm(3), &recv);
    struct tw_record_wait wait = {tw_now_ns() - 60 * TW_NS_MS, false, 0};
    struct tw_exec_wait at = where();
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(TWILL_INPROGRESS, tw_record_look(comm(0), &info, 2, &at, &wait));
        wait.next_ns = 0;
    }
    std::string text = file_text(path);
    unlink(path.c_str());
    EXPECT_TRUE(contains(text, "in all_reduce #2 count 7 float32 sum; late: rank 2 is not in a "
                               "call since all_reduce #1 count 7 float32 sum; rank 3 is in recv #1 "
                               "from rank 0 count 3 int32"))
        << text;
    EXPECT_EQ(text.find("late:"), text.rfind("late:"));
    tw_log_configure("warn", nullptr);
}

TEST_F(Record, ATimeoutNamesTheLateOnAllRanks)
{
    make(3, {{"TIMEOUT", "100ms"}});
    struct tw_call_info info = coll(TW_COLL_BARRIER, 0);
    tw_record_begin(comm(0), &info);
    tw_record_begin(comm(2), &info);
    EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), info, 1, 90 * TW_NS_MS));
    EXPECT_EQ(TWILL_ERR_TIMEOUT, look(comm(0), info, 1, 110 * TW_NS_MS));
    expect_all(TWILL_ERR_TIMEOUT, failure(0));
    EXPECT_TRUE(contains(failure(1), "in barrier #1; late: rank 1 is in no call yet"))
        << failure(1);
}

TEST_F(Record, ATimeoutWithAllInTheCallShowsThePhase)
{
    make(2, {{"TIMEOUT", "100ms"}});
    struct tw_call_info info = coll(TW_COLL_BARRIER, 0);
    tw_record_begin(comm(0), &info);
    tw_record_begin(comm(1), &info);
    EXPECT_EQ(TWILL_ERR_TIMEOUT, look(comm(0), info, 1, 110 * TW_NS_MS));
    EXPECT_TRUE(contains(failure(0), "receiving, peer 1, lane 0, step 3")) << failure(0);
}

TEST_F(Record, NoTimeoutWhenItIsOff)
{
    make(2, {{"TIMEOUT", "0"}, {"WARN", "0"}});
    struct tw_call_info info = coll(TW_COLL_BARRIER, 0);
    tw_record_begin(comm(0), &info);
    EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), info, 1, 1000000 * TW_NS_S));
}

TEST_F(Record, LooksAreSpaced)
{
    make(2);
    struct tw_call_info info = coll(TW_COLL_ALL_REDUCE, 1);
    struct tw_call_info other = coll(TW_COLL_ALL_REDUCE, 2);
    tw_record_begin(comm(0), &info);
    struct tw_record_wait wait = {tw_now_ns() - TW_NS_S, false, 0};
    struct tw_exec_wait at = where();
    EXPECT_EQ(TWILL_INPROGRESS, tw_record_look(comm(0), &info, 1, &at, &wait));
    EXPECT_GT(wait.next_ns, tw_now_ns());
    EXPECT_LE(wait.next_ns, tw_now_ns() + 200 * TW_NS_MS);
    tw_record_begin(comm(1), &other);
    wait.next_ns = UINT64_MAX;
    EXPECT_EQ(TWILL_INPROGRESS, tw_record_look(comm(0), &info, 1, &at, &wait)) << "not yet";
    wait.next_ns = 0;
    EXPECT_EQ(TWILL_ERR_MISMATCH, tw_record_look(comm(0), &info, 1, &at, &wait));
}

TEST_F(Record, AFailedCommunicatorSaysSoFirst)
{
    make(2);
    struct tw_call_info info = coll(TW_COLL_ALL_REDUCE, 1);
    tw_record_begin(comm(0), &info);
    tw_comm_abort(comm(0));
    EXPECT_EQ(TWILL_ERR_ABORTED, look(comm(0), info, 1));
    EXPECT_EQ(TWILL_ERR_ABORTED, tw_record_mismatch(comm(0), &info, 1, 1, 5));
}
