/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: rings on described machines, all of them at a time. Never knows: how they are searched. */
#include "graphs.hh"

#include <string.h>

#include <algorithm>
#include <map>
#include <numeric>

extern "C" {
#include "topo/build.h"
#include "topo/ring.h"
}

namespace
{

using Order = std::vector<uint32_t>;
using Places = std::vector<struct tw_topo_place>;

Places gpus(const struct tw_topo_graph *graph, uint32_t count,
            enum tw_topo_order order = TW_TOPO_PACKED)
{
    Places places(count);
    EXPECT_EQ(tw_topo_place_ranks(graph, TW_NODE_GPU, order, 0, count, places.data()), TWILL_OK)
        << tw_fail_text();
    return places;
}

/* Rate of the slowest link and time of 64 KiB around, from paths alone. */
std::pair<uint64_t, uint64_t> reach(Routes &routes, const struct tw_topo_graph *graph,
                                    const Places &places, const Order &order)
{
    uint64_t rate = UINT64_MAX, around = 0;
    std::map<uint32_t, uint64_t> loads;
    for (size_t i = 0; i < order.size(); i++) {
        const struct tw_topo_path path =
            routes.find(places[order[i]], places[order[(i + 1) % order.size()]]);
        rate = std::min(rate, path.bytes_per_s);
        around += path.latency_ps + 65536 * 1000000000000ull / path.bytes_per_s;
        for (uint32_t r = 0; r < path.nresources; r++)
            loads[path.resource[r]]++;
    }
    for (const auto &[resource, load] : loads)
        rate = std::min(rate, tw_topo_resource_rate(graph, resource) / load);
    return {rate, around};
}

Order order_of(const struct tw_topo_ring &ring)
{
    return Order(ring.order, ring.order + ring.count);
}

struct tw_topo_ring find(const struct tw_topo_graph *graph, const Places &places)
{
    struct tw_topo_ring ring = {};
    EXPECT_EQ(tw_topo_ring_find(graph, places.data(), (uint32_t)places.size(), &ring), TWILL_OK)
        << tw_fail_text();
    return ring;
}

/* Every order that begins with 0, against what was found. */
void is_the_best(const struct tw_topo_graph *graph, const Places &places)
{
    const struct tw_topo_ring ring = find(graph, places);
    ASSERT_EQ(ring.count, places.size());
    Routes routes(graph);
    Order order(places.size()), best;
    std::iota(order.begin(), order.end(), 0);
    std::pair<uint64_t, uint64_t> most;
    do {
        const auto [rate, around] = reach(routes, graph, places, order);
        if (best.empty() || rate > most.first || (rate == most.first && around < most.second)) {
            best = order;
            most = {rate, around};
        }
    } while (std::next_permutation(order.begin() + 1, order.end()));
    EXPECT_EQ(order_of(ring), best);
    EXPECT_EQ(ring.bytes_per_s, most.first);
    EXPECT_EQ(ring.around_ps, most.second);
}

TEST(Ring, IsTheBestOfAllUpToEight)
{
    for (const char *name : {"pcie-4gpu", "nvlink-4gpu"}) {
        SCOPED_TRACE(name);
        Graph graph(name);
        Places places = gpus(graph.g, 4);
        is_the_best(graph.g, places);
        for (const Order &mixed : {Order{0, 2, 1, 3}, Order{3, 1, 2, 0}}) {
            Places other;
            for (uint32_t i : mixed)
                other.push_back(places[i]);
            is_the_best(graph.g, other);
        }
    }
    for (const char *name : {"nvswitch-8gpu", "nvpair-8gpu"}) {
        SCOPED_TRACE(name);
        Graph graph(name);
        for (uint32_t count = 1; count < 8; count++)
            is_the_best(graph.g, gpus(graph.g, count));
        Places places = gpus(graph.g, 8);
        std::swap(places[1], places[6]);
        std::swap(places[0], places[3]);
        is_the_best(graph.g, places);
    }
}

/* Two GPUs below each of two switches: a ring that goes to and fro has half the rate. */
TEST(Ring, KeepsNeighboursTogether)
{
    Graph graph("pcie-4gpu");
    Places places = gpus(graph.g, 4);
    std::swap(places[1], places[2]);
    const struct tw_topo_ring ring = find(graph.g, places);
    EXPECT_EQ(order_of(ring), (Order{0, 1, 3, 2})); /* GPUs 0, 2, 3 and 1 */
    EXPECT_EQ(ring.bytes_per_s, 25000000000u);
    Routes routes(graph.g);
    EXPECT_EQ(reach(routes, graph.g, places, {0, 1, 2, 3}).first, 12500000000u);
}

/* Cables around a square that is not the order of the GPUs. */
TEST(Ring, GoesByNvlinkWhereItCan)
{
    Graph graph("pcie-4gpu");
    for (const auto &[a, b] : {std::pair{0u, 2u}, {2u, 1u}, {1u, 3u}, {3u, 0u}})
        ASSERT_TRUE(tw_topo_wire_add(&graph.machine(), graph.nth(TW_NODE_GPU, a),
                                     graph.nth(TW_NODE_GPU, b), 700000, 43500000000,
                                     TW_TOPO_SYNTHETIC));
    ASSERT_EQ(tw_topo_graph_seal(graph.g), TWILL_OK) << tw_fail_text();
    const Places places = gpus(graph.g, 4);
    const struct tw_topo_ring ring = find(graph.g, places);
    EXPECT_EQ(order_of(ring), (Order{0, 2, 1, 3}));
    EXPECT_EQ(ring.bytes_per_s, 43500000000u);
    is_the_best(graph.g, places);
}

TEST(Ring, GoesHostByHostAboveEight)
{
    for (const char *name : {"nvswitch-8gpu:hosts=2", "nvpair-8gpu:hosts=4,rails=0",
                             "pcie-4gpu:hosts=16,leaf=4,oversub=4", "nvlink-4gpu:hosts=3"}) {
        SCOPED_TRACE(name);
        Graph graph(name);
        const uint32_t count = graph.g->nhosts * tw_topo_node_count(&graph.machine(), TW_NODE_GPU);
        const Places packed = gpus(graph.g, count);
        const Places cyclic = gpus(graph.g, count, TW_TOPO_CYCLIC);
        Routes routes(graph.g);
        Order plain(count);
        std::iota(plain.begin(), plain.end(), 0);
        const auto [rate, around] = reach(routes, graph.g, packed, plain);
        for (const Places &places : {packed, cyclic}) {
            const struct tw_topo_ring ring = find(graph.g, places);
            Order order = order_of(ring);
            EXPECT_EQ(order[0], 0u);
            EXPECT_EQ(reach(routes, graph.g, places, order),
                      (std::pair{ring.bytes_per_s, ring.around_ps}));
            EXPECT_GE(ring.bytes_per_s, rate) << "no worse than host by host as they lie";
            EXPECT_LE(ring.around_ps, around + around / 10);
            std::sort(order.begin(), order.end());
            EXPECT_EQ(order, plain) << "each once";
        }
    }
}

TEST(Ring, OfOneAndOfThoseThatShare)
{
    Graph graph("pcie-4gpu");
    Places places = gpus(graph.g, 1);
    const struct tw_topo_ring one = find(graph.g, places);
    EXPECT_EQ(one.count, 1u);
    EXPECT_EQ(one.bytes_per_s, 800000000000u); /* its memory's */
    EXPECT_EQ(one.around_ps, 81920u);          /* 64 KiB at that rate */
    places = gpus(graph.g, 2);
    places.push_back(places[0]);
    const struct tw_topo_ring three = find(graph.g, places);
    EXPECT_EQ(order_of(three), (Order{0, 1, 2}));
}

TEST(Ring, RefusesWhatIsNoRing)
{
    Graph graph("pcie-4gpu");
    Places places = gpus(graph.g, 4);
    struct tw_topo_ring ring = {};
    ring.count = 77;
    EXPECT_EQ(tw_topo_ring_find(graph.g, places.data(), 0, &ring), TWILL_ERR_INVALID);
    EXPECT_EQ(tw_topo_ring_find(graph.g, places.data(), TW_TOPO_RING_MOST + 1, &ring),
              TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "1 to 64"), nullptr) << tw_fail_text();
    places[1].node = 0;
    EXPECT_EQ(tw_topo_ring_find(graph.g, places.data(), 4, &ring), TWILL_ERR_INVALID);
    places[1].host = 5;
    EXPECT_EQ(tw_topo_ring_find(graph.g, places.data(), 4, &ring), TWILL_ERR_INVALID);
    EXPECT_EQ(ring.count, 77u);
}

} // namespace
