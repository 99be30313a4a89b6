/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: strangers without the key and peers with it that do not keep to the protocol.
 * Never knows: honest use. */
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>

#include "pair.h"

extern "C" {
#include "base/mem.h"
#include "transport/shm_wire.h"
}

using namespace twtest;

namespace
{

const tw_transport *shm() { return tw_transport_find("shm"); }

tw_proc_id edge_id(uint8_t first)
{
    tw_proc_id id = fresh_id();
    id.nonce[0] = first;
    return id;
}

/* The net that is attacked, and an honest peer that must get through all the same. */
class Hostile : public testing::Test
{
  protected:
    tw_net *net = nullptr;
    tw_proc_id id = edge_id(200);
    tw_listener *listener = nullptr;
    tw_blob address = {};
    int before = 0;

    void SetUp() override
    {
        before = open_descriptors();
        tw_net_config config = {};
        config.self = id;
        config.staging_bytes = 1 << 20;
        config.allow_cma = true;
        ASSERT_EQ(TWILL_OK, shm()->net->open(&config, &net));
        ASSERT_EQ(TWILL_OK, shm()->net->listen(net, kKey, &listener, &address));
    }
    void TearDown() override
    {
        shm()->net->unlisten(listener);
        uint64_t start = tw_now_ns();
        shm()->net->close(net);
        EXPECT_LT(tw_now_ns() - start, 2 * TW_NS_S) << "closing waits for strangers";
        EXPECT_EQ(before, open_descriptors());
    }
    void expect_honest_peer_connects(uint64_t within_ns)
    {
        tw_net *honest = nullptr;
        tw_net_config config = {};
        config.self = edge_id(1);
        config.staging_bytes = 1 << 20;
        ASSERT_EQ(TWILL_OK, shm()->net->open(&config, &honest));
        tw_sock_wait wait = wait_for(within_ns);
        tw_ep *ep = nullptr;
        EXPECT_EQ(TWILL_OK, shm()->net->ep_get(honest, &id, &address, kKey, &wait, &ep))
            << tw_fail_text();
        if (ep != nullptr) {
            shm()->net->ep_put(ep);
        }
        shm()->net->close(honest);
    }
    void connect_to_net(int fd)
    {
        sockaddr_un to = {};
        to.sun_family = AF_UNIX;
        memcpy(to.sun_path + 1, address.data, address.bytes);
        socklen_t length = (socklen_t)(offsetof(sockaddr_un, sun_path) + 1 + address.bytes);
        EXPECT_EQ(0, connect(fd, reinterpret_cast<sockaddr *>(&to), length));
    }
    int dial()
    {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        connect_to_net(fd);
        return fd;
    }
    /* Dials and proves the key as an honest peer does. */
    int dial_proven()
    {
        int fd = dial();
        tw_sock_wait wait = wait_for(10 * TW_NS_S);
        EXPECT_EQ(TWILL_OK, tw_sock_prove(fd, kKey, 0, TW_SHM_PROOF_CONTEXT, &wait));
        return fd;
    }
    tw_shm_wire_hello hello()
    {
        tw_shm_wire_hello hello;
        memset(&hello, 0, sizeof(hello));
        hello.head = {TW_SHM_WIRE_MAGIC, TW_SHM_WIRE_VERSION, TW_SHM_WIRE_HELLO};
        hello.from = edge_id(2);
        hello.to = id;
        hello.staging_bytes = 65536;
        return hello;
    }
    /* The net drops the connection (and does not sit on it). */
    void expect_dropped(int fd)
    {
        char byte[4096];
        timeval most = {10, 0};
        fcntl(fd, F_SETFL, 0); /* blocking */
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
        ssize_t got;
        while ((got = recv(fd, byte, sizeof(byte), 0)) > 0) {
        }
        EXPECT_TRUE(got == 0 || errno == ECONNRESET) << strerror(errno);
        close(fd);
    }
    void send_hello(int fd, const tw_shm_wire_hello &hello, int segment)
    {
        tw_sock_wait wait = wait_for(10 * TW_NS_S);
        EXPECT_EQ(TWILL_OK, tw_sock_send_msg(fd, &hello, sizeof(hello), &wait));
        if (segment >= 0) {
            (void)tw_sock_send_fd(fd, segment, &wait);
        }
    }
};

TEST_F(Hostile, GarbageInsteadOfAProof)
{
    for (uint64_t i = 0; i < 12; i++) {
        int fd = dial();
        unsigned char garbage[4000];
        fill(garbage, sizeof(garbage), i);
        (void)!send(fd, garbage, 64 + i * 300, MSG_NOSIGNAL);
        expect_dropped(fd);
    }
    expect_honest_peer_connects(10 * TW_NS_S);
}

TEST_F(Hostile, HalfAProofThenGone)
{
    for (size_t bytes = 0; bytes < 64; bytes += 7) {
        int fd = dial();
        unsigned char half[64] = {};
        (void)!send(fd, half, bytes, MSG_NOSIGNAL);
        close(fd);
    }
    expect_honest_peer_connects(10 * TW_NS_S);
}

/* More silent strangers than there are places: none of them holds up an honest peer for long. */
TEST_F(Hostile, SilenceOfMany)
{
    std::vector<int> fds;
    for (int i = 0; i < 2 * TW_SHM_GUESTS_MAX; i++) {
        fds.push_back(dial());
    }
    expect_honest_peer_connects(4 * TW_NS_S);
    for (int fd : fds) {
        close(fd);
    }
}

TEST_F(Hostile, SilenceWhileTheNetCloses)
{
    std::vector<int> fds;
    for (int i = 0; i < TW_SHM_GUESTS_MAX + 4; i++) {
        fds.push_back(dial_proven());
        if (i >= TW_SHM_GUESTS_MAX / 2) {
            break;
        }
    }
    shm()->net->unlisten(listener);
    uint64_t start = tw_now_ns();
    shm()->net->close(net);
    EXPECT_LT(tw_now_ns() - start, 2 * TW_NS_S);
    for (int fd : fds) {
        close(fd);
    }
    EXPECT_EQ(before, open_descriptors());
    SetUp();
}

TEST_F(Hostile, WrongMessagesBehindARightProof)
{
    tw_sock_wait wait = wait_for(10 * TW_NS_S);
    for (int c = 0; c < 8; c++) {
        int fd = dial_proven();
        tw_shm_wire_hello wrong = hello();
        uint32_t bytes = sizeof(wrong);
        switch (c) {
        case 0:
            wrong.head.magic++;
            break;
        case 1:
            wrong.head.version++;
            break;
        case 2:
            wrong.head.kind = 77;
            break;
        case 3:
            bytes -= 8;
            break;
        case 4:
            bytes = 0;
            break;
        case 5:
            wrong.to.nonce[5] ^= 1; /* for somebody else */
            break;
        case 6:
            wrong.from = edge_id(255); /* the side that must not connect */
            break;
        default:
            wrong.from = id; /* the net itself */
        }
        (void)tw_sock_send_msg(fd, &wrong, bytes, &wait);
        expect_dropped(fd);
    }
    int fd = dial_proven();
    uint32_t absurd = UINT32_MAX;
    (void)!send(fd, &absurd, sizeof(absurd), MSG_NOSIGNAL);
    expect_dropped(fd);
    expect_honest_peer_connects(10 * TW_NS_S);
}

int plain_memfd(size_t bytes)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_EQ(0, ftruncate(fd, (off_t)bytes));
    return fd;
}

