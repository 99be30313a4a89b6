/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of NCCL 2.27 as twill serves it: libnccl.so.2 beside this file. A program that
 * includes it builds for either library.
 *
 * Knows: names, types, values and layouts that NCCL's documentation and binary interface fix.
 * Never knows: twill. docs/nccl.md says what each function does here and what differs.
 *
 * Valid C99 and C++11. Where CUDA's headers are at hand they are included, as programs written for
 * NCCL expect; elsewhere cudaStream_t is declared as CUDA does, and only NULL is of use.
 */
#ifndef TWILL_NCCL_H
#define TWILL_NCCL_H

#include <limits.h>
#include <stddef.h>

#if defined(__has_include)
#if __has_include(<cuda_runtime.h>)
#define TWILL_NCCL_CUDA 1
#endif
#endif
#ifdef TWILL_NCCL_CUDA
#include <cuda_runtime.h>
#ifdef __cplusplus
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#undef TWILL_NCCL_CUDA
#else
typedef struct CUstream_st *cudaStream_t;
#endif

/* The library that runs reports a version of its own (ncclGetVersion). */
#define NCCL_MAJOR 2
#define NCCL_MINOR 27
#define NCCL_PATCH 7
#define NCCL_SUFFIX ""
/* Up to 2.8 the parts were two and one digits apart, from 2.9 on they are two and two. */
#define NCCL_VERSION(major, minor, patch)                                                          \
    ((major) * ((major) <= 2 && (minor) <= 8 ? 1000 : 10000) + (minor)*100 + (patch))
#define NCCL_VERSION_CODE 22707

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow *ncclWindow_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclNumResults = 8
} ncclResult_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
/* Values from ncclNumOps on are handles of ncclRedOpCreatePreMulSum. */
typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5,
    ncclMaxRedOp = INT_MAX
} ncclRedOp_t;

typedef enum {
    ncclScalarDevice = 0,       /* read from the pointer, when the operation runs */
    ncclScalarHostImmediate = 1 /* read from the pointer, in the call that creates the operation */
} ncclScalarResidence_t;

/* ---- structs that tell which version filled them ----------------------------------------------
 */

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT (-1.0f)

#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01

typedef struct ncclConfig_v22700 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int trafficClass;
    const char *commName;
    int collnetEnable;
    int CTAPolicy;
    int shrinkShare;
    int nvlsCTAs;
} ncclConfig_t;
#define NCCL_CONFIG_INITIALIZER                                                                    \
    {                                                                                              \
        sizeof(ncclConfig_t), 0xcafebeefu, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT,               \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                   \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                   \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                   \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT                                           \
    }

typedef struct ncclSimInfo_v22200 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    float estimatedTime; /* microseconds */
} ncclSimInfo_t;
#define NCCL_SIM_INFO_INITIALIZER                                                                  \
    {                                                                                              \
        sizeof(ncclSimInfo_t), 0x74685283u, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT                    \
    }

/* ---- functions ---------------------------------------------------------------------------------
 */

/* Each is exported twice, so that a tool may take ncclX over and call pncclX. */
#if defined(__GNUC__)
#define TWILL_NCCL_EXPORT __attribute__((visibility("default")))
#else
#define TWILL_NCCL_EXPORT
#endif
#define TWILL_NCCL_API(type, name, parameters)                                                     \
    TWILL_NCCL_EXPORT type nccl##name parameters;                                                  \
    TWILL_NCCL_EXPORT type pnccl##name parameters

/* The library. */
TWILL_NCCL_API(ncclResult_t, GetVersion, (int *version));
TWILL_NCCL_API(const char *, GetErrorString, (ncclResult_t result));
TWILL_NCCL_API(const char *, GetLastError, (ncclComm_t comm));
TWILL_NCCL_API(void, ResetDebugInit, (void));

/* Communicators: made by all of their ranks, each on its thread's current device. */
TWILL_NCCL_API(ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId));
TWILL_NCCL_API(ncclResult_t, CommInitRank,
               (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank));
