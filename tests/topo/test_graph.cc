/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what makes a graph whole, and how it is numbered. Never knows: this host. */
#include "graphs.hh"

#include <string.h>

#include <functional>

namespace
{

using Change = std::function<void(struct tw_topo_graph *)>;

/* The link beside the tree: of the NIC to the world outside. */
struct tw_topo_link *port(struct tw_topo_graph *graph)
{
    struct tw_topo_machine *m = &graph->machines[0];
    uint32_t i = 0;
    while (m->nodes[m->links[i].to].kind != TW_NODE_NET)
        i++;
    return &m->links[i];
}

TEST(Graph, NamesEndWithNull)
{
    EXPECT_STREQ(tw_topo_kind_name(TW_NODE_NVSWITCH), "nvswitch");
    EXPECT_EQ(tw_topo_kind_name(TW_NODE_KIND_COUNT), nullptr);
    EXPECT_STREQ(tw_topo_origin_name(TW_TOPO_MEASURED), "measured");
    EXPECT_EQ(tw_topo_origin_name(TW_TOPO_ORIGIN_COUNT), nullptr);
    EXPECT_STREQ(tw_topo_near_name(TW_TOPO_NEAR_HOST), "host");
    EXPECT_EQ(tw_topo_near_name(TW_TOPO_NEAR_COUNT), nullptr);
    for (unsigned i = 0; i < TW_NODE_KIND_COUNT; i++)
        EXPECT_NE(tw_topo_kind_name(i), nullptr) << i;
}

/* Each makes a whole graph of pcie-4gpu:hosts=2,leaf=1 not whole, and the sentence says how. */
TEST(Graph, SealRefusesWhatIsNotWhole)
{
    const std::vector<std::pair<const char *, Change>> faults = {
        {"no machine", [](auto *g) { g->host_machine[1] = 7; }},
        {"0 hosts", [](auto *g) { g->nhosts = 0; }},
        {"control characters", [](auto *g) { memset(g->name, 'x', sizeof(g->name)); }},
        {"control characters", [](auto *g) { g->machines[0].name[0] = '\n'; }},
        {"control characters", [](auto *g) { g->machines[0].cpu_model[0] = '\t'; }},
        {"control characters", [](auto *g) { g->machines[0].notes[0][0] = 1; }},
        {"control characters", [](auto *g) { g->machines[0].nodes[3].name[0] = 0x7f; }},
        {"without end", [](auto *g) { memset(g->machines[0].nodes[3].model, 'y', 96); }},
        {"no such origin", [](auto *g) { g->machines[0].origin = TW_TOPO_ORIGIN_COUNT; }},
        {"no such kind", [](auto *g) { g->machines[0].nodes[5].kind = TW_NODE_KIND_COUNT; }},
        {"must be the host", [](auto *g) { g->machines[0].nodes[0].kind = TW_NODE_PACKAGE; }},
        {"must be the host", [](auto *g) { g->machines[0].nodes[0].parent = 0; }},
        {"stand before it", [](auto *g) { g->machines[0].nodes[2].parent = 2; }},
        {"stand before it", [](auto *g) { g->machines[0].nodes[2].parent = TW_TOPO_NONE; }},
        {"a pu cannot lie in a host", [](auto *g) { g->machines[0].nodes[6].parent = 0; }},
        {"a level from 1 to 5", [](auto *g) { g->machines[0].nodes[4].level = 0; }},
        {"a level from 1 to 5", [](auto *g) { g->machines[0].nodes[4].level = 6; }},
        {"a level from 1 to 5", [](auto *g) { g->machines[0].nodes[5].level = 3; }},
        {"no link to its parent", [](auto *g) { g->machines[0].nodes[5].uplink = TW_TOPO_NONE; }},
        {"its uplink is not", [](auto *g) { g->machines[0].nodes[5].uplink = 0; }},
        {"a rate beyond", [](auto *g) { g->machines[0].nodes[5].memory_bytes_per_s = ~0ull; }},
        {"does not join", [](auto *g) { port(g)->to = 9999; }},
        {"does not join", [](auto *g) { port(g)->to = port(g)->from; }},
        {"no such origin", [](auto *g) { g->machines[0].links[0].origin = 99; }},
        {"more than a second",
         [](auto *g) { g->machines[0].links[1].latency_ps[1] = 2000000000000; }},
        {"no such resource", [](auto *g) { g->machines[0].links[1].resource[0] = 1u << 30; }},
        {"a rate of 0", [](auto *g) { g->machines[0].links[1].bytes_per_s[1] = 0; }},
        {"above that of its resource",
         [](auto *g) { g->machines[0].links[1].bytes_per_s[0] *= 2; }},
        {"no node or no rate", [](auto *g) { g->machines[0].resources[0].bytes_per_s = 0; }},
        {"no node or no rate", [](auto *g) { g->machines[0].resources[0].node = 1u << 20; }},
        {"5 tiers", [](auto *g) { g->fabric.ntiers = 5; }},
        {"joins nothing", [](auto *g) { g->fabric.tier[0].down = 0; }},
        {"join 1 hosts, not 2", [](auto *g) { g->fabric.tier[1].down = 1; }},
        {"join 1 hosts, not 2", [](auto *g) { g->fabric.ntiers = 0; }},
        {"a rate of 0", [](auto *g) { g->fabric.tier[0].up_bytes_per_s = 0; }},
        {"more than a second", [](auto *g) { g->fabric.tier[1].latency_ps = ~0ull; }},
        {"rails need a second tier",
         [](auto *g) {
             g->fabric.rails = true;
             g->fabric.ntiers = 1;
             g->fabric.tier[0].down = 2;
         }},
    };
    for (const auto &[sentence, change] : faults) {
        Graph graph("pcie-4gpu:hosts=2,leaf=1,rails=0");
        ASSERT_EQ(tw_topo_graph_seal(graph.g), TWILL_OK);
        change(graph.g);
        EXPECT_EQ(tw_topo_graph_seal(graph.g), TWILL_ERR_INVALID) << sentence;
        EXPECT_NE(std::string(tw_fail_text()).find(sentence), std::string::npos)
            << sentence << ": " << tw_fail_text();
    }
}

TEST(Graph, SealRefusesAFabricWithoutAWayOut)
{
    Graph graph("container-1c");
    graph.g->fabric.ntiers = 1;
    graph.g->fabric.tier[0].down = 1;
    EXPECT_EQ(tw_topo_graph_seal(graph.g), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "no net node"), nullptr);
}

