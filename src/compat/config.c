/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the config struct of every version of NCCL, and what each field is in twill's.
 * Never knows: communicators. */
#include "config.h"

#include <string.h>

#include "compat/compat.h"

#define MAGIC 0xcafebeefu

/* As of 2.30; nccl.h has the struct of 2.27, its beginning. */
struct config {
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share, traffic_class;
    const char *comm_name;
    int collnet_enable, cta_policy, shrink_share, nvls_ctas;
    int channels_per_net_peer, nvlink_centric_sched;
    int graph_usage_mode, rma_contexts;
    int max_p2p_peers, graph_stream_ordering;
};

/* Of a number: what is legal. Where the library has no use for a field its values still are. */
struct field {
    const char *name;
    size_t offset;
    unsigned since;
    int least, most;
};
#define FIELD(name, member, since, least, most)                                                    \
    {                                                                                              \
        name, offsetof(struct config, member), since, least, most                                  \
    }
static const struct field fields[] = {
    FIELD("blocking", blocking, 21400, 0, 1),
    FIELD("cgaClusterSize", cga_cluster_size, 21700, 0, 8),
    FIELD("minCTAs", min_ctas, 21700, 1, INT_MAX),
    FIELD("maxCTAs", max_ctas, 21700, 1, INT_MAX),
    FIELD("splitShare", split_share, 21800, 0, 1),
    FIELD("trafficClass", traffic_class, 22600, 0, INT_MAX),
    FIELD("collnetEnable", collnet_enable, 22700, 0, 1),
    FIELD("CTAPolicy", cta_policy, 22700, 0, INT_MAX),
    FIELD("shrinkShare", shrink_share, 22700, 0, 1),
    FIELD("nvlsCTAs", nvls_ctas, 22700, 1, INT_MAX),
};
static const struct {
    size_t offset;
    unsigned since;
} texts[] = {
    {offsetof(struct config, net_name), 21700},
    {offsetof(struct config, comm_name), 22700},
};

/* A field counts where the caller's struct has it and the caller knew it. */
static bool has(const struct config *head, size_t offset, size_t bytes, unsigned since)
{
    return head->version >= since && head->size >= offset + bytes;
}

static ncclResult_t number_read(const char *call, const struct config *config,
                                const struct field *field, struct config *full)
{
    int value = NCCL_CONFIG_UNDEF_INT;
    if (has(config, field->offset, sizeof value, field->since))
        memcpy(&value, (const char *)config + field->offset, sizeof value);
    memcpy((char *)full + field->offset, &value, sizeof value);
    if (value == NCCL_CONFIG_UNDEF_INT || (value >= field->least && value <= field->most))
        return ncclSuccess;
    return tw_compat_fail(ncclInvalidArgument, "%s: config.%s is %d, which is none of its values",
                          call, field->name, value);
}

static ncclResult_t config_read(const char *call, const struct config *config, struct config *full)
{
    ncclResult_t result = ncclSuccess;
    if (config->magic != MAGIC || config->size < offsetof(struct config, blocking))
        return tw_compat_fail(ncclInvalidArgument,
                              "%s: the config was not set to NCCL_CONFIG_INITIALIZER", call);
    for (size_t i = 0; i < sizeof fields / sizeof *fields && result == ncclSuccess; i++)
        result = number_read(call, config, &fields[i], full);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t bytes = sizeof full->comm_name, offset = texts[i].offset;
        if (has(config, offset, bytes, texts[i].since))
            memcpy((char *)full + offset, (const char *)config + offset, bytes);
    }
    return result;
}

ncclResult_t tw_compat_config(const char *call, const ncclConfig_t *config,
                              struct twill_config *out)
{
    struct config full = {0};
    if (!config)
        return ncclSuccess;
    ncclResult_t result = config_read(call, (const struct config *)(const void *)config, &full);
    if (result != ncclSuccess)
        return result;
    if (full.min_ctas != NCCL_CONFIG_UNDEF_INT && full.max_ctas != NCCL_CONFIG_UNDEF_INT &&
        full.min_ctas > full.max_ctas)
        return tw_compat_fail(ncclInvalidArgument, "%s: config.minCTAs is %d, maxCTAs is %d", call,
                              full.min_ctas, full.max_ctas);
    /* a config that is given says all: nothing is as in the communicator that it comes out of */
    out->blocking = full.blocking == NCCL_CONFIG_UNDEF_INT ? 1 : full.blocking;
    if (full.max_ctas != NCCL_CONFIG_UNDEF_INT)
        out->max_sms = full.max_ctas;
    out->name = full.comm_name;
    return ncclSuccess;
}
