/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: running sides of a test as threads or forked processes, and a place to meet.
 * Never knows: what is tested. */
#ifndef TW_TESTS_CONFORM_SHARED_H
#define TW_TESTS_CONFORM_SHARED_H

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <cstring>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "base/host.h"
#include "base/time.h"
#include "transport/transport.h"
}

namespace twtest
{

/* Memory that sides see alike, be they threads or processes forked later. */
template <class T> class Shared
{
  public:
    Shared()
    {
        void *base =
            mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED)
            abort();
        value_ = new (base) T();
    }
    ~Shared() { munmap(value_, sizeof(T)); }
    Shared(const Shared &) = delete;
    T *operator->() { return value_; }
    T &operator*() { return *value_; }

  private:
    T *value_;
};

/* Meets `sides` sides; valid in shared memory. */
class Meeting
{
  public:
    void init(unsigned sides)
    {
        pthread_barrierattr_t attr;
        pthread_barrierattr_init(&attr);
        pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&barrier_, &attr, sides);
        pthread_barrierattr_destroy(&attr);
    }
    void meet() { pthread_barrier_wait(&barrier_); }

  private:
    pthread_barrier_t barrier_;
};

/* Runs body in a forked process; nonzero exit when an expectation failed there. */
inline pid_t fork_side(const std::function<void()> &body)
{
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        body();
        fflush(nullptr);
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    return pid;
}

inline void expect_clean_exit(pid_t pid)
{
    int status = 0;
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(0, WEXITSTATUS(status)) << "the forked side failed";
}

/* All sides at once: as threads of this process, or each in a process of its own. Processes are
 * forked before any thread starts. */
inline void run_threads(const std::vector<std::function<void()>> &sides)
{
    std::vector<std::thread> threads;
    for (size_t i = 1; i < sides.size(); i++)
        threads.emplace_back(sides[i]);
    sides[0]();
    for (auto &thread : threads)
        thread.join();
}

inline void run_processes(const std::vector<std::function<void()>> &sides)
{
    std::vector<pid_t> pids;
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where Yama asks for it: CMA both ways */
    for (size_t i = 1; i < sides.size(); i++)
        pids.push_back(fork_side(sides[i]));
    sides[0]();
    for (pid_t pid : pids)
        expect_clean_exit(pid);
}

inline tw_proc_id fresh_id()
{
    tw_proc_id id = {};
    memset(id.host, 7, sizeof(id.host));
    tw_random(id.nonce, sizeof(id.nonce));
    return id;
}

inline tw_sock_wait wait_for(uint64_t ns) { return tw_sock_wait{tw_deadline_ns(ns), -1}; }

inline int open_descriptors()
{
    int count = 0;
    for (int fd = 0; fd < 4096; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Each with its number and what it is of. */
inline std::set<std::string> descriptors()
{
    std::set<std::string> all;
    for (int fd = 0; fd < 4096; fd++) {
        char target[256];
        const std::string link = "/proc/self/fd/" + std::to_string(fd);
        const ssize_t bytes = readlink(link.c_str(), target, sizeof(target));
        if (bytes > 0)
            all.insert(link + " " + std::string(target, (size_t)bytes));
    }
    return all;
}

} // namespace twtest

#endif
