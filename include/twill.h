/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twill: collective communication between the ranks of a job.
 *
 * Knows: what a caller sees. Never knows: how it is done.
 *
 * Status. Every call returns one: 0 done, positive still in progress, negative an error. After an
 * error twill_last_error() has a sentence that says what and why. The values come in groups:
 *   -1..-19   the caller's arguments or order of calls: nothing was done, nothing is broken
 *             (twill_group_start names one exception, small all_reduces that overlap);
 *   -20..-39  this machine: nothing was started, unless twill_comm_async_error says otherwise;
 *   -40..-59  the other ranks: the communicator has failed. Every later call on it returns the
 *             failure that came first; only shrink, abort, destroy and queries are of use. Buffers
 *             of the calls that were cut short hold anything.
 * Outputs are written on success only, unless a function says otherwise.
 *
 * Matching. The ranks of a communicator make the same collective calls in the same order, with
 * equal counts, type, op and root; sends and receives of a pair match in their order, with equal
 * counts and types. Calls that do not match fail on every rank with TWILL_ERR_MISMATCH and a
 * sentence that names the ranks and both calls. That is seen where a message comes to a call that
 * it is not of, and else when a rank has waited for a millisecond, in the call it waits in or the
 * three before: a call that needs nothing of the others, a gather with another root for instance,
 * may have returned by then. A rank that is late is warned of after TWILL_WARN
 * and is an error after TWILL_TIMEOUT; a process that dies is an error in under a second.
 *
 * Order. The calls on one communicator run in the order in which they were made, whichever streams
 * they were given; the calls on one stream run in their order, whichever communicators they belong
 * to. Calls of one group count as simultaneous (see twill_group_start).
 *
 * Threads. One thread at a time for each communicator, and for each stream; a second one inside a
 * call of the same communicator gets TWILL_ERR_BUSY and changes nothing. Different communicators
 * are free of each other. twill_comm_abort, twill_comm_async_error and twill_last_error may be
 * called from any thread at any time while the communicator exists. After fork(2) the child may
 * not use what the parent made: calls on communicators, streams and events are TWILL_ERR_USAGE
 * there and do nothing, nor can it make communicators of its own, unless the parent had none.
 *
 * Blocking, on host memory. Calls with a NULL stream return when this rank's part is done: recvbuf
 * is complete and sendbuf may be reused, while other ranks may still be inside. Up to 4 KiB and on
 * a communicator with nothing queued they neither allocate, lock nor enter the kernel after the
 * first call of their kind, as long as the other ranks are not much later.
 *
 * Devices. A communicator whose config names a CUDA device works on memory of that device, in
 * CUDA's streams: a twill_stream_t is a cudaStream_t there, NULL CUDA's default stream. Collectives
 * never block the host, they return when their kernel is in the stream; the stream goes on when
 * this rank's part is done. But ranks of one communicator on one device of one process run as one
 * kernel, so each waits in its call until the others have called, unless they are in one group.
 * A stream may be destroyed once its calls have run. Calls may be captured into graphs, those of
 * such ranks together, and a replay is a call like any other; order between captured calls and
 * others is that in which graphs and calls are started. Calls of several communicators, on streams
 * of their own, run beside each other where their kernels fit on the device together, and else in
 * the order in which they were made there: their ranks make them in the same order on all devices,
 * or bound them by max_sms so that they fit. Finalize and destroy wait for calls made outside
 * graphs; graphs must have run by then. A failure that comes later is not CUDA's: kernels end,
 * their outputs hold anything, twill_comm_async_error and the next call tell. docs/gpu.md has more.
 *
 * Compatibility. The header is valid C11 and C++. Values, structs and functions are only ever
 * added. Until version 1.0 a release may break the binary interface; the soname then changes. From
 * 1.0 on the soname stays while old programs keep running.
 */
#ifndef TWILL_H
#define TWILL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TWILL_VERSION_MAJOR 0
#define TWILL_VERSION_MINOR 1
#define TWILL_VERSION_PATCH 0
#define TWILL_VERSION                                                                              \
    (TWILL_VERSION_MAJOR * 10000 + TWILL_VERSION_MINOR * 100 + TWILL_VERSION_PATCH)

#if defined(__GNUC__)
#define TWILL_API __attribute__((visibility("default")))
#else
#define TWILL_API
#endif

/* ---- status ------------------------------------------------------------------------------- */

/* X(name, value, sentence). Values are frozen; new ones are appended inside their group. */
#define TWILL_STATUS_LIST(X)                                                                       \
    X(OK, 0, "done")                                                                               \
    X(INPROGRESS, 1, "still in progress")                                                          \
    /* the caller's arguments; nothing was done, the communicator stays healthy */                 \
    X(ERR_INVALID, -1, "invalid argument")                                                         \
    X(ERR_USAGE, -2, "call not legal in this state")                                               \
    X(ERR_BUSY, -3, "communicator is in use by another thread")                                    \
    X(ERR_UNSUPPORTED, -4, "not supported by this build or these ranks")                           \
    /* this machine; the communicator stays healthy unless its error state says otherwise */       \
    X(ERR_NOMEM, -20, "out of memory or of staging")                                               \
    X(ERR_SYSTEM, -21, "a system call failed")                                                     \
    X(ERR_AGAIN, -22, "no room now, try again")                                                    \
    X(ERR_INTERNAL, -23, "an invariant of twill does not hold")                                    \
    /* the other ranks; the communicator has failed and accepts shrink, abort and destroy only */  \
    X(ERR_PEER, -40, "a peer is lost")                                                             \
    X(ERR_MISMATCH, -41, "ranks made calls that do not match")                                     \
    X(ERR_TIMEOUT, -42, "a deadline passed")                                                       \
    X(ERR_ABORTED, -43, "the communicator was aborted")                                            \
    X(ERR_AUTH, -44, "a connection did not prove the job's key")                                   \
    X(ERR_VERSION, -45, "ranks run versions or options that do not fit together")

enum twill_status {
#define TWILL_STATUS_ENUM(name, value, text) TWILL_##name = value,
    TWILL_STATUS_LIST(TWILL_STATUS_ENUM)
#undef TWILL_STATUS_ENUM
};

/**
 * Name of a status.
 *
 * @param status  any value
 * @return for instance "TWILL_ERR_PEER"; "TWILL_UNKNOWN" for a value that is no status. Static
 *
 * Threads: any. Never blocks or allocates.
 */
TWILL_API const char *twill_status_string(enum twill_status status);

/* ---- types and reductions ----------------------------------------------------------------- */

/* X(name, value, bytes). Values are frozen. */
#define TWILL_TYPE_LIST(X)                                                                         \
    X(INT8, 0, 1)                                                                                  \
    X(UINT8, 1, 1)                                                                                 \
    X(INT32, 2, 4)                                                                                 \
    X(UINT32, 3, 4)                                                                                \
    X(INT64, 4, 8)                                                                                 \
    X(UINT64, 5, 8)                                                                                \
    X(FLOAT16, 6, 2)                                                                               \
    X(FLOAT32, 7, 4)                                                                               \
    X(FLOAT64, 8, 8)                                                                               \
    X(BFLOAT16, 9, 2)                                                                              \
    X(FLOAT8E4M3, 10, 1)                                                                           \
    X(FLOAT8E5M2, 11, 1)

typedef enum {
#define TWILL_TYPE_ENUM(name, value, bytes) TWILL_##name = value,
    TWILL_TYPE_LIST(TWILL_TYPE_ENUM)
#undef TWILL_TYPE_ENUM
} twill_type_t;

/*
 * Integers wrap. 16- and 8-bit floats are widened to float32 for each operation and rounded once,
 * to nearest even; float8 saturates at its largest number. A NaN in any operand gives a NaN, also
 * for max and min; -0 is less than +0. docs/numbers.md says all of it, in tables.
 */
typedef enum {
    TWILL_SUM = 0,
    TWILL_PROD = 1,
    TWILL_MAX = 2,
    TWILL_MIN = 3,
    TWILL_AVG = 4,  /* sum, then divided by the number of ranks; integers truncate toward zero */
    TWILL_BAND = 5, /* bitwise and, or, exclusive or: of integers only */
    TWILL_BOR = 6,
    TWILL_BXOR = 7,
    /* Values from here on are handles of twill_op_create_premul_sum. */
    TWILL_OP_CREATED = 1 << 16,
    TWILL_OP_LAST = INT32_MAX
} twill_redop_t;

