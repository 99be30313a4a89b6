/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a plan's text form (text.h), reading. Never knows: whether the plan is right. */
#include <string.h>

#include "base/status.h"
#include "plan/text.h"
#include "plan/text_reader.h"

/* ---- header -----------------------------------------------------------------------------------
 */

static const char *coll_name(unsigned coll) { return tw_coll_name((enum tw_coll)coll); }

static bool read_plan_line(struct tw_reader *in, struct tw_build *build)
{
    char name[TW_PLAN_NAME_BYTES];
    uint8_t coll = 0;
    uint32_t nranks = 0, root = 0, only = 0;
    if (!tw_reader_at(in, "plan"))
        return tw_reader_expected(in, "'plan'");
    tw_reader_advance(in, true);
    if (in->kind != TW_TOKEN_WORD || in->length >= sizeof(name))
        return tw_reader_expected(in, "a name of up to %d letters", TW_PLAN_NAME_BYTES - 1);
    memcpy(name, in->word, in->length);
    name[in->length] = '\0';
    tw_reader_advance(in, false);
    if (!tw_reader_name(in, "a collective", coll_name, &coll) || !tw_reader_expect(in, "ranks") ||
        !tw_reader_number(in, "a count of ranks", TW_PLAN_RANKS_MAX, &nranks) ||
        !tw_reader_expect(in, "root") || !tw_reader_number(in, "a rank", TW_PLAN_RANKS_MAX, &root))
        return false;
    bool one = tw_reader_accept(in, "only");
    if (one && !tw_reader_number(in, "a rank", TW_PLAN_RANKS_MAX, &only))
        return false;
    if (!tw_reader_newline(in))
        return false;
    tw_build_init(build, name, (enum tw_coll)coll, (int)nranks, (int)root, one ? (int)only : -1);
    in->status = build->status;
    return !tw_failed(in->status);
}

static bool read_fact(struct tw_reader *in, struct tw_plan *facts, uint32_t *seen)
{
    for (size_t i = 0; i < tw_text_nfacts; i++) {
        uint32_t value;
        if (*seen >> i & 1 || !tw_reader_accept(in, tw_text_facts[i].name))
            continue;
        *seen |= 1u << i;
        if (!tw_reader_number(in, tw_text_facts[i].name, UINT32_MAX, &value))
            return false;
        memcpy((char *)facts + tw_text_facts[i].offset, &value, sizeof(value));
        return true;
    }
    return tw_reader_expected(in, "a fact that was not given yet");
}

/* facts: only the fields of tw_text_facts and `deterministic` are written. */
static bool read_facts_line(struct tw_reader *in, struct tw_plan *facts)
{
    uint32_t seen = 0;
    facts->slices = 1;
    facts->parity = 1;
    if (!tw_reader_expect(in, "facts"))
        return false;
    while (!tw_reader_line_ends(in)) {
        if (!facts->deterministic && tw_reader_accept(in, "deterministic"))
            facts->deterministic = true;
        else if (!read_fact(in, facts, &seen))
            return false;
    }
    return tw_reader_newline(in);
}