TEST_F(Hostile, SegmentsThatCannotBeTrusted)
{
    struct Case {
        const char *what;
        int fd;
        uint64_t said;
    };
    int sealed_small = plain_memfd(4096), sealed_empty = plain_memfd(0);
    EXPECT_EQ(0, fcntl(sealed_small, F_ADD_SEALS, F_SEAL_SHRINK));
    EXPECT_EQ(0, fcntl(sealed_empty, F_ADD_SEALS, F_SEAL_SHRINK));
    int pipes[2];
    ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
    const Case cases[] = {
        {"not sealed", plain_memfd(65536), 65536},
        {"shorter than said", sealed_small, 65536},
        {"length from outer space", sealed_small, UINT64_MAX},
        {"empty", sealed_empty, 0},
        {"a file", open("/proc/self/exe", O_RDONLY | O_CLOEXEC), 4096},
        {"a pipe", pipes[0], 4096},
    };
    for (const Case &c : cases) {
        SCOPED_TRACE(c.what);
        int fd = dial_proven();
        tw_shm_wire_hello said = hello();
        said.staging_bytes = c.said;
        send_hello(fd, said, c.fd);
        expect_dropped(fd);
    }
    close(cases[0].fd);
    close(cases[4].fd);
    close(sealed_small);
    close(sealed_empty);
    close(pipes[0]);
    close(pipes[1]);
    expect_honest_peer_connects(10 * TW_NS_S);
}

TEST_F(Hostile, NoSegmentAndTooMany)
{
    int fd = dial_proven();
    send_hello(fd, hello(), -1);
    (void)!send(fd, "F", 1, MSG_NOSIGNAL);
    expect_dropped(fd);

    fd = dial_proven();
    send_hello(fd, hello(), -1);
    char mark = 'F', control[CMSG_SPACE(3 * sizeof(int))] = {};
    iovec payload = {&mark, 1};
    msghdr message = {};
    message.msg_iov = &payload;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(3 * sizeof(int));
    int three[3] = {0, 1, 2};
    memcpy(CMSG_DATA(head), three, sizeof(three));
    EXPECT_EQ(1, sendmsg(fd, &message, MSG_NOSIGNAL));
    expect_dropped(fd);
    expect_honest_peer_connects(10 * TW_NS_S);
}