/* ---- handles ------------------------------------------------------------------------------ */

typedef struct twill_comm *twill_comm_t; /* one rank's place in one group of ranks */
/* host: a stream from twill_stream_create, NULL blocks; device: a cudaStream_t, NULL CUDA's default
 * stream */
typedef void *twill_stream_t;
typedef struct twill_event *twill_event_t; /* a point in a host stream */
typedef struct twill_reg *twill_reg_t;     /* memory registered with a communicator */

#define TWILL_UNIQUE_ID_BYTES 128
/* Holds the job's secret key: pass it to the ranks on a channel that others cannot read. */
typedef struct {
    char bytes[TWILL_UNIQUE_ID_BYTES];
} twill_unique_id;

#define TWILL_DEVICE_HOST (-1)
#define TWILL_UNSET INT32_MIN /* "use the parameter's value" in a config field */

#define TWILL_CONFIG_MAGIC 0x7477636fu
/*
 * Options of a new communicator. Start from TWILL_CONFIG_INIT and set fields by name.
 *
 * The first three fields say which struct the caller was compiled with. A field that lies beyond
 * `size`, or that is newer than `version`, is taken as unset (TWILL_UNSET, NULL), whatever the
 * memory holds; fields that a newer caller has and this library does not know are ignored. Fields
 * are only ever appended. A wrong magic, or a size below that of version 0.1.0's first three
 * fields, is TWILL_ERR_INVALID. The struct is borrowed during the call.
 */
struct twill_config {
    size_t size;      /* sizeof(struct twill_config) of the caller */
    uint32_t magic;   /* TWILL_CONFIG_MAGIC */
    uint32_t version; /* TWILL_VERSION of the caller */
    int32_t blocking; /* 1 (default): calls wait; 0: init and finalize may return INPROGRESS */
    /* of this rank's buffers: TWILL_DEVICE_HOST (default), or a CUDA device as the runtime numbers
     * them in this process. All ranks are on the host or all on devices, at most 64 then, and of
     * one process on one device at most 8 */
    int32_t device;
    /* 0 (default) or 1; the same on all ranks. 1: the value of every element of a reduction is
     * defined (docs/numbers.md), whatever the algorithm, channels, placement or cut into calls */
    int32_t deterministic;
    /* lanes of transfer that a plan may use; 0 or unset: chosen; the same on all ranks */
    int32_t channels;
    const char *name; /* borrowed during the call; appears in messages; NULL: a number */
    /* on devices, the most multiprocessors that a kernel of the communicator takes; 0 or unset: no
     * bound. Ranks may differ: the least holds for all. Ranks of one process on one device are one
     * kernel and share it; each has one at least, though that be more */
    int32_t max_sms;
};
#define TWILL_CONFIG_INIT                                                                          \
    {                                                                                              \
        sizeof(struct twill_config), TWILL_CONFIG_MAGIC, TWILL_VERSION, TWILL_UNSET, TWILL_UNSET,  \
            TWILL_UNSET, TWILL_UNSET, NULL, TWILL_UNSET                                            \
    }

/* ---- library ------------------------------------------------------------------------------ */

/**
 * Version of the library that runs, which may be newer than TWILL_VERSION of the header.
 *
 * @param version  out; major * 10000 + minor * 100 + patch; not NULL
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID  version is NULL
 *
 * Threads: any. Never blocks or allocates.
 */
TWILL_API enum twill_status twill_version(int *version);

/**
 * What the calling thread's last error on a communicator was.
 *
 * @param comm  a communicator, or NULL for errors of calls that have none (init, streams, memory,
 *              parameters, and handles that are none)
 * @return a sentence, never NULL, "" when there was none; valid until the thread's next call that
 *         fails on the same communicator. Where the calling thread has none, a failed
 *         communicator's own sentence: so a watcher thread reads why another thread's or a
 *         stream's call failed. Successful calls leave it as it is. A thread keeps the sentences
 *         of its 16 newest communicators.
 *
 * Threads: any, at any time while comm exists. Never blocks or allocates.
 */
TWILL_API const char *twill_last_error(twill_comm_t comm);

/**
 * Set a parameter by its name, as TWILL_<NAME>=value in the environment would. Stronger than the
 * environment. twill-info lists the parameters.
 *
 * @param name   without "TWILL_", for instance "WARN"; upper case; not NULL
 * @param value  as in the environment, for instance "64K" or "1.5s"; copied; not NULL
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID  unknown name (the nearest one is named) or bad value; nothing changed
 *         TWILL_ERR_USAGE    the parameters are in use: a communicator or unique id was already
 *                            made in this process; nothing changed
 *
 * Threads: any. Never waits for a peer.
 */
TWILL_API enum twill_status twill_param_set(const char *name, const char *value);

/**
 * Change what a parameter is where neither the environment nor twill_param_set says: for libraries
 * above twill, whose users keep the last word.
 *
 * @param name   as in twill_param_set
 * @param value  as in twill_param_set
 *
 * @return as twill_param_set
 *
 * Threads: any. Never waits for a peer.
 */
TWILL_API enum twill_status twill_param_default(const char *name, const char *value);

/**
 * What a parameter is now: as it was set, else as the environment has it, else its default.
 *
 * @param name   as in twill_param_set
 * @param value  out, [bytes], the text, cut where there is no room; "": unset; not NULL
 * @param bytes  at least 1; 256 are always enough, but for a value in the environment that is
 *               too long to be legal
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID  unknown name (the nearest one is named), an argument that is NULL or 0
 *
 * Threads: any. Never waits for a peer.
 */
TWILL_API enum twill_status twill_param_get(const char *name, char *value, size_t bytes);

/**
 * Write a warning to the library's log (TWILL_LOG, TWILL_LOG_FILE): for libraries above twill. The
 * parameters are in use from then on.
 *
 * @param text  one line, copied; longer ones than 900 letters are cut; not NULL
 *
 * @return TWILL_OK           written, or the level of the log is below it
 *         TWILL_ERR_INVALID  text is NULL, or a TWILL_* variable in the environment does not parse
 *         TWILL_ERR_SYSTEM   the log's file does not open
 *
 * Threads: any. Never waits for a peer.
 */
TWILL_API enum twill_status twill_log_warn(const char *text);

/* ---- communicators ------------------------------------------------------------------------ */

/*
 * Life of a communicator: connecting, ready, finalizing, finalized, gone.
 *   connecting  only with config.blocking = 0: async_error says TWILL_INPROGRESS. Legal are
 *               async_error, last_error, rank, size, device, abort and destroy; every other call is
 *               TWILL_ERR_USAGE.
 *   ready       everything is legal.
 *   finalizing, finalized
 *               legal are async_error, last_error, rank, size, device, abort and destroy.
 * A failed communicator (its async_error is negative) keeps its place in this life, and every call
 * but those queries, shrink, abort, destroy and deregister returns the failure.
 */

/**
 * Make the id of a new communicator, and its meeting point in this process. One rank makes it and
 * hands it to the others; the process that made it must live until all ranks are connected. An id
 * may be made early: the first rank has TWILL_ID_TIMEOUT (an hour) to come, the others then have
 * TWILL_INIT_TIMEOUT. Until then it holds a few threads, a socket and TWILL_STAGING bytes of
 * address space; the end of the process or of other communicators does not wait for it.
 *
 * @param id  out, 128 bytes, opaque; holds the secret key; not NULL. Good for one communicator
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID  id is NULL, or a TWILL_* variable in the environment does not parse
 *         TWILL_ERR_USAGE    in a child after fork(2) of a process that used twill
 *         TWILL_ERR_NOMEM, TWILL_ERR_SYSTEM
 *
 * Threads: any. Never waits for a peer.
 */
TWILL_API enum twill_status twill_get_unique_id(twill_unique_id *id);

