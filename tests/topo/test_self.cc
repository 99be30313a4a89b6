/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what affinity says of a place. Never knows: this host's shape. */
#include "graphs.hh"

#include <sched.h>

extern "C" {
#include "topo/self.h"
}

namespace
{

TEST(Self, SitsWhereItIsBoundTo)
{
    Graph here;
    ASSERT_EQ(tw_topo_discover(&here.g, TW_TOPO_SCOPE_PROCESS), TWILL_OK) << tw_fail_text();
    struct tw_topo_machine *m = &here.machine();
    std::vector<uint32_t> pus(m->nnodes);
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    uint32_t all = tw_topo_cpus_allowed(m, pus.data());
    EXPECT_EQ(all, (uint32_t)CPU_COUNT(&before));
    EXPECT_EQ(all, tw_topo_node_count(m, TW_NODE_PU));
    uint32_t last = pus[all - 1];
    CPU_ZERO(&one);
    CPU_SET(m->nodes[last].os_index, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(tw_topo_place_self(m), last);
    EXPECT_EQ(tw_topo_cpus_allowed(m, pus.data()), 1u);
    ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
    bool one_core = tw_topo_node_count(m, TW_NODE_CORE) == 1;
    EXPECT_EQ(tw_topo_place_self(m) == TW_TOPO_NONE, !one_core);
}

TEST(Self, HasNoPlaceOnAMachineWithoutItsCpus)
{
    Graph other("amd-2s-nps4");
    std::vector<uint32_t> pus(other.machine().nnodes);
    for (uint32_t i = 0; i < other.machine().nnodes; i++)
        if (other.machine().nodes[i].kind == TW_NODE_PU)
            other.machine().nodes[i].os_index = i % 2 ? TW_TOPO_NONE : 4000000000u;
    EXPECT_EQ(tw_topo_cpus_allowed(&other.machine(), pus.data()), 0u);
    EXPECT_EQ(tw_topo_place_self(&other.machine()), TW_TOPO_NONE);
}

} // namespace
