/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the kernel that tries whether a device gets at memory, and what it is handed, as plain
 * data. Never knows: whose memory it is. Read by C11 and by CUDA C++. */
#ifndef TW_DEVICE_CUDA_PROBE_H
#define TW_DEVICE_CUDA_PROBE_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda/wire.h"

#define TW_GK_PROBE_WORDS 32u /* of a spot: as many as a rank's two records in an inbox */
#define TW_GK_PROBE_ITEMS 252 /* two to write and two to read for each of 63 peers */

/* Word i of a spot; never 0. */
#define TW_GK_PROBE_WORD(seed, i) (((seed) + ((i) + 1) * 0x9e3779b1u) | 1u)

enum tw_gk_probe_verb {
    TW_GK_PROBE_WRITE, /* the spot's words */
    TW_GK_PROBE_READ,  /* are they there? */
    TW_GK_PROBE_TAKE,  /* the same, and then it is 0 again */
};
/* What was read. */
enum tw_gk_seen {
    TW_GK_SEEN_NOT, /* or the spot was written */
    TW_GK_SEEN_RIGHT,
    TW_GK_SEEN_NOTHING, /* all is 0 */
    TW_GK_SEEN_OTHER,
};
struct tw_gk_probe_item {
    uint32_t *at; /* a spot */
    uint32_t seed;
    uint32_t verb; /* enum tw_gk_probe_verb */
};
/* No spot is in it twice: items are done side by side. */
struct tw_gk_probe {
    uint32_t *seen; /* out, [items], in pinned host memory: enum tw_gk_seen */
    uint32_t items, unused;
    struct tw_gk_probe_item item[TW_GK_PROBE_ITEMS];
};

/** Load the kernel into the device's context. ERR_UNSUPPORTED: the build has no code for it, or has
 * no CUDA. */
enum twill_status tw_gk_probe_load(int device);
/** Start it in a stream of the device; probe may go when it returns. The kernel waits for nobody.
 */
enum twill_status tw_gk_probe_start(int device, const struct tw_gk_probe *probe, void *stream);

#endif
