/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what all collectives check before they run. Never knows: how they run. */
#ifndef TW_API_COLL_H
#define TW_API_COLL_H

#include "api/api.h"

/** Does this rank have the buffer in the call? What it has not is ignored. */
static inline bool tw_coll_has(const struct tw_coll_buf *buf, const struct tw_call *call)
{
    return buf->where == TW_EVERYWHERE ||
           (buf->where == TW_AT_ROOT && call->comm->rank == call->info.root);
}

/* Counts and buffers; type, root and op are right. May fill in info. ERR_INVALID (tw_fail called,
 * not kept). */
typedef enum twill_status (*tw_coll_check_fn)(const char *name, const struct tw_coll_rule *rule,
                                              struct tw_call *call);

/** Check a call, then run or note or queue it. @param call  changed */
enum twill_status tw_api_coll(struct tw_call *call, tw_coll_check_fn check);

#endif
