/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a communicator's rank on a CUDA device: its memory there, its peers', its calls.
 * Never knows: what kernels do with them. */
#ifndef TW_COMM_GPU_H
#define TW_COMM_GPU_H

#include "base/cuda.h"
#include "comm/comm.h"
#include "comm/control.h"
#include "comm/gpu_device.h"
#include "device/cuda/launch.h"
#include "plan/cost.h"

struct tw_gpu_team;
struct tw_gpu_reg;
struct tw_gpu_program;
struct tw_gpu_copies;
struct tw_exec;

#define TW_GPU_REGS 256 /* registrations of a communicator */

/* Bytes of a rank's memory: the first three for each peer. */
struct tw_gpu_parts {
    uint32_t line_each, ring_each;
    uint32_t plan_fifo_each, plan_scratch; /* 0: calls run no plans */
    uint32_t plan_spared;                  /* where room is short, they do without */
};

/* From one rank's device to memory on another's something is in the way. */
struct tw_gpu_gap {
    int32_t kind;       /* enum tw_gap; 0: nothing */
    int32_t from, peer; /* ranks; the same one: no pair is meant */
};

/* What ranks on devices tell each other when they connect. */
struct tw_gpu_entry {
    struct tw_gpu_parts parts; /* that it has room for */
    uint32_t multiprocessors;
    uint32_t max_sms; /* of its device's kernel; 0: no bound */
    uint64_t copy_from;
    uint8_t uuid[16];
    struct tw_gpu_gap gap; /* that is known by now */
    uint32_t seed;         /* of what the self-test writes */
    uint64_t mem;          /* address in its process */
    uint8_t ipc[64];       /* of the allocation that begins there */
};

#define TW_GPU_SIDES                                                                               \
    2 /* streams beside a call's: one outside captures, or one of them, needs one */

#define TW_GPU_CAPTURES 4 /* side by side, in which calls keep their order */
struct tw_gpu_capture {
    uint64_t capture; /* 0: none */
    void *stream;     /* of its last call */
    void *early;      /* node of its last call that the next one may follow early; NULL: none */
};

struct tw_gpu {
    struct twill_comm *comm; /* borrowed */
    int device;
    struct tw_gpu_device *shared; /* borrowed from the process */
    struct tw_gpu_seat seat;      /* under the lock of what is shared */
    int most_blocks;              /* of one rank's kernel */
    uint64_t staging_bytes;       /* of what is shared, that it holds: mem, state, far */
    void *mem;                    /* owned: what peers write to; that of cut_mem where cut */
    bool cut; /* some devices do not address each other's memory: only host memory is reached */
    struct tw_gpu_cut *cut_mem;  /* owned; NULL: none */
    void *at[TW_GK_RANKS_MAX];   /* each rank's mem, as the device addresses it */
    struct tw_gk_state *state;   /* owned, on the device */
    struct tw_gk_host *host;     /* owned, pinned */
    char **far;                  /* owned, on the device; NULL: few ranks */
    void **opened;               /* owned, [size]: mappings of other processes' memory */
    struct tw_gk_call base;      /* what all calls of the rank have in common */
    struct tw_cost_table costs;  /* that choices go by; equal on all ranks */
    struct tw_gk_pair *pairs;    /* owned, [size]: of the call that is being given */
    bool all_here;               /* all ranks are in this process */
    bool here[TW_GK_RANKS_MAX];  /* which are */
    int others[TW_GK_RANKS_MAX]; /* [nothers]: the devices of those, but for its own */
    int nothers;
    uint64_t mates;                  /* bit r: rank r is in the team */
    struct tw_gpu_reg *regs;         /* owned, [TW_GPU_REGS]; NULL: none yet */
    uint64_t *reg_bases;             /* owned, on the device: [TW_GPU_REGS][size] */
    struct tw_exec *binder;          /* owned; NULL: calls run no plans */
    uint64_t binder_signals;         /* its signal_base */
    struct tw_gpu_program *programs; /* owned: of the plans that calls have run */
    struct tw_gpu_team *team;        /* the ranks of this process and device; referenced */
    int place;                       /* in the team */
    /* the order of calls over streams */
    struct tw_gpu_capture captures[TW_GPU_CAPTURES]; /* with calls; the latest ones */
    uint32_t captures_begun;
    bool many_streams; /* calls came on several: ends are recorded in full */
    bool done_once;    /* done is of a call, on the stream of this id */
    uint64_t done_id;
    void *done;  /* owned: event at the end of the last call outside captures */
    void *event; /* owned */
    void *mark;  /* owned: event at the end of the last captured call, where blocks are counted */
    bool early;  /* small calls in graphs are started early (gpu_early.c) */
    /* calls by copy engines (gpu_copy.h) */
    uint64_t copy_from;        /* bytes of a block, from which on they serve; 0: never */
    uint64_t copy_far_from;    /* the same where other processes' memory is copied to */
    bool copy_auto;            /* tw_gpu_cost_copies sets both */
    bool copy_alone;           /* they take no multiprocessor, whatever that costs */
    void *sides[TW_GPU_SIDES]; /* owned: streams for what a rank copies to itself */
    void *arrived, *copied;    /* owned: events before a call in a group, and behind its copies */
    uint32_t given[TW_GK_RANKS_MAX][2]; /* receives from a rank, and sends to it, so far */
    bool half;                          /* a call has begun, and could not be brought to its end */
    /* sums by pushes (gpu_shape.c) */
    /* bytes of what a rank sums, from which on two ranks push in an all_reduce, and in a
     * reduce_scatter; 0: never */
    uint64_t push_from, push_scatter_from;
    uint64_t push_same_from; /* the same of an all_reduce in place */
    uint32_t push_chunk;     /* bytes of a chunk, whole units, at most */
    uint32_t push_blocks;    /* with fewer nobody pushes */
    /* the watch over kernels, in the control thread (gpu_watch.c) */
    struct tw_source source;
    bool watched;
    uint32_t wait_epoch;    /* of the long wait that is followed; under the loop's lock */
    uint64_t wait_since_ns; /* 0: none */
    bool warned;
    /* what lies between devices (gpu_order.h), and which calls go around the ring for it */
    struct tw_gpu_between between;
    uint64_t ring_from[TW_COLL_COUNT]; /* bytes of a block, from which on; 0: never */
    uint32_t ring_channels;
};

