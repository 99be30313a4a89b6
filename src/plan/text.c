/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a plan's text form (text.h), writing. Never knows: whether the plan is right. */
#include "plan/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

const struct tw_text_fact tw_text_facts[] = {
    {"depth", offsetof(struct tw_plan, depth)},
    {"slices", offsetof(struct tw_plan, slices)},
    {"fifos", offsetof(struct tw_plan, nfifos)},
    {"widest", offsetof(struct tw_plan, widest)},
    {"signals", offsetof(struct tw_plan, nsigs)},
    {"sig_max", offsetof(struct tw_plan, sig_max)},
    {"caps", offsetof(struct tw_plan, caps)},
    {"parity", offsetof(struct tw_plan, parity)},
    {"scratch", offsetof(struct tw_plan, scratch_cells)},
    {"wide", offsetof(struct tw_plan, wide_cells)},
};
const size_t tw_text_nfacts = sizeof(tw_text_facts) / sizeof(tw_text_facts[0]);

const struct tw_text_flag tw_text_flags[] = {
    {"store", TW_STEP_STORE}, {"acc_right", TW_STEP_ACC_RIGHT}, {"final", TW_STEP_FINAL},
    {"round", TW_STEP_ROUND}, {"whole", TW_STEP_WHOLE},
};
const size_t tw_text_nflags = sizeof(tw_text_flags) / sizeof(tw_text_flags[0]);

const char *tw_text_part_kind(unsigned kind)
{
    static const char *const names[] = {
        [TW_PART_EQUAL] = "equal",
        [TW_PART_PER_RANK] = "per_rank",
        [TW_PART_PAIR_SEND] = "pair_send",
        [TW_PART_PAIR_RECV] = "pair_recv",
        [TW_PART_OWN] = "own",
        [TW_PART_SHARD] = "shard",

        [TW_PART_RUNTIME] = "runtime",
    };
    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : NULL;
}

const char *tw_text_op(unsigned op)
{
    static const char *const names[TW_OP_COUNT] = {
#define OP_NAME(name, text) [TW_OP_##name] = (text),
        TW_PLAN_OP_LIST(OP_NAME)
#undef OP_NAME
    };
    return op < TW_OP_COUNT ? names[op] : NULL;
}

const char *tw_text_buf(unsigned buf)
{
    static const char *const names[TW_BUF_COUNT] = {"in", "out", "scratch", "wide"};
    return buf < TW_BUF_COUNT ? names[buf] : NULL;
}

/* ---- writing ----------------------------------------------------------------------------------
 */

struct writer {
    char *data; /* owned */
    size_t length, capacity;
    bool failed;
};

static bool writer_grow(struct writer *out, size_t more)
{
    if (out->capacity - out->length > more)
        return true;
    size_t capacity = out->capacity * 2 + more + 1024;
    char *data = realloc(out->data, capacity);
    if (!data) {
        out->failed = true;
        return false;
    }
    out->data = data;
    out->capacity = capacity;
    return true;
}

/* A piece of text of less than 128 bytes. */
static void put(struct writer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *out, const char *format, ...)
{
    char piece[128];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(piece, sizeof(piece), format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof(piece))
        out->failed = true;
    if (out->failed || !writer_grow(out, (size_t)length + 1))
        return;
    memcpy(out->data + out->length, piece, (size_t)length + 1);
    out->length += (size_t)length;
}

static void put_header(struct writer *out, const struct tw_plan *plan)
{
    put(out, "plan %s %s ranks %d root %d", plan->name, tw_coll_name((enum tw_coll)plan->coll),
        plan->nranks, plan->root);
    if (plan->only_rank >= 0)
        put(out, " only %d", plan->only_rank);
    put(out, "\nfacts");
    for (size_t i = 0; i < tw_text_nfacts; i++) {
        uint32_t value;
        memcpy(&value, (const char *)plan + tw_text_facts[i].offset, sizeof(value));
        put(out, " %s %u", tw_text_facts[i].name, value);
    }
    put(out, plan->deterministic ? " deterministic\n" : "\n");
    for (uint32_t i = 0; i < plan->nparts; i++) {
        const struct tw_plan_part *part = &plan->parts[i];
        put(out, "part %s groups %u per %u", tw_text_part_kind(part->kind), part->groups,
            part->per);
        if (part->source_step)
            put(out, " source %u", part->source_step);
        if (part->capacity)
            put(out, " capacity %u", part->capacity);
        put(out, "\n");
    }
}

