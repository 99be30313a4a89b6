/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: twill-perf's command line and the names of things. Never knows: how they are measured. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "perf.h"

const char cli_program[] = "twill-perf";

static const char help[] =
    "usage: twill-perf OPERATION... [options]\n"
    "Sweep sizes of a collective over the ranks of a job; alone, under twill-run, or with -t.\n"
    "\n"
    "operations: all_reduce reduce broadcast reduce_scatter all_gather all_to_all gather scatter\n"
    "            reduce_scatter_v all_gather_v all_to_all_v gather_v scatter_v barrier send_recv,\n"
    "            or all\n"
    "\n"
    "  -b BYTES     least size (8)          -e BYTES   largest size (32M)\n"
    "  -f FACTOR    step by factor (2)      -i BYTES   or by so many bytes\n"
    "  -n N         timed calls (20)        -w N       calls before them (5)\n"
    "  -c N         checked calls of each row (1); 0: none\n"
    "  -d TYPE      float (default), double, half, bfloat16, int8, uint8, int32, uint32, int64,\n"
    "               uint64, f8e4m3, f8e5m2; also float32, float64, float16; or all\n"
    "  -o OP        sum (default), prod, max, min, avg; band, bor, bxor (integers);\n"
    "               mulsum (each rank's input times a scalar of its own); or all\n"
    "  -r ROOT      root of rooted operations (0); -1 or all: each rank in turn\n"
    "  -t THREADS   ranks of each process, one a thread (1)\n"
    "  -R 0|1       1: buffers of twill_mem_alloc, registered with the communicator (0)\n"
    "  --device D   host (default); cuda is not in this build, nor are -g GPUS, -G GRAPH, -R 2\n"
    "  --uneven     blocks of the v-variants fall from twice the mean (rank 0) to none\n"
    "  --seed S     of the inputs (1)\n"
    "  --list       say which algorithm each size would use\n"
    "  --json FILE, --csv FILE, --plot FILE.svg (through gnuplot)\n"
    "  --help, --version\n"
    "\n"
    "Sizes are bytes, or 64K, 16M, 1G (powers of 1024), and count the parts of all ranks, as do\n"
    "nccl-tests. time is the mean of back-to-back calls between barriers, the maximum over the\n"
    "ranks; algbw = size / time; busbw = algbw x 2(n-1)/n for all_reduce, (n-1)/n for\n"
    "operations with a block for each rank, 1 otherwise. #wrong counts wrong elements.\n"
    "\n"
    "Exit status: 0; 1 when elements were wrong; 2 wrong usage; 3 an error of twill or the "
    "system.\n";

enum {
    OPT_DEVICE = 256,
    OPT_SEED,
    OPT_UNEVEN,
    OPT_LIST,
    OPT_JSON,
    OPT_CSV,
    OPT_PLOT,
    OPT_INJECT,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"minbytes", required_argument, NULL, 'b'},
    {"maxbytes", required_argument, NULL, 'e'},
    {"stepfactor", required_argument, NULL, 'f'},
    {"stepbytes", required_argument, NULL, 'i'},
    {"iters", required_argument, NULL, 'n'},
    {"warmup_iters", required_argument, NULL, 'w'},
    {"check", required_argument, NULL, 'c'},
    {"datatype", required_argument, NULL, 'd'},
    {"op", required_argument, NULL, 'o'},
    {"root", required_argument, NULL, 'r'},
    {"nthreads", required_argument, NULL, 't'},
    {"ngpus", required_argument, NULL, 'g'},
    {"cudagraph", required_argument, NULL, 'G'},
    {"local_register", required_argument, NULL, 'R'},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"uneven", no_argument, NULL, OPT_UNEVEN},
    {"seed", required_argument, NULL, OPT_SEED},
    {"list", no_argument, NULL, OPT_LIST},
    {"json", required_argument, NULL, OPT_JSON},
    {"csv", required_argument, NULL, OPT_CSV},
    {"plot", required_argument, NULL, OPT_PLOT},
    {"inject", required_argument, NULL, OPT_INJECT},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

