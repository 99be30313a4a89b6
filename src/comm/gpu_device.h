/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what all communicators of a process share on a CUDA device: memory for staging, and room
 * for blocks that wait for each other.
 * Never knows: calls, peers. */
#ifndef TW_COMM_GPU_DEVICE_H
#define TW_COMM_GPU_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda.h"
#include "base/status.h"
#include "comm/gpu_order.h"

struct tw_gpu;

/* ---- devices (gpu_device.c) --------------------------------------------------------------------
 */

struct tw_gpu_device {
    struct tw_gpu_device *next;
    int number;
    pthread_mutex_t lock; /* guards what follows, but for what is atomic */
    uint64_t staging_used;
    /* blocks (gpu_blocks.c) */
    uint32_t budget;       /* blocks that are resident together, whatever the kernel */
    int starting;          /* atomic: kernels that are being started without the lock */
    bool crowded;          /* atomic: blocks are counted, since all of them need not fit */
    uint64_t starts;       /* kernels that were counted */
    uint32_t seats;        /* there are */
    struct tw_gpu **ranks; /* owned, [seats]: those that start kernels; NULL: nobody */
    uint32_t (*ahead)[2];  /* owned, [seats][seats]: see gpu_blocks.c */
};

/* A process's, each from its first use to the end of the process's state. */
struct tw_gpu_devices {
    pthread_mutex_t lock;
    struct tw_gpu_device *first; /* owned */
    struct tw_gpu_graph graph;   /* has a lock of its own */
};

void tw_gpu_devices_init(struct tw_gpu_devices *devices);
void tw_gpu_devices_fini(struct tw_gpu_devices *devices);
/** NULL: no memory (tw_fail called). */
struct tw_gpu_device *tw_gpu_device_get(struct tw_gpu_devices *devices, int number,
                                        int multiprocessors);

/* ---- blocks in flight (gpu_blocks.c) -----------------------------------------------------------
 */

/* Of a rank, under the device's lock. [0]: outside captures, [1]: in the newest one. */
struct tw_gpu_seat {
    uint32_t at;      /* among the device's */
    bool taken;       /* else it starts no kernels */
    uint64_t last[2]; /* number of its last kernel, of those that were counted; 0: none */
    uint64_t stream;  /* id of the stream that last[0] is on; 0: not known */
    uint64_t capture; /* that last[1] is in */
};

/* A kernel that is about to be started. */
struct tw_gpu_start {
    struct tw_gpu *const *ranks; /* [count]: whose it is, all of one team */
    uint32_t count;
    uint32_t blocks; /* of each */
    void *stream;
    const struct tw_cuda_stream *found; /* what that is */
    bool at_once; /* ranks of the team that are not among them wait for it: it waits for nobody */
    bool locked;  /* between begin and end */
};

/** The rank is to start kernels, of gpu->most_blocks blocks at most. NOMEM */
enum twill_status tw_gpu_blocks_join(struct tw_gpu *gpu);
/** Its kernels have ended. If it never joined: nothing. */
void tw_gpu_blocks_leave(struct tw_gpu *gpu);
/**
 * Before a kernel is started: where it does not fit next to those that may run, its stream waits
 * for the oldest of them. Nothing is done, and CUDA not asked, while all kernels that communicators
 * could start fit. tw_gpu_blocks_end follows in any case.
 */
enum twill_status tw_gpu_blocks_begin(struct tw_gpu_start *start);
/** status: of begin and of what was done since: the kernel was started, and gpu->done of each rank
 * recorded, but in captures. @return the first error */
enum twill_status tw_gpu_blocks_end(struct tw_gpu_start *start, enum twill_status status);

#endif
