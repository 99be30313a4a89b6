/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what events order, seen through the C API. Never knows: how. */
#include <algorithm>
#include <thread>

#include "world.h"

namespace
{

struct Pair {
    twill_comm_t comm[2];
    twill_stream_t stream[2];
    Pair()
    {
        EXPECT_OK(twill_comm_init_all(comm, 2, nullptr, nullptr), nullptr);
        for (twill_stream_t &s : stream)
            EXPECT_OK(twill_stream_create(&s), nullptr);
    }
    ~Pair()
    {
        for (twill_stream_t s : stream)
            EXPECT_OK(twill_stream_destroy(s), nullptr);
        for (twill_comm_t c : comm)
            EXPECT_OK(twill_comm_destroy(c), nullptr);
    }
    Pair(const Pair &) = delete;
    Pair &operator=(const Pair &) = delete;
};

/* One rank's call waits until the other's is there: so streams are held and let go. */
void add(twill_comm_t comm, int *x, twill_stream_t stream)
{
    EXPECT_OK(twill_all_reduce(x, x, 1, TWILL_INT32, TWILL_SUM, comm, stream), comm);
}

TEST(Event, IsReachedWhenTheCallsBeforeAreDone)
{
    world::run_alone([] {
        Pair p;
        twill_event_t event = nullptr;
        ASSERT_OK(twill_event_create(&event), nullptr);
        EXPECT_EQ(twill_event_query(event), TWILL_OK);
        EXPECT_OK(twill_event_record(event, p.stream[0]), nullptr);
        EXPECT_EQ(twill_event_query(event), TWILL_OK);
        int x = 1, y = 2, z = 4;
        add(p.comm[0], &x, p.stream[0]);
        EXPECT_OK(twill_event_record(event, p.stream[0]), nullptr);
        add(p.comm[0], &z, p.stream[0]); /* not part of it */
        EXPECT_EQ(twill_event_query(event), TWILL_INPROGRESS);
        add(p.comm[1], &y, p.stream[1]);
        EXPECT_OK(twill_event_synchronize(event), nullptr);
        EXPECT_EQ(twill_event_query(event), TWILL_OK);
        EXPECT_EQ(x, 3);
        EXPECT_EQ(twill_stream_query(p.stream[0]), TWILL_INPROGRESS);
        add(p.comm[1], &y, p.stream[1]);
        EXPECT_OK(twill_event_record(event, nullptr), nullptr);
        EXPECT_EQ(twill_event_query(event), TWILL_OK);
        EXPECT_OK(twill_event_destroy(event), nullptr);
    });
}

/* Calls of another communicator wait for it, through a chain of streams; events and streams go
 * while they are waited for. */
TEST(Event, OrdersStreamsAndOutlivesThem)
{
    world::run_alone([] {
        Pair p, q;
        twill_stream_t middle = nullptr, first = nullptr;
        twill_event_t a = nullptr, b = nullptr;
        ASSERT_OK(twill_stream_create(&middle), nullptr);
        ASSERT_OK(twill_stream_create(&first), nullptr);
        ASSERT_OK(twill_event_create(&a), nullptr);
        ASSERT_OK(twill_event_create(&b), nullptr);
        int x[2] = {1, 2}, y[2] = {10, 20};
        add(p.comm[0], &x[0], first);
        EXPECT_OK(twill_event_record(a, first), nullptr);
        EXPECT_OK(twill_event_wait(middle, a), nullptr);
        EXPECT_OK(twill_event_record(b, middle), nullptr);
        EXPECT_OK(twill_event_wait(q.stream[0], b), nullptr);
        EXPECT_OK(twill_event_wait(q.stream[1], b), nullptr);
        EXPECT_OK(twill_event_record(a, nullptr), nullptr); /* who waits, waits for the old one */
        EXPECT_OK(twill_event_destroy(b), nullptr);
        for (int i = 0; i < 2; i++)
            add(q.comm[i], &y[i], q.stream[i]);
        for (int i = 0; i < 2; i++)
            EXPECT_EQ(twill_stream_query(q.stream[i]), TWILL_INPROGRESS);
        EXPECT_EQ(twill_stream_query(middle), TWILL_INPROGRESS);
        std::thread other([&] { EXPECT_OK(twill_stream_destroy(middle), nullptr); });
        add(p.comm[1], &x[1], p.stream[1]);
        other.join();
        for (int i = 0; i < 2; i++)
            EXPECT_OK(twill_stream_synchronize(q.stream[i]), nullptr);
        EXPECT_EQ(y[0], 30);
        EXPECT_EQ(y[1], 30);
        EXPECT_EQ(x[0], 3);
        EXPECT_OK(twill_event_record(a, first), nullptr);
        EXPECT_OK(twill_stream_destroy(first), nullptr);
        EXPECT_OK(twill_event_synchronize(a), nullptr);
        EXPECT_OK(twill_event_wait(nullptr, a), nullptr);
        EXPECT_OK(twill_event_destroy(a), nullptr);
    });
}

TEST(Event, IsReachedToo_WhenACommunicatorFails)
{
    world::run_alone([] {
        Pair p;
        twill_event_t event = nullptr;
        ASSERT_OK(twill_event_create(&event), nullptr);
        int x = 1;
        add(p.comm[0], &x, p.stream[0]);
        EXPECT_OK(twill_event_record(event, p.stream[0]), nullptr);
        EXPECT_OK(twill_event_wait(p.stream[1], event), nullptr);
        EXPECT_OK(twill_comm_abort(p.comm[0]), nullptr);
        EXPECT_OK(twill_event_synchronize(event), nullptr);
        EXPECT_EQ(twill_stream_synchronize(p.stream[0]), TWILL_ERR_ABORTED);
        EXPECT_OK(twill_stream_synchronize(p.stream[1]), nullptr);
        EXPECT_OK(twill_event_destroy(event), nullptr);
    });
}

/* Two ranks, a stream for each and an event, made in an order and ended in another while calls are
 * queued. The calls are made all the same. */
void made_and_ended(const std::vector<int> &made, const std::vector<int> &ended)
{
    twill_comm_t comm[2] = {};
    twill_stream_t stream[2] = {};
    twill_event_t event = nullptr;
    int x[2] = {1, 2}, y[2] = {10, 20};
    for (const int which : made) {
        if (which < 2) {
            ASSERT_OK(twill_stream_create(&stream[which]), nullptr);
        } else if (which == 2) {
            ASSERT_OK(twill_event_create(&event), nullptr);
        } else if (which == 3) {
            ASSERT_OK(twill_comm_init_all(comm, 2, nullptr, nullptr), nullptr);
        }
    }
    for (int i = 0; i < 2; i++)
        add(comm[i], &x[i], stream[i]);
    ASSERT_OK(twill_event_record(event, stream[0]), nullptr);
    ASSERT_OK(twill_event_wait(stream[1], event), nullptr);
    for (int i = 0; i < 2; i++)
        add(comm[i], &y[i], stream[i]);
    for (const int which : ended) {
        if (which < 2) {
            EXPECT_OK(twill_stream_destroy(stream[which]), nullptr);
        } else if (which == 2) {
            EXPECT_OK(twill_event_destroy(event), nullptr);
        } else {
            EXPECT_OK(twill_comm_destroy(comm[which - 3]), nullptr);
        }
    }
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(x[i], 3);
        EXPECT_EQ(y[i], 30);
    }
}

