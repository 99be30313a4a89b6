// SPDX-License-Identifier: Apache-2.0
// Knows: built-in algorithms, the contract of src/device/exec.h. Never knows: how steps run.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>

#include "collective.h"
#include "plan/contract.hh"

extern "C" {
#include "algo/algo.h"
#include "base/status.h"
}

namespace
{

struct Draw {
    const tw_algo *algo;
    Collective what;
    WorldConfig world;
    uint32_t channels;
};

std::string describe(const Draw &draw)
{
    const Collective &what = draw.what;
    return std::string(draw.algo->name) + " " + tw_coll_name(what.coll) + " ranks " +
           std::to_string(what.size) + " root " + std::to_string(what.root) + " count " +
           std::to_string(what.count) + " " + tw_type_name(what.type) + " " +
           tw_redop_name(what.op) + " inplace " + std::to_string(what.inplace) + " channels " +
           std::to_string(draw.channels) + " fifo " + std::to_string(draw.world.fifo_bytes) +
           " scratch " + std::to_string(draw.world.scratch_bytes) + " isa " +
           tw_isa_name(draw.world.isa) + " seed " + std::to_string(what.seed);
}

PlanPtr generate(const Draw &draw)
{
    const tw_algo_args args = {
        draw.what.coll, draw.what.size, draw.what.root, -1, draw.channels, 0};
    tw_plan *plan = nullptr;
    EXPECT_EQ(draw.algo->generate(&args, &plan), TWILL_OK) << describe(draw);
    return PlanPtr(plan);
}

template <class T, size_t N> T pick(const T (&from)[N], std::mt19937_64 &rng)
{
    return from[rng() % N];
}

// Counts where something changes: none, one, around the cells, around slices and loops, many.
size_t draw_count(const tw_plan *plan, const Draw &draw, std::mt19937_64 &rng)
{
    const size_t n = draw.what.size;
    if (rng() % 2 == 0) {
        const size_t counts[] = {0, 1, 2, n - 1, n, n + 1, 7 * n + 3, 1000, 4096};
        return pick(counts, rng);
    }
    struct tw_exec_shape shape;
    if (tw_exec_shape(plan, 1 << 22, tw_type_bytes(draw.what.type), draw.world.fifo_bytes,
                      draw.world.scratch_bytes, &shape) != TWILL_OK) {
        return 1;
    }
    const size_t cells = plan->nparts > 0 ? plan->parts[0].per : 1;
    const size_t slices = 1 + rng() % (3 * shape.slices);
    const size_t count = shape.slice_elems * slices * cells + rng() % 3 - 1;
    const size_t most = 100000 / n / tw_type_bytes(draw.what.type);
    return count < most ? count : most;
}

WorldConfig draw_world(std::mt19937_64 &rng, int size)
{
    static const size_t fifos[] = {2 << 10, 5056, 64 << 10, 256 << 10};
    static const size_t scratches[] = {40 << 10, 64 << 10, 200 << 10};
    WorldConfig config = {size};
    tw_isa best;
    EXPECT_EQ(tw_isa_select(nullptr, &best), TWILL_OK);
    config.fifo_bytes = pick(fifos, rng);
    config.scratch_bytes = pick(scratches, rng);
    config.isa = static_cast<tw_isa>(rng() % (best + 1));
    return config;
}

Draw draw_case(const tw_algo *algo, tw_coll coll, std::mt19937_64 &rng, const WorldConfig &world)
{
    Draw draw = {algo, {}, world, 1};
    draw.what.coll = coll;
    draw.what.size = world.size;
    draw.what.root = 0;
    if (contract::rooted(coll)) {
        draw.what.root = rng() % world.size;
    }
    draw.what.type = (twill_type_t)(rng() % (TWILL_FLOAT8E5M2 + 1));
    do {
        draw.what.op = (twill_redop_t)(rng() % TW_REDOP_COUNT);
    } while (tw_reduce_find(draw.what.type, draw.what.op, world.isa) == nullptr);
    draw.what.inplace = rng() % 4 == 0 ? ~uint64_t{0} : rng() & rng();
    draw.what.seed = rng() % 1000000;
    draw.channels = 1 + rng() % 3;
    return draw;
}

// Two calls of different counts, back to back.
std::string run_draw(World &world, Draw &draw, std::mt19937_64 &rng, const Driver &driver)
{
    PlanPtr plan = generate(draw);
    struct tw_exec_shape shape;
    if (plan != nullptr && draw.channels > 1 &&
        tw_exec_shape(plan.get(), 1000, tw_type_bytes(draw.what.type), draw.world.fifo_bytes,
                      draw.world.scratch_bytes, &shape) == TWILL_ERR_NOMEM) {
        draw.channels = 1; // the FIFO is too small for so many
        plan = generate(draw);
    }
    for (int i = 0; plan != nullptr && i < 2; i++) {
        draw.what.count = draw_count(plan.get(), draw, rng);
        draw.what.pairs = draw_pairs(draw.what, draw.what.count, rng);
        draw.what.ordered = plan->deterministic;
        draw.what.seed++;
        const std::string failure = run_collective(world, plan.get(), draw.what, driver);
        if (!failure.empty()) {
            return failure;
        }
    }
    return plan != nullptr ? "" : "no plan";
}

template <class F> void for_each_algo(F fn)
{
    const tw_algo *algo;
    for (size_t i = 0; (algo = tw_algo_at(i)) != nullptr; i++) {
        for (int coll = 0; coll < TW_COLL_COUNT; coll++) {
            if (algo->colls >> coll & 1) {
                fn(algo, static_cast<tw_coll>(coll));
            }
        }
    }
}

// A drawn part of all algorithms, one after the other, on the same executors.
void sweep(const WorldConfig &config, std::mt19937_64 &rng, const Driver &driver)
{
    const size_t sample = 24;
    size_t all = 0;
    World world(config);
    for_each_algo([&](const tw_algo *, tw_coll) { all++; });
    for_each_algo([&](const tw_algo *algo, tw_coll coll) {
        if (rng() % all >= sample) {
            return;
        }
        Draw draw = draw_case(algo, coll, rng, config);
        const std::string failure = run_draw(world, draw, rng, driver);
        ASSERT_EQ(failure, "") << describe(draw);
    });
}

Driver random_order(std::mt19937_64 &rng)
{
    return [&rng](const std::vector<tw_exec *> &execs) { return drive(execs, rng); };
}

TEST(Exec, EveryAlgorithm)
{
    std::mt19937_64 rng(20261129);
    for (unsigned i = 0; i < rounds(24, 2) && !::testing::Test::HasFailure(); i++) {
        sweep(draw_world(rng, 1 + i % 9), rng, random_order(rng));
    }
}

TEST(Exec, ManyRanks)
{
    std::mt19937_64 rng(64);
    for (const int size : {rounds(36, 2) < 10 ? 10 : 31, rounds(1) > 1 ? 64 : 13}) {
        WorldConfig config = {size};
        config.fifo_bytes = 4 << 10;
        config.scratch_bytes = 512 << 10;
        sweep(config, rng, random_order(rng));
    }
}

TEST(Exec, RanksAsThreads)
{
    std::mt19937_64 rng(3);
    for (unsigned i = 0; i < rounds(8, 4) && !::testing::Test::HasFailure(); i++) {
        sweep(draw_world(rng, 2 + i % 4), rng, drive_threads);
    }
}

// Half of the ranks start call A on one communicator before call B on the other, the rest after.
TEST(Exec, OppositeOrder)
{
    std::mt19937_64 rng(9);
    WorldConfig config = {4};
    config.fifo_bytes = 2 << 10;
    World worlds[2] = {World(config), World(config)};
    for (const char *name : {"ring", "two_shot", "direct_put"}) {
        Draw draw = {tw_algo_find(name, TW_COLL_ALL_REDUCE), {}, config, 1};
        draw.what.size = 4;
        draw.what.count = 20000;
        const PlanPtr plan = generate(draw);
        Buffers buffers[2] = {Buffers(draw.what), Buffers(draw.what)};
        std::vector<tw_exec *> execs;
        for (int turn = 0; turn < 2; turn++) {
            for (int r = 0; r < 4; r++) {
                const int w = r % 2 == turn;
                const tw_exec_call call =
                    make_call(worlds[w], plan.get(), draw.what, buffers[w], r);
                ASSERT_EQ(tw_exec_start(worlds[w].execs[r], &call), TWILL_OK);
                execs.push_back(worlds[w].execs[r]);
                bool advanced;
                ASSERT_GE(tw_exec_progress(execs.back(), &advanced), TWILL_OK);
            }
        }
        ASSERT_EQ(drive(execs, rng), "") << name;
        EXPECT_EQ(buffers[0].check(), "") << name;
        EXPECT_EQ(buffers[1].check(), "") << name;
    }
}

// A rank that has not called: the others stop, and say for whom.
TEST(Exec, WaitNamesTheLateRank)
{
    std::mt19937_64 rng(5);
    World world({3});
    Draw draw = {tw_algo_find("direct", TW_COLL_ALL_REDUCE), {}, world.config, 1};
    draw.what.size = 3;
    draw.what.count = 100;
    const PlanPtr plan = generate(draw);
    Buffers buffers(draw.what);
    for (const int r : {0, 1}) {
        const tw_exec_call call = make_call(world, plan.get(), draw.what, buffers, r);
        ASSERT_EQ(tw_exec_start(world.execs[r], &call), TWILL_OK);
    }
    EXPECT_EQ(drive({world.execs[0], world.execs[1]}, rng).substr(0, 5), "hang:");
    for (const int r : {0, 1}) {
        struct tw_exec_wait wait;
        tw_exec_where(world.execs[r], &wait);
        EXPECT_EQ(wait.phase, TW_PHASE_RECV);
        EXPECT_EQ(wait.peer, 2);
        EXPECT_EQ(wait.loop, 0u);
    }
    const tw_exec_call call = make_call(world, plan.get(), draw.what, buffers, 2);
    ASSERT_EQ(tw_exec_start(world.execs[2], &call), TWILL_OK);
    EXPECT_EQ(drive(world.execs, rng), "");
    EXPECT_EQ(buffers.check(), "");
    struct tw_exec_wait wait;
    tw_exec_where(world.execs[0], &wait);
    EXPECT_EQ(wait.phase, TW_PHASE_DONE);
    EXPECT_EQ(wait.peer, TW_NO_RANK);
}

} // namespace
