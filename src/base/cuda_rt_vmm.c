/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory of CUDA's that is not from cudaMalloc: which devices are let into it, and how its
 * pieces come into other processes.
 * Never knows: what it is for. */
#include "config.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/cuda_rt.h"
#include "base/log.h"

/* ---- the driver's functions --------------------------------------------------------------------
 */

static struct {
    CUresult (*attributes)(unsigned, CUpointer_attribute *, void **, CUdeviceptr);
    CUresult (*range)(CUdeviceptr *, size_t *, CUdeviceptr);
    CUresult (*access_get)(unsigned long long *, const CUmemLocation *, CUdeviceptr);
    CUresult (*access_set)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
    CUresult (*pool_get)(CUmemAccess_flags *, CUmemoryPool, CUmemLocation *);
    CUresult (*pool_set)(CUmemoryPool, const CUmemAccessDesc *, size_t);
    CUresult (*retain)(CUmemGenericAllocationHandle *, void *);
    CUresult (*release)(CUmemGenericAllocationHandle);
    CUresult (*properties)(CUmemAllocationProp *, CUmemGenericAllocationHandle);
    CUresult (*hand_out)(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                         unsigned long long);
    CUresult (*take_in)(CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType);
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*unreserve)(CUdeviceptr, size_t);
    CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*unmap)(CUdeviceptr, size_t);
} driver;
static const char *lacks; /* NULL: nothing */
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static void entries_get(void)
{
    const struct {
        void *slot;
        const char *name;
    } all[] = {{&driver.attributes, "cuPointerGetAttributes"},
               {&driver.range, "cuMemGetAddressRange"},
               {&driver.access_get, "cuMemGetAccess"},
               {&driver.access_set, "cuMemSetAccess"},
               {&driver.pool_get, "cuMemPoolGetAccess"},
               {&driver.pool_set, "cuMemPoolSetAccess"},
               {&driver.retain, "cuMemRetainAllocationHandle"},
               {&driver.release, "cuMemRelease"},
               {&driver.properties, "cuMemGetAllocationPropertiesFromHandle"},
               {&driver.hand_out, "cuMemExportToShareableHandle"},
               {&driver.take_in, "cuMemImportFromShareableHandle"},
               {&driver.reserve, "cuMemAddressReserve"},
               {&driver.unreserve, "cuMemAddressFree"},
               {&driver.map, "cuMemMap"},
               {&driver.unmap, "cuMemUnmap"}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        void *entry = tw_cuda_driver_entry(all[i].name);
        memcpy(all[i].slot, &entry, sizeof entry);
        if (!entry)
            lacks = all[i].name;
    }
}

static enum twill_status enter(int device, struct tw_cuda_place *place)
{
    enum twill_status status = tw_cuda_enter(device, place);
    if (tw_failed(status))
        return status;
    (void)pthread_once(&asked, entries_get);
    if (!lacks)
        return TWILL_OK;
    tw_cuda_leave(place);
    return tw_fail(TWILL_ERR_UNSUPPORTED, "CUDA's driver has no %s", lacks);
}

static CUdeviceptr address(const void *ptr) { return (CUdeviceptr)(uintptr_t)ptr; }

/* ---- pieces ------------------------------------------------------------------------------------
 */

static CUmemoryPool pool_of(const void *ptr)
{
    CUmemoryPool pool = NULL;
    CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
    void *value = &pool;
    return driver.attributes(1, &which, &value, address(ptr)) == CUDA_SUCCESS ? pool : NULL;
}

static bool is_mapped(const void *ptr)
{
    CUmemGenericAllocationHandle handle;
    if (driver.retain(&handle, (void *)(uintptr_t)ptr) != CUDA_SUCCESS)
        return false;
    (void)driver.release(handle);
    return true;
}

static enum twill_status piece_at(int device, CUdeviceptr at, CUdeviceptr *base, size_t *bytes)
{
    CUresult result = driver.range(base, bytes, at);
    if (result == CUDA_SUCCESS && at >= *base && at - *base < *bytes)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_INVALID,
                   "nothing is mapped at %p of device %d (cuMemGetAddressRange: CUDA driver error "
                   "%d)",
                   (void *)(uintptr_t)at, device, (int)result);
}

/* The piece that begins at base. arg: the visitor's own */
typedef enum twill_status piece_visit(CUdeviceptr base, size_t bytes, void *arg);

/* Those that the bytes at ptr touch, in order, up to the first that `visit` fails on. */
static enum twill_status pieces_each(int device, const void *ptr, size_t bytes, piece_visit *visit,
                                     void *arg)
{
    const CUdeviceptr end = address(ptr) + bytes;
    CUdeviceptr base = 0;
    size_t whole = 0;
    enum twill_status status = TWILL_OK;

    for (CUdeviceptr at = address(ptr); at < end && !tw_failed(status); at = base + whole) {
        status = piece_at(device, at, &base, &whole);
        if (!tw_failed(status))
            status = visit(base, whole, arg);
    }
    return status;
}

