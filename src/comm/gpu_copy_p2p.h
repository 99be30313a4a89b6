/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: sends of a group whose receives are in the group too, for copy engines.
 * Never knows: other sends and receives. */
#ifndef TW_COMM_GPU_COPY_P2P_H
#define TW_COMM_GPU_COPY_P2P_H

#include "comm/gpu_copy.h"
#include "comm/gpu_p2p.h"

struct tw_gpu_send {
    const struct tw_call *send, *recv; /* borrowed */
    bool joined; /* their streams are in one capture, or in none: they can wait for each other */
};
struct tw_gpu_sends {
    struct tw_gpu_send *all; /* owned, [count] */
    size_t count;
    struct tw_call *ready; /* owned, [2 * count]: messages of nothing that come before the copies */
    struct tw_call *rest;  /* owned: the group's calls, with such messages for those copied */
};

/** The messages of a group that are copied: large ones, of whose list, from the rank to its peer,
 * both sides are all in the group. sends: count 0: none. tw_gpu_sends_free in any case. NOMEM */
enum twill_status tw_gpu_sends_find(const struct tw_call *calls, size_t count,
                                    struct tw_gpu_sends *sends);
void tw_gpu_sends_free(struct tw_gpu_sends *sends);
/** batches: of `ready`. What is of `rest` is started behind it. */
enum twill_status tw_gpu_sends_start(const struct tw_gpu_sends *sends,
                                     struct tw_gpu_batch *batches);
/** Some have been started, and others cannot be: their communicators fail. */
void tw_gpu_sends_fail(const struct tw_gpu_sends *sends, enum twill_status status);

#endif
