/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: arguments and states of the calls that make communicators out of others.
 * Never knows: how their ranks find each other. */
#include "config.h"

#include <stdio.h>

#include "api/api.h"
#include "comm/split.h"

/* Names are for messages, and the same on all ranks that get the communicator. */
static void split_name(const struct twill_comm *parent, int color, struct tw_comm_args *args)
{
    if (!args->name[0])
        snprintf(args->name, sizeof args->name, "%.*s/%d", TW_COMM_NAME_BYTES - 16,
                 parent->args.name, color);
}

static void shrink_name(const struct twill_comm *parent, struct tw_comm_args *args)
{
    if (!args->name[0])
        snprintf(args->name, sizeof args->name, "%.*s-", TW_COMM_NAME_BYTES - 2, parent->args.name);
}

/* The new communicator did not come to be: its failure is the caller's. */
static enum twill_status child_give_up(struct twill_comm *child, enum twill_status status)
{
    char text[TW_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text, "%s",
             tw_comm_status(child) == status ? child->failure : tw_fail_text());
    tw_comm_give_up(child);
    return tw_fail_again(status, text);
}

/* Takes over split and child. */
static enum twill_status split_run(twill_comm_t parent, struct tw_split *split,
                                   struct twill_comm *child, twill_comm_t *out)
{
    const struct tw_call call = tw_split_call(parent, split);
    enum twill_status status = tw_ops_call(&call);
    if (!tw_failed(status) && split->stream)
        tw_split_keep(parent, split);
    else
        tw_split_put(split);
    if (!tw_failed(status) && child)
        status = tw_comm_connect(&child, 1, child->args.blocking != 0);
    if (!tw_failed(status))
        *out = child;
    else if (child)
        status = child_give_up(child, status);
    return status;
}

static enum twill_status split_start(twill_comm_t parent, int color, int key,
                                     struct tw_comm_args *args, twill_comm_t *out)
{
    struct tw_split *split = NULL;
    struct twill_comm *child = NULL;
    enum twill_status status = tw_split_create(parent, color, key, args->blocking == 0, &split);
    if (tw_failed(status))
        return status;
    if (color != TWILL_SPLIT_NOCOLOR) {
        split_name(parent, color, args);
        status = tw_split_child(parent, split, args, &child);
    }
    if (!tw_failed(status) && !tw_group_active())
        return split_run(parent, split, child, out);
    if (!tw_failed(status))
        status = tw_group_add_split(parent, split, child, out);
    if (!tw_failed(status))
        return status;
    if (child)
        tw_comm_give_up(child);
    tw_split_put(split);
    return status;
}

enum twill_status twill_comm_split(twill_comm_t comm, int color, int key, twill_comm_t *newcomm,
                                   const struct twill_config *config)
{
    enum twill_status status = tw_api_enter(comm, "comm_split");
    if (tw_failed(status))
        return status;
    struct tw_comm_args args = {0};
    if (newcomm)
        *newcomm = NULL;
    if (!newcomm)
        status = tw_fail(TWILL_ERR_INVALID, "comm_split: the output is NULL");
    else if (color < 0 && color != TWILL_SPLIT_NOCOLOR)
        status = tw_fail(TWILL_ERR_INVALID,
                         "comm_split: color %d is negative and not TWILL_SPLIT_NOCOLOR", color);
    else
        status = tw_api_config_child(config, comm, &args);
    if (!tw_failed(status))
        status = split_start(comm, color, key, &args, newcomm);
    if (tw_failed(status) && !tw_failed(tw_api_failure(comm)))
        tw_last_error_keep(tw_comm_key(comm));
    tw_api_leave(comm);
    return status;
}

/* ---- shrink -----------------------------------------------------------------------------------
 */

/* What a shrink is asked for. */
struct shrinking {
    const char *call;
    const int *without; /* [count] */
    int count;
    twill_comm_t *out;
};

