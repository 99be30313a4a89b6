/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which memory of this process peers may reach, which memory of peers this process may
 * reach, and how. Never knows: how processes are connected. */
#include "config.h"

#include "transport/rma.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/status.h"
#include "transport/cma.h"
#include "transport/hostmem.h"
#include "transport/shm.h"

#define BLOB_MAGIC 0x7477726du

/* How an importer reaches registered memory. */
enum mr_way {
    WAY_ADDRESS = 1, /* same process */
    WAY_STAGING,     /* inside the peer's staging segment */
    WAY_SEGMENT,     /* inside a segment whose descriptor the owner hands out */
    WAY_CMA,         /* by the kernel */
};

struct tw_mr {
    struct tw_net *net;
    void *ptr;
    size_t bytes;
    enum mr_way way;
    uint64_t offset;   /* STAGING, SEGMENT */
    size_t segment;    /* SEGMENT: bytes */
    int fd;            /* SEGMENT: owned; else -1 */
    uint64_t token[2]; /* random: who has the blob may import */
    struct tw_mr *next;
};

struct tw_rmem {
    struct tw_ep *ep;    /* referenced */
    unsigned char *base; /* NULL: by CMA */
    uint64_t address;    /* CMA */
    size_t bytes;
    struct tw_shm map; /* SEGMENT */
};

struct mr_blob {
    uint32_t magic;
    uint32_t way;
    uint8_t owner[16]; /* nonce of the process */
    uint64_t where;    /* offset or address */
    uint64_t bytes;
    uint64_t segment;
    uint64_t token[2];
};
_Static_assert(sizeof(struct mr_blob) <= TW_NET_BLOB_BYTES, "a registration's blob fits");

/* ---- staging -------------------------------------------------------------------------------- */

static enum twill_status rma_stage(struct tw_net *net, size_t bytes, void **ptr)
{
    void *got = tw_net_get(net, bytes);
    if (got == NULL) {
        return tw_fail(TWILL_ERR_NOMEM, "staging is short: no %zu bytes (%zu of %zu used)", bytes,
                       tw_pool_used(net->pool), net->staging.bytes);
    }
    memset(got, 0, bytes);
    *ptr = got;
    return TWILL_OK;
}

static void rma_unstage(struct tw_net *net, void *ptr) { tw_net_put(net, ptr); }

/* ---- registration --------------------------------------------------------------------------- */

/* Finds the way for memory that others than this process reach. */
static enum twill_status way_find(struct tw_mr *mr)
{
    const struct tw_net *net = mr->net;
    uintptr_t base = (uintptr_t)net->staging.base;
    uintptr_t start = (uintptr_t)mr->ptr;
    if (start >= base && start - base <= net->staging.bytes) {
        mr->way = WAY_STAGING;
        mr->offset = start - base;
        return mr->bytes <= net->staging.bytes - mr->offset
                   ? TWILL_OK
                   : tw_fail(TWILL_ERR_INVALID, "memory at %p: %zu bytes reach beyond staging",
                             mr->ptr, mr->bytes);
    }
    struct tw_hostmem found;
    enum twill_status status = tw_hostmem_find(mr->ptr, mr->bytes, &found);
    if (status == TWILL_OK) {
        mr->way = WAY_SEGMENT;
        mr->offset = found.offset;
        mr->segment = found.segment;
        mr->fd = found.fd;
        return TWILL_OK;
    }
    if (status != TWILL_ERR_INVALID) {
        return status;
    }
    if (net->config.allow_cma && tw_cma_here()) {
        mr->way = WAY_CMA;
        return TWILL_OK;
    }
    return tw_fail(TWILL_ERR_UNSUPPORTED,
                   "memory at %p is not of twill_mem_alloc and CMA is %s: peers cannot reach it, "
                   "so it is copied through staging",
                   mr->ptr, net->config.allow_cma ? "not working here" : "off");
}

static enum twill_status rma_reg(struct tw_net *net, void *ptr, size_t bytes, enum tw_mem_kind kind,
                                 struct tw_mr **mr)
{
    if (kind != TW_MEM_HOST) {
        return tw_fail(TWILL_ERR_UNSUPPORTED, "transport %s registers host memory only", net->name);
    }
    if (ptr == NULL || bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)ptr) {
        return tw_fail(TWILL_ERR_INVALID, "memory at %p of %zu bytes cannot be registered", ptr,
                       bytes);
    }
    struct tw_mr *made = tw_alloc(sizeof(*made));
    if (made == NULL) {
        return TWILL_ERR_NOMEM;
    }
    *made = (struct tw_mr){.net = net, .ptr = ptr, .bytes = bytes, .way = WAY_ADDRESS, .fd = -1};
    enum twill_status status = net->self == NULL ? way_find(made) : TWILL_OK;
    if (status != TWILL_OK) {
        free(made);
        return status;
    }
    tw_random(made->token, sizeof(made->token));
    pthread_mutex_lock(&net->lock);
    made->next = net->mrs;
    net->mrs = made;
    pthread_mutex_unlock(&net->lock);
    *mr = made;
    return TWILL_OK;
}

