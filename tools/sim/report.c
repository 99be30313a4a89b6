/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how priced rows look as a table, JSON and CSV. Never knows: how they came about. */
#include "sim.h"

static double algbw(const struct sim_row *row)
{
    double ns = (double)row->price.time_ps / 1e3;
    return ns > 0 ? (double)row->size.size_bytes / ns : 0;
}

static void json_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

/* Clusters have commas in their names; the column is the last, for readers that cut at each. */
static void csv_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

void sim_report_head(const struct sim_head *head)
{
    const struct sim_options *options = head->options;
    switch (options->form) {
    case SIM_TEXT:
        printf("# %s, %d ranks, %s%s\n# machine %s, cost table %016llx\n%s%s%s# %s\n",
               tw_coll_name(head->coll), head->nranks, options->type,
               options->in_place ? ", in place" : "", head->machine,
               (unsigned long long)head->table_hash, head->order ? "# ranks as a ring: " : "",
               head->order ? head->order : "", head->order ? "\n" : "", head->proof);
        printf("#%13s %14s %-20s %14s %10s %10s  %s\n", "bytes", "count", "algo", "time us",
               "algbw GB/s", "busbw GB/s", "limited by");
        break;
    case SIM_CSV:
        printf("op,size_bytes,count,type,root,inplace,time_us,algbw_gbs,busbw_gbs,algo,channels,"
               "limit,busy,machine\n");
        break;
    case SIM_JSON:
        printf("{\n  \"program\": \"twill-sim\", \"op\": \"%s\", \"ranks\": %d, \"type\": \"%s\", "
               "\"root\": %d, \"inplace\": %s, \"channels\": %u,\n  \"machine\": ",
               tw_coll_name(head->coll), head->nranks, options->type, options->root,
               options->in_place ? "true" : "false", options->channels);
        json_string(head->machine);
        printf(", \"cost_table\": \"%016llx\", \"proof\": ", (unsigned long long)head->table_hash);
        json_string(head->proof);
        if (head->order) {
            printf(", \"order\": ");
            json_string(head->order);
        }
        printf(",\n  \"results\": [");
        break;
    }
}

void sim_report_row(const struct sim_head *head, const struct sim_row *row, bool first)
{
    const struct sim_options *options = head->options;
    double us = (double)row->price.time_ps / 1e6, alg = algbw(row);
    double bus = alg * sim_bus_factor(head->coll, head->nranks);
    double busy = (double)row->price.busy_permille / 1000;
    unsigned long long bytes = row->size.size_bytes, count = row->size.count;
    switch (options->form) {
    case SIM_TEXT:
        printf("%14llu %14llu %-20s %14.3f %10.3f %10.3f  %s (%.0f %%)\n", bytes, count, row->algo,
               us, alg, bus, row->limit, 100 * busy);
        break;
    case SIM_CSV:
        printf("%s,%llu,%llu,%s,%d,%d,%.6f,%.6g,%.6g,%s,%u,%s,%.3f,", tw_coll_name(head->coll),
               bytes, count, options->type, options->root, options->in_place, us, alg, bus,
               row->algo, options->channels, row->limit, busy);
        csv_string(head->machine);
        putchar('\n');
        break;
    case SIM_JSON:
        printf("%s\n    {\"size_bytes\": %llu, \"count\": %llu, \"algo\": \"%s\", "
               "\"time_us\": %.6f, \"algbw_gbs\": %.6g, \"busbw_gbs\": %.6g, \"limit\": ",
               first ? "" : ",", bytes, count, row->algo, us, alg, bus);
        json_string(row->limit);
        printf(", \"busy\": %.3f}", busy);
        break;
    }
}

void sim_report_tail(const struct sim_head *head)
{
    if (head->options->form == SIM_JSON)
        printf("\n  ]\n}\n");
}
