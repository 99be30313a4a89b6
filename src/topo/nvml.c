/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the binary interface of NVIDIA's management library, which is declared here so that no
 * build needs its header. Never knows: the graph. */
#include "config.h"

#include "topo/nvml.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topo/discover.h"

/* ---- the interface (docs.nvidia.com/deploy/nvml-api) ------------------------------------------
 */

#define SUCCESS 0
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define FIELD_NVLINK_SPEED 90 /* MB/s of one link, each way, coding and headers included */
#define VALUE_UNSIGNED_INT 1
#define REMOTE_GPU 0
#define REMOTE_CPU 1
#define REMOTE_SWITCH 2

struct device; /* NVML's own */

struct pci_info {
    char address_legacy[16];
    unsigned domain, bus, device, ids, subsystem_ids;
    char address[32];
};

struct field_value {
    unsigned field, scope;
    long long timestamp, latency_us;
    int type, status;
    union {
        unsigned u;
        unsigned long long ull;
    } value;
};

/* All functions return a status. */
struct calls {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int status);
    int (*count)(unsigned *count);
    int (*handle)(unsigned index, struct device **device);
    int (*pci)(struct device *device, struct pci_info *pci);
    int (*mig)(struct device *device, unsigned *current, unsigned *pending);
    int (*fields)(struct device *device, int count, struct field_value *values);
    int (*link_state)(struct device *device, unsigned link, unsigned *up);
    int (*link_version)(struct device *device, unsigned link, unsigned *version);
    int (*link_type)(struct device *device, unsigned link, unsigned *type);
    int (*link_pci)(struct device *device, unsigned link, struct pci_info *pci);
};

struct symbol {
    const char *name;
    size_t field;
};
static const struct symbol symbols[] = {
    {"nvmlInit_v2", offsetof(struct calls, init)},
    {"nvmlShutdown", offsetof(struct calls, shutdown)},
    {"nvmlErrorString", offsetof(struct calls, error)},
    {"nvmlDeviceGetCount_v2", offsetof(struct calls, count)},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct calls, handle)},
    {"nvmlDeviceGetPciInfo_v3", offsetof(struct calls, pci)},
    {"nvmlDeviceGetMigMode", offsetof(struct calls, mig)},
    {"nvmlDeviceGetFieldValues", offsetof(struct calls, fields)},
    {"nvmlDeviceGetNvLinkState", offsetof(struct calls, link_state)},
    {"nvmlDeviceGetNvLinkVersion", offsetof(struct calls, link_version)},
    {"nvmlDeviceGetNvLinkRemoteDeviceType", offsetof(struct calls, link_type)},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(struct calls, link_pci)},
};

/* ---- asking -----------------------------------------------------------------------------------
 */

struct reading {
    struct calls nvml;
    struct tw_topo_nvml *found;
    char *why;                                     /* [TW_TOPO_NVML_WHY_BYTES] */
    struct device *device[TW_TOPO_NVML_GPUS_MOST]; /* NVML's */
};

/* @return false */
__attribute__((format(printf, 2, 3))) static bool refuse(struct reading *in, const char *format,
                                                         ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    tw_topo_text_copy(in->why, TW_TOPO_NVML_WHY_BYTES,
                      text); /* some of it is NVML's or the loader's */
    return false;
}

/* @return whether a call went well */
static bool went(struct reading *in, const char *call, const char *of, int status)
{
    if (status == SUCCESS)
        return true;
    const char *text = in->nvml.error(status);
    return refuse(in, "%s%s%s: %.100s (%d)", call, *of ? " of " : "", of,
                  text ? text : "unknown error", status);
}

static void address_of(const struct pci_info *pci, char text[32])
{
    (void)snprintf(text, 32, "%04x:%02x:%02x.0", pci->domain, pci->bus, pci->device);
}

/* ---- rates ------------------------------------------------------------------------------------
 */

/* What arrives of a link's bytes. Two H200 moved 392 GB/s each way at once, by copy engines,
 * through 18 links: 82 % of the 26.56 GB/s that the driver calls a link's speed, 87 % of the 25
 * that data sheets do. */
#define PAYLOAD_OF_SPEED(rate) ((rate) / 100 * 82)
#define PAYLOAD_OF_SHEET(rate) ((rate) / 100 * 87)
#define MB 1000000ull
#define SPEED_LEAST 1000u /* MB/s; what lies outside is no speed of a link */
#define SPEED_MOST 1000000u

/* GB/s of one link each way, by NVML's numbers of versions (1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0),
 * which are not the versions themselves. From NVIDIA's data sheets, which count both ways and all
 * links of a GPU: P100 160 GB/s by 4, V100 300 by 6, A100 600 by 12, H100 900 by 18, B200 1800
 * by 18. */
static const uint64_t sheet_rates[] = {0, 20, 25, 25, 25, 25, 25, 50};

/* 0: the driver does not say */
static uint64_t speed_of(const struct reading *in, struct device *device)
{
    struct field_value value = {.field = FIELD_NVLINK_SPEED, .status = NOT_SUPPORTED};
    if (in->nvml.fields(device, 1, &value) != SUCCESS || value.status != SUCCESS ||
        value.type != VALUE_UNSIGNED_INT || value.value.u < SPEED_LEAST ||
        value.value.u > SPEED_MOST)
        return 0;
    return PAYLOAD_OF_SPEED(value.value.u * MB);
}