static void rma_unreg(struct tw_mr *mr)
{
    if (mr == NULL) {
        return;
    }
    struct tw_net *net = mr->net;
    pthread_mutex_lock(&net->lock);
    for (struct tw_mr **at = &net->mrs; *at != NULL; at = &(*at)->next) {
        if (*at == mr) {
            *at = mr->next;
            break;
        }
    }
    pthread_mutex_unlock(&net->lock);
    if (mr->fd >= 0) {
        close(mr->fd);
    }
    free(mr);
}

static const struct tw_mr *mr_find(const struct tw_net *net, const uint64_t token[2])
{
    const struct tw_mr *mr = net->mrs;
    while (mr != NULL && memcmp(mr->token, token, sizeof(mr->token)) != 0) {
        mr = mr->next;
    }
    return mr;
}

int tw_mr_fd(struct tw_net *net, const uint64_t token[2])
{
    int fd = -1;
    pthread_mutex_lock(&net->lock);
    const struct tw_mr *mr = mr_find(net, token);
    if (mr != NULL && mr->fd >= 0) {
        fd = fcntl(mr->fd, F_DUPFD_CLOEXEC, 0);
    }
    pthread_mutex_unlock(&net->lock);
    return fd;
}

static enum twill_status rma_export(const struct tw_mr *mr, struct tw_blob *blob)
{
    struct mr_blob out = {.magic = BLOB_MAGIC,
                          .way = mr->way,
                          .where = mr->way == WAY_CMA || mr->way == WAY_ADDRESS
                                       ? (uint64_t)(uintptr_t)mr->ptr
                                       : mr->offset,
                          .bytes = mr->bytes,
                          .segment = mr->segment,
                          .token = {mr->token[0], mr->token[1]}};
    memcpy(out.owner, mr->net->config.self.nonce, sizeof(out.owner));
    blob->bytes = sizeof(out);
    memcpy(blob->data, &out, sizeof(out));
    return TWILL_OK;
}

/* ---- import --------------------------------------------------------------------------------- */

static enum twill_status import_address(struct tw_rmem *rmem, const struct mr_blob *in)
{
    struct tw_net *net = rmem->ep->net;
    if (net->self == NULL) {
        return tw_fail(TWILL_ERR_PEER, "peer's registration is for its own process");
    }
    pthread_mutex_lock(&net->lock);
    const struct tw_mr *mr = mr_find(net, in->token);
    if (mr != NULL) {
        rmem->base = mr->ptr;
        rmem->bytes = mr->bytes;
    }
    pthread_mutex_unlock(&net->lock);
    return mr != NULL ? TWILL_OK
                      : tw_fail(TWILL_ERR_PEER, "memory that is imported was deregistered");
}

static enum twill_status import_staging(struct tw_rmem *rmem, const struct mr_blob *in)
{
    const struct tw_ep *ep = rmem->ep;
    if (in->where > ep->bytes || in->bytes > ep->bytes - in->where) {
        return tw_fail(TWILL_ERR_PEER,
                       "memory of %llu bytes at %llu is outside the peer's staging of %zu bytes",
                       (unsigned long long)in->bytes, (unsigned long long)in->where, ep->bytes);
    }
    rmem->base = ep->base + in->where;
    return TWILL_OK;
}

static enum twill_status import_segment(struct tw_rmem *rmem, const struct mr_blob *in)
{
    int fd;
    if (in->where > in->segment || in->bytes > in->segment - in->where) {
        return tw_fail(TWILL_ERR_PEER, "memory of %llu bytes at %llu is outside its segment",
                       (unsigned long long)in->bytes, (unsigned long long)in->where);
    }
    enum twill_status status = tw_shm_fetch(rmem->ep, in->token, &fd);
    if (status == TWILL_OK) {
        status = tw_shm_map(&rmem->map, fd, in->segment);
    }
    if (status != TWILL_OK) {
        return status;
    }
    close(rmem->map.fd); /* the mapping is enough */
    rmem->map.fd = -1;
    rmem->base = (unsigned char *)rmem->map.base + in->where;
    return TWILL_OK;
}

static enum twill_status import_cma(struct tw_rmem *rmem, const struct mr_blob *in)
{
    if (!rmem->ep->cma) {
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "peer's memory is not of twill_mem_alloc and CMA does not work both ways");
    }
    if (in->bytes > UINT64_MAX - in->where) {
        return tw_fail(TWILL_ERR_PEER, "peer's memory of %llu bytes wraps around",
                       (unsigned long long)in->bytes);
    }
    rmem->address = in->where;
    return TWILL_OK;
}

static enum twill_status import_way(struct tw_rmem *rmem, const struct mr_blob *in)
{
    if (rmem->ep->net->self != NULL && in->way != WAY_ADDRESS) {
        return tw_fail(TWILL_ERR_PEER, "registration of kind %u is for other processes", in->way);
    }
    switch (in->way) {
    case WAY_ADDRESS:
        return import_address(rmem, in);
    case WAY_STAGING:
        return import_staging(rmem, in);
    case WAY_SEGMENT:
        return import_segment(rmem, in);
    case WAY_CMA:
        return import_cma(rmem, in);
    default:
        return tw_fail(TWILL_ERR_PEER, "registration of unknown kind %u", in->way);
    }
}

