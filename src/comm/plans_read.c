/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how users say which plans to run: TWILL_ALGO, TWILL_PLAN_FILE. Never knows: when they run.
 */
#include "config.h"

#include "comm/plans.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_FILE_BYTES_MAX ((size_t)64 << 20)

/* ---- TWILL_ALGO -------------------------------------------------------------------------------
 */

#define LIST_BYTES 512

static void list_add(char list[LIST_BYTES], const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, LIST_BYTES - used, "%s%s", used ? ", " : "", name);
}

static enum twill_status unknown_algo(const char *name, const char *coll_name, enum tw_coll coll,
                                      bool ordered)
{
    char list[LIST_BYTES] = "";
    for (size_t i = 0; tw_algo_at(i); i++)
        if (coll == TW_COLL_COUNT || tw_algo_serves(tw_algo_at(i), coll, ordered))
            list_add(list, tw_algo_at(i)->name);
    return tw_fail(TWILL_ERR_INVALID, "TWILL_ALGO: no algorithm \"%s\"%s%s%s; there are: %s", name,
                   coll_name ? " for " : "", coll_name ? coll_name : "",
                   ordered && coll_name ? " in the deterministic mode" : "", list);
}

/* One name for every collective that the algorithm serves; a reduction that it cannot do as the
 * deterministic mode wants it is left to choice. */
static enum twill_status force_all(struct tw_plans *plans, const char *name)
{
    bool found = false;
    for (int coll = 0; coll < TW_COLL_P2P; coll++) {
        const struct tw_algo *algo = tw_algo_find(name, (enum tw_coll)coll);
        if (!algo)
            continue;
        found = true;
        if (tw_algo_serves(algo, (enum tw_coll)coll, plans->ordered))
            plans->forced[coll] = algo;
    }
    return found ? TWILL_OK : unknown_algo(name, NULL, TW_COLL_COUNT, false);
}

static enum twill_status force_one(struct tw_plans *plans, const char *coll_name, const char *name)
{
    char list[LIST_BYTES] = "";
    for (int coll = 0; coll < TW_COLL_P2P; coll++) {
        const char *known = tw_coll_name((enum tw_coll)coll);
        list_add(list, known);
        if (strcmp(known, coll_name) != 0)
            continue;
        const struct tw_algo *algo = tw_algo_find(name, (enum tw_coll)coll);
        if (!algo || !tw_algo_serves(algo, (enum tw_coll)coll, plans->ordered))
            return unknown_algo(name, known, (enum tw_coll)coll, plans->ordered);
        plans->forced[coll] = algo;
        return TWILL_OK;
    }
    return tw_fail(TWILL_ERR_INVALID, "TWILL_ALGO: no collective \"%s\"; there are: %s", coll_name,
                   list);
}

enum twill_status tw_plans_read_algo(struct tw_plans *plans, const char *value)
{
    char copy[TW_PARAM_STRING_BYTES];
    snprintf(copy, sizeof copy, "%s", value);
    char *rest = NULL;
    for (char *part = strtok_r(copy, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
        char *equal = strchr(part, '=');
        enum twill_status status;
        if (equal)
            *equal = '\0';
        if (equal)
            status = force_one(plans, part, equal + 1);
        else
            status = force_all(plans, part);
        if (tw_failed(status))
            return status;
    }
    return TWILL_OK;
}

/* ---- TWILL_PLAN_FILE --------------------------------------------------------------------------
 */

static enum twill_status file_read(const char *path, char **text, size_t *bytes)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return tw_fail_errno(TWILL_ERR_INVALID, errno, "TWILL_PLAN_FILE: cannot open %s", path);
    enum twill_status status = TWILL_OK;
    size_t room = 0, used = 0;
    char *buffer = NULL;
    while (!feof(file) && !ferror(file) && used <= PLAN_FILE_BYTES_MAX) {
        if (used == room) {
            room = room ? 2 * room : 16384;
            char *grown = realloc(buffer, room);
            if (!grown) {
                status = tw_fail(TWILL_ERR_NOMEM, "TWILL_PLAN_FILE: no memory for %s", path);
                break;
            }
            buffer = grown;
        }
        used += fread(buffer + used, 1, room - used, file);
    }
    if (!tw_failed(status) && ferror(file))
        status = tw_fail_errno(TWILL_ERR_INVALID, errno, "TWILL_PLAN_FILE: cannot read %s", path);
    if (!tw_failed(status) && used > PLAN_FILE_BYTES_MAX)
        status = tw_fail(TWILL_ERR_INVALID, "TWILL_PLAN_FILE: %s is longer than %zu bytes", path,
                         PLAN_FILE_BYTES_MAX);
    fclose(file);
    if (tw_failed(status)) {
        free(buffer);
        return status;
    }
    *text = buffer;
    *bytes = used;
    return TWILL_OK;
}

enum twill_status tw_plans_prove(const struct tw_plan *plan, const char *what)
{
    struct tw_check_options options = {0};
    struct tw_check_report report;
    options.max_inplace_ranks = 4;
    options.seed = 1;
    enum twill_status status = tw_plan_check(plan, &options, &report);
    if (status == TWILL_ERR_INVALID)
        return tw_fail(TWILL_ERR_INVALID, "%s: plan %s is not a correct %s: %s", what, plan->name,
                       tw_coll_name((enum tw_coll)plan->coll), report.text);
    return status;
}

enum twill_status tw_plans_read_file(struct tw_plans *plans, const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    enum twill_status status = file_read(path, &text, &bytes);
    if (tw_failed(status))
        return status;
    struct tw_plan *plan = NULL;
    status = tw_plan_parse(text, bytes, &plan);
    plans->file.hash = tw_hash64(text, bytes);
    free(text);
    if (tw_failed(status))
        return tw_fail(status, "TWILL_PLAN_FILE: %s: %s", path, tw_fail_text());
    if (plan->only_rank >= 0 || plan->coll == TW_COLL_P2P)
        status = tw_fail(TWILL_ERR_INVALID,
                         "TWILL_PLAN_FILE: %s: plan %s is not the whole plan of a collective", path,
                         plan->name);
    else if (plans->ordered && !plan->deterministic &&
             tw_coll_rule((enum tw_coll)plan->coll)->reduces)
        status = tw_fail(TWILL_ERR_INVALID,
                         "TWILL_PLAN_FILE: %s: plan %s does not claim the defined order, which the "
                         "deterministic mode wants of %s",
                         path, plan->name, tw_coll_name((enum tw_coll)plan->coll));
    else
        status = tw_plans_prove(plan, path);
    if (tw_failed(status)) {
        tw_plan_destroy(plan);
        return status;
    }
    plans->file.plan = plan;
    plans->file.root = plan->root;
    return TWILL_OK;
}
