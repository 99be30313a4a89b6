/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the table that people read, in the manner of nccl-tests. Never knows: how figures arise.
 */
#include "config.h"

#include <string.h>

#include "product.h"
#include "team.h"

void perf_report_head(const struct perf_team *team)
{
    const struct perf_options *options = team->options;
    char version[32], place[512];
    team->library->version(version, sizeof(version));
    team->place->describe(team, place, sizeof(place));
    printf("# twill-perf, %s %s: %d rank%s in %d process%s, %s\n",
           options->nccl ? "NCCL" : "library", version, team->size, team->size > 1 ? "s" : "",
           team->processes, team->processes > 1 ? "es" : "", place);
    printf("# %d calls a row after %d of warm-up, %d checked, seed %llu\n", options->iterations,
           options->warmup, options->checks, (unsigned long long)options->seed);
    if (options->uneven)
        printf("# uneven: blocks of v-variants fall from twice the mean to none\n");
    if (options->volume)
        printf("# fewer calls, but no less than %d, where they would come to more than %zu bytes\n",
               PERF_LEAST_CALLS, options->volume);
    if (options->overlap)
        printf("# overlap: beside products of %d x %d by %d x %d bfloat16 on a stream of %s "
               "priority\n",
               PERF_PRODUCT_ROWS, PERF_PRODUCT_DEPTH, PERF_PRODUCT_DEPTH, PERF_PRODUCT_COLUMNS,
               options->overlap == PERF_OVERLAP_FIRST ? "lower" : "the same");
    const char *time_is = team->place->time_is(options);
    printf("# time: %.*s\n", (int)strcspn(time_is, ";"), time_is);
}

static void report_choice_columns(const struct perf_case *c)
{
    printf("#\n# %s\n#%11s %13s %10s   %-24s %-8s %8s %12s\n", perf_op_info(c->op)->name, "size",
           "count", "type", "algo", "proto", "channels", "predicted_us");
}

static void report_overlap_columns(const struct perf_case *c)
{
    printf("#\n# %s\n", perf_op_info(c->op)->name);
    printf("# %65s %28s\n", "call", "product");
    printf("#%11s %13s %10s %7s %6s %5s", "size", "count", "type", "redop", "root", "SMs");
    for (int i = 0; i < 2; i++)
        printf(" %9s %9s %8s", "alone", "beside", "loss");
    printf(" %8s %6s\n#%11s %13s %10s %7s %6s %5s", "together", "#wrong", "(B)", "(elements)", "",
           "", "", "");
    for (int i = 0; i < 2; i++)
        printf(" %9s %9s %8s", "(us)", "(us)", "(%)");
    printf("\n");
    fflush(stdout); /* the first row may take long */
}

void perf_report_columns(const struct perf_team *team, const struct perf_case *c)
{
    if (team->options->list) {
        report_choice_columns(c);
        return;
    }
    if (team->options->overlap) {
        report_overlap_columns(c);
        return;
    }
    printf("#\n# %s\n", perf_op_info(c->op)->name);
    printf("# %53s %41s\n", "out-of-place", "in-place");
    printf("#%11s %13s %10s %7s %6s", "size", "count", "type", "redop", "root");
    for (int i = 0; i < 2; i++)
        printf(" %9s %7s %7s %6s", "time", "algbw", "busbw", "#wrong");
    printf("\n#%11s %13s %10s %7s %6s", "(B)", "(elements)", "", "", "");
    for (int i = 0; i < 2; i++)
        printf(" %9s %7s %7s %6s", "(us)", "(GB/s)", "(GB/s)", "");
    printf("\n");
    fflush(stdout); /* the first row may take long */
}

void perf_report_tolerance(const struct perf_case *c, int ranks)
{
    char tolerance[128];
    perf_check_tolerance_text(c, ranks, tolerance, sizeof(tolerance));
    if (strcmp(tolerance, "exact") != 0)
        printf("# %s of %s is checked to %s\n", perf_redop_name(c->redop), perf_type_name(c->type),
               tolerance);
}

/* Four significant digits or so in nine columns. */
static void print_time(double us)
{
    printf(" %9.*f", us < 10 ? 3 : us < 1000 ? 2 : us < 100000 ? 1 : 0, us);
}

static void print_rate(double gbs) { printf(" %7.*f", gbs < 100 ? 3 : 1, gbs); }

static void print_wrong(const struct perf_row *row)
{
    if (row->checked)
        printf(" %6llu", (unsigned long long)row->wrong);
    else
        printf(" %6s", "N/A");
}

static void print_case(const struct perf_case *c)
{
    const struct perf_op_info *info = perf_op_info(c->op);
    printf("%12zu %13zu %10s %7s %6d", c->size_bytes, c->count,
           info->moves ? perf_type_name(c->type) : "none",
           info->reduces ? perf_redop_name(c->redop) : "none", info->rooted ? c->root : -1);
}

static void print_figures(const struct perf_row *row)
{
    if (!row) {
        printf(" %9s %7s %7s %6s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    print_time(row->time_us);
    print_rate(row->algbw_gbs);
    print_rate(row->busbw_gbs);
    print_wrong(row);
}

void perf_report_row(const struct perf_row *out, const struct perf_row *in)
{
    print_case(&out->c);
    print_figures(out);
    print_figures(in);
    printf("\n");
    fflush(stdout);
}

static void print_loss(double alone_us, double beside_us)
{
    print_time(alone_us);
    print_time(beside_us);
    printf(" %8.1f", perf_overlap_loss(alone_us, beside_us));
}

void perf_report_overlap(const struct perf_row *row)
{
    print_case(&row->c);
    if (row->choice.algo[0])
        printf(" %5d", row->choice.channels);
    else
        printf(" %5s", "-");
    print_loss(row->time_us, row->beside_us);
    print_loss(row->product_us, row->product_beside_us);
    printf(" %8.2f", perf_overlap_together(row));
    print_wrong(row);
    printf("\n");
    fflush(stdout);
}

void perf_report_choice(const struct perf_row *row)
{
    const struct perf_case *c = &row->c;
    printf("%12zu %13zu %10s", c->size_bytes, c->count,
           perf_op_info(c->op)->moves ? perf_type_name(c->type) : "none");
    if (row->choice.algo[0])
        printf("   %-24s %-8s %8d %12.3f\n", row->choice.algo, row->choice.proto,
               row->choice.channels, row->choice.predicted_us);
    else
        printf("   %-24s\n", "point to point");
}

void perf_report_tail(const struct perf_rows *rows, bool checked)
{
    if (checked)
        printf("#\n# wrong elements : %llu %s\n", (unsigned long long)rows->wrong,
               rows->wrong ? "FAILED" : "OK");
    else
        printf("#\n# wrong elements : not checked\n");
    printf("# mean busbw     : %g GB/s\n",
           rows->busbw_rows ? rows->busbw_sum / (double)rows->busbw_rows : 0);
    fflush(stdout);
}
