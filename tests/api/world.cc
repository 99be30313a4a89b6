/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: fork, threads, shared words. Never knows: what the ranks do. */
#include "world.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace world
{

double budget_s()
{
    const char *value = getenv("TW_TEST_BUDGET");
    const double budget = value ? atof(value) : 0;
    return budget > 0 ? budget : 4;
}

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

double now_s()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int get(const int *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
void set(int *word, int value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

void await(const int *word, int value)
{
    while (get(word) != value)
        sched_yield();
}

twill_unique_id Rank::id() const
{
    Shared *s = shared();
    if (rank == 0) {
        EXPECT_EQ(twill_get_unique_id(&s->id), TWILL_OK) << twill_last_error(nullptr);
        set(&s->id_ready, 1);
    } else {
        await(&s->id_ready, 1);
    }
    return s->id;
}

twill_comm_t Rank::init(const twill_config *config) const
{
    const twill_unique_id job = id();
    twill_comm_t comm = nullptr;
    EXPECT_EQ(twill_comm_init(&comm, size, &job, rank, config), TWILL_OK)
        << twill_last_error(nullptr);
    return comm;
}

void Rank::meet(int point) const
{
    __atomic_fetch_add(&shared()->arrived[point], 1, __ATOMIC_ACQ_REL);
    await(&shared()->arrived[point], size);
}

enum twill_status settle(twill_comm_t comm)
{
    enum twill_status status = TWILL_INPROGRESS;
    while (status == TWILL_INPROGRESS)
        EXPECT_EQ(twill_comm_async_error(comm, &status), TWILL_OK);
    return status;
}

std::string text(twill_comm_t comm) { return twill_last_error(comm); }

::testing::AssertionResult ok(enum twill_status status, twill_comm_t comm)
{
    if (status == TWILL_OK)
        return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << twill_status_string(status) << ": " << text(comm);
}

static pid_t start(const Rank &rank, const Body &body, const Env &env)
{
    fflush(nullptr);
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (const auto &entry : env)
        setenv(entry.first.c_str(), entry.second.c_str(), 1);
    try {
        body(rank);
    } catch (const std::exception &e) {
        ADD_FAILURE() << "exception: " << e.what();
    }
    const bool failed = ::testing::Test::HasFailure();
    if (failed)
        printf("(rank %d of %d has failed expectations)\n", rank.rank, rank.size);
    fflush(nullptr);
    exit(failed ? 1 : 0);
}

/* @return false: still running */
static bool reap(pid_t pid, Exit *out)
{
    int status;
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == 0)
        return false;
    out->signal = got == pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    out->failed_expectations = got != pid || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
    return true;
}

std::vector<Exit> run(int size, const Body &body, const Env &env, double limit_s)
{
    memset(static_cast<void *>(shared()), 0, sizeof(Shared));
    std::vector<pid_t> pids;
    for (int rank = 0; rank < size; rank++)
        pids.push_back(start(Rank{rank, size}, body, env));
    std::vector<Exit> exits((size_t)size);
    std::vector<bool> over((size_t)size);
    const double end_s = now_s() + limit_s;
    bool killed = false;
    for (int left = size; left > 0;) {
        for (int rank = 0; rank < size; rank++) {
            const size_t i = (size_t)rank;
            if (over[i] || !reap(pids[i], &exits[i]))
                continue;
            over[i] = true;
            left--;
        }
        if (!killed && now_s() > end_s) {
            killed = true;
            for (size_t i = 0; i < pids.size(); i++) {
                if (over[i])
                    continue;
                ADD_FAILURE() << "rank " << i << " of " << size << " still ran after " << limit_s
                              << " s";
                kill(pids[i], SIGKILL);
            }
        }
        /* between looks at many processes, and at a deadline */
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, nullptr);
    }
    return exits;
}

void run_all(int size, const Body &body, const Env &env, double limit_s)
{
    const std::vector<Exit> exits = run(size, body, env, limit_s);
    for (size_t i = 0; i < exits.size(); i++) {
        EXPECT_EQ(exits[i].signal, 0) << "rank " << i << " of " << size << " was killed";
        EXPECT_FALSE(exits[i].failed_expectations) << "rank " << i << " of " << size;
    }
}

void run_streams(
    int size,
    const std::function<void(const Rank &, twill_comm_t comm, twill_stream_t stream)> &body)
{
    run_all(size, [&](const Rank &rank) {
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        twill_stream_t stream;
        ASSERT_OK(twill_stream_create(&stream), nullptr);
        body(rank, comm, stream);
        if (::testing::Test::HasFatalFailure())
            return; /* the others may wait for what this rank did not call */
        EXPECT_OK(twill_stream_destroy(stream), nullptr);
        EXPECT_OK(twill_comm_destroy(comm), nullptr);
    });
}

void run_alone(const std::function<void()> &body, const Env &env, double limit_s)
{
    run_all(
        1, [&](const Rank &) { body(); }, env, limit_s);
}

void threads(int count, const std::function<void(int)> &body)
{
    std::vector<std::thread> all;
    for (int i = 0; i < count; i++)
        all.emplace_back(body, i);
    for (auto &thread : all)
        thread.join();
}

} // namespace world
