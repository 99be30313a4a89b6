/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_vmm.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace fake
{

namespace
{

struct Pool {
    std::set<int> in;
};
struct Piece {
    size_t bytes;
    Apart how;
    bool mapped = true;
    std::shared_ptr<Pool> who; /* a piece's own, or of a pool */
};
struct Mapping {
    size_t bytes;
    uint64_t piece;
};
struct All {
    std::map<uintptr_t, Piece> pieces;
    std::map<uintptr_t, Mapping> mappings;
    std::set<void *> spans;
    std::set<int> refused;
    int openings = 0;
};

std::mutex lock;
std::unique_ptr<All> all = std::make_unique<All>();
using Guard = std::lock_guard<std::mutex>;

std::pair<const uintptr_t, Piece> *find(const void *ptr)
{
    auto at = all->pieces.upper_bound((uintptr_t)ptr);
    if (at == all->pieces.begin())
        return nullptr;
    --at;
    return (uintptr_t)ptr - at->first < at->second.bytes ? &*at : nullptr;
}

} // namespace

void vmm_reset()
{
    const Guard guard(lock);
    all = std::make_unique<All>();
}

bool is_apart(const void *ptr)
{
    const Guard guard(lock);
    return find(ptr) != nullptr;
}

void apart(const void *ptr, size_t bytes, const Apart &how)
{
    const size_t each = how.piece_bytes != 0 ? how.piece_bytes : bytes;
    for (size_t at = 0; at < bytes; at += each) {
        const char *base = static_cast<const char *>(ptr) + at;
        mark(base, each, TW_CUDA_DEVICE, how.device);
        const Guard guard(lock);
        all->pieces[(uintptr_t)base] = {each, how, true, std::make_shared<Pool>()};
    }
}

void unmap(const void *ptr)
{
    const Guard guard(lock);
    find(ptr)->second.mapped = false;
}

void let_in(const void *ptr, int device)
{
    const Guard guard(lock);
    find(ptr)->second.who->in.insert(device);
}

std::set<int> who_is_in(const void *ptr)
{
    const Guard guard(lock);
    return find(ptr)->second.who->in;
}

void refuse(int device)
{
    const Guard guard(lock);
    all->refused.insert(device);
}

int openings()
{
    const Guard guard(lock);
    return all->openings;
}

std::pair<const void *, size_t> mapped_at(uint64_t address)
{
    const Guard guard(lock);
    auto found = all->mappings.find((uintptr_t)address);
    if (found == all->mappings.end())
        return {nullptr, 0};
    return {(const void *)(uintptr_t)found->second.piece, found->second.bytes};
}

size_t spans()
{
    const Guard guard(lock);
    return all->spans.size();
}

} // namespace fake

using namespace fake;

extern "C" {

static enum twill_status piece_of(const void *ptr, std::pair<const uintptr_t, Piece> **found)
{
    *found = find(ptr);
    if (*found == nullptr || !(*found)->second.mapped)
        return tw_fail(TWILL_ERR_INVALID, "nothing is mapped at %p", ptr);
    return TWILL_OK;
}

enum twill_status tw_cuda_access_find(int, const void *ptr, size_t bytes, const int *devices,
                                      int count, struct tw_cuda_access *out)
{
    const Guard guard(lock);
    const char *at = static_cast<const char *>(ptr), *end = at + bytes;
    std::pair<const uintptr_t, Piece> *piece;

    while (at < end) {
        const enum twill_status status = piece_of(at, &piece);
        if (status != TWILL_OK)
            return status;
        if (at == ptr)
            *out = {piece->second.how.origin, -1};
        for (int i = 0; i < count && out->origin != TW_CUDA_OTHER; i++)
            if (out->lacking < 0 && piece->second.who->in.count(devices[i]) == 0)
                out->lacking = devices[i];
        at = (const char *)piece->first + piece->second.bytes;
    }
    return TWILL_OK;
}

enum twill_status tw_cuda_access_give(int, const void *ptr, size_t bytes, const int *devices,
                                      int count)
{
    const Guard guard(lock);
    const char *at = static_cast<const char *>(ptr), *end = at + bytes;
    std::pair<const uintptr_t, Piece> *piece;

    all->openings++;
    for (; at < end; at = (const char *)piece->first + piece->second.bytes) {
        const enum twill_status status = piece_of(at, &piece);
        if (status != TWILL_OK)
            return status;
        for (int i = 0; i < count; i++) {
            if (all->refused.count(devices[i]) != 0)
                return tw_fail(TWILL_ERR_UNSUPPORTED, "device %d is refused", devices[i]);
            piece->second.who->in.insert(devices[i]);
        }
    }
    return TWILL_OK;
}

enum twill_status tw_cuda_piece_find(int, const void *ptr, void **base, size_t *bytes)
{
    const Guard guard(lock);
    std::pair<const uintptr_t, Piece> *piece;
    const enum twill_status status = piece_of(ptr, &piece);

    if (status != TWILL_OK)
        return status;
    if (piece->second.how.origin != TW_CUDA_MAPPED)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "%p is of a pool", ptr);
    *base = (void *)piece->first;
    *bytes = piece->second.bytes;
    return TWILL_OK;
}

/* What the descriptor is of is read from it. */
enum twill_status tw_cuda_piece_export(int, const void *ptr, int *fd)
{
    const Guard guard(lock);
    std::pair<const uintptr_t, Piece> *piece;
    const enum twill_status status = piece_of(ptr, &piece);

    if (status != TWILL_OK)
        return status;
    if (!piece->second.how.exportable)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "%p was made without a descriptor", ptr);
    const uint64_t told = piece->first;
    *fd = memfd_create("fake-piece", MFD_CLOEXEC);
    if (write(*fd, &told, sizeof told) != (ssize_t)sizeof told)
        return tw_fail(TWILL_ERR_SYSTEM, "no descriptor");
    return TWILL_OK;
}

enum twill_status tw_cuda_span_reserve(int, size_t bytes, struct tw_cuda_span *span)
{
    const Guard guard(lock);
    *span = {calloc(1, bytes), bytes, 0};
    all->spans.insert(span->base);
    return TWILL_OK;
}

enum twill_status tw_cuda_span_map(int device, struct tw_cuda_span *span, size_t bytes, int fd)
{
    const Guard guard(lock);
    uint64_t told = 0;
    if (span->mapped + bytes > span->bytes || pread(fd, &told, sizeof told, 0) != 8)
        return tw_fail(TWILL_ERR_SYSTEM, "a piece that cannot be mapped");
    if (all->refused.count(device) != 0)
        return tw_fail(TWILL_ERR_SYSTEM, "device %d maps nothing", device);
    all->mappings[(uintptr_t)span->base + span->mapped] = {bytes, told};
    span->mapped += bytes;
    return TWILL_OK;
}

void tw_cuda_span_free(int, struct tw_cuda_span *span)
{
    const Guard guard(lock);
    if (span->base == nullptr)
        return;
    for (auto at = all->mappings.lower_bound((uintptr_t)span->base);
         at != all->mappings.end() && at->first < (uintptr_t)span->base + span->bytes;)
        at = all->mappings.erase(at);
    all->spans.erase(span->base);
    free(span->base);
    *span = {};
}
}
