/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: boxes, lines and letters of a picture. Never knows: topologies. */
#include "config.h"

#include "svg.h"

void svg_begin(FILE *out, int w, int h)
{
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
            w, h, w, h, w, h);
}

void svg_end(FILE *out) { fputs("</svg>\n", out); }

void svg_rect(FILE *out, const struct svg_box *box, const char *fill)
{
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"%s\" "
            "stroke=\"#555555\" stroke-width=\"0.8\"/>\n",
            box->x, box->y, box->w, box->h, fill);
}

static void text(FILE *out, int x, int y, const char *text, int size, const char *fill)
{
    fprintf(out, "<text x=\"%d\" y=\"%d\" font-size=\"%d\" fill=\"%s\">", x, y, size, fill);
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
    fputs("</text>\n", out);
}

void svg_title(FILE *out, int x, int y, const char *line) { text(out, x, y, line, 12, "#111111"); }

void svg_small(FILE *out, int x, int y, const char *line) { text(out, x, y, line, 10, "#444444"); }

void svg_line(FILE *out, int x1, int y1, int x2, int y2, const char *stroke)
{
    fprintf(out,
            "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"1.6\" "
            "stroke-opacity=\"0.6\"/>\n",
            x1, y1, x2, y2, stroke);
}
