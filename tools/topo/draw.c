/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where the parts of a machine lie in a picture. Never knows: hwloc, files. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "svg.h"

#define TEXT_BYTES 256
#define CORE_W 76
#define CORE_H 34
#define BAR_H 34
#define BAR_GAP 22
#define BAR_LETTERS 64

/* ---- words ---------------------------------------------------------------------------------- */

/* "cache 3" and its size; model for devices. */
static void title_of(const struct tw_topo_machine *machine, uint32_t index, char text[TEXT_BYTES])
{
    char name[TW_TOPO_NAME_BYTES + 32], figure[FIGURE_BYTES];
    const struct tw_topo_node *node = &machine->nodes[index];
    if (node->kind == TW_NODE_HOST) {
        snprintf(text, TEXT_BYTES, "%s (%s)%s%s", machine->name,
                 tw_topo_origin_name(machine->origin), machine->cpu_model[0] ? ": " : "",
                 machine->cpu_model);
        return;
    }
    tw_topo_node_text(machine, index, name, sizeof(name));
    if (node->kind == TW_NODE_CACHE)
        snprintf(text, TEXT_BYTES, "L%u %s", node->level, figure_bytes(node->memory_bytes, figure));
    else if (node->memory_bytes)
        snprintf(text, TEXT_BYTES, "%s %s", name, figure_bytes(node->memory_bytes, figure));
    else
        snprintf(text, TEXT_BYTES, "%s", name);
}

/* The link to the parent, or beside the tree. */
static void figures_of(const struct tw_topo_link *link, char text[TEXT_BYTES])
{
    char a[FIGURE_BYTES], b[FIGURE_BYTES];
    snprintf(text, TEXT_BYTES, "%s, %s", figure_time(link->latency_ps[0], a),
             figure_rate(link->bytes_per_s[0], b));
}

static void threads_of(const struct drawing *drawing, uint32_t core, char text[TEXT_BYTES])
{
    size_t used = (size_t)snprintf(text, TEXT_BYTES, "CPU");
    for (uint32_t pu = drawing->family.first[core]; pu != TW_TOPO_NONE && used < TEXT_BYTES / 2;
         pu = drawing->family.next[pu])
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, " %" PRIu32,
                                 drawing->machine->nodes[pu].os_index);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static int larger(int a, int b) { return a > b ? a : b; }

/* What lies together inside a part: its memories, its CPUs, its devices. */
enum group { MEMORIES, CPUS, DEVICES, GROUPS, BESIDE };

static enum group group_of(unsigned kind)
{
    switch (kind) {
    case TW_NODE_MEMORY:
        return MEMORIES;
    case TW_NODE_PCIROOT:
    case TW_NODE_PCISWITCH:
    case TW_NODE_NIC:
    case TW_NODE_GPU:
        return DEVICES;
    case TW_NODE_NET:
    case TW_NODE_NVSWITCH:
        return BESIDE;
    default:
        return CPUS;
    }
}

static int columns_for(uint32_t count, enum group group, bool cores)
{
    if (group == DEVICES && count <= 8)
        return (int)count;
    int columns = 1;
    /* cores are twice as wide as high, and a picture may be wider than high, too */
    while ((uint64_t)columns * (uint64_t)columns < (cores ? 2 * (uint64_t)count : count))
        columns++;
    return columns;
}

/* Puts a group's boxes, relative to their part, from y on. @return y behind them */
static int flow(struct drawing *drawing, uint32_t index, enum group group, int y)
{
    struct svg_box *boxes = drawing->boxes;
    uint32_t count = 0;
    bool cores = false;
    for (uint32_t c = drawing->family.first[index]; c != TW_TOPO_NONE; c = drawing->family.next[c])
        if (group_of(drawing->machine->nodes[c].kind) == group) {
            count++;
            cores |= drawing->machine->nodes[c].kind == TW_NODE_CORE;
        }
    int columns = columns_for(count, group, cores), column = 0, x = SVG_PAD, high = 0;
    for (uint32_t c = drawing->family.first[index]; c != TW_TOPO_NONE;
         c = drawing->family.next[c]) {
        if (group_of(drawing->machine->nodes[c].kind) != group)
            continue;
        if (column == columns) {
            y += high + SVG_PAD;
            column = high = 0;
            x = SVG_PAD;
        }
        boxes[c].x = x;
        boxes[c].y = y;
        x += boxes[c].w + SVG_PAD;
        high = larger(high, boxes[c].h);
        boxes[index].w = larger(boxes[index].w, x);
        column++;
    }
    return count ? y + high + SVG_PAD : y;
}

