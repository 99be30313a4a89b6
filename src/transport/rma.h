/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: registered and imported host memory. Never knows: how processes are connected. */
#ifndef TW_TRANSPORT_RMA_H
#define TW_TRANSPORT_RMA_H

#include "transport/net.h"

/** A duplicate of the descriptor of memory that was registered under token; -1 none. */
int tw_mr_fd(struct tw_net *net, const uint64_t token[2]);

#endif
