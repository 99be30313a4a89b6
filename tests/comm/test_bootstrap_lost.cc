/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <random>

#include "bootstrap.h"

extern "C" {
#include "base/time.h"
}

/* ---- strangers ---- */

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
        return "buffers=host\nchannels=0\ndeterministic=0\nTWILL_ALGO=\"\"\nTWILL_PROTO=\"\"\n"
               "TWILL_PLAN_FILE=\"\"\nTWILL_SHM=1\n";
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
