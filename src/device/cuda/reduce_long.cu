/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the summing kernels of integers of 64 bits. Never knows: how they work. */
#include "device/cuda/reduce.cuh"

TW_GK_REDUCE_KERNELS(int64, tw_int64)
TW_GK_REDUCE_KERNELS(uint64, tw_uint64)
