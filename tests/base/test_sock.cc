/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/sock.c. Never knows: what bytes mean. */
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
#include "base/log.h"
#include "base/sock.h"
#include "base/status.h"
#include "base/time.h"
}

namespace
{

struct tw_sock_wait within(uint64_t ns) { return {tw_deadline_ns(ns), -1}; }
const uint64_t soon = 20 * TW_NS_MS;
const uint64_t ample = 20 * TW_NS_S;

/* Two connected ends. */
class Sock : public testing::Test
{
  protected:
    void SetUp() override
    {
        tw_log_configure("none", nullptr);
        wait_ = within(ample);
        ASSERT_EQ(TWILL_OK, tw_sock_listen(&listen_, nullptr, name_));
        ASSERT_EQ(TWILL_OK, tw_sock_connect(&a_, name_, &wait_));
        ASSERT_EQ(TWILL_OK, tw_sock_accept(&b_, listen_, &wait_));
    }
    void TearDown() override
    {
        for (int fd : {listen_, a_, b_})
            if (fd >= 0)
                close(fd);
        tw_log_configure(nullptr, nullptr);
    }
    void hang_up(int &fd)
    {
        close(fd);
        fd = -1;
    }
    /* Sends descriptors with bytes as only a hostile peer would. */
    void send_raw(const std::vector<int> &fds, const std::string &bytes)
    {
        std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
        struct iovec payload = {const_cast<char *>(bytes.data()), bytes.size()};
        struct msghdr message = {};
        message.msg_iov = &payload;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
        std::memcpy(CMSG_DATA(head), fds.data(), fds.size() * sizeof(int));
        ASSERT_EQ(static_cast<ssize_t>(bytes.size()), sendmsg(a_, &message, 0));
    }
    int listen_ = -1, a_ = -1, b_ = -1;
    char name_[TW_SOCK_NAME_BYTES] = "";
    struct tw_sock_wait wait_ = {};
};

TEST_F(Sock, DescriptorsAreCloseOnExecAndNonBlocking)
{
    for (int fd : {listen_, a_, b_}) {
        EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
        EXPECT_NE(0, fcntl(fd, F_GETFL) & O_NONBLOCK);
    }
}

TEST_F(Sock, NamesGivenNamesPickedNamesTaken)
{
    char actual[TW_SOCK_NAME_BYTES];
    char again[TW_SOCK_NAME_BYTES];
    std::string name = "twill-test-" + std::to_string(getpid());
    int one = -1;
    int two = -1;
    ASSERT_EQ(TWILL_OK, tw_sock_listen(&one, name.c_str(), actual));
    EXPECT_EQ(name, actual);
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_sock_listen(&two, name.c_str(), again));
    EXPECT_NE(nullptr, std::strstr(tw_fail_text(), name.c_str()));
    EXPECT_EQ(-1, two);
    ASSERT_EQ(TWILL_OK, tw_sock_listen(&two, "", again));
    EXPECT_STRNE(again, name_);
    EXPECT_NE('\0', again[0]);
    close(one);
    close(two);
    std::string longest(TW_SOCK_NAME_BYTES - 1, 'n');
    ASSERT_EQ(TWILL_OK, tw_sock_listen(&one, longest.c_str(), actual));
    EXPECT_EQ(longest, actual);
    close(one);
    one = -1;
    EXPECT_EQ(TWILL_ERR_INVALID, tw_sock_listen(&one, (longest + "n").c_str(), actual));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_sock_connect(&one, (longest + "n").c_str(), &wait_));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_sock_connect(&one, "", &wait_));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_sock_connect(&one, nullptr, &wait_));
    EXPECT_EQ(-1, one);
}

TEST_F(Sock, ConnectWaitsForTheListenerToCome)
{
    std::string name = "twill-late-" + std::to_string(getpid());
    char actual[TW_SOCK_NAME_BYTES];
    int client = -1;
    enum twill_status status = TWILL_ERR_INTERNAL;
    struct tw_sock_wait early = within(soon);
    EXPECT_EQ(TWILL_ERR_TIMEOUT, tw_sock_connect(&client, name.c_str(), &early));
    EXPECT_EQ(-1, client);
    std::thread thread([&] { status = tw_sock_connect(&client, name.c_str(), &wait_); });
    int server = -1;
    ASSERT_EQ(TWILL_OK, tw_sock_listen(&server, name.c_str(), actual));
    thread.join();
    EXPECT_EQ(TWILL_OK, status);
    close(client);
    close(server);
}

