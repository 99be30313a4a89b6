/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twill: collective communication between the ranks of a job.
 *
 * Knows: what a caller sees. Never knows: how it is done.
 *
 * Every call returns a status: 0 done, positive still in progress, negative an error. After an
 * error twill_last_error() has a sentence that says what and why.
 *
 * Threads: one thread at a time for each communicator (TWILL_ERR_BUSY when violated); different
 * communicators are free of each other. twill_comm_abort, twill_comm_async_error and
 * twill_last_error may be called from any thread at any time while the communicator exists.
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
    /* the other ranks; the communicator is failed and accepts abort and destroy only */           \
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

/** Name of a status, for instance "TWILL_ERR_PEER"; "TWILL_UNKNOWN" for any other value. */
TWILL_API const char *twill_status_string(enum twill_status status);

/* ---- types and reductions ----------------------------------------------------------------- */

/* X(name, value, bytes). Values are frozen. Those that a build does not serve are refused by
 * the calls with TWILL_ERR_UNSUPPORTED. */
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

typedef enum {
    TWILL_SUM = 0,
    TWILL_PROD = 1,
    TWILL_MAX = 2,
    TWILL_MIN = 3,
    TWILL_AVG = 4, /* sum, then divided by the number of ranks; integers truncate toward zero */
} twill_redop_t;

/* ---- handles ------------------------------------------------------------------------------ */

typedef struct twill_comm *twill_comm_t; /* one rank's place in one group of ranks */
typedef void *twill_stream_t;            /* host: a stream from twill_stream_create, NULL blocks */
typedef struct twill_reg *twill_reg_t;   /* memory registered with a communicator */

#define TWILL_UNIQUE_ID_BYTES 128
/* Holds the job's secret key: pass it to the ranks on a channel that others cannot read. */
typedef struct {
    char bytes[TWILL_UNIQUE_ID_BYTES];
} twill_unique_id;

#define TWILL_DEVICE_HOST (-1)
#define TWILL_UNSET INT32_MIN /* "use the parameter's value" in a config field */

#define TWILL_CONFIG_MAGIC 0x7477636fu
/* Append only. A field newer than the caller's version is taken as unset. */
struct twill_config {
    size_t size;           /* sizeof(struct twill_config) of the caller */
    uint32_t magic;        /* TWILL_CONFIG_MAGIC */
    uint32_t version;      /* TWILL_VERSION of the caller */
    int32_t blocking;      /* 1 (default): calls wait; 0: init and finalize may return INPROGRESS */
    int32_t device;        /* TWILL_DEVICE_HOST (default); CUDA device numbers come with CUDA */
    int32_t deterministic; /* 0 (default) or 1; the same on all ranks */
    int32_t
        channels; /* lanes of transfer a plan may use; 0 or unset: chosen; the same on all ranks */
    const char *name; /* borrowed during the call; appears in messages; NULL: a number */
};
#define TWILL_CONFIG_INIT                                                                          \
    {                                                                                              \
        sizeof(struct twill_config), TWILL_CONFIG_MAGIC, TWILL_VERSION, TWILL_UNSET, TWILL_UNSET,  \
            TWILL_UNSET, TWILL_UNSET, NULL                                                         \
    }

/* ---- library ------------------------------------------------------------------------------ */

/** Version of the library that runs, in the form of TWILL_VERSION. @param version out, not NULL */
TWILL_API enum twill_status twill_version(int *version);

/**
 * What the calling thread's last error on a communicator was.
 *
 * @param comm  a communicator, or NULL for errors of calls that have none (init, mem, config)
 * @return a sentence, never NULL, "" when there was none; valid until the thread's next call that
 *         fails on the same communicator. A communicator's asynchronous error is found here too.
 */
TWILL_API const char *twill_last_error(twill_comm_t comm);

/**
 * Set a parameter by its name, as TWILL_<NAME>=value in the environment would. Stronger than the
 * environment.
 *
 * @return TWILL_OK; TWILL_ERR_INVALID unknown name (the nearest one is named) or bad value;
 *         TWILL_ERR_USAGE a communicator was already made in this process
 */
TWILL_API enum twill_status twill_param_set(const char *name, const char *value);

