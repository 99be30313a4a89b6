/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: in which order ranks on devices tell each other where they are, what they have and what
 * they reach.
 * Never knows: how devices are tried, what memory is for. */
#include "config.h"

#include <stdlib.h>

#include "base/mem.h"
#include "comm/bootstrap.h"
#include "comm/gpu_selftest.h"

/* Of one rank's, while its memory gets connected. */
struct run {
    const struct tw_boot *boot;
    struct tw_gpu *gpu;
    struct tw_gpu_entry *entries;  /* owned, [size] */
    struct tw_gpu_gap *gaps;       /* owned, [size] */
    struct tw_gpu_cut_entry *cuts; /* owned, [size] */
};

/* For the size of the largest. */
union gathered {
    struct tw_gpu_entry entry;
    struct tw_gpu_gap gap;
    struct tw_gpu_cut_entry cut;
    struct tw_gpu_spot spot;
    struct tw_gpu_between between;
};

size_t tw_boot_gpu_bytes(void) { return sizeof(union gathered); }

static enum twill_status gather(const struct run *run, const char *step, void *all, size_t bytes)
{
    const struct tw_tree_call call = {run->boot->comm, run->boot->wait.deadline_ns, step};

    return tw_tree_gather(&call, all, bytes);
}

/* Everybody's; the first of them counts. @param gap  out: some rank has found one */
static enum twill_status gaps_gather(const struct run *run, bool *gap)
{
    const struct twill_comm *comm = run->boot->comm;
    enum twill_status status =
        gather(run, "finding out which devices reach each other", run->gaps, sizeof(*run->gaps));

    for (int r = 0; r < comm->size && !tw_failed(status) && !*gap; r++)
        *gap = tw_gpu_gap_find(run->gpu, run->boot->ctl->peers, &run->gaps[r]);
    return status;
}

/* Do all devices address each other's memory? */
static enum twill_status reach(const struct run *run, bool *gap)
{
    const struct twill_comm *comm = run->boot->comm;
    const uint64_t deadline_ns = run->boot->wait.deadline_ns;
    struct tw_gpu_gap *own = &run->gaps[comm->rank];

    for (int r = 0; r < comm->size && !*gap; r++)
        *gap = tw_gpu_gap_find(run->gpu, run->boot->ctl->peers, &run->entries[r].gap);
    if (*gap)
        return TWILL_OK;
    enum twill_status status = tw_gpu_test_try(run->gpu, run->entries, deadline_ns, own);
    if (tw_failed(status) || !tw_gpu_test_tries(run->gpu))
        return status;
    status = gaps_gather(run, gap);
    if (tw_failed(status) || *gap)
        return status;
    status = tw_gpu_test_look(run->gpu, run->entries, deadline_ns, own);
    return tw_failed(status) ? status : gaps_gather(run, gap);
}

static enum twill_status cut_off(const struct run *run)
{
    const int rank = run->boot->comm->rank;
    enum twill_status status = tw_gpu_cut_offer(run->gpu, run->entries, &run->cuts[rank]);

    if (!tw_failed(status))
        status = gather(run, "exchanging pinned memory", run->cuts, sizeof(*run->cuts));
    return tw_failed(status) ? status : tw_gpu_cut_take(run->gpu, run->cuts);
}

/* ---- what lies between devices -----------------------------------------------------------------
 */

/* spots, found: [size] */
static enum twill_status between_gather(const struct run *run, struct tw_gpu_spot *spots,
                                        struct tw_gpu_between *found)
{
    const struct twill_comm *comm = run->boot->comm;
    enum twill_status status = tw_gpu_spot_read(comm, &spots[comm->rank]);

    if (!tw_failed(status))
        status = gather(run, "exchanging devices", spots, sizeof(*spots));
    if (tw_failed(status) || !tw_gpu_between_matters(comm->size, spots))
        return status;
    if (comm->rank == 0) /* looking twice might not find the same */
        status = tw_gpu_between_find(comm, spots, &found[0]);
    return tw_failed(status)
               ? status
               : gather(run, "finding what lies between devices", found, sizeof(*found));
}

/* Of few ranks nothing is asked: they are on few devices. */
static enum twill_status between_agree(const struct run *run, struct tw_gpu_between *between)
{
    const int size = run->boot->comm->size;

    *between = (struct tw_gpu_between){.known = 0};
    if (size < TW_GPU_DEVICES_LEAST)
        return TWILL_OK;
    struct tw_gpu_spot *spots = tw_alloc((size_t)size * sizeof(*spots));
    struct tw_gpu_between *found = tw_alloc((size_t)size * sizeof(*found));
    enum twill_status status =
        spots != NULL && found != NULL ? between_gather(run, spots, found) : TWILL_ERR_NOMEM;

    if (!tw_failed(status))
        *between = found[0];
    free(spots);
    free(found);
    return status;
}

static enum twill_status connect(struct run *run)
{
    struct twill_comm *comm = run->boot->comm;
    const struct tw_ctl_peer *peers = run->boot->ctl->peers;
    struct tw_gpu_between between;
    bool gap = false;
    enum twill_status status = between_agree(run, &between);
    if (!tw_failed(status))
        status = tw_gpu_create(comm, peers, &between, run->boot->wait.deadline_ns,
                               &run->entries[comm->rank]);
    if (!tw_failed(status))
        status = gather(run, "exchanging device memory", run->entries, sizeof(*run->entries));
    run->gpu = comm->gpu;
    if (!tw_failed(status))
        status = reach(run, &gap);
    if (!tw_failed(status) && gap)
        status = cut_off(run);
    return tw_failed(status) ? status : tw_gpu_connect(comm, run->entries, peers);
}

enum twill_status tw_boot_gpu(struct tw_boot *boot)
{
    const size_t size = (size_t)boot->comm->size;

    if (!tw_gpu_wanted(boot->comm))
        return TWILL_OK;
    struct run run = {
        .boot = boot,
        .entries = tw_alloc(size * sizeof(*run.entries)),
        .gaps = tw_alloc(size * sizeof(*run.gaps)),
        .cuts = tw_alloc(size * sizeof(*run.cuts)),
    };
    enum twill_status status = run.entries != NULL && run.gaps != NULL && run.cuts != NULL
                                   ? connect(&run)
                                   : TWILL_ERR_NOMEM;
    free(run.entries);
    free(run.gaps);
    free(run.cuts);
    return status;
}
