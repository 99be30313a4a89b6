/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: marks in streams: what holds which stream, and who lets go of it. Never knows: calls.
 */
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "inject.h"
#include "ranks.h"

extern "C" {
#include "comm/ops.h"
}

namespace
{

/* Streams by hand. A communicator that is not failed, and a thread that is asleep: an op that was
 * put on a stream stays there until it is let go. */
class Marks : public ::testing::Test
{
  protected:
    void SetUp() override { before_ = count_now(); }
    void TearDown() override
    {
        for (struct tw_stream *stream : streams_)
            EXPECT_EQ(tw_stream_destroy(stream), TWILL_OK);
        for (struct tw_event *event : events_)
            tw_event_destroy(event);
        EXPECT_TRUE(count_returns(before_)) << "somebody still holds the process's state";
    }
    struct tw_stream *stream()
    {
        struct tw_stream *made = nullptr;
        EXPECT_EQ(tw_stream_create(&made), TWILL_OK);
        streams_.push_back(made);
        return made;
    }
    struct tw_event *event()
    {
        struct tw_event *made = nullptr;
        EXPECT_EQ(tw_event_create(&made), TWILL_OK);
        events_.push_back(made);
        return made;
    }
    /* A stream whose head is a call that does not end. */
    struct tw_stream *held()
    {
        struct tw_stream *made = stream();
        EXPECT_EQ(tw_stream_attach(made), TWILL_OK);
        tw_progress_lock(made->proc->progress);
        made->head = made->tail = &call_;
        tw_progress_unlock(made->proc->progress, false);
        return made;
    }
    /* The call that holds it has ended. */
    void let_go(struct tw_stream *stream)
    {
        tw_progress_lock(stream->proc->progress);
        EXPECT_EQ(stream->head, &call_);
        stream->head = call_.stream_next;
        (void)tw_stream_settle(stream);
        tw_progress_unlock(stream->proc->progress, true);
    }
    static bool idle(struct tw_stream *stream) { return tw_stream_query(stream) == TWILL_OK; }

