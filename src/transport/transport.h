/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: bytes and one peer process at a time: connections, slots, remote memory.
 * Never knows: ranks, datatypes, plans, collectives. */
#ifndef TW_TRANSPORT_TRANSPORT_H
#define TW_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sock.h"
#include "twill.h"

/*
 * A net is one transport, open once in a process (reference-counted by its user). An endpoint (ep)
 * is the connection to one peer process: an identity and incarnation, shared by all communicators
 * that have ranks in both. Over an ep run FIFOs (one direction, bounded slots) and operations on
 * remote memory.
 *
 * Threads: nets, listeners and eps may be used from any thread. A FIFO end has one user at a time.
 * All calls but open, connect, import and close are non-blocking, allocate nothing and take no
 * lock.
 */
struct tw_net;
struct tw_listener;
struct tw_ep;
struct tw_fifo;
struct tw_mr;
struct tw_rmem;

#define TW_NET_BLOB_BYTES 128
/* What one process hands another out of band, opaque. */
struct tw_blob {
    uint32_t bytes;
    uint8_t data[TW_NET_BLOB_BYTES];
};

struct tw_proc_id {
    uint8_t host[16];  /* tw_host.id */
    uint8_t nonce[16]; /* incarnation: fresh for each process */
};

struct tw_net_config {
    struct tw_proc_id self;
    uint64_t staging_bytes; /* bound on all staging memory of this net */
    /* NULL: staging of its own. Else the staging of that net, which closes after this one: several
     * nets of a process then keep to one bound; staging_bytes is not looked at. Borrowed. */
    struct tw_net *staging_of;
    bool allow_cma;
    /* called from the net's service thread when an ep's peer process is gone; must not block. NULL:
     * none */
    void (*on_peer_lost)(void *context, const struct tw_proc_id *peer);
    void *context;
};

enum tw_net_cap {
    TW_NET_ADDRESSABLE = 1, /* peers' exported memory has an address here */
    TW_NET_SAME_PROCESS = 2,
};

struct tw_msg {
    const void *data; /* in the slot, borrowed until release */
    uint32_t bytes;
    uint64_t header; /* the sender's 8 opaque bytes */
};

struct tw_net_ops {
    const char *name;
    enum twill_status (*open)(const struct tw_net_config *config, struct tw_net **net);
    void (*close)(struct tw_net *net); /* all eps, fifos and memory of it must be gone */
    /* Accept peers that prove key; the address goes to them out of band. */
    enum twill_status (*listen)(struct tw_net *net, const uint8_t key[TW_KEY_BYTES],
                                struct tw_listener **listener, struct tw_blob *address);
    void (*unlisten)(struct tw_listener *listener);
    /*
     * The ep to a peer process, made at first use, referenced by each call. Both sides call it; the
     * transport decides who connects. An ep that exists is shared whatever key it was made under.
     * TWILL_ERR_PEER, TIMEOUT, AUTH, ABORTED (cancelled), SYSTEM.
     */
    enum twill_status (*ep_get)(struct tw_net *net, const struct tw_proc_id *peer,
                                const struct tw_blob *address, const uint8_t key[TW_KEY_BYTES],
                                const struct tw_sock_wait *wait, struct tw_ep **ep);
    void (*ep_put)(struct tw_ep *ep);
    /* TWILL_OK, or TWILL_ERR_PEER once the peer process is gone. One atomic load. */
    enum twill_status (*ep_status)(const struct tw_ep *ep);
    uint32_t (*ep_caps)(const struct tw_ep *ep);
};

/*
 * FIFOs. The receiver owns the memory (from the net's staging) and exports it; the sender imports
 * it. A FIFO is a bundle of `subs` independent sub-FIFOs of `depth` slots that share its memory;
 * the two ends set the same layout before each use by a plan. Changing the layout takes effect at
 * the sender once the receiver has released everything sent under the old one.
 */
