/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls that follow each other over streams, communicators beside each other, and delays.
 * Never knows: calls by themselves (cover.cc). */
#include <thread>

#include "device/reference.h"
#include "gpu/base.h"
#include "gpu/process.h"
#include "gpu/roles.h"
#include "gpu/run.h"

namespace gpu
{

namespace
{

/* Each all_reduce's output is the next one's input: of S, the sum of the first inputs, the k-th is
 * S * ranks^(k - 1), modulo 2^32. */
class Chain
{
  public:
    Chain(World *world, size_t count, uint64_t seed);
    void call(size_t local, int k, cudaStream_t stream);
    /* What the call gave, from one rank to all, who have it. */
    void spread(size_t local, int k, cudaStream_t stream);
    void judge(int length);

  private:
    World *world_;
    size_t count_;
    std::vector<std::unique_ptr<Memory>> memory_; /* of each rank two buffers */
    std::vector<uint32_t> sum_;
};

Chain::Chain(World *world, size_t count, uint64_t seed) : world_(world), count_(count), sum_(count)
{
    Random random(mix(seed));
    std::vector<uint32_t> input(count);

    for (auto &local : world->locals()) {
        const On on(local->device);

        memory_.push_back(std::make_unique<Memory>(local->device, 2 * count * 4));
        for (size_t i = 0; i < count; i++)
            sum_[i] += input[i] = (uint32_t)random.bits();
        to_device(memory_.back()->get(), input.data(), count * 4);
    }
}

void Chain::call(size_t local, int k, cudaStream_t stream)
{
    char *at = memory_[local]->get();
    char *other = at + count_ * 4;
    const twill_comm_t comm = world_->locals()[local]->comm;

    TWILL(twill_all_reduce(k % 2 == 0 ? at : other, k % 2 == 0 ? other : at, count_, TWILL_UINT32,
                           TWILL_SUM, comm, stream),
          comm);
}

void Chain::spread(size_t local, int k, cudaStream_t stream)
{
    char *at = memory_[local]->get() + (k % 2 == 0 ? count_ * 4 : 0);
    const twill_comm_t comm = world_->locals()[local]->comm;

    TWILL(twill_broadcast(at, at, count_, TWILL_UINT32, k % world_->size(), comm, stream), comm);
}

/* Everything has ended. */
void Chain::judge(int length)
{
    std::vector<uint32_t> found(count_);
    uint32_t factor = 1;

    for (int k = 1; k < length; k++)
        factor *= (uint32_t)world_->size();
    for (size_t l = 0; l < memory_.size(); l++) {
        const On on(world_->locals()[l]->device);

        CUDA(cudaMemcpy(found.data(), memory_[l]->get() + (length % 2 != 0 ? count_ * 4 : 0),
                        count_ * 4, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < count_; i++)
            ASSERT_EQ(found[i], sum_[i] * factor)
                << "rank " << world_->locals()[l]->rank << " element " << i << " of " << count_;
    }
    world_->healthy();
}

/* Streams of each rank of a world. */
class Lanes
{
  public:
    Lanes(World *world, size_t each) : each_(each)
    {
        for (auto &local : world->locals())
            for (size_t i = 0; i < each; i++)
                all_.push_back({local->device, std::make_unique<Stream>(local->device)});
    }
    cudaStream_t get(size_t local, size_t i) { return *all_[local * each_ + i % each_].second; }
    void wait()
    {
        for (auto &one : all_)
            gpu::wait(one.first, *one.second);
    }

  private:
    size_t each_;
    std::vector<std::pair<int, std::unique_ptr<Stream>>> all_;
};

void chain_of(int size, size_t count, bool threads, int length)
{
    World world(place(size, 0));
    Chain chain(&world, count, count);
    Lanes lanes(&world, 3);
    const auto rank_calls = [&](int l) {
        for (int k = 0; k < length; k++)
            chain.call((size_t)l, k, lanes.get((size_t)l, (size_t)k));
    };

    step(format("chain: %d ranks, %zu elements, %s", size, count, threads ? "threads" : "groups"));
    if (threads)
        on_threads(size, rank_calls, [&] { world.abort(); });
    for (int k = 0; k < length && !threads; k++)
        grouped([&] {
            for (size_t l = 0; l < (size_t)size; l++)
                chain.call(l, k, lanes.get(l, (size_t)k + l));
        });
    lanes.wait();
    chain.judge(length);
    world.destroy();
}

/* Two communicators, a thread each that calls for all of its ranks. `each` calls are given before
 * they are waited for. */
void two_at_once(int size, int each)
{
    World first(place(size, 0)), second(place(size, 0));
    World *worlds[] = {&first, &second};
    const size_t counts[] = {50, 5000, 200000, 3000000};

    for (size_t count : counts) {
        Chain a(&first, count, 1), b(&second, count + 7, 2);
        Lanes a_lanes(&first, 1), b_lanes(&second, 1);
        Chain *chains[] = {&a, &b};
        Lanes *lanes[] = {&a_lanes, &b_lanes};
        const int length = 48;

        step(format("two communicators of %d ranks, %zu elements, %d calls at once", size, count,
                    each));
        on_threads(
            2,
            [&](int w) {
                for (int k = 0; k < length; k++) {
                    grouped([&] {
                        for (size_t l = 0; l < (size_t)size; l++)
                            chains[w]->call(l, k, lanes[w]->get(l, 0));
                    });
                    if (k % each == each - 1)
                        lanes[w]->wait();
                }
                lanes[w]->wait();
            },
            [&] {
                for (World *world : worlds)
                    world->abort();
            });
        a.judge(length);
        b.judge(length);
    }
    first.destroy();
    second.destroy();
}

} // namespace

TEST(Order, ChainOverStreams)
{
    for (int size : {1, 2, 3, 4, 8})
        for (bool threads : {false, true})
            for (size_t count : {1, 1000, 40000, 700000})
                chain_of(size, count, threads, 60);
}

/* Calls next to each other in a graph, whose kernels may begin early. */
void chain_in_graph(int placement, size_t count)
{
    const int LENGTH = 6, REPLAYS = 4; /* an even length: the last output is the first input */
    World world(place(2, placement));
    Chain chain(&world, count, count);
    Lanes lanes(&world, 1);
    const bool apart = world.locals()[0]->device != world.locals()[1]->device;
    const size_t streams = apart ? 2 : 1; /* ranks of a device have one */
    std::vector<cudaGraphExec_t> execs(streams);
    const auto each = [&](const std::function<void(size_t)> &body) {
        for (size_t i = 0; i < streams; i++) {
            const On on(world.locals()[i]->device);
            body(i);
        }
    };
    each([&](size_t i) {
        CUDA(cudaStreamBeginCapture(lanes.get(i, 0), cudaStreamCaptureModeThreadLocal));
    });
    for (int k = 0; k < LENGTH; k++)
        grouped([&] {
            for (size_t l = 0; l < 2; l++) {
                chain.call(l, k, lanes.get(apart ? l : 0, 0));
                chain.spread(l, k, lanes.get(apart ? l : 0, 0));
            }
        });
    each([&](size_t i) {
        cudaGraph_t graph = nullptr;
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed; /* the other is captured still */

        CUDA(cudaStreamEndCapture(lanes.get(i, 0), &graph));
        CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
        CUDA(cudaGraphInstantiateWithFlags(&execs[i], graph, 0));
        CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
        CUDA(cudaGraphDestroy(graph));
    });
    for (int replay = 0; replay < REPLAYS; replay++)
        each([&](size_t i) { CUDA(cudaGraphLaunch(execs[i], lanes.get(i, 0))); });
    lanes.wait();
    each([&](size_t i) { CUDA(cudaGraphExecDestroy(execs[i])); });
    chain.judge(REPLAYS * LENGTH);
}

TEST(Order, ChainInAGraph)
{
    for (int placement : {0, 2})
        for (size_t count : {5, 700, 4000})
            chain_in_graph(placement, count);
}

TEST(Order, TwoCommunicatorsAwaited)
{
    for (int size : {2, 4})
        two_at_once(size, 1);
}

/* There are fewer streams than connections to a device, and those that are made one after another
 * have connections of their own: none waits behind another communicator's. */
TEST(Order, TwoCommunicators)
{
    const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    ASSERT_TRUE(connections == nullptr || atoi(connections) >= 8);
    two_at_once(2, 6);
    two_at_once(4, 3);
}

/* ---- delays ------------------------------------------------------------------------------------
 */

static void delay(void *us) { sleep_s((double)(uintptr_t)us * 1e-6); }

/* Each rank is late here and there, in its thread and in its stream. */
static void run_delayed(const Case &c, World *world, uint64_t seed)
{
    Prepared prepared(c, world);

    on_threads(
        world->size(),
        [&](int i) {
            const size_t l = (size_t)i;
            Local &local = *world->locals()[l];
            Random random(mix(seed * 64 + l));

            for (int round = 0; round < c.rounds; round++) {
                const cudaStream_t stream = *local.own[0];

                if (random.one_in(2))
                    sleep_s((double)random.below(2000) * 1e-6);
                prepared.upload(l, round, stream);
                if (random.one_in(2)) {
                    const On on(local.device);
                    CUDA(cudaLaunchHostFunc(stream, delay, (void *)random.below(3000)));
                }
                prepared.call(l, round, stream);
                prepared.download(l, round, stream);
            }
            wait(local.device, *local.own[0]);
        },
        [&] { world->abort(); });
    world->healthy();
    ASSERT_EQ(prepared.judge(), "") << text(c);
}

/* A sum's bits do not depend on who is late: 20 repetitions give what the host gives. */
TEST(Order, Repetition)
{
    static const struct {
        Kind kind;
        size_t count;
    } kinds[] = {{ALL_REDUCE, 100},     {ALL_REDUCE, 90000},      {ALL_REDUCE, 1500000},
                 {REDUCE_SCATTER, 333}, {REDUCE_SCATTER, 300000}, {REDUCE, 250000},
                 {ALL_TO_ALL, 200000},  {ALL_GATHER, 1000}};

    for (int size : {2, 3, 4}) {
        World world(place(size, 0));

        for (const auto &kind : kinds)
            for (int repetition = 0; repetition < 20; repetition++) {
                Case c;

                c.seed = 77; /* the same inputs */
                c.size = size;
                c.kind = kind.kind;
                c.type = TWILL_FLOAT32;
                c.count = kind.count;
                c.bits = TAME;
                c.rounds = 2;
                c.ranks.resize((size_t)size);
                step(format("repetition %d: %s", repetition, text(c).c_str()));
                run_delayed(c, &world, (uint64_t)repetition);
                if (HasFatalFailure())
                    return;
            }
        world.destroy();
    }
}

/* ---- in processes of their own -----------------------------------------------------------------
 */

static void expect_fine(Child *child, const char *what, int minutes)
{
    int status = -1;
    for (int i = 0; i < 2 * minutes && status == -1; i++) { /* it has a watchdog of its own */
        step(what);
        status = child->wait(30);
    }
    EXPECT_EQ(status, 0) << what;
}

/* With one connection to each device all streams' work is begun in the order in which it was given.
 */
TEST(Order, OneConnection)
{
    Child child({"--gtest_filter=Order.ChainOverStreams:Order.TwoCommunicatorsAwaited:"
                 "Order.Repetition"},
                {{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}, {"TW_GPU_PART", "1"}});
    expect_fine(&child, "one connection", 10);
}

/* Nothing that a first call needs, of any kind, waits for the kernel of another communicator, which
 * waits for a rank that has not called. (On one device that is no kernel yet.) */
int role_first(const std::vector<std::string> &)
{
    World waiting(place(2, 0)), world(place(2, 0));
    Memory a(waiting.rank(0).device, 4096), b(waiting.rank(1).device, 4096);
    Memory *memory[] = {&a, &b};
    Limits limits;
    const auto call = [&](int r) {
        TWILL(twill_all_reduce(memory[r]->get(), memory[r]->get(), 1000, TWILL_INT32, TWILL_SUM,
                               waiting.rank(r).comm, *waiting.rank(r).own[0]),
              waiting.rank(r).comm);
    };

    limits.sizes = 2;
    limits.buffer_bytes = (size_t)4 << 20;
    for (auto &local : world.locals()) /* allocating may wait for kernels */
        local->arena.reset((size_t)64 << 20, (size_t)256 << 20);
    (void)reference_of(2);
    std::thread early([&] { call(0); });
    sleep_s(0.2); /* its kernel waits */
    for (uint64_t seed = 1; seed <= 2 * 517; seed++) {
        Case c = draw(seed, limits);

        c.how = PLAIN; /* making a graph may wait, too */
        c.streams = OWN;
        step("beside a kernel that waits: " + text(c));
        try {
            run_case(c, &world);
        } catch (const std::exception &e) {
            fprintf(stderr, "%s: %s\n", text(c).c_str(), e.what());
            waiting.abort();
            early.join();
            return 1;
        }
    }
    const bool ended = wait_within(waiting.rank(0).device, *waiting.rank(0).own[0], 0);
    call(1);
    early.join();
    for (auto &local : waiting.locals())
        wait(local->device, *local->own[0]);
    waiting.healthy();
    if (ended && devices() > 1)
        fprintf(stderr, "the call ended without its peer\n");
    return ended && devices() > 1;
}

TEST(Order, FirstCallBesideAKernelThatWaits)
{
    Child child({"--role", "first"});
    expect_fine(&child, "first calls", 4);
}

} // namespace gpu