static void size_part(struct drawing *drawing, uint32_t index)
{
    char title[TEXT_BYTES], figures[TEXT_BYTES] = "";
    const struct tw_topo_node *node = &drawing->machine->nodes[index];
    struct svg_box *box = &drawing->boxes[index];
    if (node->kind == TW_NODE_CORE) {
        threads_of(drawing, index, title);
        box->w = larger(CORE_W, (int)strlen(title) * SVG_SMALL + SVG_PAD);
        box->h = CORE_H;
        return;
    }
    title_of(drawing->machine, index, title);
    if (node->uplink != TW_TOPO_NONE)
        figures_of(&drawing->machine->links[node->uplink], figures);
    size_t small = larger((int)strlen(figures), (int)strlen(node->model));
    box->w = larger((int)strlen(title) * SVG_LETTER, (int)small * SVG_SMALL) + 2 * SVG_PAD;
    int y = SVG_TITLE + SVG_PAD / 2 + (figures[0] ? SVG_TITLE - 2 : 0) +
            (node->model[0] ? SVG_TITLE - 2 : 0);
    for (int group = 0; group < GROUPS; group++)
        y = flow(drawing, index, (enum group)group, y);
    box->h = larger(y, drawing->family.first[index] == TW_TOPO_NONE ? y + 2 : y);
}

/* The world outside and the NVSwitch: bars below everything else. */
static void size_bars(struct drawing *drawing)
{
    struct svg_box *host = &drawing->boxes[0];
    bool bars = tw_topo_node_count(drawing->machine, TW_NODE_NET) > 0 ||
                tw_topo_node_count(drawing->machine, TW_NODE_NVSWITCH) > 0;
    host->w = bars ? larger(host->w, BAR_LETTERS * SVG_LETTER) : host->w;
    for (int turn = 0; turn < 2; turn++) {
        uint32_t bar = tw_topo_node_nth(drawing->machine, turn ? TW_NODE_NET : TW_NODE_NVSWITCH, 0);
        if (bar == TW_TOPO_NONE)
            continue;
        drawing->boxes[bar] =
            (struct svg_box){SVG_PAD, host->h + BAR_GAP - SVG_PAD, host->w - 2 * SVG_PAD, BAR_H};
        host->h += BAR_GAP + BAR_H;
    }
}

bool drawing_init(struct drawing *drawing, const struct tw_topo_machine *machine)
{
    drawing->machine = machine;
    drawing->boxes = calloc(machine->nnodes, sizeof(*drawing->boxes));
    if (!drawing->boxes)
        return false;
    if (!family_init(&drawing->family, machine)) {
        free(drawing->boxes);
        return false;
    }
    /* children stand behind their parents */
    for (uint32_t i = machine->nnodes; i-- > 0;)
        if (machine->nodes[i].kind != TW_NODE_PU && group_of(machine->nodes[i].kind) != BESIDE)
            size_part(drawing, i);
    size_bars(drawing);
    return true;
}

void drawing_fini(struct drawing *drawing)
{
    family_fini(&drawing->family);
    free(drawing->boxes);
}

void drawing_place(struct drawing *drawing, int x, int y)
{
    drawing->boxes[0].x = x;
    drawing->boxes[0].y = y;
    for (uint32_t i = 1; i < drawing->machine->nnodes; i++) {
        const struct svg_box *parent = &drawing->boxes[drawing->machine->nodes[i].parent];
        drawing->boxes[i].x += parent->x;
        drawing->boxes[i].y += parent->y;
    }
}

/* ---- ink ------------------------------------------------------------------------------------ */

