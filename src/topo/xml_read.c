/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a graph's form as XML (docs/topology.md). Never knows: hwloc's XML. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "topo/check.h"
#include "topo/xml.h"
#include "topo/xml_scan.h"

/* What is being read, and where in it. */
struct reading {
    struct tw_xml xml;
    struct tw_topo_graph *graph; /* owned */
};

/* Out of memory, which the adding function has said. */
static bool full(struct reading *in)
{
    in->xml.status = TWILL_ERR_NOMEM;
    return false;
}

/* An element without content. */
static bool expect_close(struct reading *in)
{
    char name[TW_XML_NAME_BYTES];
    if (!tw_xml_taken(&in->xml))
        return false;
    memcpy(name, in->xml.name, sizeof(name));
    enum tw_xml_event event = tw_xml_next(&in->xml);
    if (event != TW_XML_CLOSE)
        return tw_xml_fail(&in->xml, "an element that must be empty is not");
    return strcmp(name, in->xml.name) == 0 ||
           tw_xml_fail(&in->xml, "the end of %s, not of %s", in->xml.name, name);
}

/* An id says for people what the order says. */
static bool read_id(struct reading *in, uint32_t expected)
{
    uint32_t id = expected;
    if (!tw_xml_index(&in->xml, "id", false, &id))
        return false;
    return id == expected || tw_xml_fail(&in->xml, "%s id=\"%u\": out of order, expected %u",
                                         in->xml.name, id, expected);
}

static struct tw_topo_machine *newest(struct reading *in)
{
    return &in->graph->machines[in->graph->nmachines - 1];
}

static bool read_node(struct reading *in)
{
    struct tw_xml *xml = &in->xml;
    struct tw_topo_node node = {.parent = TW_TOPO_NONE, .os_index = TW_TOPO_NONE};
    uint64_t level = 0;
    if (newest(in)->nnodes == TW_TOPO_NODES_MOST)
        return tw_xml_fail(xml, "more than %u nodes", TW_TOPO_NODES_MOST);
    if (!read_id(in, newest(in)->nnodes) ||
        !tw_xml_choice(xml, "kind", tw_topo_kind_name, &node.kind) ||
        !tw_xml_index(xml, "parent", false, &node.parent) ||
        !tw_xml_number(xml, "level", false, UINT8_MAX, &level) ||
        !tw_xml_index(xml, "os_index", false, &node.os_index) ||
        !tw_xml_text(xml, "name", false, node.name, sizeof(node.name)) ||
        !tw_xml_text(xml, "model", false, node.model, sizeof(node.model)) ||
        !tw_xml_number(xml, "memory_bytes", false, UINT64_MAX, &node.memory_bytes) ||
        !tw_xml_number(xml, "memory_bytes_per_s", false, TW_TOPO_RATE_MOST,
                       &node.memory_bytes_per_s))
        return false;
    node.level = (uint8_t)level;
    return tw_topo_node_add(newest(in), &node) != TW_TOPO_NONE ? expect_close(in) : full(in);
}

static bool read_resource(struct reading *in)
{
    struct tw_xml *xml = &in->xml;
    uint32_t node = 0;
    uint64_t rate = 0;
    if (!read_id(in, newest(in)->nresources) || !tw_xml_index(xml, "node", true, &node) ||
        !tw_xml_number(xml, "bytes_per_s", true, TW_TOPO_RATE_MOST, &rate))
        return false;
    return tw_topo_resource_add(newest(in), node, rate) != TW_TOPO_NONE ? expect_close(in)
                                                                        : full(in);
}

