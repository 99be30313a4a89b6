/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: of CUDA's runtime: which of its devices are another process's too, and host memory that
 * several processes map. Never knows: what it is for. */
#include "config.h"

#include <string.h>

#include "base/cuda_rt.h"

/* ---- devices -----------------------------------------------------------------------------------
 */

typedef CUresult device_call(CUdevice *handle, int device);
typedef CUresult uuid_call(CUuuid *uuid, CUdevice handle);

static device_call *device_entry(void)
{
    void *entry = tw_cuda_driver_entry("cuDeviceGet");
    device_call *call;
    memcpy(&call, &entry, sizeof call);
    return call;
}

static uuid_call *uuid_entry(void)
{
    void *entry = tw_cuda_driver_entry("cuDeviceGetUuid");
    uuid_call *call;
    memcpy(&call, &entry, sizeof call);
    return call;
}

/* By the driver: the runtime tells all properties at once, which takes milliseconds. */
enum twill_status tw_cuda_device_find(const uint8_t uuid[16], int *device)
{
    enum twill_status status = tw_cuda_ready();
    if (tw_failed(status))
        return status;
    device_call *get = device_entry();
    uuid_call *ask = uuid_entry();
    int found = -1;
    for (int i = 0; get && ask && i < tw_cuda_device_count() && found < 0; i++) {
        CUdevice handle = 0;
        CUuuid its;
        if (get(&handle, i) == CUDA_SUCCESS && ask(&its, handle) == CUDA_SUCCESS &&
            memcmp(&its, uuid, sizeof its) == 0)
            found = i;
    }
    *device = found;
    return TWILL_OK;
}

enum twill_status tw_cuda_peer_can(int device, int peer, bool *can)
{
    int path = 0;
    enum twill_status status = tw_cuda_ready();
    if (tw_failed(status))
        return status;
    if (device != peer)
        status = tw_cuda_check(cudaDeviceCanAccessPeer(&path, device, peer),
                               "cudaDeviceCanAccessPeer", device);
    if (!tw_failed(status))
        *can = device == peer || path;
    return status;
}

/* ---- host memory -------------------------------------------------------------------------------
 */

enum twill_status tw_cuda_host_pin(int device, void *ptr, size_t bytes)
{
    struct tw_cuda_place place;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    const unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped;
    status = tw_cuda_check(cudaHostRegister(ptr, bytes, flags), "cudaHostRegister", device);
    tw_cuda_leave(&place);
    return status;
}

void tw_cuda_host_unpin(int device, void *ptr)
{
    struct tw_cuda_place place;
    if (!ptr || tw_failed(tw_cuda_enter(device, &place)))
        return;
    tw_cuda_note(cudaHostUnregister(ptr), "cudaHostUnregister", device);
    tw_cuda_leave(&place);
}

enum twill_status tw_cuda_host_find(int device, void *ptr, void **at)
{
    struct tw_cuda_place place;
    void *found = NULL;
    enum twill_status status = tw_cuda_enter(device, &place);
    if (tw_failed(status))
        return status;
    status =
        tw_cuda_check(cudaHostGetDevicePointer(&found, ptr, 0), "cudaHostGetDevicePointer", device);
    if (!tw_failed(status))
        *at = found;
    tw_cuda_leave(&place);
    return status;
}
