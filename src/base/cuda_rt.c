/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: CUDA's runtime: its devices, which of them a thread works on, and what its errors say.
 * Never knows: ranks, plans, what the memory is for. */
#include "config.h"

#include "base/cuda_rt.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

/* What the first call found; written once. */
static struct {
    int devices;
    int driver, runtime;
    char absence[256]; /* "" where there are devices */
    bool bare;         /* there is no driver, or no device for this process */
    CUresult (*device_get)(CUdevice *, int);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*push)(CUcontext);
    CUresult (*pop)(CUcontext *);
    CUresult (*current)(CUcontext *);
} cuda;
static pthread_once_t looked = PTHREAD_ONCE_INIT;

/* Primary contexts, held for the life of the process once a device was entered. */
#define MOST_DEVICES 256
static _Atomic(CUcontext) contexts[MOST_DEVICES];

/* ---- errors ------------------------------------------------------------------------------------
 */

static void error_text(char *text, size_t bytes, cudaError_t error, const char *call, int device)
{
    char where[32] = "";
    if (device >= 0)
        (void)snprintf(where, sizeof where, " on device %d", device);
    (void)snprintf(text, bytes, "%s%s: %s (%s)", call, where, cudaGetErrorName(error),
                   cudaGetErrorString(error));
}

enum twill_status tw_cuda_check(cudaError_t error, const char *call, int device)
{
    if (error == cudaSuccess)
        return TWILL_OK;
    char text[256];
    error_text(text, sizeof text, error, call, device);
    (void)cudaGetLastError();
    return tw_fail(error == cudaErrorMemoryAllocation ? TWILL_ERR_NOMEM : TWILL_ERR_SYSTEM, "%s",
                   text);
}

void tw_cuda_note(cudaError_t error, const char *call, int device)
{
    if (error == cudaSuccess)
        return;
    char text[256];
    error_text(text, sizeof text, error, call, device);
    (void)cudaGetLastError();
    tw_warn(TW_SUB_BASE, "%s", text);
}

enum twill_status tw_cuda_driver_check(CUresult result, const char *call, int device)
{
    if (result == CUDA_SUCCESS)
        return TWILL_OK;
    return tw_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? TWILL_ERR_NOMEM : TWILL_ERR_SYSTEM,
                   "%s on device %d: CUDA driver error %d", call, device, (int)result);
}

/* ---- the first call ----------------------------------------------------------------------------
 */

#define DOTTED(v) (v) / 1000, (v) % 1000 / 10

static void absence_say(cudaError_t error)
{
    char *text = cuda.absence;
    const size_t bytes = sizeof cuda.absence;
    cuda.bare = (error == cudaErrorInsufficientDriver && cuda.driver == 0) ||
                error == cudaSuccess || error == cudaErrorNoDevice;
    if (error == cudaErrorInsufficientDriver && cuda.driver == 0)
        (void)snprintf(text, bytes, "no CUDA driver on this machine (libcuda.so.1 does not load)");
    else if (error == cudaErrorInsufficientDriver)
        (void)snprintf(text, bytes,
                       "the CUDA driver is too old: it serves CUDA %d.%d, this build has the "
                       "runtime of CUDA %d.%d",
                       DOTTED(cuda.driver), DOTTED(cuda.runtime));
    else if (error == cudaSuccess || error == cudaErrorNoDevice)
        (void)snprintf(text, bytes,
                       "the CUDA driver (CUDA %d.%d) has no device for this process "
                       "(CUDA_VISIBLE_DEVICES may leave none)",
                       DOTTED(cuda.driver));
    else
        error_text(text, bytes, error, "the CUDA driver does not start: cudaGetDeviceCount", -1);
}

void *tw_cuda_driver_entry(const char *name)
{
    void *entry = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found);
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? entry : NULL;
}

/* A pointer to data is one to a function on every system that CUDA knows; ISO C has no cast. */
static bool entry_get(void *slot, const char *name)
{
    void *entry = tw_cuda_driver_entry(name);
    memcpy(slot, &entry, sizeof entry);
    return entry != NULL;
}

