/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: some calls of the ranks of a process on memory that they are given, and what they give.
 * Never knows: where the memory is from. */
#ifndef TESTS_GPU_CALLS_H
#define TESTS_GPU_CALLS_H

#include <vector>

#include "gpu/world.h"

namespace gpu
{

/* Calls of the one or two ranks of this process, on in[i] and out[i], which has room for a block of
 * each rank. Those that are on one device share a stream. Each is waited for and its output looked
 * at; `call`, any number, tells inputs apart. */
struct Calls {
    World *world;
    std::vector<char *> in, out;
    size_t count; /* words */

    void sum(int call) const;
    /* What a rank does first for its call it does while the other's kernel waits for it. */
    void sum_in_turn(int call) const;
    void gather(int call) const;
    /* Each rank with the one whose number differs by that bit. */
    void exchange(int call, int bit) const;
    /* A sum that is captured, so many times. */
    void replay(int call, int times) const;

  private:
    cudaStream_t stream(size_t i) const;
    size_t here() const { return world->locals().size(); }
    void wait_all() const;
    void fill_all(int call) const;
    void start_sum(size_t i) const;
    void start_sums() const;
    void expect_sum(int call) const;
};

/* Input and output, from `skip` words on, in the ranks' memory. */
Calls calls_on(World *world, const std::vector<char *> &at, size_t bytes, size_t skip);

} // namespace gpu

#endif
