/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: JSON and CSV. Never knows: how figures arise. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "product.h"
#include "team.h"

static bool file_finish(FILE *file, const char *path)
{
    bool good = !ferror(file);
    int error = errno;
    if (fclose(file) != 0) {
        good = false;
        error = errno;
    }
    if (!good)
        fprintf(stderr, "twill-perf: cannot write %s: %s\n", path, strerror(error));
    return good;
}

static FILE *file_open(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    if (!file)
        fprintf(stderr, "twill-perf: cannot write %s: %s\n", path, strerror(errno));
    return file;
}

bool perf_files_try(const struct perf_options *options)
{
    const char *const paths[] = {options->json, options->csv, options->plot};
    for (int i = 0; i < 3; i++) {
        FILE *file = paths[i] ? file_open(paths[i], "ae") : NULL;
        if (paths[i] && (!file || !file_finish(file, paths[i])))
            return false;
    }
    return true;
}

static void json_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
    fputc('"', file);
}

static void json_choice(FILE *file, const struct twill_choice *choice)
{
    if (!choice->algo[0]) {
        fputs("\"algo\": null, \"proto\": null, \"channels\": null", file);
        return;
    }
    fputs("\"algo\": ", file); /* a plan of the user's may have any name */
    json_string(file, choice->algo);
    fputs(", \"proto\": ", file);
    json_string(file, choice->proto);
    fprintf(file, ", \"channels\": %d", choice->channels);
}

static void json_row(FILE *file, const struct perf_row *row, const struct perf_team *team)
{
    char tolerance[128];
    const struct perf_op_info *info = perf_op_info(row->c.op);
    fprintf(file,
            "    {\"op\": \"%s\", \"size_bytes\": %zu, \"count\": %zu, \"type\": \"%s\", "
            "\"redop\": \"%s\", \"root\": %d, \"inplace\": %s,\n",
            info->name, row->c.size_bytes, row->c.count,
            info->moves ? perf_type_name(row->c.type) : "none",
            info->reduces ? perf_redop_name(row->c.redop) : "none", info->rooted ? row->c.root : -1,
            row->c.in_place ? "true" : "false");
    fprintf(file,
            "     \"time_us\": %.4f, \"time_us_min\": %.4f, \"time_us_median\": %.4f, "
            "\"time_us_p99\": %.4f, \"time_us_max\": %.4f,\n",
            row->time_us, row->min_us, row->median_us, row->p99_us, row->max_us);
    fprintf(file, "     \"algbw_gbs\": %.6g, \"busbw_gbs\": %.6g, ", row->algbw_gbs,
            row->busbw_gbs);
    if (row->checked)
        fprintf(file, "\"wrong\": %llu,\n", (unsigned long long)row->wrong);
    else
        fputs("\"wrong\": null,\n", file);
    perf_check_tolerance_text(&row->c, team->size, tolerance, sizeof(tolerance));
    fprintf(file, "     \"tolerance\": \"%s\", ", tolerance);
    if (team->options->overlap) {
        fprintf(file,
                "\"time_beside_us\": %.4f, \"time_loss_percent\": %.2f,\n"
                "     \"product_us\": %.4f, \"product_beside_us\": %.4f, "
                "\"product_loss_percent\": %.2f, \"together\": %.4f,\n     ",
                row->beside_us, perf_overlap_loss(row->time_us, row->beside_us), row->product_us,
                row->product_beside_us, perf_overlap_loss(row->product_us, row->product_beside_us),
                perf_overlap_together(row));
    }
    json_choice(file, &row->choice);
    fprintf(file, ", \"lib\": \"%s\"}", team->library->name);
}