/**
 * Join a communicator as one of its ranks. All `size` ranks call it with the same id and size.
 *
 * A thread that holds several ranks calls it for each of them inside one group: they connect
 * together at the group's end, and the handles are filled then.
 *
 * @param comm    out, the handle; not NULL. NULL is stored first and stays on errors. In a group it
 *                must stay valid to the group's end
 * @param size    number of ranks, 1 to 65536
 * @param id      of twill_get_unique_id; copied; not NULL
 * @param rank    this rank, 0 to size - 1; each rank once
 * @param config  options, borrowed; NULL: defaults
 *
 * @return TWILL_OK           connected with all ranks; or noted, inside a group
 *         TWILL_INPROGRESS   config.blocking is 0: the handle exists and is connecting;
 *                            twill_comm_async_error says when it is ready or failed. The handle of
 *                            a failed one is still to be destroyed
 *         TWILL_ERR_INVALID  NULL comm or id, size or rank out of range, a config that is none or
 *                            has values out of range, an id that is none, a bad TWILL_* variable, a
 *                            CUDA device that does not exist
 *         TWILL_ERR_USAGE    in a child after fork(2) of a process that used twill
 *         TWILL_ERR_UNSUPPORTED  a device where none can be used: a build without CUDA or without
 *                            kernels for it, no driver or one too old; more ranks on devices than
 *                            there may be; ranks that share neither a process nor a host (both
 *                            hosts are named)
 *         TWILL_ERR_NOMEM    memory, of host or device, or not even the least staging is left
 *                            (TWILL_STAGING, TWILL_DEVICE_STAGING)
 *         TWILL_ERR_SYSTEM   a system call failed
 *         TWILL_ERR_PEER     a rank died or gave up while connecting
 *         TWILL_ERR_TIMEOUT  not all ranks came within TWILL_INIT_TIMEOUT; those missing are named
 *         TWILL_ERR_AUTH     a rank does not hold the id's key
 *         TWILL_ERR_VERSION  ranks differ in version or in an option that must be the same (both
 *                            values are named)
 *         TWILL_ERR_MISMATCH ranks disagree on size, or claim the same rank
 *         On errors nothing is left behind, but that the process that made the id tells ranks that
 *         come within the next second why it failed.
 *
 * Threads: any; ranks of one communicator may be threads of one process. Blocks for the other ranks
 * unless config.blocking is 0 or a group is open.
 */
TWILL_API enum twill_status twill_comm_init(twill_comm_t *comm, int size, const twill_unique_id *id,
                                            int rank, const struct twill_config *config);

/**
 * Join a communicator of all processes of the job, with rank and size as the launcher says:
 * TWILL_RANK, TWILL_SIZE, TWILL_LOCAL_RANK and TWILL_RENDEZVOUS (twill-run), or RANK, WORLD_SIZE,
 * LOCAL_RANK, MASTER_ADDR and MASTER_PORT on one host (torchrun), or what Open MPI's mpirun and
 * launchers that speak PMI set. Without a launcher the process is alone: rank 0 of 1. The key comes
 * from twill-run, or from TWILL_KEY_FILE, which other users may not open; without one the first
 * contact is unauthenticated and warned of, or refused under TWILL_REQUIRE_KEY=1. The n-th call of
 * a process meets the others' n-th.
 *
 * @param comm    as in twill_comm_init
 * @param config  as in twill_comm_init
 *
 * @return as twill_comm_init, and
 *         TWILL_ERR_INVALID  a variable is missing or out of range (it is named)
 *         TWILL_ERR_AUTH     no key under TWILL_REQUIRE_KEY=1, or other users may open the file
 *         TWILL_ERR_UNSUPPORTED  the launcher's variables say that the ranks are on several hosts
 *
 * Threads: any; one rank for each process. Blocks as twill_comm_init does.
 */
TWILL_API enum twill_status twill_comm_init_env(twill_comm_t *comm,
                                                const struct twill_config *config);

/**
 * Make a communicator whose ranks all live in this process: comms[i] is rank i of count. They may
 * then be used by one thread with groups, or handed to threads.
 *
 * @param comms    out, [count]; not NULL. All NULL on errors. In a group: filled at its end
 * @param count    number of ranks, 1 to 65536
 * @param devices  [count], borrowed: each rank's CUDA device, which several may have; or each
 *                 TWILL_DEVICE_HOST; NULL: as config says
 * @param config   as in twill_comm_init, for all ranks; where devices are given its `device` is
 *                 checked and not used
 *
 * @return as twill_comm_init. On errors nothing is left behind.
 *
 * Threads: any. Blocks shortly (no other process is waited for) unless config.blocking is 0 or a
 * group is open.
 */
TWILL_API enum twill_status twill_comm_init_all(twill_comm_t *comms, int count, const int *devices,
                                                const struct twill_config *config);

#define TWILL_SPLIT_NOCOLOR (-1)
/**
 * Make new communicators out of the ranks of one: those that give the same color form one together,
 * numbered by key and, where keys are equal, by their rank in comm. A collective of comm: every
 * rank of it calls, and the call takes its place in the order of calls. comm stays as it is, and
 * either may be destroyed before the other.
 *
 * In a group it is noted: its place in the order of comm's calls is that of the call, the new
 * communicators connect together once the group's calls are done, and *newcomm is filled at the
 * group's end. A thread that holds several ranks of comm calls it so.
 *
 * With config.blocking = 0 the call returns at once, even if other ranks have not called: several
 * splits may be under way, and comm may be used for other calls meanwhile. The handle exists and is
 * connecting; twill_comm_rank and twill_comm_size are TWILL_ERR_USAGE until it is ready.
 *
 * @param comm     a ready communicator
 * @param color    0 or more, or TWILL_SPLIT_NOCOLOR: this rank gets no communicator
 * @param key      any number
 * @param newcomm  out; NULL for TWILL_SPLIT_NOCOLOR and on errors; not NULL. In a group it must
 *                 stay valid to the group's end
 * @param config   options of the new communicator, borrowed; what is unset, and all of NULL: as
 *                 comm has it. A name that is unset is comm's with the color behind it
 *
 * @return TWILL_OK           connected with all ranks of the color, or there is nothing to connect;
 *                            or noted, inside a group
 *         TWILL_INPROGRESS   blocking is 0 and this rank has a color; goes on by itself
 *         TWILL_ERR_INVALID  newcomm is NULL, color or config is out of range: nothing was done,
 *                            the other ranks wait
 *         TWILL_ERR_MISMATCH a rank made another call instead: comm has failed
 *         TWILL_ERR_PEER     a rank has died. Those of comm's ranks whose new communicator was not
 *                            connected yet all get this, also if the rank has another color
 *         otherwise as twill_comm_init, and as a collective of comm. What fails after the ranks
 *         have told each other their colors leaves comm healthy. A rank that cannot connect, or
 *         that aborts or destroys its new communicator before it is connected, ends it for those
 *         of its color, who get its status at once; once it has destroyed comm too, or they have,
 *         they may hear of it only after TWILL_INIT_TIMEOUT
 *
 * Threads: one at a time for comm. Blocks for the other ranks unless blocking is 0 or a group is
 * open.
 */
TWILL_API enum twill_status twill_comm_split(twill_comm_t comm, int color, int key,
                                             twill_comm_t *newcomm,
                                             const struct twill_config *config);

/**
 * Make a new communicator out of the living ranks of one, which may have failed: after a rank's
 * process has died, the others go on in what this makes. Every living rank calls it; they are
 * numbered in their old order. comm stays as it is, to be destroyed.
 *
 * All ranks that get a communicator get the same one: who lives is decided in one place. A rank
 * that dies before the others have met is left out; one that dies while they connect fails the call
 * on all of them with TWILL_ERR_PEER, and they may call again.
 *
 * In a group, and with config.blocking = 0, as twill_comm_split; but comm must not be destroyed
 * before the new communicator is ready or has failed.
 *
 * @param comm     a communicator that was ready once: healthy, failed or aborted; not finalized. In
 *                 a healthy one what is queued is waited for first (blocking, outside of groups)
 * @param newcomm  out; NULL on errors; not NULL. In a group it must stay valid to the group's end
 * @param config   as in twill_comm_split. A name that is unset is comm's with a "-" behind it
 *
 * @return TWILL_OK           connected with all living ranks; or noted, inside a group
 *         TWILL_INPROGRESS   blocking is 0; goes on by itself
 *         TWILL_ERR_INVALID  newcomm is NULL, or config is out of range
 *         TWILL_ERR_USAGE    comm never was ready, or is being finalized
 *         TWILL_ERR_BUSY     another thread is inside a call of comm
 *         TWILL_ERR_PEER     a rank has died while the ranks connected
 *         TWILL_ERR_TIMEOUT  a living rank has not called within TWILL_INIT_TIMEOUT; it is named
 *         TWILL_ERR_MISMATCH comm was healthy, and a rank of it waits in another call
 *         otherwise as twill_comm_init
 *
 * Threads: one at a time for comm. Blocks for the other ranks unless blocking is 0 or a group is
 * open.
 */
