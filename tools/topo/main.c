/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: twill-topo's command line. Never knows: how a graph is found or drawn. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "base/time.h"
#include "cli.h"
#include "topo.h"
#include "topo/discover.h"
#include "topo/probe.h"
#include "topo/xml.h"

#define MEASURE_NS (500 * TW_NS_MS) /* a busy host need not keep it from being whole */

const char cli_program[] = "twill-topo";

static const char help[] =
    "usage: twill-topo [options]\n"
    "Show what twill sees of a machine: parts, links, their latencies and rates, and where each\n"
    "number is from.\n"
    "\n"
    "  --machine NAME  a described machine or a cluster of it instead of this host, for instance\n"
    "                  nvswitch-8gpu or nvswitch-8gpu:hosts=64,leaf=16,oversub=2 (--list)\n"
    "  --load FILE     a topology that --xml wrote; -: standard input\n"
    "  --hwloc FILE    a topology that hwloc's lstopo wrote as XML\n"
    "  --all           all CPUs of this host that the control group allows, not only those that\n"
    "                  this process is bound to\n"
    "  --measure       measure this host, for half a second at most, and put what was found into\n"
    "                  the topology\n"
    "  --text          a tree of text (the default)\n"
    "  --xml           text for programs, which --load reads\n"
    "  --svg           a picture\n"
    "  --output FILE   into a file instead of standard output\n"
    "  --list          name the described machines\n"
    "  --help, --version\n"
    "\n"
    "The exit status is 0; 1 when the topology cannot be found, read or written; 2 for wrong\n"
    "usage.\n";

enum form { FORM_TEXT, FORM_XML, FORM_SVG };
enum source { SOURCE_HERE, SOURCE_MACHINE, SOURCE_FILE, SOURCE_HWLOC };

struct options {
    enum source source;
    const char *name;
    enum form form;
    const char *output;
    bool all, measure;
};

enum {
    OPT_MACHINE = 256,
    OPT_LOAD,
    OPT_HWLOC,
    OPT_ALL,
    OPT_MEASURE,
    OPT_TEXT,
    OPT_XML,
    OPT_SVG,
    OPT_OUTPUT,
    OPT_LIST,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"machine", required_argument, NULL, OPT_MACHINE},
    {"load", required_argument, NULL, OPT_LOAD},
    {"hwloc", required_argument, NULL, OPT_HWLOC},
    {"all", no_argument, NULL, OPT_ALL},
    {"measure", no_argument, NULL, OPT_MEASURE},
    {"text", no_argument, NULL, OPT_TEXT},
    {"xml", no_argument, NULL, OPT_XML},
    {"svg", no_argument, NULL, OPT_SVG},
    {"output", required_argument, NULL, OPT_OUTPUT},
    {"list", no_argument, NULL, OPT_LIST},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int list(void)
{
    const char *text = NULL;
    for (unsigned i = 0; tw_topo_synthetic_name(i, &text); i++)
        printf("%-14s %s\n", tw_topo_synthetic_name(i, NULL), text);
    return 0;
}

static int source_set(struct options *options, enum source source, const char *name)
{
    if (options->source != SOURCE_HERE)
        return cli_usage("one of --machine, --load and --hwloc is enough");
    options->source = source;
    options->name = name;
    return CLI_GO_ON;
}

/* @return CLI_GO_ON; otherwise the exit status */
static int option_take(struct options *options, int option)
{
    switch (option) {
    case OPT_MACHINE:
        return source_set(options, SOURCE_MACHINE, optarg);
    case OPT_LOAD:
        return source_set(options, SOURCE_FILE, optarg);
    case OPT_HWLOC:
        return source_set(options, SOURCE_HWLOC, optarg);
    case OPT_ALL:
        options->all = true;
        return CLI_GO_ON;
    case OPT_MEASURE:
        options->measure = true;
        return CLI_GO_ON;
    case OPT_TEXT:
    case OPT_XML:
    case OPT_SVG:
        options->form = option == OPT_TEXT ? FORM_TEXT : option == OPT_XML ? FORM_XML : FORM_SVG;
        return CLI_GO_ON;
    case OPT_OUTPUT:
        options->output = optarg;
        return CLI_GO_ON;
    case OPT_LIST:
        return list();
    case OPT_HELP:
        return cli_help(help);
    case OPT_VERSION:
        return cli_version();
    default:
        return cli_usage("unknown option");
    }
}

static int options_read(struct options *options, int argc, char **argv)
{
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        int rc;
        if (option == '?' || option == ':')
            rc = cli_usage("%s '%s'", option == '?' ? "unknown option" : "no argument behind",
                           argv[optind - 1]);
        else
            rc = option_take(options, option);
        if (rc != CLI_GO_ON)
            return rc;
    }
    if (optind < argc)
        return cli_usage("unknown argument '%s'", argv[optind]);
    if (options->source != SOURCE_HERE && (options->measure || options->all))
        return cli_usage("--all and --measure are for this host");
    return CLI_GO_ON;
}