/** Does the communicator's args ask for a device? */
static inline bool tw_gpu_wanted(const struct twill_comm *comm)
{
    return comm->args.device != TWILL_DEVICE_HOST;
}

/* ---- life (gpu.c) ----------------------------------------------------------------------------
 */

/** Before the ranks meet: the device is there and takes twill's kernels. */
enum twill_status tw_gpu_check(int device);
/** Room of the rank's own on the device; fills entry. peers: [size]; between: equal on all ranks.
 * NOMEM: the device has none, or TWILL_DEVICE_STAGING leaves too little */
enum twill_status tw_gpu_create(struct twill_comm *comm, const struct tw_ctl_peer *peers,
                                const struct tw_gpu_between *between, uint64_t deadline_ns,
                                struct tw_gpu_entry *entry);
/** The peers' memory is reached (gpu_selftest.h). entries: [size], everybody's. */
enum twill_status tw_gpu_connect(struct twill_comm *comm, const struct tw_gpu_entry *entries,
                                 const struct tw_ctl_peer *peers);
/** NULL: nothing. The rank's kernels have ended, or have been told to. */
void tw_gpu_destroy(struct twill_comm *comm);
/** The communicator has failed: kernels end their waits. Never blocks; any thread, also while
 * tw_gpu_create goes on: it sets what is read here atomically. */
void tw_gpu_stop(struct tw_gpu *gpu);
/** Until all that was given to the device has run. */
enum twill_status tw_gpu_drain(struct tw_gpu *gpu);

/* ---- how a rank's memory is cut (gpu_layout.c) -------------------------------------------------
 */

#define TW_GPU_PEER_BYTES_LEAST ((uint32_t)128 << 10)

