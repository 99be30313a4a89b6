/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the summing kernels of integers of 8 and 32 bits. Never knows: how they work. */
#include "device/cuda/reduce.cuh"

TW_GK_REDUCE_KERNELS(int8, tw_int8)
TW_GK_REDUCE_KERNELS(uint8, tw_uint8)
TW_GK_REDUCE_KERNELS(int32, tw_int32)
TW_GK_REDUCE_KERNELS(uint32, tw_uint32)
