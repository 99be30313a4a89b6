/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: descriptors that peers may take. Never knows: how processes are connected. */
#ifndef TW_TRANSPORT_OFFER_H
#define TW_TRANSPORT_OFFER_H

#include "transport/net.h"

/** A duplicate of the descriptor that is offered under token; -1 none. */
int tw_offer_fd(struct tw_net *net, const uint64_t token[2]);

#endif
