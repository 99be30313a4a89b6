/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that this build has no CUDA. Never knows: what was asked of it. */
#include "config.h"

#include "base/cuda.h"

#define ABSENCE "this build has no CUDA"

/* A parameter that nobody looks at. */
#define UNUSED __attribute__((unused))

static enum twill_status none(void) { return tw_fail(TWILL_ERR_UNSUPPORTED, ABSENCE); }

enum twill_status tw_cuda_ready(void) { return none(); }
const char *tw_cuda_absence(void) { return ABSENCE; }
int tw_cuda_device_count(void) { return 0; }

enum twill_status tw_cuda_current(int *device)
{
    *device = -1;
    return TWILL_OK;
}

void tw_cuda_versions(int *driver, int *runtime)
{
    *driver = 0;
    *runtime = 0;
}

enum twill_status tw_cuda_device_read(int device UNUSED, struct tw_cuda_device *found UNUSED)
{
    return none();
}

enum twill_status tw_cuda_alloc(int device UNUSED, size_t bytes UNUSED, void **ptr UNUSED)
{
    return none();
}

void tw_cuda_free(int device UNUSED, void *ptr UNUSED) {}

enum twill_status tw_cuda_pinned_alloc(size_t bytes UNUSED, void **ptr UNUSED) { return none(); }
void tw_cuda_pinned_free(void *ptr UNUSED) {}

enum twill_status tw_cuda_host_pin(int device UNUSED, void *ptr UNUSED, size_t bytes UNUSED)
{
    return none();
}

void tw_cuda_host_unpin(int device UNUSED, void *ptr UNUSED) {}

enum twill_status tw_cuda_host_find(int device UNUSED, void *ptr UNUSED, void **at UNUSED)
{
    return none();
}

enum twill_status tw_cuda_memory_find(const void *ptr UNUSED, struct tw_cuda_memory *found UNUSED)
{
    return none();
}

enum twill_status tw_cuda_memory_range(const void *ptr UNUSED, void **base UNUSED,
                                       size_t *bytes UNUSED)
{
    return none();
}

enum twill_status tw_cuda_peer_enable(int device UNUSED, int peer UNUSED, bool *can UNUSED)
{
    return none();
}

enum twill_status tw_cuda_peer_can(int device UNUSED, int peer UNUSED, bool *can UNUSED)
{
    return none();
}

enum twill_status tw_cuda_device_find(const uint8_t uuid[16] UNUSED, int *device UNUSED)
{
    return none();
}

enum twill_status tw_cuda_ipc_export(const void *ptr UNUSED,
                                     uint8_t handle[TW_CUDA_IPC_BYTES] UNUSED)
{
    return none();
}

enum twill_status tw_cuda_ipc_open(int device UNUSED,
                                   const uint8_t handle[TW_CUDA_IPC_BYTES] UNUSED,
                                   void **base UNUSED)
{
    return none();
}

void tw_cuda_ipc_close(int device UNUSED, void *base UNUSED) {}

enum twill_status tw_cuda_access_find(int device UNUSED, const void *ptr UNUSED,
                                      size_t bytes UNUSED, const int *devices UNUSED,
                                      int count UNUSED, struct tw_cuda_access *found UNUSED)
{
    return none();
}

enum twill_status tw_cuda_access_give(int device UNUSED, const void *ptr UNUSED,
                                      size_t bytes UNUSED, const int *devices UNUSED,
                                      int count UNUSED)
{
    return none();
}

enum twill_status tw_cuda_piece_find(int device UNUSED, const void *ptr UNUSED, void **base UNUSED,
                                     size_t *bytes UNUSED)
{
    return none();
}

enum twill_status tw_cuda_piece_export(int device UNUSED, const void *ptr UNUSED, int *fd UNUSED)
{
    return none();
}

enum twill_status tw_cuda_span_reserve(int device UNUSED, size_t bytes UNUSED,
                                       struct tw_cuda_span *span UNUSED)
{
    return none();
}

enum twill_status tw_cuda_span_map(int device UNUSED, struct tw_cuda_span *span UNUSED,
                                   size_t bytes UNUSED, int fd UNUSED)
{
    return none();
}

void tw_cuda_span_free(int device UNUSED, struct tw_cuda_span *span UNUSED) {}

enum twill_status tw_cuda_stream_create(int device UNUSED, void **stream UNUSED) { return none(); }
void tw_cuda_stream_destroy(int device UNUSED, void *stream UNUSED) {}
enum twill_status tw_cuda_stream_wait(int device UNUSED, void *stream UNUSED) { return none(); }

enum twill_status tw_cuda_stream_query(int device UNUSED, void *stream UNUSED, bool *empty UNUSED)
{
    return none();
}

enum twill_status tw_cuda_stream_look(int device UNUSED, void *stream UNUSED,
                                      struct tw_cuda_stream *found UNUSED)
{
    return tw_cuda_ready();
}

enum twill_status tw_cuda_capture_last(int device UNUSED, void *stream UNUSED,
                                       uint64_t capture UNUSED, void **node UNUSED)
{
    return tw_cuda_ready();
}

enum twill_status tw_cuda_stream_capturing(int device UNUSED, void *stream UNUSED,
                                           bool *capturing UNUSED)
{
    return none();
}

enum twill_status tw_cuda_event_create(int device UNUSED, void **event UNUSED) { return none(); }
void tw_cuda_event_destroy(int device UNUSED, void *event UNUSED) {}

enum twill_status tw_cuda_event_record(int device UNUSED, void *event UNUSED, void *stream UNUSED)
{
    return none();
}

enum twill_status tw_cuda_event_await(int device UNUSED, void *event UNUSED, void *stream UNUSED)
{
    return none();
}

enum twill_status tw_cuda_event_done(int device UNUSED, void *event UNUSED, bool *done UNUSED)
{
    return none();
}

enum twill_status tw_cuda_copy(int device UNUSED, void *dst UNUSED, const void *src UNUSED,
                               size_t bytes UNUSED, void *stream UNUSED)
{
    return none();
}

enum twill_status tw_cuda_copy_now(int device UNUSED, void *dst UNUSED, const void *src UNUSED,
                                   size_t bytes UNUSED)
{
    return none();
}
