/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a kernel is started. Never knows: which one a call should have. */
#ifndef TW_DEVICE_CUDA_LAUNCH_H
#define TW_DEVICE_CUDA_LAUNCH_H

#include <stdbool.h>

#include "base/status.h"
#include "device/cuda/wire.h"
#include "twill.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TW_GK_THREADS_MOST 512      /* of a block */
#define TW_GK_LINE_THREADS_MOST 544 /* and of one by lines */

/** Load every kernel into the device's context, so that no launch has to later. ERR_UNSUPPORTED:
 * the build has no code for the device, or has no CUDA. */
enum twill_status tw_gk_load(int device);

/** Do the kernels by lines, as they are loaded, wait where TW_GK_FOLLOWS lets them begin before the
 * one in front of them has ended? Their code has to be made for compute capability 9.0 or later:
 * that the device is, is not enough. */
bool tw_gk_follows(int device);

/**
 * Start a kernel with launch->ranks * launch->blocks blocks on a stream of the device. Nothing is
 * waited for; launch may go when it returns.
 *
 * @param launch   of TW_GK_SCATTER_V and TW_GK_MOVE_V: the head of a struct tw_gk_launch_v; of
 *                 TW_GK_P2P_FEW and TW_GK_P2P_MANY: of a struct tw_gk_launch_p2p; of TW_GK_PLAN: of
 *                 a struct tw_gk_launch_plan
 * @param type     of the sums, of a plan whatever it does; not looked at where nothing is summed
 * @param launch->early  TW_GK_FOLLOWS only while a graph is captured, behind a kernel that leads,
 * and where tw_gk_follows
 * @param threads  of a block: a multiple of 32, at least the number of ranks; 512 for rings
 * @param done     event that comes when its blocks have ended; NULL: none. Not while a graph is
 *                 captured
 */
enum twill_status tw_gk_launch(int device, enum tw_gk_kernel kernel, twill_type_t type,
                               const struct tw_gk_launch *launch, uint32_t threads, void *stream,
                               void *done);

#ifdef __cplusplus
}
#endif

#endif
