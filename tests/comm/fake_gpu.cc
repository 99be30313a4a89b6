/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_vmm.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

namespace fake
{

namespace
{

struct Stream {
    int device = 0;
    uint64_t id = 0, capture = 0;
    bool ended = false;
    Point now;
    uintptr_t node = 0; /* that alone the next one comes behind; 0: not known */
};
struct Event {
    int device = 0;
    uint64_t capture = 0;
    Point at;
};
struct Range {
    size_t bytes;
    tw_cuda_kind kind;
    int device;
};
struct All {
    int devices = 0, multiprocessors = 0, code = 0;
    std::set<std::pair<int, int>> cuts;
    std::map<std::pair<int, int>, Lie> lies;
    std::map<int, std::string> names;
    int probes = 0;
    std::map<uintptr_t, Range> memory;
    std::map<void *, std::unique_ptr<Stream>> streams; /* by handle */
    std::vector<std::unique_ptr<Stream>> defaults;     /* by device */
    uint64_t ids = 0;
    std::vector<Launch> launches;
    std::vector<Copy> copies;
    bool copies_fail = false;
    enum twill_status failing = TWILL_OK;
    bool held = false;
    int asked = 0;
    std::vector<std::string> misuse;
};

std::mutex lock;
std::unique_ptr<All> all = std::make_unique<All>();

using Guard = std::lock_guard<std::mutex>;

enum twill_status wrong(const std::string &what)
{
    all->misuse.push_back(what);
    return tw_fail(TWILL_ERR_SYSTEM, "%s", what.c_str());
}

std::unique_ptr<Stream> stream_new(int device, uint64_t capture)
{
    auto made = std::make_unique<Stream>();
    made->device = device;
    made->id = ++all->ids;
    made->capture = capture;
    made->now.stream = made.get();
    return made;
}

/* nullptr: misuse. */
Stream *find(int device, void *handle)
{
    if (handle == nullptr)
        return all->defaults.at((size_t)device).get();
    auto found = all->streams.find(handle);
    if (found == all->streams.end() || found->second->ended) {
        (void)wrong("a stream that is none, or was destroyed");
        return nullptr;
    }
    if (found->second->device != device) {
        (void)wrong("a stream of another device");
        return nullptr;
    }
    return found->second.get();
}

/* One more thing in the stream. */
Point step(Stream *stream)
{
    static uintptr_t nodes; /* under the lock */
    stream->node = ++nodes;
    stream->now.after[stream] = ++stream->now.place;
    return stream->now;
}

} // namespace

std::atomic<bool> full{false};
std::atomic<int> full_device{-1};
std::atomic<int> ordered{0};
std::atomic<bool> closed{false};
std::atomic<bool> busy{false};

bool before(const Point &first, const Point &second)
{
    auto found = second.after.find(first.stream);
    return found != second.after.end() && found->second >= first.place &&
           !(first.stream == second.stream && first.place == second.place);
}

void reset(int devices, int multiprocessors)
{
    const Guard guard(lock);
    all = std::make_unique<All>();
    full = false;
    full_device = -1;
    ordered = 0;
    vmm_reset();
    closed = false;
    busy = false;
    all->devices = devices;
    all->multiprocessors = multiprocessors;
    for (int i = 0; i < devices; i++)
        all->defaults.push_back(stream_new(i, 0));
}

void cut(int device, int peer)
{
    const Guard guard(lock);
    all->cuts.insert({device, peer});
}

void lie(int device, int peer, Lie lie)
{
    const Guard guard(lock);
    all->lies[{device, peer}] = lie;
}

void name(int device, const std::string &pci)
{
    const Guard guard(lock);
    all->names[device] = pci;
}

int probes()
{
    const Guard guard(lock);
    return all->probes;
}

Lie lie_of(int device, const void *ptr)
{
    const Guard guard(lock);
    auto at = all->memory.upper_bound((uintptr_t)ptr);
    if (at == all->memory.begin() || (uintptr_t)ptr - (--at)->first >= at->second.bytes ||
        at->second.device < 0) {
        (void)wrong("the self-test tries what is no memory of a device");
        return LOST;
    }
    const auto found = all->lies.find({device, at->second.device});
    return found != all->lies.end() ? found->second : HONEST;
}

bool probe_note(int device, void *stream)
{
    const Guard guard(lock);
    all->probes++;
    return find(device, stream) != nullptr;
}

void mark(const void *ptr, size_t bytes, enum tw_cuda_kind kind, int device)
{
    const Guard guard(lock);
    all->memory[(uintptr_t)ptr] = {bytes, kind, device};
}

void *stream(int device, uint64_t capture)
{
    const Guard guard(lock);
    auto made = stream_new(device, capture);
    void *handle = made.get();
    all->streams[handle] = std::move(made);
    return handle;
}

void stream_end(void *stream)
{
    const Guard guard(lock);
    all->streams.at(stream)->ended = true;
}

void code(int capability)
{
    const Guard guard(lock);
    all->code = capability;
}

Point work(void *stream)
{
    const Guard guard(lock);
    return step(all->streams.at(stream).get());
}

size_t bytes_of(int device)
{
    const Guard guard(lock);
    size_t sum = 0;
    for (const auto &one : all->memory)
        sum +=
            one.second.kind == TW_CUDA_DEVICE && one.second.device == device ? one.second.bytes : 0;
    return sum;
}

std::vector<Launch> launches()
{
    const Guard guard(lock);
    return all->launches;
}

std::vector<Copy> copies()
{
    const Guard guard(lock);
    return all->copies;
}

void fail_copies(bool fail)
{
    const Guard guard(lock);
    all->copies_fail = fail;
}

void fail_launches(enum twill_status status)
{
    const Guard guard(lock);
    all->failing = status;
}

void hold(bool held)
{
    const Guard guard(lock);
    all->held = held;
}

int asked()
{
    const Guard guard(lock);
    return all->asked;
}

std::vector<std::string> misuse()
{
    const Guard guard(lock);
    return all->misuse;
}

} // namespace fake

