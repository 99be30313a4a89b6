/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: copy.cu, for the processor. Never knows: more. */
#include "emu/device.h"

#include "device/cuda/copy.cu"
