/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which order of places makes a good ring. Never knows: ranks, plans. */
#ifndef TW_TOPO_RING_H
#define TW_TOPO_RING_H

#include "topo/graph.h"

#define TW_TOPO_RING_MOST 64
#define TW_TOPO_RING_BYTES 65536u /* as paths are chosen for */
#define TW_TOPO_RING_EXACT 8      /* up to here the order is the best there is */

struct tw_topo_ring {
    uint32_t count;
    uint32_t order[TW_TOPO_RING_MOST]; /* indices of places; the first is 0 */
    uint64_t bytes_per_s;              /* of its slowest link, while all links are in use */
    uint64_t around_ps;                /* what TW_TOPO_RING_BYTES take to go around alone */
};

/**
 * An order of places in which each sends to the next, and the last to the first, all at once: the
 * one whose slowest link is the fastest, of those the one that is the quickest to go around, of
 * those the first. What several links of the ring pass together they share in equal parts. Above
 * TW_TOPO_RING_EXACT places the order is a good one, not always the best: nearest neighbours first,
 * then stretches turned around as long as that helps. Equal graphs and places give equal orders on
 * every host.
 *
 * @param places  [count]: as for tw_topo_path_find; one may stand for several
 * @param count   1 to TW_TOPO_RING_MOST; of one place the rate is that to itself
 * @param ring    out; untouched on error
 * @return TWILL_OK; TWILL_ERR_INVALID another count, no such place or no way; TWILL_ERR_NOMEM
 */
enum twill_status tw_topo_ring_find(const struct tw_topo_graph *graph,
                                    const struct tw_topo_place *places, uint32_t count,
                                    struct tw_topo_ring *ring);

#endif