/** Lines and ring of a peer, cut from so many bytes: TW_GPU_PEER_BYTES_LEAST at least. */
void tw_gpu_peer_cut(uint32_t each, struct tw_gpu_parts *parts);
struct tw_gk_layout tw_gpu_layout(int size, const struct tw_gpu_parts *parts);
/** Bytes of a rank's state. */
size_t tw_gpu_state_bytes(int size);
/** What any rank has room for. entries: [size] */
struct tw_gk_layout tw_gpu_layout_agree(int size, const struct tw_gpu_entry *entries);
/** All that a rank of `size` has on its device. */
uint64_t tw_gpu_rank_bytes(int size, const struct tw_gpu_parts *parts);
/**
 * Staging for `ranks` ranks of a new communicator of `size`: as much as is of use, but no more than
 * half of what is left, and so much that 32 communicators of its size find the least for a rank;
 * the least if that is all there is.
 * @param parts  in: those of plans; out: lines and rings, and those of plans, unless they were
 * spared
 * @return NOMEM (tw_fail called): not even the least is left of `limit`
 */
enum twill_status tw_gpu_staging_take(struct tw_gpu_device *device, uint64_t limit, int size,
                                      int ranks, struct tw_gpu_parts *parts);
void tw_gpu_staging_give(struct tw_gpu_device *device, uint64_t bytes);
uint64_t tw_gpu_staging_used(struct tw_gpu_device *device);

/* ---- calls (gpu_call.c) ------------------------------------------------------------------------
 */

/** A checked call outside a group. */
enum twill_status tw_gpu_run(const struct tw_call *call);
/** The device calls of a closing group, in their order, and then its sends and receives, all at
 * once; calls for the host are left alone. */
enum twill_status tw_gpu_run_group(const struct tw_call *calls, size_t count);
/** Is it for the device? What ranks tell each other about the communicator goes by host memory. */
static inline bool tw_gpu_serves(const struct tw_call *call)
{
    return call->comm->gpu != NULL && call->info.guise == TW_CALL_PLAIN;
}
/** Its buffers lie on the communicator's device, and its stream can be
 * used. ERR_UNSUPPORTED; ERR_INVALID, ERR_USAGE say why not (tw_fail called). */
enum twill_status tw_gpu_call_check(const char *name, const struct tw_call *call);

/* ---- memory that other devices were not let into (gpu_reach.c) ---------------------------------
 */

/** Which devices of this process read and write the rank's buffers. */
void tw_gpu_others_find(struct tw_gpu *gpu, const struct tw_ctl_peer *peers);
/** Before peers are told that their devices may use the `bytes` bytes at `at`, which are `apart`:
 * those of this process are let in where they were not. ERR_UNSUPPORTED, ERR_INVALID */
enum twill_status tw_gpu_let_in(const struct tw_gpu *gpu, const void *at, size_t bytes);
/** The same for a buffer of a checked call that is `apart`, if its kernels tell peers of it: the
 * sentence names call and buffer, and says what to do. */
enum twill_status tw_gpu_call_let_in(const char *name, const struct tw_call *call, bool in);

/* ---- registered memory (gpu_reg.c) --------------------------------------------------------------
 */

/** Collective, in the order of calls, as twill_register and twill_register_symmetric. @param slot
 * out: for deregister */
enum twill_status tw_gpu_register(struct twill_comm *comm, void *ptr, size_t bytes, bool symmetric,
                                  int *slot);
/** Nobody uses it any more: all ranks have said so. */
void tw_gpu_deregister(struct twill_comm *comm, int slot);
void tw_gpu_regs_drop(struct tw_gpu *gpu);
/** What a record says of a buffer; 0: no registration holds all of it. */
uint64_t tw_gpu_reg_word(const struct tw_gpu *gpu, const void *at, uint64_t bytes);
/** The same of symmetric registrations alone, in which peers' buffers lie likewise, if copy engines
 * are to write there. */
uint64_t tw_gpu_reg_copied(const struct tw_gpu *gpu, const void *at, uint64_t bytes);
/** Bytes of the largest of them; 0: there are none. */
uint64_t tw_gpu_reg_copied_most(const struct tw_gpu *gpu);
/** Where a rank's buffer lies for this rank's device, of which a record says `word`. */
char *tw_gpu_reg_peer(const struct tw_gpu *gpu, uint64_t word, int rank);

/* ---- how a call is cut (gpu_shape.c) -----------------------------------------------------------
 */

struct tw_gpu_shape {
    enum tw_gk_kernel kernel;
    uint32_t blocks, threads;
    bool promised;  /* by copy engines: where peers' outputs lie follows from registrations */
    uint32_t chunk; /* bytes that two ranks push at once; 0: they do not */
};

