/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that plans of users run as they are written: the examples of the docs, and the texts of
 * built-in plans, message for message. Never knows: what a plan means. */
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include <gtest/gtest.h>
#include <unistd.h>

#include "ranks.h"

extern "C" {
#include "algo/algo.h"
#include "base/host.h"
#include "comm/plans.h"
}

/* ---- what goes through the channels of the calling thread --------------------------------------
 */

namespace
{

/* (direction, peer, fifo) -> (bytes, hash of what was sent) in order */
using Trace = std::map<std::tuple<char, int, uint32_t>, std::vector<std::pair<uint64_t, uint64_t>>>;

thread_local Trace *tracing;
thread_local std::map<std::pair<int, uint32_t>, const void *> slots;

} // namespace

extern "C" {
enum twill_status __real_tw_chan_reserve(struct tw_chan *chan, int peer, uint32_t sub, void **data);
void __real_tw_chan_commit(struct tw_chan *chan, int peer, uint32_t sub, uint32_t bytes,
                           uint64_t header);
void __real_tw_chan_release(struct tw_chan *chan, int peer, uint32_t sub);

enum twill_status __wrap_tw_chan_reserve(struct tw_chan *chan, int peer, uint32_t sub, void **data)
{
    enum twill_status status = __real_tw_chan_reserve(chan, peer, sub, data);
    if (tracing && status == TWILL_OK)
        slots[{peer, sub}] = *data;
    return status;
}
void __wrap_tw_chan_commit(struct tw_chan *chan, int peer, uint32_t sub, uint32_t bytes,
                           uint64_t header)
{
    if (tracing)
        (*tracing)[{'s', peer, sub}].push_back({bytes, tw_hash64(slots[{peer, sub}], bytes)});
    __real_tw_chan_commit(chan, peer, sub, bytes, header);
}
void __wrap_tw_chan_release(struct tw_chan *chan, int peer, uint32_t sub)
{
    if (tracing)
        (*tracing)[{'r', peer, sub}].push_back({0, 0});
    __real_tw_chan_release(chan, peer, sub);
}
}

