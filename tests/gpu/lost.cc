/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: ranks that are killed, that never come, and that are given up, while kernels wait for
 * them. Never knows: what calls compute. */
#include <csignal>
#include <memory>
#include <thread>

#include "gpu/base.h"
#include "gpu/process.h"
#include "gpu/roles.h"
#include "gpu/world.h"

namespace gpu
{

/* ---- in the processes --------------------------------------------------------------------------
 */

namespace
{

const size_t FEW = 1000, MANY = (size_t)1 << 20; /* elements: lines, rings */
const double LIMIT_S = 10;                       /* of what should take a second at most */

enum twill_status state_of(twill_comm_t comm)
{
    enum twill_status status = TWILL_OK;
    TWILL(twill_comm_async_error(comm, &status), comm);
    return status;
}

/* Say when the stream went on, when the communicator failed, and how. */
void tell(Local *local, cudaStream_t stream)
{
    const bool unstuck = wait_within(local->device, stream, LIMIT_S);
    const double unstuck_s = now_s();
    const bool failed = within(LIMIT_S, [&] { return state_of(local->comm) < 0; });
    const double failed_s = now_s();

    say(format("gone %d %.6f %.6f %s", failed ? state_of(local->comm) : 0,
               unstuck ? unstuck_s : unstuck_s + 1000, failed_s, twill_last_error(local->comm)));
}

/* Calls that follow each other, until one cannot be made or the communicator has failed. */
void loop(Local *local, cudaStream_t stream, char *at)
{
    for (int i = 0; state_of(local->comm) == TWILL_OK; i++) {
        const enum twill_status status = twill_all_reduce(
            at, at, i % 2 == 0 ? FEW : MANY, TWILL_INT32, TWILL_BXOR, local->comm, stream);
        if (status != TWILL_OK)
            break;
        if (i % 8 == 7 && !wait_within(local->device, stream, LIMIT_S))
            break;
        if (i == 7)
            say("waiting");
    }
}

} // namespace

/* args: ranks, rank, what it does: "call", "loop", "idle" (until it is killed), "abort" (call, and
 * abort when told) or "look" (at the communicator until it has failed); elements of a call */
int role_victim(const std::vector<std::string> &args)
{
    const int size = std::stoi(args.at(0)), rank = std::stoi(args.at(1));
    const std::string part = args.at(2);
    const size_t count = std::stoull(args.at(3));
    const int device = rank % devices();
    World world(size, {rank}, {device}, join_by_id(size, rank, 1, device));
    Local &local = *world.locals()[0];
    const cudaStream_t stream = *local.own[0];
    Memory memory(device, MANY * 4);

    say("ready");
    (void)hear(); /* all are */
    if (part == "idle") {
        say("waiting");
        (void)hear(600);
        return 1;
    }
    if (part == "loop") {
        loop(&local, stream, memory.get());
    } else if (part != "look") {
        TWILL(twill_all_reduce(memory.get(), memory.get(), count, TWILL_INT32, TWILL_SUM,
                               local.comm, stream),
              local.comm);
        if (wait_within(device, stream, 0.1))
            throw Failure("a call ended without its peer");
        say("waiting");
    } else {
        say("waiting");
    }
    if (part == "abort") {
        (void)hear();
        TWILL(twill_comm_abort(local.comm), local.comm);
    }
    tell(&local, stream);
    const double before_s = now_s();
    TWILL(twill_comm_destroy(local.comm), nullptr);
    local.comm = nullptr;
    if (now_s() - before_s > 1)
        throw Failure(format("destroying took %.1f s", now_s() - before_s));
    Memory works(device, 4096); /* the device does */
    return 0;
}

/* ---- in the test -------------------------------------------------------------------------------
 */

namespace
{

struct Job {
    std::vector<std::unique_ptr<Child>> children;