TEST(Event, StreamsAndCommunicatorsComeAndGoInAnyOrder)
{
    world::run_alone([] {
        std::vector<int> made = {0, 1, 2, 3, 4}, ended = made;
        do {
            made_and_ended(made, ended);
            if (HasFailure())
                FAIL() << testing::PrintToString(made) << ' ' << testing::PrintToString(ended);
            std::next_permutation(made.begin(), made.end() - 1);
        } while (std::next_permutation(ended.begin(), ended.end()));
    });
}

TEST(Event, BadArguments)
{
    world::run_alone([] {
        Pair p;
        twill_event_t event = nullptr;
        EXPECT_EQ(twill_event_create(nullptr), TWILL_ERR_INVALID);
        ASSERT_OK(twill_event_create(&event), nullptr);
        EXPECT_EQ(twill_event_record(nullptr, p.stream[0]), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_event_wait(p.stream[0], nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_event_query(nullptr), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_event_synchronize(nullptr), TWILL_ERR_INVALID);
        EXPECT_OK(twill_event_destroy(nullptr), nullptr);
        int x[2] = {1, 2};
        ASSERT_OK(twill_group_start(), nullptr);
        for (int i = 0; i < 2; i++)
            add(p.comm[i], &x[i], p.stream[i]);
        EXPECT_EQ(twill_event_record(event, p.stream[0]), TWILL_ERR_USAGE);
        EXPECT_EQ(twill_event_wait(p.stream[0], event), TWILL_ERR_USAGE);
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_OK(twill_event_destroy(event), nullptr);
    });
}

} // namespace
