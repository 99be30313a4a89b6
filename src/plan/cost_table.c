/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the cost table as a file. Never knows: which rows there are, how a price is made. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "plan/cost.h"

#define PS_OF_NS 1000u
#define NUMBER_MOST ((uint64_t)1 << 50) /* past all bounds */
#define FILE_BYTES_MOST ((size_t)1 << 20)

/* ---- writing -------------------------------------------------------------------------------- */

static const char *unit_name(enum tw_cost_unit unit)
{
    static const char *const names[] = {"ns", "MB/s", "bytes", "blocks"};
    return names[unit];
}

/* The comment line by line; a comment never ends in the middle of the file's own words. */
static void note_write(FILE *out, const char *note)
{
    while (note && *note) {
        size_t length = strcspn(note, "\n");
        fprintf(out, "# %.*s\n", (int)length, note);
        note += length + (note[length] != '\0');
    }
}

static void table_write(FILE *out, const struct tw_cost_table *table, const char *note)
{
    struct tw_cost_row row;
    fputs("twill-cost 1\n", out);
    note_write(out, note);
    for (uint32_t i = 0; tw_cost_row_get(i, &row); i++) {
        unsigned long long value = table->value[i];
        if (row.unit == TW_COST_UNIT_NS)
            fprintf(out, "%-20s %llu.%03llu", row.name, value / PS_OF_NS, value % PS_OF_NS);
        else
            fprintf(out, "%-20s %llu", row.name, value);
        fprintf(out, "  # %s%s%s\n", unit_name(row.unit), *row.doc ? "; " : "", row.doc);
    }
}

enum twill_status tw_cost_table_print(const struct tw_cost_table *table, const char *note,
                                      char **text)
{
    char *made = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&made, &bytes);
    if (!out)
        return tw_fail(TWILL_ERR_NOMEM, "no memory for the text of a cost table");
    table_write(out, table, note);
    bool good = !ferror(out);
    if (fclose(out) != 0 || !good) {
        free(made);
        return tw_fail(TWILL_ERR_NOMEM, "no memory for the text of a cost table");
    }
    *text = made;
    return TWILL_OK;
}

