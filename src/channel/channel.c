/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: making and unmaking a chan: which transport serves which peer, what peers must be told.
 * Never knows: how a message is moved, how blobs travel. */
#include "config.h"

#include "channel/channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "channel/chan.h"

#define FIFO_MOST ((size_t)256 << 10)
#define FIFO_LEAST ((size_t)1 << 10)
#define SCRATCH_LEAST ((size_t)4 << 10)
/* A new communicator takes at most one part in FREE_SHARE of what is free, and leaves the least
 * that FOLLOWERS like it need, if there is so much. */
#define FREE_SHARE 16
#define FOLLOWERS 48

static size_t round_up(size_t bytes)
{
    return (bytes + TW_LINE_BYTES - 1) / TW_LINE_BYTES * TW_LINE_BYTES;
}

/* ---- policy --------------------------------------------------------------------------------- */

static uint64_t net_free(const struct tw_net *net)
{
    uint64_t used;
    uint64_t limit;
    if (net == NULL) {
        return UINT64_MAX;
    }
    tw_net_staging(net, &used, &limit);
    return used < limit ? limit - used : 0;
}

/* With what destroyed communicators held and their peers have left. */
static uint64_t staging_free(const struct tw_nets *nets)
{
    struct tw_net *both[] = {nets->self, nets->shm};
    for (int i = 0; i < 2; i++) { /* all before any is asked: they may share one staging */
        if (both[i] != NULL) {
            tw_fifo_sweep(both[i], false);
        }
    }
    uint64_t of_self = net_free(nets->self);
    uint64_t of_shm = net_free(nets->shm);
    return of_self < of_shm ? of_self : of_shm;
}

static uint64_t share_bytes(const struct tw_chan_need *need, const struct tw_chan_share *share)
{
    uint64_t peers = need->size > 1 ? (uint64_t)need->size - 1 : 0;
    uint64_t ranks = need->ranks_here > 0 ? (uint64_t)need->ranks_here : 1;
    return ranks * (peers * tw_fifo_memory_bytes(share->fifo_bytes) + round_up(need->fixed_bytes) +
                    round_up(share->scratch_bytes));
}

static struct tw_chan_share share_of(const struct tw_chan_need *need, size_t fifo_bytes,
                                     size_t scratch_least)
{
    size_t least = scratch_least > SCRATCH_LEAST ? scratch_least : SCRATCH_LEAST;
    size_t bytes = fifo_bytes > least ? fifo_bytes : least;
    return (struct tw_chan_share){fifo_bytes,
                                  bytes < need->scratch_most ? bytes : need->scratch_most};
}

struct tw_chan_share tw_chan_share_find(const struct tw_nets *nets, const struct tw_chan_need *need)
{
    uint64_t room = staging_free(nets);
    struct tw_chan_share share = share_of(need, FIFO_LEAST, 0);
    uint64_t least = share_bytes(need, &share);
    if (least > room) {
        return (struct tw_chan_share){0, 0};
    }
    uint64_t spare = room / FOLLOWERS > least ? room - FOLLOWERS * least : 0;
    uint64_t most = room / FREE_SHARE < spare ? room / FREE_SHARE : spare;
    for (size_t bytes = FIFO_MOST; bytes >= FIFO_LEAST; bytes /= 2) {
        struct tw_chan_share more = share_of(need, bytes, need->scratch_least);
        if (share_bytes(need, &more) <= most) {
            return more;
        }
    }
    return share;
}

/* ---- own areas ------------------------------------------------------------------------------ */

static enum twill_status areas_register(struct tw_chan *chan)
{
    for (int net = 0; net < NET_COUNT; net++) {
        for (int area = 0; area < AREA_COUNT && chan->used[net]; area++) {
            if (chan->area_bytes[area] == 0) {
                continue;
            }
            enum twill_status status = chan->transports[net]->rma->reg(
                chan->nets[net], chan->area[area], chan->area_bytes[area], TW_MEM_HOST,
                &chan->mr[net][area]);
            if (status != TWILL_OK) {
                return status;
            }
        }
    }
    return TWILL_OK;
}