/* Everything right up to the last message, which does not come. */
TEST_F(Hostile, NeverAgrees)
{
    tw_shm segment;
    ASSERT_EQ(TWILL_OK, tw_shm_create(&segment, "test", 65536));
    tw_shm_wire_hello said = hello();
    said.cma = 1;
    said.pattern_address = 8; /* nobody's memory */
    tw_sock_wait wait = wait_for(10 * TW_NS_S);
    for (int c = 0; c < 2; c++) {
        int fd = dial_proven();
        send_hello(fd, said, segment.fd);
        tw_shm_wire_hello reply;
        uint32_t bytes;
        ASSERT_EQ(TWILL_OK, tw_sock_recv_msg(fd, &reply, sizeof(reply), &bytes, &wait));
        EXPECT_EQ(0, reply.cma) << "memory that could not be read was said to be readable";
        if (c == 0) {
            (void)!send(fd, "\xff\xff\xff\xff", 4, MSG_NOSIGNAL);
            expect_dropped(fd);
        } else {
            close(fd);
        }
    }
    tw_shm_close(&segment);
    expect_honest_peer_connects(10 * TW_NS_S);
}

TEST_F(Hostile, AskingForWhatIsNotThere)
{
    tw_sock_wait wait = wait_for(10 * TW_NS_S);
    int fd = dial_proven();
    tw_shm_wire_fetch fetch = {{TW_SHM_WIRE_MAGIC, TW_SHM_WIRE_VERSION, TW_SHM_WIRE_FETCH}, {1, 2}};
    ASSERT_EQ(TWILL_OK, tw_sock_send_msg(fd, &fetch, sizeof(fetch), &wait));
    tw_shm_wire_fetched fetched;
    uint32_t bytes;
    ASSERT_EQ(TWILL_OK, tw_sock_recv_msg(fd, &fetched, sizeof(fetched), &bytes, &wait));
    EXPECT_EQ(0u, fetched.found);
    expect_dropped(fd);
}

/* A connected peer that talks on the connection, which is there to be silent, is dropped. */
TEST_F(Hostile, ChatterOnAnEndpoint)
{
    tw_shm segment;
    ASSERT_EQ(TWILL_OK, tw_shm_create(&segment, "test", 65536));
    int fd = dial_proven();
    tw_shm_wire_hello said = hello(), reply;
    send_hello(fd, said, segment.fd);
    tw_sock_wait wait = wait_for(10 * TW_NS_S);
    uint32_t bytes;
    int theirs;
    ASSERT_EQ(TWILL_OK, tw_sock_recv_msg(fd, &reply, sizeof(reply), &bytes, &wait));
    ASSERT_EQ(TWILL_OK, tw_sock_recv_fd(fd, &theirs, &wait));
    close(theirs);
    tw_shm_wire_agreed agreed = {};
    agreed.head = {TW_SHM_WIRE_MAGIC, TW_SHM_WIRE_VERSION, TW_SHM_WIRE_HELLO};
    ASSERT_EQ(TWILL_OK, tw_sock_send_msg(fd, &agreed, sizeof(agreed), &wait));
    tw_ep *ep = nullptr;
    ASSERT_EQ(TWILL_OK, shm()->net->ep_get(net, &said.from, &address, kKey, &wait, &ep));
    EXPECT_EQ(TWILL_OK, shm()->net->ep_status(ep));
    (void)!send(fd, "hello?", 6, MSG_NOSIGNAL);
    expect_dropped(fd);
    EXPECT_EQ(TWILL_ERR_PEER, shm()->net->ep_status(ep));
    shm()->net->ep_put(ep);
    tw_shm_close(&segment);
    expect_honest_peer_connects(10 * TW_NS_S);
}

/* Not hostile, but poor: without descriptors no peer can be accepted. Who waits for one hears it at
 * once, not at the end of a deadline; once there are some, peers get through. */
