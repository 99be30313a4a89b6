/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what nets and endpoints of host memory have in common: staging, references, retired
 * memory. Never knows: ranks, plans; how a peer was reached. */
#ifndef TW_TRANSPORT_NET_H
#define TW_TRANSPORT_NET_H

#include <pthread.h>

#include "base/mem.h"
#include "transport/transport.h"

struct tw_shm_net; /* shm.h */
struct tw_shm_ep;

struct tw_net {
    const char *name;
    struct tw_net_config config;
    struct tw_shm staging; /* fd -1: anonymous memory */
    struct tw_pool *pool;
    pthread_mutex_t lock;    /* guards retired, mrs, offers and, in shm, all of the table */
    struct tw_fifo *retired; /* receive ends whose senders may still write */
    struct tw_mr *mrs;       /* registered */
    struct tw_offer *offers; /* descriptors that peers may take */
    uint64_t next_id;        /* of mrs */
    struct tw_ep *self;      /* self: the one ep. shm: NULL */
    struct tw_shm_net *shm;  /* owned; self: NULL */
};

/* self: only net. shm: all. */
struct tw_listener {
    struct tw_net *net;
    uint64_t id;
    int fd; /* owned */
    bool armed;
    uint8_t key[TW_KEY_BYTES];
    struct tw_listener *next;
};

struct tw_ep {
    struct tw_net *net;
    struct tw_proc_id peer;
    uint32_t refs; /* atomic */
    int lost;      /* atomic */
    uint32_t caps;
    unsigned char *base; /* the peer's staging as this process sees it */
    size_t bytes;
    bool cma;              /* both processes can and may copy with process_vm_readv */
    int pid;               /* of the peer; 0: not known here */
    struct tw_shm_ep *shm; /* owned; self: NULL */
};

/** Common part of open: anonymous staging (shared false) or a sealed memfd. */
enum twill_status tw_net_create(const char *name, const struct tw_net_config *config, bool shared,
                                struct tw_net **net);
void tw_net_destroy(struct tw_net *net);

/** Staging memory, after taking back what retired FIFOs no longer need; NULL when short. */
void *tw_net_get(struct tw_net *net, size_t bytes);
void tw_net_put(struct tw_net *net, void *ptr);

static inline bool tw_ep_lost(const struct tw_ep *ep)
{
    return __atomic_load_n(&ep->lost, __ATOMIC_ACQUIRE) != 0;
}
static inline void tw_ep_ref(struct tw_ep *ep)
{
    __atomic_fetch_add(&ep->refs, 1, __ATOMIC_RELAXED);
}
enum twill_status tw_ep_status(const struct tw_ep *ep);
uint32_t tw_ep_caps(const struct tw_ep *ep);
/** Drop a reference, whichever transport the ep is of. */
void tw_ep_unref(struct tw_ep *ep);

/** First 8 digits of an incarnation, for messages. */
#define TW_PROC_TEXT_BYTES 20
const char *tw_proc_text(const struct tw_proc_id *id, char text[TW_PROC_TEXT_BYTES]);

extern const struct tw_net_ops tw_self_net_ops;
extern const struct tw_net_ops tw_shm_net_ops;
extern const struct tw_fifo_ops tw_slot_fifo_ops;
extern const struct tw_rma_ops tw_host_rma_ops;

#endif
