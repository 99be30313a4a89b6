/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how all devices of a process are tried with each other's memory. Never knows: what for. */
#include "config.h"

#include <stdlib.h>

#include "base/cuda.h"
#include "base/host.h"
#include "base/mem.h"
#include "device/probe.h"

struct all {
    int count;
    uint64_t deadline_ns;
    struct tw_probe_memory *of; /* owned, [count]: a device stands for a rank */
    enum tw_gap *found;         /* owned, [count]: by one step of one of them */
    enum tw_gap *gaps;          /* borrowed, [count][count] */
    void *seen;                 /* owned, pinned */
};

static enum tw_gap *gap_at(const struct all *all, int from, int to)
{
    return &all->gaps[(size_t)from * (size_t)all->count + (size_t)to];
}

static enum twill_status memory_take(struct all *all)
{
    const size_t spots = (size_t)all->count * TW_PROBE_SPOT_BYTES;
    enum twill_status status = TWILL_OK;

    for (int i = 0; i < all->count && !tw_failed(status); i++) {
        void *mem = NULL;

        status = tw_cuda_alloc(i, 2 * spots, &mem);
        if (tw_failed(status))
            break;
        all->of[i].head = mem;
        all->of[i].tail = all->of[i].head + spots;
        tw_random(&all->of[i].seed, sizeof(all->of[i].seed));
        status = tw_gk_probe_load(i);
    }
    if (tw_failed(status))
        return status;
    return tw_cuda_pinned_alloc(TW_GK_PROBE_ITEMS * sizeof(uint32_t), &all->seen);
}

static enum twill_status paths_find(const struct all *all)
{
    enum twill_status status = TWILL_OK;

    for (int i = 0; i < all->count; i++) {
        for (int j = 0; j < all->count && !tw_failed(status); j++) {
            bool can = true;

            if (i != j)
                status = tw_cuda_peer_enable(i, j, &can);
            *gap_at(all, i, j) = can ? TW_GAP_NONE : TW_GAP_NO_PATH;
        }
    }
    return status;
}

/* Of a step on one device: whose memory it tries, and who has tried its own. */
static enum twill_status step_run(struct all *all, int device, enum tw_probe_step step)
{
    const struct tw_probe_side side = {
        .device = device,
        .rank = device,
        .ranks = all->count,
        .of = all->of,
        .seen = all->seen,
        .deadline_ns = all->deadline_ns,
    };
    const bool looks = step == TW_PROBE_LOOK;

    for (int i = 0; i < all->count; i++)
        all->of[i].tried = i != device && *(looks ? gap_at(all, i, device)
                                                  : gap_at(all, device, i)) != TW_GAP_NO_PATH;
    enum twill_status status = tw_probe_run(&side, step, all->found);
    for (int i = 0; i < all->count && !tw_failed(status); i++) {
        enum tw_gap *gap = looks ? gap_at(all, i, device) : gap_at(all, device, i);

        if (*gap == TW_GAP_NONE)
            *gap = all->found[i];
    }
    return status;
}

static enum twill_status run(struct all *all)
{
    enum twill_status status = memory_take(all);

    if (!tw_failed(status))
        status = paths_find(all);
    for (int step = TW_PROBE_OFFER; step <= TW_PROBE_LOOK; step++)
        for (int i = 0; i < all->count && !tw_failed(status); i++)
            status = step_run(all, i, (enum tw_probe_step)step);
    return status;
}

enum twill_status tw_probe_all(int count, uint64_t deadline_ns, enum tw_gap *gaps)
{
    struct all all = {
        .count = count,
        .deadline_ns = deadline_ns,
        .of = tw_alloc((size_t)count * sizeof(*all.of)),
        .found = tw_alloc((size_t)count * sizeof(*all.found)),
        .gaps = gaps,
    };
    enum twill_status status = TWILL_ERR_NOMEM;

    if (count > TW_GK_RANKS_MAX)
        status = tw_fail(TWILL_ERR_UNSUPPORTED, "%d CUDA devices: at most %d are tried", count,
                         TW_GK_RANKS_MAX);
    else if (all.of != NULL && all.found != NULL)
        status = run(&all);
    for (int i = 0; all.of != NULL && i < count; i++)
        tw_cuda_free(i, all.of[i].head);
    tw_cuda_pinned_free(all.seen);
    free(all.of);
    free(all.found);
    return status;
}
