/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what TWILL_STAGING promises: a bound on all that a process shares with its peers, whatever
 * communicators it holds and however they are used.
 * Never knows: how staging is cut. */
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include <sys/mman.h>

#include "../api/world.h"

extern "C" {
#include "comm/comm.h"
}

namespace
{

/* Processes that read their parameters anew, whatever the test's process has done before. */
void run_all(int size, const world::Body &body, const world::Env &env = {})
{
    world::run_all(
        size,
        [&](const world::Rank &rank) {
            tw_params_reset();
            body(rank);
        },
        env);
}

void run_alone(const std::function<void()> &body, const world::Env &env)
{
    run_all(
        1, [&](const world::Rank &) { body(); }, env);
}

const int COMMS = 64;
const uint64_t STAGING = 4u << 20;

/* Both nets of a process take from one staging. */
uint64_t staging_used(const struct tw_nets *nets)
{
    uint64_t most = 0;
    for (const struct tw_net *net : {nets->self, nets->shm}) {
        uint64_t used = 0, limit = 0;
        if (!net)
            continue;
        tw_net_staging(net, &used, &limit);
        EXPECT_LE(limit, STAGING);
        EXPECT_LE(used, limit);
        most = used > most ? used : most;
    }
    return most;
}

/* ---- in one process ---------------------------------------------------------------------------
 */

void make_all(twill_comm_t comms[COMMS][2])
{
    for (int i = 0; i < COMMS; i++)
        ASSERT_OK(twill_comm_init_all(comms[i], 2, nullptr, nullptr), nullptr);
    EXPECT_LE(staging_used(&comms[0][0]->proc->nets), STAGING);
}

void destroy_all(twill_comm_t comms[COMMS][2])
{
    for (int i = 0; i < COMMS; i++)
        for (int rank = 0; rank < 2; rank++)
            EXPECT_OK(twill_comm_destroy(comms[i][rank]), nullptr);
}

const world::Env SMALL_STAGING = {{"TWILL_STAGING", "4M"}};

/* Each thread holds one rank of every communicator and they go through them in opposite orders,
 * with far more data than the links hold. */
TEST(Staging, ManyCommunicatorsCrosswiseInGroups)
{
    run_alone(
        [] {
            static twill_comm_t comms[COMMS][2];
            make_all(comms);
            const size_t count = 20000;
            world::threads(2, [&](int rank) {
                for (int round = 0; round < 3; round++) {
                    std::vector<std::vector<int>> x(COMMS, std::vector<int>(count, rank + 1));
                    ASSERT_OK(twill_group_start(), nullptr);
                    for (int i = 0; i < COMMS; i++) {
                        const int at = rank ? COMMS - 1 - i : i;
                        int *data = x[(size_t)at].data();
                        ASSERT_OK(twill_all_reduce(data, data, count, TWILL_INT32, TWILL_SUM,
                                                   comms[at][rank], nullptr),
                                  comms[at][rank]);
                    }
                    ASSERT_OK(twill_group_end(), nullptr);
                    for (const auto &data : x)
                        ASSERT_EQ(data, std::vector<int>(count, 3));
                }
            });
            EXPECT_LE(staging_used(&comms[0][0]->proc->nets), STAGING);
            destroy_all(comms);
        },
        SMALL_STAGING);
}

TEST(Staging, ManyCommunicatorsCrosswiseOnStreams)
{
    run_alone(
        [] {
            static twill_comm_t comms[COMMS][2];
            make_all(comms);
            const size_t count = 20000;
            world::threads(2, [&](int rank) {
                std::vector<twill_stream_t> streams(COMMS);
                std::vector<std::vector<int>> x(COMMS, std::vector<int>(count, rank + 1));
                for (int i = 0; i < COMMS; i++) {
                    const auto at = (size_t)(rank ? COMMS - 1 - i : i);
                    ASSERT_OK(twill_stream_create(&streams[at]), nullptr);
                    ASSERT_OK(twill_all_reduce(x[at].data(), x[at].data(), count, TWILL_INT32,
                                               TWILL_SUM, comms[at][rank], streams[at]),
                              comms[at][rank]);
                }
                for (int i = 0; i < COMMS; i++) {
                    ASSERT_OK(twill_stream_destroy(streams[(size_t)i]), nullptr);
                    ASSERT_EQ(x[(size_t)i], std::vector<int>(count, 3));
                }
            });
            destroy_all(comms);
        },
        SMALL_STAGING);
}

/* What was taken comes back: communicators may come and go for ever. */
TEST(Staging, ComesBack)
{
    run_alone(
        [] {
            twill_comm_t keep;
            ASSERT_OK(twill_comm_init_all(&keep, 1, nullptr, nullptr), nullptr);
            const uint64_t before = staging_used(&keep->proc->nets);
            for (int round = 0; round < 20; round++) {
                twill_comm_t comms[4];
                ASSERT_OK(twill_comm_init_all(comms, 4, nullptr, nullptr), nullptr);
                for (twill_comm_t comm : comms)
                    EXPECT_OK(twill_comm_destroy(comm), nullptr);
            }
            EXPECT_EQ(staging_used(&keep->proc->nets), before);
            EXPECT_OK(twill_comm_destroy(keep), nullptr);
        },
        SMALL_STAGING);
}

TEST(Staging, TooLittleIsAnErrorThatSaysSo)
{
    run_alone(
        [] {
            std::vector<twill_comm_t> comms(16);
            EXPECT_EQ(twill_comm_init_all(comms.data(), 16, nullptr, nullptr), TWILL_ERR_NOMEM);
            EXPECT_NE(world::text(nullptr).find("TWILL_STAGING"), std::string::npos)
                << world::text(nullptr);
            twill_comm_t one;
            EXPECT_OK(twill_comm_init_all(&one, 1, nullptr, nullptr), nullptr);
            EXPECT_OK(twill_comm_destroy(one), nullptr);
        },
        {{"TWILL_STAGING", "64K"}});
}

/* ---- between processes ------------------------------------------------------------------------
 */

/* Ids that rank 0's process makes and all others use, in order. */
struct Ids {
    twill_unique_id id[COMMS];
    int made[COMMS]; /* atomic */
};

Ids *shared_ids()
{
    static void *const at =
        mmap(nullptr, sizeof(Ids), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<Ids *>(at);
}

void forget_ids() { memset(static_cast<void *>(shared_ids()), 0, sizeof(Ids)); }

const twill_unique_id *id_of(int process, int i)
{
    Ids *ids = shared_ids();
    if (process == 0) {
        EXPECT_OK(twill_get_unique_id(&ids->id[i]), nullptr);
        world::set(&ids->made[i], 1);
    }
    world::await(&ids->made[i], 1);
    return &ids->id[i];
}

/* Bytes of memory that this process shares with others, by the kernel's account: each segment once.
 */
uint64_t shared_bytes()
{
    std::ifstream maps("/proc/self/maps");
    std::set<std::string> seen;
    uint64_t total = 0;
    for (std::string line; std::getline(maps, line);) {
        uint64_t from = 0, to = 0, offset = 0, inode = 0;
        char access[8] = "", device[16] = "";
        if (sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %15s %" SCNu64, &from,
                   &to, access, &offset, device, &inode) != 6)
            continue;
        const std::string part = std::to_string(inode) + " " + std::to_string(offset);
        if (access[3] == 's' && seen.insert(part).second)
            total += to - from;
    }
    return total;
}

/* Two processes with two threads each, all of which are ranks of 64 communicators. */
struct Crossing {
    twill_comm_t comms[COMMS][2];
    int process;

