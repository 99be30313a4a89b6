/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
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

static bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

/* ---- the loop ---- */

struct Counter {
    struct tw_source source = {};
    std::atomic<int> events{0};
};

static void count_event(struct tw_source *source, uint32_t)
{
    Counter *counter = (Counter *)source->owner;
    uint64_t value = 0;
    EXPECT_EQ((ssize_t)sizeof(value), read(source->fd, &value, sizeof(value)));
    counter->events++;
}

static void raise_event(int fd)
{
    const uint64_t one = 1;
    EXPECT_EQ((ssize_t)sizeof(one), write(fd, &one, sizeof(one)));
}

static void wait_for(const std::function<bool()> &done)
{
    uint64_t until = now_ms() + 10000;
    while (!done() && now_ms() < until)
        poll(nullptr, 0, 1);
    EXPECT_TRUE(done());
}

TEST(ControlLoop, ServesManySourcesUntilUnwatched)
{
    Count before = count_now();
    struct tw_loop *loop = nullptr;
    ASSERT_EQ(TWILL_OK, tw_loop_create(&loop));
    std::vector<std::unique_ptr<Counter>> counters;
    for (int i = 0; i < 40; i++) { /* more than the first table has room for */
        counters.push_back(std::make_unique<Counter>());
        Counter &counter = *counters.back();
        counter.source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        counter.source.owner = &counter;
        counter.source.on_event = count_event;
        tw_loop_lock(loop);
        EXPECT_EQ(TWILL_OK, tw_loop_watch(loop, &counter.source, EPOLLIN));
        tw_loop_unlock(loop);
    }
    for (auto &counter : counters)
        raise_event(counter->source.fd);
    for (auto &counter : counters)
        wait_for([&] { return counter->events == 1; });
    for (auto &counter : counters) {
        tw_loop_lock(loop);
        raise_event(counter->source.fd);
        tw_loop_unwatch(loop, &counter->source);
        tw_loop_unwatch(loop, &counter->source); /* accepted */
        tw_loop_unlock(loop);
        close(counter->source.fd);
        EXPECT_LE(counter->events, 1);
    }
    tw_loop_destroy(loop);
    tw_loop_destroy(nullptr);
    for (auto &counter : counters)
        EXPECT_LE(counter->events, 2);
    EXPECT_TRUE(count_returns(before));
}

struct Later {
    struct tw_later later = {};
    struct tw_loop *loop = nullptr;
    std::atomic<int> runs{0};
    std::atomic<bool> entered{false}, hold{false};
};

static void run_later(struct tw_later *later)
{
    Later *self = (Later *)later;
    self->entered = true;
    while (self->hold)
        poll(nullptr, 0, 1);
    self->runs++;
    tw_loop_lock(self->loop);
    later->running = false;
    tw_loop_unlock(self->loop);
}

TEST(ControlLoop, ForgetWaitsForWhatRuns)
{
    struct tw_loop *loop = nullptr;
    ASSERT_EQ(TWILL_OK, tw_loop_create(&loop));
    Later running;
    Later queued;
    running.loop = queued.loop = loop;
    running.later.run = queued.later.run = run_later;
    running.hold = true;
    tw_loop_lock(loop);
    tw_loop_later(loop, &running.later);
    tw_loop_unlock(loop);
    wait_for([&] { return running.entered.load(); });
    tw_loop_lock(loop);
    tw_loop_later(loop, &queued.later);
    tw_loop_later(loop, &queued.later); /* once is enough */
    tw_loop_forget(loop, &queued.later);
    tw_loop_unlock(loop);
    std::thread release([&] {
        poll(nullptr, 0, 20);
        running.hold = false;
    });
    tw_loop_lock(loop);
    tw_loop_forget(loop, &running.later);
    EXPECT_EQ(1, running.runs);
    tw_loop_unlock(loop);
    release.join();
    tw_loop_destroy(loop);
    EXPECT_EQ(0, queued.runs);
}

/* ---- links ---- */

struct LinkEnd {
    struct tw_link link = {};
    struct tw_loop *loop = nullptr;
    std::vector<std::vector<uint8_t>> frames; /* under the loop's lock */
    std::vector<int> types;
    std::string down;
};

static void end_frame(struct tw_link *link, enum tw_frame_type type, uint8_t *payload,
                      uint32_t bytes)
{
    LinkEnd *end = (LinkEnd *)link->owner;
    end->types.push_back(type);
    end->frames.emplace_back(payload, payload + bytes);
}

static void end_down(struct tw_link *link, const char *why)
{
    ((LinkEnd *)link->owner)->down = why;
}

