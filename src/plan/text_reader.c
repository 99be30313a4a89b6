/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: words, numbers and lines of a text, and where each stands. Never knows: what they mean. */
#include "plan/text_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

static bool is_letter(char c, bool name)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')
        return true;
    return name && (c == '.' || c == '+' || c == '-');
}

void tw_reader_init(struct tw_reader *in, const char *text, size_t bytes)
{
    *in = (struct tw_reader){.text = text, .bytes = bytes, .next_line = 1};
    tw_reader_advance(in, false);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static void blanks_skip(struct tw_reader *in)
{
    while (in->next < in->bytes && is_blank(in->text[in->next]))
        in->next++;
    if (in->next == in->bytes || in->text[in->next] != '#')
        return;
    while (in->next < in->bytes && in->text[in->next] != '\n')
        in->next++;
}

void tw_reader_advance(struct tw_reader *in, bool name)
{
    blanks_skip(in);
    in->line = in->next_line;
    in->column = (uint32_t)(in->next - in->line_start) + 1;
    in->length = 0;
    if (in->next == in->bytes) {
        in->kind = TW_TOKEN_END;
        return;
    }
    in->word = in->text + in->next;
    while (in->next + in->length < in->bytes && is_letter(in->word[in->length], name))
        in->length++;
    in->kind = TW_TOKEN_WORD;
    if (in->length == 0) {
        in->length = 1;
        in->kind = *in->word == '\n' ? TW_TOKEN_NEWLINE : TW_TOKEN_MARK;
    }
    in->next += in->length;
    if (in->kind == TW_TOKEN_NEWLINE) {
        in->next_line++;
        in->line_start = in->next;
    }
}

/* A byte as an error shows it. */
static char shown(char c)
{
    if (c >= ' ' && c <= '~')
        return c;
    return '?';
}

bool tw_reader_expected(struct tw_reader *in, const char *format, ...)
{
    if (tw_failed(in->status))
        return false;
    char what[96], found[28];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    size_t length = in->length < 24 ? in->length : 24;
    for (size_t i = 0; i < length; i++)
        found[i] = shown(in->word[i]);
    found[length] = '\0';
    if (tw_reader_line_ends(in))
        in->status =
            tw_fail(TWILL_ERR_INVALID, "plan text %u:%u: expected %s, found the end of %s",
                    in->line, in->column, what, in->kind == TW_TOKEN_END ? "the text" : "the line");
    else
        in->status = tw_fail(TWILL_ERR_INVALID, "plan text %u:%u: expected %s, found '%s'",
                             in->line, in->column, what, found);
    return false;
}

bool tw_reader_at(const struct tw_reader *in, const char *word)
{
    return !tw_reader_line_ends(in) && in->length == strlen(word) &&
           memcmp(in->word, word, in->length) == 0;
}

bool tw_reader_accept(struct tw_reader *in, const char *word)
{
    if (!tw_reader_at(in, word))
        return false;
    tw_reader_advance(in, false);
    return true;
}

bool tw_reader_expect(struct tw_reader *in, const char *word)
{
    return tw_reader_accept(in, word) || tw_reader_expected(in, "'%s'", word);
}

void tw_reader_skip_lines(struct tw_reader *in)
{
    while (in->kind == TW_TOKEN_NEWLINE)
        tw_reader_advance(in, false);
}

bool tw_reader_newline(struct tw_reader *in)
{
    if (!tw_reader_line_ends(in))
        return tw_reader_expected(in, "the end of the line");
    tw_reader_skip_lines(in);
    return true;
}

bool tw_reader_number(struct tw_reader *in, const char *what, uint32_t most, uint32_t *number)
{
    uint64_t value = 0;
    bool digits = in->kind == TW_TOKEN_WORD;
    for (size_t i = 0; digits && i < in->length; i++) {
        digits = in->word[i] >= '0' && in->word[i] <= '9';
        if (digits && value <= UINT32_MAX)
            value = value * 10 + (uint64_t)(in->word[i] - '0');
    }
    if (!digits || value > most)
        return tw_reader_expected(in, "%s, a number up to %u", what, most);
    *number = (uint32_t)value;
    tw_reader_advance(in, false);
    return true;
}

bool tw_reader_name(struct tw_reader *in, const char *what, const char *(*name_of)(unsigned),
                    uint8_t *value)
{
    const char *name;
    for (unsigned i = 0; (name = name_of(i)) != NULL; i++) {
        if (!tw_reader_accept(in, name))
            continue;
        *value = (uint8_t)i;
        return true;
    }
    return tw_reader_expected(in, "%s", what);
}
