/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: peers in the same process: staging is plain memory, the one endpoint is the process.
 * Never knows: sockets, other processes. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "transport/fifo.h"
#include "transport/net.h"

#define ADDRESS_MAGIC 0x74777366u

static enum twill_status self_open(const struct tw_net_config *config, struct tw_net **net)
{
    struct tw_net *made;
    enum twill_status status = tw_net_create("self", config, false, &made);
    if (status != TWILL_OK) {
        return status;
    }
    struct tw_ep *ep = tw_alloc(sizeof(*ep));
    if (ep == NULL) {
        tw_net_destroy(made);
        return TWILL_ERR_NOMEM;
    }
    ep->net = made;
    ep->peer = config->self;
    ep->caps = TW_NET_ADDRESSABLE | TW_NET_SAME_PROCESS;
    ep->base = made->staging.base;
    ep->bytes = made->staging.bytes;
    made->self = ep;
    *net = made;
    return TWILL_OK;
}

static void self_close(struct tw_net *net)
{
    if (net == NULL) {
        return;
    }
    tw_fifo_sweep(net, true);
    free(net->self);
    tw_net_destroy(net);
}

static enum twill_status self_listen(struct tw_net *net, const uint8_t key[TW_KEY_BYTES],
                                     struct tw_listener **listener, struct tw_blob *address)
{
    (void)key; /* nothing is read from anybody */
    struct tw_listener *made = tw_alloc(sizeof(*made));
    if (made == NULL) {
        return TWILL_ERR_NOMEM;
    }
    made->net = net;
    uint32_t magic = ADDRESS_MAGIC;
    address->bytes = sizeof(magic);
    memcpy(address->data, &magic, sizeof(magic));
    *listener = made;
    return TWILL_OK;
}

static void self_unlisten(struct tw_listener *listener) { free(listener); }

static enum twill_status self_ep_get(struct tw_net *net, const struct tw_proc_id *peer,
                                     const struct tw_blob *address, const uint8_t key[TW_KEY_BYTES],
                                     const struct tw_sock_wait *wait, struct tw_ep **ep)
{
    (void)address;
    (void)key;
    (void)wait;
    if (memcmp(peer, &net->config.self, sizeof(*peer)) != 0) {
        char text[TW_PROC_TEXT_BYTES];
        return tw_fail(TWILL_ERR_INVALID,
                       "process %s is another one: transport self cannot reach it",
                       tw_proc_text(peer, text));
    }
    tw_ep_ref(net->self);
    *ep = net->self;
    return TWILL_OK;
}

const struct tw_net_ops tw_self_net_ops = {
    .name = "self",
    .open = self_open,
    .close = self_close,
    .listen = self_listen,
    .unlisten = self_unlisten,
    .ep_get = self_ep_get,
    .ep_put = tw_ep_unref,
    .ep_status = tw_ep_status,
    .ep_caps = tw_ep_caps,
};
