/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "ranks.h"

extern "C" {
#include "base/time.h"
#include "comm/control.h"
}

/* ---- a communicator's links ---- */

static void ready_ranks(int size, std::vector<std::unique_ptr<Comm>> *comms)
{
    twill_unique_id id = new_id();
    std::vector<struct twill_comm *> raw;
    for (int rank = 0; rank < size; rank++) {
        comms->push_back(std::make_unique<Comm>(args_of(rank, size, id)));
        raw.push_back(comms->back()->get());
    }
    ASSERT_EQ(TWILL_OK, tw_comm_connect(raw.data(), size, true));
}

TEST(Control, AFailureIsToldToAllRanks)
{
    Count before = count_now();
    {
        std::vector<std::unique_ptr<Comm>> comms;
        ready_ranks(13, &comms);
        uint64_t start = now_ms();
        tw_comm_fail(comms[9]->get(), TWILL_ERR_MISMATCH, "the number is %d", 42);
        for (auto &comm : comms) {
            EXPECT_TRUE(fails_within(comm->get(), 1000));
            EXPECT_EQ(TWILL_ERR_MISMATCH, tw_comm_status(comm->get()));
            EXPECT_EQ("the number is 42", comm->failure());
        }
        EXPECT_LT(now_ms() - start, 1000u);
        EXPECT_EQ(TWILL_ERR_MISMATCH, comms[0]->finalize());
    }
    EXPECT_TRUE(count_returns(before));
}

TEST(Control, TheFirstFailureWins)
{
    std::vector<std::unique_ptr<Comm>> comms;
    ready_ranks(3, &comms);
    tw_comm_fail(comms[0]->get(), TWILL_ERR_TIMEOUT, "first");
    tw_comm_fail(comms[0]->get(), TWILL_ERR_PEER, "second");
    tw_comm_abort(comms[0]->get());
    EXPECT_EQ("first", comms[0]->failure());
    EXPECT_TRUE(comms[0]->get()->aborted);
    for (auto &comm : comms) {
        EXPECT_TRUE(fails_within(comm->get(), 1000));
        EXPECT_EQ("first", comm->failure());
    }
}

TEST(Control, ManyFailAtOnceAndAllHearOfOne)
{
    std::vector<std::unique_ptr<Comm>> comms;
    ready_ranks(8, &comms);
    on_threads(8, [&](int rank) {
        tw_comm_fail(comms[rank]->get(), TWILL_ERR_MISMATCH, "found by rank %d", rank);
    });
    for (auto &comm : comms) {
        EXPECT_TRUE(fails_within(comm->get(), 1000));
        EXPECT_TRUE(contains(comm->failure(), "found by rank ")) << comm->failure();
    }
}

TEST(Control, AbortReachesEverybody)
{
    std::vector<std::unique_ptr<Comm>> comms;
    ready_ranks(5, &comms);
    tw_comm_abort(comms[4]->get());
    for (auto &comm : comms) {
        EXPECT_TRUE(fails_within(comm->get(), 1000));
        EXPECT_EQ(TWILL_ERR_ABORTED, tw_comm_status(comm->get()));
        EXPECT_TRUE(contains(comm->failure(), "aborted by rank 4")) << comm->failure();
    }
}

TEST(Control, GarbageOnALinkFailsItsCommunicatorOnly)
{
    std::vector<std::unique_ptr<Comm>> comms;
    std::vector<std::unique_ptr<Comm>> others;
    ready_ranks(4, &comms);
    ready_ranks(4, &others);
    struct tw_ctl *ctl = comms[3]->get()->ctl;
    tw_loop_lock(ctl->loop);
    EXPECT_EQ(5, send(ctl->tree[TW_TREE_PARENT].source.fd, "\1\2\3\4\5", 5, MSG_NOSIGNAL));
    EXPECT_EQ(5, send(ctl->tree[TW_TREE_PARENT].source.fd, "\1\2\3\4\5", 5, MSG_NOSIGNAL));
    tw_loop_unlock(ctl->loop);
    for (auto &comm : comms) {
        EXPECT_TRUE(fails_within(comm->get(), 1000));
        EXPECT_EQ(TWILL_ERR_PEER, tw_comm_status(comm->get()));
        EXPECT_TRUE(contains(comm->failure(), "rank 3")) << comm->failure();
        EXPECT_TRUE(contains(comm->failure(), "garbage")) << comm->failure();
    }
    for (auto &comm : others)
        EXPECT_EQ(TWILL_OK, tw_comm_status(comm->get()));
}

