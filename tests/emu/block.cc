/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/block.h"

#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#ifndef __x86_64__
#include <ucontext.h>
#endif

__thread struct emu_place threadIdx, blockIdx, blockDim, gridDim;

namespace emu
{

__thread uint32_t dice = 1;
__thread bool moved;
std::atomic<const void *> held;

namespace
{

const unsigned THREADS = 1024;
const unsigned BARRIERS = 16 + THREADS / 32; /* CUDA's, and each warp's own */
const size_t STACK = (size_t)96 << 10;       /* a kernel's parameters may be 20 KiB */
const uint64_t CANARY = 0x7477696c6c656d75u;

[[noreturn]] void die(const char *what)
{
    fprintf(stderr, "[  FAILED  ] a kernel in the emulator: block %u: %s\n", blockIdx.x, what);
    fflush(nullptr);
    abort();
}

/* ---- contexts: switch_to(from, to) saves here, goes on there -----------------------------------
 */

#ifdef __x86_64__

struct Context {
    void *sp;
};

extern "C" void emu_switch(void **save, void *to);
asm(".text\n"
    ".p2align 4\n"
    ".type emu_switch, @function\n"
    "emu_switch:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size emu_switch, . - emu_switch\n");

void switch_to(Context *from, const Context *to) { emu_switch(&from->sp, to->sp); }

void context_make(Context *context, char *stack, size_t bytes, void (*entry)())
{
    void **top = (void **)(stack + bytes) - 2; /* aligned by 16: as behind a call */

    top[0] = (void *)entry;
    top[1] = nullptr;
    memset(top - 6, 0, 6 * sizeof *top);
    context->sp = top - 6;
}

#else /* slower: each switch asks the system for the signal mask */

struct Context {
    ucontext_t it;
};

void switch_to(Context *from, const Context *to) { (void)swapcontext(&from->it, &to->it); }

void context_make(Context *context, char *stack, size_t bytes, void (*entry)())
{
    (void)getcontext(&context->it);
    context->it.uc_stack.ss_sp = stack;
    context->it.uc_stack.ss_size = bytes;
    context->it.uc_link = nullptr;
    makecontext(&context->it, entry, 0);
}

#endif

/* ---- the threads of a block --------------------------------------------------------------------
 */

struct Barrier {
    unsigned arrived;
    uint32_t times; /* that all have met */
    bool some, result;
};

enum State { READY, MEETS, ENDED };
struct Fiber {
    Context context;
    State state;
    Barrier *barrier;
    uint32_t times; /* of the barrier, when it is over */
};

struct Block {
    Fiber fibers[THREADS];
    Barrier barriers[BARRIERS];
    Context main;
    const std::function<void()> *body;
    const Grid *grid;
    bool over, next; /* what it has said, and has been told */
    char *stacks;
    unsigned current, left;
};
__thread Block *mine; /* of the system's thread, kept for the next block */

Block *block_make()
{
    Block *block = new Block();
    void *stacks = mmap(nullptr, THREADS * STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (stacks == MAP_FAILED)
        die("no memory for stacks");
    block->stacks = (char *)stacks;
    return block;
}

uint64_t *canary(unsigned i) { return (uint64_t *)(mine->stacks + i * STACK); }

void fiber_main()
{
    (*mine->body)();
    mine->fibers[mine->current].state = ENDED;
    moved = true;
    mine->left--;
    for (;;)
        turn();
}

bool goes_on(Fiber *fiber)
{
    if (fiber->state == MEETS && fiber->barrier->times == fiber->times)
        fiber->state = READY;
    return fiber->state == READY;
}

/* Each thread once, but some are left out now and then. False: none can. */
bool pass(unsigned threads)
{
    const uint32_t first = dice % threads, strides = dice >> 12 & 15;
    bool some = false;

    for (unsigned k = 0; k < threads; k++) {
        const unsigned i = (first + k) % threads;

        if (!goes_on(&mine->fibers[i]))
            continue;
        some = true;
        if (strides == 0 && (i / 32 + first) % 4 == 0) /* whole warps are late */
            continue;
        mine->current = i;
        threadIdx.x = i;
        switch_to(&mine->main, &mine->fibers[i].context);
    }
    return some;
}

/* Other blocks want the processor: soon where nothing happens here. idle: passes without anything
 */
void rest(unsigned passes, unsigned idle)
{
    const struct timespec nap = {0, 20 * 1000};

    if (idle >= 16)
        (void)nanosleep(&nap, nullptr);
    else if (idle != 0 || passes % 16 == 0)
        (void)sched_yield();
}

} // namespace

void turn()
{
    Fiber *fiber = &mine->fibers[mine->current];
    switch_to(&fiber->context, &mine->main);
}

bool meet(unsigned which, unsigned count, bool some)
{
    Barrier *barrier = &mine->barriers[which];
    Fiber *fiber = &mine->fibers[mine->current];

    barrier->some |= some;
    if (++barrier->arrived < count) {
        fiber->state = MEETS;
        fiber->barrier = barrier;
        fiber->times = barrier->times + 1;
        turn();
    } else {
        barrier->arrived = 0;
        barrier->times++;
        barrier->result = barrier->some;
        barrier->some = false;
        moved = true;
        chance(2);
    }
    return barrier->result; /* nobody has met there again: this thread has not */
}

void grid_await()
{
    while (!mine->over && !(mine->over = mine->grid->over()))
        turn();
    moved = true;
}

void grid_next()
{
    if (!mine->next)
        mine->grid->next();
    mine->next = true;
}

uint64_t now_ns()
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void run_block(unsigned block, unsigned across, unsigned threads, uint64_t seed,
               const std::function<void()> &body, const Grid &grid)
{
    unsigned passes = 0, idle = 0;

    if (mine == nullptr)
        mine = block_make();
    blockIdx.x = block % across;
    blockIdx.y = block / across;
    gridDim.x = across;
    blockDim.x = threads;
    dice = (uint32_t)(seed ^ seed >> 32) | 1;
    if (threads == 0 || threads > THREADS)
        die("so many threads are no block");
    memset(mine->barriers, 0, sizeof mine->barriers);
    mine->body = &body;
    mine->grid = &grid;
    mine->over = mine->next = false;
    mine->left = threads;
    for (unsigned i = 0; i < threads; i++) {
        mine->fibers[i].state = READY;
        context_make(&mine->fibers[i].context, mine->stacks + i * STACK, STACK, fiber_main);
        *canary(i) = CANARY;
    }
    while (mine->left != 0) {
        moved = false;
        (void)roll();
        if (!pass(threads))
            die("its threads wait at barriers that others have left");
        idle = moved ? 0 : idle + 1;
        rest(++passes, idle);
    }
    for (unsigned i = 0; i < threads; i++)
        if (*canary(i) != CANARY)
            die("a stack has overflown");
}

} // namespace emu