TWILL_API enum twill_status twill_comm_shrink(twill_comm_t comm, twill_comm_t *newcomm,
                                              const struct twill_config *config);

/**
 * As twill_comm_shrink, but some ranks are left out though they live: those do not call, and need
 * not know of it. Ranks that name others to leave out do not meet: each part of a communicator may
 * so become one of its own.
 *
 * @param comm     as in twill_comm_shrink
 * @param without  [count], ranks of comm, in any order; the same ones on all ranks that call, and
 *                 none of those; borrowed during the call
 * @param count    0: as twill_comm_shrink
 * @param newcomm  as in twill_comm_shrink
 * @param config   as in twill_comm_shrink
 *
 * @return as twill_comm_shrink, and
 *         TWILL_ERR_INVALID  without is NULL, a rank in it is out of range, or the caller
 *
 * Threads: one at a time for comm. Blocks for the other ranks unless blocking is 0 or a group is
 * open.
 */
TWILL_API enum twill_status twill_comm_shrink_without(twill_comm_t comm, const int *without,
                                                      int count, twill_comm_t *newcomm,
                                                      const struct twill_config *config);

/**
 * Finish: wait for this rank's queued calls, then for all other ranks to finalize too. Afterwards
 * the ranks may leave at any time without being taken for lost.
 *
 * Inside a group it is noted, and runs at the group's end, after the group's other calls, for all
 * noted ranks at once: a thread that holds several ranks of a communicator must do it so.
 *
 * @param comm  a ready communicator
 *
 * @return TWILL_OK           finalized
 *         TWILL_INPROGRESS   config.blocking is 0: goes on by itself; twill_comm_async_error says
 *                            TWILL_INPROGRESS until it is done
 *         TWILL_ERR_INVALID  comm is no communicator
 *         TWILL_ERR_USAGE    not ready, or finalized before
 *         TWILL_ERR_BUSY     another thread is inside a call of comm
 *         TWILL_ERR_TIMEOUT, TWILL_ERR_PEER, ...  the communicator has failed; destroy it
 *
 * Threads: one at a time for comm. Blocks for the other ranks, at most TWILL_TIMEOUT.
 */
TWILL_API enum twill_status twill_comm_finalize(twill_comm_t comm);

/**
 * Free a communicator and all that it holds; registrations that are left end too. A ready and
 * healthy one is finalized first, and a finalize that goes on by itself comes to its end. A failed,
 * aborted, connecting or finalized one is freed at once: no peer is waited for, and its calls that
 * streams hold are over when this returns.
 *
 * When several ranks of a healthy communicator live in this process, they may be destroyed one
 * after another by one thread: all but the last return at once, and the last finalizes for all. The
 * library holds their memory until then, and calls of theirs that streams hold go on: their buffers
 * are free once the streams are synchronized.
 *
 * @param comm  a communicator; NULL: nothing happens. The handle is dead afterwards, unless the
 *              status is TWILL_ERR_INVALID, TWILL_ERR_USAGE or TWILL_ERR_BUSY
 *
 * @return TWILL_OK           gone
 *         TWILL_ERR_INVALID  comm is no communicator (it was destroyed, for instance)
 *         TWILL_ERR_USAGE    a group is open in this thread
 *         TWILL_ERR_BUSY     another thread is inside a call of comm; call again later
 *         any other          gone; finalizing failed so
 *
 * Threads: one, the last to use comm. Blocks as finalize does; never for a failed communicator, or
 * while other ranks of it live in this process.
 */
TWILL_API enum twill_status twill_comm_destroy(twill_comm_t comm);

/**
 * Give a communicator up: it fails with TWILL_ERR_ABORTED, here at once and on the other ranks as
 * soon as they are told; calls of it that are running or queued end with that status. Frees
 * nothing: destroy does, and is immediate then. User buffers of calls that were cut short may be
 * freed once those calls have returned (blocking) or their streams are synchronized; for large
 * calls in graphs on devices, and symmetric memory, see twill_register_symmetric and docs/gpu.md. A
 * communicator that has failed before keeps its first failure.
 *
 * @param comm  a communicator in any state
 *
 * @return TWILL_OK           aborted, also when it was already
 *         TWILL_ERR_INVALID  comm is no communicator
 *
 * Threads: any, at any time while comm exists, also while another is inside a call of comm. Never
 * blocks, needs no peer.
 */
TWILL_API enum twill_status twill_comm_abort(twill_comm_t comm);

/**
 * State of a communicator.
 *
 * @param comm    a communicator in any state
 * @param status  out: TWILL_OK healthy; TWILL_INPROGRESS connecting or finalizing; negative: the
 *                failure that came first (twill_last_error(comm) has its sentence); not NULL
 *
 * @return TWILL_OK; TWILL_ERR_INVALID comm is no communicator, or status is NULL
 *
 * Threads: any, at any time while comm exists. Never blocks, locks or allocates.
 */
TWILL_API enum twill_status twill_comm_async_error(twill_comm_t comm, enum twill_status *status);

/**
 * This rank's number, the number of ranks, and the device of its buffers.
 *
 * @param comm    a communicator in any state, failed ones included
 * @param rank    out, 0 to size - 1; not NULL
 * @param size    out, at least 1; not NULL
 * @param device  out, TWILL_DEVICE_HOST or a CUDA device; not NULL
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID  comm is no communicator, or the output is NULL
 *         TWILL_ERR_USAGE    rank and size: comm comes of a split or shrink and is not ready yet
 *
 * Threads: any while comm exists. Never blocks, locks or allocates.
 */
TWILL_API enum twill_status twill_comm_rank(twill_comm_t comm, int *rank);
TWILL_API enum twill_status twill_comm_size(twill_comm_t comm, int *size);
TWILL_API enum twill_status twill_comm_device(twill_comm_t comm, int *device);

#define TWILL_CHOICE_MAGIC 0x74776368u
/* How a collective would run. Append only; fields beyond the caller's size are left out. */
struct twill_choice {
    size_t size;      /* sizeof(struct twill_choice) of the caller */
    uint32_t magic;   /* TWILL_CHOICE_MAGIC */
    uint32_t version; /* TWILL_VERSION of the caller */
    char algo[48];    /* out: the plan's name, for instance "ring" */
    char proto[16];   /* out: "simple"; on devices "lines", "rings", "direct", "copy" */
    int32_t channels; /* out: channels that the plan uses; on devices the kernel's blocks */
    /* out: time by the cost model if all ranks call at once; 0 where nothing is predicted (more
     * than 32 ranks on the host; a plan on devices) */
    double predicted_us;
};
#define TWILL_CHOICE_INIT                                                                          \
    {                                                                                              \
        sizeof(struct twill_choice), TWILL_CHOICE_MAGIC, TWILL_VERSION, {0}, {0}, 0, 0             \
    }

/**
 * Which plan a collective would run with these arguments: what TWILL_ALGO or TWILL_PLAN_FILE force,
 * or what the library chooses. The same on every rank; nothing is sent.
 *
 * @param comm        a ready communicator
 * @param collective  "all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather",
 *                    "all_to_all", "gather", "scatter", "barrier", or one of the v-variants:
 *                    "all_gather_v" and so on
 * @param count       as the collective itself takes it, in elements; for a v-variant, of each block
 *                    in the mean
 * @param type        of the elements
 * @param root        the root where the collective has one, else ignored
 * @param choice      in: size, magic, version (TWILL_CHOICE_INIT); out: the rest; untouched on
 *                    errors
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID      an argument is out of its range, or the struct was not initialised
 *         TWILL_ERR_USAGE        operations are still queued on streams
 *         TWILL_ERR_UNSUPPORTED  no algorithm serves the call
 *         TWILL_ERR_NOMEM
 *         and what every call on a communicator returns when it is failed, not ready or in use
 *
 * Threads: one at a time for each communicator. Never waits for a peer; may allocate.
 */
