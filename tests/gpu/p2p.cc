/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sends and receives on devices: that what was sent arrives. Never knows: what is said when
 * it cannot (p2p_errors.cc). */
#include <memory>

#include "gpu/base.h"
#include "gpu/p2p_batch.h"
#include "gpu/process.h"
#include "gpu/roles.h"
#include "gpu/world.h"

namespace gpu
{

static void random_batches(int size, int placement)
{
    World world(place(size, placement), (uint64_t)size);
    run_batches(&world, (uint64_t)(10 * size + placement), 24, (size_t)2 << 20, true);
    world.destroy();
}

/* args: ranks, rank, batches, bytes of a message */
int role_p2p(const std::vector<std::string> &args)
{
    const int size = std::stoi(args.at(0)), rank = std::stoi(args.at(1));
    const int device = rank % devices();
    World world(size, {rank}, {device}, join_by_id(size, rank, 1, device));

    try {
        run_batches(&world, (uint64_t)(500 + size), std::stoi(args.at(2)), std::stoull(args.at(3)),
                    false);
    } catch (const std::exception &e) {
        fprintf(stderr, "rank %d: %s\n", rank, e.what());
        world.abort(); /* the others may wait */
        return 1;
    }
    world.destroy();
    return 0;
}

TEST(P2p, RandomBatches)
{
    for (int size : {2, 3, 4, 8})
        for (int placement = 0; placement < placements(); placement++)
            random_batches(size, placement);
}

TEST(P2p, Alone)
{
    World world(place(2, 0));
    Random random(7);

    for (size_t bytes : {(size_t)0, (size_t)4, (size_t)100000, (size_t)64 << 20}) {
        Batch batch = {message(&random, 0, 1, bytes)};
        Post post(&world, &batch, &random);

        step(format("a message of %zu bytes", bytes));
        for (int round = 0; round < 3; round++) {
            post.clear();
            post.call(1, 0); /* no group: the calls return at once */
            post.call(0, 0);
            wait_all(&world);
            post.judge();
        }
    }
    world.destroy();
}

TEST(P2p, Large)
{
    World world(place(4, 0));
    Random random(8);
    Batch batch;

    for (int r = 0; r < 4; r++) {
        batch.push_back(message(&random, r, (r + 1) % 4, ((size_t)64 << 20) - 8));
        batch.push_back(message(&random, r, r, (size_t)3 << 20));
    }
    Post post(&world, &batch, &random);
    for (bool threads : {false, true}) {
        post.clear();
        run_batch(&world, &post, threads, 0, false);
    }
    world.destroy();
}

/* As many as a launch takes, several times over. */
TEST(P2p, Many)
{
    World world(place(2, 0));
    Random random(9);
    Batch batch;

    for (int i = 0; i < 250; i++)
        batch.push_back(message(&random, i % 2, 1 - i % 2, (size_t)random.below(5000)));
    Post post(&world, &batch, &random);
    for (int round = 0; round < 4; round++) {
        post.clear();
        run_batch(&world, &post, false, round % 3, round % 2 != 0);
    }
    world.destroy();
}

/* ---- graphs ------------------------------------------------------------------------------------
 */

namespace
{

class Graph
{
  public:
    Graph(int device, cudaGraph_t graph) : device_(device)
    {
        const On on(device);
        CUDA(cudaGraphInstantiate(&exec_, graph, 0));
        CUDA(cudaGraphDestroy(graph));
    }
    ~Graph()
    {
        const On on(device_);
        (void)cudaGraphExecDestroy(exec_);
    }
    void launch(cudaStream_t stream)
    {
        const On on(device_);
        CUDA(cudaGraphLaunch(exec_, stream));
    }

  private:
    int device_;
    cudaGraphExec_t exec_ = nullptr;
};

/* A graph of its own for the rank. */
std::unique_ptr<Graph> capture_rank(World *world, Post *post, size_t local)
{
    const Local &rank = *world->locals()[local];
    const On on(rank.device);
    cudaGraph_t graph = nullptr;

    CUDA(cudaStreamBeginCapture(*rank.own[0], cudaStreamCaptureModeThreadLocal));
    grouped([&] { post->call(local, 0); });
    CUDA(cudaStreamEndCapture(*rank.own[0], &graph));
    return std::make_unique<Graph>(rank.device, graph);
}

/* One graph for all ranks: their streams come out of the first one's and go back. */
std::unique_ptr<Graph> capture_all(World *world, Post *post)
{
    Local &first = *world->locals()[0];
    const cudaStream_t stream = *first.own[0];
    cudaGraph_t graph = nullptr;
    const On on(first.device);

    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaEventRecord(first.tail, stream));
    for (auto &local : world->locals())
        if (local->rank != first.rank)
            CUDA(cudaStreamWaitEvent(*local->own[0], first.tail, 0));
    grouped([&] {
        for (size_t l = 0; l < world->locals().size(); l++)
            post->call(l, 0);
    });
    for (auto &local : world->locals()) {
        const On there(local->device);
        if (local->rank == first.rank)
            continue;
        CUDA(cudaEventRecord(local->tail, *local->own[0]));
        CUDA(cudaStreamWaitEvent(stream, local->tail, 0));
    }
    CUDA(cudaStreamEndCapture(stream, &graph));
    return std::make_unique<Graph>(first.device, graph);
}

void replay(World *world, Post *post, std::vector<std::unique_ptr<Graph>> *graphs)
{
    for (int round = 0; round < 5; round++) {
        post->clear();
        for (size_t g = 0; g < graphs->size(); g++)
            (*graphs)[g]->launch(*world->locals()[g]->own[0]);
        wait_all(world);
        post->judge();
        post->clear(); /* and one without a graph between */
        run_batch(world, post, false, 0, false);
    }
}

} // namespace

TEST(P2p, Graphs)
{
    for (int size : {2, 3, 4}) {
        World world(place(size, 0));
        Random random(mix((uint64_t)size));
        Batch batch = draw_batch(&random, size, (size_t)1 << 20);
        Post post(&world, &batch, &random);
        std::vector<std::unique_ptr<Graph>> graphs((size_t)size);

        step(format("a graph for each of %d ranks", size));
        on_threads(
            size, [&](int l) { graphs[(size_t)l] = capture_rank(&world, &post, (size_t)l); },
            [&] { world.abort(); });
        replay(&world, &post, &graphs);
        graphs.clear();
        step(format("a graph for %d ranks", size));
        graphs.push_back(capture_all(&world, &post));
        replay(&world, &post, &graphs);
        graphs.clear();
        world.destroy();
    }
}

/* ---- processes ---------------------------------------------------------------------------------
 */

static void processes(int size)
{
    const bool shared = size > devices(); /* then each waits for its turn */
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;

    for (int r = 0; r < size; r++) {
        children.push_back(std::make_unique<Child>(std::vector<std::string>{
            "--role", "p2p", std::to_string(size), std::to_string(r), shared ? "12" : "60",
            std::to_string(shared ? (size_t)128 << 10 : (size_t)8 << 20)}));
        all.push_back(children.back().get());
    }
    pass_id(all);
    for (int r = 0; r < size; r++) {
        int status = -1;
        for (int turns = 0; turns < 5 && status == -1; turns++) { /* it has its own watchdog */
            step(format("process %d of %d", r, size));
            status = children[(size_t)r]->wait(50);
        }
        EXPECT_EQ(status, 0) << "process " << r << " of " << size;
    }
}

TEST(P2p, TwoProcesses) { processes(2); }
TEST(P2p, FourProcesses) { processes(4); }

} // namespace gpu
