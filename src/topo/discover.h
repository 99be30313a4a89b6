/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: hwloc's objects, sysfs. Never knows: what the graph is for. */
#ifndef TW_TOPO_DISCOVER_H
#define TW_TOPO_DISCOVER_H

#include <hwloc.h>

#include "topo/graph.h"

/* Where to look. */
struct tw_topo_source {
    const char *hwloc_xml; /* NULL: this host; otherwise a file that lstopo wrote */
    const char *sysfs;     /* "/sys"; NULL: do not look */
    const char *proc;      /* "/proc"; NULL: do not look */
    enum tw_topo_scope scope;
    const char *nvml; /* "libnvidia-ml.so.1"; NULL: do not ask it */
};

/** As tw_topo_discover, from anywhere. TWILL_ERR_INVALID a file that hwloc cannot read. */
enum twill_status tw_topo_discover_from(struct tw_topo_graph **graph,
                                        const struct tw_topo_source *source);

/** Leaves the CPUs that this process may run on; hwloc keeps to the cgroup by itself.
 * @param flags  of hwloc_topology_restrict */
enum twill_status tw_topo_restrict(hwloc_topology_t topology, unsigned long flags);

/**
 * Adds what hangs on PCI: roots, switches, NICs with the world outside, GPUs, NVSwitch. The nodes
 * of CPUs must be there, each hwloc object's userdata being its node's index + 1.
 *
 * @return false: no memory (tw_fail was called)
 */
bool tw_topo_devices_add(struct tw_topo_machine *machine, hwloc_topology_t topology,
                         const struct tw_topo_source *source);

#define TW_TOPO_NVIDIA_MOST 64 /* more GPUs of a host are taken to have no NVLink */

/* What PCI shows of NVIDIA. */
struct tw_topo_nvidia {
    uint32_t ngpus, nvswitches;        /* the latter: chips */
    uint32_t gpu[TW_TOPO_NVIDIA_MOST]; /* nodes */
};

/**
 * Adds NVLink: of two GPUs and more as NVML says it (src/topo/nvml.h), which is not loaded for
 * fewer. Where that cannot be had, a note says why, and GPUs are linked to the NVSwitch by estimate
 * if its chips are seen.
 *
 * @return false: no memory (tw_fail was called)
 */
bool tw_topo_nvlink_add(struct tw_topo_machine *machine, const struct tw_topo_source *source,
                        const struct tw_topo_nvidia *seen);

/* ---- facts in files ------------------------------------------------------------------------- */

/** First line of the file root/format..., without its newline. @return false: not there, or root
 * NULL */
bool tw_topo_line_read(char *line, size_t line_bytes, const char *root, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Bytes a second that a PCI device can move in each direction, payload alone; 0: sysfs does not
 * say. address: "0000:19:00.0" */
uint64_t tw_topo_pci_rate(const char *sysfs, const char *address);
/** Bytes a second of a network device's port; 0: sysfs does not say. */
uint64_t tw_topo_net_rate(const char *sysfs, const char *name);
uint64_t tw_topo_verbs_rate(const char *sysfs, const char *name);
/** Copy for people and XML: what is not printable becomes '?'. */
void tw_topo_text_copy(char *to, size_t bytes, const char *from);

#endif
