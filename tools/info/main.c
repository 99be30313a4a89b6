/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what can be said of this library, build, machine and environment.
 * Never knows: ranks, communicators.
 *
 * Linked with the shared library for its version, and with src/base and src/topo, statically, for
 * the table of parameters and the machine, which the public API does not show. */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/status.h"
#include "base/time.h"
#include "cli.h"
#include "info.h"
#include "topo/topo.h"
#include "twill.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#define PROBE_LIMIT_NS (10 * TW_NS_S) /* for devices that are busy */

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char cli_program[] = "twill-info";

static const char help[] = "usage: twill-info [--json | --nccl PATH]\n"
                           "Show the library's version, how it was built, the devices that ranks\n"
                           "can use, which GPUs reach each other, what lies between them, and\n"
                           "every parameter with where its value comes from.\n"
                           "\n"
                           "  --json      as one JSON object\n"
                           "  --nccl PATH  only: which libnccl.so.2 a program would load, or the\n"
                           "              process of this number has, and whether it is twill's\n"
                           "  --help, --version\n";

static const char *source_name(enum tw_param_source source)
{
    switch (source) {
    case TW_PARAM_ENV:
        return "environment";
    case TW_PARAM_SET:
        return "set";
    default:
        return "default";
    }
}

static const char *version_text(int version, char text[32])
{
    snprintf(text, 32, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return text;
}

/* A version as CUDA writes it in a number: 13000. */
static const char *cuda_version_text(int version, char text[32])
{
    snprintf(text, 32, version ? "%d.%d" : "none", version / 1000, version % 1000 / 10);
    return text;
}

/* ---- for people
 * ---------------------------------------------------------------------------------- */

static void print_cache(const char *name, size_t bytes)
{
    if (bytes >= 1u << 20)
        printf(" %s %g MiB", name, (double)bytes / 0x1p20);
    else if (bytes)
        printf(" %s %g KiB", name, (double)bytes / 0x1p10);
}

static const char *plural(int count) { return count == 1 ? "" : "s"; }

static void print_host(const struct tw_topo_info *info)
{
    printf("  host  %s\n", *info->cpu_model ? info->cpu_model : "unknown CPU");
    printf("        %d CPU%s allowed (%s), %d core%s, %d NUMA node%s, %d package%s\n", info->cpus,
           plural(info->cpus), info->cpu_list, info->cores, plural(info->cores), info->numa_nodes,
           plural(info->numa_nodes), info->packages, plural(info->packages));
    printf("        caches of a core:");
    print_cache("L1d", info->l1d_bytes);
    print_cache("L2", info->l2_bytes);
    print_cache("L3", info->l3_bytes);
    printf("\n");
}

static void print_gpu(int device)
{
    struct tw_cuda_device gpu;
    if (tw_failed(tw_cuda_device_read(device, &gpu)))
        printf("  GPU %d  unknown: %s\n", device, tw_fail_text());
    else
        printf("  GPU %d  %s, %.1f GiB, capability %d.%d, %d multiprocessors, PCI %s\n", device,
               gpu.name, (double)gpu.bytes / 0x1p30, gpu.major, gpu.minor, gpu.multiprocessors,
               gpu.pci);
}

static void print_gpus(void)
{
    if (tw_cuda_absence())
        printf("  GPUs  none: %s\n", tw_cuda_absence());
    for (int device = 0; device < tw_cuda_device_count(); device++)
        print_gpu(device);
}

/* Of each CUDA device to each other one. @return owned; NULL: unknown (tw_fail was called), or
 * there is but one device */
static enum tw_gap *gaps_find(void)
{
    const size_t count = (size_t)tw_cuda_device_count();
    const struct tw_params *params = NULL;
    enum tw_gap *gaps = count > 1 ? tw_alloc(count * count * sizeof(*gaps)) : NULL;
    if (!gaps)
        return NULL;
    enum twill_status status = tw_params_get(&params);
    for (size_t i = 0; !tw_failed(status) && !params->p2p && i < count * count; i++)
        gaps[i] = TW_GAP_OFF;
    if (!tw_failed(status) && params->p2p)
        status = tw_probe_all((int)count, tw_deadline_ns(PROBE_LIMIT_NS), gaps);
    if (!tw_failed(status))
        return gaps;
    free(gaps);
    return NULL;
}

static void print_reach(void)
{
    enum tw_gap *gaps = gaps_find();
    if (gaps)
        info_reach_print(stdout, tw_cuda_device_count(), gaps);
    else if (tw_cuda_device_count() > 1)
        printf("  which GPUs reach each other: unknown: %s\n", tw_fail_text());
    free(gaps);
}

/* Whatever CUDA sees: the graph is of what PCI shows. */
static void print_between_gpus(void)
{
    struct tw_topo_graph *graph = NULL;
    enum twill_status status = tw_topo_discover(&graph, TW_TOPO_SCOPE_PROCESS);
    if (!tw_failed(status))
        status = info_gpus_print(stdout, graph);
    if (tw_failed(status))
        printf("\nbetween GPUs\n  unknown: %s\n", tw_fail_text());
    tw_topo_graph_free(graph);
}

static void print_versions(int library)
{
    char text[32];
    int driver = 0;
    int runtime = 0;
    tw_cuda_versions(&driver, &runtime);
    printf("twill %s, header %s\n", version_text(library, text),
           TEXT(TWILL_VERSION_MAJOR) "." TEXT(TWILL_VERSION_MINOR) "." TEXT(TWILL_VERSION_PATCH));
    printf("CUDA runtime %s", cuda_version_text(runtime, text));
    printf(", driver %s\n", cuda_version_text(driver, text));
}

static void print_parameters(void)
{
    struct tw_param_row row;
    printf("\nparameters\n");
    for (size_t i = 0; tw_param_row(i, &row); i++) {
        printf("  TWILL_%-14s = %s%s%s  [%s]\n", row.name, *row.value ? row.value : "(unset)",
               row.source == TW_PARAM_DEFAULT ? "" : "  default ",
               row.source == TW_PARAM_DEFAULT ? ""
               : *row.dflt                    ? row.dflt
                                              : "(unset)",
               source_name(row.source));
        printf("      %s%s%s%s: %s\n", row.type, *row.unit ? " (" : "", row.unit,
               *row.unit ? ")" : "", row.doc);
    }
}

static void print_text(int library, const struct tw_topo_info *info)
{
    print_versions(library);
    printf("\nbuild\n  compiler  %s\n  options   %s\n  found     %s\n", COMPILER, TW_BUILD_OPTIONS,
           TW_BUILD_FOUND);
    printf("\ndevices\n");
    if (info)
        print_host(info);
    else
        printf("  host  unknown: %s\n", tw_fail_text());
    print_gpus();
    print_reach();
    print_between_gpus();
    print_parameters();
}

/* ---- for programs
 * -------------------------------------------------------------------------------- */

static void json_host(const struct tw_topo_info *info)
{
    printf("  \"devices\": [\n    {\"kind\": \"host\", ");
    if (info) {
        info_json_string(stdout, "cpu_model", info->cpu_model, ", ");
        info_json_string(stdout, "cpu_list", info->cpu_list, ",\n     ");
        printf("\"cpus\": %d, \"cores\": %d, \"numa_nodes\": %d, \"packages\": %d,\n     "
               "\"l1d_bytes\": %zu, \"l2_bytes\": %zu, \"l3_bytes\": %zu}\n",
               info->cpus, info->cores, info->numa_nodes, info->packages, info->l1d_bytes,
               info->l2_bytes, info->l3_bytes);
    } else {
        info_json_string(stdout, "error", tw_fail_text(), "}\n");
    }
    printf("  ],\n");
}

static void json_gpu(int device)
{
    struct tw_cuda_device gpu;
    printf("%s\n    {\"device\": %d, ", device ? "," : "", device);
    if (tw_failed(tw_cuda_device_read(device, &gpu))) {
        info_json_string(stdout, "error", tw_fail_text(), "}");
        return;
    }
    info_json_string(stdout, "name", gpu.name, ", ");
    info_json_string(stdout, "pci", gpu.pci, ",\n     ");
    printf("\"bytes\": %zu, \"capability\": \"%d.%d\", \"multiprocessors\": %d}", gpu.bytes,
           gpu.major, gpu.minor, gpu.multiprocessors);
}

static void json_reach(int count)
{
    enum tw_gap *gaps = gaps_find();
    if (gaps || count < 2) {
        info_reach_json(stdout, count, gaps);
    } else {
        putchar('{');
        info_json_string(stdout, "error", tw_fail_text(), "}");
    }
    free(gaps);
}

static void json_gpus(void)
{
    int count = tw_cuda_device_count();
    printf("  \"gpus\": {\"count\": %d, ", count);
    info_json_string(stdout, "reason", tw_cuda_absence() ? tw_cuda_absence() : "", ", \"list\": [");
    for (int device = 0; device < count; device++)
        json_gpu(device);
    printf("],\n    \"reach\": ");
    json_reach(count);
    printf("},\n");
}

static void json_between_gpus(void)
{
    struct tw_topo_graph *graph = NULL;
    enum twill_status status = tw_topo_discover(&graph, TW_TOPO_SCOPE_PROCESS);
    printf("  \"between_gpus\": ");
    if (!tw_failed(status))
        status = info_gpus_json(stdout, graph);
    if (tw_failed(status)) {
        putchar('{');
        info_json_string(stdout, "error", tw_fail_text(), "}");
    }
    printf(",\n");
    tw_topo_graph_free(graph);
}

static void json_cuda(void)
{
    char text[32];
    int driver = 0;
    int runtime = 0;
    tw_cuda_versions(&driver, &runtime);
    printf("  \"cuda\": {");
    info_json_string(stdout, "runtime", cuda_version_text(runtime, text), ", ");
    info_json_string(stdout, "driver", cuda_version_text(driver, text), "},\n");
}

static void json_parameters(void)
{
    struct tw_param_row row;
    printf("  \"parameters\": [");
    for (size_t i = 0; tw_param_row(i, &row); i++) {
        printf("%s\n    {\"name\": \"TWILL_%s\", ", i ? "," : "", row.name);
        info_json_string(stdout, "type", row.type, ", ");
        info_json_string(stdout, "unit", row.unit, ", ");
        info_json_string(stdout, "value", row.value, ", ");
        info_json_string(stdout, "source", source_name(row.source), ", ");
        info_json_string(stdout, "default", row.dflt, ",\n     ");
        info_json_string(stdout, "doc", row.doc, "}");
    }
    printf("\n  ]\n}\n");
}

static void print_json(int library, const struct tw_topo_info *info)
{
    char text[32];
    printf("{\n  ");
    info_json_string(stdout, "version", version_text(library, text), ", ");
    info_json_string(stdout, "header_version", version_text(TWILL_VERSION, text),
                     ",\n  \"build\": {");
    info_json_string(stdout, "compiler", COMPILER, ", ");
    info_json_string(stdout, "options", TW_BUILD_OPTIONS, ", ");
    info_json_string(stdout, "found", TW_BUILD_FOUND, "},\n");
    json_cuda();
    json_host(info);
    json_gpus();
    json_between_gpus();
    json_parameters();
}

static int show(bool json)
{
    struct tw_topo *topo = NULL;
    struct tw_topo_info info;
    const struct tw_params *params;
    int library = 0;
    if (tw_failed(twill_version(&library))) {
        fprintf(stderr, "twill-info: %s\n", twill_last_error(NULL));
        return 1;
    }
    bool seen = !tw_failed(tw_topo_load(&topo, NULL));
    if (seen)
        tw_topo_info_get(topo, &info);
    if (json)
        print_json(library, seen ? &info : NULL);
    else
        print_text(library, seen ? &info : NULL);
    tw_topo_free(topo);
    /* warns of unknown variables, and says why a value shown above does not parse */
    fflush(stdout);
    if (tw_failed(tw_params_get(&params))) {
        fprintf(stderr, "twill-info: %s\n", tw_fail_text());
        return 1;
    }
    return 0;
}

static int run(int argc, char **argv)
{
    if (argc == 1)
        return show(false);
    if (argc == 2 && strcmp(argv[1], "--json") == 0)
        return show(true);
    if (argc == 3 && strcmp(argv[1], "--nccl") == 0)
        return info_nccl(argv[2]);
    if (argc == 2 && strcmp(argv[1], "--nccl") == 0)
        return cli_usage("--nccl takes a program's path or a process's number");
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return cli_help(help);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return cli_version();
    return cli_usage("unknown option '%s'",
                     argv[argc > 2 && strcmp(argv[1], "--json") == 0 ? 2 : 1]);
}

int main(int argc, char **argv)
{
    cli_streams_hold();
    return cli_output_close(run(argc, argv), 1);
}