TWILL_API enum twill_status twill_comm_choice(twill_comm_t comm, const char *collective,
                                              size_t count, twill_type_t type, int root,
                                              struct twill_choice *choice);

#define TWILL_MEMORY_MAGIC 0x74776d65u
/* What a communicator holds, in bytes. Append only; fields beyond the caller's size are left out.
 */
struct twill_memory {
    size_t size;      /* sizeof(struct twill_memory) of the caller */
    uint32_t magic;   /* TWILL_MEMORY_MAGIC */
    uint32_t version; /* TWILL_VERSION of the caller */
    /* out, all of them */
    uint64_t comm_staging_bytes;    /* this rank's: slots in which its peers' messages arrive, its
                                     * board of records, and what peers may write and raise */
    uint64_t process_staging_bytes; /* in use by all communicators of the process, those included
                                     * that were destroyed and whose peers have not left yet */
    uint64_t staging_limit_bytes;   /* what that may come to: TWILL_STAGING */
    uint64_t registered_bytes;      /* of buffers registered with comm now: the user's memory */
    uint64_t plan_bytes;            /* plans that were made so far, from the heap */
    uint64_t scratch_bytes;         /* partial results between steps, and small all_reduces that
                                     * run as one, from the heap */
    /* of a communicator on a device, else 0 */
    uint64_t device_bytes; /* this rank's there, all of it: mostly what its peers write to */
    uint64_t device_staging_bytes; /* in use there by all communicators of the process */
    uint64_t device_limit_bytes;   /* what that may come to: TWILL_DEVICE_STAGING */
};
#define TWILL_MEMORY_INIT                                                                          \
    {                                                                                              \
        sizeof(struct twill_memory), TWILL_MEMORY_MAGIC, TWILL_VERSION, 0, 0, 0, 0, 0, 0, 0, 0, 0  \
    }

/**
 * How much memory a communicator holds. Of this rank alone; nothing is sent. Not counted are, on
 * a device, the table of registrations, 2 KiB for each rank of comm, and plans that were run.
 *
 * @param comm    a ready communicator
 * @param report  in: size, magic, version (TWILL_MEMORY_INIT); out: the rest; untouched on errors
 *
 * @return TWILL_OK; TWILL_ERR_INVALID report is NULL or was not initialised; TWILL_ERR_USAGE
 *         operations are still queued on streams, or a split of comm, which this rank has no part
 *         in, is still under way; and what every call on a communicator returns
 *         when it is failed, not ready or in use
 *
 * Threads: one at a time for each communicator. Never waits for a peer or allocates.
 */
TWILL_API enum twill_status twill_comm_memory(twill_comm_t comm, struct twill_memory *report);

/* ---- streams and groups ------------------------------------------------------------------- */

/*
 * A host stream is a queue of calls that the library's progress thread runs in order. The thread
 * starts with the first call on a stream and sleeps while there is nothing to do. Buffers of a
 * call on a stream belong to the library until the call is done. Streams of CUDA are no host
 * streams: the functions here do not take them, communicators on devices take no others.
 */

/**
 * Make a host stream. It belongs to no communicator.
 *
 * @param stream  out; not NULL
 *
 * @return TWILL_OK; TWILL_ERR_INVALID stream is NULL; TWILL_ERR_NOMEM
 *
 * Threads: any. Never blocks.
 */
TWILL_API enum twill_status twill_stream_create(twill_stream_t *stream);

/**
 * Wait for a stream's calls, then free it.
 *
 * @param stream  a stream; NULL: nothing happens. The handle is dead afterwards, unless the status
 *                is TWILL_ERR_INVALID or TWILL_ERR_USAGE
 *
 * @return TWILL_OK           gone
 *         TWILL_ERR_INVALID  stream is no stream
 *         TWILL_ERR_USAGE    calls of an open group of this thread use it
 *         any other          gone; a call failed so, and nobody had asked
 *
 * Threads: one at a time for stream. Blocks for its calls.
 */
TWILL_API enum twill_status twill_stream_destroy(twill_stream_t stream);

/**
 * Wait until all calls given to a stream so far are done.
 *
 * @param stream  a stream; NULL: TWILL_OK, since such calls are done when they return
 *
 * @return TWILL_OK           all done
 *         TWILL_ERR_INVALID  stream is no stream
 *         any other negative the first error of its calls since the last synchronize or query that
 *                            reported one; all its calls are over. twill_last_error(NULL) has the
 *                            sentence, which names the rank; twill_comm_async_error of its
 *                            communicator says whether that has failed
 *
 * Threads: one at a time for stream. Blocks for its calls.
 */
TWILL_API enum twill_status twill_stream_synchronize(twill_stream_t stream);

/**
 * The same without waiting.
 *
 * @param stream  a stream; NULL: TWILL_OK
 *
 * @return TWILL_INPROGRESS   calls are queued or running
 *         otherwise as twill_stream_synchronize
 *
 * Threads: one at a time for stream. Never blocks.
 */
TWILL_API enum twill_status twill_stream_query(twill_stream_t stream);

/**
 * Events: points in host streams. An event is reached when all calls are done, well or not, that
 * the stream had been given when the event was recorded; one that was never recorded is reached.
 * Recording again moves it: who waits already waits for the old point. Events, streams and
 * communicators are destroyed in any order.
 *
 * @param event   create: out, not NULL; otherwise an event. destroy: NULL is legal, and a point
 *                that others wait for stays for them
 * @param stream  record: whose calls so far; NULL: reached at once. wait: calls that it gets from
 *                now on begin after the event as recorded now is reached, whatever communicator
 *                they belong to; NULL: the caller waits
 *
 * @return TWILL_OK           done; query: reached
 *         TWILL_INPROGRESS   query: not reached yet
 *         TWILL_ERR_INVALID  event or stream is none, or the output is NULL
 *         TWILL_ERR_USAGE    record, wait: calls of an open group of this thread use the stream
 *         TWILL_ERR_NOMEM
 *         Failures of calls are told by their stream and communicator, not by events.
 *
 * Threads: one at a time for event, and for stream. Only synchronize, and wait on NULL, block.
 */
TWILL_API enum twill_status twill_event_create(twill_event_t *event);
TWILL_API enum twill_status twill_event_destroy(twill_event_t event);
TWILL_API enum twill_status twill_event_record(twill_event_t event, twill_stream_t stream);
TWILL_API enum twill_status twill_event_wait(twill_stream_t stream, twill_event_t event);
TWILL_API enum twill_status twill_event_query(twill_event_t event);
TWILL_API enum twill_status twill_event_synchronize(twill_event_t event);

/**
 * Open a group in this thread: calls up to the matching twill_group_end are noted (their arguments
 * are copied, the buffers are not) and start at the end of the outermost group.
 *
 * What a group's end does:
 *   1. inits of the group connect, all at once, and their handles are filled;
 *   2. for each communicator, its collectives run in the order of the calls, then all its sends and
 *      receives run together: those of one pair and direction in order, everything else at once.
 *      Different communicators, and several ranks of one communicator, go on side by side;
 *   3. finalizes of the group run, all at once.
 * Small all_reduces (up to 16 KiB each; 256 KiB and 64 calls together) of one communicator, type
 * and operation that follow each other among its collectives run as one, which is faster: they wait
 * for all of their streams, and ranks that put them into different groups do not match. Created
 * reductions and calls with count 0 run singly.
 *
 * What runs as one has no order, so the recvbuf of each of these calls may share no byte with the
 * sendbuf or the recvbuf of another: a chain, whose second call reads what the first one writes,
 * takes two groups. Each may be in place itself, and sendbufs may overlap or be the same. A rank
 * that breaks this gets TWILL_ERR_USAGE at its group's end, with or without streams, and the
 * communicator fails: every other rank, whose own buffers may be good, gets TWILL_ERR_USAGE too,
 * from its call or stream, with the sentence that names the rank and the two calls. Nothing that
 * was to run as one is written on the rank that broke it. Other communicators of the group go on;
 * so does a communicator of one rank, without these calls. On devices nothing runs as one.
 *
 * So two ranks may send to each other before they receive, one thread may call for several ranks,
 * and the order in which calls of different communicators were made does not matter. Calls of one
 * group on one stream are simultaneous; a send/receive batch with several streams waits for all of
 * them.
 *
 * Argument errors are returned by the call that has them, at once; that call is not part of the
 * group and the others are unharmed. A send to this rank itself is legal in a group only, and needs
 * its receive in the same group.
 *
 * @return TWILL_OK
 *
 * Threads: a group belongs to its thread. Groups nest. Never blocks.
 */
