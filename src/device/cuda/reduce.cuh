/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the kernels of a type, for the tables: sums by lines, by rings, direct; any plan.
 * Never knows: which types there are, how blocks find each other. */
#ifndef TW_DEVICE_CUDA_REDUCE_CUH
#define TW_DEVICE_CUDA_REDUCE_CUH

#include "device/cuda/number.cuh"
#include "device/cuda/plan.cuh"
#include "device/cuda/reduce_direct.cuh"
#include "device/cuda/reduce_line.cuh"
#include "device/cuda/reduce_ring.cuh"

/* The kernels of one type, for the table. */
#define TW_GK_REDUCE_KERNELS(name, N)                                                              \
    const struct tw_gk_reduce_kernels tw_gk_reduce_##name = {tw_line_reduce<N>,                    \
                                                             tw_ring_reduce<N, TW_SHARE_BLOCKS>,   \
                                                             tw_ring_reduce<N, TW_SHARE_ALL>,      \
                                                             tw_direct_reduce<N, false>,           \
                                                             tw_direct_reduce<N, true>,            \
                                                             tw_ring_reduce_v<N>,                  \
                                                             tw_plan_run<N>};

#endif