static bool entries_get(void)
{
    return entry_get(&cuda.device_get, "cuDeviceGet") &&
           entry_get(&cuda.retain, "cuDevicePrimaryCtxRetain") &&
           entry_get(&cuda.push, "cuCtxPushCurrent") && entry_get(&cuda.pop, "cuCtxPopCurrent") &&
           entry_get(&cuda.current, "cuCtxGetCurrent");
}

static void look(void)
{
    int devices = 0;
    if (cudaRuntimeGetVersion(&cuda.runtime) != cudaSuccess)
        cuda.runtime = CUDART_VERSION;
    if (cudaDriverGetVersion(&cuda.driver) != cudaSuccess)
        cuda.driver = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices <= 0)
        absence_say(error);
    else if (!entries_get())
        (void)snprintf(cuda.absence, sizeof cuda.absence,
                       "the CUDA driver (CUDA %d.%d) lacks functions of CUDA 12",
                       DOTTED(cuda.driver));
    else
        cuda.devices = devices < MOST_DEVICES ? devices : MOST_DEVICES;
    (void)cudaGetLastError();
}

const char *tw_cuda_absence(void)
{
    (void)pthread_once(&looked, look);
    return cuda.devices ? NULL : cuda.absence;
}

enum twill_status tw_cuda_ready(void)
{
    const char *absence = tw_cuda_absence();
    return absence ? tw_fail(TWILL_ERR_UNSUPPORTED, "%s", absence) : TWILL_OK;
}

int tw_cuda_device_count(void) { return tw_cuda_absence() ? 0 : cuda.devices; }

enum twill_status tw_cuda_current(int *device)
{
    (void)pthread_once(&looked, look);
    if (cuda.bare) {
        *device = -1;
        return TWILL_OK;
    }
    enum twill_status status = tw_cuda_ready();
    int found = 0;
    if (!tw_failed(status))
        status = tw_cuda_check(cudaGetDevice(&found), "cudaGetDevice", -1);
    if (!tw_failed(status))
        *device = found;
    return status;
}

void tw_cuda_versions(int *driver, int *runtime)
{
    (void)pthread_once(&looked, look);
    *driver = cuda.driver;
    *runtime = cuda.runtime;
}

/* ---- the thread's device -----------------------------------------------------------------------
 */

/* Two threads may hold it twice: it is never let go. */
static enum twill_status context_get(int device, CUcontext *context)
{
    *context = atomic_load_explicit(&contexts[device], memory_order_acquire);
    if (*context)
        return TWILL_OK;
    CUdevice handle;
    enum twill_status status =
        tw_cuda_driver_check(cuda.device_get(&handle, device), "cuDeviceGet", device);
    if (!tw_failed(status))
        status =
            tw_cuda_driver_check(cuda.retain(context, handle), "cuDevicePrimaryCtxRetain", device);
    if (!tw_failed(status))
        atomic_store_explicit(&contexts[device], *context, memory_order_release);
    return status;
}

static enum twill_status context_push(int device, CUcontext context, struct tw_cuda_place *place)
{
    enum twill_status status = tw_cuda_driver_check(cuda.push(context), "cuCtxPushCurrent", device);
    place->pushed = !tw_failed(status);
    return status;
}

static void capture_relax(struct tw_cuda_place *place)
{
    place->relaxed = true;
    place->capture = cudaStreamCaptureModeRelaxed;
    (void)cudaThreadExchangeStreamCaptureMode(&place->capture);
}

enum twill_status tw_cuda_enter(int device, struct tw_cuda_place *place)
{
    enum twill_status status = tw_cuda_enter_captured(device, place);
    if (!tw_failed(status))
        capture_relax(place);
    return status;
}

