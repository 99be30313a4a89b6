/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what tests need of CUDA's host side, of threads and of the clock, and who watches them.
 * Never knows: what is tested. */
#ifndef TESTS_GPU_BASE_H
#define TESTS_GPU_BASE_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "twill.h"

namespace gpu
{

/* ---- failing: a call that should have worked ends the test ---- */

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};
void check(cudaError_t error, const char *call);
/* comm NULL: a call that has none. */
void check(enum twill_status status, twill_comm_t comm, const char *call);
#define CUDA(call) ::gpu::check(call, #call)
#define TWILL(call, comm) ::gpu::check(call, comm, #call)

/* The calls are one group. One that throws leaves none open, and nothing is run. */
void grouped(const std::function<void()> &calls);

std::string format(const char *form, ...) __attribute__((format(printf, 1, 2)));
bool contains(const std::string &text, const std::string &part);

/* ---- devices ---- */

int devices();         /* 0: none */
std::string absence(); /* why there are none */
size_t free_bytes(int device);

/* The calling thread's current device, put back at the end. */
class On
{
  public:
    explicit On(int device);
    ~On();
    On(const On &) = delete;
    On &operator=(const On &) = delete;

  private:
    int before_ = 0;
};

class Stream
{
  public:
    explicit Stream(int device, unsigned flags = cudaStreamNonBlocking);
    ~Stream();
    Stream(const Stream &) = delete;
    Stream &operator=(const Stream &) = delete;
    operator cudaStream_t() const { return stream_; }

  private:
    int device_;
    cudaStream_t stream_ = nullptr;
};

/* Memory of a device, zeroed. */
class Memory
{
  public:
    Memory(int device, size_t bytes);
    ~Memory();
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    char *get() const { return at_; }

  private:
    int device_;
    char *at_ = nullptr;
};

/* To memory of the current device, where it is when this returns: what a copy from pageable memory
 * has still under way then no other stream waits for. */
void to_device(char *to, const void *from, size_t bytes);

/* Pinned host memory, zeroed. */
class Pinned
{
  public:
    explicit Pinned(size_t bytes);
    ~Pinned();
    Pinned(const Pinned &) = delete;
    Pinned &operator=(const Pinned &) = delete;
    char *get() const { return at_; }

  private:
    char *at_ = nullptr;
};

/* Until what the stream has been given is done. NULL: the device's default stream. */
void wait(int device, cudaStream_t stream);
/* The same, for at most `seconds`; false: it goes on. */
bool wait_within(int device, cudaStream_t stream, double seconds);

/* ---- time and threads ---- */

double now_s(); /* of a clock that all processes share */
void sleep_s(double seconds);
/* Polls until done(); false: not within `seconds`. */
bool within(double seconds, const std::function<bool()> &done);

/* Runs body(0) to body(count - 1) on threads and waits for all. The first exception is thrown
 * again; on_failure is called as soon as there is one, so that the others come to an end too. */
void on_threads(int count, const std::function<void(int)> &body,
                const std::function<void()> &on_failure = nullptr);

/* ---- the watchdog ---- */

/* Something goes on: `what` is printed, and the process aborted, when nothing else has been said
 * for a minute. */
void step(const std::string &what);
void watch();

/* ---- descriptors and threads of this process ---- */

struct Count {
    int fds, threads;
};
Count count_now();

} // namespace gpu

#endif
