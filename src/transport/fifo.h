/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: FIFO ends over staging memory and when that memory may be used again.
 * Never knows: how the two processes came to share it. */
#ifndef TW_TRANSPORT_FIFO_H
#define TW_TRANSPORT_FIFO_H

#include "transport/slots.h"

/* A FIFO end of the transports over host memory; src/channel calls tw_slots_* on it directly. */
struct tw_fifo {
    struct tw_slots slots;
    struct tw_ep *ep; /* referenced */
    void *memory;     /* of line 0 */
    uint64_t salt;
    bool sender;
    struct tw_hold *hold; /* retired: released with this end; NULL: none */
    struct tw_fifo *next; /* retired */
};

/*
 * Staging that several peers may write. It goes back to the net when every receive end that was
 * destroyed with it has been left by its sender: who writes to a chan's scratch also has a FIFO to
 * it and destroys both.
 */
struct tw_hold {
    struct tw_net *net;
    void *ptr;     /* NULL: none */
    uint32_t refs; /* atomic */
};
struct tw_hold *tw_hold_create(struct tw_net *net, void *ptr);
void tw_hold_put(struct tw_hold *hold);

/** As tw_fifo_ops.destroy. hold NULL: none; else a reference is taken until the memory is free. */
void tw_fifo_destroy_with(struct tw_fifo *fifo, struct tw_hold *hold);

struct tw_net;
/** Give back the memory of retired ends that nobody writes any more. all: of the others too. */
void tw_fifo_sweep(struct tw_net *net, bool all);

#endif
