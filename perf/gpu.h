/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what place_cuda.c has of gpu.c. Never knows: CUDA. */
#ifndef TW_PERF_GPU_H
#define TW_PERF_GPU_H

#include "team.h"

/** What create has made of it, destroy takes. */
bool perf_gpu_buffers_create(const struct perf_team *team, struct perf_rank *rank);
bool perf_gpu_buffers_destroy(const struct perf_team *team, const struct perf_rank *rank);

/* The place's, in the order of the rank's stream, and waited for. */
bool perf_gpu_fill(const struct perf_rank *rank, const struct perf_case *c);
bool perf_gpu_put(const struct perf_rank *rank, const struct perf_case *c);
bool perf_gpu_get(const struct perf_rank *rank, const struct perf_case *c);

#endif