TWILL_API enum twill_status twill_group_start(void);

/**
 * Close a group. Closing the outermost one runs what was noted.
 *
 * @return TWILL_OK           everything is done (calls without a stream) or queued (with one)
 *         TWILL_INPROGRESS   an init or finalize of a communicator with blocking = 0 goes on; the
 *                            rest is done or queued
 *         TWILL_ERR_USAGE    no group is open; or sends to this rank itself and receives from it do
 *                            not pair up: nothing of the group was run; or small all_reduces
 *                            overlap (see twill_group_start)
 *         TWILL_ERR_BUSY     another thread is inside a call of one of the communicators; nothing
 *                            of the group was run
 *         any other negative the first error of the group's calls. Calls of other communicators
 *                            were run to their end. When an init failed, none of the group's inits
 *                            leaves a handle, and nothing else of the group was run
 *         twill_last_error(NULL) has the sentence, and so has the communicator's.
 *
 * Threads: that of twill_group_start. Blocks for calls without a stream.
 */
TWILL_API enum twill_status twill_group_end(void);

/**
 * Close the outermost group without running it: what was noted is forgotten, no init or split of it
 * leaves a handle. The other ranks, whose groups run, wait for what this one does not do.
 *
 * @return TWILL_OK         the group is closed
 *         TWILL_ERR_USAGE  no group is open, or it is not the outermost one: it stays open
 *
 * Threads: that of twill_group_start. Never waits for a peer.
 */
TWILL_API enum twill_status twill_group_cancel(void);

#define TWILL_SIMULATION_MAGIC 0x74777369u
/* What a group would take. Append only; fields beyond the caller's size are left out. */
struct twill_simulation {
    size_t size;         /* sizeof(struct twill_simulation) of the caller */
    uint32_t magic;      /* TWILL_SIMULATION_MAGIC */
    uint32_t version;    /* TWILL_VERSION of the caller */
    double predicted_us; /* out: time by the cost model */
};
#define TWILL_SIMULATION_INIT                                                                      \
    {                                                                                              \
        sizeof(struct twill_simulation), TWILL_SIMULATION_MAGIC, TWILL_VERSION, 0                  \
    }

/**
 * Close the outermost group without running it, and say how long it would take: what was noted is
 * forgotten. The collectives of a communicator add up, its sends and receives go at once in both
 * directions after them, and communicators run side by side: the longest counts. All ranks are
 * taken to enter the group at the same time.
 *
 * @param simulation  in: size, magic, version (TWILL_SIMULATION_INIT); out: the rest; untouched on
 *                    errors
 *
 * @return TWILL_OK               predicted_us is set; the group is closed
 *         TWILL_ERR_INVALID      the struct was not initialised; the group stays open
 *         TWILL_ERR_USAGE        no group is open, or it is not the outermost one: it stays open.
 *                                Or the group makes or finalizes communicators: it is closed, and
 *                                no init leaves a handle
 *         TWILL_ERR_UNSUPPORTED  a communicator has too many ranks to be priced (32 are the most,
 *                                on the host), a call on devices would run a plan (TWILL_ALGO), or
 *                                a call cannot be served; the group is closed
 *         TWILL_ERR_NOMEM        the group is closed
 *         twill_last_error(NULL) has the sentence.
 *
 * Threads: that of twill_group_start. Never waits for a peer; may allocate.
 */
TWILL_API enum twill_status twill_group_simulate_end(struct twill_simulation *simulation);

/* ---- created reductions ------------------------------------------------------------------- */

/* Where the scalar of a created reduction is read. */
typedef enum {
    TWILL_SCALAR_POINTER = 0, /* from the caller's memory, whenever a call runs */
    TWILL_SCALAR_VALUE = 1    /* once, when the reduction is created */
} twill_scalar_t;

/**
 * Make a reduction that multiplies this rank's input by a scalar and sums the products:
 * recvbuf[i] = sum over ranks of scalar * sendbuf[i], each rank with its own scalar. Every rank of
 * a call uses a created sum; handles need not be equal. It costs no more than the call's scalar.
 *
 * @param op         out, a handle for calls on comm with elements of type; not NULL. Good until
 *                   twill_op_destroy or the end of comm; not reused in this process
 * @param scalar     one element of type, any alignment; not NULL. With TWILL_SCALAR_POINTER
 *                   borrowed: each call reads it when it runs on this rank, and it must stay as it
 *                   is from then until the call is done. On devices it is the kernel that reads it:
 *                   in memory that the device addresses, which is not checked
 * @param type       of the scalar and of the calls
 * @param residence  when scalar is read
 * @param comm       a ready communicator
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID  an argument is none of the above; *op is untouched
 *         TWILL_ERR_NOMEM    memory; or 2^31 - 2^16 reductions were made in this process
 *         and what every call on a communicator returns when it is failed, not ready or in use
 *
 * Threads: one at a time for comm. Not a collective, and never waits; may allocate.
 */
TWILL_API enum twill_status twill_op_create_premul_sum(twill_redop_t *op, const void *scalar,
                                                       twill_type_t type, twill_scalar_t residence,
                                                       twill_comm_t comm);

/**
 * End a created reduction. Calls that were made with it, also those in a stream or an open group,
 * are not affected: they have copied it (with TWILL_SCALAR_POINTER the address, not the scalar).
 *
 * @param op    of twill_op_create_premul_sum on comm; dead afterwards
 * @param comm  in any state
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID  comm is no communicator, or op is not one of its created reductions
 *         TWILL_ERR_BUSY     another thread is inside a call of comm
 *
 * Threads: one at a time for comm. Never waits.
 */
TWILL_API enum twill_status twill_op_destroy(twill_redop_t op, twill_comm_t comm);

/* ---- collectives and point to point -------------------------------------------------------- */

/*
 * What the calls below have in common.
 *
 * @param sendbuf  borrowed, read only; NULL only where count is 0 or the text says "ignored"
 * @param recvbuf  borrowed, written; NULL likewise. Contents are undefined after an error
 * @param count    in elements. 0 is legal: nothing is moved, but the call still matches the others'
 *                 and takes its place in the order. A count whose bytes (over all ranks) do not fit
 *                 size_t is TWILL_ERR_INVALID
 * @param type     of the elements; any alignment is legal, the element's own is faster. On devices
 *                 the element's own is asked for
 * @param op       the reduction: one of twill_redop_t, or created on comm for type. TWILL_AVG
 *                 divides by the number of ranks; TWILL_BAND, TWILL_BOR and TWILL_BXOR are of
 *                 integers only
 * @param root, peer  ranks, 0 to size - 1
 * @param comm     a ready communicator
 * @param stream   NULL: the call blocks until this rank's part is done. Otherwise it is queued and
 *                 returns at once, even if no other rank has called; errors that come later are
 *                 reported by twill_stream_synchronize, and by twill_comm_async_error when they
 *                 fail the communicator. On devices: see "Devices" above
 *
 * @return TWILL_OK           done; queued (stream); noted (inside a group)
 *         TWILL_ERR_INVALID  an argument is none of the above, or buffers overlap in a way that is
 *                            not the stated in-place form; on a device, buffers that are no memory
 *                            of it. Nothing was started, no other rank is affected, comm stays
 *                            healthy
 *         TWILL_ERR_UNSUPPORTED  on a device: more than 512 sends and receives in a group; or a
 *                            buffer that is not from cudaMalloc, into which CUDA does not let the
 *                            devices of other ranks of the process (docs/gpu.md). Nothing was
 *                            started
 *         TWILL_ERR_USAGE    comm is connecting, finalizing or finalized; or a graph's capture,
 *                            made invalid or another stream's, forbids to use the stream
 *         TWILL_ERR_BUSY     another thread is inside a call of comm
 *         TWILL_ERR_NOMEM    nothing was started on this rank
 *         TWILL_ERR_PEER, TWILL_ERR_MISMATCH, TWILL_ERR_TIMEOUT, TWILL_ERR_ABORTED
 *                            the communicator has failed (also before this call)
 *
 * In place means that sendbuf and recvbuf are exactly the stated addresses; some ranks may be in
 * place and others not.
 *
 * Every type is served by every call. What reductions compute is said in docs/numbers.md.
 */

