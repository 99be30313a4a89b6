/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how to make a call of libc fail. Never knows: who calls it. */
#include "fault.h"

#include <cerrno>
#include <cstddef>
#include <sys/mman.h>
#include <sys/types.h>

namespace
{
struct Plan {
    bool armed, fired;
    int error, skip;
};
thread_local Plan plans[FAULT_CALLS];

bool fails(enum fault_call call)
{
    Plan &plan = plans[call];
    if (!plan.armed || plan.fired)
        return false;
    if (plan.skip-- > 0)
        return false;
    plan.fired = true;
    errno = plan.error;
    return true;
}
} // namespace

Fault::Fault(enum fault_call call, int error, int skip) : call_(call)
{
    plans[call] = Plan{true, false, error, skip};
}
Fault::~Fault() { plans[call_].armed = false; }
bool Fault::fired() const { return plans[call_].fired; }

extern "C" {
int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
    return fails(FAULT_MEMFD) ? -1 : __real_memfd_create(name, flags);
}
int __real_ftruncate(int fd, off_t length);
int __wrap_ftruncate(int fd, off_t length);
int __wrap_ftruncate(int fd, off_t length)
{
    return fails(FAULT_FTRUNCATE) ? -1 : __real_ftruncate(fd, length);
}
void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    return fails(FAULT_MMAP) ? MAP_FAILED : __real_mmap(at, bytes, prot, flags, fd, offset);
}
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails(FAULT_CALLOC) ? nullptr : __real_calloc(count, bytes);
}
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(FAULT_ALLOC) ? nullptr : __real_aligned_alloc(alignment, bytes);
}
}
