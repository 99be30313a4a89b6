/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: this library's version. Never knows: anything else. */
#include "config.h"

#include "api/api.h"

enum twill_status twill_version(int *version)
{
    if (!version)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID, "version: the output is NULL"));
    *version = TWILL_VERSION;
    return TWILL_OK;
}
