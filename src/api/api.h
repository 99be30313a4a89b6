/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what every entry point checks before it acts. Never knows: how calls run. */
#ifndef TW_API_API_H
#define TW_API_API_H

#include "comm/comm.h"

/* Argument errors: tw_fail says them, these keep them where twill_last_error looks. */

/** Keep the newest failure for calls without a communicator. */
static inline enum twill_status tw_api_error(enum twill_status status)
{
    tw_last_error_keep(0);
    return status;
}

/** Keep the newest failure for comm. */
static inline enum twill_status tw_api_comm_error(twill_comm_t comm, enum twill_status status)
{
    tw_last_error_keep(tw_comm_key(comm));
    return status;
}

/** This process made what it holds: it is not a fork of one that did; otherwise ERR_USAGE (tw_fail
 * called, not kept). */
enum twill_status tw_api_own(const char *call);

/** comm is a living communicator of this process; otherwise ERR_INVALID, after a fork ERR_USAGE;
 * kept. */
enum twill_status tw_api_alive(twill_comm_t comm, const char *call);

/**
 * The checks of a call that acts on a communicator: it is alive, nobody else is inside, it is ready
 * and healthy.
 *
 * @return TWILL_OK: comm is claimed for this thread and tw_api_leave is due; otherwise the error,
 *         kept, and nothing is claimed
 */
enum twill_status tw_api_enter(twill_comm_t comm, const char *call);
static inline void tw_api_leave(twill_comm_t comm) { tw_ops_unclaim(comm); }

/** The communicator's own failure, kept for this thread; OK when it is healthy. */
enum twill_status tw_api_failure(twill_comm_t comm);
/** It is in state READY; otherwise ERR_USAGE, kept. */
enum twill_status tw_api_ready(twill_comm_t comm, const char *call);

/** stream is NULL or a living stream of this process; otherwise ERR_INVALID, after a fork ERR_USAGE
 * (tw_fail called, not kept). */
enum twill_status tw_api_stream(twill_stream_t stream, const char *call);

/* A config with every field resolved from the caller's struct, its defaults and the parameters. */
enum twill_status tw_api_config(const struct twill_config *config, struct tw_comm_args *args);

/* The same for a communicator that comes of another: what is unset is as there. */
enum twill_status tw_api_config_child(const struct twill_config *config,
                                      const struct twill_comm *parent, struct tw_comm_args *args);

/** Bytes of comm's registrations. */
uint64_t tw_api_reg_bytes(const struct twill_comm *comm);
/** End what is left of comm's registrations. */
void tw_api_reg_drop(twill_comm_t comm);

/** A call's reduction exists and fits its type, which is one; ERR_INVALID otherwise (tw_fail
 * called, not kept). A created one is put in place of its handle. */
enum twill_status tw_api_redop(struct tw_call *call, const char *name);
/** End what is left of comm's created reductions. */
void tw_api_redop_drop(twill_comm_t comm);

#endif
