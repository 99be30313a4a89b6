/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the process's control thread and what it serves: links, doors, a communicator's tree.
 * Never knows: plans, operations, how transports move bytes. */
#ifndef TW_COMM_CONTROL_H
#define TW_COMM_CONTROL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/sock.h"
#include "comm/comm.h"

/* ---- the loop (control_loop.c): one thread, asleep while nothing happens ------------------------
 */

/*
 * One mutex guards everything the loop serves: all callbacks run under it, and other threads take
 * it for the short moments in which they touch links. Nothing under it blocks. Order of locks: the
 * loop's, then a communicator's.
 */
struct tw_source {
    int fd;       /* borrowed; -1: none */
    uint64_t key; /* the loop's; 0: not watched */
    void *owner;  /* for on_event */
    void (*on_event)(struct tw_source *source, uint32_t events);
};

/* Something for the control thread to run outside the lock. */
struct tw_later {
    void (*run)(struct tw_later *later); /* clears `running` itself, under the lock, at its end */
    struct tw_later *next;
    bool queued, running;
};

struct tw_loop {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a later has run, a task has been joined */
    pthread_t thread;
    int epoll_fd, wake_fd; /* owned */
    struct tw_source wake;
    struct tw_source **slots; /* owned; sources borrowed */
    uint32_t *generations;    /* owned, of the slots: a stale event finds nobody */
    uint32_t nslots;
    struct tw_later *first, *last;
    uint32_t tasks; /* spawned and not joined yet */
    bool stop;
};

enum twill_status tw_loop_create(struct tw_loop **loop);
/** Waits for the tasks (cancel them first), then ends and joins the thread. NULL accepted. */
void tw_loop_destroy(struct tw_loop *loop);
static inline void tw_loop_lock(struct tw_loop *loop) { (void)pthread_mutex_lock(&loop->lock); }
static inline void tw_loop_unlock(struct tw_loop *loop) { (void)pthread_mutex_unlock(&loop->lock); }

/* The lock is held for these. */
enum twill_status tw_loop_watch(struct tw_loop *loop, struct tw_source *source, uint32_t events);
/** After this on_event is not called any more. Does not close. A source not watched is accepted. */
void tw_loop_unwatch(struct tw_loop *loop, struct tw_source *source);
void tw_loop_later(struct tw_loop *loop, struct tw_later *later);
/** Forget it, or wait (lock released) while it runs. Never from the control thread. */
void tw_loop_forget(struct tw_loop *loop, struct tw_later *later);
/** Run fn(arg) on a thread of its own, which the control thread joins. */
enum twill_status tw_loop_spawn(struct tw_loop *loop, void (*fn)(void *arg), void *arg);

/** A thread with all signals blocked. */
enum twill_status tw_thread_start(pthread_t *thread, const char *name, void *(*fn)(void *),
                                  void *arg);
/** A condition that waits by the monotonic clock. */
void tw_cond_init(pthread_cond_t *cond);
/** @return false once the deadline (absolute, TW_NEVER: none) has passed */
bool tw_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns);
/** A new timer that fires once, `after_ns` from now. */
enum twill_status tw_timer_open(int *fd, uint64_t after_ns);

/* ---- links (control_link.c): frames both ways over a proven socket ------------------------------
 */

enum tw_frame_type {
    TW_FRAME_WELCOME = 1, /* meeting point to rank: struct tw_welcome */
    TW_FRAME_DATA,        /* tree, during init */
    TW_FRAME_ERROR,       /* struct tw_frame_error */
    TW_FRAME_LEFT,        /* struct tw_frame_left: a rank destroyed its communicator */
    TW_FRAME_FIN,         /* up: all of this subtree are in finalize */
    TW_FRAME_FIN_DONE,    /* down: all ranks are */
    TW_FRAME_GONE,        /* parent's tree: struct tw_frame_gone */
    TW_FRAME_BYE,         /* the sender closes this link and all is well */
    TW_FRAME_TYPES
};

struct tw_frame_error {
    int32_t status, origin; /* origin: rank that found it; -1: the meeting point */
    char text[TW_ERROR_TEXT_BYTES];
};
struct tw_frame_left {
    int32_t rank;
};
struct tw_frame_gone { /* a rank of a split will not come to its new communicator's meeting point */
    uint64_t nonce[2]; /* of tw_split_entry */
    int32_t status, unused;
    char text[TW_ERROR_TEXT_BYTES];
};

#define TW_FRAME_SMALL_BYTES 1024u /* the most that a frame carries after init */

struct tw_frame_head {
    uint32_t bytes;
    uint16_t type;
    uint16_t mark;
};

