/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the config struct of every version. Never knows: what its fields do. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "comm/gpu.h"

#define CHANNELS_MAX 32

/* The caller's struct in today's form: fields it does not have, or that are newer than it, unset.
 */
static enum twill_status config_read(const struct twill_config *config, struct twill_config *full)
{
    *full = (struct twill_config)TWILL_CONFIG_INIT;
    if (!config)
        return TWILL_OK;
    if (config->magic != TWILL_CONFIG_MAGIC)
        return tw_fail(TWILL_ERR_INVALID,
                       "config: magic is %#x, not %#x: start from TWILL_CONFIG_INIT", config->magic,
                       TWILL_CONFIG_MAGIC);
    if (config->size < offsetof(struct twill_config, blocking))
        return tw_fail(TWILL_ERR_INVALID, "config: size %zu is less than its head of %zu bytes",
                       config->size, offsetof(struct twill_config, blocking));
    if (config->version < 100)
        return tw_fail(TWILL_ERR_INVALID, "config: version %u is older than 0.1.0",
                       config->version);
    /* Version 0.1.0 has all fields of today; later ones are cut off here by config->version. */
    size_t bytes = config->size < sizeof *full ? config->size : sizeof *full;
    size_t whole = offsetof(struct twill_config, blocking);
    const size_t ends[] = {
        offsetof(struct twill_config, blocking) + sizeof full->blocking,
        offsetof(struct twill_config, device) + sizeof full->device,
        offsetof(struct twill_config, deterministic) + sizeof full->deterministic,
        offsetof(struct twill_config, channels) + sizeof full->channels,
        offsetof(struct twill_config, name) + sizeof full->name,
        offsetof(struct twill_config, max_sms) + sizeof full->max_sms,
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends[i] <= bytes)
            whole = ends[i];
    memcpy(full, config, whole);
    return TWILL_OK;
}

static enum twill_status bad_field(const char *field, int32_t value, const char *legal)
{
    return tw_fail(TWILL_ERR_INVALID, "config: %s is %d, must be %s or TWILL_UNSET", field, value,
                   legal);
}

static enum twill_status config_check(const struct twill_config *config)
{
    if (config->blocking != TWILL_UNSET && config->blocking != 0 && config->blocking != 1)
        return bad_field("blocking", config->blocking, "0, 1");
    if (config->deterministic != TWILL_UNSET && config->deterministic != 0 &&
        config->deterministic != 1)
        return bad_field("deterministic", config->deterministic, "0, 1");
    if (config->channels != TWILL_UNSET &&
        (config->channels < 0 || config->channels > CHANNELS_MAX))
        return bad_field("channels", config->channels, "0 to 32");
    if (config->max_sms != TWILL_UNSET && config->max_sms < 0)
        return bad_field("max_sms", config->max_sms, "0 (no bound), a number of multiprocessors");
    if (config->device != TWILL_UNSET && config->device < TWILL_DEVICE_HOST)
        return bad_field("device", config->device, "TWILL_DEVICE_HOST, a device number");
    if (config->device != TWILL_UNSET && config->device != TWILL_DEVICE_HOST)
        return tw_gpu_check(config->device);
    return TWILL_OK;
}

static enum twill_status params_apply(const struct twill_config *config, struct tw_comm_args *args)
{
    const struct tw_params *params;
    enum twill_status status = tw_params_get(&params);
    if (tw_failed(status))
        return status;
    if (params->channels < 0 || params->channels > CHANNELS_MAX)
        return tw_fail(TWILL_ERR_INVALID, "TWILL_CHANNELS is %lld, must be 0 to %d",
                       (long long)params->channels, CHANNELS_MAX);
    if (params->max_sms < 0 || params->max_sms > INT32_MAX)
        return tw_fail(TWILL_ERR_INVALID, "TWILL_MAX_SMS is %lld, must be 0 (no bound) to %d",
                       (long long)params->max_sms, INT32_MAX);
    args->channels = config->channels != TWILL_UNSET ? config->channels : (int)params->channels;
    args->max_sms = config->max_sms != TWILL_UNSET ? config->max_sms : (int)params->max_sms;
    args->deterministic =
        config->deterministic != TWILL_UNSET ? config->deterministic : (int)params->deterministic;
    return TWILL_OK;
}

static enum twill_status config_apply(const struct twill_config *full, struct tw_comm_args *args)
{
    enum twill_status status = config_check(full);
    if (!tw_failed(status))
        status = params_apply(full, args);
    if (tw_failed(status))
        return status;
    args->blocking = full->blocking == TWILL_UNSET ? 1 : full->blocking;
    args->device = full->device == TWILL_UNSET ? TWILL_DEVICE_HOST : full->device;
    snprintf(args->name, sizeof args->name, "%s", full->name ? full->name : "");
    return TWILL_OK;
}

enum twill_status tw_api_config(const struct twill_config *config, struct tw_comm_args *args)
{
    struct twill_config full;
    enum twill_status status = config_read(config, &full);
    return tw_failed(status) ? status : config_apply(&full, args);
}

enum twill_status tw_api_config_child(const struct twill_config *config,
                                      const struct twill_comm *parent, struct tw_comm_args *args)
{
    struct twill_config full;
    enum twill_status status = config_read(config, &full);
    if (tw_failed(status))
        return status;
    if (full.blocking == TWILL_UNSET)
        full.blocking = parent->args.blocking;
    if (full.deterministic == TWILL_UNSET)
        full.deterministic = parent->args.deterministic;
    if (full.channels == TWILL_UNSET)
        full.channels = parent->args.channels;
    if (full.max_sms == TWILL_UNSET)
        full.max_sms = parent->args.max_sms;
    if (full.device == TWILL_UNSET)
        full.device = parent->args.device;
    return config_apply(&full, args);
}
