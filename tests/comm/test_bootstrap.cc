/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include "inject.h"
#include "ranks.h"

extern "C" {
#include "base/time.h"
#include "comm/bootstrap.h"
}

static struct tw_id open_up(const twill_unique_id &id)
{
    struct tw_id inside;
    memcpy(&inside, &id, sizeof(inside));
    return inside;
}

/* Ranks as threads with a short deadline; returns what each ended with. */
struct Ending {
    enum twill_status status;
    std::string text;
    uint64_t ms;
};

static Ending try_connect(const struct tw_comm_args &args)
{
    uint64_t start = now_ms();
    Comm comm(args);
    enum twill_status status = comm.connect();
    return Ending{status, comm.failure(), now_ms() - start};
}

static bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

/* The last rank that was to come: it hears the cause too, and the meeting point goes at once. */
static void late_comer(int rank, int size, const twill_unique_id &id, const char *cause)
{
    Ending end = try_connect(args_of(rank, size, id));
    EXPECT_NE(TWILL_OK, end.status);
    EXPECT_TRUE(contains(end.text, cause)) << end.text;
}

/* Keeps the process's state. */
class Keep
{
  public:
    Keep() { EXPECT_EQ(TWILL_OK, tw_proc_get(&proc_)); }
    ~Keep() { tw_proc_put(); }

  private:
    struct tw_proc *proc_ = nullptr;
};

class Bootstrap : public ::testing::Test
{
  protected:
    void SetUp() override { before_ = count_now(); }
    void TearDown() override
    {
        EXPECT_TRUE(count_returns(before_));
        set_params({});
    }
    Count before_;
};

/* ---- mixes ---- */

TEST_F(Bootstrap, ThreadsInProcesses)
{
    const int threads[] = {1, 3, 2};
    const int size = 6;
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;
    int first = 0;
    for (int count : threads) {
        children.push_back(std::make_unique<Child>([=](const Wire &wire) {
            Count before = count_now();
            twill_unique_id id = share_id(wire, first == 0);
            on_threads(count, [&](int i) {
                int rank = first + i;
                Comm comm(args_of(rank, size, id));
                ASSERT_EQ(TWILL_OK, comm.connect()) << comm.failure();
                EXPECT_EQ(count, comm->ranks_here);
                EXPECT_EQ(size, comm->ranks_host);
                for (int p = 0; p < size; p++) {
                    if (p == rank)
                        continue;
                    bool same = p >= first && p < first + count;
                    EXPECT_EQ(same, tw_chan_same_process(comm->chan, p)) << rank << " " << p;
                }
                EXPECT_EQ(TWILL_OK, comm.finalize()) << comm.failure();
            });
            return count_returns(before) ? 0 : 1;
        }));
        all.push_back(children.back().get());
        first += count;
    }
    pass_id(all);
    for (auto &child : children)
        EXPECT_EQ(0, child->wait());
}

TEST_F(Bootstrap, OneThreadConnectsSeveralRanks)
{
    twill_unique_id id = new_id();
    struct twill_comm *comms[5];
    for (int rank = 0; rank < 5; rank++) {
        struct tw_comm_args args = args_of(rank, 5, id);
        ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[rank]));
    }
    EXPECT_EQ(TWILL_OK, tw_comm_connect(comms, 5, true));
    for (struct twill_comm *comm : comms) {
        EXPECT_EQ(TW_COMM_READY, comm->state);
        tw_comm_free(comm);
    }
}

TEST_F(Bootstrap, ManyCommunicatorsAtOnce)
{
    std::vector<twill_unique_id> ids;
    for (int i = 0; i < 8; i++)
        ids.push_back(new_id());
    on_threads(16, [&](int i) {
        Comm comm(args_of(i % 2, 2, ids[i / 2]));
        ASSERT_EQ(TWILL_OK, comm.connect()) << comm.failure();
        EXPECT_EQ(TWILL_OK, comm.finalize()) << comm.failure();
    });
}

