/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: calls by copy engines, of ranks whose calls one thread makes, with copies that take their
 * time, and what becomes of them when a call is given up.
 * Never knows: symmetric memory of several processes (gpu/copy.cc). */
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

extern "C" {
#include "comm/gpu.h"
}

#include "emu/runtime.h"
#include "emu/small.h"
#include "emu/work.h"
#include "gpu/p2p_batch.h"
#include "gpu/run.h"

namespace emu
{

using namespace gpu;

namespace
{

const Kind movers[] = {ALL_GATHER, ALL_TO_ALL, BROADCAST, GATHER, SCATTER};

Shape shape_of(int size, int placement)
{
    Shape shape;
    shape.size = size;
    shape.placement = placement;
    shape.copies = true;
    return shape;
}

/* places: bit r: rank r is in place */
Case mover(int size, Kind kind, size_t count, unsigned places)
{
    Case c;

    c.seed = count * 64 + (size_t)kind * 8 + places;
    c.size = size;
    c.kind = kind;
    c.count = count;
    c.rounds = 2;
    c.root = has_root(kind) ? size - 1 : 0;
    c.ranks.resize((size_t)size);
    for (int r = 0; r < size; r++) {
        c.ranks[(size_t)r].in_place = places >> r & 1;
        c.ranks[(size_t)r].out_shift = (size_t)r;
    }
    return c;
}

/* @return what was copied */
uint64_t run_one(const Case &c, Small *small)
{
    const uint64_t before = copies_done();

    step(text(c));
    try {
        run_case(c, &small->world());
    } catch (const std::exception &e) {
        ADD_FAILURE() << e.what() << "\n" << text(c);
    }
    return copies_done() - before;
}

/* Copies from rank to rank that a call is made of; own blocks come on top. */
uint64_t between(const Case &c)
{
    const auto size = (uint64_t)c.size;
    if (c.kind == ALL_GATHER || c.kind == ALL_TO_ALL)
        return size * (size - 1);
    return size - 1;
}

} // namespace

/* As soon as it is more than lines hold. */
TEST(Kernels, CopiesMoveAll)
{
    for (int size : {2, 3, 5})
        for (int placement = 0; placement < 3; placement++) {
            Small small(shape_of(size, placement));

            late_copies((unsigned)placement);
            for (Kind kind : movers)
                for (size_t count : {256, 257, 9001})
                    for (unsigned places : {0u, ~0u, 2u}) {
                        Case c = mover(size, kind, count, places);
                        const bool serve = count > 256 && !(kind == ALL_TO_ALL && places != 0);

                        c.one_group = placement == 1;
                        const uint64_t copies = run_one(c, &small);
                        if (HasFailure())
                            return;
                        EXPECT_EQ(copies >= 2 * between(c), serve) << copies << "\n" << text(c);
                        EXPECT_EQ(copies == 0, !serve) << copies << "\n" << text(c);
                    }
            late_copies(0);
            small.destroy();
        }
}

/* Captured, replayed, and calls between; a graph of each device. */
TEST(Kernels, CopiesInGraphs)
{
    for (int size : {2, 4})
        for (int placement = 0; placement < 3; placement++) {
            Small small(shape_of(size, placement));

            late_copies(1);
            for (Kind kind : movers)
                for (How how : {GRAPH, MIXED})
                    for (Streams streams : {OWN, SHARED, CHANGING}) {
                        Case c = mover(size, kind, 1000, streams == SHARED ? 1 : 0);

                        c.seed = 5 * (uint64_t)how + (uint64_t)streams;
                        c.how = how;
                        c.streams = streams;
                        c.rounds = 4;
                        const uint64_t copies = run_one(c, &small);
                        if (HasFailure())
                            return;
                        if (kind != ALL_TO_ALL || streams != SHARED) {
                            EXPECT_GE(copies, 4 * between(c)) << text(c);
                        }
                    }
            late_copies(0);
            small.destroy();
        }
}

/* Between kernels that do all of a call, and where counters wrap and lines are swept. */
TEST(Kernels, CopiesAmongOthers)
{
    for (uint32_t start : {0xfffffffau, 0x3ffffff9u, 0x7ffffffbu, 0xbffffffcu}) {
        Shape shape = shape_of(3, (int)(start % 3));

        shape.start = start;
        Small small(shape);
        for (int call = 0; call < 14; call++) {
            Case c = mover(3, movers[call % 5], call % 3 == 0 ? 40 : 700, 0);

            if (call % 4 == 1) {
                c.kind = ALL_REDUCE;
                c.root = 0;
            }
            c.threads = call % 4 == 2; /* nobody knows the others' calls */
            c.how = call % 7 == 6 ? GRAPH : PLAIN;
            (void)run_one(c, &small);
            if (HasFailure())
                return;
        }
        small.destroy();
    }
}

/* ---- given up ----------------------------------------------------------------------------------
 */

namespace
{

const size_t COUNT = 4096;

/* A rank's stream that does not come to its call before it is told to. */
struct Gate {
    std::atomic<bool> open{false};
    static void run(void *gate)
    {
        while (!static_cast<Gate *>(gate)->open)
            usleep(100); /* between looks */
    }
};

/* A broadcast of rank 0, or as much sent. */
struct Cast {
    explicit Cast(int size) : small(shape_of(size, 0)), out((size_t)size)
    {
        for (int r = 0; r < size; r++)
            out[(size_t)r] = rank(r).arena.take_device(2 * COUNT);
    }
    Local &rank(int r) { return small.world().rank(r); }
    cudaStream_t stream(int r) { return *rank(r).own[0]; }
    void send()
    {
        grouped([&] {
            TWILL(twill_send(out[0] + COUNT, COUNT, TWILL_INT8, 1, rank(0).comm, stream(0)),
                  rank(0).comm);
            TWILL(twill_recv(out[1], COUNT, TWILL_INT8, 0, rank(1).comm, stream(1)), rank(1).comm);
        });
    }
    void call()
    {
        const int size = small.world().size();

        grouped([&] {
            for (int r = 0; r < size; r++)
                TWILL(twill_broadcast(out[(size_t)r] + COUNT, out[(size_t)r], COUNT, TWILL_INT8, 0,
                                      rank(r).comm, stream(r)),
                      rank(r).comm);
        });
    }
    Small small;
    std::vector<char *> out;
};

} // namespace

/* What a rank's stream does before the call is not disturbed, whatever the others do, and when it
 * has gone on nobody writes to its buffers. */
static void aborted(bool sends)
{
    Cast all(2);
    Gate gate;

    late_copies(50);
    memset(all.out[1], 7, COUNT);
    ASSERT_EQ(cudaLaunchHostFunc(all.stream(1), Gate::run, &gate), cudaSuccess);
    if (sends)
        all.send();
    else
        all.call();
    TWILL(twill_comm_abort(all.rank(0).comm), all.rank(0).comm);
    EXPECT_FALSE(wait_within(all.rank(0).device, all.stream(0), 0.2));
    EXPECT_EQ(std::count(all.out[1], all.out[1] + COUNT, 7), (long)COUNT);
    gate.open = true;
    EXPECT_TRUE(wait_within(all.rank(1).device, all.stream(1), 10));
    memset(all.out[1], 9, COUNT); /* it is the user's again */
    EXPECT_TRUE(wait_within(all.rank(0).device, all.stream(0), 10));
    usleep(200 * 1000); /* as long as several copies */
    EXPECT_EQ(std::count(all.out[1], all.out[1] + COUNT, 9), (long)COUNT);
    late_copies(0);
}

TEST(Kernels, CopiesOfAbortedCalls)
{
    if (devices() < 2)
        GTEST_SKIP() << "ranks of one device share a stream";
    for (bool sends : {false, true}) {
        SCOPED_TRACE(sends ? "a send" : "a broadcast");
        aborted(sends);
    }
}

/* Lists of messages, some of which are copied, in any order and on several streams. */
TEST(Kernels, CopiesOfSends)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        Small small(shape_of(2 + (int)seed % 3, seed == 0 ? 1 : 0));
        const uint64_t before = copies_done();

