/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a block of a kernel runs: its threads are fibers on one thread of the system, and take
 * turns wherever they touch memory that others write, wait or meet.
 * Never knows: kernels, streams. */
#ifndef TESTS_EMU_BLOCK_H
#define TESTS_EMU_BLOCK_H

#include <atomic>
#include <cstdint>
#include <functional>

struct emu_place {
    unsigned x, y;
};
/* As CUDA has them. __thread: as thread_local, but found without a call. */
extern __thread struct emu_place threadIdx, blockIdx, blockDim, gridDim;

namespace emu
{

extern __thread uint32_t dice; /* of the block: xorshift, never 0 */
extern __thread bool moved;    /* something has happened that others may have waited for */
/* A packet that a kernel stores there waits until it is no longer held. */
extern std::atomic<const void *> held;

static inline uint32_t roll()
{
    uint32_t x = dice;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return dice = x;
}

/* Another thread of the block goes on. */
void turn();

/* The same, one time in n, a power of two. */
static inline void chance(uint32_t n)
{
    if ((roll() >> 8 & (n - 1)) == 0)
        turn();
}

/* Until `count` threads are at the same barrier. True, to all: it was for one of them. */
bool meet(unsigned barrier, unsigned count, bool mine);

/* Until the kernels that the block's may have begun before have ended; and: the next may begin. */
void grid_await();
void grid_next();

uint64_t now_ns();

/* What the rest of the emulator says to both. */
struct Grid {
    std::function<bool()> over;
    std::function<void()> next; /* of a block, once */
};

/* Runs threads 0 to `threads` - 1 of a block until all have ended. across: blocks of a row of the
 * grid; seed: of who goes on when. */
void run_block(unsigned block, unsigned across, unsigned threads, uint64_t seed,
               const std::function<void()> &body, const Grid &grid);

} // namespace emu

#endif
