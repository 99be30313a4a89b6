// SPDX-License-Identifier: Apache-2.0
// Knows: GPUs of described machines in every order, and what plans over them cost. Never knows: how
// an order is found.
#include "plan/plans.hh"

#include <algorithm>
#include <numeric>
#include <vector>

extern "C" {
#include "algo/algo.h"
#include "device/exec.h"
#include "plan/check.h"
#include "plan/cost.h"
#include "topo/graph.h"
#include "topo/ring.h"
}

namespace
{

using Order = std::vector<uint32_t>;
using Places = std::vector<tw_topo_place>;

const tw_coll kColls[] = {TW_COLL_ALL_REDUCE, TW_COLL_ALL_GATHER, TW_COLL_REDUCE_SCATTER,
                          TW_COLL_BROADCAST, TW_COLL_REDUCE};

bool serves(const tw_algo *algo, tw_coll coll) { return algo->colls >> coll & 1; }

Plan generate(const tw_algo *algo, tw_coll coll, int nranks)
{
    tw_algo_args args = {};
    args.coll = coll;
    args.nranks = nranks;
    args.only_rank = -1;
    args.channels = 1;
    tw_plan *plan = nullptr;
    EXPECT_EQ(algo->generate(&args, &plan), TWILL_OK) << tw_fail_text();
    return Plan(plan);
}

const tw_algo *find(const char *name)
{
    const tw_algo *algo;
    for (size_t i = 0; (algo = tw_algo_at(i)) != nullptr; i++)
        if (strcmp(algo->name, name) == 0)
            return algo;
    ADD_FAILURE() << "no algorithm " << name;
    return nullptr;
}

// All GPUs of a described machine.
struct Machine {
    tw_topo_graph *graph = nullptr;
    Places places;

    explicit Machine(const char *name)
    {
        EXPECT_EQ(tw_topo_synthetic(&graph, name), TWILL_OK) << tw_fail_text();
        places.resize(tw_topo_node_count(&graph->machines[0], TW_NODE_GPU));
        EXPECT_EQ(tw_topo_place_ranks(graph, TW_NODE_GPU, TW_TOPO_PACKED, 0,
                                      (uint32_t)places.size(), places.data()),
                  TWILL_OK)
            << tw_fail_text();
    }
    ~Machine() { tw_topo_graph_free(graph); }
    int nranks() const { return (int)places.size(); }

    Order ring() const
    {
        tw_topo_ring ring = {};
        EXPECT_EQ(tw_topo_ring_find(graph, places.data(), (uint32_t)places.size(), &ring), TWILL_OK)
            << tw_fail_text();
        return Order(ring.order, ring.order + ring.count);
    }

