/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that this build has no CUDA. Never knows: anything else. perf_place_check ends a run that
 * would come here. */
#include "config.h"

#include "perf_cuda.h"

#include <stdio.h>

static bool none(void)
{
    fputs("twill-perf: this build has no GPU support\n", stderr);
    return false;
}

bool perf_cuda_built(void) { return false; }

int perf_cuda_count(const char **why)
{
    *why = "this build has no GPU support";
    return 0;
}

void perf_cuda_name(int device, char *text, size_t bytes)
{
    (void)device;
    snprintf(text, bytes, "none");
}

bool perf_cuda_use(int device)
{
    (void)device;
    return none();
}

bool perf_cuda_alloc(int device, size_t bytes, void **ptr)
{
    (void)device;
    (void)bytes;
    (void)ptr;
    return none();
}

bool perf_cuda_free(int device, void *ptr)
{
    (void)device;
    (void)ptr;
    return none();
}

bool perf_cuda_copy(void *dst, const void *src, size_t bytes, void *stream)
{
    (void)dst;
    (void)src;
    (void)bytes;
    (void)stream;
    return none();
}

bool perf_cuda_stream_create(int device, bool first, void **stream)
{
    (void)device;
    (void)first;
    (void)stream;
    return none();
}

bool perf_cuda_stream_destroy(void *stream)
{
    (void)stream;
    return none();
}

bool perf_cuda_stream_wait(void *stream)
{
    (void)stream;
    return none();
}

bool perf_cuda_event_create(int device, void **event)
{
    (void)device;
    (void)event;
    return none();
}

bool perf_cuda_event_destroy(void *event)
{
    (void)event;
    return none();
}

bool perf_cuda_event_record(void *event, void *stream)
{
    (void)event;
    (void)stream;
    return none();
}

bool perf_cuda_event_await(void *event, void *stream)
{
    (void)event;
    (void)stream;
    return none();
}

bool perf_cuda_event_us(void *begin, void *end, double *us)
{
    (void)begin;
    (void)end;
    (void)us;
    return none();
}

bool perf_cuda_capture_begin(void *stream)
{
    (void)stream;
    return none();
}

bool perf_cuda_capture_end(void *stream, void **graph)
{
    (void)stream;
    (void)graph;
    return none();
}

bool perf_cuda_graph_launch(void *graph, void *stream)
{
    (void)graph;
    (void)stream;
    return none();
}

bool perf_cuda_graph_destroy(void *graph)
{
    (void)graph;
    return none();
}

bool perf_cuda_product_fill(int device, const struct perf_product *product, void *stream)
{
    (void)device;
    (void)product;
    (void)stream;
    return none();
}

bool perf_cuda_product_start(int device, const struct perf_product *product, void *stream)
{
    (void)device;
    (void)product;
    (void)stream;
    return none();
}

bool perf_cuda_product_compare(int device, const struct perf_product *product, void *stream)
{
    (void)device;
    (void)product;
    (void)stream;
    return none();
}
