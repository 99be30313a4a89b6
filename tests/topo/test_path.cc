/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which way a transfer goes and what it shares. Never knows: how ways are searched. */
#include "graphs.hh"

#include <string.h>

#include <algorithm>
#include <set>

namespace
{

using Names = std::vector<std::string>;

TEST(Path, TakesTheLineLatencyOfTheNearness)
{
    Graph graph("amd-2s-nps4");
    Routes routes(graph.g);
    const struct {
        uint32_t to;
        uint64_t ps, rate;
    } expected[] = {
        {128, 10000, 24000000000}, {1, 22000, 24000000000},   {8, 85000, 24000000000},
        {16, 105000, 24000000000}, {64, 200000, 24000000000},
    };
    for (const auto &e : expected) {
        struct tw_topo_path there = routes.find({0, graph.cpu(0)}, {0, graph.cpu(e.to)});
        struct tw_topo_path back = routes.find({0, graph.cpu(e.to)}, {0, graph.cpu(0)});
        EXPECT_EQ(there.latency_ps, e.ps) << e.to;
        EXPECT_EQ(back.latency_ps, e.ps) << e.to;
        EXPECT_EQ(there.bytes_per_s, e.rate);
    }
    EXPECT_EQ(
        routes.loads(routes.find({0, graph.cpu(0)}, {0, graph.cpu(8)})),
        (Names{"host 0: pu 0 > core 0", "host 0: core 0 > cache 0", "host 0: cache 0 > numa 0",
               "host 0: numa 0 > cache 1", "host 0: cache 1 > core 8", "host 0: core 8 > pu 8"}));
}

TEST(Path, ByWayOfMemoryLoadsTheMemoryOfTheReceiverTwice)
{
    Graph graph("amd-2s-nps4");
    Routes routes(graph.g);
    struct tw_topo_path path =
        routes.find({0, graph.cpu(0)}, {0, graph.cpu(16)}, TW_TOPO_VIA_MEMORY);
    Names loads = routes.loads(path);
    EXPECT_EQ(std::count(loads.begin(), loads.end(), "host 0: memory 1 > numa 1"), 2);
    EXPECT_EQ(std::count(loads.begin(), loads.end(), "host 0: memory 0 > numa 0"), 0);
    /* there: half of 105 ns to NUMA node 1's side, and so on: 105 + 2 * 45 */
    EXPECT_EQ(path.latency_ps, 195000u);
    EXPECT_EQ(path.bytes_per_s, 24000000000u); /* half of the memory's 100 GB/s is more */
    /* where the memory is the narrow part a lone flow gets half of it */
    Graph narrow("container-1c");
    Routes narrow_routes(narrow.g);
    path = narrow_routes.find({0, narrow.cpu(0)}, {0, narrow.cpu(0)}, TW_TOPO_VIA_MEMORY);
    EXPECT_EQ(path.bytes_per_s, 7500000000u);
    EXPECT_EQ(path.nresources, 6u);
}

TEST(Path, ToItselfIsNoPath)
{
    Graph graph("nvswitch-8gpu");
    Routes routes(graph.g);
    struct tw_topo_path path = routes.find({0, graph.cpu(3)}, {0, graph.cpu(3)});
    EXPECT_EQ(path.latency_ps, 0u);
    EXPECT_EQ(path.nresources, 0u);
    EXPECT_EQ(path.bytes_per_s, 13000000000u);
    path = routes.find({0, graph.nth(TW_NODE_GPU, 1)}, {0, graph.nth(TW_NODE_GPU, 1)},
                       TW_TOPO_VIA_MEMORY);
    EXPECT_EQ(path.nresources, 0u);
    EXPECT_EQ(path.bytes_per_s, 4000000000000u);
    graph.machine().nodes[graph.nth(TW_NODE_GPU, 1)].memory_bytes_per_s = 0;
    path = routes.find({0, graph.nth(TW_NODE_GPU, 1)}, {0, graph.nth(TW_NODE_GPU, 1)});
    EXPECT_EQ(path.bytes_per_s, TW_TOPO_RATE_MOST);
}

TEST(Path, GpusUseNvlinkWhereThereIsOne)
{
    Graph graph("nvswitch-8gpu");
    Routes routes(graph.g);
    struct tw_topo_path path =
        routes.find({0, graph.nth(TW_NODE_GPU, 0)}, {0, graph.nth(TW_NODE_GPU, 7)});
    EXPECT_EQ(routes.loads(path),
              (Names{"host 0: gpu gpu0 > nvswitch", "host 0: nvswitch > gpu gpu7"}));
    EXPECT_EQ(path.latency_ps, 800000u);
    EXPECT_EQ(path.bytes_per_s, 390000000000u);
}

/* Two pairs that cross the same switch's uplink share it; pairs below their own switches do not. */
TEST(Path, GpusWithoutNvlinkShareTheUplinkOfTheirSwitch)
{
    Graph graph("pcie-4gpu");
    Routes routes(graph.g);
    auto gpu = [&](uint32_t i) { return tw_topo_place{0, graph.nth(TW_NODE_GPU, i)}; };
    auto shared = [&](struct tw_topo_path a, struct tw_topo_path b) {
        std::set<uint32_t> of_a(a.resource, a.resource + a.nresources);
        unsigned count = 0;
        for (uint32_t i = 0; i < b.nresources; i++)
            count += of_a.count(b.resource[i]);
        return count;
    };
    /* up from switch 0, its root, down to root 1 and switch 1 */
    EXPECT_EQ(shared(routes.find(gpu(0), gpu(2)), routes.find(gpu(1), gpu(3))), 4u);
    EXPECT_EQ(shared(routes.find(gpu(0), gpu(1)), routes.find(gpu(2), gpu(3))), 0u);
    /* full duplex: the ways there and back share nothing */
    EXPECT_EQ(shared(routes.find(gpu(0), gpu(2)), routes.find(gpu(2), gpu(0))), 0u);
    EXPECT_EQ(routes.find(gpu(0), gpu(1)).latency_ps, 300000u);
    EXPECT_EQ(routes.find(gpu(0), gpu(2)).latency_ps, 2 * (150000u + 110000u + 150000u));
}

TEST(Path, GpuToCpuMayGoByItsMemory)
{
    Graph graph("pcie-4gpu");
    Routes routes(graph.g);
    struct tw_topo_path path =
        routes.find({0, graph.nth(TW_NODE_GPU, 0)}, {0, graph.cpu(0)}, TW_TOPO_VIA_MEMORY);
    Names loads = routes.loads(path);
    EXPECT_EQ(std::count(loads.begin(), loads.end(), "host 0: memory 0 > numa 0"), 2);
    EXPECT_EQ(loads.front(), "host 0: gpu gpu0 > pciswitch switch0");
    EXPECT_EQ(loads.back(), "host 0: core 0 > pu 0");
    /* a memory is a place as well */
    path = routes.find({0, graph.nth(TW_NODE_MEMORY, 0)}, {0, graph.nth(TW_NODE_GPU, 3)});
    EXPECT_EQ(routes.loads(path).front(), "host 0: memory 0 > numa 0");
}

/* ---- between hosts -------------------------------------------------------------------------- */

TEST(Path, BetweenHostsGoesByNicsAndTiers)
{
    Graph graph("arm-64c:hosts=8,leaf=2,oversub=4");
    Routes routes(graph.g);
    struct tw_topo_path near = routes.find({0, graph.cpu(0)}, {1, graph.cpu(5)});
    struct tw_topo_path far = routes.find({0, graph.cpu(0)}, {5, graph.cpu(0)});
    EXPECT_EQ(
        routes.loads(near),
        (Names{"host 0: pu 0 > core 0", "host 0: core 0 > cache 0", "host 0: cache 0 > numa 0",
               "host 0: numa 0 > pciroot (node 134)", "host 0: pciroot (node 134) > nic nic0",
               "host 0: nic nic0 > net", "host 1: net > nic nic0",
               "host 1: nic nic0 > pciroot (node 134)", "host 1: pciroot (node 134) > numa 0",
               "host 1: numa 0 > cache 0", "host 1: cache 0 > core 5", "host 1: core 5 > pu 5"}));
    EXPECT_EQ(far.nresources, near.nresources + 2);
    Names loads = routes.loads(far);
    EXPECT_EQ(std::count(loads.begin(), loads.end(), "tier 0 switch 0 up"), 1);
    EXPECT_EQ(std::count(loads.begin(), loads.end(), "tier 0 switch 2 down"), 1);
    EXPECT_EQ(far.latency_ps, near.latency_ps + 2 * 300000);
    /* PU to NUMA node 24 ns, root 150, NIC 120, port 500, twice; the switch 300 */
    EXPECT_EQ(near.latency_ps, 2 * (24000u + 150000u + 120000u + 500000u) + 300000u);
    /* 2 ports of 25 GB/s, a fourth of it upwards */
    EXPECT_EQ(far.bytes_per_s, 12500000000u);
    EXPECT_EQ(near.bytes_per_s, 20000000000u);
}

TEST(Path, RailsStayOnTheirSwitch)
{
    Graph graph("nvswitch-8gpu:hosts=4,leaf=2");
    Routes routes(graph.g);
    auto path = [&](uint32_t host_a, uint32_t gpu_a, uint32_t host_b, uint32_t gpu_b) {
        return routes.loads(routes.find({host_a, graph.nth(TW_NODE_GPU, gpu_a)},
                                        {host_b, graph.nth(TW_NODE_GPU, gpu_b)}));
    };
    auto tiers = [](const Names &names) {
        Names found;
        for (const std::string &name : names)
            if (name.compare(0, 4, "tier") == 0)
                found.push_back(name);
        return found;
    };
    EXPECT_EQ(tiers(path(0, 3, 1, 3)), Names{});
    /* switch 8 * leaf + rail */
    EXPECT_EQ(tiers(path(0, 3, 1, 5)), (Names{"tier 0 switch 3 up", "tier 0 switch 5 down"}));
    EXPECT_EQ(tiers(path(1, 3, 2, 3)), (Names{"tier 0 switch 3 up", "tier 0 switch 11 down"}));
    Graph flat("nvswitch-8gpu:hosts=4,leaf=2,rails=0");
    Routes flat_routes(flat.g);
    EXPECT_EQ(tiers(flat_routes.loads(
                  flat_routes.find({0, flat.nth(TW_NODE_GPU, 3)}, {1, flat.nth(TW_NODE_GPU, 5)}))),
              Names{});
}

/* Below each PCI switch are two GPUs and two NICs, equally near: each GPU has its own. */
TEST(Path, EquallyNearNicsAreTakenInTurn)
{
    Graph graph("nvswitch-8gpu:hosts=2");
    Routes routes(graph.g);
    for (uint32_t i = 0; i < 8; i++) {
        Names loads = routes.loads(
            routes.find({0, graph.nth(TW_NODE_GPU, i)}, {1, graph.nth(TW_NODE_GPU, i)}));
        std::string nic = "nic nic" + std::to_string(i);
        EXPECT_EQ(std::count(loads.begin(), loads.end(), "host 0: " + nic + " > net"), 1) << i;
        EXPECT_EQ(std::count(loads.begin(), loads.end(), "host 1: net > " + nic), 1) << i;
    }
}

TEST(Path, ThreeTiers)
{
    Graph graph("arm-64c:hosts=8,leaf=2");
    graph.g->fabric.ntiers = 3;
    graph.g->fabric.tier[1] = {2, 1000, 7000000000};
    graph.g->fabric.tier[2] = {2, 5000, 0};
    ASSERT_EQ(tw_topo_graph_seal(graph.g), TWILL_OK) << tw_fail_text();
    Routes routes(graph.g);
    struct tw_topo_path path = routes.find({0, graph.cpu(0)}, {7, graph.cpu(0)});
    Names loads = routes.loads(path);
    auto at = std::find(loads.begin(), loads.end(), "tier 0 switch 0 up");
    ASSERT_NE(at, loads.end());
    EXPECT_EQ(Names(at, at + 4), (Names{"tier 0 switch 0 up", "tier 1 switch 0 up",
                                        "tier 1 switch 1 down", "tier 0 switch 3 down"}));
    EXPECT_EQ(path.bytes_per_s, 7000000000u);
    struct tw_topo_path middle = routes.find({0, graph.cpu(0)}, {2, graph.cpu(0)});
    EXPECT_EQ(path.latency_ps, middle.latency_ps + 1000 + 5000);
}

TEST(Path, RefusesPlacesThatAreNone)
{
    Graph graph("arm-64c:hosts=2");
    Routes routes(graph.g);
    struct tw_topo_path path;
    const struct {
        struct tw_topo_place place;
        const char *sentence;
    } faults[] = {
        {{2, graph.cpu(0)}, "no host 2: it has 2"},
        {{0, 0}, "node 0 is no PU, GPU or memory"},
        {{0, graph.nth(TW_NODE_NIC, 0)}, "is no PU, GPU or memory"},
        {{0, TW_TOPO_NONE}, "is no PU, GPU or memory"},
    };
    for (const auto &fault : faults) {
        EXPECT_EQ(
            tw_topo_path_find(routes.r, fault.place, {0, graph.cpu(0)}, TW_TOPO_VIA_CACHE, &path),
            TWILL_ERR_INVALID);
        EXPECT_NE(strstr(tw_fail_text(), fault.sentence), nullptr) << tw_fail_text();
        EXPECT_EQ(
            tw_topo_path_find(routes.r, {0, graph.cpu(0)}, fault.place, TW_TOPO_VIA_MEMORY, &path),
            TWILL_ERR_INVALID);
    }
}

/* ---- against a search of another kind -------------------------------------------------------- */

/* All pairs by relaxing every link until nothing changes; nothing passes through an end. */
std::vector<double> naive_from(const struct tw_topo_machine *m, uint32_t source)
{
    std::vector<double> far(m->nnodes, 1e30);
    far[source] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < m->nlinks; i++)
            for (int d = 0; d < 2; d++) {
                uint32_t a = d ? m->links[i].to : m->links[i].from;
                uint32_t b = d ? m->links[i].from : m->links[i].to;
                unsigned kind = m->nodes[a].kind;
                bool end = kind == TW_NODE_PU || kind == TW_NODE_GPU || kind == TW_NODE_MEMORY ||
                           kind == TW_NODE_NET;
                if (end && a != source)
                    continue;
                double more = (double)m->links[i].latency_ps[d] +
                              65536e12 / (double)m->links[i].bytes_per_s[d];
                if (far[a] + more < far[b] - 1) {
                    far[b] = far[a] + more;
                    changed = true;
                }
            }
    }
    return far;
}

