/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory of devices, which is shared memory of the system, so that other processes can map
 * it. Never knows: what it is for. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emu/memory.h"
#include "emu/peers.h"

using namespace emu;

namespace emu
{

Pieces &all = *new Pieces();

std::pair<const uintptr_t, Piece> *find(uintptr_t ptr)
{
    auto at = all.pieces.upper_bound(ptr);

    if (at == all.pieces.begin())
        return nullptr;
    --at;
    return ptr - at->first < at->second.bytes ? &*at : nullptr;
}

int device_of(const void *ptr)
{
    const Guard guard(all.lock);
    const auto *found = find((uintptr_t)ptr);
    return found != nullptr && found->second.kind != PINNED ? found->second.device : -1;
}

} // namespace emu

namespace
{

cudaError_t take(void **ptr, size_t bytes, Kind kind)
{
    const int device = current();
    const Guard guard(all.lock);

    *ptr = nullptr;
    if (bytes == 0)
        return cudaSuccess;
    if (bytes > DEVICE_BYTES - all.used[device])
        return said(cudaErrorMemoryAllocation);
    const int fd = memfd_create("twill-emulated-device", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return said(cudaErrorMemoryAllocation);
    void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED) {
        close(fd);
        return said(cudaErrorMemoryAllocation);
    }
    all.used[device] += bytes;
    all.pieces[(uintptr_t)at] = {bytes, kind, device, fd, nullptr};
    *ptr = at;
    return cudaSuccess;
}

cudaError_t drop(void *ptr)
{
    const Guard guard(all.lock);
    const auto at = all.pieces.find((uintptr_t)ptr);

    if (at == all.pieces.end() || at->second.kind == MAPPED)
        return said(cudaErrorInvalidValue);
    const Piece piece = at->second;
    all.pieces.erase(at);
    (void)munmap(ptr, piece.bytes);
    if (piece.fd >= 0)
        close(piece.fd);
    if (piece.kind == DEVICE || piece.kind == POOL)
        all.used[piece.device] -= piece.bytes;
    return cudaSuccess;
}

/* What an IPC handle says. */
struct Ticket {
    int32_t pid, fd, device;
    uint64_t bytes;
};

} // namespace

extern "C" {

cudaError_t cudaMalloc(void **ptr, size_t bytes) { return take(ptr, bytes, DEVICE); }

cudaError_t cudaFree(void *ptr)
{
    const int device = device_of(ptr);

    if (ptr == nullptr)
        return cudaSuccess;
    if (device >= 0)
        device_wait(device);
    return drop(ptr);
}

cudaError_t cudaMallocAsync(void **ptr, size_t bytes, cudaStream_t)
{
    return take(ptr, bytes, POOL);
}
cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
    Job job;
    job.quick = [ptr] { (void)drop(ptr); };
    return submit(stream, job);
}

cudaError_t cudaHostAlloc(void **ptr, size_t bytes, unsigned)
{
    void *at = mmap(nullptr, bytes != 0 ? bytes : 1, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return said(cudaErrorMemoryAllocation);
    const Guard guard(all.lock);
    all.pieces[(uintptr_t)at] = {bytes != 0 ? bytes : 1, PINNED, -1, -1, nullptr};
    *ptr = at;
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void *ptr) { return ptr == nullptr ? cudaSuccess : drop(ptr); }

/* Devices find it elsewhere, as they may: shared memory, which is mapped a second time. */
cudaError_t cudaHostRegister(void *ptr, size_t bytes, unsigned)
{
    const Guard guard(all.lock);

    if (bytes == 0 || (uintptr_t)ptr % 4096 != 0)
        return said(cudaErrorInvalidValue);
    if (find((uintptr_t)ptr) != nullptr)
        return said(cudaErrorHostMemoryAlreadyRegistered);
    void *alias = mremap(ptr, 0, bytes, MREMAP_MAYMOVE);
    if (alias == MAP_FAILED)
        return said(cudaErrorInvalidValue);
    all.pieces[(uintptr_t)ptr] = {bytes, ENLISTED, -1, -1, nullptr, 0, -1, alias};
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *ptr)
{
    for (int device = 0; device < devices(); device++)
        device_wait(device);
    const Guard guard(all.lock);
    const auto at = all.pieces.find((uintptr_t)ptr);

    if (at == all.pieces.end() || at->second.kind != ENLISTED)
        return said(cudaErrorHostMemoryNotRegistered);
    (void)munmap(at->second.alias, at->second.bytes);
    all.pieces.erase(at);
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device_ptr, void *ptr, unsigned)
{
    const Guard guard(all.lock);
    const auto *found = find((uintptr_t)ptr);

    if (found == nullptr || (found->second.kind != ENLISTED && found->second.kind != PINNED))
        return said(cudaErrorInvalidValue);
    *device_ptr = found->second.kind == PINNED
                      ? ptr
                      : (char *)found->second.alias + ((uintptr_t)ptr - found->first);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *bytes)
{
    const Guard guard(all.lock);
    *bytes = DEVICE_BYTES;
    *free_bytes = DEVICE_BYTES - all.used[current()];
    return cudaSuccess;
}

/* ---- copies ------------------------------------------------------------------------------------
 */

static std::atomic<uint64_t> copies{0};
static std::atomic<unsigned> copies_ms{0};

/* From device to device. */
static void engine_copy(void *dst, const void *src, size_t bytes)
{
    if (copies_ms != 0)
        usleep(copies_ms * 1000);
    memcpy(dst, src, bytes);
    copies++;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    Job job;
    if (kind == cudaMemcpyDefault)
        job.slow = [=] { engine_copy(dst, src, bytes); };
    else
        job.quick = [=] { memcpy(dst, src, bytes); };
    return submit(stream, job);
}
cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
    Job job;
    job.quick = [=] { memset(dst, value, bytes); };
    return submit(stream, job);
}
cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    const cudaError_t error = cudaMemcpyAsync(dst, src, bytes, kind, nullptr);
    return error != cudaSuccess ? error : cudaStreamSynchronize(nullptr);
}
cudaError_t cudaMemset(void *dst, int value, size_t bytes)
{
    return cudaMemsetAsync(dst, value, bytes, nullptr);
}