TEST(Control, AFrameThatIsOutOfPlaceIsGarbage)
{
    const enum tw_frame_type types[] = {TW_FRAME_WELCOME, TW_FRAME_DATA, TW_FRAME_FIN_DONE,
                                        TW_FRAME_LEFT};
    for (enum tw_frame_type type : types) {
        std::vector<std::unique_ptr<Comm>> comms;
        ready_ranks(2, &comms);
        struct tw_ctl *ctl = comms[1]->get()->ctl;
        tw_loop_lock(ctl->loop);
        tw_link_send(&ctl->tree[TW_TREE_PARENT], type, "x", type == TW_FRAME_FIN_DONE ? 0 : 1);
        tw_loop_unlock(ctl->loop);
        EXPECT_TRUE(fails_within(comms[0]->get(), 1000)) << type;
        EXPECT_TRUE(contains(comms[0]->failure(), "garbage")) << comms[0]->failure();
    }
}

/* ---- leaving ---- */

TEST(Control, DestroyingIsNoFailureForTheOthers)
{
    std::vector<std::unique_ptr<Comm>> comms;
    ready_ranks(7, &comms);
    comms[1].reset(); /* in the middle of the tree */
    comms[6].reset();
    struct tw_ctl *ctl = comms[0]->get()->ctl;
    wait_for([&] {
        tw_loop_lock(ctl->loop);
        bool both = ctl->peers[1].left && ctl->peers[6].left;
        tw_loop_unlock(ctl->loop);
        return both;
    });
    for (int rank : {0, 2, 3, 4, 5})
        EXPECT_EQ(TWILL_OK, tw_comm_status(comms[rank]->get()));
}

TEST(Control, FinalizeAfterADestroyNamesIt)
{
    std::vector<std::unique_ptr<Comm>> comms;
    ready_ranks(3, &comms);
    comms[2].reset();
    EXPECT_EQ(TWILL_ERR_MISMATCH, comms[0]->finalize());
    EXPECT_TRUE(contains(comms[0]->failure(), "rank 2 destroyed")) << comms[0]->failure();
    EXPECT_TRUE(fails_within(comms[1]->get(), 1000));
}

TEST(Control, FinalizeNeedsAllAndTellsWhoIsLate)
{
    set_params({{"TIMEOUT", "300ms"}});
    {
        std::vector<std::unique_ptr<Comm>> comms;
        ready_ranks(4, &comms);
        enum twill_status status[4] = {};
        on_threads(4, [&](int rank) {
            if (rank != 2)
                status[rank] = comms[rank]->finalize();
        });
        for (int rank : {0, 1, 3}) {
            EXPECT_EQ(TWILL_ERR_TIMEOUT, status[rank]);
            EXPECT_TRUE(contains(comms[rank]->failure(), "rank 2 is in no call yet"))
                << comms[rank]->failure();
        }
        EXPECT_TRUE(fails_within(comms[2]->get(), 1000));
    }
    set_params({});
}

TEST(Control, FinalizeTwiceIsAnErrorAndHarmless)
{
    std::vector<std::unique_ptr<Comm>> comms;
    ready_ranks(2, &comms);
    on_threads(2, [&](int rank) { EXPECT_EQ(TWILL_OK, comms[rank]->finalize()); });
    EXPECT_EQ(TW_COMM_FINALIZED, comms[0]->get()->state);
    EXPECT_EQ(TWILL_ERR_USAGE, comms[0]->finalize());
    comms[0].reset();
    EXPECT_EQ(TWILL_OK, tw_comm_status(comms[1]->get()));
}

TEST(Control, FinalizeBeforeInitIsAnError)
{
    Child child([](const Wire &) {
        Comm comm(args_of(0, 2, new_id()));
        EXPECT_EQ(TWILL_ERR_USAGE, comm.finalize());
        return 0;
    });
    EXPECT_EQ(0, child.wait());
}

TEST(Control, AbortDuringFinalizeReturns)
{
    std::vector<std::unique_ptr<Comm>> comms;
    ready_ranks(2, &comms);
    std::thread waiter([&] { EXPECT_EQ(TWILL_ERR_ABORTED, comms[0]->finalize()); });
    wait_for([&] {
        return __atomic_load_n(&comms[0]->get()->state, __ATOMIC_ACQUIRE) == TW_COMM_FINALIZING;
    });
    tw_comm_abort(comms[0]->get());
    waiter.join();
}