/** From which size on two ranks push. */
void tw_gpu_shape_init(struct tw_gpu *gpu);
/** Kernel and launch of a collective, from what is equal on all ranks. */
void tw_gpu_shape(const struct tw_gpu *gpu, const struct tw_call *call, struct tw_gpu_shape *shape);
/** The same, of those that copy engines serve if they are expected to (tw_gpu_copy_expected). */
void tw_gpu_shape_expected(const struct tw_gpu *gpu, const struct tw_call *call,
                           struct tw_gpu_shape *shape);
/** As twill_comm_choice tells them. */
const char *tw_gpu_algo_name(const struct tw_gpu_shape *shape);
const char *tw_gpu_proto_name(const struct tw_gpu_shape *shape);
/** The parameters, or what lies between devices, say which plan is to run: tw_gpu_shape gives its
 * kernel. */
bool tw_gpu_plan_forced(const struct tw_gpu *gpu, const struct tw_call *call);
/** What kernels are told of the call, but for its blocks where these differ. */
void tw_gpu_fill(const struct tw_gpu *gpu, const struct tw_call *call,
                 const struct tw_gpu_shape *shape, struct tw_gk_call *out);

/* ---- what a call costs (gpu_cost.c) ------------------------------------------------------------
 */

/** Blocks of a kernel whose ranks work on so many bytes each, as the costs say: at least 1. */
uint32_t tw_gpu_cost_blocks(const struct tw_gpu *gpu, enum tw_gk_kernel kernel, uint64_t bytes);
/** What a collective takes by the costs with this kernel, in ps; 0: that is not known, of plans
 * that parameters ask for. bytes: of a block. Equal on all ranks. */
uint64_t tw_gpu_cost(const struct tw_gpu *gpu, const struct tw_gpu_shape *shape, enum tw_coll coll,
                     uint64_t bytes);
/** The same of a message between two ranks. */
uint64_t tw_gpu_cost_p2p(const struct tw_gpu *gpu, uint64_t bytes);
/** The costs that choices go by: the communicator's, none faster than what lies between devices. */
void tw_gpu_cost_bound(struct tw_gpu *gpu);
/** From which size on calls go around the ring, as far as layout and most_blocks are known. */
void tw_gpu_cost_rings(struct tw_gpu *gpu);
/** From which size on copy engines serve, where TWILL_COPY_ENGINE leaves it to the costs. */
void tw_gpu_cost_copies(struct tw_gpu *gpu);

/* ---- plans (gpu_plan.c) ------------------------------------------------------------------------
 */

#define TW_GPU_PLAN_BLOCKS 16u /* at most */

/** Some calls go around the ring though no parameter says so. */
bool tw_gpu_rings(const struct tw_gpu *gpu);
/** FIFOs and scratch that plans of this communicator need in a rank's memory, as large as the host
 * has them; 0 where no call is to run one. */
void tw_gpu_plan_room(const struct twill_comm *comm, struct tw_gpu_parts *parts);
/** After tw_gpu_connect's layout is known. Plans of rings are made here, and taken to the device: a
 * call may be captured, or come while kernels wait. */
enum twill_status tw_gpu_plans_create(struct tw_gpu *gpu);
void tw_gpu_plans_destroy(struct tw_gpu *gpu);
/** The plan of a call that is tw_gpu_plan_forced. */
enum twill_status tw_gpu_plan_get(struct tw_gpu *gpu, const struct tw_call_info *info,
                                  const struct tw_plan **plan, uint64_t *hash);
/**
 * What a kernel is told of the plan of a checked call that is tw_gpu_plan_forced. The first call of
 * a plan that parameters ask for takes memory on the device.
 *
 * @param hash  out: names the plan, the same on ranks that run the same
 * @return TWILL_OK; what tw_plans_get and tw_exec_start say
 */
enum twill_status tw_gpu_plan_fill(struct tw_gpu *gpu, const struct tw_call *call,
                                   struct tw_gk_plan *out, uint64_t *hash);

/* ---- calls whose blocks differ (gpu_pairs.c) ---------------------------------------------------
 */

/** Is it one with a count for each rank? */
bool tw_gpu_varies(enum tw_coll coll);
/** Has the rank elements in its input, else in its output? Of a checked call. */
bool tw_gpu_holds(const struct tw_call *call, bool in);
/** Bytes from the start of the output, of a checked call that varies, to the end of what it holds.
 */