TEST_F(Bootstrap, WithoutWaiting)
{
    twill_unique_id id = new_id();
    struct twill_comm *comms[3];
    for (int rank = 0; rank < 3; rank++) {
        struct tw_comm_args args = args_of(rank, 3, id);
        args.blocking = 0;
        ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[rank]));
    }
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(comms, 2, false));
    EXPECT_EQ(TW_COMM_INIT, __atomic_load_n(&comms[0]->state, __ATOMIC_ACQUIRE))
        << "rank 2 has not come";
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(&comms[2], 1, false));
    uint64_t until = now_ms() + 10000;
    for (struct twill_comm *comm : comms) {
        while (__atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) == TW_COMM_INIT && now_ms() < until)
            poll(nullptr, 0, 1);
        EXPECT_EQ(TW_COMM_READY, __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE));
        EXPECT_EQ(TWILL_OK, tw_comm_status(comm));
    }
    for (struct twill_comm *comm : comms)
        EXPECT_EQ(TWILL_INPROGRESS, tw_comm_finalize(comm));
    for (struct twill_comm *comm : comms) {
        while (__atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) != TW_COMM_FINALIZED &&
               now_ms() < until)
            poll(nullptr, 0, 1);
        EXPECT_EQ(TW_COMM_FINALIZED, __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE));
        tw_comm_free(comm);
    }
}

/* ---- ranks that do not fit ---- */

TEST_F(Bootstrap, AMissingRankIsNamedOnAllThatCame)
{
    set_params({{"INIT_TIMEOUT", "300ms"}});
    twill_unique_id id = new_id();
    Ending ends[4];
    on_threads(3, [&](int i) { ends[i] = try_connect(args_of(i == 2 ? 3 : i, 4, id)); });
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(TWILL_ERR_TIMEOUT, ends[i].status);
        EXPECT_TRUE(contains(ends[i].text, "3 of 4 ranks came within 0.3 s; missing: 2"))
            << ends[i].text;
        EXPECT_GE(ends[i].ms, 250u);
        EXPECT_LT(ends[i].ms, 5000u);
    }
    late_comer(2, 4, id, "3 of 4 ranks came within 0.3 s; missing: 2");
}

TEST_F(Bootstrap, SizesThatDifferAreToldToAll)
{
    twill_unique_id id = new_id();
    Ending ends[3];
    on_threads(3, [&](int i) { ends[i] = try_connect(args_of(i, i == 1 ? 5 : 4, id)); });
    for (auto &end : ends) {
        EXPECT_EQ(TWILL_ERR_MISMATCH, end.status) << end.text;
        EXPECT_TRUE(contains(end.text, "rank 1 says 5")) << end.text;
        EXPECT_TRUE(contains(end.text, " says 4")) << end.text;
    }
    late_comer(3, 4, id, "rank 1 says 5");
}

TEST_F(Bootstrap, ARankThatComesTwiceIsToldToAll)
{
    twill_unique_id id = new_id();
    Ending ends[3];
    on_threads(3, [&](int i) { ends[i] = try_connect(args_of(i / 2, 3, id)); });
    for (auto &end : ends) {
        EXPECT_EQ(TWILL_ERR_MISMATCH, end.status) << end.text;
        EXPECT_TRUE(contains(end.text, "rank 0 came twice")) << end.text;
    }
    late_comer(2, 3, id, "rank 0 came twice");
}

TEST_F(Bootstrap, OptionsThatDifferAreNamedWithBothValues)
{
    twill_unique_id id = new_id();
    Ending ends[2];
    on_threads(2, [&](int i) {
        struct tw_comm_args args = args_of(i, 2, id);
        args.deterministic = i;
        ends[i] = try_connect(args);
    });
    for (auto &end : ends) {
        EXPECT_EQ(TWILL_ERR_VERSION, end.status) << end.text;
        EXPECT_TRUE(contains(end.text, "rank 0 has deterministic=0")) << end.text;
        EXPECT_TRUE(contains(end.text, "rank 1 has deterministic=1")) << end.text;
    }
}

TEST_F(Bootstrap, ParametersOfOtherProcessesMustAgree)
{
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;
    for (int rank = 0; rank < 3; rank++) {
        children.push_back(std::make_unique<Child>([=](const Wire &wire) {
            set_params({{"ALGO", rank == 2 ? "ring" : ""}});
            Keep keep; /* rank 0 holds the meeting point until all have heard */
            twill_unique_id id = share_id(wire, rank == 0);
            Ending end = try_connect(args_of(rank, 3, id));
            EXPECT_EQ(TWILL_ERR_VERSION, end.status);
            EXPECT_TRUE(contains(end.text, "rank 2 has TWILL_ALGO=\"ring\"")) << end.text;
            EXPECT_TRUE(contains(end.text, "has TWILL_ALGO=\"\"")) << end.text;
            int byte = 0;
            (void)wire.get(&byte);
            return 0;
        }));
        all.push_back(children.back().get());
    }
    pass_id(all);
    for (int rank = 2; rank >= 0; rank--) {
        all[rank]->wire.put(1);
        EXPECT_EQ(0, children[rank]->wait());
    }
}

