/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which result each status is, and the sentences that threads ask for.
 * Never knows: what was called. */
#include "config.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "compat/compat.h"

/* ---- results ------------------------------------------------------------------------------------
 */

/* docs/nccl.md has this table, with reasons; a test compares them. */
static const struct {
    enum twill_status status;
    ncclResult_t result;
} results[] = {
    {TWILL_OK, ncclSuccess},
    {TWILL_INPROGRESS, ncclInProgress},
    {TWILL_ERR_INVALID, ncclInvalidArgument},
    {TWILL_ERR_USAGE, ncclInvalidUsage},
    {TWILL_ERR_BUSY, ncclInvalidUsage},
    {TWILL_ERR_UNSUPPORTED, ncclInvalidUsage},
    {TWILL_ERR_NOMEM, ncclSystemError},
    {TWILL_ERR_SYSTEM, ncclSystemError},
    {TWILL_ERR_AGAIN, ncclSystemError},
    {TWILL_ERR_INTERNAL, ncclInternalError},
    {TWILL_ERR_PEER, ncclRemoteError},
    {TWILL_ERR_MISMATCH, ncclInvalidUsage},
    {TWILL_ERR_TIMEOUT, ncclRemoteError},
    {TWILL_ERR_ABORTED, ncclRemoteError},
    {TWILL_ERR_AUTH, ncclSystemError},
    {TWILL_ERR_VERSION, ncclInvalidUsage},
};

ncclResult_t tw_compat_result(enum twill_status status)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i].status == status)
            return results[i].result;
    return ncclInternalError;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess:
        return "success";
    case ncclUnhandledCudaError:
        return "a call to CUDA failed";
    case ncclSystemError:
        return "a system call failed, or memory ran out";
    case ncclInternalError:
        return "an invariant of the library does not hold";
    case ncclInvalidArgument:
        return "an argument is not valid";
    case ncclInvalidUsage:
        return "the call is not legal here, or does not match the other ranks'";
    case ncclRemoteError:
        return "another rank failed, left, or is late";
    case ncclInProgress:
        return "still in progress";
    case ncclNumResults:
        break;
    }
    return (int)result == 8 ? "a deadline passed" : "this is no result code";
}
TW_COMPAT_TWIN(GetErrorString);

/* ---- sentences ----------------------------------------------------------------------------------
 */

/* A thread that has none of its own, a watcher for instance, reads the newest of the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char newest[TW_COMPAT_TEXT_BYTES];
static _Thread_local char text_own[TW_COMPAT_TEXT_BYTES], text_shown[TW_COMPAT_TEXT_BYTES];

const char *tw_compat_text(void) { return text_own; }

void tw_compat_text_set(const char *text)
{
    if (text != text_own)
        (void)snprintf(text_own, sizeof text_own, "%s", text);
    (void)pthread_mutex_lock(&lock);
    (void)snprintf(newest, sizeof newest, "%s", text_own);
    (void)pthread_mutex_unlock(&lock);
}

ncclResult_t tw_compat_fail(ncclResult_t result, const char *format, ...)
{
    char text[TW_COMPAT_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) < 0)
        text[0] = '\0';
    va_end(args);
    tw_compat_text_set(text);
    return result;
}

ncclResult_t tw_compat_say(enum twill_status status, twill_comm_t comm)
{
    if (status < 0)
        tw_compat_text_set(twill_last_error(comm));
    return tw_compat_result(status);
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    if (text_own[0] != '\0')
        return text_own;
    (void)pthread_mutex_lock(&lock);
    (void)snprintf(text_shown, sizeof text_shown, "%s", newest);
    (void)pthread_mutex_unlock(&lock);
    return text_shown;
}
TW_COMPAT_TWIN(GetLastError);

/* ---- the library --------------------------------------------------------------------------------
 */

static void start(void)
{
    /* Programs written for NCCL have watchdogs of their own, and none expects an end of waiting. */
    (void)twill_param_default("TIMEOUT", "0");
    tw_compat_environment();
}

void tw_compat_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, start);
}

ncclResult_t ncclGetVersion(int *version)
{
    char text[256];
    if (!version)
        return tw_compat_fail(ncclInvalidArgument, "ncclGetVersion: the output is NULL");
    enum twill_status status = twill_param_get("NCCL_VERSION", text, sizeof text);
    if (status < 0)
        return tw_compat_say(status, NULL);
    *version = (int)strtol(text, NULL, 10);
    return ncclSuccess;
}
TW_COMPAT_TWIN(GetVersion);

/* The level of the log is read once. */
void ncclResetDebugInit(void) {}
TW_COMPAT_TWIN(ResetDebugInit);
