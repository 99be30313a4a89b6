/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a picture of a fabric above its machines. Never knows: how a machine looks. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "svg.h"
#include "topo.h"

#define SWITCH_W 118
#define SWITCH_H 34
#define HOST_W 30
#define HOST_H 22
#define ROW_GAP 34
#define SWITCHES_SHOWN 8
#define HOSTS_SHOWN 32
#define NOTE_H 15
#define FABRIC_W (SWITCHES_SHOWN * (SWITCH_W + SVG_PAD) + 120)

/* ---- the fabric ----------------------------------------------------------------------------- */

static uint32_t switches_of(const struct tw_topo_graph *graph, uint32_t tier)
{
    uint64_t count = graph->nhosts;
    for (uint32_t t = 0; t <= tier; t++)
        count = (count + graph->fabric.tier[t].down - 1) / graph->fabric.tier[t].down;
    return (uint32_t)count;
}

static int fabric_height(const struct tw_topo_graph *graph)
{
    int tiers = (int)graph->fabric.ntiers;
    return tiers ? tiers * (SWITCH_H + ROW_GAP) + HOST_H + ROW_GAP : 0;
}

static uint32_t shown(uint32_t count, uint32_t most) { return count < most ? count : most; }

/* Box i of a row of which so many are shown. */
static struct svg_box row_box(uint32_t i, uint32_t count, int w, int h, int y)
{
    int pitch = FABRIC_W - 120;
    pitch = count ? pitch / (int)count : pitch;
    return (struct svg_box){SVG_PAD + (int)i * pitch + (pitch - w) / 2, y, w, h};
}

static void draw_more(FILE *out, uint32_t count, uint32_t most, const char *what, int y)
{
    char text[64];
    if (count <= most)
        return;
    snprintf(text, sizeof(text), "... %" PRIu32 " %s", count, what);
    svg_small(out, FABRIC_W - 110, y + HOST_H / 2 + 4, text);
}

static void draw_tier(FILE *out, const struct tw_topo_graph *graph, uint32_t tier, int y)
{
    char text[96], figure[FIGURE_BYTES];
    const struct tw_topo_fabric *fabric = &graph->fabric;
    uint32_t count = switches_of(graph, tier), visible = shown(count, SWITCHES_SHOWN);
    for (uint32_t i = 0; i < visible; i++) {
        struct svg_box box = row_box(i, visible, SWITCH_W, SWITCH_H, y);
        if (tier + 1 < fabric->ntiers) {
            uint32_t above = shown(switches_of(graph, tier + 1), SWITCHES_SHOWN);
            uint32_t parent = i / fabric->tier[tier + 1].down;
            struct svg_box up = row_box(parent, above, SWITCH_W, SWITCH_H, y - SWITCH_H - ROW_GAP);
            if (parent < above)
                svg_line(out, box.x + SWITCH_W / 2, y, up.x + SWITCH_W / 2, up.y + SWITCH_H,
                         "#2f8f86");
        }
        svg_rect(out, &box, "#a9d5cf");
        snprintf(text, sizeof(text), "tier %" PRIu32 " switch %" PRIu32 "%s", tier, i,
                 tier == 0 && fabric->rails ? ", rails" : "");
        svg_small(out, box.x + 4, y + 14, text);
        if (tier + 1 < fabric->ntiers)
            snprintf(text, sizeof(text), "up %s",
                     figure_rate(fabric->tier[tier].up_bytes_per_s, figure));
        else
            snprintf(text, sizeof(text), "%s", figure_time(fabric->tier[tier].latency_ps, figure));
        svg_small(out, box.x + 4, y + 28, text);
    }
    draw_more(out, count, SWITCHES_SHOWN, "switches", y);
}

static void draw_hosts(FILE *out, const struct tw_topo_graph *graph, int y)
{
    uint32_t visible = shown(graph->nhosts, HOSTS_SHOWN);
    uint32_t above = shown(switches_of(graph, 0), SWITCHES_SHOWN);
    for (uint32_t h = 0; h < visible; h++) {
        char text[16];
        struct svg_box box = row_box(h, visible, HOST_W, HOST_H, y);
        uint32_t parent = h / graph->fabric.tier[0].down;
        struct svg_box up = row_box(parent, above, SWITCH_W, SWITCH_H, y - SWITCH_H - ROW_GAP);
        if (parent < above)
            svg_line(out, box.x + HOST_W / 2, y, up.x + SWITCH_W / 2, up.y + SWITCH_H, "#2f8f86");
        svg_rect(out, &box, "#f0f0ec");
        snprintf(text, sizeof(text), "%" PRIu32, h);
        svg_small(out, box.x + 4, y + 15, text);
    }
    draw_more(out, graph->nhosts, HOSTS_SHOWN, "hosts", y);
}

static void draw_fabric(FILE *out, const struct tw_topo_graph *graph, int y)
{
    for (uint32_t t = graph->fabric.ntiers; t-- > 0;) {
        draw_tier(out, graph, t, y);
        y += SWITCH_H + ROW_GAP;
    }
    if (graph->fabric.ntiers)
        draw_hosts(out, graph, y);
}

/* ---- all ------------------------------------------------------------------------------------ */

static int wide_enough(int w, const char *text, int letter)
{
    int needed = (int)strlen(text) * letter + 2 * SVG_PAD;
    return w > needed ? w : needed;
}

static void draw_all(FILE *out, const struct tw_topo_graph *graph, struct drawing *drawings)
{
    char text[TW_TOPO_NAME_BYTES + 64];
    int w = graph->fabric.ntiers ? FABRIC_W : 0;
    int h = SVG_TITLE + 2 * SVG_PAD + fabric_height(graph);
    for (uint32_t m = 0; m < graph->nmachines; m++) {
        const struct svg_box *all = &drawings[m].boxes[0];
        w = all->w + 2 * SVG_PAD > w ? all->w + 2 * SVG_PAD : w;
        h += all->h + SVG_PAD + (int)graph->machines[m].nnotes * NOTE_H;
        for (uint32_t n = 0; n < graph->machines[m].nnotes; n++)
            w = wide_enough(w, graph->machines[m].notes[n], SVG_SMALL);
    }
    snprintf(text, sizeof(text), "%s: %" PRIu32 " host%s", graph->name, graph->nhosts,
             graph->nhosts == 1 ? "" : "s");
    svg_begin(out, wide_enough(w, text, SVG_LETTER), h);
    svg_title(out, SVG_PAD, SVG_TITLE, text);
    int y = SVG_TITLE + SVG_PAD;
    draw_fabric(out, graph, y);
    y += fabric_height(graph);
    for (uint32_t m = 0; m < graph->nmachines; m++) {
        drawing_place(&drawings[m], SVG_PAD, y);
        drawing_draw(out, &drawings[m]);
        y += drawings[m].boxes[0].h;
        for (uint32_t n = 0; n < graph->machines[m].nnotes; n++)
            svg_small(out, SVG_PAD, y += NOTE_H, graph->machines[m].notes[n]);
        y += SVG_PAD;
    }
    svg_end(out);
}

bool svg_print(FILE *out, const struct tw_topo_graph *graph)
{
    struct drawing *drawings = calloc(graph->nmachines, sizeof(*drawings));
    uint32_t made = 0;
    while (drawings && made < graph->nmachines &&
           drawing_init(&drawings[made], &graph->machines[made]))
        made++;
    bool all = drawings && made == graph->nmachines;
    if (all)
        draw_all(out, graph, drawings);
    while (made > 0)
        drawing_fini(&drawings[--made]);
    free(drawings);
    return all;
}
