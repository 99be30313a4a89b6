/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory that all ranks have registered with the promise that their buffers lie alike in it,
 * and calls by copy engines that rest on it. Never knows: calls of one thread (cover.cc).
 *
 * TWILL_COPY_ENGINE and TWILL_DEVICE_STAGING are such that little more than 16 KiB are copied. */
#include <cstring>
#include <memory>

#include "gpu/base.h"
#include "gpu/process.h"
#include "gpu/roles.h"
#include "gpu/world.h"

namespace gpu
{

namespace
{

const size_t LINES = 16384, MOST = 70001; /* bytes of a block */
const double LIMIT_S = 10;

/* Byte i of what a rank sends to another one. */
char byte_of(int call, int from, int to, size_t i)
{
    return (char)((size_t)(call * 31 + from * 7 + to * 13) + i * (size_t)(1 + from) + i / 256);
}

/* A rank that lives here. */
struct Mine {
    Mine(Local *at, int size, size_t bytes)
        : local(at), ranks(size), memory(at->device, bytes), send(at->device, bytes), host(bytes)
    {
    }
    cudaStream_t stream() const { return *local->own[0]; }
    void fill(char *at, int call, bool many, size_t count)
    {
        for (int to = 0; to < (many ? ranks : 1); to++)
            for (size_t i = 0; i < count; i++)
                host[(size_t)to * count + i] = byte_of(call, local->rank, to, i);
        to_device(at, host.data(), (size_t)(many ? ranks : 1) * count);
    }
    /* from < 0: of all ranks. */
    void expect(const char *at, int call, int from, int to, size_t count)
    {
        CUDA(cudaMemcpy(host.data(), at, (size_t)(from < 0 ? ranks : 1) * count,
                        cudaMemcpyDeviceToHost));
        for (int r = 0; r < (from < 0 ? ranks : 1); r++)
            for (size_t i = 0; i < count; i++)
                if (host[(size_t)r * count + i] != byte_of(call, from < 0 ? r : from, to, i))
                    throw Failure(format("call %d: byte %zu from rank %d is wrong on rank %d", call,
                                         i, from < 0 ? r : from, local->rank));
    }
    Local *local;
    int ranks;
    Memory memory, send; /* registered, and not */
    std::vector<char> host;
    twill_reg_t reg = nullptr;
};

/* Made, and made again by a graph, if it is one. */
void run(Mine *mine, bool graph, const std::function<void()> &call)
{
    cudaGraph_t captured;
    cudaGraphExec_t exec;
    const On on(mine->local->device);

    if (!graph) {
        call();
        wait(mine->local->device, mine->stream());
        return;
    }
    CUDA(cudaStreamBeginCapture(mine->stream(), cudaStreamCaptureModeThreadLocal));
    call();
    CUDA(cudaStreamEndCapture(mine->stream(), &captured));
    CUDA(cudaGraphInstantiateWithFlags(&exec, captured, 0));
    for (int i = 0; i < 3; i++)
        CUDA(cudaGraphLaunch(exec, mine->stream()));
    wait(mine->local->device, mine->stream());
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(captured));
}

/* One of the collectives, of blocks of `count`, with the output so far from the start. */
void collective(Mine *mine, int number, size_t count, size_t at, bool in_place, bool graph)
{
    const int root = number % mine->ranks, rank = mine->local->rank;
    const twill_comm_t comm = mine->local->comm;
    char *out = mine->memory.get() + at, *in = mine->send.get() + rank;

    switch (number % 3) {
    case 0:
        in = in_place ? out + (size_t)rank * count : in;
        mine->fill(in, number, false, count);
        run(mine, graph, [&] {
            TWILL(twill_all_gather(in, out, count, TWILL_INT8, comm, mine->stream()), comm);
        });
        mine->expect(out, number, -1, 0, count);
        break;
    case 1:
        mine->fill(in, number, true, count);
        run(mine, graph, [&] {
            TWILL(twill_all_to_all(in, out, count, TWILL_INT8, comm, mine->stream()), comm);
        });
        mine->expect(out, number, -1, rank, count);
        break;
    default:
        in = in_place ? out : in;
        if (rank == root)
            mine->fill(in, number, false, count);
        run(mine, graph, [&] {
            TWILL(twill_broadcast(in, out, count, TWILL_INT8, root, comm, mine->stream()), comm);
        });
        mine->expect(out, number, root, 0, count);
    }
}

/* What goes by lines, and what is copied; here and there in memory; now and then in place, which
 * ranks need not be together. */
void calls(Mine *mine, bool graphs)
{
    int number = 0;

    for (size_t count : {(size_t)100, LINES, LINES + 1, (size_t)40000, MOST})
        for (int i = 0; i < 6; i++, number++)
            collective(mine, number, count, (size_t)(number * 3 % 64),
                       (number + mine->local->rank) % 2 == 0, graphs && i % 3 == number % 2);
}

enum twill_status state_of(twill_comm_t comm)
{
    enum twill_status status = TWILL_OK;
    TWILL(twill_comm_async_error(comm, &status), comm);
    return status;
}

void expect_failed(Mine *mine, enum twill_status status, const std::string &text)
{
    const twill_comm_t comm = mine->local->comm;

    if (!within(LIMIT_S, [&] { return state_of(comm) < 0; }))
        throw Failure("the communicator does not fail");
    (void)twill_barrier(comm, mine->stream()); /* says why it cannot be made */
    if (state_of(comm) != status || !contains(twill_last_error(comm), text))
        throw Failure(format("it fails with %d: %s", (int)state_of(comm), twill_last_error(comm)));
    if (!wait_within(mine->local->device, mine->stream(), LIMIT_S))
        throw Failure("the stream does not go on");
}

/* An all_gather that may go wrong. */
void gather(Mine *mine, char *out)
{
    const enum twill_status status = twill_all_gather(mine->send.get(), out, LINES + 1, TWILL_INT8,
                                                      mine->local->comm, mine->stream());
    if (status != TWILL_OK && state_of(mine->local->comm) == TWILL_OK)
        throw Failure("a call could not be made");
}

/* The last rank does something else. */
void wrong(Mine *mine, const std::string &part)
{
    const bool last = mine->local->rank == mine->ranks - 1;

    gather(mine, mine->memory.get());
    wait(mine->local->device, mine->stream());
    if (part == "abort" && last)
        TWILL(twill_comm_abort(mine->local->comm), mine->local->comm);
    else if (part == "plain" && last)
        gather(mine, mine->send.get() + MOST);
    else if (part == "elsewhere" && last)
        gather(mine, mine->memory.get() + 32);
    else
        gather(mine, mine->memory.get());
    if (part == "abort")
        expect_failed(mine, TWILL_ERR_ABORTED, "");
    else if (part == "plain")
        expect_failed(mine, TWILL_ERR_MISMATCH, "registered on some ranks only");
    else
        expect_failed(mine, TWILL_ERR_MISMATCH, "symmetric registration where that of rank");
}

/* Not equally much of it, or not of one sort: nobody has registered then. */
void refused(Mine *mine)
{
    const twill_comm_t comm = mine->local->comm;
    const bool last = mine->local->rank == mine->ranks - 1;
    twill_reg_t reg;

    enum twill_status status =
        twill_register_symmetric(comm, mine->memory.get(), last ? 100 : 101, &reg);
    if (status != TWILL_ERR_INVALID || !contains(twill_last_error(comm), "101"))
        throw Failure(format("registering says %d: %s", (int)status, twill_last_error(comm)));
    status = last ? twill_register(comm, mine->memory.get(), 100, &reg)
                  : twill_register_symmetric(comm, mine->memory.get(), 100, &reg);
    if (status != TWILL_ERR_INVALID || !contains(twill_last_error(comm), "does not"))
        throw Failure(format("registering says %d: %s", (int)status, twill_last_error(comm)));
}

/* All that one rank does. */
void play_rank(Local *local, int size, const std::string &part, bool graphs)
{
    const size_t bytes = (size_t)size * MOST + 256;
    Mine mine(local, size, bytes);
    struct twill_choice choice = TWILL_CHOICE_INIT;

    refused(&mine);
    TWILL(twill_register_symmetric(local->comm, mine.memory.get(), bytes, &mine.reg), local->comm);
    TWILL(twill_comm_choice(local->comm, "all_gather", LINES + 1, TWILL_INT8, 0, &choice),
          local->comm);
    if (std::string(choice.proto) != "copy")
        throw Failure(format("all_gather goes by %s", choice.proto));
    if (part == "calls")
        calls(&mine, graphs);
    else
        wrong(&mine, part);
    const enum twill_status status = twill_deregister(local->comm, mine.reg);
    if (status != state_of(local->comm))
        throw Failure(format("deregistering says %d", (int)status));
}

} // namespace

