/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: NVML's binary interface and a file of answers. Never knows: who asks.
 *
 * The file is named by FAKE_NVML and read by nvmlInit_v2, a line each:
 *   gpu DOMAIN BUS DEVICE     the next GPU
 *   link TYPE DOMAIN BUS DEVICE VERSION    the next link of the newest GPU, up
 *   down                      the same, down
 *   speed MBS                 of the newest GPU's links; without: not supported
 *   mig                       the newest GPU is cut
 *   count N                   instead of the number of gpu lines
 *   fail NAME STATUS          the call of this name
 *   nameless                  nvmlErrorString gives NULL
 *   hang NAME                 the call of this name waits until fake_nvml_release
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* the build hides what is not marked */
#pragma GCC visibility push(default)

#define GPUS 16
#define LINKS 18
#define FAILS 4

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char name[32];
};
struct link {
    unsigned up, type, version;
    struct pci pci;
};
struct gpu {
    struct pci pci;
    unsigned nlinks, speed, mig;
    struct link links[LINKS];
};
struct field {
    unsigned id, scope;
    long long timestamp, latency;
    unsigned type;
    int status;
    unsigned long long value;
};

static struct {
    int running;
    unsigned ngpus, count, nfails, nameless;
    char hangs[64];
    struct gpu gpus[GPUS];
    struct {
        char name[64];
        int status;
    } fails[FAILS];
} fake;

static void pci_set(struct pci *pci, unsigned domain, unsigned bus, unsigned device)
{
    /* no text: it is for people, and garbage here */
    memset(pci, 0xee, sizeof(*pci));
    pci->domain = domain;
    pci->bus = bus;
    pci->device = device;
}

static void line_read(const char *line)
{
    unsigned a, b, c, d, e;
    struct gpu *gpu = fake.ngpus ? &fake.gpus[fake.ngpus - 1] : NULL;
    if (sscanf(line, "gpu %i %i %i", (int *)&a, (int *)&b, (int *)&c) == 3 && fake.ngpus < GPUS) {
        pci_set(&fake.gpus[fake.ngpus++].pci, a, b, c);
    } else if (sscanf(line, "link %i %i %i %i %i", (int *)&a, (int *)&b, (int *)&c, (int *)&d,
                      (int *)&e) == 5 &&
               gpu && gpu->nlinks < LINKS) {
        struct link *link = &gpu->links[gpu->nlinks++];
        *link = (struct link){.up = 1, .type = a, .version = e};
        pci_set(&link->pci, b, c, d);
    } else if (strncmp(line, "down", 4) == 0 && gpu && gpu->nlinks < LINKS) {
        gpu->nlinks++;
    } else if (gpu && sscanf(line, "speed %u", &a) == 1) {
        gpu->speed = a;
    } else if (gpu && strncmp(line, "mig", 3) == 0) {
        gpu->mig = 1;
    } else if (sscanf(line, "count %u", &a) == 1) {
        fake.count = a;
    } else if (fake.nfails < FAILS && sscanf(line, "fail %63s %d", fake.fails[fake.nfails].name,
                                             &fake.fails[fake.nfails].status) == 2) {
        fake.nfails++;
    } else if (sscanf(line, "hang %63s", fake.hangs) == 1) {
    } else if (strncmp(line, "nameless", 8) == 0) {
        fake.nameless = 1;
    } else {
        fprintf(stderr, "fake_nvml: not understood: %s", line);
        abort();
    }
}

static int released; /* atomic */

/* Lets go what hangs, now and later. */
void fake_nvml_release(int yes);
void fake_nvml_release(int yes) { __atomic_store_n(&released, yes, __ATOMIC_RELEASE); }

