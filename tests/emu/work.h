/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: work of the devices, which begins when what it comes after has ended, and who does it.
 * Never knows: streams, what the work is. */
#ifndef TESTS_EMU_WORK_H
#define TESTS_EMU_WORK_H

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace emu
{

/* A kernel with its parameters. */
struct Kernel {
    std::function<void()> body;       /* of a thread */
    unsigned blocks, across, threads; /* across: of a row of the grid */
    int device;
    bool early; /* it may begin once all blocks of those before it have said so, or ended */
};

/* From now on the last block of a device's kernels begins so much later; 0: as the others. */
void late(int device, unsigned ms);

/* What is to be done; none: nothing, it only keeps an order. */
struct Job {
    std::function<void()> quick; /* by whoever makes it ready */
    std::function<void()> slow;  /* by a thread of its own */
    std::shared_ptr<const Kernel> kernel;
};

struct Op;
typedef std::shared_ptr<Op> OpRef; /* NULL: what ended long ago */

/* After all of `before`. */
OpRef start(const Job &job, const std::vector<OpRef> &before);
bool ended(const OpRef &op);
void await(const OpRef &op);

} // namespace emu

#endif
