/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what groups promise: concurrency, order, self sends, errors. Never knows: how. */
#include "data.h"
#include "world.h"

extern "C" {
#include "algo/algo.h"
}

using data::Bytes;

namespace
{

const size_t BIG = (size_t)3 << 20; /* far more than any FIFO */

/* TWILL_ALGO with which no all_reduce can run. */
std::string everything_left_out()
{
    std::string all;
    for (size_t i = 0; const struct tw_algo *algo = tw_algo_at(i); i++)
        all += std::string(all.empty() ? "^" : ",^") + algo->name;
    return all;
}

TEST(Group, NestsAndEndsOnce)
{
    world::run_alone([] {
        EXPECT_EQ(twill_group_end(), TWILL_ERR_USAGE);
        EXPECT_NE(world::text(nullptr).find("no group is open"), std::string::npos);
        twill_comm_t comm;
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
        int in = 7, out = 0;
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_all_reduce(&in, &out, 1, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(out, 0) << "ran before the outermost end";
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(out, 7);
        ASSERT_OK(twill_group_start(), nullptr);
        EXPECT_OK(twill_group_end(), nullptr) << "an empty group";
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Group, ExchangeOfBigMessagesWithEveryPeer)
{
    world::run_all(4, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        const size_t count = BIG / 4;
        std::vector<Bytes> in(4, Bytes(count)), out(4, Bytes(count));
        ASSERT_OK(twill_group_start(), nullptr);
        for (int peer = 0; peer < 4; peer++) {
            data::fill(in[(size_t)peer].data(), count, TWILL_UINT8, 100 + (uint64_t)peer,
                       rank.rank);
            ASSERT_OK(twill_send(in[(size_t)peer].data(), count, TWILL_UINT8, peer, comm, nullptr),
                      comm);
            ASSERT_OK(twill_recv(out[(size_t)peer].data(), count, TWILL_UINT8, peer, comm, nullptr),
                      comm);
        }
        ASSERT_OK(twill_group_end(), nullptr);
        for (int peer = 0; peer < 4; peer++) {
            Bytes want(count);
            data::fill(want.data(), count, TWILL_UINT8, 100 + (uint64_t)rank.rank, peer);
            EXPECT_EQ(out[(size_t)peer], want) << "from " << peer;
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Group, SendsOfAPairKeepTheirOrder)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        int in[32], out[32];
        ASSERT_OK(twill_group_start(), nullptr);
        for (int i = 0; i < 32; i++) {
            in[i] = 1000 * rank.rank + i;
            out[i] = -1;
            ASSERT_OK(twill_send(&in[i], 1, TWILL_INT32, 1 - rank.rank, comm, nullptr), comm);
            ASSERT_OK(twill_recv(&out[i], 1, TWILL_INT32, 1 - rank.rank, comm, nullptr), comm);
        }
        ASSERT_OK(twill_group_end(), nullptr);
        for (int i = 0; i < 32; i++)
            EXPECT_EQ(out[i], 1000 * (1 - rank.rank) + i);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Group, SelfSendsNeedTheirReceive)
{
    world::run_alone([] {
        twill_comm_t comm;
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
        int in[2] = {1, 2}, out[2] = {0, 0};
        EXPECT_EQ(twill_send(in, 2, TWILL_INT32, 0, comm, nullptr), TWILL_ERR_USAGE);
        EXPECT_NE(world::text(comm).find("itself"), std::string::npos) << world::text(comm);
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_recv(out, 2, TWILL_INT32, 0, comm, nullptr), comm);
        ASSERT_OK(twill_send(in, 2, TWILL_INT32, 0, comm, nullptr), comm);
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(out[0], 1);
        EXPECT_EQ(out[1], 2);
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_send(in, 2, TWILL_INT32, 0, comm, nullptr), comm);
        EXPECT_EQ(twill_group_end(), TWILL_ERR_USAGE);
        EXPECT_NE(world::text(nullptr).find("no recv"), std::string::npos) << world::text(nullptr);
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_send(in, 2, TWILL_INT32, 0, comm, nullptr), comm);
        ASSERT_OK(twill_recv(out, 1, TWILL_INT32, 0, comm, nullptr), comm);
        EXPECT_EQ(twill_group_end(), TWILL_ERR_USAGE);
        ASSERT_OK(twill_all_reduce(in, out, 2, TWILL_INT32, TWILL_SUM, comm, nullptr), comm)
            << "the communicator is as it was";
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* Two communicators over the same ranks, used in opposite orders. */
/* Of a pair the second may be refused, as the communicator has failed meanwhile: that is what the
 * group says then. */
TEST(Group, AFailureBetweenASelfSendAndItsReceiveIsTold)
{
    world::run_alone([] {
        twill_comm_t comm, other;
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_comm_init_all(&other, 1, nullptr, nullptr), nullptr);
        int in = 7, out = 0, sum = 0;
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_send(&in, 1, TWILL_INT32, 0, comm, nullptr), comm);
        ASSERT_OK(twill_all_reduce(&in, &sum, 1, TWILL_INT32, TWILL_SUM, other, nullptr), other);
        ASSERT_OK(twill_comm_abort(comm), comm);
        EXPECT_EQ(twill_recv(&out, 1, TWILL_INT32, 0, comm, nullptr), TWILL_ERR_ABORTED);
        EXPECT_EQ(twill_group_end(), TWILL_ERR_ABORTED);
        EXPECT_NE(world::text(nullptr).find("aborted by rank 0"), std::string::npos)
            << world::text(nullptr);
        EXPECT_EQ(out, 0);
        EXPECT_EQ(sum, 7) << "the other communicator goes on";
        EXPECT_OK(twill_comm_destroy(other), other);
        EXPECT_OK(twill_comm_destroy(comm), comm);
    });
}

TEST(Group, OppositeOrdersOverTwoCommunicatorsDoNotDeadlock)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_unique_id id = rank.id();
        twill_comm_t a = nullptr, b = nullptr;
        ASSERT_OK(twill_comm_init(&a, 2, &id, rank.rank, nullptr), nullptr);
        twill_unique_id second{};
        if (rank.rank == 0) {
            ASSERT_OK(twill_get_unique_id(&second), nullptr);
        }
        ASSERT_OK(twill_broadcast(&second, &second, sizeof second, TWILL_UINT8, 0, a, nullptr), a);
        ASSERT_OK(twill_comm_init(&b, 2, &second, rank.rank, nullptr), nullptr);
        const size_t count = BIG / sizeof(float);
        for (int round = 0; round < 3; round++) {
            std::vector<float> in(count, 1.0f), out_a(count), out_b(count);
            ASSERT_OK(twill_group_start(), nullptr);
            for (int i = 0; i < 2; i++) {
                const bool is_a = i == rank.rank;
                ASSERT_OK(twill_all_reduce(in.data(), is_a ? out_a.data() : out_b.data(), count,
                                           TWILL_FLOAT32, TWILL_SUM, is_a ? a : b, nullptr),
                          a);
            }
            ASSERT_OK(twill_group_end(), nullptr);
            EXPECT_EQ(out_a, std::vector<float>(count, 2.0f));
            EXPECT_EQ(out_b, std::vector<float>(count, 2.0f));
        }
        EXPECT_OK(twill_comm_destroy(a), nullptr);
        EXPECT_OK(twill_comm_destroy(b), nullptr);
    });
}

