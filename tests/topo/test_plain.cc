/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a plain host holds. Never knows: what it is for. */
#include <gtest/gtest.h>

extern "C" {
#include "topo/plain.h"
}

namespace
{

TEST(Plain, HasItsCpusInOrderBehindOneCache)
{
    const uint32_t cpus[] = {4, 0, 9};
    struct tw_topo_graph *graph = nullptr;
    ASSERT_EQ(tw_topo_plain(&graph, cpus, 3), TWILL_OK);
    const struct tw_topo_machine *machine = &graph->machines[0];
    ASSERT_EQ(tw_topo_node_count(machine, TW_NODE_PU), 3u);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t pu = tw_topo_node_nth(machine, TW_NODE_PU, i);
        EXPECT_EQ(machine->nodes[pu].os_index, cpus[i]);
        EXPECT_EQ(tw_topo_near_of(machine, pu, tw_topo_node_nth(machine, TW_NODE_PU, (i + 1) % 3)),
                  TW_TOPO_NEAR_L3);
    }
    tw_topo_graph_free(graph);
}

TEST(Plain, WithoutNumbersItIsTheSameEverywhere)
{
    struct tw_topo_graph *a = nullptr, *b = nullptr;
    ASSERT_EQ(tw_topo_plain(&a, nullptr, 5), TWILL_OK);
    ASSERT_EQ(tw_topo_plain(&b, nullptr, 5), TWILL_OK);
    EXPECT_TRUE(tw_topo_graph_equal(a, b));
    EXPECT_EQ(a->machines[0].l3_bytes, 0u) << "of this host";
    struct tw_topo_place places[6];
    ASSERT_EQ(tw_topo_place_ranks(a, TW_NODE_PU, TW_TOPO_PACKED, 6, 6, places), TWILL_OK);
    EXPECT_EQ(places[5].node, places[0].node);
    EXPECT_NE(places[4].node, places[0].node);
    tw_topo_graph_free(a);
    tw_topo_graph_free(b);
}

} // namespace
