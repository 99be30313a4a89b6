/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what communicators make of the machine between their devices: the order of rings, costs,
 * and which calls go around. Never knows: how paths are found, what kernels do. */
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <numeric>

#include "gpu_ranks.h"
#include "topo_file.h"

extern "C" {
#include "comm/gpu_order.h"
#include "comm/ops.h"
}

namespace
{

constexpr size_t MIB = (size_t)1 << 20;
using Params = std::vector<std::pair<std::string, std::string>>;

class GpuOrder : public GpuRanks
{
  protected:
    void TearDown() override
    {
        GpuRanks::TearDown();
        if (!costs_.empty())
            (void)remove(costs_.c_str());
    }
    /* On the devices of a described machine. */
    void on(const char *machine, const std::vector<int> &devices, Params params = {},
            const struct twill_config *config = nullptr)
    {
        destroy();
        file_ = std::make_unique<TopoFile>(TopoFile::text_of(machine));
        params.emplace_back("TOPO_FILE", file_->path());
        make(devices, params, config);
    }
    /* Plans are as fast as the wire. */
    std::pair<std::string, std::string> fast_plans()
    {
        costs_ = "/tmp/twill-gpu-order-" + std::to_string(getpid());
        std::ofstream(costs_) << "twill-cost 1\ncuda.plans.rate 1000000\ncuda.plans.block 100000\n";
        return {"COST_FILE", costs_};
    }
    static std::vector<int> first(int count)
    {
        std::vector<int> devices((size_t)count);
        std::iota(devices.begin(), devices.end(), 0);
        return devices;
    }
    std::vector<int> order(int rank)
    {
        const struct tw_gpu_between &between = gpu(rank)->between;
        return {between.order, between.order + comms_.size()};
    }
    void expect_order(const std::vector<int> &expected)
    {
        for (size_t r = 0; r < comms_.size(); r++) {
            EXPECT_EQ(gpu((int)r)->between.known, 1);
            EXPECT_EQ(order((int)r), expected) << "rank " << r;
        }
    }
    /* Ranks go by what they went by before there was a graph. */
    void expect_as_without()
    {
        for (size_t r = 0; r < comms_.size(); r++) {
            const struct tw_cost_table *costs = tw_plans_costs(comms_[r]->ops->plans);
            EXPECT_EQ(memcmp(&gpu((int)r)->costs, costs, sizeof *costs), 0) << "rank " << r;
            EXPECT_FALSE(tw_gpu_rings(gpu((int)r)));
            EXPECT_EQ(gpu((int)r)->binder, nullptr);
            EXPECT_EQ(gpu((int)r)->base.layout.plan, 0u);
        }
    }
    uint64_t rate(enum tw_cost_proto proto)
    {
        return gpu(0)->costs.value[tw_cost_proto_index(proto, TW_COST_PROTO_RATE)];
    }
    /* Alike on all ranks, or it fails. */
    struct twill_choice choice(const std::string &coll, size_t count,
                               twill_type_t type = TWILL_FLOAT32, int root = 0)
    {
        struct twill_choice first = TWILL_CHOICE_INIT;
        for (size_t r = 0; r < comms_.size(); r++) {
            struct twill_choice own = TWILL_CHOICE_INIT;
            EXPECT_EQ(twill_comm_choice(comms_[r], coll.c_str(), count, type, root, &own), TWILL_OK)
                << twill_last_error(comms_[r]);
            first = r == 0 ? own : first;
            EXPECT_STREQ(own.algo, first.algo);
            EXPECT_STREQ(own.proto, first.proto);
            EXPECT_EQ(own.channels, first.channels);
            EXPECT_EQ(own.predicted_us, first.predicted_us);
        }
        return first;
    }
    std::string algo(const std::string &coll, size_t count, twill_type_t type = TWILL_FLOAT32,
                     int root = 0)
    {
        return choice(coll, count, type, root).algo;
    }
    /* To whom each rank's first lane sends, in the plan that a call runs. */
    std::vector<int> next_of(enum tw_coll coll, size_t count, int root = 0)
    {
        std::vector<int> next;
        for (size_t r = 0; r < comms_.size(); r++) {
            struct tw_call_info info = {};
            info.coll = coll;
            info.count = count;
            info.type = TWILL_FLOAT32;
            info.root = root;
            const struct tw_plan *plan = nullptr;
            uint64_t hash = 0;
            EXPECT_EQ(tw_gpu_plan_get(gpu((int)r), &info, &plan, &hash), TWILL_OK);
            const struct tw_plan_lane &lane = plan->ranks[r].lanes[0];
            int to = TW_NO_RANK;
            for (uint32_t i = 0; i < lane.nsteps; i++)
                to = lane.steps[i].to == TW_NO_RANK ? to : lane.steps[i].to;
            next.push_back(to);
        }
        return next;
    }
    /* Of all ranks in one group; which kernels they were. */
    std::vector<enum tw_gk_kernel> sum_all(size_t count)
    {
        const size_t before = fake::launches().size();
        EXPECT_EQ(twill_group_start(), TWILL_OK);
        for (size_t r = 0; r < comms_.size(); r++)
            EXPECT_EQ(sum((int)r, nullptr, count), TWILL_OK) << twill_last_error(comms_[r]);
        EXPECT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
        std::vector<enum tw_gk_kernel> kernels;
        const auto launches = fake::launches();
        for (size_t i = before; i < launches.size(); i++)
            kernels.push_back(launches[i].kernel);
        return kernels;
    }

