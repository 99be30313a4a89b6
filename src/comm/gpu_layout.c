/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a rank's memory on its device is cut, and how much of the device's staging it gets.
 * Never knows: how ranks come to have the same; whose memory it is.
 */
#include "config.h"

#include <stddef.h>

#include "comm/gpu.h"

#define PEER_BYTES ((uint32_t)4 << 20)   /* of a rank's memory for each peer, at most */
#define RANK_BYTES ((uint32_t)16 << 20)  /* of a rank's memory, about */
#define SMALL_BYTES ((uint32_t)64 << 10) /* for records and flags */
#define LAYOUT_ALIGN 4096u
#define FOLLOWERS 32u /* communicators of one rank on the device, of as many ranks */

static uint32_t round_up(uint32_t bytes) { return (bytes + LAYOUT_ALIGN - 1) & -LAYOUT_ALIGN; }

struct tw_gk_layout tw_gpu_layout(int size, const struct tw_gpu_parts *parts)
{
    struct tw_gk_layout layout = {.line_each = parts->line_each,
                                  .ring_each = parts->ring_each,
                                  .plan_fifo_each = parts->plan_fifo_each,
                                  .plan_scratch = parts->plan_scratch};
    const uint32_t peers = (uint32_t)size - 1;
    const uint32_t flags = (uint32_t)size * (uint32_t)sizeof(struct tw_gk_flags);

    layout.lines = round_up(TW_GK_FLAGS_AT + flags);
    layout.ring = layout.lines + 2 * peers * layout.line_each;
    layout.bytes = layout.ring + peers * layout.ring_each;
    if (layout.plan_fifo_each == 0)
        return layout;
    layout.plan = round_up(layout.bytes);
    layout.bytes = layout.plan + TW_GK_PLAN_FIFOS_AT((uint32_t)size) +
                   peers * layout.plan_fifo_each + layout.plan_scratch;
    return layout;
}

static void smaller(uint32_t value, uint32_t *least) { *least = value < *least ? value : *least; }

struct tw_gk_layout tw_gpu_layout_agree(int size, const struct tw_gpu_entry *entries)
{
    struct tw_gpu_parts least = entries[0].parts;

    for (int r = 1; r < size; r++) {
        smaller(entries[r].parts.line_each, &least.line_each);
        smaller(entries[r].parts.ring_each, &least.ring_each);
        smaller(entries[r].parts.plan_fifo_each, &least.plan_fifo_each);
        smaller(entries[r].parts.plan_scratch, &least.plan_scratch);
    }
    return tw_gpu_layout(size, &least);
}

void tw_gpu_peer_cut(uint32_t each, struct tw_gpu_parts *parts)
{
    const uint32_t small = SMALL_BYTES < each / 4 ? SMALL_BYTES : each / 4;

    /* half of it is lines, of calls in turn */
    parts->line_each = each / 4 / LAYOUT_ALIGN * LAYOUT_ALIGN;
    parts->ring_each = (each / 2 - small) / LAYOUT_ALIGN * LAYOUT_ALIGN;
}

size_t tw_gpu_state_bytes(int size)
{
    const struct tw_gk_state *state = NULL;

    return offsetof(struct tw_gk_state, counts) + (size_t)size * sizeof(state->counts[0]);
}

uint64_t tw_gpu_rank_bytes(int size, const struct tw_gpu_parts *parts)
{
    const uint64_t far = size > TW_GK_NEAR ? (uint64_t)size * sizeof(void *) : 0;

    return tw_gpu_layout(size, parts).bytes + tw_gpu_state_bytes(size) + far;
}

/* ---- staging -----------------------------------------------------------------------------------
 */

/* More is of no use. */
static uint32_t peer_most(int size)
{
    const uint32_t peers = size > 1 ? (uint32_t)size - 1 : 1;
    const uint32_t each = RANK_BYTES / peers;

    return each < PEER_BYTES ? each : PEER_BYTES;
}

static uint64_t bytes_with(int size, uint32_t each, const struct tw_gpu_parts *parts)
{
    struct tw_gpu_parts cut = *parts;

    tw_gpu_peer_cut(each, &cut);
    return tw_gpu_rank_bytes(size, &cut);
}

/* Others come: of that which is left, half at most, and FOLLOWERS find the least. */
static uint32_t peer_share(int size, int ranks, uint64_t left, const struct tw_gpu_parts *parts)
{
    const struct tw_gpu_parts none = {.line_each = 0};
    const uint64_t others =
        FOLLOWERS * bytes_with(size, TW_GPU_PEER_BYTES_LEAST, parts->plan_spared ? &none : parts);
    const uint64_t spare = left > others ? left - others : 0;
    const uint64_t most = spare < left / 2 ? spare : left / 2;
    uint32_t each = peer_most(size);

    while (each > TW_GPU_PEER_BYTES_LEAST && (uint64_t)ranks * bytes_with(size, each, parts) > most)
        each /= 2;
    return each > TW_GPU_PEER_BYTES_LEAST ? each : TW_GPU_PEER_BYTES_LEAST;
}

/* @return bytes of all ranks */
static uint64_t share_cut(int size, int ranks, uint64_t left, struct tw_gpu_parts *parts)
{
    tw_gpu_peer_cut(peer_share(size, ranks, left, parts), parts);
    return (uint64_t)ranks * tw_gpu_rank_bytes(size, parts);
}

enum twill_status tw_gpu_staging_take(struct tw_gpu_device *device, uint64_t limit, int size,
                                      int ranks, struct tw_gpu_parts *parts)
{
    (void)pthread_mutex_lock(&device->lock);
    const uint64_t left = limit > device->staging_used ? limit - device->staging_used : 0;
    uint64_t bytes = share_cut(size, ranks, left, parts);
    if (bytes > left && parts->plan_spared) {
        parts->plan_fifo_each = parts->plan_scratch = 0;
        bytes = share_cut(size, ranks, left, parts);
    }
    const bool fits = bytes <= left;
    if (fits)
        device->staging_used += bytes;
    (void)pthread_mutex_unlock(&device->lock);
    if (fits)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_NOMEM,
                   "init: TWILL_DEVICE_STAGING is %llu bytes, of which CUDA device %d has %llu "
                   "left: %d ranks of a communicator of %d take %llu there at least",
                   (unsigned long long)limit, device->number, (unsigned long long)left, ranks, size,
                   (unsigned long long)bytes);
}

void tw_gpu_staging_give(struct tw_gpu_device *device, uint64_t bytes)
{
    (void)pthread_mutex_lock(&device->lock);
    device->staging_used -= bytes;
    (void)pthread_mutex_unlock(&device->lock);
}

uint64_t tw_gpu_staging_used(struct tw_gpu_device *device)
{
    (void)pthread_mutex_lock(&device->lock);
    const uint64_t used = device->staging_used;
    (void)pthread_mutex_unlock(&device->lock);
    return used;
}