using namespace fake;

extern "C" {

/* ---- src/base/cuda.h: all of it, so that the library's own stays out of the program ------------
 */

enum twill_status tw_cuda_ready(void) { return TWILL_OK; }
const char *tw_cuda_absence(void) { return nullptr; }
enum twill_status tw_cuda_current(int *device)
{
    *device = 0;
    return TWILL_OK;
}
int tw_cuda_device_count(void)
{
    const Guard guard(lock);
    return all->devices;
}
void tw_cuda_versions(int *driver, int *runtime) { *driver = *runtime = 13000; }

enum twill_status tw_cuda_device_read(int device, struct tw_cuda_device *found)
{
    const Guard guard(lock);
    memset(found, 0, sizeof *found);
    found->uuid[0] = (uint8_t)(device + 1);
    const auto name = all->names.find(device);
    if (name != all->names.end())
        snprintf(found->pci, sizeof found->pci, "%s", name->second.c_str());
    found->multiprocessors = all->multiprocessors;
    found->major = 9; /* whatever its kernels are compiled for */
    found->threads_each = 2048;
    return TWILL_OK;
}

enum twill_status tw_cuda_alloc(int device, size_t bytes, void **ptr)
{
    if (full || full_device == device)
        return tw_fail(TWILL_ERR_NOMEM, "the device was made to have no more");
    *ptr = calloc(1, bytes);
    mark(*ptr, bytes, TW_CUDA_DEVICE, device);
    return TWILL_OK;
}

static void forget(void *ptr)
{
    const Guard guard(lock);
    all->memory.erase((uintptr_t)ptr);
    free(ptr);
}
void tw_cuda_free(int, void *ptr) { forget(ptr); }
enum twill_status tw_cuda_pinned_alloc(size_t bytes, void **ptr)
{
    *ptr = calloc(1, bytes);
    mark(*ptr, bytes, TW_CUDA_PINNED, -1);
    return TWILL_OK;
}
void tw_cuda_pinned_free(void *ptr) { forget(ptr); }

enum twill_status tw_cuda_host_pin(int, void *ptr, size_t bytes)
{
    mark(ptr, bytes, TW_CUDA_PINNED, -1);
    return TWILL_OK;
}
void tw_cuda_host_unpin(int, void *ptr)
{
    const Guard guard(lock);
    if (ptr != nullptr && all->memory.erase((uintptr_t)ptr) != 1)
        (void)wrong("memory that is not pinned is unpinned");
}
enum twill_status tw_cuda_host_find(int, void *ptr, void **at)
{
    const Guard guard(lock);
    if (all->memory.count((uintptr_t)ptr) == 0)
        return wrong("memory that is not pinned is looked for");
    *at = ptr;
    return TWILL_OK;
}

enum twill_status tw_cuda_memory_find(const void *ptr, struct tw_cuda_memory *found)
{
    const Guard guard(lock);
    auto at = all->memory.upper_bound((uintptr_t)ptr);

    *found = {TW_CUDA_PLAIN, -1, false};
    if (at == all->memory.begin())
        return TWILL_OK;
    if ((uintptr_t)ptr < (--at)->first + at->second.bytes)
        *found = {at->second.kind, at->second.device, is_apart(ptr)};
    return TWILL_OK;
}
enum twill_status tw_cuda_memory_range(const void *ptr, void **base, size_t *bytes)
{
    const Guard guard(lock);
    auto at = all->memory.upper_bound((uintptr_t)ptr);

    if (at == all->memory.begin() || (uintptr_t)ptr - (--at)->first >= at->second.bytes)
        return tw_fail(TWILL_ERR_INVALID, "%p is no memory of a device", ptr);
    *base = (void *)at->first;
    *bytes = at->second.bytes;
    return TWILL_OK;
}

enum twill_status tw_cuda_peer_enable(int device, int peer, bool *can)
{
    const Guard guard(lock);
    *can = all->cuts.count({device, peer}) == 0;
    return TWILL_OK;
}
enum twill_status tw_cuda_peer_can(int device, int peer, bool *can)
{
    return tw_cuda_peer_enable(device, peer, can);
}
enum twill_status tw_cuda_device_find(const uint8_t uuid[16], int *device)
{
    const Guard guard(lock);
    *device = uuid[0] <= all->devices ? uuid[0] - 1 : -1;
    return TWILL_OK;
}
enum twill_status tw_cuda_ipc_export(const void *, uint8_t handle[TW_CUDA_IPC_BYTES])
{
    memset(handle, 0, TW_CUDA_IPC_BYTES);
    return TWILL_OK;
}
enum twill_status tw_cuda_ipc_open(int, const uint8_t *, void **)
{
    if (closed)
        return tw_fail(TWILL_ERR_SYSTEM, "memory was made not to open");
    return wrong("ipc_open is not made up");
}
void tw_cuda_ipc_close(int, void *) {}

enum twill_status tw_cuda_stream_create(int device, void **made)
{
    *made = stream(device);
    return TWILL_OK;
}
void tw_cuda_stream_destroy(int, void *gone) { stream_end(gone); }
enum twill_status tw_cuda_stream_wait(int, void *) { return TWILL_OK; }
enum twill_status tw_cuda_stream_query(int, void *, bool *empty)
{
    *empty = !busy;
    return TWILL_OK;
}

enum twill_status tw_cuda_stream_look(int device, void *handle, struct tw_cuda_stream *found)
{
    const Guard guard(lock);
    const Stream *stream = find(device, handle);
    if (stream == nullptr)
        return TWILL_ERR_SYSTEM;
    found->capturing = stream->capture != 0;
    found->id = found->capturing ? 0 : stream->id;
    found->capture = stream->capture;
    return TWILL_OK;
}
enum twill_status tw_cuda_capture_last(int device, void *handle, uint64_t capture, void **node)
{
    const Guard guard(lock);
    const Stream *stream = find(device, handle);
    if (stream == nullptr)
        return TWILL_ERR_SYSTEM;
    *node = stream->capture != 0 && stream->capture == capture ? (void *)stream->node : nullptr;
    return TWILL_OK;
}
enum twill_status tw_cuda_stream_capturing(int device, void *handle, bool *capturing)
{
    struct tw_cuda_stream found;
    const enum twill_status status = tw_cuda_stream_look(device, handle, &found);
    *capturing = found.capturing;
    return status;
}

enum twill_status tw_cuda_event_create(int device, void **event)
{
    auto *made = new Event;
    made->device = device;
    *event = made;
    return TWILL_OK;
}
void tw_cuda_event_destroy(int, void *event) { delete static_cast<Event *>(event); }

enum twill_status tw_cuda_event_record(int device, void *event, void *handle)
{
    const Guard guard(lock);
    auto *into = static_cast<Event *>(event);
    const Stream *stream = find(device, handle);
    if (stream == nullptr)
        return TWILL_ERR_SYSTEM;
    if (into->device != device)
        return wrong("an event of another device");
    ordered++;
    into->at = stream->now;
    into->capture = stream->capture;
    return TWILL_OK;
}

enum twill_status tw_cuda_event_await(int device, void *event, void *handle)
{
    const Guard guard(lock);
    const auto *from = static_cast<const Event *>(event);
    Stream *stream = find(device, handle);
    if (stream == nullptr)
        return TWILL_ERR_SYSTEM;
    if (stream->capture != 0 && stream->capture != from->capture)
        return wrong("a graph waits for what is not in it");
    ordered++;
    stream->capture = from->capture; /* it joins */
    stream->node = 0;
    for (const auto &one : from->at.after)
        if (stream->now.after[one.first] < one.second)
            stream->now.after[one.first] = one.second;
    return TWILL_OK;
}

enum twill_status tw_cuda_event_done(int, void *, bool *done)
{
    const Guard guard(lock);
    all->asked++;
    *done = !all->held;
    return TWILL_OK;
}

enum twill_status tw_cuda_copy(int device, void *dst, const void *src, size_t bytes, void *handle)
{
    const Guard guard(lock);
    Stream *stream = find(device, handle);
    if (stream == nullptr)
        return TWILL_ERR_SYSTEM;
    if (all->copies_fail)
        return tw_fail(TWILL_ERR_SYSTEM, "the copy was made to fail");
    all->copies.push_back({device, dst, src, bytes, stream->capture, step(stream)});
    return TWILL_OK;
}
enum twill_status tw_cuda_copy_now(int, void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
    return TWILL_OK;
}

/* ---- src/device/cuda/launch.h ------------------------------------------------------------------
 */

enum twill_status tw_gk_load(int) { return TWILL_OK; }
bool tw_gk_follows(int)
{
    const Guard guard(lock);
    return all->code >= 90;
}

enum twill_status tw_gk_launch(int device, enum tw_gk_kernel kernel, twill_type_t type,
                               const struct tw_gk_launch *launch, uint32_t threads, void *handle,
                               void *done)
{
    const Guard guard(lock);
    if (all->failing != TWILL_OK)
        return tw_fail(all->failing, "the launch was made to fail");
    Stream *stream = find(device, handle);
    if (stream == nullptr)
        return TWILL_ERR_SYSTEM;
    if (stream->capture != 0 && done != nullptr)
        return wrong("a launch with an event is captured");
    if (launch->early != 0 && (stream->capture == 0 || done != nullptr))
        return wrong("a launch outside captures is early");
    all->launches.push_back(
        {device, kernel, type, *launch, threads, handle, stream->capture, step(stream)});
    if (done != nullptr) {
        static_cast<Event *>(done)->at = stream->now;
        static_cast<Event *>(done)->capture = 0;
    }
    return TWILL_OK;
}
}
