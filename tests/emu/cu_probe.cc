/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: probe.cu, for the processor. Never knows: more. */
#include "emu/runtime.h" /* the system's headers come before CUDA's words */

#include "emu/device.h"

#include "device/cuda/probe.cu"
