/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that nccl.h is C++ too. Never knows: what the program does. */
#include "basic.c"
