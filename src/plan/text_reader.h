/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: words, numbers and lines of a text, and where each stands. Never knows: what they mean. */
#ifndef TW_PLAN_TEXT_READER_H
#define TW_PLAN_TEXT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "twill.h"

enum tw_token_kind { TW_TOKEN_WORD, TW_TOKEN_MARK, TW_TOKEN_NEWLINE, TW_TOKEN_END };

/* A reader stands at one word, which lies in the text: letters, digits and '_'; any other byte is a
 * word of its own. Blanks and comments are passed over. Copying a reader keeps its place. */
struct tw_reader {
    const char *text;   /* borrowed */
    size_t bytes, next; /* next: behind the word */
    enum tw_token_kind kind;
    const char *word;
    size_t length;
    uint32_t line, column; /* of the word, from 1 */
    uint32_t next_line;
    size_t line_start;        /* of next_line */
    enum twill_status status; /* the first error */
};

/** Stands at the first word. */
void tw_reader_init(struct tw_reader *in, const char *text, size_t bytes);
/** To the next word; name: one that may have ".+-" in it besides. */
void tw_reader_advance(struct tw_reader *in, bool name);

/** Say what was expected where the reader stands, unless there is an error already. @return false
 */
bool tw_reader_expected(struct tw_reader *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline bool tw_reader_line_ends(const struct tw_reader *in)
{
    return in->kind == TW_TOKEN_NEWLINE || in->kind == TW_TOKEN_END;
}

/** At the word; at it and past it now; the same or an error. */
bool tw_reader_at(const struct tw_reader *in, const char *word);
bool tw_reader_accept(struct tw_reader *in, const char *word);
bool tw_reader_expect(struct tw_reader *in, const char *word);

/** Past newlines. */
void tw_reader_skip_lines(struct tw_reader *in);
/** Past the end of the line and of empty ones, or an error. */
bool tw_reader_newline(struct tw_reader *in);

/** A decimal number of at most `most`; `what` names it in the error. */
bool tw_reader_number(struct tw_reader *in, const char *what, uint32_t most, uint32_t *number);
/** The place of the word among the names that name_of gives from 0 to NULL. */
bool tw_reader_name(struct tw_reader *in, const char *what, const char *(*name_of)(unsigned),
                    uint8_t *value);

#endif