TEST(BootstrapHello, VersionsAndHostsAreNamed)
{
    struct tw_hello a = {};
    a.head.magic = TW_HELLO_MAGIC;
    a.head.protocol = TW_PROTOCOL;
    a.head.version = TWILL_VERSION;
    a.size = 4;
    strcpy(a.host_name, "left");
    strcpy(a.options, "x=1\ny=2\n");
    struct tw_hello b = a;
    struct tw_hello parsed;
    char text[TW_ERROR_TEXT_BYTES] = "";
    b.head.rank = 2;
    EXPECT_EQ(TWILL_OK, tw_hello_fits(&a, &b, text));
    EXPECT_EQ(TWILL_OK, tw_hello_parse((const uint8_t *)&b, sizeof(b), &parsed, text));
    b.head.version = 12345;
    EXPECT_EQ(TWILL_ERR_VERSION, tw_hello_fits(&a, &b, text));
    EXPECT_TRUE(contains(text, "rank 2 has 12345")) << text;
    b = a;
    b.head.rank = 2;
    b.proc.host[0] = 1;
    strcpy(b.host_name, "right");
    EXPECT_EQ(TWILL_ERR_UNSUPPORTED, tw_hello_fits(&a, &b, text));
    EXPECT_TRUE(contains(text, "rank 0 is on host left, rank 2 on host right")) << text;
    b = a;
    strcpy(b.options, "x=1\n");
    EXPECT_EQ(TWILL_ERR_VERSION, tw_hello_fits(&a, &b, text));
    b.head.protocol = 99;
    EXPECT_EQ(TWILL_ERR_VERSION, tw_hello_parse((const uint8_t *)&b, 200, &parsed, text));
    EXPECT_TRUE(contains(text, "protocol 99")) << text;
    b = a;
    b.head.rank = 4;
    EXPECT_EQ(TWILL_ERR_INVALID, tw_hello_parse((const uint8_t *)&b, sizeof(b), &parsed, text));
    EXPECT_EQ(TWILL_ERR_PEER, tw_hello_parse((const uint8_t *)"hello", 5, &parsed, text));
    memset(&b, 0xff, sizeof(b));
    EXPECT_EQ(TWILL_ERR_PEER, tw_hello_parse((const uint8_t *)&b, sizeof(b), &parsed, text));
}

TEST(BootstrapHello, OptionsThatDifferAreNamedWithBothValues)
{
    struct tw_params params[2] = {};
    struct tw_comm_args args[2] = {};
    char path[2][64];
    for (int i = 0; i < 2; i++) {
        params[i].shm = true;
        snprintf(path[i], sizeof(path[i]), "plan-%d-%d", (int)getpid(), i);
        FILE *file = fopen(path[i], "w");
        ASSERT_NE(nullptr, file);
        fprintf(file, "plan %d\n", i);
        fclose(file);
    }
    const struct {
        std::function<void()> set;
        const char *left, *right;
    } cases[] = {
        {[&] { args[1].channels = 3; }, "rank 0 has channels=0", "rank 1 has channels=3"},
        {[&] { args[0].deterministic = 1; }, "has deterministic=1", "has deterministic=0"},
        {[&] { strcpy(params[1].algo, "ring"); }, "has TWILL_ALGO=\"\"", "TWILL_ALGO=\"ring\""},
        {[&] { strcpy(params[0].proto, "simple"); }, "TWILL_PROTO=\"simple\"", "TWILL_PROTO=\"\""},
        {[&] { params[0].channels = 2; }, "TWILL_CHANNELS=2", "TWILL_CHANNELS=0"},
        {[&] { params[1].shm = false; }, "TWILL_SHM=1", "TWILL_SHM=0"},
        {[&] { strcpy(params[0].plan_file, path[0]); }, "with content ", "TWILL_PLAN_FILE=\"\""},
    };
    struct tw_hello hello[2] = {};
    char text[TW_ERROR_TEXT_BYTES] = "";
    const auto fits = [&] {
        for (int i = 0; i < 2; i++) {
            hello[i].head.rank = i;
            tw_hello_options(&args[i], &params[i], hello[i].options);
        }
        return tw_hello_fits(&hello[0], &hello[1], text);
    };
    for (const auto &c : cases) {
        const struct tw_params params_before[2] = {params[0], params[1]};
        const struct tw_comm_args args_before[2] = {args[0], args[1]};
        EXPECT_EQ(TWILL_OK, fits());
        c.set();
        EXPECT_EQ(TWILL_ERR_VERSION, fits());
        EXPECT_TRUE(contains(text, c.left)) << text;
        EXPECT_TRUE(contains(text, c.right)) << text;
        for (int i = 0; i < 2; i++) {
            params[i] = params_before[i];
            args[i] = args_before[i];
        }
    }
    /* one name, another content */
    strcpy(params[0].plan_file, path[0]);
    strcpy(params[1].plan_file, path[0]);
    tw_hello_options(&args[0], &params[0], hello[0].options);
    ASSERT_EQ(0, rename(path[1], path[0]));
    tw_hello_options(&args[1], &params[1], hello[1].options);
    EXPECT_EQ(TWILL_ERR_VERSION, tw_hello_fits(&hello[0], &hello[1], text));
    EXPECT_TRUE(contains(text, "with content ")) << text;
    EXPECT_EQ(TWILL_OK, fits());
    unlink(path[0]);
}

