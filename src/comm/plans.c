/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which plan a call runs: by TWILL_PLAN_FILE, by TWILL_ALGO, by choice; keeps those made.
 * Never knows: how a plan runs. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/algo.h"
#include "comm/ops.h"

#define PLAN_FILE_BYTES_MAX ((size_t)64 << 20)
#define TRY_COUNT 1 /* a plan that has room for one element of each cell has room for any count */

/* A plan that is ready for use. */
struct entry {
    struct entry *next;
    const struct tw_algo *algo;
    int root;
    struct tw_plan *plan; /* owned */
    uint64_t hash;
};

struct tw_plans {
    struct twill_comm *comm; /* borrowed */
    uint32_t channels;
    bool check;
    const struct tw_algo *forced[TW_COLL_COUNT]; /* by TWILL_ALGO; NULL: chosen */
    struct entry *entries[TW_COLL_COUNT];        /* owned */
    struct entry file;                           /* plan NULL: none */
};

/* ---- TWILL_ALGO -------------------------------------------------------------------------------
 */

#define LIST_BYTES 256

static void list_add(char list[LIST_BYTES], const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, LIST_BYTES - used, "%s%s", used ? ", " : "", name);
}

static enum twill_status unknown_algo(const char *name, const char *coll_name, enum tw_coll coll)
{
    char list[LIST_BYTES] = "";
    for (size_t i = 0; tw_algo_at(i); i++)
        if (coll == TW_COLL_COUNT || tw_algo_at(i)->colls & 1u << coll)
            list_add(list, tw_algo_at(i)->name);
    return tw_fail(TWILL_ERR_INVALID, "TWILL_ALGO: no algorithm \"%s\"%s%s; there are: %s", name,
                   coll_name ? " for " : "", coll_name ? coll_name : "", list);
}

/* One name for every collective that the algorithm serves. */
static enum twill_status force_all(struct tw_plans *plans, const char *name)
{
    bool found = false;
    for (int coll = 0; coll < TW_COLL_P2P; coll++) {
        const struct tw_algo *algo = tw_algo_find(name, (enum tw_coll)coll);
        if (!algo)
            continue;
        plans->forced[coll] = algo;
        found = true;
    }
    return found ? TWILL_OK : unknown_algo(name, NULL, TW_COLL_COUNT);
}

static enum twill_status force_one(struct tw_plans *plans, const char *coll_name, const char *name)
{
    char list[LIST_BYTES] = "";
    for (int coll = 0; coll < TW_COLL_P2P; coll++) {
        const char *known = tw_coll_name((enum tw_coll)coll);
        list_add(list, known);
        if (strcmp(known, coll_name) != 0)
            continue;
        plans->forced[coll] = tw_algo_find(name, (enum tw_coll)coll);
        return plans->forced[coll] ? TWILL_OK : unknown_algo(name, known, (enum tw_coll)coll);
    }
    return tw_fail(TWILL_ERR_INVALID, "TWILL_ALGO: no collective \"%s\"; there are: %s", coll_name,
                   list);
}

static enum twill_status force_parse(struct tw_plans *plans, const char *value)
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

static enum twill_status prove(const struct tw_plan *plan, const char *what)
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

static enum twill_status file_load(struct tw_plans *plans, const char *path)
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
    else
        status = prove(plan, path);
    if (tw_failed(status)) {
        tw_plan_destroy(plan);
        return status;
    }
    plans->file.plan = plan;
    plans->file.root = plan->root;
    return TWILL_OK;
}

/* ---- life -------------------------------------------------------------------------------------
 */

enum twill_status tw_plans_create(struct twill_comm *comm, struct tw_plans **plans)
{
    const struct tw_params *params = comm->proc->params;
    struct tw_plans *p = tw_alloc(sizeof *p);
    if (!p)
        return TWILL_ERR_NOMEM;
    p->comm = comm;
    p->channels = comm->args.channels > 0 ? (uint32_t)comm->args.channels : 1;
    p->check = params->check_plans;
    enum twill_status status = force_parse(p, params->algo);
    if (!tw_failed(status) && params->plan_file[0])
        status = file_load(p, params->plan_file);
    if (tw_failed(status)) {
        free(p);
        return status;
    }
    *plans = p;
    return TWILL_OK;
}

void tw_plans_destroy(struct tw_plans *plans)
{
    if (!plans)
        return;
    for (int coll = 0; coll < TW_COLL_COUNT; coll++) {
        struct entry *next;
        for (struct entry *e = plans->entries[coll]; e; e = next) {
            next = e->next;
            tw_plan_destroy(e->plan);
            free(e);
        }
    }
    tw_plan_destroy(plans->file.plan);
    free(plans);
}

/* ---- choice -----------------------------------------------------------------------------------
 */