/* ---- who is let in -----------------------------------------------------------------------------
 */

static CUmemLocation location(int device)
{
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

static enum twill_status pool_look(int device, CUmemoryPool pool, const int *devices, int count,
                                   struct tw_cuda_access *found)
{
    for (int i = 0; i < count && found->lacking < 0; i++) {
        CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        CUmemLocation where = location(devices[i]);
        CUresult result = driver.pool_get(&flags, pool, &where);
        if (result != CUDA_SUCCESS)
            return tw_cuda_driver_check(result, "cuMemPoolGetAccess", device);
        if (flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            found->lacking = devices[i];
    }
    return TWILL_OK;
}

struct look {
    int device, count;
    const int *devices;
    struct tw_cuda_access *found;
};

/* Access is a piece's own: one address of it stands for all. */
static enum twill_status piece_look(CUdeviceptr base, size_t bytes, void *arg)
{
    const struct look *look = arg;

    (void)bytes;
    for (int i = 0; i < look->count && look->found->lacking < 0; i++) {
        unsigned long long flags = 0;
        const CUmemLocation where = location(look->devices[i]);
        CUresult result = driver.access_get(&flags, &where, base);
        if (result != CUDA_SUCCESS)
            return tw_cuda_driver_check(result, "cuMemGetAccess", look->device);
        if (flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            look->found->lacking = look->devices[i];
    }
    return TWILL_OK;
}

enum twill_status tw_cuda_access_find(int device, const void *ptr, size_t bytes, const int *devices,
                                      int count, struct tw_cuda_access *found)
{
    struct tw_cuda_access seen = {.origin = TW_CUDA_OTHER, .lacking = -1};
    struct tw_cuda_place place;
    enum twill_status status = enter(device, &place);
    if (tw_failed(status))
        return status;
    CUmemoryPool pool = pool_of(ptr);
    if (pool) {
        seen.origin = TW_CUDA_POOL;
        status = pool_look(device, pool, devices, count, &seen);
    } else if (is_mapped(ptr)) {
        seen.origin = TW_CUDA_MAPPED;
        struct look look = {device, count, devices, &seen};
        status = pieces_each(device, ptr, bytes, piece_look, &look);
    }
    tw_cuda_leave(&place);
    if (!tw_failed(status))
        *found = seen;
    return status;
}

static enum twill_status refused(CUresult result, const char *call, const void *ptr, int device,
                                 int wanted)
{
    if (result == CUDA_SUCCESS)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_UNSUPPORTED,
                   "%s does not let device %d into memory at %p of device %d: CUDA driver error %d",
                   call, wanted, ptr, device, (int)result);
}

struct opening {
    const void *ptr; /* the user's */
    int device, wanted;
};

/* One device after the other: the sentence names the one that is refused. */
static enum twill_status piece_open(CUdeviceptr base, size_t bytes, void *arg)
{
    const struct opening *opening = arg;
    const CUmemAccessDesc desc = {.location = location(opening->wanted),
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    return refused(driver.access_set(base, bytes, &desc, 1), "cuMemSetAccess", opening->ptr,
                   opening->device, opening->wanted);
}

static enum twill_status pool_open(int device, const void *ptr, CUmemoryPool pool, int wanted)
{
    const CUmemAccessDesc desc = {.location = location(wanted),
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return refused(driver.pool_set(pool, &desc, 1), "cuMemPoolSetAccess", ptr, device, wanted);
}

enum twill_status tw_cuda_access_give(int device, const void *ptr, size_t bytes, const int *devices,
                                      int count)
{
    struct tw_cuda_place place;
    enum twill_status status = enter(device, &place);
    if (tw_failed(status))
        return status;
    CUmemoryPool pool = pool_of(ptr);
    for (int i = 0; i < count && !tw_failed(status); i++) {
        struct opening opening = {ptr, device, devices[i]};
        status = pool ? pool_open(device, ptr, pool, devices[i])
                      : pieces_each(device, ptr, bytes, piece_open, &opening);
    }
    tw_cuda_leave(&place);
    return status;
}

/* ---- out of this process -----------------------------------------------------------------------
 */

enum twill_status tw_cuda_piece_find(int device, const void *ptr, void **base, size_t *bytes)
{
    struct tw_cuda_place place;
    CUdeviceptr start = 0;
    size_t whole = 0;
    enum twill_status status = enter(device, &place);
    if (tw_failed(status))
        return status;
    status = piece_at(device, address(ptr), &start, &whole);
    if (!tw_failed(status) && !is_mapped(ptr))
        status =
            tw_fail(TWILL_ERR_UNSUPPORTED,
                    "memory at %p of device %d is %s: other processes cannot map it", ptr, device,
                    pool_of(ptr) ? "of a pool (cudaMallocAsync)"
                                 : "neither from cudaMalloc nor mapped by cuMemMap");
    tw_cuda_leave(&place);
    if (tw_failed(status))
        return status;
    memcpy(base, &start, sizeof *base);
    *bytes = whole;
    return TWILL_OK;
}

static enum twill_status handle_export(int device, const void *ptr,
                                       CUmemGenericAllocationHandle handle, int *fd)
{
    CUmemAllocationProp made;
    int got = -1;
    memset(&made, 0, sizeof made);
    CUresult result = driver.properties(&made, handle);
    if (result != CUDA_SUCCESS)
        return tw_cuda_driver_check(result, "cuMemGetAllocationPropertiesFromHandle", device);
    if (!((unsigned)made.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "memory at %p of device %d was made by cuMemCreate without "
                       "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR: other processes cannot map it",
                       ptr, device);
    result = driver.hand_out(&got, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result == CUDA_SUCCESS)
        *fd = got;
    return tw_cuda_driver_check(result, "cuMemExportToShareableHandle", device);
}

enum twill_status tw_cuda_piece_export(int device, const void *ptr, int *fd)
{
    struct tw_cuda_place place;
    CUmemGenericAllocationHandle handle;
    enum twill_status status = enter(device, &place);
    if (tw_failed(status))
        return status;
    CUresult result = driver.retain(&handle, (void *)(uintptr_t)ptr);
    status = tw_cuda_driver_check(result, "cuMemRetainAllocationHandle", device);
    if (!tw_failed(status)) {
        status = handle_export(device, ptr, handle, fd);
        (void)driver.release(handle);
    }
    tw_cuda_leave(&place);
    return status;
}

/* ---- into this process -------------------------------------------------------------------------
 */

enum twill_status tw_cuda_span_reserve(int device, size_t bytes, struct tw_cuda_span *span)
{
    struct tw_cuda_place place;
    CUdeviceptr base = 0;
    enum twill_status status = enter(device, &place);
    if (tw_failed(status))
        return status;
    status =
        tw_cuda_driver_check(driver.reserve(&base, bytes, 0, 0, 0), "cuMemAddressReserve", device);
    tw_cuda_leave(&place);
    if (tw_failed(status))
        return status;
    memcpy(&span->base, &base, sizeof span->base);
    span->bytes = bytes;
    span->mapped = 0;
    return TWILL_OK;
}

/* What is mapped keeps the memory: the handle is let go. */
static enum twill_status piece_map(int device, CUdeviceptr at, size_t bytes, int fd)
{
    const CUmemAccessDesc desc = {.location = location(device),
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUresult result =
        driver.take_in(&handle, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != CUDA_SUCCESS)
        return tw_cuda_driver_check(result, "cuMemImportFromShareableHandle", device);
    result = driver.map(at, bytes, 0, handle, 0);
    (void)driver.release(handle);
    if (result != CUDA_SUCCESS)
        return tw_cuda_driver_check(result, "cuMemMap", device);
    result = driver.access_set(at, bytes, &desc, 1);
    if (result != CUDA_SUCCESS)
        (void)driver.unmap(at, bytes);
    return tw_cuda_driver_check(result, "cuMemSetAccess", device);
}

enum twill_status tw_cuda_span_map(int device, struct tw_cuda_span *span, size_t bytes, int fd)
{
    struct tw_cuda_place place;
    if (bytes > span->bytes - span->mapped)
        return tw_fail(TWILL_ERR_INVALID, "%zu bytes to map, room is for %zu", bytes,
                       span->bytes - span->mapped);
    enum twill_status status = enter(device, &place);
    if (tw_failed(status))
        return status;
    status = piece_map(device, address(span->base) + span->mapped, bytes, fd);
    if (!tw_failed(status))
        span->mapped += bytes;
    tw_cuda_leave(&place);
    return status;
}

void tw_cuda_span_free(int device, struct tw_cuda_span *span)
{
    struct tw_cuda_place place;
    if (!span->base || tw_failed(enter(device, &place)))
        return;
    CUresult result = CUDA_SUCCESS;
    if (span->mapped)
        result = driver.unmap(address(span->base), span->mapped);
    if (result == CUDA_SUCCESS)
        result = driver.unreserve(address(span->base), span->bytes);
    if (result != CUDA_SUCCESS)
        tw_warn(TW_SUB_BASE,
                "unmapping another process's memory from device %d: CUDA driver error %d", device,
                (int)result);
    tw_cuda_leave(&place);
    *span = (struct tw_cuda_span){0};
}
