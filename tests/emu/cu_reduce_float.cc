/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: reduce_float.cu, for the processor. Never knows: more. */
#include "emu/device.h"

#include "device/cuda/reduce_float.cu"
