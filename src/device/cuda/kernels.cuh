/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which kernels there are. Never knows: what they do. */
#ifndef TW_DEVICE_CUDA_KERNELS_CUH
#define TW_DEVICE_CUDA_KERNELS_CUH

#include "device/cuda/wire.h"

#define TW_GK_THREADS 512      /* most of a block */
#define TW_GK_LINE_THREADS 544 /* by lines: as many that move data, and the clerks */

typedef void (*tw_gk_kernel_fn)(struct tw_gk_launch launch);
typedef void (*tw_gk_kernel_v_fn)(struct tw_gk_launch_v launch);
typedef void (*tw_gk_kernel_plan_fn)(struct tw_gk_launch_plan launch);

/* Of one element type. */
struct tw_gk_reduce_kernels {
    tw_gk_kernel_fn line, scatter, all, direct_scatter, direct_all;
    tw_gk_kernel_v_fn scatter_v;
    tw_gk_kernel_plan_fn plan;
};

__global__ void tw_gk_line_move(const __grid_constant__ struct tw_gk_launch launch);
__global__ void tw_gk_ring_move(const __grid_constant__ struct tw_gk_launch launch);
__global__ void tw_gk_move_v(const __grid_constant__ struct tw_gk_launch_v launch);
__global__ void tw_gk_copy_begin(const __grid_constant__ struct tw_gk_launch launch);
__global__ void tw_gk_copy_end(const __grid_constant__ struct tw_gk_launch launch);
__global__ void tw_gk_copy_own(const __grid_constant__ struct tw_gk_launch launch);

/* The front of a struct tw_gk_launch_p2p. */
struct tw_gk_launch_few {
    struct tw_gk_launch launch;
    uint32_t ops;
    struct tw_gk_op op[TW_GK_OPS_FEW];
};
__global__ void tw_gk_p2p_few(const __grid_constant__ struct tw_gk_launch_few launch);
__global__ void tw_gk_p2p_many(const __grid_constant__ struct tw_gk_launch_p2p launch);

struct tw_gk_probe;
__global__ void tw_gk_probe_kernel(const __grid_constant__ struct tw_gk_probe probe);

/* X(name, twill_type_t) */
#define TW_GK_TYPES(X)                                                                             \
    X(int8, TWILL_INT8)                                                                            \
    X(uint8, TWILL_UINT8)                                                                          \
    X(int32, TWILL_INT32)                                                                          \
    X(uint32, TWILL_UINT32)                                                                        \
    X(int64, TWILL_INT64)                                                                          \
    X(uint64, TWILL_UINT64)                                                                        \
    X(float16, TWILL_FLOAT16)                                                                      \
    X(float32, TWILL_FLOAT32)                                                                      \
    X(float64, TWILL_FLOAT64)                                                                      \
    X(bfloat16, TWILL_BFLOAT16)                                                                    \
    X(float8e4m3, TWILL_FLOAT8E4M3)                                                                \
    X(float8e5m2, TWILL_FLOAT8E5M2)

#define TW_GK_TYPE_KERNELS(name, type) extern const struct tw_gk_reduce_kernels tw_gk_reduce_##name;
TW_GK_TYPES(TW_GK_TYPE_KERNELS)
#undef TW_GK_TYPE_KERNELS

#endif
