/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/work.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "emu/block.h"
#include "emu/peers.h"
#include "emu/runtime.h"

namespace emu
{

/* Under the lock, but for the job. */
struct Op {
    Job job;
    size_t waits = 0; /* for so many others */
    std::vector<OpRef> next;
    std::vector<OpRef> before; /* of an early kernel, until it has ended */
    std::vector<OpRef> early;  /* those that begin when it is open */
    unsigned blocks = 0;       /* that go on */
    unsigned shut = 0;         /* blocks that the next must not begin beside */
    bool open = false;         /* there are none */
    bool ended = false;
};

namespace
{

/* Never destroyed: threads are in it when the process ends. */
struct All {
    std::mutex lock;
    std::condition_variable changed; /* an operation has ended */
    uint64_t kernels = 0;
    unsigned late_ms[DEVICES] = {};
    /* threads that have nothing to do, or will soon */
    std::mutex pool_lock;
    std::condition_variable given;
    std::deque<std::function<void()>> jobs;
    size_t idle = 0;
};
All &all = *new All;

/* ---- threads -----------------------------------------------------------------------------------
 */

void pool_thread()
{
    std::unique_lock<std::mutex> guard(all.pool_lock);

    for (;;) {
        all.idle++;
        all.given.wait(guard, [] { return !all.jobs.empty(); });
        all.idle--;
        const std::function<void()> job = std::move(all.jobs.front());
        all.jobs.pop_front();
        guard.unlock();
        job();
        guard.lock();
    }
}

/* It begins at once: blocks wait for each other. */
void pool_run(std::function<void()> job)
{
    const std::lock_guard<std::mutex> guard(all.pool_lock);

    all.jobs.push_back(std::move(job));
    if (all.jobs.size() > all.idle)
        std::thread(pool_thread).detach();
    all.given.notify_one();
}

/* ---- operations --------------------------------------------------------------------------------
 */

void begin(std::vector<OpRef> ready);

/* Under the lock. Adds those of `others` that wait for nothing else. */
void release(std::vector<OpRef> *others, std::vector<OpRef> *ready)
{
    for (OpRef &next : *others)
        if (--next->waits == 0)
            ready->push_back(next);
    others->clear();
}

/* Those that waited for it alone. */
std::vector<OpRef> end(Op *op)
{
    const std::lock_guard<std::mutex> guard(all.lock);
    std::vector<OpRef> ready;

    op->ended = op->open = true;
    op->job = Job();
    op->before.clear();
    release(&op->early, &ready);
    release(&op->next, &ready);
    all.changed.notify_all();
    return ready;
}

/* A block says that the next kernel may begin. */
std::vector<OpRef> part(Op *op)
{
    const std::lock_guard<std::mutex> guard(all.lock);
    std::vector<OpRef> ready;

    if (--op->shut == 0) {
        op->open = true;
        release(&op->early, &ready);
    }
    return ready;
}

uint64_t kernel_seed()
{
    static const char *const text = getenv("TW_EMU_SEED");
    const std::lock_guard<std::mutex> guard(all.lock);

    return (text != nullptr ? strtoull(text, nullptr, 0) : 1) * 0x9e3779b97f4a7c15u +
           all.kernels++ * 0xd1342543de82ef95u;
}

/* A block may begin when others of its kernel have long begun: one in 16 does. How late is the
 * case, as it is on a device that had no room for the block: there is nothing to wait for. */
void wait_to_begin(const Kernel &kernel, unsigned block, uint64_t seed)
{
    unsigned late_us = (seed >> 20 & 15) == 0 && (seed >> 24 & 3) == block ? 500 : 0;
    {
        const std::lock_guard<std::mutex> guard(all.lock);
        if (block == kernel.blocks - 1)
            late_us += 1000 * all.late_ms[kernel.device];
    }
    if (late_us != 0)
        std::this_thread::sleep_for(std::chrono::microseconds(late_us));
}

/* What an early kernel comes behind. */
bool all_ended(const Op &op)
{
    const std::lock_guard<std::mutex> guard(all.lock);

    for (const OpRef &one : op.before)
        if (!one->ended)
            return false;
    return true;
}

void kernel_begin(const OpRef &op)
{
    const std::shared_ptr<const Kernel> kernel = op->job.kernel;
    const uint64_t seed = kernel_seed();

    op->blocks = op->shut = kernel->blocks;
    for (unsigned block = 0; block < kernel->blocks; block++)
        pool_run([=] {
            wait_to_begin(*kernel, block, seed);
            running = kernel->device;
            bool said = false;
            const Grid grid = {[&] { return all_ended(*op); },
                               [&] {
                                   said = true;
                                   begin(part(op.get()));
                               }};
            run_block(block, kernel->across, kernel->threads, seed + block * 0x632be59bd9b4e019u,
                      kernel->body, grid);
            if (!said)
                begin(part(op.get()));
            bool last;
            {
                const std::lock_guard<std::mutex> guard(all.lock);
                last = --op->blocks == 0;
            }
            if (last)
                begin(end(op.get()));
        });
}

void begin(std::vector<OpRef> ready)
{
    while (!ready.empty()) {
        const OpRef op = ready.back();

        ready.pop_back();
        if (op->job.kernel) {
            kernel_begin(op);
        } else if (op->job.slow) {
            pool_run([op] {
                op->job.slow();
                begin(end(op.get()));
            });
        } else {
            if (op->job.quick)
                op->job.quick();
            for (const OpRef &more : end(op.get()))
                ready.push_back(more);
        }
    }
}

} // namespace

void late(int device, unsigned ms)
{
    const std::lock_guard<std::mutex> guard(all.lock);
    all.late_ms[device] = ms;
}

OpRef start(const Job &job, const std::vector<OpRef> &before)
{
    const OpRef op = std::make_shared<Op>();

    op->job = job;
    {
        const std::lock_guard<std::mutex> guard(all.lock);
        const bool early = job.kernel && job.kernel->early;
        for (const OpRef &one : before) {
            if (!one || one->ended)
                continue;
            if (early)
                op->before.push_back(one);
            if (early && one->open)
                continue;
            (early ? one->early : one->next).push_back(op);
            op->waits++;
        }
        if (op->waits != 0)
            return op;
    }
    begin({op});
    return op;
}

bool ended(const OpRef &op)
{
    const std::lock_guard<std::mutex> guard(all.lock);
    return !op || op->ended;
}

void await(const OpRef &op)
{
    std::unique_lock<std::mutex> guard(all.lock);
    all.changed.wait(guard, [&] { return !op || op->ended; });
}

} // namespace emu
