/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the end of a group is made of. Never knows: how an item moves. */
#ifndef TW_COMM_GROUP_H
#define TW_COMM_GROUP_H

#include "comm/ops.h"

/**
 * Run checked calls as one group: per communicator the collectives in order, then the sends and
 * receives together; all communicators side by side. Claims the communicators meanwhile.
 *
 * @param calls  at least one
 * @return the first error; last errors (of NULL and of the communicators) are set
 */
enum twill_status tw_group_run(const struct tw_call *calls, size_t ncalls);

/** Finalize several communicators at once, each on a thread of its own. Where there is no memory or
 * thread for one it fails: its peers would wait for it. Last errors are set. */
enum twill_status tw_finalize_all(struct twill_comm *const *comms, size_t count);

#endif