/* Takes nothing over on errors. */
static enum twill_status shrink_start(twill_comm_t parent, const struct shrinking *shrinking,
                                      struct tw_comm_args *args)
{
    struct tw_split *split = NULL;
    struct twill_comm *child = NULL;
    shrink_name(parent, args);
    enum twill_status status =
        tw_shrink_create(parent, shrinking->without, shrinking->count, &split);
    if (tw_failed(status))
        return status;
    status = tw_split_child(parent, split, args, &child);
    if (!tw_failed(status) && tw_group_active()) {
        status = tw_group_add_split(parent, split, child, shrinking->out);
        if (!tw_failed(status))
            return status;
        tw_comm_give_up(child);
    } else if (!tw_failed(status)) {
        status = tw_comm_connect(&child, 1, args->blocking != 0);
        if (tw_failed(status))
            status = child_give_up(child, status);
        else
            *shrinking->out = child;
    }
    tw_split_put(split);
    return status;
}

static enum twill_status without_check(const struct twill_comm *comm,
                                       const struct shrinking *shrinking)
{
    if (shrinking->count < 0 || (shrinking->count && !shrinking->without))
        return tw_fail(TWILL_ERR_INVALID, "%s: %d ranks to leave out%s", shrinking->call,
                       shrinking->count, shrinking->count < 0 ? "" : ", and no list of them");
    for (int i = 0; i < shrinking->count; i++) {
        int rank = shrinking->without[i];
        if (rank < 0 || rank >= comm->size)
            return tw_fail(TWILL_ERR_INVALID,
                           "%s: rank %d to leave out is out of range: ranks are 0 to %d",
                           shrinking->call, rank, comm->size - 1);
        if (rank == comm->rank)
            return tw_fail(TWILL_ERR_INVALID, "%s: rank %d leaves itself out, and calls",
                           shrinking->call, rank);
    }
    return TWILL_OK;
}

/* comm is claimed. What it has queued belongs to before the shrink, unless it has failed. */
static enum twill_status shrink(twill_comm_t comm, const struct shrinking *shrinking,
                                const struct twill_config *config)
{
    struct tw_comm_args args = {0};
    if (!shrinking->out)
        return tw_fail(TWILL_ERR_INVALID, "%s: the output is NULL", shrinking->call);
    *shrinking->out = NULL;
    enum twill_status status = without_check(comm, shrinking);
    if (!tw_failed(status))
        status = tw_api_config_child(config, comm, &args);
    if (tw_failed(status))
        return status;
    if (args.blocking && !tw_group_active())
        (void)tw_ops_drain(comm);
    return shrink_start(comm, shrinking, &args);
}

static enum twill_status shrink_call(twill_comm_t comm, const struct shrinking *shrinking,
                                     const struct twill_config *config)
{
    enum twill_status status = tw_api_alive(comm, shrinking->call);
    if (tw_failed(status))
        return status;
    status = tw_ops_claim(comm, shrinking->call);
    if (tw_failed(status))
        return tw_api_comm_error(comm, status);
    status = tw_api_ready(comm, shrinking->call);
    if (!tw_failed(status)) {
        status = shrink(comm, shrinking, config);
        if (tw_failed(status))
            tw_last_error_keep(tw_comm_key(comm));
    }
    tw_api_leave(comm);
    return status;
}

enum twill_status twill_comm_shrink(twill_comm_t comm, twill_comm_t *newcomm,
                                    const struct twill_config *config)
{
    const struct shrinking shrinking = {.call = "comm_shrink", .out = newcomm};
    return shrink_call(comm, &shrinking, config);
}

enum twill_status twill_comm_shrink_without(twill_comm_t comm, const int *without, int count,
                                            twill_comm_t *newcomm,
                                            const struct twill_config *config)
{
    const struct shrinking shrinking = {
        .call = "comm_shrink_without", .without = without, .count = count, .out = newcomm};
    return shrink_call(comm, &shrinking, config);
}