TEST(BootstrapHello, TheNameOfACallersSocketSaysItsRank)
{
    char name[TW_SOCK_NAME_BYTES], again[TW_SOCK_NAME_BYTES];
    for (int rank : {0, 7, 65535}) {
        tw_meet_caller_name(rank, name);
        tw_meet_caller_name(rank, again);
        EXPECT_STRNE(name, again);
        EXPECT_EQ(rank, tw_meet_caller_rank(name)) << name;
    }
    for (const char *none : {"", "twill-rank-", "twill-rank-3", "twill-rank--3-1", "twill-rank-x-1",
                             "twill-rank-65536-1", "twill-rank-99999999999999999999-1", "rank-3-1"})
        EXPECT_EQ(-1, tw_meet_caller_rank(none)) << none;
}

/* ---- strangers ---- */

static int knock(const char *name)
{
    int fd = -1;
    struct tw_sock_wait wait = {tw_deadline_ns(5 * TW_NS_S), -1};
    EXPECT_EQ(TWILL_OK, tw_sock_connect(&fd, name, &wait));
    return fd;
}

TEST_F(Bootstrap, AWrongKeyIsRefusedAndTheOthersGoOn)
{
    twill_unique_id id = new_id();
    struct tw_id wrong = open_up(id);
    wrong.key[5] ^= 1;
    twill_unique_id wrong_id;
    memcpy(&wrong_id, &wrong, sizeof(wrong_id));
    Ending end = try_connect(args_of(1, 2, wrong_id));
    EXPECT_EQ(TWILL_ERR_AUTH, end.status) << end.text;
    on_threads(2, [&](int rank) { EXPECT_EQ(TWILL_OK, try_connect(args_of(rank, 2, id)).status); });
}

TEST_F(Bootstrap, StrangersDoNotHoldUpTheRanks)
{
    twill_unique_id id = new_id();
    struct tw_id inside = open_up(id);
    std::vector<int> strangers;
    std::mt19937 random(7);
    for (int i = 0; i < 40; i++) {
        int fd = knock(inside.meet);
        std::vector<uint8_t> garbage(random() % 300);
        for (auto &byte : garbage)
            byte = (uint8_t)random();
        if (i % 2 != 0) { /* the others say nothing at all */
            EXPECT_EQ((ssize_t)garbage.size(),
                      send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL));
        }
        strangers.push_back(fd);
    }
    uint64_t start = now_ms();
    on_threads(3, [&](int rank) {
        Ending end = try_connect(args_of(rank, 3, id));
        EXPECT_EQ(TWILL_OK, end.status) << end.text;
    });
    EXPECT_LT(now_ms() - start, 4000u);
    for (int fd : strangers)
        close(fd);
}

TEST_F(Bootstrap, ARankThatTalksNonsenseEndsInit)
{
    twill_unique_id id = new_id();
    struct tw_id inside = open_up(id);
    struct tw_sock_wait wait = {tw_deadline_ns(5 * TW_NS_S), -1};
    struct twill_comm *comm = nullptr;
    struct tw_comm_args args = args_of(0, 2, id);
    ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comm));
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(&comm, 1, false));
    int fd = knock(inside.meet);
    EXPECT_EQ(TWILL_OK, tw_sock_prove(fd, inside.key, 0, TW_MEET_CONTEXT, &wait));
    EXPECT_EQ(TWILL_OK, tw_sock_send_msg(fd, "who is there?", 13, &wait));
    EXPECT_TRUE(fails_within(comm, 5000));
    Outcome outcome = outcome_of(comm);
    EXPECT_EQ(TWILL_ERR_PEER, outcome.status);
    EXPECT_TRUE(contains(outcome.text, "13 bytes")) << outcome.text;
    close(fd);
    tw_comm_free(comm);
    late_comer(1, 2, id, "13 bytes");
}

