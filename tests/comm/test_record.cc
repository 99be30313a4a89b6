/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "ranks.h"

extern "C" {
#include "base/log.h"
#include "base/time.h"
#include "comm/record.h"
}

static bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

static struct tw_call_info coll(enum tw_coll kind, size_t count, int root = 0)
{
    struct tw_call_info info = {};
    info.coll = kind;
    info.peer = TW_NO_RANK;
    info.root = root;
    info.count = count;
    info.type = TWILL_FLOAT32;
    info.op = TWILL_SUM;
    info.algo_hash = 77;
    return info;
}

static struct tw_call_info pair(bool is_send, int peer, size_t count)
{
    struct tw_call_info info = {};
    info.coll = TW_COLL_P2P;
    info.is_send = is_send;
    info.peer = peer;
    info.count = count;
    info.type = TWILL_INT32;
    return info;
}

static struct tw_exec_wait where()
{
    struct tw_exec_wait wait = {};
    wait.phase = TW_PHASE_RECV;
    wait.peer = 1;
    wait.step = 3;
    return wait;
}

/* One look as if the wait had begun `waited_ns` ago. */
static enum twill_status look(struct twill_comm *comm, const struct tw_call_info &info,
                              uint64_t number, uint64_t waited_ns = 2 * TW_NS_MS)
{
    struct tw_record_wait wait = {tw_now_ns() - waited_ns, false, 0};
    struct tw_exec_wait at = where();
    return tw_record_look(comm, &info, number, &at, &wait);
}

class Record : public ::testing::Test
{
  protected:
    void make(int size, const std::vector<std::pair<std::string, std::string>> &params = {})
    {
        set_params(params);
        twill_unique_id id = new_id();
        std::vector<struct twill_comm *> raw;
        for (int rank = 0; rank < size; rank++) {
            comms_.push_back(std::make_unique<Comm>(args_of(rank, size, id)));
            raw.push_back(comms_.back()->get());
        }
        ASSERT_EQ(TWILL_OK, tw_comm_connect(raw.data(), size, true));
    }
    void TearDown() override
    {
        comms_.clear();
        set_params({});
    }
    struct twill_comm *comm(int rank) { return comms_[rank]->get(); }
    std::string failure(int rank) { return comms_[rank]->failure(); }
    void expect_all(enum twill_status status, const std::string &text)
    {
        for (auto &one : comms_) {
            EXPECT_TRUE(fails_within(one->get(), 1000));
            EXPECT_EQ(status, tw_comm_status(one->get()));
            EXPECT_EQ(text, one->failure());
        }
    }
    std::vector<std::unique_ptr<Comm>> comms_;
};

/* ---- headers ---- */

TEST_F(Record, HeadersAreEqualOnAllRanksAndDifferOtherwise)
{
    make(3);
    struct tw_call_info info = coll(TW_COLL_ALL_REDUCE, 100);
    uint64_t first = tw_record_begin(comm(0), &info);
    EXPECT_EQ(first, tw_record_begin(comm(1), &info));
    EXPECT_EQ(first, tw_record_begin(comm(2), &info));
    EXPECT_EQ(1u, tw_record_number(comm(0), &info));
    std::vector<uint64_t> headers = {first};
    headers.push_back(tw_record_begin(comm(0), &info)); /* the number */
    for (int change = 0; change < 6; change++) {
        struct tw_call_info other = coll(TW_COLL_REDUCE, 100);
        if (change == 1)
            other.count = 101;
        if (change == 2)
            other.type = TWILL_FLOAT64;
        if (change == 3)
            other.op = TWILL_MAX;
        if (change == 4)
            other.root = 1;
        if (change == 5)
            other.algo_hash = 78;
        struct tw_record_call call;
        tw_record_pack(&other, 3, &call);
        headers.push_back(tw_record_hash(comm(0)->id_hash, &call));
        headers.push_back(tw_record_hash(comm(0)->id_hash + 1, &call));
    }
    for (size_t i = 0; i < headers.size(); i++) {
        for (size_t k = 0; k < i; k++)
            EXPECT_NE(headers[i], headers[k]) << i << " " << k;
    }
}

TEST_F(Record, WhatHasNoMeaningDoesNotCount)
{
    make(1);
    struct tw_call_info a = coll(TW_COLL_ALL_GATHER, 5);
    struct tw_call_info b = a;
    b.op = TWILL_MIN;
    b.root = 9;
    struct tw_record_call ca;
    struct tw_record_call cb;
    tw_record_pack(&a, 1, &ca);
    tw_record_pack(&b, 1, &cb);
    EXPECT_EQ(tw_record_hash(1, &ca), tw_record_hash(1, &cb));
}

/* ---- counts of pairs ---- */