namespace
{

/* ---- a collective of random data, compared with what it must give ------------------------------
 */

struct World {
    int size;
    size_t count;
    std::vector<std::vector<int>> in, out; /* [rank][block] */
    std::vector<size_t> counts, displs;    /* of v-variants: full and half blocks in turn */
};

/* What is in a block of a v-variant. */
size_t block_count(const World &world, size_t block)
{
    return block % 2 ? world.count / 2 : world.count;
}

World make_world(int size, size_t count)
{
    World world = {size, count, {}, {}, {}, {}};
    std::mt19937 random(count);
    for (int r = 0; r < size; r++) {
        world.in.emplace_back(count * (size_t)size);
        for (int &x : world.in.back())
            x = (int)(random() % 1000);
        world.out.emplace_back(count * (size_t)size, -1);
        world.counts.push_back(block_count(world, (size_t)r));
        world.displs.push_back(count * (size_t)r);
    }
    return world;
}

int sum_of(const World &world, size_t i)
{
    int sum = 0;
    for (const auto &in : world.in)
        sum += in[i];
    return sum;
}

enum twill_status call(tw_coll coll, World &world, int r, twill_comm_t comm)
{
    const int *in = world.in[(size_t)r].data();
    int *out = world.out[(size_t)r].data();
    const size_t n = world.count, mine = block_count(world, (size_t)r);
    const size_t *counts = world.counts.data(), *displs = world.displs.data();
    /* what two ranks exchange is theirs alone: a block of the kind that both say */
    std::vector<size_t> pairs((size_t)world.size);
    for (size_t peer = 0; peer < pairs.size(); peer++)
        pairs[peer] = block_count(world, peer + (size_t)r);
    switch (coll) {
    case TW_COLL_GATHER:
        return twill_gather(in, out, n, TWILL_INT32, 0, comm, nullptr);
    case TW_COLL_SCATTER:
        return twill_scatter(in, out, n, TWILL_INT32, 0, comm, nullptr);
    case TW_COLL_ALL_GATHER_V:
        return twill_all_gather_v(in, out, counts, displs, TWILL_INT32, comm, nullptr);
    case TW_COLL_REDUCE_SCATTER_V:
        return twill_reduce_scatter_v(in, out, counts, displs, TWILL_INT32, TWILL_SUM, comm,
                                      nullptr);
    case TW_COLL_ALL_TO_ALL_V:
        return twill_all_to_all_v(in, pairs.data(), displs, out, pairs.data(), displs, TWILL_INT32,
                                  comm, nullptr);
    case TW_COLL_GATHER_V:
        return twill_gather_v(in, mine, out, counts, displs, TWILL_INT32, 0, comm, nullptr);
    case TW_COLL_SCATTER_V:
        return twill_scatter_v(in, counts, displs, out, mine, TWILL_INT32, 0, comm, nullptr);
    case TW_COLL_ALL_REDUCE:
        return twill_all_reduce(in, out, n, TWILL_INT32, TWILL_SUM, comm, nullptr);
    case TW_COLL_REDUCE:
        return twill_reduce(in, out, n, TWILL_INT32, TWILL_SUM, 0, comm, nullptr);
    case TW_COLL_BROADCAST:
        return twill_broadcast(in, out, n, TWILL_INT32, 0, comm, nullptr);
    case TW_COLL_REDUCE_SCATTER:
        return twill_reduce_scatter(in, out, n, TWILL_INT32, TWILL_SUM, comm, nullptr);
    case TW_COLL_ALL_GATHER:
        return twill_all_gather(in, out, n, TWILL_INT32, comm, nullptr);
    case TW_COLL_ALL_TO_ALL:
        return twill_all_to_all(in, out, n, TWILL_INT32, comm, nullptr);
    default:
        return twill_barrier(comm, nullptr);
    }
}

int expected(tw_coll coll, const World &world, int r, size_t i)
{
    const size_t n = world.count, block = i / n, at = i % n, own = (size_t)r;
    switch (coll) {
    case TW_COLL_GATHER:
        return r == 0 ? world.in[block][at] : -1;
    case TW_COLL_SCATTER:
        return block == 0 ? world.in[0][own * n + at] : -1;
    case TW_COLL_ALL_GATHER_V:
        return at < block_count(world, block) ? world.in[block][at] : -1;
    case TW_COLL_REDUCE_SCATTER_V:
        return i < block_count(world, own) ? sum_of(world, own * n + i) : -1;
    case TW_COLL_ALL_TO_ALL_V:
        return at < block_count(world, block + own) ? world.in[block][own * n + at] : -1;
    case TW_COLL_GATHER_V:
        return r == 0 && at < block_count(world, block) ? world.in[block][at] : -1;
    case TW_COLL_SCATTER_V:
        return i < block_count(world, own) ? world.in[0][own * n + i] : -1;
    case TW_COLL_ALL_REDUCE:
        return block == 0 ? sum_of(world, i) : -1;
    case TW_COLL_REDUCE:
        return block == 0 && r == 0 ? sum_of(world, i) : -1;
    case TW_COLL_BROADCAST:
        return block == 0 ? world.in[0][i] : -1;
    case TW_COLL_REDUCE_SCATTER:
        return block == 0 ? sum_of(world, (size_t)r * n + at) : -1;
    case TW_COLL_ALL_GATHER:
        return world.in[block][at];
    case TW_COLL_ALL_TO_ALL:
        return world.in[block][(size_t)r * n + at];
    default:
        return -1;
    }
}

using Params = std::vector<std::pair<std::string, std::string>>;

/* Runs the collective with the parameters; every rank's trace. */
std::vector<Trace> run(tw_coll coll, int size, const std::vector<size_t> &counts,
                       const Params &params, const char *plan_name)
{
    set_params(params);
    std::vector<Trace> traces((size_t)size);
    std::vector<twill_comm_t> comms((size_t)size);
    enum twill_status status = twill_comm_init_all(comms.data(), size, nullptr, nullptr);
    EXPECT_EQ(status, TWILL_OK) << twill_last_error(nullptr);
    if (status != TWILL_OK)
        return traces;
    struct twill_choice choice = TWILL_CHOICE_INIT;
    EXPECT_EQ(twill_comm_choice(comms[0], tw_coll_name(coll), 1, TWILL_INT32, 0, &choice),
              TWILL_OK);
    EXPECT_STREQ(choice.algo, plan_name);
    EXPECT_GT(choice.predicted_us, 0) << plan_name << ": plans of users have a price as well";
    for (size_t count : counts) {
        World world = make_world(size, count);
        on_threads(size, [&](int r) {
            tracing = &traces[(size_t)r];
            EXPECT_EQ(call(coll, world, r, comms[(size_t)r]), TWILL_OK)
                << twill_last_error(comms[(size_t)r]);
            tracing = nullptr;
            slots.clear();
        });
        for (int r = 0; r < size; r++)
            for (size_t i = 0; i < count * (size_t)size; i++)
                if (world.out[(size_t)r][i] != expected(coll, world, r, i)) {
                    ADD_FAILURE() << plan_name << ": rank " << r << " element " << i;
                    break;
                }
    }
    for (twill_comm_t comm : comms)
        EXPECT_EQ(twill_comm_destroy(comm), TWILL_OK);
    set_params({});
    return traces;
}

std::string example(const char *name)
{
    const char *folder = getenv("srcdir");
    return std::string(folder ? folder : ".") + "/docs/plans/" + name + ".plan";
}

const std::vector<size_t> kCounts = {1, 7, 1000, 30011};

TEST(UserPlans, TheExamplesOfTheDocsRun)
{
    run(TW_COLL_BROADCAST, 4, kCounts, {{"PLAN_FILE", example("star")}}, "star");
    run(TW_COLL_ALL_REDUCE, 3, kCounts, {{"PLAN_FILE", example("chain")}}, "chain");
    run(TW_COLL_ALL_GATHER, 6, kCounts, {{"PLAN_FILE", example("neighbour")}}, "neighbour");
}

TEST(UserPlans, SeveralFilesEachServeTheirCalls)
{
    const std::string all = example("star") + ":" + example("chain") + ":" + example("neighbour");
    run(TW_COLL_BROADCAST, 4, {100}, {{"PLAN_FILE", all}}, "star");
    run(TW_COLL_ALL_REDUCE, 3, {100}, {{"PLAN_FILE", all}}, "chain");
    run(TW_COLL_ALL_REDUCE, 2, {100}, {{"PLAN_FILE", all}, {"ALGO", "ring"}}, "ring");
}

TEST(UserPlans, TwoForTheSameCallsAreAnError)
{
    set_params({{"PLAN_FILE", example("chain") + ":" + example("chain")}});
    twill_comm_t comm;
    EXPECT_EQ(twill_comm_init_all(&comm, 1, nullptr, nullptr), TWILL_ERR_INVALID);
    EXPECT_NE(strstr(twill_last_error(nullptr), "same calls"), nullptr)
        << twill_last_error(nullptr);
    set_params({});
}

/* The text of a built-in plan, run as a user's, sends the same messages with the same contents
 * through the same FIFOs. */
void compare_text(const tw_algo *algo, tw_coll coll, int size, uint32_t channels)
{
    const std::string path = testing::TempDir() + "twill_text." + std::to_string(getpid());
    const std::string lanes = std::to_string(channels);
    tw_algo_args args = {};
    args.coll = coll;
    args.nranks = size;
    args.only_rank = -1;
    args.channels = channels;
    tw_plan *plan = nullptr;
    char *text = nullptr;
    ASSERT_EQ(algo->generate(&args, &plan), TWILL_OK);
    ASSERT_EQ(tw_plan_print(plan, &text), TWILL_OK);
    std::ofstream(path) << text;
    /* named first so that there is scratch for peers in both runs */
    const std::string forced = std::string("two_shot_put,") + tw_coll_name(coll) + "=" + algo->name;
    const std::vector<size_t> counts = {5, 9001};
    const auto built_in =
        run(coll, size, counts, {{"ALGO", forced}, {"CHANNELS", lanes}}, plan->name);
    const auto user =
        run(coll, size, counts,
            {{"ALGO", "two_shot_put"}, {"CHANNELS", lanes}, {"PLAN_FILE", path}}, plan->name);
    EXPECT_TRUE(built_in == user) << forced << ", " << size << " ranks, " << lanes << " channels";
    /* puts are not traced */
    EXPECT_TRUE((algo->caps & TW_CAP_PUT_SCRATCH) || !built_in[0].empty()) << forced;
    free(text);
    tw_plan_destroy(plan);
    remove(path.c_str());
}

TEST(UserPlans, TheTextOfABuiltInPlanIsTheBuiltInPlan)
{
    for (size_t i = 0; const tw_algo *algo = tw_algo_at(i); i++) {
        for (int coll = 0; coll < TW_COLL_P2P; coll++) {
            if (!(algo->colls >> coll & 1))
                continue;
            compare_text(algo, (tw_coll)coll, 3, 1);
#ifndef __SANITIZE_THREAD__ /* of one thread, and slow in it */
            compare_text(algo, (tw_coll)coll, 4, 2);
#endif
        }
    }
}

} // namespace
