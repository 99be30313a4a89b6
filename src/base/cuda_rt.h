/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how the files that call CUDA's runtime share a device and an error.
 * Never knows: what is called. C11 and C++17, in a build with CUDA. */
#ifndef TW_BASE_CUDA_RT_H
#define TW_BASE_CUDA_RT_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/cuda.h"

/* What tw_cuda_enter changed of the calling thread. */
struct tw_cuda_place {
    bool pushed, relaxed;
    enum cudaStreamCaptureMode capture;
};

/**
 * Make device the calling thread's current one until tw_cuda_leave. The thread's own choice is
 * covered and not replaced: a thread that never chose a device has not got one afterwards, and no
 * context comes into being on device 0 because of it. Nor does a graph that anyone captures forbid
 * what is called in between.
 *
 * @return TWILL_OK: tw_cuda_leave is due; ERR_UNSUPPORTED as tw_cuda_ready; ERR_INVALID there is no
 * such device; ERR_SYSTEM
 */
enum twill_status tw_cuda_enter(int device, struct tw_cuda_place *place);
/** The same for what a capture never forbids, since it is captured or looks only: quicker. */
enum twill_status tw_cuda_enter_captured(int device, struct tw_cuda_place *place);
/** For calls that need some device, whichever: one that is in use already. */
enum twill_status tw_cuda_enter_any(struct tw_cuda_place *place);
void tw_cuda_leave(const struct tw_cuda_place *place);

/** A function of the driver in the form that it has had since CUDA 12; NULL: it has none. */
void *tw_cuda_driver_entry(const char *name);

/** tw_fail with the call and CUDA's word for the error, which is cleared. device -1: none is named.
 * @return ERR_NOMEM out of memory, else ERR_SYSTEM; OK for cudaSuccess, of which nothing is said */
enum twill_status tw_cuda_check(cudaError_t error, const char *call, int device);
/** The same where nobody can be told: a warning in the log. */
void tw_cuda_note(cudaError_t error, const char *call, int device);
/** As tw_cuda_check, for the driver, which has numbers. */
enum twill_status tw_cuda_driver_check(CUresult result, const char *call, int device);

#ifdef __cplusplus
}
#endif
#endif
