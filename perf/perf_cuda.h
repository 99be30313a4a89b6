/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what twill-perf asks of CUDA's runtime. Never knows: ranks, cases, what is measured.
 *
 * cuda.c in a build with CUDA, cuda_none.c in one without. Handles are the runtime's own. A call
 * that fails says so on standard error and returns false. The calling thread's device may change.
 */
#ifndef TW_PERF_CUDA_H
#define TW_PERF_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include "product.h"

/** This build can drive GPUs. */
bool perf_cuda_built(void);
/** Devices there are. 0: *why says why, in CUDA's words; static */
int perf_cuda_count(const char **why);
void perf_cuda_name(int device, char *text, size_t bytes);
bool perf_cuda_use(int device);

bool perf_cuda_alloc(int device, size_t bytes, void **ptr);
bool perf_cuda_free(int device, void *ptr);
/** In stream order, any memory to any; host memory must stay until the stream was waited for. */
bool perf_cuda_copy(void *dst, const void *src, size_t bytes, void *stream);

/** Does not wait for the default stream. first: its kernels' blocks go before those of streams
 * without it that are not running yet. */
bool perf_cuda_stream_create(int device, bool first, void **stream);
bool perf_cuda_stream_destroy(void *stream);
bool perf_cuda_stream_wait(void *stream);

bool perf_cuda_event_create(int device, void **event);
bool perf_cuda_event_destroy(void *event);
bool perf_cuda_event_record(void *event, void *stream);
/** What comes later on stream starts after the event. */
bool perf_cuda_event_await(void *event, void *stream);
/** Both recorded and reached. */
bool perf_cuda_event_us(void *begin, void *end, double *us);

/** Calls on stream, and on streams that await its events, are noted in a graph. */
bool perf_cuda_capture_begin(void *stream);
/** Ready to be launched. On failure nothing is left, and stream captures no more. */
bool perf_cuda_capture_end(void *stream, void **graph);
bool perf_cuda_graph_launch(void *graph, void *stream);
bool perf_cuda_graph_destroy(void *graph);

/* As in product.h; stream is of the device that the product's memory is of. */
bool perf_cuda_product_fill(int device, const struct perf_product *product, void *stream);
bool perf_cuda_product_start(int device, const struct perf_product *product, void *stream);
bool perf_cuda_product_compare(int device, const struct perf_product *product, void *stream);

#endif
