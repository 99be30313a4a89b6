/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which cases are run, for how long, on which communicators. Never knows: what a case does.
 *
 * TW_GPU_BUDGET=S seconds of cases (300), from number TW_GPU_FIRST on (1), or TW_GPU_CASES of them.
 * A case is the same wherever there are equally many devices. */
#include <cstdlib>
#include <map>
#include <set>

extern "C" {
#include "comm/gpu.h"
}
#include "device/reference.h"
#include "gpu/process.h"
#include "gpu/roles.h"
#include "gpu/run.h"

namespace gpu
{

namespace
{

uint64_t number(const char *variable, uint64_t otherwise)
{
    const char *value = getenv(variable);
    return value != nullptr && *value != 0 ? strtoull(value, nullptr, 0) : otherwise;
}

/* Communicators live over many cases, and are then made anew in another way. */
class Worlds
{
  public:
    World &get(const Case &c)
    {
        std::unique_ptr<World> &world = all_[{c.size, c.placement}];
        const uint64_t chance = mix(c.seed + 7);

        if (world && chance % 300 == 0) {
            world->destroy();
            world.reset();
        }
        if (!world)
            world = std::make_unique<World>(place(c.size, c.placement), chance / 300);
        if (chance % 40 == 1)
            for (auto &local : world->locals())
                local->renew_streams();
        return *world;
    }
    void destroy()
    {
        for (auto &one : all_)
            one.second->destroy();
        all_.clear();
    }

  private:
    std::map<std::pair<int, int>, std::unique_ptr<World>> all_;
};

/* What the cases had together. */
struct Covered {
    std::set<std::vector<int>> kinds, sizes;
    size_t cases = 0, calls = 0;
    double bytes = 0;

    void add(const Case &c)
    {
        kinds.insert({c.kind, c.type, c.op});
        sizes.insert({c.kind, c.type, c.op, c.size});
        cases++;
        calls += (size_t)c.rounds;
        for (int r = 0; r < c.size; r++)
            bytes += (double)(c.in_count(r) * reference::bytes(c.type)) * c.rounds;
    }
};

std::string replay(const Case &c)
{
    return format("TW_GPU_FIRST=%llu TW_GPU_CASES=1 (on %d GPUs): ", (unsigned long long)c.seed,
                  devices()) +
           text(c);
}

} // namespace

TEST(Cover, Cases)
{
    const uint64_t first = number("TW_GPU_FIRST", 1), cases = number("TW_GPU_CASES", 0);
    const double until = now_s() + (double)number("TW_GPU_BUDGET", 300);
    Limits limits;
    Worlds worlds;
    Covered covered;

    limits.placements = placements();
    for (uint64_t i = 0; cases != 0 ? i < cases : i == 0 || now_s() < until; i++) {
        const Case c = draw(first + i, limits);

        step(replay(c));
        try {
            run_case(c, &worlds.get(c));
        } catch (const std::exception &e) {
            FAIL() << "case " << i << " of this run: " << e.what() << "\n" << replay(c);
        }
        covered.add(c);
    }
    step("ending communicators");
    worlds.destroy();
    printf("cover: %zu cases, %zu calls, %.1f GB of input, %zu of 517 collective x type x op, "
           "%zu of 2585 with ranks\n",
           covered.cases, covered.calls, covered.bytes * 1e-9, covered.kinds.size(),
           covered.sizes.size());
}

/* args: ranks, first case, cases */
int role_cut(const std::vector<std::string> &args)
{
    World world(place(std::stoi(args.at(0)), 0));
    const int result =
        cover_ranks(&world, std::stoull(args.at(1)), std::stoull(args.at(2)), (size_t)1 << 20);

    if (result == 0)
        world.destroy();
    return result;
}

/* As where devices do not address each other. TW_GPU_BRIEF=1: little of it. */
TEST(Cover, ByPinnedMemory)
{
    const bool brief = getenv("TW_GPU_BRIEF") != nullptr;

    for (const int size : {2, 5}) {
        step(format("%d ranks by pinned memory", size));
        Child child({"--role", "cut", std::to_string(size), std::to_string(7000 + size),
                     brief ? "12" : "100"},
                    {{"TWILL_P2P", "0"}});
        EXPECT_EQ(child.wait(50), 0) << size << " ranks";
    }
}

/* What only moves, by copy engines as soon as it is more than lines hold, which is little here. */
TEST(Cover, ByCopyEngines)
{
    const bool brief = getenv("TW_GPU_BRIEF") != nullptr;

    for (const int size : {2, 3, 5}) {
        if (brief && size > 2)
            break;
        step(format("%d ranks by copy engines", size));
        Child child({"--role", "cut", std::to_string(size), std::to_string(8000 + size),
                     brief ? "24" : "100"},
                    {{"TWILL_COPY_ENGINE", "1K"}, {"TWILL_DEVICE_STAGING", "16M"}});
        EXPECT_EQ(child.wait(50), 0) << size << " ranks";
    }
}

/* Of two ranks, so large that they push; unless one is in place, which the other does not know, or
 * both are and it is no all_reduce. */
TEST(Cover, LargeSums)
{
    World world(place(2, 0));

    for (auto &local : world.locals()) { /* a reduce_scatter so large would take too long */
        local->comm->gpu->push_scatter_from = local->comm->gpu->push_from;
        local->comm->gpu->push_same_from = local->comm->gpu->push_from;
        local->comm->gpu->push_blocks = 1; /* the emulator has few multiprocessors */
    }
    for (Kind kind : {ALL_REDUCE, REDUCE_SCATTER})
        for (unsigned places = 0; places < 4; places++) {
            Case c;

            c.seed = 100 + places;
            c.size = 2;
            c.kind = kind;
            c.type = places == 1 ? TWILL_FLOAT32 : TWILL_BFLOAT16;
            c.count =
                ((size_t)34 << 20) / reference::bytes(c.type) / (kind == ALL_REDUCE ? 1 : 2) + 3;
            c.rounds = 2;
            c.threads = true;
            c.ranks.resize(2);
            c.ranks[0].in_place = places >= 2;
            c.ranks[1].in_place = places % 2 != 0;
            c.ranks[1].out_shift = places;
            step(text(c));
            try {
                run_case(c, &world);
            } catch (const std::exception &e) {
                FAIL() << e.what() << "\n" << text(c);
            }
        }
    world.destroy();
}

int cover_ranks(World *world, uint64_t first, uint64_t cases, size_t buffer_bytes)
{
    Limits limits;

    limits.sizes = world->size();
    limits.buffer_bytes = buffer_bytes;
    for (uint64_t seed = first; seed < first + cases; seed++) {
        const Case c = draw(seed, limits);

        step(text(c));
        try {
            run_case(c, world);
        } catch (const std::exception &e) {
            fprintf(stderr, "case %llu: %s\n%s\n", (unsigned long long)seed, e.what(),
                    text(c).c_str());
            return 1;
        }
    }
    return 0;
}

} // namespace gpu
