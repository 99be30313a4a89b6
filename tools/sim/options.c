/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: twill-sim's command line. Never knows: what is done with it. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cli.h"
#include "sim.h"

const char cli_program[] = "twill-sim";

static const char help[] =
    "usage: twill-sim --coll COLLECTIVE -n RANKS [--algo NAME] [options]\n"
    "       twill-sim --plan FILE [options]\n"
    "       twill-sim -n RANKS --against SWEEP.csv [options]\n"
    "       twill-sim --list\n"
    "Check plans and say what they would take, on this host or on a described machine.\n"
    "\n"
    "  --coll COLL      all_reduce reduce broadcast reduce_scatter all_gather all_to_all gather\n"
    "                   scatter barrier; all_gather_v, ... as if all counts were equal\n"
    "  --algo NAME      an algorithm of twill; without it all are priced, and the best is shown\n"
    "  --plan FILE      a plan in text form\n"
    "  -n RANKS         number of ranks (of --plan: the plan's)\n"
    "  -b BYTES         least size (8)         -e BYTES    largest size (64M)\n"
    "  -f FACTOR        between sizes (4)      -d TYPE     of the elements (float32)\n"
    "  -r ROOT          where the collective has one (0)\n"
    "  --channels N     that the algorithm may use (1)\n"
    "  --param N        the algorithm's own, of --algo (--list says what it is)\n"
    "  --in-place       all ranks in place\n"
    "\n"
    "  --machine M      a machine's name, as in nvswitch-8gpu:hosts=64, or a file of twill-topo;\n"
    "                   this host\n"
    "  --on cpu|gpu     where ranks run (gpu where the machine has any)\n"
    "  --per-host N     ranks of a host (as many as it has CPUs or GPUs)\n"
    "  --cyclic         one rank on each host in turn, not host by host\n"
    "  --order ring     ranks in the order of the ring with the fastest slowest link, of 64 at "
    "most;\n"
    "                   machine: as the machine lists them (the default)\n"
    "  --net tcp|rdma   between hosts (rdma)\n"
    "  --fifo BYTES     of each FIFO (what communicators take from TWILL_STAGING=32M; on GPUs 4M)\n"
    "  --cost FILE      what steps and links cost; else TWILL_COST_FILE, else built in\n"
    "\n"
    "  --check          prove the plan, however long it takes\n"
    "  --no-check       do not; by default plans of files are proven, and built-in ones to 64 "
    "ranks\n"
    "  --against FILE   predicted against measured: CSV of twill-perf over -n ranks; may be\n"
    "                   repeated, of equal cases the least time counts\n"
    "  --column NAME    of the measured time (time_us)\n"
    "  --json, --csv    instead of a table\n"
    "  --list           algorithms and described machines\n"
    "  --print-cost     the table of costs as a file\n"
    "  --help, --version\n"
    "\n"
    "Sizes are bytes, or 64K, 16M, 1G (powers of 1024), and count all ranks' parts, as in\n"
    "twill-perf. Exit status: 0; 2 wrong usage; 3 an error, or a plan that is not correct.\n";

enum {
    OPT_COLL = 256,
    OPT_ALGO,
    OPT_PLAN,
    OPT_CHANNELS,
    OPT_PARAM,
    OPT_IN_PLACE,
    OPT_MACHINE,
    OPT_ON,
    OPT_PER_HOST,
    OPT_CYCLIC,
    OPT_ORDER,
    OPT_NET,
    OPT_FIFO,
    OPT_COST,
    OPT_CHECK,
    OPT_NO_CHECK,
    OPT_AGAINST,
    OPT_COLUMN,
    OPT_JSON,
    OPT_CSV,
    OPT_LIST,
    OPT_PRINT_COST,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"coll", required_argument, NULL, OPT_COLL},
    {"algo", required_argument, NULL, OPT_ALGO},
    {"plan", required_argument, NULL, OPT_PLAN},
    {"channels", required_argument, NULL, OPT_CHANNELS},
    {"param", required_argument, NULL, OPT_PARAM},
    {"in-place", no_argument, NULL, OPT_IN_PLACE},
    {"machine", required_argument, NULL, OPT_MACHINE},
    {"on", required_argument, NULL, OPT_ON},
    {"per-host", required_argument, NULL, OPT_PER_HOST},
    {"cyclic", no_argument, NULL, OPT_CYCLIC},
    {"order", required_argument, NULL, OPT_ORDER},
    {"net", required_argument, NULL, OPT_NET},
    {"fifo", required_argument, NULL, OPT_FIFO},
    {"cost", required_argument, NULL, OPT_COST},
    {"check", no_argument, NULL, OPT_CHECK},
    {"no-check", no_argument, NULL, OPT_NO_CHECK},
    {"against", required_argument, NULL, OPT_AGAINST},
    {"column", required_argument, NULL, OPT_COLUMN},
    {"json", no_argument, NULL, OPT_JSON},
    {"csv", no_argument, NULL, OPT_CSV},
    {"list", no_argument, NULL, OPT_LIST},
    {"print-cost", no_argument, NULL, OPT_PRINT_COST},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

