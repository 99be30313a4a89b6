/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/vmm.h"

#include <cuda.h>

#include <cstring>

namespace gpu
{

namespace
{

/* The program is not linked with the driver. */
template <class F> F entry(const char *name)
{
    void *found = nullptr;
    enum cudaDriverEntryPointQueryResult how = cudaDriverEntryPointSymbolNotFound;
    F out;

    CUDA(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how));
    if (how != cudaDriverEntryPointSuccess)
        throw Failure(format("the driver has no %s", name));
    memcpy(&out, &found, sizeof out);
    return out;
}

void driver(CUresult result, const char *name)
{
    if (result != CUDA_SUCCESS)
        throw Failure(format("%s: CUDA driver error %d", name, (int)result));
}

#define DRIVER(name, ...) driver(entry<CUresult(*) SIGNATURE_##name>(#name)(__VA_ARGS__), #name)
#define SIGNATURE_cuMemGetAllocationGranularity                                                    \
    (size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags)
#define SIGNATURE_cuMemAddressReserve                                                              \
    (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)
#define SIGNATURE_cuMemAddressFree (CUdeviceptr, size_t)
#define SIGNATURE_cuMemCreate                                                                      \
    (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long)
#define SIGNATURE_cuMemMap                                                                         \
    (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)
#define SIGNATURE_cuMemRelease (CUmemGenericAllocationHandle)
#define SIGNATURE_cuMemSetAccess (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t)
#define SIGNATURE_cuMemUnmap (CUdeviceptr, size_t)

CUmemAllocationProp prop_of(int device, bool exportable)
{
    CUmemAllocationProp prop;

    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes =
        exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    return prop;
}

} // namespace

size_t Mapped::piece_bytes(int device)
{
    const On on(device);
    const CUmemAllocationProp prop = prop_of(device, true);
    size_t bytes = 0;

    DRIVER(cuMemGetAllocationGranularity, &bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    return bytes;
}

Mapped::Mapped(int device, size_t pieces, bool exportable)
    : device_(device), pieces_(pieces), exportable_(exportable)
{
    const On on(device);

    CUDA(cudaFree(nullptr)); /* the device is in use from here on */
    each_ = piece_bytes(device);
    DRIVER(cuMemAddressReserve, &at_, bytes() + each_, 0, 0, 0); /* nothing lies behind it */
    map();
}

Mapped::~Mapped()
{
    try {
        unmap();
        DRIVER(cuMemAddressFree, at_, bytes() + each_);
    } catch (const std::exception &e) {
        ADD_FAILURE() << e.what();
    }
}

void Mapped::map()
{
    const On on(device_);
    const CUmemAllocationProp prop = prop_of(device_, exportable_);
    CUmemAccessDesc own;

    memset(&own, 0, sizeof own);
    own.location = prop.location;
    own.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (mapped_ = 0; mapped_ < bytes(); mapped_ += each_) {
        CUmemGenericAllocationHandle handle;

        DRIVER(cuMemCreate, &handle, each_, &prop, 0);
        DRIVER(cuMemMap, at_ + mapped_, each_, 0, handle, 0);
        DRIVER(cuMemRelease, handle);
        DRIVER(cuMemSetAccess, at_ + mapped_, each_, &own, 1);
    }
    CUDA(cudaMemset(get(), 0, bytes()));
    CUDA(cudaDeviceSynchronize());
}

void Mapped::unmap()
{
    const On on(device_);

    CUDA(cudaDeviceSynchronize());
    if (mapped_ > 0)
        DRIVER(cuMemUnmap, at_, mapped_);
    mapped_ = 0;
}

void Mapped::renew()
{
    unmap();
    map();
}

} // namespace gpu
