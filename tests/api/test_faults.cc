/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what ranks are told when others err, are late or die. Never knows: how it is found. */
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "world.h"

namespace
{

using Call = std::function<enum twill_status(twill_comm_t)>;

/* Every rank gets status and a sentence with all parts. odd makes another call than the rest. */
void mismatch(int size, int odd, const Call &rest, const Call &other,
              const std::vector<std::string> &parts)
{
    world::run_all(size, [&](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        EXPECT_OK(twill_barrier(comm, nullptr), comm);
        enum twill_status status = rank.rank == odd ? other(comm) : rest(comm);
        /* A rank whose part was done already finds out by its next call. */
        if (status == TWILL_OK)
            status = twill_barrier(comm, nullptr);
        EXPECT_EQ(status, TWILL_ERR_MISMATCH) << twill_status_string(status);
        for (const std::string &part : parts)
            EXPECT_NE(world::text(comm).find(part), std::string::npos)
                << "rank " << rank.rank << ": \"" << world::text(comm) << "\" does not say \""
                << part << "\"";
        EXPECT_EQ(twill_barrier(comm, nullptr), TWILL_ERR_MISMATCH);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

std::vector<float> &big()
{
    static std::vector<float> x(1 << 20), y;
    return x;
}

Call all_reduce(size_t count, twill_type_t type = TWILL_FLOAT32, twill_redop_t op = TWILL_SUM)
{
    return [=](twill_comm_t comm) {
        return twill_all_reduce(big().data(), big().data(), count, type, op, comm, nullptr);
    };
}

Call broadcast(int root)
{
    return [=](twill_comm_t comm) {
        return twill_broadcast(big().data(), big().data(), 1000, TWILL_FLOAT32, root, comm,
                               nullptr);
    };
}

TEST(Mismatch, Count)
{
    mismatch(3, 1, all_reduce(1000), all_reduce(1001),
             {"all_reduce", "count 1000", "count 1001", "rank 1"});
}

/* Registration is an all_gather inside; a program's own must not be taken for it. */
TEST(Mismatch, RegisterAndItsDisguise)
{
    const Call enter = [](twill_comm_t comm) {
        void *p = nullptr;
        twill_reg_t reg = nullptr;
        EXPECT_OK(twill_mem_alloc(&p, 4096, TWILL_DEVICE_HOST), nullptr);
        const enum twill_status status = twill_register(comm, p, 4096, &reg);
        EXPECT_EQ(reg, nullptr);
        EXPECT_OK(twill_mem_free(p), nullptr);
        return status;
    };
    for (int odd : {0, 1})
        mismatch(2, odd, enter,
                 [](twill_comm_t comm) {
                     int in = 0, out[2];
                     EXPECT_EQ(twill_all_gather(&in, out, 1, TWILL_INT32, comm, nullptr),
                               TWILL_ERR_MISMATCH);
                     return twill_barrier(comm, nullptr);
                 },
                 {"register #", "all_gather #"});
}

TEST(Mismatch, BigCount)
{
    mismatch(4, 3, all_reduce(200000), all_reduce(100), {"count 200000", "count 100", "rank 3"});
}

TEST(Mismatch, Type)
{
    mismatch(2, 1, all_reduce(1000), all_reduce(1000, TWILL_INT32), {"float32", "int32"});
}

TEST(Mismatch, Op)
{
    mismatch(3, 0, all_reduce(1000), all_reduce(1000, TWILL_FLOAT32, TWILL_MAX), {"sum", "max"});
}

TEST(Mismatch, Root) { mismatch(3, 2, broadcast(0), broadcast(1), {"root 0", "root 1"}); }

TEST(Mismatch, Collective)
{
    mismatch(3, 1, all_reduce(1000), broadcast(1), {"all_reduce", "broadcast"});
    mismatch(2, 1, all_reduce(1), [](twill_comm_t comm) { return twill_barrier(comm, nullptr); },
             {"all_reduce", "barrier"});
}

TEST(Mismatch, SendAndReceiveCounts)
{
    float x[8];
    mismatch(
        2, 1, [&](twill_comm_t comm) { return twill_recv(x, 8, TWILL_FLOAT32, 1, comm, nullptr); },
        [&](twill_comm_t comm) { return twill_send(x, 7, TWILL_FLOAT32, 0, comm, nullptr); },
        {"count 8", "count 7"});
}

TEST(Mismatch, ParametersThatMustBeEqual)
{
    world::run_all(2, [](const world::Rank &rank) {
        setenv("TWILL_ALGO", rank.rank ? "ring" : "recursive_doubling", 1);
        const twill_unique_id id = rank.id();
        twill_comm_t comm = nullptr;
        EXPECT_EQ(twill_comm_init(&comm, 2, &id, rank.rank, nullptr), TWILL_ERR_VERSION);
        EXPECT_EQ(comm, nullptr);
        for (const char *part : {"TWILL_ALGO", "ring", "recursive_doubling"})
            EXPECT_NE(world::text(nullptr).find(part), std::string::npos) << world::text(nullptr);
    });
}

/* One rank says by a parameter what the other one says by its config, which is stronger. */
TEST(Mismatch, ConfigAndParametersAreMergedBeforeTheyAreCompared)
{
    for (const int other : {2, 3}) {
        world::run_all(2, [&](const world::Rank &rank) {
            twill_config config = TWILL_CONFIG_INIT;
            if (rank.rank == 0) {
                setenv("TWILL_CHANNELS", "2", 1);
                setenv("TWILL_DETERMINISTIC", "1", 1);
            } else {
                setenv("TWILL_CHANNELS", "5", 1);
                config.channels = other;
                config.deterministic = 1;
            }
            const twill_unique_id id = rank.id();
            twill_comm_t comm = nullptr;
            const enum twill_status status = twill_comm_init(&comm, 2, &id, rank.rank, &config);
            if (other == 3) {
                EXPECT_EQ(status, TWILL_ERR_VERSION);
                for (const char *part : {"rank 0 has channels=2", "rank 1 has channels=3"})
                    EXPECT_NE(world::text(nullptr).find(part), std::string::npos)
                        << world::text(nullptr);
                rank.meet(0); /* the id's process stays until all have heard */
                return;
            }
            ASSERT_OK(status, nullptr);
            struct twill_choice choice = TWILL_CHOICE_INIT;
            ASSERT_OK(twill_comm_choice(comm, "all_reduce", 1, TWILL_FLOAT32, 0, &choice), comm);
            EXPECT_EQ(choice.channels, 2);
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
        });
    }
}

/* ---- death ------------------------------------------------------------------------------------
 */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const double NOTICE_S = 3.0; /* sanitizers are slow */
#else
const double NOTICE_S = 1.0;
#endif

/* What rank 2's own killer watches. */
struct Doomed {
    std::atomic<int> inside{-1}; /* number of the call that runs; -1: none */
    double *died_s;              /* shared: when it was killed */
};

/* Kills the process once it has been in one and the same call, after some, for so long. */
void kill_inside(Doomed *doomed, double phase_s)
{
    int call = -1;
    for (double since_s = 0;;) {
        const int now = doomed->inside.load();
        if (now < 5 || now != call) {
            call = now;
            since_s = world::now_s();
            continue;
        }
        *doomed->died_s = world::now_s();
        if (*doomed->died_s - since_s >= phase_s && doomed->inside.load() == call)
            kill(getpid(), SIGKILL);
    }
}

/* text: the sentence of an error, from whoever gave it. */
enum twill_status reduce(std::vector<float> &x, twill_comm_t comm, twill_stream_t stream,
                         std::string *text)
{
    enum twill_status status =
        twill_all_reduce(x.data(), x.data(), x.size(), TWILL_FLOAT32, TWILL_MAX, comm, stream);
    *text = world::text(comm);
    if (status == TWILL_OK && stream) {
        status = twill_stream_synchronize(stream);
        *text = world::text(nullptr);
    }
    return status;
}

/* Calls without end; rank 2 is killed in one of them, the others are told. */
void call_until_death(const world::Rank &rank, bool on_stream, double phase_s)
{
    twill_comm_t comm = rank.init();
    ASSERT_NE(comm, nullptr);
    twill_stream_t stream = nullptr;
    if (on_stream) {
        ASSERT_OK(twill_stream_create(&stream), nullptr);
    }
    std::vector<float> x(1 << 19, 1.0f);
    Doomed doomed;
    doomed.died_s = &world::shared()->times[0];
    std::thread killer;
    if (rank.rank == 2)
        killer = std::thread(kill_inside, &doomed, phase_s);
    std::string text;
    enum twill_status status = TWILL_OK;
    for (int i = 0; status == TWILL_OK; i++) {
        doomed.inside = i;
        status = reduce(x, comm, stream, &text);
        doomed.inside = -1;
    }
    const double took_s = world::now_s() - *doomed.died_s;
    EXPECT_NE(rank.rank, 2) << "has outlived the calls";
    EXPECT_EQ(status, TWILL_ERR_PEER) << twill_status_string(status);
    EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
    EXPECT_LT(took_s, NOTICE_S);
    EXPECT_EQ(twill_barrier(comm, nullptr), TWILL_ERR_PEER);
    EXPECT_OK(twill_stream_destroy(stream), nullptr);
    EXPECT_OK(twill_comm_destroy(comm), nullptr);
    if (killer.joinable())
        _exit(1);
}

TEST(Death, KilledInsideACallIsNamedByAllOthersInTime)
{
    for (const bool on_stream : {false, true}) {
        for (const double phase_s : {0.0, 100e-6, 400e-6}) {
            const std::vector<world::Exit> exits = world::run(
                4, [&](const world::Rank &rank) { call_until_death(rank, on_stream, phase_s); });
            for (int rank = 0; rank < 4; rank++) {
                EXPECT_EQ(exits[(size_t)rank].signal, rank == 2 ? SIGKILL : 0);
                EXPECT_TRUE(rank == 2 || !exits[(size_t)rank].failed_expectations)
                    << "rank " << rank << (on_stream ? " on a stream" : "") << ", killed after "
                    << phase_s << " s";
            }
        }
    }
}

TEST(Death, WhileWaitingInAStreamAndInAGroup)
{
    const std::vector<world::Exit> exits = world::run(3, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        rank.meet(0);
        if (rank.rank == 0)
            raise(SIGKILL);
        int x = 1;
        if (rank.rank == 1) {
            twill_stream_t stream;
            ASSERT_OK(twill_stream_create(&stream), nullptr);
            const enum twill_status called =
                twill_recv(&x, 1, TWILL_INT32, 0, comm, stream); /* it may know already */
            if (called == TWILL_OK) {
                EXPECT_EQ(twill_stream_synchronize(stream), TWILL_ERR_PEER);
                EXPECT_NE(world::text(nullptr).find("rank 0"), std::string::npos);
            } else {
                EXPECT_EQ(called, TWILL_ERR_PEER);
            }
            EXPECT_OK(twill_stream_destroy(stream), nullptr);
        } else {
            ASSERT_OK(twill_group_start(), nullptr);
            enum twill_status status = twill_recv(&x, 1, TWILL_INT32, 0, comm, nullptr);
            const enum twill_status end = twill_group_end();
            status = status == TWILL_OK ? end : status;
            EXPECT_EQ(status, TWILL_ERR_PEER);
            EXPECT_NE(world::text(comm).find("rank 0"), std::string::npos) << world::text(comm);
        }
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
    for (int rank = 1; rank < 3; rank++)
        EXPECT_FALSE(exits[(size_t)rank].failed_expectations) << "rank " << rank;
}

/* ---- lateness ---------------------------------------------------------------------------------
 */

std::string slurp(const std::string &path)
{
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

TEST(Late, IsWarnedOfByName)
{
    const std::string path = ::testing::TempDir() + "twill_late." + std::to_string(getpid());
    world::run_all(2,
                   [&](const world::Rank &rank) {
                       const std::string mine = path + "." + std::to_string(rank.rank);
                       setenv("TWILL_LOG_FILE", mine.c_str(), 1);
                       twill_comm_t comm = rank.init();
                       ASSERT_NE(comm, nullptr);
                       /* Rank 1 calls only after rank 0 has complained about it. */
                       while (rank.rank == 1 &&
                              slurp(path + ".0").find("rank 1") == std::string::npos)
                           sched_yield();
                       EXPECT_OK(twill_barrier(comm, nullptr), comm);
                       EXPECT_OK(twill_comm_destroy(comm), nullptr);
                   },
                   {{"TWILL_WARN", "100ms"}});
    const std::string text = slurp(path + ".0");
    EXPECT_NE(text.find("late"), std::string::npos) << text;
    EXPECT_NE(text.find("barrier"), std::string::npos) << text;
    remove((path + ".0").c_str());
    remove((path + ".1").c_str());
}

TEST(Late, IsAnErrorAfterTheTimeout)
{
    world::run_all(3,
                   [](const world::Rank &rank) {
                       twill_comm_t comm = rank.init();
                       ASSERT_NE(comm, nullptr);
                       int *failed = &world::shared()->words[0];
                       if (rank.rank == 2)
                           world::await(failed, 2);
                       const double start_s = world::now_s();
                       EXPECT_EQ(twill_barrier(comm, nullptr), TWILL_ERR_TIMEOUT);
                       EXPECT_NE(world::text(comm).find("rank 2"), std::string::npos)
                           << world::text(comm);
                       if (rank.rank != 2) {
                           EXPECT_LT(world::now_s() - start_s, 10);
                           __atomic_fetch_add(failed, 1, __ATOMIC_ACQ_REL);
                       }
                       EXPECT_OK(twill_comm_destroy(comm), nullptr);
                   },
                   {{"TWILL_TIMEOUT", "300ms"}});
}

TEST(Late, ARankThatDestroysInsteadIsNamed)
{
    world::run_all(2, [](const world::Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        if (rank.rank == 1) {
            EXPECT_NE(twill_comm_destroy(comm), TWILL_OK) << "rank 0 is in a call";
            return;
        }
        const enum twill_status status = twill_barrier(comm, nullptr);
        EXPECT_EQ(status, TWILL_ERR_MISMATCH) << twill_status_string(status);
        EXPECT_NE(world::text(comm).find("finalize"), std::string::npos) << world::text(comm);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

/* The process where ranks meet has room for `spare` descriptors more. Those who come fail soon, and
 * whoever has come hears of what there is too little. */
void meets_without_descriptors(int spare)
{
    world::run_all(
        3,
        [spare](const world::Rank &rank) {
            twill_comm_t comm = nullptr;
            const twill_unique_id id = rank.id();
            struct rlimit before;
            ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
            if (rank.rank == 0) {
                const int next = dup(0);
                ASSERT_GE(next, 0);
                close(next);
                const struct rlimit few = {(rlim_t)(next + spare), before.rlim_max};
                ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
            }
            rank.meet(0);
            if (rank.rank != 0) {
                EXPECT_LT(twill_comm_init(&comm, 3, &id, rank.rank, nullptr), 0);
                EXPECT_EQ(comm, nullptr);
                if (world::text(nullptr).find("cannot hear a rank: a connection cannot be "
                                              "accepted: Too many open files") != std::string::npos)
                    world::set(&world::shared()->words[rank.rank], 1);
            }
            rank.meet(1);
            EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
            /* those who were too many may be heard once another has gone */
            EXPECT_GE(world::get(&world::shared()->words[1]) +
                          world::get(&world::shared()->words[2]),
                      spare);
        },
        {}, 20);
}

TEST(Faults, AMeetingPointWithoutDescriptorsFailsAtOnce)
{
    for (const int spare : {0, 1})
        meets_without_descriptors(spare);
}

} // namespace