TEST_F(Hostile, NoDescriptorsForAPeer)
{
    const tw_proc_id caller = edge_id(1);
    rlimit before_limit = {};
    std::atomic<bool> over{false};
    enum twill_status status = TWILL_OK;
    std::string said;
    const int stranger = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int quiet = open_descriptors();
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before_limit));
    std::thread waiter([&] {
        tw_sock_wait wait = wait_for(20 * TW_NS_S);
        tw_ep *ep = nullptr;
        status = shm()->net->ep_get(net, &caller, &address, kKey, &wait, &ep);
        said = tw_fail_text();
        setrlimit(RLIMIT_NOFILE, &before_limit); /* sanitizers need some when the thread ends */
        over = true;
    });
    while (open_descriptors() == quiet && !over) { /* it waits by a descriptor of its own */
        sched_yield();
    }
    const int first_free = dup(stranger);
    close(first_free);
    rlimit tight = {(rlim_t)first_free, before_limit.rlim_max};
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &tight));
    const uint64_t start = tw_now_ns();
    connect_to_net(stranger);
    waiter.join();
    EXPECT_LT(tw_now_ns() - start, 5 * TW_NS_S);
    EXPECT_EQ(TWILL_ERR_SYSTEM, status);
    EXPECT_NE(std::string::npos, said.find("cannot be accepted: Too many open files")) << said;
    close(stranger);
    expect_honest_peer_connects(10 * TW_NS_S);
}

/* The other direction: what listens at the address is no twill, or stops half way. */
TEST_F(Hostile, AListenerThatAnswersTrash)
{
    char name[TW_SOCK_NAME_BYTES];
    int fake;
    ASSERT_EQ(TWILL_OK, tw_sock_listen(&fake, nullptr, name));
    tw_proc_id peer = edge_id(255);
    tw_blob where = {};
    where.bytes = (uint32_t)strlen(name);
    memcpy(where.data, name, where.bytes);
    std::atomic<bool> done{false};
    std::thread server([&] {
        for (uint64_t i = 0; !done; i++) {
            tw_sock_wait wait = wait_for(TW_NS_S / 10);
            int fd;
            if (tw_sock_accept(&fd, fake, &wait) != TWILL_OK) {
                continue;
            }
            if (i % 2 == 0 && tw_sock_prove(fd, kKey, 1, TW_SHM_PROOF_CONTEXT, &wait) == TWILL_OK) {
                unsigned char trash[sizeof(tw_shm_wire_hello)];
                fill(trash, sizeof(trash), i);
                (void)tw_sock_send_msg(fd, trash, sizeof(trash), &wait);
            }
            close(fd);
        }
    });
    tw_sock_wait wait = wait_for(20 * TW_NS_S);
    tw_ep *ep = nullptr;
    uint64_t start = tw_now_ns();
    EXPECT_EQ(TWILL_ERR_PEER, shm()->net->ep_get(net, &peer, &where, kKey, &wait, &ep));
    EXPECT_LT(tw_now_ns() - start, 10 * TW_NS_S);
    done = true;
    server.join();
    close(fake);
}

/* What listens there holds the key and speaks the protocol, but is not the process asked for. */
TEST_F(Hostile, AListenerThatIsAnotherProcess)
{
    char name[TW_SOCK_NAME_BYTES];
    int fake;
    ASSERT_EQ(TWILL_OK, tw_sock_listen(&fake, nullptr, name));
    tw_shm segment;
    ASSERT_EQ(TWILL_OK, tw_shm_create(&segment, "test", 65536));
    tw_proc_id peer = edge_id(255);
    tw_blob where = {};
    where.bytes = (uint32_t)strlen(name);
    memcpy(where.data, name, where.bytes);
    std::atomic<bool> done{false};
    std::atomic<int> replies{0};
    std::thread server([&] {
        while (!done) {
            tw_sock_wait wait = wait_for(TW_NS_S / 10);
            tw_shm_wire_hello asked, reply;
            uint32_t bytes;
            int fd, theirs;
            if (tw_sock_accept(&fd, fake, &wait) != TWILL_OK) {
                continue;
            }
            wait = wait_for(10 * TW_NS_S);
            if (tw_sock_prove(fd, kKey, 1, TW_SHM_PROOF_CONTEXT, &wait) == TWILL_OK &&
                tw_sock_recv_msg(fd, &asked, sizeof(asked), &bytes, &wait) == TWILL_OK &&
                tw_sock_recv_fd(fd, &theirs, &wait) == TWILL_OK) {
                close(theirs);
                reply = hello(); /* from somebody else */
                reply.to = asked.from;
                send_hello(fd, reply, segment.fd);
                replies++;
                expect_dropped(fd);
            } else {
                close(fd);
            }
        }
    });
    tw_sock_wait wait = wait_for(20 * TW_NS_S);
    tw_ep *ep = nullptr;
    EXPECT_EQ(TWILL_ERR_PEER, shm()->net->ep_get(net, &peer, &where, kKey, &wait, &ep));
    EXPECT_EQ(nullptr, ep);
    EXPECT_GT(replies, 0);
    done = true;
    server.join();
    close(fake);
    tw_shm_close(&segment);
}

} // namespace