TEST(Group, CollectivesOfOneCommunicatorRunInOrder)
{
    world::run_all(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        double x[3000]; /* not small: those that are run as one */
        for (double &v : x)
            v = rank.rank + 1;
        double got = 0;
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_send(&x[0], 1, TWILL_FLOAT64, (rank.rank + 1) % 3, comm, nullptr), comm);
        for (int i = 0; i < 4; i++)
            ASSERT_OK(twill_all_reduce(x, x, 3000, TWILL_FLOAT64, TWILL_SUM, comm, nullptr), comm);
        ASSERT_OK(twill_recv(&got, 1, TWILL_FLOAT64, (rank.rank + 2) % 3, comm, nullptr), comm);
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(x[2999], 6.0 * 3 * 3 * 3);
        EXPECT_EQ(got, 6.0 * 3 * 3 * 3) << "sends and receives come after the collectives";
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Group, ArgumentErrorsDoNotPoisonIt)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        int in = 1 + rank.rank, out = 0;
        ASSERT_OK(twill_group_start(), nullptr);
        EXPECT_EQ(twill_all_reduce(&in, nullptr, 1, TWILL_INT32, TWILL_SUM, comm, nullptr),
                  TWILL_ERR_INVALID);
        ASSERT_OK(twill_all_reduce(&in, &out, 1, TWILL_INT32, TWILL_SUM, comm, nullptr), comm);
        EXPECT_EQ(twill_send(&in, 1, TWILL_INT32, 2, comm, nullptr), TWILL_ERR_INVALID);
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(out, 3);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* Calls that do not match on one communicator, a collective and messages on another. */
TEST(Group, AFailureOfOneCommunicatorIsItsOwn)
{
    world::run_alone([] {
        twill_comm_t a[2], b[2];
        ASSERT_OK(twill_comm_init_all(a, 2, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_comm_init_all(b, 2, nullptr, nullptr), nullptr);
        world::threads(2, [&](int rank) {
            std::vector<int> bad(2, 1), x(BIG, rank + 1);
            int mine = rank, theirs = -1;
            ASSERT_OK(twill_group_start(), nullptr);
            ASSERT_OK(twill_all_reduce(bad.data(), bad.data(), 1 + (size_t)rank, TWILL_INT32,
                                       TWILL_SUM, a[rank], nullptr),
                      a[rank]);
            ASSERT_OK(twill_recv(&theirs, 1, TWILL_INT32, 1 - rank, b[rank], nullptr), b[rank]);
            ASSERT_OK(
                twill_all_reduce(x.data(), x.data(), BIG, TWILL_INT32, TWILL_SUM, b[rank], nullptr),
                b[rank]);
            ASSERT_OK(twill_send(&mine, 1, TWILL_INT32, 1 - rank, b[rank], nullptr), b[rank]);
            EXPECT_EQ(twill_group_end(), TWILL_ERR_MISMATCH);
            for (twill_comm_t of : {(twill_comm_t) nullptr, a[rank]})
                EXPECT_NE(world::text(of).find("rank 1 called all_reduce #1 count 2 int32 sum"),
                          std::string::npos)
                    << world::text(of);
            EXPECT_EQ(world::text(b[rank]), "");
            EXPECT_EQ(x, std::vector<int>(BIG, 3));
            EXPECT_EQ(theirs, 1 - rank);
            ASSERT_OK(twill_barrier(b[rank], nullptr), b[rank]) << "healthy";
            EXPECT_EQ(twill_barrier(a[rank], nullptr), TWILL_ERR_MISMATCH);
            EXPECT_OK(twill_comm_destroy(a[rank]), nullptr);
            EXPECT_OK(twill_comm_destroy(b[rank]), nullptr);
        });
    });
}

/* More communicators than sentences are kept of. */
TEST(Group, TheFirstOfManyFailuresHasItsSentence)
{
    world::run_alone(
        [] {
            const size_t ranks = 20;
            std::vector<twill_comm_t> comms(ranks);
            std::vector<int> x(ranks);
            ASSERT_OK(twill_comm_init_all(comms.data(), (int)ranks, nullptr, nullptr), nullptr);
            ASSERT_OK(twill_group_start(), nullptr);
            for (size_t r = 0; r < ranks; r++)
                ASSERT_OK(
                    twill_all_reduce(&x[r], &x[r], 1, TWILL_INT32, TWILL_SUM, comms[r], nullptr),
                    comms[r]);
            EXPECT_EQ(twill_group_end(), TWILL_ERR_UNSUPPORTED);
            EXPECT_NE(world::text(nullptr), "");
            for (twill_comm_t comm : comms)
                EXPECT_OK(twill_comm_destroy(comm), nullptr);
        },
        {{"TWILL_ALGO", everything_left_out()}});
}

TEST(Group, AFailedInitLeavesNothing)
{
    world::run_alone([] {
        twill_unique_id id;
        twill_comm_t one, comms[2] = {}, more[2] = {};
        int x = 7, y = 0;
        ASSERT_OK(twill_comm_init_all(&one, 1, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_get_unique_id(&id), nullptr);
        ASSERT_OK(twill_group_start(), nullptr);
        for (int rank = 0; rank < 2; rank++) {
            twill_config config = TWILL_CONFIG_INIT;
            config.channels = 1 + rank;
            ASSERT_OK(twill_comm_init(&comms[rank], 2, &id, rank, &config), nullptr);
        }
        ASSERT_OK(twill_comm_init_all(more, 2, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_all_reduce(&x, &y, 1, TWILL_INT32, TWILL_SUM, one, nullptr), one);
        EXPECT_EQ(twill_group_end(), TWILL_ERR_VERSION);
        EXPECT_NE(world::text(nullptr).find("channels=1"), std::string::npos)
            << world::text(nullptr);
        for (twill_comm_t comm : {comms[0], comms[1], more[0], more[1]})
            EXPECT_EQ(comm, nullptr);
        EXPECT_EQ(y, 0) << "nothing else ran";
        ASSERT_OK(twill_all_reduce(&x, &y, 1, TWILL_INT32, TWILL_SUM, one, nullptr), one);
        EXPECT_EQ(y, 7);
        EXPECT_OK(twill_comm_destroy(one), nullptr);
    });
}

TEST(Group, InitsConnectTogetherAndHandlesComeAtTheEnd)
{
    world::run_alone([] {
        twill_unique_id id;
        ASSERT_OK(twill_get_unique_id(&id), nullptr);
        twill_comm_t comms[3] = {};
        ASSERT_OK(twill_group_start(), nullptr);
        for (int rank = 0; rank < 3; rank++) {
            ASSERT_OK(twill_comm_init(&comms[rank], 3, &id, rank, nullptr), nullptr);
            EXPECT_EQ(comms[rank], nullptr);
        }
        twill_comm_t more[2] = {};
        ASSERT_OK(twill_comm_init_all(more, 2, nullptr, nullptr), nullptr);
        ASSERT_OK(twill_group_end(), nullptr);
        int sum[3];
        ASSERT_OK(twill_group_start(), nullptr);
        for (int rank = 0; rank < 3; rank++) {
            ASSERT_NE(comms[rank], nullptr);
            sum[rank] = rank + 1;
            ASSERT_OK(twill_all_reduce(&sum[rank], &sum[rank], 1, TWILL_INT32, TWILL_SUM,
                                       comms[rank], nullptr),
                      comms[rank]);
        }
        ASSERT_OK(twill_group_end(), nullptr);
        for (int rank = 0; rank < 3; rank++)
            EXPECT_EQ(sum[rank], 6);
        ASSERT_OK(twill_group_start(), nullptr);
        for (int rank = 0; rank < 3; rank++)
            ASSERT_OK(twill_comm_finalize(comms[rank]), comms[rank]);
        EXPECT_EQ(twill_comm_finalize(comms[0]), TWILL_ERR_USAGE) << "twice";
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_EQ(twill_barrier(comms[0], nullptr), TWILL_ERR_USAGE) << "finalized";
        for (twill_comm_t comm : comms)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
        for (twill_comm_t comm : more)
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Group, DestroyInsideIsRefused)
{
    world::run_alone([] {
        twill_comm_t comm;
        ASSERT_OK(twill_comm_init_all(&comm, 1, nullptr, nullptr), nullptr);
        twill_stream_t stream;
        ASSERT_OK(twill_stream_create(&stream), nullptr);
        int x = 5;
        ASSERT_OK(twill_group_start(), nullptr);
        ASSERT_OK(twill_all_reduce(&x, &x, 1, TWILL_INT32, TWILL_SUM, comm, stream), comm);
        EXPECT_EQ(twill_comm_destroy(comm), TWILL_ERR_USAGE);
        EXPECT_EQ(twill_stream_destroy(stream), TWILL_ERR_USAGE);
        ASSERT_OK(twill_group_end(), nullptr);
        EXPECT_OK(twill_stream_destroy(stream), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

} // namespace
