/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how prices of all algorithms become one choice by size. Never knows: how a price is made.
 */
#include "algo/crossover.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define ALGOS_MOST 64
#define BEHIND 2 /* times the best: not priced at larger sizes until that has grown */

/* An algorithm whose plan is linked. */
struct entry {
    const struct tw_algo *algo;
    struct tw_plan *plan;      /* owned */
    struct tw_cost_prog *prog; /* owned */
    uint64_t last;             /* its price at the size at which it was priced last; 0: never */
};
struct field {
    const struct tw_crossover_args *args;
    uint32_t count;
    struct entry entries[ALGOS_MOST];
};

uint64_t tw_crossover_count(enum tw_coll coll, int nranks, uint64_t bytes, uint32_t type_bytes)
{
    const struct tw_coll_rule *rule = tw_coll_rule(coll);
    bool groups = rule->in.many || rule->out.many;
    uint64_t each = groups ? bytes / (uint64_t)nranks + (bytes % (uint64_t)nranks != 0) : bytes;
    if (coll == TW_COLL_BARRIER)
        return 0;
    return each / type_bytes + (each % type_bytes != 0);
}

/* ---- the candidates ------------------------------------------------------------------------- */

static void field_free(struct field *field)
{
    for (uint32_t i = 0; i < field->count; i++) {
        tw_cost_prog_destroy(field->entries[i].prog);
        tw_plan_destroy(field->entries[i].plan);
    }
}

static bool may_use(const struct tw_crossover_args *args, const struct tw_algo *algo)
{
    uint32_t serves = args->deterministic ? algo->deterministic : algo->colls;
    return (serves >> args->coll & 1) && (algo->caps & ~args->caps) == 0 &&
           !(args->skip && args->skip(args->skip_ctx, algo));
}

static enum twill_status entry_add(struct field *field, const struct tw_algo *algo)
{
    const struct tw_crossover_args *args = field->args;
    const struct tw_algo_args wanted = {
        .coll = args->coll,
        .nranks = args->nranks,
        .root = args->root,
        .only_rank = -1,
        .channels = args->channels,
    };
    struct entry *entry = &field->entries[field->count];
    *entry = (struct entry){.algo = algo};
    enum twill_status status = algo->generate(&wanted, &entry->plan);
    if (tw_failed(status))
        return status;
    field->count++;
    status = tw_cost_prog_create(entry->plan, args->net, &entry->prog);
    return tw_failed(status) ? status : tw_cost_prog_add(entry->prog, entry->plan);
}

static enum twill_status field_fill(struct field *field)
{
    enum twill_status status = TWILL_OK;
    const struct tw_algo *algo;
    for (size_t i = 0; !tw_failed(status) && (algo = tw_algo_at(i)) != NULL; i++)
        if (may_use(field->args, algo) && field->count < ALGOS_MOST)
            status = entry_add(field, algo);
    if (!tw_failed(status) && field->count == 0)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "%s: no algorithm can be used with %d ranks",
                       tw_coll_name(field->args->coll), field->args->nranks);
    return status;
}

/* ---- prices --------------------------------------------------------------------------------- */

/* UINT64_MAX: the executor has no room for the plan at this size. */
static enum twill_status price_of(const struct field *field, const struct entry *entry,
                                  uint64_t bytes, uint64_t *time)
{
    const struct tw_crossover_args *args = field->args;
    struct tw_cost_price price = {.time_ps = 0};
    struct tw_cost_call call = {
        .count = tw_crossover_count(args->coll, args->nranks, bytes, args->type_bytes),
        .type_bytes = args->type_bytes,
    };
    if (args->shape && tw_failed(args->shape(args->shape_ctx, entry->plan, call.count,
                                             call.type_bytes, &call.shape))) {
        *time = UINT64_MAX;
        return TWILL_OK;
    }
    enum twill_status status = tw_cost_prog_price(entry->prog, args->table, &call, &price);
    if (!tw_failed(status))
        *time = price.time_ps;
    return status;
}

/* Prices grow with sizes: what was far behind at a smaller size is so still. */
static bool is_behind(const struct entry *entry, uint64_t best)
{
    return entry->last / BEHIND >= best;
}

/* @param winner  in: of the size before; out: of this one */
static enum twill_status winner_of(struct field *field, uint64_t bytes, uint32_t *winner,
                                   uint64_t *best)
{
    struct entry *first = &field->entries[*winner];
    enum twill_status status = price_of(field, first, bytes, &first->last);
    *best = first->last;
    for (uint32_t i = 0; i < field->count && !tw_failed(status); i++) {
        struct entry *entry = &field->entries[i];
        if (entry == first || is_behind(entry, *best))
            continue;
        status = price_of(field, entry, bytes, &entry->last);
        if (entry->last < *best || (entry->last == *best && i < *winner)) {
            *best = entry->last;
            *winner = i;
        }
    }
    return status;
}

