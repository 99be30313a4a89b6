/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what fake_nccl.c has of fake_cuda.c. Never knows: what either fakes. */
#ifndef TW_TESTS_TOOLS_FAKE_CUDA_H
#define TW_TESTS_TOOLS_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>

/** run(a copy of argument) in the order of stream; again with each replay when it captures. */
__attribute__((visibility("default"))) bool fake_enqueue(void *stream, void (*run)(void *argument),
                                                         const void *argument, size_t bytes);

#endif
