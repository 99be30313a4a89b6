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