static const char *colour_of(unsigned kind)
{
    static const char *const colours[TW_NODE_KIND_COUNT] = {
        [TW_NODE_HOST] = "#fbfbfa",    [TW_NODE_PACKAGE] = "#f0f0ec",
        [TW_NODE_NUMA] = "#e6efe8",    [TW_NODE_MEMORY] = "#d3e3f5",
        [TW_NODE_CACHE] = "#ffffff",   [TW_NODE_CORE] = "#fdebcd",
        [TW_NODE_PCIROOT] = "#f1eaf7", [TW_NODE_PCISWITCH] = "#e3d7f1",
        [TW_NODE_NIC] = "#c8e7e3",     [TW_NODE_NET] = "#a9d5cf",
        [TW_NODE_GPU] = "#d2e9b8",     [TW_NODE_NVSWITCH] = "#b7d792",
    };
    return colours[kind] ? colours[kind] : "#ffffff";
}

static void draw_part(FILE *out, const struct drawing *drawing, uint32_t index)
{
    char line[TEXT_BYTES];
    const struct tw_topo_machine *machine = drawing->machine;
    const struct tw_topo_node *node = &machine->nodes[index];
    const struct svg_box *box = &drawing->boxes[index];
    int y = box->y + SVG_TITLE - 3;
    svg_rect(out, box, colour_of(node->kind));
    if (node->kind == TW_NODE_CORE) {
        tw_topo_node_text(machine, index, line, sizeof(line));
        svg_small(out, box->x + 4, y, line);
        threads_of(drawing, index, line);
        svg_small(out, box->x + 4, y + SVG_TITLE - 3, line);
        return;
    }
    title_of(machine, index, line);
    svg_title(out, box->x + SVG_PAD, y, line);
    if (node->model[0])
        svg_small(out, box->x + SVG_PAD, y += SVG_TITLE - 2, node->model);
    if (node->uplink == TW_TOPO_NONE)
        return;
    figures_of(&machine->links[node->uplink], line);
    svg_small(out, box->x + SVG_PAD, y + SVG_TITLE - 2, line);
}

static bool is_bar(unsigned kind) { return group_of(kind) == BESIDE; }

static void draw_link(FILE *out, const struct drawing *drawing, const struct tw_topo_link *link)
{
    const struct svg_box *a = &drawing->boxes[link->from], *b = &drawing->boxes[link->to];
    int x = a->x + a->w / 2, y = a->y + a->h;
    if (is_bar(drawing->machine->nodes[link->to].kind))
        svg_line(out, x, y, x, b->y,
                 drawing->machine->nodes[link->to].kind == TW_NODE_NET ? "#2f8f86" : "#5f8f22");
    else
        svg_line(out, x, y, b->x + b->w / 2, b->y + b->h, "#b5541c");
}

/* What the links to a bar are like: of the first of them. */
static void draw_bar(FILE *out, const struct drawing *drawing, uint32_t bar)
{
    char figures[TEXT_BYTES], line[2 * TEXT_BYTES];
    const struct tw_topo_machine *machine = drawing->machine;
    const char *name = machine->nodes[bar].kind == TW_NODE_NET ? "network" : "NVSwitch";
    uint32_t count = 0, first = 0;
    for (uint32_t i = machine->nlinks; i-- > 0;)
        if (machine->links[i].to == bar) {
            first = i;
            count++;
        }
    svg_rect(out, &drawing->boxes[bar], colour_of(machine->nodes[bar].kind));
    if (count) {
        figures_of(&machine->links[first], figures);
        snprintf(line, sizeof(line), "%s: %" PRIu32 " link%s, the first %s (%s)", name, count,
                 count == 1 ? "" : "s", figures, tw_topo_origin_name(machine->links[first].origin));
    } else {
        snprintf(line, sizeof(line), "%s", name);
    }
    svg_title(out, drawing->boxes[bar].x + SVG_PAD, drawing->boxes[bar].y + BAR_H / 2 + 4, line);
}

void drawing_draw(FILE *out, const struct drawing *drawing)
{
    const struct tw_topo_machine *machine = drawing->machine;
    for (uint32_t i = 0; i < machine->nnodes; i++)
        if (machine->nodes[i].kind != TW_NODE_PU && !is_bar(machine->nodes[i].kind))
            draw_part(out, drawing, i);
    for (uint32_t i = 0; i < machine->nlinks; i++)
        if (machine->nodes[machine->links[i].from].uplink != i)
            draw_link(out, drawing, &machine->links[i]);
    /* over the lines that pass below them */
    for (uint32_t i = 0; i < machine->nnodes; i++)
        if (is_bar(machine->nodes[i].kind))
            draw_bar(out, drawing, i);
}