static bool read_part_line(struct tw_reader *in, struct tw_build *build)
{
    uint8_t kind = 0;
    uint32_t groups, per, source = 0, capacity = 0;
    if (!tw_reader_name(in, "a kind of partition", tw_text_part_kind, &kind) ||
        !tw_reader_expect(in, "groups") ||
        !tw_reader_number(in, "a count of groups", UINT32_MAX, &groups) ||
        !tw_reader_expect(in, "per") || !tw_reader_number(in, "a count of cells", UINT32_MAX, &per))
        return false;
    if (tw_reader_accept(in, "source") && !tw_reader_number(in, "a step", UINT32_MAX, &source))
        return false;
    if (tw_reader_accept(in, "capacity") &&
        !tw_reader_number(in, "a capacity", UINT32_MAX, &capacity))
        return false;
    uint8_t part = tw_build_part(build, (enum tw_part_kind)kind, groups, per);
    in->status = build->status;
    if (tw_failed(in->status))
        return false;
    build->plan->parts[part].source_step = source;
    build->plan->parts[part].capacity = capacity;
    return tw_reader_newline(in);
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
static bool opens(struct tw_reader *in, const char *word, uint32_t *seen, uint32_t bit)
{
    if (*seen & bit || !tw_reader_accept(in, word))
        return false;
    *seen |= bit;
    return true;
}

static bool read_pair(struct tw_reader *in, uint32_t most_first, uint32_t *first, uint32_t *second)
{
    return tw_reader_number(in, "a number before ':'", most_first, first) &&
           tw_reader_expect(in, ":") &&
           tw_reader_number(in, "a number behind ':'", UINT32_MAX, second);
}

static bool read_peer(struct tw_reader *in, int32_t *rank, uint16_t *fifo)
{
    uint32_t number = 0;
    if (tw_reader_accept(in, "-")) {
        *rank = TW_NO_RANK;
    } else {
        if (!tw_reader_number(in, "a rank", INT32_MAX, &number))
            return false;
        *rank = (int32_t)number;
    }
    number = 0;
    if (tw_reader_accept(in, ":") && !tw_reader_number(in, "a fifo id", UINT16_MAX, &number))
        return false;
    *fifo = (uint16_t)number;
    return true;
}

static bool read_span(struct tw_reader *in, struct tw_plan_span *span)
{
    uint32_t part, index = 0;
    *span = (struct tw_plan_span){.block = 1, .stride = 1, .nblocks = 1};
    if (!tw_reader_name(in, "a buffer", tw_text_buf, &span->buf) || !tw_reader_expect(in, ".") ||
        !tw_reader_number(in, "a partition", UINT8_MAX, &part))
        return false;
    if (tw_reader_accept(in, "@") && !tw_reader_number(in, "an index", UINT16_MAX, &index))
        return false;
    span->part = (uint8_t)part;
    span->index = (uint16_t)index;
    if (!tw_reader_expect(in, "[") || !tw_reader_number(in, "a cell", UINT32_MAX, &span->first))
        return false;
    if (tw_reader_accept(in, "+")) {
        if (!tw_reader_number(in, "a count of cells", UINT32_MAX, &span->block))
            return false;
        span->stride = span->block;
        if (tw_reader_accept(in, "*") &&
            !(tw_reader_number(in, "a count of blocks", UINT32_MAX, &span->nblocks) &&
              tw_reader_expect(in, "/") &&
              tw_reader_number(in, "a stride", UINT32_MAX, &span->stride)))
            return false;
    }
    return tw_reader_expect(in, "]");
}

static bool read_flag(struct tw_reader *in, struct tw_plan_step *step, uint32_t *seen)
{
    for (size_t i = 0; i < tw_text_nflags; i++) {
        if (!opens(in, tw_text_flags[i].name, seen, tw_text_flags[i].flag))
            continue;
        step->flags |= tw_text_flags[i].flag;
        return true;
    }
    return tw_reader_expected(in, "a field or flag that was not given yet");
}

static bool read_field(struct tw_reader *in, struct tw_plan_step *step, uint32_t *seen)
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

static bool read_step_line(struct tw_reader *in, struct tw_plan_step *step)
{
    uint32_t seen = 0;
    *step = (struct tw_plan_step){.dep_lane = TW_NO_LANE, .from = TW_NO_RANK, .to = TW_NO_RANK};
    if (!tw_reader_name(in, "a step, 'lane' or 'rank'", tw_text_op, &step->op))
        return false;
    while (!tw_reader_line_ends(in))
        if (!read_field(in, step, &seen))
            return false;
    return tw_reader_newline(in);
}

static bool read_lane(struct tw_reader *in, struct tw_build *build, int rank)
{
    uint32_t channel;
    if (!tw_reader_expect(in, "channel") ||
        !tw_reader_number(in, "a channel", UINT16_MAX, &channel) || !tw_reader_newline(in))
        return false;
    uint16_t lane = tw_build_lane(build, rank, (uint16_t)channel);
    while (in->kind != TW_TOKEN_END && !tw_reader_at(in, "lane") && !tw_reader_at(in, "rank")) {
        struct tw_plan_step step;
        if (!read_step_line(in, &step))
            return false;
        tw_build_step(build, rank, lane, &step);
    }
    in->status = build->status;
    return !tw_failed(in->status);
}

static bool read_ranks(struct tw_reader *in, struct tw_build *build)
{
    uint32_t next = 0;
    while (build->plan && in->kind != TW_TOKEN_END) { /* there is one after the first line */
        uint32_t rank, nranks = (uint32_t)build->plan->nranks;
        if (!tw_reader_expect(in, "rank"))
            return false;
        struct tw_reader here = *in;
        if (!tw_reader_number(in, "a rank", nranks - 1, &rank))
            return false;
        if (rank < next || !tw_build_wants(build, (int)rank)) {
            *in = here;
            return tw_reader_expected(in, "a rank of this plan that is above the one before");
        }
        next = rank + 1;
        if (!tw_reader_newline(in))
            return false;
        while (tw_reader_accept(in, "lane"))
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

static bool read_text(struct tw_reader *in, struct tw_build *build)
{
    struct tw_plan facts = {0};
    tw_reader_skip_lines(in);
    if (!read_plan_line(in, build) || !read_facts_line(in, &facts))
        return false;
    while (tw_reader_accept(in, "part"))
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
    struct tw_reader in;
    struct tw_build build = {0};
    tw_reader_init(&in, text, bytes);
    if (!read_text(&in, &build)) {
        tw_plan_destroy(build.plan);
        return in.status;
    }
    *plan = build.plan;
    return TWILL_OK;
}
