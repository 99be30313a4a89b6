/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how to make a call of libc fail. Never knows: who calls it.
 * The linker sends memfd_create and the others through wrappers (-Wl,--wrap, see local.mk). */
#ifndef TESTS_BASE_FAULT_H
#define TESTS_BASE_FAULT_H

enum fault_call {
    FAULT_MEMFD,
    FAULT_FTRUNCATE,
    FAULT_MMAP,
    FAULT_CALLOC,
    FAULT_ALLOC,
    FAULT_CALLS
};

/* While one lives, the calling thread's skip+1st call from now of that kind fails with error. */
class Fault
{
  public:
    Fault(enum fault_call call, int error, int skip = 0);
    ~Fault();
    Fault(const Fault &) = delete;
    Fault &operator=(const Fault &) = delete;
    bool fired() const;

  private:
    enum fault_call call_;
};

#endif