/* A rank that is played by hand, to be lost at an exact place. */
class Puppet
{
  public:
    Puppet(const twill_unique_id &id, int rank, int size) : rank_(rank)
    {
        struct tw_id inside = open_up(id);
        struct tw_hello hello = {};
        wait_ = {tw_deadline_ns(10 * TW_NS_S), -1};
        EXPECT_EQ(TWILL_OK, tw_sock_listen(&door_, "", hello.door));
        meet_ = knock(inside.meet);
        EXPECT_EQ(TWILL_OK, tw_sock_prove(meet_, inside.key, 0, TW_MEET_CONTEXT, &wait_));
        struct tw_proc *proc = nullptr;
        EXPECT_EQ(TWILL_OK, tw_proc_get(&proc));
        hello.head = {TW_HELLO_MAGIC, TW_PROTOCOL, TWILL_VERSION, rank};
        hello.size = size;
        hello.pid = 4242;
        hello.proc = proc->id;
        tw_random(hello.proc.nonce, sizeof(hello.proc.nonce));
        tw_proc_put();
        strcpy(hello.options, options());
        EXPECT_EQ(TWILL_OK, tw_sock_send_msg(meet_, &hello, sizeof(hello), &wait_));
    }
    ~Puppet()
    {
        close(meet_);
        close(door_);
        if (parent_ >= 0)
            close(parent_);
    }
    void take_welcome()
    {
        struct tw_frame_head head;
        EXPECT_EQ(TWILL_OK, tw_sock_recv(meet_, &head, sizeof(head), &wait_));
        EXPECT_EQ(TW_FRAME_WELCOME, head.type);
        EXPECT_EQ(sizeof(welcome_), head.bytes);
        EXPECT_EQ(TWILL_OK, tw_sock_recv(meet_, &welcome_, sizeof(welcome_), &wait_));
    }
    void join_parent()
    {
        char context[TW_CONTEXT_BYTES];
        const struct {
            uint32_t magic;
            int32_t rank;
        } hello = {TW_HELLO_MAGIC, rank_};
        tw_tree_context(welcome_.nonce, context);
        parent_ = knock(welcome_.parent_door);
        EXPECT_EQ(TWILL_OK, tw_sock_prove(parent_, welcome_.key, 0, context, &wait_));
        EXPECT_EQ(TWILL_OK, tw_sock_send_msg(parent_, &hello, sizeof(hello), &wait_));
    }
    void say_to_parent(const void *data, size_t bytes)
    {
        EXPECT_EQ(TWILL_OK, tw_sock_send(parent_, data, bytes, &wait_));
    }
    static const char *options()
    {
        return "channels=0\ndeterministic=0\nTWILL_ALGO=\"\"\nTWILL_PROTO=\"\"\n"
               "TWILL_CHANNELS=0\nTWILL_PLAN_FILE=\"\"\nTWILL_SHM=1\n";
    }

  private:
    int rank_, meet_ = -1, door_ = -1, parent_ = -1;
    struct tw_sock_wait wait_;
    struct tw_welcome welcome_;
};

/* Two real ranks and a puppet as rank 2, which is lost after `act`; both others know at once. */
static void lose_puppet(const std::function<void(Puppet &)> &act, const char *expected)
{
    twill_unique_id id = new_id();
    struct twill_comm *comms[2];
    for (int rank = 0; rank < 2; rank++) {
        struct tw_comm_args args = args_of(rank, 3, id);
        ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[rank]));
    }
    auto puppet = std::make_unique<Puppet>(id, 2, 3);
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(comms, 2, false));
    act(*puppet);
    puppet.reset();
    for (struct twill_comm *comm : comms) {
        EXPECT_TRUE(fails_within(comm, 1000));
        Outcome outcome = outcome_of(comm);
        EXPECT_EQ(TWILL_ERR_PEER, outcome.status);
        EXPECT_TRUE(contains(outcome.text, expected)) << outcome.text;
        EXPECT_EQ(TW_COMM_INIT, comm->state) << "what failed in init never becomes ready";
        tw_comm_free(comm);
    }
}

