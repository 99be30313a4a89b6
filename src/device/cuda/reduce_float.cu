/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the summing kernels of floats of 32 and 64 bits. Never knows: how they work. */
#include "device/cuda/reduce.cuh"

TW_GK_REDUCE_KERNELS(float32, tw_float32)
TW_GK_REDUCE_KERNELS(float64, tw_float64)