static struct tw_call_info all_to_all_v(const std::vector<size_t> &in,
                                        const std::vector<size_t> &out)
{
    struct tw_call_info info = coll(TW_COLL_ALL_TO_ALL_V, 0);
    info.counts.in = in.data();
    info.counts.out = out.data();
    return info;
}

TEST_F(Record, EachPairHasItsCountInItsHeader)
{
    make(3);
    /* rank 0 sends 1, 2, 3; rank 1 sends 4, 5, 6, and believes that it gets 7 from rank 2 */
    const std::vector<size_t> in0 = {1, 2, 3}, out0 = {1, 4, 0}, in1 = {4, 5, 6}, out1 = {2, 5, 7};
    const std::vector<size_t> in2 = {0, 8, 9}, out2 = {3, 6, 9};
    struct tw_call_info calls[3] = {all_to_all_v(in0, out0), all_to_all_v(in1, out1),
                                    all_to_all_v(in2, out2)};
    for (int rank = 0; rank < 3; rank++) {
        EXPECT_NE(0u, tw_record_begin(comm(rank), &calls[rank]));
    }
    for (int from = 0; from < 3; from++) {
        for (int to = 0; to < 3; to++) {
            const uint64_t sent = tw_record_headers(comm(from), &calls[from])[2 * to];
            const uint64_t wanted = tw_record_headers(comm(to), &calls[to])[2 * from + 1];
            EXPECT_EQ(sent == wanted, from != 2 || to != 1) << from << " " << to;
        }
    }
    EXPECT_EQ(TWILL_OK, tw_comm_status(comm(0)));
    EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), calls[0], 1)) << "its own pairs agree";
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(1), calls[1], 1));
    expect_all(TWILL_ERR_MISMATCH,
               "rank 2 called all_to_all_v #1 float32 with 8 elements to rank 1 and 6 from it, "
               "rank 1 called all_to_all_v #1 float32 with 6 elements to rank 2 and 7 from it");
}

TEST_F(Record, AMessageOfAnotherCountNamesBoth)
{
    make(2);
    const std::vector<size_t> two = {2, 2}, three = {2, 3};
    struct tw_call_info calls[2] = {all_to_all_v(two, three), all_to_all_v(two, two)};
    for (int rank = 0; rank < 2; rank++) {
        tw_record_begin(comm(rank), &calls[rank]);
    }
    const uint64_t found = tw_record_headers(comm(1), &calls[1])[0];
    EXPECT_NE(found, tw_record_headers(comm(0), &calls[0])[3]);
    EXPECT_EQ(TWILL_ERR_MISMATCH, tw_record_mismatch(comm(0), &calls[0], 1, 1, found));
    expect_all(TWILL_ERR_MISMATCH,
               "rank 1 called all_to_all_v #1 float32 with 2 elements to rank 0 and 2 from it, "
               "rank 0 called all_to_all_v #1 float32 with 2 elements to rank 1 and 3 from it");
}

TEST_F(Record, AllCountsAreInTheHeaderWhereAllRanksKnowThem)
{
    make(3);
    const std::vector<size_t> a = {1, 2, 3}, b = {1, 2, 4};
    struct tw_call_info calls[3];
    for (int rank = 0; rank < 3; rank++) {
        const std::vector<size_t> &counts = rank == 1 ? b : a;
        calls[rank] = coll(TW_COLL_ALL_GATHER_V, counts[(size_t)rank]);
        calls[rank].counts.out = counts.data();
        calls[rank].spread = tw_record_spread(counts.data(), 3);
        EXPECT_EQ(nullptr, tw_record_headers(comm(rank), &calls[rank]));
    }
    const uint64_t header = tw_record_begin(comm(0), &calls[0]);
    EXPECT_NE(header, tw_record_begin(comm(1), &calls[1]));
    EXPECT_EQ(header, tw_record_begin(comm(2), &calls[2]));
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(0), calls[0], 1));
    expect_all(TWILL_ERR_MISMATCH,
               "rank 1 called all_gather_v #1 float32 with 2 elements to rank 0 and 1 from it, "
               "rank 0 called all_gather_v #1 float32 with 1 elements to rank 1 and 2 from it, "
               "but rank 1 has count 4 for rank 2, rank 0 has 3");
}

TEST_F(Record, PairsHaveOneHeaderAndNumbersOfTheirOwn)
{
    make(3);
    struct tw_call_info send01 = pair(true, 1, 10);
    struct tw_call_info recv10 = pair(false, 0, 10);
    struct tw_call_info send02 = pair(true, 2, 10);
    struct tw_call_info send10 = pair(true, 0, 10);
    uint64_t header = tw_record_begin(comm(0), &send01);
    EXPECT_EQ(header, tw_record_begin(comm(1), &recv10));
    EXPECT_NE(header, tw_record_begin(comm(0), &send02));
    EXPECT_NE(header, tw_record_begin(comm(1), &send10)) << "the other direction";
    EXPECT_NE(header, tw_record_begin(comm(0), &send01)) << "the next one";
    EXPECT_EQ(2u, tw_record_number(comm(0), &send01));
    EXPECT_EQ(1u, tw_record_number(comm(0), &send02));
    struct tw_call_info all = coll(TW_COLL_BARRIER, 0);
    EXPECT_EQ(0u, tw_record_number(comm(0), &all));
}