/* Options of the extended calls to come, which take a pointer to one; NULL is legal everywhere. */
struct twill_call_attr;

/**
 * Reduce the ranks' buffers, result on every rank: recvbuf[i] = op over ranks of sendbuf[i].
 *
 * @param sendbuf  [count]
 * @param recvbuf  [count]; in place: equal to sendbuf
 */
TWILL_API enum twill_status twill_all_reduce(const void *sendbuf, void *recvbuf, size_t count,
                                             twill_type_t type, twill_redop_t op, twill_comm_t comm,
                                             twill_stream_t stream);

/**
 * Reduce the ranks' buffers, result at the root.
 *
 * @param sendbuf  [count]
 * @param recvbuf  [count] at the root, ignored elsewhere; in place: equal to sendbuf, at the root
 */
TWILL_API enum twill_status twill_reduce(const void *sendbuf, void *recvbuf, size_t count,
                                         twill_type_t type, twill_redop_t op, int root,
                                         twill_comm_t comm, twill_stream_t stream);

/**
 * Copy the root's buffer to every rank, the root included.
 *
 * @param sendbuf  [count] at the root, ignored elsewhere
 * @param recvbuf  [count]; in place: equal to sendbuf, at the root
 */
TWILL_API enum twill_status twill_broadcast(const void *sendbuf, void *recvbuf, size_t count,
                                            twill_type_t type, int root, twill_comm_t comm,
                                            twill_stream_t stream);

/**
 * Reduce the ranks' buffers, block r of the result on rank r.
 *
 * @param sendbuf  [size * recvcount]
 * @param recvbuf  [recvcount]; in place: sendbuf + rank * recvcount elements
 */
TWILL_API enum twill_status twill_reduce_scatter(const void *sendbuf, void *recvbuf,
                                                 size_t recvcount, twill_type_t type,
                                                 twill_redop_t op, twill_comm_t comm,
                                                 twill_stream_t stream);

/**
 * Gather every rank's block on every rank, in the order of ranks.
 *
 * @param sendbuf  [sendcount]; in place: recvbuf + rank * sendcount elements
 * @param recvbuf  [size * sendcount]
 */
TWILL_API enum twill_status twill_all_gather(const void *sendbuf, void *recvbuf, size_t sendcount,
                                             twill_type_t type, twill_comm_t comm,
                                             twill_stream_t stream);

/**
 * Exchange blocks: block r of sendbuf goes to rank r, where it is block `rank` of recvbuf.
 *
 * @param sendbuf  [size * count]
 * @param recvbuf  [size * count]; in place: equal to sendbuf
 * @param count    of one block
 */
TWILL_API enum twill_status twill_all_to_all(const void *sendbuf, void *recvbuf, size_t count,
                                             twill_type_t type, twill_comm_t comm,
                                             twill_stream_t stream);

/**
 * Gather every rank's block at the root, in the order of ranks.
 *
 * @param sendbuf  [sendcount]; in place, at the root: recvbuf + root * sendcount elements
 * @param recvbuf  [size * sendcount] at the root, ignored elsewhere
 */
TWILL_API enum twill_status twill_gather(const void *sendbuf, void *recvbuf, size_t sendcount,
                                         twill_type_t type, int root, twill_comm_t comm,
                                         twill_stream_t stream);

/**
 * Hand the root's blocks out: block r of its sendbuf goes to rank r, the root included.
 *
 * @param sendbuf  [size * recvcount] at the root, ignored elsewhere
 * @param recvbuf  [recvcount]; in place, at the root: sendbuf + root * recvcount elements
 */
TWILL_API enum twill_status twill_scatter(const void *sendbuf, void *recvbuf, size_t recvcount,
                                          twill_type_t type, int root, twill_comm_t comm,
                                          twill_stream_t stream);

/*
 * With a count for each rank. What the calls below have in common beyond the above:
 *
 * @param counts  [size], in elements, one block for each rank; 0 is legal for some ranks or all.
 *                Not NULL, unless the text says "ignored". Read before the call returns, also
 *                inside a group and on a stream
 * @param displs  [size], in elements from the buffer's start, where each block begins; likewise.
 *                NULL: packed, block r begins where block r - 1 ends. Elements between blocks are
 *                neither read nor written. That of an empty block is ignored. Blocks of a buffer
 *                that is read may overlap, of one that is written not
 *
 * Counts that, summed or with their displacement, come to more bytes than half the address space
 * are TWILL_ERR_INVALID, as are a rank's two statements of what it sends to itself when they
 * differ. Counts of different ranks that do not match are TWILL_ERR_MISMATCH on every rank, with a
 * sentence that names two of the ranks and both counts.
 *
 * A buffer may be NULL on a rank where it has no elements. sendbuf and recvbuf may lie in each
 * other's gaps; where elements of theirs overlap it must be the stated in-place form.
 */

/**
 * Gather the ranks' blocks, which may differ in size, on every rank.
 *
 * @param sendbuf  [counts[rank]]; in place: recvbuf + displs[rank] elements
 * @param recvbuf  block r is rank r's sendbuf
 * @param counts   of recvbuf's blocks; the same on every rank
 * @param displs   of recvbuf's blocks; each rank's own affair
 */
TWILL_API enum twill_status twill_all_gather_v(const void *sendbuf, void *recvbuf,
                                               const size_t *counts, const size_t *displs,
                                               twill_type_t type, twill_comm_t comm,
                                               twill_stream_t stream);

/**
 * Reduce the ranks' buffers, block r of the result, of a size of its own, on rank r.
 *
 * @param sendbuf  block r is this rank's part of rank r's result
 * @param recvbuf  [counts[rank]]; in place: sendbuf + displs[rank] elements
 * @param counts   of sendbuf's blocks; the same on every rank
 * @param displs   of sendbuf's blocks; each rank's own affair
 */
TWILL_API enum twill_status twill_reduce_scatter_v(const void *sendbuf, void *recvbuf,
                                                   const size_t *counts, const size_t *displs,
                                                   twill_type_t type, twill_redop_t op,
                                                   twill_comm_t comm, twill_stream_t stream);

/**
 * Exchange blocks of any sizes: block r of sendbuf goes to rank r, where it is block `rank` of
 * recvbuf.
 *
 * @param sendcounts  [size], what goes to each rank: its recvcounts[rank]
 * @param sdispls     [size] or NULL, of sendbuf's blocks
 * @param recvbuf     in place: equal to sendbuf, with recvcounts equal to sendcounts, and rdispls
 *                    that say the same as sdispls
 * @param recvcounts  [size], what comes from each rank: its sendcounts[rank]
 * @param rdispls     [size] or NULL, of recvbuf's blocks
 */
TWILL_API enum twill_status twill_all_to_all_v(const void *sendbuf, const size_t *sendcounts,
                                               const size_t *sdispls, void *recvbuf,
                                               const size_t *recvcounts, const size_t *rdispls,
                                               twill_type_t type, twill_comm_t comm,
                                               twill_stream_t stream);

/**
 * Gather the ranks' blocks, which may differ in size, at the root.
 *
 * @param sendbuf    [sendcount]; in place, at the root: recvbuf + displs[root] elements
 * @param sendcount  this rank's: counts[rank] of the root
 * @param recvbuf    block r is rank r's sendbuf; at the root, ignored elsewhere
 * @param counts     [size] at the root, ignored elsewhere
 * @param displs     [size] or NULL at the root, ignored elsewhere
 */
TWILL_API enum twill_status twill_gather_v(const void *sendbuf, size_t sendcount, void *recvbuf,
                                           const size_t *counts, const size_t *displs,
                                           twill_type_t type, int root, twill_comm_t comm,
                                           twill_stream_t stream);

