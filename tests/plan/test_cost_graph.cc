// SPDX-License-Identifier: Apache-2.0
// Knows: described machines, and what plans cost on them in comparison. Never knows: the paths.
#include "plan/plans.hh"

#include <vector>

extern "C" {
#include "base/log.h"
#include "plan/cost.h"
#include "topo/graph.h"
}

namespace
{

// What is refused is said in a log that nobody wants to see here.
class CostGraph : public testing::Test
{
  protected:
    void SetUp() override { ASSERT_EQ(tw_log_configure("error", nullptr), TWILL_OK); }
    void TearDown() override { tw_log_configure("warn", nullptr); }
};

// Ranks on a described machine.
struct Machine {
    tw_topo_graph *graph = nullptr;
    tw_cost_net net = {};

    Machine(const char *name, tw_topo_kind kind, int nranks, uint32_t per_host = 0,
            std::vector<uint32_t> pick = {})
    {
        EXPECT_EQ(tw_topo_synthetic(&graph, name), TWILL_OK) << tw_fail_text();
        uint32_t want = (uint32_t)nranks;
        for (uint32_t p : pick)
            want = p + 1 > want ? p + 1 : want;
        std::vector<tw_topo_place> places(want);
        EXPECT_EQ(tw_topo_place_ranks(graph, kind, TW_TOPO_PACKED, per_host, want, places.data()),
                  TWILL_OK)
            << tw_fail_text();
        for (size_t i = 0; i < pick.size(); i++)
            places[i] = places[pick[i]];
        tw_cost_graph from = {};
        from.graph = graph;
        from.places = places.data();
        from.nranks = nranks;
        from.inside = kind == TW_NODE_GPU ? TW_COST_LINK_PEER : TW_COST_LINK_SHM;
        from.between_hosts = TW_COST_LINK_RDMA;
        EXPECT_EQ(tw_cost_graph_open(&from, &net), TWILL_OK) << tw_fail_text();
    }
    ~Machine()
    {
        tw_cost_net_close(&net);
        tw_topo_graph_free(graph);
    }
    tw_cost_price price(const Plan &plan, uint64_t count) const
    {
        tw_cost_table table;
        tw_cost_table_default(&table);
        tw_cost_call call = {};
        call.count = count;
        call.type_bytes = 1;
        tw_cost_price price = {};
        EXPECT_EQ(tw_plan_cost(plan.get(), &net, &table, &call, &price), TWILL_OK)
            << tw_fail_text();
        return price;
    }
    std::string limit(const tw_cost_price &price) const
    {
        char text[128];
        tw_cost_limit_name(&net, &price, text, sizeof(text));
        return text;
    }
};

TEST_F(CostGraph, FartherIsDearer)
{
    Plan plan = gather_plan(2, 1);
    uint64_t near = Machine("intel-2s", TW_NODE_PU, 2).price(plan, 8).time_ps;
    uint64_t far = Machine("intel-2s", TW_NODE_PU, 2, 0, {0, 48}).price(plan, 8).time_ps;
    EXPECT_GT(far, near);
    uint64_t hosts = Machine("intel-2s:hosts=2", TW_NODE_PU, 2, 1).price(plan, 8).time_ps;
    EXPECT_GT(hosts, far);
}

TEST_F(CostGraph, RanksOfOneCpuShareItsEngine)
{
    Plan plan = gather_plan(2, 1);
    Machine one("container-1c", TW_NODE_PU, 2, 2), many("arm-64c", TW_NODE_PU, 2);
    EXPECT_EQ(one.net.nengines, 1u);
    EXPECT_EQ(many.net.nengines, 2u);
    tw_cost_price price = one.price(plan, 1 << 16);
    EXPECT_GT(price.time_ps, many.price(plan, 1 << 16).time_ps);
    EXPECT_EQ(price.limit, TW_COST_BY_ENGINE);
    EXPECT_EQ(one.limit(price), "host 0: pu 0");
}

// Two neighbours on a PCI switch and two on different ones move equal bytes; the bus is named.
TEST_F(CostGraph, SharedBusesAreNamed)
{
    Plan plan = gather_plan(4, 1);
    Machine pcie("pcie-4gpu", TW_NODE_GPU, 4), nvlink("nvswitch-8gpu", TW_NODE_GPU, 4);
    tw_cost_price slow = pcie.price(plan, 64 << 20), fast = nvlink.price(plan, 64 << 20);
    EXPECT_GT(slow.time_ps, fast.time_ps);
    EXPECT_EQ(slow.limit, TW_COST_BY_RESOURCE);
    EXPECT_NE(pcie.limit(slow).find("host 0: "), std::string::npos) << pcie.limit(slow);
}

// Sixteen ranks of a host each with a peer on another: the NICs serve them in turn.
TEST_F(CostGraph, RanksOfAHostShareItsNics)
{
    auto crossing = [](int pairs) {
        tw_build build;
        tw_build_init(&build, "cross", TW_COLL_P2P, 2 * pairs, 0, -1);
        uint8_t part = tw_build_part(&build, TW_PART_EQUAL, 1, 1);
        for (int r = 0; r < 2 * pairs; r++) {
            uint16_t lane = tw_build_lane(&build, r, 0);
            tw_plan_step step = r < pairs ? send_of(r + pairs, tw_span_one(TW_BUF_IN, part, 0))
                                          : recv_of(r - pairs, tw_span_one(TW_BUF_OUT, part, 0));
            tw_build_step(&build, r, lane, &step);
        }
        tw_plan *plan = nullptr;
        EXPECT_EQ(tw_build_finish(&build, &plan), TWILL_OK) << tw_fail_text();
        return Plan(plan);
    };
    Machine few("arm-64c:hosts=2", TW_NODE_PU, 2, 1), many("arm-64c:hosts=2", TW_NODE_PU, 32, 16);
    uint64_t one = few.price(crossing(1), 16 << 20).time_ps;
    tw_cost_price price = many.price(crossing(16), 16 << 20);
    // 16 * 16 MiB at 25 GB/s
    EXPECT_GT(price.time_ps, 10700000000u);
    EXPECT_LT(price.time_ps, 10700000000u + one);
    EXPECT_EQ(price.limit, TW_COST_BY_RESOURCE);
}

TEST_F(CostGraph, NonsenseIsRefused)
{
    tw_topo_graph *graph = nullptr;
    ASSERT_EQ(tw_topo_synthetic(&graph, "arm-64c"), TWILL_OK);
    tw_topo_place places[2] = {{0, 0}, {9, 1}};
    tw_cost_graph from = {};
    tw_cost_net net = {};
    from.graph = graph;
    from.places = places;
    from.nranks = 1;
    EXPECT_EQ(tw_cost_graph_open(&from, &net), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(tw_fail_text(), "rank 0 is placed on host 0 node 0"), nullptr);
    from.places = places + 1;
    EXPECT_EQ(tw_cost_graph_open(&from, &net), TWILL_ERR_INVALID);
    from.nranks = 0;
    EXPECT_EQ(tw_cost_graph_open(&from, &net), TWILL_ERR_INVALID);
    tw_topo_graph_free(graph);
}

} // namespace