TEST_F(Sock, BytesArriveWholeInBothDirections)
{
    std::vector<char> sent(3 << 20);
    for (size_t i = 0; i < sent.size(); i++)
        sent[i] = static_cast<char>(i * 31 >> 3);
    std::vector<char> got(sent.size());
    std::thread thread([&] {
        EXPECT_EQ(TWILL_OK, tw_sock_recv(b_, got.data(), got.size(), &wait_));
        EXPECT_EQ(TWILL_OK, tw_sock_send(b_, "done", 4, &wait_));
    });
    EXPECT_EQ(TWILL_OK, tw_sock_send(a_, sent.data(), sent.size(), &wait_));
    char reply[4];
    EXPECT_EQ(TWILL_OK, tw_sock_recv(a_, reply, 4, &wait_));
    thread.join();
    EXPECT_EQ(0, std::memcmp(reply, "done", 4));
    EXPECT_TRUE(sent == got);
    EXPECT_EQ(TWILL_OK, tw_sock_send(a_, nullptr, 0, &wait_));
    EXPECT_EQ(TWILL_OK, tw_sock_recv(a_, nullptr, 0, &wait_));
}

TEST_F(Sock, DeadlinesPass)
{
    std::vector<char> much(64 << 20);
    char byte = 0;
    int fd = -1;
    uint32_t bytes = 0;
    struct tw_sock_wait short_wait = within(soon);
    EXPECT_EQ(TWILL_ERR_TIMEOUT, tw_sock_recv(b_, &byte, 1, &short_wait));
    EXPECT_LE(short_wait.deadline_ns, tw_now_ns());
    EXPECT_EQ(TWILL_ERR_TIMEOUT, tw_sock_recv_msg(b_, &byte, 1, &bytes, &short_wait));
    EXPECT_EQ(TWILL_ERR_TIMEOUT, tw_sock_recv_fd(b_, &fd, &short_wait));
    EXPECT_EQ(TWILL_ERR_TIMEOUT, tw_sock_accept(&fd, listen_, &short_wait));
    EXPECT_EQ(TWILL_ERR_TIMEOUT, tw_sock_send(a_, much.data(), much.size(), &short_wait));
    EXPECT_EQ(TWILL_ERR_TIMEOUT, tw_sock_send_fd(a_, 0, &short_wait));
    EXPECT_EQ(-1, fd);
}

TEST_F(Sock, APeerThatTricklesCannotStretchTheDeadline)
{
    std::vector<char> wanted(1 << 20);
    bool stop = false; /* atomic */
    std::thread trickler([&] {
        char byte = 't';
        while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
            (void)!send(a_, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
    struct tw_sock_wait short_wait = within(soon);
    size_t total = 0;
    enum twill_status status = TWILL_OK;
    /* far more than can be had in the time, unless the deadline is ignored */
    while (status == TWILL_OK && total < (size_t{1} << 40)) {
        status = tw_sock_recv(b_, wanted.data(), wanted.size(), &short_wait);
        total += wanted.size();
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    trickler.join();
    EXPECT_EQ(TWILL_ERR_TIMEOUT, status);
}

TEST_F(Sock, CancelEndsEveryWait)
{
    int ends[2];
    std::vector<char> much(64 << 20);
    char byte = 0;
    int fd = -1;
    ASSERT_EQ(0, pipe(ends));
    struct tw_sock_wait cancellable = {TW_NEVER, ends[0]};
    enum twill_status status = TWILL_OK;
    std::thread waiter([&] { status = tw_sock_recv(b_, &byte, 1, &cancellable); });
    ASSERT_EQ(1, write(ends[1], "c", 1));
    waiter.join();
    EXPECT_EQ(TWILL_ERR_ABORTED, status);
    EXPECT_EQ(TWILL_ERR_ABORTED, tw_sock_accept(&fd, listen_, &cancellable));
    EXPECT_EQ(TWILL_ERR_ABORTED, tw_sock_connect(&fd, "twill-nobody-listens", &cancellable));
    EXPECT_EQ(TWILL_ERR_ABORTED, tw_sock_recv_fd(b_, &fd, &cancellable));
    EXPECT_EQ(TWILL_ERR_ABORTED, tw_sock_send(a_, much.data(), much.size(), &cancellable));
    EXPECT_EQ(-1, fd);
    close(ends[1]); /* a hang-up cancels too */
    EXPECT_EQ(TWILL_ERR_ABORTED, tw_sock_accept(&fd, listen_, &cancellable));
    close(ends[0]);
}

TEST_F(Sock, ALostPeerIsAnErrorAndNoSignal)
{
    char bytes[8];
    ASSERT_EQ(3, send(a_, "abc", 3, 0));
    hang_up(a_);
    EXPECT_EQ(TWILL_ERR_PEER, tw_sock_recv(b_, bytes, 8, &wait_));
    EXPECT_NE(nullptr, std::strstr(tw_fail_text(), "5 bytes missing"));
    EXPECT_EQ(TWILL_ERR_PEER, tw_sock_send(b_, bytes, 8, &wait_));
    int fd = -1;
    EXPECT_EQ(TWILL_ERR_PEER, tw_sock_recv_fd(b_, &fd, &wait_));
    EXPECT_EQ(TWILL_ERR_PEER, tw_sock_send_fd(b_, 0, &wait_));
}

TEST_F(Sock, AResetIsALostPeer)
{
    char byte = 0;
    ASSERT_EQ(1, send(b_, "x", 1, 0)); /* unread by a: its close becomes a reset */
    hang_up(a_);
    EXPECT_EQ(TWILL_ERR_PEER, tw_sock_recv(b_, &byte, 1, &wait_));
}

TEST_F(Sock, BadDescriptorsAreSystemErrors)
{
    char byte = 0;
    int fd = -1;
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_sock_send(-1, &byte, 1, &wait_));
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_sock_recv(-1, &byte, 1, &wait_));
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_sock_accept(&fd, -1, &wait_));
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_sock_accept(&fd, a_, &wait_));
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_sock_send_fd(a_, -1, &wait_));
    pid_t pid = 0;
    uid_t uid = 0;
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_sock_peer(-1, &pid, &uid));
}

