/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how it is tried whether devices get at each other's memory, and why one does not.
 * Never knows: who they are tried for. */
#ifndef TW_DEVICE_PROBE_H
#define TW_DEVICE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cuda/probe.h"

/*
 * Each rank has memory on a device with a spot for every rank at its head and at its tail. Three
 * steps, each on all ranks before the next begins anywhere:
 *   TW_PROBE_OFFER  a rank writes words of its own into its own spot of its own memory
 *   TW_PROBE_TRY    it reads those of every peer, and writes others into its spot there
 *   TW_PROBE_LOOK   it looks at what every peer has written into its memory, and clears all spots
 * So each device has read and written what each other one has, by the loads and stores of kernels:
 * peer access that is announced but swallows or mixes up what goes through it (by a switch's ACS or
 * an IOMMU that redirects requests) is found out.
 */
enum tw_probe_step { TW_PROBE_OFFER, TW_PROBE_TRY, TW_PROBE_LOOK };

/* Why a device does not get at another's memory. */
enum tw_gap {
    TW_GAP_NONE,
    TW_GAP_OFF,
    TW_GAP_NO_PATH,
    TW_GAP_CLOSED,
    TW_GAP_READS_NOTHING,
    TW_GAP_READS_OTHER,
    TW_GAP_WRITES_LOST,
    TW_GAP_WRITES_OTHER,
    TW_GAP_COUNT
};
/** "there is no peer access" */
const char *tw_gap_text(enum tw_gap gap);

#define TW_PROBE_SPOT_BYTES (TW_GK_PROBE_WORDS * sizeof(uint32_t))

/* A rank's memory, as the trying device addresses it. */
struct tw_probe_memory {
    char *head, *tail; /* [ranks] spots each, which are 0 before and after */
    uint32_t seed;     /* of what is written there; the owner's, as random as can be */
    bool tried;        /* it and the trying rank try each other */
};

struct tw_probe_side {
    int device;
    int rank, ranks;
    const struct tw_probe_memory *of; /* borrowed, [ranks]; of the others where they are tried */
    uint32_t *seen; /* pinned host memory, [TW_GK_PROBE_ITEMS], for use while a step runs */
    uint64_t deadline_ns;
    const int *cancel; /* not 0: nobody waits any more; NULL: never */
};

/**
 * Run a step and wait for it.
 *
 * @param gaps  out, [ranks]: what was found: by TRY, of this device's reads from the rank's memory;
 *              by LOOK, of the rank's writes; else TW_GAP_NONE
 * @return TWILL_ERR_TIMEOUT   the deadline has passed; the kernel may still run
 *         TWILL_ERR_ABORTED   cancelled; the same
 *         what CUDA says
 */
enum twill_status tw_probe_run(const struct tw_probe_side *side, enum tw_probe_step step,
                               enum tw_gap *gaps);

/* ---- all devices of this process (probe_all.c) --------------------------------------------------
 */

/**
 * Try each device with each other one's memory. Contexts come into being on all of them.
 *
 * @param count  of devices, as tw_cuda_device_count has it
 * @param gaps   out, [count][count]: of the first index, to memory of the second one; whole on
 *               success only
 */
enum twill_status tw_probe_all(int count, uint64_t deadline_ns, enum tw_gap *gaps);

#endif
