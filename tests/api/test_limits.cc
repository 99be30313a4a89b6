/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a small blocking call must not do. Never knows: how it manages. Not part of builds
 * with a sanitizer, whose runtime allocates and enters the kernel by itself. */
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "traps.h"
#include "world.h"

extern "C" {
#include "algo/algo.h"
#include "base/host.h"
}

namespace
{

/* ---- calls ------------------------------------------------------------------------------------
 */

const size_t MOST = 4096 / sizeof(float); /* elements */
const size_t COUNTS[] = {0, 1, 2, 250, MOST};
const size_t SIZES = sizeof COUNTS / sizeof *COUNTS;

/* One call. in[i] is value on rank 0 and value + 1 on rank 1. @return is all as it must be?
 * Neither allocates nor enters the kernel by itself. */
struct Call {
    twill_comm_t comm;
    int rank;
    size_t count;
    float value;
    const float *in;
    float *out;

    /* the first and the last of each block of out */
    bool is(enum twill_status status, size_t blocks, float first_block, float last_block) const
    {
        const size_t n = blocks * count;
        return status == TWILL_OK &&
               (n == 0 || (out[0] == first_block && out[n - 1] == last_block));
    }
};

bool all_reduce(const Call &c)
{
    return c.is(twill_all_reduce(c.in, c.out, c.count, TWILL_FLOAT32, TWILL_SUM, c.comm, nullptr),
                1, 2 * c.value + 1, 2 * c.value + 1);
}
bool reduce(const Call &c)
{
    const enum twill_status status =
        twill_reduce(c.in, c.out, c.count, TWILL_FLOAT32, TWILL_MAX, 1, c.comm, nullptr);
    return c.is(status, c.rank == 1, c.value + 1, c.value + 1);
}
bool broadcast(const Call &c)
{
    return c.is(twill_broadcast(c.in, c.out, c.count, TWILL_FLOAT32, 1, c.comm, nullptr), 1,
                c.value + 1, c.value + 1);
}
bool reduce_scatter(const Call &c)
{
    return c.is(
        twill_reduce_scatter(c.in, c.out, c.count, TWILL_FLOAT32, TWILL_AVG, c.comm, nullptr), 1,
        c.value + 0.5f, c.value + 0.5f);
}
bool all_gather(const Call &c)
{
    return c.is(twill_all_gather(c.in, c.out, c.count, TWILL_FLOAT32, c.comm, nullptr), 2, c.value,
                c.value + 1);
}
bool all_to_all(const Call &c)
{
    return c.is(twill_all_to_all(c.in, c.out, c.count, TWILL_FLOAT32, c.comm, nullptr), 2, c.value,
                c.value + 1);
}
bool barrier(const Call &c) { return twill_barrier(c.comm, nullptr) == TWILL_OK; }

/* There and back. */
bool send_recv(const Call &c)
{
    const int peer = 1 - c.rank;
    enum twill_status status = TWILL_OK;
    for (int turn = 0; turn < 2 && status == TWILL_OK; turn++)
        status = turn == c.rank ? twill_send(c.in, c.count, TWILL_FLOAT32, peer, c.comm, nullptr)
                                : twill_recv(c.out, c.count, TWILL_FLOAT32, peer, c.comm, nullptr);
    const float theirs = c.value + (float)peer;
    return c.is(status, 1, theirs, theirs);
}

struct Kind {
    const char *name;
    bool (*call)(const Call &);
};
const Kind KINDS[] = {
    {"all_reduce", all_reduce}, {"reduce", reduce},
    {"broadcast", broadcast},   {"reduce_scatter", reduce_scatter},
    {"all_gather", all_gather}, {"all_to_all", all_to_all},
    {"barrier", barrier},       {"send and recv", send_recv},
};
const size_t NKINDS = sizeof KINDS / sizeof *KINDS;

/* ---- what both ranks write down ---------------------------------------------------------------
 */

const int ROUNDS = 60;
const size_t NCALLS = ROUNDS * SIZES * NKINDS;

struct Span {
    double begin_s, end_s;
    int waits; /* system calls within that wait */
};

struct Report {
    bool armed;
    int done; /* atomic */
    int wrong, counted, others, first_other;
    const char *first_counted;
    Span spans[NCALLS];
};

/* Of both ranks; outlives them. */
Report *reports()
{
    static void *const at = mmap(nullptr, 2 * sizeof(Report), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<Report *>(at);
}

/* Every so often a rank comes late, but before the other may have stopped to spin. */
void linger(size_t call, int rank)
{
    const double late_s = 50e-6, start_s = world::now_s();
    if (call % 16 != 0 || call / 16 % 2 != (size_t)rank)
        return;
    while (world::now_s() - start_s < late_s) {
    }
}

/* Never returns: an armed thread cannot end. */
void measure(twill_comm_t comm, int rank, Report *report)
{
    static float in[2 * MOST], out[2 * MOST];
    Call call = {comm, rank, 1, 0, in, out};
    in[0] = in[1] = (float)rank;
    for (const Kind &kind : KINDS) /* the first call of each kind, which may do all */
        report->wrong += !kind.call(call);
    report->armed = traps::arm();
    traps::count_start();
    Span *span = report->spans;
    for (int round = 0; round < ROUNDS; round++) {
        call.value = (float)round;
        for (float &x : in)
            x = (float)(round + rank);
        for (const size_t count : COUNTS) {
            call.count = count;
            for (const Kind &kind : KINDS) {
                linger((size_t)(span - report->spans), rank);
                const int before = traps::waits;
                span->begin_s = world::now_s();
                report->wrong += !kind.call(call);
                span->end_s = world::now_s();
                span->waits = traps::waits - before;
                span++;
            }
        }
    }
    traps::count_stop();
    report->counted = traps::counted();
    report->first_counted = traps::first_counted();
    report->others = traps::others;
    report->first_other = traps::first_other;
    world::set(&report->done, 1);
    for (;;)
        __asm__ volatile("" ::: "memory");
}

/* ---- two ranks on two CPUs --------------------------------------------------------------------
 */

void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Two CPUs that this process may use. @return false: there is but one, which both are */
bool two_cpus(int cpus[2])
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int found = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus[found++] = cpu;
    if (found == 1)
        cpus[1] = cpus[0];
    return found == 2 && tw_host_cpu_quota() != 1;
}

void run_pinned(const int cpus[2], const world::Env &env)
{
    memset(static_cast<void *>(reports()), 0, 2 * sizeof(Report));
    world::run_all(
        2,
        [&](const world::Rank &rank) {
            pin(cpus[rank.rank]);
            twill_comm_t comm = rank.init();
            ASSERT_NE(comm, nullptr);
            Report *report = &reports()[rank.rank];
            std::thread thread([&] { measure(comm, rank.rank, report); });
            /* It cannot be joined: its end is a system call, which it may not make any more. And
             * whoever waits here must not take its CPU: so a look now and then. */
            while (!world::get(&report->done))
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            EXPECT_OK(twill_comm_destroy(comm), nullptr);
            fflush(nullptr);
            _exit(::testing::Test::HasFailure() ? 1 : 0);
        },
        env);
}

void expect_nothing_forbidden(const Report &report)
{
    EXPECT_TRUE(report.armed);
    EXPECT_EQ(report.wrong, 0);
    EXPECT_EQ(report.counted, 0) << "allocations and locks, the first: " << report.first_counted;
    EXPECT_EQ(report.others, 0) << "the first was system call " << report.first_other;
}

/*
 * A wait of less than 100 us spins. A call for which less than that has passed from the first
 * rank's entry to the last one's return holds no longer wait, so it must be free of system calls
 * that wait, too. In others a rank lost its CPU to something else.
 */
const double SPIN_S = 100e-6;

void expect_undisturbed_calls_spin()
{
    size_t undisturbed = 0, entered = 0, first = NCALLS;
    for (size_t i = 0; i < NCALLS; i++) {
        const Span &a = reports()[0].spans[i], &b = reports()[1].spans[i];
        if (std::max(a.end_s, b.end_s) - std::min(a.begin_s, b.begin_s) >= SPIN_S)
            continue;
        undisturbed++;
        if (a.waits + b.waits == 0)
            continue;
        entered++;
        first = std::min(first, i);
    }
    EXPECT_EQ(entered, 0u) << "of " << undisturbed
                           << " calls, the first: " << KINDS[first % NKINDS].name << " of "
                           << COUNTS[first / NKINDS % SIZES] << " elements";
    EXPECT_GE(undisturbed, NCALLS * 9 / 10) << "calls are not quick";
}

TEST(Limits, SmallCallsNeitherAllocateNorLockNorEnterTheKernel)
{
    ASSERT_NE(reports(), nullptr);
    std::vector<std::string> algos = {""}; /* the choice */
    for (size_t i = 0; const struct tw_algo *algo = tw_algo_at(i); i++)
        algos.push_back(algo->name);
    int cpus[2];
    const bool apart = two_cpus(cpus);
    for (const std::string &algo : algos) {
        SCOPED_TRACE("TWILL_ALGO=" + algo);
        run_pinned(cpus, {{"TWILL_ALGO", algo}});
        for (int rank = 0; rank < 2; rank++)
            expect_nothing_forbidden(reports()[rank]);
        if (apart)
            expect_undisturbed_calls_spin();
        if (HasFailure())
            return;
    }
}

/* ---- the instruments --------------------------------------------------------------------------
 */

/* One call of each sort that is counted. @return how many there are */
int call_all_that_counts()
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    sem_t semaphore;
    void *volatile at = malloc(100); /* not to be optimised away */
    at = realloc(at, 200);
    free(at);
    at = calloc(1, 100);
    free(at);
    at = aligned_alloc(64, 64);
    free(at);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_trylock(&mutex);
    const struct timespec past = {0, 0};
    pthread_cond_timedwait(&cond, &mutex, &past);
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&cond);
    pthread_cond_broadcast(&cond);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_once(&once, [] {});
    sem_init(&semaphore, 0, 0);
    sem_post(&semaphore);
    sem_wait(&semaphore);
    return 3 + 2 + 2 + 3 + 1 + 1 + 2 + 4 + 1 + 2;
}

TEST(Limits, TheInstrumentsWork)
{
    world::run_alone([] {
        int done = 0, counted = 0, expected = 0;
        const char *first = nullptr;
        std::thread thread([&] {
            traps::count_start();
            expected = call_all_that_counts();
            traps::count_stop();
            counted = traps::counted();
            first = traps::first_counted();
            traps::arm();
            syscall(SYS_getppid);
            syscall(SYS_sched_yield);
            (void)world::now_s(); /* a clock that is read without the kernel */
            world::set(&done, 1);
            for (;;)
                __asm__ volatile("" ::: "memory");
        });
        while (!world::get(&done))
            std::this_thread::yield();
        EXPECT_EQ(counted, expected);
        EXPECT_STREQ(first, "malloc");
        EXPECT_EQ(traps::others, 1);
        EXPECT_EQ(traps::first_other, SYS_getppid);
        EXPECT_EQ(traps::waits, 1);
        fflush(nullptr);
        _exit(HasFailure() ? 1 : 0);
    });
}

} // namespace
