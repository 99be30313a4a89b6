/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how prices of all algorithms become one choice. Never knows: how a price is made.
 */
#include "algo/crossover.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"

#define ALGOS_MOST 64
#define NO_ROOM UINT64_MAX

/* An algorithm whose plan is linked. */
struct entry {
    const struct tw_algo *algo;
    struct tw_plan *plan;      /* owned */
    struct tw_cost_prog *prog; /* owned */
    uint64_t time_ps;
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
    return (algo->colls >> args->coll & 1) && (algo->caps & ~args->caps) == 0 &&
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

/* NO_ROOM: the executor has none for the plan at this size. */
static enum twill_status price_of(const struct field *field, struct entry *entry)
{
    const struct tw_crossover_args *args = field->args;
    struct tw_cost_price price = {.time_ps = 0};
    struct tw_cost_call call = {
        .count = tw_crossover_count(args->coll, args->nranks, args->bytes, args->type_bytes),
        .type_bytes = args->type_bytes,
    };
    entry->time_ps = NO_ROOM;
    if (args->shape && tw_failed(args->shape(args->shape_ctx, entry->plan, call.count,
                                             call.type_bytes, &call.shape)))
        return TWILL_OK;
    enum twill_status status = tw_cost_prog_price(entry->prog, args->table, &call, &price);
    if (!tw_failed(status))
        entry->time_ps = price.time_ps;
    return status;
}

/* Price all; the cheapest wins, the first of them among equals. */
static enum twill_status winner_of(struct field *field, const struct entry **winner)
{
    enum twill_status status = TWILL_OK;
    *winner = &field->entries[0];
    for (uint32_t i = 0; i < field->count && !tw_failed(status); i++) {
        struct entry *entry = &field->entries[i];
        status = price_of(field, entry);
        if (entry->time_ps < (*winner)->time_ps)
            *winner = entry;
    }
    return status;
}

static enum twill_status args_check(const struct tw_crossover_args *args)
{
    if ((unsigned)args->coll >= TW_COLL_COUNT || args->type_bytes == 0 || args->bytes == 0 ||
        args->bytes > (uint64_t)1 << 40)
        return tw_fail(TWILL_ERR_INVALID,
                       "no choice by price for collective %d, elements of %u bytes, up to %llu",
                       (int)args->coll, args->type_bytes, (unsigned long long)args->bytes);
    return TWILL_OK;
}

static void prices_log(const struct field *field)
{
    const struct tw_crossover_args *args = field->args;
    for (uint32_t i = 0; i < field->count; i++) {
        const struct entry *entry = &field->entries[i];
        if (entry->time_ps == NO_ROOM)
            tw_debug(TW_SUB_ALGO, "%s of %llu bytes over %d ranks: %s has no room",
                     tw_coll_name(args->coll), (unsigned long long)args->bytes, args->nranks,
                     entry->algo->name);
        else
            tw_debug(TW_SUB_ALGO, "%s of %llu bytes over %d ranks: %s takes %.3f us",
                     tw_coll_name(args->coll), (unsigned long long)args->bytes, args->nranks,
                     entry->algo->name, (double)entry->time_ps * 1e-6);
    }
}

enum twill_status tw_crossover_pick(const struct tw_crossover_args *args,
                                    const struct tw_algo **algo, uint64_t *time_ps)
{
    enum twill_status status = args_check(args);
    if (tw_failed(status))
        return status;
    struct field *field = calloc(1, sizeof(*field));
    if (!field)
        return tw_fail(TWILL_ERR_NOMEM, "no memory to price algorithms");
    const struct entry *winner = NULL;
    field->args = args;
    status = field_fill(field);
    if (!tw_failed(status))
        status = winner_of(field, &winner);
    if (!tw_failed(status))
        prices_log(field);
    if (!tw_failed(status) && winner->time_ps == NO_ROOM)
        status = tw_fail(TWILL_ERR_UNSUPPORTED,
                         "%s: the links have no room for any algorithm with %d ranks",
                         tw_coll_name(args->coll), args->nranks);
    if (!tw_failed(status)) {
        *algo = winner->algo;
        *time_ps = winner->time_ps;
    }
    field_free(field);
    free(field);
    return status;
}
