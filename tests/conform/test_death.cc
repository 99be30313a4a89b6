/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: peers that are killed, in each phase. Never knows: orderly ends. */
#include <signal.h>
#include <sys/prctl.h>

#include <atomic>

#include "pair.h"

extern "C" {
#include "transport/hostmem.h"
}

using namespace twtest;

namespace
{

const tw_transport *shm() { return tw_transport_find("shm"); }

std::atomic<int> lost_calls;
void count_lost(void *, const tw_proc_id *) { lost_calls++; }

struct Stage {
    Meeting meeting;
    tw_proc_id ids[2];
    tw_blob addresses[2];
    tw_blob blobs[4];
    std::atomic<uint64_t> word{0};
};

/* One of two processes: this one, or the victim. */
struct Process {
    tw_net *net = nullptr;
    tw_listener *listener = nullptr;
    tw_ep *ep = nullptr;

    void open(Stage &stage, int index)
    {
        tw_net_config config = {};
        config.self = fresh_id();
        config.self.nonce[0] = (uint8_t)(index == 0 ? 0 : 255); /* this process connects */
        config.staging_bytes = 1 << 20;
        config.allow_cma = true;
        config.on_peer_lost = count_lost;
        ASSERT_EQ(TWILL_OK, shm()->net->open(&config, &net));
        ASSERT_EQ(TWILL_OK, shm()->net->listen(net, kKey, &listener, &stage.addresses[index]));
        stage.ids[index] = config.self;
        stage.meeting.meet();
    }
    enum twill_status connect(Stage &stage, int index)
    {
        tw_sock_wait wait = wait_for(20 * TW_NS_S);
        return shm()->net->ep_get(net, &stage.ids[1 - index], &stage.addresses[1 - index], kKey,
                                  &wait, &ep);
    }
    void shut()
    {
        shm()->net->ep_put(ep);
        shm()->net->unlisten(listener);
        shm()->net->close(net);
    }
    /* Within a second, as promised. */
    void expect_lost()
    {
        uint64_t start = tw_now_ns();
        while (shm()->net->ep_status(ep) == TWILL_OK && tw_now_ns() - start < 10 * TW_NS_S) {
            std::this_thread::yield();
        }
        EXPECT_EQ(TWILL_ERR_PEER, shm()->net->ep_status(ep));
        EXPECT_LT(tw_now_ns() - start, TW_NS_S);
        while (lost_calls == 0 && tw_now_ns() - start < 10 * TW_NS_S) {
            std::this_thread::yield();
        }
        EXPECT_EQ(1, lost_calls);
    }
};

class Death : public testing::Test
{
  protected:
    Shared<Stage> stage;
    int before = 0;

