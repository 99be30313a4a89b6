/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-perf asks of NCCL's own library, by its documented interface.
 * Never knows: what for. */
#ifndef TW_PERF_NCCL_API_H
#define TW_PERF_NCCL_API_H

#include <stdbool.h>
#include <stddef.h>

#include "team.h"

/* Handles are opaque pointers, results an int (0: success), types and reductions an int with the
 * values that twill's have too; the id is passed by value. */
struct nccl_id {
    char bytes[128];
};

struct perf_nccl_api {
    int (*get_version)(int *version);
    const char *(*error_string)(int result);
    int (*get_id)(struct nccl_id *id);
    int (*init_rank)(void **comm, int size, struct nccl_id id, int rank);
    int (*init_all)(void **comms, int count, const int *devices);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    int (*async_error)(void *comm, int *result);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *send, void *recv, size_t count, int type, int op, void *comm,
                      void *stream);
    int (*reduce)(const void *send, void *recv, size_t count, int type, int op, int root,
                  void *comm, void *stream);
    int (*broadcast)(const void *send, void *recv, size_t count, int type, int root, void *comm,
                     void *stream);
    int (*reduce_scatter)(const void *send, void *recv, size_t count, int type, int op, void *comm,
                          void *stream);
    int (*all_gather)(const void *send, void *recv, size_t count, int type, void *comm,
                      void *stream);
    int (*send)(const void *send, size_t count, int type, int peer, void *comm, void *stream);
    int (*recv)(void *recv, size_t count, int type, int peer, void *comm, void *stream);
    /* newer; NULL where the library has none */
    const char *(*last_error)(void *comm);
    int (*all_to_all)(const void *send, void *recv, size_t count, int type, void *comm,
                      void *stream);
    int (*mem_alloc)(void **ptr, size_t bytes);
    int (*mem_free)(void *ptr);
    int (*reg)(void *comm, void *ptr, size_t bytes, void **handle);
    int (*dereg)(void *comm, void *handle);
    int (*window)(void *comm, void *ptr, size_t bytes, void **window, int flags);
    int (*window_end)(void *comm, void *window);
};
extern struct perf_nccl_api perf_nccl_api; /* filled before threads start, then read only */

bool perf_nccl_serves(enum perf_op op, twill_redop_t redop);

#endif
