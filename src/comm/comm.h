/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a communicator: its ranks, state, control links, records and operations.
 * Never knows: argument checking of the C API, how transports move bytes. */
#ifndef TW_COMM_COMM_H
#define TW_COMM_COMM_H

#include <pthread.h>
#include <stdbool.h>

#include "base/host.h"
#include "base/param.h"
#include "base/sock.h"
#include "base/status.h"
#include "base/time.h"
#include "channel/channel.h"
#include "comm/facts.h"
#include "comm/gpu_device.h"
#include "device/exec.h"
#include "plan/plan.h"
#include "twill.h"

/* ---- process state (proc.c): one reference-counted struct ------------------------------------ */

struct tw_proc {
    struct tw_proc_id id;
    struct tw_host host;
    const struct tw_params *params;
    struct tw_nets nets;
    enum tw_isa isa;
    int cpu_quota;                /* CPUs that the cgroup allows; 0: no limit */
    uint64_t pause_ps;            /* of tw_pause_ps */
    uint64_t redops;              /* atomic: created so far (src/api/op.c) */
    struct tw_progress *progress; /* owned; runs what streams were given (progress.c) */
    struct tw_chooses *chooses;   /* owned; what was chosen by price (choose.c) */
    struct tw_gpu_devices gpus;   /* what communicators share on devices */
};
/** Opened at the first reference: parameters frozen, nets opened, control thread started. ERR_USAGE
 * after fork. */
enum twill_status tw_proc_get(struct tw_proc **proc);
void tw_proc_put(void);
/** In a child of a fork(2) that copied the state: nothing that the parent made may be touched. One
 * load; does not notice a bare clone(2). */
bool tw_proc_forked(void);

/* ---- the communicator (comm.c) --------------------------------------------------------------- */

enum tw_comm_state {
    TW_COMM_INIT, /* connecting; only async_error, last_error, abort are legal */
    TW_COMM_READY,
    TW_COMM_FINALIZING,
    TW_COMM_FINALIZED, /* only destroy, abort and queries are legal */
};

#define TW_COMM_MAGIC 0x7477696c6c636f6dull
#define TW_COMM_NAME_BYTES 64

struct tw_ctl;    /* control links (control.c) */
struct tw_ops;    /* operations (ops.c) */
struct tw_gpu;    /* a rank on a device (gpu.h) */
struct tw_record; /* what this rank writes on its board (record.c) */
struct tw_split;  /* how it came out of another (split.c) */

/* What a communicator is made from; the strings and the id are copied. */
struct tw_comm_args {
    int size, rank;
    twill_unique_id id;
    int blocking, device, deterministic, channels, max_sms; /* resolved: no TWILL_UNSET */
    char name[TW_COMM_NAME_BYTES];
    bool own_id;   /* the meeting point is in this process, made for these ranks */
    bool keyless;  /* init_env without a key: the first contact is unauthenticated */
    bool from_env; /* the meeting point is named beforehand: it may open later */
    bool shrinks;  /* of those whose living ranks come together */
    bool derived;  /* it comes out of another: rank, size and id are known later */
};

