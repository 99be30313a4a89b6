/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: cuda_runtime.h by its other name. Never knows: more. */
#include "emu/cuda_runtime.h"