    Job(const std::vector<std::string> &parts, size_t count, const Env &env = {})
    {
        std::vector<Child *> all;
        const std::string size = std::to_string(parts.size());

        for (size_t r = 0; r < parts.size(); r++) {
            children.push_back(std::make_unique<Child>(
                std::vector<std::string>{"--role", "victim", size, std::to_string(r), parts[r],
                                         std::to_string(count)},
                env));
            all.push_back(children.back().get());
        }
        pass_id(all);
        for (auto &child : children)
            expect_line(child.get(), "ready");
        for (auto &child : children)
            child->say("go");
        for (auto &child : children)
            expect_line(child.get(), "waiting");
    }
    static void expect_line(Child *child, const std::string &line)
    {
        const std::string heard = child->hear(50);
        if (heard != line)
            throw Failure("expected " + line + ", heard " + heard);
    }
};

const double PINNED_LIMIT_S = 15; /* where memory was pinned that processes share */

/* The process's stream went on and its communicator failed, both within a second of then. */
void expect_gone(Child *child, int rank, enum twill_status status, const std::string &words,
                 double then_s, double limit_s = 1)
{
    const std::string line = child->hear(2 * LIMIT_S + 5);
    int found = 0, at = 0;
    double unstuck_s = 0, failed_s = 0;

    ASSERT_EQ(sscanf(line.c_str(), "gone %d %lf %lf %n", &found, &unstuck_s, &failed_s, &at), 3)
        << line;
    printf("rank %d: stream on after %.3f s, failed after %.3f s: %s\n", rank, unstuck_s - then_s,
           failed_s - then_s, line.c_str() + at);
    EXPECT_EQ(found, status) << twill_status_string((enum twill_status)found);
    EXPECT_LT(unstuck_s - then_s, limit_s) << "rank " << rank;
    EXPECT_LT(failed_s - then_s, limit_s) << "rank " << rank;
    EXPECT_TRUE(contains(line, words)) << line;
    EXPECT_EQ(child->wait(20), 0) << "rank " << rank;
}

/* Rank 1 is killed; the others do as `part` says. */
void kill_one(int size, const std::string &part, const std::string &victim, size_t count,
              const Env &env = {}, double limit_s = 1)
{
    std::vector<std::string> parts((size_t)size, part);
    parts[1] = victim;
    Job job(parts, count, env);

    sleep_s(0.2); /* kernels are in their waits, and loops somewhere */
    const double killed_s = now_s();
    job.children[1]->kill(SIGKILL);
    for (int r = 0; r < size; r++)
        if (r != 1)
            expect_gone(job.children[(size_t)r].get(), r, TWILL_ERR_PEER, "rank 1", killed_s,
                        limit_s);
}

} // namespace

TEST(Lost, KilledWhileTheOtherWaits) { kill_one(2, "call", "idle", FEW); }
TEST(Lost, KilledWhileTheOtherWaitsWithMuch) { kill_one(2, "call", "idle", MANY); }
TEST(Lost, KilledWhileTwoWait) { kill_one(3, "call", "idle", FEW); }
TEST(Lost, KilledWhileThreeWaitWithMuch) { kill_one(4, "call", "idle", MANY); }
TEST(Lost, KilledInTheMiddleOfCalls)
{
    for (int i = 0; i < 3; i++) {
        step(format("killing in the middle, time %d", i));
        kill_one(2, "loop", "loop", FEW);
    }
}

/* What they share is host memory that both have mapped. The system closes a process's connections
 * after its memory, and CUDA's driver takes seconds for what was pinned: 3.7 were seen on two H200.
 */
TEST(Lost, KilledWhileTheOtherWaitsByPinnedMemory)
{
    for (size_t count : {FEW, MANY})
        kill_one(2, "call", "idle", count, {{"TWILL_P2P", "0"}}, PINNED_LIMIT_S);
    kill_one(2, "loop", "loop", FEW, {{"TWILL_P2P", "0"}}, PINNED_LIMIT_S);
}

TEST(Lost, AbortEndsTheWait)
{
    for (size_t count : {FEW, MANY}) {
        Job job({"abort", "look"}, count);
        const double then_s = now_s();

        job.children[0]->say("abort");
        expect_gone(job.children[0].get(), 0, TWILL_ERR_ABORTED, "", then_s);
        expect_gone(job.children[1].get(), 1, TWILL_ERR_ABORTED, "rank 0", then_s);
    }
}

TEST(Lost, LateRankIsNamed)
{
    const double then_s = now_s();
    Job job({"call", "look"}, FEW, {{"TWILL_TIMEOUT", "3s"}});

    expect_gone(job.children[0].get(), 0, TWILL_ERR_TIMEOUT, "rank 1", then_s, 30);
    expect_gone(job.children[1].get(), 1, TWILL_ERR_TIMEOUT, "rank 1", then_s, 30);
    EXPECT_GT(now_s() - then_s, 2.5);
}

/* Ranks of one process. Those of one device are one kernel, so that the call of the first waits for
 * the other's instead. */
TEST(Lost, AbortEndsTheWaitInOneProcess)
{
    for (size_t count : {FEW, MANY}) {
        World world(place(2, 0));
        Local &local = world.rank(0);
        Memory memory(local.device, MANY * 4);
        enum twill_status status = TWILL_OK;
        std::thread caller([&] {
            status = twill_all_reduce(memory.get(), memory.get(), count, TWILL_INT32, TWILL_SUM,
                                      local.comm, *local.own[0]);
        });

        sleep_s(0.2); /* it waits */
        const double then_s = now_s();
        EXPECT_EQ(twill_comm_abort(local.comm), TWILL_OK);
        caller.join();
        EXPECT_TRUE(wait_within(local.device, *local.own[0], 1));
        EXPECT_LT(now_s() - then_s, 1);
        EXPECT_TRUE(status == TWILL_OK || status == TWILL_ERR_ABORTED)
            << twill_status_string(status);
        EXPECT_EQ(state_of(local.comm), TWILL_ERR_ABORTED);
        EXPECT_TRUE(within(1, [&] { return state_of(world.rank(1).comm) == TWILL_ERR_ABORTED; }));
    }
}

} // namespace gpu
