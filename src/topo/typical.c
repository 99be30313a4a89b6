/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the vendors' numbers of a tree of CPUs. Never knows: which host they are for. */
#include "config.h"

#include "topo/build.h"

#include <string.h>

#define NS 1000ull
#define GB 1000000000ull

struct vendor {
    const char *name; /* as hwloc says it */
    struct tw_topo_rates rates;
};

/* The last is of whom nothing is known: between the others. */
static const struct vendor vendors[] = {
    {"AuthenticAMD",
     {.line_ps = {10 * NS, 20 * NS, 22 * NS, 85 * NS, 105 * NS, 200 * NS},
      .core_bytes_per_s = 20 * GB,
      .cache_bytes_per_s = 50 * GB,
      .numa_bytes_per_s = 150 * GB,
      .socket_bytes_per_s = 120 * GB,
      .memory_ps = 45 * NS,
      .memory_bytes_per_s = 150 * GB}},
    {"GenuineIntel",
     {.line_ps = {12 * NS, 55 * NS, 60 * NS, 60 * NS, 60 * NS, 140 * NS},
      .core_bytes_per_s = 12 * GB,
      .cache_bytes_per_s = 200 * GB,
      .numa_bytes_per_s = 200 * GB,
      .socket_bytes_per_s = 100 * GB,
      .memory_ps = 45 * NS,
      .memory_bytes_per_s = 200 * GB}},
    {NULL,
     {.line_ps = {20 * NS, 45 * NS, 48 * NS, 48 * NS, 60 * NS, 250 * NS},
      .core_bytes_per_s = 15 * GB,
      .cache_bytes_per_s = 200 * GB,
      .numa_bytes_per_s = 200 * GB,
      .socket_bytes_per_s = 80 * GB,
      .memory_ps = 50 * NS,
      .memory_bytes_per_s = 150 * GB}},
};

const struct tw_topo_rates *tw_topo_typical(const char *vendor)
{
    const struct vendor *row = vendors;
    while (row->name && !(vendor && strcmp(vendor, row->name) == 0))
        row++;
    return &row->rates;
}
