/* SPDX-License-Identifier: Apache-2.0 */
#include <cstdlib>
#include <cstring>
#include <vector>

#include "emu/peers.h"
#include "emu/runtime.h"

/* ---- errors ------------------------------------------------------------------------------------
 */

namespace emu
{

static thread_local cudaError_t last_error = cudaSuccess;

cudaError_t said(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

/* ---- a thread's device -------------------------------------------------------------------------
 */

/* 0: none was chosen; else one more than the device. The last one counts. */
static thread_local std::vector<int> chosen;

int current() { return chosen.empty() || chosen.back() == 0 ? 0 : chosen.back() - 1; }

static int number(const char *variable, int otherwise, int most)
{
    const char *text = getenv(variable);
    const int value = text != nullptr ? atoi(text) : otherwise;
    return value < 0 ? 0 : value > most ? most : value;
}

int devices()
{
    static const int count = number("TW_EMU_DEVICES", 4, DEVICES);
    return count;
}

static int multiprocessors()
{
    static const int count = number("TW_EMU_MULTIPROCESSORS", 4, 64);
    return count;
}

} // namespace emu

using namespace emu;

extern "C" {

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define CASE(name, number, text)                                                                   \
    case name:                                                                                     \
        return #name;
        EMU_ERRORS(CASE)
#undef CASE
    }
    return "unknown";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define CASE(name, number, text)                                                                   \
    case name:                                                                                     \
        return text;
        EMU_ERRORS(CASE)
#undef CASE
    }
    return "unknown";
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

/* ---- devices -----------------------------------------------------------------------------------
 */

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = devices();
    return *count > 0 ? cudaSuccess : said(cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    if (device < 0 || device >= devices())
        return said(cudaErrorInvalidDevice);
    memset(prop, 0, sizeof *prop);
    strcpy(prop->name, "emulated on the CPU");
    memcpy(prop->uuid.bytes, "twill-emulated", 14);
    prop->uuid.bytes[15] = (char)device;
    prop->totalGlobalMem = DEVICE_BYTES;
    prop->major = 9;
    prop->multiProcessorCount = multiprocessors();
    prop->maxThreadsPerMultiProcessor = 2048;
    prop->pciDomainID = 0xe000;
    prop->pciBusID = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= devices())
        return said(cudaErrorInvalidDevice);
    if (chosen.empty())
        chosen.push_back(0);
    chosen.back() = device + 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (device < 0 || device >= devices() || peer < 0 || peer >= devices())
        return said(cudaErrorInvalidDevice);
    *can = device != peer && reach(device, peer) != ABSENT;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

/* ---- the driver --------------------------------------------------------------------------------
 */

static CUresult device_get(CUdevice *handle, int device)
{
    *handle = device;
    return device < 0 || device >= devices() ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
static CUresult device_uuid(CUuuid *uuid, CUdevice device)
{
    struct cudaDeviceProp prop;
    if (cudaGetDeviceProperties(&prop, device) != cudaSuccess)
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid, &prop.uuid, sizeof *uuid);
    return CUDA_SUCCESS;
}
/* A context is a number: one more than its device. */
static CUresult context_retain(CUcontext *context, CUdevice device)
{
    *context = (CUcontext)(uintptr_t)(device + 1);
    return CUDA_SUCCESS;
}
static CUresult context_push(CUcontext context)
{
    if (chosen.empty())
        chosen.push_back(0);
    chosen.push_back((int)(uintptr_t)context);
    return CUDA_SUCCESS;
}
static CUresult context_pop(CUcontext *context)
{
    if (chosen.size() < 2)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = (CUcontext)(uintptr_t)chosen.back();
    chosen.pop_back();
    return CUDA_SUCCESS;
}
static CUresult context_current(CUcontext *context)
{
    *context = (CUcontext)(uintptr_t)(chosen.empty() ? 0 : chosen.back());
    return CUDA_SUCCESS;
}

static const struct {
    const char *name;
    void *entry;
} entries[] = {{"cuDeviceGet", (void *)device_get},
               {"cuDeviceGetUuid", (void *)device_uuid},
               {"cuDevicePrimaryCtxRetain", (void *)context_retain},
               {"cuCtxPushCurrent", (void *)context_push},
               {"cuCtxPopCurrent", (void *)context_pop},
               {"cuCtxGetCurrent", (void *)context_current},
               {"cuPointerGetAttributes", (void *)pointer_attributes},
               {"cuMemGetAddressRange", (void *)memory_range}};

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned,
                                             unsigned long long,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    *entry = nullptr;
    *found = cudaDriverEntryPointSymbolNotFound;
    for (const auto &one : entries)
        if (strcmp(one.name, name) == 0) {
            *entry = one.entry;
            *found = cudaDriverEntryPointSuccess;
        }
    for (const auto &one : vmm_entries())
        if (strcmp(one.first, name) == 0) {
            *entry = one.second;
            *found = cudaDriverEntryPointSuccess;
        }
    return cudaSuccess;
}
}
