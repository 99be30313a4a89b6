/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: buffers on GPUs and what goes into them. Never knows: calls, time. */
#include "config.h"

#include "gpu.h"

#include <stdlib.h>

#include "perf_cuda.h"

#define TILE_BYTES (1u << 20)

static bool own_memory(const struct perf_team *team)
{
    return team->options->registered >= team->library->own_memory_from;
}

static bool buffer_create(const struct perf_team *team, const struct perf_rank *rank,
                          struct perf_buffer *buffer)
{
    size_t bytes = rank->buffer_bytes;
    bool got = own_memory(team) ? team->library->alloc(rank, bytes, &buffer->base)
                                : perf_cuda_alloc(rank->device, bytes, &buffer->base);
    if (!got) {
        fprintf(stderr, "twill-perf: rank %d: no buffer of %zu bytes on device %d\n", rank->rank,
                bytes, rank->device);
        return false;
    }
    buffer->data = (char *)buffer->base + PERF_GUARD_BYTES;
    if (team->options->checks == 0)
        return true;
    buffer->view_base = malloc(bytes);
    if (!buffer->view_base) {
        fprintf(stderr, "twill-perf: rank %d: no memory for a copy of %zu bytes\n", rank->rank,
                bytes);
        return false;
    }
    buffer->view = (char *)buffer->view_base + PERF_GUARD_BYTES;
    return true;
}

static bool buffer_destroy(const struct perf_team *team, const struct perf_rank *rank,
                           const struct perf_buffer *buffer)
{
    free(buffer->view_base);
    if (!buffer->base)
        return true;
    return own_memory(team) ? team->library->free(rank, buffer->base)
                            : perf_cuda_free(rank->device, buffer->base);
}

bool perf_gpu_buffers_create(const struct perf_team *team, struct perf_rank *rank)
{
    return buffer_create(team, rank, &rank->send) && buffer_create(team, rank, &rank->recv);
}

bool perf_gpu_buffers_destroy(const struct perf_team *team, const struct perf_rank *rank)
{
    bool good = buffer_destroy(team, rank, &rank->send);
    return buffer_destroy(team, rank, &rank->recv) && good;
}

/* A tile of values, doubled until it fills the input. */
static bool fill_tiled(const struct perf_rank *rank, const struct perf_case *c)
{
    struct perf_values values = perf_values_of(rank, c);
    size_t width = perf_type_bytes(c->type), all = c->send_count * width;
    size_t done = all < TILE_BYTES ? all : TILE_BYTES;
    char *to = (char *)(uintptr_t)perf_case_send(rank, c), *tile = malloc(TILE_BYTES);
    if (!tile) {
        fprintf(stderr, "twill-perf: rank %d: out of memory\n", rank->rank);
        return false;
    }
    perf_values_store(&values, rank->rank, 0, done / width, tile);
    bool good = perf_cuda_copy(to, tile, done, rank->stream);
    while (good && done < all) {
        size_t some = done < all - done ? done : all - done;
        good = perf_cuda_copy(to + done, to, some, rank->stream);
        done += some;
    }
    good = perf_cuda_stream_wait(rank->stream) && good;
    free(tile);
    return good;
}

/* The output with what is around it, and an input of its own. */
static bool copy_views(const struct perf_rank *rank, const struct perf_case *c, bool to_gpu)
{
    const struct perf_buffer *buffers[] = {&rank->recv, &rank->send};
    const size_t around[] = {PERF_POISON_BYTES, 0};
    const size_t bytes[] = {c->size_bytes + 2 * (size_t)PERF_POISON_BYTES,
                            c->send_count * perf_type_bytes(c->type)};
    bool good = true;
    for (int i = 0; i < (c->in_place ? 1 : 2) && good; i++) {
        char *data = buffers[i]->data - around[i], *view = buffers[i]->view - around[i];
        good = perf_cuda_copy(to_gpu ? data : view, to_gpu ? view : data, bytes[i], rank->stream);
    }
    return perf_cuda_stream_wait(rank->stream) && good;
}

bool perf_gpu_put(const struct perf_rank *rank, const struct perf_case *c)
{
    return copy_views(rank, c, true);
}

bool perf_gpu_get(const struct perf_rank *rank, const struct perf_case *c)
{
    return copy_views(rank, c, false);
}

bool perf_gpu_fill(const struct perf_rank *rank, const struct perf_case *c)
{
    if (!rank->send.view)
        return fill_tiled(rank, c);
    perf_check_prepare(rank, c);
    return perf_gpu_put(rank, c);
}