    // Prices of calls of these sizes, rank r on the place order[r], cut as twill-sim cuts them.
    std::vector<uint64_t> price(const Plan &plan, const Order &order,
                                const std::vector<uint64_t> &counts) const
    {
        Places put;
        for (uint32_t i : order)
            put.push_back(places[i]);
        tw_cost_graph from = {};
        from.graph = graph;
        from.places = put.data();
        from.nranks = nranks();
        from.inside = TW_COST_LINK_PEER;
        from.between_hosts = TW_COST_LINK_RDMA;
        tw_cost_net net = {};
        EXPECT_EQ(tw_cost_graph_open(&from, &net), TWILL_OK) << tw_fail_text();
        tw_cost_prog *prog = nullptr;
        EXPECT_EQ(tw_cost_prog_create(plan.get(), &net, &prog), TWILL_OK) << tw_fail_text();
        EXPECT_EQ(tw_cost_prog_add(prog, plan.get()), TWILL_OK) << tw_fail_text();
        tw_cost_table table;
        tw_cost_table_default(&table);
        std::vector<uint64_t> times;
        for (uint64_t count : counts) {
            struct tw_exec_shape shape = {};
            EXPECT_EQ(tw_exec_shape(plan.get(), count, 4, 4 << 20, 64 << 20, &shape), TWILL_OK);
            tw_cost_call call = {};
            call.count = count;
            call.type_bytes = 4;
            call.shape = {shape.slice_elems, shape.slices, shape.loops};
            tw_cost_price price = {};
            EXPECT_EQ(tw_cost_prog_price(prog, &table, &call, &price), TWILL_OK) << tw_fail_text();
            times.push_back(price.time_ps);
        }
        tw_cost_prog_destroy(prog);
        tw_cost_net_close(&net);
        return times;
    }
};

// What an order is for: rings, trees and direct channels over its ranks are right.
TEST(Order, PlansOverItAreProven)
{
    for (const int nranks : {4, 8}) {
        for (const char *name : {"ring", "double_tree", "direct"}) {
            const tw_algo *algo = find(name);
            ASSERT_NE(algo, nullptr);
            unsigned proven = 0;
            for (const tw_coll coll : kColls) {
                if (!serves(algo, coll))
                    continue;
                tw_check_options options = {};
                options.max_inplace_ranks = 4;
                options.seed = 1;
                tw_check_report report;
                EXPECT_EQ(tw_plan_check(generate(algo, coll, nranks).get(), &options, &report),
                          TWILL_OK)
                    << name << " " << tw_coll_name(coll) << ": " << report.text;
                proven++;
            }
            EXPECT_GT(proven, 0u) << name;
        }
    }
}

// Under ThreadSanitizer, which has nothing to find here, one order of so many.
#if defined(__SANITIZE_THREAD__)
const size_t kEach = 24;
#else
const size_t kEach = 1;
#endif

// Every order of 4 and of 8 GPUs that begins with the first, at sizes from 1 KiB to 64 MiB.
void is_priced_no_worse(const char *name, const Plan &plan, bool even)
{
    SCOPED_TRACE(name);
    const std::vector<uint64_t> counts = {256, 16 << 10, 1 << 20, 16 << 20};
    const Machine machine(name);
    const std::vector<uint64_t> chosen = machine.price(plan, machine.ring(), counts);
    Order order(machine.places.size());
    std::iota(order.begin(), order.end(), 0);
    uint64_t worst = 0;
    size_t number = 0;
    do {
        if (order.size() > 4 && number++ % kEach != 0)
            continue;
        const std::vector<uint64_t> times = machine.price(plan, order, counts);
        for (size_t i = 0; i < counts.size(); i++)
            ASSERT_LE(chosen[i], times[i]) << testing::PrintToString(order) << " is better than "
                                           << testing::PrintToString(machine.ring());
        worst = std::max(worst, times.back());
    } while (std::next_permutation(order.begin() + 1, order.end()));
    if (even)
        EXPECT_EQ(worst, chosen.back()) << "each reaches each alike";
    else
        EXPECT_GT(worst, chosen.back() + chosen.back() / 20) << "the order matters";
}

TEST(Order, OfARingIsPricedNoWorseThanAnyOther)
{
    const Plan four = generate(find("ring"), TW_COLL_ALL_REDUCE, 4);
    const Plan eight = generate(find("ring"), TW_COLL_ALL_REDUCE, 8);
    is_priced_no_worse("pcie-4gpu", four, false);
    is_priced_no_worse("nvlink-4gpu", four, true);
    is_priced_no_worse("nvswitch-8gpu", eight, true);
    is_priced_no_worse("nvpair-8gpu", eight, false);
}

TEST(Order, TreesAndDirectChannelsArePricedOverIt)
{
    for (const char *name : {"pcie-4gpu", "nvlink-4gpu", "nvswitch-8gpu", "nvpair-8gpu"}) {
        const Machine machine(name);
        for (const char *algo : {"double_tree", "direct"}) {
            const Plan plan = generate(find(algo), TW_COLL_ALL_REDUCE, machine.nranks());
            const std::vector<uint64_t> times = machine.price(plan, machine.ring(), {256, 1 << 20});
            EXPECT_GT(times[0], 0u) << name << " " << algo;
            EXPECT_GT(times[1], times[0]) << name << " " << algo;
        }
    }
}

} // namespace
