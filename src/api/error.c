/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: where sentences about failures are kept, parameters, whose errors are said there, and the
 * log.
 * Never knows: what failed. */
#include "config.h"

#include "api/api.h"
#include "base/log.h"

const char *twill_last_error(twill_comm_t comm)
{
    if (comm && __atomic_load_n(&comm->magic, __ATOMIC_ACQUIRE) != TW_COMM_MAGIC)
        return "this is no communicator, or one that was destroyed";
    const char *text = tw_last_error_find(tw_comm_key(comm));
    if (text)
        return text;
    if (comm && tw_failed(tw_comm_status(comm)))
        return comm->failure;
    return "";
}

enum twill_status twill_param_set(const char *name, const char *value)
{
    if (!name || !value)
        return tw_api_error(
            tw_fail(TWILL_ERR_INVALID, "param_set: %s is NULL", name ? "the value" : "the name"));
    enum twill_status status = tw_param_set(name, value);
    return tw_failed(status) ? tw_api_error(status) : status;
}

enum twill_status twill_param_default(const char *name, const char *value)
{
    if (!name || !value)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID, "param_default: %s is NULL",
                                    name ? "the value" : "the name"));
    enum twill_status status = tw_param_default(name, value);
    return tw_failed(status) ? tw_api_error(status) : status;
}

enum twill_status twill_param_get(const char *name, char *value, size_t bytes)
{
    if (!name || !value || !bytes)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID, "param_get: %s",
                                    !name    ? "the name is NULL"
                                    : !value ? "the output is NULL"
                                             : "the output has no room"));
    enum twill_status status = tw_param_get(name, value, bytes);
    return tw_failed(status) ? tw_api_error(status) : status;
}

enum twill_status twill_log_warn(const char *text)
{
    const struct tw_params *params = NULL;
    if (!text)
        return tw_api_error(tw_fail(TWILL_ERR_INVALID, "log_warn: the text is NULL"));
    enum twill_status status = tw_params_get(&params);
    if (tw_failed(status))
        return tw_api_error(status);
    tw_warn(TW_SUB_API, "%.900s", text);
    return TWILL_OK;
}
