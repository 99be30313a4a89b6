/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what streams promise: calls return at once, order, errors at synchronize.
 * Never knows: who runs them. */
#include "data.h"
#include "world.h"
#include <sched.h>

namespace
{

const size_t BIG = (size_t)1 << 20;

TEST(Stream, ArgumentsAndEmptyOnes)
{
    world::run_alone([] {
        EXPECT_EQ(twill_stream_create(nullptr), TWILL_ERR_INVALID);
        EXPECT_OK(twill_stream_destroy(nullptr), nullptr);
        EXPECT_OK(twill_stream_synchronize(nullptr), nullptr);
        EXPECT_OK(twill_stream_query(nullptr), nullptr);
        char no_stream[4096] = {};
        EXPECT_EQ(twill_stream_synchronize(no_stream), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_stream_query(no_stream), TWILL_ERR_INVALID);
        EXPECT_EQ(twill_stream_destroy(no_stream), TWILL_ERR_INVALID);
        twill_stream_t stream = nullptr;
        ASSERT_OK(twill_stream_create(&stream), nullptr);
        EXPECT_OK(twill_stream_synchronize(stream), nullptr);
        EXPECT_OK(twill_stream_query(stream), nullptr);
        EXPECT_OK(twill_stream_destroy(stream), nullptr);
    });
}

TEST(Stream, ReturnsAlthoughThePeerHasNotCalled)
{
    world::run_streams(2, [](const world::Rank &rank, twill_comm_t comm, twill_stream_t stream) {
        std::vector<float> x(BIG, (float)(rank.rank + 1));
        int *words = world::shared()->words;
        if (rank.rank == 1)
            world::await(&words[0], 1);
        ASSERT_OK(
            twill_all_reduce(x.data(), x.data(), x.size(), TWILL_FLOAT32, TWILL_SUM, comm, stream),
            comm);
        if (rank.rank == 0) {
            EXPECT_EQ(twill_stream_query(stream), TWILL_INPROGRESS);
            world::set(&words[0], 1); /* only now may rank 1 call */
        }
        ASSERT_OK(twill_stream_synchronize(stream), nullptr);
        EXPECT_OK(twill_stream_query(stream), nullptr);
        EXPECT_EQ(x, std::vector<float>(BIG, 3.0f));
    });
}

/* Each call depends on the one before: stream calls, a blocking call behind them, two streams. */
TEST(Stream, CommunicatorOrderHoldsAcrossStreamsAndBlockingCalls)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        twill_stream_t s[2];
        ASSERT_OK(twill_stream_create(&s[0]), nullptr);
        ASSERT_OK(twill_stream_create(&s[1]), nullptr);
        for (int round = 0; round < 20; round++) {
            std::vector<double> x(5000, 1.0);
            double factor = 1;
            for (int i = 0; i < 6; i++, factor *= 3)
                ASSERT_OK(twill_all_reduce(x.data(), x.data(), x.size(), TWILL_FLOAT64, TWILL_SUM,
                                           comm, i % 3 == 2 ? nullptr : s[i % 2]),
                          comm);
            EXPECT_EQ(x[0], factor) << "after a blocking call everything before it is done";
            EXPECT_EQ(x[4999], factor);
        }
        ASSERT_OK(twill_stream_destroy(s[0]), nullptr);
        ASSERT_OK(twill_stream_destroy(s[1]), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* One stream over two communicators: the second's call reads what the first's wrote. */
TEST(Stream, StreamOrderHoldsAcrossCommunicators)
{
    world::run_alone([] {
        twill_comm_t a[2], b[2];
        ASSERT_OK(twill_comm_init_all(a, 2, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_comm_init_all(b, 2, nullptr, nullptr), nullptr);
        world::threads(2, [&](int rank) {
            twill_stream_t stream;
            ASSERT_OK(twill_stream_create(&stream), nullptr);
            for (int round = 0; round < 20; round++) {
                std::vector<int> x(10000, rank + 1);
                ASSERT_OK(twill_all_reduce(x.data(), x.data(), x.size(), TWILL_INT32, TWILL_SUM,
                                           a[rank], stream),
                          a[rank]);
                ASSERT_OK(twill_all_reduce(x.data(), x.data(), x.size(), TWILL_INT32, TWILL_SUM,
                                           b[rank], stream),
                          b[rank]);
                ASSERT_OK(twill_stream_synchronize(stream), nullptr);
                ASSERT_EQ(x, std::vector<int>(10000, 6));
            }
            EXPECT_OK(twill_stream_destroy(stream), nullptr);
            EXPECT_OK(twill_comm_destroy(a[rank]), nullptr);
            EXPECT_OK(twill_comm_destroy(b[rank]), nullptr);
        });
    });
}

/* Calls of a group on one stream are simultaneous, so opposite orders are legal there too. */
TEST(Stream, GroupOnOneStreamInOppositeOrders)
{
    world::run_alone([] {
        twill_comm_t a[2], b[2];
        ASSERT_OK(twill_comm_init_all(a, 2, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_comm_init_all(b, 2, nullptr, nullptr), nullptr);
        world::threads(2, [&](int rank) {
            twill_stream_t stream;
            ASSERT_OK(twill_stream_create(&stream), nullptr);
            std::vector<float> in(BIG, 1.0f), out_a(BIG), out_b(BIG);
            ASSERT_OK(twill_group_start(), nullptr);
            for (int i = 0; i < 2; i++) {
                const bool is_a = i == rank;
                twill_comm_t comm = is_a ? a[rank] : b[rank];
                ASSERT_OK(twill_all_reduce(in.data(), (is_a ? out_a : out_b).data(), BIG,
                                           TWILL_FLOAT32, TWILL_SUM, comm, stream),
                          comm);
            }
            ASSERT_OK(twill_group_end(), nullptr);
            ASSERT_OK(twill_stream_synchronize(stream), nullptr);
            EXPECT_EQ(out_a, std::vector<float>(BIG, 2.0f));
            EXPECT_EQ(out_b, std::vector<float>(BIG, 2.0f));
            EXPECT_OK(twill_stream_destroy(stream), nullptr);
            EXPECT_OK(twill_comm_destroy(a[rank]), nullptr);
            EXPECT_OK(twill_comm_destroy(b[rank]), nullptr);
        });
    });
}

/* In one group, with and without a stream: the end waits for the latter only. */
TEST(Stream, GroupOfQueuedAndBlockingCalls)
{
    world::run_streams(2, [](const world::Rank &rank, twill_comm_t comm, twill_stream_t stream) {
        int x = 1, y = 10, got = 0;
        const int mine = 5 + rank.rank;
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, stream), comm);
        ASSERT_OK(twill_all_reduce(&y, &y, 1, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
        ASSERT_OK(twill_send(&mine, 1, TWILL_INT32, 1 - rank.rank, comm, stream), comm);
        ASSERT_OK(twill_recv(&got, 1, TWILL_INT32, 1 - rank.rank, comm, stream), comm);
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(y, 20);
        EXPECT_EQ(x, 2) << "it came before y on this communicator";
        ASSERT_OK(twill_stream_synchronize(stream), nullptr);
        EXPECT_EQ(got, 6 - rank.rank);
    });
}

TEST(Stream, DestroyOfTheCommunicatorWaitsForItsCalls)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        twill_stream_t stream;
        ASSERT_OK(twill_stream_create(&stream), nullptr);
        std::vector<int> x(BIG, 1);
        ASSERT_OK(
            twill_all_reduce(x.data(), x.data(), x.size(), TWILL_INT32, TWILL_SUM, comm, stream),
            comm);
        ASSERT_OK(twill_comm_destroy(comm), nullptr);
        EXPECT_EQ(x, std::vector<int>(BIG, 2));
        EXPECT_OK(twill_stream_synchronize(stream), nullptr);
        EXPECT_OK(twill_stream_destroy(stream), nullptr);
    });
}

TEST(Stream, AbortEndsQueuedCallsWithItsStatus)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        rank.meet(0); /* nobody is in init any more */
        if (rank.rank == 0) {
            twill_stream_t stream;
            ASSERT_OK(twill_stream_create(&stream), nullptr);
            int x = 1, y = 1;
            ASSERT_OK(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, stream), comm);
            ASSERT_OK(twill_all_reduce(&y, &y, 1, TWILL_INT32, TWILL_SUM, comm, stream), comm);
            ASSERT_OK(twill_comm_abort(comm), comm);
            EXPECT_EQ(twill_stream_synchronize(stream), TWILL_ERR_ABORTED);
            EXPECT_NE(world::text(nullptr).find("aborted by rank 0"), std::string::npos)
                << world::text(nullptr);
            EXPECT_OK(twill_stream_synchronize(stream), nullptr); /* reported once */
            EXPECT_OK(twill_stream_destroy(stream), nullptr);
        } else {
            /* a call of its own before the abort would be a mismatch */
            enum twill_status status = TWILL_OK;
            while (status == TWILL_OK) {
                ASSERT_OK(twill_comm_async_error(comm, &status), comm);
                sched_yield();
            }
            int x = 1;
            EXPECT_EQ(twill_recv(&x, 1, TWILL_INT32, 0, comm, nullptr), TWILL_ERR_ABORTED);
            EXPECT_NE(world::text(comm).find("aborted by rank 0"), std::string::npos)
                << world::text(comm);
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* A call of a dead communicator does not wait for one of another that stands before it. */
TEST(Stream, AbortAndDestroyDoNotWaitForAnotherCommunicator)
{
    world::run_alone([] {
        twill_comm_t a[2], b[2];
        ASSERT_OK(twill_comm_init_all(a, 2, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_comm_init_all(b, 2, nullptr, nullptr), nullptr);
        twill_stream_t stream, other;
        ASSERT_OK(twill_stream_create(&stream), nullptr);
        ASSERT_OK(twill_stream_create(&other), nullptr);
        int x[2] = {1, 2}, y = 1;
        ASSERT_OK(twill_all_reduce(&x[0], &x[0], 1, TWILL_INT32, TWILL_SUM, b[0], stream), b[0]);
        ASSERT_OK(twill_all_reduce(&y, &y, 1, TWILL_INT32, TWILL_SUM, a[0], stream), a[0]);
        for (twill_comm_t comm : a)
            ASSERT_OK(twill_comm_abort(comm), comm);
        for (twill_comm_t comm : a)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
        EXPECT_EQ(twill_stream_query(stream), TWILL_INPROGRESS);
        ASSERT_OK(twill_all_reduce(&x[1], &x[1], 1, TWILL_INT32, TWILL_SUM, b[1], other), b[1]);
        EXPECT_EQ(twill_stream_synchronize(stream), TWILL_ERR_ABORTED);
        EXPECT_OK(twill_stream_synchronize(other), nullptr);
        EXPECT_EQ(x[0], 3);
        EXPECT_EQ(x[1], 3);
        for (twill_comm_t comm : b)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
        EXPECT_OK(twill_stream_destroy(stream), nullptr);
        EXPECT_OK(twill_stream_destroy(other), nullptr);
    });
}

} // namespace
