/* SPDX-License-Identifier: Apache-2.0 */
/* Writes docs/params.md from the table of parameters; `make update-docs` puts it in its place.
 *
 * Knows: how the page looks. Never knows: a parameter. */
#include <stdio.h>

#include "base/param.h"

int main(void)
{
    struct tw_param_row row;

    (void)puts("<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
               "<!-- Written by `make update-docs` from src/base/param.def: change it there. -->\n"
               "# Parameters\n"
               "\n"
               "Each is an environment variable `TWILL_<NAME>`, or is set by "
               "`twill_param_set(\"<NAME>\", value)` before\n"
               "the first communicator of the process, which is stronger. They are read once, when "
               "that communicator is\n"
               "made. An unknown `TWILL_*` in the environment is warned of with the nearest name; "
               "a value that does not\n"
               "parse is an error. `twill-info` shows what counts and where it came from.\n"
               "\n"
               "Bytes are written as `4096`, `64K`, `1.5M` or `2GiB` (powers of 1024); times as "
               "`1.8us`, `20ms`, `300s`,\n"
               "`5min` or `2h`, and a bare number counts the unit of its row; switches as `0` or "
               "`1` (also no yes, off on,\n"
               "false true). Empty is as good as unset.\n"
               "\n"
               "| name | type | unit | default | meaning |\n"
               "|---|---|---|---|---|");
    for (size_t i = 0; tw_param_row(i, &row); i++) {
        const char *tick = row.dflt[0] != '\0' ? "`" : "";
        (void)printf("| `TWILL_%s` | %s | %s | %s%s%s | %s |\n", row.name, row.type, row.unit, tick,
                     row.dflt, tick, row.doc);
    }
    return ferror(stdout) != 0;
}