TEST_F(Bootstrap, LostBeforeItsHello)
{
    twill_unique_id id = new_id();
    struct tw_id inside = open_up(id);
    struct tw_sock_wait wait = {tw_deadline_ns(5 * TW_NS_S), -1};
    struct tw_comm_args args = args_of(0, 2, id);
    struct twill_comm *comm = nullptr;
    ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comm));
    EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(&comm, 1, false));
    int fd = knock(inside.meet);
    EXPECT_EQ(TWILL_OK, tw_sock_prove(fd, inside.key, 0, TW_MEET_CONTEXT, &wait));
    close(fd);
    EXPECT_TRUE(fails_within(comm, 1000));
    Outcome outcome = outcome_of(comm);
    EXPECT_EQ(TWILL_ERR_PEER, outcome.status);
    EXPECT_TRUE(contains(outcome.text, "gone before it said which rank")) << outcome.text;
    tw_comm_free(comm);
    late_comer(1, 2, id, "gone before it said which rank");
}

TEST_F(Bootstrap, LostAfterItsHello)
{
    lose_puppet([](Puppet &) {}, "rank 2");
}
TEST_F(Bootstrap, LostAfterTheWelcome)
{
    lose_puppet([](Puppet &puppet) { puppet.take_welcome(); }, "rank 2");
}
TEST_F(Bootstrap, LostAfterItJoinedTheTree)
{
    lose_puppet(
        [](Puppet &puppet) {
            puppet.take_welcome();
            puppet.join_parent();
        },
        "rank 2");
}
TEST_F(Bootstrap, LostInTheMiddleOfAFrame)
{
    lose_puppet(
        [](Puppet &puppet) {
            puppet.take_welcome();
            puppet.join_parent();
            const struct tw_frame_head head = {100, TW_FRAME_DATA, 0x7477};
            puppet.say_to_parent(&head, sizeof(head));
            puppet.say_to_parent("half", 4);
        },
        "rank 2");
}
TEST_F(Bootstrap, GarbageInTheTree)
{
    lose_puppet(
        [](Puppet &puppet) {
            puppet.take_welcome();
            puppet.join_parent();
            std::vector<uint8_t> garbage(100000, 0xa5);
            puppet.say_to_parent(garbage.data(), garbage.size());
        },
        "rank 2");
}
TEST_F(Bootstrap, AFrameOfTheWrongLength)
{
    lose_puppet(
        [](Puppet &puppet) {
            puppet.take_welcome();
            puppet.join_parent();
            const struct tw_frame_head head = {4, TW_FRAME_DATA, 0x7477};
            puppet.say_to_parent(&head, sizeof(head));
            puppet.say_to_parent("four", 4);
        },
        "rank 2");
}

/* ---- aborts ----
 * An id whose ranks were aborted before they came stays good, and its meeting point open: these
 * tests leave some behind, so each runs in a process of its own. */

static void in_child(const std::function<void()> &body)
{
    Child child([&](const Wire &) {
        body();
        return 0;
    });
    EXPECT_EQ(0, child.wait());
}

static void prepare(struct twill_comm **comms, int count, int size, const twill_unique_id &id)
{
    for (int rank = 0; rank < count; rank++) {
        struct tw_comm_args args = args_of(rank, size, id);
        ASSERT_EQ(TWILL_OK, tw_comm_prepare(&args, &comms[rank]));
    }
}

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
            std::this_thread::sleep_for(std::chrono::microseconds(pause_us)); /* the moment */
            tw_comm_abort(comms[who]);
            EXPECT_EQ(TWILL_ERR_ABORTED, tw_comm_status(comms[who]));
            uint64_t start = now_ms();
            for (struct twill_comm *comm : comms)
                tw_comm_free(comm);
            EXPECT_LT(now_ms() - start, 2000u);
        }
    });
}

TEST_F(Bootstrap, PreparedButNeverConnected)
{
    twill_unique_id id = new_id();
    Comm unused(args_of(0, 2, id));
    unused.free();
    on_threads(2, [&](int rank) { EXPECT_EQ(TWILL_OK, try_connect(args_of(rank, 2, id)).status); });
}

/* ---- those who come late ---- */

static bool meets(struct twill_comm *comm)
{
    tw_loop_lock(comm->ctl->loop);
    bool up = tw_link_up(&comm->ctl->meet);
    tw_loop_unlock(comm->ctl->loop);
    return up;
}