enum twill_status tw_cuda_enter_captured(int device, struct tw_cuda_place *place)
{
    enum twill_status status = tw_cuda_ready();
    if (tw_failed(status))
        return status;
    if (device < 0 || device >= cuda.devices)
        return tw_fail(TWILL_ERR_INVALID, "there is no CUDA device %d: they are 0 to %d", device,
                       cuda.devices - 1);
    CUcontext context = NULL;
    CUcontext now = NULL;
    place->pushed = false;
    place->relaxed = false;
    status = context_get(device, &context);
    if (tw_failed(status))
        return status;
    if (cuda.current(&now) != CUDA_SUCCESS || now != context)
        status = context_push(device, context, place);
    return status;
}

enum twill_status tw_cuda_enter_any(struct tw_cuda_place *place)
{
    enum twill_status status = tw_cuda_ready();
    if (tw_failed(status))
        return status;
    CUcontext now = NULL;
    place->pushed = false;
    if (cuda.current(&now) != CUDA_SUCCESS)
        now = NULL;
    for (int device = 0; !now && device < cuda.devices; device++) {
        now = atomic_load_explicit(&contexts[device], memory_order_acquire);
        if (now)
            status = context_push(device, now, place);
    }
    if (!tw_failed(status))
        capture_relax(place);
    return status;
}

void tw_cuda_leave(const struct tw_cuda_place *place)
{
    enum cudaStreamCaptureMode capture = place->capture;
    CUcontext left = NULL;
    if (place->relaxed)
        (void)cudaThreadExchangeStreamCaptureMode(&capture);
    if (place->pushed && cuda.pop(&left) != CUDA_SUCCESS)
        tw_warn(TW_SUB_BASE, "cuCtxPopCurrent failed: the thread's current CUDA device is another");
}

/* ---- devices -----------------------------------------------------------------------------------
 */

enum twill_status tw_cuda_device_read(int device, struct tw_cuda_device *found)
{
    struct cudaDeviceProp prop;
    enum twill_status status = tw_cuda_ready();
    if (tw_failed(status))
        return status;
    if (device < 0 || device >= cuda.devices)
        return tw_fail(TWILL_ERR_INVALID, "there is no CUDA device %d: they are 0 to %d", device,
                       cuda.devices - 1);
    status =
        tw_cuda_check(cudaGetDeviceProperties(&prop, device), "cudaGetDeviceProperties", device);
    if (tw_failed(status))
        return status;
    memset(found, 0, sizeof *found);
    (void)snprintf(found->name, sizeof found->name, "%.*s", (int)sizeof found->name - 1, prop.name);
    (void)snprintf(found->pci, sizeof found->pci, "%04x:%02x:%02x.0", prop.pciDomainID & 0xffff,
                   prop.pciBusID & 0xff, prop.pciDeviceID & 0xff);
    memcpy(found->uuid, prop.uuid.bytes, sizeof found->uuid);
    found->multiprocessors = prop.multiProcessorCount;
    found->threads_each = prop.maxThreadsPerMultiProcessor;
    found->major = prop.major;
    found->minor = prop.minor;
    found->bytes = prop.totalGlobalMem;
    return TWILL_OK;
}

static cudaError_t peer_enable(int peer)
{
    cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
    if (error != cudaErrorPeerAccessAlreadyEnabled)
        return error;
    (void)cudaGetLastError();
    return cudaSuccess;
}

enum twill_status tw_cuda_peer_enable(int device, int peer, bool *can)
{
    struct tw_cuda_place place;
    int path = 0;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    cudaError_t error = cudaSuccess;
    if (device == peer)
        path = 1;
    else
        error = cudaDeviceCanAccessPeer(&path, device, peer);
    if (error == cudaSuccess && path && device != peer)
        error = peer_enable(peer);
    if (error == cudaErrorTooManyPeers || error == cudaErrorPeerAccessUnsupported) {
        (void)cudaGetLastError();
        tw_info(TW_SUB_BASE, "device %d does not reach device %d: %s", device, peer,
                cudaGetErrorName(error));
        error = cudaSuccess;
        path = 0;
    }
    status = tw_cuda_check(error, "peer access of CUDA", device);
    if (!tw_failed(status))
        *can = path != 0;
    tw_cuda_leave(&place);
    return status;
}