struct tw_link {
    struct tw_source source; /* the socket, owned; fd -1: closed */
    struct tw_loop *loop;
    void *owner; /* for the callbacks */
    int index;   /* the owner's */
    uint32_t max_bytes;
    /* A whole frame. The payload is freed afterwards, unless `taken` is set: then free() is the
     * callback's. May close the link, may not free it. */
    void (*on_frame)(struct tw_link *link, enum tw_frame_type type, uint8_t *payload,
                     uint32_t bytes);
    bool taken;
    bool garbage; /* the reason for on_down */
    /* The peer has gone, or it sent what is no frame: the link is closed right after this. */
    void (*on_down)(struct tw_link *link, const char *why);
    struct tw_frame_head head; /* being read */
    uint32_t head_got, got;
    uint8_t *payload; /* owned */
    uint8_t *out;     /* owned: not sent yet */
    size_t out_first, out_end, out_room;
};

/* The lock is held for all of these. */
/** Serves fd from now on; takes it over, also on error. Callbacks, owner and max_bytes are set. */
enum twill_status tw_link_open(struct tw_link *link, struct tw_loop *loop, int fd);
static inline bool tw_link_up(const struct tw_link *link) { return link->source.fd >= 0; }
/** Never waits; what the socket does not take now is kept and sent later. Ignored when closed. */
void tw_link_send(struct tw_link *link, enum tw_frame_type type, const void *data, uint32_t bytes);
/** Read what has arrived, as on an event. */
void tw_link_read(struct tw_link *link);
/** Frames not sent yet are dropped. Closed accepted. */
void tw_link_close(struct tw_link *link);

/* ---- doors (control_door.c): listening sockets whose callers must prove a key -------------------
 */

#define TW_HELLO_BYTES_MAX 4096
#define TW_CONTEXT_BYTES 64

struct tw_door {
    struct tw_source source; /* listening socket, owned; -1: closed */
    struct tw_loop *loop;
    uint8_t key[TW_KEY_BYTES];
    char context[TW_CONTEXT_BYTES];
    uint64_t patience_ns; /* for one caller's proof and hello */
    int cancel_fd;        /* owned eventfd: readable once closed */
    uint32_t callers;     /* being heard, each on a thread of its own */
    /* A caller has proven the key and said hello, or left before that (bytes 0). Takes fd over.
     * Under the loop's lock. */
    void (*on_caller)(struct tw_door *door, int fd, const uint8_t *hello, uint32_t bytes);
    /* A caller's process has ended before it had proven the key; name: its socket's. NULL: nobody
     * wants to know. Under the lock. */
    void (*on_lost)(struct tw_door *door, pid_t pid, const char *name);
    /* Somebody cannot be heard, for want of a descriptor, a thread or memory: tw_fail_text says of
     * what. Under the lock; may close the door. NULL: whoever it was comes again, or does not */
    void (*on_missed)(struct tw_door *door, enum twill_status status);
    /* Closed and the last caller has gone: the door's memory may go. Under the lock. */
    void (*on_idle)(struct tw_door *door);
};

/* The lock is held for these. */
/** Callbacks, key, context and patience set. Takes listen_fd over, also on error. */
enum twill_status tw_door_open(struct tw_door *door, struct tw_loop *loop, int listen_fd);
/** No on_caller after this; on_idle comes at once or when the last caller has gone. */
void tw_door_close(struct tw_door *door);

/* ---- a communicator's tree (control.c) ----------------------------------------------------------
 */

enum { TW_TREE_PARENT, TW_TREE_CHILD, TW_TREE_LINKS = 3 };
static inline int tw_tree_parent(int rank) { return rank > 0 ? (rank - 1) / 2 : -1; }

struct tw_ctl_frame {
    struct tw_ctl_frame *next;
    uint8_t *payload; /* owned */
    uint32_t bytes;
};

struct tw_ctl_peer {
    struct tw_proc_id proc;
    int32_t pid;
    int32_t device; /* of its buffers, as its process numbers it; TWILL_DEVICE_HOST */
    bool lost;      /* a transport says that its process has ended */
    bool left;      /* it destroyed its communicator in good order */
};

struct tw_ctl {
    struct twill_comm *comm; /* borrowed: the owner */
    struct tw_loop *loop;    /* borrowed */
    struct tw_ctl *prev, *next;
    pthread_cond_t changed;
    struct tw_link meet;
    char meet_name[TW_SOCK_NAME_BYTES]; /* of the meeting point that it goes to; "": of none */
    struct tw_link tree[TW_TREE_LINKS];
    int tree_rank[TW_TREE_LINKS]; /* -1: none */
    bool tree_bye[TW_TREE_LINKS];
    struct tw_ctl_frame *first[TW_TREE_LINKS], *last[TW_TREE_LINKS]; /* DATA that has arrived */
    bool gathering;                                                  /* init: DATA is welcome */
    uint32_t max_bytes; /* of a frame in the tree during init */
    uint8_t *welcome;   /* owned; NULL: not yet */
    uint32_t welcome_bytes;
    bool meet_again; /* of a shrink: the host is lost and there was no welcome */
    int meet_rank;   /* whose process holds the meeting point; -1: not known */
    struct tw_door door;
    bool door_used, door_idle;
    struct tw_ctl_peer *peers; /* owned, [size]; NULL before the ranks know each other */
    struct tw_source grace;    /* timer, owned: what was lost is given up when it fires */
    bool tree_lost[TW_TREE_LINKS], meet_lost; /* during init */
    struct tw_later wake;                     /* calls tw_ops_wake */
    bool muted;                               /* no more of it */
    int fins; /* subtrees (own rank included) that are in finalize */
    bool fin_done;
};

