/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what operations promise beyond single calls: how they wait, one thread at a time.
 * Never knows: how calls run. */
#include "../api/world.h"

#include <sched.h>

extern "C" {
#include "comm/comm.h"
}

namespace
{

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