static void put_peer(struct writer *out, const char *name, int32_t rank, uint16_t fifo)
{
    if (rank == TW_NO_RANK && fifo == 0)
        return;
    if (rank == TW_NO_RANK)
        put(out, " %s -", name);
    else
        put(out, " %s %d", name, rank);
    if (fifo)
        put(out, ":%u", fifo);
}

static void put_span(struct writer *out, const char *name, const struct tw_plan_span *span)
{
    static const struct tw_plan_span none;
    if (memcmp(span, &none, sizeof(none)) == 0)
        return;
    put(out, " %s %s.%u", name, tw_text_buf(span->buf), span->part);
    if (span->index)
        put(out, "@%u", span->index);
    put(out, "[%u", span->first);
    bool range = span->nblocks == 1 && span->stride == span->block;
    if (!range)
        put(out, "+%u*%u/%u", span->block, span->nblocks, span->stride);
    else if (span->block != 1)
        put(out, "+%u", span->block);
    put(out, "]");
}

static void put_step(struct writer *out, const struct tw_plan_step *step)
{
    put(out, "%s", tw_text_op(step->op));
    put_peer(out, "from", step->from, step->fifo_in);
    put_peer(out, "to", step->to, step->fifo_out);
    put_span(out, "src", &step->src);
    put_span(out, "dst", &step->dst);
    if (step->sig || step->sig_value)
        put(out, " sig %u:%u", step->sig, step->sig_value);
    if (step->dep_lane != TW_NO_LANE || step->dep_step)
        put(out, " after %u:%u", step->dep_lane, step->dep_step);
    for (size_t i = 0; i < tw_text_nflags; i++)
        if (step->flags & tw_text_flags[i].flag)
            put(out, " %s", tw_text_flags[i].name);
    put(out, "\n");
}

/* Fields that an operation does not use are kept as they are, so they must be of the form's range.
 */
static enum twill_status step_printable(const struct tw_plan *plan, const struct tw_plan_step *step)
{
    bool peers = step->from >= TW_NO_RANK && step->to >= TW_NO_RANK;
    bool bufs = step->src.buf < TW_BUF_COUNT && step->dst.buf < TW_BUF_COUNT;
    if (peers && bufs)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_INVALID, "plan %s: a step has peers %d, %d and buffers %u, %u",
                   plan->name, step->from, step->to, step->src.buf, step->dst.buf);
}

static enum twill_status put_rank(struct writer *out, const struct tw_plan *plan, int rank)
{
    const struct tw_plan_rank *program = &plan->ranks[rank];
    if (program->nlanes > 0)
        put(out, "rank %d\n", rank);
    for (uint32_t l = 0; l < program->nlanes; l++) {
        const struct tw_plan_lane *lane = &program->lanes[l];
        put(out, "lane channel %u\n", lane->channel);
        for (uint32_t i = 0; i < lane->nsteps; i++) {
            enum twill_status status = step_printable(plan, &lane->steps[i]);
            if (tw_failed(status))
                return status;
            put_step(out, &lane->steps[i]);
        }
    }
    return TWILL_OK;
}

enum twill_status tw_plan_print(const struct tw_plan *plan, char **text)
{
    enum twill_status status = tw_plan_validate(plan);
    if (tw_failed(status))
        return status;
    struct writer out = {0};
    put_header(&out, plan);
    for (int r = 0; r < plan->nranks && !tw_failed(status); r++)
        status = put_rank(&out, plan, r);
    if (!tw_failed(status) && out.failed)
        status = tw_fail(TWILL_ERR_NOMEM, "plan %s: no memory for %zu bytes of text", plan->name,
                         out.length);
    if (tw_failed(status))
        free(out.data);
    else
        *text = out.data;
    return status;
}