/* ---- communicators ------------------------------------------------------------------------ */

TWILL_API enum twill_status twill_get_unique_id(twill_unique_id *id);
TWILL_API enum twill_status twill_comm_init(twill_comm_t *comm, int size, const twill_unique_id *id,
                                            int rank, const struct twill_config *config);
TWILL_API enum twill_status twill_comm_init_env(twill_comm_t *comm,
                                                const struct twill_config *config);
TWILL_API enum twill_status twill_comm_init_all(twill_comm_t *comms, int count, const int *devices,
                                                const struct twill_config *config);
TWILL_API enum twill_status twill_comm_finalize(twill_comm_t comm);
TWILL_API enum twill_status twill_comm_destroy(twill_comm_t comm);
TWILL_API enum twill_status twill_comm_abort(twill_comm_t comm);
TWILL_API enum twill_status twill_comm_async_error(twill_comm_t comm, enum twill_status *status);
TWILL_API enum twill_status twill_comm_rank(twill_comm_t comm, int *rank);
TWILL_API enum twill_status twill_comm_size(twill_comm_t comm, int *size);
TWILL_API enum twill_status twill_comm_device(twill_comm_t comm, int *device);

/* ---- streams and groups ------------------------------------------------------------------- */

TWILL_API enum twill_status twill_stream_create(twill_stream_t *stream);
TWILL_API enum twill_status twill_stream_destroy(twill_stream_t stream);
TWILL_API enum twill_status twill_stream_synchronize(twill_stream_t stream);
TWILL_API enum twill_status twill_stream_query(twill_stream_t stream);
TWILL_API enum twill_status twill_group_start(void);
TWILL_API enum twill_status twill_group_end(void);

/* ---- collectives and point to point -------------------------------------------------------- */

/* Extended calls take one; NULL is legal everywhere. */
struct twill_call_attr;

TWILL_API enum twill_status twill_all_reduce(const void *sendbuf, void *recvbuf, size_t count,
                                             twill_type_t type, twill_redop_t op, twill_comm_t comm,
                                             twill_stream_t stream);
TWILL_API enum twill_status twill_reduce(const void *sendbuf, void *recvbuf, size_t count,
                                         twill_type_t type, twill_redop_t op, int root,
                                         twill_comm_t comm, twill_stream_t stream);
TWILL_API enum twill_status twill_broadcast(const void *sendbuf, void *recvbuf, size_t count,
                                            twill_type_t type, int root, twill_comm_t comm,
                                            twill_stream_t stream);
TWILL_API enum twill_status twill_reduce_scatter(const void *sendbuf, void *recvbuf,
                                                 size_t recvcount, twill_type_t type,
                                                 twill_redop_t op, twill_comm_t comm,
                                                 twill_stream_t stream);
TWILL_API enum twill_status twill_all_gather(const void *sendbuf, void *recvbuf, size_t sendcount,
                                             twill_type_t type, twill_comm_t comm,
                                             twill_stream_t stream);
TWILL_API enum twill_status twill_all_to_all(const void *sendbuf, void *recvbuf, size_t count,
                                             twill_type_t type, twill_comm_t comm,
                                             twill_stream_t stream);
TWILL_API enum twill_status twill_barrier(twill_comm_t comm, twill_stream_t stream);
TWILL_API enum twill_status twill_send(const void *sendbuf, size_t count, twill_type_t type,
                                       int peer, twill_comm_t comm, twill_stream_t stream);
TWILL_API enum twill_status twill_recv(void *recvbuf, size_t count, twill_type_t type, int peer,
                                       twill_comm_t comm, twill_stream_t stream);

/* ---- memory ------------------------------------------------------------------------------- */

TWILL_API enum twill_status twill_mem_alloc(void **ptr, size_t bytes, int device);
TWILL_API enum twill_status twill_mem_free(void *ptr);
TWILL_API enum twill_status twill_register(twill_comm_t comm, void *ptr, size_t bytes,
                                           twill_reg_t *reg);
TWILL_API enum twill_status twill_deregister(twill_comm_t comm, twill_reg_t reg);

#ifdef __cplusplus
}
#endif
#endif
