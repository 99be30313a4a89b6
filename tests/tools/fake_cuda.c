/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what perf/perf_cuda.h promises, on host memory: two devices, streams that run at once,
 * graphs that note what is enqueued. Never knows: CUDA.
 *
 * A matrix product takes PRODUCT_US and is one word of its output, which FAKE_CUDA=wrong makes
 * wrong. perf/twill-perf is built with it as tests/tools/perf_fake, so that what it does with GPUs
 * is tested where there are none. One thread only. fake_nccl.c enqueues its calls here. */
#include "config.h"

#include "perf_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_cuda.h"

#define MAX_NOTED 4096
#define PRODUCT_US 50

struct noted {
    void (*run)(void *argument);
    void *argument; /* owned */
};

struct fake_graph {
    struct noted noted[MAX_NOTED];
    int count;
};

struct fake_stream {
    struct fake_graph *graph; /* while it captures */
    double late_us;           /* its events are so much later */
    bool joined;              /* it captures for another one, whose graph it is */
};

struct fake_event {
    struct fake_stream *stream;
    double us;
    bool noted; /* recorded in a capture: it is no time */
};

static int live; /* handles and memory */

static bool fail(const char *what)
{
    fprintf(stderr, "fake cuda: %s\n", what);
    return false;
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

bool fake_enqueue(void *stream, void (*run)(void *argument), const void *argument, size_t bytes)
{
    struct fake_stream *to = stream;
    void *copy = malloc(bytes);
    if (!copy)
        return fail("no memory");
    memcpy(copy, argument, bytes);
    if (!to->graph) {
        run(copy);
        free(copy);
        return true;
    }
    if (to->graph->count == MAX_NOTED)
        return fail("the graph is full");
    to->graph->noted[to->graph->count++] = (struct noted){run, copy};
    return true;
}

bool perf_cuda_built(void) { return true; }

int perf_cuda_count(const char **why)
{
    *why = "";
    return 2;
}

void perf_cuda_name(int device, char *text, size_t bytes)
{
    snprintf(text, bytes, "fake %d", device);
}

bool perf_cuda_use(int device) { return device == 0 || device == 1 || fail("no such device"); }

bool perf_cuda_alloc(int device, size_t bytes, void **ptr)
{
    *ptr = malloc(bytes);
    live += *ptr != NULL;
    return perf_cuda_use(device) && *ptr;
}

bool perf_cuda_free(int device, void *ptr)
{
    free(ptr);
    live--;
    return perf_cuda_use(device);
}

struct copy {
    void *dst;
    const void *src;
    size_t bytes;
};

static void copy_run(void *argument)
{
    const struct copy *copy = argument;
    memcpy(copy->dst, copy->src, copy->bytes);
}

bool perf_cuda_copy(void *dst, const void *src, size_t bytes, void *stream)
{
    struct copy copy = {dst, src, bytes};
    return fake_enqueue(stream, copy_run, &copy, sizeof(copy));
}

bool perf_cuda_stream_create(int device, bool first, void **stream)
{
    struct fake_stream *made = calloc(1, sizeof(*made));
    const char *late = getenv("FAKE_CUDA_LATE_US");
    if (made && first && late)
        made->late_us = atof(late);
    live++;
    *stream = made;
    return perf_cuda_use(device) && made;
}

bool perf_cuda_stream_destroy(void *stream)
{
    struct fake_stream *ended = stream;
    bool good = !ended->graph || fail("a stream ends that captures");
    free(stream);
    live--;
    if (live == 0) /* the last of all: twill-perf ends its streams behind its memory */
        fputs("fake cuda: nothing is left\n", stderr);
    return good;
}

bool perf_cuda_stream_wait(void *stream)
{
    return !((struct fake_stream *)stream)->graph || fail("a stream is waited for that captures");
}

bool perf_cuda_event_create(int device, void **event)
{
    live++;
    *event = calloc(1, sizeof(struct fake_event));
    return perf_cuda_use(device) && *event;
}

bool perf_cuda_event_destroy(void *event)
{
    free(event);
    live--;
    return true;
}

bool perf_cuda_event_record(void *event, void *stream)
{
    struct fake_event *recorded = event;
    recorded->stream = stream;
    recorded->noted = recorded->stream->graph;
    recorded->us = now_us() + recorded->stream->late_us;
    return true;
}

bool perf_cuda_event_await(void *event, void *stream)
{
    struct fake_event *awaited = event;
    struct fake_stream *waiting = stream;
    if (!awaited->stream || !awaited->noted)
        return true;
    if (waiting->graph && waiting->graph != awaited->stream->graph)
        return fail("two captures meet");
    waiting->joined = !waiting->graph || waiting->joined;
    waiting->graph = awaited->stream->graph;
    if (!waiting->joined && awaited->stream->joined) { /* it has come back */
        awaited->stream->graph = NULL;
        awaited->stream->joined = false;
    }
    return true;
}

bool perf_cuda_event_us(void *begin, void *end, double *us)
{
    const struct fake_event *first = begin, *last = end;
    if (!first->stream || !last->stream || first->noted || last->noted)
        return fail("an event is no time");
    *us = last->us - first->us;
    return true;
}

bool perf_cuda_capture_begin(void *stream)
{
    struct fake_stream *begun = stream;
    if (begun->graph)
        return fail("a stream captures already");
    begun->graph = calloc(1, sizeof(*begun->graph));
    live++;
    return begun->graph;
}

bool perf_cuda_capture_end(void *stream, void **graph)
{
    struct fake_stream *ended = stream;
    *graph = ended->graph;
    ended->graph = NULL;
    return (*graph && !ended->joined) || fail("a capture ends that did not begin there");
}

bool perf_cuda_graph_launch(void *graph, void *stream)
{
    struct fake_graph *launched = graph;
    if (((struct fake_stream *)stream)->graph)
        return fail("a graph is launched into a capture");
    for (int i = 0; i < launched->count; i++)
        launched->noted[i].run(launched->noted[i].argument);
    return true;
}

bool perf_cuda_graph_destroy(void *graph)
{
    struct fake_graph *ended = graph;
    for (int i = 0; i < ended->count; i++)
        free(ended->noted[i].argument);
    free(ended);
    live--;
    return true;
}

/* ---- products -------------------------------------------------------------------------------- */

static void product_fill(void *argument)
{
    const struct perf_product *product = argument;
    *(int *)product->a = *(int *)product->b = 3;
    *(int *)product->c = 0;
    *(unsigned *)product->wrong = 0;
}

static void product_run(void *argument)
{
    const struct perf_product *product = argument;
    const char *mode = getenv("FAKE_CUDA");
    double begin_us = now_us();
    *(int *)product->c = *(int *)product->a * *(int *)product->b;
    if (mode && strcmp(mode, "wrong") == 0)
        *(int *)product->c += 1;
    while (now_us() - begin_us < PRODUCT_US)
        ;
}

static void product_compare(void *argument)
{
    const struct perf_product *product = argument;
    *(unsigned *)product->wrong += *(int *)product->c != 9;
}

bool perf_cuda_product_fill(int device, const struct perf_product *product, void *stream)
{
    return perf_cuda_use(device) && fake_enqueue(stream, product_fill, product, sizeof(*product));
}

bool perf_cuda_product_start(int device, const struct perf_product *product, void *stream)
{
    return perf_cuda_use(device) && fake_enqueue(stream, product_run, product, sizeof(*product));
}

bool perf_cuda_product_compare(int device, const struct perf_product *product, void *stream)
{
    return perf_cuda_use(device) &&
           fake_enqueue(stream, product_compare, product, sizeof(*product));
}
