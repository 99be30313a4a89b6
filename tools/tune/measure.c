/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how twill-run and twill-perf are started so that they measure one algorithm.
 * Never knows: what is done with the figures. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "tune.h"

#define ALGO_BYTES 512
#define SHORT_BYTES ((uint64_t)64 << 10) /* sizes up to here are timed over more calls */
#define FACTOR "4"

struct programs {
    char run[TUNE_PATH_BYTES], perf[TUNE_PATH_BYTES];
};
/* Calls of sizes in a range. */
struct part {
    uint64_t least, most;
    const char *calls;
};

/* ---- one sweep ------------------------------------------------------------------------------ */

/* TWILL_ALGO's value that forces an algorithm on all collectives that it serves, and their names.
 */
static int colls_of(const struct tw_algo *algo, char value[ALGO_BYTES], char *names[TW_COLL_COUNT])
{
    int count = 0;
    size_t used = (size_t)snprintf(value, ALGO_BYTES, "TWILL_ALGO=");
    for (int c = 0; c < TW_COLL_COUNT; c++) {
        const char *name = tw_coll_name((enum tw_coll)c);
        if (!(algo->colls >> c & 1))
            continue;
        used += (size_t)snprintf(value + used, ALGO_BYTES - used, "%s%s=%s", count ? "," : "", name,
                                 algo->name);
        names[count++] = (char *)(uintptr_t)name; /* argv is never written */
    }
    return count;
}

static enum twill_status sweep_run(const struct programs *programs, const struct tw_algo *algo,
                                   int nranks, const struct part *part, const char *csv)
{
    char value[ALGO_BYTES], ranks[16], least[24], most[24];
    char *names[TW_COLL_COUNT], *argv[TW_COLL_COUNT + 32];
    int count = colls_of(algo, value, names), n = 0;
    snprintf(ranks, sizeof(ranks), "%d", nranks);
    snprintf(least, sizeof(least), "%llu", (unsigned long long)part->least);
    snprintf(most, sizeof(most), "%llu", (unsigned long long)part->most);
    const char *const head[] = {programs->run, "-n",  ranks, "--bind", "core",
                                "--timeout",   "120", "-x",  value,    programs->perf};
    for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
        argv[n++] = (char *)(uintptr_t)head[i];
    for (int i = 0; i < count; i++)
        argv[n++] = names[i];
    const char *const tail[] = {"-b",        least, "-e", most, "-f", FACTOR,  "-n",
                                part->calls, "-w",  "5",  "-c", "0",  "--csv", csv};
    for (size_t i = 0; i < sizeof(tail) / sizeof(tail[0]); i++)
        argv[n++] = (char *)(uintptr_t)tail[i];
    argv[n] = NULL;
    return count ? tune_program_run(argv, NULL) : TWILL_OK;
}

static enum twill_status algo_measure(const struct tune_options *options,
                                      const struct programs *programs, const struct tw_algo *algo,
                                      int nranks, const char *csv, struct sim_samples *samples)
{
    const struct part parts[] = {
        {8, options->max_bytes < SHORT_BYTES ? options->max_bytes : SHORT_BYTES, "300"},
        {4 * SHORT_BYTES, options->max_bytes, "10"},
    };
    enum twill_status status = TWILL_OK;
    size_t skipped = 0;
    for (int p = 0; p < 2 && !tw_failed(status); p++) {
        if (parts[p].least > parts[p].most)
            continue;
        status = sweep_run(programs, algo, nranks, &parts[p], csv);
        if (!tw_failed(status))
            status = sim_samples_read(samples, csv, nranks, options->column, &skipped);
    }
    return status;
}

static enum twill_status round_measure(const struct tune_options *options,
                                       const struct programs *programs, int round, const char *csv,
                                       struct sim_samples *samples)
{
    enum twill_status status = TWILL_OK;
    const struct tw_algo *algo;
    for (int r = 0; r < options->nnranks; r++) {
        for (size_t i = 0; !tw_failed(status) && (algo = tw_algo_at(i)) != NULL; i++) {
            if (options->algo && strcmp(options->algo, algo->name) != 0)
                continue;
            if (!options->quiet)
                fprintf(stderr, "twill-tune: round %d of %d, %d ranks, %s\n", round + 1,
                        options->rounds, options->nranks[r], algo->name);
            status = algo_measure(options, programs, algo, options->nranks[r], csv, samples);
        }
    }
    return status;
}

enum twill_status tune_measure(const struct tune_options *options, struct sim_samples *samples)
{
    struct programs programs;
    char folder[TUNE_PATH_BYTES], csv[TUNE_PATH_BYTES + 16];
    tune_program_find(options->run, "twill-run", programs.run);
    tune_program_find(options->perf, "twill-perf", programs.perf);
    enum twill_status status = tune_folder_make(folder);
    if (tw_failed(status))
        return status;
    snprintf(csv, sizeof(csv), "%s/sweep.csv", folder);
    for (int round = 0; round < options->rounds && !tw_failed(status); round++)
        status = round_measure(options, &programs, round, csv, samples);
    unlink(csv);
    rmdir(folder);
    return status;
}
