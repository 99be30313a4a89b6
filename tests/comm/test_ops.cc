/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what operations promise beyond single calls: the bound on staging, one thread at a time.
 * Never knows: how calls run. */
#include "../api/world.h"

#include <sched.h>

extern "C" {
#include "comm/comm.h"
}

namespace
{

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
    world::run_alone(
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
    world::run_alone(
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
    world::run_alone(
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
    world::run_alone(
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

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* Binds the calling thread and those that it starts. */
void bind_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

/* Ranks that are all bound to one CPU wait for each other with their hands off it. */
TEST(Patience, FollowsTheCpusThatRanksAreBoundTo)
{
    const int cpu = sched_getcpu();
    world::run_all(2, [cpu](const world::Rank &rank) {
        bind_to(cpu);
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        EXPECT_EQ(comm->patience.spins, 0u);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
    world::run_all(1, [cpu](const world::Rank &rank) {
        bind_to(cpu);
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        EXPECT_GT(comm->patience.spins, 0u);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

TEST(Claim, OneThreadAtATime)
{
    struct twill_comm comm = {};
    EXPECT_EQ(tw_ops_claim(&comm, "test"), TWILL_OK);
    world::threads(1, [&](int) {
        EXPECT_EQ(tw_ops_claim(&comm, "test"), TWILL_ERR_BUSY);
        EXPECT_NE(std::string(tw_fail_text()).find("test: "), std::string::npos);
    });
    tw_ops_unclaim(&comm);
    world::threads(1, [&](int) {
        EXPECT_EQ(tw_ops_claim(&comm, "test"), TWILL_OK);
        tw_ops_unclaim(&comm);
    });
}

} // namespace
