/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what ranks tell each other so that their channels connect. Never knows: how they met. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/bootstrap.h"
#include "comm/ops.h"

/* What every rank tells every rank. */
struct entry {
    struct tw_chan_peer peer;
    int32_t pid, device;
    uint64_t fifo_bytes, scratch_bytes; /* that it has room for */
    struct tw_facts_entry facts;        /* of its host */
};

size_t tw_boot_frame_bytes(int size)
{
    const size_t of_gpu = tw_boot_gpu_bytes();
    const size_t gathered = sizeof(struct entry) > of_gpu ? sizeof(struct entry) : of_gpu;
    return tw_tree_frame_bytes(size, gathered, sizeof(struct tw_chan_blob));
}

static enum twill_status net_listen(struct tw_boot *boot)
{
    struct tw_net *shm = boot->comm->proc->nets.shm;

    if (shm == NULL || boot->comm->ranks_here == boot->comm->size)
        return TWILL_OK;
    return tw_transport_find("shm")->net->listen(shm, boot->welcome.key, &boot->listener,
                                                 &boot->address);
}

static uint32_t signals_of(const struct twill_comm *comm)
{
    bool scratch = tw_plans_want_scratch(comm->proc->params);

    return scratch ? TW_OPS_SIGNALS * (uint32_t)comm->size : 0;
}

/* A line for each cell of two_shot_put, twice, which has the most cells of those that put. */
static size_t scratch_least(const struct twill_comm *comm)
{
    size_t channels = comm->args.channels > 0 ? (size_t)comm->args.channels : 1;
    return 2 * (size_t)comm->size * (size_t)comm->size * channels * TW_LINE_BYTES;
}

static struct tw_chan_need own_need(const struct twill_comm *comm)
{
    bool scratch = tw_plans_want_scratch(comm->proc->params);

    return (struct tw_chan_need){
        .size = comm->size,
        .ranks_here = comm->ranks_here,
        .fixed_bytes = tw_record_board_bytes(comm->size) + signals_of(comm) * sizeof(uint64_t),
        .scratch_most = scratch ? TW_OPS_SCRATCH_BYTES : 0,
        .scratch_least = scratch_least(comm),
    };
}

static void own_fill(const struct tw_boot *boot, struct entry *own)
{
    const struct twill_comm *comm = boot->comm;
    const struct tw_chan_need need = own_need(comm);
    const struct tw_chan_share share = tw_chan_share_find(&comm->proc->nets, &need);

    own->peer.proc = comm->proc->id;
    own->peer.address = boot->address;
    own->pid = getpid();
    own->device = comm->args.device;
    own->fifo_bytes = share.fifo_bytes;
    own->scratch_bytes = share.scratch_bytes;
    tw_facts_say(comm, &own->facts);
}

/* Waits spin long only where the ranks of this host have a CPU each. */
static enum twill_status patience_set(struct twill_comm *comm, const struct entry *entries)
{
    const struct entry *own = &entries[comm->rank];
    const struct tw_cpus **bound = tw_alloc((size_t)comm->size * sizeof(void *));
    int count = 0;

    if (bound == NULL)
        return TWILL_ERR_NOMEM;
    bound[count++] = &own->facts.cpus;
    for (int r = 0; r < comm->size; r++) {
        const uint8_t *host = entries[r].peer.proc.host;
        if (r != comm->rank && memcmp(host, own->peer.proc.host, sizeof(own->peer.proc.host)) == 0)
            bound[count++] = &entries[r].facts.cpus;
    }
    bool crowded = tw_cpus_crowded(bound, count, comm->proc->cpu_quota);
    comm->patience = tw_patience_for(comm->proc->pause_ps, crowded);
    free(bound);
    return TWILL_OK;
}

static enum twill_status facts_take(struct twill_comm *comm, const struct entry *entries)
{
    const struct tw_facts_entry **all = tw_alloc((size_t)comm->size * sizeof(void *));

    if (all == NULL)
        return TWILL_ERR_NOMEM;
    for (int r = 0; r < comm->size; r++)
        all[r] = &entries[r].facts;
    enum twill_status status = tw_facts_merge(comm, all, &comm->facts);
    free(all);
    return status;
}