static void await_meeting(struct twill_comm *comm)
{
    uint64_t until = now_ms() + 10000;
    while (!meets(comm) && now_ms() < until)
        poll(nullptr, 0, 1);
    EXPECT_TRUE(meets(comm));
}

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

/* ---- other users ---- */

static std::string log_text(const std::string &path)
{
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

TEST(BootstrapUsers, AnotherUserIsTurnedAwayAndTheRanksMeet)
{
    in_child([] {
        std::string path = "/tmp/twill-users-" + std::to_string(getpid());
        set_params({{"LOG_FILE", path}});
        twill_unique_id id = new_id();
        struct tw_id inside = open_up(id);
        inject::foreign_peers(2);
        for (int i = 0; i < 2; i++) {
            char byte = 0;
            int fd = knock(inside.meet);
            const std::string proof(64, 'x');
            (void)!send(fd, proof.data(), proof.size(), MSG_NOSIGNAL);
            struct pollfd polled = {fd, POLLIN, 0};
            EXPECT_EQ(1, poll(&polled, 1, 5000));
            EXPECT_LE(recv(fd, &byte, 1, 0), 0) << "not even a nonce is said to it";
            close(fd);
        }
        EXPECT_EQ(0, inject::foreign_left());
        on_threads(2, [&](int rank) {
            Ending end = try_connect(args_of(rank, 2, id));
            EXPECT_EQ(TWILL_OK, end.status) << end.text;
        });
        std::string text = log_text(path);
        EXPECT_TRUE(contains(text, "process " + std::to_string(getpid()) + " of user " +
                                       std::to_string(geteuid() + 1) + " was turned away"))
            << text;
        EXPECT_TRUE(contains(text, "this job is user " + std::to_string(geteuid()) + "'s")) << text;
        unlink(path.c_str());
    });
}

/* A rank of another user holds even the key: it is told nothing, and is missed by its name. */
TEST(BootstrapUsers, ARankOfAnotherUserIsMissed)
{
    in_child([] {
        set_params({{"INIT_TIMEOUT", "300ms"}});
        twill_unique_id id = new_id();
        struct twill_comm *first = nullptr;
        prepare(&first, 1, 2, id);
        EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(&first, 1, false));
        await_meeting(first);
        inject::foreign_peers(1);
        Ending foreign = try_connect(args_of(1, 2, id));
        EXPECT_EQ(TWILL_ERR_PEER, foreign.status) << foreign.text;
        EXPECT_TRUE(fails_within(first, 5000));
        EXPECT_TRUE(contains(outcome_of(first).text, "missing: 1")) << outcome_of(first).text;
        tw_comm_free(first);
    });
}

/* Without a key a rank looks at who has opened the meeting point before it says anything. */
TEST(BootstrapUsers, AMeetingPointOfAnotherUserIsRefused)
{
    in_child([] {
        int listener = -1;
        char actual[TW_SOCK_NAME_BYTES];
        const struct tw_sock_wait wait = {tw_deadline_ns(5 * TW_NS_S), -1};
        struct tw_proc *proc = nullptr;
        const uint8_t key[TW_KEY_BYTES] = {};
        struct tw_comm_args args = args_of(1, 2, {});
        ASSERT_EQ(TWILL_OK, tw_sock_listen(&listener, "", actual));
        ASSERT_EQ(TWILL_OK, tw_proc_get(&proc));
        ASSERT_EQ(TWILL_OK, tw_id_fill(&proc->host, key, actual, &args.id));
        args.keyless = args.from_env = true;
        inject::foreign_peers(1);
        Ending end = try_connect(args);
        EXPECT_EQ(TWILL_ERR_AUTH, end.status) << end.text;
        EXPECT_TRUE(contains(end.text, "belongs to user " + std::to_string(geteuid() + 1)))
            << end.text;
        EXPECT_TRUE(contains(end.text, "this job's user " + std::to_string(geteuid()))) << end.text;
        int fd = -1;
        char byte = 0;
        ASSERT_EQ(TWILL_OK, tw_sock_accept(&fd, listener, &wait));
        EXPECT_EQ(0, recv(fd, &byte, 1, 0)) << "it was told nothing";
        close(fd);
        close(listener);
        tw_proc_put();
    });
}

/* ---- kills ---- */

/* Two ranks of three; the third one's process ends while it proves the key, or before it is heard
 * at all. */
