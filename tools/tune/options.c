/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: twill-tune's command line. Never knows: what is done with it. */
#include "config.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/value.h"
#include "tune.h"

static const char help[] =
    "usage: twill-tune [-o FILE] [-n RANKS,...] [options]\n"
    "       twill-tune [-o FILE] --from SWEEP.csv:RANKS... [options]\n"
    "Measure every algorithm on this host, fit the table of costs to it and write the file that\n"
    "TWILL_COST_FILE names.\n"
    "\n"
    "  -o FILE          the table; standard output\n"
    "  -n RANKS,...     numbers of ranks to measure with (2,4)\n"
    "  -e BYTES         largest size (16M)\n"
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
    OPT_RUN,
    OPT_PERF,
    OPT_QUIET,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"rounds", required_argument, NULL, OPT_ROUNDS},   {"from", required_argument, NULL, OPT_FROM},
    {"column", required_argument, NULL, OPT_COLUMN},   {"algo", required_argument, NULL, OPT_ALGO},
    {"machine", required_argument, NULL, OPT_MACHINE}, {"cost", required_argument, NULL, OPT_COST},
    {"run", required_argument, NULL, OPT_RUN},         {"perf", required_argument, NULL, OPT_PERF},
    {"quiet", no_argument, NULL, OPT_QUIET},           {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},       {NULL, 0, NULL, 0},
};

static int usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("twill-tune: ", stderr);
    vfprintf(stderr, format, args);
    fputs(" (twill-tune --help)\n", stderr);
    va_end(args);
    return TUNE_EXIT_USAGE;
}

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
            return usage("-n: more than %d numbers", TUNE_RANKS_MOST);
        if (!ranks_read(word, &options->nranks[options->nnranks++]))
            return usage("-n: '%s' is not a number of ranks from 2 to 1024", word);
    }
    return options->nnranks ? -1 : usage("-n: no number of ranks");
}

static int read_from(struct tune_options *options, char *text)
{
    char *colon = strrchr(text, ':');
    if (options->nsweeps == SIM_FILES_MOST)
        return usage("--from: more than %d files", SIM_FILES_MOST);
    struct tune_sweep *sweep = &options->sweeps[options->nsweeps++];
    if (!colon || colon == text || !ranks_read(colon + 1, &sweep->nranks))
        return usage("--from: '%s' is not FILE:RANKS, of at least 2 ranks", text);
    *colon = '\0';
    sweep->path = text;
    return -1;
}

static int read_rounds(struct tune_options *options, const char *text)
{
    int64_t number;
    if (!tw_value_int(text, &number) || number < 1 || number > 1000)
        return usage("--rounds: '%s' is not a number from 1 to 1000", text);
    options->rounds = (int)number;
    return -1;
}

static int read_algo(struct tune_options *options, const char *text)
{
    const struct tw_algo *algo;
    options->algo = text;
    for (size_t i = 0; (algo = tw_algo_at(i)) != NULL; i++)
        if (strcmp(algo->name, text) == 0)
            return -1;
    return usage("--algo: there is no algorithm '%s'", text);
}

static int parse_one(struct tune_options *options, int option)
{
    switch (option) {
    case 'o':
        options->out = optarg;
        return -1;
    case 'n':
        return read_ranks(options, optarg);
    case 'e':
        if (tw_value_bytes(optarg, &options->max_bytes) && options->max_bytes >= 8 &&
            options->max_bytes <= (uint64_t)1 << 32)
            return -1;
        return usage("-e: '%s' is not a number of bytes from 8 to 4G", optarg);
    case OPT_ROUNDS:
        return read_rounds(options, optarg);
    case OPT_FROM:
        return read_from(options, optarg);
    case OPT_COLUMN:
        options->column = optarg;
        return -1;
    case OPT_ALGO:
        return read_algo(options, optarg);
    case OPT_MACHINE:
        options->machine = optarg;
        return -1;
    case OPT_COST:
        options->cost = optarg;
        return -1;
    case OPT_RUN:
        options->run = optarg;
        return -1;
    case OPT_PERF:
        options->perf = optarg;
        return -1;
    case OPT_QUIET:
        options->quiet = true;
        return -1;
    case OPT_HELP:
        fputs(help, stdout);
        return 0;
    case OPT_VERSION:
        printf("twill-tune %d.%d.%d\n", TWILL_VERSION_MAJOR, TWILL_VERSION_MINOR,
               TWILL_VERSION_PATCH);
        return 0;
    default:
        return TUNE_EXIT_USAGE; /* getopt has said it */
    }
}

int tune_options_parse(struct tune_options *options, int argc, char **argv)
{
    *options = (struct tune_options){
        .nranks = {2, 4},
        .nnranks = 2,
        .rounds = 3,
        .max_bytes = 16 << 20,
        .column = "time_us_min",
    };
    int option;
    while ((option = getopt_long(argc, argv, "o:n:e:", long_options, NULL)) != -1) {
        int status = parse_one(options, option);
        if (status >= 0)
            return status;
    }
    if (optind < argc)
        return usage("'%s' is no option", argv[optind]);
    return -1;
}
