/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a plan's text form (text.h), reading. Never knows: whether the plan is right. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/text.h"

/* ---- words ------------------------------------------------------------------------------------
 */

enum token_kind { TOKEN_WORD, TOKEN_MARK, TOKEN_NEWLINE, TOKEN_END };

/* The word at which the reader stands; words lie in the text. */
struct reader {
    const char *text;
    size_t bytes, next; /* next: behind the word */
    enum token_kind kind;
    const char *word;
    size_t length;
    uint32_t line, column; /* of the word, from 1 */
    uint32_t next_line;
    size_t line_start; /* of next_line */
    enum twill_status status;
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* What a plan's name has besides. */
static bool is_name_letter(char c) { return is_letter(c) || c == '.' || c == '+' || c == '-'; }

/* Step to the next word; letters says which bytes make one. Other bytes are words of their own. */
static void advance(struct reader *in, bool (*letters)(char))
{
    while (in->next < in->bytes && strchr(" \t\r", in->text[in->next]) && in->text[in->next])
        in->next++;
    if (in->next < in->bytes && in->text[in->next] == '#')
        while (in->next < in->bytes && in->text[in->next] != '\n')
            in->next++;
    in->line = in->next_line;
    in->column = (uint32_t)(in->next - in->line_start) + 1;
    in->word = in->text + in->next;
    in->length = 1;
    if (in->next == in->bytes) {
        in->kind = TOKEN_END;
        in->length = 0;
        return;
    }
    if (*in->word == '\n') {
        in->kind = TOKEN_NEWLINE;
        in->next_line++;
        in->line_start = in->next + 1;
    } else if (letters(*in->word)) {
        in->kind = TOKEN_WORD;
        while (in->next + in->length < in->bytes && letters(in->word[in->length]))
            in->length++;
    } else {
        in->kind = TOKEN_MARK;
    }
    in->next += in->length;
}

/* Say what was expected here; false, so that callers can return it. */
static bool expected(struct reader *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool expected(struct reader *in, const char *format, ...)
{
    if (tw_failed(in->status))
        return false;
    char what[96], found[28];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    size_t length = in->length < 24 ? in->length : 24;
    for (size_t i = 0; i < length; i++) {
        bool plain = in->word[i] >= ' ' && in->word[i] <= '~';
        found[i] = '?';
        if (plain)
            found[i] = in->word[i];
    }
    found[length] = '\0';
    if (in->kind == TOKEN_NEWLINE || in->kind == TOKEN_END)
        in->status =
            tw_fail(TWILL_ERR_INVALID, "plan text %u:%u: expected %s, found the end of %s",
                    in->line, in->column, what, in->kind == TOKEN_END ? "the text" : "the line");
    else
        in->status = tw_fail(TWILL_ERR_INVALID, "plan text %u:%u: expected %s, found '%s'",
                             in->line, in->column, what, found);
    return false;
}

static bool at(const struct reader *in, const char *word)
{
    return (in->kind == TOKEN_WORD || in->kind == TOKEN_MARK) && in->length == strlen(word) &&
           memcmp(in->word, word, in->length) == 0;
}

static bool accept(struct reader *in, const char *word)
{
    if (!at(in, word))
        return false;
    advance(in, is_letter);
    return true;
}

static bool expect(struct reader *in, const char *word)
{
    return accept(in, word) || expected(in, "'%s'", word);
}

static void skip_lines(struct reader *in)
{
    while (in->kind == TOKEN_NEWLINE)
        advance(in, is_letter);
}

static bool expect_newline(struct reader *in)
{
    if (in->kind != TOKEN_NEWLINE && in->kind != TOKEN_END)
        return expected(in, "the end of the line");
    skip_lines(in);
    return true;
}

static bool read_number(struct reader *in, const char *what, uint32_t most, uint32_t *number)
{
    uint64_t value = 0;
    bool digits = in->kind == TOKEN_WORD;
    for (size_t i = 0; digits && i < in->length; i++) {
        digits = in->word[i] >= '0' && in->word[i] <= '9';
        if (digits && value <= UINT32_MAX)
            value = value * 10 + (uint64_t)(in->word[i] - '0');
    }
    if (!digits || value > most)
        return expected(in, "%s, a number up to %u", what, most);
    *number = (uint32_t)value;
    advance(in, is_letter);
    return true;
}

/* One of the names that `name_of` gives from 0 to NULL. */
static bool read_name(struct reader *in, const char *what, const char *(*name_of)(unsigned),
                      uint8_t *value)
{
    const char *name;
    for (unsigned i = 0; (name = name_of(i)) != NULL; i++) {
        if (!at(in, name))
            continue;
        *value = (uint8_t)i;
        advance(in, is_letter);
        return true;
    }
    return expected(in, "%s", what);
}

/* ---- header -----------------------------------------------------------------------------------
 */

static const char *coll_name(unsigned coll) { return tw_coll_name((enum tw_coll)coll); }

static bool read_plan_line(struct reader *in, struct tw_build *build)
{
    char name[TW_PLAN_NAME_BYTES];
    uint8_t coll = 0;
    uint32_t nranks = 0, root = 0, only = 0;
    if (!at(in, "plan"))
        return expected(in, "'plan'");
    advance(in, is_name_letter);
    if (in->kind != TOKEN_WORD || in->length >= sizeof(name))
        return expected(in, "a name of up to %d letters", TW_PLAN_NAME_BYTES - 1);
    memcpy(name, in->word, in->length);
    name[in->length] = '\0';
    advance(in, is_letter);
    if (!read_name(in, "a collective", coll_name, &coll) || !expect(in, "ranks") ||
        !read_number(in, "a count of ranks", TW_PLAN_RANKS_MAX, &nranks) || !expect(in, "root") ||
        !read_number(in, "a rank", TW_PLAN_RANKS_MAX, &root))
        return false;
    bool one = accept(in, "only");
    if (one && !read_number(in, "a rank", TW_PLAN_RANKS_MAX, &only))
        return false;
    if (!expect_newline(in))
        return false;
    tw_build_init(build, name, (enum tw_coll)coll, (int)nranks, (int)root, one ? (int)only : -1);
    in->status = build->status;
    return !tw_failed(in->status);
}

static bool read_fact(struct reader *in, struct tw_plan *facts, uint32_t *seen)
{
    for (size_t i = 0; i < tw_text_nfacts; i++) {
        uint32_t value;
        if (*seen >> i & 1 || !accept(in, tw_text_facts[i].name))
            continue;
        *seen |= 1u << i;
        if (!read_number(in, tw_text_facts[i].name, UINT32_MAX, &value))
            return false;
        memcpy((char *)facts + tw_text_facts[i].offset, &value, sizeof(value));
        return true;
    }
    return expected(in, "a fact that was not given yet");
}

/* facts: only the fields of tw_text_facts and `deterministic` are written. */
static bool read_facts_line(struct reader *in, struct tw_plan *facts)
{
    uint32_t seen = 0;
    facts->slices = 1;
    facts->parity = 1;
    if (!expect(in, "facts"))
        return false;
    while (in->kind != TOKEN_NEWLINE && in->kind != TOKEN_END) {
        if (!facts->deterministic && accept(in, "deterministic"))
            facts->deterministic = true;
        else if (!read_fact(in, facts, &seen))
            return false;
    }
    return expect_newline(in);
}

static bool read_part_line(struct reader *in, struct tw_build *build)
{
    uint8_t kind = 0;
    uint32_t groups, per, source = 0, capacity = 0;
    if (!read_name(in, "a kind of partition", tw_text_part_kind, &kind) || !expect(in, "groups") ||
        !read_number(in, "a count of groups", UINT32_MAX, &groups) || !expect(in, "per") ||
        !read_number(in, "a count of cells", UINT32_MAX, &per))
        return false;
    if (accept(in, "source") && !read_number(in, "a step", UINT32_MAX, &source))
        return false;
    if (accept(in, "capacity") && !read_number(in, "a capacity", UINT32_MAX, &capacity))
        return false;
    uint8_t part = tw_build_part(build, (enum tw_part_kind)kind, groups, per);
    in->status = build->status;
    if (tw_failed(in->status))
        return false;
    build->plan->parts[part].source_step = source;
    build->plan->parts[part].capacity = capacity;
    return expect_newline(in);
}

/* ---- steps ------------------------------------------------------------------------------------
 */

enum {
    SEEN_FROM = 1 << 8, /* below: flags */
    SEEN_TO = 1 << 9,
    SEEN_SRC = 1 << 10,
    SEEN_DST = 1 << 11,
    SEEN_SIG = 1 << 12,
    SEEN_AFTER = 1 << 13,
};

/* The word opens a field or flag that was not seen yet. */
static bool opens(struct reader *in, const char *word, uint32_t *seen, uint32_t bit)
{
    if (*seen & bit || !accept(in, word))
        return false;
    *seen |= bit;
    return true;
}

static bool read_pair(struct reader *in, uint32_t most_first, uint32_t *first, uint32_t *second)
{
    return read_number(in, "a number before ':'", most_first, first) && expect(in, ":") &&
           read_number(in, "a number behind ':'", UINT32_MAX, second);
}

static bool read_peer(struct reader *in, int32_t *rank, uint16_t *fifo)
{
    uint32_t number = 0;
    if (accept(in, "-")) {
        *rank = TW_NO_RANK;
    } else {
        if (!read_number(in, "a rank", INT32_MAX, &number))
            return false;
        *rank = (int32_t)number;
    }
    number = 0;
    if (accept(in, ":") && !read_number(in, "a fifo id", UINT16_MAX, &number))
        return false;
    *fifo = (uint16_t)number;
    return true;
}

static bool read_span(struct reader *in, struct tw_plan_span *span)
{
    uint32_t part, index = 0;
    *span = (struct tw_plan_span){.block = 1, .stride = 1, .nblocks = 1};
    if (!read_name(in, "a buffer", tw_text_buf, &span->buf) || !expect(in, ".") ||
        !read_number(in, "a partition", UINT8_MAX, &part))
        return false;
    if (accept(in, "@") && !read_number(in, "an index", UINT16_MAX, &index))
        return false;
    span->part = (uint8_t)part;
    span->index = (uint16_t)index;
    if (!expect(in, "[") || !read_number(in, "a cell", UINT32_MAX, &span->first))
        return false;
    if (accept(in, "+")) {
        if (!read_number(in, "a count of cells", UINT32_MAX, &span->block))
            return false;
        span->stride = span->block;
        if (accept(in, "*") &&
            !(read_number(in, "a count of blocks", UINT32_MAX, &span->nblocks) && expect(in, "/") &&
              read_number(in, "a stride", UINT32_MAX, &span->stride)))
            return false;
    }
    return expect(in, "]");
}

static bool read_flag(struct reader *in, struct tw_plan_step *step, uint32_t *seen)
{
    for (size_t i = 0; i < tw_text_nflags; i++) {
        if (!opens(in, tw_text_flags[i].name, seen, tw_text_flags[i].flag))
            continue;
        step->flags |= tw_text_flags[i].flag;
        return true;
    }
    return expected(in, "a field or flag that was not given yet");
}

static bool read_field(struct reader *in, struct tw_plan_step *step, uint32_t *seen)
{
    if (opens(in, "from", seen, SEEN_FROM))
        return read_peer(in, &step->from, &step->fifo_in);
    if (opens(in, "to", seen, SEEN_TO))
        return read_peer(in, &step->to, &step->fifo_out);
    if (opens(in, "src", seen, SEEN_SRC))
        return read_span(in, &step->src);
    if (opens(in, "dst", seen, SEEN_DST))
        return read_span(in, &step->dst);
    if (opens(in, "sig", seen, SEEN_SIG))
        return read_pair(in, UINT32_MAX, &step->sig, &step->sig_value);
    if (opens(in, "after", seen, SEEN_AFTER)) {
        uint32_t lane = 0;
        bool ok = read_pair(in, TW_NO_LANE, &lane, &step->dep_step);
        step->dep_lane = (uint16_t)lane;
        return ok;
    }
    return read_flag(in, step, seen);
}

static bool read_step_line(struct reader *in, struct tw_plan_step *step)
{
    uint32_t seen = 0;
    *step = (struct tw_plan_step){.dep_lane = TW_NO_LANE, .from = TW_NO_RANK, .to = TW_NO_RANK};
    if (!read_name(in, "a step, 'lane' or 'rank'", tw_text_op, &step->op))
        return false;
    while (in->kind != TOKEN_NEWLINE && in->kind != TOKEN_END)
        if (!read_field(in, step, &seen))
            return false;
    return expect_newline(in);
}

static bool read_lane(struct reader *in, struct tw_build *build, int rank)
{
    uint32_t channel;
    if (!expect(in, "channel") || !read_number(in, "a channel", UINT16_MAX, &channel) ||
        !expect_newline(in))
        return false;
    uint16_t lane = tw_build_lane(build, rank, (uint16_t)channel);
    while (in->kind != TOKEN_END && !at(in, "lane") && !at(in, "rank")) {
        struct tw_plan_step step;
        if (!read_step_line(in, &step))
            return false;
        tw_build_step(build, rank, lane, &step);
    }
    in->status = build->status;
    return !tw_failed(in->status);
}

static bool read_ranks(struct reader *in, struct tw_build *build)
{
    uint32_t next = 0;
    while (in->kind != TOKEN_END) {
        uint32_t rank, nranks = (uint32_t)build->plan->nranks;
        if (!expect(in, "rank"))
            return false;
        struct reader here = *in;
        if (!read_number(in, "a rank", nranks - 1, &rank))
            return false;
        if (rank < next || !tw_build_wants(build, (int)rank)) {
            *in = here;
            return expected(in, "a rank of this plan that is above the one before");
        }
        next = rank + 1;
        if (!expect_newline(in))
            return false;
        while (accept(in, "lane"))
            if (!read_lane(in, build, (int)rank))
                return false;
    }
    return true;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static void facts_apply(struct tw_plan *plan, const struct tw_plan *facts)
{
    plan->deterministic = facts->deterministic;
    for (size_t i = 0; i < tw_text_nfacts; i++)
        memcpy((char *)plan + tw_text_facts[i].offset,
               (const char *)facts + tw_text_facts[i].offset, sizeof(uint32_t));
}

static bool read_text(struct reader *in, struct tw_build *build)
{
    struct tw_plan facts = {0};
    advance(in, is_letter);
    skip_lines(in);
    if (!read_plan_line(in, build) || !read_facts_line(in, &facts))
        return false;
    while (accept(in, "part"))
        if (!read_part_line(in, build))
            return false;
    if (!read_ranks(in, build))
        return false;
    facts_apply(build->plan, &facts);
    in->status = tw_plan_validate(build->plan);
    return !tw_failed(in->status);
}

enum twill_status tw_plan_parse(const char *text, size_t bytes, struct tw_plan **plan)
{
    struct reader in = {.text = text, .bytes = bytes, .next_line = 1};
    struct tw_build build = {0};
    if (!read_text(&in, &build)) {
        tw_plan_destroy(build.plan);
        return in.status;
    }
    *plan = build.plan;
    return TWILL_OK;
}
