/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: descriptors that peers may take: each has a token, and who knows that may.
 * Never knows: what they are of, how processes are connected. */
#include "config.h"

#include "transport/offer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "transport/shm.h"

struct tw_offer {
    struct tw_net *net;
    int fd; /* borrowed until withdrawn */
    uint64_t token[2];
    struct tw_offer *next;
};

enum twill_status tw_net_offer(struct tw_net *net, int fd, const uint64_t token[2],
                               struct tw_offer **offer)
{
    struct tw_offer *made = tw_alloc(sizeof(*made));
    if (made == NULL) {
        return TWILL_ERR_NOMEM;
    }
    *made = (struct tw_offer){.net = net, .fd = fd, .token = {token[0], token[1]}};
    pthread_mutex_lock(&net->lock);
    made->next = net->offers;
    net->offers = made;
    pthread_mutex_unlock(&net->lock);
    *offer = made;
    return TWILL_OK;
}

void tw_net_withdraw(struct tw_offer *offer)
{
    if (offer == NULL) {
        return;
    }
    struct tw_net *net = offer->net;
    pthread_mutex_lock(&net->lock);
    struct tw_offer **at = &net->offers;
    while (*at != offer) {
        at = &(*at)->next;
    }
    *at = offer->next;
    pthread_mutex_unlock(&net->lock);
    free(offer);
}

int tw_offer_fd(struct tw_net *net, const uint64_t token[2])
{
    int fd = -1;
    pthread_mutex_lock(&net->lock);
    for (const struct tw_offer *at = net->offers; at != NULL; at = at->next) {
        if (memcmp(at->token, token, sizeof(at->token)) == 0) {
            fd = fcntl(at->fd, F_DUPFD_CLOEXEC, 0);
            break;
        }
    }
    pthread_mutex_unlock(&net->lock);
    return fd;
}

enum twill_status tw_ep_take(struct tw_ep *ep, const uint64_t token[2], int *fd)
{
    if (ep->net->self == NULL) {
        return tw_shm_fetch(ep, token, fd);
    }
    int got = tw_offer_fd(ep->net, token);
    if (got < 0) {
        return tw_fail(TWILL_ERR_PEER, "the descriptor is not offered, or finds no room");
    }
    *fd = got;
    return TWILL_OK;
}
