/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: CUDA's runtime: all that the library asks of it but the kernels themselves.
 * Never knows: ranks, plans, what the memory is for. */
#ifndef TW_BASE_CUDA_H
#define TW_BASE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/*
 * The seam between twill and CUDA: base/cuda_rt.c in a build with CUDA, base/cuda_none.c in one
 * without, a fake in tests. The runtime is linked statically and opens the driver when it is first
 * used, so that the library loads where there is none.
 *
 * Devices are the numbers of the CUDA runtime in this process (CUDA_VISIBLE_DEVICES counts). Calls
 * that take a device leave the calling thread's current device as it was. Streams and events are
 * the runtime's own handles. Any thread. A failure is TWILL_ERR_SYSTEM (TWILL_ERR_NOMEM out of
 * memory) and tw_fail has CUDA's own word for it; no error stays behind in cudaGetLastError.
 * Where tw_cuda_ready fails all do, with its status and sentence; a device that is not there is
 * TWILL_ERR_INVALID. Outputs are touched on success only.
 */

/** There are devices. ERR_UNSUPPORTED (tw_fail called): a build without CUDA, no driver, one too
 * old, no device. The first call opens the driver; later ones are one load. */
enum twill_status tw_cuda_ready(void);
/** Why there are none, as tw_cuda_ready would say it; NULL where there are. Quiet. */
const char *tw_cuda_absence(void);
/** Number of devices; 0 where tw_cuda_ready fails. Quiet. */
int tw_cuda_device_count(void);
/** The calling thread's current device, of all runtimes of the process; makes no context. A process
 * without a driver, or with none of the devices, has none: *device is -1. ERR_UNSUPPORTED: there
 * are devices, but tw_cuda_ready fails. */
enum twill_status tw_cuda_current(int *device);
/** Version of the driver's CUDA and of the runtime, as 13000; 0: none. */
void tw_cuda_versions(int *driver, int *runtime);

struct tw_cuda_device {
    char name[64];
    char pci[16];     /* "0000:3b:00.0", lower case */
    uint8_t uuid[16]; /* equal in all processes that see the device */
    int multiprocessors;
    int threads_each; /* resident on one */
    int major, minor; /* compute capability */
    size_t bytes;
};
enum twill_status tw_cuda_device_read(int device, struct tw_cuda_device *found);

/* ---- memory ------------------------------------------------------------------------------------
 */

/** Zeroed, as far as work enqueued later can see. NOMEM: the device has no more. */
enum twill_status tw_cuda_alloc(int device, size_t bytes, void **ptr);
/** Waits for the device's work. NULL: nothing. */
void tw_cuda_free(int device, void *ptr);
/** Zeroed host memory that every device addresses by the same pointer. */
enum twill_status tw_cuda_pinned_alloc(size_t bytes, void **ptr);
void tw_cuda_pinned_free(void *ptr);
/** Pin memory of the system's, whole pages of it, so that every device of the process can address
 * it. Not twice. */
enum twill_status tw_cuda_host_pin(int device, void *ptr, size_t bytes);
/** Waits for what uses it. NULL: nothing. */
void tw_cuda_host_unpin(int device, void *ptr);
/** Where kernels on `device` find memory that is pinned so. */
enum twill_status tw_cuda_host_find(int device, void *ptr, void **at);

enum tw_cuda_kind {
    TW_CUDA_PLAIN,  /* the system's: no device addresses it, as far as CUDA knows */
    TW_CUDA_PINNED, /* host memory that devices address */
    TW_CUDA_DEVICE,
    TW_CUDA_MANAGED,
};
struct tw_cuda_memory {
    enum tw_cuda_kind kind;
    int device; /* of DEVICE and MANAGED; else -1 */
    bool apart; /* DEVICE, but not from cudaMalloc: no IPC handle, and devices that reach its device
                   reach it only if they were let (tw_cuda_access_find) */
};
/** What ptr points into. Never dereferences it. */
enum twill_status tw_cuda_memory_find(const void *ptr, struct tw_cuda_memory *found);
/* Memory of cudaMalloc of a whole number of these is of large pages, as mapped memory always is.
 * Where it is not, copy engines of other processes reach 284 GB/s of 391 (measured on H200). */
#define TW_CUDA_LARGE_PAGE ((size_t)64 << 10)
/** The allocation on a device that ptr lies in. ERR_INVALID: none. */
enum twill_status tw_cuda_memory_range(const void *ptr, void **base, size_t *bytes);

/* ---- peers -------------------------------------------------------------------------------------
 */

/** Whether `device` may address memory of `peer`, both of this process, now enabled where it can
 * be. *can false: there is no path; no error. */
enum twill_status tw_cuda_peer_enable(int device, int peer, bool *can);
/** The same, and nothing is enabled, nor does a context come into being. */
enum twill_status tw_cuda_peer_can(int device, int peer, bool *can);
/** Which device of this process it is; -1: none. */
enum twill_status tw_cuda_device_find(const uint8_t uuid[16], int *device);

#define TW_CUDA_IPC_BYTES 64
/** Handle of the whole allocation that ptr, from tw_cuda_alloc or the user's cudaMalloc, lies in.
 * ERR_UNSUPPORTED: memory that is `apart`. */
