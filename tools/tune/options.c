/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: twill-tune's command line. Never knows: what is done with it. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/value.h"
#include "cli.h"
#include "tune.h"

const char cli_program[] = "twill-tune";

static const char help[] =
    "usage: twill-tune [-o FILE] [-n RANKS,...] [options]\n"
    "       twill-tune [-o FILE] --from SWEEP.csv:RANKS... [options]\n"
    "       twill-tune [-o FILE] --device cuda [options]\n"
    "Measure every algorithm on this host, or every protocol between its CUDA devices, fit the\n"
    "table of costs to it and write the file that TWILL_COST_FILE names.\n"
    "\n"
    "  -o FILE          the table; standard output\n"
    "  -n RANKS,...     numbers of ranks to measure with (2,4); one of devices (all there are)\n"
    "  -e BYTES         largest size (16M; of devices 256M)\n"
    "  --device D       host (default) or cuda: calls on devices, in one process\n"
    "  --rounds N       of everything; of equal cases the least time counts (3)\n"
    "  --algo NAME      measure this algorithm only\n"
    "  --from FILE:N    measure nothing: a CSV of twill-perf over N ranks; may be repeated\n"
    "  --column NAME    of the measured time (time_us_min: what others do only adds)\n"
    "  --machine FILE   this host as twill-topo wrote it, or a machine's name\n"
    "  --cost FILE      table to begin with; else TWILL_COST_FILE, else built in\n"
    "  --run PROGRAM, --perf PROGRAM\n"
    "                   twill-run and twill-perf; beside this program, or in PATH\n"
    "  --quiet          no progress on standard error\n"
    "  --help, --version\n"
    "\n"
    "Let nothing else run meanwhile. Exit status: 0; 2 wrong usage; 3 an error.\n";

enum {
    OPT_ROUNDS = 256,
    OPT_FROM,
    OPT_COLUMN,
    OPT_ALGO,
    OPT_MACHINE,
    OPT_COST,
    OPT_DEVICE,
    OPT_RUN,
    OPT_PERF,
    OPT_QUIET,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"rounds", required_argument, NULL, OPT_ROUNDS},
    {"from", required_argument, NULL, OPT_FROM},
    {"column", required_argument, NULL, OPT_COLUMN},
    {"algo", required_argument, NULL, OPT_ALGO},
    {"machine", required_argument, NULL, OPT_MACHINE},
    {"cost", required_argument, NULL, OPT_COST},
    {"run", required_argument, NULL, OPT_RUN},
    {"perf", required_argument, NULL, OPT_PERF},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static bool ranks_read(const char *text, int *nranks)
{
    int64_t number;
    if (!tw_value_int(text, &number) || number < 2 || number > 1024)
        return false;
    *nranks = (int)number;
    return true;
}

/* "2,4": each at least 2, since one rank moves nothing. */
static int read_ranks(struct tune_options *options, char *text)
{
    char *rest = NULL;
    options->nnranks = 0;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (options->nnranks == TUNE_RANKS_MOST)
            return cli_usage("-n: more than %d numbers", TUNE_RANKS_MOST);
        if (!ranks_read(word, &options->nranks[options->nnranks++]))
            return cli_usage("-n: '%s' is not a number of ranks from 2 to 1024", word);
    }
    return options->nnranks ? CLI_GO_ON : cli_usage("-n: no number of ranks");
}

static int read_from(struct tune_options *options, char *text)
{
    char *colon = strrchr(text, ':');
    if (options->nsweeps == SIM_FILES_MOST)
        return cli_usage("--from: more than %d files", SIM_FILES_MOST);
    struct tune_sweep *sweep = &options->sweeps[options->nsweeps++];
    if (!colon || colon == text || !ranks_read(colon + 1, &sweep->nranks))
        return cli_usage("--from: '%s' is not FILE:RANKS, of at least 2 ranks", text);
    *colon = '\0';
    sweep->path = text;
    return CLI_GO_ON;
}

static int read_algo(struct tune_options *options, const char *text)
{
    const struct tw_algo *algo;
    options->algo = text;
    for (size_t i = 0; (algo = tw_algo_at(i)) != NULL; i++)
        if (strcmp(algo->name, text) == 0)
            return CLI_GO_ON;
    return cli_usage("--algo: there is no algorithm '%s'", text);
}

static int read_device(struct tune_options *options, const char *text)
{
    options->cuda = strcmp(text, "cuda") == 0;
    return options->cuda || strcmp(text, "host") == 0
               ? CLI_GO_ON
               : cli_usage("--device takes host or cuda, not '%s'", text);
}

static int parse_one(struct tune_options *options, int option)
{
    switch (option) {
    case 'o':
        options->out = optarg;
        return CLI_GO_ON;
    case 'n':
        return read_ranks(options, optarg);
    case 'e':
        return cli_bytes("-e", optarg, 8, (uint64_t)1 << 32, &options->max_bytes);
    case OPT_ROUNDS:
        return cli_int("--rounds", optarg, 1, 1000, &options->rounds);
    case OPT_FROM:
        return read_from(options, optarg);
    case OPT_COLUMN:
        options->column = optarg;
        return CLI_GO_ON;
    case OPT_ALGO:
        return read_algo(options, optarg);
    case OPT_MACHINE:
        options->machine = optarg;
        return CLI_GO_ON;
    case OPT_COST:
        options->cost = optarg;
        return CLI_GO_ON;
    case OPT_DEVICE:
        return read_device(options, optarg);
    case OPT_RUN:
        options->run = optarg;
        return CLI_GO_ON;
    case OPT_PERF:
        options->perf = optarg;
        return CLI_GO_ON;
    case OPT_QUIET:
        options->quiet = true;
        return CLI_GO_ON;
    case OPT_HELP:
        return cli_help(help);
    case OPT_VERSION:
        return cli_version();
    default:
        return CLI_EXIT_USAGE; /* getopt has said it */
    }
}

/* What only one of the two has, and what differs where nothing was said. */
static int options_settle(struct tune_options *options)
{
    if (options->cuda && (options->algo || options->machine || options->run))
        return cli_usage("--device cuda: --algo, --machine and --run are of the host");
    if (options->cuda && options->nnranks > 1)
        return cli_usage("--device cuda: -n takes one number of devices");
    if (!options->cuda && options->nnranks == 0) {
        options->nranks[0] = 2;
        options->nranks[1] = 4;
        options->nnranks = 2;
    }
    if (options->max_bytes == 0)
        options->max_bytes = (uint64_t)(options->cuda ? 256 : 16) << 20;
    return CLI_GO_ON;
}

int tune_options_parse(struct tune_options *options, int argc, char **argv)
{
    *options = (struct tune_options){
        .rounds = 3,
        .column = "time_us_min",
    };
    int option;
    while ((option = getopt_long(argc, argv, "o:n:e:", long_options, NULL)) != -1) {
        int status = parse_one(options, option);
        if (status != CLI_GO_ON)
            return status;
    }
    if (optind < argc)
        return cli_usage("'%s' is no option", argv[optind]);
    return options_settle(options);
}