static bool read_link(struct reading *in)
{
    struct tw_xml *xml = &in->xml;
    struct tw_topo_link link = {0};
    uint64_t count = 0;
    if (!tw_xml_index(xml, "from", true, &link.from) || !tw_xml_index(xml, "to", true, &link.to) ||
        !tw_xml_choice(xml, "origin", tw_topo_origin_name, &link.origin) ||
        !tw_xml_number(xml, "latency_ps", true, TW_TOPO_LATENCY_PS_MOST, &link.latency_ps[0]) ||
        !tw_xml_number(xml, "back_latency_ps", true, TW_TOPO_LATENCY_PS_MOST,
                       &link.latency_ps[1]) ||
        !tw_xml_number(xml, "bytes_per_s", true, TW_TOPO_RATE_MOST, &link.bytes_per_s[0]) ||
        !tw_xml_number(xml, "back_bytes_per_s", true, TW_TOPO_RATE_MOST, &link.bytes_per_s[1]) ||
        !tw_xml_index(xml, "resource", true, &link.resource[0]) ||
        !tw_xml_index(xml, "back_resource", true, &link.resource[1]) ||
        !tw_xml_number(xml, "count", false, TW_TOPO_CABLES_MOST, &count))
        return false;
    link.count = (uint32_t)count;
    return tw_topo_link_add(newest(in), &link) != TW_TOPO_NONE ? expect_close(in) : full(in);
}

static bool read_note(struct reading *in)
{
    char text[TW_XML_VALUE_BYTES] = "";
    if (!tw_xml_text(&in->xml, "text", true, text, TW_TOPO_NOTE_BYTES))
        return false;
    return tw_topo_note_add(newest(in), "%s", text) ? expect_close(in) : full(in);
}

/* The elements inside one, up to its end. */
struct element {
    const char *name;
    bool (*read)(struct reading *in);
};

static bool read_inside(struct reading *in, const char *outer, const struct element *elements)
{
    for (;;) {
        enum tw_xml_event event = tw_xml_next(&in->xml);
        if (event == TW_XML_CLOSE && strcmp(in->xml.name, outer) == 0)
            return true;
        if (event == TW_XML_END)
            return tw_xml_fail(&in->xml, "%s does not end", outer);
        if (event != TW_XML_OPEN)
            return tw_xml_fail(&in->xml, "the end of %s inside %s", in->xml.name, outer);
        const struct element *element = elements;
        while (element->name && strcmp(element->name, in->xml.name) != 0)
            element++;
        if (!element->name)
            return tw_xml_fail(&in->xml, "no element %s may stand in %s", in->xml.name, outer);
        if (!element->read(in))
            return false;
    }
}

static bool read_machine(struct reading *in)
{
    static const struct element elements[] = {{"note", read_note},
                                              {"node", read_node},
                                              {"resource", read_resource},
                                              {"link", read_link},
                                              {NULL, NULL}};
    struct tw_xml *xml = &in->xml;
    if (tw_topo_machine_add(in->graph) == TW_TOPO_NONE)
        return full(in);
    struct tw_topo_machine *machine = newest(in);
    return tw_xml_text(xml, "name", true, machine->name, sizeof(machine->name)) &&
           tw_xml_choice(xml, "origin", tw_topo_origin_name, &machine->origin) &&
           tw_xml_text(xml, "cpu_model", false, machine->cpu_model, sizeof(machine->cpu_model)) &&
           tw_xml_number(xml, "l1d_bytes", false, UINT64_MAX, &machine->l1d_bytes) &&
           tw_xml_number(xml, "l2_bytes", false, UINT64_MAX, &machine->l2_bytes) &&
           tw_xml_number(xml, "l3_bytes", false, UINT64_MAX, &machine->l3_bytes) &&
           tw_xml_taken(xml) && read_inside(in, "machine", elements);
}

static bool read_hosts(struct reading *in)
{
    uint32_t machine = 0;
    uint64_t count = 0;
    if (!tw_xml_index(&in->xml, "machine", true, &machine) ||
        !tw_xml_number(&in->xml, "count", true, TW_TOPO_HOSTS_MOST, &count))
        return false;
    if (in->graph->nhosts + count > TW_TOPO_HOSTS_MOST)
        return tw_xml_fail(&in->xml, "more than %u hosts", TW_TOPO_HOSTS_MOST);
    return tw_topo_hosts_add(in->graph, machine, (uint32_t)count) ? expect_close(in) : full(in);
}

