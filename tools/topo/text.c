/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a graph as lines for people. Never knows: where the graph is from. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topo.h"

/* ---- figures -------------------------------------------------------------------------------- */

const char *figure_time(uint64_t ps, char text[FIGURE_BYTES])
{
    double ns = (double)ps / 1e3;
    if (ns >= 1e6)
        snprintf(text, FIGURE_BYTES, "%.3g ms", ns / 1e6);
    else if (ns >= 1e3)
        snprintf(text, FIGURE_BYTES, "%.3g us", ns / 1e3);
    else
        snprintf(text, FIGURE_BYTES, "%.3g ns", ns);
    return text;
}

const char *figure_rate(uint64_t bytes_per_s, char text[FIGURE_BYTES])
{
    double rate = (double)bytes_per_s;
    if (rate >= 1e12)
        snprintf(text, FIGURE_BYTES, "%.3g TB/s", rate / 1e12);
    else if (rate >= 1e9)
        snprintf(text, FIGURE_BYTES, "%.3g GB/s", rate / 1e9);
    else
        snprintf(text, FIGURE_BYTES, "%.3g MB/s", rate / 1e6);
    return text;
}

const char *figure_bytes(uint64_t bytes, char text[FIGURE_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    snprintf(text, FIGURE_BYTES, value < 1000 ? "%.3g %s" : "%.4g %s", value, units[unit]);
    return text;
}

/* ---- families ------------------------------------------------------------------------------- */

bool family_init(struct family *family, const struct tw_topo_machine *machine)
{
    uint32_t n = machine->nnodes;
    family->first = malloc(n * sizeof(*family->first));
    family->next = malloc(n * sizeof(*family->next));
    if (!family->first || !family->next) {
        family_fini(family);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        family->first[i] = family->next[i] = TW_TOPO_NONE;
    for (uint32_t i = n; i-- > 1;) {
        family->next[i] = family->first[machine->nodes[i].parent];
        family->first[machine->nodes[i].parent] = i;
    }
    return true;
}

void family_fini(struct family *family)
{
    free(family->first);
    free(family->next);
}

/* ---- the tree ------------------------------------------------------------------------------- */

struct printer {
    FILE *out;
    const struct tw_topo_machine *machine;
    struct family family;
};

static void print_link(FILE *out, const struct tw_topo_link *link)
{
    char a[FIGURE_BYTES], b[FIGURE_BYTES], c[FIGURE_BYTES], d[FIGURE_BYTES];
    bool even =
        link->latency_ps[0] == link->latency_ps[1] && link->bytes_per_s[0] == link->bytes_per_s[1];
    fputc('[', out);
    if (link->count)
        fprintf(out, "%" PRIu32 " cable%s, ", link->count, link->count == 1 ? "" : "s");
    fprintf(out, "%s, %s", figure_time(link->latency_ps[0], a),
            figure_rate(link->bytes_per_s[0], b));
    if (link->resource[0] == link->resource[1])
        fputs(" both ways together", out);
    else if (!even)
        fprintf(out, "; back %s, %s", figure_time(link->latency_ps[1], c),
                figure_rate(link->bytes_per_s[1], d));
    fprintf(out, "; %s]", tw_topo_origin_name(link->origin));
}

static bool links_alike(const struct tw_topo_link *a, const struct tw_topo_link *b)
{
    return memcmp(a->latency_ps, b->latency_ps, sizeof(a->latency_ps)) == 0 &&
           memcmp(a->bytes_per_s, b->bytes_per_s, sizeof(a->bytes_per_s)) == 0 &&
           a->origin == b->origin;
}

/* Cores whose links and threads are alike are one line. */
static bool cores_alike(const struct printer *printer, uint32_t a, uint32_t b)
{
    const struct tw_topo_machine *machine = printer->machine;
    const struct tw_topo_node *nodes = machine->nodes;
    if (nodes[b].kind != TW_NODE_CORE ||
        !links_alike(&machine->links[nodes[a].uplink], &machine->links[nodes[b].uplink]))
        return false;
    uint32_t x = printer->family.first[a], y = printer->family.first[b];
    while (x != TW_TOPO_NONE && y != TW_TOPO_NONE &&
           links_alike(&machine->links[nodes[x].uplink], &machine->links[nodes[y].uplink])) {
        x = printer->family.next[x];
        y = printer->family.next[y];
    }
    return x == y; /* both at the end */
}

/* Kernel's numbers of the turn-th threads of cores first .. (count of them), "0-7,16". */
static void print_numbers(const struct printer *printer, uint32_t first, uint32_t count,
                          uint32_t turn)
{
    const char *comma = "";
    uint32_t from = TW_TOPO_NONE, last = TW_TOPO_NONE, core = first;
    for (uint32_t i = 0; i <= count; i++) {
        uint32_t number = TW_TOPO_NONE;
        if (i < count) {
            uint32_t pu = printer->family.first[core];
            for (uint32_t t = 0; t < turn && pu != TW_TOPO_NONE; t++)
                pu = printer->family.next[pu];
            number = pu == TW_TOPO_NONE ? TW_TOPO_NONE : printer->machine->nodes[pu].os_index;
            core = printer->family.next[core];
        }
        if (from != TW_TOPO_NONE && number != last + 1) {
            fprintf(printer->out, "%s%" PRIu32, comma, from);
            if (last != from)
                fprintf(printer->out, "-%" PRIu32, last);
            comma = ",";
            from = TW_TOPO_NONE;
        }
        last = number;
        from = from == TW_TOPO_NONE ? number : from;
    }
}

/* @return the core behind them */
static uint32_t print_cores(const struct printer *printer, uint32_t first, int depth)
{
    uint32_t count = 0, threads = 0, core = first;
    while (core != TW_TOPO_NONE && cores_alike(printer, first, core)) {
        count++;
        core = printer->family.next[core];
    }
    for (uint32_t pu = printer->family.first[first]; pu != TW_TOPO_NONE;
         pu = printer->family.next[pu])
        threads++;
    fprintf(printer->out, "%*s%" PRIu32 " core%s, CPU", 2 * depth, "", count,
            count == 1 ? "" : "s");
    for (uint32_t t = 0; t < threads; t++) {
        fputs(t ? " + " : " ", printer->out);
        print_numbers(printer, first, count, t);
    }
    fputs("  ", printer->out);
    print_link(printer->out, &printer->machine->links[printer->machine->nodes[first].uplink]);
    fputc('\n', printer->out);
    return core;
}

static void print_node(const struct printer *printer, uint32_t index, int depth)
{
    char text[TW_TOPO_NAME_BYTES + 32], figure[FIGURE_BYTES];
    const struct tw_topo_node *node = &printer->machine->nodes[index];
    tw_topo_node_text(printer->machine, index, text, sizeof(text));
    fprintf(printer->out, "%*s", 2 * depth, "");
    if (node->kind == TW_NODE_CACHE)
        fprintf(printer->out, "L%u ", node->level);
    fputs(text, printer->out);
    if (node->model[0])
        fprintf(printer->out, " (%s)", node->model);
    if (node->memory_bytes)
        fprintf(printer->out, " %s", figure_bytes(node->memory_bytes, figure));
    if (node->memory_bytes_per_s)
        fprintf(printer->out, " at %s", figure_rate(node->memory_bytes_per_s, figure));
    if (node->uplink != TW_TOPO_NONE) {
        fputs("  ", printer->out);
        print_link(printer->out, &printer->machine->links[node->uplink]);
    }
    fputc('\n', printer->out);
}

/* A sealed graph is at most 16 deep. */
static void print_below(const struct printer *printer, uint32_t index,
                        int depth) /* NOLINT(misc-no-recursion) */
{
    uint32_t child = printer->family.first[index];
    while (child != TW_TOPO_NONE) {
        unsigned kind = printer->machine->nodes[child].kind;
        if (kind == TW_NODE_CORE) {
            child = print_cores(printer, child, depth);
            continue;
        }
        print_node(printer, child, depth);
        print_below(printer, child, depth + 1);
        child = printer->family.next[child];
    }
}

static void print_beside(const struct printer *printer)
{
    const struct tw_topo_machine *machine = printer->machine;
    const char *title = "  links beside the tree\n";
    for (uint32_t i = 0; i < machine->nlinks; i++) {
        const struct tw_topo_link *link = &machine->links[i];
        char from[TW_TOPO_NAME_BYTES + 32], to[TW_TOPO_NAME_BYTES + 32];
        if (machine->nodes[link->from].uplink == i)
            continue;
        fputs(title, printer->out);
        title = "";
        tw_topo_node_text(machine, link->from, from, sizeof(from));
        tw_topo_node_text(machine, link->to, to, sizeof(to));
        fprintf(printer->out, "    %s - %s  ", from, to);
        print_link(printer->out, link);
        fputc('\n', printer->out);
    }
}

static bool print_machine(FILE *out, const struct tw_topo_machine *machine)
{
    char figure[FIGURE_BYTES];
    struct printer printer = {.out = out, .machine = machine};
    if (!family_init(&printer.family, machine))
        return false;
    fprintf(out, "machine %s (%s)\n", machine->name, tw_topo_origin_name(machine->origin));
    fprintf(out, "  CPU: %s\n", machine->cpu_model[0] ? machine->cpu_model : "unknown");
    fputs("  caches of a core:", out);
    if (machine->l1d_bytes)
        fprintf(out, " L1d %s", figure_bytes(machine->l1d_bytes, figure));
    if (machine->l2_bytes)
        fprintf(out, " L2 %s", figure_bytes(machine->l2_bytes, figure));
    if (machine->l3_bytes)
        fprintf(out, " L3 %s", figure_bytes(machine->l3_bytes, figure));
    fputs(machine->l1d_bytes || machine->l2_bytes || machine->l3_bytes ? "\n" : " unknown\n", out);
    print_below(&printer, 0, 1);
    print_beside(&printer);
    for (uint32_t i = 0; i < machine->nnotes; i++)
        fprintf(out, "  note: %s\n", machine->notes[i]);
    family_fini(&printer.family);
    return true;
}

static void print_fabric(FILE *out, const struct tw_topo_fabric *fabric)
{
    char a[FIGURE_BYTES], b[FIGURE_BYTES];
    for (uint32_t t = 0; t < fabric->ntiers; t++) {
        const struct tw_topo_tier *tier = &fabric->tier[t];
        fprintf(out, "  tier %" PRIu32 ": a switch%s joins %" PRIu32 " %s, %s", t,
                t == 0 && fabric->rails ? " for each NIC number" : "", tier->down,
                t == 0 ? "hosts" : "switches", figure_time(tier->latency_ps, a));
        if (t + 1 < fabric->ntiers)
            fprintf(out, ", %s up and %s down", figure_rate(tier->up_bytes_per_s, b), b);
        fputc('\n', out);
    }
}

bool text_print(FILE *out, const struct tw_topo_graph *graph)
{
    fprintf(out, "topology %s: %" PRIu32 " host%s\n", graph->name, graph->nhosts,
            graph->nhosts == 1 ? "" : "s");
    for (uint32_t h = 0; graph->nmachines > 1 && h < graph->nhosts;) {
        uint32_t last = h;
        while (last + 1 < graph->nhosts && graph->host_machine[last + 1] == graph->host_machine[h])
            last++;
        fprintf(out, "  hosts %" PRIu32 "-%" PRIu32 ": %s\n", h, last,
                tw_topo_machine_of(graph, h)->name);
        h = last + 1;
    }
    print_fabric(out, &graph->fabric);
    for (uint32_t m = 0; m < graph->nmachines; m++)
        if (!print_machine(out, &graph->machines[m]))
            return false;
    return true;
}

void measured_print(FILE *out, const struct tw_topo_measured *measured)
{
    static const char *const copies[TW_TOPO_COPY_COUNT] = {"L1", "L2", "L3", "memory"};
    char a[FIGURE_BYTES], b[FIGURE_BYTES];
    fputs("measured\n", out);
    for (unsigned n = 0; n < TW_TOPO_NEAR_COUNT; n++)
        if (measured->line_ps[n])
            fprintf(out, "  line to a CPU of the same %-8s %s\n", tw_topo_near_name(n),
                    figure_time(measured->line_ps[n], a));
    for (unsigned c = 0; c < TW_TOPO_COPY_COUNT; c++)
        if (measured->copy_bytes_per_s[c])
            fprintf(out, "  copy in %-20s %s (%s)\n", copies[c],
                    figure_rate(measured->copy_bytes_per_s[c], a),
                    figure_bytes(measured->copy_bytes[c], b));
    if (measured->switch_ps)
        fprintf(out, "  a CPU to another thread      %s\n", figure_time(measured->switch_ps, a));
    if (measured->cma_call_ps)
        fprintf(out, "  copy by the kernel           %s a call, %s\n",
                figure_time(measured->cma_call_ps, a), figure_rate(measured->cma_bytes_per_s, b));
    fprintf(out, "  hash                         %016" PRIx64 "\n",
            tw_topo_measured_hash(measured));
}
