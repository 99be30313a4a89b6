/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: plans that TWILL_ALGO asks for, on devices: what they compute, and that the host computes
 * the same by them.
 * Never knows: how a plan is run. */
#include <cstring>

extern "C" {
#include "algo/algo.h"
}

#include "device/reference.h"
#include "gpu/process.h"
#include "gpu/roles.h"
#include "gpu/run.h"

namespace gpu
{

namespace
{

const enum tw_coll colls[KINDS] = {
    TW_COLL_ALL_REDUCE,       TW_COLL_REDUCE,       TW_COLL_BROADCAST,    TW_COLL_REDUCE_SCATTER,
    TW_COLL_ALL_GATHER,       TW_COLL_ALL_TO_ALL,   TW_COLL_GATHER,       TW_COLL_SCATTER,
    TW_COLL_REDUCE_SCATTER_V, TW_COLL_ALL_GATHER_V, TW_COLL_ALL_TO_ALL_V, TW_COLL_GATHER_V,
    TW_COLL_SCATTER_V,        TW_COLL_BARRIER};

const int FLOATS[] = {TWILL_FLOAT16,  TWILL_FLOAT32,    TWILL_FLOAT64,
                      TWILL_BFLOAT16, TWILL_FLOAT8E4M3, TWILL_FLOAT8E5M2};

/* Whether the result is one value whatever order the ranks' elements are added in. */
bool any_order(const Case &c)
{
    const bool picks = c.op == TWILL_MIN || c.op == TWILL_MAX;

    return !reduces(c.kind) || picks || !reference::is_float(c.type);
}

/* ---- in the process that TWILL_ALGO is said to ------------------------------------------------
 */

struct Both {
    std::vector<twill_comm_t> host, device;
    std::vector<int> devices;
};

void init(std::vector<twill_comm_t> *comms, const std::vector<int> *on)
{
    struct twill_config config = TWILL_CONFIG_INIT;

    TWILL(twill_comm_init_all(comms->data(), (int)comms->size(),
                              on != nullptr ? on->data() : nullptr, &config),
          nullptr);
}

/* A sum of floats, in place, by the host's interpreter and by the device's. */
void compare_sums(const Both &world, Kind kind, twill_type_t type, int op, size_t count,
                  Random *random)
{
    const int size = (int)world.host.size();
    const size_t elem = reference::bytes(type),
                 all = count * (kind == ALL_REDUCE ? 1 : (size_t)size);
    std::vector<Bytes> host, found;
    std::vector<std::unique_ptr<Memory>> memory;

    for (int r = 0; r < size; r++) {
        host.push_back(draw_elements(random, type, TAME, all));
        found.push_back(host.back());
        memory.push_back(std::make_unique<Memory>(world.devices[(size_t)r], all * elem + 1));
        to_device(memory.back()->get(), host.back().data(), all * elem);
    }
    const auto run = [&](int r, char *at, twill_comm_t comm) {
        if (kind == ALL_REDUCE)
            TWILL(twill_all_reduce(at, at, count, type, (twill_redop_t)op, comm, nullptr), comm);
        else
            TWILL(twill_reduce_scatter(at, at + (size_t)r * count * elem, count, type,
                                       (twill_redop_t)op, comm, nullptr),
                  comm);
    };
    on_threads(size, [&](int r) { run(r, host[(size_t)r].data(), world.host[(size_t)r]); });
    on_threads(size, [&](int r) {
        const On on(world.devices[(size_t)r]);

        run(r, memory[(size_t)r]->get(), world.device[(size_t)r]);
        CUDA(cudaDeviceSynchronize());
        CUDA(cudaMemcpy(found[(size_t)r].data(), memory[(size_t)r]->get(), all * elem,
                        cudaMemcpyDeviceToHost));
    });
    for (int r = 0; r < size; r++)
        if (host[(size_t)r] != found[(size_t)r])
            throw Failure(format("%s of %zu %s %s: rank %d of %d has other bytes than on the host",
                                 name(kind), count, reference::name(type), op_name(op), r, size));
}

/* Orders of additions differ from algorithm to algorithm: so do rounded sums. */
void sums(const struct tw_algo *algo, int size, uint64_t seed, bool brief)
{
    Random random(mix(seed));
    Both world;

    world.devices = place(size, (int)(seed % (uint64_t)placements()));
    world.host.resize((size_t)size);
    world.device.resize((size_t)size);
    init(&world.host, nullptr);
    init(&world.device, &world.devices);
    for (const Kind kind : {ALL_REDUCE, REDUCE_SCATTER})
        for (const int type : FLOATS) {
            static const int ops[] = {TWILL_SUM, TWILL_PROD, TWILL_AVG};

            if (tw_algo_find(algo->name, colls[kind]) == nullptr || (brief && !random.one_in(4)))
                continue;
            step(format("%s %s: sums of %s", algo->name, name(kind),
                        reference::name((twill_type_t)type)));
            for (const size_t count : {(size_t)1, (size_t)size + 1, (size_t)random.below(3000),
                                       5000 + (size_t)random.below(20000)})
                compare_sums(world, kind, (twill_type_t)type, ops[random.below(3)], count, &random);
        }
    for (const auto &comms : {world.host, world.device})
        for (twill_comm_t comm : comms)
            TWILL(twill_comm_destroy(comm), comm);
}

/* Cases whose result is defined, of collectives that the algorithm serves. */
void cases(const struct tw_algo *algo, int size, uint64_t seed, uint64_t count)
{
    const int placement = (int)(seed % (uint64_t)placements());
    World world(place(size, placement), seed);
    Limits limits;
    uint64_t run = 0;

    limits.sizes = size;
    limits.buffer_bytes = (size_t)1 << 20;
    limits.line_bytes = 4096; /* as small as for the other ways */
    limits.piece_bytes = 6144;
    for (uint64_t i = 0; run < count && i < 400 * count; i++) {
        const Case c = draw(mix(seed) % 1000000007 + i, limits);
        const bool ordered = algo->deterministic >> colls[c.kind] & 1;

        if (tw_algo_find(algo->name, colls[c.kind]) == nullptr || !(ordered || any_order(c)))
            continue;
        step(format("%s: %s", algo->name, text(c).c_str()));
        try {
            run_case(c, &world);
        } catch (const std::exception &e) {
            throw Failure(format("%s: %s\n%s", algo->name, e.what(), text(c).c_str()));
        }
        run++;
    }
    world.destroy();
}

} // namespace

/* args: ranks, seed, cases, "brief" or "full". The algorithm is TWILL_ALGO's. */
int role_plans(const std::vector<std::string> &args)
{
    const int size = std::stoi(args.at(0));
    const uint64_t seed = std::stoull(args.at(1)), count = std::stoull(args.at(2));

    for (size_t i = 0; tw_algo_at(i) != nullptr; i++)
        if (strcmp(tw_algo_at(i)->name, getenv("TWILL_ALGO")) == 0) {
            sums(tw_algo_at(i), size, seed, args.at(3) == "brief");
            cases(tw_algo_at(i), size, seed, count);
            return 0;
        }
    return 2;
}

/* ---- in the test -------------------------------------------------------------------------------
 */

/* Every algorithm that there is, for every collective that it serves. TW_GPU_BRIEF=1: little of
 * each, where a device is slow. */
TEST(Plans, EachAlgorithm)
{
    const bool brief = getenv("TW_GPU_BRIEF") != nullptr;
    const int sizes[] = {2, 3, 8};
    uint64_t seed = 1;

    for (size_t i = 0; tw_algo_at(i) != nullptr; i++)
        for (size_t s = 0; s < 3; s++) {
            const char *algo = tw_algo_at(i)->name;
            const int size = sizes[s];

            if (brief && s != i % 3)
                continue;
            Child child({"--role", "plans", std::to_string(size), std::to_string(seed++),
                         brief ? "2" : "8", brief ? "brief" : "full"},
                        {{"TWILL_ALGO", algo}});

            step(format("%s with %d ranks", algo, size));
            EXPECT_EQ(child.wait(50), 0) << algo << " with " << size << " ranks";
        }
}

} // namespace gpu
