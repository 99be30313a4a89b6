/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: measurements as data. Never knows: how they are made. */
#include "graphs.hh"

#include <string.h>

#include <random>

extern "C" {
#include "topo/measured.h"
}

namespace
{

bool same(const struct tw_topo_measured &a, const struct tw_topo_measured &b)
{
    return memcmp(&a, &b, sizeof(a)) == 0; /* 64-bit fields alone: no gaps */
}

struct tw_topo_measured random_measured(std::mt19937 &random)
{
    struct tw_topo_measured m;
    memset(&m, 0, sizeof(m));
    auto some = [&](uint64_t most) { return random() % 3 ? random() % most : 0; };
    for (uint64_t &field : m.line_ps)
        field = some(1000);
    for (int c = 0; c < TW_TOPO_COPY_COUNT; c++) {
        m.copy_bytes_per_s[c] = some(4); /* few values, so that rates are equal often */
        m.copy_bytes[c] = m.copy_bytes_per_s[c] ? 1 + some(4) : 0;
    }
    m.switch_ps = some(1000);
    m.cma_call_ps = some(1000);
    m.cma_bytes_per_s = some(1000);
    return m;
}

struct tw_topo_measured merged(struct tw_topo_measured a, const struct tw_topo_measured &b)
{
    tw_topo_measured_merge(&a, &b);
    return a;
}

TEST(Measured, MergeTakesTheBestOfEach)
{
    struct tw_topo_measured a = {}, b = {};
    a.line_ps[TW_TOPO_NEAR_L3] = 50;
    b.line_ps[TW_TOPO_NEAR_L3] = 40;
    b.line_ps[TW_TOPO_NEAR_HOST] = 200;
    a.copy_bytes_per_s[TW_TOPO_COPY_L2] = 7;
    a.copy_bytes[TW_TOPO_COPY_L2] = 70;
    b.copy_bytes_per_s[TW_TOPO_COPY_L2] = 8;
    b.copy_bytes[TW_TOPO_COPY_L2] = 60;
    a.switch_ps = 800;
    b.switch_ps = 700;
    a.cma_call_ps = 900;
    a.cma_bytes_per_s = 5;
    b.cma_bytes_per_s = 6;
    struct tw_topo_measured both = merged(a, b);
    EXPECT_EQ(both.line_ps[TW_TOPO_NEAR_L3], 40u);
    EXPECT_EQ(both.line_ps[TW_TOPO_NEAR_HOST], 200u);
    EXPECT_EQ(both.line_ps[TW_TOPO_NEAR_CORE], 0u);
    EXPECT_EQ(both.copy_bytes_per_s[TW_TOPO_COPY_L2], 8u);
    EXPECT_EQ(both.copy_bytes[TW_TOPO_COPY_L2], 60u);
    EXPECT_EQ(both.switch_ps, 700u);
    EXPECT_EQ(both.cma_call_ps, 900u);
    EXPECT_EQ(both.cma_bytes_per_s, 6u);
}

/* What ranks agree on does not depend on who is asked first, nor on the shape of the tree. */
TEST(Measured, MergeHasNoOrder)
{
    std::mt19937 random(1);
    struct tw_topo_measured none = {};
    for (int turn = 0; turn < 500; turn++) {
        struct tw_topo_measured a = random_measured(random), b = random_measured(random),
                                c = random_measured(random);
        EXPECT_TRUE(same(merged(a, b), merged(b, a)));
        EXPECT_TRUE(same(merged(merged(a, b), c), merged(a, merged(b, c))));
        EXPECT_TRUE(same(merged(a, a), a));
        EXPECT_TRUE(same(merged(a, none), a));
        EXPECT_TRUE(same(merged(none, a), a));
    }
}

TEST(Measured, PackedBytesAreFixed)
{
    struct tw_topo_measured m = {};
    m.line_ps[0] = 0x0102030405060708;
    m.line_ps[0] = 0x1234;
    m.line_ps[5] = 0xabcdef;
    m.copy_bytes[0] = 0x0102030405060708;
    m.copy_bytes_per_s[3] = 0x99;
    m.switch_ps = 0x33;
    m.cma_call_ps = 0x55;
    m.cma_bytes_per_s = 0x77;
    uint8_t bytes[TW_TOPO_MEASURED_BYTES], expected[144] = {};
    ASSERT_EQ(sizeof(bytes), sizeof(expected));
    expected[0] = 2; /* version */
    expected[8] = 0x34;
    expected[9] = 0x12;
    expected[48] = 0xef;
    expected[49] = 0xcd;
    expected[50] = 0xab;
    for (int i = 0; i < 8; i++)
        expected[56 + i] = (uint8_t)(8 - i);
    expected[112] = 0x99;
    expected[120] = 0x33;
    expected[128] = 0x55;
    expected[136] = 0x77;
    memset(bytes, 0xee, sizeof(bytes));
    tw_topo_measured_pack(&m, bytes);
    EXPECT_EQ(memcmp(bytes, expected, sizeof(bytes)), 0);
    struct tw_topo_measured back;
    memset(&back, 0xee, sizeof(back));
    ASSERT_EQ(tw_topo_measured_unpack(&back, bytes), TWILL_OK);
    EXPECT_TRUE(same(back, m));
}

TEST(Measured, UnpackRefusesOtherVersionsAndAbsurdNumbers)
{
    struct tw_topo_measured m = {}, before;
    memset(&before, 0x5a, sizeof(before));
    struct tw_topo_measured out = before;
    uint8_t bytes[TW_TOPO_MEASURED_BYTES];
    tw_topo_measured_pack(&m, bytes);
    bytes[0] = 3;
    EXPECT_EQ(tw_topo_measured_unpack(&out, bytes), TWILL_ERR_PEER);
    EXPECT_STREQ(tw_fail_text(), "measurements: version 3, not 2");
    bytes[0] = 2;
    bytes[7] = 1;
    EXPECT_EQ(tw_topo_measured_unpack(&out, bytes), TWILL_ERR_PEER);
    bytes[7] = 0;
    for (size_t field = 0; field < TW_TOPO_MEASURED_BYTES / 8 - 1; field++) {
        bool size = field >= 6 && field < 10; /* any number of bytes is one */
        bytes[8 * field + 15] = 0xff;
        EXPECT_EQ(tw_topo_measured_unpack(&out, bytes), size ? TWILL_OK : TWILL_ERR_PEER) << field;
        EXPECT_TRUE(size || same(out, before)) << field;
        out = before;
        bytes[8 * field + 15] = 0;
    }
}

TEST(Measured, HashSeesEveryField)
{
    struct tw_topo_measured m = {};
    uint64_t none = tw_topo_measured_hash(&m);
    EXPECT_EQ(none, tw_topo_measured_hash(&m));
    uint64_t *fields = (uint64_t *)(void *)&m;
    for (size_t i = 0; i < sizeof(m) / sizeof(uint64_t); i++) {
        fields[i] = 1;
        EXPECT_NE(tw_topo_measured_hash(&m), none) << i;
        fields[i] = 0;
    }
    EXPECT_EQ(sizeof(m) / sizeof(uint64_t), TW_TOPO_MEASURED_BYTES / 8 - 1);
}

/* ---- into a machine ------------------------------------------------------------------------- */

uint64_t line(Graph &graph, uint32_t to)
{
    Routes routes(graph.g);
    return routes.find({0, graph.cpu(0)}, {0, graph.cpu(to)}).latency_ps;
}

TEST(Measured, PathsTakeWhatWasMeasured)
{
    Graph graph("amd-2s-nps4");
    struct tw_topo_measured m = {};
    m.line_ps[TW_TOPO_NEAR_CORE] = 7001;
    m.line_ps[TW_TOPO_NEAR_L3] = 31003;
    m.line_ps[TW_TOPO_NEAR_NUMA] = 97001;
    m.line_ps[TW_TOPO_NEAR_PACKAGE] = 120000;
    m.line_ps[TW_TOPO_NEAR_HOST] = 333333;
    m.copy_bytes_per_s[TW_TOPO_COPY_L2] = 40000000000;
    m.copy_bytes_per_s[TW_TOPO_COPY_L3] = 17000000000;
    m.copy_bytes_per_s[TW_TOPO_COPY_MEMORY] = 9000000000;
    ASSERT_EQ(tw_topo_measured_apply(&m, &graph.machine()), TWILL_OK);
    ASSERT_EQ(tw_topo_graph_seal(graph.g), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(line(graph, 128), 7001u);
    EXPECT_EQ(line(graph, 1), 31003u);
    EXPECT_EQ(line(graph, 8), 97001u);
    EXPECT_EQ(line(graph, 16), 120000u);
    EXPECT_EQ(line(graph, 64), 333333u);
    Routes routes(graph.g);
    EXPECT_EQ(routes.find({0, graph.cpu(0)}, {0, graph.cpu(1)}).bytes_per_s, 17000000000u);
    struct tw_topo_path by_memory =
        routes.find({0, graph.cpu(0)}, {0, graph.cpu(1)}, TW_TOPO_VIA_MEMORY);
    EXPECT_EQ(by_memory.bytes_per_s, 9000000000u);
    /* all flows together still have what the memory carries */
    const struct tw_topo_node *memory = &graph.machine().nodes[graph.nth(TW_NODE_MEMORY, 0)];
    const struct tw_topo_link *link = &graph.machine().links[memory->uplink];
    EXPECT_EQ(graph.machine().resources[link->resource[0]].bytes_per_s, 100000000000u);
    EXPECT_EQ(link->origin, TW_TOPO_MEASURED);
}

TEST(Measured, WhatWasNotMeasuredStaysInOrder)
{
    struct tw_topo_measured none = {}, outer = {}, inner = {};
    Graph graph("amd-2s-nps4"), same_graph("amd-2s-nps4");
    ASSERT_EQ(tw_topo_measured_apply(&none, &graph.machine()), TWILL_OK);
    EXPECT_TRUE(tw_topo_graph_equal(graph.g, same_graph.g));
    /* quicker across the package than was believed inside a NUMA node */
    outer.line_ps[TW_TOPO_NEAR_PACKAGE] = 60000;
    ASSERT_EQ(tw_topo_measured_apply(&outer, &graph.machine()), TWILL_OK);
    EXPECT_EQ(line(graph, 16), 60000u);
    EXPECT_EQ(line(graph, 8), 60000u);
    EXPECT_EQ(line(graph, 1), 22000u);
    EXPECT_EQ(line(graph, 64), 200000u);
    /* slower inside a core than was believed across packages */
    inner.line_ps[TW_TOPO_NEAR_CORE] = 900000;
    ASSERT_EQ(tw_topo_measured_apply(&inner, &graph.machine()), TWILL_OK);
    for (uint32_t to : {128, 1, 8, 16, 64})
        EXPECT_EQ(line(graph, to), 900000u) << to;
}

/* A core's resource that another link loads as well keeps what that link has. */
TEST(Measured, ResourcesThatAreSharedStayLargeEnough)
{
    Graph graph("arm-64c");
    struct tw_topo_machine *m = &graph.machine();
    struct tw_topo_link *core = &m->links[m->nodes[graph.nth(TW_NODE_CORE, 0)].uplink];
    struct tw_topo_link *cache = &m->links[m->nodes[graph.nth(TW_NODE_CACHE, 0)].uplink];
    core->resource[0] = cache->resource[1];
    ASSERT_EQ(tw_topo_graph_seal(graph.g), TWILL_OK) << tw_fail_text();
    struct tw_topo_measured measured = {};
    measured.copy_bytes_per_s[TW_TOPO_COPY_L3] = 5000000000;
    ASSERT_EQ(tw_topo_measured_apply(&measured, m), TWILL_OK);
    EXPECT_EQ(tw_topo_graph_seal(graph.g), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(core->bytes_per_s[0], 5000000000u);
    EXPECT_EQ(m->resources[cache->resource[1]].bytes_per_s, cache->bytes_per_s[1]);
}

/* A cache that spans NUMA nodes stands above them; nothing may become less than nothing. */
TEST(Measured, KindsInAnotherOrder)
{
    const char *text =
        "<twill-topology version='1' name='x'><machine name='m' origin='system'>"
        "<node kind='host'/><node kind='cache' level='3' parent='0'/>"
        "<node kind='numa' parent='1' os_index='0'/><node kind='numa' parent='1' os_index='1'/>"
        "<node kind='core' parent='2'/><node kind='pu' parent='4' os_index='0'/>"
        "<node kind='core' parent='3'/><node kind='pu' parent='6' os_index='1'/>"
        "<resource node='0' bytes_per_s='100'/>";
    std::string all = text;
    const int ends[][2] = {{1, 0}, {2, 1}, {3, 1}, {4, 2}, {5, 4}, {6, 3}, {7, 6}};
    for (const auto &end : ends)
        all += "<link from='" + std::to_string(end[0]) + "' to='" + std::to_string(end[1]) +
               "' origin='estimate' latency_ps='10' back_latency_ps='10' bytes_per_s='100' "
               "back_bytes_per_s='100' resource='0' back_resource='0'/>";
    all += "</machine><hosts machine='0' count='1'/></twill-topology>";
    Graph graph;
    ASSERT_EQ(tw_topo_xml_read(&graph.g, "x", all.data(), all.size()), TWILL_OK) << tw_fail_text();
    struct tw_topo_measured m = {};
    m.line_ps[TW_TOPO_NEAR_L3] = 90;
    m.line_ps[TW_TOPO_NEAR_NUMA] = 50;
    ASSERT_EQ(tw_topo_measured_apply(&m, &graph.machine()), TWILL_OK);
    ASSERT_EQ(tw_topo_graph_seal(graph.g), TWILL_OK) << tw_fail_text();
    Routes routes(graph.g);
    uint64_t ps = routes.find({0, graph.cpu(0)}, {0, graph.cpu(1)}).latency_ps;
    EXPECT_EQ(ps, 90u);
}

} // namespace