/**
 * Hand the root's blocks out, which may differ in size: block r goes to rank r, the root included.
 *
 * @param sendbuf    at the root, ignored elsewhere
 * @param counts     [size] at the root, ignored elsewhere
 * @param displs     [size] or NULL at the root, ignored elsewhere
 * @param recvbuf    [recvcount]; in place, at the root: sendbuf + displs[root] elements
 * @param recvcount  this rank's: counts[rank] of the root
 */
TWILL_API enum twill_status twill_scatter_v(const void *sendbuf, const size_t *counts,
                                            const size_t *displs, void *recvbuf, size_t recvcount,
                                            twill_type_t type, int root, twill_comm_t comm,
                                            twill_stream_t stream);

/** Return (or go on, on a stream) when every rank has called. Moves no data. */
TWILL_API enum twill_status twill_barrier(twill_comm_t comm, twill_stream_t stream);

/**
 * Send to one rank, which receives with an equal count and type. A blocking send may return before
 * the receive is called, when the data fits into the connection's buffer, or may wait for it.
 *
 * On devices the sends and receives of a rank in one group are one kernel, behind the group's
 * collectives, and none of them has ended before all have, on whichever streams they are: all of
 * these go on behind it. There are at most 512 in a group. Ranks that share a device, and are one
 * process's, send to each other inside one group, or on streams that do not wait for each other:
 * the kernel of one waits for the other's.
 *
 * @param sendbuf  [count]
 * @param peer     the receiver; this rank itself inside a group only
 *
 * @return as above; TWILL_ERR_USAGE also for peer == rank outside a group
 */
TWILL_API enum twill_status twill_send(const void *sendbuf, size_t count, twill_type_t type,
                                       int peer, twill_comm_t comm, twill_stream_t stream);

/**
 * Receive from one rank what it sends with an equal count and type.
 *
 * @param recvbuf  [count]
 * @param peer     the sender; this rank itself inside a group only
 *
 * @return as above; TWILL_ERR_USAGE also for peer == rank outside a group
 */
TWILL_API enum twill_status twill_recv(void *recvbuf, size_t count, twill_type_t type, int peer,
                                       twill_comm_t comm, twill_stream_t stream);

/* ---- memory ------------------------------------------------------------------------------- */

/**
 * Where a thread computes, as CUDA has it: for callers whose own interface names no device.
 *
 * @param device  out, the calling thread's current CUDA device; TWILL_DEVICE_HOST in a build
 *                without CUDA, and where there is no driver or no device for this process; not NULL
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID      device is NULL
 *         TWILL_ERR_UNSUPPORTED  there are devices, but the driver is too old for them to be used
 *         TWILL_ERR_SYSTEM       CUDA failed
 *
 * Threads: any. Never waits for a peer. The first call opens the driver.
 */
TWILL_API enum twill_status twill_current_device(int *device);

/**
 * Memory that the library can map into other processes. Needs no communicator.
 *
 * @param ptr     out, zeroed, aligned to a page (on a device: to 256 bytes); not NULL
 * @param bytes   0: *ptr is NULL
 * @param device  TWILL_DEVICE_HOST, or a device's number as CUDA counts in this process
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID      ptr is NULL; or there is no such device
 *         TWILL_ERR_UNSUPPORTED  no device can be used: a build without CUDA, no driver or one too
 *                                old, no device; the sentence says which
 *         TWILL_ERR_NOMEM        also: the device has no more
 *         TWILL_ERR_SYSTEM
 *
 * Threads: any. Never waits for a peer. On a device it may wait for kernels that run there.
 */
TWILL_API enum twill_status twill_mem_alloc(void **ptr, size_t bytes, int device);

/**
 * Free memory of twill_mem_alloc. Calls that use it must be done, registrations of it ended. A
 * device's memory is freed once all that runs on the device is done.
 *
 * @param ptr  what twill_mem_alloc gave; NULL: nothing happens
 *
 * @return TWILL_OK
 *         TWILL_ERR_INVALID  ptr is not the start of such memory (freed twice, for instance)
 *
 * Threads: any. Host memory: never blocks.
 */
TWILL_API enum twill_status twill_mem_free(void *ptr);

/**
 * Register memory with a communicator, so that peers may reach it directly. A collective: every
 * rank calls it, each with its own memory; it takes its place in the order of calls and blocks.
 * On the host direct paths will be taken only for buffers that every rank has registered; this
 * version stages all. On devices they are taken, between processes too: a sum of more than some
 * hundred KiB, whose buffers some ranks have registered and others not, is TWILL_ERR_MISMATCH.
 *
 * @param comm   a ready communicator, nothing queued on which is waited for first
 * @param ptr    start, borrowed until deregistered; from twill_mem_alloc, or inside such memory; on
 *               a device, of that device, from cudaMalloc too, or mapped by cuMemMap: any number of
 *               pieces side by side. All of it stays mapped until it is deregistered; peers keep
 *               the memory itself from being freed as long
 * @param bytes  at least 1; may differ from rank to rank
 * @param reg    out, the registration; not NULL
 *
 * @return TWILL_OK           registered on every rank
 *         TWILL_ERR_INVALID  an argument is NULL or 0: found before other ranks are met, who wait.
 *                            On devices also, told to every rank, memory that is not the device's
 *         TWILL_ERR_USAGE    a group is open; or comm is not ready
 *         TWILL_ERR_UNSUPPORTED  memory of the ranks that the sentence names cannot be mapped: it
 *                            does not come from twill_mem_alloc. On devices: nor from cudaMalloc,
 *                            nor from cuMemCreate with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
 *                            between processes memory of pools (cudaMallocAsync) never can.
 *                            Every rank gets this and none has registered; such memory is staged or
 *                            copied by the kernel (CMA)
 *         otherwise as a collective. comm stays healthy after the above.
 *
 * Threads: one at a time for comm. Blocks for the other ranks.
 */
TWILL_API enum twill_status twill_register(twill_comm_t comm, void *ptr, size_t bytes,
                                           twill_reg_t *reg);

/**
 * As twill_register, with a promise of the caller's: in each collective whose recvbuf lies in such
 * memory, every rank's recvbuf lies in the same registration, equally far from its start; and where
 * that is an all_to_all, either all ranks are in place or none. Each rank then knows by itself
 * where the others' buffers are, and on devices copy engines serve all_gather, all_to_all (not in
 * place) and broadcast of large blocks, so that no multiprocessor is busy (TWILL_COPY_ENGINE,
 * docs/gpu.md). The sendbuf need not be registered.
 *
 * A broken promise is TWILL_ERR_MISMATCH with the ranks named, and registered memory of all ranks
 * holds anything then. So it may after any other failure of the communicator, an abort too: peers
 * whose calls were under way may still write to it. It is kept, registered or not, until the other
 * ranks have deregistered it or destroyed their communicators, which waits for such calls.
 *
 * @param comm   as for twill_register
 * @param ptr    as for twill_register
 * @param bytes  at least 1; equal on all ranks
 * @param reg    out, the registration, for twill_deregister; not NULL
 *
 * @return TWILL_OK           registered on every rank
 *         TWILL_ERR_INVALID  also, told to every rank: ranks have different bytes, or some called
 *                            twill_register
 *         otherwise as twill_register
 *
 * Threads: one at a time for comm. Blocks for the other ranks.
 */
TWILL_API enum twill_status twill_register_symmetric(twill_comm_t comm, void *ptr, size_t bytes,
                                                     twill_reg_t *reg);

/**
 * End a registration. A collective: every rank calls it, in the same order.
 *
 * @param comm  of twill_register; a failed one is legal: only this rank's side ends then, on a
 *              device once its calls outside graphs have run
 * @param reg   of twill_register or twill_register_symmetric on comm; dead afterwards, unless the
 *              status is TWILL_ERR_INVALID, TWILL_ERR_USAGE or TWILL_ERR_BUSY
 *
 * @return TWILL_OK           ended on every rank
 *         TWILL_ERR_INVALID  comm is no communicator or reg is none of its registrations
 *         TWILL_ERR_USAGE    a group is open; or comm is not ready
 *         otherwise as a collective
 *
 * Threads: one at a time for comm. Blocks for the other ranks.
 */
TWILL_API enum twill_status twill_deregister(twill_comm_t comm, twill_reg_t reg);

#ifdef __cplusplus
}
#endif
#endif