TEST(Graph, SealRefusesLinksBesideTheTreeBetweenOtherParts)
{
    Graph graph("pcie-4gpu");
    struct tw_topo_link link = graph.machine().links[0];
    link.from = graph.nth(TW_NODE_CORE, 0);
    link.to = graph.nth(TW_NODE_CORE, 1);
    ASSERT_NE(tw_topo_link_add(&graph.machine(), &link), TW_TOPO_NONE);
    EXPECT_EQ(tw_topo_graph_seal(graph.g), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "from a core to a core"), nullptr) << tw_fail_text();
}

TEST(Graph, NumbersResourcesThroughHostsAndFabric)
{
    Graph graph("pcie-4gpu:hosts=6,leaf=2,oversub=4,rails=0");
    uint32_t each = graph.machine().nresources;
    for (uint32_t h = 0; h <= 6; h++)
        EXPECT_EQ(graph.g->host_resource[h], h * each);
    EXPECT_EQ(graph.g->nresources, 6 * each + 2 * 3); /* 3 leaves, up and down */
    /* 2 hosts of one port of 12.5 GB/s, a fourth of that upwards */
    EXPECT_EQ(tw_topo_resource_rate(graph.g, 6 * each), 6250000000ull);
    char text[256];
    tw_topo_resource_text(graph.g, 6 * each + 3, text, sizeof(text));
    EXPECT_STREQ(text, "tier 0 switch 1 down");
    EXPECT_EQ(tw_topo_resource_rate(graph.g, 5 * each + 1),
              graph.machine().resources[1].bytes_per_s);
    uint32_t gpu = graph.nth(TW_NODE_GPU, 2);
    uint32_t own = graph.machine().links[graph.machine().nodes[gpu].uplink].resource[0];
    tw_topo_resource_text(graph.g, 4 * each + own, text, sizeof(text));
    EXPECT_STREQ(text, "host 4: gpu gpu2 > pciswitch switch1");
}

