/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: wrapped functions of libc, a seccomp filter. Never knows: who calls. */
#include "traps.h"

#include <cstddef>
#include <cstdlib>
#include <ctime>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <threads.h>

namespace
{

/* volatile: the compiler knows that malloc does not look at them */
thread_local volatile bool counting;
thread_local volatile int calls;
thread_local const char *volatile first;

void count(const char *name)
{
    if (!counting)
        return;
    calls = calls + 1;
    if (!first)
        first = name;
}

} // namespace

/* ---- wrapped functions ------------------------------------------------------------------------
 */

/* Declares what the linker calls the wrapped function, and begins the wrapper's definition. */
#define WRAP(result, name, ...)                                                                    \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

using Once = void (*)(void);

extern "C" {
WRAP(void *, malloc, size_t n) { return count("malloc"), __real_malloc(n); }
WRAP(void *, calloc, size_t n, size_t m) { return count("calloc"), __real_calloc(n, m); }
WRAP(void *, realloc, void *p, size_t n) { return count("realloc"), __real_realloc(p, n); }
WRAP(void *, reallocarray, void *p, size_t n, size_t m)
{
    return count("reallocarray"), __real_reallocarray(p, n, m);
}
WRAP(void *, memalign, size_t a, size_t n) { return count("memalign"), __real_memalign(a, n); }
WRAP(void *, aligned_alloc, size_t a, size_t n)
{
    return count("aligned_alloc"), __real_aligned_alloc(a, n);
}
WRAP(int, posix_memalign, void **p, size_t a, size_t n)
{
    return count("posix_memalign"), __real_posix_memalign(p, a, n);
}
WRAP(char *, strdup, const char *s) { return count("strdup"), __real_strdup(s); }
WRAP(char *, strndup, const char *s, size_t n) { return count("strndup"), __real_strndup(s, n); }
WRAP(void, free, void *p) { count("free"), __real_free(p); }

WRAP(int, pthread_mutex_lock, pthread_mutex_t *m)
{
    return count("pthread_mutex_lock"), __real_pthread_mutex_lock(m);
}
WRAP(int, pthread_mutex_trylock, pthread_mutex_t *m)
{
    return count("pthread_mutex_trylock"), __real_pthread_mutex_trylock(m);
}
WRAP(int, pthread_mutex_timedlock, pthread_mutex_t *m, const struct timespec *t)
{
    return count("pthread_mutex_timedlock"), __real_pthread_mutex_timedlock(m, t);
}
WRAP(int, pthread_mutex_unlock, pthread_mutex_t *m)
{
    return count("pthread_mutex_unlock"), __real_pthread_mutex_unlock(m);
}
WRAP(int, mtx_lock, mtx_t *m) { return count("mtx_lock"), __real_mtx_lock(m); }
WRAP(int, mtx_trylock, mtx_t *m) { return count("mtx_trylock"), __real_mtx_trylock(m); }
WRAP(int, pthread_rwlock_rdlock, pthread_rwlock_t *l)
{
    return count("pthread_rwlock_rdlock"), __real_pthread_rwlock_rdlock(l);
}
WRAP(int, pthread_rwlock_wrlock, pthread_rwlock_t *l)
{
    return count("pthread_rwlock_wrlock"), __real_pthread_rwlock_wrlock(l);
}
WRAP(int, pthread_rwlock_tryrdlock, pthread_rwlock_t *l)
{
    return count("pthread_rwlock_tryrdlock"), __real_pthread_rwlock_tryrdlock(l);
}
WRAP(int, pthread_rwlock_trywrlock, pthread_rwlock_t *l)
{
    return count("pthread_rwlock_trywrlock"), __real_pthread_rwlock_trywrlock(l);
}
WRAP(int, pthread_rwlock_unlock, pthread_rwlock_t *l)
{
    return count("pthread_rwlock_unlock"), __real_pthread_rwlock_unlock(l);
}
WRAP(int, pthread_spin_lock, pthread_spinlock_t *l)
{
    return count("pthread_spin_lock"), __real_pthread_spin_lock(l);
}
WRAP(int, pthread_spin_trylock, pthread_spinlock_t *l)
{
    return count("pthread_spin_trylock"), __real_pthread_spin_trylock(l);
}
WRAP(int, pthread_cond_wait, pthread_cond_t *c, pthread_mutex_t *m)
{
    return count("pthread_cond_wait"), __real_pthread_cond_wait(c, m);
}
WRAP(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
    return count("pthread_cond_timedwait"), __real_pthread_cond_timedwait(c, m, t);
}
WRAP(int, pthread_cond_signal, pthread_cond_t *c)
{
    return count("pthread_cond_signal"), __real_pthread_cond_signal(c);
}
WRAP(int, pthread_cond_broadcast, pthread_cond_t *c)
{
    return count("pthread_cond_broadcast"), __real_pthread_cond_broadcast(c);
}
WRAP(int, pthread_once, pthread_once_t *o, Once f)
{
    return count("pthread_once"), __real_pthread_once(o, f);
}
WRAP(void, call_once, once_flag *o, Once f) { count("call_once"), __real_call_once(o, f); }
WRAP(int, sem_wait, sem_t *s) { return count("sem_wait"), __real_sem_wait(s); }
WRAP(int, sem_trywait, sem_t *s) { return count("sem_trywait"), __real_sem_trywait(s); }
WRAP(int, sem_timedwait, sem_t *s, const struct timespec *t)
{
    return count("sem_timedwait"), __real_sem_timedwait(s, t);
}
WRAP(int, sem_post, sem_t *s) { return count("sem_post"), __real_sem_post(s); }
}

/* ---- trapped system calls ---------------------------------------------------------------------
 */

namespace
{

void on_trap(int, siginfo_t *info, void *)
{
    switch (info->si_syscall) {
    case SYS_sched_yield:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
        traps::waits = traps::waits + 1;
        return;
    default:
        if (!traps::others)
            traps::first_other = info->si_syscall;
        traps::others = traps::others + 1;
    }
}

} // namespace

namespace traps
{

volatile sig_atomic_t waits, others, first_other;

void count_start()
{
    calls = 0;
    first = nullptr;
    counting = true;
}
void count_stop() { counting = false; }
int counted() { return calls; }
const char *first_counted() { return first; }

bool arm()
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

} // namespace traps