/* One block in the staging that the widest circle of peers can map. */
static enum twill_status areas_create(struct tw_chan *chan)
{
    size_t total = 0;
    for (int area = 0; area < AREA_COUNT; area++) {
        if (chan->area_bytes[area] > SIZE_MAX / 8) {
            return tw_fail(TWILL_ERR_INVALID, "chan area of %zu bytes", chan->area_bytes[area]);
        }
        total += round_up(chan->area_bytes[area]);
    }
    enum chan_net home = chan->used[NET_SHM] ? NET_SHM : NET_SELF;
    void *block = NULL;
    if (total > 0) {
        enum twill_status status =
            chan->transports[home]->rma->stage(chan->nets[home], total, &block);
        if (status != TWILL_OK) {
            return status;
        }
    }
    chan->hold = tw_hold_create(chan->nets[home], block);
    if (chan->hold == NULL) {
        chan->transports[home]->rma->unstage(chan->nets[home], block);
        return TWILL_ERR_NOMEM;
    }
    char *at = block;
    for (int area = 0; area < AREA_COUNT; area++) {
        if (chan->area_bytes[area] > 0) {
            chan->area[area] = at;
            at += round_up(chan->area_bytes[area]);
        }
    }
    return areas_register(chan);
}

/* ---- peers ---------------------------------------------------------------------------------- */

static enum twill_status nets_choose(struct tw_chan *chan, const struct tw_chan_config *config)
{
    const struct tw_proc_id *here = &config->peers[config->rank].proc;
    for (int i = 0; i < chan->size; i++) {
        bool same = memcmp(&config->peers[i].proc, here, sizeof(*here)) == 0;
        enum chan_net net = same ? NET_SELF : NET_SHM;
        if (chan->nets[net] == NULL) {
            return tw_fail(TWILL_ERR_UNSUPPORTED,
                           "peer %d is in %s process and transport %s is off", i,
                           same ? "this" : "another", same ? "self" : "shm");
        }
        chan->peers[i].net = net;
        chan->peers[i].transport = chan->transports[net];
        chan->used[net] = chan->used[net] || i != chan->rank;
    }
    return TWILL_OK;
}

/* The transport's sentence names a process at most. */
static enum twill_status peer_failed(int i, enum twill_status status)
{
    char text[TW_ERROR_TEXT_BYTES];
    (void)snprintf(text, sizeof(text), "connecting to rank %d: %.*s", i, TW_ERROR_TEXT_BYTES - 32,
                   tw_fail_text());
    return tw_fail_again(status, text);
}

static enum twill_status peer_connect(struct tw_chan *chan, const struct tw_chan_config *config,
                                      int i)
{
    struct chan_peer *peer = &chan->peers[i];
    const struct tw_chan_peer *known = &config->peers[i];
    enum twill_status status =
        peer->transport->net->ep_get(chan->nets[peer->net], &known->proc, &known->address,
                                     config->key, &config->wait, &peer->ep);
    if (status == TWILL_OK) {
        status = peer->transport->fifo->create(peer->ep, chan->fifo_bytes, &peer->recv,
                                               &peer->fifo_blob);
    }
    return status == TWILL_OK ? status : peer_failed(i, status);
}

static enum twill_status config_check(const struct tw_chan_config *config)
{
    if (config->size < 1 || config->rank < 0 || config->rank >= config->size) {
        return tw_fail(TWILL_ERR_INVALID, "chan of rank %d of %d", config->rank, config->size);
    }
    return TWILL_OK;
}

enum twill_status tw_chan_create(const struct tw_nets *nets, const struct tw_chan_config *config,
                                 struct tw_chan **chan)
{
    enum twill_status status = config_check(config);
    if (status != TWILL_OK) {
        return status;
    }
    struct tw_chan *made = tw_alloc(sizeof(*made));
    if (made == NULL) {
        return TWILL_ERR_NOMEM;
    }
    made->rank = config->rank;
    made->size = config->size;
    made->fifo_bytes = config->fifo_bytes;
    made->area_bytes[AREA_BOARD] = config->board_bytes;
    made->area_bytes[AREA_SCRATCH] = config->scratch_bytes;
    made->area_bytes[AREA_SIGNALS] = (size_t)config->signals * sizeof(uint64_t);
    made->nets[NET_SELF] = nets->self;
    made->nets[NET_SHM] = nets->shm;
    made->transports[NET_SELF] = tw_transport_find("self");
    made->transports[NET_SHM] = tw_transport_find("shm");
    made->peers = tw_alloc((size_t)made->size * sizeof(*made->peers));
    status = made->peers == NULL ? TWILL_ERR_NOMEM : nets_choose(made, config);
    for (int i = 0; i < made->size && status == TWILL_OK; i++) {
        if (i != made->rank) {
            status = peer_connect(made, config, i);
        }
    }
    if (status == TWILL_OK) {
        status = areas_create(made);
    }
    if (status != TWILL_OK) {
        tw_chan_destroy(made);
        return status;
    }
    *chan = made;
    return TWILL_OK;
}

