/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what the files of twill-topo share. Never knows: communicators. */
#ifndef TWILL_TOPO_TOOL_H
#define TWILL_TOPO_TOOL_H

#include <stdio.h>

#include "topo/graph.h"
#include "topo/measured.h"

/* Numbers for people: "85 ns", "1.7 us"; "24 GB/s", "400 MB/s"; "32 MiB". Into text, which they
 * return. */
#define FIGURE_BYTES 32
const char *figure_time(uint64_t ps, char text[FIGURE_BYTES]);
const char *figure_rate(uint64_t bytes_per_s, char text[FIGURE_BYTES]);
const char *figure_bytes(uint64_t bytes, char text[FIGURE_BYTES]);

/* Children of each node as lists, in order. */
struct family {
    uint32_t *first, *next; /* owned, [nnodes]; TW_TOPO_NONE ends a list */
};
/* false: no memory */
bool family_init(struct family *family, const struct tw_topo_machine *machine);
void family_fini(struct family *family);

/* The graph as a tree of text. false: no memory */
bool text_print(FILE *out, const struct tw_topo_graph *graph);

/* The graph as a picture: boxes in boxes, links beside the tree as lines. false: no memory */
bool svg_print(FILE *out, const struct tw_topo_graph *graph);

/* What was measured, as text. */
void measured_print(FILE *out, const struct tw_topo_measured *measured);

#endif
