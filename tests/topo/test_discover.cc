/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a recorded host, its files, and this one. Never knows: what the graph is for. */
#include "graphs.hh"

#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

extern "C" {
#include "topo/discover.h"
}

namespace
{

const char *kTwoGpus = SOURCE_DIR "/tests/topo/machines/two-gpus.xml";

/* A folder of files that stands for /sys and /proc. */
class Folder
{
  public:
    Folder()
    {
        char path[] = "/tmp/twill-sys-XXXXXX";
        if (mkdtemp(path))
            root = path;
    }
    ~Folder() { std::filesystem::remove_all(root); }
    void put(const std::string &name, const std::string &text)
    {
        std::filesystem::path path = std::filesystem::path(root) / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    std::string root;
};

Graph *recorded(const char *sysfs = nullptr, const char *proc = nullptr)
{
    Graph *graph = new Graph;
    struct tw_topo_source source = {kTwoGpus, sysfs, proc, TW_TOPO_SCOPE_PROCESS, nullptr};
    EXPECT_EQ(tw_topo_discover_from(&graph->g, &source), TWILL_OK) << tw_fail_text();
    return graph;
}

std::string parent_of(Graph &graph, uint32_t node)
{
    char text[128];
    tw_topo_node_text(&graph.machine(), graph.machine().nodes[node].parent, text, sizeof(text));
    return text;
}

const struct tw_topo_link *uplink(Graph &graph, uint32_t node)
{
    return &graph.machine().links[graph.machine().nodes[node].uplink];
}

/* The link beside the tree from a node. */
const struct tw_topo_link *beside(Graph &graph, uint32_t node)
{
    const struct tw_topo_machine *m = &graph.machine();
    for (uint32_t i = 0; i < m->nlinks; i++)
        if (m->links[i].from == node && m->nodes[node].uplink != i)
            return &m->links[i];
    return nullptr;
}

TEST(Discover, ReadsARecordedHost)
{
    std::unique_ptr<Graph> graph(recorded());
    ASSERT_NE(graph->g, nullptr);
    const struct tw_topo_machine *m = &graph->machine();
    EXPECT_STREQ(graph->g->name, "two<gpus");
    EXPECT_STREQ(m->cpu_model, "EPYC test");
    EXPECT_EQ(m->origin, TW_TOPO_SYSTEM);
    EXPECT_EQ(m->l1d_bytes, 32u * 1024);
    EXPECT_EQ(m->l2_bytes, 1024u * 1024);
    EXPECT_EQ(m->l3_bytes, 32u * 1024 * 1024);
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_PACKAGE), 2u);
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_CACHE), 2u); /* L2 is private: no part */
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_CORE), 4u);
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_PU), 4u);
    EXPECT_EQ(m->nodes[graph->nth(TW_NODE_MEMORY, 1)].memory_bytes, 2ull << 30);
    EXPECT_EQ(tw_topo_near_of(m, graph->cpu(0), graph->cpu(1)), TW_TOPO_NEAR_L3);
    EXPECT_EQ(tw_topo_near_of(m, graph->cpu(1), graph->cpu(2)), TW_TOPO_NEAR_HOST);
    /* typical of AMD, as the vendor is */
    Routes routes(graph->g);
    EXPECT_EQ(routes.find({0, graph->cpu(0)}, {0, graph->cpu(1)}).latency_ps, 22000u);
}