/* args: ranks, the first one here, how many are here, each with a thread, part */
int role_copy(const std::vector<std::string> &args)
{
    const int size = std::stoi(args.at(0)), first = std::stoi(args.at(1));
    const int here = std::stoi(args.at(2)), device = first / here % devices();
    std::vector<int> ranks;

    for (int i = 0; i < here; i++)
        ranks.push_back(first + i);
    World world(size, ranks, std::vector<int>((size_t)here, device),
                join_by_id(size, first, here, device));
    on_threads(
        here,
        [&](int i) { play_rank(world.locals()[(size_t)i].get(), size, args.at(3), here == 1); },
        [&] { world.abort(); });
    return 0;
}

/* ---- in the test -------------------------------------------------------------------------------
 */

namespace
{

void play(int processes, int here, const std::string &part)
{
    std::vector<std::unique_ptr<Child>> children;
    std::vector<Child *> all;

    for (int p = 0; p < processes; p++) {
        children.push_back(std::make_unique<Child>(
            std::vector<std::string>{"--role", "copy", std::to_string(processes * here),
                                     std::to_string(p * here), std::to_string(here), part},
            Env{{"TWILL_COPY_ENGINE", "1K"}, {"TWILL_DEVICE_STAGING", "4M"}}));
        all.push_back(children.back().get());
    }
    pass_id(all);
    for (int p = 0; p < processes; p++) {
        step(format("%s: process %d of %d, %d ranks each", part.c_str(), p, processes, here));
        EXPECT_EQ(children[(size_t)p]->wait(50), 0) << part << ": process " << p;
    }
}

} // namespace

TEST(Copies, TwoProcesses) { play(2, 1, "calls"); }
TEST(Copies, ThreeProcesses) { play(3, 1, "calls"); }
TEST(Copies, TwoProcessesOfTwoRanks) { play(2, 2, "calls"); }
TEST(Copies, OneProcessOfThreads) { play(1, 3, "calls"); }
TEST(Copies, BrokenPromise)
{
    play(2, 1, "elsewhere");
    play(3, 1, "elsewhere");
}
TEST(Copies, OutputsThatAreNotRegistered) { play(2, 1, "plain"); }
TEST(Copies, Abort)
{
    play(2, 1, "abort");
    play(3, 1, "abort");
}

} // namespace gpu
