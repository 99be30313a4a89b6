/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: fork, threads, shared words. Never knows: what the ranks do. */
#include "ranks.h"

#include <cstdlib>
#include <cstring>
#include <thread>

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace ranks
{

Shared *shared()
{
    static Shared *area = nullptr;
    if (!area) {
        void *at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
        if (at == MAP_FAILED)
            abort();
        area = static_cast<Shared *>(at);
    }
    return area;
}

int get(const int *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
void set(int *word, int value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

void await(const int *word, int value)
{
    while (get(word) != value)
        sched_yield();
}

ncclUniqueId Rank::id(int n) const
{
    Shared *s = shared();
    if (rank == 0) {
        EXPECT_NCCL(ncclGetUniqueId(&s->ids[n]));
        set(&s->ready[n], 1);
    } else {
        await(&s->ready[n], 1);
    }
    return s->ids[n];
}

ncclComm_t Rank::init(ncclConfig_t *config) const
{
    ncclComm_t comm = nullptr;
    EXPECT_NCCL(ncclCommInitRankConfig(&comm, size, id(), rank, config));
    return comm;
}

void Rank::meet(int point) const
{
    __atomic_fetch_add(&shared()->arrived[point], 1, __ATOMIC_ACQ_REL);
    await(&shared()->arrived[point], size);
}

ncclResult_t settle(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        EXPECT_NCCL(ncclCommGetAsyncError(comm, &state));
        sched_yield();
    }
    return state;
}

std::string text() { return ncclGetLastError(nullptr); }

::testing::AssertionResult ok(ncclResult_t result)
{
    if (result == ncclSuccess)
        return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << (int)result << ", " << ncclGetErrorString(result) << ": " << text();
}

static pid_t start(const std::function<void()> &body, const Env &env, const char *name)
{
    fflush(nullptr);
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (const auto &entry : env)
        setenv(entry.first.c_str(), entry.second.c_str(), 1);
    body();
    const bool failed = ::testing::Test::HasFailure();
    if (failed)
        printf("(%s has failed expectations)\n", name);
    fflush(nullptr);
    exit(failed ? 1 : 0);
}

/* How long ranks may take, sanitizers and busy machines included. */
static const double limit_s = 120;

static double now_s()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Ended well, or as it was to. */
static void wait_for(pid_t pid, const std::string &name, double deadline_s, bool killed)
{
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (now_s() > deadline_s) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            ADD_FAILURE() << name << " has not ended";
            return;
        }
        const struct timespec pause = {0, 1000000}; /* between looks at a child */
        nanosleep(&pause, nullptr);
    }
    if (killed) {
        EXPECT_TRUE(WIFSIGNALED(status)) << name;
    } else
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << name << ": status " << status;
}

void processes(int size, const Body &body, const Env &env, int killed)
{
    std::vector<pid_t> pids;
    memset(shared(), 0, sizeof(Shared));
    for (int rank = 0; rank < size; rank++) {
        const Rank place = {rank, size};
        const std::string name = "rank " + std::to_string(rank);
        pids.push_back(start([&] { body(place); }, env, name.c_str()));
    }
    const double deadline_s = now_s() + limit_s;
    for (int rank = 0; rank < size; rank++)
        wait_for(pids[(size_t)rank], "rank " + std::to_string(rank), deadline_s, rank == killed);
}

void alone(const std::function<void()> &body, const Env &env)
{
    memset(shared(), 0, sizeof(Shared));
    wait_for(start(body, env, "the process"), "the process", now_s() + limit_s, false);
}

void threads(int size, const Body &body, const Env &env)
{
    alone(
        [&] {
            std::vector<std::thread> all;
            for (int rank = 0; rank < size; rank++)
                all.emplace_back([&body, rank, size] { body(Rank{rank, size}); });
            for (std::thread &one : all)
                one.join();
        },
        env);
}

} // namespace ranks
