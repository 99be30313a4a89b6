/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: boxes, lines and letters of a picture. Never knows: topologies. */
#ifndef TWILL_TOPO_SVG_H
#define TWILL_TOPO_SVG_H

#include <stdio.h>

#define SVG_LETTER 7 /* width of a letter of a title, about */
#define SVG_SMALL 6  /* of a small one */
#define SVG_TITLE 16 /* height of a line of titles */
#define SVG_PAD 8    /* between boxes */

struct svg_box {
    int x, y, w, h;
};

void svg_begin(FILE *out, int w, int h);
void svg_end(FILE *out);
void svg_rect(FILE *out, const struct svg_box *box, const char *fill);
/* A line of text, escaped; y of its base line. */
void svg_title(FILE *out, int x, int y, const char *text);
void svg_small(FILE *out, int x, int y, const char *text);
void svg_line(FILE *out, int x1, int y1, int x2, int y2, const char *stroke);

#endif
