/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a small blocking call must not do. Never knows: how it manages. Not part of builds
 * with a sanitizer, whose runtime allocates and enters the kernel by itself. */
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <thread>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "world.h"

/* ---- wrapped allocators and locks: this binary is linked with --wrap for each ------------------
 */

namespace
{
/* volatile: the compiler knows that malloc does not look at them */
thread_local volatile bool counting;
thread_local volatile int wrapped_calls;

void count()
{
    if (counting)
        wrapped_calls = wrapped_calls + 1;
}
} // namespace

extern "C" {
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *at, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
int __real_posix_memalign(void **at, size_t align, size_t bytes);
void __real_free(void *at);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_trylock(pthread_mutex_t *lock);

void *__wrap_malloc(size_t bytes)
{
    count();
    return __real_malloc(bytes);
}
void *__wrap_calloc(size_t number, size_t bytes)
{
    count();
    return __real_calloc(number, bytes);
}
void *__wrap_realloc(void *at, size_t bytes)
{
    count();
    return __real_realloc(at, bytes);
}
void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
    count();
    return __real_aligned_alloc(align, bytes);
}
int __wrap_posix_memalign(void **at, size_t align, size_t bytes)
{
    count();
    return __real_posix_memalign(at, align, bytes);
}
void __wrap_free(void *at)
{
    count();
    __real_free(at);
}
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    count();
    return __real_pthread_mutex_lock(lock);
}
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
    count();
    return __real_pthread_mutex_trylock(lock);
}
}

namespace
{

/* ---- trapped system calls ---------------------------------------------------------------------
 */

/* Written by the signal handler of the one filtered thread. */
volatile sig_atomic_t trapped_calls, first_trapped, waiting_calls;

/* The system call is not made: it returns its own number, which nobody here looks at. */
void on_trap(int, siginfo_t *info, void *)
{
    switch (info->si_syscall) {
    case SYS_sched_yield: /* the peer was not running: a wait that outlasts the spinning */
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_clock_gettime:
        waiting_calls = waiting_calls + 1;
        return;
    default:
        if (!trapped_calls)
            first_trapped = info->si_syscall;
        trapped_calls = trapped_calls + 1;
    }
}

/* From here on every system call of the calling thread traps, but the return from the handler. */
bool trap_system_calls()
{
    struct sigaction action = {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (sigaction(SIGSYS, &action, nullptr) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return false;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Two CPUs that this process may use; the second may be the first. */
void two_cpus(int cpus[2])
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int found = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus[found++] = cpu;
    if (found == 1)
        cpus[1] = cpus[0];
}

const size_t SMALL = 4096;

/* One call of every kind of up to 4 KiB. No expectation inside: those would allocate. */
int round_of_calls(twill_comm_t comm, int rank, int round, float *in, float *out)
{
    const size_t count = round % 2 ? SMALL / sizeof(float) : 1 + (size_t)round % 200;
    const size_t block = count / 2;
    const int peer = 1 - rank;
    int bad = 0;
    in[0] = (float)(rank + round);
    in[count - 1] = (float)(rank + round);
    bad += twill_all_reduce(in, out, count, TWILL_FLOAT32, TWILL_SUM, comm, nullptr) != TWILL_OK;
    bad += out[0] != (float)(2 * round + 1) || out[count - 1] != (float)(2 * round + 1);
    bad += twill_reduce(in, out, count, TWILL_FLOAT32, TWILL_MAX, 0, comm, nullptr) != TWILL_OK;
    bad += twill_broadcast(in, out, count, TWILL_FLOAT32, 1, comm, nullptr) != TWILL_OK;
    bad += out[0] != (float)(1 + round);
    bad +=
        twill_reduce_scatter(in, out, block, TWILL_FLOAT32, TWILL_AVG, comm, nullptr) != TWILL_OK;
    bad += twill_all_gather(in, out, block, TWILL_FLOAT32, comm, nullptr) != TWILL_OK;
    bad += twill_all_to_all(in, out, block, TWILL_FLOAT32, comm, nullptr) != TWILL_OK;
    bad += twill_barrier(comm, nullptr) != TWILL_OK;
    for (int turn = 0; turn < 2; turn++)
        bad +=
            (turn == rank ? twill_send(in, count, TWILL_FLOAT32, peer, comm, nullptr)
                          : twill_recv(out, count, TWILL_FLOAT32, peer, comm, nullptr)) != TWILL_OK;
    bad += out[0] != (float)(peer + round);
    return bad;
}

struct Result {
    bool filtered;
    int bad, allocs_and_locks, quiet_rounds, rounds;
    int done; /* atomic */
};

/* Never returns: a filtered thread cannot end. */
void measure(twill_comm_t comm, int rank, Result *result)
{
    static float in[SMALL / sizeof(float)], out[SMALL / sizeof(float)];
    for (int round = 0; round < 4; round++) /* the first calls of every kind and size */
        result->bad += round_of_calls(comm, rank, round, in, out);
    result->filtered = trap_system_calls();
    counting = true;
    for (int round = 0; round < result->rounds; round++) {
        const int before = waiting_calls;
        result->bad += round_of_calls(comm, rank, round, in, out);
        result->quiet_rounds += waiting_calls == before;
    }
    counting = false;
    result->allocs_and_locks = wrapped_calls;
    world::set(&result->done, 1);
    for (;;)
        __asm__ volatile("" ::: "memory");
}

TEST(Limits, SmallCallsNeitherAllocateNorLockNorEnterTheKernel)
{
    world::run_all(2, [](const world::Rank &rank) {
        int cpus[2];
        two_cpus(cpus);
        twill_comm_t comm = rank.init();
        ASSERT_NE(comm, nullptr);
        Result result = {};
        result.rounds = 3000;
        std::thread thread([&] {
            pin(cpus[rank.rank]);
            measure(comm, rank.rank, &result);
        });
        while (!world::get(&result.done))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        rank.meet(0);
        EXPECT_TRUE(result.filtered);
        EXPECT_EQ(result.bad, 0);
        EXPECT_EQ(result.allocs_and_locks, 0);
        EXPECT_EQ(trapped_calls, 0) << "the first was system call " << first_trapped;
        /* Where the machine runs something else on a CPU, the peer waits longer than it spins. */
        EXPECT_GT(result.quiet_rounds, result.rounds / 2);
        fflush(nullptr);
        _exit(HasFailure() ? 1 : 0);
    });
}

/* The wraps and the trap do see what they are to see. */
TEST(Limits, TheInstrumentsWork)
{
    world::run_alone([] {
        int done = 0, allocs = 0;
        std::thread thread([&] {
            counting = true;
            void *volatile at = malloc(100); /* not to be optimised away */
            free(at);
            counting = false;
            allocs = wrapped_calls;
            trap_system_calls();
            syscall(SYS_getppid);
            syscall(SYS_sched_yield);
            world::set(&done, 1);
            for (;;)
                __asm__ volatile("" ::: "memory");
        });
        while (!world::get(&done))
            std::this_thread::yield();
        EXPECT_EQ(allocs, 2);
        EXPECT_EQ(trapped_calls, 1);
        EXPECT_EQ(first_trapped, SYS_getppid);
        EXPECT_EQ(waiting_calls, 1);
        fflush(nullptr);
        _exit(HasFailure() ? 1 : 0);
    });
}

} // namespace
