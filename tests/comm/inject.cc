/* SPDX-License-Identifier: Apache-2.0 */
#include "inject.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

extern "C" {
#include "base/mem.h"
#include "base/status.h"
}

/* -1: nothing is to fail */
static thread_local int threads_fine = -1;
static thread_local int allocs_fine = -1;
static std::atomic<int> foreign{0};

static bool fails(int *fine) { return *fine >= 0 && (*fine)-- == 0; }

namespace inject
{

void thread_fails(int fine) { threads_fine = fine; }
void alloc_fails(int fine) { allocs_fine = fine; }
bool done()
{
    bool all = threads_fine < 0 && allocs_fine < 0;
    threads_fine = allocs_fine = -1;
    return all;
}
void foreign_peers(int count) { foreign = count; }
int foreign_left() { return foreign; }

} // namespace inject

extern "C" {

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg)
{
    return fails(&threads_fine) ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

void *__real_tw_alloc(size_t bytes);
void *__wrap_tw_alloc(size_t bytes)
{
    if (!fails(&allocs_fine))
        return __real_tw_alloc(bytes);
    (void)tw_fail(TWILL_ERR_NOMEM, "no memory, by injection");
    return nullptr;
}

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
    int result = __real_getsockopt(fd, level, name, value, bytes);
    if (result != 0 || level != SOL_SOCKET || name != SO_PEERCRED)
        return result;
    int left = foreign;
    while (left > 0 && !foreign.compare_exchange_weak(left, left - 1)) {
    }
    if (left > 0)
        static_cast<struct ucred *>(value)->uid = geteuid() + 1;
    return result;
}
}