enum twill_status tw_cost_table_save(const char *path, const struct tw_cost_table *table,
                                     const char *note)
{
    FILE *out = fopen(path, "we");
    if (!out)
        return tw_fail_errno(TWILL_ERR_SYSTEM, errno, "cannot write cost table %s", path);
    table_write(out, table, note);
    bool good = !ferror(out);
    int error = errno;
    if (fclose(out) != 0 && good) {
        good = false;
        error = errno;
    }
    return good ? TWILL_OK
                : tw_fail_errno(TWILL_ERR_SYSTEM, error, "cannot write cost table %s", path);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reader {
    const char *at, *end;
    uint32_t line;
    const char *line_start;
};

static enum twill_status expected(const struct reader *in, const char *where, const char *what)
{
    return tw_fail(TWILL_ERR_INVALID, "cost table %u:%u: expected %s", in->line,
                   (unsigned)(where - in->line_start) + 1, what);
}

static void blanks_skip(struct reader *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t' || *in->at == '\r'))
        in->at++;
    if (in->at < in->end && *in->at == '#')
        while (in->at < in->end && *in->at != '\n')
            in->at++;
}

/* To the first word of a line that has one; false at the end of the text. */
static bool lines_skip(struct reader *in)
{
    blanks_skip(in);
    while (in->at < in->end && *in->at == '\n') {
        in->line_start = ++in->at;
        in->line++;
        blanks_skip(in);
    }
    return in->at < in->end;
}

/* The next word of the line; "" at its end. */
static void word_take(struct reader *in, char *word, size_t bytes)
{
    size_t length = 0;
    blanks_skip(in);
    while (in->at < in->end && !strchr(" \t\r\n#", *in->at) && *in->at != '\0') {
        if (length + 1 < bytes)
            word[length++] = *in->at;
        in->at++;
    }
    if (in->at < in->end && *in->at == '\0')
        in->at++; /* no word has it: whoever reads the word refuses the line */
    word[length] = '\0';
}

static bool line_end(struct reader *in)
{
    blanks_skip(in);
    return in->at == in->end || *in->at == '\n';
}

/* "12" or, of a time, "12.345": at most three digits behind the point. */
static bool value_read(const char *word, bool time, uint64_t *value)
{
    const char *at = word;
    uint64_t sum = 0;
    int behind = -1;
    for (; *at; at++) {
        if (*at == '.' && time && behind < 0 && at > word) {
            behind = 0;
            continue;
        }
        if (*at < '0' || *at > '9' || behind >= 3 || sum > UINT64_MAX / 100)
            return false;
        sum = sum * 10 + (uint64_t)(*at - '0');
        behind += behind >= 0;
    }
    if (at == word || behind == 0)
        return false;
    for (int i = behind < 0 ? 0 : behind; time && i < 3; i++)
        sum = sum > NUMBER_MOST ? sum : sum * 10; /* past the bound anyway */
    *value = sum;
    return true;
}

static enum twill_status row_parse(struct reader *in, struct tw_cost_table *table, bool *seen)
{
    char word[64], what[128];
    struct tw_cost_row row;
    uint64_t value;
    const char *where = in->at;
    word_take(in, word, sizeof(word));
    uint32_t index = tw_cost_row_find(word);
    if (index == TW_COST_NONE)
        return expected(in, where, "the name of a row, for instance host.step");
    if (seen[index])
        return expected(in, where, "every row once");
    seen[index] = true;
    tw_cost_row_get(index, &row);
    blanks_skip(in);
    where = in->at;
    word_take(in, word, sizeof(word));
    if (!value_read(word, row.unit == TW_COST_UNIT_NS, &value) || value < row.least ||
        value > row.most) {
        unsigned scale = row.unit == TW_COST_UNIT_NS ? PS_OF_NS : 1;
        snprintf(what, sizeof(what), "%s: a number of %s from %llu to %llu%s", row.name,
                 unit_name(row.unit), (unsigned long long)row.least / scale,
                 (unsigned long long)row.most / scale,
                 scale > 1 ? ", at most three digits behind the point" : "");
        return expected(in, where, what);
    }
    if (!line_end(in))
        return expected(in, in->at, "the end of the line");
    table->value[index] = value;
    return TWILL_OK;
}

enum twill_status tw_cost_table_parse(const char *text, size_t bytes, struct tw_cost_table *table)
{
    struct reader in = {.at = text, .end = text + bytes, .line = 1, .line_start = text};
    struct tw_cost_table read = *table;
    bool seen[TW_COST_VALUES] = {false};
    char magic[32], version[32];
    lines_skip(&in);
    const char *where = in.at;
    word_take(&in, magic, sizeof(magic));
    word_take(&in, version, sizeof(version));
    if (strcmp(magic, "twill-cost") != 0 || strcmp(version, "1") != 0 || !line_end(&in))
        return expected(&in, where, "the line \"twill-cost 1\"");
    while (lines_skip(&in)) {
        enum twill_status status = row_parse(&in, &read, seen);
        if (tw_failed(status))
            return status;
    }
    *table = read;
    return TWILL_OK;
}

enum twill_status tw_cost_table_load(const char *path, struct tw_cost_table *table)
{
    char *text = NULL;
    size_t bytes = 0;
    enum twill_status status = TWILL_OK;
    int error = tw_file_read(path, FILE_BYTES_MOST, &text, &bytes);
    if (error == EFBIG)
        return tw_fail(TWILL_ERR_INVALID, "cost table %s is longer than %zu bytes", path,
                       FILE_BYTES_MOST);
    if (error)
        return tw_fail_errno(error == ENOMEM ? TWILL_ERR_NOMEM : TWILL_ERR_INVALID, error,
                             "cannot read cost table %s", path);
    if (tw_failed(tw_cost_table_parse(text, bytes, table)))
        status = tw_fail(TWILL_ERR_INVALID, "%s: %s", path, tw_fail_text());
    free(text);
    return status;
}