TEST(Path, IsAsShortAsASearchOfAnotherKindSays)
{
    Graph graph("nvswitch-8gpu");
    struct tw_topo_machine *m = &graph.machine();
    /* GPUs 0 and 1 get a bridge of their own, slower to begin with and wider than the switch */
    uint32_t a = graph.nth(TW_NODE_GPU, 0), b = graph.nth(TW_NODE_GPU, 1);
    uint32_t resource = tw_topo_resource_add(m, a, 900000000000);
    struct tw_topo_link bridge = {a,
                                  b,
                                  TW_TOPO_SYNTHETIC,
                                  {700000, 900000},
                                  {900000000000, 600000000000},
                                  {resource, resource},
                                  2};
    ASSERT_NE(tw_topo_link_add(m, &bridge), TW_TOPO_NONE);
    ASSERT_EQ(tw_topo_graph_seal(graph.g), TWILL_OK);
    Routes routes(graph.g);
    std::vector<uint32_t> places;
    for (uint32_t i = 0; i < m->nnodes; i++) {
        unsigned kind = m->nodes[i].kind;
        if (kind == TW_NODE_GPU || kind == TW_NODE_MEMORY || (kind == TW_NODE_PU && i % 40 == 6))
            places.push_back(i);
    }
    ASSERT_GT(places.size(), 12u);
    for (uint32_t from : places) {
        std::vector<double> far = naive_from(m, from);
        for (uint32_t to : places) {
            if (from == to)
                continue;
            struct tw_topo_path path = routes.find({0, from}, {0, to});
            double found = (double)path.latency_ps;
            for (uint32_t i = 0; i < path.nresources; i++) {
                /* own resource each way but for memory and the bridge, so rates are the links' */
                double rate = (double)tw_topo_resource_rate(graph.g, path.resource[i]);
                if (path.resource[i] == resource)
                    rate = from == a ? 900e9 : 600e9;
                found += 65536e12 / rate;
            }
            EXPECT_NEAR(found, far[to], 100) << from << " " << to;
        }
    }
}

/* Thousands of ranks: the cost of a path does not grow with the hosts. */
TEST(Path, ThousandsOfRanks)
{
    Graph graph("arm-64c:hosts=1024,leaf=32,oversub=2");
    Routes routes(graph.g);
    std::vector<struct tw_topo_place> places(65536);
    ASSERT_EQ(tw_topo_place_ranks(graph.g, TW_NODE_PU, TW_TOPO_PACKED, 0, 65536, places.data()),
              TWILL_OK);
    uint64_t longest = 0;
    for (uint32_t r = 0; r < 65536; r += 97)
        for (uint32_t distance = 1; distance < 65536; distance *= 4)
            longest = std::max(longest,
                               routes.find(places[r], places[(r + distance) % 65536]).latency_ps);
    EXPECT_EQ(longest, 2 * (24000u + 150000u + 120000u + 500000u) + 3 * 300000u);
}

} // namespace
