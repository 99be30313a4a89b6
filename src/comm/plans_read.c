/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the grammar of TWILL_ALGO and TWILL_PROTO. Never knows: what is done with the answer. */
#include "config.h"

#include "comm/plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_BYTES 512
#define PARAM_MOST 65536

/* ---- what is known -------------------------------------------------------------------------- */

static void list_add(char list[LIST_BYTES], const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, LIST_BYTES - used, "%s%s", used ? ", " : "", name);
}

static enum twill_status unknown_algo(const char *name, enum tw_coll coll, bool ordered)
{
    char list[LIST_BYTES] = "";
    bool one = coll != TW_COLL_COUNT;
    for (size_t i = 0; tw_algo_at(i); i++)
        if (!one || tw_algo_serves(tw_algo_at(i), coll, ordered))
            list_add(list, tw_algo_at(i)->name);
    return tw_fail(TWILL_ERR_INVALID, "TWILL_ALGO: no algorithm \"%s\"%s%s%s; there are: %s", name,
                   one ? " for " : "", one ? tw_coll_name(coll) : "",
                   one && ordered ? " in the deterministic mode" : "", list);
}

/* TW_COLL_COUNT: none of that name (tw_fail was called). */
static enum tw_coll coll_find(const char *variable, const char *name)
{
    char list[LIST_BYTES] = "";
    for (int coll = 0; coll < TW_COLL_P2P; coll++) {
        if (strcmp(tw_coll_name((enum tw_coll)coll), name) == 0)
            return (enum tw_coll)coll;
        list_add(list, tw_coll_name((enum tw_coll)coll));
    }
    (void)tw_fail(TWILL_ERR_INVALID, "%s: no collective \"%s\"; there are: %s", variable, name,
                  list);
    return TW_COLL_COUNT;
}

/* ---- a part --------------------------------------------------------------------------------- */

struct part {
    enum tw_coll coll; /* TW_COLL_COUNT: all */
    bool without;      /* ^ */
    char *name;
    uint32_t param; /* 0: not said */
};

/* coll=^name: cut in place. */
static enum twill_status part_cut(const char *variable, char *text, struct part *part)
{
    char *equal = strchr(text, '=');
    *part = (struct part){.coll = TW_COLL_COUNT, .name = equal ? equal + 1 : text};
    if (equal) {
        *equal = '\0';
        part->coll = coll_find(variable, text);
        if (part->coll == TW_COLL_COUNT)
            return TWILL_ERR_INVALID;
    }
    part->without = part->name[0] == '^';
    part->name += part->without;
    return TWILL_OK;
}

/* name:param */
static enum twill_status param_cut(struct part *part)
{
    char *colon = strchr(part->name, ':');
    if (!colon)
        return TWILL_OK;
    *colon = '\0';
    char *end = NULL;
    unsigned long value = colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 0;
    if (!end || *end || value < 1 || value > PARAM_MOST)
        return tw_fail(TWILL_ERR_INVALID,
                       "TWILL_ALGO: \"%s\" is no parameter of %s: a number from 1 to %d is",
                       colon + 1, part->name, PARAM_MOST);
    if (part->without)
        return tw_fail(TWILL_ERR_INVALID,
                       "TWILL_ALGO: ^%s leaves the algorithm out with any parameter: name none",
                       part->name);
    part->param = (uint32_t)value;
    return TWILL_OK;
}

static enum twill_status param_check(const struct part *part, const struct tw_algo *algo)
{
    if (!part->param || algo->param)
        return TWILL_OK;
    char list[LIST_BYTES] = "";
    for (size_t i = 0; tw_algo_at(i); i++)
        if (tw_algo_at(i)->param)
            list_add(list, tw_algo_at(i)->name);
    return tw_fail(TWILL_ERR_INVALID, "TWILL_ALGO: algorithm %s takes no parameter; these do: %s",
                   algo->name, list);
}

static void leave_out(struct tw_plans *plans, enum tw_coll coll, const struct tw_algo *algo)
{
    for (size_t i = 0; i < 64 && tw_algo_at(i); i++)
        if (tw_algo_at(i) == algo)
            plans->left_out[coll] |= (uint64_t)1 << i;
}

static enum twill_status part_apply(struct tw_plans *plans, const struct part *part)
{
    bool found = false;
    for (int c = 0; c < TW_COLL_P2P; c++) {
        enum tw_coll coll = (enum tw_coll)c;
        if (part->coll != TW_COLL_COUNT && part->coll != coll)
            continue;
        const struct tw_algo *algo = tw_algo_find(part->name, coll);
        if (!algo)
            continue;
        enum twill_status status = param_check(part, algo);
        if (tw_failed(status))
            return status;
        /* a name for all leaves to choice what it cannot do as the deterministic mode wants it */
        bool serves = tw_algo_serves(algo, coll, plans->ordered);
        found |= serves || part->without || part->coll == TW_COLL_COUNT;
        if (part->without) {
            leave_out(plans, coll, algo);
            if (plans->forced[coll] == algo)
                plans->forced[coll] = NULL;
            continue;
        }
        if (!serves)
            continue;
        plans->forced[coll] = algo;
        plans->forced_param[coll] = part->param;
    }
    return found ? TWILL_OK : unknown_algo(part->name, part->coll, plans->ordered);
}

enum twill_status tw_plans_read_algo(struct tw_plans *plans, const char *value)
{
    char copy[TW_PARAM_STRING_BYTES];
    char *rest = NULL;
    snprintf(copy, sizeof copy, "%s", value);
    for (char *text = strtok_r(copy, ",", &rest); text; text = strtok_r(NULL, ",", &rest)) {
        struct part part;
        enum twill_status status = part_cut("TWILL_ALGO", text, &part);
        if (!tw_failed(status))
            status = param_cut(&part);
        if (!tw_failed(status))
            status = part_apply(plans, &part);
        if (tw_failed(status))
            return status;
    }
    return TWILL_OK;
}

enum twill_status tw_plans_read_proto(const char *value)
{
    char copy[TW_PARAM_STRING_BYTES];
    char *rest = NULL;
    snprintf(copy, sizeof copy, "%s", value);
    for (char *text = strtok_r(copy, ",", &rest); text; text = strtok_r(NULL, ",", &rest)) {
        struct part part;
        enum twill_status status = part_cut("TWILL_PROTO", text, &part);
        if (tw_failed(status))
            return status;
        if (strcmp(part.name, "simple") != 0)
            return tw_fail(TWILL_ERR_INVALID, "TWILL_PROTO: no protocol \"%s\"; there is: simple",
                           part.name);
        if (part.without)
            return tw_fail(TWILL_ERR_INVALID,
                           "TWILL_PROTO: ^simple leaves no protocol; there is: simple");
    }
    return TWILL_OK;
}
