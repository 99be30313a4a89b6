/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that groups are the calling thread's. Never knows: what is in them. */
#include "config.h"

#include "api/api.h"

enum twill_status twill_group_start(void) { return tw_group_start(); }

enum twill_status twill_group_end(void)
{
    enum twill_status status = tw_api_own("group_end");
    return tw_failed(status) ? tw_api_error(status) : tw_group_end();
}

enum twill_status twill_group_cancel(void)
{
    enum twill_status status = tw_api_own("group_cancel");
    return tw_failed(status) ? tw_api_error(status) : tw_group_cancel();
}

enum twill_status twill_group_simulate_end(struct twill_simulation *simulation)
{
    uint64_t time_ps = 0;
    enum twill_status status = tw_api_own("group_simulate_end");
    if (tw_failed(status))
        return tw_api_error(status);
    if (!simulation || simulation->magic != TWILL_SIMULATION_MAGIC ||
        simulation->size < sizeof *simulation)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID,
                                    "group_simulate_end: the struct was not initialised with "
                                    "TWILL_SIMULATION_INIT"));
    status = tw_group_simulate(&time_ps);
    if (!tw_failed(status))
        simulation->predicted_us = (double)time_ps * 1e-6;
    return status;
}
