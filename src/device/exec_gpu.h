/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a plan and a call of it are told to the kernels that run any plan.
 * Never knows: CUDA, whose memory it is. */
#ifndef TW_DEVICE_EXEC_GPU_H
#define TW_DEVICE_EXEC_GPU_H

#include "device/cuda/wire.h"
#include "device/exec.h"

/** Bytes of one rank's program, and of what its lanes keep, in memory of its device. */
size_t tw_exec_gpu_bytes(const struct tw_plan *plan, int rank);
/**
 * Fill an image of them, as it has to lie at `at` in the device's memory.
 *
 * @param image  out, [tw_exec_gpu_bytes], aligned as by malloc; begins with a struct tw_gk_program
 */
void tw_exec_gpu_program(const struct tw_plan *plan, int rank, uint64_t at, void *image);
/**
 * Bind a call, as tw_exec_start does it, for an executor of a chan whose FIFOs and scratch are as
 * large as those of the rank's memory. Nothing is run, the scalar is not looked at.
 *
 * @param exec    idle
 * @param layout  of the ranks' memory, with a part for plans
 * @param out     all but its program
 * @return as tw_exec_start; ERR_UNSUPPORTED a call with more slices than kernels count
 */
enum twill_status tw_exec_gpu_bind(struct tw_exec *exec, const struct tw_exec_call *call,
                                   const struct tw_gk_layout *layout, struct tw_gk_plan *out);

#endif
