/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/base.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

namespace gpu
{

/* ---- failing -----------------------------------------------------------------------------------
 */

std::string format(const char *form, ...)
{
    char text[2048];
    va_list args;
    va_start(args, form);
    vsnprintf(text, sizeof text, form, args);
    va_end(args);
    return text;
}

bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

void check(cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return;
    (void)cudaGetLastError();
    throw Failure(format("%s: %s (%s)", call, cudaGetErrorName(error), cudaGetErrorString(error)));
}

void check(enum twill_status status, twill_comm_t comm, const char *call)
{
    if (status == TWILL_OK)
        return;
    throw Failure(format("%s: %s: %s", call, twill_status_string(status), twill_last_error(comm)));
}

void grouped(const std::function<void()> &calls)
{
    TWILL(twill_group_start(), nullptr);
    try {
        calls();
    } catch (...) {
        struct twill_simulation simulation = TWILL_SIMULATION_INIT;
        (void)twill_group_simulate_end(&simulation); /* closes it */
        throw;
    }
    TWILL(twill_group_end(), nullptr);
}

/* ---- devices -----------------------------------------------------------------------------------
 */

static cudaError_t look(int *count)
{
    *count = 0;
    const cudaError_t error = cudaGetDeviceCount(count);
    (void)cudaGetLastError();
    return error;
}

int devices()
{
    static const int count = [] {
        int found;
        return look(&found) == cudaSuccess ? found : 0;
    }();
    return count;
}

std::string absence()
{
    int count;
    const cudaError_t error = look(&count);
    return error == cudaSuccess ? "CUDA counts 0 devices" : cudaGetErrorString(error);
}

On::On(int device)
{
    CUDA(cudaGetDevice(&before_));
    CUDA(cudaSetDevice(device));
}
On::~On() { (void)cudaSetDevice(before_); }

size_t free_bytes(int device)
{
    const On on(device);
    size_t free, total;
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemGetInfo(&free, &total));
    return free;
}

Stream::Stream(int device, unsigned flags) : device_(device)
{
    const On on(device);
    CUDA(cudaStreamCreateWithFlags(&stream_, flags));
}
Stream::~Stream()
{
    const On on(device_);
    (void)cudaStreamDestroy(stream_);
}

Memory::Memory(int device, size_t bytes) : device_(device)
{
    const On on(device);
    CUDA(cudaMalloc((void **)&at_, bytes));
    CUDA(cudaMemset(at_, 0, bytes));
    CUDA(cudaDeviceSynchronize());
}
Memory::~Memory()
{
    const On on(device_);
    (void)cudaFree(at_);
}

void to_device(char *to, const void *from, size_t bytes)
{
    CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    CUDA(cudaStreamSynchronize(nullptr));
}

Pinned::Pinned(size_t bytes)
{
    CUDA(cudaHostAlloc((void **)&at_, bytes, cudaHostAllocPortable));
    memset(at_, 0, bytes);
}
Pinned::~Pinned() { (void)cudaFreeHost(at_); }

void wait(int device, cudaStream_t stream)
{
    const On on(device);
    CUDA(cudaStreamSynchronize(stream));
}

bool wait_within(int device, cudaStream_t stream, double seconds)
{
    const On on(device);
    return within(seconds, [stream] {
        const cudaError_t error = cudaStreamQuery(stream);
        if (error != cudaErrorNotReady)
            CUDA(error);
        (void)cudaGetLastError(); /* to be asked too early is no error, but kept as one */
        return error == cudaSuccess;
    });
}

/* ---- time and threads --------------------------------------------------------------------------
 */

double now_s()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Of tests that are about time: a rank that comes late, a wait that must last. */
void sleep_s(double seconds) { usleep((useconds_t)(seconds * 1e6)); }

bool within(double seconds, const std::function<bool()> &done)
{
    const double until = now_s() + seconds;
    while (!done()) {
        if (now_s() > until)
            return done();
        usleep(200); /* what it waits for, a device or another process, gives no sign */
    }
    return true;
}

void on_threads(int count, const std::function<void(int)> &body,
                const std::function<void()> &on_failure)
{
    std::mutex lock;
    std::exception_ptr first;
    std::vector<std::thread> threads;

    for (int i = 0; i < count; i++)
        threads.emplace_back([&, i] {
            try {
                body(i);
            } catch (...) {
                const std::lock_guard<std::mutex> guard(lock);
                if (!first && on_failure)
                    on_failure();
                if (!first)
                    first = std::current_exception();
            }
        });
    for (auto &thread : threads)
        thread.join();
    if (first)
        std::rethrow_exception(first);
}

/* ---- the watchdog ------------------------------------------------------------------------------
 */

static const double STUCK_S = 60;

static struct {
    std::mutex lock;
    std::string what;
    double since_s = 0;
} progress;

void step(const std::string &what)
{
    const std::lock_guard<std::mutex> guard(progress.lock);
    progress.what = what;
    progress.since_s = now_s();
}

void watch()
{
    step("start");
    std::thread([] {
        for (;;) {
            sleep(1);
            const std::lock_guard<std::mutex> guard(progress.lock);
            if (now_s() - progress.since_s < STUCK_S)
                continue;
            fprintf(stderr, "[  FAILED  ] stuck for %.0f s: %s\n", STUCK_S, progress.what.c_str());
            fflush(nullptr);
            abort();
        }
    }).detach();
}

/* ---- what the process holds --------------------------------------------------------------------
 */

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;
    while (dir != nullptr && readdir(dir) != nullptr)
        count++;
    if (dir != nullptr)
        closedir(dir);
    return count;
}

Count count_now() { return Count{entries("/proc/self/fd"), entries("/proc/self/task")}; }

} // namespace gpu