/* ---- other processes ---------------------------------------------------------------------------
 */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
    const Guard guard(all.lock);
    const auto *found = find((uintptr_t)ptr);

    if (found == nullptr || found->second.kind != DEVICE)
        return said(cudaErrorInvalidValue);
    const Ticket ticket = {getpid(), found->second.fd, found->second.device, found->second.bytes};
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &ticket, sizeof ticket);
    return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned)
{
    Ticket ticket;
    char path[64];

    memcpy(&ticket, &handle, sizeof ticket);
    if (reach(current(), ticket.device) == ABSENT)
        return said(cudaErrorPeerAccessUnsupported);
    if (reach(current(), ticket.device) == CLOSED)
        return said(cudaErrorInvalidResourceHandle);
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket.pid, ticket.fd);
    const int fd = ticket.pid == getpid() ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return said(cudaErrorInvalidResourceHandle);
    void *at = mmap(nullptr, ticket.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return said(cudaErrorMemoryAllocation);
    const Guard guard(all.lock);
    for (const auto &piece : all.pieces) /* CUDA refuses some of these */
        if (piece.second.kind == OPENED && piece.second.device == current() &&
            piece.second.ticket == std::make_pair(ticket.pid, ticket.fd)) {
            (void)munmap(at, ticket.bytes);
            return said(cudaErrorAlreadyMapped);
        }
    all.pieces[(uintptr_t)at] = {ticket.bytes, OPENED, current(), -1, nullptr, 0, ticket.device};
    all.pieces[(uintptr_t)at].ticket = {ticket.pid, ticket.fd};
    *ptr = at;
    return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
    const int device = device_of(ptr);

    if (device >= 0)
        device_wait(device);
    return drop(ptr);
}
}

/* ---- the driver --------------------------------------------------------------------------------
 */

namespace emu
{

uint64_t copies_done() { return copies; }
void late_copies(unsigned ms) { copies_ms = ms; }

static void attribute_set(const Piece *piece, CUpointer_attribute which, void *value)
{
    int told = 0;

    if (which == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) {
        const bool pool = piece != nullptr && piece->kind == POOL;
        const uintptr_t handle = pool ? (uintptr_t)piece->device + 1 : 0;
        memcpy(value, &handle, sizeof handle);
        return;
    }
    if (which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE && piece != nullptr)
        told = piece->kind == PINNED || piece->kind == ENLISTED ? CU_MEMORYTYPE_HOST
                                                                : CU_MEMORYTYPE_DEVICE;
    else if (which == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        told = piece != nullptr ? piece->device : -2;
    else if (which == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE)
        told = piece != nullptr && piece->kind == DEVICE;
    /* a bool is 4 bytes wide here as well: callers give an int or unsigned for each */
    memcpy(value, &told, sizeof told);
}

int owner(const void *ptr)
{
    const Guard guard(all.lock);
    const auto *found = find((uintptr_t)ptr);
    if (found == nullptr)
        return -1;
    return found->second.kind == OPENED ? found->second.owner : found->second.device;
}

CUresult pointer_attributes(unsigned count, CUpointer_attribute *which, void **values,
                            CUdeviceptr ptr)
{
    const Guard guard(all.lock);
    const auto *found = find((uintptr_t)ptr);

    for (unsigned i = 0; i < count; i++)
        attribute_set(found != nullptr ? &found->second : nullptr, which[i], values[i]);
    return CUDA_SUCCESS;
}

CUresult memory_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
    const Guard guard(all.lock);
    const auto *found = find((uintptr_t)ptr);

    if (found == nullptr)
        return CUDA_ERROR_NOT_FOUND;
    *base = found->first;
    *bytes = found->second.bytes;
    return CUDA_SUCCESS;
}

} // namespace emu