TEST(Graph, EqualSeesEveryValue)
{
    const std::vector<Change> changes = {
        [](auto *g) { g->name[0]++; },
        [](auto *g) { g->fabric.tier[0].down++; },
        [](auto *g) { g->fabric.tier[1].latency_ps++; },
        [](auto *g) { g->fabric.tier[0].up_bytes_per_s++; },
        [](auto *g) { g->machines[0].name[0]++; },
        [](auto *g) { g->machines[0].cpu_model[0]++; },
        [](auto *g) { g->machines[0].origin = TW_TOPO_SYSTEM; },
        [](auto *g) { g->machines[0].l1d_bytes++; },
        [](auto *g) { g->machines[0].l2_bytes++; },
        [](auto *g) { g->machines[0].l3_bytes++; },
        [](auto *g) { g->machines[0].notes[0][0]++; },
        [](auto *g) { g->machines[0].nodes[3].os_index++; },
        [](auto *g) { g->machines[0].nodes[3].memory_bytes++; },
        [](auto *g) { g->machines[0].nodes[3].memory_bytes_per_s++; },
        [](auto *g) { g->machines[0].nodes[3].name[0]++; },
        [](auto *g) { g->machines[0].nodes[3].model[0]++; },
        [](auto *g) { g->machines[0].nodes[4].level++; },
        [](auto *g) { g->machines[0].links[9].latency_ps[0]++; },
        [](auto *g) { g->machines[0].links[9].latency_ps[1]++; },
        [](auto *g) { g->machines[0].links[9].bytes_per_s[0]--; },
        [](auto *g) { g->machines[0].links[9].bytes_per_s[1]--; },
        [](auto *g) { g->machines[0].links[9].origin = TW_TOPO_MEASURED; },
        [](auto *g) { g->machines[0].resources[0].bytes_per_s++; },
        [](auto *g) { g->machines[0].resources[0].node++; },
        [](auto *g) { tw_topo_note_add(&g->machines[0], "one more"); },
        [](auto *g) { tw_topo_resource_add(&g->machines[0], 0, 1); },
        [](auto *g) { g->nhosts--; },
    };
    Graph same("pcie-4gpu:hosts=2,leaf=1");
    uint64_t hash = tw_topo_graph_hash(same.g);
    for (size_t i = 0; i < changes.size(); i++) {
        Graph other("pcie-4gpu:hosts=2,leaf=1");
        ASSERT_TRUE(tw_topo_graph_equal(same.g, other.g));
        ASSERT_EQ(tw_topo_graph_hash(other.g), hash);
        changes[i](other.g);
        EXPECT_FALSE(tw_topo_graph_equal(same.g, other.g)) << i;
        EXPECT_NE(tw_topo_graph_hash(other.g), hash) << i;
    }
}

TEST(Graph, NodesHaveWordsForPeople)
{
    Graph graph("nvswitch-8gpu");
    char text[64];
    tw_topo_node_text(&graph.machine(), graph.nth(TW_NODE_GPU, 3), text, sizeof(text));
    EXPECT_STREQ(text, "gpu gpu3");
    tw_topo_node_text(&graph.machine(), graph.nth(TW_NODE_PU, 1), text, sizeof(text));
    EXPECT_STREQ(text, "pu 96");
    tw_topo_node_text(&graph.machine(), graph.nth(TW_NODE_NET, 0), text, sizeof(text));
    EXPECT_STREQ(text, "net");
    tw_topo_node_text(&graph.machine(), graph.nth(TW_NODE_PCIROOT, 0), text, 5);
    EXPECT_STREQ(text, "pcir"); /* cut to fit */
}

} // namespace
