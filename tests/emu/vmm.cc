/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory that is made, given an address, opened to devices and handed to other processes in
 * steps of their own, as CUDA's driver has them.
 * Never knows: what it is for. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emu/memory.h"

namespace emu
{

static const size_t GRAIN = (size_t)64 << 10;

/* Physical memory; what is mapped keeps it too. */
struct Handle {
    Handle(int fd, size_t bytes, int device, unsigned types, bool own)
        : fd(fd), bytes(bytes), device(device), types(types), own(own)
    {
    }
    ~Handle()
    {
        close(fd);
        if (own)
            all.used[device] -= bytes; /* under the lock */
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    int fd;
    size_t bytes;
    int device;
    unsigned types; /* of shareable handles */
    bool own;       /* made here, not another process's */
};

typedef std::shared_ptr<Handle> HandleRef;

/* Under the lock of memory. */
static std::map<uint64_t, HandleRef> handles; /* a number for each reference of the user's */
static std::map<uintptr_t, size_t> reserved;
static uint64_t handles_made;

static CUmemGenericAllocationHandle handle_add(const HandleRef &handle)
{
    handles[++handles_made] = handle;
    return handles_made;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
                       const CUmemAllocationProp *prop, unsigned long long)
{
    const Guard guard(all.lock);
    const int device = prop->location.id;

    if (bytes == 0 || bytes % GRAIN != 0 || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || device < 0 || device >= devices())
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > DEVICE_BYTES - all.used[device])
        return CUDA_ERROR_OUT_OF_MEMORY;
    const int fd = memfd_create("twill-emulated-vmm", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    all.used[device] += bytes;
    *handle = handle_add(
        std::make_shared<Handle>(fd, bytes, device, (unsigned)prop->requestedHandleTypes, true));
    return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
    const Guard guard(all.lock);
    return handles.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult granularity(size_t *bytes, const CUmemAllocationProp *,
                            CUmemAllocationGranularity_flags)
{
    *bytes = GRAIN;
    return CUDA_SUCCESS;
}

/* ---- addresses ---------------------------------------------------------------------------------
 */

static CUresult reserve(CUdeviceptr *ptr, size_t bytes, size_t, CUdeviceptr, unsigned long long)
{
    const Guard guard(all.lock);

    if (bytes == 0 || bytes % GRAIN != 0)
        return CUDA_ERROR_INVALID_VALUE;
    void *at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    reserved[(uintptr_t)at] = bytes;
    *ptr = (uintptr_t)at;
    return CUDA_SUCCESS;
}

/* Nothing, or all there is from ptr to ptr + bytes, in whole pieces: f of each. */
template <class F> static bool each_piece(CUdeviceptr ptr, size_t bytes, F f)
{
    for (bool dry : {true, false})
        for (uintptr_t at = (uintptr_t)ptr; at < ptr + bytes;) {
            const auto found = all.pieces.find(at);
            if (found == all.pieces.end() || found->second.kind != MAPPED ||
                found->second.bytes > ptr + bytes - at)
                return false;
            at += found->second.bytes;
            if (!dry)
                f(found);
        }
    return true;
}

static CUresult unreserve(CUdeviceptr ptr, size_t bytes)
{
    const Guard guard(all.lock);
    const auto found = reserved.find((uintptr_t)ptr);
    const auto piece = all.pieces.lower_bound((uintptr_t)ptr);

    if (found == reserved.end() || found->second != bytes ||
        (piece != all.pieces.end() && piece->first < ptr + bytes))
        return CUDA_ERROR_INVALID_VALUE;
    (void)munmap((void *)(uintptr_t)ptr, bytes);
    reserved.erase(found);
    return CUDA_SUCCESS;
}

/* Whom it lets in is said later: until then nobody can touch it. */
static CUresult map(CUdeviceptr ptr, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle number, unsigned long long)
{
    const Guard guard(all.lock);
    const auto handle = handles.find(number);
    auto range = reserved.upper_bound((uintptr_t)ptr);

    if (handle == handles.end() || range == reserved.begin() || offset != 0 ||
        bytes != handle->second->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    --range;
    const auto next = all.pieces.lower_bound((uintptr_t)ptr);
    if (ptr + bytes > range->first + range->second || find((uintptr_t)ptr) != nullptr ||
        (next != all.pieces.end() && next->first < ptr + bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (mmap((void *)(uintptr_t)ptr, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
             handle->second->fd, 0) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    Piece &piece = all.pieces[(uintptr_t)ptr];
    piece.bytes = bytes;
    piece.kind = MAPPED;
    piece.device = handle->second->device;
    piece.fd = -1;
    piece.handle = handle->second;
    piece.in = 0;
    return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr ptr, size_t bytes)
{
    const Guard guard(all.lock);
    const bool whole = each_piece(ptr, bytes, [](std::map<uintptr_t, Piece>::iterator piece) {
        (void)mmap((void *)piece->first, piece->second.bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        all.pieces.erase(piece);
    });
    return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- who is let in -----------------------------------------------------------------------------
 */

static void bit_set(uint32_t *bits, const CUmemAccessDesc &desc)
{
    const uint32_t bit = UINT32_C(1) << desc.location.id;
    *bits = desc.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? *bits | bit : *bits & ~bit;
}

static CUresult access_set(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
    const Guard guard(all.lock);

    for (size_t i = 0; i < count; i++)
        if (desc[i].location.id < 0 || desc[i].location.id >= devices())
            return CUDA_ERROR_INVALID_DEVICE;
    const bool whole = each_piece(ptr, bytes, [&](std::map<uintptr_t, Piece>::iterator piece) {
        for (size_t i = 0; i < count; i++)
            bit_set(&piece->second.in, desc[i]);
        (void)mprotect((void *)piece->first, piece->second.bytes,
                       piece->second.in != 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
    });
    return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult access_get(unsigned long long *flags, const CUmemLocation *location,
                           CUdeviceptr ptr)
{
    const Guard guard(all.lock);
    const auto *found = find((uintptr_t)ptr);

    if (found == nullptr || found->second.kind != MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = (found->second.in >> location->id & 1) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                         : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* A pool is a number: one more than its device. */
static CUresult pool_set(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count)
{
    const Guard guard(all.lock);

    for (size_t i = 0; i < count; i++)
        bit_set(&all.pool_in[(uintptr_t)pool - 1], desc[i]);
    return CUDA_SUCCESS;
}

static CUresult pool_get(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    const Guard guard(all.lock);
    const int device = (int)(uintptr_t)pool - 1;
    const bool in = location->id == device || (all.pool_in[device] >> location->id & 1) != 0;

    *flags = in ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

bool usable(int device, const void *ptr, size_t bytes)
{
    const Guard guard(all.lock);
    const uintptr_t end = (uintptr_t)ptr + bytes;

    for (uintptr_t at = (uintptr_t)ptr; at < end;) {
        const auto *found = find(at);
        if (found == nullptr)
            return false;
        const Piece &piece = found->second;
        if (piece.kind == MAPPED && (piece.in >> device & 1) == 0)
            return false;
        if (piece.kind == POOL && piece.device != device &&
            (all.pool_in[piece.device] >> device & 1) == 0)
            return false;
        at = found->first + piece.bytes;
    }
    return true;
}

/* ---- other processes ---------------------------------------------------------------------------
 */

static CUresult retain(CUmemGenericAllocationHandle *handle, void *ptr)
{
    const Guard guard(all.lock);
    const auto *found = find((uintptr_t)ptr);

    if (found == nullptr || found->second.kind != MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = handle_add(found->second.handle);
    return CUDA_SUCCESS;
}

static CUresult properties(CUmemAllocationProp *prop, CUmemGenericAllocationHandle number)
{
    const Guard guard(all.lock);
    const auto handle = handles.find(number);

    if (handle == handles.end())
        return CUDA_ERROR_INVALID_VALUE;
    memset(prop, 0, sizeof *prop);
    prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop->requestedHandleTypes = (CUmemAllocationHandleType)handle->second->types;
    prop->location = {CU_MEM_LOCATION_TYPE_DEVICE, handle->second->device};
    return CUDA_SUCCESS;
}

static CUresult hand_out(void *out, CUmemGenericAllocationHandle number,
                         CUmemAllocationHandleType type, unsigned long long)
{
    const Guard guard(all.lock);
    const auto handle = handles.find(number);

    if (handle == handles.end() || (handle->second->types & (unsigned)type) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    const int fd = fcntl(handle->second->fd, F_DUPFD_CLOEXEC, 0);
    memcpy(out, &fd, sizeof fd);
    return fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take_in(CUmemGenericAllocationHandle *out, void *from, CUmemAllocationHandleType)
{
    const Guard guard(all.lock);
    const int fd = fcntl((int)(uintptr_t)from, F_DUPFD_CLOEXEC, 0);
    struct stat stat;

    if (fd < 0 || fstat(fd, &stat) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = handle_add(std::make_shared<Handle>(fd, (size_t)stat.st_size, current(),
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, false));
    return CUDA_SUCCESS;
}

const std::vector<std::pair<const char *, void *>> &vmm_entries()
{
    static const std::vector<std::pair<const char *, void *>> entries = {
        {"cuMemCreate", (void *)create},
        {"cuMemRelease", (void *)release},
        {"cuMemGetAllocationGranularity", (void *)granularity},
        {"cuMemAddressReserve", (void *)reserve},
        {"cuMemAddressFree", (void *)unreserve},
        {"cuMemMap", (void *)map},
        {"cuMemUnmap", (void *)unmap},
        {"cuMemSetAccess", (void *)access_set},
        {"cuMemGetAccess", (void *)access_get},
        {"cuMemPoolSetAccess", (void *)pool_set},
        {"cuMemPoolGetAccess", (void *)pool_get},
        {"cuMemRetainAllocationHandle", (void *)retain},
        {"cuMemGetAllocationPropertiesFromHandle", (void *)properties},
        {"cuMemExportToShareableHandle", (void *)hand_out},
        {"cuMemImportFromShareableHandle", (void *)take_in}};
    return entries;
}

} // namespace emu