/* our name, nccl-tests' name, bytes */
struct type_row {
    const char *name, *other;
    size_t bytes;
};
static const struct type_row type_rows[PERF_TYPE_COUNT] = {
    [TWILL_INT8] = {"int8", "char", 1},
    [TWILL_UINT8] = {"uint8", "uint8", 1},
    [TWILL_INT32] = {"int32", "int", 4},
    [TWILL_UINT32] = {"uint32", "uint32", 4},
    [TWILL_INT64] = {"int64", "int64", 8},
    [TWILL_UINT64] = {"uint64", "uint64", 8},
    [TWILL_FLOAT16] = {"float16", "half", 2},
    [TWILL_FLOAT32] = {"float32", "float", 4},
    [TWILL_FLOAT64] = {"float64", "double", 8},
    [TWILL_BFLOAT16] = {"bfloat16", "bf16", 2},
    [TWILL_FLOAT8E4M3] = {"float8e4m3", "f8e4m3", 1},
    [TWILL_FLOAT8E5M2] = {"float8e5m2", "f8e5m2", 1},
};
static const char *const redop_names[PERF_REDOP_COUNT] = {"sum",  "prod", "max",  "min",   "avg",
                                                          "band", "bor",  "bxor", "mulsum"};

const char *perf_type_name(twill_type_t type) { return type_rows[type].name; }
const char *perf_redop_name(twill_redop_t redop) { return redop_names[redop]; }
bool perf_redop_fits(twill_redop_t redop, twill_type_t type)
{
    return perf_type_digits(type) == 0 ||
           (redop != TWILL_BAND && redop != TWILL_BOR && redop != TWILL_BXOR);
}
size_t perf_type_bytes(twill_type_t type) { return type_rows[type].bytes; }

static int parse_u64(const char *option, const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, 0);
    if (end == text || *end || errno || text[strspn(text, " \t")] == '-')
        return cli_usage("%s takes a number, not '%s'", option, text);
    *value = parsed;
    return CLI_GO_ON;
}

static int parse_bytes(const char *option, const char *text, size_t *bytes)
{
    uint64_t value = *bytes;
    int status = cli_bytes(option, text, 0, (uint64_t)1 << 60, &value);
    *bytes = (size_t)value;
    return status;
}

static int parse_type(struct perf_options *options, const char *text)
{
    options->all_types = strcmp(text, "all") == 0;
    options->type_count = 0;
    for (int i = 0; i < PERF_TYPE_COUNT; i++)
        if (options->all_types || strcmp(text, type_rows[i].name) == 0 ||
            strcmp(text, type_rows[i].other) == 0)
            options->types[options->type_count++] = (twill_type_t)i;
    return options->type_count ? CLI_GO_ON : cli_usage("-d: unknown type '%s'", text);
}

static int parse_redop(struct perf_options *options, const char *text)
{
    options->all_redops = strcmp(text, "all") == 0;
    options->redop_count = 0;
    for (int i = 0; i < PERF_REDOP_COUNT; i++)
        if (options->all_redops || strcmp(text, redop_names[i]) == 0)
            options->redops[options->redop_count++] = (twill_redop_t)i;
    return options->redop_count ? CLI_GO_ON : cli_usage("-o: unknown operation '%s'", text);
}

static int parse_op(struct perf_options *options, const char *text)
{
    bool all = strcmp(text, "all") == 0, found = false;
    for (int i = 0; i < PERF_OP_COUNT; i++) {
        if (!all && strcmp(text, perf_op_info((enum perf_op)i)->name) != 0)
            continue;
        found = true;
        if (options->op_count == PERF_OP_COUNT)
            return cli_usage("too many operations");
        options->ops[options->op_count++] = (enum perf_op)i;
    }
    return found ? CLI_GO_ON : cli_usage("unknown operation '%s'", text);
}

static int parse_root(struct perf_options *options, const char *text)
{
    if (strcmp(text, "all") != 0)
        return cli_int("-r", text, -1, INT_MAX, &options->root);
    options->root = PERF_ROOT_ALL;
    return CLI_GO_ON;
}

static int parse_absent(int option)
{
    switch (option) {
    case 'g':
        return cli_usage("-g: this build has no GPU support; ranks of host memory come from "
                         "twill-run -n and -t");
    case 'G':
        return cli_usage("-G: this build has no CUDA graphs, since it has no GPU support");
    default:
        if (strcmp(optarg, "host") == 0)
            return CLI_GO_ON;
        return strcmp(optarg, "cuda") == 0
                   ? cli_usage("--device cuda: this build has no GPU support")
                   : cli_usage("--device takes host or cuda, not '%s'", optarg);
    }
}

static int parse_registered(struct perf_options *options, const char *text)
{
    if (strcmp(text, "2") == 0)
        return cli_usage("-R 2: symmetric windows are not in this build");
    return cli_int("-R", text, 0, 1, &options->registered);
}