TEST_F(Sock, MessagesKeepTheirBounds)
{
    char text[16] = "";
    uint32_t bytes = 99;
    ASSERT_EQ(TWILL_OK, tw_sock_send_msg(a_, "hello", 5, &wait_));
    ASSERT_EQ(TWILL_OK, tw_sock_send_msg(a_, nullptr, 0, &wait_));
    ASSERT_EQ(TWILL_OK, tw_sock_send_msg(a_, "sixteen letters.", 16, &wait_));
    ASSERT_EQ(TWILL_OK, tw_sock_recv_msg(b_, text, 16, &bytes, &wait_));
    EXPECT_EQ(5u, bytes);
    EXPECT_EQ(0, std::memcmp(text, "hello", 5));
    ASSERT_EQ(TWILL_OK, tw_sock_recv_msg(b_, text, 16, &bytes, &wait_));
    EXPECT_EQ(0u, bytes);
    ASSERT_EQ(TWILL_OK, tw_sock_recv_msg(b_, text, 16, &bytes, &wait_));
    EXPECT_EQ(16u, bytes);
    EXPECT_EQ(0, std::memcmp(text, "sixteen letters.", 16));
}

TEST_F(Sock, AbsurdLengthsAreRefusedUnread)
{
    for (const char *head : {"\xff\xff\xff\xff", "\x00\x00\x00\x80", "\x11\x00\x00\x00"}) {
        char text[16] = "untouched";
        uint32_t bytes = 99;
        ASSERT_EQ(4, send(a_, head, 4, 0));
        EXPECT_EQ(TWILL_ERR_PEER, tw_sock_recv_msg(b_, text, 16, &bytes, &wait_));
        EXPECT_EQ(99u, bytes);
        EXPECT_STREQ("untouched", text);
    }
}

TEST_F(Sock, TruncatedMessagesAreALostPeer)
{
    char text[16];
    uint32_t bytes = 99;
    ASSERT_EQ(6, send(a_,
                      "\x08\x00\x00\x00"
                      "ab",
                      6, 0));
    shutdown(a_, SHUT_WR);
    EXPECT_EQ(TWILL_ERR_PEER, tw_sock_recv_msg(b_, text, 16, &bytes, &wait_));
    EXPECT_EQ(99u, bytes);
    ASSERT_EQ(2, send(b_, "\x08\x00", 2, 0));
    shutdown(b_, SHUT_WR);
    EXPECT_EQ(TWILL_ERR_PEER, tw_sock_recv_msg(a_, text, 16, &bytes, &wait_));
    EXPECT_EQ(99u, bytes);
}

TEST_F(Sock, ADescriptorTravels)
{
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    int passed = -1;
    ASSERT_EQ(TWILL_OK, tw_sock_send_fd(a_, ends[1], &wait_));
    close(ends[1]);
    ASSERT_EQ(TWILL_OK, tw_sock_recv_fd(b_, &passed, &wait_));
    EXPECT_EQ(FD_CLOEXEC, fcntl(passed, F_GETFD));
    ASSERT_EQ(1, write(passed, "p", 1));
    char byte = 0;
    ASSERT_EQ(1, read(ends[0], &byte, 1));
    EXPECT_EQ('p', byte);
    close(passed);
    EXPECT_EQ(0, read(ends[0], &byte, 1)) << "a copy was left open";
    close(ends[0]);
}

