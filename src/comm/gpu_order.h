/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what lies between the devices of a communicator, as far as ranks go by it.
 * Never knows: calls, plans, how ranks tell each other. */
#ifndef TW_COMM_GPU_ORDER_H
#define TW_COMM_GPU_ORDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "device/cuda/wire.h"

struct twill_comm;
struct tw_topo_graph;

#define TW_GPU_DEVICES_LEAST 3 /* between fewer nothing is to be chosen */

/* Which device a rank is on. */
struct tw_gpu_spot {
    char pci[16]; /* "": not known */
    uint8_t uuid[16];
};

/* What one rank finds, and all go by. Rates are bytes a second. */
struct tw_gpu_between {
    uint8_t known; /* else nothing else is */
    /* some pairs are slower than others, or all at once slower than one alone */
    uint8_t uneven;
    uint8_t order[TW_GK_RANKS_MAX]; /* [size]: ranks around the ring; those of a device together */
    uint64_t ring_bytes_per_s;      /* from each device to the next, all at once */
    uint64_t all_bytes_per_s;       /* from each device to all others, all at once */
    uint64_t one_bytes_per_s;       /* from a device to all others, which send nothing */
};

/* What is known of this host, from the first communicator that asked to the end of the process's
 * state. */
struct tw_gpu_graph {
    pthread_mutex_t lock;
    bool looked;
    struct tw_topo_graph *graph; /* owned; NULL: there is none */
};
void tw_gpu_graph_init(struct tw_gpu_graph *graph);
void tw_gpu_graph_fini(struct tw_gpu_graph *graph);

/** Of this rank. */
enum twill_status tw_gpu_spot_read(const struct twill_comm *comm, struct tw_gpu_spot *spot);
/** Are there devices enough that something is to be found? spots: [size], everybody's */
bool tw_gpu_between_matters(int size, const struct tw_gpu_spot *spots);
/**
 * Looks, the first time in a process for some tens of milliseconds. What is not known is no error,
 * and the log says why.
 *
 * @param between  out; untouched on error
 * @return TWILL_OK; ERR_INVALID, ERR_SYSTEM: TWILL_TOPO_FILE is no topology; ERR_NOMEM
 */
enum twill_status tw_gpu_between_find(const struct twill_comm *comm,
                                      const struct tw_gpu_spot *spots,
                                      struct tw_gpu_between *between);

#endif