/* The larger of the call's buffers. */
static uint64_t call_bytes(const struct tw_call_info *info, int size)
{
    uint64_t bytes = (uint64_t)info->count * tw_type_bytes(info->type);
    switch (info->coll) {
    case TW_COLL_REDUCE_SCATTER:
    case TW_COLL_ALL_GATHER:
    case TW_COLL_ALL_TO_ALL:
        return bytes * (uint64_t)size;
    default:
        return bytes;
    }
}

static bool file_serves(const struct tw_plans *plans, const struct tw_call_info *info)
{
    const struct tw_plan *plan = plans->file.plan;
    return plan && plan->coll == info->coll && plan->nranks == plans->comm->size &&
           plan->root == info->root;
}

static uint64_t entry_hash(const struct entry *entry, uint32_t channels)
{
    struct {
        char name[TW_PLAN_NAME_BYTES];
        uint64_t channels, root;
    } names;
    memset(&names, 0, sizeof names);
    snprintf(names.name, sizeof names.name, "%s", entry->algo->name);
    names.channels = channels;
    names.root = (uint64_t)entry->root;
    return tw_hash64(&names, sizeof names);
}

/* Generates the plan and makes sure, before any rank starts, that the links have room for it. */
static enum twill_status entry_make(const struct tw_plans *plans, enum tw_coll coll,
                                    struct entry *entry)
{
    const struct twill_comm *comm = plans->comm;
    struct tw_algo_args args = {
        .coll = coll,
        .nranks = comm->size,
        .root = entry->root,
        .only_rank = plans->check ? -1 : comm->rank,
        .channels = plans->channels,
    };
    enum twill_status status = entry->algo->generate(&args, &entry->plan);
    if (tw_failed(status))
        return status;
    if (plans->check)
        status = prove(entry->plan, "TWILL_CHECK_PLANS");
    if (tw_failed(status)) {
        tw_plan_destroy(entry->plan);
        return status;
    }
    entry->hash = entry_hash(entry, plans->channels);
    tw_debug(TW_SUB_COMM, "communicator %s rank %d: %s runs %s", comm->args.name, comm->rank,
             tw_coll_name(coll), entry->plan->name);
    return TWILL_OK;
}

static struct entry *entry_find(const struct tw_plans *plans, enum tw_coll coll, int root,
                                const struct tw_algo *algo)
{
    for (struct entry *e = plans->entries[coll]; e; e = e->next)
        if (e->algo == algo && e->root == root)
            return e;
    return NULL;
}

enum twill_status tw_plans_get(struct tw_plans *plans, const struct tw_call_info *info,
                               const struct tw_plan **plan, uint64_t *algo_hash)
{
    if (file_serves(plans, info)) {
        *plan = plans->file.plan;
        *algo_hash = plans->file.hash;
        return TWILL_OK;
    }
    int size = plans->comm->size;
    const struct tw_algo *algo = plans->forced[info->coll];
    if (!algo)
        algo = tw_algo_choose(info->coll, size, call_bytes(info, size));
    if (!algo)
        return tw_fail(TWILL_ERR_UNSUPPORTED, "%s: no algorithm serves it with %d ranks",
                       tw_coll_name(info->coll), size);
    struct entry *entry = entry_find(plans, info->coll, info->root, algo);
    if (!entry) {
        entry = tw_alloc(sizeof *entry);
        if (!entry)
            return TWILL_ERR_NOMEM;
        entry->algo = algo;
        entry->root = info->root;
        enum twill_status status = entry_make(plans, info->coll, entry);
        if (tw_failed(status)) {
            free(entry);
            return status;
        }
        entry->next = plans->entries[info->coll];
        plans->entries[info->coll] = entry;
    }
    *plan = entry->plan;
    *algo_hash = entry->hash;
    return TWILL_OK;
}

enum twill_status tw_plans_p2p(const struct twill_comm *comm, int peer, bool is_send,
                               struct tw_plan **plan)
{
    struct tw_build build;
    tw_build_init(&build, is_send ? "send" : "recv", TW_COLL_P2P, comm->size, 0, comm->rank);
    if (build.plan) {
        build.plan->depth = 2;
        build.plan->slices = 2;
    }
    uint8_t part = tw_build_part(&build, TW_PART_EQUAL, 1, 1);
    uint16_t lane = tw_build_lane(&build, comm->rank, 0);
    struct tw_plan_step step = {
        .op = is_send ? TW_OP_SEND : TW_OP_RECV,
        .dep_lane = TW_NO_LANE,
        .from = is_send ? TW_NO_RANK : peer,
        .to = is_send ? peer : TW_NO_RANK,
    };
    if (is_send)
        step.src = tw_span_one(TW_BUF_IN, part, 0);
    else
        step.dst = tw_span_one(TW_BUF_OUT, part, 0);
    tw_build_step(&build, comm->rank, lane, &step);
    return tw_build_finish(&build, plan);
}