/* A recorded host whose control group allows the second CPU and the third. */
TEST(Discover, LeavesOutWhatAControlGroupForbids)
{
    Folder folder;
    std::ifstream in(kTwoGpus);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::string all = "allowed_cpuset=\"0x0000000f\"";
    const size_t at = text.find(all);
    ASSERT_NE(at, std::string::npos);
    folder.put("host.xml", text.replace(at, all.size(), "allowed_cpuset=\"0x00000006\""));
    const std::string path = folder.root + "/host.xml";
    for (const enum tw_topo_scope scope : {TW_TOPO_SCOPE_PROCESS, TW_TOPO_SCOPE_GROUP}) {
        Graph graph;
        const struct tw_topo_source source = {path.c_str(), nullptr, nullptr, scope, nullptr};
        ASSERT_EQ(tw_topo_discover_from(&graph.g, &source), TWILL_OK) << tw_fail_text();
        const struct tw_topo_machine *m = &graph.machine();
        ASSERT_EQ(tw_topo_node_count(m, TW_NODE_PU), 2u);
        EXPECT_EQ(m->nodes[graph.nth(TW_NODE_PU, 0)].os_index, 1u);
        EXPECT_EQ(m->nodes[graph.nth(TW_NODE_PU, 1)].os_index, 2u);
        EXPECT_EQ(tw_topo_node_count(m, TW_NODE_GPU), 2u) << "devices are the whole host's";
    }
}

TEST(Discover, HangsDevicesWhereTheyAre)
{
    std::unique_ptr<Graph> graph(recorded());
    const struct tw_topo_machine *m = &graph->machine();
    /* the board's own VGA, the disk and ports with one way down are no parts */
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_GPU), 2u);
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_NIC), 2u);
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_PCISWITCH), 1u);
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_PCIROOT), 2u);
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_NET), 1u);
    uint32_t gpu = graph->nth(TW_NODE_GPU, 0), nic = graph->nth(TW_NODE_NIC, 1);
    EXPECT_STREQ(m->nodes[gpu].name, "0000:13:00.0");
    EXPECT_STREQ(m->nodes[gpu].model, "10de:2335");
    EXPECT_EQ(parent_of(*graph, gpu), "pciswitch 0000:11:00.0");
    EXPECT_EQ(parent_of(*graph, m->nodes[gpu].parent), "pciroot 0000:10");
    EXPECT_EQ(parent_of(*graph, m->nodes[m->nodes[gpu].parent].parent), "numa 0");
    /* verbs' name goes before the network's */
    EXPECT_STREQ(m->nodes[graph->nth(TW_NODE_NIC, 0)].name, "mlx5_0");
    EXPECT_STREQ(m->nodes[nic].name, "eth7");
    EXPECT_EQ(parent_of(*graph, nic), "pciroot 0000:80");
    EXPECT_EQ(parent_of(*graph, m->nodes[nic].parent), "numa 1");
}

bool has_note(Graph &graph, const char *part)
{
    for (uint32_t i = 0; i < graph.machine().nnotes; i++)
        if (strstr(graph.machine().notes[i], part))
            return true;
    return false;
}

TEST(Discover, SaysWhatNothingTells)
{
    std::unique_ptr<Graph> graph(recorded());
    EXPECT_EQ(uplink(*graph, graph->nth(TW_NODE_GPU, 0))->origin, TW_TOPO_ESTIMATE);
    EXPECT_EQ(beside(*graph, graph->nth(TW_NODE_NIC, 0))->origin, TW_TOPO_ESTIMATE);
    EXPECT_TRUE(has_note(*graph, "nic mlx5_0: nothing says how fast"));
    EXPECT_TRUE(has_note(*graph, "origin is estimate"));
    EXPECT_TRUE(has_note(*graph, "2 NVSwitch chips are there"));
    EXPECT_TRUE(has_note(*graph, "size and rate of their memory"));
    EXPECT_EQ(tw_topo_node_count(&graph->machine(), TW_NODE_NVSWITCH), 1u);
    EXPECT_EQ(beside(*graph, graph->nth(TW_NODE_GPU, 1))->origin, TW_TOPO_ESTIMATE);
}

