/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how communicators come, go and are given up, seen through the C API. Never knows: how. */
#include <memory>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

namespace
{

int sum_of_ones(twill_comm_t comm)
{
    int x = 1;
    EXPECT_OK(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
    return x;
}

TEST(Life, RankSizeAndDevice)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        int value = -9;
        EXPECT_OK(twill_comm_rank(comm, &value), comm);
        EXPECT_EQ(value, rank.rank);
        EXPECT_OK(twill_comm_size(comm, &value), comm);
        EXPECT_EQ(value, 3);
        EXPECT_OK(twill_comm_device(comm, &value), comm);
        EXPECT_EQ(value, TWILL_DEVICE_HOST);
        EXPECT_OK(twill_comm_finalize(comm), comm);
        EXPECT_EQ(twill_comm_finalize(comm), TWILL_ERR_USAGE);
        EXPECT_EQ(twill_barrier(comm, nullptr), TWILL_ERR_USAGE);
        EXPECT_NE(world::text(comm).find("finalized"), std::string::npos);
        EXPECT_OK(twill_comm_rank(comm, &value), comm);
        EXPECT_EQ(value, rank.rank);
        enum twill_status status;
        EXPECT_OK(twill_comm_async_error(comm, &status), comm);
        EXPECT_EQ(status, TWILL_OK);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* What a forked child does to what its parent made: nothing. @return calls that were not refused */
int calls_let_through(twill_comm_t comm, twill_stream_t stream)
{
    int x = 1, value = 0, through = 0;
    enum twill_status status;
    twill_unique_id id;
    twill_comm_t made = nullptr;
    for (enum twill_status got :
         {twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr),
          twill_send(&x, 1, TWILL_INT32, 0, comm, stream), twill_barrier(comm, stream),
          twill_comm_async_error(comm, &status), twill_comm_rank(comm, &value),
          twill_comm_finalize(comm), twill_comm_abort(comm), twill_deregister(comm, nullptr),
          twill_stream_query(stream), twill_stream_synchronize(stream),
          twill_stream_destroy(stream), twill_group_end(), twill_get_unique_id(&id),
          twill_comm_init_all(&made, 1, nullptr, nullptr), twill_comm_destroy(comm)})
        through += got != TWILL_ERR_USAGE;
    return through;
}

TEST(Life, AForkedChildTouchesNothing)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        twill_stream_t stream = nullptr;
        ASSERT_NE(comm, nullptr);
        ASSERT_OK(twill_stream_create(&stream), nullptr);
        EXPECT_OK(twill_barrier(comm, stream), comm);
        EXPECT_OK(twill_stream_synchronize(stream), nullptr);
        ASSERT_OK(twill_group_start(), nullptr);
        EXPECT_OK(twill_barrier(comm, nullptr), comm);
        const pid_t child = fork();
        if (child == 0)
            _exit(calls_let_through(comm, stream));
        int end = -1;
        ASSERT_EQ(waitpid(child, &end, 0), child);
        EXPECT_TRUE(WIFEXITED(end));
        EXPECT_EQ(WEXITSTATUS(end), 0) << "calls that the child got through";
        EXPECT_OK(twill_group_end(), comm);
        EXPECT_EQ(sum_of_ones(comm), 2);
        EXPECT_OK(twill_stream_destroy(stream), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Life, NonBlockingInitAndFinalize)
{
    world::run_all(3, [](const world::Rank &rank) {
        const twill_unique_id id = rank.id();
        twill_config config = TWILL_CONFIG_INIT;
        config.blocking = 0;
        int *words = world::shared()->words;
        if (rank.rank == 2)
            world::await(&words[0], 2);
        twill_comm_t comm = nullptr;
        ASSERT_EQ(twill_comm_init(&comm, 3, &id, rank.rank, &config), TWILL_INPROGRESS);
        ASSERT_NE(comm, nullptr);
        if (rank.rank != 2) { /* rank 2 comes only now: it cannot be ready yet */
            enum twill_status status;
            EXPECT_OK(twill_comm_async_error(comm, &status), comm);
            EXPECT_EQ(status, TWILL_INPROGRESS);
            int x = 1, size = 0;
            EXPECT_EQ(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr),
                      TWILL_ERR_USAGE);
            EXPECT_NE(world::text(comm).find("still connecting"), std::string::npos);
            EXPECT_EQ(twill_comm_finalize(comm), TWILL_ERR_USAGE);
            EXPECT_OK(twill_comm_size(comm, &size), comm);
            EXPECT_EQ(size, 3);
            __atomic_fetch_add(&words[0], 1, __ATOMIC_ACQ_REL);
        }
        ASSERT_EQ(world::settle(comm), TWILL_OK) << world::text(comm);
        EXPECT_EQ(sum_of_ones(comm), 3);
        if (rank.rank == 2)
            world::await(&words[1], 2);
        ASSERT_EQ(twill_comm_finalize(comm), TWILL_INPROGRESS);
        if (rank.rank != 2) {
            enum twill_status status;
            EXPECT_OK(twill_comm_async_error(comm, &status), comm);
            EXPECT_EQ(status, TWILL_INPROGRESS);
            __atomic_fetch_add(&words[1], 1, __ATOMIC_ACQ_REL);
        }
        EXPECT_EQ(world::settle(comm), TWILL_OK);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Life, NonBlockingInitGivenUpByDestroyAndByAbort)
{
    world::run_alone([] {
        twill_config config = TWILL_CONFIG_INIT;
        config.blocking = 0;
        twill_unique_id id;
        ASSERT_OK(twill_get_unique_id(&id), nullptr);
        twill_comm_t comm = nullptr;
        ASSERT_EQ(twill_comm_init(&comm, 2, &id, 0, &config), TWILL_INPROGRESS);
        EXPECT_OK(twill_comm_destroy(comm), nullptr) << "nobody else ever comes";
        ASSERT_OK(twill_get_unique_id(&id), nullptr);
        ASSERT_EQ(twill_comm_init(&comm, 2, &id, 0, &config), TWILL_INPROGRESS);
        EXPECT_OK(twill_comm_abort(comm), comm);
        EXPECT_EQ(world::settle(comm), TWILL_ERR_ABORTED);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* Of a blocking init that fails nothing is left; the others' fail too. */
TEST(Life, MissingRankEndsInitWithItsName)
{
    world::run_all(
        3,
        [](const world::Rank &rank) {
            const twill_unique_id id = rank.id();
            if (rank.rank == 2) {
                world::await(&world::shared()->words[0], 2);
                return;
            }
            twill_comm_t comm = nullptr;
            EXPECT_EQ(twill_comm_init(&comm, 3, &id, rank.rank, nullptr), TWILL_ERR_TIMEOUT);
            EXPECT_NE(world::text(nullptr).find("2"), std::string::npos) << world::text(nullptr);
            EXPECT_EQ(comm, nullptr);
            __atomic_fetch_add(&world::shared()->words[0], 1, __ATOMIC_ACQ_REL);
        },
        {{"TWILL_INIT_TIMEOUT", "400ms"}});
}

TEST(Life, ManyCommunicatorsOneAfterAnother)
{
    world::run_alone([] {
        for (int round = 0; round < 30; round++) {
            twill_comm_t comms[3];
            ASSERT_OK(twill_comm_init_all(comms, 3, nullptr, nullptr), nullptr);
            world::threads(3, [&](int rank) { EXPECT_EQ(sum_of_ones(comms[rank]), 3); });
            for (twill_comm_t comm : comms)
                ASSERT_OK(twill_comm_destroy(comm), nullptr);
        }
    });
}

/* One thread ends both: the first one's finalize waits for the second one, its destroy does not. */
TEST(Life, NonBlockingFinalizeAndDestroyOneRankAfterAnother)
{
    world::run_alone(
        [] {
            twill_config config = TWILL_CONFIG_INIT;
            config.blocking = 0;
            twill_comm_t comms[2];
            ASSERT_EQ(twill_comm_init_all(comms, 2, nullptr, &config), TWILL_INPROGRESS);
            for (twill_comm_t comm : comms)
                ASSERT_EQ(world::settle(comm), TWILL_OK) << world::text(comm);
            for (twill_comm_t comm : comms) {
                ASSERT_EQ(twill_comm_finalize(comm), TWILL_INPROGRESS);
                EXPECT_OK(twill_comm_destroy(comm), nullptr);
            }
        },
        {{"TWILL_TIMEOUT", "5s"}});
}

/* Several ranks in each of two processes. */
TEST(Life, ThreadsInProcesses)
{
    world::run_all(2, [](const world::Rank &process) {
        const twill_unique_id id = process.id();
        twill_comm_t comms[2] = {};
        ASSERT_OK(twill_group_start(), nullptr);
        for (int i = 0; i < 2; i++)
            ASSERT_OK(twill_comm_init(&comms[i], 4, &id, 2 * process.rank + i, nullptr), nullptr);
        ASSERT_OK(twill_group_end(), nullptr);
        world::threads(2, [&](int i) {
            std::vector<double> x(100000, 1.0);
            EXPECT_OK(twill_all_reduce(x.data(), x.data(), x.size(), TWILL_FLOAT64, TWILL_SUM,
                                       comms[i], nullptr),
                      comms[i]);
            EXPECT_EQ(x, std::vector<double>(100000, 4.0));
        });
        for (twill_comm_t comm : comms)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* ---- one thread at a time, abort --------------------------------------------------------------
 */

/* Another thread's call that cannot end by itself; comes back once it is seen inside. */
class Inside
{
  public:
    explicit Inside(twill_comm_t comm)
        : thread_([this, comm] {
              int x = 1;
              do /* the other thread looks by calls that may be inside just now */
                  status_ = twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, nullptr);
              while (status_ == TWILL_ERR_BUSY);
              text_ = world::text(comm);
          })
    {
        int x = 1;
        while (twill_send(&x, 1, TWILL_INT32, 99, comm, nullptr) != TWILL_ERR_BUSY)
            std::this_thread::yield();
    }
    enum twill_status join(std::string *text)
    {
        thread_.join();
        *text = text_;
        return status_;
    }

  private:
    enum twill_status status_ = TWILL_OK;
    std::string text_;
    std::thread thread_;
};

TEST(Threads, SecondOneInsideIsBusyAndAbortEndsTheFirst)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        rank.meet(0);
        if (rank.rank == 0) {
            Inside inside(comm);
            int x = 1;
            EXPECT_EQ(twill_barrier(comm, nullptr), TWILL_ERR_BUSY);
            EXPECT_NE(world::text(comm).find("another thread"), std::string::npos);
            EXPECT_EQ(twill_comm_destroy(comm), TWILL_ERR_BUSY);
            EXPECT_EQ(twill_comm_finalize(comm), TWILL_ERR_BUSY);
            EXPECT_OK(twill_comm_rank(comm, &x), comm); /* queries are free */
            enum twill_status status = TWILL_ERR_INTERNAL;
            EXPECT_OK(twill_comm_async_error(comm, &status), comm);
            EXPECT_EQ(status, TWILL_OK);
            EXPECT_OK(twill_comm_abort(comm), comm);
            std::string text;
            EXPECT_EQ(inside.join(&text), TWILL_ERR_ABORTED);
            EXPECT_NE(text.find("aborted by rank 0"), std::string::npos) << text;
            EXPECT_EQ(twill_barrier(comm, nullptr), TWILL_ERR_ABORTED);
        }
        enum twill_status status = TWILL_OK;
        while (status == TWILL_OK) /* rank 1 is told */
            EXPECT_EQ(twill_comm_async_error(comm, &status), TWILL_OK);
        EXPECT_EQ(status, TWILL_ERR_ABORTED);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Threads, AbortIsToldToTheOtherRanks)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        rank.meet(0);
        if (rank.rank == 1) {
            EXPECT_OK(twill_comm_abort(comm), comm);
            EXPECT_OK(twill_comm_abort(comm), comm);
        } else {
            EXPECT_EQ(twill_barrier(comm, nullptr), TWILL_ERR_ABORTED);
            EXPECT_NE(world::text(comm).find("aborted by rank 1"), std::string::npos)
                << world::text(comm);
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* Rank threads that give up at different moments: after a call that is refused, with calls under
 * way in streams whose buffers are freed once the communicator is gone. */
TEST(Threads, GiveUpAfterACallThatIsRefused)
{
    world::run_alone([] {
        for (int round = 0; round < 5; round++) {
            twill_unique_id id;
            ASSERT_OK(twill_get_unique_id(&id), nullptr);
            world::threads(2, [&](int rank) {
                twill_comm_t comm = nullptr;
                twill_stream_t stream = nullptr;
                const enum twill_status made = twill_comm_init(&comm, 2, &id, rank, nullptr);
                if (made == TWILL_ERR_ABORTED) /* the other one was ready and has gone already */
                    return;
                ASSERT_OK(made, nullptr);
                ASSERT_OK(twill_stream_create(&stream), nullptr);
                auto buffer = std::make_unique<std::vector<float>>(100000, 1.0f);
                float *x = buffer->data();
                const enum twill_status refused =
                    twill_all_reduce(x, x, 8, TWILL_FLOAT32, TWILL_BXOR, comm, nullptr);
                EXPECT_TRUE(refused == TWILL_ERR_INVALID || refused == TWILL_ERR_ABORTED);
                const enum twill_status queued =
                    twill_all_reduce(x, x, 100000, TWILL_FLOAT32, TWILL_SUM, comm, stream);
                EXPECT_TRUE(queued == TWILL_OK || queued == TWILL_ERR_ABORTED);
                if (rank == round % 2)
                    std::this_thread::yield();
                EXPECT_OK(twill_comm_abort(comm), comm);
                EXPECT_OK(twill_comm_destroy(comm), nullptr);
                buffer.reset(); /* nothing of the communicator writes any more */
                (void)twill_stream_destroy(stream);
            });
        }
    });
}

} // namespace
