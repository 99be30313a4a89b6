/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a described machine as a few numbers. Never knows: clusters, this host. */
#ifndef TW_TOPO_RECIPE_H
#define TW_TOPO_RECIPE_H

#include "topo/build.h"

#define TW_TOPO_SYNTHETIC_PREFIX "synthetic-"

/*
 * One machine. The numbers are round ones of the kind of part, from vendors' data sheets (rates,
 * sizes) and from published core-to-core measurements (latencies); they are there to have plans
 * compared on different shapes, not to predict a machine.
 */
struct tw_topo_recipe {
    const char *name, *text, *cpu_model;
    uint64_t l1d_bytes, l2_bytes, l3_bytes;
    uint32_t packages, numas, caches, cores, threads; /* each in one of the part before it */
    uint8_t cache_level;                              /* 0: no shared cache */
    uint64_t memory_bytes;                            /* of each NUMA node */
    struct tw_topo_rates rates;
    uint32_t switches; /* PCI switches of the host, spread over its NUMA nodes; 0: none */
    uint64_t pci_ps, pci_bytes_per_s;
    uint32_t nics;
    const char *nic_model;
    uint64_t nic_ps, nic_bytes_per_s; /* from the NIC to the first switch's input */
    uint32_t gpus;
    const char *gpu_model;
    uint64_t gpu_bytes, gpu_bytes_per_s;
    uint64_t nvlink_ps, nvlink_bytes_per_s; /* from a GPU to the NVSwitch, or to its partner of a
                                               pair; 0: none */
    uint32_t nvlink_cables;                 /* that such a link consists of */
    const uint8_t (*pairs)[2];              /* GPUs joined without a switch */
    uint32_t npairs;                        /* 0: by an NVSwitch */
};

/** The table's rows, from 0; NULL past the end. */
const struct tw_topo_recipe *tw_topo_recipe_at(unsigned index);

/** Fills an empty machine. TWILL_ERR_NOMEM */
enum twill_status tw_topo_recipe_build(struct tw_topo_machine *machine,
                                       const struct tw_topo_recipe *recipe);

#endif