TEST_F(Bootstrap, KilledBeforeItHasProvenTheKey)
{
    for (bool early : {false, true}) {
        Child ranks([](const Wire &wire) {
            twill_unique_id id = share_id(wire, true);
            struct twill_comm *comms[2];
            prepare(comms, 2, 3, id);
            EXPECT_EQ(TWILL_INPROGRESS, tw_comm_connect(comms, 2, false));
            for (struct twill_comm *comm : comms)
                await_meeting(comm);
            wire.put(1);
            for (struct twill_comm *comm : comms) {
                EXPECT_TRUE(fails_within(comm, 20000));
                wire.put(outcome_of(comm));
                tw_comm_free(comm);
            }
            return 0;
        });
        Child victim([&](const Wire &wire) {
            struct tw_id inside = open_up(share_id(wire, false));
            const struct tw_sock_wait wait = {tw_deadline_ns(5 * TW_NS_S), -1};
            char own[TW_SOCK_NAME_BYTES];
            int fd = -1;
            tw_meet_caller_name(2, own);
            EXPECT_EQ(TWILL_OK, tw_sock_connect_as(&fd, own, inside.meet, &wait));
            if (early)
                raise(SIGKILL);
            char nonce[32];
            EXPECT_EQ(TWILL_OK, tw_sock_recv(fd, nonce, sizeof(nonce), &wait));
            wire.put(1);
            pause();
            return 0;
        });
        int byte = 0;
        twill_unique_id id = {};
        ASSERT_TRUE(ranks.wire.get(&id));
        ASSERT_TRUE(ranks.wire.get(&byte));
        victim.wire.put(id);
        if (!early) {
            ASSERT_TRUE(victim.wire.get(&byte));
            victim.kill(SIGKILL);
        }
        pid_t pid = victim.pid();
        uint64_t killed_at = now_ms();
        EXPECT_EQ(128 + SIGKILL, victim.wait());
        for (int rank = 0; rank < 2; rank++) {
            Outcome outcome;
            ASSERT_TRUE(ranks.wire.get(&outcome));
            EXPECT_EQ(TWILL_ERR_PEER, outcome.status);
            EXPECT_TRUE(
                contains(outcome.text, "rank 2 (process " + std::to_string(pid) + ") is gone"))
                << outcome.text;
            EXPECT_LT((int64_t)(outcome.at_ms - killed_at), 1000);
        }
        EXPECT_EQ(0, ranks.wait());
    }
}

/* Four processes; one is killed at some moment around init. The others know within a second, in
 * init or after it; but a rank that dies before it has said which one it is is only missed. */
TEST_F(Bootstrap, KilledAtAnyMoment)
{
    std::mt19937 random(3);
    for (int round = 0; round < 8; round++) {
        const int size = 4;
        int victim = (int)(random() % size);
        unsigned pause_us = random() % 12000;
        std::vector<std::unique_ptr<Child>> children;
        std::vector<Child *> all;
        for (int rank = 0; rank < size; rank++) {
            children.push_back(std::make_unique<Child>([=](const Wire &wire) {
                set_params({{"INIT_TIMEOUT", "500ms"}});
                twill_unique_id id = share_id(wire, rank == 0);
                Comm comm(args_of(rank, size, id));
                (void)comm.connect();
                if (!fails_within(comm.get(), 20000))
                    return 1;
                wire.put(outcome_of(comm.get()));
                return 0;
            }));
            all.push_back(children.back().get());
        }
        pass_id(all);
        std::this_thread::sleep_for(std::chrono::microseconds(pause_us)); /* the moment */
        children[victim]->kill(SIGKILL);
        uint64_t killed_at = now_ms();
        EXPECT_EQ(128 + SIGKILL, children[victim]->wait());
        for (int rank = 0; rank < size; rank++) {
            Outcome outcome;
            if (rank == victim)
                continue;
            EXPECT_TRUE(all[rank]->wire.get(&outcome)) << "round " << round << " rank " << rank;
            if (outcome.status == TWILL_ERR_TIMEOUT) {
                EXPECT_TRUE(contains(outcome.text, "missing: " + std::to_string(victim)))
                    << outcome.text;
            } else {
                EXPECT_EQ(TWILL_ERR_PEER, outcome.status) << outcome.text;
                EXPECT_LT((int64_t)(outcome.at_ms - killed_at), 1000) << outcome.text;
            }
            EXPECT_EQ(0, children[rank]->wait());
        }
    }
}
