/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what NVIDIA's management library says of NVLink. Never knows: the graph. */
#ifndef TW_TOPO_NVML_H
#define TW_TOPO_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_TOPO_NVML_GPUS_MOST 64
#define TW_TOPO_NVML_LINKS_MOST 64
#define TW_TOPO_NVML_SWITCH (-1) /* a link's other end is an NVSwitch */
#define TW_TOPO_NVML_NOBODY (-2) /* or what NVML does not list: a GPU of others, a CPU */

/* A link that is up. */
struct tw_topo_nvml_link {
    int to;               /* index of a GPU, or one of the above */
    uint64_t bytes_per_s; /* payload, each way */
};

struct tw_topo_nvml_gpu {
    char address[32]; /* on PCI, "0000:19:00.0" */
    bool mig;         /* cut into instances, which reach no other GPU */
    uint32_t nlinks, ndown;
    struct tw_topo_nvml_link link[TW_TOPO_NVML_LINKS_MOST];
};

struct tw_topo_nvml {
    uint32_t ngpus;
    struct tw_topo_nvml_gpu gpu[TW_TOPO_NVML_GPUS_MOST];
};

#define TW_TOPO_NVML_WHY_BYTES 160

/**
 * Load NVML, ask it and end it. Slow: it may start the driver. Without end where a driver is lost.
 * The library stays in the process, as NVIDIA's libraries do not like to be unloaded.
 *
 * @param library  what dlopen finds, "libnvidia-ml.so.1"
 * @param found    out; not to be looked at on failure
 * @param why      out, on failure: what is missing or failed, for people
 * @return whether all was said
 */
bool tw_topo_nvml_read(const char *library, struct tw_topo_nvml *found,
                       char why[TW_TOPO_NVML_WHY_BYTES]);

/**
 * The same within a time (nvml_wait.c): a thread asks, and is left alone with its question when it
 * takes longer.
 *
 * @param limit_ns  of waiting; 0 is no time
 */
bool tw_topo_nvml_ask(const char *library, uint64_t limit_ns, struct tw_topo_nvml *found,
                      char why[TW_TOPO_NVML_WHY_BYTES]);

#endif
