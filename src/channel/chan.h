/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a chan is made of. Never knows: plans, ranks' meaning beyond an index. */
#ifndef TW_CHANNEL_CHAN_H
#define TW_CHANNEL_CHAN_H

#include "channel/channel.h"
#include "transport/fifo.h"

/* Areas of a chan that peers reach, one behind the other in one block of staging. */
enum chan_area { AREA_BOARD, AREA_SCRATCH, AREA_SIGNALS, AREA_COUNT };

/* The nets by index. */
enum chan_net { NET_SELF, NET_SHM, NET_COUNT };

struct chan_peer {
    struct tw_fifo *send;   /* owned; NULL before import */
    struct tw_fifo *recv;   /* owned */
    void *area[AREA_COUNT]; /* the peer's, mapped; NULL before import and where there is none */
    struct tw_ep *ep;       /* referenced; NULL for the rank itself */
    const struct tw_transport *transport;
    struct tw_rmem *rmem[AREA_COUNT]; /* owned */
    struct tw_blob fifo_blob;         /* of recv */
    enum chan_net net;
};

struct tw_chan {
    struct chan_peer *peers; /* owned, [size] */
    int rank, size;
    size_t fifo_bytes;
    void *area[AREA_COUNT]; /* own; NULL where there is none */
    size_t area_bytes[AREA_COUNT];
    struct tw_hold *hold; /* referenced: the block of the areas */
    struct tw_net *nets[NET_COUNT];
    const struct tw_transport *transports[NET_COUNT];
    bool used[NET_COUNT];                    /* some peer is reached by it */
    struct tw_mr *mr[NET_COUNT][AREA_COUNT]; /* owned */
};

#endif