static enum twill_status rma_import(struct tw_ep *ep, const struct tw_blob *blob,
                                    struct tw_rmem **rmem)
{
    struct mr_blob in;
    if (blob->bytes != sizeof(in)) {
        return tw_fail(TWILL_ERR_INVALID, "registration blob of %u bytes, expected %zu",
                       blob->bytes, sizeof(in));
    }
    memcpy(&in, blob->data, sizeof(in));
    if (in.magic != BLOB_MAGIC || memcmp(in.owner, ep->peer.nonce, sizeof(in.owner)) != 0) {
        return tw_fail(TWILL_ERR_INVALID, "registration blob is not of the endpoint's peer");
    }
    struct tw_rmem *made = tw_alloc(sizeof(*made));
    if (made == NULL) {
        return TWILL_ERR_NOMEM;
    }
    made->ep = ep;
    made->bytes = in.bytes;
    made->map.fd = -1;
    enum twill_status status = import_way(made, &in);
    if (status != TWILL_OK) {
        free(made);
        return status;
    }
    tw_ep_ref(ep);
    *rmem = made;
    return TWILL_OK;
}

static void rma_release(struct tw_rmem *rmem)
{
    if (rmem == NULL) {
        return;
    }
    tw_shm_close(&rmem->map);
    tw_ep_unref(rmem->ep);
    free(rmem);
}

static void *rma_map(const struct tw_rmem *rmem, size_t *bytes)
{
    *bytes = rmem->bytes;
    return rmem->base;
}

/* ---- operations ----------------------------------------------------------------------------- */

static enum twill_status range_check(const struct tw_ep *ep, const struct tw_rmem *rmem,
                                     size_t offset, size_t bytes)
{
    if (rmem->ep != ep) {
        return tw_fail(TWILL_ERR_INVALID, "remote memory is of another endpoint");
    }
    if (offset > rmem->bytes || bytes > rmem->bytes - offset) {
        return tw_fail(TWILL_ERR_INVALID, "%zu bytes at %zu are outside remote memory of %zu bytes",
                       bytes, offset, rmem->bytes);
    }
    if (tw_ep_lost(ep)) {
        return tw_fail(TWILL_ERR_PEER, "remote memory: its process is gone");
    }
    return TWILL_OK;
}

static enum twill_status rma_put(struct tw_ep *ep, const void *src, struct tw_rmem *rmem,
                                 size_t offset, size_t bytes, struct tw_req *req)
{
    enum twill_status status = range_check(ep, rmem, offset, bytes);
    if (status == TWILL_OK && rmem->base == NULL) {
        status = tw_cma_write(ep->pid, src, rmem->address + offset, bytes);
    } else if (status == TWILL_OK && bytes > 0) {
        memcpy(rmem->base + offset, src, bytes);
    }
    if (status == TWILL_OK) {
        req->status = TWILL_OK;
    }
    return status;
}

static enum twill_status rma_get(struct tw_ep *ep, void *dst, struct tw_rmem *rmem, size_t offset,
                                 size_t bytes, struct tw_req *req)
{
    enum twill_status status = range_check(ep, rmem, offset, bytes);
    if (status == TWILL_OK && rmem->base == NULL) {
        status = tw_cma_read(ep->pid, dst, rmem->address + offset, bytes);
    } else if (status == TWILL_OK && bytes > 0) {
        memcpy(dst, rmem->base + offset, bytes);
    }
    if (status == TWILL_OK) {
        req->status = TWILL_OK;
    }
    return status;
}

/* Puts are done when they return, so what was put before is sequenced before this release. */
static enum twill_status rma_signal(struct tw_ep *ep, struct tw_rmem *rmem, size_t offset,
                                    uint64_t value)
{
    enum twill_status status = range_check(ep, rmem, offset, sizeof(value));
    if (status != TWILL_OK) {
        return status;
    }
    if (rmem->base == NULL) {
        return tw_fail(TWILL_ERR_UNSUPPORTED,
                       "signal words must be in staging or memory of twill_mem_alloc");
    }
    unsigned char *word = rmem->base + offset;
    if ((uintptr_t)word % sizeof(value) != 0) {
        return tw_fail(TWILL_ERR_INVALID, "signal word at offset %zu is not 8-aligned", offset);
    }
    __atomic_store_n((uint64_t *)(void *)word, value, __ATOMIC_RELEASE);
    return TWILL_OK;
}

/* Nothing is ever under way: a put has landed when it returns. */
static enum twill_status rma_flush(struct tw_ep *ep) { return tw_ep_status(ep); }

const struct tw_rma_ops tw_host_rma_ops = {
    .stage = rma_stage,
    .unstage = rma_unstage,
    .reg = rma_reg,
    .unreg = rma_unreg,
    .mr_export = rma_export,
    .mr_import = rma_import,
    .mr_release = rma_release,
    .map = rma_map,
    .put = rma_put,
    .get = rma_get,
    .signal = rma_signal,
    .flush = rma_flush,
};