    void SetUp() override
    {
        stage->meeting.init(2);
        lost_calls = 0;
        before = open_descriptors();
    }
    void TearDown() override { EXPECT_EQ(before, open_descriptors()); }
    /* A process that does something and then waits to be killed. */
    pid_t victim(const std::function<void()> &body)
    {
        return fork_side([&] {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            body();
            for (;;) {
                pause();
            }
        });
    }
    static void kill_it(pid_t pid)
    {
        kill(pid, SIGKILL);
        EXPECT_EQ(pid, waitpid(pid, nullptr, 0));
    }
};

TEST_F(Death, BeforeTheConnection)
{
    pid_t pid = victim([&] {
        Process me;
        me.open(*stage, 1);
    });
    Process me;
    me.open(*stage, 0);
    kill_it(pid);
    EXPECT_EQ(TWILL_ERR_PEER, me.connect(*stage, 0));
    EXPECT_EQ(0, lost_calls);
    me.shut();
}

/* It accepts connections, as the kernel does that for it, and never answers. */
TEST_F(Death, WhileItIsGreeted)
{
    pid_t pid = victim([&] {
        Process me;
        me.open(*stage, 1);
        raise(SIGSTOP);
    });
    Process me;
    me.open(*stage, 0);
    int status;
    ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
    ASSERT_TRUE(WIFSTOPPED(status));
    std::thread getting([&] { EXPECT_EQ(TWILL_ERR_PEER, me.connect(*stage, 0)); });
    kill_it(pid);
    getting.join();
    me.shut();
}

TEST_F(Death, WhenIdle)
{
    pid_t pid = victim([&] {
        Process me;
        me.open(*stage, 1);
        EXPECT_EQ(TWILL_OK, me.connect(*stage, 1));
        stage->meeting.meet();
    });
    Process me;
    me.open(*stage, 0);
    ASSERT_EQ(TWILL_OK, me.connect(*stage, 0));
    stage->meeting.meet();
    kill_it(pid);
    me.expect_lost();
    tw_ep *again = nullptr;
    tw_sock_wait wait = wait_for(20 * TW_NS_S);
    EXPECT_EQ(TWILL_ERR_PEER, shm()->net->ep_get(me.net, &stage->ids[1], &stage->addresses[1], kKey,
                                                 &wait, &again));
    me.shut();
}

/* The victim has a child of its own that holds copies of its sockets, as data loaders do. */
TEST_F(Death, WhenItsChildLivesOn)
{
    Shared<std::atomic<pid_t>> child;
    pid_t pid = victim([&] {
        Process me;
        me.open(*stage, 1);
        EXPECT_EQ(TWILL_OK, me.connect(*stage, 1));
        pid_t grandchild = fork();
        if (grandchild == 0) {
            alarm(60);
            for (;;) {
                pause();
            }
        }
        *child = grandchild;
        stage->meeting.meet();
    });
    Process me;
    me.open(*stage, 0);
    ASSERT_EQ(TWILL_OK, me.connect(*stage, 0));
    stage->meeting.meet();
    kill_it(pid);
    me.expect_lost();
    ASSERT_GT(*child, 0);
    EXPECT_EQ(0, kill(*child, SIGKILL));
    me.shut();
}

/* In the middle of a stream each way: what it had sent stays readable, nothing crashes, and the
 * memory it could write comes back. */
TEST_F(Death, InMidTransfer)
{
    const tw_fifo_ops *ops = shm()->fifo;
    auto ends = [&](Process &me, int index, tw_fifo **out, tw_fifo **in) {
        ASSERT_EQ(TWILL_OK, ops->create(me.ep, 16384, in, &stage->blobs[index]));
        stage->meeting.meet();
        ASSERT_EQ(TWILL_OK, ops->attach(me.ep, &stage->blobs[1 - index], out));
        ASSERT_EQ(TWILL_OK, ops->layout(*in, 1, 4));
        ASSERT_EQ(TWILL_OK, ops->layout(*out, 1, 4));
    };
    auto pump = [&](tw_fifo *out, tw_fifo *in, uint64_t &sent, uint64_t &taken) {
        void *data;
        tw_msg msg;
        if (ops->reserve(out, 0, &data) == TWILL_OK) {
            memset(data, (int)(sent % 256), 3000);
            ops->commit(out, 0, 3000, sent++);
        }
        if (ops->peek(in, 0, &msg) == TWILL_OK) {
            EXPECT_EQ(taken, msg.header);
            EXPECT_EQ(3000u, msg.bytes);
            EXPECT_EQ(taken % 256, static_cast<const unsigned char *>(msg.data)[2999]);
            ops->release(in, 0);
            taken++;
        }
    };
    pid_t pid = victim([&] {
        Process me;
        tw_fifo *out = nullptr, *in = nullptr;
        me.open(*stage, 1);
        EXPECT_EQ(TWILL_OK, me.connect(*stage, 1));
        ends(me, 1, &out, &in);
        for (uint64_t sent = 0, taken = 0;;) {
            pump(out, in, sent, taken);
        }
    });
    Process me;
    tw_fifo *out = nullptr, *in = nullptr;
    me.open(*stage, 0);
    ASSERT_EQ(TWILL_OK, me.connect(*stage, 0));
    ends(me, 0, &out, &in);
    uint64_t sent = 0, taken = 0;
    while (taken < 500) {
        pump(out, in, sent, taken);
    }
    kill(pid, SIGKILL);
    while (shm()->net->ep_status(me.ep) == TWILL_OK) {
        pump(out, in, sent, taken);
    }
    waitpid(pid, nullptr, 0);
    for (int i = 0; i < 100; i++) {
        pump(out, in, sent, taken);
    }
    me.expect_lost();
    ops->destroy(out);
    ops->destroy(in);
    uint64_t used, limit;
    tw_net_staging(me.net, &used, &limit);
    EXPECT_EQ(0u, used);
    me.shut();
}

TEST_F(Death, OfTheOwnerOfImportedMemory)
{
    const tw_rma_ops *rma = shm()->rma;
    pid_t pid = victim([&] {
        Process me;
        me.open(*stage, 1);
        EXPECT_EQ(TWILL_OK, me.connect(*stage, 1));
        for (int i = 0; i < 3; i++) {
            void *ptr = nullptr;
            tw_mr *mr;
            if (i == 0) {
                EXPECT_EQ(TWILL_OK, rma->stage(me.net, 4096, &ptr));
            } else {
                EXPECT_EQ(TWILL_OK, tw_hostmem_alloc(4096, &ptr));
            }
            EXPECT_EQ(TWILL_OK, rma->reg(me.net, ptr, 4096, TW_MEM_HOST, &mr));
            EXPECT_EQ(TWILL_OK, rma->mr_export(mr, &stage->blobs[i]));
        }
        stage->meeting.meet();
    });
    Process me;
    me.open(*stage, 0);
    ASSERT_EQ(TWILL_OK, me.connect(*stage, 0));
    stage->meeting.meet();
    tw_rmem *staged = nullptr, *alone = nullptr, *late = nullptr;
    ASSERT_EQ(TWILL_OK, rma->mr_import(me.ep, &stage->blobs[0], &staged));
    ASSERT_EQ(TWILL_OK, rma->mr_import(me.ep, &stage->blobs[1], &alone));
    kill_it(pid);
    me.expect_lost();
    char data[64] = {1};
    tw_req req = {TWILL_INPROGRESS};
    for (tw_rmem *rmem : {staged, alone}) {
        EXPECT_EQ(TWILL_ERR_PEER, rma->put(me.ep, data, rmem, 0, 64, &req));
        EXPECT_EQ(TWILL_ERR_PEER, rma->get(me.ep, data, rmem, 0, 64, &req));
        EXPECT_EQ(TWILL_ERR_PEER, rma->signal(me.ep, rmem, 0, 1));
        size_t bytes;
        auto *mapped = static_cast<volatile char *>(rma->map(rmem, &bytes));
        mapped[4095] = 1; /* still there: no fault */
    }
    EXPECT_EQ(TWILL_INPROGRESS, req.status);
    EXPECT_EQ(TWILL_ERR_PEER, rma->flush(me.ep));
    EXPECT_EQ(TWILL_ERR_PEER, rma->mr_import(me.ep, &stage->blobs[2], &late));
    rma->mr_release(staged);
    rma->mr_release(alone);
    me.shut();
}

/* One of several peers dies: the others go on. */
TEST_F(Death, OfOneLeavesTheOthers)
{
    Shared<Stage> other;
    other->meeting.init(2);
    auto live = [](Stage &at) {
        Process me;
        me.open(at, 1);
        EXPECT_EQ(TWILL_OK, me.connect(at, 1));
        at.meeting.meet();
    };
    pid_t first = victim([&] { live(*stage); });
    pid_t second = victim([&] { live(*other); });
    Process me;
    me.open(*stage, 0);
    other->ids[0] = stage->ids[0];
    other->addresses[0] = stage->addresses[0];
    other->meeting.meet();
    ASSERT_EQ(TWILL_OK, me.connect(*stage, 0));
    tw_ep *to_second = nullptr;
    tw_sock_wait wait = wait_for(20 * TW_NS_S);
    ASSERT_EQ(TWILL_OK, shm()->net->ep_get(me.net, &other->ids[1], &other->addresses[1], kKey,
                                           &wait, &to_second));
    stage->meeting.meet();
    other->meeting.meet();
    kill_it(first);
    me.expect_lost();
    EXPECT_EQ(TWILL_OK, shm()->net->ep_status(to_second));
    kill_it(second);
    shm()->net->ep_put(to_second);
    me.shut();
}

} // namespace
