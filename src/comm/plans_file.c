/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: plans that users wrote: TWILL_PLAN_FILE. Never knows: when they run. */
#include "config.h"

#include "comm/plans.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static enum twill_status file_read(const char *path, char **text, size_t *bytes)
{
    int error = tw_file_read(path, TW_PLANS_FILE_BYTES_MOST, text, bytes);
    if (error == EFBIG)
        return tw_fail(TWILL_ERR_INVALID, "TWILL_PLAN_FILE: %s is longer than %zu bytes", path,
                       TW_PLANS_FILE_BYTES_MOST);
    if (error)
        return tw_fail_errno(error == ENOMEM ? TWILL_ERR_NOMEM : TWILL_ERR_INVALID, error,
                             "TWILL_PLAN_FILE: cannot read %s", path);
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

/* A whole plan of a collective, proven. */
static enum twill_status plan_check(const struct tw_plan *plan, const char *path, bool ordered)
{
    if (plan->only_rank >= 0 || plan->coll == TW_COLL_P2P)
        return tw_fail(TWILL_ERR_INVALID,
                       "TWILL_PLAN_FILE: %s: plan %s is not the whole plan of a collective", path,
                       plan->name);
    if (ordered && !plan->deterministic && tw_coll_rule((enum tw_coll)plan->coll)->reduces)
        return tw_fail(TWILL_ERR_INVALID,
                       "TWILL_PLAN_FILE: %s: plan %s does not claim the defined order, which the "
                       "deterministic mode wants of %s",
                       path, plan->name, tw_coll_name((enum tw_coll)plan->coll));
    return tw_plans_prove(plan, path);
}

static enum twill_status file_load(const char *path, bool ordered, struct tw_plans_file *file)
{
    char *text = NULL;
    size_t bytes = 0;
    enum twill_status status = file_read(path, &text, &bytes);
    if (tw_failed(status))
        return status;
    struct tw_plan *plan = NULL;
    status = tw_plan_parse(text, bytes, &plan);
    file->hash = tw_hash64(text, bytes);
    free(text);
    if (tw_failed(status))
        return tw_fail(status, "TWILL_PLAN_FILE: %s: %s", path, tw_fail_text());
    status = plan_check(plan, path, ordered);
    if (tw_failed(status)) {
        tw_plan_destroy(plan);
        return status;
    }
    file->plan = plan;
    return TWILL_OK;
}

static enum twill_status file_add(struct tw_plans *plans, const char *path)
{
    if (plans->nfiles == TW_PLANS_FILES_MOST)
        return tw_fail(TWILL_ERR_INVALID, "TWILL_PLAN_FILE names more than %d files",
                       TW_PLANS_FILES_MOST);
    struct tw_plans_file *file = &plans->files[plans->nfiles];
    enum twill_status status = file_load(path, plans->ordered, file);
    if (tw_failed(status))
        return status;
    plans->nfiles++;
    const struct tw_plan *plan = file->plan;
    for (const struct tw_plans_file *other = plans->files; other < file; other++) {
        if (other->plan->coll != plan->coll || other->plan->nranks != plan->nranks ||
            other->plan->root != plan->root)
            continue;
        return tw_fail(TWILL_ERR_INVALID,
                       "TWILL_PLAN_FILE: %s: plan %s is for the same calls as plan %s: %s of %d "
                       "ranks, root %d",
                       path, plan->name, other->plan->name, tw_coll_name((enum tw_coll)plan->coll),
                       plan->nranks, plan->root);
    }
    return TWILL_OK;
}

enum twill_status tw_plans_read_files(struct tw_plans *plans, const char *paths)
{
    char copy[TW_PARAM_STRING_BYTES];
    char *rest = NULL;
    enum twill_status status = TWILL_OK;
    snprintf(copy, sizeof copy, "%s", paths);
    for (char *path = strtok_r(copy, ":", &rest); path && !tw_failed(status);
         path = strtok_r(NULL, ":", &rest))
        status = file_add(plans, path);
    return status;
}