TEST(Control, FreeDuringAFinalizeThatRunsAsideReturns)
{
    twill_unique_id id = new_id();
    struct twill_comm *comms[2];
    for (int rank = 0; rank < 2; rank++) {
        struct tw_comm_args args = args_of(rank, 2, id);
        args.blocking = 0;
        ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[rank]));
    }
    ASSERT_EQ(TWILL_OK, tw_comm_connect(comms, 2, true));
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_finalize(comms[0]));
    uint64_t start = now_ms();
    tw_comm_free(comms[0]);
    EXPECT_LT(now_ms() - start, 1000u);
    EXPECT_TRUE(fails_within(comms[1], 1000));
    tw_comm_free(comms[1]);
}

/* ---- death ---- */

/* Ranks as processes, all ready; `victim` is killed. Returns what the others saw. */
static void kill_ready(int size, int victim, bool with_grandchild, std::vector<Outcome> *outcomes)
{
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;
    for (int rank = 0; rank < size; rank++) {
        children.push_back(std::make_unique<Child>([=](const Wire &wire) {
            twill_unique_id id = share_id(wire, rank == 0);
            Comm comm(args_of(rank, size, id));
            if (comm.connect() != TWILL_OK)
                return 1;
            pid_t grandchild = -1;
            if (rank == victim && with_grandchild) {
                grandchild = fork(); /* holds copies of all sockets while it lives */
                if (grandchild == 0) {
                    poll(nullptr, 0, 20000); /* until it is killed, or nobody is left to do so */
                    _exit(0);
                }
            }
            wire.put(grandchild);
            if (!fails_within(comm.get(), 20000))
                return 2;
            wire.put(outcome_of(comm.get()));
            return 0;
        }));
        all.push_back(children.back().get());
    }
    pass_id(all);
    pid_t grandchild = -1;
    for (int rank = 0; rank < size; rank++) {
        pid_t answer = -1;
        ASSERT_TRUE(all[rank]->wire.get(&answer)) << "rank " << rank;
        if (rank == victim)
            grandchild = answer;
    }
    pid_t victim_pid = children[victim]->pid();
    uint64_t killed_at = now_ms();
    children[victim]->kill(SIGKILL);
    for (int rank = 0; rank < size; rank++) {
        Outcome outcome;
        if (rank == victim)
            continue;
        EXPECT_TRUE(all[rank]->wire.get(&outcome)) << "rank " << rank;
        EXPECT_LT((int64_t)(outcome.at_ms - killed_at), 1000) << "rank " << rank;
        EXPECT_TRUE(contains(outcome.text, "(process " + std::to_string(victim_pid) + ")"))
            << outcome.text;
        outcomes->push_back(outcome);
        EXPECT_EQ(0, children[rank]->wait());
    }
    EXPECT_EQ(128 + SIGKILL, children[victim]->wait());
    if (grandchild > 0)
        kill(grandchild, SIGKILL);
}

TEST(Control, AKilledRankIsNamedByAllWithinASecond)
{
    for (int victim : {0, 1, 5}) {
        std::vector<Outcome> outcomes;
        kill_ready(6, victim, false, &outcomes);
        EXPECT_EQ(5u, outcomes.size());
        for (const Outcome &outcome : outcomes) {
            EXPECT_EQ(TWILL_ERR_PEER, outcome.status);
            EXPECT_TRUE(contains(outcome.text, "rank " + std::to_string(victim) + " (process"))
                << outcome.text;
            EXPECT_TRUE(contains(outcome.text, "is gone")) << outcome.text;
        }
    }
}

TEST(Control, AKilledRankWhoseChildHoldsItsSocketsIsNoticedToo)
{
    std::vector<Outcome> outcomes;
    kill_ready(4, 1, true, &outcomes);
    EXPECT_EQ(3u, outcomes.size());
    for (const Outcome &outcome : outcomes)
        EXPECT_EQ(TWILL_ERR_PEER, outcome.status);
}

/* A rank that ends in good order, process and all, is no loss to those that are still there. */
TEST(Control, AProcessThatLeavesInOrderIsNoFailure)
{
    twill_unique_id id = {};
    Child leaver([](const Wire &wire) {
        twill_unique_id own = share_id(wire, true);
        Comm comm(args_of(0, 3, own));
        return comm.connect() == TWILL_OK ? 0 : 1;
    });
    ASSERT_TRUE(leaver.wire.get(&id));
    struct twill_comm *comms[2];
    for (int i = 0; i < 2; i++) {
        struct tw_comm_args args = args_of(i + 1, 3, id);
        ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[i]));
    }
    ASSERT_EQ(TWILL_OK, tw_comm_connect(comms, 2, true));
    EXPECT_EQ(0, leaver.wait());
    for (struct twill_comm *comm : comms) {
        EXPECT_FALSE(fails_within(comm, 400)); /* longer than the grace for lost processes */
        tw_comm_free(comm);
    }
}
