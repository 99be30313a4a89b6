/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where ranks sit. Never knows: what they do. */
#include "graphs.hh"

#include <string.h>

namespace
{

/* host:number of the CPU, or of the GPU among GPUs */
std::vector<std::string> placed(const struct tw_topo_graph *g, enum tw_topo_kind kind,
                                enum tw_topo_order order, uint32_t per_host, uint32_t ranks)
{
    std::vector<struct tw_topo_place> places(ranks);
    std::vector<std::string> names;
    if (tw_topo_place_ranks(g, kind, order, per_host, ranks, places.data()) != TWILL_OK)
        return {tw_fail_text()};
    for (const struct tw_topo_place &place : places) {
        const struct tw_topo_machine *m = tw_topo_machine_of(g, place.host);
        EXPECT_EQ(m->nodes[place.node].kind, kind);
        std::string name = kind == TW_NODE_PU ? std::to_string(m->nodes[place.node].os_index)
                                              : std::string(m->nodes[place.node].name);
        names.push_back(std::to_string(place.host) + ":" + name);
    }
    return names;
}
using Names = std::vector<std::string>;

TEST(Place, FirstThreadsOfCoresComeFirst)
{
    Graph graph("pcie-4gpu"); /* 32 cores, second threads are CPUs 32-63 */
    Names names = placed(graph.g, TW_NODE_PU, TW_TOPO_PACKED, 0, 64);
    for (uint32_t i = 0; i < 64; i++)
        EXPECT_EQ(names[i], "0:" + std::to_string(i));
}

TEST(Place, PackedFillsAHostThenTheNext)
{
    Graph graph("pcie-4gpu:hosts=3,leaf=4");
    EXPECT_EQ(placed(graph.g, TW_NODE_GPU, TW_TOPO_PACKED, 0, 6),
              (Names{"0:gpu0", "0:gpu1", "0:gpu2", "0:gpu3", "1:gpu0", "1:gpu1"}));
    EXPECT_EQ(placed(graph.g, TW_NODE_GPU, TW_TOPO_PACKED, 2, 6),
              (Names{"0:gpu0", "0:gpu1", "1:gpu0", "1:gpu1", "2:gpu0", "2:gpu1"}));
}

TEST(Place, CyclicTakesHostsInTurn)
{
    Graph graph("pcie-4gpu:hosts=3,leaf=4");
    EXPECT_EQ(placed(graph.g, TW_NODE_GPU, TW_TOPO_CYCLIC, 0, 5),
              (Names{"0:gpu0", "1:gpu0", "2:gpu0", "0:gpu1", "1:gpu1"}));
}

TEST(Place, MoreRanksThanUnitsShareThemInTurn)
{
    Graph graph("container-1c");
    EXPECT_EQ(placed(graph.g, TW_NODE_PU, TW_TOPO_PACKED, 3, 3), (Names{"0:0", "0:0", "0:0"}));
    Graph gpus("pcie-4gpu");
    EXPECT_EQ(placed(gpus.g, TW_NODE_GPU, TW_TOPO_CYCLIC, 6, 6),
              (Names{"0:gpu0", "0:gpu1", "0:gpu2", "0:gpu3", "0:gpu0", "0:gpu1"}));
}

TEST(Place, HostsOfDifferentMachinesHaveTheirOwnRoom)
{
    Graph graph("pcie-4gpu:hosts=2,leaf=4");
    ASSERT_EQ(tw_topo_machine_add(graph.g), 1u);
    ASSERT_TRUE(tw_topo_hosts_add(graph.g, 1, 1));
    struct tw_topo_machine *small = &graph.g->machines[1];
    /* a host with one core, in the smallest form that is whole */
    const struct tw_topo_node nodes[] = {
        {TW_NODE_HOST, 0, TW_TOPO_NONE, 0, TW_TOPO_NONE, 0, 0, "", ""},
        {TW_NODE_CORE, 0, 0, 0, 0, 0, 0, "", ""},
        {TW_NODE_PU, 0, 1, 0, 0, 0, 0, "", ""},
        {TW_NODE_NIC, 0, 0, 0, 0, 0, 0, "nic", ""},
        {TW_NODE_NET, 0, 0, 0, 0, 0, 0, "", ""},
    };
    for (const struct tw_topo_node &node : nodes)
        ASSERT_NE(tw_topo_node_add(small, &node), TW_TOPO_NONE);
    ASSERT_EQ(tw_topo_resource_add(small, 0, 1000), 0u);
    const uint32_t ends[][2] = {{1, 0}, {2, 1}, {3, 0}, {3, 4}};
    for (const auto &end : ends) {
        struct tw_topo_link link = {end[0], end[1], 0, {1, 1}, {1000, 1000}, {0, 0}, 0};
        ASSERT_NE(tw_topo_link_add(small, &link), TW_TOPO_NONE);
    }
    ASSERT_EQ(tw_topo_graph_seal(graph.g), TWILL_OK) << tw_fail_text();
    Names names = placed(graph.g, TW_NODE_PU, TW_TOPO_CYCLIC, 0, 6);
    EXPECT_EQ(names, (Names{"0:0", "1:0", "2:0", "0:1", "1:1", "0:2"}));
    EXPECT_EQ(placed(graph.g, TW_NODE_PU, TW_TOPO_PACKED, 0, 129).back(), "2:0");
    EXPECT_EQ(
        placed(graph.g, TW_NODE_PU, TW_TOPO_PACKED, 0, 130),
        (Names{"topology synthetic-pcie-4gpu:hosts=2,leaf=4 has room for 129 ranks, not 130"}));
    EXPECT_EQ(
        placed(graph.g, TW_NODE_PU, TW_TOPO_CYCLIC, 0, 130),
        (Names{"topology synthetic-pcie-4gpu:hosts=2,leaf=4 has room for 129 ranks, not 130"}));
    EXPECT_EQ(placed(graph.g, TW_NODE_GPU, TW_TOPO_PACKED, 0, 1),
              (Names{"host 2: machine  has no gpu"}));
}

TEST(Place, NearnessIsTheInnermostPartThatHoldsBoth)
{
    Graph graph("amd-2s-nps4");
    const struct {
        uint32_t a, b;
        enum tw_topo_near near;
    } pairs[] = {
        {0, 128, TW_TOPO_NEAR_CORE}, {0, 7, TW_TOPO_NEAR_L3},        {7, 8, TW_TOPO_NEAR_NUMA},
        {0, 15, TW_TOPO_NEAR_NUMA},  {15, 16, TW_TOPO_NEAR_PACKAGE}, {0, 63, TW_TOPO_NEAR_PACKAGE},
        {63, 64, TW_TOPO_NEAR_HOST}, {0, 255, TW_TOPO_NEAR_HOST},
    };
    for (const auto &pair : pairs) {
        EXPECT_EQ(tw_topo_near_of(&graph.machine(), graph.cpu(pair.a), graph.cpu(pair.b)),
                  pair.near)
            << pair.a << " " << pair.b;
        EXPECT_EQ(tw_topo_near_of(&graph.machine(), graph.cpu(pair.b), graph.cpu(pair.a)),
                  pair.near);
    }
    EXPECT_EQ(tw_topo_node_find(&graph.machine(), TW_NODE_PU, 256), TW_TOPO_NONE);
    EXPECT_EQ(tw_topo_node_nth(&graph.machine(), TW_NODE_NUMA, 8), TW_TOPO_NONE);
}

} // namespace
