/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how to read launchers' variables. Never knows: what is made of them. */
#include "config.h"

#include "base/launcher.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/status.h"

static const char *const names[TW_LAUNCHER_COUNT] = {
#define LAUNCHER_NAME(id, variable) variable,
    TW_LAUNCHER_LIST(LAUNCHER_NAME)
#undef LAUNCHER_NAME
};

const char *tw_launcher_name(enum tw_launcher_var var) { return names[var]; }

const char *tw_launcher_text(enum tw_launcher_var var)
{
    const char *text = getenv(names[var]);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

enum twill_status tw_launcher_int(enum tw_launcher_var var, int *value)
{
    const char *text = tw_launcher_text(var);
    char *end = NULL;

    if (text == NULL)
        return TWILL_OK;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < INT_MIN || number > INT_MAX)
        return tw_fail(TWILL_ERR_INVALID, "%s=\"%.80s\": expected an integer", names[var], text);
    *value = (int)number;
    return TWILL_OK;
}