/** Registers with the control thread; no link yet. */
enum twill_status tw_ctl_create(struct twill_comm *comm);
/** No tw_ops_wake after this. Never from the control thread. */
void tw_ctl_mute(struct twill_comm *comm);
/** Tells the neighbours that this rank leaves, closes all links. Never waits for a peer. */
void tw_ctl_destroy(struct twill_comm *comm);

/* The lock is held for these. */
enum twill_status tw_ctl_meet_open(struct tw_ctl *ctl, int fd); /* takes fd over */
enum twill_status tw_ctl_tree_open(struct tw_ctl *ctl, int index, int rank, int fd);
/** Returns when nobody is being heard any more; not from the control thread. */
void tw_ctl_door_close(struct tw_ctl *ctl);
/** The failure of the communicator goes out on every link but `except`; waiters here wake. */
void tw_ctl_flood(struct tw_ctl *ctl, const struct tw_link *except);
/** As tw_comm_fail; the news came over `from` (NULL: none). */
void tw_ctl_fail(struct tw_ctl *ctl, const struct tw_link *from, enum twill_status status,
                 const char *text);

/** rank's process is gone: the communicator fails. `why`: "its process has ended" */
void tw_ctl_gone(struct tw_ctl *ctl, int rank, const char *why);
/** One more subtree, or this rank itself, is in finalize. */
void tw_ctl_fin(struct tw_ctl *ctl);
/** Something is lost (the caller has marked what): in a moment it is a failure, unless news comes
 * before that which explains it better, or shows that all is well. */
void tw_ctl_grace(struct tw_ctl *ctl);

/** This rank has lost another during init: wait a moment for the meeting point's word, which names
 * the rank that everything began with, or for that of a split's other ranks. Takes the lock. */
void tw_ctl_news(struct twill_comm *comm);

/** All ranks are in finalize, or an error. Blocking to the deadline. Takes the lock itself. */
enum twill_status tw_ctl_finalize(struct twill_comm *comm, uint64_t deadline_ns);

/** tw_net_config.on_peer_lost; context is the loop. */
void tw_ctl_peer_lost(void *context, const struct tw_proc_id *peer);

/** Process of a rank; 0 while not known. */
int32_t tw_ctl_pid(const struct twill_comm *comm, int rank);

/* ---- shared inside the room (comm.c, record.c) --------------------------------------------------
 */

/** Only the status and its sentence, no telling. @return true: it is the first failure */
bool tw_comm_mark(struct twill_comm *comm, enum twill_status status, const char *text);
/** After mark and after the peers were told: waiters see the status. A process may end as soon as
 * they do. */
void tw_comm_publish(struct twill_comm *comm);
/** This rank's number: of a split's communicator it is known only after a while. */
int tw_comm_rank_now(struct twill_comm *comm);
/** As tw_comm_fail with a ready sentence that has been logged. */
void tw_comm_fail_text(struct twill_comm *comm, enum twill_status status, const char *text);

/** The board's writer; the chan exists. */
enum twill_status tw_record_create(struct twill_comm *comm);
void tw_record_destroy(struct twill_comm *comm);

/* What the boards say. No lock; the communicator has been ready. */
/** "its last call was all_reduce #7 count 100 float32 sum, finished". @return false: none yet */
bool tw_record_last(struct twill_comm *comm, int rank, char *text, size_t bytes);
enum tw_record_life {
    TW_LIFE_OPEN,
    TW_LIFE_FINALIZING,
    TW_LIFE_DESTROYED,
    TW_LIFE_FAILED,
    TW_LIFE_SHRINKING, /* waits for all living ranks to call shrink; OPEN again afterwards */
};
/** Show that this rank has entered finalize, destroys the communicator, or that it has failed. */
void tw_record_life(struct twill_comm *comm, enum tw_record_life life);
/** The same if it shows `from`. */
void tw_record_life_change(struct twill_comm *comm, enum tw_record_life from,
                           enum tw_record_life to);
/** rank's board says that it has failed; false while this rank is in init. */
bool tw_record_failed(const struct twill_comm *comm, int rank);
/** Fail with TWILL_ERR_TIMEOUT: names those that are not in finalize, and what they do. @return
 * false, and nothing is done: all are, or have failed, and `anyway` is not set */
bool tw_record_late(struct twill_comm *comm, const char *where, bool anyway);

#endif