/* The speed is asked for first: some drivers say 5.0 of an H100's links, which are 4.0. */
static bool rate_read(struct reading *in, uint32_t gpu, unsigned link, uint64_t speed,
                      uint64_t *rate)
{
    unsigned version = 0;
    *rate = speed;
    if (speed)
        return true;
    const char *address = in->found->gpu[gpu].address;
    if (!went(in, "version of a link", address,
              in->nvml.link_version(in->device[gpu], link, &version)))
        return false;
    if (version == 0 || version >= sizeof(sheet_rates) / sizeof(sheet_rates[0]))
        return refuse(in, "link %u of %s is of a version that is not known here (%u)", link,
                      address, version);
    *rate = PAYLOAD_OF_SHEET(sheet_rates[version] * 1000 * MB);
    return true;
}

/* ---- links ------------------------------------------------------------------------------------
 */

static bool end_read(struct reading *in, uint32_t gpu, unsigned link, int *to)
{
    const char *address = in->found->gpu[gpu].address;
    unsigned type = ~0u;
    if (!went(in, "other end of a link", address, in->nvml.link_type(in->device[gpu], link, &type)))
        return false;
    *to = type == REMOTE_SWITCH ? TW_TOPO_NVML_SWITCH : TW_TOPO_NVML_NOBODY;
    if (type == REMOTE_SWITCH || type == REMOTE_CPU)
        return true;
    if (type != REMOTE_GPU)
        return refuse(in, "it does not know what link %u of %s leads to", link, address);
    struct pci_info pci = {.domain = ~0u};
    char other[32];
    if (!went(in, "address behind a link", address, in->nvml.link_pci(in->device[gpu], link, &pci)))
        return false;
    address_of(&pci, other);
    for (uint32_t g = 0; g < in->found->ngpus && *to == TW_TOPO_NVML_NOBODY; g++)
        if (strcmp(in->found->gpu[g].address, other) == 0 && strcmp(address, other) != 0)
            *to = (int)g;
    return true;
}

static bool links_read(struct reading *in, uint32_t g)
{
    struct tw_topo_nvml_gpu *gpu = &in->found->gpu[g];
    uint64_t speed = speed_of(in, in->device[g]);
    for (unsigned i = 0; i < TW_TOPO_NVML_LINKS_MOST; i++) {
        struct tw_topo_nvml_link *link = &gpu->link[gpu->nlinks];
        unsigned up = 0;
        int status = in->nvml.link_state(in->device[g], i, &up);
        if (status == NOT_SUPPORTED || status == INVALID_ARGUMENT) /* there is no such link */
            continue;
        if (!went(in, "state of a link", gpu->address, status))
            return false;
        gpu->ndown += !up;
        if (!up)
            continue;
        if (!end_read(in, g, i, &link->to) || !rate_read(in, g, i, speed, &link->bytes_per_s))
            return false;
        gpu->nlinks++;
    }
    return true;
}

/* ---- GPUs -------------------------------------------------------------------------------------
 */

static bool gpu_read(struct reading *in, uint32_t g)
{
    struct tw_topo_nvml_gpu *gpu = &in->found->gpu[g];
    struct pci_info pci = {.domain = ~0u};
    unsigned current = 0, pending = 0;
    if (!went(in, "handle of a GPU", "", in->nvml.handle(g, &in->device[g])))
        return false;
    if (!in->device[g])
        return refuse(in, "it has no handle for GPU %u", g);
    if (!went(in, "PCI address of a GPU", "", in->nvml.pci(in->device[g], &pci)))
        return false;
    address_of(&pci, gpu->address);
    /* not supported: of a kind that cannot be cut */
    gpu->mig = in->nvml.mig(in->device[g], &current, &pending) == SUCCESS && current == 1;
    return true;
}

static bool gpus_read(struct reading *in)
{
    unsigned count = 0;
    if (!went(in, "number of GPUs", "", in->nvml.count(&count)))
        return false;
    if (count > TW_TOPO_NVML_GPUS_MOST)
        return refuse(in, "it says that there are %u GPUs", count);
    in->found->ngpus = count;
    for (uint32_t g = 0; g < count; g++)
        if (!gpu_read(in, g))
            return false;
    for (uint32_t g = 0; g < count; g++)
        if (!in->found->gpu[g].mig && !links_read(in, g))
            return false;
    return true;
}

/* POSIX promises that a function's address survives as a void pointer. */
static bool symbols_find(struct reading *in, void *library)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found)
            return refuse(in, "it is too old: it has no %s", symbols[i].name);
        memcpy((char *)&in->nvml + symbols[i].field, &found, sizeof(found));
    }
    return true;
}

bool tw_topo_nvml_read(const char *name, struct tw_topo_nvml *found,
                       char why[TW_TOPO_NVML_WHY_BYTES])
{
    struct reading in = {.found = found, .why = why};
    memset(found, 0, sizeof(*found));
    why[0] = '\0';
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *text = dlerror();
        return refuse(&in, "%s", text ? text : "it cannot be loaded");
    }
    bool said = symbols_find(&in, library) && went(&in, "start", "", in.nvml.init());
    if (said) {
        said = gpus_read(&in);
        (void)in.nvml.shutdown();
    }
    (void)dlclose(library);
    return said;
}
