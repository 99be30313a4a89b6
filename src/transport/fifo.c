/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: making, attaching and retiring FIFO ends in staging memory.
 * Never knows: the order of messages (slots.h), how processes share memory. */
#include "config.h"

#include "transport/fifo.h"

#include <stdlib.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/status.h"
#include "transport/net.h"

#define FIFO_BYTES_MOST ((size_t)1 << 31)
#define FIFO_BYTES_LEAST 128
#define BLOB_MAGIC 0x7477666fu

/* What a receive end tells its sender. */
struct fifo_blob {
    uint32_t magic;
    uint32_t unused;
    uint8_t owner[16]; /* nonce of the receiver's process */
    uint64_t offset;   /* in its staging */
    uint64_t bytes;
    uint64_t salt;
};
_Static_assert(sizeof(struct fifo_blob) <= TW_NET_BLOB_BYTES, "a FIFO's blob fits");

/* ---- retired memory ------------------------------------------------------------------------- */

struct tw_hold *tw_hold_create(struct tw_net *net, void *ptr)
{
    struct tw_hold *hold = tw_alloc(sizeof(*hold));
    if (hold != NULL) {
        *hold = (struct tw_hold){.net = net, .ptr = ptr, .refs = 1};
    }
    return hold;
}

void tw_hold_put(struct tw_hold *hold)
{
    if (hold == NULL || __atomic_sub_fetch(&hold->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    if (hold->ptr != NULL) {
        tw_pool_put(hold->net->pool, hold->ptr);
    }
    free(hold);
}

/* The end's memory is free; the struct goes. */
static void forget(struct tw_fifo *fifo)
{
    tw_pool_put(fifo->ep->net->pool, fifo->memory);
    tw_hold_put(fifo->hold);
    tw_ep_unref(fifo->ep);
    free(fifo);
}

static bool unused(const struct tw_fifo *fifo)
{
    return tw_slots_revoke(fifo->memory, fifo->salt) || tw_ep_lost(fifo->ep);
}

void tw_fifo_sweep(struct tw_net *net, bool all)
{
    struct tw_fifo *done = NULL;
    pthread_mutex_lock(&net->lock);
    for (struct tw_fifo **at = &net->retired; *at != NULL;) {
        struct tw_fifo *fifo = *at;
        if (all || unused(fifo)) {
            *at = fifo->next;
            fifo->next = done;
            done = fifo;
        } else {
            at = &fifo->next;
        }
    }
    pthread_mutex_unlock(&net->lock);
    while (done != NULL) {
        struct tw_fifo *fifo = done;
        done = fifo->next;
        forget(fifo);
    }
}

void tw_fifo_destroy_with(struct tw_fifo *fifo, struct tw_hold *hold)
{
    if (fifo == NULL) {
        return;
    }
    tw_slots_fini(&fifo->slots);
    if (fifo->sender) {
        tw_slots_leave(fifo->memory, fifo->salt);
        tw_ep_unref(fifo->ep);
        free(fifo);
        return;
    }
    if (hold != NULL) {
        __atomic_fetch_add(&hold->refs, 1, __ATOMIC_RELAXED);
        fifo->hold = hold;
    }
    struct tw_net *net = fifo->ep->net;
    pthread_mutex_lock(&net->lock);
    fifo->next = net->retired;
    net->retired = fifo;
    pthread_mutex_unlock(&net->lock);
    tw_fifo_sweep(net, false);
}

static void fifo_destroy(struct tw_fifo *fifo) { tw_fifo_destroy_with(fifo, NULL); }

/* ---- ends ----------------------------------------------------------------------------------- */

static struct tw_fifo *end_create(struct tw_ep *ep, void *memory, size_t bytes, uint64_t salt,
                                  bool sender)
{
    struct tw_fifo *fifo = tw_alloc(sizeof(*fifo));
    if (fifo == NULL) {
        return NULL;
    }
    if (tw_slots_init(&fifo->slots, memory, bytes, salt, sender) != TWILL_OK) {
        free(fifo);
        return NULL;
    }
    fifo->ep = ep;
    fifo->memory = memory;
    fifo->salt = salt;
    fifo->sender = sender;
    tw_ep_ref(ep);
    return fifo;
}

static enum twill_status fifo_create(struct tw_ep *ep, size_t bytes, struct tw_fifo **fifo,
                                     struct tw_blob *blob)
{
    if (bytes < FIFO_BYTES_LEAST || bytes > FIFO_BYTES_MOST || bytes % TW_SLOT_LINE_BYTES != 0) {
        return tw_fail(TWILL_ERR_INVALID,
                       "fifo of %zu bytes: must be a multiple of %d from %d to %zu", bytes,
                       TW_SLOT_LINE_BYTES, FIFO_BYTES_LEAST, FIFO_BYTES_MOST);
    }
    struct tw_net *net = ep->net;
    void *memory = tw_net_get(net, tw_fifo_memory_bytes(bytes));
    if (memory == NULL) {
        return tw_fail(TWILL_ERR_NOMEM,
                       "staging is short: no %zu bytes for a fifo (%zu of %zu used)",
                       tw_fifo_memory_bytes(bytes), tw_pool_used(net->pool), net->staging.bytes);
    }
    uint64_t salt;
    tw_random(&salt, sizeof(salt));
    tw_slots_format(memory, bytes, salt);
    struct tw_fifo *end = end_create(ep, memory, bytes, salt, false);
    if (end == NULL) {
        tw_net_put(net, memory);
        return TWILL_ERR_NOMEM;
    }
    struct fifo_blob out = {
        .magic = BLOB_MAGIC,
        .offset = (uint64_t)((unsigned char *)memory - (unsigned char *)net->staging.base),
        .bytes = bytes,
        .salt = salt};
    memcpy(out.owner, net->config.self.nonce, sizeof(out.owner));
    blob->bytes = sizeof(out);
    memcpy(blob->data, &out, sizeof(out));
    *fifo = end;
    return TWILL_OK;
}

/* Believes nothing: the blob came from another process. */
static enum twill_status blob_check(const struct tw_ep *ep, const struct tw_blob *blob,
                                    struct fifo_blob *in)
{
    if (blob->bytes != sizeof(*in)) {
        return tw_fail(TWILL_ERR_INVALID, "fifo blob of %u bytes, expected %zu", blob->bytes,
                       sizeof(*in));
    }
    memcpy(in, blob->data, sizeof(*in));
    if (in->magic != BLOB_MAGIC || memcmp(in->owner, ep->peer.nonce, sizeof(in->owner)) != 0) {
        return tw_fail(TWILL_ERR_INVALID, "fifo blob is not of the endpoint's peer");
    }
    if (in->bytes < FIFO_BYTES_LEAST || in->bytes > FIFO_BYTES_MOST ||
        in->bytes % TW_SLOT_LINE_BYTES != 0 || in->offset % TW_SLOT_LINE_BYTES != 0 ||
        in->offset > ep->bytes || tw_fifo_memory_bytes(in->bytes) > ep->bytes - in->offset) {
        return tw_fail(TWILL_ERR_PEER,
                       "fifo of %llu bytes at %llu is outside the peer's staging of %zu bytes",
                       (unsigned long long)in->bytes, (unsigned long long)in->offset, ep->bytes);
    }
    return TWILL_OK;
}

static enum twill_status fifo_attach(struct tw_ep *ep, const struct tw_blob *blob,
                                     struct tw_fifo **fifo)
{
    struct fifo_blob in;
    enum twill_status status = blob_check(ep, blob, &in);
    if (status != TWILL_OK) {
        return status;
    }
    if (tw_ep_lost(ep)) {
        return tw_fail(TWILL_ERR_PEER, "fifo cannot be attached: the peer process is gone");
    }
    void *memory = ep->base + in.offset;
    struct tw_fifo *end = end_create(ep, memory, in.bytes, in.salt, true);
    if (end == NULL) {
        return TWILL_ERR_NOMEM;
    }
    if (!tw_slots_attach(memory, in.salt)) {
        tw_slots_fini(&end->slots);
        tw_ep_unref(ep);
        free(end);
        return tw_fail(TWILL_ERR_PEER, "fifo's receive end is gone or has a sender already");
    }
    *fifo = end;
    return TWILL_OK;
}

/* ---- table ---------------------------------------------------------------------------------- */

static enum twill_status fifo_layout(struct tw_fifo *fifo, uint32_t subs, uint32_t depth)
{
    return tw_slots_layout(&fifo->slots, subs, depth);
}
static enum twill_status fifo_reserve(struct tw_fifo *fifo, uint32_t sub, void **data)
{
    return tw_slots_reserve(&fifo->slots, sub, data);
}
static void fifo_commit(struct tw_fifo *fifo, uint32_t sub, uint32_t bytes, uint64_t header)
{
    tw_slots_commit(&fifo->slots, sub, bytes, header);
}
static enum twill_status fifo_peek(struct tw_fifo *fifo, uint32_t sub, struct tw_msg *msg)
{
    return tw_slots_peek(&fifo->slots, sub, msg);
}
static void fifo_release(struct tw_fifo *fifo, uint32_t sub)
{
    tw_slots_release(&fifo->slots, sub);
}

const struct tw_fifo_ops tw_slot_fifo_ops = {
    .create = fifo_create,
    .attach = fifo_attach,
    .destroy = fifo_destroy,
    .layout = fifo_layout,
    .reserve = fifo_reserve,
    .commit = fifo_commit,
    .peek = fifo_peek,
    .release = fifo_release,
};