enum twill_status tw_cuda_ipc_export(const void *ptr, uint8_t handle[TW_CUDA_IPC_BYTES]);
/** Address, for kernels on `device`, of another process's allocation. Takes milliseconds. */
enum twill_status tw_cuda_ipc_open(int device, const uint8_t handle[TW_CUDA_IPC_BYTES],
                                   void **base);
void tw_cuda_ipc_close(int device, void *base);

/* ---- memory that is `apart` (cuda_rt_vmm.c)
 * ------------------------------------------------------
 */

enum tw_cuda_origin {
    TW_CUDA_MAPPED, /* by cuMemMap: pieces side by side, each of which devices are let into alone */
    TW_CUDA_POOL,   /* cudaMallocAsync: devices are let into a pool's memory, all of it */
    TW_CUDA_OTHER,  /* the driver knows neither: whom it lets in is not known */
};
struct tw_cuda_access {
    enum tw_cuda_origin origin;
    int lacking; /* the first of the devices that may not both read and write; -1: none */
};
/** Which of `devices` may not use the `bytes` bytes at ptr, at least 1, which are `apart` on
 * `device`. Nothing is kept: the answer is of now. ERR_INVALID: not all of it is mapped */
enum twill_status tw_cuda_access_find(int device, const void *ptr, size_t bytes, const int *devices,
                                      int count, struct tw_cuda_access *found);
/** Let `devices` use that memory, which is MAPPED or of a POOL: the pieces that it touches, or all
 * of the pool's. ERR_UNSUPPORTED: CUDA refuses; some may have been let in */
enum twill_status tw_cuda_access_give(int device, const void *ptr, size_t bytes, const int *devices,
                                      int count);

/** The piece, mapped by cuMemMap, that ptr on `device` lies in. ERR_UNSUPPORTED: ptr is of a pool,
 * or something else; ERR_INVALID: nothing is mapped there. */
enum twill_status tw_cuda_piece_find(int device, const void *ptr, void **base, size_t *bytes);
/** A descriptor, the caller's, by which other processes map that piece. ERR_UNSUPPORTED: it was
 * made without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR. */
enum twill_status tw_cuda_piece_export(int device, const void *ptr, int *fd);

/* Pieces of another process, mapped side by side. Caller's storage, zeroed. */
struct tw_cuda_span {
    void *base;
    size_t bytes, mapped; /* of addresses; those from base on that are mapped */
};
enum twill_status tw_cuda_span_reserve(int device, size_t bytes, struct tw_cuda_span *span);
/** The next piece, for kernels on `device`. fd: the caller's */
enum twill_status tw_cuda_span_map(int device, struct tw_cuda_span *span, size_t bytes, int fd);
/** Nothing uses it any more. One that was never reserved: nothing. */
void tw_cuda_span_free(int device, struct tw_cuda_span *span);

/* ---- streams and events ------------------------------------------------------------------------
 */

/** Does not wait for the default stream. */
enum twill_status tw_cuda_stream_create(int device, void **stream);
void tw_cuda_stream_destroy(int device, void *stream);
enum twill_status tw_cuda_stream_wait(int device, void *stream); /* host waits until it is empty */
/** The device's error so far, without waiting: OK, or what is wrong with it for good. */
enum twill_status tw_cuda_stream_query(int device, void *stream, bool *empty);
/** A graph is being captured from it. stream NULL: the default stream of `device`. An invalid
 * stream is an error; ERR_USAGE: the capture was made invalid, or the default stream cannot be used
 * because of another's capture. */
enum twill_status tw_cuda_stream_capturing(int device, void *stream, bool *capturing);

struct tw_cuda_stream {
    bool capturing;
    uint64_t id;      /* no other stream has or had it; 0 while capturing: cannot be asked then */
    uint64_t capture; /* of the capture that goes on; 0: none */
};
/** The same, and what else there is to know of a stream. */
enum twill_status tw_cuda_stream_look(int device, void *stream, struct tw_cuda_stream *found);

/** The node of a graph that is being captured which alone the stream's next one comes behind. NULL:
 * none or several, or `capture` is not what the stream is captured into. A kernel's node lives as
 * long as the capture. */
enum twill_status tw_cuda_capture_last(int device, void *stream, uint64_t capture, void **node);

/** Without timing. */
enum twill_status tw_cuda_event_create(int device, void **event);
void tw_cuda_event_destroy(int device, void *event);
enum twill_status tw_cuda_event_record(int device, void *event, void *stream);
/** What comes later on stream starts after what was recorded in event. */
enum twill_status tw_cuda_event_await(int device, void *event, void *stream);
/** True when all that was recorded has run. */
enum twill_status tw_cuda_event_done(int device, void *event, bool *done);

/** Device to device, by the copy engines, in stream order; either side may be a peer's. */
enum twill_status tw_cuda_copy(int device, void *dst, const void *src, size_t bytes, void *stream);
/** Host waits: any memory to any. */
enum twill_status tw_cuda_copy_now(int device, void *dst, const void *src, size_t bytes);

#endif
