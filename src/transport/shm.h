/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how processes of one host find each other, share segments and notice each other's death.
 * Never knows: what is written into the segments. */
#ifndef TW_TRANSPORT_SHM_H
#define TW_TRANSPORT_SHM_H

#include "transport/net.h"

#define TW_SHM_PATTERN_BYTES 32
#define TW_SHM_GUESTS_MAX 16 /* connections that have not proven the key yet, at once */

/* The shm part of a net. Everything is guarded by net->lock unless said otherwise. */
struct tw_shm_net {
    pthread_t thread; /* of service */
    int epoll_fd;     /* owned */
    int wake_fd;      /* owned eventfd: the service thread looks around */
    bool closing;
    uint64_t next_id;              /* of what epoll watches; 0 is wake_fd */
    struct tw_listener *listeners; /* owned by their openers, but for the last: */
    struct tw_listener *service;   /* owned; serves peers' requests */
    char service_name[TW_SOCK_NAME_BYTES];
    struct tw_ep *live;            /* owned */
    struct tw_ep *dead;            /* owned; lost and still referenced */
    struct tw_shm_call *calls;     /* connections being made by ep_get */
    struct tw_shm_waiter *waiters; /* threads that wait for a change of the table */
    struct tw_shm_guest *guests;   /* accepted, not proven */
    unsigned nguests;
    uint64_t refusals;      /* connections that this process had no means to serve */
    char refused_text[160]; /* why, of the newest one */
    enum twill_status refused_status;
    uint8_t pattern[TW_SHM_PATTERN_BYTES]; /* constant: peers read it to try CMA */
};

struct tw_shm_ep {
    struct tw_shm map; /* the peer's staging; its fd is closed */
    uint64_t id;
    int fd;    /* owned: readable means the peer says goodbye or is gone */
    int pidfd; /* owned; -1: none */
    bool goodbye;
    char service_name[TW_SOCK_NAME_BYTES];
    uint8_t service_key[TW_KEY_BYTES];
    struct tw_ep *next;
};

/* One connection attempt of ep_get, on its stack. */
struct tw_shm_call {
    struct tw_proc_id peer;
    struct tw_shm_call *next;
};
struct tw_shm_waiter {
    int fd; /* eventfd */
    struct tw_shm_waiter *next;
};

/* ---- table (shm_table.c); `locked` ones need net->lock held --------------------------------- */

enum twill_status tw_shm_ep_get(struct tw_net *net, const struct tw_proc_id *peer,
                                const struct tw_blob *address, const uint8_t key[TW_KEY_BYTES],
                                const struct tw_sock_wait *wait, struct tw_ep **ep);
void tw_shm_ep_put(struct tw_ep *ep);
/** A connected ep enters the table; it is the net's from now on. With a reference for the caller
 * when `referenced`. Destroys ep on error (the net closes, or there is one already). */
enum twill_status tw_shm_ep_install(struct tw_ep *ep, bool referenced);
/** The live ep with this id, or NULL. */
struct tw_ep *tw_shm_ep_by_id_locked(struct tw_net *net, uint64_t id);
/** The peer is gone. @return true when somebody uses the ep: worth telling */
bool tw_shm_ep_lose_locked(struct tw_ep *ep, bool goodbye);
/** What the peer's socket says, without waiting: true when it is gone (*goodbye: by closing). */
bool tw_shm_ep_hangup(const struct tw_ep *ep, bool *goodbye);
void tw_shm_ep_free(struct tw_ep *ep);
void tw_shm_notify_locked(struct tw_net *net);
/** This process lacked the means (descriptors, memory, threads) to serve a connection, as
 * tw_fail_text says: whoever waits to be connected gives up with status. */
void tw_shm_refused_locked(struct tw_net *net, enum twill_status status);

/* ---- what is said over a connection (shm_hello.c) ------------------------------------------- */

/** One attempt, no waiting. @return OK, ERR_AGAIN (the queue is full), ERR_PEER (nobody listens) */
enum twill_status tw_shm_dial(int *fd, const char *name);
/** Connecting side, after dial: proves, exchanges segments. Closes fd on error. */
enum twill_status tw_shm_greet(struct tw_net *net, int fd, const struct tw_proc_id *peer,
                               const uint8_t key[TW_KEY_BYTES], const struct tw_sock_wait *wait,
                               struct tw_ep **ep);
/** Accepting side: proves, then does what is asked. Takes fd over. */
enum twill_status tw_shm_receive(struct tw_net *net, int fd, const uint8_t key[TW_KEY_BYTES],
                                 const struct tw_sock_wait *wait);
/** Ask the peer for a descriptor: of memory that it registered, or offered. Blocks, 10 s at most.
 */
enum twill_status tw_shm_fetch(struct tw_ep *ep, const uint64_t token[2], int *fd);

/* ---- service thread (shm_service.c) --------------------------------------------------------- */

enum twill_status tw_shm_service_start(struct tw_net *net);
/** Ends it and all guests. */
void tw_shm_service_stop(struct tw_net *net);
/** Give ep an id and look out for its peer's end. */
bool tw_shm_watch_locked(struct tw_ep *ep);
/** Before fd is closed: closing alone does not end the watch when a forked child has fd as well. */
void tw_shm_unwatch_locked(struct tw_net *net, int fd);

#endif