TEST_F(Record, HashesOfManyCallsDoNotMeet)
{
    std::vector<uint64_t> all;
    for (uint64_t number = 1; number < 300; number++) {
        for (uint64_t count = 0; count < 300; count++) {
            struct tw_record_call call = {number, 0x0700, count, 5, 0, 0, 0};
            all.push_back(tw_record_hash(1234567, &call));
        }
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all.end(), std::adjacent_find(all.begin(), all.end()));
}

/* ---- mismatches ---- */

TEST_F(Record, DifferentCollectivesAreNamedInFull)
{
    make(3);
    struct tw_call_info reduce = coll(TW_COLL_ALL_REDUCE, 100);
    struct tw_call_info bcast = coll(TW_COLL_BROADCAST, 100);
    for (int i = 0; i < 6; i++) {
        for (int rank = 0; rank < 3; rank++) {
            tw_record_begin(comm(rank), &reduce);
            tw_record_end(comm(rank), &reduce);
        }
    }
    tw_record_begin(comm(0), &reduce);
    tw_record_begin(comm(1), &reduce);
    EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), reduce, 7)) << "rank 2 is only late";
    tw_record_begin(comm(2), &bcast);
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(0), reduce, 7));
    expect_all(TWILL_ERR_MISMATCH, "rank 2 called broadcast #7 count 100 float32 root 0, rank 0 "
                                   "called all_reduce #7 count 100 float32 sum");
}

TEST_F(Record, EveryFieldIsCompared)
{
    const char *expected[] = {
        "rank 1 called reduce #1 count 101 float32 sum root 0, rank 0 called reduce #1 count 100 "
        "float32 sum root 0",
        "rank 1 called reduce #1 count 100 float64 sum root 0, rank 0 called reduce #1 count 100 "
        "float32 sum root 0",
        "rank 1 called reduce #1 count 100 float32 max root 0, rank 0 called reduce #1 count 100 "
        "float32 sum root 0",
        "rank 1 called reduce #1 count 100 float32 sum root 1, rank 0 called reduce #1 count 100 "
        "float32 sum root 0",
        "rank 1 called reduce #1 count 100 float32 sum root 0, rank 0 called reduce #1 count 100 "
        "float32 sum root 0, but with another plan",
    };
    for (int change = 0; change < 5; change++) {
        make(2);
        struct tw_call_info mine = coll(TW_COLL_REDUCE, 100);
        struct tw_call_info theirs = mine;
        if (change == 0)
            theirs.count = 101;
        if (change == 1)
            theirs.type = TWILL_FLOAT64;
        if (change == 2)
            theirs.op = TWILL_MAX;
        if (change == 3)
            theirs.root = 1;
        if (change == 4)
            theirs.algo_hash = 78;
        tw_record_begin(comm(0), &mine);
        tw_record_begin(comm(1), &theirs);
        EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(0), mine, 1));
        expect_all(TWILL_ERR_MISMATCH, expected[change]);
        comms_.clear();
    }
}

TEST_F(Record, SendAndReceiveThatDiffer)
{
    make(2);
    struct tw_call_info send = pair(true, 1, 10);
    struct tw_call_info recv = pair(false, 0, 20);
    tw_record_begin(comm(0), &send);
    EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), send, 1));
    tw_record_begin(comm(1), &recv);
    EXPECT_EQ(TWILL_ERR_MISMATCH, look(comm(1), recv, 1));
    expect_all(TWILL_ERR_MISMATCH, "rank 0 called send #1 to rank 1 count 10 int32, rank 1 called "
                                   "recv #1 from rank 0 count 20 int32");
}

TEST_F(Record, AForeignMessageIsTracedToItsCall)
{
    make(2);
    struct tw_call_info first = coll(TW_COLL_ALL_REDUCE, 8);
    struct tw_call_info second = coll(TW_COLL_ALL_GATHER, 8);
    tw_record_begin(comm(1), &first);
    tw_record_end(comm(1), &first);
    uint64_t header = tw_record_begin(comm(1), &second);
    tw_record_begin(comm(0), &first);
    EXPECT_EQ(TWILL_ERR_MISMATCH, tw_record_mismatch(comm(0), &first, 1, 1, header));
    expect_all(TWILL_ERR_MISMATCH, "rank 1 called all_gather #2 count 8 float32, rank 0 called "
                                   "all_reduce #1 count 8 float32 sum");
}

