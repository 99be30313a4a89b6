/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the summing kernels of floats of 16 bits. Never knows: how they work. */
#include "device/cuda/reduce.cuh"

TW_GK_REDUCE_KERNELS(float16, tw_float16)
TW_GK_REDUCE_KERNELS(bfloat16, tw_bfloat16)
