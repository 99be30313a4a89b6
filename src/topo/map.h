/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: shortest ways through one machine, and which NIC is near. Never knows: hosts, fabrics. */
#ifndef TW_TOPO_MAP_H
#define TW_TOPO_MAP_H

#include "topo/graph.h"

/* One end of a link, as seen from a node. */
struct tw_topo_edge {
    uint32_t link;
    uint8_t direction; /* out of the node */
};

/* A NIC's way out. */
struct tw_topo_port {
    uint32_t nic, link;
    uint32_t number; /* of the NIC among the machine's */
};

/* Of one machine. Ways are found when first asked for, and kept. */
struct tw_topo_map {
    const struct tw_topo_machine *machine;
    uint32_t *first;            /* [nnodes + 1]: edges of a node */
    struct tw_topo_edge *edges; /* in order of links */
    uint32_t *memory;           /* [nnodes]: the memory close to a node; NONE */
    struct tw_topo_port *ports; /* [nports]: NICs with a link to the world outside, in order */
    uint32_t nports;
    uint32_t *door[2]; /* [nnodes]: the port for leaving, arriving; NONE until asked for */
    uint32_t **into;   /* [nnodes]: per source, NULL until asked for, [nnodes]: the edge (2 * link
                          + direction) by which the shortest way comes into a node; NONE */
};

/** @param machine  borrowed. TWILL_ERR_NOMEM: fini is due all the same */
enum twill_status tw_topo_map_init(struct tw_topo_map *map, const struct tw_topo_machine *machine);
void tw_topo_map_fini(struct tw_topo_map *map);

/** The shortest ways from a node, as map->into[node]; NULL: no memory (tw_fail was called). */
const uint32_t *tw_topo_map_ways(struct tw_topo_map *map, uint32_t source);

/** The port nearest to a node for leaving or arriving; among equals, nodes of a kind take turns.
 * NULL: there is no way, or no memory for finding it. */
const struct tw_topo_port *tw_topo_map_door(struct tw_topo_map *map, uint32_t node, bool arrive);

/** The node that an edge (2 * link + direction) comes from. */
uint32_t tw_topo_edge_source(const struct tw_topo_machine *machine, uint32_t edge);

#endif