TEST_F(Record, AForeignSendIsTracedToo)
{
    make(2);
    struct tw_call_info send = pair(true, 1, 10);
    struct tw_call_info recv = pair(false, 0, 12);
    uint64_t header = tw_record_begin(comm(0), &send);
    tw_record_begin(comm(1), &recv);
    EXPECT_EQ(TWILL_ERR_MISMATCH, tw_record_mismatch(comm(1), &recv, 1, 0, header));
    expect_all(TWILL_ERR_MISMATCH, "rank 0 called send #1 to rank 1 count 10 int32, rank 1 called "
                                   "recv #1 from rank 0 count 12 int32");
}

TEST_F(Record, AnUnknownMessageIsShownByItsHeader)
{
    make(2);
    struct tw_call_info info = coll(TW_COLL_BARRIER, 0);
    tw_record_begin(comm(0), &info);
    EXPECT_EQ(TWILL_ERR_MISMATCH, tw_record_mismatch(comm(0), &info, 1, 1, 0xabcdef));
    EXPECT_TRUE(contains(failure(0), "header 0xabcdef")) << failure(0);
    EXPECT_TRUE(contains(failure(0), "barrier #1")) << failure(0);
}

TEST_F(Record, ARankThatHasGoneAheadIsNoMismatch)
{
    make(2);
    struct tw_call_info info = coll(TW_COLL_BROADCAST, 4);
    struct tw_call_info other = coll(TW_COLL_ALL_GATHER, 4);
    tw_record_begin(comm(0), &info);
    for (int i = 0; i < 10; i++) { /* its record of #1 is overwritten meanwhile */
        tw_record_begin(comm(1), i == 0 ? &info : &other);
        EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), info, 1));
        tw_record_end(comm(1), i == 0 ? &info : &other);
        EXPECT_EQ(TWILL_INPROGRESS, look(comm(0), info, 1));
    }
}

/* ---- those that are not there ---- */

TEST_F(Record, FinalizeAndDestroyDoNotMatchACall)
{
    make(3);
    struct tw_call_info info = coll(TW_COLL_ALL_REDUCE, 1);
    std::thread finalizer([&] { EXPECT_EQ(TWILL_ERR_MISMATCH, comms_[1]->finalize()); });
    while (tw_record_word(&tw_record_board(comm(0), 1)->life) == TW_LIFE_OPEN)
        poll(nullptr, 0, 1);
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

static std::string file_text(const std::string &path)
{
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

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

/* ---- reading while it is written ---- */

TEST(RecordBoard, ReadersSeeWholeRecordsOnly)
{
    struct tw_board_lane lane = {};
    std::atomic<bool> stop{false};
    uint64_t seen = 0;
    std::thread reader([&] {
        while (!stop) {
            struct tw_record_call call;
            uint64_t begun = tw_record_word(&lane.begun);
            if (!tw_record_read(&lane, begun, &call))
                continue;
            seen++;
            ASSERT_EQ(begun, call.number);
            ASSERT_EQ(call.number * 3, call.what);
            ASSERT_EQ(call.number * 5, call.count);
            ASSERT_EQ(call.number * 7, call.algo_hash);
        }
    });
    for (uint64_t number = 1; number <= 200000; number++) {
        struct tw_record_call call = {number, number * 3, number * 5, number * 7, number * 9, 0, 0};
        tw_record_publish(&lane, &call);
    }
    stop = true;
    reader.join();
    struct tw_record_call last;
    EXPECT_TRUE(tw_record_read(&lane, 200000, &last));
    EXPECT_FALSE(tw_record_read(&lane, 199996, &last)) << "overwritten";
    EXPECT_FALSE(tw_record_read(&lane, 0, &last));
}

TEST(RecordBoard, NonsenseOnABoardIsOnlyPrinted)
{
    char text[TW_RECORD_TEXT_BYTES];
    struct tw_record_call call = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                  UINT64_MAX, UINT64_MAX, UINT64_MAX};
    tw_record_text(&call, text);
    EXPECT_TRUE(contains(text, "unknown call")) << text;
    call.what = TW_COLL_REDUCE | 0xee00 | 0xee0000;
    tw_record_text(&call, text);
    EXPECT_TRUE(contains(text, "unknown type")) << text;
    EXPECT_TRUE(contains(text, "unknown operation")) << text;
}

TEST(RecordBoard, SizeGrowsWithTheRanks)
{
    EXPECT_EQ(sizeof(struct tw_board) + 2 * sizeof(struct tw_board_lane) + 2 * TW_RECORD_DEPTH * 8,
              tw_record_board_bytes(1));
    EXPECT_LT(tw_record_board_bytes(64), 128u * 1024);
}