    std::vector<struct tw_stream *> streams_;
    std::vector<struct tw_event *> events_;
    struct tw_op call_ = {};
    Count before_;
};

TEST_F(Marks, AliveUntilItIsDestroyed)
{
    uint64_t none[8] = {};
    EXPECT_FALSE(tw_event_alive((const struct tw_event *)none));
    EXPECT_TRUE(tw_event_alive(event()));
}

TEST_F(Marks, AWaitForAnEventOfTheSameStreamIsNone)
{
    struct tw_stream *first = held();
    struct tw_event *own = event();
    ASSERT_EQ(tw_event_record(own, first), TWILL_OK);
    ASSERT_EQ(tw_event_wait(first, own), TWILL_OK);
    EXPECT_FALSE(tw_event_reached(own));
    let_go(first);
    EXPECT_TRUE(tw_event_reached(own));
    EXPECT_TRUE(idle(first));
}

/* All that wait for one mark, and what stands behind them in turn, leave at once. */
TEST_F(Marks, OneMarkLetsManyGo)
{
    struct tw_stream *first = held();
    struct tw_event *start = event();
    std::vector<struct tw_event *> ends;
    ASSERT_EQ(tw_event_record(start, first), TWILL_OK);
    for (int i = 0; i < 5; i++) {
        struct tw_stream *one = stream();
        ASSERT_EQ(tw_event_wait(one, start), TWILL_OK);
        ASSERT_EQ(tw_event_wait(one, start), TWILL_OK); /* twice is no harm */
        ends.push_back(event());
        ASSERT_EQ(tw_event_record(ends.back(), one), TWILL_OK);
        EXPECT_FALSE(tw_event_reached(ends.back()));
    }
    let_go(first);
    for (struct tw_event *end : ends)
        EXPECT_TRUE(tw_event_reached(end));
}

TEST_F(Marks, WaitsForAllThatItWaitsFor)
{
    for (const bool in_order : {true, false}) {
        struct tw_op others = {};
        struct tw_stream *one = held(), *last = stream();
        struct tw_stream *two = stream();
        ASSERT_EQ(tw_stream_attach(two), TWILL_OK);
        two->head = two->tail = &others;
        struct tw_event *a = event(), *b = event();
        ASSERT_EQ(tw_event_record(a, one), TWILL_OK);
        ASSERT_EQ(tw_event_record(b, two), TWILL_OK);
        ASSERT_EQ(tw_event_wait(last, a), TWILL_OK);
        ASSERT_EQ(tw_event_wait(last, b), TWILL_OK);
        const auto end_two = [&] {
            tw_progress_lock(two->proc->progress);
            two->head = others.stream_next;
            (void)tw_stream_settle(two);
            tw_progress_unlock(two->proc->progress, true);
        };
        if (in_order)
            let_go(one);
        else
            end_two();
        EXPECT_FALSE(idle(last));
        if (in_order)
            end_two();
        else
            let_go(one);
        EXPECT_TRUE(idle(last));
        call_ = {};
    }
}

/* A chain as long as one likes takes no stack. */
TEST_F(Marks, ALongChainOfStreams)
{
    struct tw_stream *before = held();
    for (int i = 0; i < 20000; i++) {
        struct tw_event *link = event();
        struct tw_stream *next = stream();
        ASSERT_EQ(tw_event_record(link, before), TWILL_OK);
        ASSERT_EQ(tw_event_wait(next, link), TWILL_OK);
        before = next;
    }
    EXPECT_FALSE(idle(before));
    let_go(streams_[0]);
    EXPECT_TRUE(idle(before));
}

/* Who waits for a record waits for that one, whatever becomes of the event. */
TEST_F(Marks, ARecordAgainOrADestroyLetsNobodyGo)
{
    struct tw_stream *first = held(), *a = stream(), *b = stream();
    struct tw_event *moved = event();
    ASSERT_EQ(tw_event_record(moved, first), TWILL_OK);
    ASSERT_EQ(tw_event_wait(a, moved), TWILL_OK);
    ASSERT_EQ(tw_event_record(moved, stream()), TWILL_OK); /* it never had a call */
    EXPECT_TRUE(tw_event_reached(moved));
    EXPECT_FALSE(idle(a));
    struct tw_event *gone = nullptr;
    ASSERT_EQ(tw_event_create(&gone), TWILL_OK);
    ASSERT_EQ(tw_event_record(gone, first), TWILL_OK);
    ASSERT_EQ(tw_event_wait(b, gone), TWILL_OK);
    tw_event_destroy(gone);
    EXPECT_FALSE(idle(b));
    let_go(first);
    EXPECT_TRUE(idle(a));
    EXPECT_TRUE(idle(b));
}

TEST_F(Marks, SynchronizeSleepsUntilItIsReached)
{
    struct tw_stream *first = held();
    struct tw_event *end = event();
    ASSERT_EQ(tw_event_record(end, first), TWILL_OK);
    std::thread waiter([&] {
        tw_event_synchronize(end);
        EXPECT_TRUE(tw_event_reached(end));
        EXPECT_EQ(tw_event_wait(nullptr, end), TWILL_OK); /* at once now */
    });
    let_go(first);
    waiter.join();
}

/* ---- without memory ---------------------------------------------------------------------------
 */

TEST_F(Marks, ARecordThatFailsLeavesTheFormerOne)
{
    struct tw_stream *first = held(), *other = stream();
    ASSERT_EQ(tw_stream_attach(other), TWILL_OK);
    struct tw_event *end = event();
    ASSERT_EQ(tw_event_record(end, first), TWILL_OK);
    for (int fine = 0; fine < 2; fine++) {
        inject::alloc_fails(fine);
        EXPECT_EQ(tw_event_record(end, other), TWILL_ERR_NOMEM);
        EXPECT_TRUE(inject::done()) << fine;
        EXPECT_TRUE(idle(other));
        EXPECT_FALSE(tw_event_reached(end));
    }
    let_go(first);
    EXPECT_TRUE(tw_event_reached(end));
    for (int fine = 0; fine < 2; fine++) {
        inject::alloc_fails(fine);
        EXPECT_EQ(tw_event_record(end, first), TWILL_ERR_NOMEM);
        EXPECT_TRUE(inject::done()) << fine;
        EXPECT_TRUE(tw_event_reached(end));
    }
}

TEST_F(Marks, AWaitThatFailsHoldsNothing)
{
    struct tw_stream *first = held(), *second = stream();
    struct tw_event *end = event();
    ASSERT_EQ(tw_event_record(end, first), TWILL_OK);
    inject::alloc_fails(0);
    EXPECT_EQ(tw_event_wait(second, end), TWILL_ERR_NOMEM);
    EXPECT_TRUE(inject::done());
    EXPECT_TRUE(idle(second));
    EXPECT_FALSE(tw_event_reached(end));
    ASSERT_EQ(tw_event_wait(second, end), TWILL_OK);
    EXPECT_FALSE(idle(second));
    let_go(first);
    EXPECT_TRUE(idle(second));
}

TEST_F(Marks, NoMemoryIsNoEvent)
{
    struct tw_event *none = nullptr;
    inject::alloc_fails(0);
    EXPECT_EQ(tw_event_create(&none), TWILL_ERR_NOMEM);
    EXPECT_TRUE(inject::done());
    EXPECT_EQ(none, nullptr);
}

} // namespace
