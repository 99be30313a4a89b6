/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: devices that are made up: all of src/base/cuda.h and src/device/cuda/launch.h, with
 * streams and events that know what comes after what. Kernels are noted and do nothing. Never
 * knows: who calls it, or what kernels would do. */
#ifndef TESTS_COMM_FAKE_GPU_H
#define TESTS_COMM_FAKE_GPU_H

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

extern "C" {
#include "base/cuda.h"
#include "device/cuda/launch.h"
#include "device/cuda/probe.h"
}

namespace fake
{

/* Something in a stream, and the latest of each stream that is over when it begins. */
struct Point {
    void *stream = nullptr;
    uint64_t place = 0;
    std::map<void *, uint64_t> after;
};
bool before(const Point &first, const Point &second);

struct Launch {
    int device;
    enum tw_gk_kernel kernel;
    twill_type_t type;
    struct tw_gk_launch launch;
    uint32_t threads;
    void *stream;
    uint64_t capture; /* that the stream was in; 0: none */
    Point point;
};

/* Within a stream. */
struct Copy {
    int device;
    void *dst;
    const void *src;
    size_t bytes;
    uint64_t capture;
    Point point;
};

/* So many devices, of so many multiprocessors; all else is forgotten. */
void reset(int devices, int multiprocessors = 132);
/* What PCI calls a device, which has no name otherwise. */
void name(int device, const std::string &pci);
/* No path from one to the other. */
void cut(int device, int peer);
/* What comes of it when a device, by the self-test's kernel, gets at another's memory, though it
 * says that it can. */
enum Lie { HONEST, LOST, STALE, TWISTED_WRITES, TWISTED_READS };
void lie(int device, int peer, Lie lie);
/* Memory of other processes does not open. */
extern std::atomic<bool> closed;
/* Streams are never empty as long as it is true. */
extern std::atomic<bool> busy;
/* Runs of the self-test's kernel. */
int probes();
/* For fake_probe.cc: what a device makes of memory, and that the kernel runs; false: in no stream.
 */
Lie lie_of(int device, const void *ptr);
bool probe_note(int device, void *stream);
/* What is at ptr, which is the test's. */
void mark(const void *ptr, size_t bytes, enum tw_cuda_kind kind, int device);

/* Memory of a device that is in use. */
size_t bytes_of(int device);
/* Devices have no more. */
extern std::atomic<bool> full;
extern std::atomic<int> full_device; /* this one alone; -1: none */

/* capture: 0, or a number of the graph that is being captured from it. */
void *stream(int device, uint64_t capture = 0);
/* That all devices' kernels are compiled for, 90 of 9.0; 0 to begin with: they have nothing that
 * came later. */
void code(int capability);
/* It was destroyed: from now on nobody may touch it. */
void stream_end(void *stream);
/* A kernel of the user's in a stream. */
Point work(void *stream);

std::vector<Launch> launches();
std::vector<Copy> copies();
void fail_copies(bool fail);
/* Launches fail with this; OK: no longer. */
void fail_launches(enum twill_status status);
/* Events are not reached as long as it is true. */
void hold(bool held);
/* Questions whether an event was reached. */
int asked();
/* Events that were recorded or waited for, in streams. */
extern std::atomic<int> ordered;
/* What CUDA would not have taken. */
std::vector<std::string> misuse();

} // namespace fake

#endif
