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
    "  -t THREADS   threads of each process, with a rank each (1)\n"
    "  -R 0|1|2     1: registered buffers, on the host of twill_mem_alloc (0)\n"
    "  --device D   host (default) or cuda; with cuda also:\n"
    "  -g GPUS      ranks of each thread, one a GPU while there are enough (1)\n"
    "  -G N         0: calls on streams; N: -n calls in a graph, replayed N times (0)\n"
    "  -R 2         registered buffers of twill_mem_alloc (NCCL: symmetric windows)\n"
    "  --max-sms N  multiprocessors that twill's kernels take, at most; 0: any (TWILL_MAX_SMS)\n"
    "  --overlap[=equal|first]  each call alone and beside matrix products on a stream of equal\n"
    "               (default) or lower priority: what either loses\n"
    "  --peer nccl[=FILE]  the same calls of NCCL's library (libnccl.so.2)\n"
    "  --sizes S,S,...     these sizes instead of -b, -e, -f, -i\n"
    "  --volume BYTES      fewer timed calls of sizes with which they would move more\n"
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
    OPT_MAX_SMS,
    OPT_OVERLAP,
    OPT_PEER,
    OPT_SIZES,
    OPT_VOLUME,
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
    {"max-sms", required_argument, NULL, OPT_MAX_SMS},
    {"overlap", optional_argument, NULL, OPT_OVERLAP},
    {"peer", required_argument, NULL, OPT_PEER},
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"volume", required_argument, NULL, OPT_VOLUME},
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
        if (options->all_types || perf_type_named((twill_type_t)i, text))
            options->types[options->type_count++] = (twill_type_t)i;
    return options->type_count ? CLI_GO_ON : cli_usage("-d: unknown type '%s'", text);
}

static int parse_redop(struct perf_options *options, const char *text)
{
    options->all_redops = strcmp(text, "all") == 0;
    options->redop_count = 0;
    for (int i = 0; i < PERF_REDOP_COUNT; i++)
        if (options->all_redops || strcmp(text, perf_redop_name((twill_redop_t)i)) == 0)
            options->redops[options->redop_count++] = (twill_redop_t)i;
    return options->redop_count ? CLI_GO_ON : cli_usage("-o: unknown operation '%s'", text);
}