TEST(Discover, TakesRatesFromSysfs)
{
    Folder sys, proc;
    sys.put("bus/pci/devices/0000:13:00.0/max_link_speed", "32.0 GT/s PCIe\n");
    sys.put("bus/pci/devices/0000:13:00.0/current_link_speed", "2.5 GT/s PCIe\n");
    sys.put("bus/pci/devices/0000:13:00.0/current_link_width", "16\n");
    sys.put("class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    sys.put("class/net/eth7/speed", "25000\n");
    proc.put("driver/nvidia/gpus/0000:13:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 1\n");
    std::unique_ptr<Graph> graph(recorded(sys.root.c_str(), proc.root.c_str()));
    const struct tw_topo_link *gpu = uplink(*graph, graph->nth(TW_NODE_GPU, 0));
    EXPECT_EQ(gpu->origin, TW_TOPO_SYSTEM);
    /* 16 lanes of 32 GT/s in 128b/130b, 85 % payload */
    EXPECT_NEAR((double)gpu->bytes_per_s[0], 16 * 32e9 / 8 * 128 / 130 * 0.85, 1e6);
    EXPECT_EQ(beside(*graph, graph->nth(TW_NODE_NIC, 0))->bytes_per_s[0], 50000000000u);
    EXPECT_EQ(beside(*graph, graph->nth(TW_NODE_NIC, 0))->origin, TW_TOPO_SYSTEM);
    EXPECT_EQ(beside(*graph, graph->nth(TW_NODE_NIC, 1))->bytes_per_s[1], 3125000000u);
    EXPECT_STREQ(graph->machine().nodes[graph->nth(TW_NODE_GPU, 0)].model, "NVIDIA H200");
    EXPECT_STREQ(graph->machine().nodes[graph->nth(TW_NODE_GPU, 1)].model, "10de:2335");
    EXPECT_FALSE(has_note(*graph, "nothing says how fast"));
}

TEST(Discover, LeavesOutVirtualFunctions)
{
    Folder sys;
    sys.put("bus/pci/devices/0000:80:00.0/physfn/vendor", "0x8086\n");
    std::unique_ptr<Graph> graph(recorded(sys.root.c_str()));
    EXPECT_EQ(tw_topo_node_count(&graph->machine(), TW_NODE_NIC), 1u);
    EXPECT_EQ(tw_topo_node_count(&graph->machine(), TW_NODE_PCIROOT), 1u);
}

TEST(Discover, ReadsTheKernelsWordsForSpeeds)
{
    Folder sys;
    auto pci = [&](const char *speed, const char *width) {
        sys.put("bus/pci/devices/d/max_link_speed", speed);
        sys.put("bus/pci/devices/d/current_link_width", width);
        return (double)tw_topo_pci_rate(sys.root.c_str(), "d");
    };
    EXPECT_NEAR(pci("2.5 GT/s PCIe", "1"), 2.5e9 * 0.8 / 8 * 0.85, 1e4);
    EXPECT_NEAR(pci("5 GT/s", "4"), 5e9 * 0.8 / 8 * 4 * 0.85, 1e4);
    EXPECT_NEAR(pci("8.0 GT/s PCIe", "8"), 8e9 / 8 * 128 / 130 * 8 * 0.85, 1e6);
    EXPECT_EQ(pci("Unknown", "8"), 0);
    EXPECT_EQ(pci("8.0 GT/s PCIe", ""), 0);
    EXPECT_EQ(pci("8.0 GT/s PCIe", "255"), 0); /* what the kernel writes for no link at all */
    EXPECT_EQ(pci("8.0 GT/s PCIe", "0"), 0);
    auto net = [&](const char *text) {
        sys.put("class/net/n/speed", text);
        return tw_topo_net_rate(sys.root.c_str(), "n");
    };
    EXPECT_EQ(net("100000\n"), 12500000000u);
    EXPECT_EQ(net("-1\n"), 0u);
    EXPECT_EQ(net("0\n"), 0u);
    EXPECT_EQ(net("fast\n"), 0u);
    EXPECT_EQ(net("99999999999999999999\n"), 0u);
    auto verbs = [&](const char *text) {
        sys.put("class/infiniband/v/ports/1/rate", text);
        return tw_topo_verbs_rate(sys.root.c_str(), "v");
    };
    EXPECT_EQ(verbs("2.5 Gb/sec (1X SDR)\n"), 312500000u);
    EXPECT_EQ(verbs("100 Gb/sec (2X HDR)\n"), 12500000000u);
    EXPECT_EQ(verbs("100\n"), 0u);
    EXPECT_EQ(verbs("\n"), 0u);
    EXPECT_EQ(tw_topo_net_rate(nullptr, "n"), 0u);
    EXPECT_EQ(tw_topo_net_rate(sys.root.c_str(), "absent"), 0u);
}

TEST(Discover, TextForPeopleIsPrintable)
{
    char text[8];
    tw_topo_text_copy(text, sizeof(text), "a\n\x01\x7f\xc3\xa4z");
    EXPECT_STREQ(text, "a?????z");
    tw_topo_text_copy(text, sizeof(text), "longer than that");
    EXPECT_STREQ(text, "longer ");
    tw_topo_text_copy(text, sizeof(text), nullptr);
    EXPECT_STREQ(text, "");
}

TEST(Discover, RefusesWhatHwlocCannotRead)
{
    Folder folder;
    folder.put("garbage.xml", "<topology><object type='Machine'");
    folder.put("empty.xml", "");
    for (const char *name : {"/garbage.xml", "/empty.xml", "/absent.xml"}) {
        std::string path = folder.root + name;
        struct tw_topo_source source = {path.c_str(), nullptr, nullptr, TW_TOPO_SCOPE_PROCESS,
                                        nullptr};
        struct tw_topo_graph *graph = nullptr;
        EXPECT_EQ(tw_topo_discover_from(&graph, &source), TWILL_ERR_INVALID) << name;
        EXPECT_EQ(graph, nullptr);
        EXPECT_NE(strstr(tw_fail_text(), name), nullptr) << tw_fail_text();
    }
}

/* A virtual machine with two H200 as lstopo wrote it down. */
TEST(Discover, ReadsAHostWithTwoH200)
{
    Graph graph;
    struct tw_topo_source source = {SOURCE_DIR "/tests/topo/machines/h200-2gpu.xml", nullptr,
                                    nullptr, TW_TOPO_SCOPE_PROCESS, nullptr};
    ASSERT_EQ(tw_topo_discover_from(&graph.g, &source), TWILL_OK) << tw_fail_text();
    const struct tw_topo_machine *m = &graph.machine();
    EXPECT_STREQ(m->name, "h200-2gpu.xml"); /* the dump does not name its host */
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_PU), 32u);
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_GPU), 2u);
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_NIC), 1u);
    EXPECT_EQ(tw_topo_node_count(m, TW_NODE_NVSWITCH), 0u);
    EXPECT_TRUE(has_note(graph, "NVLink: unknown"));
    uint32_t a = graph.nth(TW_NODE_GPU, 0), b = graph.nth(TW_NODE_GPU, 1);
    EXPECT_STREQ(m->nodes[b].name, "0000:00:07.0");
    /* hwloc's link speed counts bits of payload and headers: 63 GB/s */
    EXPECT_EQ(uplink(graph, a)->origin, TW_TOPO_SYSTEM);
    EXPECT_NEAR((double)uplink(graph, a)->bytes_per_s[0], 63.015385e9 * 0.85, 1e6);
    Routes routes(graph.g);
    struct tw_topo_path path = routes.find({0, a}, {0, b});
    EXPECT_EQ(path.nresources, 2u);
    /* both GPUs at once: their common root carries what they do, and the NIC's 12 GB/s */
    uint32_t root = uplink(graph, m->nodes[a].parent)->resource[0];
    EXPECT_NEAR((double)m->resources[root].bytes_per_s, 2 * 63.015385e9 * 0.85 + 12e9, 1e6);
}

