/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls on four and on eight devices whose ring is not in the order of their numbers, and
 * that what goes around it is right. Never knows: how an order is found. */
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <set>

extern "C" {
#include "comm/gpu.h"
}

#include "comm/topo_file.h"
#include "device/reference.h"
#include "gpu/process.h"
#include "gpu/run.h"

namespace emu
{

using namespace gpu;

namespace
{

const std::set<Kind> SERVED = {ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER};

/* Eight GPUs, joined in pairs on two packages. Where devices are four they are two of these pairs,
 * one of each package, and stand there by their names: 0 and 2, 1 and 3. */
std::string topology(const char *devices)
{
    std::string text = TopoFile::text_of("nvpair-8gpu");

    for (int d = 0; d < 4 && strcmp(devices, "4") == 0; d++) {
        static const char *const gpus[] = {"gpu0", "gpu4", "gpu2", "gpu6"};
        const std::string name = std::string("name=\"") + gpus[d] + "\"";
        const size_t at = text.find(name);

        if (at == std::string::npos)
            abort();
        text.replace(at, name.size(), format("name=\"e000:%02x:00.0\"", (unsigned)d));
    }
    return text;
}

/* In a process of its own: parameters are read once. */
void in_child(const char *test, const char *devices, const std::string &topology, const Env &more)
{
    const TopoFile file(topology);
    Env env = {{"TWILL_TOPO_FILE", file.path()}, {"TW_EMU_DEVICES", devices}};

    env.insert(env.end(), more.begin(), more.end());
    Child child({std::string("--gtest_filter=Around.") + test}, env);
    EXPECT_EQ(child.wait(50), 0) << devices << " devices";
}

std::vector<int> each_device()
{
    std::vector<int> all;

    for (int d = 0; d < devices(); d++)
        all.push_back(d);
    return all;
}

void expect_order(World *world)
{
    const std::vector<int> eight = {0, 1, 3, 4, 6, 7, 5, 2}, four = {0, 1, 3, 2};
    const std::vector<int> &order = world->size() == 8 ? eight : four;

    for (auto &local : world->locals()) {
        const struct tw_gpu_between &between = local->comm->gpu->between;

        ASSERT_EQ(between.known, 1);
        EXPECT_EQ(std::vector<int>(between.order, between.order + world->size()), order);
    }
}

/* Whatever order elements are added in, there is one result. */
bool any_order(const Case &c)
{
    return !reduces(c.kind) || c.op == TWILL_MIN || c.op == TWILL_MAX ||
           !reference::is_float(c.type);
}

void run_one(const Case &c, World *world)
{
    step(text(c));
    try {
        run_case(c, world);
    } catch (const std::exception &e) {
        FAIL() << e.what() << "\n" << text(c);
    }
}

/* Every collective with each root, and what chance brings of those that the ring serves. */
void run_all(World *world, bool wide, uint64_t drawn)
{
    Limits limits;
    uint64_t run = 0;

    for (const Kind kind : SERVED)
        for (int root = 0; root < (has_root(kind) ? world->size() : 1); root++)
            for (const size_t count : {(size_t)9, (size_t)2500}) {
                Case c;

                c.seed = count * 64 + (size_t)root;
                c.size = world->size();
                c.kind = kind;
                c.type = TWILL_INT32;
                c.count = count;
                c.root = root;
                c.rounds = 2;
                c.how = root % 2 != 0 ? GRAPH : PLAIN;
                c.ranks.resize((size_t)c.size);
                for (int r = 0; r < c.size; r++)
                    c.ranks[(size_t)r].in_place = (r + root) % 3 == 0;
                run_one(c, world);
                if (::testing::Test::HasFatalFailure())
                    return;
            }
    limits.sizes = world->size();
    limits.buffer_bytes = (size_t)256 << 10;
    limits.line_bytes = 4096;
    limits.piece_bytes = 6144;
    for (uint64_t i = 0; run < drawn && i < 400 * drawn; i++) {
        const Case c = draw(977 + i, limits);

        if (SERVED.count(c.kind) == 0 || !any_order(c) || (wide && reference::bytes(c.type) < 4))
            continue;
        run_one(c, world);
        if (::testing::Test::HasFatalFailure())
            return;
        run++;
    }
    EXPECT_EQ(run, drawn);
}

} // namespace

TEST(Around, PlansThatAreAskedFor)
{
    if (getenv("TWILL_TOPO_FILE") == nullptr) {
        for (const char *algo : {"ring", "double_tree", "knomial"})
            in_child("PlansThatAreAskedFor", "4", topology("4"),
                     {{"TWILL_ALGO", algo}, {"TWILL_CHECK_PLANS", "1"}});
        in_child("PlansThatAreAskedFor", "8", topology("8"), {{"TWILL_ALGO", "ring"}});
        return;
    }
    World world(each_device());

    expect_order(&world);
    run_all(&world, false, 8);
    world.destroy();
}

/* Where what lies between devices says so. As if it did of small calls too. */
TEST(Around, CallsForWhichItIsFaster)
{
    if (getenv("TWILL_TOPO_FILE") == nullptr) {
        const TopoFile costs("twill-cost 1\ncuda.plans.rate 1000000\ncuda.plans.block 100000\n");

        /* of four in pairs all at once are faster */
        in_child("CallsForWhichItIsFaster", "4", TopoFile::text_of("pcie-4gpu"),
                 {{"TWILL_COST_FILE", costs.path()}});
        in_child("CallsForWhichItIsFaster", "8", topology("8"),
                 {{"TWILL_COST_FILE", costs.path()}});
        return;
    }
    World world(each_device());

    if (world.size() == 8)
        expect_order(&world);
    for (auto &local : world.locals())
        for (uint64_t &from : local->comm->gpu->ring_from)
            from = from > 0 ? 1 : 0;
    for (auto &local : world.locals())
        for (const char *coll :
             {"all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather"}) {
            struct twill_choice choice = TWILL_CHOICE_INIT;

            TWILL(twill_comm_choice(local->comm, coll, 100, TWILL_FLOAT32, 0, &choice),
                  local->comm);
            EXPECT_STREQ(choice.algo, "ring") << coll;
            EXPECT_EQ(choice.channels, 4) << "multiprocessors of a device here";
        }
    run_all(&world, true, 8);
    world.destroy();
}

} // namespace emu