/* ---- values --------------------------------------------------------------------------------- */

static int read_small(const char *what, const char *text, int64_t least, int64_t most,
                      uint32_t *value)
{
    int64_t number = 0;
    int status = cli_number(what, text, least, most, &number);
    *value = (uint32_t)number;
    return status;
}

/* The place of text among two words. */
static int read_word(const char *what, const char *text, const char *no, const char *yes,
                     int *value)
{
    if (strcmp(text, no) != 0 && strcmp(text, yes) != 0)
        return cli_usage("%s: '%s' is neither %s nor %s", what, text, no, yes);
    *value = strcmp(text, yes) == 0;
    return CLI_GO_ON;
}

static int read_coll(const char *text, struct sim_options *options)
{
    options->coll = sim_coll_find(text);
    options->coll_given = true;
    return options->coll == TW_COLL_COUNT ? cli_usage("--coll: there is no collective '%s'", text)
                                          : CLI_GO_ON;
}

static int add_against(const char *text, struct sim_options *options)
{
    if (options->nagainst == SIM_FILES_MOST)
        return cli_usage("--against: more than %d files", SIM_FILES_MOST);
    options->against[options->nagainst++] = text;
    return CLI_GO_ON;
}

/* ---- what only shows ------------------------------------------------------------------------ */

static int show_list(void)
{
    const struct tw_algo *algo;
    const char *text, *name;
    printf("algorithms\n");
    for (size_t i = 0; (algo = tw_algo_at(i)) != NULL; i++) {
        printf("  %-20s", algo->name);
        for (int c = 0; c < TW_COLL_COUNT; c++)
            if (algo->colls >> c & 1)
                printf(" %s", tw_coll_name((enum tw_coll)c));
        printf("\n      %s%s%s\n", algo->source, algo->param ? "; --param: " : "",
               algo->param ? algo->param->name : "");
    }
    printf("\nmachines (NAME, or NAME:hosts=N,leaf=N,oversub=N,rails=0|1)\n");
    for (unsigned i = 0; (name = tw_topo_synthetic_name(i, &text)) != NULL; i++)
        printf("  %-20s %s\n", name, text);
    return 0;
}