/* The same host with what was measured of its GPUs. */
TEST(Discover, ShipsAHostWithTwoH200)
{
    Graph graph;
    ASSERT_EQ(tw_topo_xml_load(&graph.g, SOURCE_DIR "/data/topologies/h200-2gpu.xml"), TWILL_OK)
        << tw_fail_text();
    EXPECT_STREQ(graph.g->name, "h200-2gpu");
    uint32_t a = graph.nth(TW_NODE_GPU, 0), b = graph.nth(TW_NODE_GPU, 1);
    EXPECT_STREQ(graph.machine().nodes[a].model, "NVIDIA H200");
    Routes routes(graph.g);
    for (auto [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
        struct tw_topo_path path = routes.find({0, from}, {0, to});
        EXPECT_EQ(path.latency_ps, 670000u);
        EXPECT_EQ(path.bytes_per_s, 392000000000u);
        EXPECT_EQ(path.nresources, 1u);
    }
    EXPECT_EQ(beside(graph, a)->origin, TW_TOPO_MEASURED);
    /* all else is as hwloc's dump has it */
    Graph dump;
    struct tw_topo_source source = {SOURCE_DIR "/tests/topo/machines/h200-2gpu.xml", nullptr,
                                    nullptr, TW_TOPO_SCOPE_PROCESS, nullptr};
    ASSERT_EQ(tw_topo_discover_from(&dump.g, &source), TWILL_OK) << tw_fail_text();
    ASSERT_EQ(graph.machine().nnodes, dump.machine().nnodes);
    ASSERT_EQ(graph.machine().nlinks, dump.machine().nlinks + 1);
    for (uint32_t i = 0; i < dump.machine().nlinks; i++) {
        const struct tw_topo_link &x = graph.machine().links[i], &y = dump.machine().links[i];
        EXPECT_TRUE(x.from == y.from && x.to == y.to && x.latency_ps[0] == y.latency_ps[0] &&
                    x.bytes_per_s[1] == y.bytes_per_s[1] && x.origin == y.origin)
            << i;
    }
}

/* ---- this host ------------------------------------------------------------------------------ */

std::vector<uint32_t> numbers_of_cpus(const struct tw_topo_graph *graph)
{
    std::vector<uint32_t> numbers;
    for (uint32_t i = 0; i < graph->machines[0].nnodes; i++)
        if (graph->machines[0].nodes[i].kind == TW_NODE_PU)
            numbers.push_back(graph->machines[0].nodes[i].os_index);
    return numbers;
}

TEST(Discover, KeepsToWhatThisProcessMayUse)
{
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    Graph all, group, some;
    ASSERT_EQ(tw_topo_discover(&all.g, TW_TOPO_SCOPE_PROCESS), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(numbers_of_cpus(all.g).size(), (size_t)CPU_COUNT(&before));
    int last = (int)numbers_of_cpus(all.g).back();
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(tw_topo_discover(&some.g, TW_TOPO_SCOPE_PROCESS), TWILL_OK) << tw_fail_text();
    EXPECT_EQ(tw_topo_discover(&group.g, TW_TOPO_SCOPE_GROUP), TWILL_OK) << tw_fail_text();
    ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
    EXPECT_EQ(numbers_of_cpus(some.g), (std::vector<uint32_t>{(uint32_t)last}));
    /* what this process is bound to does not matter to a job */
    EXPECT_GE(numbers_of_cpus(group.g).size(), (size_t)CPU_COUNT(&before));
    std::string text = xml_of(all.g);
    Graph back;
    ASSERT_EQ(tw_topo_xml_read(&back.g, "here", text.data(), text.size()), TWILL_OK)
        << tw_fail_text();
    EXPECT_TRUE(tw_topo_graph_equal(all.g, back.g));
    Routes routes(all.g);
    routes.find({0, tw_topo_node_nth(all.g->machines, TW_NODE_PU, 0)},
                {0, all.cpu((uint32_t)last)});
}

} // namespace
