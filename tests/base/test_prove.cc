/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: src/base/prove.c and the bytes it puts on the wire. Never knows: whose key. */
#include <cstring>
#include <gtest/gtest.h>
#include <sodium.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
#include "base/host.h"
#include "base/log.h"
#include "base/sock.h"
#include "base/status.h"
#include "base/time.h"
}

namespace
{

using Bytes = std::vector<uint8_t>;

class Prove : public testing::Test
{
  protected:
    void SetUp() override
    {
        tw_log_configure("none", nullptr);
        int ends[2];
        ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends));
        a_ = ends[0];
        b_ = ends[1];
        wait_ = {tw_deadline_ns(20 * TW_NS_S), -1};
        tw_random(key_, sizeof(key_));
    }
    void TearDown() override
    {
        close(a_);
        if (b_ >= 0)
            close(b_);
        tw_log_configure(nullptr, nullptr);
    }
    /* Both ends prove, each in its way; statuses of a (connected) and b (accepted). */
    std::pair<int, int> both(const uint8_t *key_a, const uint8_t *key_b, const char *context_a,
                             const char *context_b, int role_a = 0, int role_b = 1)
    {
        enum twill_status of_b = TWILL_ERR_INTERNAL;
        std::thread thread([&] { of_b = tw_sock_prove(b_, key_b, role_b, context_b, &wait_); });
        enum twill_status of_a = tw_sock_prove(a_, key_a, role_a, context_a, &wait_);
        thread.join();
        return {of_a, of_b};
    }
    Bytes take(int fd, size_t bytes)
    {
        Bytes data(bytes);
        EXPECT_EQ(TWILL_OK, tw_sock_recv(fd, data.data(), bytes, &wait_));
        return data;
    }
    void give(int fd, const Bytes &data)
    {
        EXPECT_EQ(TWILL_OK, tw_sock_send(fd, data.data(), data.size(), &wait_));
    }
    /* The honest end in a thread, while the test plays its peer on b. */
    template <typename Peer> enum twill_status honest(int role, Peer peer)
    {
        enum twill_status status = TWILL_ERR_INTERNAL;
        std::thread thread([&] { status = tw_sock_prove(a_, key_, role, "use", &wait_); });
        peer();
        thread.join();
        return status;
    }
    int a_ = -1, b_ = -1;
    uint8_t key_[TW_KEY_BYTES];
    struct tw_sock_wait wait_ = {};
};

TEST_F(Prove, TheSameKeyIsProven)
{
    EXPECT_EQ(std::make_pair(int{TWILL_OK}, int{TWILL_OK}), both(key_, key_, "use", "use"));
    /* nothing is read beyond the proof */
    ASSERT_EQ(TWILL_OK, tw_sock_send(a_, "next", 4, &wait_));
    EXPECT_EQ(Bytes({'n', 'e', 'x', 't'}), take(b_, 4));
    EXPECT_EQ(std::make_pair(int{TWILL_OK}, int{TWILL_OK}), both(key_, key_, "", ""));
}

TEST_F(Prove, AnyOtherKeyIsRefusedByBoth)
{
    const auto refused = std::make_pair(int{TWILL_ERR_AUTH}, int{TWILL_ERR_AUTH});
    for (int bit = 0; bit < 256; bit += 51) {
        uint8_t other[TW_KEY_BYTES];
        std::memcpy(other, key_, sizeof(other));
        other[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
        EXPECT_EQ(refused, both(key_, other, "use", "use")) << bit;
    }
    uint8_t zero[TW_KEY_BYTES] = {};
    EXPECT_EQ(refused, both(zero, key_, "use", "use"));
}

TEST_F(Prove, ContextAndRoleAreBound)
{
    const auto refused = std::make_pair(int{TWILL_ERR_AUTH}, int{TWILL_ERR_AUTH});
    EXPECT_EQ(refused, both(key_, key_, "use", "other"));
    EXPECT_EQ(refused, both(key_, key_, "use", ""));
    EXPECT_EQ(refused, both(key_, key_, "use", "use", 0, 0));
    EXPECT_EQ(refused, both(key_, key_, "use", "use", 1, 1));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_sock_prove(a_, key_, 2, "use", &wait_));
    EXPECT_EQ(TWILL_ERR_INVALID, tw_sock_prove(a_, key_, -1, "use", &wait_));
}

