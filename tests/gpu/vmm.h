/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a program maps memory of a device by itself, as allocators do that let it grow.
 * Never knows: what is tested with it. */
#ifndef TESTS_GPU_VMM_H
#define TESTS_GPU_VMM_H

#include <vector>

#include "gpu/base.h"

namespace gpu
{

/* Pieces of memory side by side, zeroed, which let in their own device only. */
class Mapped
{
  public:
    Mapped(int device, size_t pieces, bool exportable = true);
    ~Mapped();
    Mapped(const Mapped &) = delete;
    Mapped &operator=(const Mapped &) = delete;
    char *get() const { return (char *)at_; }
    size_t bytes() const { return pieces_ * each_; }
    static size_t piece_bytes(int device);
    /* Other memory at the same addresses, zeroed, which lets in its own device only. */
    void renew();

  private:
    void map();
    void unmap();

    int device_;
    size_t pieces_, each_ = 0, mapped_ = 0;
    bool exportable_;
    unsigned long long at_ = 0;
};

} // namespace gpu

#endif