struct twill_comm {
    uint64_t magic; /* TW_COMM_MAGIC while alive */
    uint64_t key;   /* random: no other communicator has or had it, as it may have the address */
    struct tw_comm_args args;
    struct tw_proc *proc; /* referenced */
    int rank, size;
    int ranks_here;                    /* ranks of this communicator in this process */
    int ranks_host;                    /* ranks of this communicator on this host */
    struct tw_patience patience;       /* of waits for other ranks */
    struct tw_facts facts;             /* of the hosts; from connect on */
    int state;                         /* atomic: enum tw_comm_state */
    int status;                        /* atomic: OK, or the first failure (negative): sticky */
    enum twill_status failing;         /* as status, but before the peers are told */
    char failure[TW_ERROR_TEXT_BYTES]; /* its sentence; written once, with failing */
    pthread_mutex_t lock;              /* guards failing, failure, init thread */
    int cancel_fd;                     /* eventfd: readable once failed or aborted; owned */
    bool aborted;                      /* atomic */
    struct tw_chan *chan;              /* owned, from connect to destroy */
    struct tw_ctl *ctl;                /* owned */
    struct tw_ops *ops;                /* owned */
    struct tw_gpu *gpu;                /* owned; NULL: the buffers are host memory */
    struct tw_record *record;          /* owned; from connect to destroy */
    /* identifies the communicator among all: part of every record's hash; 0 until the ranks have
     * met; written under the loop's lock */
    uint64_t id_hash;
    uint8_t secret[TW_KEY_BYTES]; /* that its ranks share: keys of new communicators come from it */
    struct tw_split *origin;      /* owned, until connected: what it comes from; NULL: an id */
    uint64_t parent;              /* key of that, if a failure there is one here; 0: none */
    /* of a split, under the loop's lock, until the ranks have met (split_gone.c) */
    uint64_t nonce[2];    /* this rank's in the split's table; 0: no split */
    uint64_t (*mates)[2]; /* owned, [nmates]: those of all its ranks; NULL: not known yet */
    int nmates;
    bool heard;              /* its failure came from another rank, which tells the others too */
    struct tw_split *splits; /* owned, under lock: with an all_gather queued here */
    pthread_t init_thread;
    bool init_thread_on;
    uintptr_t user;          /* atomic: thread inside a call, 0 none: detects two at once */
    struct twill_reg *regs;  /* owned: registrations (src/api/mem.c) */
    struct tw_redop *redops; /* owned: created reductions (src/api/op.c) */
    /* under the loop's lock (retire.c) */
    bool retired;                   /* its user is done with it */
    struct twill_comm *parked_next; /* it waits for other ranks of this process */
};

/** Under which a thread's last error on comm is kept; NULL: calls without one. */
static inline uint64_t tw_comm_key(const struct twill_comm *comm) { return comm ? comm->key : 0; }

/** Handle in state INIT; nothing is connected yet. Checks nothing but memory. */
enum twill_status tw_comm_prepare(const struct tw_comm_args *args, struct twill_comm **comm);

/**
 * Connect prepared communicators, all at once (each on a thread of its own when there are several,
 * or when `wait` is false). wait: returns when all are READY or failed, with the first error.
 * !wait: returns INPROGRESS; async_error tells. Where a thread cannot be had all of them fail.
 * Failed ones are left for the caller to give up.
 */
enum twill_status tw_comm_connect(struct twill_comm *const *comms, int count, bool wait);

/** Flush operations, then meet all ranks over the control links. Blocking to the deadline, or
 * INPROGRESS where args.blocking is 0: it goes on in a thread. */
enum twill_status tw_comm_finalize(struct twill_comm *comm);
/** Free everything. Not legal while a thread is inside. Never waits for a peer. */
void tw_comm_free(struct twill_comm *comm);
/** Mark failed with ERR_ABORTED, tell the peers, wake every waiter. Never blocks. Any thread. */
void tw_comm_abort(struct twill_comm *comm);

/**
 * The communicator cannot go on. The first failure wins; it is told to every rank over the control
 * links (which then fail with the same status and sentence), and every waiter here wakes. Any
 * thread; never blocks.
 */