uint64_t tw_chan_staging_bytes(const struct tw_chan *chan)
{
    uint64_t bytes = (uint64_t)(chan->size - 1) * round_up(tw_fifo_memory_bytes(chan->fifo_bytes));
    for (int area = 0; area < AREA_COUNT; area++) {
        bytes += round_up(chan->area_bytes[area]);
    }
    return bytes;
}

/* ---- blobs ---------------------------------------------------------------------------------- */

static enum twill_status index_check(const struct tw_chan *chan, int peer)
{
    if (peer < 0 || peer >= chan->size || peer == chan->rank) {
        return tw_fail(TWILL_ERR_INVALID, "chan of rank %d of %d has no peer %d", chan->rank,
                       chan->size, peer);
    }
    return TWILL_OK;
}

enum twill_status tw_chan_export(struct tw_chan *chan, int peer, struct tw_chan_blob *blob)
{
    enum twill_status status = index_check(chan, peer);
    if (status != TWILL_OK) {
        return status;
    }
    const struct chan_peer *to = &chan->peers[peer];
    struct tw_blob *areas[AREA_COUNT] = {&blob->board, &blob->scratch, &blob->signals};
    memset(blob, 0, sizeof(*blob));
    blob->fifo = to->fifo_blob;
    for (int area = 0; area < AREA_COUNT && status == TWILL_OK; area++) {
        const struct tw_mr *mr = chan->mr[to->net][area];
        if (mr != NULL) {
            status = to->transport->rma->mr_export(mr, areas[area]);
        }
    }
    return status;
}

static enum twill_status area_import(struct tw_chan *chan, int peer, int area,
                                     const struct tw_blob *blob)
{
    static const char *const names[AREA_COUNT] = {"board", "scratch", "signals"};
    struct chan_peer *from = &chan->peers[peer];
    size_t bytes = 0;
    if (blob->bytes != 0) {
        enum twill_status status =
            from->transport->rma->mr_import(from->ep, blob, &from->rmem[area]);
        if (status != TWILL_OK) {
            return status;
        }
        from->area[area] = from->transport->rma->map(from->rmem[area], &bytes);
    }
    if (bytes != chan->area_bytes[area]) {
        return tw_fail(TWILL_ERR_VERSION, "peer %d has %zu bytes of %s, this rank %zu", peer, bytes,
                       names[area], chan->area_bytes[area]);
    }
    return TWILL_OK;
}

enum twill_status tw_chan_import(struct tw_chan *chan, int peer, const struct tw_chan_blob *blob)
{
    enum twill_status status = index_check(chan, peer);
    if (status != TWILL_OK) {
        return status;
    }
    struct chan_peer *from = &chan->peers[peer];
    if (from->send != NULL) {
        return tw_fail(TWILL_ERR_USAGE, "peer %d was imported already", peer);
    }
    status = from->transport->fifo->attach(from->ep, &blob->fifo, &from->send);
    if (status == TWILL_OK && from->send->slots.bytes != chan->fifo_bytes) {
        status = tw_fail(TWILL_ERR_VERSION, "peer %d has fifos of %zu bytes, this rank of %zu",
                         peer, from->send->slots.bytes, chan->fifo_bytes);
    }
    const struct tw_blob *areas[AREA_COUNT] = {&blob->board, &blob->scratch, &blob->signals};
    for (int area = 0; area < AREA_COUNT && status == TWILL_OK; area++) {
        status = area_import(chan, peer, area, areas[area]);
    }
    return status;
}

/* ---- end ------------------------------------------------------------------------------------ */

/* First all that writes to peers, so that they find this rank gone; then what peers write. */
void tw_chan_destroy(struct tw_chan *chan)
{
    if (chan == NULL) {
        return;
    }
    for (int i = 0; i < chan->size && chan->peers != NULL; i++) {
        struct chan_peer *peer = &chan->peers[i];
        for (int area = 0; area < AREA_COUNT; area++) {
            if (peer->rmem[area] != NULL) {
                peer->transport->rma->mr_release(peer->rmem[area]);
            }
        }
        tw_fifo_destroy_with(peer->send, NULL);
    }
    for (int i = 0; i < chan->size && chan->peers != NULL; i++) {
        struct chan_peer *peer = &chan->peers[i];
        tw_fifo_destroy_with(peer->recv, chan->hold);
        if (peer->ep != NULL) {
            peer->transport->net->ep_put(peer->ep);
        }
    }
    for (int net = 0; net < NET_COUNT; net++) {
        for (int area = 0; area < AREA_COUNT; area++) {
            if (chan->mr[net][area] != NULL) {
                chan->transports[net]->rma->unreg(chan->mr[net][area]);
            }
        }
    }
    tw_hold_put(chan->hold);
    free(chan->peers);
    free(chan);
}
