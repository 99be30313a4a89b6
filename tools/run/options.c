/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: twill-run's command line. Never knows: how ranks are run. */
#include "config.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "run.h"

const char cli_program[] = "twill-run";

static const char help[] =
    "usage: twill-run -n N [options] COMMAND [ARGUMENT...]\n"
    "Run N ranks of a program on this machine.\n"
    "\n"
    "  -n N            number of ranks\n"
    "  --bind WHAT     core, numa or none (default): bind rank i to the i-th core (round robin),\n"
    "                  or spread the ranks in order over the NUMA nodes\n"
    "  --tag           put [rank] before each line of output\n"
    "  --timeout S     end all ranks after S seconds; the exit status is then 124\n"
    "  --grace S       seconds that the other ranks have to end by themselves after one has\n"
    "                  failed, and again between SIGTERM and SIGKILL (default 5)\n"
    "  -x VAR=VALUE    set a variable in the ranks' environment; may be repeated\n"
    "  --help, --version\n"
    "\n"
    "Each rank finds TWILL_RANK, TWILL_SIZE, TWILL_LOCAL_RANK, TWILL_RENDEZVOUS and TWILL_KEY_FD\n"
    "in its environment, which is what twill_comm_init_env reads. Rank 0 gets standard input when\n"
    "that is a file or a pipe. INT, TERM, HUP and QUIT go to all ranks; a second one kills them.\n"
    "\n"
    "The exit status is that of the first rank to fail (128 + signal when a signal ended it), or\n"
    "0; 124 after --timeout; 126 or 127 when COMMAND cannot be run; 2 for wrong usage.\n";

enum { OPT_BIND = 256, OPT_TAG, OPT_TIMEOUT, OPT_GRACE, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
    {"bind", required_argument, NULL, OPT_BIND},
    {"tag", no_argument, NULL, OPT_TAG},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"grace", required_argument, NULL, OPT_GRACE},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int parse_seconds(const char *name, const char *text, double least, uint64_t *ns)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < least || value > 1e9)
        return cli_usage("%s takes seconds (%g to 1e9), not '%s'", name, least, text);
    *ns = (uint64_t)(value * 1e9);
    return CLI_GO_ON;
}

static int parse_bind(const char *text, enum run_bind *bind)
{
    static const char *const names[] = {"none", "core", "numa"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *bind = (enum run_bind)i;
            return CLI_GO_ON;
        }
    }
    return cli_usage("--bind takes core, numa or none, not '%s'", text);
}

static int parse_set(const char *text)
{
    static const char *const ours[] = {
        "TWILL_RANK=", "TWILL_SIZE=", "TWILL_LOCAL_RANK=", "TWILL_RENDEZVOUS=", "TWILL_KEY_FD="};
    if (text[0] == '=' || !strchr(text, '='))
        return cli_usage("-x takes VAR=VALUE, not '%s'", text);
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strncmp(text, ours[i], strlen(ours[i])) == 0)
            return cli_usage("-x cannot set '%s': twill-run sets it itself", text);
    return CLI_GO_ON;
}

static int parse_one(struct run_options *options, int option)
{
    switch (option) {
    case 'n':
        return cli_int("-n", optarg, 1, RUN_MAX_RANKS, &options->ranks);
    case 'x':
        options->sets[options->set_count++] = optarg;
        return parse_set(optarg);
    case OPT_BIND:
        return parse_bind(optarg, &options->bind);
    case OPT_TAG:
        options->tag = true;
        return CLI_GO_ON;
    case OPT_TIMEOUT:
        return parse_seconds("--timeout", optarg, 0.001, &options->timeout_ns);
    case OPT_GRACE:
        return parse_seconds("--grace", optarg, 0, &options->grace_ns);
    case OPT_HELP:
        return cli_help(help);
    case OPT_VERSION:
        return cli_version();
    default: /* getopt has said which and why */
        return CLI_EXIT_USAGE;
    }
}

int run_options_parse(struct run_options *options, int argc, char **argv)
{
    *options = (struct run_options){.grace_ns = 5000000000u};
    options->sets = calloc((size_t)argc + 1, sizeof(*options->sets));
    if (!options->sets) {
        fputs("twill-run: out of memory\n", stderr);
        return RUN_EXIT_SYSTEM;
    }
    int option;
    /* '+': options end at the command, whose own options are not ours */
    while ((option = getopt_long(argc, argv, "+n:x:", long_options, NULL)) != -1) {
        int status = parse_one(options, option);
        if (status != CLI_GO_ON)
            return status;
    }
    if (!options->ranks)
        return cli_usage("-n N is missing");
    if (optind >= argc)
        return cli_usage("no command given");
    options->command = argv + optind;
    return CLI_GO_ON;
}

void run_options_free(struct run_options *options)
{
    free(options->sets);
    options->sets = NULL;
}
