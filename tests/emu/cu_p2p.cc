/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: p2p.cu, for the processor. Never knows: more. */
#include "emu/device.h"

#include "device/cuda/p2p.cu"