uint64_t tw_gpu_out_bytes(const struct tw_call *call);
/** Of a checked call that varies. sends, takes: as tw_gpu_fill has them. pairs: out, [size] */
void tw_gpu_pairs_fill(const struct tw_call *call, uint64_t sends, uint64_t takes,
                       struct tw_gk_pair *pairs);

/* ---- ranks of one process and device, which one kernel serves (gpu_team.c) ----------------------
 */

struct tw_gpu_launch {
    struct tw_gk_call call;
    struct tw_gpu_shape shape;
    const struct tw_gk_pair
        *pairs; /* borrowed, [size of the communicator]; NULL: blocks are alike */
    const struct tw_gk_plan *plan;      /* borrowed; NULL: the kernel runs no plan */
    const struct tw_gpu_copies *copies; /* borrowed; NULL: a kernel does it all */
    twill_type_t type;
    void *stream;
    struct tw_cuda_stream found; /* what that is */
};

/* ---- kernels that are started early (gpu_early.c) ----------------------------------------------
 */

/** Whether there are any. */
void tw_gpu_early_init(struct tw_gpu *gpu);
/** Blocks that a launch may hold: of the rank, with the kernel behind. */
uint32_t tw_gpu_early_blocks(const struct tw_gpu *gpu, const struct tw_gpu_launch *launch);
/** tw_gpu_kernels_start (comm/gpu_copy.h) of it, early where that serves. */
enum twill_status tw_gpu_early_start(struct tw_gpu *const *gpus,
                                     const struct tw_gpu_launch *const *launches,
                                     struct tw_gk_launch *wire, void *done);

/** @param parts  as tw_gpu_staging_take has it, for each rank of the team; gpu->staging_bytes are
 * its own */
enum twill_status tw_gpu_team_join(struct tw_gpu *gpu, int ranks, int place,
                                   struct tw_gpu_parts *parts);
void tw_gpu_team_leave(struct tw_gpu *gpu);
/**
 * The rank's next launch, which is copied. It starts once all ranks of the team have theirs.
 * @param ticket  out: for tw_gpu_team_wait
 */
enum twill_status tw_gpu_team_submit(struct tw_gpu *gpu, const struct tw_gpu_launch *launch,
                                     uint64_t *ticket);
/** Until the launch has been started, by whoever came last, or the communicator has failed. */
enum twill_status tw_gpu_team_wait(struct tw_gpu *gpu, uint64_t ticket);
/** Those who wait look again. */
void tw_gpu_team_wake(struct tw_gpu *gpu);

/* For launches that do not wait for the team: they hold its lock around all of these. */
void tw_gpu_team_lock(const struct tw_gpu *gpu);
void tw_gpu_team_unlock(const struct tw_gpu *gpu);

/* ---- order over streams (gpu_stream.c) ---------------------------------------------------------
 */

/** Of a capture that is new to the rank: the place of the oldest, with no call yet. */
struct tw_gpu_capture *tw_gpu_capture_find(struct tw_gpu *gpu, uint64_t capture);
/** The rank's call comes after its last one, whichever streams they were given. */
enum twill_status tw_gpu_stream_follow(struct tw_gpu *gpu, const struct tw_gpu_launch *launch);
/** `to` goes on after what stands in `from` now. */
enum twill_status tw_gpu_stream_join(struct tw_gpu *gpu, void *from, void *to);
/** What was started on `stream`, by a launch that left its end in gpu->done (or none did, and
 * gpu->many_streams), can be waited for. */
enum twill_status tw_gpu_stream_note(struct tw_gpu *gpu, const struct tw_gpu_launch *launch,
                                     void *stream);

/* ---- the watch (gpu_watch.c) -------------------------------------------------------------------
 */

#define TW_GPU_CALL_TEXT_BYTES 160
/** What a record says: "all_reduce count 100 float32 sum". */
void tw_gpu_call_text(const uint32_t words[TW_GK_WORDS], char text[TW_GPU_CALL_TEXT_BYTES]);
enum twill_status tw_gpu_watch(struct tw_gpu *gpu);
void tw_gpu_unwatch(struct tw_gpu *gpu);

#endif