/* The first eighth above `low` from which the winner of 2 * low is no dearer than that of low. */
static enum twill_status border_find(const struct field *field, uint64_t low, uint32_t before,
                                     uint32_t after, uint64_t *border)
{
    enum twill_status status = TWILL_OK;
    uint64_t step = low / 8;
    uint32_t first = 0, last = 8; /* eighths: before wins at the first, after at the last */
    while (step && last - first > 1 && !tw_failed(status)) {
        uint32_t middle = (first + last) / 2;
        uint64_t time_before = 0, time_after = 0;
        status = price_of(field, &field->entries[before], low + middle * step, &time_before);
        if (!tw_failed(status))
            status = price_of(field, &field->entries[after], low + middle * step, &time_after);
        if (time_after <= time_before)
            last = middle;
        else
            first = middle;
    }
    *border = step ? low + last * step : 2 * low;
    return status;
}

static enum twill_status rows_make(struct field *field, struct tw_crossover *made)
{
    uint32_t last = 0, winner = 0;
    enum twill_status status = TWILL_OK;
    for (uint32_t c = 0; c < TW_CROSSOVER_CLASSES && !tw_failed(status); c++) {
        uint64_t bytes = (uint64_t)1 << c, border = 0;
        if (c && bytes > field->args->max_bytes)
            break;
        status = winner_of(field, bytes, &winner, &made->time_ps[c]);
        if (!tw_failed(status) && made->time_ps[c] == UINT64_MAX)
            return tw_fail(TWILL_ERR_UNSUPPORTED, "%s: no algorithm has room for %llu bytes",
                           tw_coll_name(made->coll), (unsigned long long)bytes);
        made->nclasses = c + 1;
        if (tw_failed(status) || (c && (winner == last || made->nrows == TW_CROSSOVER_ROWS)))
            continue;
        if (c)
            status = border_find(field, bytes / 2, last, winner, &border);
        made->rows[made->nrows++] = (struct tw_crossover_row){border, field->entries[winner].algo};
        last = winner;
    }
    return status;
}

enum twill_status tw_crossover_make(const struct tw_crossover_args *args, struct tw_crossover *out)
{
    if ((unsigned)args->coll >= TW_COLL_COUNT || args->type_bytes == 0 || args->max_bytes == 0 ||
        args->max_bytes > (uint64_t)1 << (TW_CROSSOVER_CLASSES - 1))
        return tw_fail(TWILL_ERR_INVALID,
                       "no choice by price for collective %d, elements of %u bytes, up to %llu",
                       (int)args->coll, args->type_bytes, (unsigned long long)args->max_bytes);
    struct tw_crossover *made = calloc(1, sizeof(*made));
    struct field *field = calloc(1, sizeof(*field));
    enum twill_status status = TWILL_OK;
    if (!made || !field) {
        status = tw_fail(TWILL_ERR_NOMEM, "no memory to price algorithms");
        goto end;
    }
    *made = (struct tw_crossover){.coll = args->coll, .nranks = args->nranks};
    field->args = args;
    status = field_fill(field);
    if (!tw_failed(status))
        status = rows_make(field, made);
    if (!tw_failed(status))
        *out = *made;
    field_free(field);
end:
    free(field);
    free(made);
    return status;
}

/* ---- use ------------------------------------------------------------------------------------ */

const struct tw_algo *tw_crossover_algo(const struct tw_crossover *crossover, uint64_t bytes)
{
    uint32_t row = 0;
    while (row + 1 < crossover->nrows && crossover->rows[row + 1].bytes <= bytes)
        row++;
    return crossover->rows[row].algo;
}

/* part 1024ths of a time */
static uint64_t share(uint64_t time, uint64_t part)
{
    return time / 1024 * part + time % 1024 * part / 1024;
}

uint64_t tw_crossover_time_ps(const struct tw_crossover *crossover, uint64_t bytes)
{
    uint32_t top = crossover->nclasses - 1;
    uint32_t c = bytes < 1 ? 0 : 63 - (uint32_t)__builtin_clzll(bytes | 1);
    c = c < top ? c : top;
    uint64_t behind = bytes > (uint64_t)1 << c ? bytes - ((uint64_t)1 << c) : 0;
    uint64_t part = c >= 10 ? behind >> (c - 10) : behind << (10 - c);
    uint64_t from = crossover->time_ps[c], most;
    if (c == top) /* in proportion */
        return __builtin_mul_overflow(from, part / 1024 + 2, &most) ? UINT64_MAX
                                                                    : from + share(from, part);
    uint64_t to = crossover->time_ps[c + 1];
    return to >= from ? from + share(to - from, part) : from - share(from - to, part);
}

static uint64_t hash_add(uint64_t hash, uint64_t value)
{
    for (int shift = 0; shift < 64; shift += 8)
        hash = (hash ^ (value >> shift & 0xff)) * 0x100000001b3u;
    return hash;
}

uint64_t tw_crossover_hash(const struct tw_crossover *crossover)
{
    uint64_t hash = hash_add(0xcbf29ce484222325u, crossover->coll);
    hash = hash_add(hash, (uint64_t)crossover->nranks);
    for (uint32_t r = 0; r < crossover->nrows; r++) {
        hash = hash_add(hash, crossover->rows[r].bytes);
        for (const char *at = crossover->rows[r].algo->name; *at; at++)
            hash = hash_add(hash, (unsigned char)*at);
    }
    for (uint32_t c = 0; c < crossover->nclasses; c++)
        hash = hash_add(hash, crossover->time_ps[c]);
    return hash ? hash : 1;
}
