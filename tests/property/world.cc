/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: fork, wait, kill. Never knows: what the ranks do. */
#include "property/world.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

namespace property
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

void fail(const std::string &text)
{
    Shared *s = shared();
    if (__atomic_exchange_n(&s->failed, 1, __ATOMIC_ACQ_REL) == 0)
        snprintf(s->text, sizeof(s->text), "%s", text.c_str());
}

double now_s()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

namespace
{

struct Process {
    pid_t pid;
    bool over = false;
    int status = 0;
};

/* The case alone says what the parameters are. */
void set_env(const Env &env)
{
    std::vector<std::string> names;
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, "TWILL_", 6) == 0)
            names.emplace_back(*entry, strcspn(*entry, "="));
    for (const std::string &name : names)
        unsetenv(name.c_str());
    for (const auto &entry : env)
        setenv(entry.first.c_str(), entry.second.c_str(), 1);
}

/* The processes of a case are a process group, so that none is left behind. */
pid_t start(const Case &c, int process, pid_t group)
{
    fflush(nullptr);
    const pid_t pid = fork();
    if (pid != 0) {
        setpgid(pid, group ? group : pid);
        return pid;
    }
    setpgid(0, group);
    set_env(c.env);
    try {
        run_process(c, process);
    } catch (const std::exception &e) {
        fail(std::string("exception: ") + e.what());
    }
    fflush(nullptr);
    exit(__atomic_load_n(&shared()->failed, __ATOMIC_ACQUIRE));
}

bool is_as_meant(const Case &c, int process, int status)
{
    return c.is_killed(process) ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0;
}

/* @return how many have ended */
size_t reap(const Case &c, std::vector<Process> *all, bool *bad)
{
    size_t ended = 0;
    for (size_t i = 0; i < all->size(); i++) {
        Process &process = (*all)[i];
        if (!process.over)
            process.over = waitpid(process.pid, &process.status, WNOHANG) != 0;
        ended += process.over;
        *bad = *bad || (process.over && !is_as_meant(c, (int)i, process.status));
    }
    return ended;
}

std::string says(const Case &c, const std::vector<Process> &all, bool late, double limit_s)
{
    if (__atomic_load_n(&shared()->failed, __ATOMIC_ACQUIRE))
        return shared()->text;
    for (size_t i = 0; i < all.size(); i++) {
        const int status = all[i].status;
        if (is_as_meant(c, (int)i, status))
            continue;
        if (WIFSIGNALED(status) && !(late && WTERMSIG(status) == SIGKILL))
            return "process " + std::to_string(i) + " was ended by " + strsignal(WTERMSIG(status));
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
            return "process " + std::to_string(i) + " exited with status " +
                   std::to_string(WEXITSTATUS(status));
    }
    if (!late)
        return "";
    std::string text = "hang: not over after " + std::to_string((int)limit_s) + " s; batches";
    for (const int &step : shared()->step)
        text += ' ' + std::to_string(__atomic_load_n(&step, __ATOMIC_ACQUIRE));
    return text;
}

} // namespace

std::string run(const Case &c, double limit_s)
{
    memset(static_cast<void *>(shared()), 0, sizeof(Shared));
    std::vector<Process> all;
    for (int process = 0; process < c.processes; process++)
        all.push_back({start(c, process, all.empty() ? 0 : all[0].pid)});
    const pid_t group = all[0].pid;
    double end_s = now_s() + limit_s;
    bool late = false, bad = false;
    while (reap(c, &all, &bad) < all.size()) {
        if (bad) { /* the others hear of it, or are not waited for much longer */
            const double soon_s = now_s() + limit_s / 10;
            end_s = end_s < soon_s ? end_s : soon_s;
        }
        if (!late && now_s() > end_s) {
            late = true;
            kill(-group, SIGKILL);
        }
        const struct timespec pause = {0, 500000};
        nanosleep(&pause, nullptr);
    }
    const std::string text = says(c, all, late, limit_s);
    if (kill(-group, SIGKILL) == 0 || errno != ESRCH)
        return text.empty() ? "processes were left behind" : text;
    return text;
}

} // namespace property
