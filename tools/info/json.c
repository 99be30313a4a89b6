/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how text is written in JSON. Never knows: what it says. */
#include "config.h"

#include "info.h"

void info_json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

void info_json_string(FILE *out, const char *name, const char *text, const char *behind)
{
    fprintf(out, "\"%s\": ", name);
    info_json_text(out, text);
    fputs(behind, out);
}