class ControlLink : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_EQ(TWILL_OK, tw_loop_create(&loop_));
        ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_));
        end_.link.owner = &end_;
        end_.link.max_bytes = 1 << 20;
        end_.link.on_frame = end_frame;
        end_.link.on_down = end_down;
        tw_loop_lock(loop_);
        EXPECT_EQ(TWILL_OK, tw_link_open(&end_.link, loop_, fds_[0]));
        tw_loop_unlock(loop_);
    }
    void TearDown() override
    {
        tw_loop_lock(loop_);
        tw_link_close(&end_.link);
        tw_loop_unlock(loop_);
        tw_loop_destroy(loop_);
        if (fds_[1] >= 0)
            close(fds_[1]);
    }
    void say(const void *data, size_t bytes)
    {
        EXPECT_EQ((ssize_t)bytes, send(fds_[1], data, bytes, MSG_NOSIGNAL));
    }
    bool locked(const std::function<bool()> &what)
    {
        tw_loop_lock(loop_);
        bool result = what();
        tw_loop_unlock(loop_);
        return result;
    }
    void expect_down(const char *why)
    {
        wait_for([&] { return locked([&] { return !end_.down.empty(); }); });
        EXPECT_TRUE(contains(end_.down, why)) << end_.down;
        EXPECT_FALSE(tw_link_up(&end_.link));
    }
    struct tw_loop *loop_ = nullptr;
    LinkEnd end_;
    int fds_[2] = {-1, -1};
};

static struct tw_frame_head head_of(uint32_t bytes, int type)
{
    struct tw_frame_head head = {bytes, (uint16_t)type, 0x7477};
    return head;
}

TEST_F(ControlLink, PutsFramesTogetherByteByByte)
{
    struct tw_frame_head head = head_of(3, TW_FRAME_DATA);
    uint8_t bytes[sizeof(head) + 3];
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), "abc", 3);
    for (uint8_t byte : bytes)
        say(&byte, 1);
    head = head_of(0, TW_FRAME_BYE);
    say(&head, sizeof(head));
    wait_for([&] { return locked([&] { return end_.types.size() == 2; }); });
    EXPECT_EQ(TW_FRAME_DATA, end_.types[0]);
    EXPECT_EQ(std::vector<uint8_t>({'a', 'b', 'c'}), end_.frames[0]);
    EXPECT_EQ(TW_FRAME_BYE, end_.types[1]);
    EXPECT_TRUE(end_.frames[1].empty());
}

TEST_F(ControlLink, SendsMoreThanTheSocketTakesAtOnce)
{
    std::vector<uint8_t> sent(1 << 20);
    for (size_t i = 0; i < sent.size(); i++)
        sent[i] = (uint8_t)(i * 31 + (i >> 8));
    tw_loop_lock(loop_);
    tw_link_send(&end_.link, TW_FRAME_DATA, sent.data(), (uint32_t)sent.size());
    tw_link_send(&end_.link, TW_FRAME_FIN, nullptr, 0);
    tw_loop_unlock(loop_);
    std::vector<uint8_t> got(sent.size() + 2 * sizeof(struct tw_frame_head));
    size_t used = 0;
    while (used < got.size()) {
        ssize_t more = read(fds_[1], got.data() + used, got.size() - used);
        ASSERT_GT(more, 0);
        used += (size_t)more;
    }
    EXPECT_EQ(0, memcmp(got.data() + sizeof(struct tw_frame_head), sent.data(), sent.size()));
    struct tw_frame_head last;
    memcpy(&last, got.data() + got.size() - sizeof(last), sizeof(last));
    EXPECT_EQ(TW_FRAME_FIN, last.type);
}

TEST_F(ControlLink, APeerThatDoesNotReadIsGivenUpWithoutWaiting)
{
    std::vector<uint8_t> data(1 << 20);
    tw_loop_lock(loop_);
    for (int i = 0; i < 4; i++)
        tw_link_send(&end_.link, TW_FRAME_DATA, data.data(), (uint32_t)data.size());
    tw_loop_unlock(loop_);
    expect_down("control link");
}

TEST_F(ControlLink, TheEndIsSeenAfterTheLastFrame)
{
    struct tw_frame_head head = head_of(0, TW_FRAME_BYE);
    say(&head, sizeof(head));
    close(fds_[1]);
    fds_[1] = -1;
    expect_down("closed its control link");
    EXPECT_EQ(1u, end_.types.size());
}

TEST_F(ControlLink, RefusesAWrongMark)
{
    struct tw_frame_head head = head_of(0, TW_FRAME_BYE);
    head.mark = 1;
    say(&head, sizeof(head));
    expect_down("garbage");
}
TEST_F(ControlLink, RefusesAnUnknownType)
{
    struct tw_frame_head head = head_of(0, 99);
    say(&head, sizeof(head));
    expect_down("garbage (mark 0x7477, type 99");
}
TEST_F(ControlLink, RefusesAnAbsurdLength)
{
    struct tw_frame_head head = head_of(0xffffffff, TW_FRAME_DATA);
    say(&head, sizeof(head));
    expect_down("4294967295 bytes");
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
                    poll(nullptr, 0, 20000);
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
