/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the ends of a chan by peer index, on the path of every message.
 * Never knows: how a chan was made. */
#include "config.h"

#include "channel/chan.h"
#include "transport/net.h"

enum twill_status tw_chan_peer_status(const struct tw_chan *chan, int peer)
{
    const struct tw_ep *ep = chan->peers[peer].ep;
    return ep == NULL ? TWILL_OK : tw_ep_status(ep);
}

bool tw_chan_same_process(const struct tw_chan *chan, int peer)
{
    return chan->peers[peer].net == NET_SELF;
}

const char *tw_chan_transport(const struct tw_chan *chan, int peer)
{
    return chan->peers[peer].transport->net->name;
}

size_t tw_chan_fifo_size(const struct tw_chan *chan) { return chan->fifo_bytes; }

void *tw_chan_board(struct tw_chan *chan) { return chan->area[AREA_BOARD]; }
const void *tw_chan_peer_board(const struct tw_chan *chan, int peer)
{
    return chan->peers[peer].area[AREA_BOARD];
}
void *tw_chan_scratch(struct tw_chan *chan) { return chan->area[AREA_SCRATCH]; }
void *tw_chan_peer_scratch(const struct tw_chan *chan, int peer)
{
    return chan->peers[peer].area[AREA_SCRATCH];
}
uint64_t *tw_chan_signals(struct tw_chan *chan) { return chan->area[AREA_SIGNALS]; }
uint64_t *tw_chan_peer_signals(const struct tw_chan *chan, int peer)
{
    return chan->peers[peer].area[AREA_SIGNALS];
}

size_t tw_chan_scratch_bytes(const struct tw_chan *chan) { return chan->area_bytes[AREA_SCRATCH]; }
uint32_t tw_chan_signal_count(const struct tw_chan *chan)
{
    return (uint32_t)(chan->area_bytes[AREA_SIGNALS] / sizeof(uint64_t));
}

enum twill_status tw_chan_layout_send(struct tw_chan *chan, int peer, uint32_t subs, uint32_t depth)
{
    return tw_slots_layout(&chan->peers[peer].send->slots, subs, depth);
}

enum twill_status tw_chan_layout_recv(struct tw_chan *chan, int peer, uint32_t subs, uint32_t depth)
{
    return tw_slots_layout(&chan->peers[peer].recv->slots, subs, depth);
}

enum twill_status tw_chan_reserve(struct tw_chan *chan, int peer, uint32_t sub, void **data)
{
    return tw_slots_reserve(&chan->peers[peer].send->slots, sub, data);
}

void tw_chan_commit(struct tw_chan *chan, int peer, uint32_t sub, uint32_t bytes, uint64_t header)
{
    tw_slots_commit(&chan->peers[peer].send->slots, sub, bytes, header);
}

enum twill_status tw_chan_peek(struct tw_chan *chan, int peer, uint32_t sub, struct tw_msg *msg)
{
    return tw_slots_peek(&chan->peers[peer].recv->slots, sub, msg);
}

void tw_chan_release(struct tw_chan *chan, int peer, uint32_t sub)
{
    tw_slots_release(&chan->peers[peer].recv->slots, sub);
}
