/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the memory report's struct of every version. Never knows: what is counted, and where. */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "api/api.h"
#include "comm/memory.h"

static enum twill_status report_check(const struct twill_memory *report)
{
    if (!report)
        return tw_fail(TWILL_ERR_INVALID, "comm_memory: the output is NULL");
    if (report->magic != TWILL_MEMORY_MAGIC)
        return tw_fail(TWILL_ERR_INVALID,
                       "comm_memory: magic is %#x, not %#x: start from TWILL_MEMORY_INIT",
                       report->magic, TWILL_MEMORY_MAGIC);
    if (report->size < offsetof(struct twill_memory, comm_staging_bytes))
        return tw_fail(TWILL_ERR_INVALID, "comm_memory: size %zu is less than the head's %zu bytes",
                       report->size, offsetof(struct twill_memory, comm_staging_bytes));
    return TWILL_OK;
}

static void report_fill(twill_comm_t comm, struct twill_memory *report)
{
    struct tw_memory memory;
    tw_memory_report(comm, &memory);
    const struct twill_memory full = {
        .size = report->size,
        .magic = report->magic,
        .version = report->version,
        .comm_staging_bytes = memory.comm_staging,
        .process_staging_bytes = memory.process_staging,
        .staging_limit_bytes = memory.staging_limit,
        .registered_bytes = tw_api_reg_bytes(comm),
        .plan_bytes = memory.plans,
        .scratch_bytes = memory.scratch,
        .device_bytes = memory.device,
        .device_staging_bytes = memory.device_staging,
        .device_limit_bytes = memory.device_limit,
    };
    memcpy(report, &full, report->size < sizeof full ? report->size : sizeof full);
}

enum twill_status twill_comm_memory(twill_comm_t comm, struct twill_memory *report)
{
    enum twill_status status = tw_api_enter(comm, "comm_memory");
    if (tw_failed(status))
        return status;
    status = report_check(report);
    if (!tw_failed(status) && __atomic_load_n(&comm->ops->pending, __ATOMIC_ACQUIRE))
        status = tw_fail(TWILL_ERR_USAGE, "comm_memory: operations are still queued on streams");
    if (!tw_failed(status))
        report_fill(comm, report);
    else
        tw_last_error_keep(tw_comm_key(comm));
    tw_api_leave(comm);
    return status;
}