    int rank(int thread) const { return 2 * process + thread; }
    /* The i-th communicator in the order of a rank. */
    static int at(int rank, int i)
    {
        switch (rank) {
        case 0:
            return i;
        case 1:
            return COMMS - 1 - i;
        case 2:
            return i * 27 % COMMS;
        default:
            return (i + COMMS / 2) % COMMS;
        }
    }
    void make()
    {
        for (int i = 0; i < COMMS; i++) {
            const twill_unique_id *id = id_of(process, i);
            ASSERT_OK(twill_group_start(), nullptr);
            for (int t = 0; t < 2; t++)
                ASSERT_OK(twill_comm_init(&comms[i][t], 4, id, rank(t), nullptr), nullptr);
            ASSERT_OK(twill_group_end(), nullptr) << "communicator " << i;
        }
    }
    void destroy()
    {
        for (auto &pair : comms)
            for (twill_comm_t comm : pair)
                EXPECT_OK(twill_comm_destroy(comm), nullptr);
    }
};

/* More than any link of them holds. */
#ifdef __SANITIZE_THREAD__
const size_t COUNT = 5000; /* it is slow */
#else
const size_t COUNT = 20000;
#endif
using Data = std::vector<std::vector<int>>;

void reduce_all(Crossing &crossing, int t, Data &x, twill_stream_t stream)
{
    const int rank = crossing.rank(t);
    ASSERT_OK(twill_group_start(), nullptr);
    for (int i = 0; i < COMMS; i++) {
        const int at = Crossing::at(rank, i);
        int *data = x[(size_t)at].data();
        ASSERT_OK(twill_all_reduce(data, data, COUNT, TWILL_INT32, TWILL_SUM, crossing.comms[at][t],
                                   stream),
                  crossing.comms[at][t]);
    }
    ASSERT_OK(twill_group_end(), nullptr);
}

/* Each rank in an order of its own, first in groups, then with a stream for each communicator. */
void cross(Crossing &crossing, int t)
{
    const int rank = crossing.rank(t);
    Data x(COMMS, std::vector<int>(COUNT, rank + 1));
    reduce_all(crossing, t, x, nullptr);
    for (const auto &data : x)
        ASSERT_EQ(data, std::vector<int>(COUNT, 10));
    std::vector<twill_stream_t> streams(COMMS);
    for (int i = 0; i < COMMS; i++) {
        const auto at = (size_t)Crossing::at(rank, i);
        twill_comm_t comm = crossing.comms[at][t];
        ASSERT_OK(twill_stream_create(&streams[at]), nullptr);
        ASSERT_OK(twill_all_reduce(x[at].data(), x[at].data(), COUNT, TWILL_INT32, TWILL_MAX, comm,
                                   streams[at]),
                  comm);
    }
    for (size_t i = 0; i < COMMS; i++) {
        ASSERT_OK(twill_stream_destroy(streams[i]), nullptr);
        ASSERT_EQ(x[i], std::vector<int>(COUNT, 10));
    }
}

void crosswise(const char *algo)
{
    forget_ids();
    run_all(2,
            [](const world::Rank &rank) {
                static Crossing crossing;
                crossing.process = rank.rank;
                const uint64_t before = shared_bytes();
                crossing.make();
                ASSERT_FALSE(::testing::Test::HasFailure());
                world::threads(2, [&](int t) { cross(crossing, t); });
                /* its own segment and its peer's */
                EXPECT_LE(shared_bytes() - before, 2 * STAGING);
                EXPECT_GT(shared_bytes() - before, 0u);
                EXPECT_LE(staging_used(&crossing.comms[0][0]->proc->nets), STAGING);
                crossing.destroy();
            },
            {{"TWILL_STAGING", "4M"}, {"TWILL_ALGO", algo}});
}

TEST(Staging, ManyCommunicatorsCrosswiseBetweenProcesses) { crosswise(""); }
/* These write into their peers' scratch, which is staging too. */
TEST(Staging, ManyCommunicatorsCrosswiseByPut)
{
    crosswise("direct_put");
    crosswise("two_shot_put");
}

/* A send that fills its links holds nobody up on other communicators. */
TEST(Staging, AStuckCommunicatorHoldsUpNoOther)
{
    forget_ids();
    run_all(
        2,
        [](const world::Rank &rank) {
            static Crossing crossing;
            crossing.process = rank.rank;
            crossing.make();
            ASSERT_FALSE(::testing::Test::HasFailure());
            int *exchanged = &world::shared()->words[0];
            world::threads(2, [&](int t) {
                std::vector<int> in(COUNT, rank.rank), out(COUNT);
                const int peer = 2 * (1 - rank.rank) + t;
                if (t == 0) { /* process 1 takes it only when all else is done */
                    twill_comm_t stuck = crossing.comms[0][0];
                    if (rank.rank == 1)
                        world::await(exchanged, 2);
                    ASSERT_OK(
                        rank.rank == 0
                            ? twill_send(in.data(), COUNT, TWILL_INT32, peer, stuck, nullptr)
                            : twill_recv(out.data(), COUNT, TWILL_INT32, peer, stuck, nullptr),
                        stuck);
                    return;
                }
                for (int i = 1; i < COMMS; i++) {
                    twill_comm_t comm = crossing.comms[i][1];
                    ASSERT_OK(twill_group_start(), nullptr);
                    ASSERT_OK(twill_send(in.data(), COUNT, TWILL_INT32, peer, comm, nullptr), comm);
                    ASSERT_OK(twill_recv(out.data(), COUNT, TWILL_INT32, peer, comm, nullptr),
                              comm);
                    ASSERT_OK(twill_group_end(), nullptr);
                    ASSERT_EQ(out, std::vector<int>(COUNT, 1 - rank.rank));
                }
                __atomic_fetch_add(exchanged, 1, __ATOMIC_ACQ_REL);
            });
            crossing.destroy();
        },
        SMALL_STAGING);
}

/* ---- too little -------------------------------------------------------------------------------
 */

/* Both ranks are told at the same communicator, those before it work, and what a destroyed one
 * gives back is enough for another. */
void fill_up(const world::Rank &rank, const std::string &named)
{
    const size_t count = 1000; /* more than the least links hold */
    std::vector<twill_comm_t> comms;
    enum twill_status status = TWILL_OK;
    for (int i = 0; i < COMMS && status == TWILL_OK; i++) {
        twill_comm_t comm = nullptr;
        status = twill_comm_init(&comm, 2, id_of(rank.rank, i), rank.rank, nullptr);
        if (status == TWILL_OK)
            comms.push_back(comm);
    }
    EXPECT_EQ(status, TWILL_ERR_NOMEM) << "after " << comms.size() << " communicators";
    for (const std::string &part : {std::string("TWILL_STAGING"), named})
        EXPECT_NE(world::text(nullptr).find(part), std::string::npos) << world::text(nullptr);
    ASSERT_GE(comms.size(), 2u);
    world::shared()->words[10 + rank.rank] = (int)comms.size();
    for (twill_comm_t comm : comms) {
        std::vector<int> x(count, 1);
        ASSERT_OK(
            twill_all_reduce(x.data(), x.data(), count, TWILL_INT32, TWILL_SUM, comm, nullptr),
            comm);
        ASSERT_EQ(x, std::vector<int>(count, 2));
    }
    EXPECT_OK(twill_comm_destroy(comms.back()), nullptr);
    comms.pop_back();
    rank.meet(1); /* both have destroyed it: what it held is free */
    twill_comm_t again = nullptr;
    ASSERT_OK(twill_comm_init(&again, 2, id_of(rank.rank, COMMS - 1), rank.rank, nullptr), nullptr);
    comms.push_back(again);
    for (twill_comm_t comm : comms)
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
}

TEST(Staging, TooLittleIsAnErrorOnAllRanks)
{
    forget_ids();
    run_all(2, [](const world::Rank &rank) { fill_up(rank, "room"); }, {{"TWILL_STAGING", "64K"}});
    EXPECT_EQ(world::shared()->words[10], world::shared()->words[11]);
    for (const int poor : {0, 1}) { /* one process has far less than the other */
        forget_ids();
        run_all(2, [poor](const world::Rank &rank) {
            setenv("TWILL_STAGING", rank.rank == poor ? "64K" : "4M", 1);
            fill_up(rank, "rank " + std::to_string(poor));
        });
        EXPECT_EQ(world::shared()->words[10], world::shared()->words[11]);
    }
}

} // namespace