struct tw_fifo_ops {
    enum twill_status (*create)(
        struct tw_ep *ep, size_t bytes, struct tw_fifo **fifo,
        struct tw_blob *blob); /* receive end; ERR_NOMEM: staging is short */
    enum twill_status (*attach)(struct tw_ep *ep, const struct tw_blob *blob,
                                struct tw_fifo **fifo);
    /* The memory of a receive end goes back to staging only when the sender can no longer write:
     * its end was destroyed (seen through the shared header), its process is gone, or the net
     * closes. Never waits. */
    void (*destroy)(struct tw_fifo *fifo);
    /* ERR_AGAIN (send end): not drained yet. ERR_INVALID: slots would be smaller than
     * TW_SLOT_MIN_BYTES. */
    enum twill_status (*layout)(struct tw_fifo *fifo, uint32_t subs, uint32_t depth);
    enum twill_status (*reserve)(struct tw_fifo *fifo, uint32_t sub, void **data); /* AGAIN: full */
    /* After this the peer sees bytes of data and header. bytes <= slot size. */
    void (*commit)(struct tw_fifo *fifo, uint32_t sub, uint32_t bytes, uint64_t header);
    /* AGAIN: empty. ERR_PEER: a length above the slot size (the peer is hostile or broken). */
    enum twill_status (*peek)(struct tw_fifo *fifo, uint32_t sub, struct tw_msg *msg);
    void (*release)(struct tw_fifo *fifo, uint32_t sub);
};

#define TW_SLOT_MIN_BYTES 64
/** Payload bytes of a slot of a FIFO of `bytes` in a layout; 0 when it does not fit. Pure: both
 * ends and every rank compute the same. */
size_t tw_fifo_slot_bytes(size_t bytes, uint32_t subs, uint32_t depth);
/** Staging that the receive end of a FIFO of `bytes` takes: the slots and their counters. */
size_t tw_fifo_memory_bytes(size_t bytes);

/*
 * Remote memory. Staging and memory from tw_net's alloc can be mapped into peers; other host memory
 * is reached by CMA where that works and is allowed, else register says TWILL_ERR_UNSUPPORTED (copy
 * it).
 */
enum tw_mem_kind { TW_MEM_HOST, TW_MEM_CUDA };

struct tw_req {
    enum twill_status status; /* INPROGRESS until done */
};

struct tw_rma_ops {
    enum twill_status (*stage)(struct tw_net *net, size_t bytes,
                               void **ptr); /* from staging, zeroed */
    void (*unstage)(struct tw_net *net, void *ptr);
    enum twill_status (*reg)(struct tw_net *net, void *ptr, size_t bytes, enum tw_mem_kind kind,
                             struct tw_mr **mr);
    void (*unreg)(struct tw_mr *mr);
    enum twill_status (*mr_export)(const struct tw_mr *mr, struct tw_blob *blob);
    enum twill_status (*mr_import)(struct tw_ep *ep, const struct tw_blob *blob,
                                   struct tw_rmem **rmem);
    void (*mr_release)(struct tw_rmem *rmem);
    /* Address of offset 0, or NULL where the transport cannot map it (put and get still work). */
    void *(*map)(const struct tw_rmem *rmem, size_t *bytes);
    /* Out of the exported range: ERR_INVALID. Puts on one ep land in order; a signal lands after
     * all puts before it on the ep. req is the caller's, untouched on error. */
    enum twill_status (*put)(struct tw_ep *ep, const void *src, struct tw_rmem *rmem, size_t offset,
                             size_t bytes, struct tw_req *req);
    enum twill_status (*get)(struct tw_ep *ep, void *dst, struct tw_rmem *rmem, size_t offset,
                             size_t bytes, struct tw_req *req);
    /* Raise the 8-byte word at offset (8-aligned) to value: store-release; the owner reads with
     * load-acquire. */
    enum twill_status (*signal)(struct tw_ep *ep, struct tw_rmem *rmem, size_t offset,
                                uint64_t value);
    enum twill_status (*flush)(struct tw_ep *ep); /* OK: everything issued has landed; INPROGRESS */
};

/*
 * Descriptors. Who is connected and knows an offer's token takes a duplicate of the descriptor, as
 * often as it likes, until the offer is withdrawn. Tokens are random and the offerer's to tell.
 */
struct tw_offer;
/** fd: borrowed until withdrawn */
enum twill_status tw_net_offer(struct tw_net *net, int fd, const uint64_t token[2],
                               struct tw_offer **offer);
/** NULL: nothing. */
void tw_net_withdraw(struct tw_offer *offer);
/** What the ep's peer offers. fd: out, the caller's. Blocks, 10 s at most. ERR_PEER: it offers no
 * such thing (any more), or is gone. */
enum twill_status tw_ep_take(struct tw_ep *ep, const uint64_t token[2], int *fd);

struct tw_transport {
    const struct tw_net_ops *net;
    const struct tw_fifo_ops *fifo;
    const struct tw_rma_ops *rma;
};

/* Registry: "self" (peers in this process) and "shm" (peers on this host). */
const struct tw_transport *tw_transport_find(const char *name);
const struct tw_transport *tw_transport_at(size_t i);

/* Staging in use and its bound, for reports. */
void tw_net_staging(const struct tw_net *net, uint64_t *used, uint64_t *limit);

#endif
