/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how a rank hands descriptors to its peers. Never knows: what they are of. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/status.h"
#include "channel/chan.h"

_Static_assert(NET_COUNT == TW_CHAN_NETS, "an offer is made on every net");

enum twill_status tw_chan_offer(struct tw_chan *chan, int fd, struct tw_chan_offer *offer)
{
    enum twill_status status = TWILL_OK;

    memset(offer, 0, sizeof(*offer));
    offer->fd = fd;
    tw_random(offer->token, sizeof(offer->token));
    for (int net = 0; net < NET_COUNT && status == TWILL_OK; net++) {
        if (chan->used[net]) {
            status = tw_net_offer(chan->nets[net], fd, offer->token, &offer->on[net]);
        }
    }
    if (status != TWILL_OK) {
        tw_chan_withdraw(offer);
    }
    return status;
}

void tw_chan_withdraw(struct tw_chan_offer *offer)
{
    for (int net = 0; net < NET_COUNT; net++) {
        tw_net_withdraw(offer->on[net]);
        offer->on[net] = NULL;
    }
    if (offer->fd >= 0) {
        (void)close(offer->fd);
    }
    offer->fd = -1;
}

enum twill_status tw_chan_take(struct tw_chan *chan, int peer, const uint64_t token[2], int *fd)
{
    return tw_ep_take(chan->peers[peer].ep, token, fd);
}