        step(format("sends by copy engines, %d", (int)seed));
        late_copies((unsigned)seed % 3);
        run_batches(&small.world(), 100 + seed, 8, 20000, true);
        late_copies(0);
        EXPECT_GT(copies_done(), before);
        small.destroy();
    }
}

/* Both ways, in a graph of each device, and between the replays. */
TEST(Kernels, CopiesOfSendsInGraphs)
{
    Small small(shape_of(2, 0));
    cudaGraphExec_t exec[2];
    cudaGraph_t graph[2];
    char *at[2];

    late_copies(2);
    for (int r = 0; r < 2; r++)
        at[r] = small.world().rank(r).arena.take_device(2 * COUNT);
    const auto stream = [&](int r) { return (cudaStream_t)*small.world().rank(r).own[0]; };
    const auto exchange = [&] {
        grouped([&] {
            for (int r = 0; r < 2; r++) {
                const twill_comm_t comm = small.world().rank(r).comm;
                TWILL(twill_send(at[r], COUNT, TWILL_INT8, 1 - r, comm, stream(r)), comm);
                TWILL(twill_recv(at[r] + COUNT, COUNT, TWILL_INT8, 1 - r, comm, stream(r)), comm);
            }
        });
    };
    for (int r = 0; r < 2; r++) {
        const On on(small.world().rank(r).device);
        CUDA(cudaStreamBeginCapture(stream(r), cudaStreamCaptureModeRelaxed));
    }
    exchange();
    for (int r = 0; r < 2; r++) {
        const On on(small.world().rank(r).device);
        CUDA(cudaStreamEndCapture(stream(r), &graph[r]));
        CUDA(cudaGraphInstantiateWithFlags(&exec[r], graph[r], 0));
    }
    const uint64_t before = copies_done();
    for (int round = 0; round < 6; round++) {
        for (int r = 0; r < 2; r++)
            memset(at[r], 10 * round + r, COUNT);
        for (int r = 0; r < 2 && round % 3 != 2; r++)
            CUDA(cudaGraphLaunch(exec[r], stream(r)));
        if (round % 3 == 2)
            exchange();
        for (int r = 0; r < 2; r++) {
            ASSERT_TRUE(wait_within(small.world().rank(r).device, stream(r), 10)) << round;
            EXPECT_EQ(std::count(at[r] + COUNT, at[r] + 2 * COUNT, 10 * round + 1 - r), (long)COUNT)
                << "round " << round;
        }
    }
    late_copies(0);
    EXPECT_EQ(copies_done() - before, 12u);
    for (int r = 0; r < 2; r++) {
        CUDA(cudaGraphExecDestroy(exec[r]));
        CUDA(cudaGraphDestroy(graph[r]));
    }
    small.destroy();
}

/* A late rank is told of, and the call ends well. */
TEST(Kernels, CopiesWaitForLateRanks)
{
    if (devices() < 2)
        GTEST_SKIP() << "ranks of one device share a stream";
    Cast all(2);
    Gate gate;

    ASSERT_EQ(cudaLaunchHostFunc(all.stream(1), Gate::run, &gate), cudaSuccess);
    all.call();
    const uint32_t *waiting = &all.rank(0).comm->gpu->host->waiting;
    EXPECT_TRUE(within(10, [=] { return __atomic_load_n(waiting, __ATOMIC_ACQUIRE) != 0; }));
    gate.open = true;
    for (int r = 0; r < 2; r++)
        EXPECT_TRUE(wait_within(all.rank(r).device, all.stream(r), 10));
    EXPECT_EQ(__atomic_load_n(waiting, __ATOMIC_ACQUIRE), 0u);
    all.small.world().healthy();
    all.small.destroy();
}

} // namespace emu
