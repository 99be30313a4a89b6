/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the steps by which a prepared communicator gets connected.
 * Never knows: who waits for that. */
#ifndef TW_COMM_BOOTSTRAP_H
#define TW_COMM_BOOTSTRAP_H

#include "comm/control.h"
#include "comm/meeting.h"

/* One rank's init, while it runs. */
struct tw_boot {
    struct twill_comm *comm;
    struct tw_ctl *ctl;
    struct tw_sock_wait wait;
    struct tw_welcome welcome;
    struct tw_listener *listener; /* of the shm net; NULL: none */
    struct tw_blob address;
    int tree_fd; /* listening, owned until the door has it */
    char tree_name[TW_SOCK_NAME_BYTES];
};

/** All of init in the calling thread. @return TWILL_OK: everything is there and all ranks are ready
 * too; else the sentence is tw_fail_text()'s or the communicator's failure */
enum twill_status tw_boot_run(struct twill_comm *comm);

/** The links of the tree, once the meeting point has told where the parent listens
 * (bootstrap_links.c). */
enum twill_status tw_boot_links(struct tw_boot *boot);
/** Channels to all ranks, once the tree stands (bootstrap_chan.c). */
enum twill_status tw_boot_chan(struct tw_boot *boot);
/** Of ranks on devices: their peers' memory there (bootstrap_gpu.c). */
enum twill_status tw_boot_gpu(struct tw_boot *boot);
/** The most bytes that ranks tell each other for that at once. */
size_t tw_boot_gpu_bytes(void);
/** The most bytes that a frame in the tree has. */
size_t tw_boot_frame_bytes(int size);

/* ---- collectives over the tree's control links (bootstrap_tree.c)
 * -------------------------------- During init only, in the same order on all ranks. They end when
 * the communicator fails. */

struct tw_tree_call {
    struct twill_comm *comm;
    uint64_t deadline_ns;
    const char *step; /* for messages: "exchanging addresses" */
};

/** Every rank gets every rank's entry. @param entries  [size] of `bytes` each, the own one is
 * filled; bytes 0: a barrier */
enum twill_status tw_tree_gather(const struct tw_tree_call *call, void *entries, size_t bytes);
/** Entry p goes to rank p; replaced by the one that p has for this rank. */
enum twill_status tw_tree_exchange(const struct tw_tree_call *call, void *entries, size_t bytes);
/** The most bytes that a frame of these has. */
size_t tw_tree_frame_bytes(int size, size_t gather_bytes, size_t exchange_bytes);

#endif