static bool read_tier(struct reading *in)
{
    struct tw_topo_fabric *fabric = &in->graph->fabric;
    struct tw_topo_tier tier = {0};
    if (fabric->ntiers == TW_TOPO_TIERS_MOST)
        return tw_xml_fail(&in->xml, "more than %d tiers", TW_TOPO_TIERS_MOST);
    if (!tw_xml_index(&in->xml, "down", true, &tier.down) ||
        !tw_xml_number(&in->xml, "latency_ps", true, TW_TOPO_LATENCY_PS_MOST, &tier.latency_ps) ||
        !tw_xml_number(&in->xml, "up_bytes_per_s", false, TW_TOPO_RATE_MOST, &tier.up_bytes_per_s))
        return false;
    fabric->tier[fabric->ntiers++] = tier;
    return expect_close(in);
}

static bool read_fabric(struct reading *in)
{
    static const struct element elements[] = {{"tier", read_tier}, {NULL, NULL}};
    uint64_t rails = 0;
    if (in->graph->fabric.ntiers != 0)
        return tw_xml_fail(&in->xml, "a second fabric");
    if (!tw_xml_number(&in->xml, "rails", false, 1, &rails) || !tw_xml_taken(&in->xml))
        return false;
    in->graph->fabric.rails = rails != 0;
    return read_inside(in, "fabric", elements);
}

static bool read_topology(struct reading *in)
{
    static const struct element elements[] = {
        {"machine", read_machine}, {"hosts", read_hosts}, {"fabric", read_fabric}, {NULL, NULL}};
    struct tw_xml *xml = &in->xml;
    uint64_t version = 0;
    enum tw_xml_event event = tw_xml_next(xml);
    if (event != TW_XML_OPEN || strcmp(xml->name, "twill-topology") != 0)
        return tw_xml_fail(xml, "no topology of twill: it must begin with <twill-topology>");
    if (!tw_xml_number(xml, "version", true, UINT64_MAX, &version))
        return false;
    if (version != TW_TOPO_XML_VERSION)
        return tw_xml_fail(xml, "version %llu, not %u", (unsigned long long)version,
                           TW_TOPO_XML_VERSION);
    if (!tw_xml_text(xml, "name", true, in->graph->name, sizeof(in->graph->name)) ||
        !tw_xml_taken(xml) || !read_inside(in, "twill-topology", elements))
        return false;
    event = tw_xml_next(xml);
    return event == TW_XML_END || tw_xml_fail(xml, "something behind the topology");
}

enum twill_status tw_topo_xml_read(struct tw_topo_graph **graph, const char *source,
                                   const char *text, size_t bytes)
{
    struct reading in;
    tw_xml_init(&in.xml, source, text, bytes);
    in.graph = tw_topo_graph_create("");
    if (!in.graph)
        return TWILL_ERR_NOMEM;
    if (read_topology(&in))
        in.xml.status = tw_topo_graph_seal(in.graph);
    if (tw_failed(in.xml.status)) {
        tw_topo_graph_free(in.graph);
        return in.xml.status;
    }
    *graph = in.graph;
    return TWILL_OK;
}

/* Everything that is in the file. @return NULL: tw_fail was called, *status */
static char *file_read(FILE *file, const char *path, size_t *bytes, enum twill_status *status)
{
    size_t room = 65536, used = 0;
    char *text = malloc(room);
    while (text) {
        used += fread(text + used, 1, room - used, file);
        if (used < room)
            break;
        room *= 2;
        char *larger = room <= 2 * TW_TOPO_XML_BYTES_MOST ? realloc(text, room) : NULL;
        if (!larger)
            free(text);
        text = larger;
    }
    *bytes = used;
    if (text && used <= TW_TOPO_XML_BYTES_MOST && !ferror(file))
        return text;
    if (text && ferror(file))
        *status = tw_fail_errno(TWILL_ERR_SYSTEM, errno, "topology %s cannot be read", path);
    else
        *status = tw_fail(TWILL_ERR_INVALID, "topology %s: more than %zu MiB, or no memory", path,
                          TW_TOPO_XML_BYTES_MOST >> 20);
    free(text);
    return NULL;
}

enum twill_status tw_topo_xml_load(struct tw_topo_graph **graph, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "re");
    if (!file)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "topology %s cannot be opened", path);
    size_t bytes = 0;
    enum twill_status status = TWILL_OK;
    char *text = file_read(file, path, &bytes, &status);
    if (!standard)
        (void)fclose(file);
    if (text)
        status = tw_topo_xml_read(graph, path, text, bytes);
    free(text);
    return status;
}
