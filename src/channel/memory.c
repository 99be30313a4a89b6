/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: memory that ranks have for each other beside their chans. Never knows: what it is for. */
#include "config.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "channel/chan.h"
#include "transport/hostmem.h"

struct tw_chan_memory {
    struct tw_chan *chan; /* borrowed */
    void *own;            /* owned, of tw_hostmem_alloc */
    struct tw_mr *mr;     /* owned; NULL: all peers are in this process */
    struct tw_rmem **of;  /* owned, [size]: the peers', mapped */
};

static enum twill_status memory_export(struct tw_chan_memory *memory, size_t bytes,
                                       struct tw_blob *blob)
{
    const struct tw_chan *chan = memory->chan;

    blob->bytes = 0;
    if (!chan->used[NET_SHM]) {
        return TWILL_OK;
    }
    const struct tw_rma_ops *rma = chan->transports[NET_SHM]->rma;
    enum twill_status status =
        rma->reg(chan->nets[NET_SHM], memory->own, bytes, TW_MEM_HOST, &memory->mr);
    return status == TWILL_OK ? rma->mr_export(memory->mr, blob) : status;
}

enum twill_status tw_chan_memory_create(struct tw_chan *chan, size_t bytes,
                                        struct tw_chan_memory **memory, struct tw_blob *blob)
{
    struct tw_chan_memory *made = tw_alloc(sizeof(*made));
    if (made == NULL) {
        return TWILL_ERR_NOMEM;
    }
    made->chan = chan;
    made->of = tw_alloc((size_t)chan->size * sizeof(struct tw_rmem *));
    enum twill_status status =
        made->of != NULL ? tw_hostmem_alloc(bytes, &made->own) : TWILL_ERR_NOMEM;
    if (status == TWILL_OK) {
        status = memory_export(made, bytes, blob);
    }
    if (status != TWILL_OK) {
        tw_chan_memory_destroy(made);
        return status;
    }
    *memory = made;
    return TWILL_OK;
}

void *tw_chan_memory_own(const struct tw_chan_memory *memory) { return memory->own; }

enum twill_status tw_chan_memory_map(struct tw_chan_memory *memory, int peer,
                                     const struct tw_blob *blob, size_t bytes, void **at)
{
    const struct chan_peer *from = &memory->chan->peers[peer];
    const struct tw_rma_ops *rma = from->transport->rma;
    size_t found = 0;

    if (memory->of[peer] != NULL) {
        return tw_fail(TWILL_ERR_USAGE, "memory of peer %d is mapped already", peer);
    }
    enum twill_status status = rma->mr_import(from->ep, blob, &memory->of[peer]);
    if (status != TWILL_OK) {
        return status;
    }
    void *base = rma->map(memory->of[peer], &found);
    if (base == NULL || found < bytes) {
        return tw_fail(TWILL_ERR_PEER, "peer %d has %zu bytes of memory to map, needed are %zu",
                       peer, found, bytes);
    }
    *at = base;
    return TWILL_OK;
}

void tw_chan_memory_destroy(struct tw_chan_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    for (int i = 0; memory->of != NULL && i < memory->chan->size; i++) {
        if (memory->of[i] != NULL) {
            memory->chan->peers[i].transport->rma->mr_release(memory->of[i]);
        }
    }
    if (memory->mr != NULL) {
        memory->chan->transports[NET_SHM]->rma->unreg(memory->mr);
    }
    (void)tw_hostmem_free(memory->own);
    free(memory->of);
    free(memory);
}