static int parse_op(struct perf_options *options, const char *text)
{
    bool all = strcmp(text, "all") == 0, found = false;
    options->all_ops |= all;
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

static int parse_device(struct perf_options *options, const char *text)
{
    options->cuda = strcmp(text, "cuda") == 0;
    return options->cuda || strcmp(text, "host") == 0
               ? CLI_GO_ON
               : cli_usage("--device takes host or cuda, not '%s'", text);
}

static int parse_overlap(struct perf_options *options, const char *text)
{
    bool first = text && strcmp(text, "first") == 0;
    options->overlap = first ? PERF_OVERLAP_FIRST : PERF_OVERLAP_EQUAL;
    return first || !text || strcmp(text, "equal") == 0
               ? CLI_GO_ON
               : cli_usage("--overlap takes =equal or =first, not '%s'", text);
}

/* nccl, or nccl=FILE */
static int parse_peer(struct perf_options *options, const char *text)
{
    options->nccl = strncmp(text, "nccl", 4) == 0 && (!text[4] || (text[4] == '=' && text[5]));
    options->nccl_path = options->nccl && text[4] ? text + 5 : NULL;
    return options->nccl ? CLI_GO_ON : cli_usage("--peer takes nccl or nccl=FILE, not '%s'", text);
}

/* 8,2K,32K: they ascend. */
static int parse_sizes(struct perf_options *options, const char *text)
{
    size_t last = 0;
    for (options->size_count = 0; *text; options->size_count++) {
        char one[32];
        size_t length = strcspn(text, ","), size = 0;
        if (length >= sizeof(one) || options->size_count == PERF_MAX_LISTED)
            return cli_usage("--sizes takes at most %d sizes, comma-separated", PERF_MAX_LISTED);
        memcpy(one, text, length);
        one[length] = '\0';
        int status = parse_bytes("--sizes", one, &size);
        if (status != CLI_GO_ON)
            return status;
        if (size <= last)
            return cli_usage("--sizes: they ascend, and %s does not", one);
        options->sizes[options->size_count] = last = size;
        text += length + (text[length] == ',');
    }
    if (!options->size_count)
        return cli_usage("--sizes takes sizes, comma-separated");
    return CLI_GO_ON;
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
    case 'g':
        return cli_int("-g", optarg, 1, PERF_MAX_GPUS, &options->gpus);
    case 'G':
        return cli_int("-G", optarg, 0, PERF_MAX_REPLAYS, &options->graph);
    case 'R':
        return cli_int("-R", optarg, 0, 2, &options->registered);
    case OPT_MAX_SMS:
        return cli_int("--max-sms", optarg, 0, INT_MAX, &options->max_sms);
    case OPT_VOLUME:
        return parse_bytes("--volume", optarg, &options->volume);
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
    case OPT_DEVICE:
        return parse_device(options, optarg);
    case OPT_OVERLAP:
        return parse_overlap(options, optarg);
    case OPT_PEER:
        return parse_peer(options, optarg);
    case OPT_SIZES:
        return parse_sizes(options, optarg);
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
    if (options->size_count) {
        int i = 0;
        while (i < options->size_count && options->sizes[i] <= from)
            i++;
        return i < options->size_count ? options->sizes[i] : 0;
    }
    if (options->step_bytes)
        next = from + options->step_bytes;
    else if (from > SIZE_MAX / (size_t)options->step_factor)
        return 0;
    else
        next = from * (size_t)options->step_factor;
    return next > from && next <= options->max_bytes ? next : 0;
}

int perf_options_calls(const struct perf_options *options, size_t bytes)
{
    int calls = options->iterations;
    if (!options->volume || !bytes || options->volume / bytes >= (size_t)calls)
        return calls;
    int fewer = (int)(options->volume / bytes);
    if (fewer < PERF_LEAST_CALLS)
        fewer = PERF_LEAST_CALLS;
    return fewer < calls ? fewer : calls;
}

/* What single options cannot know. */
static int check_together(const struct perf_options *options)
{
    if (options->op_count == 0)
        return cli_usage("no operation given");
    if (!options->all_redops && !options->all_types &&
        !perf_redop_fits(options->redops[0], options->types[0]))
        return cli_usage("-o %s is of integers, not of %s", perf_redop_name(options->redops[0]),
                         perf_type_name(options->types[0]));
    if (options->overlap && options->graph > 0)
        return cli_usage("--overlap: calls go on streams beside products: without -G");
    if (options->overlap && options->list)
        return cli_usage("--list runs nothing: without --overlap");
    if (options->min_bytes < 1)
        return cli_usage("-b must be at least 1");
    if (options->min_bytes > options->max_bytes)
        return cli_usage("-b %zu is above -e %zu", options->min_bytes, options->max_bytes);
    size_t sizes = 0;
    for (size_t size = options->min_bytes; size; size = perf_options_next_size(options, size))
        if (++sizes > PERF_MAX_SIZES)
            return cli_usage("more than %d sizes", PERF_MAX_SIZES);
    if (options->cuda && options->checks == 0)
        return CLI_GO_ON; /* the host holds no copies */
    double needed = 2.0 * (double)options->max_bytes * options->threads *
                    (options->gpus > 1 ? options->gpus : 1);
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
        .graph = -1,
        .max_sms = TWILL_UNSET,
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
    if (options->size_count) { /* wherever -b and -e stood */
        options->min_bytes = options->sizes[0];
        options->max_bytes = options->sizes[options->size_count - 1];
    }
    return check_together(options);
}