void tw_comm_fail(struct twill_comm *comm, enum twill_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** One relaxed-acquire load: OK or the sticky failure. */
static inline enum twill_status tw_comm_status(const struct twill_comm *comm)
{
    return (enum twill_status)__atomic_load_n(&comm->status, __ATOMIC_ACQUIRE);
}

/** The user is done with comm (claimed, healthy or not): finalize if that is due, and free. Where
 * the process holds several healthy ranks of it, the last one does that for all; the others return
 * at once. @return finalize's error; comm is gone in any case (retire.c) */
enum twill_status tw_comm_retire(struct twill_comm *comm);
/** It was not given to its user, since its init failed or another one's of the same call: it fails
 * (if it has not) and is freed, with what was parked for it. The thread's newest error is lost. */
void tw_comm_give_up(struct twill_comm *comm);

/* ---- unique ids and init from the environment (id.c, env.c) ------------------------------------
 */

/** Makes an id and starts its meeting point in this process. */
enum twill_status tw_id_create(twill_unique_id *id);
/** Nothing comes of an id that this process made: ranks that come to its meeting point hear why. */
void tw_id_give_up(const twill_unique_id *id, enum twill_status status, const char *text);
/** Magic, version and host; names both hosts when the id is of another one. */
enum twill_status tw_id_check(const twill_unique_id *id);
/** Fills size, rank, id (and keyless) from launcher variables; the n-th call of a process meets the
 * others' n-th. */
enum twill_status tw_env_args(struct tw_comm_args *args);

/* ---- records of calls (record.c): on each rank's board
 * ------------------------------------------- */

/* What a rank says of its current call: equal on all ranks of a collective. For send and recv: the
 * pair's own. */
/* Calls that are made of a collective, and match only each other. FUSED: several in one. */
enum tw_call_guise {
    TW_CALL_PLAIN,
    TW_CALL_REGISTER,
    TW_CALL_DEREGISTER,
    TW_CALL_SPLIT,
    TW_CALL_FUSED
};

/* Of the v-variants, [size] each: elements that go to or come from each rank, and where they lie;
 * displacements NULL: packed. NULL where the collective has none on this rank. Borrowed: from the
 * user while a call runs in the caller, else from the item or the group that notes it. */
struct tw_call_counts {
    const size_t *in, *in_displs, *out, *out_displs;
};

struct tw_call_info {
    enum tw_coll coll; /* TW_COLL_P2P for send and recv */
    enum tw_call_guise guise;
    bool is_send;
    int peer; /* send, recv */
    int root;
    uint32_t fused; /* of TW_CALL_FUSED: how many there are */
    size_t count;   /* v-variants: of the rank's own group; all_to_all_v has none: 0 */
    twill_type_t type;
    twill_redop_t op;
    struct tw_call_counts counts;
    /* where all ranks know all counts (all_gather_v, reduce_scatter_v): their sum, and their hash
     * by tw_record_spread; else 0 */
    size_t total;
    uint64_t spread;
    uint64_t algo_hash; /* of the plan's name and parameters: ranks must run the same plan */
};

size_t tw_record_board_bytes(int size);
/** Hash of all ranks' counts; never 0. */
uint64_t tw_record_spread(const size_t *counts, int size);
/**
 * Publish the start of a call and number it. Plain stores to own memory: no system call, lock or
 * allocation.
 * @return the header that every message of the call carries (hash of number, info, communicator);
 * for send and recv equal on both sides of the pair. Where counts belong to pairs of ranks
 * (tw_coll_rule.some) tw_record_headers has one for each pair, and this one is not used
 */
uint64_t tw_record_begin(struct twill_comm *comm, const struct tw_call_info *info);
/** [2 * size]: headers of what goes to each rank, of what comes from it, with the pair's own count;
 * NULL: the call has one for all. Good until the next collective begins. */
const uint64_t *tw_record_headers(const struct twill_comm *comm, const struct tw_call_info *info);
void tw_record_end(struct twill_comm *comm, const struct tw_call_info *info);

/* Slow path of a wait. */
struct tw_record_wait {
    uint64_t since_ns; /* when the wait began */
    bool warned;
    uint64_t next_ns; /* when to look again */
};
/**
 * Called every so often by whoever waits longer than a millisecond: compares records with the
 * peers', looks at their processes, warns once of late ranks (TWILL_WARN), fails at TWILL_TIMEOUT.
 * On a finding tw_comm_fail has been called with a sentence that names ranks, both calls, and the
 * phase.
 * @param number  the call's, as tw_record_number right after its begin
 */
enum twill_status tw_record_look(struct twill_comm *comm, const struct tw_call_info *info,
                                 uint64_t number, const struct tw_exec_wait *where,
                                 struct tw_record_wait *wait);
uint64_t tw_record_number(const struct twill_comm *comm, const struct tw_call_info *info);
/**
 * A call whose data came without headers (put) has ended here: did those who gave to it make the
 * same one? Ranks that have not begun theirs had nothing to give.
 *
 * @return TWILL_OK, or the communicator's failure that was made of it
 */
enum twill_status tw_record_compare(struct twill_comm *comm, const struct tw_call_info *info,
                                    uint64_t number);
/** A message with a foreign header came from peer: fail with both calls named. */
enum twill_status tw_record_mismatch(struct twill_comm *comm, const struct tw_call_info *info,
                                     uint64_t number, int peer, uint64_t found);

/* ---- operations (ops.c, group.c, stream.c, progress.c, plans.c)
 * ---------------------------------- */

struct tw_stream; /* what a host twill_stream_t points to */

/* The thread that runs queued calls: one for the process, made and destroyed with tw_proc. */
struct tw_progress;
/** No thread yet: it starts with the first queued call. */
enum twill_status tw_progress_create(struct tw_progress **progress);
/** Nothing is queued any more. Ends and joins the thread; NULL: nothing. */
void tw_progress_destroy(struct tw_progress *progress);

/* What premul_sum multiplies by: read at `at` when the call runs, or `value` if that is NULL. One
 * element of the call's type, in the first bytes. */
struct tw_scalar {
    const void *at; /* the user's, borrowed until the call is done */
    uint64_t value;
};

struct tw_call {
    struct tw_call_info info;
    struct tw_scalar scalar; /* of premul_sum */
    const void *in;
    void *out;
    struct twill_comm *comm;
    struct tw_stream *stream; /* NULL: the call blocks */
};

enum twill_status tw_ops_create(struct twill_comm *comm); /* sets comm->ops; chan exists */
void tw_ops_destroy(struct twill_comm *comm);
/** Run or enqueue a checked call: inside a group it is copied; with a stream it returns at once.
 * On errors the communicator's last error of this thread is set. */
enum twill_status tw_ops_call(const struct tw_call *call);
/** Wait until nothing of this communicator is queued or running, or it failed. */
enum twill_status tw_ops_drain(struct twill_comm *comm);
/** The communicator failed or was aborted: complete everything queued with its status; waiters
 * wake. Any thread. */
void tw_ops_wake(struct twill_comm *comm);

enum twill_status tw_stream_create(struct tw_stream **stream);
enum twill_status tw_stream_destroy(struct tw_stream *stream); /* waits for its operations */
enum twill_status
tw_stream_synchronize(struct tw_stream *stream); /* first error of its operations since last time */
enum twill_status tw_stream_query(struct tw_stream *stream);
/** Wait until the stream is empty or comm has failed (its status then); NULL: only look. The
 * stream's error is returned and stays with it. Any thread. */
enum twill_status tw_stream_await(struct tw_stream *stream, const struct twill_comm *comm);

/* Points in streams (event.c). One thread at a time for each. */
struct tw_event;
/** Reached, until it is recorded. */
enum twill_status tw_event_create(struct tw_event **event);
/** Waits for nothing. */
void tw_event_destroy(struct tw_event *event);
/** Now it is reached when all calls that stream (NULL: none) has so far are done. */
enum twill_status tw_event_record(struct tw_event *event, struct tw_stream *stream);
/** Calls that stream gets from now on begin after the event, as recorded now, is reached; NULL:
 * waits here. */
enum twill_status tw_event_wait(struct tw_stream *stream, struct tw_event *event);
bool tw_event_reached(const struct tw_event *event);
void tw_event_synchronize(const struct tw_event *event);
/** A handle that is a living event, as far as can be told. */
bool tw_event_alive(const struct tw_event *event);

/** One thread at a time: claim comm for the calling one. ERR_BUSY (tw_fail called) when another
 * thread is inside. */
enum twill_status tw_ops_claim(struct twill_comm *comm, const char *call);
void tw_ops_unclaim(struct twill_comm *comm);

/** A handle that is a living stream, as far as can be told. */
bool tw_stream_alive(const struct tw_stream *stream);

bool tw_group_active(void);
enum twill_status tw_group_start(void);
enum twill_status tw_group_end(void);
/** End the outermost group without running it. @param time_ps  out: what it would take; untouched
 * on error. ERR_USAGE: no group, an inner one (which stays open), or inits or finalizes in it */
enum twill_status tw_group_simulate(uint64_t *time_ps);
/** End the outermost group without running it. ERR_USAGE: no group, or an inner one (stays open) */
enum twill_status tw_group_cancel(void);
/** Inside a group: connect these prepared communicators at group end and fill outs[] then. On
 * ERR_NOMEM they stay the caller's. */
enum twill_status tw_group_add_inits(struct twill_comm *const *comms, int count,
                                     struct twill_comm **outs);
/** Inside a group: finalize comm at group end, together with the group's others. */
enum twill_status tw_group_add_finalize(struct twill_comm *comm);
/** Inside a group: what a split's all_gather was noted for. At the group's end child connects
 * (NULL: this rank has none) and *out is filled. Takes over one reference of split and child; on
 * ERR_NOMEM they stay the caller's. */
enum twill_status tw_group_add_split(struct twill_comm *parent, struct tw_split *split,
                                     struct twill_comm *child, struct twill_comm **out);
/** The calling thread's open group has calls on the stream. */
bool tw_group_uses_stream(const struct tw_stream *stream);

#endif
