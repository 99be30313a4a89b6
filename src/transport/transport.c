/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the transports that exist and what their nets have in common.
 * Never knows: how any of them reaches a peer. */
#include "config.h"

#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/status.h"
#include "transport/fifo.h"
#include "transport/net.h"
#include "transport/shm.h"

static const struct tw_transport transports[] = {
    {&tw_self_net_ops, &tw_slot_fifo_ops, &tw_host_rma_ops},
    {&tw_shm_net_ops, &tw_slot_fifo_ops, &tw_host_rma_ops},
};

const struct tw_transport *tw_transport_at(size_t i)
{
    return i < sizeof(transports) / sizeof(transports[0]) ? &transports[i] : NULL;
}

const struct tw_transport *tw_transport_find(const char *name)
{
    for (size_t i = 0; tw_transport_at(i) != NULL; i++) {
        if (strcmp(transports[i].net->name, name) == 0) {
            return &transports[i];
        }
    }
    return NULL;
}

/* ---- nets ----------------------------------------------------------------------------------- */

#define STAGING_LEAST 4096
#define STAGING_MOST (SIZE_MAX / 4)

static enum twill_status staging_create(struct tw_net *net, bool shared)
{
    size_t bytes = net->config.staging_bytes;
    if (shared) {
        return tw_shm_create(&net->staging, "twill-staging", bytes);
    }
    bytes = (bytes + STAGING_LEAST - 1) / STAGING_LEAST * STAGING_LEAST;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return tw_fail(TWILL_ERR_NOMEM, "no address space for %zu bytes of staging", bytes);
    }
    net->staging = (struct tw_shm){.fd = -1, .base = base, .bytes = bytes};
    return TWILL_OK;
}

static void staging_destroy(struct tw_net *net)
{
    if (net->staging.fd >= 0) {
        tw_shm_close(&net->staging);
    } else if (net->staging.base != NULL) {
        munmap(net->staging.base, net->staging.bytes);
    }
}

static enum twill_status config_check(const struct tw_net_config *config, bool shared)
{
    if (config->staging_of != NULL) {
        return shared && config->staging_of->staging.fd < 0
                   ? tw_fail(TWILL_ERR_INVALID, "staging of net %s cannot be shared with peers",
                             config->staging_of->name)
                   : TWILL_OK;
    }
    if (config->staging_bytes < STAGING_LEAST || config->staging_bytes > STAGING_MOST) {
        return tw_fail(TWILL_ERR_INVALID, "staging of %llu bytes: must be %d to %zu",
                       (unsigned long long)config->staging_bytes, STAGING_LEAST, STAGING_MOST);
    }
    return TWILL_OK;
}

/* Own staging and its pool. */
static enum twill_status staging_open(struct tw_net *net, bool shared)
{
    enum twill_status status = staging_create(net, shared);
    if (status != TWILL_OK) {
        return status;
    }
    status = tw_pool_create(&net->pool, net->staging.base, net->config.staging_bytes);
    if (status != TWILL_OK) {
        staging_destroy(net);
    }
    return status;
}

enum twill_status tw_net_create(const char *name, const struct tw_net_config *config, bool shared,
                                struct tw_net **net)
{
    enum twill_status status = config_check(config, shared);
    if (status != TWILL_OK) {
        return status;
    }
    struct tw_net *made = tw_alloc(sizeof(*made));
    if (made == NULL) {
        return TWILL_ERR_NOMEM;
    }
    made->name = name;
    made->config = *config;
    made->staging.fd = -1;
    if (config->staging_of != NULL) {
        made->config.staging_bytes = config->staging_of->config.staging_bytes;
        made->staging = config->staging_of->staging;
        made->pool = config->staging_of->pool;
    } else {
        status = staging_open(made, shared);
    }
    if (status != TWILL_OK) {
        free(made);
        return status;
    }
    pthread_mutex_init(&made->lock, NULL);
    *net = made;
    return TWILL_OK;
}

void tw_net_destroy(struct tw_net *net)
{
    if (net->config.staging_of == NULL) {
        tw_pool_destroy(net->pool);
        staging_destroy(net);
    }
    pthread_mutex_destroy(&net->lock);
    free(net);
}

void *tw_net_get(struct tw_net *net, size_t bytes)
{
    tw_fifo_sweep(net, false);
    return tw_pool_get(net->pool, bytes);
}

void tw_net_put(struct tw_net *net, void *ptr) { tw_pool_put(net->pool, ptr); }

void tw_net_staging(const struct tw_net *net, uint64_t *used, uint64_t *limit)
{
    *used = tw_pool_used(net->pool);
    *limit = net->config.staging_bytes;
}

/* ---- endpoints ------------------------------------------------------------------------------ */

enum twill_status tw_ep_status(const struct tw_ep *ep)
{
    return tw_ep_lost(ep) ? TWILL_ERR_PEER : TWILL_OK;
}

uint32_t tw_ep_caps(const struct tw_ep *ep) { return ep->caps; }

void tw_ep_unref(struct tw_ep *ep)
{
    if (ep->shm != NULL) {
        tw_shm_ep_put(ep);
    } else {
        __atomic_sub_fetch(&ep->refs, 1, __ATOMIC_ACQ_REL);
    }
}

const char *tw_proc_text(const struct tw_proc_id *id, char text[TW_PROC_TEXT_BYTES])
{
    snprintf(text, TW_PROC_TEXT_BYTES, "%02x%02x%02x%02x", id->nonce[0], id->nonce[1], id->nonce[2],
             id->nonce[3]);
    return text;
}
