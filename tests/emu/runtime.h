/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the parts of the emulated runtime have of each other.
 * Never knows: how kernels run. */
#ifndef TESTS_EMU_RUNTIME_H
#define TESTS_EMU_RUNTIME_H

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "emu/cuda_runtime.h"
#include "emu/work.h"

namespace emu
{

const int DEVICES = 16; /* at most; TW_EMU_DEVICES says how many */
const size_t DEVICE_BYTES = (size_t)4 << 30;

/* Kept for cudaGetLastError, and handed on. */
cudaError_t said(cudaError_t error);
int devices();
int current(); /* the calling thread's */

/* Of the driver. */
CUresult pointer_attributes(unsigned count, CUpointer_attribute *which, void **values,
                            CUdeviceptr ptr);
CUresult memory_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr);
/* Those of vmm.cc, by name. */
const std::vector<std::pair<const char *, void *>> &vmm_entries();

/* May kernels of the device use all of it? */
bool usable(int device, const void *ptr, size_t bytes);

/* What copy engines have copied from memory of devices to such, and how much later they do from
 * now on. */
uint64_t copies_done();
void late_copies(unsigned ms);

/* Into the stream, or the graph that is captured from it. */
cudaError_t submit(cudaStream_t stream, const Job &job);
/* Until all of the device's streams are empty. */
void device_wait(int device);

/* body: of a thread, with a copy of what arguments points to. False: there is no such kernel. */
bool kernel_bind(const void *kernel, const void *arguments, std::function<void()> *body);

} // namespace emu

#endif
