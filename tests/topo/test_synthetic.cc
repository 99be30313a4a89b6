/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which machines are described, and their shapes. Never knows: this host. */
#include "graphs.hh"

#include <string.h>

namespace
{

struct Shape {
    const char *name;
    unsigned packages, numas, caches, cores, pus, switches, nics, gpus, nvswitches;
};
const Shape kShapes[] = {
    {"amd-2s-nps4", 2, 8, 16, 128, 256, 0, 2, 0, 0}, {"intel-2s", 2, 2, 2, 96, 192, 0, 2, 0, 0},
    {"nvswitch-8gpu", 2, 2, 2, 96, 192, 4, 8, 8, 1}, {"pcie-4gpu", 1, 1, 4, 32, 64, 2, 1, 4, 0},
    {"nvlink-4gpu", 1, 1, 4, 32, 64, 0, 1, 4, 0},    {"nvpair-8gpu", 2, 2, 2, 96, 192, 4, 2, 8, 0},
    {"arm-64c", 1, 1, 1, 64, 64, 0, 1, 0, 0},        {"container-1c", 1, 1, 0, 1, 1, 0, 0, 0, 0},
};

TEST(Synthetic, MachinesHaveTheShapesThatTheirNamesSay)
{
    unsigned listed = 0;
    for (const Shape &shape : kShapes) {
        Graph graph(shape.name);
        ASSERT_NE(graph.g, nullptr);
        const struct tw_topo_machine *m = &graph.machine();
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_PACKAGE), shape.packages) << shape.name;
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_NUMA), shape.numas) << shape.name;
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_MEMORY), shape.numas) << shape.name;
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_CACHE), shape.caches) << shape.name;
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_CORE), shape.cores) << shape.name;
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_PU), shape.pus) << shape.name;
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_PCISWITCH), shape.switches) << shape.name;
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_NIC), shape.nics) << shape.name;
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_GPU), shape.gpus) << shape.name;
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_NVSWITCH), shape.nvswitches) << shape.name;
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_NET), shape.nics ? 1u : 0u) << shape.name;
        const char *text = nullptr;
        EXPECT_STREQ(tw_topo_synthetic_name(listed++, &text), shape.name);
        EXPECT_NE(text, nullptr);
    }
    EXPECT_EQ(tw_topo_synthetic_name(listed, nullptr), nullptr);
}

/* Nobody may take a described machine for one that exists. */
TEST(Synthetic, SaysSoEverywhere)
{
    for (const Shape &shape : kShapes) {
        Graph graph(shape.name);
        EXPECT_EQ(std::string(graph.g->name), std::string("synthetic-") + shape.name);
        EXPECT_EQ(std::string(graph.machine().name), graph.g->name);
        EXPECT_EQ(graph.machine().origin, TW_TOPO_SYNTHETIC);
        EXPECT_EQ(strncmp(graph.machine().cpu_model, "synthetic", 9), 0);
        EXPECT_NE(strstr(graph.machine().notes[0], "synthetic"), nullptr);
        for (uint32_t i = 0; i < graph.machine().nlinks; i++)
            EXPECT_EQ(graph.machine().links[i].origin, TW_TOPO_SYNTHETIC);
    }
    Graph prefixed("synthetic-arm-64c");
    EXPECT_STREQ(prefixed.g->name, "synthetic-arm-64c");
}

TEST(Synthetic, ClustersTakeHostsLeavesAndOversubscription)
{
    Graph one("arm-64c:hosts=5,leaf=8,oversub=3");
    EXPECT_EQ(one.g->nhosts, 5u);
    EXPECT_EQ(one.g->fabric.ntiers, 1u);
    EXPECT_FALSE(one.g->fabric.rails);
    EXPECT_STREQ(one.g->name, "synthetic-arm-64c:hosts=5,leaf=8,oversub=3");

    Graph two("arm-64c:hosts=1000,leaf=16,oversub=4");
    EXPECT_EQ(two.g->nmachines, 1u);
    EXPECT_EQ(two.g->fabric.ntiers, 2u);
    EXPECT_EQ(two.g->fabric.tier[1].down, 63u);
    EXPECT_EQ(two.g->fabric.tier[0].up_bytes_per_s, 16 * 25000000000ull / 4);

    /* a NIC for each GPU: rails, each with a switch for a NIC of each host */
    Graph rails("nvswitch-8gpu:hosts=64,leaf=16,oversub=2");
    EXPECT_TRUE(rails.g->fabric.rails);
    EXPECT_EQ(rails.g->fabric.tier[0].up_bytes_per_s, 16 * 50000000000ull / 2);
    EXPECT_EQ(rails.g->nresources, 64 * rails.machine().nresources + 2 * 4 * 8);
    Graph flat("nvswitch-8gpu:hosts=64,leaf=16,oversub=2,rails=0");
    EXPECT_EQ(flat.g->fabric.tier[0].up_bytes_per_s, 16 * 8 * 50000000000ull / 2);
    /* rails need the second tier even where one leaf joins all hosts */
    Graph small("nvswitch-8gpu:hosts=4");
    EXPECT_EQ(small.g->fabric.ntiers, 2u);
    EXPECT_EQ(small.g->fabric.tier[0].up_bytes_per_s, 4 * 50000000000ull);
}

TEST(Synthetic, RefusesWhatItDoesNotKnow)
{
    const struct {
        const char *name, *sentence;
    } faults[] = {
        {"vax", "no described machine 'vax'; there are amd-2s-nps4, intel-2s, nvswitch-8gpu, "
                "pcie-4gpu, nvlink-4gpu, nvpair-8gpu, arm-64c, container-1c"},
        {"", "no described machine ''"},
        {"arm-64c:", "'' is no option=number"},
        {"arm-64c:hosts", "'hosts' is no option=number"},
        {"arm-64c:hosts=", "hosts=: not 1 to 65536"},
        {"arm-64c:hosts=0", "hosts=0: not 1 to 65536"},
        {"arm-64c:hosts=65537", "hosts=65537: not 1 to 65536"},
        {"arm-64c:hosts=2,", "'' is no option=number"},
        {"arm-64c:hosts=-1", "not 1 to 65536"},
        {"arm-64c:hosts=2x", "not 1 to 65536"},
        {"arm-64c:leaf=0", "leaf=0"},
        {"arm-64c:oversub=65", "oversub=65: not 1 to 64"},
        {"arm-64c:rails=2", "rails=2: not 0 to 1"},
        {"arm-64c:colour=1", "no option 'colour'; there are hosts, leaf, oversub, rails"},
        {"container-1c:hosts=2", "has no NIC"},
        {"arm-64c:hosts=2,hosts=2,hosts=2,hosts=2,hosts=2,hosts=2,hosts=2,hosts=2,hosts=2,hosts=2,"
         "hosts=2",
         "a name of more than"},
    };
    for (const auto &fault : faults) {
        struct tw_topo_graph *graph = nullptr;
        EXPECT_EQ(tw_topo_synthetic(&graph, fault.name), TWILL_ERR_INVALID) << fault.name;
        EXPECT_EQ(graph, nullptr);
        EXPECT_NE(strstr(tw_fail_text(), fault.sentence), nullptr)
            << fault.name << ": " << tw_fail_text();
    }
}

} // namespace