static void json_facts(FILE *file, const struct perf_team *team, const struct perf_rows *rows)
{
    const struct perf_options *options = team->options;
    char host[256] = "", started[32] = "", measured[32], place[512];
    int version = 0;
    time_t now = time(NULL);
    struct tm utc;
    gethostname(host, sizeof(host) - 1);
    strftime(started, sizeof(started), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    twill_version(&version);
    fprintf(file,
            "  \"program\": \"twill-perf\", \"version\": \"%d.%d.%d\", "
            "\"library_version\": \"%d.%d.%d\",\n",
            TWILL_VERSION_MAJOR, TWILL_VERSION_MINOR, TWILL_VERSION_PATCH, version / 10000,
            version / 100 % 100, version % 100);
    fputs("  \"host\": ", file);
    json_string(file, host);
    fprintf(file, ", \"cpus\": %ld, \"written\": \"%s\",\n", sysconf(_SC_NPROCESSORS_ONLN),
            started);
    fprintf(file,
            "  \"ranks\": %d, \"processes\": %d, \"threads\": %d, \"gpus\": %d, "
            "\"device\": \"%s\", \"graph\": %d, \"registered\": %d,\n",
            team->size, team->processes, options->threads, options->cuda ? team->count : 0,
            team->place->name, options->graph > 0 ? options->graph : 0, options->registered);
    team->library->version(measured, sizeof(measured));
    team->place->describe(team, place, sizeof(place));
    fprintf(file, "  \"lib\": \"%s\", \"lib_version\": \"%s\", \"place\": ", team->library->name,
            measured);
    json_string(file, place);
    fputs(",\n", file);
    fprintf(file,
            "  \"iterations\": %d, \"warmup\": %d, \"checks\": %d, \"seed\": %llu, "
            "\"uneven\": %d,\n",
            options->iterations, options->warmup, options->checks,
            (unsigned long long)options->seed, options->uneven);
    if (options->overlap)
        fprintf(file, "  \"overlap\": \"%s\", \"product\": [%d, %d, %d],\n",
                perf_overlap_name(options->overlap), PERF_PRODUCT_ROWS, PERF_PRODUCT_DEPTH,
                PERF_PRODUCT_COLUMNS);
    fprintf(file, "  \"volume\": %zu, \"time_us_is\": \"%s\",\n", options->volume,
            team->place->time_is(options));
    if (options->checks)
        fprintf(file, "  \"wrong\": %llu, ", (unsigned long long)rows->wrong);
    else
        fputs("  \"wrong\": null, ", file);
    fprintf(file, "\"mean_busbw_gbs\": %.6g,\n",
            rows->busbw_rows ? rows->busbw_sum / (double)rows->busbw_rows : 0);
}

static bool json_write(const char *path, const struct perf_team *team, const struct perf_rows *rows)
{
    FILE *file = file_open(path, "we");
    if (!file)
        return false;
    fputs("{\n", file);
    json_facts(file, team, rows);
    fputs("  \"results\": [", file);
    for (size_t i = 0; i < rows->count; i++) {
        fputs(i ? ",\n" : "\n", file);
        json_row(file, &rows->rows[i], team);
    }
    fputs("\n  ]\n}\n", file);
    return file_finish(file, path);
}

static void csv_overlap(FILE *file, const struct perf_row *row, enum perf_overlap overlap)
{
    fprintf(file, ",%s,%.4f,%.2f,%.4f,%.4f,%.2f,%.4f", perf_overlap_name(overlap), row->beside_us,
            perf_overlap_loss(row->time_us, row->beside_us), row->product_us,
            row->product_beside_us, perf_overlap_loss(row->product_us, row->product_beside_us),
            perf_overlap_together(row));
}

bool perf_csv_write(const char *path, const struct perf_team *team, const struct perf_rows *rows)
{
    FILE *file = file_open(path, "we");
    if (!file)
        return false;
    fputs("op,size_bytes,count,type,redop,root,inplace,time_us,time_us_min,time_us_median,"
          "time_us_p99,time_us_max,algbw_gbs,busbw_gbs,wrong,algo,proto,channels,lib",
          file);
    if (team->options->overlap)
        fputs(",overlap,time_beside_us,time_loss_percent,product_us,product_beside_us,"
              "product_loss_percent,together",
              file);
    fputc('\n', file);
    for (size_t i = 0; i < rows->count; i++) {
        const struct perf_row *row = &rows->rows[i];
        const struct perf_op_info *info = perf_op_info(row->c.op);
        fprintf(file, "%s,%zu,%zu,%s,%s,%d,%d,%.4f,%.4f,%.4f,%.4f,%.4f,%.6g,%.6g,", info->name,
                row->c.size_bytes, row->c.count, info->moves ? perf_type_name(row->c.type) : "none",
                info->reduces ? perf_redop_name(row->c.redop) : "none",
                info->rooted ? row->c.root : -1, row->c.in_place, row->time_us, row->min_us,
                row->median_us, row->p99_us, row->max_us, row->algbw_gbs, row->busbw_gbs);
        if (row->checked)
            fprintf(file, "%llu", (unsigned long long)row->wrong);
        if (row->choice.algo[0])
            fprintf(file, ",%s,%s,%d,", row->choice.algo, row->choice.proto, row->choice.channels);
        else
            fputs(",,,,", file);
        fputs(team->library->name, file);
        if (team->options->overlap)
            csv_overlap(file, row, team->options->overlap);
        fputc('\n', file);
    }
    return file_finish(file, path);
}

bool perf_files_write(const struct perf_team *team, const struct perf_rows *rows)
{
    const struct perf_options *options = team->options;
    bool good = true;
    if (options->json)
        good &= json_write(options->json, team, rows);
    if (options->csv)
        good &= perf_csv_write(options->csv, team, rows);
    if (options->plot)
        good &= perf_plot_write(options->plot, team, rows);
    return good;
}
