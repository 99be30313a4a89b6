/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a communicator holds in memory. Never knows: what it is for. */
#ifndef TW_COMM_MEMORY_H
#define TW_COMM_MEMORY_H

#include "comm/ops.h"

/* All in bytes; struct twill_memory says what they count. */
struct tw_memory {
    uint64_t comm_staging, process_staging, staging_limit, plans, scratch;
    uint64_t device, device_staging, device_limit;
};

/** comm is ready, claimed, and nothing of it is queued. */
void tw_memory_report(const struct twill_comm *comm, struct tw_memory *memory);

#endif
