/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: names of statuses and types. Never knows: who asks. */
#include "base/status.h"

const char *twill_status_string(enum twill_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text)                                                             \
    case TWILL_##name:                                                                             \
        return "TWILL_" #name;
        TWILL_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "TWILL_UNKNOWN";
}