static void peers_set(struct tw_ctl *ctl, struct tw_ctl_peer *peers, const struct entry *entries)
{
    for (int r = 0; r < ctl->comm->size; r++) {
        peers[r].proc = entries[r].peer.proc;
        peers[r].pid = entries[r].pid;
        peers[r].device = entries[r].device;
    }
    tw_loop_lock(ctl->loop);
    ctl->peers = peers;
    tw_loop_unlock(ctl->loop);
}

/* The least that any rank has room for. */
static enum twill_status share_agree(const struct twill_comm *comm, const struct entry *entries,
                                     struct tw_chan_share *share)
{
    int least = 0;

    *share = (struct tw_chan_share){SIZE_MAX, SIZE_MAX};
    for (int r = 0; r < comm->size; r++) {
        if (entries[r].fifo_bytes < share->fifo_bytes) {
            share->fifo_bytes = entries[r].fifo_bytes;
            least = r;
        }
        if (entries[r].scratch_bytes < share->scratch_bytes)
            share->scratch_bytes = entries[r].scratch_bytes;
    }
    if (share->fifo_bytes > 0)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_NOMEM,
                   "init: TWILL_STAGING of rank %d's process has no room for another communicator "
                   "of %d ranks",
                   least, comm->size);
}

/* Everybody learns of everybody. */
static enum twill_status entries_gather(struct tw_boot *boot, struct entry *entries,
                                        struct tw_chan_share *share)
{
    struct twill_comm *comm = boot->comm;
    const struct tw_tree_call call = {comm, boot->wait.deadline_ns, "exchanging addresses"};
    struct tw_ctl_peer *peers = tw_alloc((size_t)comm->size * sizeof(*peers));

    if (peers == NULL)
        return TWILL_ERR_NOMEM;
    own_fill(boot, &entries[comm->rank]);
    enum twill_status status = tw_tree_gather(&call, entries, sizeof(*entries));
    if (status != TWILL_OK) {
        free(peers);
        return status;
    }
    peers_set(boot->ctl, peers, entries);
    status = patience_set(comm, entries);
    if (status == TWILL_OK)
        status = facts_take(comm, entries);
    return status == TWILL_OK ? share_agree(comm, entries, share) : status;
}

static enum twill_status blobs_exchange(struct tw_boot *boot)
{
    struct twill_comm *comm = boot->comm;
    const struct tw_tree_call call = {comm, boot->wait.deadline_ns, "exchanging channels"};
    struct tw_chan_blob *blobs = tw_alloc((size_t)comm->size * sizeof(*blobs));
    enum twill_status status = blobs != NULL ? TWILL_OK : TWILL_ERR_NOMEM;

    for (int p = 0; status == TWILL_OK && p < comm->size; p++) {
        if (p != comm->rank)
            status = tw_chan_export(comm->chan, p, &blobs[p]);
    }
    if (status == TWILL_OK)
        status = tw_tree_exchange(&call, blobs, sizeof(*blobs));
    for (int p = 0; status == TWILL_OK && p < comm->size; p++) {
        if (p != comm->rank)
            status = tw_chan_import(comm->chan, p, &blobs[p]);
    }
    free(blobs);
    return status;
}

enum twill_status tw_boot_chan(struct tw_boot *boot)
{
    struct twill_comm *comm = boot->comm;
    struct entry *entries = tw_alloc((size_t)comm->size * sizeof(*entries));
    struct tw_chan_peer *peers = tw_alloc((size_t)comm->size * sizeof(*peers));
    struct tw_chan_share share = {0, 0};
    enum twill_status status = entries != NULL && peers != NULL ? TWILL_OK : TWILL_ERR_NOMEM;

    if (status == TWILL_OK)
        status = net_listen(boot);
    if (status == TWILL_OK)
        status = entries_gather(boot, entries, &share);
    for (int r = 0; status == TWILL_OK && r < comm->size; r++)
        peers[r] = entries[r].peer;
    const struct tw_chan_config config = {
        .rank = comm->rank,
        .size = comm->size,
        .peers = peers,
        .key = boot->welcome.key,
        .fifo_bytes = share.fifo_bytes,
        .board_bytes = tw_record_board_bytes(comm->size),
        .scratch_bytes = share.scratch_bytes,
        .signals = signals_of(comm),
        .wait = boot->wait,
    };
    if (status == TWILL_OK)
        status = tw_chan_create(&comm->proc->nets, &config, &comm->chan);
    if (status == TWILL_OK)
        status = blobs_exchange(boot);
    free(peers);
    free(entries);
    return status;
}