TEST_F(Sock, ADescriptorThatFindsNoRoomIsThisProcessesFault)
{
    struct rlimit before;
    int passed = -1;
    ASSERT_EQ(TWILL_OK, tw_sock_send_fd(a_, a_, &wait_));
    int first_free = dup(a_);
    close(first_free);
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
    struct rlimit tight = {static_cast<rlim_t>(first_free), before.rlim_max};
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &tight));
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_sock_recv_fd(b_, &passed, &wait_));
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
    EXPECT_NE(nullptr, std::strstr(tw_fail_text(), "too many open files")) << tw_fail_text();
    EXPECT_EQ(-1, passed);
}

TEST_F(Sock, StrayDescriptorsAreClosed)
{
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    int passed = -1;
    for (size_t count : {2u, 3u, 253u}) {
        send_raw(std::vector<int>(count, ends[1]), "F");
        EXPECT_EQ(TWILL_ERR_PEER, tw_sock_recv_fd(b_, &passed, &wait_)) << count;
        EXPECT_NE(nullptr, std::strstr(tw_fail_text(), std::to_string(count).c_str()));
    }
    send_raw({ends[1]}, "X");
    EXPECT_EQ(TWILL_ERR_PEER, tw_sock_recv_fd(b_, &passed, &wait_)) << "the wrong mark";
    ASSERT_EQ(1, send(a_, "F", 1, 0));
    EXPECT_EQ(TWILL_ERR_PEER, tw_sock_recv_fd(b_, &passed, &wait_)) << "no descriptor";
    /* where bytes are expected, descriptors are dropped */
    send_raw({ends[1], ends[1]}, "data");
    char data[4];
    EXPECT_EQ(TWILL_OK, tw_sock_recv(b_, data, 4, &wait_));
    EXPECT_EQ(-1, passed);
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(0, read(ends[0], &byte, 1)) << "a stray descriptor was left open";
    close(ends[0]);
}

TEST_F(Sock, AnEndMayHaveAName)
{
    char name[TW_SOCK_NAME_BYTES] = "?";
    tw_sock_peer_name(b_, name);
    EXPECT_STREQ("", name);
    const std::string own = "twill-test-end-" + std::to_string(getpid());
    int fd = -1;
    int other = -1;
    int served = -1;
    ASSERT_EQ(TWILL_OK, tw_sock_connect_as(&fd, own.c_str(), name_, &wait_));
    ASSERT_EQ(TWILL_OK, tw_sock_accept(&served, listen_, &wait_));
    tw_sock_peer_name(served, name);
    EXPECT_EQ(own, name);
    EXPECT_EQ(TWILL_ERR_SYSTEM, tw_sock_connect_as(&other, own.c_str(), name_, &wait_));
    EXPECT_EQ(-1, other);
    close(fd);
    tw_sock_peer_name(served, name);
    EXPECT_EQ(own, name) << "also when it has gone";
    close(served);
    tw_sock_peer_name(-1, name);
    EXPECT_STREQ("", name);
    const std::string absurd(TW_SOCK_NAME_BYTES, 'x');
    EXPECT_EQ(TWILL_ERR_INVALID, tw_sock_connect_as(&other, absurd.c_str(), name_, &wait_));
}

TEST_F(Sock, ThePeerIsNamedByTheKernel)
{
    pid_t pid = 0;
    uid_t uid = 12345;
    ASSERT_EQ(TWILL_OK, tw_sock_peer(b_, &pid, &uid));
    EXPECT_EQ(getpid(), pid);
    EXPECT_EQ(geteuid(), uid);
    pid_t child = fork();
    ASSERT_LE(0, child);
    if (child == 0) {
        int fd = -1;
        char byte = 0;
        struct tw_sock_wait wait = within(ample);
        bool fine = tw_sock_connect(&fd, name_, &wait) == TWILL_OK &&
                    tw_sock_recv(fd, &byte, 1, &wait) == TWILL_OK;
        _exit(fine ? 0 : 1);
    }
    int fd = -1;
    ASSERT_EQ(TWILL_OK, tw_sock_accept(&fd, listen_, &wait_));
    ASSERT_EQ(TWILL_OK, tw_sock_peer(fd, &pid, &uid));
    EXPECT_EQ(child, pid);
    EXPECT_EQ(TWILL_OK, tw_sock_send(fd, "x", 1, &wait_));
    int result = -1;
    ASSERT_EQ(child, waitpid(child, &result, 0));
    EXPECT_EQ(0, result);
    close(fd);
}

} // namespace
