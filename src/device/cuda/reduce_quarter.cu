/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the summing kernels of floats of 8 bits. Never knows: how they work. */
#include "device/cuda/reduce.cuh"

TW_GK_REDUCE_KERNELS(float8e4m3, tw_float8e4m3)
TW_GK_REDUCE_KERNELS(float8e5m2, tw_float8e5m2)