/* 0, or what the file says of this call; 1 (uninitialized) outside of init and shutdown */
static int status_of(const char *name)
{
    /* polled: a lost driver's call is woken by nothing either */
    while (strcmp(fake.hangs, name) == 0 && !__atomic_load_n(&released, __ATOMIC_ACQUIRE))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (unsigned i = 0; i < fake.nfails; i++)
        if (strcmp(fake.fails[i].name, name) == 0)
            return fake.fails[i].status;
    return fake.running ? 0 : 1;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    char line[256];
    int running = fake.running;
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file)
        return 9; /* driver not loaded */
    memset(&fake, 0, sizeof(fake));
    while (fgets(line, sizeof(line), file))
        line_read(line);
    fclose(file);
    fake.running = 1;
    int status = status_of(__func__);
    __atomic_store_n(&fake.running, status == 0 ? running + 1 : running, __ATOMIC_RELEASE);
    return status;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    int status = status_of(__func__);
    __atomic_fetch_sub(&fake.running, fake.running > 0, __ATOMIC_RELEASE);
    return status;
}

/* Starts that were not ended. */
int fake_nvml_running(void);
int fake_nvml_running(void) { return __atomic_load_n(&fake.running, __ATOMIC_ACQUIRE); }

const char *nvmlErrorString(int status);
const char *nvmlErrorString(int status)
{
    return fake.nameless ? NULL : status == 15 ? "GPU is\nlost" : "made up";
}

int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
    int status = status_of(__func__);
    if (status == 0)
        *count = fake.count ? fake.count : fake.ngpus;
    return status;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **gpu);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **gpu)
{
    int status = status_of(__func__);
    if (status == 0 && index >= fake.ngpus)
        status = 2;
    if (status == 0)
        *gpu = &fake.gpus[index];
    return status;
}

int nvmlDeviceGetPciInfo_v3(const struct gpu *gpu, struct pci *pci);
int nvmlDeviceGetPciInfo_v3(const struct gpu *gpu, struct pci *pci)
{
    int status = status_of(__func__);
    if (status == 0)
        *pci = gpu->pci;
    return status;
}

int nvmlDeviceGetMigMode(const struct gpu *gpu, unsigned *current, unsigned *pending);
int nvmlDeviceGetMigMode(const struct gpu *gpu, unsigned *current, unsigned *pending)
{
    int status = status_of(__func__);
    if (status == 0)
        *current = *pending = gpu->mig;
    return status;
}

int nvmlDeviceGetFieldValues(const struct gpu *gpu, int count, struct field *fields);
int nvmlDeviceGetFieldValues(const struct gpu *gpu, int count, struct field *fields)
{
    int status = status_of(__func__);
    for (int i = 0; i < count && status == 0; i++) {
        fields[i].status = fields[i].id == 90 && gpu->speed ? 0 : 3;
        fields[i].type = 1;
        fields[i].value = gpu->speed;
    }
    return status;
}

static int link_find(const char *call, const struct gpu *gpu, unsigned index,
                     const struct link **link)
{
    int status = status_of(call);
    if (status == 0 && index >= gpu->nlinks)
        status = index >= LINKS ? 2 : 3;
    *link = status == 0 ? &gpu->links[index] : NULL;
    return status;
}

int nvmlDeviceGetNvLinkState(const struct gpu *gpu, unsigned index, unsigned *up);
int nvmlDeviceGetNvLinkState(const struct gpu *gpu, unsigned index, unsigned *up)
{
    const struct link *link;
    int status = link_find(__func__, gpu, index, &link);
    if (link)
        *up = link->up;
    return status;
}

int nvmlDeviceGetNvLinkVersion(const struct gpu *gpu, unsigned index, unsigned *version);
int nvmlDeviceGetNvLinkVersion(const struct gpu *gpu, unsigned index, unsigned *version)
{
    const struct link *link;
    int status = link_find(__func__, gpu, index, &link);
    if (link)
        *version = link->version;
    return status;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(const struct gpu *gpu, unsigned index, unsigned *type);
int nvmlDeviceGetNvLinkRemoteDeviceType(const struct gpu *gpu, unsigned index, unsigned *type)
{
    const struct link *link;
    int status = link_find(__func__, gpu, index, &link);
    if (link)
        *type = link->type;
    return status;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(const struct gpu *gpu, unsigned index, struct pci *pci);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(const struct gpu *gpu, unsigned index, struct pci *pci)
{
    const struct link *link;
    int status = link_find(__func__, gpu, index, &link);
    if (link)
        *pci = link->pci;
    return status;
}