  private:
    std::unique_ptr<TopoFile> file_;
    std::string costs_;
};

/* Two rows of two pairs by NVLink: into a pair and out of it, then to the next. */
const std::vector<int> PAIRS = {0, 1, 3, 4, 6, 7, 5, 2};

std::vector<int> next_in(const std::vector<int> &order)
{
    std::vector<int> next(order.size());
    for (size_t i = 0; i < order.size(); i++)
        next[(size_t)order[i]] = order[(i + 1) % order.size()];
    return next;
}

/* ---- what is found -------------------------------------------------------------------------- */

TEST_F(GpuOrder, AlikeDevicesGoAsWithoutAGraph)
{
    on("nvswitch-8gpu", first(8));
    expect_order(first(8));
    EXPECT_EQ(gpu(0)->between.uneven, 0);
    expect_as_without();
    on("nvlink-4gpu", first(4));
    expect_order(first(4));
    EXPECT_EQ(gpu(0)->between.uneven, 0);
    expect_as_without();
}

TEST_F(GpuOrder, TheOrderIsTheRings)
{
    on("nvpair-8gpu", first(8));
    expect_order(PAIRS);
    EXPECT_EQ(gpu(0)->between.uneven, 1);
    EXPECT_EQ(gpu(0)->between.ring_bytes_per_s, 50000000000u);
    EXPECT_EQ(gpu(0)->between.all_bytes_per_s, 35000000000u);
}

TEST_F(GpuOrder, DevicesAreFoundByName)
{
    const std::vector<int> named = {2, 0, 1, 3, 4, 6, 5, 7};
    for (int d = 0; d < 8; d++)
        fake::name(d, "gpu" + std::to_string(named[(size_t)d]));
    on("nvpair-8gpu", first(8));
    /* the same pairs, by other names: who stands on a GPU's neighbour is the neighbour */
    const std::vector<int> around = order(0);
    std::vector<int> gpus;
    for (int rank : around)
        gpus.push_back(named[(size_t)rank]);
    for (size_t i = 0; i < gpus.size(); i++)
        if (gpus[i] == 0) {
            const int next = gpus[(i + 1) % 8], prev = gpus[(i + 7) % 8];
            EXPECT_TRUE(next == 2 || prev == 2) << next << " " << prev;
        }
    EXPECT_EQ(gpu(0)->between.ring_bytes_per_s, 50000000000u);
}

TEST_F(GpuOrder, RanksOfADeviceStandTogether)
{
    on("nvpair-8gpu", {0, 1, 2, 3, 0, 1, 2, 3});
    const std::vector<int> around = order(0);
    for (size_t i = 0; i < 8; i += 2)
        EXPECT_EQ(around[i] % 4, around[i + 1] % 4) << i;
    for (size_t r = 1; r < 8; r++)
        EXPECT_EQ(order((int)r), around);
}

TEST_F(GpuOrder, WhatTheGraphDoesNotHaveIsNotKnown)
{
    on("pcie-4gpu", first(5));
    EXPECT_EQ(gpu(0)->between.known, 0);
    expect_as_without();
    destroy();
    make(first(4)); /* devices without names */
    EXPECT_EQ(gpu(0)->between.known, 0);
    expect_as_without();
    destroy();
    for (int d = 0; d < 4; d++)
        fake::name(d, "fffe:00:0" + std::to_string(d) + ".0");
    make(first(4)); /* this host has none of them */
    EXPECT_EQ(gpu(0)->between.known, 0);
    expect_as_without();
}

TEST_F(GpuOrder, AFileThatIsNoneIsAnError)
{
    const TopoFile bad("nonsense");
    set_params({{"TOPO_FILE", bad.path()}});
    std::vector<twill_comm_t> comms(3);
    const std::vector<int> devices = first(3);
    EXPECT_EQ(twill_comm_init_all(comms.data(), 3, devices.data(), nullptr), TWILL_ERR_INVALID);
    EXPECT_NE(std::string(twill_last_error(nullptr)).find("TWILL_TOPO_FILE"), std::string::npos)
        << twill_last_error(nullptr);
    /* of two devices nothing is asked */
    make({0, 1}, {{"TOPO_FILE", bad.path()}});
    EXPECT_EQ(gpu(0)->between.known, 0);
    destroy();
    make({0, 1, 0, 1}, {{"TOPO_FILE", bad.path()}});
    EXPECT_EQ(gpu(0)->between.known, 0);
    expect_as_without();
}

/* ---- plans that are asked for --------------------------------------------------------------- */

TEST_F(GpuOrder, PlansThatAreAskedForGoByIt)
{
    on("nvpair-8gpu", first(8), {{"ALGO", "ring"}, {"CHECK_PLANS", "1"}});
    for (enum tw_coll coll : {TW_COLL_ALL_REDUCE, TW_COLL_ALL_GATHER, TW_COLL_REDUCE_SCATTER})
        EXPECT_EQ(next_of(coll, 64), next_in(PAIRS)) << tw_coll_name(coll);
    /* a chain ends before its root, wherever that stands */
    for (int root = 0; root < 8; root++) {
        std::vector<int> chain = next_in(PAIRS);
        std::replace(chain.begin(), chain.end(), root, TW_NO_RANK);
        EXPECT_EQ(next_of(TW_COLL_BROADCAST, 64, root), chain) << root;
    }
    EXPECT_EQ(sum_all(64), std::vector<enum tw_gk_kernel>(8, TW_GK_PLAN));
    EXPECT_EQ(algo("all_reduce", 64), "ring");
    EXPECT_EQ(choice("all_reduce", 64).predicted_us, 0);
}

TEST_F(GpuOrder, SumsInTheDefinedOrderStay)
{
    struct twill_config config = TWILL_CONFIG_INIT;
    config.deterministic = 1;
    on("nvpair-8gpu", first(8), {{"ALGO", "all_reduce=ordered_tree"}}, &config);
    const std::vector<int> with = next_of(TW_COLL_ALL_REDUCE, 64);
    destroy();
    make(first(8), {{"ALGO", "all_reduce=ordered_tree"}}, &config);
    EXPECT_EQ(gpu(0)->between.known, 0);
    EXPECT_EQ(with, next_of(TW_COLL_ALL_REDUCE, 64));
}

/* ---- the choice ----------------------------------------------------------------------------- */

TEST_F(GpuOrder, KernelsAreNoFasterThanWhatIsBetween)
{
    on("pcie-4gpu", first(4));
    EXPECT_EQ(gpu(0)->between.uneven, 1);
    EXPECT_EQ(gpu(0)->between.all_bytes_per_s, 18750000000u);
    EXPECT_EQ(rate(TW_COST_PROTO_READS), 18750u);
    EXPECT_EQ(rate(TW_COST_PROTO_WRITES), 18750u);
    EXPECT_EQ(rate(TW_COST_PROTO_COPIES), 18750u);
    EXPECT_EQ(rate(TW_COST_PROTO_RINGS), 18750u * 7 / 8);
    EXPECT_EQ(rate(TW_COST_PROTO_LINES), 18750u / 2);
    EXPECT_EQ(rate(TW_COST_PROTO_PLANS), 16000u) << "the interpreter's own";
    EXPECT_EQ(algo("all_reduce", 64 * MIB), "two_shot_get") << "which is slower than reads";
}

TEST_F(GpuOrder, LargeCallsGoAroundWhereThatIsFaster)
{
    on("pcie-4gpu", first(4), {fast_plans()});
    EXPECT_EQ(rate(TW_COST_PROTO_PLANS), 25000u);
    for (const char *coll : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"}) {
        EXPECT_EQ(algo(coll, 64 * MIB), "ring") << coll;
        EXPECT_NE(algo(coll, 1024), "ring") << coll;
        EXPECT_NE(algo(coll, 64 * MIB, TWILL_BFLOAT16), "ring") << coll;
        EXPECT_EQ(algo(coll, 64 * MIB, TWILL_INT64), "ring") << coll;
    }
    EXPECT_EQ(algo("broadcast", 64 * MIB, TWILL_FLOAT32, 3), "ring");
    for (const char *coll : {"all_to_all", "gather", "scatter"})
        EXPECT_NE(algo(coll, 64 * MIB), "ring") << coll;
    EXPECT_EQ(sum_all(MIB / 4), std::vector<enum tw_gk_kernel>(4, TW_GK_DIRECT_ALL));
    EXPECT_EQ(sum_all(8 * MIB), std::vector<enum tw_gk_kernel>(4, TW_GK_PLAN));
    const struct twill_choice around = choice("all_reduce", 64 * MIB);
    EXPECT_EQ(around.channels, 16);
    /* 1.5 times 256 MiB at 25 GB/s, and six rounds */
    EXPECT_NEAR(around.predicted_us, 1.5 * 256 * MIB / 25000 + 60, 1);
}

TEST_F(GpuOrder, TheBorderIsWherePricesMeet)
{
    on("pcie-4gpu", first(4), {fast_plans()});
    for (enum tw_coll coll : {TW_COLL_ALL_REDUCE, TW_COLL_ALL_GATHER}) {
        const size_t from = gpu(0)->ring_from[coll] / 4;
        ASSERT_GT(from, 0u);
        const struct twill_choice below = choice(tw_coll_name(coll), from - 1),
                                  at = choice(tw_coll_name(coll), from + 1);
        EXPECT_STRNE(below.algo, "ring");
        EXPECT_STREQ(at.algo, "ring");
        EXPECT_NEAR(below.predicted_us, at.predicted_us, 0.01 * at.predicted_us);
    }
}

TEST_F(GpuOrder, WhatIsNotToGoAroundDoesNot)
{
    on("pcie-4gpu", first(4), {fast_plans(), {"ALGO", "^ring"}});
    EXPECT_NE(algo("all_reduce", 64 * MIB), "ring");
    on("pcie-4gpu", first(4), {fast_plans(), {"ALGO", "all_reduce=direct"}});
    EXPECT_EQ(algo("all_reduce", 64 * MIB), "direct");
    EXPECT_EQ(algo("all_gather", 64 * MIB), "ring");
    on("pcie-4gpu", first(4), {fast_plans(), {"P2P", "0"}});
    EXPECT_NE(algo("all_reduce", 64 * MIB), "ring");
    on("pcie-4gpu", first(4), {fast_plans(), {"COPY_ENGINE", "prefer"}});
    EXPECT_EQ(algo("all_reduce", 64 * MIB), "ring");
    EXPECT_EQ(choice("all_gather", 64 * MIB).proto, std::string("copy"));
    on("nvswitch-8gpu", first(8), {fast_plans()});
    expect_as_without();
    struct twill_config config = TWILL_CONFIG_INIT;
    config.deterministic = 1;
    on("pcie-4gpu", first(4), {fast_plans()}, &config);
    EXPECT_EQ(algo("all_reduce", 64 * MIB), "two_shot_get");
    EXPECT_EQ(algo("all_gather", 64 * MIB), "ring");
}

TEST_F(GpuOrder, NothingIsTakenByTheFirstCall)
{
    on("pcie-4gpu", first(4), {fast_plans()});
    std::vector<char *> at;
    for (int r = 0; r < 4; r++)
        at.push_back(buffer(r, 64 * MIB));
    fake::full = true;
    EXPECT_EQ(twill_group_start(), TWILL_OK);
    for (int r = 0; r < 4; r++)
        EXPECT_EQ(twill_broadcast(at[(size_t)r], at[(size_t)r], 16 * MIB, TWILL_FLOAT32, 2,
                                  comms_[(size_t)r], nullptr),
                  TWILL_OK);
    EXPECT_EQ(twill_group_end(), TWILL_OK) << twill_last_error(nullptr);
    fake::full = false;
    EXPECT_EQ(fake::launches().back().kernel, TW_GK_PLAN);
}

TEST_F(GpuOrder, WhereRoomIsShortNobodyGoesAround)
{
    on("pcie-4gpu", first(4), {fast_plans(), {"DEVICE_STAGING", "900K"}});
    EXPECT_EQ(gpu(0)->base.layout.plan, 0u);
    EXPECT_FALSE(tw_gpu_rings(gpu(0)));
    EXPECT_EQ(algo("all_reduce", 64 * MIB), "two_shot_get");
}

TEST_F(GpuOrder, SimulationSaysTheSame)
{
    on("pcie-4gpu", first(4), {fast_plans()});
    struct twill_simulation simulation = TWILL_SIMULATION_INIT;
    char *at = buffer(0, 64 * MIB);
    EXPECT_EQ(twill_group_start(), TWILL_OK);
    EXPECT_EQ(twill_all_reduce(at, at, 16 * MIB, TWILL_FLOAT32, TWILL_SUM, comms_[0], nullptr),
              TWILL_OK);
    EXPECT_EQ(twill_group_simulate_end(&simulation), TWILL_OK) << twill_last_error(nullptr);
    EXPECT_DOUBLE_EQ(simulation.predicted_us, choice("all_reduce", 16 * MIB).predicted_us);
}

TEST_F(GpuOrder, PartsOfACommunicatorLookForThemselves)
{
    on("nvpair-8gpu", first(8), {fast_plans()});
    EXPECT_EQ(algo("all_reduce", 64 * MIB), "ring");
    const std::vector<twill_comm_t> made = halves();
    for (twill_comm_t comm : made) {
        EXPECT_EQ(comm->gpu->between.known, 1);
        EXPECT_EQ(comm->gpu->between.uneven, 1);
    }
    for (twill_comm_t comm : made)
        EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
}

} // namespace