static int show_cost(const char *path)
{
    struct tw_cost_table table;
    char *text = NULL;
    if (sim_table_open(path, &table) < 0 || tw_cost_table_print(&table, NULL, &text) < 0) {
        fprintf(stderr, "twill-sim: %s\n", tw_fail_text());
        return SIM_EXIT_FAILED;
    }
    fputs(text, stdout);
    free(text);
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int parse_machine(struct sim_options *options, int option)
{
    struct sim_machine_options *machine = &options->machine;
    int yes = 0, status;
    switch (option) {
    case OPT_MACHINE:
        machine->machine = optarg;
        return CLI_GO_ON;
    case OPT_ON:
        return read_word("--on", optarg, "cpu", "gpu", &machine->gpus);
    case OPT_PER_HOST:
        return read_small("--per-host", optarg, 1, TW_PLAN_RANKS_MAX, &machine->per_host);
    case OPT_CYCLIC:
        machine->cyclic = true;
        return CLI_GO_ON;
    case OPT_ORDER:
        status = read_word("--order", optarg, "machine", "ring", &yes);
        machine->ring = yes;
        return status;
    default:
        status = read_word("--net", optarg, "tcp", "rdma", &yes);
        machine->between_hosts = yes ? TW_COST_LINK_RDMA : TW_COST_LINK_TCP;
        return status;
    }
}

static int parse_call(struct sim_options *options, int option)
{
    switch (option) {
    case 'n':
        return cli_int("-n", optarg, 1, TW_PLAN_RANKS_MAX, &options->nranks);
    case 'b':
        return cli_bytes("-b", optarg, 0, TW_COST_BYTES_MAX, &options->min_bytes);
    case 'e':
        return cli_bytes("-e", optarg, 0, TW_COST_BYTES_MAX, &options->max_bytes);
    case 'f':
        return read_small("-f", optarg, 2, 1 << 20, &options->factor);
    case 'r':
        return cli_int("-r", optarg, 0, TW_PLAN_RANKS_MAX - 1, &options->root);
    case 'd':
        options->type = optarg;
        return sim_type_bytes(optarg) ? CLI_GO_ON : cli_usage("-d: there is no type '%s'", optarg);
    case OPT_COLL:
        return read_coll(optarg, options);
    case OPT_CHANNELS:
        return read_small("--channels", optarg, 1, TW_PLAN_FIFOS_MAX, &options->channels);
    case OPT_PARAM:
        return read_small("--param", optarg, 0, UINT32_MAX, &options->param);
    case OPT_FIFO:
        return cli_bytes("--fifo", optarg, 256, TW_COST_BYTES_MAX, &options->fifo_bytes);
    default:
        return parse_machine(options, option);
    }
}

static int parse_one(struct sim_options *options, int option)
{
    switch (option) {
    case OPT_ALGO:
        options->algo = optarg;
        return CLI_GO_ON;
    case OPT_PLAN:
        options->plan = optarg;
        return CLI_GO_ON;
    case OPT_IN_PLACE:
        options->in_place = true;
        return CLI_GO_ON;
    case OPT_COST:
        options->cost = optarg;
        return CLI_GO_ON;
    case OPT_CHECK:
    case OPT_NO_CHECK:
        options->check = option == OPT_CHECK;
        return CLI_GO_ON;
    case OPT_AGAINST:
        return add_against(optarg, options);
    case OPT_COLUMN:
        options->column = optarg;
        return CLI_GO_ON;
    case OPT_JSON:
    case OPT_CSV:
        options->form = option == OPT_JSON ? SIM_JSON : SIM_CSV;
        return CLI_GO_ON;
    case OPT_LIST:
        return show_list();
    case OPT_PRINT_COST:
        return show_cost(options->cost);
    case OPT_HELP:
        return cli_help(help);
    case OPT_VERSION:
        return cli_version();
    case '?': /* getopt has said which and why */
        return CLI_EXIT_USAGE;
    default:
        return parse_call(options, option);
    }
}

static int check_all(const struct sim_options *options)
{
    if (options->plan && (options->algo || options->coll_given || options->nagainst))
        return cli_usage("--plan says all of its collective and algorithm itself");
    if (!options->plan && options->nranks == 0)
        return cli_usage("-n RANKS is missing");
    if (!options->plan && !options->nagainst && !options->coll_given)
        return cli_usage("--coll COLLECTIVE is missing");
    if (options->nagainst && (options->algo || options->coll_given || options->form == SIM_CSV))
        return cli_usage(
            "--against takes collectives and algorithms from its files, and shows a table "
            "or --json");
    if (options->param && !options->algo)
        return cli_usage("--param is an algorithm's own: --algo NAME is missing");
    if (options->min_bytes > options->max_bytes)
        return cli_usage("-b is larger than -e");
    if (options->nranks && options->root >= options->nranks)
        return cli_usage("-r: root %d of %d ranks", options->root, options->nranks);
    return CLI_GO_ON;
}

int sim_options_parse(struct sim_options *options, int argc, char **argv)
{
    *options = (struct sim_options){
        .machine = {.gpus = -1, .between_hosts = TW_COST_LINK_RDMA},
        .channels = 1,
        .min_bytes = 8,
        .max_bytes = 64 << 20,
        .factor = 4,
        .type = "float32",
        .check = -1,
        .column = "time_us",
    };
    int option;
    while ((option = getopt_long(argc, argv, "n:b:e:f:d:r:", long_options, NULL)) != -1) {
        int status = parse_one(options, option);
        if (status != CLI_GO_ON)
            return status;
    }
    if (optind < argc)
        return cli_usage("'%s' is no option", argv[optind]);
    return check_all(options);
}
