/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: move.cu, for the processor. Never knows: more. */
#include "emu/device.h"

#include "device/cuda/move.cu"
