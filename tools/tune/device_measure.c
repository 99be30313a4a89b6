/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how twill-perf is started so that calls on devices go by one protocol.
 * Never knows: what is done with the figures. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "tune.h"

#define OPS_MOST 3
#define BOUNDS_MOST 3
#define FREE_PS 1000u
#define DEAR_PS ((uint64_t)1000 * 1000 * 1000 * 1000) /* a second: the most there is */
#define FREE_MBS ((uint64_t)100 * 1000 * 1000)        /* likewise */
#define ARGUMENTS 48

/* Sweeps with one protocol made the cheapest: what it has no room for goes by another one, which
 * the rows say. */
struct part {
    const char *name;
    enum tw_cost_proto proto;
    bool cut; /* devices are kept from reaching each other */
    const char *ops[OPS_MOST];
    uint64_t least, most;            /* sizes as twill-perf counts them; most 0: as asked for */
    const char *bounds[BOUNDS_MOST]; /* of multiprocessors; "0": none */
};
static const struct part parts[] = {
    {"lines",
     TW_COST_PROTO_LINES,
     false,
     {"all_reduce", "all_gather", "reduce_scatter"},
     8,
     1 << 20,
     {"0", "16"}},
    {"rings",
     TW_COST_PROTO_RINGS,
     false,
     {"reduce_scatter", "reduce"},
     64 << 10,
     0,
     {"0", "16", "4"}},
    {"reads",
     TW_COST_PROTO_READS,
     false,
     {"all_reduce", "reduce_scatter"},
     64 << 10,
     0,
     {"0", "16", "4"}},
    {"writes",
     TW_COST_PROTO_WRITES,
     false,
     {"all_gather", "all_to_all", "broadcast"},
     64 << 10,
     0,
     {"0", "16", "4"}},
    {"copies", TW_COST_PROTO_COPIES, false, {"all_gather", "all_to_all"}, 4 << 20, 0, {"0"}},
    {"lines of pinned memory",
     TW_COST_PROTO_PINNED_LINES,
     true,
     {"all_reduce", "all_gather"},
     8,
     1 << 20,
     {"0"}},
    {"rings of pinned memory",
     TW_COST_PROTO_PINNED_RINGS,
     true,
     {"reduce_scatter", "all_gather"},
     64 << 10,
     64 << 20,
     {"0", "4"}},
};

struct place {
    const struct tune_options *options;
    int nranks;
    char perf[TUNE_PATH_BYTES], folder[TUNE_PATH_BYTES];
    char csv[TUNE_PATH_BYTES + 16], cost[TUNE_PATH_BYTES + 16];
};

/* Rows after which a protocol is the cheapest wherever it can serve. */
static enum twill_status prices_write(const struct place *place, const struct tw_cost_table *table,
                                      enum tw_cost_proto proto)
{
    struct tw_cost_table forced = *table;

    for (int p = 0; p < TW_COST_PROTO_COUNT; p++) {
        const enum tw_cost_proto each = (enum tw_cost_proto)p;

        forced.value[tw_cost_proto_index(each, TW_COST_PROTO_START)] =
            each == proto ? FREE_PS : DEAR_PS;
    }
    forced.value[tw_cost_proto_index(proto, TW_COST_PROTO_RATE)] = FREE_MBS;
    if (proto < TW_COST_PROTO_KERNELS)
        forced.value[tw_cost_proto_index(proto, TW_COST_PROTO_BLOCK)] = FREE_MBS;
    return tw_cost_table_save(place->cost, &forced, "makes calls go by one protocol");
}

static enum twill_status sweep_run(const struct place *place, const struct part *part,
                                   const char *bound, struct tune_calls *calls)
{
    const uint64_t asked = place->options->max_bytes;
    const uint64_t most = part->most == 0 || part->most > asked ? asked : part->most;
    char ranks[16], first[24], last[24], cost[TUNE_PATH_BYTES + 64];
    const char *const tail[] = {"--device", "cuda", "-g",        ranks, "-b",    first,
                                "-e",       last,   "-f",        "4",   "-n",    "20",
                                "-w",       "5",    "-c",        "0",   "-G",    "5",
                                "--volume", "2G",   "--max-sms", bound, "--csv", place->csv};
    const char *argv[ARGUMENTS] = {place->perf};
    size_t n = 1;

    if (part->least > most)
        return TWILL_OK;
    snprintf(ranks, sizeof(ranks), "%d", place->nranks);
    snprintf(first, sizeof(first), "%llu", (unsigned long long)part->least);
    snprintf(last, sizeof(last), "%llu", (unsigned long long)most);
    snprintf(cost, sizeof(cost), "TWILL_COST_FILE=%s", place->cost);
    for (int i = 0; i < OPS_MOST && part->ops[i]; i++)
        argv[n++] = part->ops[i];
    for (size_t i = 0; i < sizeof(tail) / sizeof(tail[0]); i++)
        argv[n++] = tail[i];
    /* what the user has set would force something else, and a ring is none of the protocols; a call
     * that hangs is to end */
    const char *const variables[] = {cost,
                                     "TWILL_COPY_ENGINE=auto",
                                     "TWILL_ALGO=^ring",
                                     "TWILL_PLAN_FILE=",
                                     "TWILL_TIMEOUT=60s",
                                     part->cut ? "TWILL_P2P=0" : "TWILL_P2P=1",
                                     NULL};
    enum twill_status status =
        tune_program_run((char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)variables);
    return tw_failed(status) ? status
                             : tune_calls_read(calls, place->csv, place->nranks,
                                               place->options->column, part->cut);
}

static enum twill_status part_measure(const struct place *place, const struct part *part, int round,
                                      const struct tw_cost_table *table, struct tune_calls *calls)
{
    enum twill_status status = prices_write(place, table, part->proto);

    for (int i = 0; i < BOUNDS_MOST && part->bounds[i] && !tw_failed(status); i++) {
        if (!place->options->quiet)
            fprintf(stderr, "twill-tune: round %d of %d, %d devices, %s, bound %s\n", round + 1,
                    place->options->rounds, place->nranks, part->name, part->bounds[i]);
        status = sweep_run(place, part, part->bounds[i], calls);
    }
    return status;
}

enum twill_status tune_calls_measure(const struct tune_options *options, int nranks,
                                     const struct tw_cost_table *table, struct tune_calls *calls)
{
    struct place place = {.options = options, .nranks = nranks};

    tune_program_find(options->perf, "twill-perf", place.perf);
    enum twill_status status = tune_folder_make(place.folder);
    if (tw_failed(status))
        return status;
    snprintf(place.csv, sizeof(place.csv), "%s/sweep.csv", place.folder);
    snprintf(place.cost, sizeof(place.cost), "%s/costs", place.folder);
    for (int round = 0; round < options->rounds && !tw_failed(status); round++)
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !tw_failed(status); i++)
            status = part_measure(&place, &parts[i], round, table, calls);
    unlink(place.csv);
    unlink(place.cost);
    rmdir(place.folder);
    return status;
}
