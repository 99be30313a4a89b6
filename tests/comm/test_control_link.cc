/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "ranks.h"

extern "C" {
#include "base/time.h"
#include "comm/control.h"
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
    while (self->hold) /* a look every millisecond */
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
        /* so that forget is inside before it may return; nothing shows that it is. Too short a time
         * makes the test weaker, never wrong. */
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
