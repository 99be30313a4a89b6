/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: gnuplot's language. Never knows: how figures arise. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "team.h"

#define MAX_CURVES 64

/* Rows of one operation, type and reduction, out of place. */
static bool same_curve(const struct perf_case *a, const struct perf_case *b)
{
    return a->op == b->op && a->type == b->type && a->redop == b->redop && a->root == b->root;
}

static bool plotted(const struct perf_row *row)
{
    return perf_op_info(row->c.op)->moves && !row->c.in_place && row->c.size_bytes > 0;
}

static int find_curves(const struct perf_rows *rows, const struct perf_case *curves[MAX_CURVES])
{
    int n = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct perf_case *c = &rows->rows[i].c;
        int k = 0;
        while (k < n && !same_curve(curves[k], c))
            k++;
        if (k == n && n < MAX_CURVES && plotted(&rows->rows[i]))
            curves[n++] = c;
    }
    return n;
}

static void print_title(FILE *to, const struct perf_case *c)
{
    const struct perf_op_info *info = perf_op_info(c->op);
    fprintf(to, "%s %s", info->name, perf_type_name(c->type));
    if (info->reduces)
        fprintf(to, " %s", perf_redop_name(c->redop));
    if (info->rooted && c->root)
        fprintf(to, " root %d", c->root);
}

static void print_panel(FILE *to, const struct perf_case **curves, int n, const char *column)
{
    for (int k = 0; k < n; k++) {
        fprintf(to, "%s $curve%d using 1:%s with linespoints pointtype 7 pointsize 0.4 title '",
                k ? ", " : "plot", k, column);
        print_title(to, curves[k]);
        fputc('\'', to);
    }
    fputc('\n', to);
}

static void print_script(FILE *to, const char *path, const struct perf_team *team,
                         const struct perf_rows *rows)
{
    const struct perf_case *curves[MAX_CURVES];
    int n = find_curves(rows, curves);
    for (int k = 0; k < n; k++) {
        fprintf(to, "$curve%d << END\n", k);
        for (size_t i = 0; i < rows->count; i++)
            if (plotted(&rows->rows[i]) && same_curve(&rows->rows[i].c, curves[k]))
                fprintf(to, "%zu %.6g %.6g\n", rows->rows[i].c.size_bytes, rows->rows[i].time_us,
                        team->size > 1 ? rows->rows[i].busbw_gbs : rows->rows[i].algbw_gbs);
        fputs("END\n", to);
    }
    fputs("set terminal svg size 1100,480 dynamic background rgb 'white' noenhanced\nset output '",
          to);
    for (const char *c = path; *c; c++)
        fputs(*c == '\'' ? "''" : (char[]){*c, 0}, to);
    fprintf(to, "'\nset multiplot layout 1,2 title 'twill-perf, %d ranks, out of place'\n",
            team->size);
    fputs("set logscale x 2\nset logscale y\nset xtics 16\nset format x '%.0b %BB'\nset grid\nset "
          "key left top\n"
          "set xlabel 'size'\nset ylabel 'time (us)'\n",
          to);
    print_panel(to, curves, n, "2");
    fprintf(to, "set ylabel '%s bandwidth (GB/s)'\n", team->size > 1 ? "bus" : "algorithm");
    print_panel(to, curves, n, "3");
    fputs("unset multiplot\n", to);
}

/* gnuplot ends well although its file ended early, on a full disk for instance. */
static bool svg_whole(const char *path)
{
    char tail[64] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool good = fseek(file, -(long)(sizeof(tail) - 1), SEEK_END) == 0 &&
                fread(tail, 1, sizeof(tail) - 1, file) > 0 && strstr(tail, "</svg>");
    fclose(file);
    return good;
}

static bool run_gnuplot(const char *path, const struct perf_team *team,
                        const struct perf_rows *rows)
{
    int pipes[2], status = -1;
    if (pipe(pipes) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipes[0], 0);
        close(pipes[0]);
        close(pipes[1]);
        execlp("gnuplot", "gnuplot", "-", (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    close(pipes[0]);
    FILE *to = fdopen(pipes[1], "w");
    if (to && pid > 0)
        print_script(to, path, team, rows);
    if (!to || fclose(to) != 0 || pid < 0)
        status = -1;
    bool exited = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status);
    bool missing = exited && WEXITSTATUS(status) == 127;
    if (exited && !WEXITSTATUS(status) && svg_whole(path))
        return true;
    fprintf(stderr, "twill-perf: cannot plot %s: %s\n", path,
            missing                          ? "gnuplot was not found (Debian: gnuplot-nox)"
            : exited && !WEXITSTATUS(status) ? "gnuplot could not write the whole file"
                                             : "gnuplot failed");
    return false;
}

bool perf_plot_write(const char *path, const struct perf_team *team, const struct perf_rows *rows)
{
    const struct perf_case *curves[MAX_CURVES];
    if (strpbrk(path, "\n\r") || !find_curves(rows, curves)) {
        fprintf(stderr, "twill-perf: --plot: %s\n",
                strpbrk(path, "\n\r") ? "the file's name has a line break"
                                      : "there is no row with a size above 0");
        return false;
    }
    void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* gnuplot may not be there to read */
    bool good = run_gnuplot(path, team, rows);
    signal(SIGPIPE, before);
    if (good || team->options->csv)
        return good;
    char data[4096];
    int length = snprintf(data, sizeof(data), "%s.csv", path);
    if (length > 0 && (size_t)length < sizeof(data) && perf_csv_write(data, team, rows))
        fprintf(stderr, "twill-perf: the data is in %s\n", data);
    return false;
}