static enum twill_status find(const struct options *options, struct tw_topo_graph **graph)
{
    switch (options->source) {
    case SOURCE_MACHINE:
        return tw_topo_synthetic(graph, options->name);
    case SOURCE_FILE:
        return tw_topo_xml_load(graph, options->name);
    case SOURCE_HWLOC: {
        const struct tw_topo_source source = {.hwloc_xml = options->name};
        return tw_topo_discover_from(graph, &source);
    }
    default:
        return tw_topo_discover(graph, options->all ? TW_TOPO_SCOPE_GROUP : TW_TOPO_SCOPE_PROCESS);
    }
}

static enum twill_status measure(struct tw_topo_graph *graph, struct tw_topo_measured *measured)
{
    struct tw_topo_machine *machine = &graph->machines[0];
    bool complete = false;
    enum twill_status status = tw_topo_probe(machine, MEASURE_NS, measured, &complete);
    if (!tw_failed(status))
        status = tw_topo_measured_apply(measured, machine);
    if (!tw_failed(status) && !complete &&
        !tw_topo_note_add(machine, "not everything could be measured in %d ms",
                          (int)(MEASURE_NS / TW_NS_MS)))
        status = TWILL_ERR_NOMEM;
    return tw_failed(status) ? status : tw_topo_graph_seal(graph);
}

static enum twill_status print(const struct options *options, FILE *out,
                               const struct tw_topo_graph *graph,
                               const struct tw_topo_measured *measured)
{
    char *text = NULL;
    size_t bytes = 0;
    if (options->form == FORM_XML) {
        enum twill_status status = tw_topo_xml_write(graph, &text, &bytes);
        if (tw_failed(status))
            return status;
        fwrite(text, 1, bytes, out);
        free(text);
        return TWILL_OK;
    }
    if (!(options->form == FORM_SVG ? svg_print(out, graph) : text_print(out, graph)))
        return tw_fail(TWILL_ERR_NOMEM, "no memory for showing topology %s", graph->name);
    if (options->measure && options->form == FORM_TEXT)
        measured_print(out, measured);
    return TWILL_OK;
}

static enum twill_status show(const struct options *options, const struct tw_topo_graph *graph,
                              const struct tw_topo_measured *measured)
{
    FILE *out = options->output ? fopen(options->output, "we") : stdout;
    const char *name = options->output ? options->output : "standard output";
    if (!out)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "%s cannot be opened", name);
    enum twill_status status = print(options, out, graph, measured);
    bool lost = fflush(out) != 0 || ferror(out);
    int error = errno;
    if (options->output)
        lost |= fclose(out) != 0;
    if (lost && !tw_failed(status))
        status = tw_fail_errno(TWILL_ERR_SYSTEM, error, "%s cannot be written", name);
    return status;
}

/* hwloc ends the process over some texts that are no topologies, so a child of this one does all of
 * it. @return in the child, or where there can be none: CLI_GO_ON; else the exit status */
static int go_apart(const char *path)
{
    const struct rlimit none = {0, 0};
    int how = 0;
    pid_t child = fork();
    if (child < 0)
        return CLI_GO_ON;
    if (child == 0) {
        /* nobody is to make another end of it, as a sanitizer would */
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGBUS, SIG_DFL);
        (void)signal(SIGFPE, SIG_DFL);
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        return CLI_GO_ON;
    }
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(how))
        return WEXITSTATUS(how);
    if (WTERMSIG(how) == SIGPIPE)
        return 128 + SIGPIPE; /* who read the output has enough */
    fprintf(stderr, "twill-topo: hwloc cannot read %s as a topology of its own: %s\n", path,
            strsignal(WTERMSIG(how)));
    return 1;
}

static int run(int argc, char **argv)
{
    struct options options = {0};
    struct tw_topo_graph *graph = NULL;
    struct tw_topo_measured measured = {0};
    int rc = options_read(&options, argc, argv);
    if (rc != CLI_GO_ON)
        return rc;
    if (options.source == SOURCE_HWLOC)
        rc = go_apart(options.name);
    if (rc != CLI_GO_ON)
        return rc;
    /* what goes wrong is said once, below */
    (void)tw_log_configure("none", NULL);
    enum twill_status status = find(&options, &graph);
    if (!tw_failed(status) && options.measure)
        status = measure(graph, &measured);
    if (!tw_failed(status))
        status = show(&options, graph, &measured);
    tw_topo_graph_free(graph);
    if (tw_failed(status))
        fprintf(stderr, "twill-topo: %s\n", tw_fail_text());
    return tw_failed(status) ? 1 : 0;
}

int main(int argc, char **argv)
{
    cli_streams_hold();
    return cli_output_close(run(argc, argv), 1);
}