static int parse_number(struct perf_options *options, int option)
{
    switch (option) {
    case 'b':
        return parse_bytes("-b", optarg, &options->min_bytes);
    case 'e':
        return parse_bytes("-e", optarg, &options->max_bytes);
    case 'i':
        return parse_bytes("-i", optarg, &options->step_bytes);
    case 'f':
        return cli_int("-f", optarg, 2, 1 << 20, &options->step_factor);
    case 'n':
        return cli_int("-n", optarg, 1, 1000000, &options->iterations);
    case 'w':
        return cli_int("-w", optarg, 0, 1000000, &options->warmup);
    case 'c':
        return cli_int("-c", optarg, 0, 1000000, &options->checks);
    case 't':
        return cli_int("-t", optarg, 1, PERF_MAX_THREADS, &options->threads);
    case OPT_SEED:
        return parse_u64("--seed", optarg, &options->seed);
    default:
        return parse_bytes("--inject", optarg, &options->inject);
    }
}

static int parse_one(struct perf_options *options, int option)
{
    switch (option) {
    case 'd':
        return parse_type(options, optarg);
    case 'o':
        return parse_redop(options, optarg);
    case 'r':
        return parse_root(options, optarg);
    case 'R':
        return parse_registered(options, optarg);
    case 'g':
    case 'G':
    case OPT_DEVICE:
        return parse_absent(option);
    case OPT_UNEVEN:
        options->uneven = true;
        return CLI_GO_ON;
    case OPT_LIST:
        options->list = true;
        return CLI_GO_ON;
    case OPT_JSON:
        options->json = optarg;
        return CLI_GO_ON;
    case OPT_CSV:
        options->csv = optarg;
        return CLI_GO_ON;
    case OPT_PLOT:
        options->plot = optarg;
        return CLI_GO_ON;
    case OPT_HELP:
        return cli_help(help);
    case OPT_VERSION:
        return cli_version();
    case '?': /* getopt has said which and why */
        return CLI_EXIT_USAGE;
    default:
        return parse_number(options, option);
    }
}

size_t perf_options_next_size(const struct perf_options *options, size_t from)
{
    size_t next = from;
    if (options->step_bytes)
        next = from + options->step_bytes;
    else if (from > SIZE_MAX / (size_t)options->step_factor)
        return 0;
    else
        next = from * (size_t)options->step_factor;
    return next > from && next <= options->max_bytes ? next : 0;
}

/* What single options cannot know. */
static int check_together(const struct perf_options *options)
{
    if (options->op_count == 0)
        return cli_usage("no operation given");
    if (!options->all_redops && !options->all_types &&
        !perf_redop_fits(options->redops[0], options->types[0]))
        return cli_usage("-o %s is of integers, not of %s", redop_names[options->redops[0]],
                         type_rows[options->types[0]].name);
    if (options->min_bytes < 1)
        return cli_usage("-b must be at least 1");
    if (options->min_bytes > options->max_bytes)
        return cli_usage("-b %zu is above -e %zu", options->min_bytes, options->max_bytes);
    size_t sizes = 0;
    for (size_t size = options->min_bytes; size; size = perf_options_next_size(options, size))
        if (++sizes > PERF_MAX_SIZES)
            return cli_usage("more than %d sizes", PERF_MAX_SIZES);
    double needed = 2.0 * (double)options->max_bytes * options->threads;
    double present = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (present > 0 && needed > present)
        return cli_usage(
            "-e %zu needs %.0f MiB for the buffers of this process, and the machine has "
            "%.0f MiB",
            options->max_bytes, needed / 0x1p20, present / 0x1p20);
    return CLI_GO_ON;
}

int perf_options_parse(struct perf_options *options, int argc, char **argv)
{
    *options = (struct perf_options){
        .min_bytes = 8,
        .max_bytes = 32u << 20,
        .step_factor = 2,
        .iterations = 20,
        .warmup = 5,
        .checks = 1,
        .types = {TWILL_FLOAT32},
        .type_count = 1,
        .redops = {TWILL_SUM},
        .redop_count = 1,
        .threads = 1,
        .seed = 1,
    };
    int option;
    while ((option = getopt_long(argc, argv, "b:e:f:i:n:w:c:d:o:r:t:g:G:R:", long_options, NULL)) !=
           -1) {
        int status = parse_one(options, option);
        if (status != CLI_GO_ON)
            return status;
    }
    for (int i = optind; i < argc; i++) {
        int status = parse_op(options, argv[i]);
        if (status != CLI_GO_ON)
            return status;
    }
    return check_together(options);
}
