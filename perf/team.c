/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what a thread and its ranks need, from connecting to the end. Never knows: how the threads
 * came together, what is measured. */
#include "config.h"

#include <stdlib.h>

#include "cli.h"
#include "perf_cuda.h"
#include "team.h"

static bool rank_create(struct perf_team *team, int i)
{
    struct perf_rank *rank = &team->ranks[i];
    size_t page = PERF_PAGE_BYTES, most = team->options->max_bytes + 2 * (size_t)PERF_GUARD_BYTES;
    const char *why;
    rank->options = team->options;
    rank->rank = team->member * team->count + i;
    rank->size = team->size;
    rank->buffer_bytes = (most + page - 1) / page * page;
    /* all ranks are on one host, so a rank's number is its number on the host */
    rank->device = team->options->cuda ? rank->rank % perf_cuda_count(&why) : TWILL_DEVICE_HOST;
    rank->counts = calloc(2 * (size_t)rank->size, sizeof(*rank->counts));
    return rank->counts;
}

static bool team_create(struct perf_team *team)
{
    bool good = true;
    team->time_room = team->place->time_room(team->options);
    team->gather = calloc(1, perf_gather_bytes(team->members));
    team->times = calloc(team->time_room, sizeof(*team->times));
    team->ranks = calloc((size_t)team->count, sizeof(*team->ranks));
    for (int i = 0; i < team->count && team->ranks && good; i++)
        good = rank_create(team, i);
    if (good && team->gather && team->times && team->ranks)
        return true;
    fprintf(stderr, "twill-perf: rank %d: out of memory\n", team->member * team->count);
    return false;
}

static void team_destroy(struct perf_team *team)
{
    for (int i = 0; i < team->count && team->ranks; i++)
        free(team->ranks[i].counts);
    free(team->ranks);
    free(team->times);
    free(team->gather);
}

/* Connected: the files are for member 0 to write. */
static int measure(struct perf_team *team)
{
    const struct perf_options *options = team->options;
    struct perf_rows rows = {0};
    bool good = (team->member != 0 || perf_files_try(options)) && team->place->begin(team) &&
                (!options->overlap || perf_overlap_begin(team)) &&
                (!options->registered || team->library->attach(team)) && perf_sweep(team, &rows);
    if (good && team->member == 0 && !options->list)
        good = perf_files_write(team, &rows);
    if (!good) { /* the others shall not wait */
        team->library->abort(team);
        twill_comm_abort(team->talk);
    }
    good &= !options->registered || team->library->detach(team);
    good &= perf_overlap_end(team);
    good &= team->place->end(team);
    free(rows.rows);
    return !good ? PERF_EXIT_FAILED : rows.wrong ? PERF_EXIT_WRONG : 0;
}

/* The options are for member 0 to complain of. */
static int connect_and_measure(struct perf_team *team)
{
    const struct perf_options *options = team->options;
    if (options->root >= team->size) {
        if (team->member == 0)
            fprintf(stderr, "twill-perf: -r %d: there are %d ranks\n", options->root, team->size);
        return CLI_EXIT_USAGE;
    }
    if (!team->library->connect(team)) {
        team->library->abort(team);
        twill_comm_abort(team->talk);
        return PERF_EXIT_FAILED;
    }
    int status = measure(team);
    if (!team->library->disconnect(team) && status < CLI_EXIT_USAGE)
        status = PERF_EXIT_FAILED;
    return status;
}

int perf_team_run(const struct perf_options *options, twill_comm_t talk, int processes)
{
    struct perf_team team = {.options = options,
                             .library = options->nccl ? &perf_nccl : &perf_twill,
                             .place = options->cuda ? &perf_place_cuda : &perf_place_host,
                             .count = options->gpus > 1 ? options->gpus : 1,
                             .talk = talk};
    if (twill_comm_rank(talk, &team.member) != TWILL_OK ||
        twill_comm_size(talk, &team.members) != TWILL_OK)
        return PERF_EXIT_FAILED;
    team.size = team.members * team.count;
    team.processes = options->threads == 1 ? team.members : processes;
    int status = team_create(&team) ? connect_and_measure(&team) : PERF_EXIT_FAILED;
    if (status == PERF_EXIT_FAILED)
        twill_comm_abort(talk);
    team_destroy(&team);
    return status;
}
