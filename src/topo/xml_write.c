/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a graph's form as XML (docs/topology.md). Never knows: hwloc's XML. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/host.h"
#include "base/status.h"
#include "topo/xml.h"

static void put_text(FILE *out, const char *name, const char *text)
{
    (void)fprintf(out, " %s=\"", name);
    for (; *text; text++) {
        switch (*text) {
        case '&':
            (void)fputs("&amp;", out);
            break;
        case '<':
            (void)fputs("&lt;", out);
            break;
        case '>':
            (void)fputs("&gt;", out);
            break;
        case '"':
            (void)fputs("&quot;", out);
            break;
        default:
            (void)fputc(*text, out);
        }
    }
    (void)fputc('"', out);
}

/* Facts that are not known are left out. */
static void put_known_text(FILE *out, const char *name, const char *text)
{
    if (text[0])
        put_text(out, name, text);
}

static void put_number(FILE *out, const char *name, uint64_t value)
{
    (void)fprintf(out, " %s=\"%llu\"", name, (unsigned long long)value);
}

static void put_known_number(FILE *out, const char *name, uint64_t value)
{
    if (value)
        put_number(out, name, value);
}

static void put_known_index(FILE *out, const char *name, uint32_t value)
{
    if (value != TW_TOPO_NONE)
        put_number(out, name, value);
}

static void put_node(FILE *out, uint32_t id, const struct tw_topo_node *node)
{
    (void)fputs("    <node", out);
    put_number(out, "id", id);
    put_text(out, "kind", tw_topo_kind_name(node->kind));
    put_known_index(out, "parent", node->parent);
    put_known_number(out, "level", node->level);
    put_known_index(out, "os_index", node->os_index);
    put_known_text(out, "name", node->name);
    put_known_text(out, "model", node->model);
    put_known_number(out, "memory_bytes", node->memory_bytes);
    put_known_number(out, "memory_bytes_per_s", node->memory_bytes_per_s);
    (void)fputs("/>\n", out);
}

static void put_link(FILE *out, const struct tw_topo_link *link)
{
    (void)fputs("    <link", out);
    put_number(out, "from", link->from);
    put_number(out, "to", link->to);
    put_text(out, "origin", tw_topo_origin_name(link->origin));
    put_number(out, "latency_ps", link->latency_ps[0]);
    put_number(out, "back_latency_ps", link->latency_ps[1]);
    put_number(out, "bytes_per_s", link->bytes_per_s[0]);
    put_number(out, "back_bytes_per_s", link->bytes_per_s[1]);
    put_number(out, "resource", link->resource[0]);
    put_number(out, "back_resource", link->resource[1]);
    put_known_number(out, "count", link->count);
    (void)fputs("/>\n", out);
}

static void put_machine(FILE *out, const struct tw_topo_machine *machine)
{
    (void)fputs("  <machine", out);
    put_text(out, "name", machine->name);
    put_text(out, "origin", tw_topo_origin_name(machine->origin));
    put_known_text(out, "cpu_model", machine->cpu_model);
    put_known_number(out, "l1d_bytes", machine->l1d_bytes);
    put_known_number(out, "l2_bytes", machine->l2_bytes);
    put_known_number(out, "l3_bytes", machine->l3_bytes);
    (void)fputs(">\n", out);
    for (uint32_t i = 0; i < machine->nnotes; i++) {
        (void)fputs("    <note", out);
        put_text(out, "text", machine->notes[i]);
        (void)fputs("/>\n", out);
    }
    for (uint32_t i = 0; i < machine->nnodes; i++)
        put_node(out, i, &machine->nodes[i]);
    for (uint32_t i = 0; i < machine->nresources; i++) {
        (void)fputs("    <resource", out);
        put_number(out, "id", i);
        put_number(out, "node", machine->resources[i].node);
        put_number(out, "bytes_per_s", machine->resources[i].bytes_per_s);
        (void)fputs("/>\n", out);
    }
    for (uint32_t i = 0; i < machine->nlinks; i++)
        put_link(out, &machine->links[i]);
    (void)fputs("  </machine>\n", out);
}

static void put_hosts(FILE *out, const struct tw_topo_graph *graph)
{
    for (uint32_t h = 0; h < graph->nhosts;) {
        uint32_t count = 1;
        while (h + count < graph->nhosts &&
               graph->host_machine[h + count] == graph->host_machine[h])
            count++;
        (void)fputs("  <hosts", out);
        put_number(out, "machine", graph->host_machine[h]);
        put_number(out, "count", count);
        (void)fputs("/>\n", out);
        h += count;
    }
}

static void put_fabric(FILE *out, const struct tw_topo_fabric *fabric)
{
    if (fabric->ntiers == 0)
        return;
    (void)fputs("  <fabric", out);
    put_number(out, "rails", fabric->rails);
    (void)fputs(">\n", out);
    for (uint32_t t = 0; t < fabric->ntiers; t++) {
        (void)fputs("    <tier", out);
        put_number(out, "down", fabric->tier[t].down);
        put_number(out, "latency_ps", fabric->tier[t].latency_ps);
        put_known_number(out, "up_bytes_per_s", fabric->tier[t].up_bytes_per_s);
        (void)fputs("/>\n", out);
    }
    (void)fputs("  </fabric>\n", out);
}

enum twill_status tw_topo_xml_write(const struct tw_topo_graph *graph, char **text, size_t *bytes)
{
    char *made = NULL;
    size_t made_bytes = 0;
    FILE *out = open_memstream(&made, &made_bytes);
    if (!out)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for topology %s as text", graph->name);
    (void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<twill-topology", out);
    put_number(out, "version", TW_TOPO_XML_VERSION);
    put_text(out, "name", graph->name);
    (void)fputs(">\n", out);
    for (uint32_t m = 0; m < graph->nmachines; m++)
        put_machine(out, &graph->machines[m]);
    put_hosts(out, graph);
    put_fabric(out, &graph->fabric);
    (void)fputs("</twill-topology>\n", out);
    bool full = ferror(out) != 0;
    if (fclose(out) != 0 || full) {
        free(made);
        return tw_fail(TWILL_ERR_NOMEM, "no memory for topology %s as text", graph->name);
    }
    *text = made;
    *bytes = made_bytes;
    return TWILL_OK;
}

uint64_t tw_topo_graph_hash(const struct tw_topo_graph *graph)
{
    char *text = NULL;
    size_t bytes = 0;
    if (tw_failed(tw_topo_xml_write(graph, &text, &bytes)))
        return 0;
    uint64_t hash = tw_hash64(text, bytes);
    free(text);
    return hash ? hash : 1;
}