TEST_F(Prove, GarbageIsRefused)
{
    for (int role : {0, 1}) {
        EXPECT_EQ(TWILL_ERR_AUTH, honest(role, [this] {
                      give(b_, Bytes(64, 0x5a));
                      take(b_, 64);
                  }));
        EXPECT_EQ(TWILL_ERR_AUTH, honest(role, [this] {
                      give(b_, Bytes(64, 0));
                      take(b_, 64);
                  }));
    }
}

TEST_F(Prove, AReflectedProofIsRefused)
{
    for (int role : {0, 1})
        EXPECT_EQ(TWILL_ERR_AUTH, honest(role, [this] {
                      give(b_, take(b_, 32));
                      give(b_, take(b_, 32));
                  }));
}

TEST_F(Prove, AReplayedProofIsRefused)
{
    Bytes nonce;
    Bytes proof;
    /* overhear one whole exchange: what role 1 said is sent again to the next role 0 */
    int ends[2];
    ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends));
    enum twill_status of_b = TWILL_ERR_INTERNAL;
    std::thread accepted([&] { of_b = tw_sock_prove(ends[0], key_, 1, "use", &wait_); });
    EXPECT_EQ(TWILL_OK, honest(0, [&] {
                  nonce = take(ends[1], 32);
                  give(ends[1], take(b_, 32));
                  give(b_, nonce);
                  proof = take(ends[1], 32);
                  give(ends[1], take(b_, 32));
                  give(b_, proof);
              }));
    accepted.join();
    EXPECT_EQ(TWILL_OK, of_b) << "a relay of both ends is no forgery";
    EXPECT_EQ(TWILL_ERR_AUTH, honest(0, [&] {
                  give(b_, nonce);
                  give(b_, proof);
                  take(b_, 64);
              }));
    close(ends[0]);
    close(ends[1]);
}

/* The wire, computed independently: what a peer of another build must send. */
TEST_F(Prove, TheProofIsTheDocumentedHash)
{
    EXPECT_EQ(TWILL_OK, honest(0, [this] {
                  Bytes mine(32, 7);
                  Bytes theirs = take(b_, 32);
                  give(b_, mine);
                  std::string text("twill connection proof 1");
                  text += std::string("\0\x01\x03\0\0\0\0\0\0\0use", 13);
                  text += std::string(theirs.begin(), theirs.end());
                  text += std::string(mine.begin(), mine.end());
                  Bytes proof(32);
                  crypto_generichash(proof.data(), 32,
                                     reinterpret_cast<const uint8_t *>(text.data()), text.size(),
                                     key_, 32);
                  give(b_, proof);
                  take(b_, 32);
              }));
}

TEST_F(Prove, NoncesAreFresh)
{
    Bytes first;
    Bytes second;
    honest(0, [&] {
        first = take(b_, 32);
        give(b_, Bytes(64, 1));
        take(b_, 32);
    });
    honest(0, [&] {
        second = take(b_, 32);
        give(b_, Bytes(64, 1));
        take(b_, 32);
    });
    EXPECT_NE(first, second);
}

TEST_F(Prove, ASilentPeerTimesOut)
{
    wait_.deadline_ns = tw_deadline_ns(20 * TW_NS_MS);
    EXPECT_EQ(TWILL_ERR_TIMEOUT, tw_sock_prove(a_, key_, 0, "use", &wait_));
    give(b_, Bytes(40)); /* a nonce and a bit */
    EXPECT_EQ(TWILL_ERR_TIMEOUT, tw_sock_prove(a_, key_, 1, "use", &wait_));
}

TEST_F(Prove, APeerThatHangsUpIsLost)
{
    for (size_t sent : {0u, 10u, 32u, 63u}) {
        int ends[2];
        ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends));
        give(ends[1], Bytes(sent));
        shutdown(ends[1], SHUT_WR);
        EXPECT_EQ(TWILL_ERR_PEER, tw_sock_prove(ends[0], key_, 0, "use", &wait_)) << sent;
        close(ends[0]);
        close(ends[1]);
    }
}

} // namespace
