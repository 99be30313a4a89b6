/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how it is shown which GPUs get at each other's memory. Never knows: how that is found. */
#include "config.h"

#include "info.h"

/* ---- for people -------------------------------------------------------------------------------
 */

static void print_those(FILE *out, int count, const enum tw_gap *gaps, int from, enum tw_gap gap)
{
    int listed = 0;

    for (int to = 0; to < count; to++) {
        if (to == from || gaps[from * count + to] != gap)
            continue;
        if (listed++ == 0)
            fprintf(out, "  GPU %d %s GPU %d", from,
                    gap == TW_GAP_NONE ? "reaches" : "does not reach", to);
        else
            fprintf(out, ", %d", to);
    }
    if (listed > 0 && gap != TW_GAP_NONE)
        fprintf(out, ": %s", tw_gap_text(gap));
    fputs(listed > 0 ? "\n" : "", out);
}

void info_reach_print(FILE *out, int count, const enum tw_gap *gaps)
{
    for (int from = 0; from < count; from++)
        for (int gap = TW_GAP_NONE; gap < TW_GAP_COUNT; gap++)
            print_those(out, count, gaps, from, (enum tw_gap)gap);
}

/* ---- for programs -----------------------------------------------------------------------------
 */

void info_reach_json(FILE *out, int count, const enum tw_gap *gaps)
{
    const char *comma = "";

    fputs("[", out);
    for (int from = 0; from < count; from++) {
        for (int to = 0; to < count; to++) {
            if (from == to)
                continue;
            const enum tw_gap gap = gaps[from * count + to];
            fprintf(out, "%s\n     {\"from\": %d, \"to\": %d, \"reaches\": %s, ", comma, from, to,
                    gap == TW_GAP_NONE ? "true" : "false");
            info_json_string(out, "reason", gap == TW_GAP_NONE ? "" : tw_gap_text(gap), "}");
            comma = ",";
        }
    }
    fputs("]", out);
}
