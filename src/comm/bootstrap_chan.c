/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what ranks tell each other so that their channels connect. Never knows: how they met. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/bootstrap.h"
#include "comm/ops.h"

/* What every rank tells every rank. */
struct entry {
    struct tw_chan_peer peer;
    int32_t pid;
    uint32_t unused;
    uint64_t fifo_bytes;
};

size_t tw_boot_frame_bytes(int size)
{
    return tw_tree_frame_bytes(size, sizeof(struct entry), sizeof(struct tw_chan_blob));
}

static enum twill_status net_listen(struct tw_boot *boot)
{
    struct tw_net *shm = boot->comm->proc->nets.shm;

    if (shm == NULL || boot->comm->ranks_here == boot->comm->size)
        return TWILL_OK;
    return tw_transport_find("shm")->net->listen(shm, boot->welcome.key, &boot->listener,
                                                 &boot->address);
}

/* Everybody learns of everybody; the FIFOs get the least size over all ranks. */
static enum twill_status entries_gather(struct tw_boot *boot, struct entry *entries,
                                        size_t *fifo_bytes)
{
    struct twill_comm *comm = boot->comm;
    const struct tw_tree_call call = {comm, boot->wait.deadline_ns, "exchanging addresses"};
    struct entry *own = &entries[comm->rank];
    struct tw_ctl_peer *peers = tw_alloc((size_t)comm->size * sizeof(*peers));

    if (peers == NULL)
        return TWILL_ERR_NOMEM;
    own->peer.proc = comm->proc->id;
    own->peer.address = boot->address;
    own->pid = getpid();
    own->fifo_bytes = tw_chan_fifo_bytes(&comm->proc->nets, comm->size, comm->ranks_here);
    enum twill_status status = tw_tree_gather(&call, entries, sizeof(*entries));
    if (status != TWILL_OK) {
        free(peers);
        return status;
    }
    *fifo_bytes = SIZE_MAX;
    for (int r = 0; r < comm->size; r++) {
        peers[r].proc = entries[r].peer.proc;
        peers[r].pid = entries[r].pid;
        if (entries[r].fifo_bytes < *fifo_bytes)
            *fifo_bytes = entries[r].fifo_bytes;
    }
    tw_loop_lock(boot->ctl->loop);
    boot->ctl->peers = peers;
    tw_loop_unlock(boot->ctl->loop);
    if (*fifo_bytes > 0 || comm->size == 1)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_NOMEM,
                   "init: TWILL_STAGING has no room for another communicator of %d ranks",
                   comm->size);
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
    size_t fifo_bytes = 0;
    enum twill_status status = entries != NULL && peers != NULL ? TWILL_OK : TWILL_ERR_NOMEM;

    if (status == TWILL_OK)
        status = net_listen(boot);
    if (status == TWILL_OK)
        status = entries_gather(boot, entries, &fifo_bytes);
    for (int r = 0; status == TWILL_OK && r < comm->size; r++)
        peers[r] = entries[r].peer;
    bool scratch = tw_plans_want_scratch(comm->proc->params);
    const struct tw_chan_config config = {.rank = comm->rank,
                                          .size = comm->size,
                                          .peers = peers,
                                          .key = boot->welcome.key,
                                          .fifo_bytes = fifo_bytes,
                                          .board_bytes = tw_record_board_bytes(comm->size),
                                          .scratch_bytes = scratch ? TW_OPS_SCRATCH_BYTES : 0,
                                          .signals =
                                              scratch ? TW_OPS_SIGNALS * (uint32_t)comm->size : 0,
                                          .wait = boot->wait};
    if (status == TWILL_OK)
        status = tw_chan_create(&comm->proc->nets, &config, &comm->chan);
    if (status == TWILL_OK)
        status = blobs_exchange(boot);
    free(peers);
    free(entries);
    return status;
}