TWILL_NCCL_API(ncclResult_t, CommInitAll, (ncclComm_t * comm, int ndev, const int *devlist));
TWILL_NCCL_API(ncclResult_t, CommInitRankConfig,
               (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank,
                ncclConfig_t *config));
TWILL_NCCL_API(ncclResult_t, CommInitRankScalable,
               (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
                ncclConfig_t *config));
TWILL_NCCL_API(ncclResult_t, CommSplit,
               (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config));
TWILL_NCCL_API(ncclResult_t, CommShrink,
               (ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
                ncclConfig_t *config, int shrinkFlags));
TWILL_NCCL_API(ncclResult_t, CommFinalize, (ncclComm_t comm));
TWILL_NCCL_API(ncclResult_t, CommDestroy, (ncclComm_t comm));
TWILL_NCCL_API(ncclResult_t, CommAbort, (ncclComm_t comm));
TWILL_NCCL_API(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t *asyncError));
TWILL_NCCL_API(ncclResult_t, CommCount, (const ncclComm_t comm, int *count));
TWILL_NCCL_API(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int *device));
TWILL_NCCL_API(ncclResult_t, CommUserRank, (const ncclComm_t comm, int *rank));

/* Memory. */
TWILL_NCCL_API(ncclResult_t, MemAlloc, (void **ptr, size_t size));
TWILL_NCCL_API(ncclResult_t, MemFree, (void *ptr));
TWILL_NCCL_API(ncclResult_t, CommRegister,
               (const ncclComm_t comm, void *buff, size_t size, void **handle));
TWILL_NCCL_API(ncclResult_t, CommDeregister, (const ncclComm_t comm, void *handle));
TWILL_NCCL_API(ncclResult_t, CommWindowRegister,
               (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags));
TWILL_NCCL_API(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t win));

/* Groups: calls of one thread that count as simultaneous. */
TWILL_NCCL_API(ncclResult_t, GroupStart, (void));
TWILL_NCCL_API(ncclResult_t, GroupEnd, (void));
TWILL_NCCL_API(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * simInfo));

/* Reductions. */
TWILL_NCCL_API(ncclResult_t, RedOpCreatePreMulSum,
               (ncclRedOp_t * op, void *scalar, ncclDataType_t datatype,
                ncclScalarResidence_t residence, ncclComm_t comm));
TWILL_NCCL_API(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm));

/* Collectives, and messages between two ranks. The last three are of NCCL 2.28. */
TWILL_NCCL_API(ncclResult_t, AllReduce,
               (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream));
TWILL_NCCL_API(ncclResult_t, Reduce,
               (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream));
TWILL_NCCL_API(ncclResult_t, Bcast,
               (void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                cudaStream_t stream));
TWILL_NCCL_API(ncclResult_t, Broadcast,
               (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                int root, ncclComm_t comm, cudaStream_t stream));
TWILL_NCCL_API(ncclResult_t, ReduceScatter,
               (const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream));
TWILL_NCCL_API(ncclResult_t, AllGather,
               (const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                ncclComm_t comm, cudaStream_t stream));
TWILL_NCCL_API(ncclResult_t, Send,
               (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
                ncclComm_t comm, cudaStream_t stream));
TWILL_NCCL_API(ncclResult_t, Recv,
               (void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                cudaStream_t stream));
TWILL_NCCL_API(ncclResult_t, AlltoAll,
               (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                ncclComm_t comm, cudaStream_t stream));
TWILL_NCCL_API(ncclResult_t, Gather,
               (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                int root, ncclComm_t comm, cudaStream_t stream));
TWILL_NCCL_API(ncclResult_t, Scatter,
               (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                int root, ncclComm_t comm, cudaStream_t stream));

#undef TWILL_NCCL_API
#undef TWILL_NCCL_EXPORT

#ifdef __cplusplus
}
#endif
#endif
